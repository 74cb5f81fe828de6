"""The statistics of a long table, over all of its observations, without ever holding all of its cells.

`Measured` with other means to the same numbers: what concerns one variable (ranks, levels) is computed a column at a
time, what concerns several a chunk of observations at a time, in passes over two copies of the table with half its
digits, standardized values and normal scores. Cells are there for the observations that were drawn, and the network is
given their number: it weighs what it sees in cells by that, and is misled by one that is many times larger.
"""

# N observations, M of them drawn, n of them in a chunk, P variables, K levels, F functions, C channels

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.batches import LongTable
from causal_arrow.network.arrays import Array, inverse, padded, quantile_table
from causal_arrow.network.basis import (
    FILLING_RIDGE,
    FILLING_ROUNDS,
    FILLING_STEP,
    FUNCTIONS,
    RARE,
    TINY,
    chosen_signs,
    hermite_polynomials,
    leading_eigenvectors,
    standardized,
)
from causal_arrow.network.forward import each
from causal_arrow.network.statistics import RESIDUAL_RIDGES, RIDGES, Measured, correlation
from causal_arrow.progress import MEASURING, Progress, ignore
from causal_arrow.storage import chunks_of, let_go, room_for


class LongMeasured(Measured):
    """The inputs of the groups of statistics, for a long table."""

    def __init__(
        self,
        table: LongTable,
        channels: Sequence[str],
        statistics: Sequence[str],
        canonical_signs: bool = False,
        progress: Progress = ignore,
    ) -> None:
        self.observations, self.variables = len(table.drawn), table.variables
        self._table, self.channels, self._all, self._drawn = table, channels, table.observations, table.drawn
        self._categories: list[int] = np.flatnonzero(table.levels > 0).tolist()
        self._numbers = [index for index in range(self.variables) if index not in self._categories]
        self._needs_functions = "functions" in channels or "basis_correlations" in statistics
        self.levels = table.levels[None] if self._categories else None
        passes = 3 + (FILLING_ROUNDS + 1) * (not table.complete) + 2 * canonical_signs + bool(self._categories)
        self._steps = 2 * self.variables + 8 * passes
        self._done = 0.0
        self._quantiles = quantile_table(self._all)
        self._progress = progress

        self._values = room_for((self._all, self.variables), np.float32)
        self._scores = room_for((self._all, self.variables), np.float32)
        self._observed = None if table.complete else room_for((self._all, self.variables), np.bool_)
        self._codes = room_for((self._all, len(self._categories)), np.int16)
        self._read_columns()
        if self._categories:
            self._find_level_functions()
        if self._observed is not None:
            self._fill()
        if canonical_signs:
            self._turn()
        self._each_column(self._rank, range(self.variables) if self._observed is not None else self._categories)
        if self._needs_functions:
            self._bends = _Bends(self._scores, range(self.variables), self._chunks())
        drawn = self._part(self._drawn)
        self.values, self.observed, self.intervened = drawn.values, drawn.observed, drawn.intervened

    # A column at a time

    def _read_columns(self) -> None:
        """Values with holes at zero, normal scores, masks and codes of levels."""

        def read(index: int) -> None:
            column = self._table.column(index)
            observed = ~np.isnan(column)
            if self._observed is not None:
                self._observed[:, index] = observed
            if index in self._categories:
                self._codes[:, self._categories.index(index)] = np.where(observed, column, -1.0)
                return
            there = None if observed.all() else observed[None, :, None]
            self._values[:, index] = standardized(column[None, :, None], there)[0, :, 0]
            self._rank(index)

        self._each_column(read, range(self.variables))

    def _rank(self, index: int) -> None:
        """The normal scores of a column."""
        self._scores[:, index] = normal_scores_of(self._values[:, index], self._quantiles)

    def _each_column(self, work: Callable[[int], None], columns: Sequence[int]) -> None:
        each(work, columns, lambda: self._step(1))
        self._step(self.variables - len(columns))
        self._let_go()

    # A chunk of observations at a time

    def _chunks(self, width: int | None = None) -> Iterator[slice]:
        """Chunks of all observations, reporting progress on the way."""
        for chunk in chunks_of(self._all, width or self.variables):
            yield chunk
            self._step(8 * (chunk.stop - chunk.start) / self._all)
        self._let_go()

    def _step(self, steps: float) -> None:
        self._done += steps
        self._progress(MEASURING, min(self._done / self._steps, 1.0))

    def _let_go(self) -> None:
        for array in (self._values, self._scores, self._observed, self._codes):
            if array is not None:
                let_go(array)

    def _fill(self) -> None:
        """Fill holes as `basis.fill` does, in each round with the covariance of all observations."""
        assert self._observed is not None
        identity = FILLING_RIDGE * np.eye(self.variables)
        precision: Array = None
        for _ in range(FILLING_ROUNDS + 1):
            covariance = np.zeros_like(identity)
            for chunk in self._chunks():
                filled = rows_of(self._values, chunk).astype(np.float64)
                observed = rows_of(self._observed, chunk)
                if precision is None:
                    filled = np.where(observed, filled, 0.0)
                else:
                    step = FILLING_STEP * (filled @ precision) / np.diagonal(precision)
                    filled = np.where(observed, filled, filled - step)
                self._values[chunk] = filled
                covariance += filled.T @ filled
            precision = inverse(covariance / self._all + identity)

    def _turn(self) -> None:
        """Turn columns, and functions of categories, as `basis.signs` does."""
        turned = _signs(self.variables, partial(rows_of, self._values), self._chunks())
        for index in np.flatnonzero(turned < 0).tolist():
            np.negative(self._values[:, index], out=self._values[:, index])
            np.negative(self._scores[:, index], out=self._scores[:, index])
        if self._categories:
            width = len(self._categories) * FUNCTIONS

            def functions(rows: slice) -> Array:
                return self._functions_of_levels(rows).reshape(-1, width)

            by_function = _signs(width, functions, self._chunks(width))
            self._level_table *= by_function.reshape(-1, 1, FUNCTIONS).astype(np.float32)

    # Functions

    def _find_level_functions(self) -> None:
        """Find the scores of the levels of each category, as `basis.level_functions` does."""
        categories, numbers = self._categories, self._numbers
        width = max(FUNCTIONS, int(self._table.levels.max()))
        codes = np.where(self._codes < 0, width, self._codes)  # holes get an extra level, the last
        counts = np.stack([np.bincount(column, minlength=width + 1) for column in codes.T]).astype(np.float64)
        seen = counts[:, :width].sum(axis=1, keepdims=True).clip(1)
        shares = counts[:, :width] / seen
        deviation = np.sqrt((counts[:, :width] + RARE) / seen)
        # The blocks of each level: (1[x = l] − p_l) / deviation_l; zeros for holes.
        blocks = (np.eye(width) - shares[:, None]) / deviation[:, None]
        blocks = np.concatenate([blocks, np.zeros((len(categories), 1, width))], axis=1)  # (·, K + 1, K)
        bends = _Bends(self._scores, numbers, self._chunks())
        products = np.zeros((self.variables * width, self.variables * width), dtype=np.float32)
        for chunk in chunks_of(self._all, self.variables * width):
            flat = np.empty((chunk.stop - chunk.start, self.variables, width), dtype=np.float32)
            for number, index in enumerate(categories):
                flat[:, index] = blocks[number][self._codes[chunk, number]]  # a hole's −1 is the last
            of_numbers = padded(np.stack(bends.functions(chunk), axis=-1), width)
            if self._observed is not None:
                of_numbers *= rows_of(self._observed, chunk)[:, numbers, None]
            flat[:, numbers] = of_numbers
            flat = flat.reshape(len(flat), -1)  # (n, P·K)
            products += flat.T @ flat
        tables = (products / self._all).reshape(self.variables, width, self.variables, width)
        own = np.eye(self.variables, dtype=bool)[:, None, :, None]
        tables = np.where(own, 0.0, tables).reshape(self.variables, width, -1)[categories]  # (·, K, P·K)
        scores = leading_eigenvectors(tables @ tables.swapaxes(1, 2), FUNCTIONS).astype(np.float64)  # (·, K, F)
        functions = blocks @ scores  # (·, K + 1, F)
        weights = (counts / self._all)[..., None]
        centered = functions - (functions * weights).sum(axis=1, keepdims=True)
        mixing = _orthogonal((centered * weights).swapaxes(1, 2) @ centered)
        self._level_table: NDArray[np.float32] = (centered @ mixing.swapaxes(1, 2)).astype(np.float32)  # (·, K + 1, F)
        for number, index in enumerate(categories):
            self._values[:, index] = self._level_table[number, self._codes[:, number], 0]

    def _functions_of_levels(self, rows: Any) -> Array:
        """The functions of the categories.  (n, ·, F)"""
        codes = rows_of(self._codes, rows)
        return np.stack([table[codes[:, number]] for number, table in enumerate(self._level_table)], axis=1)

    def _functions(self, rows: Any) -> list[Array]:
        """The functions of all variables.  F × (n, P)"""
        functions = self._bends.functions(rows)
        if self._categories:
            of_levels = self._functions_of_levels(rows)
            for index, function in enumerate(functions):
                function[:, self._categories] = of_levels[..., index]
        return functions

    # Parts of the table

    def _part(self, rows: Any) -> Measured:
        """Some of the observations, with all that their channels need."""
        part = Measured.__new__(Measured)
        part.values, part.__dict__["scores"] = (rows_of(array, rows)[None] for array in (self._values, self._scores))
        part.observed, part.intervened = (
            None if array is None else rows_of(array, rows)[None] for array in (self._observed, self._table.intervened)
        )
        part.observations, part.variables = part.values.shape[1:]
        part.channels, part.observations_per_chunk = self.channels, None
        part.residual_spreads, part.__dict__["precision"] = self._spreads, self.precision
        if self._needs_functions:
            part.__dict__["functions"] = [function[None] for function in self._functions(rows)]
        return part

    # What the groups ask for

    @cached_property
    def _second_moments(self) -> tuple[Array, Array]:
        """Sums of products of values and of scores, and sums of the values, in float64.  (2, P, P), (P,)"""
        products, sums = np.zeros((2, self.variables, self.variables)), np.zeros(self.variables)
        for chunk in self._chunks():
            both = [rows_of(array, chunk).astype(np.float64) for array in (self._values, self._scores)]
            products += [values.T @ values for values in both]
            sums += both[0].sum(axis=0)
        return products, sums

    @cached_property
    def correlations(self) -> Array:
        """Correlations of the values and of the normal scores, in float64.  (2, 1, P, P)"""
        return correlation(self._second_moments[0])[:, None]

    @cached_property
    def _spreads(self) -> list[Array]:
        """Standard deviations of the residuals, from second moments: √(Ω_j · covariance · Ω_j).  2 × (1, 1, P)"""
        products, sums = self._second_moments
        covariance = (products[0] - np.outer(sums, sums) / self._all) / (self._all - 1)
        precisions = [self.precision[RIDGES.index(ridge), 0, 0] for ridge in RESIDUAL_RIDGES]
        return [np.sqrt((some * (covariance @ some)).sum(axis=0).clip(0))[None, None] for some in precisions]

    @cached_property
    def cells(self) -> Array:
        """The channels of each cell of the drawn observations.  (1, C, M, P)"""
        return self._part(self._drawn).cells

    @cached_property
    def _means(self) -> dict[str, Array]:
        """Means over all observations of what `Measured` has of a few, from one pass."""
        names = {
            "cross_means": True,
            "function_correlations": self._needs_functions,
            "joint_shares": self._observed is not None,
            "intervention_sums": self._table.intervened is not None,
        }
        means: dict[str, Array] = {name: 0.0 for name, there in names.items() if there}
        for chunk in self._chunks(self.variables * 4):
            part = self._part(chunk)
            for name in means:
                # Sums are those of as many observations as were drawn.
                weight = self.observations if name == "intervention_sums" else part.observations
                means[name] = means[name] + getattr(part, name).astype(np.float64) * (weight / self._all)
        return {name: mean.astype(np.float32) for name, mean in means.items()}

    @cached_property
    def cross_means(self) -> Array:
        return self._means["cross_means"]

    @cached_property
    def function_correlations(self) -> Array:
        return self._means["function_correlations"]

    @cached_property
    def joint_shares(self) -> Array | None:
        return self._means.get("joint_shares")

    @cached_property
    def intervention_sums(self) -> Array | None:
        return self._means.get("intervention_sums")


class _Bends:
    """Hermite polynomials of the scores of some columns, made orthogonal over all observations."""

    def __init__(self, scores: NDArray[np.float32], columns: Sequence[int], chunks: Iterator[slice]) -> None:
        self._scores, self._columns = scores, list(columns)
        sums = np.zeros((len(self._columns), FUNCTIONS))
        products = np.zeros((len(self._columns), FUNCTIONS, FUNCTIONS))
        for chunk in chunks:
            bent = np.stack(self._polynomials(chunk)).transpose(2, 0, 1).astype(np.float64)  # (·, F, n)
            sums += bent.sum(axis=2)
            products += bent @ bent.swapaxes(1, 2)
        means = sums / len(scores)
        self._means = means.T.astype(np.float32)  # (F, ·)
        mixing = _orthogonal(products / len(scores) - means[:, :, None] * means[:, None, :])
        self._mixing = mixing.transpose(1, 2, 0).astype(np.float32)  # (F, F, ·), lower triangles

    def _polynomials(self, rows: Any) -> list[Array]:
        return hermite_polynomials(rows_of(self._scores, rows)[:, self._columns])

    def functions(self, rows: Any) -> list[Array]:
        """The functions of some observations.  F × (n, ·)"""
        centered = [function - mean for function, mean in zip(self._polynomials(rows), self._means, strict=True)]
        return [sum(self._mixing[g, f] * centered[f] for f in range(g + 1)) for g in range(FUNCTIONS)]


def _orthogonal(products: Array) -> Array:
    """The mixtures of functions that `basis.orthogonal` makes, given their covariances.  (·, F, F)"""

    def covariance(one: Array, other: Array) -> Array:
        return np.einsum("pf,pfg,pg->p", one, products, other)[:, None]

    done: list[Array] = []
    for own in np.eye(products.shape[-1]):
        mixed = np.broadcast_to(own, products.shape[:2])
        size = covariance(mixed, mixed)
        for earlier in done:
            mixed = mixed - covariance(mixed, earlier) * earlier
        left = covariance(mixed, mixed)
        done.append(np.where(left > 1e-4 * size.clip(1e-8), mixed / np.sqrt(left.clip(TINY)), 0.0))
    return np.stack(done, axis=1)


def _signs(width: int, part: Callable[[slice], Array], chunks: Iterator[slice]) -> Array:
    """The signs that `basis.signs` chooses, for a matrix that comes in chunks.  (width,)"""
    cubes, mixed, sums, others_sums = np.zeros((4, width))
    products = np.zeros((width, width))
    count = 0
    for chunk in chunks:
        values = part(chunk).astype(np.float64)
        squares = values * values
        others = squares.sum(axis=1, keepdims=True) - squares
        cubes += np.einsum("np,np->p", squares, values)
        mixed += np.einsum("np,np->p", values, others)
        sums += values.sum(axis=0)
        others_sums += others.sum(axis=0)
        products += values.T @ values
        count += len(values)
    coskewness = (mixed - sums * others_sums / count) / count
    return chosen_signs((cubes / count)[None], coskewness[None], (products / count)[None])[0]


def normal_scores_of(column: NDArray[np.float32], quantiles: NDArray[np.float64]) -> NDArray[np.float32]:
    """`basis.normal_scores` of one long column, in float64 until the end, given the `quantile_table`.  (N,)"""
    order = np.argsort(column)
    ordered = column[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))  # of runs of equal values
    stops = np.append(starts[1:], len(column))
    scores = np.repeat(quantiles[starts + stops], stops - starts)
    ranked = np.empty(len(column), dtype=np.float32)
    ranked[order] = scores / max(float(scores.std(ddof=1)), 1e-6)
    return ranked


def rows_of(array: NDArray[Any], rows: Any) -> NDArray[Any]:
    """Some observations of an array that lies in columns.  (n, P)"""
    return np.ascontiguousarray(array[rows])

"""The statistics of a long table, over all of its observations, without ever holding all of its cells.

`Measured` with other means to the same numbers: what concerns one variable (ranks, levels) is computed a column at a
time, what concerns several a chunk of observations at a time, in passes over two copies of the table with half its
digits, standardized values and normal scores. Cells are there for the observations that were drawn.

The network is told that there are as many observations as it reads one by one: it weighs what it sees in cells by that
number, and is misled by one that is many times larger.
"""

# N observations, M of them drawn, n of them in a chunk, P variables, K levels, F functions, C channels

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from causal_arrow.batches import LongTable
from causal_arrow.network.encoders.basis import (
    FILLING_RIDGE,
    FILLING_ROUNDS,
    FILLING_STEP,
    FUNCTIONS,
    RARE,
    TINY,
    Numbers,
    chosen_signs,
    hermite_polynomials,
    inverse_from_factor,
    leading_eigenvectors,
)
from causal_arrow.network.encoders.statistics import (
    RESIDUAL_RIDGES,
    RIDGES,
    Measured,
    cross_products,
    sums_where_set,
)
from causal_arrow.progress import MEASURING, Progress, unheard
from causal_arrow.storage import chunks_of, let_go, room_for


class LongMeasured(Measured):
    """What the groups of statistics need of a long table, whose numbers are standardized."""

    def __init__(
        self,
        table: LongTable,
        channels: Sequence[str],
        statistics: Sequence[str],
        canonical_signs: bool = False,
        progress: Progress = unheard,
    ) -> None:
        self.observations, self.variables = len(table.drawn), table.variables
        self._table, self._channels, self._canonical_signs = table, channels, canonical_signs
        self._all, self._drawn = table.observations, table.drawn.numpy()
        self._category_places: list[int] = torch.nonzero(table.levels > 0).flatten().tolist()
        self._needs_functions = "functions" in channels or "basis_correlations" in statistics
        self.levels = table.levels[None] if self._category_places else None
        passes = 3 + (FILLING_ROUNDS + 1) * (not table.complete) + 2 * canonical_signs + bool(self._category_places)
        self._steps = 2 * self.variables + 8 * passes
        self._done = 0.0
        self._progress = progress

        self._values = room_for((self._all, self.variables), np.float32)
        self._scores = room_for((self._all, self.variables), np.float32)
        self._observed = None if table.complete else room_for((self._all, self.variables), np.bool_)
        self._codes = room_for((self._all, len(self._category_places)), np.int16)
        self._level_table = torch.zeros(0)
        self._read_columns()
        if self._category_places:
            self._find_level_functions()
        if self._observed is not None:
            self._fill()
        if canonical_signs:
            self._turn()
        self._rank([place for place in range(self.variables) if self._observed is not None or self._is_category(place)])
        self._finish_functions()
        drawn = self._part(self._drawn, cells=True)
        self.values, self.observed, self.intervened = drawn.values, drawn.observed, drawn.intervened
        self.numbers = Numbers(self.values, None, None)

    def _is_category(self, place: int) -> bool:
        return place in self._category_places

    # A column at a time

    def _read_columns(self) -> None:
        """Values with holes at zero, normal scores, masks and codes of levels."""

        def read(place: int) -> None:
            column = self._table.column(place)
            holes = column.isnan()
            if self._observed is not None:
                self._observed[:, place] = (~holes).numpy()
            if self._is_category(place):
                codes = torch.where(holes, -1.0, column).numpy()
                self._codes[:, self._category_places.index(place)] = codes
                return
            values = torch.where(holes, 0.0, column).float().numpy()
            self._values[:, place] = values
            self._scores[:, place] = normal_scores_of(values)

        self._each_column(read, range(self.variables))

    def _rank(self, places: Sequence[int]) -> None:
        """The normal scores of columns whose values have changed since they were read."""

        def rank(place: int) -> None:
            self._scores[:, place] = normal_scores_of(self._values[:, place])

        self._each_column(rank, places)
        self._step(self.variables - len(places))

    def _each_column(self, work: Callable[[int], None], places: Sequence[int]) -> None:
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            for _ in pool.map(work, places):
                self._step(1)
        self._let_go()

    # A chunk of observations at a time

    def _chunks(self, width: int | None = None) -> Iterator[slice]:
        """Chunks of all observations, with the share that is done told on the way."""
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
        """Holes filled as `basis.fill` does, in each round with the covariance of all observations."""
        assert self._observed is not None
        identity = FILLING_RIDGE * torch.eye(self.variables, dtype=torch.float64)
        precision: Tensor | None = None
        for step in range(FILLING_ROUNDS + 1):
            covariance = torch.zeros_like(identity)
            for chunk in self._chunks():
                filled = rows_of(self._values, chunk).double()
                observed = rows_of(self._observed, chunk)
                if step == 0:
                    filled = filled * observed
                if precision is not None:
                    moved = filled - FILLING_STEP * (filled @ precision) / precision.diagonal()
                    filled = torch.where(observed, filled, moved)
                self._values[chunk] = filled.float().numpy()
                covariance += filled.mT @ filled
            factor = torch.linalg.cholesky_ex(covariance / self._all + identity)[0]
            precision = inverse_from_factor(factor)

    def _turn(self) -> None:
        """Columns, and functions of categories, turned as `basis.signs` says."""
        turned = _signs(self.variables, lambda chunk: rows_of(self._values, chunk), self._chunks())
        for place in torch.nonzero(turned < 0).flatten().tolist():
            np.negative(self._values[:, place], out=self._values[:, place])
            np.negative(self._scores[:, place], out=self._scores[:, place])
        if self._category_places:
            width = len(self._category_places) * FUNCTIONS
            by_function = _signs(width, lambda chunk: self._functions_of_levels(chunk).flatten(1), self._chunks(width))
            self._level_table = self._level_table * by_function.view(-1, 1, FUNCTIONS).float()

    # Functions

    def _find_level_functions(self) -> None:
        """Scores of the levels of each category, as `basis.level_functions` finds them."""
        places = self._category_places
        width = max(FUNCTIONS, int(self._table.levels.max()))
        counts = torch.zeros(len(places), width + 1, dtype=torch.float64)  # the last is for holes
        for number in range(len(places)):
            codes = self._codes[:, number].astype(np.intp)
            counts[number] = torch.from_numpy(np.bincount(np.where(codes < 0, width, codes), minlength=width + 1))
        seen = counts[:, :width].sum(dim=1, keepdim=True).clamp_min(1)
        shares = counts[:, :width] / seen
        deviation = ((counts[:, :width] + RARE) / seen).sqrt()
        # The blocks of each level: (1[x = l] − p_l) / deviation_l; zeros for holes.
        blocks = (torch.eye(width, dtype=torch.float64) - shares[:, None]) / deviation[:, None]
        blocks = torch.cat([blocks, torch.zeros(len(places), 1, width, dtype=torch.float64)], dim=1)  # (·, K + 1, K)
        numbers = [place for place in range(self.variables) if not self._is_category(place)]
        bends = _Bends(self._scores, numbers, self._chunks())
        order = torch.tensor([*places, *numbers])
        products = torch.zeros(self.variables * width, self.variables * width)
        for chunk in chunks_of(self._all, self.variables * width):
            of_levels = torch.stack([blocks[number][self._code(chunk, number)] for number in range(len(places))], dim=1)
            of_numbers = bends.functions(chunk)
            if self._observed is not None:
                of_numbers = of_numbers * rows_of(self._observed, chunk)[:, numbers, None]
            flat = torch.cat([of_levels.float(), _widened(of_numbers, width)], dim=1)
            flat = flat[:, order.argsort()].flatten(1)  # (n, P·K)
            products += flat.mT @ flat
        tables = (products / self._all).unflatten(1, (-1, width)).unflatten(0, (-1, width))  # (P, K, P, K)
        own = torch.eye(self.variables, dtype=torch.bool)
        tables = tables.masked_fill(own[:, None, :, None], 0.0).flatten(2)[places]  # (·, K, P·K)
        scores = leading_eigenvectors(tables @ tables.mT, FUNCTIONS).double()  # (·, K, F)
        functions = blocks @ scores  # (·, K + 1, F)
        weights = (counts / self._all)[..., None]
        means = (functions * weights).sum(dim=1)
        centered = functions - means[:, None]
        mixing = _orthogonal((centered * weights).mT @ centered)
        self._level_table = (centered @ mixing.mT).float()  # (·, K + 1, F), the last level for holes
        for number, place in enumerate(places):
            values = self._level_table[number, :, 0].numpy()
            self._values[:, place] = values[self._codes[:, number]]  # −1 is the last one

    def _code(self, chunk: Any, number: int) -> Tensor:
        return torch.from_numpy(np.asarray(self._codes[chunk, number], dtype=np.int64))

    def _functions_of_levels(self, rows: Any) -> Tensor:
        """The functions of the categories.  (n, ·, F)"""
        numbers = range(len(self._category_places))
        return torch.stack([self._level_table[number][self._code(rows, number)] for number in numbers], dim=1)

    def _finish_functions(self) -> None:
        """How the functions of numbers come from their final scores."""
        if self._needs_functions:
            self._bends = _Bends(self._scores, range(self.variables), self._chunks())

    def _functions(self, rows: Any) -> Tensor:
        """The functions of all variables.  (n, P, F)"""
        functions = self._bends.functions(rows)
        if self._category_places:
            functions[:, self._category_places] = self._functions_of_levels(rows)
        return functions

    # Parts of the table

    def _part(self, rows: Any, cells: bool = False) -> _Part:
        """Some of the observations; with `cells`, all that their channels need."""
        part = _Part(
            self._channels,
            rows_of(self._values, rows)[None],
            rows_of(self._scores, rows)[None],
            None if self._observed is None else rows_of(self._observed, rows)[None],
            None if self._table.intervened is None else rows_of(self._table.intervened.numpy(), rows)[None],
        )
        if cells:
            part.__dict__["precision"] = self.precision
            part.residual_spreads = self.residual_spreads_
            if self._needs_functions:
                part.__dict__["functions"] = self._functions(rows)[None]
        return part

    # What the groups ask for

    @cached_property
    def _second_moments(self) -> tuple[Tensor, Tensor, Tensor]:
        """Sums of products of values and of scores, and sums of the values, in float64.  2 × (P, P), (P,)"""
        of_values, of_scores = torch.zeros(2, self.variables, self.variables, dtype=torch.float64)
        total = torch.zeros(self.variables, dtype=torch.float64)
        for chunk in self._chunks():
            values, scores = (rows_of(array, chunk).double() for array in (self._values, self._scores))
            of_values += values.mT @ values
            of_scores += scores.mT @ scores
            total += values.sum(dim=0)
        return of_values, of_scores, total

    @cached_property
    def correlations(self) -> Tensor:
        """Of the values and of the normal scores, in float64.  (2, 1, P, P)"""
        products = torch.stack(self._second_moments[:2])
        scale = products.diagonal(dim1=-2, dim2=-1).clamp_min(1e-12).rsqrt()
        return (products * scale.unsqueeze(-1) * scale.unsqueeze(-2))[:, None]

    @cached_property
    def residual_spreads_(self) -> list[Tensor]:
        """Standard deviations of the residuals, from second moments: √(Ω_j · covariance · Ω_j).  2 × (1, 1, P)"""
        products, _, total = self._second_moments
        covariance = (products - torch.outer(total, total) / self._all) / (self._all - 1)
        spreads = []
        for ridge in RESIDUAL_RIDGES:
            precision = self.precision[RIDGES.index(ridge), 0, 0]
            variance = (precision * (covariance @ precision)).sum(dim=0)
            spreads.append(variance.clamp_min(0).sqrt()[None, None])
        return spreads

    @cached_property
    def cells(self) -> Tensor:
        """The channels of each cell of the drawn observations.  (1, M, P, C)"""
        return self._part(self._drawn, cells=True).cells

    @cached_property
    def _sums(self) -> dict[str, Tensor]:
        """What is summed over all observations, in one pass."""
        sums: dict[str, Tensor] = {}

        def add(name: str, part: Tensor) -> None:
            sums[name] = sums[name] + part.double() if name in sums else part.double()

        for chunk in self._chunks(self.variables * 4):
            part = self._part(chunk, cells=True)
            add("cross", cross_products(part.cells_with_moments))
            if self._needs_functions:
                functions = part.functions.flatten(2)
                add("functions", functions.mT @ functions)
            if part.observed is not None:
                observed = part.observed.float()
                add("jointly", observed.mT @ observed)
            if part.intervened is not None:
                add("interventions", sums_where_set(part.intervened, part.values))
        return sums

    @cached_property
    def cross_means(self) -> Tensor:
        """Means over all observations of `cross_products`.  (1, 4, C, P, P)"""
        return (self._sums["cross"] / self._all).float()

    @cached_property
    def function_correlations(self) -> Tensor:
        """Correlations of the functions of all variables.  (1, P·F, P·F)"""
        return (self._sums["functions"] / self._all).float()

    @cached_property
    def joint_shares(self) -> Tensor | None:
        """Shares of the observations in which both are observed.  (1, P, P)"""
        return None if self._observed is None else (self._sums["jointly"] / self._all).float()

    @cached_property
    def intervention_sums(self) -> Tensor | None:
        """`sums_where_set`, for as many observations as were drawn.  (6, 1, P, P)"""
        if self._table.intervened is None:
            return None
        return (self._sums["interventions"] * (self.observations / self._all)).float()


class _Part(Measured):
    """Some observations of a table that was measured whole."""

    def __init__(
        self,
        channels: Sequence[str],
        values: Tensor,
        scores: Tensor,
        observed: Tensor | None,
        intervened: Tensor | None,
    ) -> None:
        self.values, self.observed, self.intervened = values, observed, intervened
        self.observations, self.variables = values.shape[1:]
        self._channels = channels
        self.__dict__["scores"] = scores


class _Bends:
    """Hermite polynomials of the scores of some columns, made orthogonal over all observations."""

    def __init__(self, scores: NDArray[np.float32], places: Sequence[int], chunks: Iterator[slice]) -> None:
        self._scores, self._places = scores, list(places)
        count = 0
        total = torch.zeros(len(self._places), FUNCTIONS, dtype=torch.float64)
        products = torch.zeros(len(self._places), FUNCTIONS, FUNCTIONS, dtype=torch.float64)
        for chunk in chunks:
            bent = self._polynomials(chunk).double()  # (n, ·, F)
            count += len(bent)
            total += bent.sum(dim=0)
            products += torch.einsum("npf,npg->pfg", bent, bent)
        self._means = total / max(count, 1)
        centered = products / max(count, 1) - self._means[:, :, None] * self._means[:, None, :]
        self._mixing = _orthogonal(centered).float()  # (·, F, F)

    def _polynomials(self, rows: Any) -> Tensor:
        return hermite_polynomials(rows_of(self._scores, rows)[:, self._places])

    def functions(self, rows: Any) -> Tensor:
        """The functions of some observations.  (n, ·, F)"""
        return torch.einsum("npf,pgf->npg", self._polynomials(rows) - self._means.float(), self._mixing)


def _orthogonal(products: Tensor) -> Tensor:
    """How to mix functions so that each is uncorrelated with those before it and has variance 1, as `basis.orthogonal`
    does, given their covariances (·, F, F); zeros where nothing is left of one.  (·, F, F)"""
    done: list[Tensor] = []
    for own in torch.eye(products.shape[-1], dtype=products.dtype):
        mixed = own.expand(len(products), -1)
        size = torch.einsum("pf,pfg,pg->p", mixed, products, mixed)
        for earlier in done:
            shared = torch.einsum("pf,pfg,pg->p", mixed, products, earlier)
            mixed = mixed - shared[:, None] * earlier
        left = torch.einsum("pf,pfg,pg->p", mixed, products, mixed)
        keep = left > 1e-4 * size.clamp_min(1e-8)
        done.append(torch.where(keep[:, None], mixed * left.clamp_min(TINY).rsqrt()[:, None], 0.0))
    return torch.stack(done, dim=1)


def _signs(width: int, part: Callable[[slice], Tensor], chunks: Iterator[slice]) -> Tensor:
    """1 or −1 for each column of a matrix that comes in chunks, as `basis.signs` chooses them.  (width,)"""
    cubes, mixed, total, others_total = torch.zeros(4, width, dtype=torch.float64)
    products = torch.zeros(width, width, dtype=torch.float64)
    count = 0
    for chunk in chunks:
        values = part(chunk).double()
        squares = values.square()
        others = squares.sum(dim=1, keepdim=True) - squares
        cubes += (squares * values).sum(dim=0)
        mixed += (values * others).sum(dim=0)
        total += values.sum(dim=0)
        others_total += others.sum(dim=0)
        products += values.mT @ values
        count += len(values)
    coskewness = (mixed - total * others_total / count) / count
    return chosen_signs((cubes / count)[None], coskewness[None], (products / count)[None])[0]


def normal_scores_of(column: NDArray[np.float32]) -> NDArray[np.float32]:
    """`basis.normal_scores` of one long column, by sorting it once.  (N,)"""
    order = np.argsort(column)
    ordered = column[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))  # of runs of equal values
    stops = np.append(starts[1:], len(column))
    quantiles = torch.from_numpy((starts + stops) / (2 * len(column)))
    by_run = torch.special.ndtri(quantiles.clamp(0.5 / len(column), 1 - 0.5 / len(column))).numpy()
    scores = np.repeat(by_run, stops - starts)
    spread = max(float(scores.std(ddof=1)), 1e-6)
    placed = np.empty(len(column), dtype=np.float32)
    placed[order] = scores / spread
    return placed


def rows_of(array: NDArray[Any], rows: Any) -> Tensor:
    """Some observations of an array that lies in columns.  (n, P)"""
    return torch.from_numpy(np.ascontiguousarray(array[rows]))


def _widened(functions: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(functions, (0, width - FUNCTIONS))

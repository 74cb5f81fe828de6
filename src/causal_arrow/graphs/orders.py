"""Causal orders under constraints: the most probable one, draws, and one that also looks as people expect.

An order π of the variables has the weight

    log w(π) = Σ_i [s_π(i) − log Σ_{k ≥ i} exp s_π(k)] − Σ_{j before k} penalty[j, k]

a Plackett–Luce distribution (section 2 of the paper) with a price on each pair that is ordered against the knowledge.
An infinite price makes the pair's order compulsory; such prices must contain their transitive consequences.

Without penalties the answers are known: sort the scores, or let the variables race. With them both problems are hard in
general (a ranking with arbitrary prices is the feedback arc set problem), but they mostly come apart into small ones,
which dynamic programming over the sets of variables that can be placed first solves exactly. Only where those sets are
too many do approximate answers take over, from moving one variable at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.graphs.dag import positions_in, transitive_closure

# P variables, C orders worked on side by side, S sets of variables in a layer of the lattice

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

# Sets of variables that exact answers may visit. Twelve variables without any compulsory order have 4096 of them.
EXACT_SETS = 8192
ANNEALED_ORDERS = 32
# Temperatures of the approximate search, one sweep over the variables each.
ANNEALING = (1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05)
SAMPLING_SWEEPS = 5
# Stands for an infinite price where prices are subtracted: larger than any sum of others, small enough to keep digits.
COMPULSORY = 1e9


def most_probable_order(scores: Floats, penalty: Floats) -> tuple[Integers, bool]:
    """The order of largest weight, and whether that is certain.  (P,)

    Exact whenever the sets to visit are at most EXACT_SETS; otherwise the best of ANNEALED_ORDERS annealed orders, one
    that no move of a single variable improves. Equal scores keep the order of their indices.
    """
    by_score = np.argsort(-scores, kind="stable")
    s, cost = scores[by_score], penalty[np.ix_(by_score, by_score)]
    order: list[int] = []
    exact = True
    for block in _blocks(cost):
        later_mass = np.logaddexp.reduce(s[block.stop :], initial=-np.inf)
        inside, certain = _best_order_of_block(s[block], cost[block, block], later_mass)
        order.extend(block.start + inside)
        exact = exact and certain
    return by_score[order], exact


def sample_orders(scores: Floats, penalty: Floats, count: int, random: np.random.Generator) -> tuple[Integers, bool]:
    """Orders drawn with probability ∝ w(π), and whether that is their exact distribution.  (count, P)

    Plackett–Luce is a race: variable j arrives after an exponential time of rate exp s_j, and the order is the order of
    arrival. Times of variables that no chain of penalties connects stay independent, so each connected group gets its
    order by itself; given the order, the waits between arrivals are exponential again, with the rate of those still to
    come. A group's order is drawn exactly if it has at most EXACT_SETS sets or if plain races obey often enough.
    Otherwise orders built place by place go through SAMPLING_SWEEPS Gibbs sweeps, which bring them close to w.
    """
    variables = np.empty((count, len(scores)), dtype=np.intp)
    times = np.empty((count, len(scores)))
    shifted = scores - scores.max(initial=-np.inf)
    exact = True
    filled = 0
    for group in _groups(penalty):
        s, cost = shifted[group], penalty[np.ix_(group, group)]
        inside, certain = _sample_group(s, cost, count, random)
        exact = exact and certain
        place = slice(filled, filled + len(group))
        variables[:, place] = group[inside]
        with np.errstate(over="ignore"):
            waits = random.standard_exponential((count, len(group))) * np.exp(-_mass_from(s[inside], -np.inf))
            times[:, place] = np.cumsum(waits, axis=1)
        filled = place.stop
    # Stable: where a wait is lost to rounding, the compulsory order within the group still stands.
    return np.take_along_axis(variables, np.argsort(times, axis=1, kind="stable"), axis=1), exact


def log_weight(orders: Integers, scores: Floats, penalty: Floats, later_mass: float = -np.inf) -> Floats:
    """log w(π) of each order; `later_mass` is the log of Σ exp s over variables that follow all of these.  (C,)"""
    placed_scores = scores[orders]
    plackett_luce = (placed_scores - _mass_from(placed_scores, later_mass)).sum(axis=1)
    earlier, later = np.triu_indices(orders.shape[1], k=1)
    return np.asarray(plackett_luce - penalty[orders[:, earlier], orders[:, later]].sum(axis=1))


def rearranged_order(order: Integers, graph: NDArray[np.bool_], wishes: Sequence[NDArray[np.bool_]]) -> Integers:
    """A causal order of `graph` near `order`, itself one, with j before k wherever a wish [j, k] can be met.  (P,)

    Edges come first, then one matrix of wishes after the other. Wishes that contradict edges, earlier matrices or each
    other in a cycle cannot all be met: of those, as many are as can be, the ones that `order` meets already first.
    Among the variables that may come next, the first one of `order` does.
    """
    if not any(wish.any() for wish in wishes):
        return order
    settled = transitive_closure(graph)
    for wish in wishes:
        settled = _granted(settled, wish, positions_in(order))
    waiting = settled.sum(axis=0)[order]  # by place in `order`: how many variables must still come before
    must_follow = settled[np.ix_(order, order)]
    result = []
    for _ in order:
        place = int(np.flatnonzero(waiting == 0)[0])
        result.append(order[place])
        waiting = waiting - must_follow[place]
        waiting[place] = -1
    return np.array(result, dtype=np.intp)


def _granted(settled: NDArray[np.bool_], wish: NDArray[np.bool_], position: Integers) -> NDArray[np.bool_]:
    """The partial order `settled` together with the wishes that fit it, all consequences included.  (P, P)"""
    wanted = wish & ~settled & ~settled.T
    everything = transitive_closure(settled | wanted)
    in_conflict = wanted & everything.T
    settled = transitive_closure(settled | wanted & ~in_conflict)
    pairs = np.argwhere(in_conflict).tolist()
    for j, k in sorted(pairs, key=lambda pair: (position[pair[0]] > position[pair[1]], *position[pair])):
        if not settled[j, k] and not settled[k, j]:
            upwards, downwards = settled[:, j].copy(), settled[k].copy()
            upwards[j] = downwards[k] = True
            settled |= np.outer(upwards, downwards)
    return settled


# Coming apart


def _blocks(cost: Floats) -> list[slice]:
    """Consecutive stretches of the score order that can be ordered one after the other.

    Cut where no penalty speaks for putting a variable from below the cut before one from above it. Taking everything
    above the cut first then costs nothing, and moving larger scores ahead of smaller neighbors raises Plackett–Luce.
    """
    p = len(cost)
    unhappy = np.triu(cost > 0, k=1)
    # The last variable that wants to come before one of those up to here.
    reach = np.maximum.accumulate(np.where(unhappy.any(axis=1), p - 1 - unhappy[:, ::-1].argmax(axis=1), np.arange(p)))
    ends = np.flatnonzero(reach == np.arange(p)) + 1
    return [slice(start, end) for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]


def _groups(penalty: Floats) -> list[Integers]:
    """The variables, split into those connected by penalties."""
    linked = (penalty > 0) | (penalty > 0).T | np.eye(len(penalty), dtype=bool)
    return [np.flatnonzero(group) for group in np.unique(transitive_closure(linked), axis=0)]


def _safely_first(cost: Floats) -> NDArray[np.bool_]:
    """[b, a]: some best order has b before a, for variables sorted by score, b above a.  (P, P)

    Wherever a stands before b, exchanging the two raises Plackett–Luce (b has the larger score) and, where this holds,
    costs nothing: not for the pair, and not for any variable c between them. All such relations hold together in the
    best order that comes first in the dictionary of score ranks, since each exchange moves towards it.
    """
    safe = np.triu(np.ones_like(cost, dtype=bool), k=1)
    for c in range(len(cost)):  # c = a and c = b compare the two orders of the pair itself
        in_between = cost[:, c, None] + cost[None, c, :]  # [b, a]: the price of b before c before a
        safe &= in_between <= in_between.T
    return safe


# Exact answers: the lattice of sets that can be placed first


@dataclass(frozen=True)
class _Layer:
    """The sets of one size. Placing x after the set in row r weighs `step[r, x]` and leads to row `child[r, x]`."""

    step: Floats  # (S, P) log weight, -inf where x is placed already or must wait
    child: Integers  # (S, P) row in the next layer


def _lattice(s: Floats, cost: Floats, first: NDArray[np.bool_], later_mass: float) -> list[_Layer] | None:
    """The layers from the empty set to all variables, or None if there are more than EXACT_SETS sets.

    `first[j, k]`: j is placed before k. `later_mass` is the log of Σ exp s over variables that follow all of these.
    """
    finite_cost = np.where(np.isfinite(cost), cost, 0.0)
    placed = np.zeros((1, len(s)), dtype=bool)  # (S, P)
    layers, visited = [], 1
    for _ in range(len(s)):
        remaining = (~placed).astype(float)
        available = ~placed & (remaining @ first == 0)
        step = np.where(available, _step_weights(remaining, s, finite_cost, later_mass), -np.inf)
        rows, chosen = np.nonzero(available)
        grown = placed[rows]
        grown[np.arange(len(rows)), chosen] = True
        placed, row_in_next = _distinct_rows(grown)
        visited += len(placed)
        if visited > EXACT_SETS:
            return None
        child = np.zeros(step.shape, dtype=np.intp)
        child[rows, chosen] = row_in_next
        layers.append(_Layer(step, child))
    return layers


def _step_weights(remaining: Floats, s: Floats, finite_cost: Floats, later_mass: float) -> Floats:
    """Log weight of placing each variable next, before all the others that remain.  (S, P)"""
    mass = np.logaddexp.reduce(np.where(remaining > 0, s, -np.inf), axis=1)
    return np.asarray(s - np.logaddexp(mass, later_mass)[:, None] - remaining @ finite_cost.T)


def _distinct_rows(rows: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Integers]:
    """The distinct rows, and which of them each given row is."""
    padded = np.zeros((len(rows), -(-rows.shape[1] // 64) * 64), dtype=bool)
    padded[:, : rows.shape[1]] = rows
    words = np.packbits(padded, axis=1).view(np.uint64)  # (rows, words): comparing words is faster than comparing cells
    _, where, inverse = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return rows[where], inverse.reshape(-1)


def _walk(layers: list[_Layer], total: Callable[..., Any], noise: Callable[[], Any]) -> Integers:
    """Orders read off the lattice: from the empty set on, the variable with the largest weight + noise.  (C, P)

    The weight is that of all orders that go on so, gathered from the end by `total`. With the maximum and no noise the
    result is the best order; with the sum and Gumbel noise, a draw.
    """
    through = []  # (S, P) each: log weight of the completions that place x next
    completion = np.zeros(1)
    for layer in reversed(layers):
        through.append(layer.step + completion[layer.child])
        completion = total(through[-1], axis=1)
    rows: Any = 0
    order = []
    for layer, weights in zip(layers, reversed(through), strict=True):
        chosen = np.argmax(weights[rows] + noise(), axis=-1)
        rows = layer.child[rows, chosen]
        order.append(chosen)
    return np.stack(order, axis=-1)


# Approximate answers: orders built step by step, then one variable moved at a time


def _build_orders(s: Floats, cost: Floats, count: int, random: np.random.Generator) -> Integers:
    """Orders drawn place by place among the variables that may come next, each weighed by what it costs now.  (C, P)"""
    must_wait = np.isinf(cost)  # [j, k]: j waits for k
    finite_cost = np.where(must_wait, 0.0, cost)
    orders = np.empty((count, len(s)), dtype=np.intp)
    waiting = np.tile(must_wait.sum(axis=1), (count, 1))  # for how many of the variables that remain
    weights = np.tile(s - finite_cost.sum(axis=1), (count, 1))
    for position in range(len(s)):
        draws = np.where(waiting == 0, weights, -np.inf) + _gumbel(random, weights.shape)
        orders[:, position] = chosen = np.argmax(draws, axis=1)
        waiting -= must_wait.T[chosen]
        weights += finite_cost.T[chosen]
        weights[np.arange(count), chosen] = -np.inf
    return orders


def _reinsert(
    orders: Integers,
    variable: int,
    s: Floats,
    cost: Floats,
    later_mass: float,
    temperature: float,
    random: np.random.Generator,
) -> Integers:
    """The orders with one variable taken out and put back with probability ∝ w^(1 / temperature).  (C, P)

    At temperature 1 this is a Gibbs step, which leaves the distribution ∝ w(π) as it is; at 0 the best place is taken.
    """
    count, p = orders.shape
    others = orders[orders != variable].reshape(count, p - 1)
    # Sums without logarithms are several times faster; the bound keeps exp from reaching zero.
    masses = np.exp(np.maximum(s - s.max(), -600.0))
    remaining_mass = np.empty((count, p))  # before each of the others, and after them all
    remaining_mass[:, -1] = np.exp(later_mass - s.max())
    remaining_mass[:, :-1] = np.cumsum(masses[others][:, ::-1], axis=1)[:, ::-1] + remaining_mass[:, -1:]
    # −log w by position, up to a constant: one place further back, the variable adds its mass to one more choice, and
    # comes after one more of the others instead of before it.
    price_behind = np.minimum(cost[:, variable], COMPULSORY) - np.minimum(cost[variable], COMPULSORY)
    choice = remaining_mass + masses[variable]
    choice[:, 1:] /= remaining_mass[:, :-1]
    exponent = np.log(choice)
    exponent[:, 1:] += price_behind[others]
    exponent = np.cumsum(exponent, axis=1)
    best = exponent.min(axis=1, keepdims=True)
    if temperature > 0:
        probability = np.cumsum(np.exp((best - exponent) / temperature), axis=1)
        position = (probability < random.random((count, 1)) * probability[:, -1:]).sum(axis=1)
    else:
        position = exponent.argmin(axis=1)
    result = np.empty_like(orders)
    here = np.arange(p) == position[:, None]
    result[here] = variable
    result[~here] = others.reshape(-1)
    return result


def _mass_from(placed_scores: Floats, later_mass: float) -> Floats:
    """log Σ exp s over each position, those after it, and what follows them all.  (C, P)"""
    backwards = np.concatenate([np.full((len(placed_scores), 1), later_mass), placed_scores[:, ::-1]], axis=1)
    return np.asarray(np.logaddexp.accumulate(backwards, axis=1)[:, :0:-1])


def _gumbel(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Noise that makes the largest of log weights a draw: each is the largest with probability ∝ its weight."""
    return np.asarray(-np.log(random.standard_exponential(shape)))


# Choosing between them


def _best_order_of_block(s: Floats, cost: Floats, later_mass: float) -> tuple[Integers, bool]:
    if len(s) == 1:
        return np.zeros(1, dtype=np.intp), True
    if layers := _lattice(s, cost, np.isinf(cost).T | _safely_first(cost), later_mass):
        return _walk(layers, np.max, lambda: 0.0), True

    # Variables are sorted by score here, so this seed gives the same answer however the columns were arranged.
    random = np.random.default_rng(0)
    orders = _build_orders(s, cost, ANNEALED_ORDERS, random)
    for temperature in ANNEALING:
        for variable in range(len(s)):
            orders = _reinsert(orders, variable, s, cost, later_mass, temperature, random)
    weight = log_weight(orders, s, cost, later_mass)
    improving = True
    while improving:
        for variable in range(len(s)):
            orders = _reinsert(orders, variable, s, cost, later_mass, 0.0, random)
        before, weight = weight, log_weight(orders, s, cost, later_mass)
        improving = bool(np.any(weight > before + 1e-9))
    return orders[np.argmax(weight)], False


def _sample_group(s: Floats, cost: Floats, count: int, random: np.random.Generator) -> tuple[Integers, bool]:
    shape = (count, len(s))
    if len(s) == 1:
        return np.zeros(shape, dtype=np.intp), True
    if layers := _lattice(s, cost, np.isinf(cost).T, -np.inf):
        return _walk(layers, np.logaddexp.reduce, lambda: _gumbel(random, shape)), True
    if (obedient := _races_that_obey(s, cost, count, random)) is not None:
        return obedient, True
    orders = _build_orders(s, cost, count, random)
    for _ in range(SAMPLING_SWEEPS):
        for variable in random.permutation(len(s)):
            orders = _reinsert(orders, variable, s, cost, -np.inf, 1.0, random)
    return orders, False


def _races_that_obey(s: Floats, cost: Floats, count: int, random: np.random.Generator) -> Integers | None:
    """`count` free races, each kept with probability exp(−its penalties), or None if fewer than one in eight is."""
    kept: list[Integers] = []
    earlier, later = np.triu_indices(len(s), k=1)
    for tried in range(1, 17):
        orders = np.argsort(-(s + _gumbel(random, (count, len(s)))), axis=1)
        price = cost[orders[:, earlier], orders[:, later]].sum(axis=1)
        kept.append(orders[random.standard_exponential(count) >= price])
        found = sum(map(len, kept))
        if found >= count:
            return np.concatenate(kept)[:count]
        if 8 * found < tried * count:
            return None
    return None

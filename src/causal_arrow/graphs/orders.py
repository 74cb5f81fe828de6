"""Causal orders under constraints: the most probable one, and one arranged as people expect.

Without penalties the best order sorts the scores. With them the problem is hard in general (a ranking with arbitrary
prices is the feedback arc set problem), but it mostly splits into small ones, which dynamic programming over the sets
of variables that can be placed first solves exactly. Where there are too many such sets, moving one variable at a time
gives an approximate answer. `races.py` defines the weights of orders.
"""

# P variables, C orders worked on side by side

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from causal_arrow.graphs.dag import positions_in, transitive_closure
from causal_arrow.graphs.races import build_orders, inserted, insertion, lattice, log_weight, walk, weights_to_the_end

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

ANNEALED_ORDERS = 32
# Temperatures of the approximate search, one sweep over the variables each.
ANNEALING = (1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05)


def most_probable_order(scores: Floats, penalty: Floats) -> tuple[Integers, bool]:
    """The order of largest weight, and whether that is certain.  (P,)

    Exact whenever the sets to visit are at most `races.EXACT_SETS`; otherwise the best of ANNEALED_ORDERS annealed
    orders, one that no move of a single variable improves. Equal scores keep the order of their indices.
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
    waiting = settled.sum(axis=0)[order]  # by position in `order`: how many variables must still come before
    must_follow = settled[np.ix_(order, order)]
    result = []
    for _ in order:
        position = int(np.flatnonzero(waiting == 0)[0])
        result.append(order[position])
        waiting = waiting - must_follow[position]
        waiting[position] = -1
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
    # The last variable that is cheaper before one of those up to here.
    reach = np.maximum.accumulate(np.where(unhappy.any(axis=1), p - 1 - unhappy[:, ::-1].argmax(axis=1), np.arange(p)))
    ends = np.flatnonzero(reach == np.arange(p)) + 1
    return [slice(start, end) for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]


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


def _best_order_of_block(s: Floats, cost: Floats, later_mass: float) -> tuple[Integers, bool]:
    if len(s) == 1:
        return np.zeros(1, dtype=np.intp), True
    if layers := lattice(s, cost, np.isinf(cost).T | _safely_first(cost), later_mass):
        return walk(layers, weights_to_the_end(layers, np.max), lambda: 0.0), True

    # Variables are sorted by score here, so this seed gives the same answer however the columns were arranged.
    generator = np.random.default_rng(0)
    orders = build_orders(s, cost, ANNEALED_ORDERS, generator)
    for temperature in ANNEALING:
        for variable in range(len(s)):
            orders = _reinsert(orders, variable, s, cost, later_mass, temperature, generator)
    weight = log_weight(orders, s, cost, later_mass)
    improving = True
    while improving:
        for variable in range(len(s)):
            orders = _reinsert(orders, variable, s, cost, later_mass, 0.0, generator)
        before, weight = weight, log_weight(orders, s, cost, later_mass)
        improving = bool(np.any(weight > before + 1e-9))
    return orders[np.argmax(weight)], False


def _reinsert(
    orders: Integers,
    variable: int,
    s: Floats,
    cost: Floats,
    later_mass: float,
    temperature: float,
    generator: np.random.Generator,
) -> Integers:
    """The orders with one variable put back with probability ∝ w^(1 / temperature), or best of all at 0.  (C, P)"""
    others, price = insertion(orders, variable, s, cost, later_mass)
    if temperature == 0:
        return inserted(others, variable, price.argmin(axis=1))
    chances = np.cumsum(np.exp((price.min(axis=1, keepdims=True) - price) / temperature), axis=1)
    return inserted(others, variable, (chances < generator.random((len(orders), 1)) * chances[:, -1:]).sum(axis=1))

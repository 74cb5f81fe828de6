"""How strong a hidden cause of treatment and outcome would have to be to explain an effect away."""

from __future__ import annotations

import math


def robustness_value(partial_correlation: float, freedom: float, level: float | None = None) -> float:
    """Share of what is left of treatment and of outcome that a hidden cause must explain to bring the effect to zero.

    With a `level`, to bring zero into the interval of that level. By Cinelli and Hazlett (2020): with f² the odds
    R² / (1 − R²) of the partial R² of treatment and outcome, less what chance allows where there is a level,
    RV = (√(f⁴ + 4f²) − f²) / 2.
    """
    squared = min(partial_correlation**2, 1.0)
    if squared == 1.0:
        return 1.0
    strength = math.sqrt(squared / (1 - squared))
    if level is not None:
        if freedom <= 1:
            return 0.0
        from scipy.special import stdtrit

        strength -= float(stdtrit(freedom - 1, (1 + level) / 2)) / math.sqrt(freedom - 1)
    if strength <= 0:
        return 0.0
    # The same as the formula above, without subtracting two numbers that are nearly equal.
    return 2 * strength / (math.sqrt(strength**2 + 4) + strength)


def e_value(risk_ratio: float) -> float:
    """The risk ratio that a hidden cause must have with treatment and with outcome to explain this one away.

    By VanderWeele and Ding (2017): RR + √(RR (RR − 1)), for 1 / RR where RR is below 1.
    """
    if not risk_ratio > 0:
        return math.inf
    ratio = max(risk_ratio, 1 / risk_ratio)
    return ratio + math.sqrt(ratio * (ratio - 1))

"""Numbers as users write them."""

import math
import operator
from typing import Any

from ._core import Error


def as_count(name: str, value: Any) -> int:
    """A whole number; 1e5 is one."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise Error(f"{name}={value!r}: must be a whole number") from None


def as_number(name: str, value: Any) -> float:
    """A number; text is none."""
    try:
        if isinstance(value, (str, bytes, bool)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise Error(f"{name}={value!r}: must be a number") from None


def as_sigma(value: Any) -> float:
    sigma = as_number("sigma", value)
    if not (sigma > 0 and math.isfinite(sigma)):
        raise Error(f"sigma={sigma}: must be positive")
    return sigma


def as_radii(value: Any) -> list[float]:
    """Radii to decide; one number is one of them."""
    if value is None:
        return []
    try:
        items = list(value)
    except TypeError:
        items = [value]
    if isinstance(value, (str, bytes)):
        items = [value]
    return [as_number("radii", item) for item in items]

"""Checks numbers, flags and words as users write them."""

import math
import operator
from typing import Any

import numpy as np

from ._core import Error


def as_count(name: str, value: Any, least: int = -(2**63), most: int = 2**63 - 1) -> int:
    """Returns `value` as a whole number; 1e5 is accepted."""
    try:
        if isinstance(value, bool):
            raise TypeError
        whole = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    except TypeError:
        raise Error(f"{name}={value!r}: must be a whole number") from None
    if not least <= whole <= most:
        raise Error(f"{name}={value!r}: must be from {least} to {most}")
    return whole


def as_seed(value: Any) -> int:
    return as_count("seed", value, 0, 2**64 - 1)


def as_index(name: str, value: Any) -> int:
    """Returns `value` as the index of an image, from which its noise follows, with the seed."""
    return as_count(name, value, 0, 2**32 - 1)


def as_threads(value: Any) -> int:
    return as_count("threads", value, 0, 4096)


def as_flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise Error(f"{name}={value!r}: must be True or False")
    return bool(value)


def as_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise Error(f"{name}={value!r}: must be text")
    return value


def as_device(value: Any) -> str:
    return as_text("device", value)


def as_number(name: str, value: Any) -> float:
    """Returns `value` as a float; text is refused."""
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


def as_numbers(name: str, value: Any) -> list[float]:
    """Returns `value` as a list of numbers; one number is a list of one."""
    try:
        items = [value] if isinstance(value, (str, bytes)) else list(value)
    except TypeError:
        items = [value]
    return [as_number(name, item) for item in items]


def as_labels(name: str, value: Any) -> list[int]:
    """Returns the class numbers of images; 1.0 is accepted, 1.5 is refused."""
    return [as_label(f"{name}: image {i}", label) for i, label in enumerate(value)]


def as_label(where: str, value: Any) -> int:
    try:
        whole = int(value)
    except (TypeError, ValueError, OverflowError):
        raise Error(f"{where}: label {value!r} is not a class number") from None
    if whole != value:
        raise Error(f"{where}: label {value!r} is not a class number")
    return whole

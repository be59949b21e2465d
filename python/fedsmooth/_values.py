"""Converts values of an experiment's keys to text."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._core import Error


def _value(value: Any) -> str:
    """Returns a value as the command line expects it."""
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    if isinstance(value, (float, np.floating)) and value.is_integer():  # 1e5 may be a count
        return str(int(value))
    if isinstance(value, (list, tuple, np.ndarray)):
        return f"[{', '.join(_value(v) for v in value)}]"
    return str(value)


def overrides_to_pairs(overrides: Mapping[str, Any] | None, **short: Any) -> list[tuple[str, str]]:
    """Returns keys and values. `short` has arguments that stand for a key (certify_n for certify.n); None: left out."""
    pairs = {str(key): _value(value) for key, value in (overrides or {}).items()}
    for word, value in short.items():
        if value is None:
            continue
        key = word.replace("_", ".", 1)
        if key in pairs:
            raise Error(f"{key}={pairs[key]}: is given twice, also as {key.rpartition('.')[2]}={value}")
        pairs[key] = _value(value)
    return list(pairs.items())


def list_paths(name: str, paths: Any) -> list[str]:
    """Returns several paths as text. Raises an Error for a path that is not in a list: text would be split."""
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise Error(f"{name}={os.fspath(paths)!r}: must be a list of paths")
    return [os.fspath(path) for path in paths]

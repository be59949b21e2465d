"""Values of an experiment's keys."""

from collections.abc import Mapping
from typing import Any


def _value(value: Any) -> str:
    """As on the command line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(v) for v in value)}]"
    return str(value)


def overrides_to_pairs(overrides: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    return [(key, _value(value)) for key, value in (overrides or {}).items()]

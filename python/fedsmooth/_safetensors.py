"""Writes the safetensors format. The library reads it, because reading must be strict."""

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np


def format_safetensors(tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> bytes:
    """Returns the bytes of a file with float32 tensors."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    parts = []
    end = 0
    for name in sorted(tensors):
        part = np.ascontiguousarray(tensors[name], dtype=np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensors[name].shape), "data_offsets": [end, end + len(part)]}
        end += len(part)
        parts.append(part)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(parts)

"""From what users have (torch, NumPy, JAX) to float32 NumPy arrays."""

import sys
from typing import Any

import numpy as np

from ._core import Error

Array = Any  # torch, NumPy, JAX: what has __array__ or __dlpack__


def is_tensor(x: Any) -> bool:
    """Returns whether x is a torch tensor. Does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_module(f: Any) -> bool:
    """Returns whether f is a torch module. Does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(f, torch.nn.Module)


def to_numpy(x: Array, what: str) -> np.ndarray:
    """Returns x on the CPU, in its own type. Raises an Error unless it holds real numbers."""
    if is_tensor(x):
        x = x.detach().cpu()
        if str(x.dtype) == "torch.bfloat16":
            x = x.float()
        found = np.from_dlpack(x)  # .numpy() needs the NumPy that torch was built with
    else:
        try:
            found = np.asarray(x)
        except (TypeError, ValueError) as error:
            raise Error(f"{what}: a {type(x).__name__} is not an array ({error})") from None
    if found.dtype.kind not in "fiu":
        raise Error(f"{what}: a {type(x).__name__} of {found.dtype}, not an array of real numbers")
    return found


def to_floats(x: Array, what: str) -> np.ndarray:
    """Returns x as contiguous float32. Bytes are divided by 255. Raises an Error for other integers, whose values may
    be 0 to 255 and not in [0, 1]."""
    found = to_numpy(x, what)
    if found.dtype == np.uint8:
        return np.ascontiguousarray(found / np.float32(255))
    if found.dtype.kind != "f":
        raise Error(f"{what}: holds {found.dtype}; give bytes (uint8), or floats in [0, 1]")
    return np.ascontiguousarray(found, dtype=np.float32)


def looks_channels_last(shape: tuple[int, ...]) -> bool:
    """Returns whether an image's shape is more likely [H, W, C] than [C, H, W]."""
    return len(shape) == 3 and shape[2] in (1, 3, 4) and shape[0] > 4 and shape[1] > 4


def fit(images: np.ndarray, input: tuple[int, int, int]) -> np.ndarray:
    """Returns images as [N, C, H, W] of a network's `input`, transposed from [N, H, W, C]. Else raises an Error."""
    channels, height, width = input
    if images.ndim == 4 and images.shape[1:] == (height, width, channels) != input:
        return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    if images.ndim != 4 or images.shape[1:] != input:
        raise Error(f"images: {list(images.shape)}, the network takes [N, {channels}, {height}, {width}]")
    return images


def to_image(x: Array) -> np.ndarray:
    """Returns one image as [C, H, W], and a vector [D] of features as [1, 1, D]."""
    found = to_floats(x, "image")
    if found.ndim == 1:
        return found.reshape(1, 1, -1)
    if found.ndim != 3:
        raise Error(
            f"image: shape {list(found.shape)}, expected [C, H, W] or features [D]; "
            "give one image, or many by fs.certify(g, (images, labels))"
        )
    return found


def to_bytes_if_exact(x: np.ndarray) -> np.ndarray:
    """Returns images whose values are bytes over 255 as bytes; others stay float32."""
    if x.dtype == np.uint8:
        return np.ascontiguousarray(x)
    levels = np.rint(x * np.float32(255))
    with np.errstate(invalid="ignore"):
        whole = bool(np.all((levels >= 0) & (levels <= 255) & (levels / np.float32(255) == x)))
    return np.ascontiguousarray(levels.astype(np.uint8) if whole else x)

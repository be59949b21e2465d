"""From what users have (torch, NumPy, JAX) to float32 NumPy arrays and back."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core
from ._core import Error

Array = Any  # torch, NumPy, JAX: what has __array__ or __dlpack__


def is_tensor(x: Any) -> bool:
    """Whether x is a torch tensor. Does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_module(f: Any) -> bool:
    """Whether f is a torch module. Does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(f, torch.nn.Module)


def to_numpy(x: Array, what: str) -> np.ndarray:
    """x on the CPU, as it is. An Error unless it holds real numbers."""
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
    """x as contiguous float32. An Error for integers: 0 to 255 is not [0, 1]."""
    found = to_numpy(x, what)
    if found.dtype.kind != "f":
        raise Error(f"{what}: holds {found.dtype}; give floats in [0, 1], bytes divided by 255")
    return np.ascontiguousarray(found, dtype=np.float32)


def to_logits(y: Any) -> np.ndarray:
    """What a classifier answered, as float32 [B, K]."""
    if isinstance(y, (tuple, list, dict)) or hasattr(y, "logits"):
        raise Error(
            f"model: gives a {type(y).__name__}, not logits [B, K]; wrap it, such as `lambda x: model(x).logits`"
        )
    found = np.ascontiguousarray(to_numpy(y, "model"), dtype=np.float32)
    if found.ndim != 2:
        raise Error(f"model: gives an output of shape {list(found.shape)}, expected [B, K]")
    return found


def refuse_training_mode(f: Any) -> None:
    """A certificate is about a function. Dropout and batch statistics are none."""
    if not is_module(f):
        return
    for name, module in f.named_modules():
        if getattr(module, "training", False):
            raise Error(f"model: {name or type(f).__name__} is in training mode; call .eval() first")


@dataclass(frozen=True)
class Adapted:
    """A base classifier as a function of NumPy arrays, and what it runs on. One on a GPU also as a function of
    float32 tensors there, with the GPU's number and the stream on which it runs, the caller's current one."""

    call: Callable[[np.ndarray], np.ndarray]
    runs_on: str
    on_gpu: Callable[[Any], Any] | None = None
    gpu: int = 0
    stream: int = 0

    def votes(self, num_classes: int, batch: int, shape: tuple[int, ...]) -> _core.Votes:
        described = f"{self.runs_on}x{batch}"
        if self.on_gpu is None:
            return _core.Votes(self.call, num_classes, batch, described)
        if len(shape) != 3:
            raise Error(f"image: shape {list(shape)}, expected [C, H, W]")
        return _core.Votes(self.call, num_classes, batch, described, self.on_gpu, shape, self.gpu, self.stream)


def adapt(f: Any, like: Array) -> Adapted:
    """A torch module gets tensors on its own device and of its own type; another function gets what `like` is,
    tensors on its device or NumPy arrays."""
    if not callable(f):
        raise Error(f"base_classifier: a {type(f).__name__} cannot be called")
    if is_module(f) or is_tensor(like):
        return _adapt_torch(f, like)
    return Adapted(lambda batch: to_logits(f(batch)), "cpu/fp32/python")


def _adapt_torch(f: Any, like: Array) -> Adapted:
    import torch

    device = like.device if is_tensor(like) else torch.device("cpu")
    dtype = torch.float32
    if is_module(f):
        first = next((p for p in (*f.parameters(), *f.buffers()) if p.is_floating_point()), None)
        if first is not None:
            device, dtype = first.device, first.dtype

    def call(batch: np.ndarray) -> np.ndarray:
        images = torch.from_dlpack(batch).to(device=device, dtype=dtype)
        with torch.no_grad():
            return to_logits(f(images))

    precision = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}
    name = str(dtype).removeprefix("torch.")
    runs_on = f"{device}/{precision.get(name, name)}/torch-{torch.__version__}"
    if getattr(device, "type", "") != "cuda":
        return Adapted(call, runs_on)

    gpu = torch.cuda.current_device() if device.index is None else device.index
    stream = torch.cuda.current_stream(gpu)

    def on_gpu(images: Any) -> Any:
        # Noise and votes follow f's kernels on this stream, whichever is current when votes are asked for.
        # Torch's own handle: ExternalStream(0) is not the default stream but a new one.
        with torch.cuda.stream(stream), torch.no_grad():
            logits = f(images.to(dtype))
            if not is_tensor(logits) or logits.device != images.device:
                raise Error("model: its logits are not a tensor on its own GPU")
            return logits.to(torch.float32).contiguous()

    return Adapted(call, runs_on, on_gpu, gpu, stream.cuda_stream)


def to_bytes_if_exact(x: np.ndarray) -> np.ndarray:
    """Images of bytes over 255 as bytes; others stay float32."""
    if x.dtype == np.uint8:
        return np.ascontiguousarray(x)
    levels = np.rint(x * np.float32(255))
    with np.errstate(invalid="ignore"):
        whole = bool(np.all((levels >= 0) & (levels <= 255) & (levels / np.float32(255) == x)))
    return np.ascontiguousarray(levels.astype(np.uint8) if whole else x)

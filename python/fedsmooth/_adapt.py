"""Classifiers as users have them, as functions of NumPy arrays."""

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _core
from ._convert import Array, is_module, is_tensor, looks_channels_last, to_numpy
from ._core import Error


def to_logits(y: Any) -> np.ndarray:
    """Returns the output of a classifier as float32 [B, K]."""
    y = take_logits(y)
    if isinstance(y, (tuple, list, dict)):
        raise Error(f"model: gives a {type(y).__name__}, not logits [B, K]; wrap it, such as `lambda x: model(x)[0]`")
    found = to_numpy(y, "model")
    if found.ndim != 2:
        raise Error(f"model: gives an output of shape {list(found.shape)}, expected [B, K]")
    return _round_to_float32(found)


def _round_to_float32(logits: np.ndarray) -> np.ndarray:
    """Returns logits [B, K] as float32. Where rounding would make another class the largest in a row, as it may for
    log-likelihoods near -1e9, the differences to the row's largest logit are rounded instead, so that the classifier
    keeps its answers."""
    rounded = np.ascontiguousarray(logits, dtype=np.float32)
    if logits.dtype == np.float32 or 0 in logits.shape:
        return rounded
    answers = logits.argmax(axis=1)
    lost = np.flatnonzero((rounded.argmax(axis=1) != answers) & np.isfinite(rounded).all(axis=1))
    if len(lost) == 0:
        return rounded
    below = logits[lost].astype(np.longdouble)  # exact for whole numbers, too
    below -= below.max(axis=1, keepdims=True)
    rounded[lost] = np.minimum(below, -np.finfo(np.float32).tiny)
    rounded[lost, answers[lost]] = 0
    return rounded


def round_tensor(logits: Any) -> Any:
    """Does what _round_to_float32() does for a torch tensor, on the tensor's device."""
    import torch

    rounded = logits.to(torch.float32).contiguous()
    if logits.dtype in (torch.float32, torch.float16, torch.bfloat16) or 0 in logits.shape:
        return rounded
    answers = logits.argmax(1)
    lost = (rounded.argmax(1) != answers) & rounded.isfinite().all(1)
    below = (logits - logits.amax(1, keepdim=True)).to(torch.float32).clamp(max=-torch.finfo(torch.float32).tiny)
    return torch.where(lost[:, None], below.scatter(1, answers[:, None], 0.0), rounded)


def take_logits(y: Any) -> Any:
    """Returns the logits of an output that names them, as Hugging Face's models do, and any other output unchanged."""
    logits = getattr(y, "logits", None)
    return y if logits is None else logits


def part_in_training(f: Any) -> str:
    """Returns the name of the first part of a torch module that is in training mode, or an empty string."""
    parts = f.named_modules() if is_module(f) else ()
    return next((name or type(f).__name__ for name, part in parts if getattr(part, "training", False)), "")


def refuse_training_mode(f: Any) -> None:
    """Raises an Error for a module in training mode: dropout and batch statistics make it no function of the image."""
    if part := part_in_training(f):
        raise Error(f"model: {part} is in training mode; call .eval() first")


class BrokenCopies:
    """Counts copies whose logits are not finite, which vote for no class."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.copies = 0
        self._broken: Any = 0  # on a GPU a tensor, which is read only at the end

    def look(self, logits: np.ndarray) -> np.ndarray:
        self.copies += len(logits)
        if not np.isfinite(logits).all():
            self._broken += int((~np.isfinite(logits)).any(axis=1).sum())
        return logits

    def look_on_gpu(self, logits: Any) -> Any:
        self.copies += len(logits)
        self._broken = self._broken + (~logits.isfinite()).any(1).sum()
        return logits

    def warn(self, name: str, level: int) -> None:
        broken = int(self._broken)
        if broken:
            warnings.warn(
                f"{name}: {broken:,} of {self.copies:,} copies had logits that are not finite; these vote for no class",
                stacklevel=level,
            )


@dataclass(frozen=True)
class Adapted:
    """A base classifier as a function of NumPy arrays, and a description of what it runs on. A classifier on a GPU also
    has `on_gpu`, a function of float32 tensors there, the GPU's number, and the stream on which it runs, which is the
    caller's current one."""

    call: Callable[[np.ndarray], np.ndarray]
    runs_on: str
    on_gpu: Callable[[Any], Any] | None = None
    gpu: int = 0
    stream: int = 0
    batch: int = 0  # the only batch that it accepts; 0: any
    on_torch_cpu: bool = False
    broken: BrokenCopies = field(default_factory=BrokenCopies)

    def default_batch(self, shape: tuple[int, ...]) -> int:
        """Returns the batch size for images [C, H, W] where the caller names none.

        On a CPU, torch allocates each activation anew, and glibc returns blocks above 32 MiB to the system at once, and
        free memory above 64 MiB, so that every layer of a large batch waits for fresh pages. An activation of 64
        images of 32x32 with 64 channels has 16 MiB; some of them live at the same time."""
        if not self.on_torch_cpu:
            return 1000
        height, width = shape[-2:]
        return min(64, max(8, 64 * 32 * 32 // (height * width)))

    def votes(self, num_classes: int, batch: int, shape: tuple[int, ...], noise: str = "float") -> _core.Votes:
        described = f"{self.runs_on}x{batch}"

        def call(images: np.ndarray) -> np.ndarray:
            return self.broken.look(self.call(images))

        if self.on_gpu is None:
            return _core.Votes(call, num_classes, batch, described, noise)
        return _core.Votes(call, num_classes, batch, described, noise, self.on_gpu, shape, self.gpu, self.stream)


def check_classifier(f: Any) -> None:
    """Raises an Error unless adapt() accepts f."""
    if isinstance(f, (str, os.PathLike)):
        raise Error(f"base_classifier: {os.fspath(f)} is a path; load the model first, with fs.load() or torch.load()")
    if not (callable(f) or is_session(f) or is_estimator(f)):
        raise Error(f"base_classifier: a {type(f).__name__} cannot be called")


def adapt(f: Any, like: Array, inputs: str = "auto") -> Adapted:
    """Returns the classifier f as a function of NumPy arrays. A torch module is called with tensors on its own device
    and of its own type; another function with what `inputs` says or, for "auto", with what `like` is: tensors on its
    device, or NumPy arrays. If `like` is a vector of features, f is called with [B, D]. Sessions of ONNX Runtime get
    NumPy arrays, estimators of scikit-learn [B, D]."""
    check_classifier(f)
    flat = getattr(like, "ndim", 0) == 1
    if is_estimator(f):
        return _adapt_estimator(f)
    if is_session(f):
        return _adapt_session(f, flat)
    if is_module(f) or inputs == "torch" or (is_tensor(like) and inputs != "numpy"):
        return _adapt_torch(f, like, flat)

    def call(batch: np.ndarray) -> np.ndarray:
        given = _features(batch) if flat else batch
        with _explained(given, ", as the image is one" + _advice_on_tensors()):
            return to_logits(f(given))

    return Adapted(call, "cpu/fp32/python")


def _features(batch: Any) -> Any:
    return batch.reshape(len(batch), -1)


@contextlib.contextmanager
def _explained(given: Any, more: str = "") -> Iterator[None]:
    """Explains why a user's function may fail on `given`. Images [B, H, W, C] are an Error; any other failure gets a
    note of what the function was called with, and `more`."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        shape = list(given.shape)
        if looks_channels_last(tuple(shape[1:])):
            _, height, width, channels = shape
            raise Error(
                f"image: {shape[1:]} looks like [H, W, C]; give [C, H, W], here {[channels, height, width]}, by "
                "np.moveaxis(x, -1, -3) or, for a tensor, x.movedim(-1, -3); "
                f"the model says: {type(error).__name__}: {' '.join(str(error).split())}"
            ) from error
        kind = "tensor" if is_tensor(given) else "NumPy array"
        error.add_note(f"fedsmooth: the base classifier was called with a {kind} {shape}{more}")
        raise


def _advice_on_tensors() -> str:
    if "torch" not in sys.modules:
        return ""
    return '; a function of torch tensors needs a tensor, or Smooth(..., inputs="torch")'


def is_session(f: Any) -> bool:
    """Returns whether f is a session of ONNX Runtime."""
    return not callable(f) and all(hasattr(f, name) for name in ("run", "get_inputs", "get_outputs"))


def is_estimator(f: Any) -> bool:
    """Returns whether f is a classifier of scikit-learn, or has its methods."""
    return not callable(f) and hasattr(f, "classes_") and any(hasattr(f, m) for m in ("predict_proba", "predict"))


def _adapt_session(session: Any, flat: bool) -> Adapted:
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if len(inputs) != 1:
        raise Error(f"session: has inputs {', '.join(i.name for i in inputs)}; wrap it in a function of one")
    chosen = outputs[0] if len(outputs) == 1 else next((o for o in outputs if o.name == "logits"), None)
    if chosen is None:
        names = ", ".join(o.name for o in outputs)
        raise Error(f"session: has outputs {names}, none of them called logits; wrap it in a function of one")
    types = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
    if inputs[0].type not in types:
        raise Error(f"session: its input is a {inputs[0].type}, expected floats")
    dtype, name, asked = types[inputs[0].type], inputs[0].name, [chosen.name]

    def call(batch: np.ndarray) -> np.ndarray:
        given = (_features(batch) if flat else batch).astype(dtype, copy=False)
        with _explained(given):
            return to_logits(session.run(asked, {name: given})[0])

    first = (inputs[0].shape or [None])[0]
    provider = session.get_providers()[0].removesuffix("ExecutionProvider").lower()
    version = getattr(sys.modules.get("onnxruntime"), "__version__", "")
    runs_on = f"{provider}/fp{8 * np.dtype(dtype).itemsize}/onnxruntime-{version}"
    return Adapted(call, runs_on, batch=first if isinstance(first, int) else 0)


def _adapt_estimator(estimator: Any) -> Adapted:
    classes = np.asarray(estimator.classes_)
    if classes.dtype.kind not in "iu" or not np.array_equal(classes, np.arange(len(classes))):
        raise Error(f"estimator: its classes are {classes.tolist()[:5]}...; fit it to labels 0, 1, 2, ...")
    name = next((name for name in ("predict_proba", "decision_function") if hasattr(estimator, name)), None)
    if name is None:
        raise Error(f"estimator: a {type(estimator).__name__} has neither predict_proba nor decision_function")

    compared = False

    def call(batch: np.ndarray) -> np.ndarray:
        nonlocal compared
        given = _features(batch)
        found = np.asarray(getattr(estimator, name)(given))
        logits = to_logits(np.stack([-found, found], axis=1) if found.ndim == 1 else found)
        if not compared:
            _compare_with_predict(estimator, name, given, logits)
            compared = True
        return logits

    version = getattr(sys.modules.get("sklearn"), "__version__", "")
    return Adapted(call, f"cpu/fp64/scikit-learn-{version}")


def _compare_with_predict(estimator: Any, scores: str, given: np.ndarray, logits: np.ndarray) -> None:
    """Raises an Error if the largest score is not at the class that predict() answers. An SVC may give scores of pairs
    of classes; three classes have as many pairs as classes, so their number does not reveal this."""
    if not hasattr(estimator, "predict"):
        return
    answers = np.asarray(estimator.predict(given))
    others = int((logits.argmax(1) != answers).sum()) if logits.shape[1] == len(estimator.classes_) else len(answers)
    if others:
        raise Error(
            f"estimator: the largest of {scores}() is not what predict() answers for {others} of {len(answers)} noisy "
            "inputs; give a function [B, D] -> [B, K]"
        )


@functools.cache
def _keep_freed_memory() -> None:
    """Makes glibc keep what torch frees between two layers. Its limits, above which it returns memory to the system,
    follow the largest block that was freed so far, up to 32 MiB; so one such block is allocated and freed."""
    np.empty((32 << 20) - (1 << 16), np.uint8)


def _adapt_torch(f: Any, like: Array, flat: bool) -> Adapted:
    import torch

    device = like.device if is_tensor(like) else torch.device("cpu")
    dtype = torch.float32
    if is_module(f):
        first = next((p for p in (*f.parameters(), *f.buffers()) if p.is_floating_point()), None)
        if first is not None:
            device, dtype = first.device, first.dtype

    def answer(images: Any) -> Any:
        given = _features(images) if flat else images
        with _explained(given):
            return take_logits(f(given))

    def call(batch: np.ndarray) -> np.ndarray:
        images = torch.from_dlpack(batch).to(device=device, dtype=dtype)
        with torch.no_grad():
            return to_logits(answer(images))

    precision = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}
    name = str(dtype).removeprefix("torch.")
    runs_on = f"{device}/{precision.get(name, name)}/torch-{torch.__version__}"
    if getattr(device, "type", "") != "cuda":
        on_cpu = str(device).startswith("cpu")
        if on_cpu:
            _keep_freed_memory()
        return Adapted(call, runs_on, on_torch_cpu=on_cpu)

    gpu = torch.cuda.current_device() if device.index is None else device.index
    stream, broken = torch.cuda.current_stream(gpu), BrokenCopies()

    def on_gpu(images: Any) -> Any:
        # Noise and votes follow f's kernels on this stream, whichever is current when votes are asked for.
        # Torch's own handle: ExternalStream(0) is not the default stream but a new one.
        with torch.cuda.stream(stream), torch.no_grad():
            logits = answer(images.to(dtype))
            if not is_tensor(logits) or logits.device != images.device:
                raise Error("model: its logits are not a tensor on its own GPU")
            if logits.ndim != 2:
                raise Error(f"model: gives an output of shape {list(logits.shape)}, expected [B, K]")
            return broken.look_on_gpu(round_tensor(logits))

    return Adapted(call, runs_on, on_gpu, gpu, stream.cuda_stream, broken=broken)

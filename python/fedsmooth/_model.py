"""Models that fedsmooth's own engine evaluates, without torch."""

import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from ._convert import Array, fit, to_floats
from ._core import Error
from ._numbers import as_device, as_index, as_seed, as_text, as_threads
from ._smooth import Certificate, Smooth, draw_seed, make_budget, make_certificates


class Model:
    """A trained network, evaluated by fedsmooth's engine at one fixed batch shape. One thread at a time may use it.

    sigma: the noise that it was trained for; 0 if that is not known.
    input: [C, H, W] of its images. Pixels are in [0, 1]; the normalisation is in the network.
    """

    def __init__(
        self, native: _core.Model, *, name: str = "model", sha256: str = "", device: str = "auto", threads: int = 0
    ) -> None:
        self._native = native
        self._device, self._threads = as_device(device), as_threads(threads)
        self._votes = {"float": _core.Votes(native, self._device, self._threads, "float")}
        self._evaluator: _core.Evaluator | None = None
        self.name = name
        self.sha256 = sha256 or _core.sha256(native.to_bytes())
        self.sigma: float = native.sigma
        self.class_names: list[str] = native.class_names
        self.num_classes: int = native.classes
        channels, height, width = native.input
        self.input = (channels, height, width)

    @property
    def network(self) -> dict[str, Any]:
        """The layers, as in the model file."""
        network: dict[str, Any] = json.loads(self._native.network)
        return network

    @property
    def base(self) -> str:
        """Device, precision, evaluator and batch, which define the base classifier f."""
        return self._votes["float"].description

    def logits(self, images: Array) -> np.ndarray:
        """Returns the logits [N, K], float32, of images [N, C, H, W] in [0, 1], with or without noise, or bytes."""
        if self._evaluator is None:
            self._evaluator = _core.Evaluator(self._native, self._device, self._threads)
        return self._evaluator.logits(fit(to_floats(images, "images"), self.input))

    __call__ = logits

    def smooth(self, sigma: float | None = None, *, seed: int | None = None, radius: str = "one-sided") -> Smooth:
        """Returns the smoothed classifier; sigma is the model's own if left out."""
        sigma = self.sigma if sigma is None else sigma
        if sigma == 0:
            raise Error(f"{self.name}: does not say for which noise it was trained; give sigma")
        return Smooth(self, self.num_classes, sigma, seed=seed, radius=radius)

    def certify(
        self,
        images: Array,
        *,
        sigma: float | None = None,
        n0: int = 100,
        n: int = 100_000,
        alpha: float = 0.001,
        radius: str = "one-sided",
        seed: int | None = None,
        indices: Sequence[int] | None = None,
        radii: Sequence[float] | None = None,
        beta: float = 0.001,
        plan: float = 0.0,
        noise: str = "float",
    ) -> list[Certificate]:
        """Certifies images [N, C, H, W], or one [C, H, W], in [0, 1] or bytes; images [H, W, C] of the model's
        size are transposed. The noise of each image follows from `seed` (drawn by the system if left out) and its
        index (0, 1, ... if left out). The other arguments are those of Smooth; sigma is the model's own if left out."""
        g = self.smooth(sigma, radius=radius)
        floats = to_floats(images, "images")
        floats = fit(floats[None] if floats.ndim == 3 else floats, self.input)
        numbers = list(range(len(floats))) if indices is None else [as_index("indices", i) for i in indices]
        budget = make_budget(n0, n, alpha, radius, radii, beta, plan)
        votes = self._votes_of_engine(self.num_classes, noise)
        number = draw_seed() if seed is None else as_seed(seed)
        return make_certificates(votes, floats, numbers, g.sigma, budget, number, noise)

    def to_torch(self) -> Any:
        """Returns the network as a torch module in evaluation mode, on the CPU."""
        from ._torch import build

        return build(self.network, self._native.tensors(), self.sigma, self.class_names)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a .safetensors file that load() and the program read."""
        _core.write_file(pathlib.Path(path), self._native.to_bytes())

    def _votes_of_engine(self, num_classes: int, noise: str) -> _core.Votes:
        if num_classes != self.num_classes:
            raise Error(f"num_classes={num_classes}: {self.name} has {self.num_classes}")
        if noise not in self._votes:
            self._votes[noise] = _core.Votes(self._native, self._device, self._threads, as_text("noise", noise))
        return self._votes[noise]

    def __repr__(self) -> str:
        return (
            f"Model({self.network['name']!r}, input={list(self.input)}, classes={self.num_classes}, sigma={self.sigma})"
        )


def load(path: str | os.PathLike[str], device: str = "auto", threads: int = 0) -> Model:
    """Loads the model of a .safetensors file that describes its network, or of a run folder.

    device: auto, cpu or cuda. threads: 0 is one per core."""
    path = pathlib.Path(path)
    file = path / "model.safetensors" if path.is_dir() else path
    if path.is_dir() and not file.exists() and (path / "group-01").is_dir():
        raise Error(f"{path}: is a run of several groups; each of them is a model, {path / 'group-01'} for one")
    content = _core.read_file(file)
    return Model(
        _core.model_from_bytes(content, str(file)),
        name=str(file),
        sha256=_core.sha256(content),
        device=device,
        threads=threads,
    )


def from_torch(
    module: Any,
    input: Sequence[int],
    *,
    sigma: float = 0.0,
    class_names: Sequence[str] = (),
    device: str = "auto",
    threads: int = 0,
) -> Model:
    """Returns a torch module as a Model of our engine. Every operation of its forward() must be one that the engine
    has; otherwise raises an Error that names the first that is not.

    module: in evaluation mode; images [B, C, H, W] in [0, 1] to logits [B, K].
    input: [C, H, W].
    sigma: the noise of the votes; 0: not known yet.
    Module and model are compared on the CPU under noise of sigma and of 4 sigma (of 1 and 4 if sigma is 0). Unless
    their logits agree up to rounding, raises an Error. On a GPU the model answers in bfloat16.
    """
    from ._from_torch import compare, copy_to_cpu, take_apart

    on_cpu = copy_to_cpu(module)
    content = take_apart(on_cpu, tuple(input), sigma, list(class_names))
    native, name = _core.model_from_bytes(content, "from_torch"), type(on_cpu).__name__
    compare(on_cpu, Model(native, name=name, device="cpu", threads=threads), sigma)
    return Model(native, name=name, device=device, threads=threads)

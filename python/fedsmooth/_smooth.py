"""The smoothed classifier."""

import math
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from . import _core
from ._convert import Adapted, Array, adapt, is_module, refuse_training_mode, to_floats
from ._core import ClassifierChanged, DependsOnPosition, Error

ABSTAIN = -1
T = TypeVar("T")


@dataclass(frozen=True)
class Certificate:
    """What the votes on one image prove: with probability at least 1 - alpha, the smoothed
    classifier answers `predict` for every image within l2 distance `radius`."""

    predict: int  # the class, or ABSTAIN
    radius: float  # l2, in units of [0, 1] pixels, rounded down
    p_lower: float  # bound on the probability of `selected` under the noise
    selected: int  # the class that the n0 votes chose
    count_top: int  # fresh votes for it
    count_runner_up: int  # the most for any other class
    n0: int
    n: int
    alpha: float
    sigma: float
    seed: int  # with index: names the noise
    index: int
    base: str  # device, precision, library and batch: what f is

    @property
    def abstained(self) -> bool:
        return self.predict == ABSTAIN


def draw_seed() -> int:
    """A seed from the system, of 63 bits: what tables and TOML can hold."""
    return int.from_bytes(os.urandom(8), "little") >> 1


def make_certificates(
    votes: _core.Votes,
    images: np.ndarray,
    indices: list[int],
    sigma: float,
    n0: int,
    n: int,
    alpha: float,
    radius: str,
    seed: int,
) -> list[Certificate]:
    """Certificates of images [N, C, H, W], float32."""
    found = votes.certify(images, indices, sigma, n0, n, alpha, radius, seed)
    return [
        Certificate(
            c.predict,
            c.radius,
            c.p_lower,
            c.selected,
            c.count_top,
            c.count_runner_up,
            n0,
            c.n,
            alpha,
            sigma,
            seed,
            index,
            votes.description,
        )
        for c, index in zip(found, indices, strict=True)
    ]


class Smooth:
    """g(x) = argmax_c P[f(x + e) = c], e ~ N(0, sigma^2 I), after Cohen, Rosenfeld and Kolter.

    base_classifier: images [B, C, H, W] in [0, 1] plus noise to logits [B, num_classes]. A torch
        module is called on its own device; another function with what the image is: torch tensors,
        or float32 NumPy arrays. Normalisation belongs into it. Also a Model of fedsmooth.
    sigma: the noise, in units of [0, 1] pixels.
    seed: names the noise of certificates with an index. None: it is derived from the classifier and
        the images, so that certificates of two classifiers, or of two sets of images, share no draws.
    radius: "one-sided", as in Cohen's code, or "multiclass".

    Every call has the same batch shape, short batches are padded: f is a function of the image only
    at one shape. The library checks that before the first votes, and again after the last ones that
    f did not change meanwhile. For one thread at a time.
    """

    ABSTAIN = ABSTAIN

    def __init__(
        self,
        base_classifier: Callable[..., Any],
        num_classes: int,
        sigma: float,
        *,
        seed: int | None = None,
        radius: str = "one-sided",
    ) -> None:
        if not (sigma > 0 and math.isfinite(sigma)):
            raise Error(f"sigma={sigma}: must be positive")
        self.base_classifier: Any = base_classifier
        self.num_classes = num_classes
        self.sigma = float(sigma)
        self.seed = seed
        self.radius = radius
        self._votes: dict[tuple[str, int, int, int, tuple[int, ...]], _core.Votes] = {}

    def certify(
        self, x: Array, n0: int = 100, n: int = 100_000, alpha: float = 0.001, batch_size: int = 1000
    ) -> tuple[int, float]:
        """CERTIFY for one image [C, H, W] in [0, 1]: the class and the l2 radius in which it is g's
        answer, or (ABSTAIN, 0.0). Wrong with probability at most alpha.

        n0 votes choose the class, n fresh ones bound its probability. The noise comes from a seed
        of the system's. A torch module is put into evaluation mode, as core.py does."""
        self._evaluate()
        c = self.certificate(x, n0=n0, n=n, alpha=alpha, batch_size=batch_size)
        return c.predict, c.radius

    def predict(self, x: Array, n: int = 1000, alpha: float = 0.001, batch_size: int = 1000) -> int:
        """PREDICT for one image [C, H, W] in [0, 1]: g's answer from n votes, or ABSTAIN. Wrong
        with probability at most alpha. A torch module is put into evaluation mode."""
        self._evaluate()
        return self._predict(x, n, alpha, batch_size)[0]

    def certificate(
        self,
        x: Array,
        index: int | None = None,
        *,
        n0: int = 100,
        n: int = 100_000,
        alpha: float = 0.001,
        batch_size: int = 1000,
    ) -> Certificate:
        """CERTIFY for one image [C, H, W] in [0, 1], with the counts that it rests on. The noise is
        that of `seed` (of this classifier and this image if that is None) and `index`; without an
        index, of a seed of the system's. A torch module in training mode is refused."""
        image = to_floats(x, "image")
        if image.ndim != 3:
            raise Error(f"image: shape {list(image.shape)}, expected [C, H, W]")
        number = 0 if index is None else index

        def ask(votes: _core.Votes) -> Certificate:
            seed = draw_seed() if index is None else self._seed_for(votes, image)
            return make_certificates(votes, image[None], [number], self.sigma, n0, n, alpha, self.radius, seed)[0]

        return self._ask(ask, x, image.shape, batch_size)

    def _seed_for(self, votes: _core.Votes, image: np.ndarray) -> int:
        if self.seed is not None:
            return self.seed
        model = self.sha256 or votes.check(list(image.shape))
        return _core.derive_seed(0, model, _core.digest(image[None], [0]))

    def _predict(self, x: Array, n: int, alpha: float, batch_size: int) -> tuple[int, list[int]]:
        """The answer and the votes of each class."""
        image = to_floats(x, "image")
        seed = draw_seed()

        def ask(votes: _core.Votes) -> tuple[int, list[int]]:
            return votes.predict(image, self.sigma, n, alpha, seed, 0)

        return self._ask(ask, x, image.shape, batch_size)

    def _evaluate(self) -> None:
        if is_module(self.base_classifier):
            self.base_classifier.eval()

    @property
    def name(self) -> str:
        """Of the base classifier, in messages and in tables."""
        f = self.base_classifier
        return getattr(f, "name", None) or getattr(f, "__name__", None) or type(f).__name__

    @property
    def sha256(self) -> str:
        """Of the base classifier's file, if it has one; else empty."""
        return getattr(self.base_classifier, "sha256", "")

    def _ask(
        self, ask: Callable[[_core.Votes], T], like: Array, shape: tuple[int, ...], batch_size: int, again: bool = True
    ) -> T:
        """ask() with votes of f at the largest steady batch. The model may have been trained
        between two calls: then what an earlier call checked is void, and ask() is called again.
        With again=False, for what leaves a trace, f is checked anew instead."""
        refuse_training_mode(self.base_classifier)
        if hasattr(self.base_classifier, "_votes_of_engine"):
            return ask(self.base_classifier._votes_of_engine(self.num_classes))
        f = adapt(self.base_classifier, like)
        key = (f.runs_on, f.gpu, f.stream, batch_size, tuple(shape))
        if again and key in self._votes:
            try:
                return ask(self._votes[key])
            except ClassifierChanged:
                del self._votes[key]
        self._votes[key] = self._steady_votes(f, shape, batch_size)
        return ask(self._votes[key])

    def _steady_votes(self, f: Adapted, shape: tuple[int, ...], batch_size: int) -> _core.Votes:
        batch = batch_size
        while True:
            votes = f.votes(self.num_classes, batch, shape)
            try:
                votes.check(list(shape))
            except DependsOnPosition:
                if batch == 1:
                    raise
                batch = 1 << (batch - 1).bit_length() - 1  # the next smaller power of two
                continue
            if batch != batch_size:
                warnings.warn(
                    f"at a batch of {batch_size} this model's logits depend on an image's position "
                    f"in it; batches of {batch} are used",
                    stacklevel=4,
                )
            return votes

"""The smoothed classifier."""

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from . import _core
from ._adapt import Adapted, BrokenCopies, adapt, check_classifier, part_in_training, refuse_training_mode
from ._convert import Array, fit, to_image
from ._core import ClassifierChanged, DependsOnPosition, Error
from ._numbers import as_count, as_index, as_number, as_numbers, as_seed, as_sigma, as_text

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
    count_top: int  # fresh votes for `selected`
    count_runner_up: int  # the most fresh votes for any other class
    n0: int
    n: int
    alpha: float
    sigma: float
    seed: int  # with `index`: determines the noise
    index: int
    base: str  # device, precision, library and batch, which define f
    noise: str = "float"

    @property
    def abstained(self) -> bool:
        return self.predict == ABSTAIN


def draw_seed() -> int:
    """Returns a seed from the system. It has 63 bits, because TOML has no larger integers."""
    return int.from_bytes(os.urandom(8), "little") >> 1


def make_budget(n0: Any, n: Any, alpha: Any, radius: str, radii: Any, beta: Any, plan: Any) -> _core.Budget:
    """Returns how many votes are drawn and what they prove, from numbers as users write them."""
    return _core.Budget(
        n0=as_count("n0", n0),
        n=as_count("n", n),
        alpha=as_number("alpha", alpha),
        radius=as_text("radius", radius),
        radii=[] if radii is None else as_numbers("radii", radii),
        beta=as_number("beta", beta),
        plan=as_number("plan", plan),
    )


def make_certificates(
    votes: _core.Votes,
    images: np.ndarray,
    indices: list[int],
    sigma: float,
    budget: _core.Budget,
    seed: int,
    noise: str,
) -> list[Certificate]:
    """Returns the certificates of images [N, C, H, W], float32."""
    found = votes.certify(images, indices, sigma, budget, seed)
    return [
        Certificate(
            predict=c.predict,
            radius=c.radius,
            p_lower=c.p_lower,
            selected=c.selected,
            count_top=c.count_top,
            count_runner_up=c.count_runner_up,
            n0=budget.n0,
            n=c.n,
            alpha=budget.alpha,
            sigma=sigma,
            seed=seed,
            index=index,
            base=votes.description,
            noise=noise,
        )
        for c, index in zip(found, indices, strict=True)
    ]


class Smooth:
    """g(x) = argmax_c P[f(x + e) = c], e ~ N(0, sigma^2 I), after Cohen, Rosenfeld and Kolter.

    base_classifier: f, a function from images [B, C, H, W] in [0, 1] plus noise to logits [B, num_classes],
        which includes the normalisation. A torch module is called on its own device; another function with
        what `inputs` says. Also accepted are a Model of fedsmooth, a session of ONNX Runtime, and a classifier
        of scikit-learn, which gets features [B, D]. Outputs with `.logits`, as those of Hugging Face's models,
        are accepted.
    sigma: the noise, in units of [0, 1] pixels.
    seed: the seed of the noise of certificates with an index. None: it is derived from the classifier and
        the images, so that certificates of two classifiers, or of two sets of images, share no draws.
    radius: "one-sided", as in Cohen's code, or "multiclass".
    inputs: a function is called with torch tensors ("torch"), with float32 NumPy arrays ("numpy"), or with what
        the image is, one of these ("auto").

    Images are [C, H, W], floats in [0, 1] or bytes (uint8), which are divided by 255; or vectors [D] of
    features in [0, 1], with which f is called as [B, D]. Every call has the same batch shape, and short batches
    are padded, because only at one shape f is a function of the image. The library checks this before the first
    votes, and after the last votes that f did not change meanwhile. One thread at a time may use a Smooth.

    The methods take the arguments of core.py, Cohen's code:
    n0: votes that choose the class. n: fresh votes that bound its probability. alpha: an answer is wrong with at
        most this probability. batch_size: noisy copies in one call of f; if left out, 1,000, and for a torch function
        on a CPU, where large batches are slower, 64 (of images above 32x32 fewer, at least 8).
    and these:
    radii: decide these l2 radii, with as few votes as needed, at most n. The radius of a certificate is the
        largest of them that is proved. beta: probability of giving up one of them that could be proved.
    plan: the loss of l2 radius that is accepted for fewer votes than n; n0 is then 1000 or more.
    noise: "float", or "exact": without rounding errors.
    """

    ABSTAIN = ABSTAIN

    def __init__(
        self,
        base_classifier: Callable[..., Any] | Any,
        num_classes: int,
        sigma: float,
        *,
        seed: int | None = None,
        radius: str = "one-sided",
        inputs: str = "auto",
    ) -> None:
        check_classifier(base_classifier)
        if inputs not in ("auto", "torch", "numpy"):
            raise Error(f"inputs={inputs!r}: must be auto, torch or numpy")
        self.base_classifier: Any = base_classifier
        self.num_classes = as_count("num_classes", num_classes)
        self.sigma = as_sigma(sigma)
        self.seed = None if seed is None else as_seed(seed)
        self.radius = radius
        self.inputs = inputs
        self._votes: dict[tuple[object, ...], _core.Votes] = {}
        self._broken: dict[tuple[object, ...], BrokenCopies] = {}

    def certify(
        self,
        x: Array,
        n0: int = 100,
        n: int = 100_000,
        alpha: float = 0.001,
        batch_size: int | None = None,
        *,
        radii: Sequence[float] | None = None,
        beta: float = 0.001,
        plan: float = 0.0,
        noise: str = "float",
    ) -> tuple[int, float]:
        """Does CERTIFY for one image [C, H, W]: returns a class and the l2 radius within which it is g's answer,
        or (ABSTAIN, 0.0). Wrong with probability at most alpha.

        n0 votes choose the class, n fresh votes bound its probability. The noise is that of a seed drawn by the
        system. A torch module in training mode is put into evaluation mode, as core.py does, with a warning."""
        self._evaluate()
        c = self.certificate(
            x, n0=n0, n=n, alpha=alpha, batch_size=batch_size, radii=radii, beta=beta, plan=plan, noise=noise
        )
        return c.predict, c.radius

    def predict(
        self, x: Array, n: int = 1000, alpha: float = 0.001, batch_size: int | None = None, *, noise: str = "float"
    ) -> int:
        """Does PREDICT for one image [C, H, W]: returns g's answer from n votes, or ABSTAIN. Wrong with
        probability at most alpha. A torch module in training mode is put into evaluation mode, with a warning."""
        self._evaluate()
        return self._predict(x, n, alpha, batch_size, noise)[0]

    def certificate(
        self,
        x: Array,
        index: int | None = None,
        *,
        n0: int = 100,
        n: int = 100_000,
        alpha: float = 0.001,
        batch_size: int | None = None,
        radii: Sequence[float] | None = None,
        beta: float = 0.001,
        plan: float = 0.0,
        noise: str = "float",
    ) -> Certificate:
        """Does CERTIFY for one image [C, H, W]: returns the certificate, with the counts from which it follows.
        With `index`, the noise follows from it and `seed` of the Smooth (derived from this classifier and this
        image if that is None); without an index, from a seed drawn by the system. A torch module in training mode
        is refused."""
        image = self._image(x)
        number = 0 if index is None else as_index("index", index)
        budget = make_budget(n0, n, alpha, self.radius, radii, beta, plan)

        def ask(votes: _core.Votes) -> Certificate:
            seed = draw_seed() if index is None else self._seed_for(votes, image)
            return make_certificates(votes, image[None], [number], self.sigma, budget, seed, noise)[0]

        return self._ask(ask, x, image.shape, batch_size, noise)

    def _image(self, x: Array) -> np.ndarray:
        """Returns one image as the base classifier requires it: for a Model, images [H, W, C] are transposed."""
        image = to_image(x)
        if hasattr(self.base_classifier, "_votes_of_engine"):
            image = fit(image[None], self.base_classifier.input)[0]
        return image

    def _seed_for(self, votes: _core.Votes, image: np.ndarray) -> int:
        if self.seed is not None:
            return self.seed
        model = self.sha256 or votes.check(list(image.shape))
        return _core.derive_seed(0, model, _core.digest(image[None], [0]))

    def _predict(
        self, x: Array, n: int, alpha: float, batch_size: int | None, noise: str
    ) -> tuple[int, list[int]]:
        """Returns the answer and the votes of each class."""
        image = self._image(x)
        seed, count, level = draw_seed(), as_count("n", n), as_number("alpha", alpha)

        def ask(votes: _core.Votes) -> tuple[int, list[int]]:
            return votes.predict(image, self.sigma, count, level, seed, 0)

        return self._ask(ask, x, image.shape, batch_size, noise)

    def _evaluate(self) -> None:
        """Puts a torch module into evaluation mode, as core.py does."""
        if part := part_in_training(self.base_classifier):
            self.base_classifier.eval()
            warnings.warn(
                f"model: {part} was in training mode, and was put into evaluation mode, as core.py does; call .train() "
                "before you train the model further",
                stacklevel=3,
            )

    @property
    def name(self) -> str:
        """The base classifier's name in messages and in tables."""
        f = self.base_classifier
        return getattr(f, "name", None) or getattr(f, "__name__", None) or type(f).__name__

    @property
    def sha256(self) -> str:
        """The SHA-256 of the base classifier's file, if it has one; else empty."""
        return getattr(self.base_classifier, "sha256", "")

    def _ask(
        self,
        ask: Callable[[_core.Votes], T],
        like: Array,
        shape: tuple[int, ...],
        batch_size: int | None,
        noise: str,
        again: bool = True,
    ) -> T:
        """Returns ask(votes), with votes of f at the largest steady batch. If the model was trained since an
        earlier call checked it, the check is void and ask() is called again after a new one. With again=False,
        for an ask() that must not run twice, f is always checked first."""
        refuse_training_mode(self.base_classifier)
        given = None if batch_size is None else as_count("batch_size", batch_size)
        if hasattr(self.base_classifier, "_votes_of_engine"):
            return ask(self.base_classifier._votes_of_engine(self.num_classes, noise))
        f = adapt(self.base_classifier, like, self.inputs)
        batch = f.default_batch(shape) if given is None else given
        # The key has the base classifier: the attribute may have been set since earlier votes were made.
        of = (id(self.base_classifier), self.num_classes, self.inputs)
        key = (of, f.runs_on, f.gpu, f.stream, batch, tuple(shape), getattr(like, "ndim", 0), noise)
        if again and key in self._votes:
            try:
                return self._ask_and_look(ask, key)
            except ClassifierChanged:
                del self._votes[key]
        self._votes[key], self._broken[key] = self._steady_votes(f, tuple(shape), batch, noise), f.broken
        return self._ask_and_look(ask, key)

    def _ask_and_look(self, ask: Callable[[_core.Votes], T], key: tuple[object, ...]) -> T:
        self._broken[key].clear()
        found = ask(self._votes[key])
        self._broken[key].warn(self.name, level=6)
        return found

    def _steady_votes(self, f: Adapted, shape: tuple[int, ...], batch_size: int, noise: str) -> _core.Votes:
        batch = f.batch or batch_size
        while True:
            votes = f.votes(self.num_classes, batch, shape, as_text("noise", noise))
            try:
                votes.check(list(shape))
            except DependsOnPosition:
                if batch == 1 or f.batch:
                    raise
                batch = 1 << (batch - 1).bit_length() - 1  # the next smaller power of two
                continue
            if batch != (f.batch or batch_size):
                warnings.warn(
                    f"at a batch of {batch_size} this model's logits depend on an image's position "
                    f"in it; batches of {batch} are used",
                    stacklevel=5,
                )
            return votes

    def __repr__(self) -> str:
        return f"Smooth({self.name}, num_classes={self.num_classes}, sigma={self.sigma:g})"

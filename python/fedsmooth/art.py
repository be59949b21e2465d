"""Randomized smoothing with the method names and results of the Adversarial Robustness Toolbox (ART).

    from fedsmooth.art import RandomizedSmoothing
    smoothed = RandomizedSmoothing(classifier, sample_size=100, scale=0.25, alpha=0.001)
    predictions, radii = smoothed.certify(x, n=100_000, batch_size=1000)

Memory does not grow with n. ART itself is not needed: any object with predict(x, batch_size) and
nb_classes is accepted.
"""

from typing import Any

import numpy as np

from ._convert import Array, to_floats
from ._core import Error
from ._smooth import Smooth


class RandomizedSmoothing:
    """Smooths an ART classifier.

    sample_size: number of votes in predict(), and of the votes that choose the class in certify().
    scale: sigma, in units of [0, 1] pixels. alpha: the failure probability of each answer.
    """

    def __init__(self, classifier: Any, sample_size: int = 100, scale: float = 0.1, alpha: float = 0.001) -> None:
        if not (hasattr(classifier, "predict") and hasattr(classifier, "nb_classes")):
            raise Error(f"classifier: a {type(classifier).__name__} has no predict and nb_classes; use fs.Smooth")
        clip = getattr(classifier, "clip_values", None)
        if clip is not None and (np.min(clip[0]), np.max(clip[1])) != (0, 1):
            raise Error(f"classifier: its clip_values are {clip}; images are in [0, 1], so a scaling belongs into it")
        self.classifier, self.sample_size, self.alpha = classifier, sample_size, alpha
        self.nb_classes: int = classifier.nb_classes
        self._smooth = Smooth(self._answer, self.nb_classes, scale)

    def predict(self, x: Array, batch_size: int = 128, is_abstain: bool = True) -> np.ndarray:
        """Returns [N, K] for images [N, C, H, W] in [0, 1]: 1 at the smoothed classifier's answer, zeros where
        it abstains. With is_abstain=False the class with the most votes is the answer, whatever alpha is."""
        found = np.zeros((len(x), self.nb_classes))
        for row, image in zip(found, to_floats(x, "images"), strict=True):
            answer, votes = self._smooth._predict(image, self.sample_size, self.alpha, batch_size, "float")
            if not is_abstain and any(votes):
                answer = int(np.argmax(votes))
            if answer != Smooth.ABSTAIN:
                row[answer] = 1
        return found

    def certify(self, x: Array, n: int, batch_size: int = 32) -> tuple[np.ndarray, np.ndarray]:
        """Returns classes [N], -1 for abstentions, and l2 radii [N] of images [N, C, H, W] in [0, 1]."""
        found = [
            self._smooth.certify(image, self.sample_size, n, self.alpha, batch_size) for image in to_floats(x, "images")
        ]
        return np.array([c for c, _ in found], dtype=np.int64), np.array([r for _, r in found])

    def _answer(self, images: np.ndarray) -> np.ndarray:
        logits: np.ndarray = self.classifier.predict(images, batch_size=len(images))
        return logits

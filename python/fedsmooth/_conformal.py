"""Conformal sets that hold under perturbations, from one noisy pass per image."""

import os
import pathlib

import numpy as np

from . import _core
from ._convert import Array, fit, to_floats, to_numpy
from ._core import Error
from ._model import Model
from ._numbers import as_labels, as_number, as_seed
from ._smooth import draw_seed


class Conformal:
    """Sets of classes that hold the label with probability at least `coverage`, also where the image was
    moved by any l2 distance up to `epsilon` by someone who does not know the noise.

        sets = fs.Conformal.calibrate(model, images, labels, epsilon=0.25, coverage=0.9)
        sets(new_images)    # [N, K], True where a class is in the set

    The probability is over calibration images, new images and noise. Calibration images must be clean, drawn as the
    new images are, and unseen by training."""

    def __init__(self, model: Model, calibration: _core.ConformalCalibration) -> None:
        self._pass, self._input = _one_pass(model), model.input
        self._pass.check_is_about(calibration)
        self._calibration = calibration
        self.epsilon: float = calibration.epsilon
        self.coverage: float = calibration.coverage
        self.sigma: float = calibration.sigma
        self.images: int = calibration.images
        self.quantile: float = calibration.quantile

    @classmethod
    def calibrate(
        cls,
        model: Model,
        images: Array,
        labels: Array,
        *,
        epsilon: float,
        coverage: float = 0.9,
        sigma: float | None = None,
        seed: int | None = None,
    ) -> "Conformal":
        """Calibrates on images [N, C, H, W], bytes or floats in [0, 1], and labels [N], with one noise per image.
        If there are too few images, raises an Error that says how many are needed. sigma: the model's own if left
        out. seed: of the noise; drawn by the system if left out."""
        found = _one_pass(model).calibrate(
            _pixels(images, model.input),
            as_labels("labels", to_numpy(labels, "labels").tolist()),
            model.smooth(sigma).sigma,
            as_number("epsilon", epsilon),
            as_number("coverage", coverage),
            draw_seed() if seed is None else as_seed(seed),
        )
        return cls(model, found)

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Model) -> "Conformal":
        """Reads a file of save() or of `fedsmooth conformal`. Raises an Error if the file is about another model."""
        return cls(model, _core.read_conformal(pathlib.Path(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a JSON file that load() and `fedsmooth predict --sets` read."""
        _core.write_conformal(pathlib.Path(path), self._calibration)

    def __call__(self, images: Array, *, seed: int | None = None) -> np.ndarray:
        """Returns which classes are in the set of each image, as booleans [N, K], from one noisy pass per image. Leave
        out the seed where images may be attacked: an attacker who knows the noise can fit an image to it."""
        number = draw_seed() if seed is None else as_seed(seed)
        return self._pass.sets(self._calibration, _pixels(images, self._input), number).astype(bool)

    def __repr__(self) -> str:
        return f"Conformal(epsilon={self.epsilon}, coverage={self.coverage}, sigma={self.sigma}, images={self.images})"


def _one_pass(model: Model) -> _core.OnePass:
    if not isinstance(model, Model):
        raise Error(f"model: a {type(model).__name__} is not a fedsmooth.Model; see fs.load and fs.from_torch")
    return _core.OnePass(model._native, model.sha256, model._device, model._threads)


def _pixels(images: Array, input: tuple[int, int, int]) -> np.ndarray:
    return fit(to_floats(images, "images"), input)

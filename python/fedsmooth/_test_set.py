"""Takes images and labels from test sets as users have them."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from ._convert import Array, fit, to_bytes_if_exact, to_floats, to_numpy
from ._core import Error
from ._model import Model
from ._numbers import as_count, as_label, as_text
from ._smooth import Smooth


def load_data(name: str, root: str | os.PathLike[str] = "data", split: str = "test") -> tuple[np.ndarray, np.ndarray]:
    """Loads a data set that the program knows, such as cifar10 in `root` or the built-in shapes: images
    [N, C, H, W] as bytes and labels [N]. `split` is test or train."""
    images, labels, _ = _core.load_data(as_text("name", name), os.fspath(root), as_text("split", split))
    return images, np.array(labels)


class First:
    """The first image as the user has it, which decides with what f is called, and the shape of all images."""

    def __init__(self, x: Any, shape: tuple[int, ...]) -> None:
        self.x, self.shape = x, shape


def pick(
    test_set: Any, every: Any, limit: Any, smooth: Smooth, class_names: Sequence[str] | None, name: str
) -> tuple[First, _core.Images]:
    """Returns the images to certify, with labels and indices, and for a pair of arrays the SHA-256 of the whole set."""
    every, limit = as_count("every", every), as_count("limit", limit)
    if every < 1 or limit < 0:
        raise Error(f"every={every}, limit={limit}: every must be at least 1, limit at least 0")
    names = list(class_names or getattr(smooth.base_classifier, "class_names", None) or ())
    names = [str(name) for name in names or range(smooth.num_classes)]
    if len(names) != smooth.num_classes:
        raise Error(f"class_names: {len(names)} names for {smooth.num_classes} classes")
    if _is_pair_of_arrays(test_set):
        first, images, labels, indices, sha256 = _pick_arrays(test_set[0], test_set[1], every, limit, smooth)
    else:
        first, images, labels, indices = _pick_items(test_set, every, limit, smooth)
        sha256 = ""
    return first, _core.Images(images, labels, names, indices, name, sha256)


def _is_pair_of_arrays(test_set: Any) -> bool:
    if not (isinstance(test_set, (tuple, list)) and len(test_set) == 2):
        return False
    x, y = test_set
    return getattr(x, "ndim", 0) in (2, 4) and (getattr(y, "ndim", 0) == 1 or isinstance(y, (list, tuple)))


def _arrange(images: np.ndarray, smooth: Smooth) -> np.ndarray:
    """Returns images as [N, C, H, W], as a Model requires them, and features [N, D] as [N, 1, 1, D]."""
    if isinstance(smooth.base_classifier, Model):
        return fit(images, smooth.base_classifier.input)
    return images.reshape(len(images), 1, 1, -1) if images.ndim == 2 else images


Picked = tuple[First, np.ndarray, list[int], list[int]]


def _pick_items(test_set: Any, every: int, limit: int, smooth: Smooth) -> Picked:
    if hasattr(test_set, "ndim"):
        raise Error("test_set: an array without labels; give a pair (images, labels)")
    if not (hasattr(test_set, "__len__") and hasattr(test_set, "__getitem__")):
        remedy = "; give loader.dataset" if hasattr(test_set, "dataset") else ""
        raise Error(f"test_set: a {type(test_set).__name__} is neither a data set nor a pair (images, labels){remedy}")
    indices = list(range(0, len(test_set), every))[: limit or None]
    images, labels, like = [], [], None
    for index in indices:
        item: Sequence[Any] = test_set[index]
        like = item[0] if like is None else like
        images.append(to_floats(item[0], f"image {index}"))
        labels.append(as_label(f"image {index}", item[1]))
        if images[-1].shape != images[0].shape:
            raise Error(f"image {index}: shape {list(images[-1].shape)}, the first has {list(images[0].shape)}")
    if not images:
        raise Error("test_set: no images")
    if images[0].ndim not in (1, 3):
        raise Error(f"image {indices[0]}: shape {list(images[0].shape)}, expected [C, H, W] or features [D]")
    found = _arrange(to_bytes_if_exact(np.stack(images)), smooth)
    return First(like, found.shape[1:]), found, labels, indices


def _pick_arrays(
    x: Array, y: Array, every: int, limit: int, smooth: Smooth
) -> tuple[First, np.ndarray, list[int], list[int], str]:
    images = to_numpy(x, "images")
    images = to_bytes_if_exact(images if images.dtype == np.uint8 else to_floats(x, "images"))
    images = _arrange(images, smooth)
    labels = [as_label(f"image {i}", label) for i, label in enumerate(to_numpy(y, "labels").tolist())]
    if not len(images):
        raise Error("test_set: no images")
    sha256 = _core.digest(images, labels)
    indices = list(range(0, len(images), every))[: limit or None]
    picked = np.ascontiguousarray(images[indices])
    return First(x[0], images.shape[1:]), picked, [labels[i] for i in indices], indices, sha256

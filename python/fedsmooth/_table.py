"""Tables of certificates."""

import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from ._convert import Array, to_bytes_if_exact, to_floats, to_numpy
from ._core import Error
from ._model import Model
from ._progress import bar_or_none
from ._smooth import Smooth


class Table:
    """Certificates of a test set, a row per image. table["radius"] is a column, the exact radii;
    `columns` has all of them.

    Abstentions stay in the denominator of every share, as in Cohen's analysis."""

    def __init__(self, columns: dict[str, Any], path: pathlib.Path | None = None) -> None:
        columns = dict(columns)
        self._tallies = {name: columns.pop(name, None) for name in ("votes", "selection_votes")}
        columns["correct"] = columns["predict"] == columns["label"]
        self.columns = columns
        self.path = path

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def __len__(self) -> int:
        """The number of images."""
        return len(self.columns["idx"])

    def certified_accuracy(self, radius: float) -> float:
        """Share of images that are correct and certified at least up to `radius`."""
        return float(np.mean(self._rows("correct") & (self["radius"] >= radius)))

    @property
    def acr(self) -> float:
        """The average certified radius; 0 for what is wrong or not answered."""
        return float(np.mean(self._rows("correct") * self["radius"]))

    @property
    def abstained(self) -> float:
        """Share of images without an answer."""
        return float(np.mean(self._rows("predict") == Smooth.ABSTAIN))

    @property
    def votes(self) -> np.ndarray:
        """The n votes of each image by class, [images, classes]. Where drawing stopped early (`radii`), the
        votes until then."""
        return self._dense("votes")

    @property
    def selection_votes(self) -> np.ndarray:
        """The n0 votes, which chose the class, as `votes`."""
        return self._dense("selection_votes")

    def radii_against(
        self,
        *against: str | int,
        superclasses: str | os.PathLike[str] | None = None,
        top: int = 0,
        alpha: float = 0,
    ) -> np.ndarray:
        """For each image the radius within which g is none of these classes (names, numbers, or names of
        superclasses), by its stored votes; 0 where nothing is claimed, as where g answers one of them.

        superclasses: a TOML file, animals = ["bird", "cat"]; alone, g stays in the superclass of its answer.
        top: the selected class is among g's `top` likeliest. alpha: the table's own if left out. Holds if
        the classes were chosen before the votes were drawn."""
        if self.path is None:
            raise Error("radii_against: this table has no file; give fs.certify an `out`")
        if not against and superclasses is None and not top:
            raise Error("radii_against: name classes, superclasses or top")
        names = [str(item) for item in against]
        path = "" if superclasses is None else os.fspath(superclasses)
        return _core.radii_against(os.fspath(self.path), names, path, top, alpha)

    def _dense(self, name: str) -> np.ndarray:
        if self._tallies[name] is None:
            raise Error(f"{self.path or 'table'}: a published table has no votes")
        row, label, votes, classes = self._tallies[name]
        if name == "votes" and np.any(np.bincount(row, votes, len(self)) < self["count_top"]):
            raise Error(f"{self.path or 'table'}: of an earlier version, which kept the votes of two classes")
        dense = np.zeros((len(self), classes), np.int64)
        dense[row, label] = votes
        return dense

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.columns)

    def _rows(self, name: str) -> np.ndarray:
        if len(self) == 0:
            raise Error(f"{self.path or 'table'}: no certificates yet")
        return self[name]

    def __repr__(self) -> str:
        if len(self) == 0:
            return "Table(no images)"
        return f"Table({len(self)} images, certified accuracy {self.certified_accuracy(0):.3f}, ACR {self.acr:.3f})"


def read_certificates(path: str | os.PathLike[str]) -> Table:
    """Reads a table, or that of a run folder. Every row is checked against its counts. Tables of six
    columns, as locuslab/smoothing publishes them, are accepted; they have no counts to check."""
    path = pathlib.Path(path)
    return Table(_core.read_certificates(path), path)


def compare(
    a: Table | str | os.PathLike[str],
    b: Table | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    norm: str = "l2",
    values: int = 0,
) -> _core.Comparison:
    """Certified accuracy of two tables (or files, or run folders) on the images that both have: at each
    radius both shares, their paired difference with a 95% interval, and who certifies what alone.

    out: a page to write, .html. norm: l2, linf or l1; for linf, `values` is the numbers in an image, where
    a table does not say."""
    page = "" if out is None else os.fspath(out)
    return _core.compare(_path_of(a), _path_of(b), page, norm, values)


def _path_of(table: Table | str | os.PathLike[str]) -> str:
    path = table.path if isinstance(table, Table) else table
    if path is None:
        raise Error("compare: this table has no file; give fs.certify an `out`")
    return os.fspath(path)


def load_data(name: str, root: str | os.PathLike[str] = "data", split: str = "test") -> tuple[np.ndarray, np.ndarray]:
    """A data set that the program knows, such as cifar10 in `root` or the built-in shapes: images
    [N, C, H, W] as bytes and labels [N]. `split` is test or train."""
    images, labels, _ = _core.load_data(name, os.fspath(root), split)
    return images, np.array(labels)


def _pick(test_set: Any, every: int, limit: int) -> tuple[Any, np.ndarray, list[int], list[int], str]:
    """The first image as it is, the images [N, C, H, W], labels and indices that are certified, and
    the SHA-256 of the whole set where it is at hand."""
    if every < 1 or limit < 0:
        raise Error(f"every={every}, limit={limit}: must be from 1, from 0")
    if isinstance(test_set, (tuple, list)) and len(test_set) == 2 and getattr(test_set[0], "ndim", 0) == 4:
        return _pick_arrays(test_set[0], test_set[1], every, limit)
    if not (hasattr(test_set, "__len__") and hasattr(test_set, "__getitem__")):
        raise Error(f"test_set: a {type(test_set).__name__} is neither a data set nor a pair (images, labels)")
    indices = list(range(0, len(test_set), every))[: limit or None]
    images, labels, like = [], [], None
    for index in indices:
        item: Sequence[Any] = test_set[index]
        like = item[0] if like is None else like
        images.append(to_floats(item[0], f"image {index}"))
        labels.append(_label(item[1], index))
        if images[-1].shape != images[0].shape:
            raise Error(f"image {index}: shape {list(images[-1].shape)}, the first has {list(images[0].shape)}")
    if not images:
        raise Error("test_set: no images")
    return like, to_bytes_if_exact(np.stack(images)), labels, indices, ""


def _pick_arrays(x: Array, y: Array, every: int, limit: int) -> tuple[Any, np.ndarray, list[int], list[int], str]:
    images = to_numpy(x, "images")
    images = to_bytes_if_exact(images if images.dtype == np.uint8 else to_floats(x, "images"))
    labels = [_label(label, i) for i, label in enumerate(to_numpy(y, "labels").tolist())]
    sha256 = _core.digest(images, labels)
    indices = list(range(0, len(images), every))[: limit or None]
    return x[0], np.ascontiguousarray(images[indices]), [labels[i] for i in indices], indices, sha256


def _label(label: Any, index: int) -> int:
    try:
        whole = int(label)
    except (TypeError, ValueError):
        raise Error(f"image {index}: label {label!r} is not a class number") from None
    if whole != label:
        raise Error(f"image {index}: label {label!r} is not a class number")
    return whole


def certify(
    g: Smooth | Model,
    test_set: Any,
    *,
    every: int = 1,
    limit: int = 0,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    n0: int = 100,
    n: int = 100_000,
    alpha: float = 0.001,
    batch_size: int = 1000,
    sigma: float | None = None,
    only_correct: bool = False,
    class_names: Sequence[str] | None = None,
    name: str = "python",
) -> Table:
    """CERTIFY on every `every`-th image of a test set, at most `limit` if that is not 0.

    test_set: a pair of arrays (images [N, C, H, W] in [0, 1] or bytes, labels [N]), or a data set of
        (image [C, H, W], label).
    out: the table, NAME.tsv, with NAME.json beside it that says what it is about: the same files as
        the program's. Rows are appended whole; resume=True continues after the last one.
    sigma: of a Model; its own if left out. A Smooth has its own.
    name: of the data set. For one of load_data(), the table is the program's, which may resume it.
    only_correct: no votes are drawn where the selected class is wrong anyway.
    """
    like, images, labels, indices, sha256 = _pick(test_set, every, limit)
    smooth = g.smooth(sigma) if isinstance(g, Model) else g
    if sigma not in (None, smooth.sigma):
        raise Error(f"sigma={sigma}: g has sigma={smooth.sigma}")
    names = list(class_names or (g.class_names if isinstance(g, Model) else ()))
    names = names or [str(label) for label in range(smooth.num_classes)]
    if len(names) != smooth.num_classes:
        raise Error(f"class_names: {len(names)} names for {smooth.num_classes} classes")

    def write(path: pathlib.Path) -> Table:
        def ask(votes: _core.Votes) -> None:
            _core.write_table(
                votes=votes,
                name=smooth.name,
                sha256=smooth.sha256,
                images=images,
                labels=labels,
                class_names=names,
                indices=indices,
                data_name=name,
                data_sha256=sha256,
                sigma=smooth.sigma,
                n0=n0,
                n=n,
                alpha=alpha,
                radius=smooth.radius,
                only_correct=only_correct,
                seed=smooth.seed,
                every=every,
                limit=limit,
                out=path,
                resume=resume,
                progress=bar_or_none(),
            )

        smooth._ask(ask, like, images.shape[1:], batch_size, again=False)
        return Table(_core.read_certificates(path), path)

    if out is not None:
        return write(pathlib.Path(out))
    import tempfile  # here: it takes 3 ms

    with tempfile.TemporaryDirectory() as folder:
        table = write(pathlib.Path(folder) / "certificates.tsv")
    table.path = None
    return table

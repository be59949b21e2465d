"""Tables of certificates, and the jobs that read them: comparisons, reports, figures and new radii."""

import os
import pathlib
import shutil
import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from . import _core
from ._core import Error
from ._numbers import as_count, as_number, as_text
from ._show import Plot, corners_of, draw, table_html

ABSTAIN = -1
Path = str | os.PathLike[str]


class Table:
    """Certificates of a test set, one row per image. table["radius"] is a column, the exact radii; `columns` has all
    columns: idx, label, predict, radius, time (seconds) and correct; except in published tables also selected, n0, n,
    count_top, count_runner_up, p_lower, alpha, sigma, seed and base, and for a run of several groups malicious, the
    number of malicious clients against which the radii hold. `path` is None if no file was asked for.

    Abstentions stay in the denominator of every share, as in Cohen's analysis."""

    def __init__(
        self, columns: Mapping[str, Any], path: pathlib.Path | None = None, *, name: str = "", is_scratch: bool = False
    ) -> None:
        columns = dict(columns)
        self._tallies = {name: columns.pop(name, None) for name in ("votes", "selection_votes")}
        self._groups: _core.GroupRows | None = columns.pop("groups", None)
        columns["correct"] = columns["predict"] == columns["label"]
        self.columns = columns
        self.path = None if is_scratch else path
        self.name = name
        self._file = path
        if is_scratch and path is not None:  # a file for compare(), report(), verify(), removed with this object
            weakref.finalize(self, shutil.rmtree, path.parent, ignore_errors=True)

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def __len__(self) -> int:
        """The number of images."""
        return len(self.columns["idx"])

    @overload
    def certified_accuracy(self, radius: float, *, malicious: int | None = None) -> float: ...
    @overload
    def certified_accuracy(
        self, radius: Sequence[float] | np.ndarray, *, malicious: int | None = None
    ) -> np.ndarray: ...
    def certified_accuracy(
        self, radius: float | Sequence[float] | np.ndarray, *, malicious: int | None = None
    ) -> float | np.ndarray:
        """Returns the share of images that are correct and certified at least up to `radius`; for several radii an
        array.

        malicious: for a run of several groups, the number of malicious clients against which the radii must hold; the
        table's own if left out. The share against another number follows from the same votes, at the table's alpha.
        Radius and number must have been chosen before the votes were drawn."""
        radii = np.asarray(radius, dtype=np.float64)
        correct, proved = self._rows("correct"), self["radius"]
        if malicious is not None:
            predict, proved = self._rows_of_groups(f"malicious={malicious}").against(as_count("malicious", malicious))
            correct = predict == self["label"]
        proved = np.sort(proved[correct])
        shares = (len(proved) - np.searchsorted(proved, radii, side="left")) / len(self)
        return shares if radii.ndim else float(shares)

    @property
    def acr(self) -> float:
        """The average certified radius; wrong answers and abstentions count as 0."""
        return float(np.mean(self._rows("correct") * self["radius"]))

    @property
    def abstained(self) -> float:
        """The share of images without an answer."""
        return float(np.mean(self._rows("predict") == ABSTAIN))

    @property
    def votes(self) -> np.ndarray:
        """The n votes of each image by class, [images, classes]. Where drawing stopped early (`radii`), these are
        the votes until then."""
        return self._dense("votes")

    @property
    def selection_votes(self) -> np.ndarray:
        """The n0 votes, which chose the class, of each image by class, [images, classes]."""
        return self._dense("selection_votes")

    @property
    def gaps(self) -> np.ndarray:
        """For a run of G groups, the number of each image's n copies whose gap is 0, 1, ..., G, and then the number
        whose gap is below 0, [images, G + 2]. The gap is the number of networks that vote for the selected class,
        less the most that vote for another (one more for a class with a lower number)."""
        return self._rows_of_groups("gaps").gaps()

    def most_malicious(self, radius: float) -> np.ndarray:
        """For a run of several groups, returns the largest number of malicious clients against which each image's
        answer is certified within `radius`; -1 where it is certified against none, not even 0. It is then certified
        against every smaller number, too, all together at the table's alpha. Holds if the radius was chosen before
        the votes were drawn."""
        return self._rows_of_groups("most_malicious").most_malicious(as_number("radius", radius))

    def radii_against(
        self,
        *against: str | int,
        superclasses: str | os.PathLike[str] | None = None,
        top: int = 0,
        alpha: float = 0,
    ) -> np.ndarray:
        """Returns for each image the radius within which g answers none of these classes, by its stored votes; 0
        where nothing is claimed, for example where g answers one of them. A whole number is the class of that number,
        whatever its name; a string is the name of a class or of a superclass.

        superclasses: a TOML file with lines such as animals = ["bird", "cat"]. Without classes, radii are those within
        which g stays in the superclass of its answer.
        top: radii are those within which the selected class stays among g's `top` likeliest.
        alpha: the table's own if left out. Radii hold if the classes were chosen before the votes were drawn."""
        if not against and superclasses is None and not top:
            raise Error("radii_against: name classes, superclasses or top")
        names = [item for item in against if isinstance(item, str)]
        numbers = [as_count("radii_against", item) for item in against if not isinstance(item, str)]
        path = "" if superclasses is None else os.fspath(superclasses)
        return _core.radii_against(file_of(self), names, numbers, path, as_count("top", top), as_number("alpha", alpha))

    def _rows_of_groups(self, what: str) -> _core.GroupRows:
        if self._groups is None:
            raise Error(f"{what}: {self.path or 'this table'} is about one network")
        return self._groups

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
        """Returns the table as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.columns)

    def report(self, out: Path | None = None, *, name: str = "", **options: Any) -> pathlib.Path:
        """Writes the page of report() about this table; beside its file if `out` is left out."""
        return report({name: self} if name else self, out, **options)

    def plot(self, out: Path | None = None, *, name: str = "") -> Plot:
        """Returns the curve of certified accuracy, which a notebook shows, and writes it to `out` (.svg) if given.
        fs.plot() draws several tables, also as .pdf or .png."""
        found = draw([(name or self._title, corners_of(self))])
        if out is not None:
            if pathlib.Path(out).suffix != ".svg":
                raise Error(f"out={os.fspath(out)}: must end in .svg; fs.plot(table, out) draws .pdf and .png")
            found.save(out)
        return found

    @property
    def _title(self) -> str:
        """Returns the table's name or, if it has none, that of its run folder or its file, as the program does."""
        if self.name or self.path is None:
            return self.name or "table"
        table = self.path / "certificates.tsv" if self.path.is_dir() else self.path
        return table.resolve().parent.name if table.name == "certificates.tsv" else table.stem

    def _repr_html_(self) -> str:
        return table_html(self, self._title) if len(self) else repr(self)

    def _rows(self, name: str) -> np.ndarray:
        if len(self) == 0:
            raise Error(f"{self.path or 'table'}: no certificates yet")
        rows: np.ndarray = self[name]
        return rows

    def __repr__(self) -> str:
        if len(self) == 0:
            return "Table(no images)"
        return f"Table({len(self)} images, certified accuracy {self.certified_accuracy(0):.3f}, ACR {self.acr:.3f})"


def read_certificates(path: Path) -> Table:
    """Reads a table, or the table of a run folder. Every row is checked against its counts. Tables of six
    columns, as locuslab/smoothing publishes them, are accepted; they have no counts to check."""
    path = pathlib.Path(path)
    return Table(_core.read_certificates(path), path)


def compare(
    a: Table | Path,
    b: Table | Path,
    *,
    out: Path | None = None,
    norm: str = "l2",
    values: int = 0,
) -> _core.Comparison:
    """Compares the certified accuracy of two tables (or files, or run folders) on the images that both have: at each
    radius both shares, their paired difference with a 95% interval, and the numbers of images that only one certifies.

    out: a page to write, .html. norm: l2, linf or l1. values: for linf, how many numbers an image has (3072 for
    CIFAR-10), if a table does not state it."""
    page = "" if out is None else os.fspath(out)
    return _core.compare(_named(a), _named(b), page, as_text("norm", norm), as_count("values", values))


Runs = Table | Path | Sequence[Table | Path] | Mapping[str, Table | Path]


def report(
    runs: Runs,
    out: Path | None = None,
    *,
    norm: str = "l2",
    values: int = 0,
    sigma: float = 0.0,
    alpha: float = 0.0,
    n: int = 0,
    data: Path = "",
) -> pathlib.Path:
    """Writes one self-contained page about tables, run folders or a sweep's folder, and returns its path.

    runs: one, several, or {name: run}. out: .html, or .md for a table in Markdown; if left out, report.html in
    the one run folder, or NAME.html beside the one table. norm, values: as for compare(). sigma, alpha, n: those of
    published tables, which do not state them. data: the folder of the data set, from which images are shown."""
    page = _page_beside(runs) if out is None else pathlib.Path(out)
    tables = _core.TableOptions(
        norm=as_text("norm", norm),
        values=as_count("values", values),
        sigma=as_number("sigma", sigma),
        alpha=as_number("alpha", alpha),
        n=as_count("n", n),
        data=os.fspath(data),
    )
    _core.report(_list_runs(runs), page, tables, warnings.warn)
    return page


def plot(runs: Runs, out: Path, *, what: str = "certified", norm: str = "l2", values: int = 0) -> pathlib.Path:
    """Draws tables or run folders into one figure, .svg, .pdf or .png, by gnuplot, and returns its path.

    runs: as for report(). what: certified (accuracy over radius), training or attack (in training)."""
    tables = _core.TableOptions(as_text("norm", norm), as_count("values", values), 0.0, 0.0, 0, "")
    _core.plot(_list_runs(runs), pathlib.Path(out), as_text("what", what), tables)
    return pathlib.Path(out)


def merge(tables: Sequence[Table | Path], out: Path) -> Table:
    """Joins the shards of one certification, all of them complete, into the table `out`."""
    if isinstance(tables, (Table, str, os.PathLike)):
        raise Error("tables: must be a list, of all shards")
    _core.merge([file_of(table) for table in tables], pathlib.Path(out))
    return read_certificates(out)


def recertify(
    table: Table | Path,
    alpha: float | None = None,
    *,
    radius: str | None = None,
    malicious: int | None = None,
    out: Path | None = None,
) -> Table:
    """Computes new radii from the counts of a table, without the model, writes them to a table beside the old one or
    to `out`, and returns it. They hold only if the arguments were chosen without regard to these votes.

    alpha: failure probability per image; for a run of several groups, of all claims about it together.
    radius: one-sided or multiclass.
    malicious: for a run of several groups, the number of malicious clients against which the radii hold. With a
        fixed number of votes all smaller numbers are claimed, too, each at alpha / (malicious + 1).
    An argument that is left out keeps the old table's value."""
    found = _core.recertify(
        table=file_of(table),
        alpha=None if alpha is None else as_number("alpha", alpha),
        malicious=None if malicious is None else as_count("malicious", malicious),
        radius="" if radius is None else as_text("radius", radius),
        out="" if out is None else os.fspath(out),
    )
    return read_certificates(found)


def file_of(table: Table | Path) -> str:
    path = table._file if isinstance(table, Table) else table
    if path is None:
        raise Error("this table has no file; give fs.certify an `out`")
    return os.fspath(path)


def _named(table: Table | Path) -> str:
    """Returns a file, as NAME=PATH with the table's name where the file's own name says nothing."""
    if isinstance(table, Table) and table.path is None:
        return f"{table._title.replace('=', ':')}={file_of(table)}"
    return file_of(table)


def _list_runs(runs: Runs) -> list[str]:
    if isinstance(runs, Mapping):
        return [f"{name}={file_of(run)}" for name, run in runs.items()]
    if isinstance(runs, (Table, str, os.PathLike)):
        return [_named(runs)]
    return [_named(run) for run in runs]


def _page_beside(runs: Runs) -> pathlib.Path:
    one = next(iter(runs.values())) if isinstance(runs, Mapping) and len(runs) == 1 else runs
    path = one.path if isinstance(one, Table) else one
    if not isinstance(path, (str, os.PathLike)):
        raise Error("report: several runs, or a table without a file, need out=")
    path = pathlib.Path(path)
    if path.is_dir():
        return path / "report.html"
    return path.with_suffix(".html") if path.suffix == ".tsv" else path.with_name(path.name + ".html")

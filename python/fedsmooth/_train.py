"""Training into run folders."""

import os
import pathlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _core
from ._model import Model, load
from ._numbers import as_count, as_device, as_flag, as_numbers, as_threads
from ._progress import bar_or_none
from ._table import Table, read_certificates, report
from ._values import list_paths, overrides_to_pairs


@dataclass(frozen=True)
class Run:
    """A trained run: its folder, and the results of the training."""

    folder: pathlib.Path
    rounds: int
    loss: float  # of the last round
    model_sha256: str
    is_new: bool  # False: it was done before the call

    def model(self, device: str = "auto") -> Model:
        return load(self.folder, device)

    def certificates(self) -> Table:
        """Reads the folder's table. The run must have been certified."""
        return read_certificates(self.folder)

    def report(self, out: str | os.PathLike[str] | None = None) -> pathlib.Path:
        """Writes the page about this run, report.html in its folder if `out` is left out."""
        return report(self.folder, out)


def certify_run(
    folder: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    *,
    malicious: int | None = None,
    with_: Sequence[str | os.PathLike[str]] = (),
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    device: str = "auto",
    threads: int = 0,
) -> Table:
    """Certifies a run folder into its certificates.tsv, as `fedsmooth certify FOLDER` does, by the [certify] of its
    experiment with `overrides`. A model file is accepted, too, and is certified on the data that `overrides` name.

    malicious: short for certify.malicious: for a run of several groups, the number of malicious clients against which
        the radii hold. With a fixed number of votes all smaller numbers are claimed, too, each at
        alpha / (malicious + 1).
    with_: further runs or model files, certified as one classifier with `folder`, by the mean of their logits.
    out: the table to write; beside the model if left out. Several models as one need it.
    resume: continue after the last complete row. device, threads: as for load()."""
    most = None if malicious is None else as_count("malicious", malicious)
    path = _core.certify_run(
        folder=os.fspath(folder),
        with_=list_paths("with_", with_),
        overrides=overrides_to_pairs(overrides, certify_malicious=most),
        out="" if out is None else os.fspath(out),
        resume=as_flag("resume", resume),
        device=as_device(device),
        threads=as_threads(threads),
        progress=bar_or_none(),
        warn=warnings.warn,
    )
    return read_certificates(path)


def train(
    path: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    device: str = "auto",
    threads: int = 0,
    on_round: Callable[[_core.Round], Any] | None = None,
) -> Run:
    """Trains the experiment file `path` (TOML), as the program does, into a run folder.

    overrides: {"section.key": value}; an unknown key is refused with the nearest one.
    out: the folder; runs/NAME for NAME.toml if left out. resume: continue from its checkpoint.
    on_round: called after every round with an object that has round, loss, noisy_accuracy, seconds, ...; an
        exception that it raises ends the training. Ctrl-C ends it, too, with the state saved.
    device, threads: as for load().
    """
    path = pathlib.Path(path)
    folder = pathlib.Path("runs") / path.stem if out is None else pathlib.Path(out)
    run = _core.train(
        path=path,
        overrides=overrides_to_pairs(overrides),
        out=folder,
        resume=as_flag("resume", resume),
        device=as_device(device),
        threads=as_threads(threads),
        on_round=on_round,
        progress=bar_or_none(),
        warn=warnings.warn,
    )
    return Run(folder, run.rounds, run.loss, run.model_sha256, run.is_new)


def attack(
    path: str | os.PathLike[str],
    epsilons: float | Sequence[float] = (0.25, 0.5, 0.75, 1.0),
    overrides: Mapping[str, Any] | None = None,
    *,
    n: int = 1000,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    device: str = "auto",
    threads: int = 0,
) -> _core.Attack:
    """Attacks the smoothed classifier of a run folder or model file by SmoothAdv's attack, on the images that its
    experiment certifies, as `fedsmooth attack PATH` does. Certified accuracy must not exceed the accuracy found.

    epsilons: l2 radii of the attack. overrides: {"certify.every": 20, "attack.steps": 10}. n: votes on each
    adversarial example. out: the table; beside the model if left out. resume: continue after the last complete
    image. device, threads: as for load()."""
    found = _core.attack(
        path=os.fspath(path),
        epsilons=as_numbers("epsilons", epsilons),
        n=as_count("n", n),
        overrides=overrides_to_pairs(overrides),
        out="" if out is None else os.fspath(out),
        resume=as_flag("resume", resume),
        device=as_device(device),
        threads=as_threads(threads),
        progress=bar_or_none(),
        warn=warnings.warn,
    )
    for line in found.warnings:
        warnings.warn(line, stacklevel=2)
    return found


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep: its page, and the run folders of its experiments that are done."""

    page: pathlib.Path
    runs: list[pathlib.Path]
    failed: int  # number of failed experiments; a warning said why each failed
    total: int


def sweep(
    path: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    at_once: int = 0,
    device: str = "auto",
    threads: int = 0,
) -> Sweep:
    """Trains and certifies a folder of experiment files, or a file with a [sweep], and writes the page about all, as
    `fedsmooth sweep PATH` does. Work that is done already is skipped, so a second call resumes.

    out: the folder of the run folders; if left out, runs/NAME for a folder, runs/NAME-sweep for a file.
    at_once: number of sets of experiments that are done at the same time, where a set holds the experiments that can be
        trained side by side; 0: three on a GPU, one on the CPU.
    device, threads: as for load()."""
    found = _core.sweep(
        path=os.fspath(path),
        overrides=overrides_to_pairs(overrides),
        out="" if out is None else os.fspath(out),
        at_once=as_count("at_once", at_once),
        device=as_device(device),
        threads=as_threads(threads),
        progress=bar_or_none(),
        warn=warnings.warn,
    )
    return Sweep(found.page, [pathlib.Path(run) for run in found.done], found.failed, found.total)

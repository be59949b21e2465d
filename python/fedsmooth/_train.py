"""Training into run folders."""

import os
import pathlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _core
from ._model import Model, load
from ._progress import bar_or_none
from ._table import Table, read_certificates


@dataclass(frozen=True)
class Run:
    """A trained run: its folder, and what the training says of itself."""

    folder: pathlib.Path
    rounds: int
    loss: float  # of the last round
    model_sha256: str
    is_new: bool  # False: it was done already

    def model(self, device: str = "auto") -> Model:
        return load(self.folder, device)

    def certificates(self) -> Table:
        """The folder's table, once it was certified."""
        return read_certificates(self.folder)


def certify_run(
    folder: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    *,
    resume: bool = False,
    device: str = "auto",
    threads: int = 0,
) -> Table:
    """`fedsmooth certify FOLDER`: certifies a run folder with all of its experiment's [certify], overridden, into its
    certificates.tsv."""
    pairs = overrides_to_pairs(overrides)
    path = _core.certify_run(os.fspath(folder), pairs, resume, device, threads, bar_or_none(), warnings.warn)
    return read_certificates(path)


def _value(value: Any) -> str:
    """As on the command line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(v) for v in value)}]"
    return str(value)


def overrides_to_pairs(overrides: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    return [(key, _value(value)) for key, value in (overrides or {}).items()]


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
    on_round: called after every round with round, loss, noisy_accuracy, seconds, ...; what it raises
        ends the training. Ctrl-C ends it too, with the state saved.
    """
    path = pathlib.Path(path)
    folder = pathlib.Path("runs") / path.stem if out is None else pathlib.Path(out)
    pairs = overrides_to_pairs(overrides)
    run = _core.train(path, pairs, folder, resume, device, threads, on_round, bar_or_none(), warnings.warn)
    return Run(folder, run.rounds, run.loss, run.model_sha256, run.is_new)

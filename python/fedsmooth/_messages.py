"""What a federation's server and its nodes tell each other, and the experiment that both have."""

import hashlib
import json
import os
import pathlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _core
from ._values import overrides_to_pairs


@dataclass(frozen=True)
class Hello:
    """What a node says of itself before the first round."""

    version: str
    commit: str
    device: str
    arithmetic: str  # how its CPU rounds
    data_sha256: str  # empty: the images are its own
    images: int
    client: int = -1  # its number, if the images are its own
    public_key: bytes = b""  # if sums are masked
    name: str = ""  # for messages

    def identity(self, experiment: str) -> str:
        """Returns a digest of all that decides a node's answers. Every answer repeats it."""
        decisive = [self.version, self.commit, self.device, self.arithmetic, self.data_sha256, self.images, self.client]
        return hashlib.sha256(json.dumps([experiment, *decisive]).encode()).hexdigest()


@dataclass(frozen=True)
class Task:
    """One node's part of a round."""

    t: int  # the round, from 0
    attempt: int  # from 0; above 0 if nodes failed in this round
    total: int  # images of the whole cohort
    clients: list[int]
    weights: np.ndarray  # float32 [values]: all tensors of the model, one after another
    # If sums are masked: the public keys and the clients ("0 3 5") of all nodes that are asked, in one order.
    public_keys: list[bytes] = field(default_factory=list)
    assignment: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Answer:
    """What a node sends back for a Task: the sums over its clients."""

    t: int
    attempt: int
    identity: str
    words: np.ndarray  # int64: sums, kept share, dropped clients, telemetry


def format_clients(clients: Sequence[int]) -> str:
    """Returns clients as the assignment of a Task names them: "0 3 5"."""
    return " ".join(map(str, clients))


def read_experiment(path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> str:
    """Returns an experiment file as TOML with every key, as Node and Server require it."""
    path = pathlib.Path(path)
    text = _core.read_file(path).decode(errors="replace")
    return change_experiment(text, overrides, str(path))


def change_experiment(text: str, overrides: Mapping[str, Any] | None = None, name: str = "experiment") -> str:
    """Returns `text` with the overrides, as TOML with every key. `name` is for messages."""
    return _core.complete_experiment(text, name, overrides_to_pairs(overrides))


def section(experiment: str, name: str) -> dict[str, Any]:
    """Returns a section of the experiment, such as certify."""
    found: dict[str, Any] = tomllib.loads(experiment)[name]
    return found


def classes_of(experiment: str) -> list[str]:
    """Returns the class names of the experiment's test data."""
    data = section(experiment, "data")
    return _core.load_data(data["name"], data["root"], "test")[2]

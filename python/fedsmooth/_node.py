"""A node's side of a federation; see federation.py."""

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core, masks
from ._convert import Array, to_bytes_if_exact, to_floats, to_numpy
from ._core import Error
from ._messages import Answer, Hello, Task, change_experiment, format_clients
from ._numbers import as_count, as_device, as_labels, as_threads


def own_images(images: Array, labels: Array) -> tuple[np.ndarray, list[int]]:
    """Returns images [N, C, H, W] as bytes, from bytes or floats that are bytes over 255, and labels [N]."""
    found = to_numpy(images, "images")
    found = to_bytes_if_exact(found if found.dtype == np.uint8 else to_floats(images, "images"))
    if found.dtype != np.uint8:
        raise Error("images: are not bytes over 255; give bytes")
    return found, as_labels("labels", to_numpy(labels, "labels").tolist())


def rename_labels(labels: Sequence[int], here: Sequence[str], there: Sequence[str]) -> list[int]:
    """Returns labels of the classes `here`, of a node's folder, as labels of the server's classes, `there`."""
    unknown = sorted(set(here) - set(there))
    if unknown:
        raise Error(f"data: class {unknown[0]!r} is not one of the federation's: {', '.join(there)}")
    return [there.index(here[label]) for label in labels]


class Node:
    """A node of a federation: trains the clients that the server asks it for.

    experiment: the server's experiment, as TOML.
    overrides: keys whose values differ on this machine. A node reads only files that `overrides` name: keys of the
        server's experiment that name a file, such as data.root, are refused.
    images, labels: the node's own, bytes [N, C, H, W] and [N]; it is then client number `client`, and
        class_names are the server's. Left out, the experiment's data are loaded, and any of its clients
        can be run.
    private_key: of masks.new_key(), if sums are to be masked.
    answered: the last round that was answered under masks with this key; -1: none. Where a Node is made anew for
        every message, store its `answered` beside the key and pass it to the next Node.
    """

    def __init__(
        self,
        experiment: str,
        overrides: Mapping[str, Any] | None = None,
        *,
        images: Array | None = None,
        labels: Array | None = None,
        class_names: Sequence[str] = (),
        client: int = 0,
        private_key: bytes = b"",
        answered: int = -1,
        device: str = "auto",
        threads: int = 0,
    ) -> None:
        self.experiment, self._private_key, self.answered = experiment, private_key, answered
        here = change_experiment(experiment, overrides)
        device, threads, client = as_device(device), as_threads(threads), as_count("client", client)
        self._client = -1 if images is None else client
        _refuse_named_files(experiment, overrides or {}, own=images is not None)
        if images is None:
            self._native = _core.Node(here, device, threads)
        else:
            own, numbers = own_images(images, labels)
            self._native = _core.Node(here, own, numbers, list(class_names), client, device, threads)

    def hello(self) -> Hello:
        """Returns what the server must know of this node before the first round."""
        f = self._native.facts
        key = masks.public_key(self._private_key) if self._private_key else b""
        return Hello(f.version, f.commit, f.device, f.arithmetic, f.data_sha256, f.images, self._client, key)

    def run(self, task: Task) -> Answer:
        """Trains the task's clients. Raises an Error for an impossible task, or for a second one of a masked round."""
        if type(task.t) is not int or task.t < 0:
            raise Error(f"task: its round is {task.t!r}")
        if bool(task.public_keys) != bool(self._private_key):
            raise Error("task: masks are asked for on one side only")
        if self._private_key:
            self._check_masked(task)
            self.answered = task.t  # set before the answer exists, so that a lost answer is not given again
        words = self._native.run(task.t, task.total, list(task.clients), np.ascontiguousarray(task.weights))
        if self._private_key:
            words = masks.mask(words, self._private_key, task.public_keys, self._about(task))
        return Answer(task.t, task.attempt, self.hello().identity(self.experiment), words)

    def _check_masked(self, task: Task) -> None:
        """Raises an Error for a second task of a masked round, because two answers would show a difference that masks
        hide, and for a task that misstates this node's clients."""
        if task.t <= self.answered:
            raise Error(f"task: round {task.t + 1} under masks; round {self.answered + 1} was answered already")
        named = dict(zip(task.public_keys, task.assignment, strict=False))
        if len(task.assignment) != len(task.public_keys) or named.get(self.hello().public_key) != format_clients(
            task.clients
        ):
            raise Error("task: its assignment does not say which clients this node is asked for")

    def _about(self, task: Task) -> bytes:
        """Returns what masks are used for only once: the round, and all that any node is asked for in it."""
        asked = [self.experiment, task.t, task.attempt, task.total, task.assignment]
        told = hashlib.sha256(json.dumps(asked).encode())
        told.update(task.weights.tobytes())
        return told.digest()


def _refuse_named_files(experiment: str, overrides: Mapping[str, Any], own: bool) -> None:
    """Raises an Error if the server's experiment names a file, because a server must not choose what a node opens. A
    node with its own images opens no other data."""
    named, usual = tomllib.loads(experiment), tomllib.loads(change_experiment(""))
    for name in _core.keys_of_files():
        table, key = name.split(".")
        if (own and table in ("data", "partition")) or name in overrides:
            continue
        if named[table][key] != usual[table][key]:
            raise Error(
                f"{name}={named[table][key]!r}: the server names a file of this node; "
                f"the node's own configuration must name it"
            )

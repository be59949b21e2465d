"""A federation over any platform that carries messages, such as Flower (see examples/flower).

A node gets one message per round, whatever the number of its clients, and answers with integers: the
fixed-point sums of its clients' weights. Integers add up to the same bits in any order, so the model is
that of fs.train(), for any number of nodes.

    node = Node(experiment)                                     # on each node
    server = Server(experiment, {1: node.hello()}, send)        # send: {node: Task} -> {node: Answer}
    run = server.train("runs/federated")
"""

import json
import os
import pathlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from . import _core, masks
from ._core import Error
from ._messages import (
    Answer,
    Hello,
    Task,
    change_experiment,
    classes_of,
    format_clients,
    read_experiment,
    section,
)
from ._node import Node, own_images, rename_labels
from ._progress import bar_or_none
from ._train import Run

__all__ = [
    "Answer",
    "Hello",
    "Node",
    "Server",
    "Task",
    "change_experiment",
    "classes_of",
    "own_images",
    "read_experiment",
    "rename_labels",
    "section",
]

MAX_IMAGES = 1_000_000
MAX_GIVEN_UP = 3  # rounds in a row, before a run ends


class Server:
    """The server's side: trains by nodes that `send` reaches.

    nodes: by number, what each said. One that cannot take part is an Error.
    send: {node: Task} to {node: Answer}; a node that fails is left out, or has the reason in its place, and
        one whose answer cannot be read has an Error there.
    private: every node holds images of its own and is one client.
    masked: pairwise masks hide every node's sums; only their total is seen.
    failures: "drop": the round is that of the clients that were answered for, or under masks is given up: the weights
        stay; "again": the others' clients go to the nodes that are left, not under masks; "stop".
    A node that failed, or whose answer was refused, is not asked again; `lost` and `refused` have the reasons, and
    `given_up` the rounds, counted from 1.
    """

    def __init__(
        self,
        experiment: str,
        nodes: Mapping[int, Hello],
        send: Callable[[dict[int, Task]], Mapping[int, Any]],
        *,
        private: bool = False,
        masked: bool = False,
        failures: str = "drop",
        max_images: int = MAX_IMAGES,
        say: Callable[[str], Any] = lambda line: None,
    ) -> None:
        if failures not in ("drop", "again", "stop"):
            raise Error(f"failures={failures!r}: must be drop, again or stop")
        if private and failures == "again":
            raise Error("failures='again': nobody else has a node's own images; use drop or stop")
        if masked and failures == "again":
            raise Error("failures='again': two totals of a masked round differ by what masks hide; use drop or stop")
        clusters = section(experiment, "server")["clusters"]
        if masked and clusters > 1 and not private:
            raise Error(f"server.clusters={clusters}: under masks a node answers once in a round; use 1")
        if not nodes:
            raise Error("nodes: there are none")
        self.experiment, self.nodes, self._send, self._say = experiment, dict(nodes), send, say
        self.private, self.masked, self.failures, self.max_images = private, masked, failures, max_images
        self.lost: dict[int, str] = {}
        self.refused: dict[int, str] = {}
        self.given_up: list[int] = []
        self._given_up_in_a_row = 0
        self.messages = 0
        self.bytes_down = self.bytes_up = 0
        self._expected = None if private else _core.Node(experiment, "cpu", 0).facts
        self._images = self._count_images() if private else []
        for number in self.nodes:
            self._check_hello(number)

    def train(
        self,
        out: str | os.PathLike[str],
        *,
        resume: bool = False,
        on_round: Callable[[_core.Round], Any] | None = None,
        before_round: Callable[[_core.AskedRound], Any] | None = None,
    ) -> Run:
        """Trains into a run folder, as fs.train() does. before_round hears of every round before its nodes
        do; its `model` is that of the rounds so far."""
        first = self.nodes[min(self.nodes)]
        folder = pathlib.Path(out)

        def ask(round: _core.AskedRound) -> np.ndarray:
            if before_round is not None:
                before_round(round)
            return self.ask(round)

        run = _core.federate(
            self.experiment,
            ask,
            first.device,
            first.arithmetic,
            self._images,
            folder,
            resume,
            on_round,
            bar_or_none(),
            warnings.warn,
        )
        report = self.report() | {"nodes": {n: asdict(h) | {"public_key": ""} for n, h in self.nodes.items()}}
        _core.write_file(folder / "federation.json", json.dumps(report, indent=1).encode())
        return Run(folder, run.rounds, run.loss, run.model_sha256, run.is_new)

    def report(self) -> dict[str, Any]:
        return {
            "messages": self.messages,
            "bytes_to_nodes": self.bytes_down,
            "bytes_from_nodes": self.bytes_up,
            "lost": self.lost,
            "refused": self.refused,
            "given_up": self.given_up,
        }

    def ask(self, round: _core.AskedRound) -> np.ndarray:
        """The words of a round's clients: those that nobody answered for are counted as dropped. None if the round is
        given up."""
        total = _core.RoundSum(round)
        attempt = 0
        while missing := [k for k in round.clients if k not in set(total.clients)]:
            asked = self._deal(missing)
            if self.masked and len(asked) < 2:
                raise Error(f"round {round.t + 1}: {len(asked)} nodes are left, and masks need two")
            if not asked:
                break
            failed = self._ask_once(round, attempt, asked, total)
            if failed and self.failures == "stop":
                raise Error(f"round {round.t + 1}: {'; '.join(failed)}")
            if failed and self.masked:  # a second total, of the others, would show the sums of those that failed
                return self._give_up(round, "masks need every answer")
            if not failed or self.failures == "drop":
                break
            attempt += 1
        try:
            words = total.total()
        except Error as error:
            if not self.masked or self.failures == "stop":
                raise
            return self._give_up(round, f"the total means nothing ({error}), and masks hide whose words are wrong")
        self._given_up_in_a_row = 0
        return words

    def _give_up(self, round: _core.AskedRound, why: str) -> np.ndarray:
        self.given_up.append(round.t + 1)
        self._given_up_in_a_row += 1
        if self._given_up_in_a_row > MAX_GIVEN_UP:
            raise Error(f"round {round.t + 1}: {why}; so were {MAX_GIVEN_UP} rounds before it given up")
        self._say(f"round {round.t + 1} is given up: {why}; the weights stay")
        return np.zeros(0, np.int64)

    def _deal(self, clients: list[int]) -> dict[int, list[int]]:
        """Who runs which clients."""
        if self.private:
            numbers = {hello.client: node for node, hello in self._left().items()}
            return {numbers[k]: [k] for k in clients if k in numbers}
        nodes = sorted(self._left())
        return {node: clients[i :: len(nodes)] for i, node in enumerate(nodes) if clients[i :: len(nodes)]}

    def _left(self) -> dict[int, Hello]:
        return {n: hello for n, hello in self.nodes.items() if n not in self.lost and n not in self.refused}

    def _ask_once(
        self, round: _core.AskedRound, attempt: int, asked: dict[int, list[int]], total: _core.RoundSum
    ) -> list[str]:
        """Sends, and adds what comes back; what went wrong."""
        weights = round.weights
        masked = sorted(asked) if self.masked else []
        keys, named = [self.nodes[n].public_key for n in masked], [format_clients(asked[n]) for n in masked]
        tasks = {n: Task(round.t, attempt, round.total, clients, weights, keys, named) for n, clients in asked.items()}
        self.messages += len(tasks)
        self.bytes_down += len(tasks) * weights.nbytes
        answers = self._send(tasks)
        failed = []
        for node, task in tasks.items():
            answer = answers.get(node, "nothing came")
            if not isinstance(answer, (Answer, Error)):
                self.lost[node] = f"round {round.t + 1}: {answer}"
                failed.append(f"node {node} did not answer: {answer}")
                self._say(failed[-1])
                continue
            try:
                words = self._checked_words(node, task, answer)
                (total.add_masked if self.masked else total.add)(task.clients, words)
            except Error as error:
                self.refused[node] = f"round {round.t + 1}: {error}"
                failed.append(f"the answer of node {node} is refused: {error}")
                self._say(failed[-1])
            else:
                self.bytes_up += words.nbytes
        return failed

    def _checked_words(self, node: int, task: Task, answer: Answer | Error) -> np.ndarray:
        if isinstance(answer, Error):
            raise answer
        if type(answer.t) is not int or type(answer.attempt) is not int:
            raise Error(f"its round is {answer.t!r}, attempt {answer.attempt!r}")
        if (answer.t, answer.attempt) != (task.t, task.attempt):
            raise Error(f"it is of round {answer.t + 1}, attempt {answer.attempt}")
        if answer.identity != self.nodes[node].identity(self.experiment):
            raise Error("it has another identity: software, data or experiment changed")
        words = answer.words
        if type(words) is not np.ndarray or words.dtype != np.int64 or words.ndim != 1:
            raise Error(f"a {getattr(words, 'dtype', type(words).__name__)} array {getattr(words, 'shape', '')}")
        if not (words.flags.c_contiguous and words.flags.aligned):
            raise Error("an array with gaps")
        return words

    def _check_hello(self, number: int) -> None:
        hello, first = self.nodes[number], self.nodes[min(self.nodes)]
        if self._expected is not None:
            facts = {"version": self._expected.version, "commit": self._expected.commit}
            facts["data_sha256"] = self._expected.data_sha256
        else:
            facts = {"version": _core.version, "commit": _core.commit, "data_sha256": ""}
        facts |= {"device": first.device, "arithmetic": first.arithmetic}
        for name, wanted in facts.items():
            if (found := getattr(hello, name)) != wanted:
                raise Error(f"node {number}: its {name} is {found!r}, expected {wanted!r}")
        if self.masked and len(hello.public_key) != masks.KEY_BYTES:
            raise Error(f"node {number}: has no key for masks")

    def _count_images(self) -> list[int]:
        """Of each client, in the order of their numbers."""
        by_client = {hello.client: (number, hello) for number, hello in self.nodes.items()}
        if sorted(by_client) != list(range(len(self.nodes))):
            raise Error(f"nodes: their client numbers must be 0 to {len(self.nodes) - 1}, each once")
        for number, hello in by_client.values():
            if not 1 <= hello.images <= self.max_images:
                raise Error(f"node {number}: {hello.images} images, from 1 to {self.max_images} are allowed")
        return [by_client[client][1].images for client in sorted(by_client)]

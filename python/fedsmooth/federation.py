"""A federation over any platform that carries messages, such as Flower (see examples/flower).

A node gets one message per round, whatever the number of its clients, and answers with integers: the
fixed-point sums of its clients' weights. Integers add up to the same bits in any order, so the model is
the one that fs.train() trains, for any number of nodes.

    node = Node(experiment)                                     # on each node
    server = Server(experiment, {1: node.hello()}, send)        # send: {node: Task} -> {node: Answer}
    run = server.train("runs/federated")
"""

import json
import os
import pathlib
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from . import _core
from ._core import Error
from ._members import MAX_IMAGES, call, check_masked, choose_nodes, fewest_masked, groups_of
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
    "call",
    "change_experiment",
    "choose_nodes",
    "classes_of",
    "groups_of",
    "own_images",
    "read_experiment",
    "rename_labels",
    "section",
]

MAX_GIVEN_UP = 3  # masked rounds in a row given up after nodes were asked; the next one ends a run without groups
MAX_FAILURES = 3  # without masks: failures in a row after which a private node is not asked again


@dataclass
class _Part:
    """A round while its nodes are asked."""

    round: _core.AskedRound
    total: _core.RoundSum
    tasks: dict[int, Task] = field(default_factory=dict)
    words: np.ndarray | None = None  # the sum of its answers, empty if it was given up; None: not ended


class Server:
    """The server's side of a federation: trains by nodes that `send` reaches.

    nodes: the Hello of each node, by its number. Raises an Error for a node that cannot take part; choose_nodes()
        leaves such nodes out.
    send: a function from {node: Task} to {node: Answer}. A node that fails is left out, or has the reason instead of
        an Answer, and a node whose answer cannot be read has an Error.
    private: every node holds images of its own and is one client.
    masked: pairwise masks hide every node's sums; only their total is seen. A round needs two nodes, or three in each
        of several groups. Without groups, a run ends if the total is lost in more than MAX_GIVEN_UP rounds in a row.
    failures: if nodes fail in a round, "drop" leaves their clients out of it, or under masks gives the round up: the
        weights stay; "again", not under masks, asks the nodes that are left for these clients; "stop" ends the run.
    min_nodes: if fewer private nodes are left, a run without groups ends.
    max_images: the most images that a private node may say it has.
    say: called with each line that a user should see, such as a failure or a round that is given up.
    Without masks, a private node that failed is asked again in the next round, until it has failed MAX_FAILURES times
    in a row. Under masks, or without images of its own, a node that failed is not asked again, nor is any node whose
    answer was refused. In a run of several groups, no node ends the run: a round that cannot be summed is given up for
    its group. `failed` has the reasons of all failures by node, `lost` and `refused` have the reason why a node is not
    asked again, and `given_up` has the rounds that were given up, counted from 1.
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
        min_nodes: int = 1,
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
        _, others = choose_nodes(experiment, nodes, private=private, masked=masked, max_images=max_images)
        if others:
            raise Error("; ".join(others.values()))
        self._groups, self._fewest = groups_of(experiment), fewest_masked(experiment)
        if self._groups > 1 and failures == "stop":
            raise Error("failures='stop': one node could end the training of all groups; use drop")
        if masked:
            check_masked(experiment, nodes)
        self.experiment, self.nodes, self._send, self._say = experiment, dict(nodes), send, say
        self.private, self.masked, self.failures, self._min_nodes = private, masked, failures, min_nodes
        self.failed: dict[int, list[str]] = {}
        self.lost: dict[int, str] = {}
        self.refused: dict[int, str] = {}
        self.given_up: list[int] = []
        self._given_up_in_a_row = 0
        self._failed_in_a_row: dict[int, int] = {}
        self.messages = 0
        self.bytes_down = self.bytes_up = 0

    def train(
        self,
        out: str | os.PathLike[str],
        *,
        resume: bool = False,
        on_round: Callable[[_core.Round], Any] | None = None,
        before_round: Callable[[_core.AskedRound], Any] | None = None,
    ) -> Run:
        """Trains into the run folder `out`, as fs.train() does, and writes report() to its federation.json.
        before_round is called with every round before its nodes are asked; the round's `model` is the one that
        the rounds so far have trained."""
        first = self.nodes[min(self.nodes)]
        folder = pathlib.Path(out)

        def ask(rounds: list[_core.AskedRound]) -> list[np.ndarray]:
            for round in rounds:
                if before_round is not None:
                    before_round(round)
            return self.ask(rounds)

        run = _core.federate(
            self._fitting_experiment(),
            ask,
            first.device,
            first.arithmetic,
            self._count_images(),
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
        """Returns the numbers of messages and bytes so far, and `failed`, `lost`, `refused` and `given_up`."""
        return {
            "messages": self.messages,
            "bytes_to_nodes": self.bytes_down,
            "bytes_from_nodes": self.bytes_up,
            "failed": self.failed,
            "lost": self.lost,
            "refused": self.refused,
            "given_up": self.given_up,
        }

    def ask(self, rounds: Sequence[_core.AskedRound]) -> list[np.ndarray]:
        """Returns the sum of the answers to each round, one round for each group. Clients without an answer count as
        dropped. The sum of a round that is given up is empty. Nodes are asked for all rounds at once."""
        parts = [_Part(round, _core.RoundSum(round)) for round in rounds]
        attempt = 0
        while still := [part for part in parts if part.words is None]:
            for part in still:
                self._plan(part, attempt)
            answers = self._exchange(still)
            for part in still:
                if part.words is None:
                    self._take(part, answers)
            attempt += 1
        return [part.words for part in parts if part.words is not None]

    def _plan(self, part: _Part, attempt: int) -> None:
        """Decides which node is asked for which clients, or gives the round up before any node is asked."""
        round, left = part.round, self._left()
        if self._groups == 1 and self.private and len(left) < self._min_nodes:
            raise Error(f"round {round.t + 1}: {len(left)} nodes are left of {len(self.nodes)}; {self._reasons()}")
        if self._groups == 1 and self.masked and len(left) < self._fewest:
            raise Error(f"round {round.t + 1}: {len(left)} nodes are left, and masks need {self._fewest}")
        asked = self._deal([k for k in round.clients if k not in set(part.total.clients)])
        part.tasks = {}
        if self.masked and len(asked) < self._fewest:
            part.words = self._give_up(round, f"{len(asked)} of its nodes are left, and masks need {self._fewest}")
            return
        masked = sorted(asked) if self.masked else []
        keys, named = [self.nodes[n].public_key for n in masked], [format_clients(asked[n]) for n in masked]
        weights = round.weights
        for node, clients in asked.items():
            part.tasks[node] = Task(round.t, attempt, round.total, clients, weights, keys, named)

    def _exchange(self, parts: Sequence[_Part]) -> Mapping[int, Any]:
        tasks = {node: task for part in parts for node, task in part.tasks.items()}
        self.messages += len(tasks)
        self.bytes_down += sum(task.weights.nbytes for task in tasks.values())
        return self._send(tasks) if tasks else {}

    def _take(self, part: _Part, answers: Mapping[int, Any]) -> None:
        """Adds the answers, and ends the round unless other nodes are to be asked for the missing clients."""
        round = part.round
        failed = self._add_answers(part, answers)
        if failed and self.failures == "stop":
            raise Error(f"round {round.t + 1}: {'; '.join(failed)}")
        if failed and self.masked:  # a second total, without the failed nodes, would show their sums
            part.words = self._give_up_in_a_row(round, "masks need every answer")
        elif self.private and not part.total.clients:
            part.words = self._give_up(round, "no node answered")
        elif not failed or self.failures == "drop":
            part.words = self._sum(part)

    def _sum(self, part: _Part) -> np.ndarray:
        try:
            words = part.total.total()
        except Error as error:
            if not self.masked or self.failures == "stop":
                raise
            why = f"the total means nothing ({error}), and masks hide whose words are wrong"
            return self._give_up_in_a_row(part.round, why)
        self._given_up_in_a_row = 0
        return words

    def _give_up_in_a_row(self, round: _core.AskedRound, why: str) -> np.ndarray:
        self._given_up_in_a_row += 1
        if self._groups == 1 and self._given_up_in_a_row > MAX_GIVEN_UP:
            raise Error(f"round {round.t + 1}: {why}; so were {MAX_GIVEN_UP} rounds before it given up")
        return self._give_up(round, why)

    def _give_up(self, round: _core.AskedRound, why: str) -> np.ndarray:
        self.given_up.append(round.t + 1)
        of_group = f" of group {self._group_of(round.clients[0])}" if self._groups > 1 else ""
        self._say(f"round {round.t + 1}{of_group} is given up: {why}; the weights stay")
        return np.zeros(0, np.int64)

    def _deal(self, clients: list[int]) -> dict[int, list[int]]:
        """Returns which clients each node runs."""
        if self.private:
            numbers = {hello.client: node for node, hello in self._left().items()}
            return {numbers[k]: [k] for k in clients if k in numbers}
        nodes = sorted(self._left())
        return {node: clients[i :: len(nodes)] for i, node in enumerate(nodes) if clients[i :: len(nodes)]}

    def _left(self) -> dict[int, Hello]:
        return {n: hello for n, hello in self.nodes.items() if n not in self.lost and n not in self.refused}

    def _add_answers(self, part: _Part, answers: Mapping[int, Any]) -> list[str]:
        """Adds the answers to the total, and returns the failures and refusals, in words."""
        failed = []
        for node, task in part.tasks.items():
            answer = answers.get(node, "nothing came")
            if not isinstance(answer, (Answer, Error)):
                failed.append(self._note_failure(node, task.t, str(answer)))
                continue
            try:
                words = self._checked_words(node, task, answer)
                (part.total.add_masked if self.masked else part.total.add)(task.clients, words)
            except Error as error:
                self.refused[node] = f"round {task.t + 1}: {error}"
                failed.append(f"the answer of {self._call(node)} is refused: {error}")
                self._say(failed[-1])
            else:
                self._failed_in_a_row.pop(node, None)
                self.bytes_up += words.nbytes
        return failed

    def _note_failure(self, node: int, t: int, why: str) -> str:
        reason, said = f"round {t + 1}: {why}", f"{self._call(node)} did not answer in round {t + 1}: {why}"
        self.failed.setdefault(node, []).append(reason)
        self._failed_in_a_row[node] = self._failed_in_a_row.get(node, 0) + 1
        if not self.private or self.masked or self._failed_in_a_row[node] >= MAX_FAILURES:
            self.lost[node] = reason
            self._say(f"{said}; it is not asked again")
        else:
            self._say(said)
        return f"{self._call(node)} did not answer: {why}"

    def _call(self, node: int) -> str:
        return call(node, self.nodes[node].name)

    def _group_of(self, client: int) -> int:
        return _core.group_of(client, self._groups, tomllib.loads(self.experiment)["seed"])

    def _reasons(self) -> str:
        return "; ".join(f"{self._call(node)}: {why}" for node, why in (self.lost | self.refused).items())

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

    def _count_images(self) -> list[int]:
        """Returns the number of images of each client; 0 for a client number that no node has."""
        if not self.private:
            return []
        counts = {hello.client: hello.images for hello in self.nodes.values()}
        return [counts.get(client, 0) for client in range(max(counts) + 1)]

    def _fitting_experiment(self) -> str:
        """Returns the experiment, without groups with at most as many clients in a round as there are private nodes."""
        wanted, clusters = (
            section(self.experiment, name)[key]
            for name, key in (("train", "clients_per_round"), ("server", "clusters"))
        )
        fitting = len(self.nodes) - len(self.nodes) % clusters
        if not self.private or self._groups > 1 or wanted <= len(self.nodes) or fitting == 0:
            return self.experiment
        self._say(f"train.clients_per_round={wanted}, and {len(self.nodes)} nodes are here: {fitting} a round")
        return change_experiment(self.experiment, {"train.clients_per_round": fitting})

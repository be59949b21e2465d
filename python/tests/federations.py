"""Federations in one process, for tests."""

import dataclasses

from fedsmooth import masks
from fedsmooth.federation import Node, Server, section

OVERRIDES = {"data.augment": True, "train.clients_per_round": 5, "train.server_momentum": 0.3}


def files_of(experiment):
    return {"data.root": section(experiment, "data")["root"]}


def open_node(experiment, masked=False):
    """On the machine of the server, whose files it may open."""
    return Node(experiment, files_of(experiment), private_key=masks.new_key() if masked else b"", threads=1)


def open_nodes(experiment, count, masked=False):
    return {n: open_node(experiment, masked) for n in range(1, count + 1)}


def make_server(experiment, nodes, change=lambda node, task, answer: answer, **options):
    """`change` makes of a node's answer what arrives; None: nothing does."""

    def send(tasks):
        answers = {n: change(n, task, nodes[n].run(task)) for n, task in tasks.items()}
        return {n: answer for n, answer in answers.items() if answer is not None}

    return Server(experiment, {n: node.hello() for n, node in nodes.items()}, send, **options)


def unmasked(task):
    return dataclasses.replace(task, public_keys=[], assignment=[])


def lose(number, t):
    return lambda node, task, answer: None if (node, task.t) == (number, t) else answer


def fail(number, rounds, why="it crashed"):
    return lambda node, task, answer: why if node == number and task.t in rounds else answer


def open_private(experiment, apart, masked=False):
    data, names, _ = apart
    return {
        10 + client: Node(
            experiment,
            images=images,
            labels=labels,
            class_names=names,
            client=client,
            private_key=masks.new_key() if masked else b"",
        )
        for client, (images, labels) in enumerate(data)
    }

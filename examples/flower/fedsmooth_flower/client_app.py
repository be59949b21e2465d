"""A node's side. Flower starts a fresh process for every message; what must last is in context.state.

Node configuration: `client` (or Flower's `partition-id`), the node's number; `name`, which the server's messages have;
and for images of its own `data` and `root`, a source that fs.load_data() knows; its training half is used. Otherwise
`root` is where this machine has the experiment's data, and `partition` the file that lists which client has which
image, if the experiment uses one. A node opens no file that only the server names.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from logging import ERROR
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common import log

from fedsmooth import Error, _core, masks
from fedsmooth.federation import Node, rename_labels
from fedsmooth_flower import records

app = ClientApp()


@app.query()
def hello(message: Message, context: Context) -> Message:
    """What this node is, or why it cannot take part: the full reason goes to its own log, not to the server."""
    here = context.node_config
    try:
        reply = records.from_hello(replace(open_node(message, context).hello(), name=name(here)))
    except Exception as error:
        reply = refusal(error, here)
        reply["node"] = ConfigRecord({"name": name(here)})
    return Message(reply, reply_to=message)


@app.train()
def train(message: Message, context: Context) -> Message:
    """A node's part of a round, or why there is none, as in hello()."""
    try:
        node = open_node(message, context)
        answer = node.run(records.to_task(message.content))
    except Exception as error:
        return Message(refusal(error, context.node_config), reply_to=message)
    if "masks" in context.state:
        context.state["masks"]["answered"] = node.answered
    return Message(records.from_answer(answer), reply_to=message)


def refusal(error: Exception, here: Mapping[str, Any]) -> RecordDict:
    """An answer that says why there is none. Of an exception other than fedsmooth's Error, whose text may say
    anything, the server hears the type alone."""
    log(ERROR, "this node cannot take part", exc_info=error)
    told = str(error) if isinstance(error, Error) else f"{type(error).__name__}; its own log says more"
    return records.pack({"refusal": without_paths(told, str(here.get("root", "")))})


def open_node(message: Message, context: Context) -> Node:
    setup, here = message.content["config"], context.node_config
    kept = masks_of_run(context) if setup["masked"] else {}
    if not setup["private"]:
        files = {"data.root": "root", "partition.file": "partition"}
        return Node(setup["experiment"], {key: here[name] for key, name in files.items() if name in here}, **kept)
    if "data" not in here:
        raise Error("node-config: data and root must say where this node's own images are")
    images, labels, names = _core.load_data(here["data"], here.get("root", "data"), "train")
    there = list(setup["class_names"])
    return Node(
        setup["experiment"],
        images=images,
        labels=rename_labels(labels, names, there),
        class_names=there,
        client=number(here),
        **kept,
    )


def name(config: Mapping[str, Any]) -> str:
    return str(config.get("name", f"partition {config.get('client', config.get('partition-id', -1))}"))


def without_paths(reason: str, root: str) -> str:
    """A reason as the server may hear it: where things are on this machine is not its business."""
    if root:
        reason = reason.replace(root, "...")
    return re.sub(r"(?<![\w.])/[^\s:;,'\"]+", "...", reason)


def number(config: Mapping[str, Any]) -> int:
    return int(config.get("client", config.get("partition-id", -1)))


def masks_of_run(context: Context) -> dict[str, Any]:
    """This run's private key, made with its first message, and the last round that was answered. Neither leaves the
    node."""
    if "masks" not in context.state:
        context.state["masks"] = ConfigRecord({"private_key": masks.new_key(), "answered": -1})
    return dict(context.state["masks"])

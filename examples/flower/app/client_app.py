"""A node's side. Flower starts a fresh process for every message; what must last is in context.state.

Node configuration: `client` (or Flower's `partition-id`), the node's number, and for images of its own `data`
and `root`, a source that fs.load_data() knows; its training half is used. Otherwise `root` is where this
machine has the experiment's data, if that is not where the server has them.
"""

from typing import Any

from flwr.app import ConfigRecord, Context, Message
from flwr.clientapp import ClientApp

from app import records
from fedsmooth import Error, _core, masks
from fedsmooth.federation import Node, rename_labels

app = ClientApp()


@app.query()
def hello(message: Message, context: Context) -> Message:
    return Message(records.from_hello(open_node(message, context).hello()), reply_to=message)


@app.train()
def train(message: Message, context: Context) -> Message:
    task = records.to_task(message.content)
    return Message(records.from_answer(open_node(message, context).run(task)), reply_to=message)


def open_node(message: Message, context: Context) -> Node:
    setup, here = message.content["config"], context.node_config
    key = private_key(context) if setup["masked"] else b""
    if not setup["private"]:
        overrides = {"data.root": here["root"]} if "root" in here else {}
        return Node(setup["experiment"], overrides, private_key=key)
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
        private_key=key,
    )


def number(config: dict[str, Any]) -> int:
    return int(config.get("client", config.get("partition-id", -1)))


def private_key(context: Context) -> bytes:
    """This run's, made with its first message. It never leaves the node."""
    if "masks" not in context.state:
        context.state["masks"] = ConfigRecord({"private_key": masks.new_key()})
    return context.state["masks"]["private_key"]

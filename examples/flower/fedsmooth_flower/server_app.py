"""The server's side: waits for its nodes, trains by them, certifies the model."""

import math
import pathlib
import shlex
import time
from logging import INFO
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.common import log
from flwr.serverapp import Grid, ServerApp

import fedsmooth as fs
from fedsmooth import federation
from fedsmooth_flower import records

app = ServerApp()
POLL, TELL_EVERY = 0.1, 10.0  # seconds


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    experiment = read_experiment(config)
    setup = {"experiment": experiment, "private": config["private"], "masked": config["masked"], "class_names": []}
    if config["private"]:
        setup["class_names"] = federation.classes_of(experiment)
    nodes = greet(grid, int(config["nodes"]), setup, float(config["timeout"]))
    server = federation.Server(
        experiment,
        nodes,
        lambda tasks: send(grid, tasks, setup, float(config["timeout"])),
        private=config["private"],
        masked=config["masked"],
        failures=config["failures"],
        max_images=config["max-images"],
        say=say,
    )
    train_and_certify(server, config)


def read_experiment(config: dict[str, Any]) -> str:
    path = config["experiment"] or pathlib.Path(__file__).parent / "experiment.toml"
    pairs = dict(pair.split("=", 1) for pair in shlex.split(str(config["set"])))
    return federation.read_experiment(path, pairs)


def train_and_certify(server: federation.Server, config: dict[str, Any]) -> None:
    every, out = int(config["certify-every"]), pathlib.Path(config["out"])
    started = time.monotonic()

    def before_round(round: Any) -> None:
        if every > 0 and round.t > 0 and round.t % every == 0:
            certify(write_run(out / f"round-{round.t}", server.experiment, round))

    def on_round(row: Any) -> None:
        lost = f", {row.dropped} clients dropped" if row.dropped else ""
        say(f"round {row.round}: loss {row.loss:.4f}, {row.seconds:.1f} s{lost}")

    run = server.train(out, resume=config["resume"], on_round=on_round, before_round=before_round)
    say(f"{run.rounds} rounds in {time.monotonic() - started:.1f} s: {server.report()}")
    if every >= 0:
        certify(run.folder)
    say(f"model {run.model_sha256} in {run.folder}")


def write_run(folder: pathlib.Path, experiment: str, round: Any) -> pathlib.Path:
    """The run folder of the rounds so far."""
    folder.mkdir(exist_ok=True)
    (folder / "experiment.toml").write_text(federation.change_experiment(experiment, {"train.rounds": round.t}))
    fs.Model(round.model).save(folder / "model.safetensors")
    (folder / "DONE").touch()
    return folder


def certify(folder: pathlib.Path) -> None:
    """As `fedsmooth certify FOLDER --resume`: with all of the experiment's [certify]."""
    table = fs.certify_run(folder, resume=True)
    experiment = (folder / "experiment.toml").read_text()
    sigma = federation.section(experiment, "smoothing")["sigma"]
    right, near, far = (f"{table.certified_accuracy(radius):.1%}" for radius in (0.0, sigma, 2 * sigma))
    guessing = 1 / len(federation.classes_of(experiment))
    say(f"{folder.name}: {right} of {len(table)} test images get the right answer; guessing gets {guessing:.1%}")
    say(
        f"certified: for {near} no change up to l2 length {sigma:g} alters the right answer, "
        f"for {far} none up to {2 * sigma:g}"
    )


def greet(grid: Grid, count: int, setup: dict[str, Any], timeout: float) -> dict[int, federation.Hello]:
    """Waits until `count` nodes are there, and hears what they are. Nodes that cannot take part are named, and the
    others go on if they are `count`; else an Error names all of them."""
    replies = exchange(grid, {node: (records.pack(setup), "query") for node in wait_for(grid, count, timeout)}, timeout)
    nodes, refused = {}, []
    for node, reply in sorted(replies.items()):
        try:
            nodes[node] = to_hello(node, reply)
        except fs.Error as error:
            refused.append(str(error))
            say(f"left out: {error}")
    if len(nodes) < count:
        raise fs.Error(f"nodes: {len(nodes)} of {count} can take part; {'; '.join(refused)}")
    return nodes


def wait_for(grid: Grid, count: int, timeout: float) -> list[int]:
    """The numbers of the nodes that are connected, once they are `count`."""
    end, told = time.monotonic() + timeout, -math.inf
    while len(ids := sorted(grid.get_node_ids())) < count:
        if time.monotonic() > end:
            raise fs.Error(f"nodes: {len(ids)} are connected, {count} are wanted")
        if time.monotonic() - told >= TELL_EVERY:
            say(f"waiting for {count} nodes, {len(ids)} {'is' if len(ids) == 1 else 'are'} here")
            told = time.monotonic()
        time.sleep(POLL)
    return ids


def to_hello(node: int, reply: Any) -> federation.Hello:
    """What a node says of itself; an Error that names it if it cannot take part."""
    if not isinstance(reply, RecordDict):
        raise fs.Error(f"node {node}: it failed; its own log says why")
    said = str(reply["node"].get("name", "")) if "node" in reply else ""
    name = f"{said[:60]} (node {node})" if said else f"node {node}"
    refusal = reply["config"].get("refusal") if "config" in reply else "its answer is empty"
    if refusal is not None:
        raise fs.Error(f"{name}: {str(refusal)[:300]}")
    return records.to_hello(reply)


def send(grid: Grid, tasks: dict[int, federation.Task], setup: dict[str, Any], timeout: float) -> dict[int, Any]:
    """A message to each node; what came back in time."""
    replies = exchange(grid, {n: (records.from_task(t, setup), "train") for n, t in tasks.items()}, timeout)
    return {node: to_answer(reply) if isinstance(reply, RecordDict) else reply for node, reply in replies.items()}


def to_answer(reply: RecordDict) -> Any:
    try:
        return records.to_answer(reply)
    except fs.Error as error:
        return error


def exchange(grid: Grid, contents: dict[int, tuple[RecordDict, str]], timeout: float) -> dict[int, Any]:
    """Replies by node; a str where Flower reports an error. As grid.send_and_receive(), which looks every three
    seconds only."""
    gone = set(contents) - set(grid.get_node_ids())
    asked = [node for node in contents if node not in gone]
    messages = [Message(contents[n][0], dst_node_id=n, message_type=contents[n][1], ttl=timeout) for n in asked]
    waiting = dict(zip(grid.push_messages(messages), asked, strict=True))  # who is asked by which message
    replies: dict[int, Any] = {node: "it is not connected" for node in gone}
    end = time.monotonic() + timeout
    while waiting and time.monotonic() < end:
        for reply in grid.pull_messages(list(waiting)):
            node = waiting.pop(reply.metadata.reply_to_message_id, None)  # whatever the reply says of its sender
            if node is not None:
                replies[node] = reply.error.reason if reply.has_error() else reply.content
        time.sleep(POLL)
    return replies


def say(line: str) -> None:
    log(INFO, line)

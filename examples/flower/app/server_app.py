"""The server's side: waits for its nodes, trains by them, certifies the model."""

import pathlib
import shlex
import time
from collections.abc import Iterable
from logging import INFO
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.common import log
from flwr.serverapp import Grid, ServerApp

import fedsmooth as fs
from app import records
from fedsmooth import federation

app = ServerApp()
POLL = 0.1  # seconds


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
            certify(fs.Model(round.model), server.experiment, out / f"certificates-round-{round.t}.tsv")

    def on_round(row: Any) -> None:
        lost = f", {row.dropped} clients dropped" if row.dropped else ""
        say(f"round {row.round}: loss {row.loss:.4f}, {row.seconds:.1f} s{lost}")

    run = server.train(out, resume=config["resume"], on_round=on_round, before_round=before_round)
    say(f"{run.rounds} rounds in {time.monotonic() - started:.1f} s: {server.report()}")
    if every >= 0:
        certify(run.model(), server.experiment, out / "certificates.tsv")
    say(f"model {run.model_sha256} in {run.folder}")


def certify(model: fs.Model, experiment: str, out: pathlib.Path) -> None:
    """With the experiment's [certify], into the table that `fedsmooth certify` writes."""
    options = federation.section(experiment, "certify")
    sigma = None if options["sigma"] == "auto" else options["sigma"]
    table = fs.certify(
        model,
        federation.test_set(experiment),
        every=options["every"],
        limit=options["limit"],
        n0=options["n0"],
        n=options["n"],
        alpha=options["alpha"],
        sigma=sigma,
        only_correct=options["only_correct"],
        name=federation.section(experiment, "data")["name"],
        out=out,
        resume=True,
    )
    found = ", ".join(f"{table.certified_accuracy(r):.3f} at {r}" for r in (0.0, 0.25, 0.5))
    say(f"certified accuracy: {found} ({len(table)} images, {out.name})")


def greet(grid: Grid, count: int, setup: dict[str, Any], timeout: float) -> dict[int, federation.Hello]:
    """Waits until `count` nodes are there, and hears what they are. An Error names one that cannot take part."""
    end = time.monotonic() + timeout
    while len(ids := sorted(grid.get_node_ids())) < count:
        if time.monotonic() > end:
            raise fs.Error(f"nodes: {len(ids)} are connected, {count} are wanted")
        time.sleep(POLL)
    replies = exchange(grid, {node: (records.pack(setup), "query") for node in ids}, timeout)
    silent = [node for node in ids if not isinstance(replies.get(node), RecordDict)]
    if silent:
        raise fs.Error(f"node {silent[0]}: {replies.get(silent[0], 'no answer')}")
    return {node: records.to_hello(reply) for node, reply in replies.items()}


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
    messages = [
        Message(content, dst_node_id=node, message_type=kind, ttl=timeout)
        for node, (content, kind) in contents.items()
        if node not in gone
    ]
    waiting = set(grid.push_messages(messages))
    replies: dict[int, Any] = {node: "it is not connected" for node in gone}
    end = time.monotonic() + timeout
    while waiting and time.monotonic() < end:
        for reply in pull(grid, waiting):
            waiting.discard(reply.metadata.reply_to_message_id)
            replies[reply.metadata.src_node_id] = reply.error.reason if reply.has_error() else reply.content
        time.sleep(POLL)
    return replies


def pull(grid: Grid, ids: set[str]) -> Iterable[Message]:
    return grid.pull_messages(list(ids))


def say(line: str) -> None:
    log(INFO, line)

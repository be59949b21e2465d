"""The server's side: waits for its nodes, trains by them, certifies the model."""

import math
import pathlib
import shlex
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from logging import INFO
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.common import log
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid, ServerApp

import fedsmooth as fs
from fedsmooth import federation
from fedsmooth_flower import records

app = ServerApp()
POLL, TELL_EVERY = 0.1, 10.0  # seconds
MAX_REASON = 300  # characters of what a node says


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    experiment = read_experiment(config)
    if federation.groups_of(experiment) > 1 and int(config["certify-every"]) > 0:
        raise fs.Error(f"certify-every={config['certify-every']}: several groups are certified after training; use 0")
    setup = {"experiment": experiment, "private": config["private"], "masked": config["masked"], "class_names": []}
    if config["private"]:
        setup["class_names"] = federation.classes_of(experiment)
    nodes = greet(grid, config, setup)
    server = federation.Server(
        experiment,
        nodes,
        lambda tasks: send(grid, tasks, setup, float(config["timeout"])),
        private=config["private"],
        masked=config["masked"],
        failures=config["failures"],
        min_nodes=fewest(config),
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
    started, groups, rows = time.monotonic(), federation.groups_of(server.experiment), defaultdict(list)

    def before_round(round: Any) -> None:
        if every > 0 and round.t > 0 and round.t % every == 0:
            certify(write_run(out / f"round-{round.t}", server.experiment, round))

    def on_round(row: Any) -> None:
        rows[row.round].append(row)
        if len(rows[row.round]) == groups:
            say(describe(rows.pop(row.round)))

    run = server.train(out, resume=config["resume"], on_round=on_round, before_round=before_round)
    say(f"{run.rounds} rounds in {time.monotonic() - started:.1f} s: {server.report()}")
    if every >= 0:
        certify(run.folder)
    say(f"model {run.model_sha256} in {run.folder}")


def describe(rows: Sequence[Any]) -> str:
    """A round, of one group or of several."""
    losses = [row.loss for row in rows if not math.isnan(row.loss)]
    loss = sum(losses) / len(losses) if losses else math.nan
    dropped = sum(row.dropped for row in rows)
    lost = f", {dropped} client{'s' if dropped > 1 else ''} dropped" if dropped else ""
    of_groups = f" of {len(rows)} groups" if len(rows) > 1 else ""
    return f"round {rows[0].round}{of_groups}: loss {loss:.4f}, {max(row.seconds for row in rows):.1f} s{lost}"


def write_run(folder: pathlib.Path, experiment: str, round: Any) -> pathlib.Path:
    """Writes the rounds so far as a run folder, and returns it."""
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
    malicious = federation.section(experiment, "certify")["malicious"]
    whatever = f", whatever {malicious} malicious clients do" if malicious else ""
    say(f"{folder.name}: {right} of {len(table)} test images get the right answer; guessing gets {guessing:.1%}")
    say(
        f"certified{whatever}: for {near} no change up to l2 length {sigma:g} alters the right answer, "
        f"for {far} none up to {2 * sigma:g}"
    )


def fewest(config: Mapping[str, Any]) -> int:
    """The fewest nodes with which a run continues."""
    return min(int(config["nodes"]), int(config["min-nodes"]))


def greet(grid: Grid, config: Mapping[str, Any], setup: dict[str, Any]) -> dict[int, federation.Hello]:
    """Waits for nodes, and asks each what it is. Those that cannot take part are named, and the others continue if
    they are enough; else an Error names all of them."""
    timeout = float(config["timeout"])
    connected = wait_for(grid, int(config["nodes"]), fewest(config), timeout)
    replies = exchange(grid, {node: (records.pack(setup), "query") for node in connected}, timeout)
    said, refused = {}, []
    for node in connected:
        try:
            said[node] = to_hello(node, replies.get(node, "it did not answer in time"))
        except fs.Error as error:
            refused.append(str(error))
    nodes, others = federation.choose_nodes(
        setup["experiment"],
        said,
        private=setup["private"],
        masked=setup["masked"],
        max_images=int(config["max-images"]),
    )
    refused += others.values()
    for reason in refused:
        say(f"left out: {reason}")
    if len(nodes) < fewest(config):
        raise fs.Error(f"nodes: {len(nodes)} of {fewest(config)} can take part; {'; '.join(refused)}")
    return nodes


def wait_for(grid: Grid, count: int, least: int, timeout: float) -> list[int]:
    """Returns the numbers of the connected nodes, once there are `count`; after `timeout` seconds, if there are
    `least`, else an Error."""
    end, told = time.monotonic() + timeout, -math.inf
    while len(ids := sorted(grid.get_node_ids())) < count:
        here = f"{len(ids)} {'is' if len(ids) == 1 else 'are'} here"
        if time.monotonic() > end:
            if len(ids) < least:
                raise fs.Error(f"nodes: {len(ids)} are connected, {least} are wanted")
            say(f"no longer waiting for {count} nodes, {here}")
            break
        if time.monotonic() - told >= TELL_EVERY:
            say(f"waiting for {count} nodes, {here}")
            told = time.monotonic()
        time.sleep(POLL)
    return ids


def to_hello(node: int, reply: RecordDict | str) -> federation.Hello:
    """What a node says of itself; an Error that names it if it cannot take part."""
    if isinstance(reply, str):
        raise fs.Error(f"node {node}: {reply}")
    name = str(reply["node"].get("name", "")) if "node" in reply else ""
    told = refusal_in(reply) if "config" in reply else "its answer is empty"
    if told is None:
        return records.to_hello(reply)
    raise fs.Error(f"{federation.call(node, name)}: {told}")


def refusal_in(reply: RecordDict) -> str | None:
    """Why a node did not do what it was asked for, if it says so."""
    told = reply["config"].get("refusal") if "config" in reply else None
    return None if told is None else "".join(c if c.isprintable() else " " for c in str(told))[:MAX_REASON]


def send(grid: Grid, tasks: dict[int, federation.Task], setup: dict[str, Any], timeout: float) -> dict[int, Any]:
    """Sends each node its task, and returns what came back in time."""
    replies = exchange(grid, {n: (records.from_task(t, setup), "train") for n, t in tasks.items()}, timeout)
    return {node: reply if isinstance(reply, str) else to_answer(reply) for node, reply in replies.items()}


def to_answer(reply: RecordDict) -> federation.Answer | fs.Error | str:
    """A node's answer; why there is none, if it says so; an Error if it cannot be read."""
    if (told := refusal_in(reply)) is not None:
        return told
    try:
        return records.to_answer(reply)
    except fs.Error as error:
        return error


def exchange(grid: Grid, contents: dict[int, tuple[RecordDict, str]], timeout: float) -> dict[int, Any]:
    """Returns the replies by node; a str where Flower reports an error, or the node is gone. In place of
    grid.send_and_receive(), which looks only every three seconds."""
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
                replies[node] = in_words(reply.error.code) if reply.has_error() else reply.content
        time.sleep(POLL)
    return replies


def in_words(code: int) -> str:
    """Names an error of Flower's by its code. Its own reason may have paths of the node's machine."""
    known = {value: name for name, value in vars(ErrorCode).items() if isinstance(value, int)}
    return f"{known.get(code, 'unknown').lower().replace('_', ' ')}; its own log says more"


def say(line: str) -> None:
    log(INFO, line)

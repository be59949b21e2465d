"""SuperLink and SuperNodes for real, on loopback: `make test-flower`."""

import json
import re
import shutil
import struct
import time
import zlib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fedsmooth_flower import client_app, server_app
from flwr.app import ConfigRecord
from flwr.common.constant import ErrorCode
from loopback import APP, Loopback, Processes, is_open, make_certificates, make_node_key

import fedsmooth as fs
from fedsmooth import _core, federation
from fedsmooth.federation import Task

EXPERIMENT = APP / "fedsmooth_flower" / "experiment.toml"
SMALL = {"train.rounds": 2, "train.local.steps": 2, "certify.every": 400}
LOCAL_PORT = 39091  # of a SuperLink that flwr starts
SET = " ".join(f"{key}={value}" for key, value in SMALL.items())


@pytest.fixture(autouse=True)
def clock(request):
    start = time.monotonic()
    yield
    print(f"\n{request.node.name}: {time.monotonic() - start:.1f} s")


def trained_here(folder, changes=SMALL):
    start = time.monotonic()
    run = fs.train(EXPERIMENT, changes, out=folder / "here")
    print(f"the same in one process: {run.rounds} rounds in {time.monotonic() - start:.1f} s")
    return run.model_sha256


def print_times(printed):
    print(*re.findall(r"round \d+: .*|\d+ rounds in .*", printed), sep="\n")


def model_of(printed):
    found = re.search(r"model ([0-9a-f]{64})", printed)
    assert found, printed
    return found[1]


def readme_commands():
    return re.findall(r"^    (.+)$", (APP / "README.md").read_text(), re.MULTILINE)


def run_readme(tmp_path, superlink, nodes, run):
    """Commands as they stand there, in a copy of this folder; what the last one printed."""
    if is_open(8000 if superlink else LOCAL_PORT):
        pytest.skip("Flower's port is taken")
    shutil.copytree(APP, tmp_path / "examples" / "flower", ignore=shutil.ignore_patterns("__pycache__", "home", "runs"))
    home = tmp_path / "examples" / "flower" / "home"
    home.mkdir()
    shutil.copy(APP / "home" / "config.toml", home)
    export = next(line for line in readme_commands() if line.startswith("export "))
    with Processes(tmp_path) as all_of_it:
        if superlink:
            all_of_it.start("superlink", "bash", "-c", f"{export}; exec {superlink}")
            all_of_it.wait_for_port("superlink", 8000)
        for number, node in enumerate(nodes):
            all_of_it.start(f"node{number}", "bash", "-c", f"{export}; exec {node}")
        start = time.monotonic()
        ran = all_of_it.start("run", "bash", "-c", f"{export}; exec {run}").wait(timeout=600)
        assert ran == 0, all_of_it.log("run")
        printed = all_of_it.log("run")
        print(f"the run: {time.monotonic() - start:.1f} s")
    assert model_of(printed) == trained_here(tmp_path, {})
    assert (tmp_path / "runs" / "flower" / "certificates.tsv").exists()
    print_times(printed)
    return printed


def test_the_readme_s_simulation_learns(tmp_path):
    """One command, for which flwr starts a SuperLink of its own."""
    run = next(line for line in readme_commands() if "local-simulation" in line)
    printed = run_readme(tmp_path, None, [], run)
    right = re.search(r"flower: ([0-9.]+)% of \d+ test images get the right answer; guessing gets 10.0%", printed)
    assert float(right[1]) >= 30, printed


def test_the_readme_s_commands(tmp_path):
    superlink, *nodes, run = readme_commands()[-4:]
    run_readme(tmp_path, superlink, nodes, run)


def test_two_nodes_give_the_bits_of_train(tmp_path):
    with Loopback(tmp_path) as flower:
        flower.add_node(0)
        flower.add_node(1)
        start = time.monotonic()
        printed = flower.run(f'nodes=2 set="{SET} certify.seed=5 certify.noise=exact" out="run" certify-every=1')
        assert time.monotonic() - start < 90
    assert model_of(printed) == trained_here(tmp_path)
    assert "'messages': 4" in printed  # one for each node and round
    for folder in (tmp_path / "run", tmp_path / "run" / "round-1"):
        identity = json.loads((folder / "certificates.json").read_text())["identity"]
        assert (identity["seed"], identity["noise"]) == ("5", "exact")  # all of [certify] is passed on
        assert fs.read_certificates(folder).certified_accuracy(0) >= 0
    print_times(printed)


def test_three_nodes_under_masks_one_killed_in_a_round(tmp_path):
    with Loopback(tmp_path) as flower:
        nodes = [flower.add_node(n) for n in range(3)]
        run = flower.start_run(f'nodes=3 masked=true timeout=60.0 set="{SET}" out="run" certify-every=-1')
        flower.wait_for("node1", "Receiving: train message", count=2)
        flower.kill(nodes[1])
        assert run.wait(timeout=240) == 0
        printed = flower.log("run")
    assert "did not answer" in printed and "round 2 is given up" in printed
    assert model_of(printed) == trained_here(tmp_path, SMALL | {"train.rounds": 1})  # the weights stay


def format_png(image):
    """Bytes [3, H, W] as a PNG file."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    _, height, width = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(image.transpose(1, 2, 0)))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_own_images(folder, images, labels, names):
    """As an image folder, of which a node need not have every class."""
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        path = folder / "train" / names[label] / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(format_png(image))


def test_private_images_over_tls_by_authenticated_nodes(tmp_path):
    tls = make_certificates(tmp_path / "tls")
    images, labels, names = _core.load_data("shapes", "", "train")
    config = 'nodes=2 private=true masked=true out="run" certify-every=-1 ' + f'set="{SET} train.clients_per_round=2"'
    with Loopback(tmp_path / "flower", tls, authenticate=True) as flower:
        for n, held in enumerate((range(0, 40), range(40, 100))):
            write_own_images(tmp_path / f"own{n}", images[held], np.array(labels)[held], names)
            key = make_node_key(tmp_path / f"node{n}")
            flower.add_node(n, f'data="image-folder" root="{tmp_path / f"own{n}"}"', key=key)
        stranger = flower.add_node(2, key=make_node_key(tmp_path / "stranger"), register=False)
        printed = flower.run(config)
        assert stranger.wait(timeout=120) != 0 and "SuperNode ID" not in flower.log("node2")
    assert model_of(printed)
    assert not (tmp_path / "flower" / "run" / "clients.tsv").exists()


FRAGILE = """
try:
    from fedsmooth import federation
    honest = federation.Node.run
    def run(self, task):
        if task.t == 1:
            raise RuntimeError("/data/ward/patient-17.png: the disk is full")
        return honest(self, task)
    federation.Node.run = run
except ImportError:
    pass
"""


def test_bad_private_nodes_are_named_and_do_not_end_the_run(tmp_path):
    """One without images, and one that fails in round 2 of 3."""
    images, labels, names = _core.load_data("shapes", "", "train")
    (tmp_path / "fragile").mkdir()
    (tmp_path / "fragile" / "sitecustomize.py").write_text(FRAGILE)
    (tmp_path / "own3" / "train").mkdir(parents=True)
    with Loopback(tmp_path / "flower") as flower:
        for n, held in enumerate((range(0, 40), range(40, 100), range(100, 130))):
            write_own_images(tmp_path / f"own{n}", images[held], np.array(labels)[held], names)
        for n, name in enumerate("abcd"):
            config = f'name="hospital {name}" data="image-folder" root="{tmp_path / f"own{n}"}"'
            flower.add_node(n, config, python_path=tmp_path / "fragile" if n == 1 else None)
        printed = flower.run(f'nodes=4 private=true set="{SET} train.rounds=3" out="run" certify-every=-1')
    assert re.search(r"left out: hospital d \(node \d+\): ", printed)
    assert "4, and 3 nodes are here: 3 a round" in printed
    assert re.search(r"hospital b \(node \d+\) did not answer in round 2: RuntimeError; its own log", printed)
    assert re.findall(r"round (\d): .*1 client dropped", printed) == ["2"]
    assert model_of(printed) and str(tmp_path / "own") not in printed and "patient" not in printed


def test_private_nodes_train_groups(tmp_path):
    """Clients 0 to 3 in two groups, of which both have some."""
    assert {_core.group_of(client, 2, 0) for client in range(4)} == {1, 2}
    images, labels, names = _core.load_data("shapes", "", "train")
    with Loopback(tmp_path / "flower") as flower:
        for n in range(4):
            held = range(40 * n, 40 * n + 40)
            write_own_images(tmp_path / f"own{n}", images[held], np.array(labels)[held], names)
            flower.add_node(n, f'data="image-folder" root="{tmp_path / f"own{n}"}"')
        printed = flower.run(f'nodes=4 private=true set="{SET} groups.count=2 certify.n=100" out="run"')
    assert re.findall(r"round (\d) of 2 groups: loss", printed) == ["1", "2"]
    assert model_of(printed)
    for group in ("group-01", "group-02"):
        assert (tmp_path / "flower" / "run" / group / "DONE").exists()
    assert "test images get the right answer" in printed


class LyingGrid:
    """Both replies say that they are node 1's."""

    def get_node_ids(self):
        return [1, 2]

    def push_messages(self, messages):
        return [f"to {message}" for message in messages]

    def pull_messages(self, ids):
        metadata = [SimpleNamespace(src_node_id=1, reply_to_message_id=i) for i in [*ids, "to nobody"]]
        return [SimpleNamespace(metadata=m, content=m.reply_to_message_id, has_error=lambda: False) for m in metadata]


def test_an_answer_is_filed_under_the_message_that_it_answers(monkeypatch):
    content = server_app.records.pack({"any": 1})
    monkeypatch.setattr(server_app, "Message", lambda content, dst_node_id, **_: dst_node_id)
    found = server_app.exchange(LyingGrid(), {1: (content, "train"), 2: (content, "train")}, timeout=5.0)
    assert found == {1: "to 1", 2: "to 2"}


class SlowGrid:
    """Its second node comes late."""

    def __init__(self):
        self.asked = 0

    def get_node_ids(self):
        self.asked += 1
        return [1] if self.asked < 4 else [1, 2]


def test_the_server_says_for_whom_it_waits(monkeypatch):
    said = []
    monkeypatch.setattr(server_app, "say", said.append)
    monkeypatch.setattr(server_app, "POLL", 0.01)
    assert server_app.wait_for(SlowGrid(), 2, 2, timeout=10.0) == [1, 2]
    assert said == ["waiting for 2 nodes, 1 is here"]
    with pytest.raises(fs.Error, match="1 are connected, 3 are wanted"):
        server_app.wait_for(SlowGrid(), 3, 3, timeout=0.0)
    assert server_app.wait_for(SlowGrid(), 3, 1, timeout=0.0) == [1]
    assert said[-1] == "no longer waiting for 3 nodes, 1 is here"


HELLO = federation.Hello(_core.version, _core.commit, "cpu", "fp32", "", 10, 0, name="hospital a")


def refusing(name, why):
    content = server_app.records.pack({"refusal": why})
    content["node"] = ConfigRecord({"name": name})
    return content


def test_nodes_that_cannot_take_part_are_named_and_the_others_go_on(monkeypatch):
    said = []
    replies = {
        1: server_app.records.from_hello(HELLO),
        2: refusing("hospital b", "data: class 'x' is not one\nof the federation's"),
        3: server_app.in_words(ErrorCode.CLIENT_APP_CRASHED),
        5: server_app.records.from_hello(replace(HELLO, client=1, version="0.1", name="hospital e")),
    }
    setup = {"experiment": federation.read_experiment(EXPERIMENT), "private": True, "masked": False}
    config = {"nodes": 5, "min-nodes": 1, "timeout": 1.0, "max-images": 100}
    monkeypatch.setattr(server_app, "say", said.append)
    monkeypatch.setattr(server_app, "wait_for", lambda *_: [1, 2, 3, 4, 5])
    monkeypatch.setattr(server_app, "exchange", lambda *_: replies)
    assert server_app.greet(None, config, setup) == {1: HELLO}
    assert said == [
        "left out: hospital b (node 2): data: class 'x' is not one of the federation's",
        "left out: node 3: client app crashed; its own log says more",
        "left out: node 4: it did not answer in time",
        f"left out: hospital e (node 5): its version is '0.1', expected {_core.version!r}",
    ]
    with pytest.raises(fs.Error, match=r"1 of 2 can take part; hospital b .*; node 3: .*; node 4: .*; hospital e"):
        server_app.greet(None, config | {"min-nodes": 2}, setup)


class FailingGrid(SlowGrid):
    """Its node's app raises."""

    def push_messages(self, messages):
        return list(messages)

    def pull_messages(self, ids):
        error = SimpleNamespace(code=ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason="no file /data/ward 7/x.png")
        metadata = SimpleNamespace(reply_to_message_id=ids[0])
        return [SimpleNamespace(metadata=metadata, has_error=lambda: True, error=error)]


def test_the_server_repeats_no_reason_of_flower_s(monkeypatch):
    monkeypatch.setattr(server_app, "Message", lambda content, dst_node_id, **_: dst_node_id)
    found = server_app.exchange(FailingGrid(), {1: (None, "train")}, timeout=5.0)
    assert found == {1: "client app raised exception; its own log says more"}


def test_a_node_says_why_without_paths():
    def told(error):
        return client_app.refusal(error, {"root": "/data/ward 7"})["config"]["refusal"]

    assert told(fs.Error("/data/ward 7/train: no such folder")) == ".../train: no such folder"
    assert told(RuntimeError("/data/ward 7/patient.png")) == "RuntimeError; its own log says more"
    refused = server_app.to_answer(client_app.refusal(fs.Error("data: is gone"), {}))
    assert refused == "data: is gone"


def test_the_server_hears_no_paths_of_a_node():
    reason = "/data/ward 7/images/train: no such folder; /home/x/a.png: not an image"
    assert client_app.without_paths(reason, "/data/ward 7/images") == ".../train: no such folder; ...: not an image"
    assert client_app.without_paths("shapes: 3 of 4, and/or none", "") == "shapes: 3 of 4, and/or none"


def test_a_task_is_packed_without_a_copy_of_its_weights():
    weights = np.zeros(3, np.float32)
    assert server_app.records._values(Task(0, 0, 1, [0], weights))["weights"] is weights


HOSTILE = """
import dataclasses
try:
    from fedsmooth import federation
    honest = federation.Node.run
    def run(self, task):
        answer = honest(self, task)
        return dataclasses.replace(answer, words=answer.words * 2)
    federation.Node.run = run
except ImportError:
    pass
"""


def test_a_hostile_node_is_refused_and_the_others_continue(tmp_path):
    (tmp_path / "hostile").mkdir()
    (tmp_path / "hostile" / "sitecustomize.py").write_text(HOSTILE)
    with Loopback(tmp_path / "flower") as flower:
        flower.add_node(0)
        flower.add_node(1, python_path=tmp_path / "hostile")
        printed = flower.run(f'nodes=2 failures="again" set="{SET}" out="run" certify-every=-1')
    assert "is refused: a kept share" in printed
    assert model_of(printed) == trained_here(tmp_path)


CURIOUS = """
try:
    from fedsmooth import federation
    once = federation.Server._exchange
    def twice(self, parts):
        answers = once(self, parts)
        again = [a for a in once(self, parts).values() if not isinstance(a, federation.Answer)]
        self._say(f"asked again: {len(again)} refused")
        return answers
    federation.Server._exchange = twice
except ImportError:
    pass
"""


def test_nodes_do_not_answer_a_masked_round_twice(tmp_path):
    """Each message is answered by a fresh process: what a node remembers is in Flower's state of the run."""
    (tmp_path / "curious").mkdir()
    (tmp_path / "curious" / "sitecustomize.py").write_text(CURIOUS)
    flower = Loopback(tmp_path / "flower")
    flower.environment["PYTHONPATH"] = str(tmp_path / "curious")
    with flower:
        flower.add_node(0)
        flower.add_node(1)
        printed = flower.run(f'nodes=2 masked=true set="{SET} train.rounds=1" out="run" certify-every=-1')
        assert "asked again: 2 refused" in printed
        assert all("round 1 was answered already" in flower.log(f"node{n}") for n in (0, 1))
    assert model_of(printed) == trained_here(tmp_path, SMALL | {"train.rounds": 1})

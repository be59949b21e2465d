"""Server and nodes in one process: the same bits as fs.train(), and what no honest node sends is refused."""

import dataclasses

import numpy as np
import pytest
from federations import OVERRIDES, files_of, lose, make_server, open_node, open_nodes, unmasked

import fedsmooth as fs
from fedsmooth import _core, masks
from fedsmooth.federation import Node, Server, Task, change_experiment, read_experiment


@pytest.fixture(scope="module")
def experiment(experiment_file):
    return read_experiment(experiment_file, OVERRIDES)


@pytest.fixture(scope="module")
def here(experiment_file, tmp_path_factory):
    """The SHA-256 of the model that one process trains."""
    return fs.train(experiment_file, OVERRIDES, out=tmp_path_factory.mktemp("here") / "run").model_sha256


@pytest.fixture(scope="module")
def three(experiment):
    """Without masks, nodes keep nothing of a round, so that tests may share them."""
    return open_nodes(experiment, 3)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_any_number_of_nodes_gives_the_bits_of_train(experiment, here, tmp_path, count):
    server = make_server(experiment, open_nodes(experiment, count))
    assert server.train(tmp_path / "run").model_sha256 == here
    assert server.messages == 2 * min(count, 5)


@pytest.mark.parametrize("count", [2, 3])
def test_masks_leave_no_trace_in_the_result(experiment, here, tmp_path, count):
    pytest.importorskip("cryptography")
    plain, seen = open_nodes(experiment, count), []

    def look(node, task, answer):
        honest = plain[node].run(unmasked(task))
        seen.append(np.mean(answer.words == honest.words))
        return answer

    server = make_server(experiment, open_nodes(experiment, count, masked=True), look, masked=True)
    assert server.train(tmp_path / "run").model_sha256 == here
    assert max(seen) < 0.01  # what the server gets of one node has nothing in common with its words


def test_a_silent_node_s_clients_are_dropped_or_run_by_others_or_end_the_run(experiment, three, here, tmp_path):
    heard = []
    server = make_server(experiment, three, lose(2, 1), say=heard.append)
    assert server.train(tmp_path / "drop").model_sha256 != here
    assert list(server.lost) == [2] and "round 2" in server.lost[2] and len(heard) == 1
    rows = (tmp_path / "drop" / "rounds.tsv").read_text().splitlines()
    assert [row.split("\t")[7] for row in rows[1:]] == ["0", "2"]

    server = make_server(experiment, three, lose(2, 0), failures="again")
    assert server.train(tmp_path / "again").model_sha256 == here
    assert list(server.lost) == [2] and server.messages == 3 + 2 + 2

    with pytest.raises(fs.Error, match="round 2: node 2 did not answer: nothing came"):
        make_server(experiment, three, lose(2, 1), failures="stop").train(tmp_path / "stop")
    with pytest.raises(fs.Error, match="no node answered"):
        make_server(experiment, three, lambda *_: None).train(tmp_path / "none")


def test_masked_rounds_are_given_up_or_end_the_run(experiment, tmp_path):
    pytest.importorskip("cryptography")
    with pytest.raises(fs.Error, match="failures='again'"):
        make_server(experiment, open_nodes(experiment, 3, masked=True), masked=True, failures="again")
    with pytest.raises(fs.Error, match="round 1: node 2 did not answer"):
        stopping = make_server(experiment, open_nodes(experiment, 3, True), lose(2, 0), masked=True, failures="stop")
        stopping.train(tmp_path / "stop")
    with pytest.raises(fs.Error, match="round 2: 1 nodes are left, and masks need 2"):
        make_server(experiment, open_nodes(experiment, 2, True), lose(2, 0), masked=True).train(tmp_path / "two")
    clusters = change_experiment(experiment, {"train.clients_per_round": 6, "server.clusters": 2})
    with pytest.raises(fs.Error, match="server.clusters=2"):
        make_server(clusters, open_nodes(clusters, 3, masked=True), masked=True)


def test_masked_rounds_of_one_client_are_refused(experiment):
    """All of them would be given up, and the run would end with its first weights."""
    pytest.importorskip("cryptography")
    alone = change_experiment(experiment, {"train.clients_per_round": 1})
    with pytest.raises(fs.Error, match="^train.clients_per_round=1: a masked round needs 2 clients$"):
        make_server(alone, open_nodes(alone, 2, masked=True), masked=True)
    with pytest.raises(fs.Error, match="^nodes: 1; masks need 2$"):
        make_server(experiment, open_nodes(experiment, 1, masked=True), masked=True)


def test_nodes_that_fail_under_masks_one_after_another_end_the_run(experiment, tmp_path):
    """A total that was lost gives its round up; the fourth in a row ends the run."""
    pytest.importorskip("cryptography")
    longer = change_experiment(experiment, {"train.rounds": 4})

    def one_by_one(node, task, answer):
        return "it crashed" if node == task.t + 1 else answer

    server = make_server(longer, open_nodes(longer, 6, masked=True), one_by_one, masked=True)
    with pytest.raises(fs.Error, match="round 4: masks need every answer; so were 3 rounds before it given up"):
        server.train(tmp_path / "run")
    assert server.given_up == [1, 2, 3] and sorted(server.lost) == [1, 2, 3, 4]


def test_a_node_answers_a_round_under_masks_once(experiment):
    """A server that asks for clients 0 and 1, and then for 0, would learn client 1's sums."""
    pytest.importorskip("cryptography")
    node, peer = open_node(experiment, masked=True), open_node(experiment, masked=True)
    keys = [node.hello().public_key, peer.hello().public_key]
    weights = np.full(26_922, 0.01, np.float32)

    def task(clients, t=0, attempt=0, assignment=None):
        return Task(t, attempt, 100, clients, weights, keys, assignment or [" ".join(map(str, clients)), "2"])

    both = node.run(task([0, 1])).words
    assert node.answered == 0
    for again in (task([0]), task([0, 1]), task([0], attempt=1)):
        with pytest.raises(fs.Error, match="round 1 was answered already"):
            node.run(again)
    kept = Node(experiment, files_of(experiment), private_key=node._private_key, answered=node.answered, threads=1)
    with pytest.raises(fs.Error, match="round 1 was answered already"):  # also one that is made anew
        kept.run(task([0]))
    for wrong in (["0 1", "2"], ["0"], ["2", "0"], []):
        with pytest.raises(fs.Error, match="assignment"):
            node.run(task([0], t=1, assignment=wrong or ["x"]))
    # Without its memory, a node would still use other masks: they cover the clients of all.
    forgetful = Node(experiment, files_of(experiment), private_key=node._private_key, threads=1)
    plain = open_node(experiment)
    one, two = (plain.run(unmasked(task(clients))).words for clients in ([0], [0, 1]))
    assert not np.array_equal(both - forgetful.run(task([0])).words, two - one)


def hostile(change):
    """Node 2's answer to round 2, changed."""
    return lambda node, task, answer: change(answer) if (node, task.t) == (2, 1) else answer


def with_word(place, value):
    def change(answer):
        words = answer.words.copy()
        words[place] = value
        return dataclasses.replace(answer, words=words)

    return change


def with_fields(**fields):
    return lambda answer: dataclasses.replace(answer, **{k: f(getattr(answer, k)) for k, f in fields.items()})


HOSTILE = {
    "too short": (with_fields(words=lambda w: w[:-1]), "words, expected"),
    "too long": (with_fields(words=lambda w: np.append(w, 0)), "words, expected"),
    "empty": (with_fields(words=lambda w: w[:0]), "0 words"),
    "two axes": (with_fields(words=lambda w: w.reshape(1, -1)), "array"),
    "floats": (with_fields(words=lambda w: w.astype(float) * np.nan), "float64"),
    "no array": (with_fields(words=list), "list"),
    "an earlier round": (with_fields(t=lambda t: t - 1), "of round 1"),
    "another attempt": (with_fields(attempt=lambda a: a + 1), "attempt 1"),
    "another identity": (with_fields(identity=lambda _: "0" * 64), "identity"),
    "overflow": (with_word(0, 2**62), "sum 0"),
    "the least integer": (with_word(5, -(2**63)), "sum 5"),
    "absurd telemetry": (with_word(-1, 2**60), "telemetry"),
    "gaps": (with_fields(words=lambda w: np.repeat(w, 2)[::2]), "gaps"),
    "a subclass": (with_fields(words=lambda w: w.view(np.matrix)), "array"),
    "a round in words": (with_fields(t=str), "its round is '1'"),
    "no attempt": (with_fields(attempt=lambda _: None), "attempt None"),
    "more than its share": (with_fields(words=lambda w: 2 * w), "kept share"),
    "unreadable": (lambda answer: fs.Error("no array words"), "no array"),
}


@pytest.fixture(scope="module")
def without_it(experiment, three, tmp_path_factory):
    """The SHA-256 of the model if node 2 does not answer in round 2."""
    return make_server(experiment, three, lose(2, 1)).train(tmp_path_factory.mktemp("lost") / "run").model_sha256


@pytest.mark.parametrize("change, reason", HOSTILE.values(), ids=HOSTILE)
def test_what_no_honest_node_sends_is_refused_and_counted(experiment, three, without_it, tmp_path, change, reason):
    server = make_server(experiment, three, hostile(change))
    run = server.train(tmp_path / "run")
    assert list(server.refused) == [2] and reason in server.refused[2]
    assert run.model_sha256 == without_it  # nothing of it is in the model


def test_telemetry_within_bounds_does_not_end_the_run(experiment, three, here, tmp_path):
    server = make_server(experiment, three, hostile(with_word(-1, 2**55)))
    assert server.train(tmp_path / "run").model_sha256 == here and not server.refused


@pytest.mark.parametrize("t", [float("nan"), -1, "1", None, True])
def test_a_round_that_is_no_number_of_one_is_refused(experiment, t):
    node = open_node(experiment, masked=False)
    with pytest.raises(fs.Error, match="task: its round is"):
        node.run(Task(t, 0, 1, (0,), np.zeros(1, np.float32)))


@pytest.mark.parametrize("key", _core.keys_of_files())
def test_a_node_opens_no_file_that_only_the_server_names(experiment, key):
    named = change_experiment(experiment, {"data.name": "shapes", "data.root": "data"} | {key: "/etc"})
    with pytest.raises(fs.Error, match=f"{key}='/etc': the server names a file"):
        Node(named)


def test_a_node_with_its_own_images_opens_no_teacher_that_only_the_server_names(experiment):
    named = change_experiment(experiment, {"objective.teacher": "/etc/passwd", "data.root": "/not/opened"})
    images, labels = np.zeros((2, 3, 32, 32), np.uint8), np.zeros(2, np.int64)
    with pytest.raises(fs.Error, match="objective.teacher='/etc/passwd': the server names a file"):
        Node(named, images=images, labels=labels)


def test_masked_words_that_mean_nothing_give_a_round_up_and_many_end_the_run(experiment, tmp_path):
    pytest.importorskip("cryptography")

    def train(rounds, out, failures="drop"):
        longer = change_experiment(experiment, {"train.rounds": rounds})
        noise = np.random.default_rng(0)
        scramble = with_fields(words=lambda w: noise.integers(-(2**63), 2**63 - 1, w.size))
        nodes = open_nodes(longer, 2, masked=True)
        server = make_server(
            longer,
            nodes,
            lambda node, _, answer: scramble(answer) if node == 2 else answer,
            masked=True,
            failures=failures,
        )
        return server, lambda: server.train(tmp_path / out)

    server, run = train(3, "few")
    run()
    assert server.given_up == [1, 2, 3] and not server.refused  # masks hide whose words they were
    with pytest.raises(fs.Error, match="round 4: the total means nothing .* so were 3 rounds before"):
        train(5, "many")[1]()
    with pytest.raises(fs.Error, match="dropped|share|sum"):
        train(1, "stop", failures="stop")[1]()


@pytest.mark.parametrize("name", ["version", "commit", "arithmetic", "device", "data_sha256"])
def test_nodes_that_would_give_other_bits_are_refused_before_the_first_round(experiment, three, name):
    hellos = {n: node.hello() for n, node in three.items()}
    hellos[2] = dataclasses.replace(hellos[2], **{name: "another"})
    with pytest.raises(fs.Error, match=f"node 2: its {name} is 'another'"):
        Server(experiment, hellos, lambda tasks: {})


def test_masks_refuse_what_would_show_a_node_s_words():
    pytest.importorskip("cryptography")
    own, other = masks.new_key(), masks.new_key()
    words = np.arange(5)
    mine, theirs = masks.public_key(own), masks.public_key(other)
    for keys in ([mine], [theirs], [mine, mine], [mine, theirs, theirs], []):
        with pytest.raises(fs.Error, match="masks"):
            masks.mask(words, own, keys, b"")
    both = [masks.mask(words, key, [mine, theirs], b"round 1") for key in (own, other)]
    assert np.array_equal(both[0] + both[1], 2 * words)
    assert not np.array_equal(both[0], masks.mask(words, own, [mine, theirs], b"round 2"))

"""Nodes with images of their own: the bits of a simulation, who takes part, and what becomes of those that fail."""

import dataclasses

import numpy as np
import pytest
from federations import OVERRIDES, fail, make_server, open_private, unmasked

import fedsmooth as fs
from fedsmooth import _core
from fedsmooth.federation import Node, Server, choose_nodes, read_experiment


@pytest.fixture(scope="module")
def apart(few_images):
    """What three nodes hold of the training images, and the class names."""
    images, labels, names = _core.load_data("arrays", str(few_images), "train")
    held = [list(range(0, 30)), list(range(30, 37)), list(range(50, 62))]
    return [(images[h], np.array(labels)[h]) for h in held], names, held


@pytest.fixture(scope="module")
def experiment(experiment_file):
    """Four rounds of all three nodes."""
    return read_experiment(experiment_file, OVERRIDES | {"train.rounds": 4, "train.clients_per_round": 3})


@pytest.fixture(scope="module")
def three(experiment, apart):
    """Without masks, nodes keep nothing of a round, so that tests may share them."""
    return open_private(experiment, apart)


def test_a_late_answer_shows_nothing_of_its_node(experiment_file, apart, tmp_path):
    """Node 12's answer to round 2 comes after the server gave it up, and everything that was sent is kept: no two
    totals of the round exist, and the next one, of the others, does not uncover its sums."""
    pytest.importorskip("cryptography")
    experiment = read_experiment(experiment_file, OVERRIDES | {"train.rounds": 4, "train.clients_per_round": 3})
    nodes, plain = open_private(experiment, apart, masked=True), open_private(experiment, apart)
    answers, sums, heard = {}, {}, []

    def late(node, task, answer):
        assert (task.t, node) not in answers  # each round is asked once
        answers[task.t, node], sums[task.t, node] = answer.words, plain[node].run(unmasked(task)).words
        return None if (node, task.t) == (12, 1) else answer

    server = make_server(experiment, nodes, late, private=True, masked=True, say=heard.append)
    server.train(tmp_path / "run")
    assert sorted(answers) == [(0, 10), (0, 11), (0, 12), (1, 10), (1, 11), (1, 12), (2, 10), (2, 11), (3, 10), (3, 11)]
    assert list(server.lost) == [12] and server.report()["given_up"] == [2]
    assert "round 2 is given up" in heard[-1]
    rows = (tmp_path / "run" / "rounds.tsv").read_text().splitlines()[1:]
    assert [row.split("\t")[7] for row in rows] == ["0", "3", "1", "1"]
    everything = sum(answers[1, node] for node in (10, 11, 12))
    assert np.array_equal(everything, sum(sums[1, node] for node in (10, 11, 12)))  # what the late answer completes
    others = answers[2, 10] + answers[2, 11]
    assert not np.array_equal(everything - others, sums[1, 12])


@pytest.mark.parametrize("masked", [False, True])
def test_private_images_give_the_bits_of_a_simulation(experiment_file, tmp_path, apart, masked):
    if masked:
        pytest.importorskip("cryptography")
    overrides = OVERRIDES | {"train.clients_per_round": 3}
    experiment = read_experiment(experiment_file, overrides)
    nodes = open_private(experiment, apart, masked)
    assert all(node.hello().data_sha256 == "" for node in nodes.values())
    run = make_server(experiment, nodes, private=True, masked=masked).train(tmp_path / "apart")
    rows = [f"{client}\t{i}" for client, held in enumerate(apart[2]) for i in held]
    (tmp_path / "p.tsv").write_text("\n".join([*rows, ""]))
    together = overrides | {"partition.kind": "file", "partition.file": str(tmp_path / "p.tsv")}
    assert fs.train(experiment_file, together, out=tmp_path / "together").model_sha256 == run.model_sha256
    assert not (tmp_path / "apart" / "clients.tsv").exists()


def hellos_of(nodes, **changes):
    """What nodes say; `changes` are those of node 11."""
    said = {n: node.hello() for n, node in nodes.items()}
    return said | {11: dataclasses.replace(said[11], **changes)}


REFUSED = {
    "other software": ({"version": "9.9.9"}, "its version is '9.9.9'"),
    "other rounding": ({"arithmetic": "other"}, "its arithmetic is 'other'"),
    "no images": ({"images": 0}, "0 images"),
    "fewer than none": ({"images": -1}, "-1 images"),
    "too many": ({"images": 2**60}, "images, from 1 to"),
    "a negative number": ({"client": -1}, "client number is -1"),
    "an absurd number": ({"client": 2**60}, "client number is 1152921504606846976"),
}


@pytest.mark.parametrize("changes, reason", REFUSED.values(), ids=REFUSED)
def test_a_node_that_cannot_take_part_is_named_and_left_out(experiment, three, changes, reason):
    said = hellos_of(three, name="ward 7\n", **changes)
    nodes, others = choose_nodes(experiment, said, private=True)
    assert sorted(nodes) == [10, 12]
    assert list(others) == [11] and others[11].startswith("ward 7 (node 11): ") and reason in others[11]
    with pytest.raises(fs.Error, match="ward 7 .node 11."):
        Server(experiment, said, lambda tasks: {}, private=True)


def test_nobody_can_tell_whose_number_two_nodes_have(experiment, three):
    nodes, others = choose_nodes(experiment, hellos_of(three, client=0), private=True)
    assert list(nodes) == [12] and sorted(others) == [10, 11]
    assert "client number, 0, is that of another node" in others[10]


def test_most_nodes_decide_how_all_round(experiment, three):
    said = {1: dataclasses.replace(three[10].hello(), arithmetic="other", client=5)} | hellos_of(three)
    nodes, others = choose_nodes(experiment, said, private=True)
    assert sorted(nodes) == [10, 11, 12] and list(others) == [1]


def test_private_clients_are_not_run_by_others(experiment, three):
    with pytest.raises(fs.Error, match="nobody else"):
        Server(experiment, hellos_of(three), lambda tasks: {}, private=True, failures="again")


def dropped_in(folder):
    return [row.split("\t")[7] for row in (folder / "rounds.tsv").read_text().splitlines()[1:]]


def test_numbers_without_a_node_are_not_asked_for(experiment, three, tmp_path):
    """Node 11, which is client 1, cannot take part: the others keep their numbers."""
    heard, asked = [], []

    def note(node, task, answer):
        asked.append((task.t, task.clients, task.total))
        return answer

    two = {n: three[n] for n in (10, 12)}
    run = make_server(experiment, two, note, private=True, say=heard.append).train(tmp_path / "run")
    assert asked == [(t, [k], 42) for t in range(4) for k in (0, 2)]
    assert dropped_in(run.folder) == ["0"] * 4
    assert heard == ["train.clients_per_round=3, and 2 nodes are here: 2 a round"]
    assert "clients_per_round = 2" in (run.folder / "experiment.toml").read_text()


def test_a_private_node_that_fails_drops_out_of_that_round(experiment, three, tmp_path):
    heard = []
    server = make_server(experiment, three, fail(11, {1}), private=True, say=heard.append)
    server.nodes[11] = dataclasses.replace(server.nodes[11], name="ward 7")
    assert dropped_in(server.train(tmp_path / "run").folder) == ["0", "1", "0", "0"]
    assert heard == ["ward 7 (node 11) did not answer in round 2: it crashed"]
    assert server.failed == {11: ["round 2: it crashed"]} and not server.lost


def test_a_private_node_that_keeps_failing_is_not_asked_again(experiment, three, tmp_path):
    heard = []
    server = make_server(experiment, three, fail(11, range(9)), private=True, min_nodes=2, say=heard.append)
    assert dropped_in(server.train(tmp_path / "run").folder) == ["1"] * 4
    assert len(server.failed[11]) == 3 and server.lost == {11: "round 3: it crashed"}
    assert heard[-1].endswith("it is not asked again") and server.messages == 3 + 3 + 3 + 2
    with pytest.raises(fs.Error, match="round 4: 2 nodes are left of 3; node 11: round 3: it crashed"):
        make_server(experiment, three, fail(11, range(9)), private=True, min_nodes=3).train(tmp_path / "ends")


def test_a_round_of_which_no_private_node_answers_is_given_up(experiment, three, tmp_path):
    heard = []
    server = make_server(
        experiment, three, lambda n, task, a: None if task.t == 1 else a, private=True, say=heard.append
    )
    assert dropped_in(server.train(tmp_path / "run").folder) == ["0", "3", "0", "0"]
    assert server.given_up == [2] and heard[-1] == "round 2 is given up: no node answered; the weights stay"
    with pytest.raises(fs.Error, match="round 4: 0 nodes are left of 3"):
        make_server(experiment, three, lambda *_: None, private=True).train(tmp_path / "none")


def test_masked_clusters_of_one_node_are_refused(experiment_file, apart):
    pytest.importorskip("cryptography")
    clusters = read_experiment(experiment_file, OVERRIDES | {"train.clients_per_round": 4, "server.clusters": 2})
    nodes = open_private(clusters, apart, masked=True)
    with pytest.raises(fs.Error, match="^nodes: 3; masks need 2 of each of 2 clusters$"):
        make_server(clusters, nodes, private=True, masked=True)


def test_a_masked_round_with_one_node_left_is_given_up(experiment_file, apart, tmp_path):
    """Of two clients a round: the rounds of the other two go on."""
    pytest.importorskip("cryptography")
    pairs = read_experiment(experiment_file, OVERRIDES | {"train.rounds": 8, "train.clients_per_round": 2})
    nodes, heard = open_private(pairs, apart, masked=True), []
    server = make_server(pairs, nodes, fail(11, range(9)), private=True, masked=True, say=heard.append)
    server.train(tmp_path / "run")
    assert any(line.endswith("1 of its nodes are left, and masks need 2; the weights stay") for line in heard)
    assert list(server.lost) == [11] and len(server.given_up) < 8


def test_labels_go_by_the_server_s_class_names(experiment, apart):
    from fedsmooth.federation import rename_labels

    assert rename_labels([0, 1, 1], ["dog", "cat"], ["bird", "cat", "dog"]) == [2, 1, 1]
    with pytest.raises(fs.Error, match="'fox'"):
        rename_labels([0], ["fox"], ["bird"])
    images, labels = apart[0][0]
    with pytest.raises(fs.Error, match="label 1[0-9]"):
        Node(experiment, images=images, labels=labels + 10, class_names=apart[1])

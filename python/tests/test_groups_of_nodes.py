"""Groups of nodes with images of their own: the bits of a simulation, and no node reaches another group."""

import dataclasses
import hashlib

import numpy as np
import pytest
from federations import fail, make_server, open_private

import fedsmooth as fs
from fedsmooth import _core
from fedsmooth.federation import Server, change_experiment, choose_nodes, read_experiment

CLIENTS = 9
GROUPS = {"groups.count": 2, "seed": 3, "train.clients_per_round": 4, "train.rounds": 3}


@pytest.fixture(scope="module")
def experiment(experiment_file):
    return read_experiment(experiment_file, GROUPS)


@pytest.fixture(scope="module")
def apart(few_images):
    """What nine nodes hold of the training images, the class names, and the numbers of these images."""
    images, labels, names = _core.load_data("arrays", str(few_images), "train")
    held = [list(range(12 * k, 12 * k + 8 + k % 3)) for k in range(CLIENTS)]
    return [(images[h], np.array(labels)[h]) for h in held], names, held


@pytest.fixture(scope="module")
def nodes(experiment, apart):
    return open_private(experiment, apart)


def models_of(folder):
    files = (folder / f"group-{group:02}" / "model.safetensors" for group in (1, 2))
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


@pytest.fixture(scope="module")
def here(experiment_file, apart, tmp_path_factory):
    """The run of one process."""
    folder = tmp_path_factory.mktemp("groups")
    rows = [f"{client}\t{i}" for client, held in enumerate(apart[2]) for i in held]
    (folder / "p.tsv").write_text("\n".join([*rows, ""]))
    together = GROUPS | {"partition.kind": "file", "partition.file": str(folder / "p.tsv")}
    return fs.train(experiment_file, together, out=folder / "here")


def test_the_certificates_of_a_run_of_groups(here, model, test_set, tmp_path):
    """One certification proves the shares against every number of malicious clients."""
    table = fs.certify_run(here.folder, {"certify.n": 1000, "certify.every": 4}, malicious=1, device="cpu")
    assert set(table["malicious"]) == {1} and set(table["alpha"]) == {0.0005}
    assert table.gaps.shape == (10, 2 + 2)
    assert list(table.gaps.sum(1)) == list(table["n"]) and list(table.gaps[:, 2]) == list(table["count_top"])
    assert table.certified_accuracy(0, malicious=1) == table.certified_accuracy(0)
    radii = np.linspace(0, 0.5, 6)
    honest = fs.recertify(table, 0.0005, malicious=0, out=tmp_path / "honest.tsv")
    assert set(honest["malicious"]) == {0} and (honest["radius"] >= table["radius"]).all()
    assert list(honest["count_top"]) == list(table.gaps[:, :3].sum(1))
    assert np.array_equal(honest.certified_accuracy(radii), table.certified_accuracy(radii, malicious=0))
    assert np.array_equal(honest.certified_accuracy(radii, malicious=1), table.certified_accuracy(radii))
    for radius in (0, 0.1, 0.3):
        most = table.most_malicious(radius)
        proved = {m: fs.recertify(table, 0.0005 * (m + 1), malicious=m, out=tmp_path / f"{radius}-{m}.tsv") for m in (0, 1)}
        held = {m: (t["predict"] >= 0) & (t["radius"] >= radius) for m, t in proved.items()}
        assert list(most) == [-1 + a + (a and b) for a, b in zip(held[0], held[1])]
    with pytest.raises(fs.Error, match="radius"):
        table.most_malicious(-1)
    with pytest.raises(fs.Error, match="^malicious=2: 2 groups withstand at most 1"):
        table.certified_accuracy(0, malicious=2)
    with pytest.raises(fs.Error, match="^malicious=2: 2 groups withstand at most 1"):
        fs.recertify(table, 0.01, malicious=2)
    alone = fs.certify(model, test_set, n=500, out=tmp_path / "alone.tsv")
    with pytest.raises(fs.Error, match="^malicious=0: .*alone.tsv is about one network"):
        alone.certified_accuracy(0, malicious=0)
    with pytest.raises(fs.Error, match="^malicious=1: .*alone.tsv is about one network"):
        fs.recertify(alone, 0.01, malicious=1)
    with pytest.raises(fs.Error, match="^gaps: .*alone.tsv is about one network"):
        _ = alone.gaps


def members(group):
    return [k for k in range(CLIENTS) if _core.group_of(k, 2, 3) == group]


def test_both_groups_have_what_masks_need():
    assert [len(members(group)) for group in (1, 2)] == [5, 4]


@pytest.mark.parametrize("masked", [False, True])
def test_groups_have_the_bits_of_a_simulation(experiment, apart, here, tmp_path, masked):
    if masked:
        pytest.importorskip("cryptography")
    server = make_server(experiment, open_private(experiment, apart, masked), private=True, masked=masked)
    run = server.train(tmp_path / "apart")
    assert run.model_sha256 == here.model_sha256 and models_of(run.folder) == models_of(here.folder)
    assert server.messages == 3 * (4 + 4)
    assert len(fs.certify_run(run.folder, {"certify.n": 100, "certify.every": 10})) == 4


@pytest.mark.parametrize("masked", [False, True])
def test_a_node_that_fails_reaches_its_own_group_alone(experiment, apart, here, tmp_path, masked):
    """Of a group of four under masks one is lost; and of its three another one, so that its rounds are given up."""
    if masked:
        pytest.importorskip("cryptography")
    first, second = (10 + client for client in members(2)[:2])
    heard = []

    def bad(node, task, answer):
        return fail(first, range(9))(node, task, fail(second, range(1, 9))(node, task, answer))

    ours = open_private(experiment, apart, masked)
    server = make_server(experiment, ours, bad, private=True, masked=masked, min_nodes=9, say=heard.append)
    run = server.train(tmp_path / "run")
    assert models_of(run.folder)[0] == models_of(here.folder)[0]
    assert models_of(run.folder)[1] != models_of(here.folder)[1]
    if masked:
        assert server.given_up == [1, 2, 3]
        assert (
            heard[-1] == "round 3 of group 2 is given up: 2 of its nodes are left, and masks need 3; the weights stay"
        )


def test_what_would_join_groups_is_refused(experiment, nodes):
    said = {n: node.hello() for n, node in nodes.items()}
    with pytest.raises(fs.Error, match="groups.count=2: not on nodes that share the clients"):
        Server(experiment, said, lambda tasks: {})
    with pytest.raises(fs.Error, match="failures='stop': one node could end"):
        Server(experiment, said, lambda tasks: {}, private=True, failures="stop")
    stolen = said | {12: dataclasses.replace(said[12], client=5)}
    with pytest.raises(fs.Error, match="node 12: its client number, 5, is that of another node"):
        choose_nodes(experiment, stolen, private=True)


def test_masked_groups_of_fewer_than_three_are_refused_by_name(experiment, apart):
    pytest.importorskip("cryptography")
    said = {n: node.hello() for n, node in open_private(experiment, apart, masked=True).items()}
    few = {n: hello for n, hello in said.items() if hello.client not in members(2)[2:]}
    named = ", ".join(f"node {10 + client}" for client in members(2)[:2])
    with pytest.raises(fs.Error, match=f"each group needs 3 nodes; group 2 has 2 .{named}."):
        Server(experiment, few, lambda tasks: {}, private=True, masked=True)
    pairs = change_experiment(experiment, {"train.clients_per_round": 2})
    with pytest.raises(fs.Error, match="train.clients_per_round=2: a masked round of a group needs 3 clients"):
        Server(pairs, said, lambda tasks: {}, private=True, masked=True)


def test_a_group_without_a_node_is_refused(experiment, nodes, tmp_path):
    one_group = {n: node for n, node in nodes.items() if n - 10 in members(1)}
    with pytest.raises(fs.Error, match="none of the . clients is in group 2"):
        make_server(experiment, one_group, private=True).train(tmp_path / "run")

"""Wrong arguments: an error of one line in the terms of the API, none ignored, and no other function certified."""

import numpy as np
import pytest
from conftest import PUBLISHED_ROWS, half_space

import fedsmooth as fs
from fedsmooth._values import overrides_to_pairs

OPTIONS = {"n": 500, "batch_size": 100}


@pytest.fixture
def g():
    return fs.Smooth(half_space, 2, 0.25)


@pytest.fixture
def table(model, test_set, tmp_path):
    return fs.certify(model, test_set, n=500, out=tmp_path / "t.tsv")


WRONG = {
    "n that no integer holds": ("n=1000.*: must be from", lambda u: u.g.certify(u.x, n=10**20)),
    "a negative seed": ("seed=-1: must be from 0", lambda u: fs.Smooth(half_space, 2, 0.25, seed=-1)),
    "a negative index": ("index=-1: must be from 0 to 4294967295", lambda u: u.g.certificate(u.x, -1)),
    "half an index": ("indices=1.5: must be a whole number", lambda u: u.model.certify(u.images, indices=[0, 1.5])),
    "a seed of a model": ("seed=-1: must be", lambda u: u.model.certify(u.images, seed=-1)),
    "noise": ("noise=None: must be text", lambda u: u.g.certify(u.x, noise=None)),
    "noise of a model": ("noise=None: must be text", lambda u: u.model.certify(u.images, noise=None)),
    "a device": ("device=None: must be text", lambda u: fs.load(u.file, device=None)),
    "threads": ("threads='2': must be a whole number", lambda u: fs.load(u.file, threads="2")),
    "a flag": ("only_correct=1: must be True or False", lambda u: fs.certify(u.model, u.data, only_correct=1)),
    "resume": ("resume='yes': must be True or", lambda u: fs.certify(u.model, u.data, out="a.tsv", resume="yes")),
    "nothing to resume": ("resume=True: there is no table .* out=", lambda u: fs.certify(u.model, u.data, resume=True)),
    "top": ("top='1': must be a whole number", lambda u: u.table.radii_against(top="1")),
    "k": ("k='5': must be a whole number", lambda u: fs.lower_bound("5", 30)),
    "epsilon": ("epsilon='x': must be a number", lambda u: fs.Conformal.calibrate(u.model, *u.data, epsilon="x")),
    "half a label": ("image 0: label .*5 is not a class", lambda u: calibrate(u, labels=u.data[1] + 0.5)),
    "images of another shape": ("images: .12, 5, 6, 3., the network", lambda u: calibrate(u, u.data[0][:, :, 1:])),
    "a table that is no list": ("tables: must be a list", lambda u: fs.merge(u.table, "all.tsv")),
    "no table": ("merge: no tables", lambda u: fs.merge([], "all.tsv")),
    "a model that is no list": ("with_='b': must be a list", lambda u: fs.certify_run(u.file, with_="b", out="a.tsv")),
    "a key twice": ("certify.n=5: is given twice, also as n=6", lambda u: image_certificate(u, {"certify.n": 5}, n=6)),
    "a key that is none": ("^Certify.n: unknown key", lambda u: fs.certify_run(u.file, {"Certify.n": 5})),
    "a device beside a test set": ("device: is of a model file", lambda u: verify(u, device="cpu")),
    "keys beside a test set": ("overrides: is of a model file", lambda u: verify(u, overrides={"certify.n": 5})),
    "members beside a test set": ("with_: is of a model file", lambda u: verify(u, with_=["b"])),
    "a batch of a file": ("batch_size: is of a classifier in memory", lambda u: fs.verify(u.table, batch_size=5)),
    "no batch": ("batch_size=0: must be from 1", lambda u: fs.verify(u.function_table, u.g, u.two, batch_size=0)),
    "data of no name": ("data 'python' cannot be loaded by that name", lambda u: fs.verify(u.table, u.file)),
    "a published table": ("pub.tsv: .*six columns|pub.tsv: .*published", lambda u: fs.verify(u.published)),
    "a card of a published table": ("pub.tsv: a published table", lambda u: fs.save_folder(u.model, "m", u.published)),
}


def calibrate(u, images=None, labels=None):
    images = (u.data[0] if images is None else images).transpose(0, 2, 3, 1)  # [N, H, W, C] is turned round
    return fs.Conformal.calibrate(u.model, images, u.data[1] if labels is None else labels, epsilon=0.1, coverage=0.5)


def image_certificate(u, overrides, **options):
    return fs.certify_image(u.file, "cat.png", overrides, **options)


def verify(u, **options):
    return fs.verify(u.table, u.model, u.data, **options)


class Given:
    """What the calls of WRONG use; tables are made where they are asked for."""

    def __init__(self, model, model_file, test_set, image, g, folder):
        self.model, self.file, self.data, self.x, self.g, self.folder = model, model_file, test_set, image, g, folder
        self.images, self.two = test_set[0][:2], (test_set[0], test_set[1] % 2)

    @property
    def table(self):
        return fs.certify(self.model, self.data, n=500, out=self.folder / "t.tsv")

    @property
    def function_table(self):
        return fs.certify(self.g, self.two, out=self.folder / "f.tsv", **OPTIONS)

    @property
    def published(self):
        path = self.folder / "pub.tsv"
        path.write_text(PUBLISHED_ROWS)
        return fs.read_certificates(path)


@pytest.mark.parametrize("message, call", WRONG.values(), ids=WRONG)
def test_a_wrong_argument_is_named(model, model_file, test_set, image, g, tmp_path, monkeypatch, message, call):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(fs.Error, match=message) as error:
        call(Given(model, model_file, test_set, image, g, tmp_path))
    assert "\n" not in str(error.value) and "--" not in str(error.value)


def test_a_folder_that_cannot_be_made(experiment_file, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(fs.Error, match="file/run: Not a directory$"):
        fs.train(experiment_file, out=tmp_path / "file" / "run")


def test_values_of_keys():
    given = {"a.n": 1e5, "a.on": np.True_, "a.radii": np.array([0.25, 1.0]), "a.sigma": np.float32(0.5), "a.off": False}
    said = dict(overrides_to_pairs(given))
    assert list(said.values()) == ["100000", "true", "[0.25, 1]", "0.5", "false"]


def test_what_may_be_written_in_several_ways(model, test_set, tmp_path):
    assert fs.lower_bound(99.0, 1e2) == fs.lower_bound(99, 100)
    named = fs.certify(model, test_set, n=500, limit=2, class_names=range(4), out=tmp_path / "t.tsv")
    assert named.radii_against("3").shape == (2,)
    scratch = fs.certify(model, test_set, n=500, limit=2)
    assert scratch.path is None and scratch.radii_against(3).shape == (2,)


def test_another_base_classifier_is_another_function(g, image):
    """Votes that were checked for one function are not those of the next one."""
    options = {"n": 1000, "n0": 100, "batch_size": 100}
    first = g.certificate(image, 0, **options)
    g.base_classifier = lambda images: half_space(images)[:, ::-1].copy()
    second = g.certificate(image, 0, **options)
    assert (first.predict, second.predict) == (1, 0)
    g.base_classifier = half_space
    assert g.certificate(image, 0, **options) == first


def test_a_model_card_has_the_certificates_of_its_model(model, table, test_set, g, tmp_path):
    fs.save_folder(model, tmp_path / "own", table)
    assert "under noise of sigma 0.25" in (tmp_path / "own" / "README.md").read_text()
    other = fs.certify(g, (test_set[0], test_set[1] % 2), **OPTIONS)
    with pytest.raises(fs.Error, match="table: is about another model than .*model.safetensors"):
        fs.save_folder(model, tmp_path / "other", other)
    assert not (tmp_path / "other").exists()


class Pairs:
    """As an SVC of three classes: a score for each of the three pairs."""

    classes_ = np.arange(3)

    def decision_function(self, x):
        return np.stack([x[:, 0] - x[:, 1], x[:, 0] - x[:, 2], x[:, 1] - x[:, 2]], axis=1)

    def predict(self, x):
        return x[:, :3].argmax(1)


def test_scores_that_predict_does_not_follow_are_refused():
    with pytest.raises(fs.Error, match=r"the largest of decision_function\(\) is not what predict\(\) answers for"):
        fs.Smooth(Pairs(), 3, 0.25).certify(np.full(5, 0.5, np.float32), **OPTIONS)

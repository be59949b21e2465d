"""The adapter for users of ART, and the model folder."""

import json

import numpy as np
import pytest
from conftest import W, half_space

import fedsmooth as fs
from fedsmooth.art import RandomizedSmoothing


class Estimator:
    """As ART's classifiers: predict(x, batch_size) and nb_classes."""

    nb_classes = 2

    def predict(self, x, batch_size=128):
        assert len(x) == batch_size
        return half_space(x)


def test_art_s_methods(image):
    smoothed = RandomizedSmoothing(Estimator(), sample_size=100, scale=0.25)
    images = np.stack([image, (W < 0).astype(np.float32)])
    classes, radii = smoothed.certify(images, n=1000, batch_size=100)
    assert list(classes) == [1, 0] and (radii > 0).all()
    assert smoothed.predict(images).tolist() == [[0, 1], [1, 0]]
    wide = RandomizedSmoothing(Estimator(), sample_size=101, scale=9.0, alpha=1e-20)
    assert wide.predict(images[:1]).tolist() == [[0, 0]]
    assert wide.predict(images[:1], is_abstain=False).sum() == 1
    bytes_ = Estimator()
    bytes_.clip_values = (0, 255)  # it would get images in [0, 1]
    with pytest.raises(fs.Error, match=r"clip_values are \(0, 255\); images are in \[0, 1\]"):
        RandomizedSmoothing(bytes_)
    with pytest.raises(fs.Error, match="nb_classes"):
        RandomizedSmoothing(half_space)


def test_a_model_folder(model, test_set, tmp_path):
    table = fs.certify(model, test_set, n=500)
    fs.save_folder(model, tmp_path / "m", table, name='a "name"', dataset="noise")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["num_labels"] == 4 and config["id2label"]["2"] == "class 2" and config["sigma"] == 0.25
    assert fs.load(tmp_path / "m").sha256 == config["sha256"]
    card = (tmp_path / "m" / "README.md").read_text()
    assert f"value: {table.certified_accuracy(0.25):.4f}" in card and 'name: "a \\"name\\""' in card
    yaml = pytest.importorskip("yaml")
    index = yaml.safe_load(card.split("---")[1])["model-index"][0]
    assert index["name"] == 'a "name"' and len(index["results"][0]["metrics"]) == 6

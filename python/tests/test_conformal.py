"""Conformal sets from one noisy pass."""

import numpy as np
import pytest

import fedsmooth as fs

# Of the calibration and of the answers; any two differ.
RNG = np.random.default_rng(3)


def images_of(model, count):
    return RNG.integers(0, 256, (count, *model.input), dtype=np.uint8)


def answers(model, images):
    return model.logits(images / np.float32(255)).argmax(1)


def test_sets_cover_the_label(model):
    images, fresh = images_of(model, 400), images_of(model, 400)
    sets = fs.Conformal.calibrate(model, images, answers(model, images), epsilon=0.25, coverage=0.9, seed=1)
    found = sets(fresh)
    assert found.shape == (400, model.num_classes) and found.dtype == bool
    covered = found[np.arange(400), answers(model, fresh)]
    assert covered.mean() > 0.95  # b is .989 for images that nobody moved
    assert np.array_equal(sets(fresh, seed=5), sets(fresh, seed=5))
    assert sets.images == 400 and sets.coverage == 0.9 and sets.sigma == model.sigma


def test_a_file_is_read_for_its_model_alone(model, tmp_path):
    images = images_of(model, 100)
    sets = fs.Conformal.calibrate(model, images, answers(model, images), epsilon=0.25, seed=1)
    sets.save(tmp_path / "c.json")
    again = fs.Conformal.load(tmp_path / "c.json", model)
    assert again.quantile == sets.quantile
    assert np.array_equal(again(images, seed=2), sets(images, seed=2))
    text = (tmp_path / "c.json").read_text().replace(model.sha256, "0" * 64)
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(fs.Error, match="about another model"):
        fs.Conformal.load(tmp_path / "other.json", model)


def test_what_cannot_be_calibrated_is_refused(model):
    images = images_of(model, 87)
    labels = answers(model, images)
    with pytest.raises(fs.Error, match="87 calibration images are too few; at least 88 are needed"):
        fs.Conformal.calibrate(model, images, labels, epsilon=0.25, sigma=0.25)
    with pytest.raises(fs.Error, match="87 with 3 labels"):
        fs.Conformal.calibrate(model, images, labels[:3], epsilon=0.25)
    with pytest.raises(fs.Error, match="labels: 99"):
        fs.Conformal.calibrate(model, images, labels + 99 - labels[0], epsilon=0.25)
    with pytest.raises(fs.Error, match="outside"):
        fs.Conformal.calibrate(model, images.astype(np.float32), labels, epsilon=0.25)
    with pytest.raises(fs.Error, match="is not a fedsmooth.Model"):
        fs.Conformal.calibrate(lambda x: x, images, labels, epsilon=0.25, sigma=0.25)

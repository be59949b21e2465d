"""One image file certified, beside what `fedsmooth certify MODEL IMAGE` says of it."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from conftest import network, write_png

import fedsmooth as fs

COMMAND = pathlib.Path(sys.executable).parent / "fedsmooth"


@pytest.fixture
def colour_file(tmp_path):
    pixels = np.random.default_rng(3).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    return write_png(tmp_path / "colour.png", pixels)


def by_command(*words):
    done = subprocess.run([COMMAND, "certify", *words, "--device=cpu"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_the_answer_of_the_command(model_file, colour_file):
    proved = fs.certify_image(model_file, colour_file, sigma=0.05, n=2000, seed=3, device="cpu")
    words = (model_file, colour_file, "--sigma=0.05", "--n=2000", "--seed=3")
    (theirs,) = json.loads(by_command(*words, "--json"))
    ours = (proved.image, proved.label, proved.class_name, proved.radius, proved.norm, proved.alpha)
    assert ours == tuple(theirs[key] for key in ("image", "predict", "class", "radius", "norm", "alpha"))
    assert (proved.count_top, proved.n, str(proved.seed)) == (theirs["count_top"], theirs["n"], theirs["seed"])
    assert proved.label >= 0 and proved.radius > 0 and proved.label == proved.selected
    assert by_command(*words) == f"{colour_file}: {proved}\n"
    assert str(proved).startswith(f"{proved.class_name}, proved within 0.")
    assert proved.p_lower == pytest.approx(fs.lower_bound(proved.count_top, proved.n, proved.alpha))


def test_noise_is_new_unless_a_seed_repeats_it(model_file, colour_file):
    first = fs.certify_image(str(model_file), str(colour_file), n=2000)
    again = fs.certify_image(model_file, colour_file, n=2000, seed=first.seed)
    other = fs.certify_image(model_file, colour_file, n=2000)
    assert (again.count_top, again.count_runner_up, again.radius) == (
        first.count_top,
        first.count_runner_up,
        first.radius,
    )
    assert other.seed != first.seed


def test_a_grey_file_fits_a_model_of_one_channel(tmp_path):
    (tmp_path / "grey.safetensors").write_bytes(network(shape=(1, 6, 6)))
    file = write_png(tmp_path / "grey.png", np.arange(36, dtype=np.uint8).reshape(6, 6))
    proved = fs.certify_image(tmp_path / "grey.safetensors", file, {"certify.n": 500, "certify.alpha": 0.01})
    assert (proved.n, proved.alpha) == (500, 0.01)


def test_a_run_is_asked_by_its_own_experiment(experiment_file, tmp_path):
    run = fs.train(experiment_file, {"certify.radius": "multiclass", "train.rounds": 1}, out=tmp_path / "run")
    pixels = np.random.default_rng(4).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    proved = fs.certify_image(run.folder, write_png(tmp_path / "x.png", pixels))
    assert proved.n == 1000
    assert not (run.folder / "certificates.tsv").exists()


def test_it_abstains_in_words(model_file, colour_file):
    proved = fs.certify_image(model_file, colour_file, sigma=50.0, n=20, seed=1)
    assert (proved.label, proved.radius, proved.class_name) == (fs.ABSTAIN, 0.0, "abstain")
    assert str(proved) == "abstains, nothing is proved"


def test_another_classifier_than_the_certified_one_is_warned_of(model, model_file, colour_file, test_set):
    fs.certify(model, test_set, n=500, out=model_file.with_name("model.certificates.tsv"))
    with pytest.warns(UserWarning, match="^this is not the classifier that was certified"):
        fs.certify_image(model_file, colour_file, sigma=0.5, n=500, device="cpu")


def test_mistakes_are_refused(model, model_file, colour_file, tmp_path):
    for arguments, options, message in (
        ((model, colour_file), {}, "model: a Model is not a path"),
        ((model_file, np.zeros((3, 6, 6))), {}, "image: a ndarray is not a path"),
        ((model_file, tmp_path / "none.png"), {}, "none.png"),
        ((tmp_path / "none.safetensors", colour_file), {}, "none.safetensors"),
        ((model_file, write_png(tmp_path / "large.png", np.zeros((8, 8, 3), np.uint8))), {}, r"\[3, 6, 6\]"),
        ((model_file, colour_file), {"n": 0.5}, "n=0.5: must be a whole number"),
        ((model_file, colour_file, {"certify.nn": 5}), {}, "certify.n"),
    ):
        with pytest.raises(fs.Error, match=message):
            fs.certify_image(*arguments, **options)

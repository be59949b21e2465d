"""Training into a run folder."""

import json
import pathlib
import subprocess
import time

import numpy as np
import pytest
from test_smooth import interrupt_soon

import fedsmooth as fs


def test_rounds_are_reported_and_the_model_loads(experiment_file, tmp_path):
    rounds = []
    run = fs.train(
        experiment_file, out=tmp_path / "run", on_round=lambda r: rounds.append((r.round, r.loss, r.seconds))
    )
    assert [r[0] for r in rounds] == [1, 2] and run.rounds == 2 and run.loss == pytest.approx(rounds[-1][1], rel=1e-6)
    model = run.model("cpu")
    assert model.sha256 == run.model_sha256 and model.input == (3, 32, 32)
    assert model.certify(np.full(model.input, 0.5, np.float32), n=1000)[0].sigma == model.sigma
    assert not fs.train(experiment_file, out=tmp_path / "run", resume=True).is_new


def test_a_table_is_the_program_s(experiment_file, few_images, tmp_path):
    program = pathlib.Path(__file__).parents[2] / "build" / "fedsmooth"
    if not program.exists():
        pytest.skip("build/fedsmooth is not built")
    run = fs.train(experiment_file, out=tmp_path / "run")
    subprocess.run([program, "certify", run.folder, "--device=cpu", "--every=4", "--quiet"], check=True)
    theirs = run.certificates()
    out = tmp_path / "ours.tsv"
    test_set = fs.load_data("arrays", few_images)
    ours = fs.certify(run.model("cpu"), test_set, every=4, n=1000, name="arrays", out=out)
    assert all(list(ours[name]) == list(theirs[name]) for name in ours.columns if name != "time")
    tables = (out, run.folder / "certificates.tsv")
    one, other = (json.loads(path.with_suffix(".json").read_text())["identity"] for path in tables)
    assert one == other


def test_mistakes_are_named(experiment_file, tmp_path):
    for overrides, message in (
        ({"train.round": 2}, "train.rounds"),
        ({"train.rounds": -1}, "rounds"),
        ({"train.rounds": "x"}, "rounds"),
    ):
        with pytest.raises(fs.Error, match=message):
            fs.train(experiment_file, overrides, out=tmp_path / "run")
    with pytest.raises(fs.Error, match="nowhere.toml"):
        fs.train(tmp_path / "nowhere.toml")
    assert not (tmp_path / "run").exists()


def test_what_on_round_raises_ends_the_training(experiment_file, tmp_path):
    def stop(row):
        raise LookupError(row.round)

    with pytest.raises(LookupError, match="1"):
        fs.train(experiment_file, out=tmp_path / "run", on_round=stop)


def test_control_c_saves_the_state(experiment_file, tmp_path):
    long = {"train.rounds": 100_000}
    started = []

    def begin(row):
        if not started:
            started.append(time.monotonic())
            interrupt_soon()

    with pytest.raises(KeyboardInterrupt):
        fs.train(experiment_file, long, out=tmp_path / "run", on_round=begin)
    assert time.monotonic() - started[0] < 2.3
    assert (tmp_path / "run" / "checkpoint" / "state.safetensors").exists()


def test_a_run_is_certified_by_all_of_its_experiment(experiment_file, tmp_path):
    asked = {"certify.seed": 5, "certify.noise": "exact", "certify.radius": "multiclass", "certify.every": 20}
    run = fs.train(experiment_file, asked, out=tmp_path / "run")
    table = fs.certify_run(run.folder)
    assert len(table) == 2 and set(table["seed"]) == {5}
    identity = json.loads((run.folder / "certificates.json").read_text())["identity"]
    assert (identity["seed"], identity["noise"], identity["radius"]) == ("5", "exact", "multiclass")
    assert len(fs.certify_run(run.folder, resume=True)) == 2
    with pytest.raises(fs.Error, match="n=1000|n"):
        fs.certify_run(run.folder, {"certify.n": 500}, resume=True)

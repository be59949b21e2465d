"""Training into a run folder, on the built-in data."""

import json
import pathlib
import subprocess
import time

import numpy as np
import pytest
from test_smooth import interrupt_soon

import fedsmooth as fs

QUICK = {
    "train.rounds": 2,
    "train.clients_per_round": 2,
    "train.local.steps": 2,
    "train.evaluate_every": 0,
    "partition.clients": 4,
}


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "quick.toml"
    path.write_text('[data]\nname = "shapes"\naugment = false\n[model]\nname = "small"\n[certify]\nn = 1000\n')
    return path


def test_rounds_are_reported_and_the_model_loads(experiment, tmp_path):
    rounds = []
    run = fs.train(
        experiment, QUICK, out=tmp_path / "run", on_round=lambda r: rounds.append((r.round, r.loss, r.seconds))
    )
    assert [r[0] for r in rounds] == [1, 2] and run.rounds == 2 and run.loss == pytest.approx(rounds[-1][1], rel=1e-6)
    model = run.model("cpu")
    assert model.sha256 == run.model_sha256 and model.input == (3, 32, 32)
    assert model.certify(np.full(model.input, 0.5, np.float32), n=1000)[0].sigma == model.sigma
    assert not fs.train(experiment, QUICK, out=tmp_path / "run", resume=True).is_new


def test_a_table_is_the_program_s(experiment, tmp_path):
    program = pathlib.Path(__file__).parents[2] / "build" / "fedsmooth"
    if not program.exists():
        pytest.skip("build/fedsmooth is not built")
    run = fs.train(experiment, QUICK, out=tmp_path / "run")
    subprocess.run([program, "certify", run.folder, "--device=cpu", "--every=200", "--quiet"], check=True)
    theirs = run.certificates()
    out = tmp_path / "ours.tsv"
    ours = fs.certify(run.model("cpu"), fs.load_data("shapes"), every=200, n=1000, name="shapes", out=out)
    assert all(list(ours[name]) == list(theirs[name]) for name in ours.columns if name != "time")
    tables = (out, run.folder / "certificates.tsv")
    one, other = (json.loads(path.with_suffix(".json").read_text())["identity"] for path in tables)
    assert one == other


def test_mistakes_are_named(experiment, tmp_path):
    for overrides, message in (
        ({"train.round": 2}, "train.rounds"),
        ({"train.rounds": -1}, "rounds"),
        ({"train.rounds": "x"}, "rounds"),
    ):
        with pytest.raises(fs.Error, match=message):
            fs.train(experiment, overrides, out=tmp_path / "run")
    with pytest.raises(fs.Error, match="nowhere.toml"):
        fs.train(tmp_path / "nowhere.toml")
    assert not (tmp_path / "run").exists()


def test_what_on_round_raises_ends_the_training(experiment, tmp_path):
    def stop(row):
        raise LookupError(row.round)

    with pytest.raises(LookupError, match="1"):
        fs.train(experiment, QUICK, out=tmp_path / "run", on_round=stop)


def test_control_c_saves_the_state(experiment, tmp_path):
    long = QUICK | {"train.rounds": 100_000}
    started = []

    def begin(row):
        if not started:
            started.append(time.monotonic())
            interrupt_soon()

    with pytest.raises(KeyboardInterrupt):
        fs.train(experiment, long, out=tmp_path / "run", on_round=begin)
    assert time.monotonic() - started[0] < 2.3
    assert (tmp_path / "run" / "checkpoint" / "state.safetensors").exists()

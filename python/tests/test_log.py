"""Run folders for MLflow, Weights & Biases and TensorBoard. The trackers are stand-ins of a few lines."""

import contextlib
import struct
import sys
import types

import pytest

import fedsmooth as fs
from fedsmooth import log

CHANGES = {"train.rounds": 3, "train.evaluate_every": 2, "log.tensorboard": True}


@pytest.fixture(scope="module")
def run(experiment_file, few_images, tmp_path_factory):
    run = fs.train(experiment_file, CHANGES, out=tmp_path_factory.mktemp("log") / "run")
    test_set = fs.load_data("arrays", few_images)
    fs.certify(run.model("cpu"), test_set, every=4, n=1000, name="arrays", out=run.folder / "certificates.tsv")
    return run


class Tracked(dict):
    """What a tracker heard."""

    def __init__(self, **given):
        super().__init__(given, steps={}, last={})

    def log_metrics(self, values, step=None):
        self["last"].update(values) if step is None else self["steps"].update({step: values})

    def log(self, values, step):
        self["steps"][step] = values

    @property
    def summary(self):
        return self["last"]


def check(heard, run):
    assert list(heard["steps"]) == [1, 2, 3]
    assert heard["steps"][3]["loss"] == pytest.approx(run.loss, rel=1e-5)
    assert ["noisy_accuracy" in heard["steps"][step] for step in (1, 2, 3)] == [False, True, False]
    assert heard["last"]["certified_accuracy_0.00"] == run.certificates().certified_accuracy(0)
    assert heard["parameters"]["train.rounds"] == 3 and heard["parameters"]["data.name"] == "arrays"


def test_mlflow(run, monkeypatch):
    heard = Tracked()
    fake = types.SimpleNamespace(
        set_experiment=lambda name: heard.update(project=name),
        start_run=lambda run_name: contextlib.nullcontext(heard.update(name=run_name)),
        log_params=lambda values: heard.update(parameters=values),
        log_metrics=heard.log_metrics,
    )
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    assert log.main([str(run.folder), "--to", "mlflow"]) == 0
    check(heard, run)
    assert (heard["project"], heard["name"]) == ("fedsmooth", "run")


def test_wandb(run, monkeypatch):
    heard = Tracked()

    def init(project, name, config):
        heard.update(project=project, name=name, parameters=config)
        return contextlib.nullcontext(heard)

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    assert log.main([str(run.folder), "--to", "wandb", "--project", "p", "--name", "n"]) == 0
    check(heard, run)
    assert (heard["project"], heard["name"]) == ("p", "n")


def test_mistakes_are_one_line(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace())
    assert log.main([str(tmp_path), "--to", "wandb"]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path}: no run here; `fedsmooth train` writes one\n"
    monkeypatch.setitem(sys.modules, "mlflow", None)  # as if it were not installed
    assert log.main([str(run.folder), "--to", "mlflow"]) == 2
    assert "pip install mlflow" in capsys.readouterr().err


def frames(path):
    data = path.read_bytes()
    while data:
        (length,) = struct.unpack_from("<Q", data)
        yield data[12 : 12 + length]
        data = data[16 + length :]


def test_event_files(run):
    events = list(frames(run.folder / "tensorboard" / "events.out.tfevents.0.rounds"))
    assert len(events) == 4 and b"brain.Event:2" in events[0]
    assert [event[10] for event in events[1:]] == [1, 2, 3]  # the step, after nine bytes of time and a key


def test_tensorboard_reads_them(run):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulator.EventAccumulator(str(run.folder / "tensorboard")).Reload()
    losses = found.Scalars("train/loss")
    assert [s.step for s in losses] == [1, 2, 3] and losses[-1].value == pytest.approx(run.loss, rel=1e-5)

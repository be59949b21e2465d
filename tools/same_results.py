#!/usr/bin/env python3
"""Compare what two builds compute: same_results.py OLD_PROGRAM NEW_PROGRAM [--device cuda] [--rounds N]

Trains with both programs (every method, estimator and kind of network, clusters, reductions) and compares the
models: on a GPU bit for bit, on the CPU by the largest difference of a weight. Certifies models of the old
program with both and compares the rows, in all columns that both write but `time` and `base`. Exits with 1 if
models differ by more than --tolerance, or a row differs."""
import argparse
import array
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

METHODS = ["standard", "adversarial", "gaussian", "smoothadv", "stability", "consistency", "macer", "smoothmix",
           "cat-rs", "sun"]
CENTRALIZED = ["--train.mode=centralized"]
TRAININGS = {
    **{f"{model} {method}": [f"--model.name={model}", f"--train.method={method}"]
       for model in ("alexnet", "resnet20") for method in METHODS},
    "one-point": ["--attack.estimator=one-point", "--server.optimizer=momentum"],
    "two-point": ["--attack.estimator=two-point", "--server.optimizer=momentum"],
    "centralized": [*CENTRALIZED, "--train.local.passes=2"],
    "centralized resnet20": [*CENTRALIZED, "--model.name=resnet20"],
    "resnet20-gn": ["--model.name=resnet20-gn"],
    "resnet20-a": ["--model.name=resnet20-a"],
    "clusters": ["--server.clusters=2"],
    "median": ["--aggregate.kind=median"],
    "calibrated, adam": ["--model.name=resnet20", "--train.local.calibrate=true", "--server.optimizer=adam",
                         "--server.learning_rate=0.01"],
}
CERTIFIED = ["alexnet smoothadv", "resnet20 smoothadv", "resnet20-gn"]
CERTIFICATIONS = {
    "fixed": ["--n", "10000"],
    "radii": ["--n", "10000", "--radii", "0.05,0.1"],
    "plan": ["--n", "10000", "--plan", "0.02"],
    "multiclass": ["--n", "1000", "--only-correct", "--radius", "multiclass"],
    "exact noise": ["--n", "1000", "--noise", "exact", "--device", "cpu"],
}
OPTIONS = ["--data.name=shapes", "--partition.clients=50", "--partition.samples_per_client=200",
           "--train.clients_per_round=8", "--train.local.learning_rate=0.05", "--attack.epsilon=0.12",
           "--smoothing.sigma=0.12", "--quiet"]


def weights(path):
    """All tensors of a safetensors file, one after another by name."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    values = array.array("f")
    for name in sorted(header.keys() - {"__metadata__"}):
        begin, end = header[name]["data_offsets"]
        values.frombytes(data[8 + size + begin:8 + size + end])
    return values


def columns(path):
    """The columns of a table by name, without times and base classifiers."""
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    return {name: values for name, *values in zip(*lines) if name not in ("time", "base")}


def same_rows(old, new):
    shared = old.keys() & new.keys()
    return len(shared) > 10 and all(old[name] == new[name] for name in shared)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("programs", nargs=2, metavar="PROGRAM")
parser.add_argument("--device", default="cpu")
parser.add_argument("--rounds", default="2")
parser.add_argument("--steps", default="4")
parser.add_argument("--only", default="", help="trainings whose name has this in it")
parser.add_argument("--tolerance", type=float, default=1e-5, help="on the CPU")
a = parser.parse_args()
bad = 0
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "e.toml").write_text("")
    for name, options in TRAININGS.items():
        if a.only not in name:
            continue
        models = []
        for number, program in enumerate(a.programs):
            run = folder / f"{name}{number}"
            subprocess.run([program, "train", folder / "e.toml", *OPTIONS, *options, f"--train.rounds={a.rounds}",
                            f"--train.local.steps={a.steps}", "--device", a.device, "--out", run], check=True,
                           stdout=subprocess.DEVNULL)
            models.append(run / "model.safetensors")
        sha256 = [hashlib.sha256(model.read_bytes()).hexdigest()[:16] for model in models]
        apart = max(abs(x - y) for x, y in zip(*map(weights, models)))
        same = apart == 0 if a.device == "cuda" else apart <= a.tolerance
        bad += not same
        print(f"{name:24} {sha256[0]} {sha256[1]} largest difference {apart:.2e}{'' if same else '  DIFFERS'}",
              flush=True)
    for training in CERTIFIED:
        if a.only not in training:
            continue
        for name, options in CERTIFICATIONS.items():
            tables = []
            for number, program in enumerate(a.programs):
                out = folder / f"{training} {name}{number}.tsv"
                subprocess.run([program, "certify", folder / f"{training}0", "--every", "100", "--quiet", "--seed", "7",
                                "--device", a.device, *options, "--out", out], check=True, stdout=subprocess.DEVNULL)
                tables.append(columns(out))
            same = same_rows(*tables)
            bad += not same
            print(f"{training + ', ' + name:36} {len(tables[0]['idx'])} rows {'the same' if same else 'DIFFER'}",
                  flush=True)
sys.exit(bad > 0)

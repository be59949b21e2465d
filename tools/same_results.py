#!/usr/bin/env python3
"""Compare what two builds compute: same_results.py OLD_PROGRAM NEW_PROGRAM [--device cuda] [--rounds N]

Trains every method with both programs and compares the models: on a GPU bit for bit, on the CPU by the
largest difference of a weight. Certifies one model with both and compares the rows, all columns but
`time` and `base`. Exits with 1 if they differ by more than --tolerance, or a row differs."""
import argparse
import array
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

TRAININGS = {
    "standard": ["--train.method=standard"],
    "adversarial": ["--train.method=adversarial"],
    "gaussian": ["--train.method=gaussian"],
    "smoothadv": ["--train.method=smoothadv"],
    "one-point": ["--attack.estimator=one-point", "--train.server_momentum=0.9"],
    "two-point": ["--attack.estimator=two-point", "--train.server_momentum=0.9"],
    "centralized": ["--train.mode=centralized", "--train.local.passes=2"],
}
CERTIFICATIONS = {
    "fresh noise": ["--n", "10000"],
    "noise bank": ["--n", "10000", "--noise-bank"],
    "multiclass": ["--n", "1000", "--only-correct", "--radius", "multiclass"],
    "exact noise": ["--n", "1000", "--noise", "exact", "--device", "cpu"],
}
OPTIONS = ["--data.name=shapes", "--partition.samples_per_client=200", "--train.clients_per_round=8",
           "--train.local.learning_rate=0.05", "--attack.epsilon=0.12", "--smoothing.sigma=0.12", "--quiet"]


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


def rows(path):
    """A table without its times and base classifiers; columns that only newer programs write are left out."""
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    kept = [i for i, name in enumerate(lines[0]) if name not in ("time", "base", "noise", "shared")]
    return [[line[i] for i in kept] for line in lines]


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("programs", nargs=2, metavar="PROGRAM")
parser.add_argument("--device", default="cpu")
parser.add_argument("--rounds", default="1")
parser.add_argument("--steps", default="4")
parser.add_argument("--tolerance", type=float, default=1e-5, help="on the CPU")
a = parser.parse_args()
bad = 0
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "e.toml").write_text("")
    for name, options in TRAININGS.items():
        models = []
        for number, program in enumerate(a.programs):
            run = folder / f"{name}{number}"
            subprocess.run([program, "train", folder / "e.toml", *OPTIONS, *options, f"--train.rounds={a.rounds}",
                            f"--train.local.steps={a.steps}", "--device", a.device, "--out", run], check=True)
            models.append(run / "model.safetensors")
        sha256 = [hashlib.sha256(model.read_bytes()).hexdigest()[:16] for model in models]
        apart = max(abs(x - y) for x, y in zip(*map(weights, models)))
        same = apart == 0 if a.device == "cuda" else apart <= a.tolerance
        bad += not same
        print(f"{name:12} {sha256[0]} {sha256[1]} largest difference {apart:.2e}{'' if same else '  DIFFERS'}")
    for name, options in CERTIFICATIONS.items():
        tables = []
        for number, program in enumerate(a.programs):
            out = folder / f"{name}{number}.tsv"
            subprocess.run([program, "certify", folder / "smoothadv0", "--every", "100", "--quiet", "--device", a.device,
                            *options, "--out", out], check=True)
            tables.append(rows(out))
        same = tables[0] == tables[1]
        bad += not same
        print(f"{name:12} {len(tables[0]) - 1} rows {'the same' if same else 'DIFFER'}")
sys.exit(bad > 0)

"""A script written for locuslab/smoothing's core.py runs with one import changed."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

SCRIPT = """
import sys
import time

import numpy as np

from core import Smooth
from model import base_classifier, image

num_classes, sigma = 2, 0.25
n0, n, alpha, batch = 100, 1000, 0.001, 200

smoothed_classifier = Smooth(base_classifier, num_classes, sigma)
with open(sys.argv[1], "w") as f:
    print("idx\\tlabel\\tpredict\\tradius\\tcorrect\\ttime", file=f)
    for i in range(4):
        before = time.time()
        prediction, radius = smoothed_classifier.certify(image(i), n0, n, alpha, batch)
        correct = int(prediction == i % 2)
        print(f"{i}\\t{i % 2}\\t{prediction}\\t{radius:.3}\\t{correct}\\t{time.time() - before:.3f}", file=f)
        again = smoothed_classifier.predict(image(i), n, alpha, batch)
        assert again == prediction or Smooth.ABSTAIN in (again, prediction), (again, prediction)
assert Smooth(base_classifier, num_classes, 50.0).predict(image(0), 100, 1e-9, 100) == Smooth.ABSTAIN == -1
"""

NUMPY = """
import numpy as np

def image(i):
    return np.full((3, 4, 4), 0.3 if i % 2 == 0 else 0.7, np.float32)

def base_classifier(batch):
    score = np.array([x.sum(dtype=np.float64) - 24 for x in batch], np.float32)
    return np.stack([-score, score], axis=1)
"""

TORCH = """
import torch

def image(i):
    return torch.full((3, 4, 4), 0.3 if i % 2 == 0 else 0.7)

class Brightness(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = torch.nn.Dropout(0.5)  # left in training mode: Smooth puts it into evaluation mode

    def forward(self, x):
        score = self.drop(x).flatten(1).sum(1) - 24
        return torch.stack([-score, score], 1)

base_classifier = Brightness()
"""


@pytest.mark.parametrize("model", [NUMPY, TORCH], ids=["numpy", "torch"])
def test_one_import_is_changed(model, tmp_path):
    if model is TORCH:
        pytest.importorskip("torch")
    changed = SCRIPT.replace("from core import Smooth", "from fedsmooth import Smooth")
    (tmp_path / "certify.py").write_text(changed)
    (tmp_path / "model.py").write_text(model)
    out = tmp_path / "table.tsv"
    subprocess.run([sys.executable, tmp_path / "certify.py", out], check=True, cwd=tmp_path, timeout=120)
    rows = [line.split("\t") for line in pathlib.Path(out).read_text().splitlines()[1:]]
    assert [int(row[2]) for row in rows] == [0, 1, 0, 1]
    distance = 0.2 * np.sqrt(48)
    assert all(0.3 < float(row[3]) <= distance for row in rows)

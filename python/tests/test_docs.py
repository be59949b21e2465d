"""The examples of docs/python.md, the README and examples/, run as they stand."""

import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import PUBLISHED_ROWS, write_png

import fedsmooth as fs

ROOT = pathlib.Path(__file__).parents[2]


class ArtClassifier:
    nb_classes = 10

    def __init__(self, model):
        self.model = model

    def predict(self, x, batch_size=128):
        return self.model.logits(x)


def pixels(images):
    """A classifier that takes no time: ten pixels are its logits."""
    return images[:, 0, :10, 0]


@pytest.fixture
def names(experiment_file, few_images, tmp_path, monkeypatch):
    """What the pages take to be there."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(experiment_file, "smoothadv.toml")
    model = fs.train("smoothadv.toml", out="first").model("cpu")
    model.save("model.safetensors")
    groups = {"groups.count": 4, "partition.clients": 20, "partition.samples_per_client": 10, "train.rounds": 1}
    groups |= {"certify.n": 10_000, "certify.every": 10}
    (tmp_path / "published.tsv").write_text(PUBLISHED_ROWS)
    images, labels = fs.load_data("arrays", few_images)
    write_png(tmp_path / "cat.png", images[0].transpose(1, 2, 0))
    images = images / np.float32(255)
    corners = images[:, :, :10, :4]  # of which 100,000 noisy copies are soon drawn
    return {
        "model": pixels,
        "x": corners[3],
        "test_set": (corners, labels),
        "images": images[:2],
        "art_classifier": ArtClassifier(model),
        "our_model": model,
        "groups_run": fs.train("smoothadv.toml", groups, out="groups"),
    }


@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_pages(page, names):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    torch = sys.modules.get("torch") or _import_torch()
    if torch:
        names["torch_model"] = names["our_model"].to_torch()
    for block in blocks:
        if torch or "torch_model" not in block:
            exec(compile(block, page, "exec"), names)  # noqa: S102


def _import_torch():
    try:
        import torch
    except ImportError:
        return None
    return torch


def test_certify_torch(tmp_path):
    """With two numbers of steps in one folder: each model has a table of its own."""
    pytest.importorskip("torch")
    for steps in ("20", "10"):
        ran = subprocess.run(
            [sys.executable, ROOT / "examples" / "certify_torch.py", steps],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ran.returncode == 0, ran.stderr
        assert "certified accuracy" in ran.stdout

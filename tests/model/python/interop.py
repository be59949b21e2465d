#!/usr/bin/env python3
"""interop.py WRITE_LOGITS: do PyTorch and fedsmooth agree on model files?

Loads models that fedsmooth wrote through docs/load_model.py and compares logits, then rewrites the
files with the safetensors package and lets fedsmooth read them. Exits with 77, ctest's sign for a
skipped test, where torch or safetensors is missing.
"""

import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

sys.dont_write_bytecode = True  # leave nothing in docs/
sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "docs"))
from load_model import load

# A float32 sum of k products is off by about sqrt(k) 2^-24 of its size. The widest layer has
# k = 3456 and the deepest network 20 layers: 20 * 59 * 6e-8 = 7e-5.
TOLERANCE = 1e-4


def compare(folder, name):
    known = load_file(folder / f"{name}.logits.safetensors")
    with torch.no_grad():
        expected = load(folder / f"{name}.safetensors").double()(known["images"].double())
    # Relative to what the images change; a constant offset would hide errors.
    size = (expected - expected.mean(0)).abs().max()
    error = (known["logits"] - expected).abs().max() / size
    print(f"{name}: relative difference {error:.1e}")
    return bool(error <= TOLERANCE)


def rewrite(folder, name):
    path = folder / f"{name}.safetensors"
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    save_file(load_file(path), folder / f"{name}.rewritten.safetensors", metadata)


def main(program):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        subprocess.run([program, "write", folder], check=True)
        names = sorted(path.name.split(".")[0] for path in folder.glob("*.logits.safetensors"))
        agree = [compare(folder, name) for name in names]
        for name in names:
            rewrite(folder, name)
        subprocess.run([program, "check", folder], check=True)
        return 0 if len(names) == 3 and all(agree) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

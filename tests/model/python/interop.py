#!/usr/bin/env python3
"""interop.py WRITE_LOGITS: do PyTorch and fedsmooth agree on model files?

Loads models that fedsmooth wrote through docs/load_model.py and compares logits, then rewrites the
files with the safetensors package and lets fedsmooth read them. State dicts of torch modules, as
users save them, go the other way. Exits with 77, ctest's sign for a
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
from networks import MODULES

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


def spread(module):
    """The module in evaluation mode, with norms that are not the identity."""
    for part in module.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            for tensor in (part.weight.data, part.running_var):
                tensor.uniform_(0.5, 1.5)
            for tensor in (part.bias.data, part.running_mean):
                tensor.uniform_(-0.2, 0.2)
        elif isinstance(part, torch.nn.Conv2d):  # variance 2 / fan_in keeps the images in the maps
            torch.nn.init.kaiming_uniform_(part.weight)
    return module.eval()


def write_state_dict(folder, name):
    """A state dict, images, and the module's logits in double for the images normalised as by fedsmooth."""
    torch.manual_seed(0)
    module, images = spread(MODULES[name]()), torch.rand(4, 3, 32, 32)
    save_file(module.state_dict(), folder / f"{name}.state-dict.safetensors")
    mean, sd = (torch.tensor(values).double().view(3, 1, 1) for values in ((0.5, 0.4, 0.3), (0.2, 0.25, 0.3)))
    with torch.no_grad():
        logits = module.double()((images.double() - mean) / sd)
    save_file({"images": images, "logits": logits.float()}, folder / f"{name}.expected.safetensors")


def main(program):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        subprocess.run([program, "write", folder], check=True)
        names = sorted(path.name.split(".")[0] for path in folder.glob("*.logits.safetensors"))
        agree = [compare(folder, name) for name in names]
        for name in names:
            rewrite(folder, name)
        subprocess.run([program, "check", folder], check=True)
        for name in MODULES:
            write_state_dict(folder, name)
        subprocess.run([program, "compare", folder], check=True)
        return 0 if len(names) == 4 and all(agree) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

"""Certifiably robust classifiers by randomized smoothing.

    import fedsmooth as fs
    g = fs.Smooth(model, num_classes=10, sigma=0.25)  # torch, NumPy, JAX: [B, C, H, W] -> [B, K]
    label, radius = g.certify(x, n0=100, n=100_000, alpha=0.001, batch_size=1000)

No image within l2 distance `radius` of x gets another answer from g, with probability 1 - alpha.
"""

from . import _core
from ._certify import certify, certify_image, verify
from ._conformal import Conformal
from ._core import Attack, Comparison, Error, ImageCertificate, Round, Verification
from ._folder import save_folder
from ._model import Model, from_torch, load
from ._numbers import as_count, as_number
from ._show import Plot
from ._smooth import ABSTAIN, Certificate, Smooth
from ._table import Table, compare, merge, plot, read_certificates, recertify, report
from ._test_set import load_data
from ._train import Run, Sweep, attack, certify_run, sweep, train

__all__ = [
    "ABSTAIN",
    "Attack",
    "Certificate",
    "Comparison",
    "Conformal",
    "Error",
    "ImageCertificate",
    "Model",
    "Plot",
    "Round",
    "Run",
    "Smooth",
    "Sweep",
    "Table",
    "Verification",
    "__version__",
    "attack",
    "certify",
    "certify_image",
    "certify_run",
    "compare",
    "from_torch",
    "load",
    "load_data",
    "lower_bound",
    "merge",
    "plot",
    "read_certificates",
    "recertify",
    "report",
    "save_folder",
    "sweep",
    "train",
    "verify",
]

__version__: str = _core.version


def lower_bound(k: int, n: int, alpha: float = 0.001) -> float:
    """Returns the Clopper-Pearson bound: a p with P[Bin(n, p) >= k] <= alpha, within 1e-12 of the largest
    such p and never above it. k successes in n trials prove, at level alpha, a probability of at least p."""
    return _core.lower_bound(as_count("k", k), as_count("n", n), as_number("alpha", alpha))

"""Certifiably robust classifiers by randomized smoothing.

    import fedsmooth as fs
    g = fs.Smooth(model, num_classes=10, sigma=0.25)  # torch, NumPy, JAX: [B, C, H, W] -> [B, K]
    label, radius = g.certify(x, n0=100, n=100_000, alpha=0.001, batch_size=1000)

No image within l2 distance `radius` of x gets another answer from g, with probability 1 - alpha.
"""

from . import _core
from ._conformal import Conformal
from ._core import Comparison, Error, Round
from ._folder import save_folder
from ._model import Model, from_torch, load
from ._smooth import ABSTAIN, Certificate, Smooth
from ._table import Table, certify, compare, load_data, read_certificates
from ._train import Run, certify_run, train

__all__ = [
    "ABSTAIN",
    "Certificate",
    "Comparison",
    "Conformal",
    "Error",
    "Model",
    "Round",
    "Run",
    "Smooth",
    "Table",
    "__version__",
    "certify",
    "certify_run",
    "compare",
    "from_torch",
    "load",
    "load_data",
    "lower_bound",
    "read_certificates",
    "save_folder",
    "train",
]

__version__: str = _core.version


def lower_bound(k: int, n: int, alpha: float = 0.001) -> float:
    """The Clopper-Pearson bound: a p with P[Bin(n, p) >= k] <= alpha, within 1e-12 of the largest
    one and never above it. k successes in n trials prove, at level alpha, a probability of at least p."""
    return _core.lower_bound(k, n, alpha)

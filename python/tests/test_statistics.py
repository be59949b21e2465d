"""Bounds against values computed in long double, and against their definition."""

import math
import pathlib
import subprocess
import sys

import pytest

import fedsmooth as fs
from fedsmooth import _core

KNOWN = [  # n, k, p_lower at alpha = 0.001, radius for sigma = 1
    (100_000, 100_000, 0.999930924833009, 3.811456563390),
    (100_000, 99_000, 0.988989340377475, 2.289999955214),
    (100_000, 75_000, 0.745746842135567, 0.661165293912),
    (100_000, 51_000, 0.505109349244056, 0.012807589419),
    (1_000, 900, 0.867464018025748, 1.114483162280),
    (100, 80, 0.653557271289381, 0.394942318916),
    (10, 10, 0.501187233627272, 0.002975957771),
]


@pytest.mark.parametrize("n, k, p, radius", KNOWN)
def test_known_values(n, k, p, radius):
    assert fs.lower_bound(k, n, alpha=0.001) == pytest.approx(p, abs=2e-12)
    cert = _core.certificate_from_counts(0, n, k, n - k, 1.0, 0.001, "one-sided")
    assert cert.radius == pytest.approx(radius, abs=1e-10) and cert.predict == 0


def test_the_bound_keeps_its_level():
    for n, k in ((20, 20), (20, 13), (50, 3), (50, 1)):
        p = fs.lower_bound(k, n, 0.01)
        tail = sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))
        assert 0.01 - 1e-9 < tail <= 0.01 + 1e-15
    assert fs.lower_bound(0, 10, 0.01) == 0.0


@pytest.mark.parametrize(
    "k, n, alpha", [(-1, 10, 0.1), (11, 10, 0.1), (1, 0, 0.1), (1, 10, 0), (1, 10, 1), (1, 10, math.nan)]
)
def test_what_cannot_be_is_refused(k, n, alpha):
    with pytest.raises(fs.Error):
        fs.lower_bound(k, n, alpha)


def test_too_few_votes_abstain():
    assert _core.certificate_from_counts(0, 9, 9, 0, 1.0, 0.001, "one-sided").predict == fs.ABSTAIN


def test_import_is_fast_and_takes_numpy_only():
    code = (
        "import numpy, sys, time; before = set(sys.modules); start = time.process_time(); import fedsmooth;"
        "spent = time.process_time() - start;"
        "assert not {'torch', 'pandas', 'scipy', 'jax'} & set(sys.modules); print(spent)"
    )
    spent = min(
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
        for _ in range(5)
    )
    assert spent < 0.05


def test_the_module_needs_system_libraries_only():
    needed = subprocess.run(["ldd", _core.__file__], capture_output=True, text=True)
    if needed.returncode != 0:
        pytest.skip("no ldd")
    own = str(pathlib.Path(_core.__file__).parent)  # what the wheel brings along
    names = {line.split()[0].split(".so")[0] for line in needed.stdout.splitlines() if f"=> {own}/" not in line}
    assert names <= {
        "linux-vdso",
        "libstdc++",
        "libm",
        "libgcc_s",
        "libc",
        "libpthread",
        "libdl",
        "/lib64/ld-linux-x86-64",
    }


def test_every_name_has_a_docstring():
    for name in fs.__all__:
        assert name in ("ABSTAIN", "__version__") or getattr(fs, name).__doc__, name

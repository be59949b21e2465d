"""The installed package's annotations, by mypy --strict, and that a user's checker sees them."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("mypy")
CONFIG = pathlib.Path(__file__).parents[2] / "pyproject.toml"


def check(folder, *words):
    """Exit status and output; in a folder without a fedsmooth of its own, so that the installed one is found."""
    command = [sys.executable, "-m", "mypy", "--cache-dir", folder / "cache", "--config-file"]
    done = subprocess.run([*command, *words], cwd=folder, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_the_package_is_clean(tmp_path):
    status, said = check(tmp_path, CONFIG, "-p", "fedsmooth")
    assert status == 0, said


def test_a_users_script_is_checked(tmp_path):
    (tmp_path / "script.py").write_text(
        "import fedsmooth as fs\n"
        "proved = fs.certify_image('model.safetensors', 'cat.png', n=1000)\n"
        "label: int = proved.label\n"
        "radius: str = proved.radius\n"
        "bound: str = fs.lower_bound(1, 2)\n"
    )
    status, said = check(tmp_path, "", "--strict", "script.py")
    lines = [line for line in said.splitlines() if line.startswith("script.py")]
    assert status == 1 and len(lines) == 2, said
    assert all('expression has type "float", variable has type "str"' in line for line in lines), said

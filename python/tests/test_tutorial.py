"""The cells of docs/tutorial.ipynb, run in order as a notebook runs them."""

import ast
import json
import pathlib
import shutil

import pytest

NOTEBOOK = pathlib.Path(__file__).parents[2] / "docs" / "tutorial.ipynb"


def cells():
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"]), cell["outputs"]


def run_cell(source, names):
    """Runs a cell and returns what the notebook would show of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "tutorial", "exec"), names)  # noqa: S102
    if last is None:
        return None
    value = eval(compile(ast.Expression(last.value), "tutorial", "eval"), names)
    return value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)


def test_the_tutorial_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "tutorial"}
    shown = [run_cell(source, names) for source, _ in cells()]
    assert sum("<svg" in text for text in shown if text) == 4  # three tables and a comparison
    assert "True" in shown  # two nodes give the bits of one process
    assert sum(": plausible)" in text for text in shown if text) == 2
    assert "radius_exact is above what its counts support" in capsys.readouterr().out
    noisy, plain = names["noisy_table"], names["plain_table"]
    assert noisy.certified_accuracy(0) > plain.certified_accuracy(0)
    assert not shutil.which("gnuplot") or (tmp_path / "page.html").exists()


def test_the_tutorial_has_the_outputs_of_a_run():
    kept = [outputs for source, outputs in cells() if run_leaves_output(source)]
    assert kept and all(kept)
    assert NOTEBOOK.stat().st_size < 150_000
    assert "/tmp/" not in NOTEBOOK.read_text() and "Traceback" not in NOTEBOOK.read_text()


def run_leaves_output(source):
    last = ast.parse(source).body[-1]
    return isinstance(last, ast.Expr)

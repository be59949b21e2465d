"""Pages, figures and checks of tables, from Python."""

import gc
import pathlib
import shutil
import xml.etree.ElementTree

import numpy as np
import pytest
from conftest import half_space

import fedsmooth as fs

OPTIONS = {"n": 500, "batch_size": 100}
NEEDS_GNUPLOT = pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")


def halves(test_set):
    return test_set[0], test_set[1] % 2


@pytest.fixture
def table(model, test_set, tmp_path):
    return fs.certify(model, test_set, n=500, out=tmp_path / "t.tsv")


def test_certified_accuracy_of_many_radii(table):
    radii = [0.0, 0.1, 0.25, 9.0]
    found = table.certified_accuracy(radii)
    assert isinstance(found, np.ndarray) and found.tolist() == [table.certified_accuracy(r) for r in radii]
    assert isinstance(table.certified_accuracy(0.1), float)
    exact = float(table["radius"][table["correct"]].max()) if table["correct"].any() else 0.0
    assert table.certified_accuracy(exact) > table.certified_accuracy(exact + 1e-9)


@NEEDS_GNUPLOT
def test_a_page_about_a_table(table, tmp_path):
    assert table.report() == tmp_path / "t.html" and "</html>" in (tmp_path / "t.html").read_text()
    page = fs.report({"our model": table, "again": tmp_path / "t.tsv"}, out=tmp_path / "two.html")
    assert "our model" in page.read_text() and "again" in page.read_text()
    assert fs.report([table], tmp_path / "t.md").read_text().startswith("|")
    with pytest.raises(fs.Error, match="need out="):
        fs.report([table, table])
    with pytest.raises(fs.Error, match=r"out=.*page.pdf: must end in .html or .md"):
        fs.report(table, tmp_path / "page.pdf")


@NEEDS_GNUPLOT
def test_a_page_says_why_images_in_memory_are_not_shown(table):
    page = table.report().read_text()
    assert "No test images are shown: the table names its data set &quot;python&quot;, which is not" in page
    assert "data.name=" not in page


@NEEDS_GNUPLOT
def test_a_table_without_a_file_can_be_shown_and_compared(model, test_set, table, tmp_path):
    scratch = fs.certify(model, test_set, n=500)
    assert scratch.path is None
    assert "</html>" in scratch.report(tmp_path / "page.html", name="scratch").read_text()
    assert fs.compare(table, scratch).images == 12
    with pytest.raises(fs.Error, match="need out="):
        scratch.report()
    folder = pathlib.Path(scratch._file).parent
    assert folder.exists()
    del scratch
    gc.collect()
    assert not folder.exists()


@NEEDS_GNUPLOT
def test_figures(table, tmp_path):
    for name in ("a.svg", "a.png", "a.pdf"):
        assert fs.plot({"x": table}, tmp_path / name).stat().st_size > 1000
    with pytest.raises(fs.Error, match="what=history: must be certified, training or attack"):
        fs.plot(table, tmp_path / "a.svg", what="history")


def paths_of(svg):
    root = xml.etree.ElementTree.fromstring(svg)
    return [p for p in root.iter("{http://www.w3.org/2000/svg}path") if p.get("stroke-width") == "2"]


def test_a_notebook_shows_curves_without_gnuplot(model, table, test_set, tmp_path):
    shown = table._repr_html_()
    assert "<svg" in shown and "certified accuracy" in shown and "12 images" in shown
    plot = table.plot(tmp_path / "curve.svg", name="a < b")
    assert len(paths_of((tmp_path / "curve.svg").read_text())) == 1 and "a &lt; b" in plot.svg
    found = fs.compare(table, fs.certify(model, test_set, n=500, sigma=0.5))
    assert len(paths_of(found._repr_html_()[found._repr_html_().index("<svg") :].split("</svg>")[0] + "</svg>")) == 2
    assert "radius" in repr(found)
    with pytest.raises(fs.Error, match="fs.plot"):
        table.plot(tmp_path / "curve.pdf")


def test_the_curve_is_never_above_the_certified_accuracy(table):
    (path,) = paths_of(table.plot().svg)
    commands = path.get("d").replace("V", " V").replace("H", " H").split()
    x, y = (float(v) for v in commands[0][1:].split(","))
    right = 468.0
    end = float(
        max(
            t.text
            for t in xml.etree.ElementTree.fromstring(table.plot().svg).iter("{http://www.w3.org/2000/svg}text")
            if t.get("y") == "250"
        )
    )
    for command in commands[1:]:
        if command[0] == "V":
            y = float(command[1:])
            continue
        x = float(command[1:])
        share = (232 - y) / (232 - 16)
        # The share of a piece holds up to its right end.
        assert share <= table.certified_accuracy(max(0.0, (x - 48 - 0.06) / (right - 48) * end)) + 0.003


def test_a_table_of_a_function_is_verified(test_set, tmp_path):
    g, data = fs.Smooth(half_space, 2, 0.25), halves(test_set)
    table = fs.certify(g, data, every=2, out=tmp_path / "t.tsv", **OPTIONS)
    found = fs.verify(table, g, data, images=4, seed=5)
    assert found.plausible and found.rows == 6 and len(found.images) == 4 and found.seed == 5
    assert all(image.n == 500 for image in found.images) and "plausible" in repr(found)
    assert fs.verify(table, g, data, images=0).images == []
    with pytest.raises(fs.Error, match="another model"):
        fs.verify(table, fs.Smooth(lambda x: 2 * half_space(x), 2, 0.25), data)
    with pytest.raises(fs.Error, match="another data set"):
        fs.verify(table, g, (data[0][::-1].copy(), data[1]))
    with pytest.raises(fs.Error, match="sigma 0.25"):
        fs.verify(table, fs.Smooth(half_space, 2, 0.5), data)
    with pytest.raises(fs.Error, match="test set too"):
        fs.verify(table, g)
    with pytest.raises(fs.Error, match="neither a Smooth nor a Model"):
        fs.verify(table, half_space, data)
    items = list(zip(data[0] / np.float32(255), data[1], strict=True))
    listed = fs.certify(g, items, every=5, out=tmp_path / "l.tsv", **OPTIONS)
    assert fs.verify(listed, g, items).plausible


def test_planted_votes_are_found(test_set, tmp_path):
    """A table whose counts are those of an easier classifier, under the fingerprint of the one that is claimed."""
    easy, data = fs.Smooth(half_space, 2, 0.05, seed=1), halves(test_set)
    hard = fs.Smooth(half_space, 2, 0.05 * 40, seed=1)
    fs.certify(easy, data, out=tmp_path / "t.tsv", **OPTIONS)
    fs.certify(hard, data, out=tmp_path / "hard.tsv", **OPTIONS)
    lines = [line.split("\t") for line in (tmp_path / "t.tsv").read_text().splitlines()]
    claimed = [line.split("\t") for line in (tmp_path / "hard.tsv").read_text().splitlines()]
    column = claimed[0].index
    rows = [claimed[0]]
    for mine, theirs in zip(lines[1:], claimed[1:], strict=True):
        row = list(theirs)
        for name in ("selected", "count_top", "count_runner_up", "votes", "selection_votes"):
            row[column(name)] = mine[column(name)]
        row[column("predict")], row[column("radius")], row[column("correct")] = "-1", "0", "0"
        for name in ("p_lower", "radius_exact"):
            if name in claimed[0]:
                row[column(name)] = "0"
        rows.append(row)
    (tmp_path / "hard.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    with pytest.warns(UserWarning, match="implausible"):
        assert not fs.verify(tmp_path / "hard.tsv", hard, data, images=12).plausible


def test_a_table_of_our_engine_is_verified(model, test_set, tmp_path):
    table = fs.certify(model, test_set, out=tmp_path / "t.tsv", n=500)
    assert fs.verify(table, model, test_set, images=3).plausible


def test_a_run_is_verified_attacked_and_recomputed(experiment_file, tmp_path):
    run = fs.train(experiment_file, out=tmp_path / "run")
    table = fs.certify_run(run.folder, {"certify.every": 8}, device="cpu")
    assert fs.verify(table, images=2, device="cpu").plausible
    found = fs.attack(run.folder, [0.25], {"certify.every": 20, "attack.steps": 2}, n=100, device="cpu")
    assert [p.epsilon for p in found.points] == [0.0, 0.25] and found.table.exists()
    assert found.points[1].accuracy <= found.points[0].accuracy or found.images < 5
    other = fs.recertify(table, 0.01, out=tmp_path / "other.tsv")
    assert (other["radius"] >= table["radius"]).all() and set(other["alpha"]) == {0.01}
    with pytest.raises(fs.Error, match="choose another out="):
        fs.recertify(table, 0.01, out=tmp_path / "other.tsv")
    with pytest.raises(fs.Error, match="^alpha=2: "):
        fs.recertify(table, 2)
    kept = fs.recertify(table, radius="multiclass", out=tmp_path / "kept.tsv")
    assert set(kept["alpha"]) == set(table["alpha"])
    with pytest.raises(fs.Error, match="nothing to change; give alpha=, radius= or malicious="):
        fs.recertify(table)
    with pytest.raises(fs.Error, match="^malicious=1: .* is about one network"):
        fs.recertify(table, malicious=1)


def test_shards_are_merged(experiment_file, tmp_path):
    run = fs.train(experiment_file, out=tmp_path / "run")
    from fedsmooth import _core

    shards = [tmp_path / f"{i}.tsv" for i in (1, 2)]
    for i, shard in enumerate(shards, 1):
        words = ["fedsmooth", "certify", str(run.folder), f"--shard={i}/2", "--out", str(shard), "--every=8", "--quiet"]
        import subprocess
        import sys

        subprocess.run([sys.executable, "-m", *words, "--device=cpu"], check=True)
    assert len(fs.merge(shards, tmp_path / "all.tsv")) == 5
    with pytest.raises(fs.Error, match="all.tsv: exists; choose another out="):
        fs.merge(shards, tmp_path / "all.tsv")
    assert _core.holds_runs(tmp_path)


@NEEDS_GNUPLOT
def test_a_sweep(experiment_file, tmp_path):
    folder = tmp_path / "experiments"
    folder.mkdir()
    text = experiment_file.read_text()
    for name, rounds in (("one", 1), ("two", 2)):
        (folder / f"{name}.toml").write_text(text.replace("rounds = 2", f"rounds = {rounds}"))
    found = fs.sweep(folder, {"certify.every": 20}, out=tmp_path / "runs", device="cpu")
    assert found.failed == 0 and [run.name for run in found.runs] == ["one", "two"]
    assert "</html>" in found.page.read_text()


def test_messages_are_in_the_words_of_python(model, test_set, experiment_file, tmp_path):
    out = tmp_path / "t.tsv"
    fs.certify(model, test_set, n=500, out=out)
    with pytest.raises(fs.Error, match="t.tsv: exists; continue it with resume=True or choose another out="):
        fs.certify(model, test_set, n=500, out=out)
    with pytest.raises(fs.Error, match=r"another measurement.*choose another out=, or delete it"):
        fs.certify(model, test_set, n=600, out=out, resume=True)
    other = r"of other images or labels, which differs in data_sha256: \"[0-9a-f]{12}\.\.\.\" there"
    with pytest.raises(fs.Error, match=other):
        fs.certify(model, (test_set[0], test_set[1][::-1]), n=500, out=out, resume=True)
    with pytest.raises(fs.Error, match="of another data set, which differs in data: \"python\" there, \"mine\" here"):
        fs.certify(model, test_set, n=500, out=out, resume=True, name="mine")
    with pytest.raises(fs.Error, match="^train.metod: unknown key"):
        fs.train(experiment_file, {"train.metod": "x"}, out=tmp_path / "run")
    with pytest.raises(fs.Error, match="device=gpu: must be auto, cpu or cuda"):
        fs.train(experiment_file, out=tmp_path / "run", device="gpu")
    with pytest.raises(fs.Error, match="`fedsmooth data cifar10 --out .*` gets it"):
        fs.load_data("cifar10", tmp_path)
    f = fs.Smooth(half_space, 2, 0.25)
    fs.certify(f, halves(test_set), out=tmp_path / "f.tsv", **OPTIONS)
    with pytest.raises(fs.Error, match="of another model, which differs in fingerprint"):
        fs.certify(
            fs.Smooth(lambda x: half_space(x) * 3, 2, 0.25),
            halves(test_set),
            out=tmp_path / "f.tsv",
            resume=True,
            **OPTIONS,
        )


def test_a_loader_is_refused_with_the_remedy(model):
    class Loader:
        dataset = ()

    with pytest.raises(fs.Error, match="give loader.dataset"):
        fs.certify(model, Loader())

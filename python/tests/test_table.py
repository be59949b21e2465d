"""Tables of certificates: written, resumed, read."""

import json
import threading

import numpy as np
import pytest
from conftest import PUBLISHED_ROWS, half_space

import fedsmooth as fs

OPTIONS = {"n": 500, "batch_size": 100}


def test_a_table_holds_what_single_certificates_say(model, test_set, tmp_path):
    images, labels = test_set
    out = tmp_path / "t.tsv"
    table = fs.certify(model, test_set, every=3, out=out, n=500)
    assert list(table["idx"]) == [0, 3, 6, 9] and list(table["label"]) == list(labels[::3])
    single = model.certify(images[::3] / np.float32(255), n=500, seed=int(table["seed"][0]), indices=[0, 3, 6, 9])
    assert list(table["count_top"]) == [c.count_top for c in single]
    assert list(table["radius"]) == [c.radius for c in single]
    assert table.votes.shape == table.selection_votes.shape == (4, model.num_classes)
    assert list(table.votes[range(4), table["selected"]]) == [c.count_top for c in single]
    assert list(table.votes.sum(1)) == list(table["n"]) and list(table.selection_votes.sum(1)) == list(table["n0"])
    assert list(table.selection_votes.argmax(1)) == list(table["selected"])
    correct = table["predict"] == labels[::3]
    assert table.certified_accuracy(0.1) == np.mean(correct & (table["radius"] >= 0.1))
    assert table.acr == pytest.approx(np.mean(correct * table["radius"]))
    assert out.read_text().startswith("idx\tlabel\tpredict\tradius\tcorrect\ttime\t")
    identity = json.loads(out.with_suffix(".json").read_text())["identity"]
    assert identity["model_sha256"] == model.sha256 and identity["every"] == 3


def test_a_function_a_data_set_and_floats(test_set):
    images, labels = test_set
    images, labels = images / np.float32(255), labels % 2
    whole = fs.certify(fs.Smooth(half_space, 2, 0.25), (images, labels), **OPTIONS)
    items = list(zip(images, labels, strict=True))
    assert np.array_equal(fs.certify(fs.Smooth(half_space, 2, 0.25), items, **OPTIONS)["count_top"], whole["count_top"])
    between = images * np.float32(0.999)  # not bytes
    some = fs.certify(fs.Smooth(half_space, 2, 0.25), (between, labels), limit=2, **OPTIONS)
    assert len(some) == 2
    again = fs.Smooth(half_space, 2, 0.25, seed=int(some["seed"][1]))
    alone = again.certificate(between[1], index=1, **OPTIONS)
    assert some["radius"][1] == alone.radius


def test_radii_against_classes(model, test_set, tmp_path):
    table = fs.certify(model, test_set, out=tmp_path / "t.tsv", n=500, alpha=0.01)
    answers = np.array(table["selected"])
    others = table.radii_against(*(c for c in range(model.num_classes) if c != answers[0]))
    multiclass = fs.certify(model.smooth(seed=int(table["seed"][0]), radius="multiclass"), test_set, n=500, alpha=0.01)
    assert others[0] >= multiclass["radius"][0]
    one = table.radii_against(int(answers[0]))
    assert one.shape == (len(table),) and not one[answers == answers[0]].any()
    assert (table.radii_against(top=1) <= table.radii_against(top=2)).all()
    assert (table.radii_against(0, alpha=1e-6) <= table.radii_against(0)).all()
    path = tmp_path / "super.toml"
    path.write_text('low = ["0", "1"]\nhigh = ["2", "3"]\n')
    assert np.array_equal(
        table.radii_against("low", superclasses=path)[answers > 1], table.radii_against(superclasses=path)[answers > 1]
    )
    for wrong in ({"superclasses": tmp_path / "none.toml"}, {"top": 9}, {}):
        with pytest.raises(fs.Error):
            table.radii_against(**wrong)
    with pytest.raises(fs.Error, match="no class of the table"):
        table.radii_against("bird")
    with pytest.raises(fs.Error, match="class 9 of 4"):
        table.radii_against(9)


def test_radii_against_numbers_of_classes_that_are_called_otherwise(tmp_path):
    def never_2(images):  # but often 3, which is called "2", as a folder sorts its classes
        bright = images[:, 0, 0, 0] > 0.75
        return np.stack([~bright, 0 * bright, 0 * bright, bright], axis=1).astype(np.float32)

    images, names = np.full((2, 1, 2, 2), 0.5, np.float32), ["0", "1", "10", "2"]
    table = fs.certify(fs.Smooth(never_2, 4, 0.25), (images, [0, 0]), out=tmp_path / "t.tsv", class_names=names, n=1000)
    assert np.array_equal(table.radii_against(2), table.radii_against("10"))
    assert np.array_equal(table.radii_against(np.int64(3)), table.radii_against("2"))
    assert (table.radii_against(2) > table.radii_against(3)).all()


def test_what_a_kill_left_is_resumed(test_set, tmp_path):
    g, out = fs.Smooth(half_space, 2, 0.25), tmp_path / "t.tsv"
    data = test_set[0], test_set[1] % 2
    fs.certify(g, data, out=out, **OPTIONS)
    whole = [line.split("\t")[:5] for line in out.read_text().splitlines()]
    out.write_text("\n".join(out.read_text().splitlines()[:5]) + "\n3\t1")
    with pytest.raises(fs.Error, match="t.tsv"):
        fs.certify(g, data, out=out, **OPTIONS)
    fs.certify(g, data, out=out, resume=True, **OPTIONS)
    assert [line.split("\t")[:5] for line in out.read_text().splitlines()] == whole
    with pytest.raises(fs.Error, match="seed"):
        fs.certify(fs.Smooth(half_space, 2, 0.25, seed=1), data, out=out, resume=True, **OPTIONS)
    with pytest.raises(fs.Error, match="sigma"):
        fs.certify(fs.Smooth(half_space, 2, 0.5), data, out=out, resume=True, **OPTIONS)


def test_what_is_interrupted_is_resumed(test_set, tmp_path):
    calls = 0

    def interrupted(images):
        nonlocal calls
        calls += 1
        if calls == 300:
            raise KeyboardInterrupt
        return half_space(images)

    data = test_set[0], test_set[1] % 2
    options = {"n": 2000, "batch_size": 20}
    with pytest.raises(KeyboardInterrupt):
        fs.certify(fs.Smooth(interrupted, 2, 0.25), data, out=tmp_path / "t.tsv", limit=6, **options)
    assert 0 < len(fs.read_certificates(tmp_path / "t.tsv")) < 6
    table = fs.certify(fs.Smooth(half_space, 2, 0.25), data, out=tmp_path / "t.tsv", limit=6, resume=True, **options)
    assert len(table) == 6


def test_resuming_keeps_the_batch_of_the_table(test_set, tmp_path):
    """Another batch would be another function, and the table would refuse it."""
    data, out = (test_set[0], test_set[1] % 2), tmp_path / "t.tsv"
    g = fs.Smooth(half_space, 2, 0.25)
    written = fs.certify(g, data, limit=2, n=500, batch_size=50, out=out)
    assert fs.certify(g, data, limit=2, n=500, out=out, resume=True)["base"] == written["base"]
    with pytest.raises(fs.Error, match="base"):
        fs.certify(g, data, limit=2, n=500, batch_size=100, out=out, resume=True)


def test_a_model_that_changes_makes_the_table_void(test_set, tmp_path):
    calls = 0

    def drifts(images):
        nonlocal calls
        calls += 1
        return half_space(images) + (calls > 12)

    with pytest.raises(fs.Error, match="void"):
        fs.certify(fs.Smooth(drifts, 2, 0.25), (test_set[0], test_set[1] % 2), out=tmp_path / "t.tsv", **OPTIONS)
    with pytest.raises(fs.Error, match="void"):
        fs.read_certificates(tmp_path / "t.tsv")


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda x, y: (x, y[:-1]), "labels"),
        (lambda x, y: (x, y + 1), "label"),
        (lambda x, y: (x, y - 5), "label"),
        (lambda x, y: (x, y + 0.5), "class number"),
        (lambda x, y: (x.astype(np.int64), y), r"bytes \(uint8\)"),
        (lambda x, y: (x.astype(np.float32), y), "outside"),
        (lambda x, y: [], "no images"),
        (lambda x, y: 3, "neither"),
        (lambda x, y: x, r"an array without labels; give a pair \(images, labels\)"),
        (lambda x, y: [("a", 1)], "image 0"),
        (lambda x, y: [(x[0] / 255, 0), (x[1, :, 1:] / 255, 0)], "image 1"),
    ],
)
def test_test_sets_that_are_none(model, test_set, tmp_path, change, message):
    images, labels = test_set
    labels[0] = 3
    with pytest.raises(fs.Error, match=message):
        fs.certify(model, change(images, labels), out=tmp_path / "t.tsv", n=500)
    assert not list(tmp_path.glob("t.*"))


def test_published_tables_of_six_columns(tmp_path):
    path = tmp_path / "published.tsv"
    path.write_text(PUBLISHED_ROWS)
    table = fs.read_certificates(path)
    assert len(table) == 4 and table.abstained == 0.25
    assert table.certified_accuracy(0) == 0.5 and table.certified_accuracy(0.5) == 0.25
    assert table.acr == pytest.approx((0.5 + 1e-5) / 4)
    row = "\t3\t3\t0.5\t1\t0:00:15\n"
    for rows, message in {
        "0\t3\t3\tnan\t1\t0:00:15\n": "published.tsv:2: radius",
        "0" + row + "0" + row: "published.tsv:3: idx 0 occurs twice",
        "-7" + row: "published.tsv:2: idx is out of range",
    }.items():
        path.write_text("idx\tlabel\tpredict\tradius\tcorrect\ttime\n" + rows)
        with pytest.raises(fs.Error, match=message):
            fs.read_certificates(path)


def test_two_tables_on_their_common_images(model, test_set, tmp_path):
    more = fs.certify(model, test_set, out=tmp_path / "a.tsv", n=500)
    less = fs.certify(model, test_set, every=2, sigma=0.5, out=tmp_path / "b.tsv", n=500)
    found = fs.compare(more, tmp_path / "b.tsv", out=tmp_path / "page.html")
    assert (found.images, found.images_a, found.images_b) == (6, 12, 6)
    common = more["radius"][::2] * more["correct"][::2]
    assert found.acr_a == pytest.approx(np.mean(common)) and found.acr_b == pytest.approx(less.acr)
    at = found.radii[0]
    assert at.radius == 0 and at.b == less.certified_accuracy(0)
    assert at.difference.value == pytest.approx(at.a - at.b)
    assert at.difference.low <= at.difference.value <= at.difference.high
    assert (at.both + at.only_a) / found.images == pytest.approx(at.a)
    assert "</html>" in (tmp_path / "page.html").read_text()
    with pytest.raises(fs.Error, match="no file"):
        fs.compare(fs.Table(more.columns), less)
    with pytest.raises(fs.Error, match="label"):
        other = (test_set[0], (test_set[1] + 1) % 4)
        fs.compare(more, fs.certify(model, other, out=tmp_path / "c.tsv", n=500))


def test_altered_tables_are_refused(model, test_set, tmp_path):
    out = tmp_path / "t.tsv"
    fs.certify(model, test_set, out=out, n=500)
    lines = out.read_text().splitlines(keepends=True)
    fields = lines[1].split("\t")
    fields[14] = "9.5"
    out.write_text(lines[0] + "\t".join(fields))
    with pytest.raises(fs.Error, match="t.tsv:2"):
        fs.read_certificates(out)
    with pytest.raises(fs.Error, match="no certificates"):
        fs.read_certificates(tmp_path / "none.tsv")


def test_pandas(model, test_set):
    pytest.importorskip("pandas")
    frame = fs.certify(model, test_set, n=500, limit=3).to_pandas()
    assert len(frame) == 3 and {"idx", "radius", "correct", "base"} <= set(frame.columns)


def test_threads_of_their_own(model_file, test_set):
    def work():
        tables.append(fs.certify(fs.load(model_file, threads=1), test_set, n=500))

    tables = []
    threads = [threading.Thread(target=work) for _ in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(tables) == 3 and all(np.array_equal(t["count_top"], tables[0]["count_top"]) for t in tables)

"""How far a job is: on a terminal, in a notebook, in a log."""

import io
import sys
import types

import pytest
from conftest import half_space

import fedsmooth as fs
from fedsmooth import _progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Moves only as the test says."""
    time = types.SimpleNamespace(now=0.0)
    monkeypatch.setattr(_progress.time, "monotonic", lambda: time.now)
    return time


def steps(bar, clock, count, seconds):
    for i in range(count):
        clock.now += seconds
        bar.step(f"note {i + 1}")
    bar.close()


def test_a_terminal_has_a_bar_in_one_line(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", Terminal())
    bar = _progress.bar_or_none()("certify", 2, 4)
    steps(bar, clock, 2, 1.0)
    printed = sys.stderr.getvalue()
    assert "[##################......] 3/4  1/s  1s left  note 1" in printed and printed.endswith("\r\033[K")
    assert "\n" not in printed


def test_a_log_has_a_line_now_and_then(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    steps(_progress.bar_or_none()("train", 0, 10), clock, 10, 9.0)
    assert sys.stderr.getvalue().splitlines() == [
        f"train {done}/10  0.111/s  {left}s left  note {done}" for done, left in ((3, 63), (6, 36), (9, 9))
    ]
    sys.stderr.truncate(0)
    steps(_progress.bar_or_none()("train", 0, 10), clock, 10, 0.1)
    assert not sys.stderr.getvalue()  # done before there was anything to say


@pytest.fixture
def notebook(monkeypatch):
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))


def test_a_notebook_has_tqdm_s_bar(monkeypatch, notebook, test_set):
    bars = []

    class Tqdm:
        def __init__(self, desc, initial, total):
            self.desc, self.n, self.total, self.closed = desc, initial, total, False
            bars.append(self)

        def set_postfix_str(self, note, refresh):
            self.note = note

        def update(self):
            self.n += 1

        def close(self):
            self.closed = True

    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Tqdm))
    data = test_set[0], test_set[1] % 2
    fs.certify(fs.Smooth(half_space, 2, 0.25), data, n=200, batch_size=100)
    (bar,) = bars
    assert (bar.desc, bar.n, bar.total, bar.closed) == ("certify", 12, 12, True) and "correct" in bar.note


def test_a_notebook_without_tqdm_has_lines(monkeypatch, notebook, clock):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    steps(_progress.bar_or_none()("certify", 0, 4), clock, 4, 6.0)
    assert len(sys.stderr.getvalue().splitlines()) == 4

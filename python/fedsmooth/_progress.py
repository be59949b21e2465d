"""Shows the progress of a job: by a bar on a terminal, by tqdm in a notebook, else by a line at intervals."""

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, Protocol

WIDTH, INTERVAL = 24, 0.1
LINES_EVERY, LINES_EVERY_IN_NOTEBOOKS = 20.0, 5.0  # seconds


class Progress(Protocol):
    def step(self, note: str) -> None: ...
    def close(self) -> None: ...


class _Rate:
    """Counts steps from `done` to `total`. Steps done before do not count for the rate."""

    def __init__(self, what: str, done: int, total: int) -> None:
        self.what, self.first, self.done, self.total = what, done, done, total
        self.start = self.shown = time.monotonic()

    def is_due(self, interval: float) -> bool:
        now = time.monotonic()
        if now - self.shown < interval and self.done < self.total:
            return False
        self.shown = now
        return True

    def line(self, note: str) -> str:
        rate = (self.done - self.first) / max(self.shown - self.start, 1e-9)
        left = (self.total - self.done) / max(rate, 1e-9)
        return f"{self.done}/{self.total}  {rate:.3g}/s  {left:.0f}s left  {note}"


class Bar(_Rate):
    """A bar in one line of a terminal."""

    def step(self, note: str) -> None:
        self.done += 1
        if not self.is_due(INTERVAL):
            return
        filled = WIDTH * self.done // max(1, self.total)
        sys.stderr.write(f"\r\033[K{self.what} [{'#' * filled}{'.' * (WIDTH - filled)}] {self.line(note)}")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()


class Lines(_Rate):
    """A line at intervals, for logs. A job that ends within the first interval prints nothing."""

    interval = LINES_EVERY

    def step(self, note: str) -> None:
        self.done += 1
        if time.monotonic() - self.shown >= self.interval and self.is_due(self.interval):
            print(f"{self.what} {self.line(note)}", file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class NotebookLines(Lines):
    interval = LINES_EVERY_IN_NOTEBOOKS


class Tqdm:
    """tqdm's bar, which is a widget in a notebook."""

    def __init__(self, tqdm: Callable[..., Any], what: str, done: int, total: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without ipywidgets it is a line of text
            self._bar: Any = tqdm(desc=what, initial=done, total=total)

    def step(self, note: str) -> None:
        self._bar.set_postfix_str(note, refresh=False)
        self._bar.update()

    def close(self) -> None:
        self._bar.close()


def in_notebook() -> bool:
    """Returns whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def bar_or_none() -> Callable[[str, int, int], Progress] | None:
    """Returns a function that begins a display of progress; None if nothing can show it here."""
    if in_notebook():
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return NotebookLines
        return lambda what, done, total: Tqdm(tqdm, what, done, total)
    if sys.stderr is None:
        return None
    return Bar if sys.stderr.isatty() else Lines

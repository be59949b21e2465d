"""A progress bar where stderr is a terminal."""

import sys
import time

WIDTH, INTERVAL = 24, 0.1


class Bar:
    """Steps from `done` to `total`; those done before do not count for the rate."""

    def __init__(self, what: str, done: int, total: int) -> None:
        self.what, self.first, self.done, self.total = what, done, done, total
        self.start = self.shown = time.monotonic()

    def step(self, note: str) -> None:
        self.done += 1
        now = time.monotonic()
        if now - self.shown < INTERVAL and self.done < self.total:
            return
        self.shown = now
        rate = (self.done - self.first) / max(now - self.start, 1e-9)
        filled = WIDTH * self.done // max(1, self.total)
        sys.stderr.write(
            f"\r\033[K{self.what} [{'#' * filled}{'.' * (WIDTH - filled)}] {self.done}/{self.total}  "
            f"{rate:.3g}/s  {(self.total - self.done) / rate:.0f}s left  {note}"
        )
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()


def bar_or_none() -> type[Bar] | None:
    return Bar if sys.stderr is not None and sys.stderr.isatty() else None

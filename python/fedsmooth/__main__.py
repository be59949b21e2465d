"""The program: `fedsmooth ...`, or `python -m fedsmooth ...`."""

import sys

from . import _core


def main() -> int:
    return _core.main(["fedsmooth", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())

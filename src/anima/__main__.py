"""The program `anima`, also as `python -m anima`: a hook of a host's goes its own light way, everything else to the command line."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point."""
    if sys.argv[1:2] == ["hook"] and "--home" in sys.argv:
        from anima.connect.hook import main as hook

        hook(sys.argv[2:])
        return
    from anima.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()

"""axe-core for the tests in a browser, from its npm package: `python tests/axe.py` fetches it into build/, which git ignores.

It never fails: where it cannot be had, the tests that need it are skipped, and say so.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

PACKAGE = "axe-core@4.10.3"
PLACE = Path(__file__).parent.parent / "build" / "axe"
SCRIPT = PLACE / "package" / "axe.min.js"
_PATIENCE = 120


def axe() -> str:
    """The text of axe-core, fetched now if need be; skips loudly where it cannot be had."""
    if not SCRIPT.exists() and (why := _fetched()):
        pytest.skip(f"NO AXE: {why}")
    return SCRIPT.read_text(encoding="utf-8")


def _fetched() -> str:
    """Why it could not be fetched; empty when it is there."""
    PLACE.mkdir(parents=True, exist_ok=True)
    line = ["npm", "pack", "--silent", "--pack-destination", str(PLACE), PACKAGE]
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=_PATIENCE)
        if done.returncode:
            return f"npm pack failed: {done.stderr.strip()[-200:]}"
        with tarfile.open(next(PLACE.glob("axe-core-*.tgz"))) as archive:
            archive.extract("package/axe.min.js", PLACE, filter="data")
    except (OSError, subprocess.TimeoutExpired, StopIteration, tarfile.TarError, KeyError) as error:
        return str(error)
    return ""


if __name__ == "__main__":
    reason = "" if SCRIPT.exists() else _fetched()
    if reason:
        print(f"NO AXE: {reason}. What needs it will be skipped.", file=sys.stderr)

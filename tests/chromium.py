"""A browser for the tests: the system's Chromium, which is installed from Debian's package where it is absent.

`python tests/chromium.py` is part of the setup of `make test`. It never fails: where no browser can be had the tests that
need one are skipped, and say why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_PATIENCE = 600


class NoBrowser(Exception):
    """Why there is none."""


@cache
def chromium() -> str:
    """Where the system's Chromium is, installed now if need be. Raises NoBrowser."""
    return _present() or _installed()


def _present() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def _installed() -> str:
    if not shutil.which("apt-get"):
        raise NoBrowser("there is no Chromium, and no apt-get to install it with")
    if os.geteuid() != 0:
        raise NoBrowser("there is no Chromium, and only root may install it: apt-get install chromium")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for line in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        try:
            done = subprocess.run(
                ["apt-get", *line], env=quiet, capture_output=True, text=True, check=False, timeout=_PATIENCE
            )
        except subprocess.TimeoutExpired:
            raise NoBrowser(f"apt-get {line[0]} took longer than {_PATIENCE} seconds") from None
        if done.returncode:
            raise NoBrowser(f"apt-get {line[0]} failed: {done.stderr.strip()[-300:]}")
    if found := _present():
        return found
    raise NoBrowser("Debian's package chromium was installed and brought no program")


if __name__ == "__main__":
    try:
        print(f"the tests' browser is {chromium()}")
    except NoBrowser as reason:
        print(f"NO BROWSER: {reason}. The tests of the page in a browser will be skipped.", file=sys.stderr)

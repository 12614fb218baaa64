"""The wheel as people get it: built, put into an environment with nothing else of ours, and lived in.

Promise: every Python of PYTHONS that is on this machine is tried, and which are not is said; each makes a home, writes,
searches, takes the tour and serves the page. With `--ways` it is also installed by pipx and run by uvx.

    python tests/wheel.py                 every Python there is
    python tests/wheel.py 3.12 --ways
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
FACT = "Luis is allergic to walnuts"


def said(*line: object, **env: str) -> str:
    """What a program prints; its failure is ours."""
    done = subprocess.run(list(map(str, line)), env={**os.environ, **env}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, line))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def built(folder: Path) -> Path:
    """The wheel of this source."""
    said(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    [wheel] = folder.glob("*.whl")
    return wheel


def lived_in(anima: Path, folder: Path, *, searches: bool = True) -> str:
    """Lives with an installed `anima` as somebody new would; gives its version."""
    home = folder / "home"
    env = {"ANIMA_CONFIG": str(folder / "config"), "ANIMA_HOME": str(home), "PYTHONPATH": "", "PYTHONSAFEPATH": "1"}
    version = said(anima, "--version", **env).split()[1]
    said(anima, "init", home, "--name", "Aria", **env)
    said(anima, "remember", "--as-owner", FACT, **env)
    assert FACT in said(anima, "prompt", **env)
    assert "Aria lives in" in said(anima, **env)
    if searches:
        hits = json.loads(said(anima, "search", "what is Luis allergic to", "--json", **env))["hits"]
        assert FACT in hits[0]["text"], hits
        assert len(json.loads(said(anima, "tour", "--json", **env))) > 8
    return version


def served(anima: Path, folder: Path) -> None:
    """The page and its parts come with the wheel."""
    env = {**os.environ, "ANIMA_CONFIG": str(folder / "config"), "PYTHONPATH": ""}
    line = [anima, "up", folder / "home", "--port", "0", "--json", "--as-owner"]
    with subprocess.Popen(list(map(str, line)), env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            told = ""
            while not told.endswith("\n}\n"):
                told += process.stdout.readline()
            with urlopen(f"{json.loads(told)['url']}/login", timeout=30) as page:
                assert b"<title>" in page.read()
        finally:
            process.terminate()


def python(version: str) -> str | None:
    """Where a Python of this version is: of pyenv, or on the path."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    return str(kept[-1]) if kept else shutil.which(f"python{version}")


def tried(version: str, wheel: Path) -> None:
    program = python(version)
    if program is None:
        return print(f"python {version}: there is none here")
    with tempfile.TemporaryDirectory(prefix="anima-wheel-") as place:
        folder = Path(place)
        said(program, "-m", "venv", folder / "env")
        install = (folder / "env/bin/pip", "install", "--quiet", "--disable-pip-version-check")
        said(*install, wheel)
        found = lived_in(folder / "env/bin/anima", folder)
        said(*install, f"{wheel}[serve]")
        served(folder / "env/bin/anima", folder)
    return print(f"python {version}: anima {found} made a home, wrote, found, toured and served")


def installed_by_tools(wheel: Path) -> None:
    """`pipx install` and `uvx --from`, both got by pip into an environment of their own."""
    with tempfile.TemporaryDirectory(prefix="anima-ways-") as place:
        folder = Path(place)
        said(sys.executable, "-m", "venv", folder / "env")
        said(folder / "env/bin/pip", "install", "--quiet", "--disable-pip-version-check", "pipx", "uv")
        pipx = {"PIPX_HOME": str(folder / "pipx"), "PIPX_BIN_DIR": str(folder / "bin")}
        said(folder / "env/bin/pipx", "install", wheel, **pipx)
        print("pipx install: anima", lived_in(folder / "bin/anima", folder / "one", searches=False))
        print("uvx --from:", said(folder / "env/bin/uvx", "--from", wheel, "anima", "--version").strip())


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("pythons", nargs="*", default=PYTHONS)
    asked.add_argument("--ways", action="store_true", help="also by pipx and uvx")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory(prefix="anima-dist-") as dist:
        made = built(Path(dist))
        for each in given.pythons:
            tried(each, made)
        if given.ways:
            installed_by_tools(made)

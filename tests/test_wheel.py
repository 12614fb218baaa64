"""The wheel holds all that the program needs. `make test-wheel` lives in it with every Python there is."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import wheel

pytest.importorskip("hatchling")


def test_the_wheel_alone_makes_a_home_takes_the_tour_and_serves_the_page(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=wheel.ROOT, check=True
    )
    [built] = tmp_path.glob("*.whl")
    env = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
    [packages] = env.glob("lib/python3.*/site-packages")
    with zipfile.ZipFile(built) as packed:
        packed.extractall(packages)
    # what anima needs comes from here, and anima itself from the wheel
    (packages / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    (env / "bin/anima").write_text(f"#!{env}/bin/python\nfrom anima.cli import main\n\nmain()\n")
    (env / "bin/anima").chmod(0o755)
    place = wheel.said(env / "bin/python", "-c", "import anima; print(anima.__file__)", PYTHONPATH="").strip()

    assert Path(place).parent.parent == packages
    assert wheel.lived_in(env / "bin/anima", tmp_path) == "0.1.0"
    wheel.served(env / "bin/anima", tmp_path)

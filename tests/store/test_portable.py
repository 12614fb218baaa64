"""A home where the system has neither O_PATH nor /proc, as macOS has not: the fallbacks, forced on here."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

import anima
from anima import Home, HomeError, Scope
from anima.store import folder, safe_open


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    known = os.path.isdir
    monkeypatch.setattr(safe_open, "_FOLDER", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    monkeypatch.delattr(os, "O_PATH", raising=False)
    monkeypatch.setattr(folder, "ONLY_NAMED", os.O_RDONLY | os.O_NONBLOCK)
    monkeypatch.setattr(folder, "sys", SimpleNamespace(platform="darwin"))
    monkeypatch.setattr(os.path, "isdir", lambda path: not str(path).startswith("/proc") and known(path))


def test_a_home_lives_there(tmp_path: Path) -> None:
    with Home.create(tmp_path / "home", name="Aria") as home:
        home.remember("Luis is allergic to walnuts")
        home.write("notes/deep/plan.md", "# Plan\n\n- Paint the tiller\n")
        home.move("notes/deep/plan.md", "memory/topics/boat.md")
        assert "Paint the tiller" in home.read("memory/topics/boat.md").text
        assert "walnuts" in home.search("what is Luis allergic to", scope=Scope.MAIN)[0].text
        with home.session(scope=Scope.MAIN, channel="cli") as session:
            session.log("user", "Hello")
        home.snapshots.take()
        home.undo()
        assert home.exists("notes/deep/plan.md")
    anima.restore("latest", tmp_path / "home")
    with Home.open(tmp_path / "home") as home:
        assert home.exists("memory/topics/boat.md")
        assert home.forget(text="walnuts", purge=True).verified and "walnuts" not in home.read("MEMORY.md").text
    assert anima.doctor(tmp_path / "home").ok


def test_a_link_on_the_way_is_not_followed_there(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.md").write_text("secret")
    with Home.create(tmp_path / "home", name="Aria") as home:
        (tmp_path / "home/notes").symlink_to(tmp_path / "outside")
        with pytest.raises(HomeError):
            home.read("notes/secret.md")
        with pytest.raises(HomeError):
            home.write("notes/new.md", "x")
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["secret.md"]


@pytest.mark.parametrize("path", ["SOUL.md", ".anima/key", ".anima"])
def test_modes_are_mended_there(tmp_path: Path, path: str) -> None:
    Home.create(tmp_path / "home", name="Aria").close()
    place = tmp_path / "home" / path
    place.chmod(0o777)
    anima.doctor(tmp_path / "home", repair=True)

    assert stat.S_IMODE(place.stat().st_mode) & 0o077 == 0

"""The end of the chain is noted out of the home's reach: a rollback shows, and a crash, a restore or a repair does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import anima
from anima import Home, HomeError
from anima.layout.trust import Register
from anima.testing import Clock


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home without history, so that nothing in it knows where the chain ends."""
    with Home.create(tmp_path / "aria", name="Aria", clock=Clock(), settings={"history.enabled": False}) as made:
        made.write("notes.md", "one\n")
        yield made


def again(home: Home) -> Home:
    return Home.open(home.name, clock=Clock(), settings={"history.enabled": False})


def ledger_of(home: Home) -> Path:
    return Path(home.name) / ".anima" / "ledger.jsonl"


def noted(home: Home) -> tuple[int, str] | None:
    return home.site.register.head(home.name, home.site.store.identity).get()


def cut(home: Home, lines: int) -> None:
    left = ledger_of(home).read_bytes().splitlines(keepends=True)[:-lines]
    ledger_of(home).write_bytes(b"".join(left))


def is_whole(home: Home) -> bool:
    with again(home) as opened:
        return opened.past.audit().ok


def kinds(home: Home) -> list[str]:
    return [json.loads(line)["kind"] for line in ledger_of(home).read_bytes().splitlines()]


def test_what_is_noted_is_on_the_disk_and_what_a_crash_takes_is_no_alarm(home: Home) -> None:
    for text in ("two\n", "three\n"):
        home.write("notes.md", text)
        assert kinds(home)[-2:] == ["intent", "done"]
        assert noted(home) is not None and (noted(home) or (0, ""))[0] == len(kinds(home)) - 1
    cut(home, 1)  # a power cut may take what was not synced
    assert is_whole(home)


def test_a_cut_end_shows_and_goes_on_showing(home: Home) -> None:
    home.write("notes.md", "two\n")
    before = noted(home)
    cut(home, 2)
    assert not is_whole(home)
    with again(home) as opened:
        opened.write("notes.md", "three\n")
        opened.write("notes.md", "four\n")
        assert not opened.past.audit().ok and noted(opened) == before
    assert "ledger-damaged" in {found.name for found in anima.doctor(home.name).found}


def test_a_repair_goes_on_from_a_cut_end(home: Home) -> None:
    home.write("notes.md", "two\n")
    cut(home, 2)
    anima.doctor(home.name, repair=True, clock=Clock())
    assert is_whole(home)
    with again(home) as opened:
        opened.write("notes.md", "three\n")
    assert is_whole(home)
    cut(home, 2)
    assert not is_whole(home)


def test_a_ledger_that_is_gone_with_everything_else_of_ours_is_missed(home: Home) -> None:
    shutil.rmtree(Path(home.name) / ".anima")
    assert not is_whole(home)
    with again(home) as opened, pytest.raises(HomeError, match="ledger of this home is gone"):
        opened.write("notes.md", "two\n")


def test_a_restore_takes_the_note_along(home: Home, tmp_path: Path) -> None:
    kept = home.snapshots.take(to=tmp_path / "kept.tar.gz")
    home.write("notes.md", "two\n")
    home.close()
    anima.restore(kept.path, home.name, clock=Clock())
    assert is_whole(home)
    with again(home) as opened:
        assert opened.read("notes.md").text == "one\n"
        opened.write("notes.md", "three\n")
    assert is_whole(home)
    cut(home, 2)
    assert not is_whole(home)


def test_a_restore_that_is_killed_leaves_no_false_note(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = home.snapshots.take(to=tmp_path / "kept.tar.gz")
    home.write("notes.md", "two\n")
    from anima.store import private

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(private, "carry_on", killed)  # the journal is on the disk by then
    with pytest.raises(KeyboardInterrupt):
        anima.restore(kept.path, home.name, clock=Clock())
    monkeypatch.undo()
    assert is_whole(home)
    with again(home) as opened:
        assert opened.read("notes.md").text == "one\n"


def test_another_home_in_the_same_place_is_not_measured_by_the_old_one(home: Home) -> None:
    home.close()
    shutil.rmtree(home.name)
    with Home.create(home.name, name="Bea", again=True, clock=Clock()) as made:
        made.remember("Ana keeps bees")
        assert made.past.audit().ok


@pytest.mark.parametrize("broken", [b"", b"\0" * 160, b"1 2 3", b"7 " + b"a" * 64 + b" 1 0000000000000000\n"])
def test_a_note_that_a_crash_spoilt_is_none(home: Home, broken: bytes) -> None:
    [file] = (home.site.register.file.parent / "heads").iterdir()
    file.write_bytes(broken)
    assert noted(home) is None and is_whole(home)
    home.write("notes.md", "two\n")
    assert noted(home) is not None


def test_where_nothing_can_be_noted_all_goes_on(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file where the folder should be", encoding="utf-8")
    with Home.create(tmp_path / "aria", name="Aria", env={"ANIMA_CONFIG": str(tmp_path / "config")}) as made:
        made.write("notes.md", "one\n")
        assert made.past.audit().ok


def test_two_configurations_may_note_one_home(home: Home, tmp_path: Path) -> None:
    env = {"ANIMA_CONFIG": str(tmp_path / "other")}
    with Home.open(home.name, env=env, clock=Clock(), settings={"history.enabled": False}) as other:
        other.write("notes.md", "two\n")
        assert other.past.audit().ok and home.past.audit().ok
        assert Register(tmp_path / "other").head(home.name, home.site.store.identity).get() != noted(home)

"""Every damage of the table, done to a real home: found by its name, mended, and not a byte of a document lost."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from anima.upkeep.doctor import damages
from damaging import HOW, ROW, Damaging, copied, documents, looked, make_sound, mended, names, reopen, works

ROOT = Path(__file__).parents[2]
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sound(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def aria(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of it, at a place of its own, that the user's list knows."""
    monkeypatch.setenv("ANIMA_CONFIG", str(tmp_path / "config"))
    place = copied(sound, tmp_path)
    yield place
    reopen(place)


# Disk and locks have tests in test_mending; the other row is for what nobody foresaw.
ELSEWHERE = {"disk-full", "not-looked-at", "lock"}
CASES = [
    pytest.param(name, how, id=f"{name}-{n}", marks=[root_only] if name.endswith("-owner") else [])
    for name, ways in HOW.items()
    for n, how in enumerate(ways)
]


def test_every_row_has_a_damage_and_every_damage_a_row() -> None:
    assert {*ROW.values()} | ELSEWHERE == set(damages())


def test_the_page_about_health_shows_this_very_table() -> None:
    text = (ROOT / "docs/health.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `([a-z0-9-]+)` \| (.+) \| (.+) \| (.*) \| (.*) \|$", text, re.MULTILINE)

    assert [tuple(cell.strip() for cell in row) for row in shown] == [
        (row.name, row.what, row.found, row.repair or "–", row.owner or "–") for row in damages().values()
    ]


def test_every_row_says_what_is_done_or_what_to_decide() -> None:
    for row in damages().values():
        assert row.what and row.found and (row.repair or row.owner), row.name


def test_the_home_of_these_tests_is_sound(aria: Path) -> None:
    assert names(looked(aria)) == set()
    assert mended(aria).done == ()
    works(aria)


@pytest.mark.parametrize(("name", "how"), CASES)
def test_a_damage_is_found_mended_and_costs_no_document(aria: Path, name: str, how: Damaging) -> None:
    way, name = name, ROW[name]
    how(aria)
    before = documents(aria) if aria.is_dir() else {}
    assert name in names(looked(aria))
    planned = mended(aria, dry_run=True)
    assert name in names(planned.found)
    assert not aria.is_dir() or documents(aria) == before

    result = mended(aria)
    assert name in names(result.found)
    assert all(deed.ok for deed in result.done), result.done
    assert not aria.is_dir() or documents(aria) == {**before, **_finished(way, aria)}

    row = damages()[name]
    left = names(looked(aria))
    assert (name in left) == (not row.repair), (left, result.done)
    again = mended(aria)
    assert again.done == () and names(again.left) == left
    if row.repair:
        assert left == set() or {damages()[other].owner for other in left} != {""}
        works(aria)


def _finished(name: str, root: Path) -> dict[str, str]:
    """A change that was interrupted may be finished by the repair: then its document is new."""
    return {"notes/q.md": hashlib.sha256(b"half\n").hexdigest()} if name == "batch-interrupted" else {}

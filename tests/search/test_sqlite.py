"""The index in one SQLite file: for its owner alone, begun again on any doubt, never through a link, shared by processes."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_index import document, found

from anima.search.field import Filter
from anima.search.index import Index
from anima.search.tables import SqliteTables
from anima.testing.embedder import MockEmbedder

Open = Callable[[], Index]
FILTER = Filter()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    made: list[Index] = []

    def make() -> Index:
        made.append(Index(tables(tmp_path), None))
        return made[-1]

    yield make
    for one in made:
        one.close()


def tables(folder: Path) -> SqliteTables:
    return SqliteTables(str(folder / "index.sqlite"), lock=str(folder / "index.lock"))


def test_the_files_are_for_their_owner_only(opened: Open, tmp_path: Path) -> None:
    opened().put([document("a.md", "tea\n")])

    for name in ("index.sqlite", "index.lock"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", [b"this is no database", b"SQLite format 3\x00" + b"\xff" * 5000, b""])
def test_a_damaged_file_is_begun_again_and_said(opened: Open, tmp_path: Path, damage: bytes) -> None:
    index = opened()
    index.put([document("a.md", "tea\n")])
    index.close()
    (tmp_path / "index.sqlite").write_bytes(damage)

    index = opened()
    assert index.known() == {}
    if damage:
        assert any("damaged" in note for note in index.notes())
    assert index.put([document("a.md", "tea\n")]).documents == 1
    assert len(found(index, "tea")) == 1


def test_damage_inside_an_open_file_is_never_an_error_for_a_write(opened: Open, tmp_path: Path) -> None:
    index = opened()
    index.put([document(f"{n}.md", f"tea number {n}\n" * 50) for n in range(50)])
    index.close()
    path = tmp_path / "index.sqlite"
    raw = bytearray(path.read_bytes())
    raw[4096:] = os.urandom(len(raw) - 4096)
    path.write_bytes(raw)

    index = opened()
    index.put([document("a.md", "tea\n")])
    index.put([document("a.md", "tea\n")])
    assert index.known().keys() >= {"a.md"}
    assert found(index, "tea")


def test_a_file_that_was_made_for_another_model_is_made_again_and_said(opened: Open, tmp_path: Path) -> None:
    opened().put([document("a.md", "tea\n")])
    index = Index(tables(tmp_path), MockEmbedder())

    assert index.known() == {}
    assert index.notes() == ("the index is being rebuilt for another model or cutting",)
    index.close()


def test_a_log_that_is_garbage_makes_the_index_late_and_never_wrong(tmp_path: Path) -> None:
    """SQLite passes over a log that does not add up: what was folded into the file before stands."""
    script = textwrap.dedent(WORKER).replace("index.close()", "__import__('os')._exit(0)")
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "index.sqlite"), "write", "1"], check=True)
    (tmp_path / "index.sqlite-wal").write_bytes(b"garbage " * 2000)

    index = Index(tables(tmp_path), MockEmbedder())
    assert set(index.known()) <= {f"1-{step}.md" for step in [*range(12), "x"]}
    index.put([document("a.md", "tea\n")])
    assert [hit[0] for hit in found(index, "tea")][:1] == ["a.md"]
    index.close()


def test_an_index_deleted_under_an_open_one_is_made_again(opened: Open, tmp_path: Path) -> None:
    index = opened()
    index.put([document("a.md", "tea\n")])
    for ending in ("", "-wal", "-shm"):
        (tmp_path / f"index.sqlite{ending}").unlink(missing_ok=True)

    assert index.known() == {}
    assert index.put([document("b.md", "tea\n")]).documents == 1
    assert [hit[0] for hit in found(index, "tea")] == ["b.md"]


WORKER = """
    import sys
    from anima.testing.embedder import MockEmbedder
    from anima.search.field import Filter
    from anima.search.index import DocumentIn, Index
    from anima.search.tables import SqliteTables
    from anima.search.rank import Query, run

    path, role, number = sys.argv[1:]
    embedder = MockEmbedder()
    index = Index(SqliteTables(path, lock=path + ".lock"), embedder)
    for step in range(12):
        if role == "write":
            index.put([DocumentIn(path=f"{number}-{step}.md", digest="d", text=f"tea {number} {step}", scopes=1)])
            index.put([DocumentIn(path=f"{number}-x.md", digest=str(step), text=f"private boat {step}", scopes=2)])
        else:
            answer = run(index, embedder, Query(text="tea private boat", limit=50), Filter(scope=1))
            assert not any("private" in hit.text for hit in answer.hits)
            assert not any("cannot" in note or "damaged" in note for note in answer.notes), answer.notes
    assert not index.notes()
    index.close()
"""


def test_processes_that_write_and_search_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    script = textwrap.dedent(WORKER)
    roles = [("write", n) for n in range(3)] + [("search", n) for n in range(2)]
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(path), role, str(n)], stderr=subprocess.PIPE, text=True)
        for role, n in roles
    ]
    errors = [process.communicate()[1] for process in running]

    assert [process.returncode for process in running] == [0] * len(running), errors
    index = Index(SqliteTables(str(path), lock=f"{path}.lock"), MockEmbedder())
    known = set(index.known())
    index.close()
    assert known == {f"{n}-{step}.md" for n in range(3) for step in [*range(12), "x"]}


# -- a file that somebody else made ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_link_in_the_place_of_a_file_of_ours_is_never_followed(
    opened: Open, tmp_path: Path, ending: str, link: Callable[[Path, Path], None]
) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    link(outside, tmp_path / f"index.sqlite{ending}")

    index = opened()
    index.put([document("a.md", "tea\n")])

    assert len(found(index, "tea")) == 1
    assert outside.read_bytes() == b"precious"


def test_a_lock_that_is_a_link_makes_nothing_elsewhere(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "index.lock").symlink_to(tmp_path / "elsewhere")

    opened().put([document("a.md", "tea\n")])

    assert not (tmp_path / "elsewhere").exists()


CRAFTED = {
    "a view in the place of a table": """
        alter table made rename to held;
        create view made as with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000000)
            select hex(zeroblob(i)) as epoch, i as made_for, 0 as generation from n;
        """,
    "a trigger": "create trigger t after insert on part begin delete from document; end;",
    "a table more": "create table more(x);",
    "another version": "pragma user_version = 99;",
    "a generated column": "alter table made add column big as (hex(zeroblob(1000000000)));",
    "no table": "drop table part;",
}


@pytest.mark.parametrize("craft", CRAFTED.values(), ids=CRAFTED.keys())
def test_a_file_with_another_schema_than_ours_is_thrown_away(opened: Open, tmp_path: Path, craft: str) -> None:
    index = opened()
    index.put([document("a.md", "tea\n")])
    index.close()
    with sqlite3.connect(tmp_path / "index.sqlite") as db:
        db.executescript(craft)
    db.close()
    assert tables(tmp_path).check() == "it was made by another version"

    index = opened()
    assert index.known() == {}
    assert any("another version" in note for note in index.notes())
    assert index.put([document("a.md", "tea\n")]).documents == 1


def test_a_journal_left_beside_the_file_is_not_played_back(opened: Open, tmp_path: Path) -> None:
    """A rollback journal can name another file, which SQLite deletes when it has played the journal back."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    name = os.fsencode(victim)
    magic = bytes.fromhex("d9d505f920a163d7")
    sizes = b"".join(n.to_bytes(4, "big") for n in (0, 0, 1, 512, 4096))
    end = (1).to_bytes(4, "big") + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + magic
    index = opened()
    index.put([document("a.md", "tea\n")])
    index.close()
    (tmp_path / "index.sqlite-journal").write_bytes((magic + sizes).ljust(512, b"\0") + end)

    index = opened()
    index.put([document("a.md", "tea\n")])

    assert victim.exists()
    assert len(found(index, "tea")) == 1


def test_a_file_that_a_kill_left_half_written_is_no_damage_and_is_begun_again(opened: Open, tmp_path: Path) -> None:
    index = opened()
    index.put([document("a.md", "tea\n")])
    index.close()
    os.truncate(tmp_path / "index.sqlite", 5000)
    assert tables(tmp_path).check() != ""
    (tmp_path / "index.sqlite-journal").write_bytes(b"\0" * 512)

    assert tables(tmp_path).check() == ""
    index = opened()
    assert index.known() == {} and any("a write was cut short" in note for note in index.notes())
    assert not (tmp_path / "index.sqlite-journal").exists()


def test_a_byte_that_changed_in_any_row_is_found_before_it_is_believed(opened: Open, tmp_path: Path) -> None:
    index = opened()
    index.put([document("a.md", "the walnut plank is dry\n")])
    index.close()
    path = tmp_path / "index.sqlite"
    whole = path.read_bytes()
    for old, new in ((b"plank is dry", b"plank is wet"), (b"[1, 0,", b"[2, 0,")):
        assert old in whole
        path.write_bytes(whole.replace(old, new))
        assert tables(tmp_path).check() == "a row is not what was put in"
        index = opened()
        assert all("wet" not in hit[0] for hit in index.look(FILTER).rows(range(index.look(FILTER).count)) if hit)
        index.close()


def test_looking_at_a_sound_file_says_nothing_and_changes_nothing(opened: Open, tmp_path: Path) -> None:
    assert tables(tmp_path).check() == ""
    index = opened()
    index.put([document("a.md", "tea\n")])
    assert tables(tmp_path).check() == ""
    index.close()
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    assert tables(tmp_path).check() == ""
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before

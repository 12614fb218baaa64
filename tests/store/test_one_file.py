"""A home in one SQLite file: what the file is, who may make it, and what is said when it is gone, foreign or in use."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from anima import Home
from anima.compat import new_with_db
from anima.errors import BadArguments, Damaged, HomeBusy, NewerFormat, NoSuchHome, Refused
from anima.model import DocPath
from anima.store.rows.sqlite import file_at


@pytest.mark.parametrize(
    "address", ["file:{0}/a.db", "file://{0}/a.db", "sqlite:{0}/a.db", "sqlite:///{0}/a.db", "file:{0}/a.db#main"]
)
def test_every_spelling_of_an_address_is_one_file(tmp_path: Path, address: str) -> None:
    with Home.create(address.format(tmp_path), name="Aria") as home:
        home.remember("Ana lives in Bogota.")
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["a.db"]
    assert (tmp_path / "a.db").stat().st_mode & 0o777 == 0o600
    with Home.open(f"file:{tmp_path}/a.db") as home:
        assert "Bogota" in home.read("MEMORY.md").text and home.past.audit().ok


def test_a_path_that_begins_at_the_users_own_folder_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ana")
    assert file_at("file:~/.ironclaw/ironclaw.db") == "/home/ana/.ironclaw/ironclaw.db"
    assert file_at("sqlite:///notes.db") == os.path.abspath("notes.db")
    for wrong in ("file:", "file://host/a.db", "sqlite://", "file:a.db?mode=ro"):
        with pytest.raises(BadArguments):
            file_at(wrong)


def test_the_variable_names_the_file_where_no_path_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", f"file:{tmp_path}/a.db")
    with Home.create(name="Aria") as made, Home.open() as opened:
        assert made.site.store.identity == opened.site.store.identity


def test_a_file_that_is_not_there_is_only_made_when_asked(tmp_path: Path) -> None:
    with pytest.raises(NoSuchHome):
        Home.open(f"file:{tmp_path}/a.db")
    assert not list(tmp_path.iterdir())
    with Home.open(f"file:{tmp_path}/a.db", create=True) as home:
        assert home.list_all() == () and home.is_vouched_for


def test_who_looks_for_the_key_the_moment_before_another_makes_it_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Home.open(f"file:{tmp_path}/a.db", create=True) as home, Home.open(f"file:{tmp_path}/a.db") as other:
        store, looked = home.site.store, home.site.store.state.get
        assert not store.begun

        def and_then_the_other_begins(name: str) -> bytes | None:
            found = looked(name)
            if not other.site.store.begun:
                other.write("notes/a.md", "- tea\n")
            return found

        monkeypatch.setattr(store.state, "get", and_then_the_other_begins)
        assert store.key.id == other.site.store.key.id and home.past.audit().ok


def test_a_file_has_no_tenants_and_may_hold_several_agents(tmp_path: Path) -> None:
    with pytest.raises(BadArguments, match="no tenants"):
        Home.open(f"file:{tmp_path}/a.db", tenant="acme", create=True)
    with (
        Home.open(f"file:{tmp_path}/a.db#one", create=True) as one,
        Home.open(f"file:{tmp_path}/a.db", agent="two", create=True) as two,
    ):
        one.write("a.md", "mine\n")
        assert not two.exists("a.md") and one.name != two.name


def test_a_home_that_vanished_is_not_buried(tmp_path: Path) -> None:
    address = f"file:{tmp_path}/a.db"
    Home.create(address, name="Aria").close()
    (tmp_path / "a.db").unlink()
    with pytest.raises(Refused, match="vanished"):
        Home.create(address, name="Aria")
    with pytest.raises(Refused, match="vanished"):
        Home.open(address, create=True)
    Home.create(address, name="Aria", again=True).close()


def test_a_file_that_somebody_else_made_is_not_vouched_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Home.create(f"file:{tmp_path}/a.db", name="Aria").close()
    monkeypatch.setenv("ANIMA_CONFIG", str(tmp_path / "another user"))
    with Home.open(f"file:{tmp_path}/a.db") as home:
        assert not home.is_vouched_for
        home.trust()
        assert home.is_vouched_for


def test_a_file_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as db:
        db.execute("create table memory(content text)")
        db.commit()
    (tmp_path / "text.db").write_text("this is no database, but a text that is long enough\n" * 9)
    before = (tmp_path / "theirs.db").read_bytes(), (tmp_path / "text.db").read_bytes()
    with pytest.raises(Refused, match="another program"):
        Home.open(f"file:{tmp_path}/theirs.db", create=True)
    with pytest.raises(Damaged, match="not a database"):
        Home.open(f"file:{tmp_path}/text.db", create=True)
    with pytest.raises(Refused, match="folder"):
        Home.open(f"file:{tmp_path}", create=True)
    assert before == ((tmp_path / "theirs.db").read_bytes(), (tmp_path / "text.db").read_bytes())


def test_a_file_of_a_newer_anima_is_left_as_it_is(tmp_path: Path) -> None:
    Home.create(f"file:{tmp_path}/a.db", name="Aria").close()
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        db.execute("insert into anima_made values(99)")
        db.commit()
    (tmp_path / "a.db").rename(tmp_path / "b.db")
    (tmp_path / "c.db").write_bytes((tmp_path / "b.db").read_bytes())
    with pytest.raises(NewerFormat):
        Home.open(f"file:{tmp_path}/c.db")


@pytest.mark.parametrize("instead", [False, True])
def test_a_file_that_is_taken_away_under_an_open_home_is_said_and_never_written(tmp_path: Path, instead: bool) -> None:
    with Home.create(f"file:{tmp_path}/a.db", name="Aria") as home:
        (tmp_path / "a.db").rename(tmp_path / "away.db")
        if instead:
            Home.create(f"file:{tmp_path}/b.db", name="Other").close()
            (tmp_path / "b.db").rename(tmp_path / "a.db")
        with pytest.raises(Damaged, match="another file" if instead else "taken away"):
            home.write("a.md", "lost?\n")
        with pytest.raises(Damaged):
            home.read("MEMORY.md")
        (tmp_path / "away.db").rename(tmp_path / "a.db")
        assert home.write("a.md", "kept\n").status == "written"


def test_what_is_forgotten_is_in_no_byte_of_the_file(tmp_path: Path) -> None:
    with Home.create(f"file:{tmp_path}/a.db", name="Aria") as home:
        home.remember("The word is Xylopyrography.")
        home.search("Xylopyrography", scope="main")
        done = home.forget(text="Xylopyrography", purge=True)
        assert done.done and not done.left
    data = (tmp_path / "a.db").read_bytes()
    assert b"ylopyrography" not in data and b"word is" not in data


def test_somebody_who_rolls_the_file_back_is_found_out(tmp_path: Path) -> None:
    address = f"file:{tmp_path}/a.db"
    with Home.create(address, name="Aria") as home:
        home.write("a.md", "one\n")
    earlier = (tmp_path / "a.db").read_bytes()
    with Home.open(address) as home:
        home.write("a.md", "two\n")
    (tmp_path / "a.db").write_bytes(earlier)
    with Home.open(address) as home:
        assert not home.past.audit().ok


def test_a_home_that_another_process_is_writing_to_says_so(tmp_path: Path) -> None:
    with Home.create(f"file:{tmp_path}/a.db", name="Aria") as home:
        with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as db:
            db.execute("begin immediate")
            with pytest.raises(HomeBusy), home.site.store.lock(patience=0.01):
                pass
            assert home.read("MEMORY.md").text  # reading goes on
        with home.site.store.lock(patience=0.01):
            pass


_WRITER = """
import sys
from anima import Home
with Home.open(sys.argv[1]) as home:
    for n in range(10_000):
        home.append("log.md", f"- {sys.argv[2]} {n}\\n")
        print(n, flush=True)
"""


def test_writers_that_are_killed_lose_nothing_they_were_told_of(tmp_path: Path) -> None:
    address = f"file:{tmp_path}/a.db"
    Home.create(address, name="Aria").close()
    told: dict[str, int] = {}
    for name in ("a", "b", "c"):
        with subprocess.Popen([sys.executable, "-c", _WRITER, address, name], stdout=subprocess.PIPE, text=True) as one:
            assert one.stdout is not None
            for line in one.stdout:
                told[name] = int(line)
                if told[name] >= 5:
                    one.kill()
    with Home.open(address) as home:
        lines = home.read("log.md").text.splitlines()
        assert all(f"- {name} {n}" in lines for name, last in told.items() for n in range(last + 1))
        assert home.past.audit().ok and not home.past.history_problems()
        assert not [remark for remark in home.upkeep.doctor() if remark.level == "damage"]


def test_threads_of_one_process_lose_nothing(tmp_path: Path) -> None:
    with Home.create(f"file:{tmp_path}/a.db", name="Aria") as home:
        work = [
            threading.Thread(target=lambda n=n: [home.append("log.md", f"- {n} {i}\n") for i in range(4)])
            for n in range(8)
        ]
        for each in work:
            each.start()
        for each in work:
            each.join()
        assert len(home.read("log.md").text.splitlines()) == 32 and home.past.audit().ok


def test_a_user_has_a_home_of_their_own_in_the_file_by_ironclaws_name_for_it(tmp_path: Path) -> None:
    db = f"file:{tmp_path}/ironclaw.db"
    with new_with_db("ana", db) as home, new_with_db("bo", db) as theirs:
        home.write("a.md", "mine\n")
        assert not theirs.exists("a.md")
    with new_with_db("ana", db) as home:
        assert home.read("a.md").text == "mine\n"


def test_what_is_read_of_a_file_is_of_one_moment(tmp_path: Path) -> None:
    with closing(Home.create(f"file:{tmp_path}/home.db")) as home:
        home.write("note.md", "old\n")
        with home.site.store.documents.opened("note.md") as file:
            home.write("note.md", "something else, and longer\n")
            assert b"".join(file.pieces) == b"old\n"


def test_a_purge_deletes_a_history_that_was_set_aside_in_the_folder_the_home_was_moved_from(tmp_path: Path) -> None:
    with closing(Home.create(f"file:{tmp_path}/home.db")) as home:
        home.write("note.md", "keep\nthe heron of Bruges\n")
        home.site.store.state.put("aside/20260101T000000/repository/logs/HEAD", b"the heron of Bruges\n")
        assert home.forget(text="the heron of Bruges", purge=True).verified
    assert b"heron" not in (tmp_path / "home.db").read_bytes()


def test_history_spells_a_name_as_the_document_does(tmp_path: Path) -> None:
    spelt = "Cafe\u0301.md"
    with closing(Home.create(f"file:{tmp_path}/home.db")) as home:
        store = home.site.store
        with store.lock():
            store.files.put(spelt, b"one\n", version=store.next_version())
        home.write("Caf\u00e9.md", "two\n")
        assert store.documents.actual(DocPath.parse("Caf\u00e9.md")) == spelt
        assert spelt in store.history.tree(store.history.head())

"""History: every version comes back, plain git agrees, nothing hostile runs, and damage is found and mended."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pygit2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anima.errors import BadPath, Damaged, NoSuchRevision, Refused
from anima.model import MAX_BYTES
from anima.store import Note, blob_id
from anima.store.git import History

NOON = datetime(2026, 5, 8, 12, 0, tzinfo=timezone(timedelta(hours=-5)))
NOTE = Note(what="write", actor="agent", author="Aria", time=NOON)


def git(place: Path, *arguments: str) -> str:
    """Plain git, without anybody's configuration."""
    env = {"PATH": os.environ["PATH"], "HOME": str(place), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    names = ("-c", "user.name=Luis", "-c", "user.email=luis@example.org")
    done = subprocess.run(["git", *names, *arguments], cwd=place, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    return place


@pytest.fixture
def history(home: Path) -> Iterator[History]:
    made = History.create(str(home / ".git"), bare=False, exclude=("/.anima/", "/sessions/"))
    yield made
    made.close()


def put(home: Path, history: History, files: dict[str, bytes | None], note: Note = NOTE) -> str:
    """Change files on disk and commit them, as the store and its callers do."""
    for name, data in files.items():
        path = home / name
        if data is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    made = history.commit(files, note)
    assert made is not None
    return made


def object_file(home: Path, identity: str) -> Path:
    return home / ".git" / "objects" / identity[:2] / identity[2:]


# --- versions


@pytest.mark.parametrize("bare", [False, True])
def test_a_long_document_is_kept_as_git_keeps_it(home: Path, bare: bool) -> None:
    large = b"".join(b"- day %d\n" % n for n in range(200_000))
    place = home / "history.git" if bare else home / ".git"
    with closing(History.create(str(place), bare=bare)) as history:
        first = put(home, history, {"notes/a.md": large, "notes/b.md": large, "MEMORY.md": b"- tea\n"})
        second = put(home, history, {"notes/a.md": large + b"- more\n"})
        assert put(home, history, {"notes/a.md": large}) != first
        shown = [history.show(first, "notes/b.md"), history.show(second, "notes/a.md")]

        assert shown == [large, large + b"- more\n"]
        assert history.check() == []
        assert git(place, "fsck", "--strict", "--full") == ""
        assert git(place, "cat-file", "blob", f"{first}:notes/a.md").encode() == large
        assert history.tree(first)["notes/a.md"] == blob_id(large)
        assert not (place / "anima.new").exists()
        git(place, "gc", "-q", "--prune=now")
        assert not object_file(home, blob_id(large)).exists()
        assert put(home, history, {"notes/c.md": large})
        assert not object_file(home, blob_id(large)).exists()  # it stands in the pack
        assert history.show(first, "notes/a.md") == large


def test_a_long_document_is_not_written_behind_a_link(home: Path, history: History) -> None:
    large = b"- tea\n" * 200_000
    put(home, history, {"MEMORY.md": b"- tea\n"})
    object_file(home, blob_id(large)).parent.symlink_to(home)

    with pytest.raises(Damaged):
        history.commit({"notes/a.md": large}, NOTE)
    assert sorted(path.name for path in home.iterdir()) == [".git", "MEMORY.md"]


def test_every_version_of_a_document_comes_back(home: Path, history: History) -> None:
    first = put(home, history, {"MEMORY.md": b"- tea\n", "memory/2026-05-08.md": b"# Friday\r\n"})
    second = put(home, history, {"MEMORY.md": b"- coffee\n"})
    third = put(home, history, {"MEMORY.md": None})

    assert history.head() == third
    assert [history.show(at, "MEMORY.md") for at in (first, second, third)] == [b"- tea\n", b"- coffee\n", None]
    assert history.show(third, "memory/2026-05-08.md") == b"# Friday\r\n"
    assert history.show(third, "memory") is None
    assert history.tree(second) == {
        "MEMORY.md": blob_id(b"- coffee\n"),
        "memory/2026-05-08.md": blob_id(b"# Friday\r\n"),
    }


def test_before_the_first_commit_there_is_nothing(history: History) -> None:
    assert history.head() is None
    assert history.log() == [] and history.anchors() == [] and history.check() == []


def test_a_commit_that_changes_nothing_is_not_made(home: Path, history: History) -> None:
    assert history.commit({"gone.md": None}, NOTE) is None
    first = put(home, history, {"a.md": b"a"})
    assert history.commit({"a.md": b"a", "not/there.md": None}, NOTE) is None
    assert history.head() == first


def test_an_empty_commit_says_its_note(history: History) -> None:
    made = history.commit({}, replace(NOTE, what="anchor", anchor=(7, "b" * 64)))
    assert made is not None
    assert history.anchors() == [(7, "b" * 64)]
    assert history.log()[0].paths == ()


def test_a_reason_that_says_what_was_done_is_said_once(history: History) -> None:
    history.commit({"MEMORY.md": b"x"}, replace(NOTE, what="forget", reason="forget"))
    assert history.log()[0].subject == "forget MEMORY.md"


NAMES = ("SOUL.md", "memory/a.md", "memory/b.md", "memory/deep/er/c.md", "memory.md", "é/ñ.md", "a b.md")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    steps=st.lists(st.dictionaries(st.sampled_from(NAMES), st.none() | st.binary(max_size=8), max_size=4), max_size=8)
)
def test_history_is_what_was_committed_and_git_agrees(
    tmp_path_factory: pytest.TempPathFactory, steps: list[dict[str, bytes | None]]
) -> None:
    place = tmp_path_factory.mktemp("model")
    history = History.create(str(place / ".git"), bare=False)
    now: dict[str, bytes] = {}
    then: dict[str, dict[str, bytes]] = {}
    for step in steps:
        now = {name: data for name, data in (now | step).items() if data is not None}
        if made := history.commit(step, NOTE):
            then[made] = now
    for revision, files in then.items():
        assert history.tree(revision) == {name: blob_id(data) for name, data in files.items()}
        assert {name: history.show(revision, name) for name in files} == files
    assert [revision.id for revision in history.log(limit=100)] == list(then)[::-1]
    assert git(place, "fsck", "--strict", "--full") == ""
    staged = git(place, "-c", "core.quotepath=false", "ls-files", "--stage").splitlines()
    assert staged == sorted((f"100644 {blob_id(data)} 0\t{name}" for name, data in now.items()), key=lambda x: x[50:])
    history.close()


def test_a_document_can_take_a_folders_place_and_back(home: Path, history: History) -> None:
    history.commit({"notes/a.md": b"1", "notes/b.md": b"2"}, NOTE)
    history.commit({"notes/a.md": None, "notes/b.md": None, "notes": b"a file"}, NOTE)
    head = history.commit({"notes": None, "notes/c.md": b"3"}, NOTE)
    assert head is not None
    assert list(history.tree(head)) == ["notes/c.md"]
    assert git(home, "fsck", "--strict") == ""


def test_the_largest_document_there_can_be_is_in_history(home: Path, history: History) -> None:
    big = b"x" * MAX_BYTES
    made = put(home, history, {"big.md": big, "other.md": b"x"})
    assert history.show(made, "big.md") == big
    assert git(home, "cat-file", "-s", f"{made}:big.md").strip() == str(MAX_BYTES)


def test_a_commit_names_what_changed_and_documents_before_settings(home: Path, history: History) -> None:
    put(home, history, {"anima.toml": b"a", "b.md": b"1"})
    put(home, history, {"anima.toml": b"a", "b.md": b"2"}, replace(NOTE, words="the boat\nis blue"))
    put(home, history, {"anima.toml": b"b", "b.md": b"3"})
    assert [revision.subject for revision in history.log()] == [
        "write b.md and 1 more",
        "write b.md: the boat is blue",
        "write b.md and 1 more",
    ]


@pytest.mark.parametrize(
    "path", ["../x.md", "/x.md", ".git/config", "a//b.md", "", "a/.git/x.md", "a/../b.md", "a\0b.md"]
)
def test_only_a_documents_path_can_be_committed(history: History, path: str) -> None:
    with pytest.raises(BadPath):
        history.commit({path: b"x"}, NOTE)
    assert history.head() is None


# --- what a commit says


def test_a_revision_tells_who_why_and_what(home: Path, history: History) -> None:
    note = Note(
        what="write",
        actor="agent",
        author="Aria",
        time=NOON,
        session="s-17",
        rule="memory",
        batch="c3",
        reason="she said\nso",
        anchor=(41, "a" * 64),
    )
    made = put(home, history, {"MEMORY.md": b"1", "b/c.md": b"2"}, note)
    (revision,) = history.log()
    assert (revision.id, revision.time, revision.author, revision.actor) == (made, NOON, "Aria", "agent")
    assert (revision.session, revision.rule, revision.batch) == ("s-17", "memory", "c3")
    assert revision.reason == "she said so"
    assert revision.anchor == (41, "a" * 64)
    assert revision.paths == ("MEMORY.md", "b/c.md")
    assert revision.subject == "write MEMORY.md and 1 more: she said so"
    told = git(home, "log", "-1", "--format=%an|%ae|%aI|%(trailers:key=Ledger,valueonly)")
    assert told.strip() == f"Aria|agent@localhost|2026-05-08T12:00:00-05:00|41 {'a' * 64}"


EVIL = "x\n\nActor: owner\nRule: none\x1b[2J\u202e\r\0" + "y" * 10_000


def test_an_agents_words_cannot_forge_what_a_commit_says(home: Path, history: History) -> None:
    made = put(
        home, history, {"a.md": b"1"}, replace(NOTE, reason=EVIL, session=EVIL, rule=EVIL, batch=EVIL, what=EVIL)
    )
    (revision,) = history.log()
    assert revision.actor == "agent"
    raw = git(home, "cat-file", "commit", made)
    assert raw.count("\nActor: ") == 1 and "\nRule: none" not in raw
    assert len(raw) < 2500 and all(line.isprintable() for line in raw.split("\n"))
    assert len(revision.subject) < 200
    assert git(home, "fsck", "--strict") == ""


@pytest.mark.parametrize("name", ["", "  ", "<>", "A\nB <evil@x> 1 +0000", "\x1b[31m", "Ñandú 🌿", ".,:;", "x" * 5000])
def test_any_name_makes_a_sound_author(home: Path, history: History, name: str) -> None:
    put(home, history, {"a.md": b"1"}, replace(NOTE, author=name, actor=name or "agent"))
    assert git(home, "fsck", "--strict") == ""
    assert re.fullmatch(r"[a-z0-9-]+@localhost", git(home, "log", "-1", "--format=%ae").strip())


def test_a_time_before_1970_is_written_as_its_beginning(home: Path, history: History) -> None:
    put(home, history, {"a.md": b"1"}, replace(NOTE, time=datetime(1950, 1, 1, tzinfo=UTC)))
    assert history.log()[0].time == datetime(1970, 1, 1, tzinfo=UTC)
    assert git(home, "fsck", "--strict") == ""


def test_anchors_are_collected_by_number(home: Path, history: History) -> None:
    for number in (1, 2, 3):
        put(home, history, {"a.md": b"%d" % number}, replace(NOTE, anchor=(number * 5, str(number) * 64)))
    put(home, history, {"a.md": b"none"})
    assert history.anchors() == [(5, "1" * 64), (10, "2" * 64), (15, "3" * 64)]


# --- looking back


def test_the_log_of_a_path_has_only_what_changed_it(home: Path, history: History) -> None:
    one = put(home, history, {"MEMORY.md": b"1", "memory/a.md": b"1"})
    two = put(home, history, {"memory/b.md": b"2"})
    three = put(home, history, {"MEMORY.md": b"3"})
    four = put(home, history, {"memory/a.md": None})
    assert [revision.id for revision in history.log("MEMORY.md")] == [three, one]
    assert [revision.id for revision in history.log("memory/a.md")] == [four, one]
    assert [revision.id for revision in history.log("memory")] == [four, two, one]
    assert [revision.id for revision in history.log(limit=2)] == [four, three]
    assert history.log("nowhere.md") == [] == history.log("MEMORY.md/x.md")


def test_a_revision_can_be_named_by_its_beginning(home: Path, history: History) -> None:
    made = put(home, history, {"a.md": b"1"})
    assert history.show(made[:7], "a.md") == b"1"


@pytest.mark.parametrize("name", ["", "abc", "HEAD", "main", "0" * 40, "--help", "deadbeef", "../../x", "g" * 40])
def test_an_unknown_revision_is_told_so(home: Path, history: History, name: str) -> None:
    put(home, history, {"a.md": b"1"})
    with pytest.raises(NoSuchRevision):
        history.show(name, "a.md")


def test_a_blob_is_not_a_revision(home: Path, history: History) -> None:
    put(home, history, {"a.md": b"1"})
    with pytest.raises(NoSuchRevision):
        history.tree(blob_id(b"1"))


def test_a_diff_shows_lines_and_can_be_cut_to_a_path(home: Path, history: History) -> None:
    one = put(home, history, {"a.md": b"tea\nmilk\n", "b.md": b"same\n"})
    two = put(home, history, {"a.md": b"coffee\nmilk\n", "b.md": None, "c.md": b"new\n"})
    whole = history.diff(one, two)
    assert "-tea\n+coffee\n milk\n" in whole and "-same\n" in whole and "+new\n" in whole
    assert "c.md" not in history.diff(one, two, "a.md")
    assert history.diff(one, one) == ""
    assert history.diff(None, one, "b.md").endswith("+same\n")


def test_a_diff_is_inert(home: Path, history: History) -> None:
    made = put(home, history, {"a.md": "ok\n\x1b[2Jcleared\u202eback\r\u200b\n\ttab é\n".encode() + b"\xff\n"})
    shown = history.diff(None, made)
    assert "+\\u001b[2Jcleared\\u202eback\\u000d\\u200b\n+\ttab é\n" in shown
    assert all(char.isprintable() or char in "\n\t" for char in shown)


def test_a_diff_of_very_many_lines_still_tells_all_of_them(home: Path, history: History) -> None:
    old = b"".join(b"%d\n" % (i * 7 % 30_011) for i in range(30_000))
    new = b"".join(b"%d\n" % (i * 11 % 30_011) for i in range(30_000))
    one = put(home, history, {"a.md": b"same\n" + old})
    two = put(home, history, {"a.md": b"same\n" + new})
    three = put(home, history, {"a.md": b"same\n" + new + b"last\n"})
    lines = history.diff(one, two).split("\n")
    assert sum(line.startswith("-") for line in lines) >= 30_000 <= sum(line.startswith("+") for line in lines)
    assert len(history.diff(two, three)) < 500


# --- a person's own git


def test_git_status_is_clean_after_every_commit(home: Path, history: History) -> None:
    (home / ".anima").mkdir()
    (home / ".anima" / "ledger.jsonl").write_text("{}")
    steps: list[dict[str, bytes | None]] = [{"a.md": b"1\r\n", "d/b.md": b"2"}, {"a.md": b"3"}, {"d/b.md": None}]
    for files in steps:
        put(home, history, files)
        assert git(home, "status", "--porcelain") == ""
    assert git(home, "branch", "--show-current") == "main\n"
    assert len(git(home, "log", "--oneline").splitlines()) == 3
    assert git(home, "diff", "HEAD") == ""


def test_line_endings_are_safe_from_a_persons_settings(home: Path, history: History) -> None:
    (home / ".gitconfig").write_text("[core]\n\tautocrlf = true\n")
    (home / ".gitattributes").write_text("*.md text eol=lf\n")
    put(home, history, {"a.md": b"1\r\n2\n"})
    assert git(home, "status", "--porcelain", "--untracked-files=no") == ""


def test_what_a_person_staged_stays_staged(home: Path, history: History) -> None:
    put(home, history, {"a.md": b"1"})
    (home / "mine.txt").write_text("mine")
    git(home, "add", "mine.txt")
    put(home, history, {"a.md": b"2"})
    assert git(home, "status", "--porcelain") == "A  mine.txt\n"


@pytest.mark.parametrize("is_known", [False, True], ids=["as read", "as we left it"])
def test_what_a_person_stages_while_we_follow_stays_staged(
    home: Path, history: History, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(index: pygit2.Index) -> None:
        monkeypatch.undo()
        index.write()
        (home / "mine.txt").write_text("mine")
        git(home, "add", "mine.txt")

    put(home, history, {"a.md": b"1"})
    if not is_known:
        git(home, "update-index", "--refresh")
    monkeypatch.setattr(pygit2.Index, "write", write)
    put(home, history, {"a.md": b"2"})
    put(home, history, {"a.md": b"3"})

    assert git(home, "status", "--porcelain") == "A  mine.txt\n"


def test_a_commit_by_a_person_is_part_of_history(home: Path, history: History) -> None:
    put(home, history, {"a.md": b"1"})
    (home / "b.md").write_text("by hand")
    git(home, "add", "b.md")
    git(home, "commit", "-m", "my own words\n\nwith a body")
    made = put(home, history, {"a.md": b"2"})
    ours, theirs, _ = history.log()
    assert (theirs.actor, theirs.author, theirs.subject) == ("outside", "Luis", "my own words")
    assert history.show(made, "b.md") == b"by hand"
    assert git(home, "status", "--porcelain") == ""
    assert ours.id == made


def test_a_busy_index_does_not_stop_a_commit(home: Path, history: History) -> None:
    put(home, history, {"a.md": b"1"})
    (home / ".git" / "index.lock").write_bytes(b"")
    put(home, history, {"a.md": b"2", "b.md": b"3"})
    assert any("index.lock" in sentence for sentence in history.check())
    (home / ".git" / "index.lock").unlink()
    assert git(home, "status", "--porcelain") != ""
    history.refresh()
    assert git(home, "status", "--porcelain") == ""


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_any_index_a_person_has_is_followed(home: Path, history: History, version: str) -> None:
    put(home, history, {"a.md": b"1", "d/b.md": b"2"})
    git(home, "update-index", "--index-version", version)
    (home / "later.md").write_text("x")
    git(home, "add", "--intent-to-add", "later.md")
    (home / "later.md").unlink()
    git(home, "rm", "--cached", "-q", "later.md")
    put(home, history, {"a.md": b"3"})
    assert git(home, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "junk", [b"", b"junk", b"DIRC\0\0\0\2\xff\xff\xff\xff" + bytes(400), b"DIRC\0\0\0\2" + bytes(24)]
)
def test_a_broken_index_is_made_anew(home: Path, history: History, junk: bytes) -> None:
    put(home, history, {"a.md": b"1", "d/b.md": b"2"})
    (home / ".git" / "index").write_bytes(junk)
    (home / ".git" / "anima.index").unlink()
    put(home, history, {"a.md": b"3"})
    assert git(home, "status", "--porcelain") == ""


def test_a_merge_under_way_is_left_alone(home: Path, history: History) -> None:
    put(home, history, {"a.md": b"1\n"})
    git(home, "checkout", "-q", "-b", "theirs")
    (home / "a.md").write_text("theirs\n")
    git(home, "commit", "-qam", "theirs")
    git(home, "checkout", "-q", "main")
    put(home, history, {"a.md": b"ours\n"})
    with pytest.raises(AssertionError):
        git(home, "merge", "theirs")
    assert git(home, "ls-files", "--unmerged") != ""
    index = (home / ".git" / "index").read_bytes()
    made = history.commit({"b.md": b"2"}, NOTE)
    assert history.head() == made
    assert (home / ".git" / "index").read_bytes() == index


def test_on_another_branch_a_person_is_left_in_peace(home: Path, history: History) -> None:
    put(home, history, {"a.md": b"1"})
    git(home, "checkout", "-q", "-b", "experiment")
    index = (home / ".git" / "index").read_bytes()
    made = history.commit({"a.md": b"2"}, NOTE)
    assert git(home, "rev-parse", "main").strip() == made
    assert git(home, "branch", "--show-current") == "experiment\n"
    assert (home / ".git" / "index").read_bytes() == index
    assert history.check() == ["HEAD is on experiment; history goes on on main"]


def test_history_goes_on_after_git_gc(home: Path, history: History) -> None:
    made = [put(home, history, {"a.md": b"%d" % i, f"d/{i}.md": b"x"}) for i in range(30)]
    git(home, "gc", "-q", "--prune=now")
    assert not (home / ".git" / "refs" / "heads" / "main").exists()
    assert [revision.id for revision in history.log()] == made[::-1]
    put(home, history, {"a.md": b"after"})
    again = History.open(str(home / ".git"))
    assert len(again.log()) == 31 and again.check() == []
    assert git(home, "fsck", "--strict", "--full") == "" == git(home, "status", "--porcelain")
    again.close()


def test_a_person_can_push_to_a_remote_and_clone_it(home: Path, history: History, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    put(home, history, {"a.md": b"1", "d/b.md": b"2\r\n"})
    git(home, "remote", "add", "origin", str(tmp_path / "remote.git"))
    git(home, "push", "-q", "-u", "origin", "main")
    made = put(home, history, {"a.md": b"3"})
    git(home, "push", "-q")
    git(tmp_path, "clone", "-q", "-b", "main", "remote.git", "copy")
    assert git(tmp_path / "copy", "rev-parse", "HEAD").strip() == made
    assert (tmp_path / "copy" / "d" / "b.md").read_bytes() == b"2\r\n"
    assert history.check() == []


def test_a_bare_history_is_readable_with_git(tmp_path: Path) -> None:
    history = History.create(str(tmp_path / "history.git"), bare=True)
    made = history.commit({"a.md": b"1"}, NOTE)
    assert git(tmp_path / "history.git", "rev-parse", "main").strip() == made
    assert git(tmp_path / "history.git", "fsck", "--strict") == ""
    assert not (tmp_path / "history.git" / "index").exists()
    history.close()


# --- whose repository


def test_a_repository_of_somebody_else_is_never_touched(home: Path) -> None:
    git(home, "init", "-q")
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    with pytest.raises(Refused):
        History.open(str(home / ".git"))
    with pytest.raises(Refused):
        History.create(str(home / ".git"), bare=False)
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


def test_no_history_is_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(Damaged):
        History.open(str(tmp_path / "nowhere"))


def test_creating_twice_opens_what_is_there(home: Path, history: History) -> None:
    made = put(home, history, {"a.md": b"1"})
    again = History.create(str(home / ".git"), bare=False)
    assert again.head() == made
    again.close()


def test_all_files_are_the_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        history = History.create(str(tmp_path / "h.git"), bare=False)
        for i in range(5):
            history.commit({"a.md": b"%d" % i}, NOTE)
        history.close()
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "h.git").rglob("*")}
    assert modes == {0o700, 0o600}


HOSTILE_CALLS = """
import sys
from datetime import datetime, UTC
from anima.store import Note
from anima.store.git import History
history = History.open(sys.argv[1])
note = Note(what="write", actor="agent", author="Aria", time=datetime(2026, 5, 8, tzinfo=UTC), reason="x")
first = history.head()
made = history.commit({"a.md": b"two", "sub/b.md": b"three"}, note)
history.log("a.md"); history.show(made, "a.md"); history.tree(made); history.diff(first, made); history.anchors()
history.refresh(); history.check(); history.commit({"a.md": b"four"}, note)
history.repair({"a.md": b"five"}, note); history.close()
print("done")
"""


def booby_trapped(home: Path, history: History, canary: Path) -> Path:
    """Every way we know in which a repository or a user's configuration makes git run something."""
    put(home, history, {"a.md": b"one"})
    trap = canary.parent / "trap.sh"
    trap.write_text(f'#!/bin/sh\necho "$0 $@" >> {canary}\ncat\n')
    trap.chmod(0o700)
    settings = f"""
[core]
\tfsmonitor = {trap}
\tsshCommand = {trap}
\tpager = {trap}
\teditor = {trap}
\tgitProxy = {trap}
\taskPass = {trap}
\thooksPath = {home / ".git" / "hooks"}
\tattributesFile = {home / ".gitattributes"}
[filter "trap"]
\tclean = {trap}
\tsmudge = {trap}
\tprocess = {trap}
\trequired = true
[diff "trap"]
\ttextconv = {trap}
\tcommand = {trap}
[merge "trap"]
\tdriver = {trap}
[commit]
\tgpgSign = true
[gpg]
\tprogram = {trap}
[gpg "ssh"]
\tprogram = {trap}
[credential]
\thelper = !{trap}
[alias]
\tlog = !{trap}
[include]
\tpath = {canary.parent / "more"}
"""
    (canary.parent / "more").write_text("[core]\n\tfsmonitor = " + str(trap) + "\n")
    with (home / ".git" / "config").open("a") as file:
        file.write(settings)
    user = canary.parent / "user"
    user.mkdir()
    (user / ".gitconfig").write_text(settings)
    hooks = home / ".git" / "hooks"
    hooks.mkdir()
    for name in (
        "pre-commit",
        "post-commit",
        "commit-msg",
        "prepare-commit-msg",
        "reference-transaction",
        "post-index-change",
        "fsmonitor-watchman",
        "pre-auto-gc",
        "post-checkout",
        "update",
    ):
        (hooks / name).write_bytes(trap.read_bytes())
        (hooks / name).chmod(0o700)
    for place in (home / ".gitattributes", home / ".git" / "info" / "attributes"):
        place.write_text("* filter=trap diff=trap merge=trap\n")
    return user


def test_a_booby_trapped_repository_runs_nothing(home: Path, history: History, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    user = booby_trapped(home, history, canary)
    env = {"PATH": os.environ["PATH"], "HOME": str(user)}
    subprocess.run(["git", "status"], cwd=home, env=env, capture_output=True, check=False)
    assert canary.exists(), "the traps are not armed"
    canary.unlink()

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.mkfifo(tmp_path / "fifo")
    with (home / ".git" / "config").open("a") as file:
        file.write(f"[core]\n\tworktree = {elsewhere}\n[include]\n\tpath = {tmp_path / 'fifo'}\n")
    (user / ".gitconfig").write_text(f"[include]\n\tpath = {tmp_path / 'fifo'}\n")
    (home / ".git" / "commondir").write_text(str(elsewhere))
    (home / ".git" / "objects" / "info" / "alternates").write_text(str(elsewhere))

    env = os.environ | {
        "HOME": str(user),
        "XDG_CONFIG_HOME": str(user),
        "GIT_DIR": str(elsewhere),
        "GIT_OBJECT_DIRECTORY": str(elsewhere),
        "GIT_INDEX_FILE": str(elsewhere / "index"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    call = [sys.executable, "-c", HOSTILE_CALLS, str(home / ".git")]
    done = subprocess.run(call, env=env, cwd=home, capture_output=True, text=True, timeout=180, check=False)
    assert done.stdout == "done\n", done.stderr
    assert not canary.exists()
    assert list(elsewhere.iterdir()) == []


# --- damage


def filled(home: Path, history: History) -> list[str]:
    """Six revisions. Closing makes whoever looks next look at the disk, not at what libgit2 remembers."""
    made = [put(home, history, {"a.md": b"version %d" % i, f"d/{i}.md": b"day %d" % i}) for i in range(6)]
    history.close()
    return made


def present(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*.md") if ".git" not in str(path)}


REPAIR = replace(NOTE, what="repair", actor="owner")


def test_a_sound_history_has_no_damage_and_needs_no_repair(home: Path, history: History) -> None:
    made = filled(home, history)
    assert history.check() == []
    assert history.repair(present(home), REPAIR) == []
    assert history.head() == made[-1]


def test_a_missing_old_blob_is_found_and_what_is_whole_is_kept(home: Path, history: History) -> None:
    made = filled(home, history)
    object_file(home, blob_id(b"version 2")).unlink()
    assert history.check() == [f"revision {made[2][:10]} cannot be read in full"]
    assert history.show(made[5], "a.md") == b"version 5"
    with pytest.raises(Damaged):
        history.show(made[2], "a.md")

    (said,) = history.repair(present(home), REPAIR)
    assert "kept 5 revisions, lost 1" in said
    assert history.check() == []
    assert [revision.subject for revision in history.log("a.md")][:1] == ["write a.md and 1 more"]
    assert history.show(made[1], "a.md") == b"version 1"  # before the hole, ids are what they were
    assert [history.show(revision.id, "a.md") for revision in history.log("a.md")] == [
        b"version 5",
        b"version 4",
        b"version 3",
        b"version 1",
        b"version 0",
    ]
    assert (home / ".git.broken-1" / "objects").is_dir()
    assert git(home, "fsck", "--strict", "--full") == "" == git(home, "status", "--porcelain")


@pytest.mark.parametrize("harm", ["empty", "garbage", "flip"])
def test_a_corrupt_object_is_found(home: Path, history: History, harm: str) -> None:
    made = filled(home, history)
    harmed = object_file(home, blob_id(b"version 4"))
    data = bytearray(harmed.read_bytes())
    data[-6] ^= 0xFF
    harmed.write_bytes({"empty": b"", "garbage": b"not zlib", "flip": bytes(data)}[harm])
    again = History.open(str(home / ".git"))
    assert again.check() == [f"revision {made[4][:10]} cannot be read in full"]
    again.repair(present(home), REPAIR)
    assert again.check() == []
    again.close()


def test_an_object_that_is_not_what_its_name_says_is_found(home: Path, history: History) -> None:
    made = filled(home, history)
    object_file(home, blob_id(b"version 4")).write_bytes(object_file(home, blob_id(b"version 3")).read_bytes())
    with pytest.raises(Damaged):
        History.open(str(home / ".git")).show(made[4], "a.md")


def test_a_missing_commit_in_the_middle_is_bridged_with_the_reflog(home: Path, history: History) -> None:
    made = filled(home, history)
    object_file(home, made[3]).unlink()
    assert [revision.id for revision in history.log()] == made[:3:-1]
    history.repair(present(home), REPAIR)
    assert history.check() == []
    assert len(history.log()) == 5
    assert history.log()[-1].id == made[0]


def test_a_broken_head_stops_commits_until_it_is_repaired(home: Path, history: History) -> None:
    made = filled(home, history)
    object_file(home, made[-1]).unlink()
    with pytest.raises(Damaged):
        history.commit({"a.md": b"more"}, NOTE)
    with pytest.raises(Damaged):
        history.log()
    history.repair(present(home), REPAIR)
    assert history.check() == []
    assert [revision.id for revision in history.log()][1:] == made[-2::-1]
    assert history.log()[0].subject.startswith("repair")
    assert history.show(history.log()[0].id, "a.md") == b"version 5"


def test_a_history_with_nothing_left_starts_again_and_says_so(home: Path, history: History) -> None:
    filled(home, history)
    for path in (home / ".git" / "objects").rglob("*"):
        if path.is_file():
            path.unlink()
    (said,) = history.repair(present(home), REPAIR)
    assert "kept 0 revisions" in said
    (revision,) = history.log()
    assert revision.subject.startswith("repair a.md and 6 more")
    assert history.check() == [] and git(home, "status", "--porcelain") == ""


@pytest.mark.parametrize("content", [b"", b"junk\n", b"ref: refs/heads/main\n", b"0" * 40 + b"\n"])
def test_an_unreadable_branch_is_restored_from_the_reflog(home: Path, history: History, content: bytes) -> None:
    made = filled(home, history)
    (home / ".git" / "refs" / "heads" / "main").write_bytes(content)
    with pytest.raises(Damaged):
        history.commit({"a.md": b"more"}, NOTE)
    assert history.check() != []
    history.repair(present(home), REPAIR)
    assert history.head() == made[-1] and history.check() == []


def test_a_missing_branch_is_restored_from_the_reflog(home: Path, history: History) -> None:
    made = filled(home, history)
    (home / ".git" / "refs" / "heads" / "main").unlink()
    assert history.check() == ["the branch main is missing"]
    history.repair(present(home), REPAIR)
    assert history.head() == made[-1] and history.check() == []


@pytest.mark.parametrize("content", [None, b"", b"a" * 40 + b"\n", b"ref: refs/heads/other\n"])
def test_a_wrong_head_is_told_and_put_right(home: Path, history: History, content: bytes | None) -> None:
    made = filled(home, history)
    (home / ".git" / "HEAD").unlink()
    if content is not None:
        (home / ".git" / "HEAD").write_bytes(content)
    assert len(history.check()) == 1
    assert history.repair(present(home), REPAIR) == ["HEAD is on main again"]
    assert history.check() == [] and history.head() == made[-1]
    assert git(home, "status", "--porcelain") == ""


def test_locks_that_git_left_are_told_and_removed(home: Path, history: History) -> None:
    made = filled(home, history)
    for name in ("index.lock", "HEAD.lock", "refs/heads/main.lock"):
        (home / ".git" / name).write_bytes(b"")
    assert len(history.check()) == 3
    with pytest.raises(Damaged, match=r"main\.lock"):
        history.commit({"a.md": b"more"}, NOTE)
    assert history.head() == made[-1]
    assert len(history.repair(present(home), REPAIR)) == 3
    assert history.check() == []


def test_two_repairs_keep_both_broken_repositories(home: Path, history: History) -> None:
    for number in (1, 2):
        filled(home, history)
        object_file(home, blob_id(b"version 4")).unlink()
        history.repair(present(home), REPAIR)
        assert (home / f".git.broken-{number}").is_dir()
    assert history.check() == []


def test_a_folder_that_a_rewriting_empties_leaves_no_document_in_its_place(history: History) -> None:
    history.commit({"a.md": b"a document"}, NOTE)
    history.commit({"a.md": None, "a.md/b.md": b"a secret"}, NOTE)
    history.rewrite(lambda path, data: None if b"secret" in data else data, lambda said: said, NOTE)
    assert [history.tree(revision.id).keys() for revision in history.log()] == [set(), {"a.md"}]


def test_a_repair_keeps_a_persons_remotes(home: Path, history: History) -> None:
    filled(home, history)
    git(home, "remote", "add", "origin", "https://example.org/x.git")
    object_file(home, blob_id(b"version 4")).unlink()
    history.repair(present(home), REPAIR)
    assert git(home, "remote", "-v").count("https://example.org/x.git") == 2


def test_whoever_had_it_open_follows_a_repair(home: Path, history: History) -> None:
    filled(home, history)
    other = History.open(str(home / ".git"))
    assert other.head() is not None
    object_file(home, blob_id(b"version 4")).unlink()
    history.repair(present(home), REPAIR)
    made = other.commit({"a.md": b"after"}, NOTE)
    assert history.head() == made and history.check() == []
    other.close()


@pytest.mark.parametrize("linked", ["objects", "objects/pack", "objects/ab"])
def test_linked_folders_lead_nowhere(home: Path, history: History, tmp_path: Path, linked: str) -> None:
    filled(home, history)
    history.close()
    outside = tmp_path / "outside"
    (outside / "pack").mkdir(parents=True)
    place = home / ".git" / linked
    if place.exists():
        place.rename(tmp_path / "moved")
    place.symlink_to(outside)

    again = History.open(str(home / ".git"))
    with pytest.raises(Damaged):
        again.commit({"a.md": b"more"}, NOTE)
    assert len(again.check()) == 1
    again.repair(present(home), REPAIR)
    assert again.check() == []
    assert [path.name for path in outside.rglob("*")] == ["pack"]
    again.close()


def test_linked_files_are_not_followed(home: Path, history: History, tmp_path: Path) -> None:
    filled(home, history)
    target = tmp_path / "target"
    target.write_text("precious")
    for name in ("refs/heads/main", "index", "anima.index", "anima.new", "logs/refs/heads/main"):
        (home / ".git" / name).unlink(missing_ok=True)
        (home / ".git" / name).symlink_to(target)
    with pytest.raises(Damaged):
        history.commit({"a.md": b"more"}, NOTE)
    assert target.read_text() == "precious"


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_an_object_that_is_no_file_is_not_opened(home: Path, history: History, kind: str) -> None:
    made = filled(home, history)
    place = object_file(home, made[-1])
    place.rename(home / "moved")
    os.mkfifo(place) if kind == "pipe" else place.symlink_to(home / "moved")
    with pytest.raises(Damaged, match="not a file"):
        history.log()
    history.repair(present(home), REPAIR)
    assert history.check() == []


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_an_object_no_revision_leads_to_is_not_waited_for_either(home: Path, history: History, kind: str) -> None:
    made = filled(home, history)
    place = home / ".git/objects/ab" / ("c" * 38)
    place.parent.mkdir(exist_ok=True)
    os.mkfifo(place) if kind == "pipe" else place.symlink_to(object_file(home, made[-1]))
    with pytest.raises(Damaged, match="not a file"):
        list(history.objects())


def test_an_object_that_was_cut_is_damaged_and_not_read_for_ever(home: Path, history: History) -> None:
    made = filled(home, history)
    place = object_file(home, made[-1])
    place.chmod(0o600)
    for size in range(place.stat().st_size - 1, 0, -7):
        os.truncate(place, size)
        assert history.check() == [f"revision {made[-1][:10]} cannot be read in full"]
    history.repair(present(home), REPAIR)
    assert history.check() == []


def test_a_bomb_of_an_object_is_not_unpacked(home: Path, history: History) -> None:
    made = filled(home, history)
    raw = zlib.compress(b"commit %d\0" % (1 << 40) + bytes(1000))
    object_file(home, made[-1]).write_bytes(raw)
    with pytest.raises(Damaged):
        history.log()


def test_a_tree_that_names_itself_without_end_is_cut_short(home: Path, history: History) -> None:
    tree = ""
    for level in range(8):
        entry = f"100644 blob {blob_id(b'1')}\t" if level == 0 else f"040000 tree {tree}\t"
        lines = "".join(f"{entry}{name:03}\n" for name in range(60))
        put(home, history, {"a.md": b"1"}) if level == 0 else None
        call = ["git", "mktree"]
        tree = subprocess.run(call, cwd=home, input=lines, capture_output=True, text=True, check=True).stdout.strip()
    bomb = git(home, "commit-tree", "-m", "bomb", tree).strip()
    with pytest.raises(Damaged, match="too many"):
        history.tree(bomb)


# --- several at once, and killed


WORKER = """
import sys
from datetime import datetime, UTC
from anima.store import Note
from anima.store.folder import Folder
from anima.store.git import History
from anima.store.private import Machine
lock = Machine(Folder(sys.argv[1].removesuffix("/.git"))).lock
history = History.create(sys.argv[1], bare=False)
note = Note(what="write", actor="agent", author="Aria", time=datetime(2026, 5, 8, tzinfo=UTC))
for number in range(int(sys.argv[3])):
    sys.stdout.write("."); sys.stdout.flush()
    with lock.hold():
        history.commit({f"{sys.argv[2]}.md": b"%d" % number, "shared.md": b"%s %d" % (sys.argv[2].encode(), number)}, note)
"""


def worker(home: Path, name: str, rounds: int) -> subprocess.Popen[bytes]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    call = [sys.executable, "-c", WORKER, str(home / ".git"), name, str(rounds)]
    return subprocess.Popen(call, env=env, stdout=subprocess.PIPE)


def test_processes_that_commit_at_once_lose_nothing(home: Path) -> None:
    workers = [worker(home, name, 25) for name in ("one", "two", "three")]
    for process in workers:
        process.communicate(timeout=180)
    assert [process.returncode for process in workers] == [0, 0, 0]
    history = History.open(str(home / ".git"))
    assert len(history.log(limit=1000)) == 75
    assert history.check() == []
    head = history.head()
    assert head is not None
    assert [history.show(head, f"{name}.md") for name in ("one", "two", "three")] == [b"24"] * 3
    assert git(home, "fsck", "--strict") == ""
    history.close()


def test_processes_that_create_at_once_make_one_history(tmp_path: Path) -> None:
    for number in range(4):
        place = tmp_path / str(number)
        place.mkdir()
        workers = [worker(place, name, 1) for name in ("one", "two", "three")]
        for process in workers:
            process.communicate(timeout=180)
        assert [process.returncode for process in workers] == [0, 0, 0]
        assert sorted(os.listdir(place)) == [".anima", ".git"]
        assert len(git(place, "log", "--oneline").splitlines()) == 3


def test_threads_share_one_history(home: Path, history: History) -> None:
    def write(name: str) -> None:
        for number in range(20):
            history.commit({f"{name}.md": b"%d" % number}, NOTE)
            history.log(f"{name}.md", limit=1)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(history.log(limit=1000)) == 60 and history.check() == []


def test_a_killed_process_leaves_a_history_that_goes_on(home: Path) -> None:
    history = History.create(str(home / ".git"), bare=False)
    for number in range(12):
        process = worker(home, "doomed", 1000)
        assert process.stdout is not None
        process.stdout.read(5 + number * 3)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert history.commit({"alive.md": b"%d" % number}, NOTE) is not None
        assert history.check() == []
    assert len(history.log("alive.md")) == 12
    assert git(home, "fsck", "--strict", "--no-dangling") == ""
    history.close()


def test_a_lock_of_our_own_that_a_kill_left_is_taken_away(home: Path, history: History) -> None:
    filled(home, history)
    for name in ("refs/heads/main", "index"):
        (home / ".git" / "anima.new").write_bytes(b"half")
        (home / ".git" / f"{name}.lock").hardlink_to(home / ".git" / "anima.new")
        put(home, history, {"a.md": name.encode()})
        assert history.check() == [] and git(home, "status", "--porcelain") == ""


def test_a_disk_that_fails_while_the_branch_moves_leaves_no_lock_behind(
    home: Path, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What benchmarks/faults.py does with a library of its own at every call, here at the one that matters."""
    filled(home, history)

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "the disk failed")

    with monkeypatch.context() as disk, pytest.raises(Damaged, match="the disk failed"):
        disk.setattr(os, "rename", fail)
        put(home, history, {"a.md": b"lost"})
    put(home, history, {"a.md": b"kept"})
    assert history.check() == [] and git(home, "show", "main:a.md") == "kept"


def test_a_kill_right_after_the_branch_moved_does_not_harm_it(home: Path, history: History) -> None:
    made = filled(home, history)
    (home / ".git" / "anima.new").hardlink_to(home / ".git" / "refs" / "heads" / "main")
    assert history.check() == [] and history.head() == made[-1]
    put(home, history, {"a.md": b"more"})
    assert history.log()[1].id == made[-1]


# --- packing


def test_packing_keeps_every_version(home: Path, history: History) -> None:
    made = filled(home, history)
    git(home, "gc", "-q", "--prune=now")
    assert [path for path in (home / ".git" / "objects").rglob("*") if len(path.name) == 38] == []
    other = History.open(str(home / ".git"))
    for opened in (history, other):
        assert [opened.show(at, "a.md") for at in made] == [b"version %d" % i for i in range(6)]
        assert opened.check() == []
    put(home, history, {"a.md": b"after packing"})
    assert len(other.log()) == 7
    assert git(home, "fsck", "--strict", "--full") == ""
    other.close()

"""A snapshot is the whole home in one archive, and a restore is all of it or nothing of it."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import traceback
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pygit2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anima
from anima import (
    BadArguments,
    BadConfig,
    Damaged,
    Home,
    HomeBusy,
    HomeError,
    MissingExtra,
    NotFound,
    Refused,
    Scope,
    Snapshot,
    restore,
)
from anima.backup import snapshot
from anima.backup.archive import MOST_FILES, Manifest
from anima.cli import run
from anima.model import File
from anima.store.folder import Folder
from anima.store.outside import Shelf
from anima.store.private import Machine, refusal
from anima.store.whole import FolderWhole
from anima.testing import Clock
from owning import as_owner

DIALECTS = ("anima", "openclaw", "nexo", "carapace", "ironclaw", "agentscope")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "home"
    with Home.create(root, name="Aria", clock=Clock()) as home:
        home.remember("Ana uses a Samsung")
        home.note("woke up")
        with home.session(scope=Scope.MAIN) as session:
            session.log("user", "hello there")
            session.taint("web")
            session.call("memory_write", {"target": "TOOLS.md", "content": "a wish that waits"})
    return root


ANY = {"dialect": "anima"}  # opens an empty folder, too, which is no home else


def opened(root: Path, **more: Any) -> Home:
    return Home.open(root, clock=more.pop("clock", Clock()), **more)


def taken(root: Path, **asked: Any) -> Path:
    with opened(root, settings=ANY) as home:
        return Path(home.snapshots.take(**asked).path)


def restored(kept: Path | str, root: Path, **asked: Any) -> Any:
    return restore(kept, root, clock=Clock(), **asked)


def held(root: Path) -> dict[str, tuple[bytes, int, int]]:
    """Every file a snapshot holds: bytes, mode, second."""
    with FolderWhole.at(root) as whole:
        found = [each.path for each in whole.census()[0]]
    stats = {path: (root / path).stat() for path in found}
    return {
        path: ((root / path).read_bytes(), seen.st_mode & 0o777, int(seen.st_mtime)) for path, seen in stats.items()
    }


def changed(root: Path) -> None:
    """A home that lived on: lines, files and talk more, and others fewer."""
    with opened(root) as home:
        home.remember("something newer")
        home.write("notes/new/deep.md", "- new\n")
        home.delete("TOOLS.md")
        with home.session(scope=Scope.MAIN) as session:
            session.log("user", "and again")
        for proposal in home.inbox.all():
            home.inbox.deny(proposal.id)


# -- there and back ----------------------------------------------------------------------------------------------------------


def test_snapshot_restore_snapshot_is_byte_for_byte_identical(root: Path, tmp_path: Path) -> None:
    first = taken(root)
    before = held(root)
    changed(root)
    done = restored(first, root)
    assert held(root) == before
    assert taken(root, to=tmp_path / "again.tar.gz").read_bytes() == first.read_bytes()
    assert "notes/new/deep.md" in done.gone and "TOOLS.md" in done.new and "MEMORY.md" in done.changed
    assert not (root / "notes").exists()
    with opened(root) as home:
        assert home.past.audit().ok and not home.past.history_problems()
        assert home.search("Samsung", scope=Scope.MAIN).hits
        assert home.inbox.all()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_goes_there_and_back_in_every_dialect(example: Any, dialect: str, tmp_path: Path) -> None:
    root = example(dialect)
    documents = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    first = taken(root)
    with opened(root) as home:
        home.note("something newer")
    shutil.rmtree(root / next(path.name for path in sorted(root.iterdir()) if path.is_dir() and path.name != ".anima"))
    restored(first, root)
    now = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    assert {path: now.get(path) for path in documents} == documents
    assert taken(root, to=tmp_path / "again.tar.gz").read_bytes() == first.read_bytes()
    restored(first, tmp_path / "elsewhere")
    with opened(tmp_path / "elsewhere") as home:
        assert home.dialect == dialect


def test_history_in_a_folder_of_its_own_comes_back_too(example: Any) -> None:
    root = example("openclaw")
    with opened(root) as home:
        home.note("first")
    kept = taken(root)
    with opened(root) as home:
        revisions = home.past.log()
        home.note("second")
    shutil.rmtree(root / ".anima/history.git")
    restored(kept, root)
    with opened(root) as home:
        assert home.past.log() == revisions and not home.past.history_problems()


def test_a_home_is_made_where_there_is_none(root: Path, tmp_path: Path) -> None:
    kept = taken(root, to=tmp_path / "kept.tar.gz")
    before = held(root)
    shutil.rmtree(root)
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "a/b/c", tmp_path / "empty"):
        done = restored(kept, place)
        assert done.before is None and done.new and any("trust-home" in note for note in done.notes)
        assert held(place) == before
        with opened(place) as home:
            assert home.note("goes on").status == "written" and home.past.audit().ok


def test_a_vanished_home_comes_back_from_a_snapshot(root: Path, tmp_path: Path) -> None:
    kept = taken(root, to=tmp_path / "kept.tar.gz")
    before = held(root)
    shutil.rmtree(root)
    with pytest.raises(HomeError, match="vanished"):
        opened(root)
    restored(kept, root)
    assert held(root) == before


def test_the_same_home_gives_the_same_bytes_and_no_second_file(root: Path, tmp_path: Path) -> None:
    first = taken(root)
    with opened(root, clock=Clock("2027-01-01T00:00:00+00:00")) as home:
        again = home.snapshots.take(label="later")
        assert (again.fresh, again.path) == (False, str(first))
        assert len(home.snapshots.all()) == 1
    assert taken(root, to=tmp_path / "a.tar.gz").read_bytes() == taken(root, to=tmp_path / "b.tar.gz").read_bytes()


def test_nothing_in_it_tells_the_day_or_the_machine(root: Path, tmp_path: Path) -> None:
    kept = taken(root)
    data = gzip.decompress(kept.read_bytes())
    assert str(root).encode() not in data and os.uname().nodename.encode() not in data.split(b"home/")[0]
    with opened(root, clock=Clock("2031-01-01T00:00:00+00:00")) as home:
        later = home.snapshots.take(to=tmp_path / "later.tar.gz")
    assert Path(later.path).read_bytes() == kept.read_bytes()


def test_tar_opens_it(root: Path, tmp_path: Path) -> None:
    kept = taken(root)
    subprocess.run(["tar", "-xzf", kept, "-C", tmp_path], check=True, capture_output=True)
    assert (tmp_path / "manifest.json").is_file()
    with tarfile.open(kept) as tar:
        names = tar.getnames()
    assert names[0] == "manifest.json" and names[1:] == sorted(names[1:])
    for path in held(root):
        assert (tmp_path / "home" / path).read_bytes() == (root / path).read_bytes()
    found = json.loads((tmp_path / "manifest.json").read_text())
    assert (found["anima"], found["format"], found["agent"], found["dialect"]) == ("snapshot", 1, "Aria", "anima")
    assert all(hashlib.sha256((root / f["path"]).read_bytes()).hexdigest() == f["sha256"] for f in found["files"])


def test_folder_and_file_are_for_their_owner_alone(root: Path) -> None:
    os.umask(old := os.umask(0))
    try:
        os.umask(0)
        kept = taken(root)
    finally:
        os.umask(old)
    assert (kept.parent.stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o700, 0o600)


def test_modes_times_and_odd_names_come_back(root: Path, tmp_path: Path) -> None:
    tool = root / "skills/mail/send.sh"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    long = root / "notes" / ("ü" * 60) / ("長" * 50 + ".md")
    long.parent.mkdir(parents=True)
    long.write_text("long\n")
    (root / ".config").write_text("hidden\n")
    (root / "nothing.txt").write_bytes(b"")
    os.utime(tool, (1_000_000_000, 1_000_000_000))
    kept = taken(root)
    before = held(root)
    for path in (tool, long, root / ".config", root / "nothing.txt"):
        path.unlink()
    (root / "MEMORY.md").chmod(0o644)
    restored(kept, root)
    assert held(root) == before
    assert tool.stat().st_mode & 0o777 == 0o755 and int(tool.stat().st_mtime) == 1_000_000_000


def test_what_no_snapshot_holds_is_named_and_stays_where_it_is(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "link.md").symlink_to("/etc/hostname")
    (root / "away").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    (root / "nested").mkdir()
    pygit2.init_repository(str(root / "nested"))
    (root / "bad:name.md").write_text("x")
    (root / "Twin.md").write_text("a")
    (root / "twin.md").write_text("b")
    there = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(root)  # the name of a socket is short
    there.bind("sock")
    with opened(root) as home:
        made = home.snapshots.take()
    left = dict(made.left_out)
    assert {"link.md", "away", "pipe", "nested/.git", "bad:name.md", "twin.md", "sock"} == set(left)
    (root / "MEMORY.md").unlink()
    done = restored(made.path, root)
    there.close()
    assert (root / "link.md").is_symlink() and (root / "away").is_symlink() and (root / "nested/.git/HEAD").is_file()
    assert (root / "bad:name.md").read_text() == "x" and (root / "twin.md").read_text() == "b"
    assert {path for path, _ in done.left} == set(left)


def test_a_foreign_repository_is_left_out_whole(example: Any) -> None:
    root = example("openclaw")
    pygit2.init_repository(str(root))
    with opened(root) as home:
        home.note("x")
        assert dict(home.snapshots.take().left_out) == {".git": "a git repository that is not anima's"}


def test_an_empty_folder_can_be_kept_and_restored(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    kept = taken(tmp_path / "empty")
    (tmp_path / "empty/x.txt").write_text("x")
    assert restored(kept, tmp_path / "empty").gone == ("x.txt",)
    assert sorted(held(tmp_path / "empty")) == [".anima/key"]


def test_a_large_file_needs_no_large_memory(root: Path, tmp_path: Path) -> None:
    with open(root / "large.bin", "wb") as file:
        file.truncate(80 * 2**20)
        file.seek(0, os.SEEK_END)
        file.write(b"end")
    program = f"""
import resource, sys
from anima import Home, restore
home = Home.open({str(root)!r})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
kept = home.snapshots.take().path
home.snapshots.verify(kept)
home.close()
restore(kept, {str(tmp_path / "there")!r}, large=True)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 40_000  # kilobytes
    assert (tmp_path / "there/large.bin").stat().st_size == 80 * 2**20 + 3


names = st.text(st.sampled_from("abcXYZ09 ._-äß長"), min_size=1, max_size=12)
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@settings(max_examples=12, deadline=None)
@given(files=st.dictionaries(paths, st.binary(max_size=3000), max_size=6))
def test_any_tree_of_files_comes_back(files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("tree")
    for path, data in files.items():
        try:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        except OSError:
            continue
    with opened(root, settings=ANY) as home:
        made = home.snapshots.take()
    before = held(root)
    restored(made.path, there := tmp_path_factory.mktemp("there") / "home")
    assert held(there) == before
    assert made.left_out or taken(there).read_bytes() == Path(made.path).read_bytes()


# -- verifying ---------------------------------------------------------------------------------------------------------------


def test_a_flipped_byte_anywhere_is_found(root: Path, tmp_path: Path) -> None:
    kept = taken(root)
    data, bad = kept.read_bytes(), tmp_path / "bad.tar.gz"
    found = 0
    with opened(root) as home:
        for at in range(0, len(data), 97):
            flipped = bytearray(data)
            flipped[at] ^= 0x41
            bad.write_bytes(flipped)
            try:
                home.snapshots.verify(bad)
            except (Damaged, Refused):
                found += 1
            else:  # a mark or time in a header of gzip, which nobody reads
                assert gzip.decompress(bytes(flipped)) == gzip.decompress(data)
    assert found > 100


def test_a_cut_anywhere_and_anything_behind_it_is_found(root: Path, tmp_path: Path) -> None:
    kept = taken(root)
    data, bad = kept.read_bytes(), tmp_path / "bad.tar.gz"
    more = [data[:at] for at in range(0, len(data), 211)] + [data + b"x", data + gzip.compress(b"more"), data + data]
    with opened(root) as home:
        for each in more:
            bad.write_bytes(each)
            with pytest.raises((Damaged, Refused)):
                home.snapshots.verify(bad)
        home.snapshots.verify(kept)


def test_another_snapshot_under_a_name_is_found(root: Path) -> None:
    first = taken(root)
    changed(root)
    shutil.copy(taken(root), first)
    with opened(root) as home, pytest.raises(Damaged, match="another snapshot than its name says"):
        home.snapshots.verify(first)


# -- hostile archives --------------------------------------------------------------------------------------------------------


def crafted(
    place: Path,
    files: list[tuple[str, bytes]],
    *,
    members: list[tarfile.TarInfo] | None = None,
    rows: list[dict[str, Any]] | None = None,
    said: dict[str, Any] | None = None,
) -> Path:
    """An archive as a stranger might make it: a manifest that fits its files, and members of any kind."""
    honest = [{"path": p, "size": len(d), "sha256": hashlib.sha256(d).hexdigest(), "mode": "0600"} for p, d in files]
    rows = honest if rows is None else rows
    listed = [File(r["path"], r["size"], r["sha256"], int(r["mode"], 8)) for r in rows]
    raw = Manifest("0" * 16, "anima", "Eve", (0, ""), tuple(listed)).dump()
    if said:
        raw = json.dumps({**json.loads(raw), **said}).encode()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("manifest.json")
        info.size = len(raw)
        tar.addfile(info, io.BytesIO(raw))
        for each in members or ():
            tar.addfile(each, io.BytesIO(b"\0" * each.size))
        for path, data in files:
            info = tarfile.TarInfo(f"home/{path}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    place.write_bytes(out.getvalue())
    return place


def refused(kept: Path, tmp_path: Path) -> str:
    """What a restore says; and nothing was written by it, neither there nor anywhere near."""
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises((Damaged, Refused)) as caught:
        restored(kept, tmp_path / "target")
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
    return str(caught.value)


def test_an_honest_archive_made_by_hand_is_taken(tmp_path: Path) -> None:
    kept = crafted(tmp_path / "x.tar.gz", [("MEMORY.md", b"- x\n"), ("notes/a.md", b"- a\n")])
    assert restored(kept, tmp_path / "target").new == ("MEMORY.md", "notes/a.md")


@pytest.mark.parametrize(
    "path",
    [
        "../out.md",
        "/etc/passwd",
        "a/../../b.md",
        "a//b.md",
        "./a.md",
        "a/./b.md",
        "",
        "x\0.md",
        "x\n.md",
        "a\\b.md",
        "con.md",
        ".anima/lock",
        ".anima/restoring",
        ".anima/snapshots/x",
        ".anima/index.sqlite",
        ".anima/stage/0",
        ".anima/restore/0",
        ".anima/../x",
        ".git/../x",
        ".GIT/config",
        ".Anima/key",
        "sub/.git/hooks/post-checkout",
        ".git/anima.new",
        "．．/x.md",
        "a" * 5000,
        "trailing ",
        "dot.",
        ".anima/restored",
        ".git/.git/config",
        "x/.anima/key",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(path: str, tmp_path: Path) -> None:
    assert refusal(path)
    assert "nothing was written" in refused(crafted(tmp_path / "x.tar.gz", [(path, b"x")]), tmp_path)


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.FIFOTYPE,
        tarfile.DIRTYPE,
        tarfile.GNUTYPE_SPARSE,
        b"V",
    ],
)
def test_whatever_is_no_file_is_refused(kind: bytes, tmp_path: Path) -> None:
    info = tarfile.TarInfo("home/MEMORY.md")
    info.type, info.linkname = kind, "/etc/passwd"
    kept = crafted(tmp_path / "x.tar.gz", [("MEMORY.md", b"")], members=[info])
    assert "which is no file" in refused(kept, tmp_path)


def test_twins_and_doubles_and_strangers_are_refused(tmp_path: Path) -> None:
    x = tmp_path / "x.tar.gz"
    assert "one to a home" in refused(crafted(x, [("A.md", b"1"), ("a.md", b"2")]), tmp_path)
    assert "one to a home" in refused(crafted(x, [("a", b"1"), ("a/b.md", b"2")]), tmp_path)
    assert "twice" in refused(crafted(x, [("a.md", b"1"), ("a.md", b"1")]), tmp_path)
    assert "out of order" in refused(crafted(x, [("b.md", b"1"), ("a.md", b"1")]), tmp_path)
    extra = tarfile.TarInfo("home/extra.md")
    assert "where its manifest says" in refused(crafted(x, [("a.md", b"1")], members=[extra]), tmp_path)
    row = {"path": "a.md", "size": 1, "sha256": hashlib.sha256(b"1").hexdigest(), "mode": "0600"}
    assert "does not name" in refused(crafted(x, [("a.md", b"1"), ("b.md", b"2")], rows=[row]), tmp_path)
    assert refused(crafted(x, [("a.md", b"1")], rows=[row, {**row, "path": "b.md"}]), tmp_path)
    assert "not what its manifest says" in refused(crafted(x, [("a.md", b"2")], rows=[row]), tmp_path)
    assert "where its manifest says" in refused(crafted(x, [("a.md", b"22")], rows=[row]), tmp_path)
    assert "a mode no home has" in refused(crafted(x, [("a.md", b"1")], rows=[{**row, "mode": "4777"}]), tmp_path)


def test_a_bomb_is_told_by_its_size_before_it_is_unpacked(tmp_path: Path) -> None:
    row = {"path": "a.md", "size": 1, "sha256": hashlib.sha256(b"1").hexdigest(), "mode": "0600"}
    kept = crafted(tmp_path / "x.tar.gz", [("a.md", b"\0" * (64 * 2**20))], rows=[row])
    assert kept.stat().st_size < 100_000
    assert "where its manifest says" in refused(kept, tmp_path)
    empty = gzip.compress(b"") * 20_000
    kept.write_bytes(empty)
    assert "ends too soon" in refused(kept, tmp_path)


def test_an_archive_that_unpacks_to_many_times_its_size_is_the_owners_to_allow(tmp_path: Path) -> None:
    kept = crafted(tmp_path / "x.tar.gz", [("a.bin", b"\0" * (33 * 2**20))])
    told: list[tuple[int, int]] = []
    for act in (
        lambda: anima.verify_archive(str(kept), progress=lambda *at: told.append(at)),
        lambda: anima.restore(kept, tmp_path / "new"),
    ):
        with pytest.raises(Refused, match="more than 100 times its own size") as refusal:
            act()
        assert refusal.value.rule == "archive-too-large" and "--large" in (refusal.value.hint or "")
    assert told == [] and not (tmp_path / "new").exists()
    assert anima.verify_archive(kept, large=True).size == 33 * 2**20
    anima.restore(kept, tmp_path / "new", large=True)
    assert (tmp_path / "new" / "a.bin").stat().st_size == 33 * 2**20


def test_a_small_home_of_repetitive_files_is_no_bomb(tmp_path: Path) -> None:
    kept = crafted(tmp_path / "x.tar.gz", [("a.bin", b"\0" * (24 * 2**20))])
    assert 500 * kept.stat().st_size < 24 * 2**20
    anima.restore(kept, tmp_path / "new")


def test_an_archive_of_too_many_files_is_refused_before_they_are_read(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"").hexdigest()
    rows = [{"path": f"{n:06}", "size": 0, "sha256": digest, "mode": "0600"} for n in range(MOST_FILES + 1)]
    kept = crafted(tmp_path / "x.tar.gz", [], rows=rows)
    with pytest.raises(Refused, match=f"holds {MOST_FILES + 1:,} files"):
        anima.verify_archive(str(kept))


def test_nothing_large_follows_an_archive(tmp_path: Path) -> None:
    kept = crafted(tmp_path / "x.tar.gz", [("a.md", b"1")])
    kept.write_bytes(kept.read_bytes() + gzip.compress(b"\0" * (64 * 2**20)))
    with pytest.raises(Damaged, match="something follows"):
        anima.verify_archive(str(kept))


@pytest.mark.parametrize("said", [{"format": 2}, {"format": 99}])
def test_a_newer_format_is_refused_with_a_sentence(said: dict[str, Any], tmp_path: Path) -> None:
    assert "this version of anima reads up to 1" in refused(crafted(tmp_path / "x.tar.gz", [], said=said), tmp_path)


@pytest.mark.parametrize(
    "said",
    [
        {"format": "1"},
        {"format": True},
        {"anima": "export"},
        {"files": 3},
        {"files": [{}]},
        {"left_out": [1]},
        {"home": None},
        {"ledger": {}},
        {"more": 1},
    ],
)
def test_a_manifest_that_is_none_is_told(said: dict[str, Any], tmp_path: Path) -> None:
    assert refused(crafted(tmp_path / "x.tar.gz", [], said=said), tmp_path)


@pytest.mark.parametrize(
    "data",
    [b"", b"no archive", b"\x1f\x8b", gzip.compress(b"x" * 5000, mtime=0), gzip.compress(b"\0" * 1024, mtime=0)],
    ids=["empty", "text", "two bytes", "no tar", "an empty tar"],
)
def test_what_is_no_archive_is_told(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.tar.gz").write_bytes(data)
    assert refused(tmp_path / "x.tar.gz", tmp_path)


def test_a_tar_with_words_of_its_own_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("home/a.md")
    info.pax_headers = {"GNU.sparse.map": "0,1"}
    assert "never says" in refused(crafted(tmp_path / "x.tar.gz", [("a.md", b"")], members=[info]), tmp_path)


# -- restoring ---------------------------------------------------------------------------------------------------------------


def test_what_is_there_becomes_a_snapshot_first(root: Path) -> None:
    first = taken(root)
    changed(root)
    before = held(root)
    done = restored(first, root)
    assert done.before.label == "before-restore" and Path(done.before.path).parent == root / ".anima/snapshots"
    restored(done.before.path, root)
    assert held(root) == before


def test_a_dry_run_tells_and_touches_nothing(root: Path, tmp_path: Path) -> None:
    kept = taken(root)
    changed(root)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and path.name != "lock"}
    told = restored(kept, root, dry_run=True)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and path.name != "lock"} == before
    done = restored(kept, root)
    assert (told.new, told.changed, told.gone, told.done, done.done) == (done.new, done.changed, done.gone, False, True)
    assert restored(kept, tmp_path / "nowhere", dry_run=True).new and not (tmp_path / "nowhere").exists()


def test_another_home_is_not_swept_away_by_mistake(root: Path, tmp_path: Path) -> None:
    kept = taken(root)
    with Home.create(tmp_path / "other", name="Bo", clock=Clock()) as other:
        other.remember("Bo's own")
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/thesis.txt").write_text("years of work")
    for place in (tmp_path / "other", tmp_path / "papers"):
        before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name != "lock"}
        with pytest.raises(Refused, match="nothing was written"):
            restored(kept, place)
        assert {
            path: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name != "lock"
        } == before
    done = restored(kept, tmp_path / "other", other=True)
    with opened(tmp_path / "other") as home:
        assert home.identity.name == "Aria" and not home.config.trusted
    restored(done.before.path, tmp_path / "other", other=True)
    with opened(tmp_path / "other") as home:
        assert "Bo's own" in home.read("MEMORY.md").text


def test_the_same_home_keeps_its_trust(root: Path) -> None:
    kept = taken(root)
    changed(root)
    restored(kept, root)
    with opened(root) as home:
        assert home.config.trusted


@pytest.mark.parametrize("words", [{"size": "9" * 5000}, {"size": "²"}, {"path": "home/a.md", "size": "0" * 30}])
def test_numbers_that_are_none_are_told(words: dict[str, str], tmp_path: Path) -> None:
    info = tarfile.TarInfo("home/a.md")
    info.pax_headers = words
    assert refused(crafted(tmp_path / "x.tar.gz", [("b.md", b"")], members=[info]), tmp_path)


def test_what_stands_in_the_way_is_named_and_nothing_is_written(root: Path, tmp_path: Path) -> None:
    with opened(root) as home:
        home.write("notes/a.md", "- a\n")
    kept = taken(root)
    shutil.rmtree(root / "notes")
    (root / "notes").symlink_to(tmp_path)
    before = held(root)
    with pytest.raises(Refused, match="notes stands in the way"):
        restored(kept, root)
    assert held(root) == before and not (root / ".anima/restore").exists() and not (tmp_path / "a.md").exists()
    (root / "notes").unlink()
    (root / "notes").write_text("a file by now")
    restored(kept, root)
    assert (root / "notes/a.md").read_text() == "- a\n"


def test_a_folder_that_became_a_file_and_a_file_that_became_a_folder_change_back(root: Path) -> None:
    (root / "thing").write_text("a file")
    kept = taken(root)
    (root / "thing").unlink()
    (root / "thing/deep/er").mkdir(parents=True)
    (root / "thing/deep/a.txt").write_text("x")
    restored(kept, root)
    assert (root / "thing").read_text() == "a file"


@pytest.mark.parametrize("damage", ["ledger", "config", "key", "git"])
def test_a_home_that_is_broken_can_be_restored(root: Path, damage: str) -> None:
    kept = taken(root)
    before = held(root)
    if damage == "ledger":
        (root / ".anima/ledger.jsonl").write_bytes(b"garbage\n" * 3)
    elif damage == "config":
        (root / "anima.toml").write_text("this is = not [ toml")
    elif damage == "git":
        (root / ".git/HEAD").write_bytes(b"\0")
    else:
        (root / ".anima/key").unlink()
    restored(kept, root, other=damage == "key")
    assert held(root) == before
    with opened(root) as home:
        assert home.past.audit().ok


def test_a_home_that_was_open_is_told_and_loses_nothing(root: Path) -> None:
    kept = taken(root)
    changed(root)
    bystander = opened(root)
    bystander.remember("written before the restore")
    bystander.search("Samsung", scope=Scope.MAIN)
    restored(kept, root)
    before = held(root)
    for write in (
        lambda: bystander.remember("lost?"),
        lambda: bystander.note("lost?"),
        lambda: bystander.write("a.md", "x\n"),
        lambda: bystander.undo(),
        lambda: bystander.dream(),
        lambda: bystander.snapshots.take(),
        lambda: bystander.forget(text="lost?"),
    ):
        with pytest.raises(HomeError):
            write()
    with pytest.raises(Refused, match="restored from a snapshot while it was open"):
        bystander.remember("lost?")
    bystander.site.store.commit()
    bystander.close()
    assert held(root) == before
    with opened(root) as home:
        assert home.past.audit().ok and home.remember("goes on").status == "written"


def test_a_session_whose_transcript_came_back_goes_on_in_it(root: Path) -> None:
    bystander = opened(root)
    session = bystander.session(scope=Scope.MAIN)
    session.log("user", "one")
    kept = taken(root)
    session.log("user", "two")
    restored(kept, root)
    session.log("user", "three")
    text = (root / f"sessions/{session.id}.jsonl").read_text()
    assert "one" in text and "two" not in text and "three" in text
    bystander.close()


def test_a_session_whose_transcript_went_with_the_restore_writes_into_the_home_that_is_there(root: Path) -> None:
    kept = taken(root)
    bystander = opened(root)
    session = bystander.session(scope=Scope.MAIN)
    session.log("user", "before")
    restored(kept, root)
    session.log("user", "after")
    bystander.close()
    with opened(root) as home:
        assert "after" in (root / f"sessions/{session.id}.jsonl").read_text() and home.past.audit().ok


@pytest.mark.parametrize("name", ["latest", "nope.tar.gz"])
def test_where_no_home_is_an_archive_that_is_not_there_is_what_is_missing(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFound, match=f"{name}: there is no such snapshot"):
        restore(name, tmp_path / "new")

    assert not (tmp_path / "new").exists()


def test_two_restores_at_once_stand_in_line(root: Path) -> None:
    kept = taken(root)
    before = held(root)
    changed(root)
    wrong: list[BaseException] = []

    def work() -> None:
        try:
            restored(kept, root)
        except HomeError as error:
            if not isinstance(error, Refused) or error.rule != "restored":
                wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and held(root) == before


def test_whoever_waits_too_long_for_the_home_is_told(root: Path) -> None:
    kept = taken(root)
    with opened(root) as home, home.site.store.lock():
        store = Folder(root)
        with pytest.raises(HomeBusy), Machine(store).lock.hold(patience=0.01):
            pass
        store.close()
    assert restored(kept, root).done


def journal(root: Path) -> None:
    """A restore as it stands when its process dies right after the journal: nothing is in its place yet."""
    area = root / ".anima/restore"
    (area / "deep/er").mkdir(parents=True)
    (area / "MEMORY.md").write_bytes(b"- restored\n")
    (area / "deep/er/new.md").write_bytes(b"- new\n")
    puts = ["MEMORY.md", "deep/er/new.md"]
    body = json.dumps({"puts": puts, "gone": ["USER.md"], "touches": [], "said": '{"digest":"x"}'}).encode()
    head = json.dumps({"sha256": hashlib.sha256(body).hexdigest()}).encode()
    (root / ".anima/restoring").write_bytes(head + b"\n" + body)


def is_new(root: Path) -> bool:
    return (root / "MEMORY.md").read_bytes() == b"- restored\n" and not (root / "USER.md").exists()


def test_what_could_make_git_run_a_program_does_not_come_from_a_stranger(root: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path / 'sprung'}\n")
    trap.chmod(0o755)
    own = (root / ".git/config").read_bytes()
    (root / ".git/config").write_bytes(own + f"\tfsmonitor = {trap}\n\tpager = {trap}\n".encode())
    for name in ("hooks/post-checkout", "modules/x/config", "objects/info/alternates", "commondir", "config.worktree"):
        (root / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / ".git" / name).write_text(".")
    kept = taken(root, to=f"{tmp_path}/evil.tar.gz")
    told = restored(kept, tmp_path / "target", dry_run=True)
    done = restored(kept, tmp_path / "target")
    target = tmp_path / "target/.git"
    assert "run a program" in told.notes[0] and "run a program" in done.notes[0] and told.new == done.new
    assert (target / "config").read_bytes() == own
    assert not any(
        (target / name).exists()
        for name in ("hooks", "modules", "objects/info/alternates", "commondir", "config.worktree")
    )
    subprocess.run(["git", "status"], cwd=tmp_path / "target", check=True, capture_output=True)
    assert not (tmp_path / "sprung").exists()
    with opened(tmp_path / "target") as home:
        assert home.past.log() and home.past.audit().ok
    restored(kept, root)  # of this very home: its owner put them there
    assert (root / ".git/hooks/post-checkout").exists() and b"fsmonitor" in (root / ".git/config").read_bytes()


@pytest.mark.parametrize("beside", [".git.past", ".git.new"])
def test_nothing_that_stands_beside_a_strangers_repository_takes_its_place(
    root: Path, tmp_path: Path, beside: str
) -> None:
    (root / ".git/hooks").mkdir(exist_ok=True)
    (root / ".git/hooks/pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (root / ".git").rename(root / beside)
    (root / ".git.past").mkdir(exist_ok=True)
    (root / ".git.past/x").write_text("x")
    with FolderWhole.at(root) as whole, whole.lock(), snapshot.packed(whole) as made:
        kept = snapshot.put(Shelf(str(tmp_path / "kept")), made, at=Clock()())
    done = restored(kept.path, tmp_path / "new")
    assert any("could make git run a program" in note for note in done.notes)
    with opened(tmp_path / "new") as home:
        home.write("notes/new.md", "- new\n")
    assert not (tmp_path / "new/.git/hooks/pre-commit").exists() and (tmp_path / "new/.git/HEAD").exists()


def test_a_strangers_home_never_has_the_trust_of_what_stood_there_even_for_a_moment(root: Path, tmp_path: Path) -> None:
    """A full disk leaves the restore to whoever opens the home next, who must not trust it."""
    kept = crafted(tmp_path / "evil.tar.gz", [("MEMORY.md", b"- x\n"), ("anima.toml", b'[gate]\npreset = "open"\n')])
    (root / ".anima/index.lock").unlink(missing_ok=True)
    (root / ".anima/index.lock").mkdir()
    with pytest.raises(HomeError, match="when the home is next opened"):
        restored(kept, root, other=True)
    (root / ".anima/index.lock").rmdir()
    with opened(root) as home:
        assert home.read("MEMORY.md").text == "- x\n" and not home.config.trusted


def test_where_trust_cannot_be_taken_back_a_strangers_home_is_not_restored(root: Path, tmp_path: Path) -> None:
    kept = crafted(tmp_path / "evil.tar.gz", [("MEMORY.md", b"- x\n"), ("anima.toml", b'[gate]\npreset = "open"\n')])
    listed = Path(os.environ["ANIMA_CONFIG"]) / ".homes.tmp"
    listed.mkdir()
    with pytest.raises(Damaged, match="list of homes"):
        restored(kept, root, other=True)
    listed.rmdir()
    with opened(root) as home:
        assert "Samsung" in home.read("MEMORY.md").text and home.config.trusted


def test_an_interrupt_after_the_journal_does_not_pretend_that_nothing_was_done(root: Path) -> None:
    kept = taken(root)
    changed(root)
    lock = os.open(root / ".anima/index.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)  # a swap waits for whoever writes an index, so the interrupt finds it there

    def interrupt(_: int, frame: Any) -> None:
        if "_drop_derived" not in {each.name for each in traceback.extract_stack(frame)}:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            return
        fcntl.flock(lock, fcntl.LOCK_UN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert restored(kept, root).done
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        os.close(lock)
    assert not (root / ".anima/restoring").exists() and (root / "TOOLS.md").exists()


def test_whoever_opens_a_home_finishes_a_restore_before_reading(root: Path) -> None:
    journal(root)
    with opened(root) as home:
        assert home.read("MEMORY.md").text == "- restored\n" and home.read("deep/er/new.md").text == "- new\n"
        assert not home.exists("USER.md")
    assert not (root / ".anima/restoring").exists() and not (root / ".anima/restore").exists()


def test_a_home_that_was_open_finishes_it_before_it_writes_and_is_told(root: Path) -> None:
    bystander = opened(root)
    bystander.remember("x")
    journal(root)
    with pytest.raises(Refused, match="restored"):
        bystander.remember("y")
    assert is_new(root)
    bystander.close()


def test_a_journal_that_is_none_stops_everybody_with_a_sentence(root: Path) -> None:
    for raw in (b"", b"{}", b"garbage", b'{"sha256":"0"}\n{}'):
        (root / ".anima/restoring").write_bytes(raw)
        with pytest.raises(Damaged, match="journal cannot be read"):
            opened(root)
    (root / ".anima/restoring").unlink()
    opened(root).close()


def test_a_journal_from_a_stranger_reaches_nothing_outside(root: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    for held in (
        {"puts": ["../precious"], "gone": []},
        {"puts": [], "gone": ["../precious"]},
        {"puts": ["/etc/passwd"], "gone": []},
        {"puts": [["0", "a.md"]], "gone": []},
    ):
        body = json.dumps({**held, "touches": [], "said": ""}).encode()
        (root / ".anima/restoring").write_bytes(
            json.dumps({"sha256": hashlib.sha256(body).hexdigest()}).encode() + b"\n" + body
        )
        with pytest.raises(Damaged):
            opened(root)
    assert (tmp_path / "precious").read_text() == "mine"


# -- meanwhile ---------------------------------------------------------------------------------------------------------------


def test_snapshots_of_a_busy_home_are_whole_and_of_one_moment(root: Path, tmp_path: Path) -> None:
    stop, wrong = threading.Event(), list[BaseException]()

    def write(number: int) -> None:
        try:
            with opened(root) as home, home.session(scope=Scope.MAIN) as session:
                turn = 0
                while not stop.is_set():
                    turn += 1
                    home.write(f"notes/{number}.md", f"- turn {turn}\n" * 50)
                    session.log("user", f"turn {turn}")
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    kept = [taken(root, to=tmp_path / f"{n}.tar.gz") for n in range(4)]
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    for number, each in enumerate(kept):
        restored(each, place := tmp_path / f"home{number}")
        with opened(place) as home:
            assert (
                home.past.audit().ok and home.site.store.provenance.intents() == {} and not home.past.history_problems()
            )
            for entry in home.list("notes") if (place / "notes").is_dir() else ():
                assert len(set(home.read(entry.path).text.splitlines())) == 1
                assert home.site.store.provenance.is_ours(home.read(entry.path).path, home.read(entry.path).text)


def test_a_full_disk_leaves_no_half_snapshot(root: Path) -> None:
    program = f"""
import resource, signal
from anima import Home, Damaged
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
home = Home.open({str(root)!r})
home.site.store.ledger
resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))
try:
    home.snapshots.take()
except Damaged as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "cannot be written" in done.stdout, done.stderr
    assert list((root / ".anima").rglob("*.gz")) == list((root / ".anima").rglob("*.part")) == []
    assert taken(root).is_file()


@pytest.fixture
def stick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that behaves as a stick from the shop: no second names for a file, no modes."""
    stick, link, chmod = tmp_path / "stick", os.link, os.chmod
    stick.mkdir()

    def on_it(place: Any) -> bool:
        return (os.readlink(f"/proc/self/fd/{place}") if isinstance(place, int) else str(place)).startswith(str(stick))

    def refusing(real: Any) -> Any:
        def call(place: Any, *args: Any, **more: Any) -> None:
            if on_it(place):
                raise PermissionError(1, "Operation not permitted")
            real(place, *args, **more)

        return call

    monkeypatch.setattr(os, "link", refusing(link))
    monkeypatch.setattr(os, "chmod", refusing(chmod))
    monkeypatch.setattr(os, "fchmod", refusing(os.fchmod))
    return stick


def test_a_home_can_be_carried_on_a_stick(root: Path, stick: Path, tmp_path: Path) -> None:
    with opened(root) as home:
        for to in (f"{stick}/", f"{stick}/aria.tar.gz"):
            home.snapshots.verify(home.snapshots.take(to=to).path)
        with pytest.raises(Refused, match="not overwritten"):
            home.snapshots.take(to=f"{stick}/aria.tar.gz")
        home.export(stick / "aria")
        home.export(stick / "aria.jsonl", format="jsonl")
        with pytest.raises(Refused, match="overwrites nothing"):
            home.export(stick / "aria.jsonl", format="jsonl")
    assert not list(stick.glob(".*")) and (stick / "aria/MEMORY.md").is_file()
    restored(stick / "aria.tar.gz", tmp_path / "target")
    with Home.create(tmp_path / "another", clock=Clock()) as other:
        assert other.import_from(stick / "aria.jsonl", replace=True, mine=True).replaced


def test_a_name_does_not_say_sealed_of_what_is_not(root: Path, tmp_path: Path, keys: tuple[str, str, Path]) -> None:
    with opened(root) as home:
        for name, recipients in (("aria.tar.gz.age", ()), ("aria.tar.gz", keys[:1])):
            with pytest.raises(BadArguments, match=r"seal"):
                home.snapshots.take(to=str(tmp_path / name), recipients=recipients)
    assert not list(tmp_path.glob("aria*"))


def test_a_user_there_is_not_is_told(root: Path) -> None:
    nobody = "~no-such-user-here/aria.tar.gz"
    with opened(root) as home:
        for verb in (home.export, home.import_from, lambda to: home.snapshots.take(to=to)):
            with pytest.raises(BadArguments, match="no user of that name"):
                verb(nobody)
    with pytest.raises(BadArguments, match="no user of that name"):
        restored("latest", Path(nobody))


def test_what_a_killed_snapshot_left_is_swept_up(root: Path) -> None:
    shelf = root / ".anima/snapshots"
    shelf.mkdir()
    (shelf / ".anima-0123456789abcdef.part").write_bytes(b"half")
    (shelf / "notes.txt").write_text("mine")
    taken(root)
    assert sorted(path.suffix for path in shelf.iterdir()) == [".gz", ".txt"]


def test_a_damaged_twin_does_not_stand_for_a_new_one(root: Path) -> None:
    kept = taken(root)
    kept.write_bytes(kept.read_bytes()[:-100])
    with opened(root, clock=Clock("2026-06-01T00:00:00+00:00")) as home:
        assert home.snapshots.take().fresh and len(home.snapshots.all()) == 2


@pytest.mark.parametrize("to", ["notes", "x.tar.gz", ".", ".anima"])
def test_a_snapshot_is_not_put_inside_the_home(root: Path, to: str) -> None:
    with opened(root) as home, pytest.raises(Refused, match="inside the home"):
        home.snapshots.take(to=root / to)


def test_a_file_that_is_there_is_not_written_over(root: Path, tmp_path: Path) -> None:
    (tmp_path / "x.tar.gz").write_text("precious")
    with opened(root) as home:
        with pytest.raises(Refused, match="not overwritten"):
            home.snapshots.take(to=tmp_path / "x.tar.gz")
        with pytest.raises(BadArguments, match=r"ends in \.tar\.gz"):
            home.snapshots.take(to=tmp_path / "x.zip")
        with pytest.raises(BadArguments, match="label"):
            home.snapshots.take(label="../x")
    assert (tmp_path / "x.tar.gz").read_text() == "precious"


# -- what was forgotten since ------------------------------------------------------------------------------------------------


def everywhere(root: Path) -> bytes:
    """Every byte of a home and every object of its history; archives apart."""
    found = [path.read_bytes() for path in root.rglob("*") if path.is_file() and ".anima/snapshots" not in str(path)]
    odb = pygit2.Odb(str(root / ".git/objects"))
    return b"\n".join([*found, *(odb.read(name)[1] for name in odb)])


def test_an_old_snapshot_does_not_bring_back_what_was_forgotten_since(root: Path, tmp_path: Path) -> None:
    with opened(root) as home:
        home.remember("The safe opens with nine two seven")
        with home.session(scope=Scope.MAIN) as session:
            session.log("user", "you know that the safe opens with nine two seven")
    (root / "list.txt").write_text("first\nthe safe opens with nine two seven\nlast\n")
    kept = taken(root, to=tmp_path / "kept.tar.gz")
    with opened(root) as home:
        home.forget(text="the safe opens with nine two seven")
        home.write("notes/new.md", "- new\n")
    assert restored(kept, root, dry_run=True).forgotten == 1
    done = restored(kept, root)
    assert done.forgotten == 1 and any("stays forgotten" in note or "forgotten since" in note for note in done.notes)
    assert b"nine two seven" not in everywhere(root).lower()
    assert (root / "list.txt").read_text() == "first\nlast\n" and not (root / "notes/new.md").exists()
    with opened(root) as home:
        assert home.past.audit().ok and "Samsung" in home.read("MEMORY.md").text
        assert home._writer.forgotten.holds("The safe opens with nine two seven")
        assert not home.past.history_problems()


@pytest.mark.parametrize("purge", [False, True])
def test_what_was_forgotten_twice_does_not_come_back_with_a_snapshot_from_in_between(
    root: Path, tmp_path: Path, purge: bool
) -> None:
    clock, said = Clock(), "the heron nests in the boathouse"
    with opened(root, clock=clock) as home:
        home.remember(said)
        home.forget(text=said, purge=not purge)
        with home.session(scope=Scope.MAIN) as session:
            session.log("user", f"did I say that {said}")
    kept = tmp_path / "kept.tar.gz"
    shutil.copy(taken(root), kept)  # one that no purge knows of
    with opened(root, clock=clock) as home:
        clock.forward(minutes=1)
        home.forget(text=said, purge=purge)
    for _ in range(2):
        assert restored(kept, root).forgotten == 1
        assert b"heron" not in everywhere(root)


def test_a_snapshot_that_knows_already_comes_back_as_it_is(root: Path) -> None:
    with opened(root) as home:
        home.forget(text="Ana uses a Samsung")
    kept = taken(root)
    before = held(root)
    changed(root)
    assert restored(kept, root).forgotten == 0 and held(root) == before


# -- sealing -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def keys(tmp_path: Path) -> tuple[str, str, Path]:
    pyrage = pytest.importorskip("pyrage")
    key = pyrage.x25519.Identity.generate()
    (tmp_path / "key.txt").write_text(f"# made by a test\n{key}\n")
    return str(key.to_public()), str(pyrage.x25519.Identity.generate().to_public()), tmp_path / "key.txt"


def test_a_snapshot_sealed_for_a_key_is_opened_by_it_alone(
    root: Path, keys: tuple[str, str, Path], tmp_path: Path
) -> None:
    public, other, identity = keys
    with opened(root) as home:
        made = home.snapshots.take(recipients=[public, other])
        strange = home.snapshots.take(recipients=[other], to=tmp_path / "strange.tar.gz.age")
        assert made.sealed and made.path.endswith(".tar.gz.age") and home.snapshots.all()[0].sealed
        assert b"Samsung" not in Path(made.path).read_bytes()
        assert home.snapshots.verify(made.path, identities=[str(identity)]).digest.startswith(made.digest)
        with pytest.raises(Refused, match="sealed"):
            home.snapshots.verify(made.path)
        with pytest.raises(Refused, match="does not open"):
            home.snapshots.verify(strange.path, identities=[str(identity)])
    before = held(root)
    changed(root)
    restored(made.path, root, identities=[str(identity)])
    assert held(root) == before


def test_one_sealed_for_somebody_else_does_not_do(root: Path, keys: tuple[str, str, Path]) -> None:
    public, other, identity = keys
    clock = Clock()
    with opened(root, clock=clock) as home:
        home.snapshots.take(recipients=[other])
        clock.forward(minutes=1)
        made = home.snapshots.take(recipients=[public])
        assert made.fresh and home.snapshots.verify(made.path, identities=[str(identity)])
    with opened(root, clock=clock, settings={"snapshot.recipients": [public]}) as home:
        assert home.snapshots.take().path == made.path  # the configuration's own keys stay the same


def test_a_sealed_snapshot_that_was_changed_is_told(root: Path, keys: tuple[str, str, Path], tmp_path: Path) -> None:
    public, _, identity = keys
    kept = taken(root, recipients=[public], to=tmp_path / "x.tar.gz.age")
    data = kept.read_bytes()
    with opened(root) as home:
        for at in (10, 100, len(data) // 2, len(data) - 1):
            kept.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            with pytest.raises((Damaged, Refused)):
                home.snapshots.verify(kept, identities=[str(identity)])
        kept.write_bytes(data[:-50])
        with pytest.raises((Damaged, Refused)):
            home.snapshots.verify(kept, identities=[str(identity)])


def test_ssh_keys_seal_too(root: Path, keys: Any, tmp_path: Path) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "id"], check=True)
    kept = taken(root, recipients=[(tmp_path / "id.pub").read_text()], to=tmp_path / "x.tar.gz.age")
    with opened(root) as home:
        home.snapshots.verify(kept, identities=[str(tmp_path / "id")])


def test_what_nobody_can_be_sealed_for_is_said_first(root: Path, keys: tuple[str, str, Path], tmp_path: Path) -> None:
    with opened(root) as home:
        with pytest.raises(BadArguments):
            home.snapshots.take(recipients=["age1nobody"])
        (tmp_path / "none.txt").write_text("no key")
        sealed = home.snapshots.take(recipients=[keys[0]])
        with pytest.raises(BadArguments, match="no key"):
            home.snapshots.verify(sealed.path, identities=[str(tmp_path / "none.txt")])
        with pytest.raises(NotFound):
            home.snapshots.verify(sealed.path, identities=[str(tmp_path / "nowhere.txt")])


def test_without_the_extra_a_sentence_says_what_to_install(root: Path) -> None:
    program = f"""
import sys
sys.modules["pyrage"] = None
from anima import Home, MissingExtra
home = Home.open({str(root)!r})
print(home.snapshots.take().files)
try:
    home.snapshots.take(recipients=["age1x"])
except MissingExtra as error:
    print(error.hint)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "anima-home[age]" in done.stdout, done.stderr
    assert issubclass(MissingExtra, HomeError)


# -- schedule and pruning ----------------------------------------------------------------------------------------------------


def series(root: Path, days: int, **config: Any) -> Home:
    """A home with a snapshot a day, the last of them today."""
    clock = Clock()
    home = opened(root, clock=clock, settings=config)
    clock.now -= timedelta(days=days)
    for day in range(days):
        clock.forward(days=1)
        (root / "day.txt").write_text(str(day))
        home.snapshots.take()
    return home


def test_pruning_keeps_the_newest_and_drops_the_old(root: Path) -> None:
    with series(root, 12, **{"snapshot.keep": 5, "snapshot.days": 4}) as home:
        would = home.snapshots.prune(dry_run=True)
        assert len(home.snapshots.all()) == 12
        assert home.snapshots.prune() == would and len(would) == 7
        assert [home.clock() - each.time for each in home.snapshots.all()] == [timedelta(days=n) for n in range(5)]
        assert home.snapshots.prune() == ()


def test_pruning_never_takes_the_last_nor_the_newest_that_can_be_read_back(root: Path) -> None:
    with series(root, 4, **{"snapshot.keep": 1, "snapshot.days": 1}) as home:
        newest, second, *_ = home.snapshots.all()
        Path(newest.path).write_bytes(b"broken")
        home.snapshots.prune()
        assert [each.path for each in home.snapshots.all()] == [newest.path, second.path]
        home.clock.forward(days=1000)  # type: ignore[attr-defined]
        home.snapshots.prune()
        assert [each.path for each in home.snapshots.all()] == [newest.path, second.path]


@pytest.mark.parametrize("link", [".anima", ".anima/snapshots"])
def test_a_link_does_not_lead_pruning_to_the_snapshots_of_another_home(link: str, root: Path, tmp_path: Path) -> None:
    with opened(root, clock=(clock := Clock())) as home:
        for number in range(3):
            clock.forward(days=1)
            home.note(f"day {number}")
            home.snapshots.take()
    theirs = tmp_path / "downloaded"
    (theirs / link).parent.mkdir(parents=True)
    (theirs / "MEMORY.md").write_text("- x\n")
    (theirs / link).symlink_to(root / link)
    with opened(theirs, settings={"snapshot.keep": 1}) as home:
        assert home.snapshots.all() == home.snapshots.prune() == ()
    assert len(list((root / ".anima/snapshots").glob("*.tar.gz"))) == 3


def test_a_sealed_one_does_not_stand_for_one_that_can_be_read() -> None:
    at = Clock().now
    new, mid, old = (
        Snapshot(path=f"/x/{n}", time=at - timedelta(days=n), label="", digest="0" * 12, size=1, sealed=n == 0)
        for n in range(3)
    )
    from anima.backup.snapshot import outlived

    ask = {"keep": 1, "before": at - timedelta(days=100)}
    assert outlived([new, mid, old], **ask, is_sound=lambda kept: True) == [old]
    assert outlived([new, mid, old], **ask, is_sound=lambda kept: kept is old) == [mid]
    assert outlived([new], **ask, is_sound=lambda kept: False) == []
    assert outlived([], **ask, is_sound=lambda kept: False) == []


def test_a_snapshot_is_taken_when_its_hour_has_come(root: Path) -> None:
    clock = Clock("2026-05-08T03:59:00+00:00")
    with opened(root, clock=clock, settings={"snapshot.at": "0 4 * * *", "timezone": "UTC"}) as home:
        assert home.snapshots.if_due() is not None  # there was none yet
        assert home.snapshots.if_due() is None
        clock.forward(hours=1)
        again = home.snapshots.if_due()
        assert again is not None and not again.fresh  # nothing had changed
        assert home.snapshots.if_due() is None
        clock.forward(days=1)
        home.note("something new")
        assert (made := home.snapshots.if_due()) is not None and made.fresh
        assert len(home.snapshots.all()) == 2
    with opened(root, settings={"snapshot.at": ""}) as home:
        assert home.snapshots.if_due() is None


def test_a_server_takes_them_on_its_rounds(root: Path) -> None:
    (chore,) = (each for each in import_module("anima.web.serve").CHORES if each.name == "snapshot")
    with opened(root) as home:
        for _ in range(2):
            chore.work(home, import_module("anima.web.served").Bulletin(home), threading.Event())
        assert len(home.snapshots.all()) == 1


def test_what_a_crash_left_half_done_is_ended_before_a_snapshot(root: Path, tmp_path: Path) -> None:
    from anima.ledger import Edit, Intent
    from anima.model import Actor, Kind, Origin

    home = opened(root, settings={"history.enabled": False})
    key, _ = home.site.store.key, home.site.store.ledger  # the ledger first, since it sweeps what is staged
    old, staged = home.read("USER.md").text, home.site.store.machine.stage(b"- new\n")
    edit = Edit(
        path="USER.md", kind=Kind.WRITE, base=key.of(old), digest=key.of("- new\n"), before=1, after=1, temp=staged
    )
    with home.site.store.lock():
        home.site.store.ledger.intend(
            Intent(id="x1", what="write", edits=(edit,), actor=Actor.OWNER, origin=Origin.OWNER)
        )
    kept = home.snapshots.take()
    home.close()
    restored(kept.path, tmp_path / "there")
    with opened(tmp_path / "there") as there:
        assert there.read("USER.md").text == "- new\n" and there.site.store.provenance.intents() == {}


def test_each_home_has_a_folder_of_its_own_where_the_owner_keeps_them(root: Path, tmp_path: Path) -> None:
    with Home.create(tmp_path / "other", name="Bo", clock=Clock()) as other:
        other.note("x")
    chosen = {"snapshot.dir": str(tmp_path / "kept"), "snapshot.keep": 1}
    for place in (root, tmp_path / "other"):
        with opened(place, settings=chosen) as home:
            made = Path(home.snapshots.take().path)
            assert made.parent.parent == tmp_path / "kept" and len(home.snapshots.all()) == 1
            home.snapshots.prune()
    assert len(list((tmp_path / "kept").rglob("*.tar.gz"))) == 2
    with opened(root, settings={"snapshot.dir": "notes/kept"}) as home, pytest.raises(Refused, match="inside the home"):
        home.snapshots.take()


def test_a_folder_that_is_not_trusted_says_nothing_about_snapshots(example: Any, tmp_path: Path) -> None:
    root = example("openclaw")
    (root / "anima.toml").write_text(
        f'[snapshot]\nat = "* * * * *"\nkeep = 1\ndays = 1\ndir = "{tmp_path}"\nrecipients = ["age1x"]\n'
    )
    with opened(root) as home:
        assert home.config.snapshot == type(home.config.snapshot)()
        assert len(home.config.ignored) == 5
    with pytest.raises(BadConfig):
        Home.open(root, settings={"snapshot.keep": 0})


def test_a_misspelt_setting_of_snapshots_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANIMA_SNAPSHOT_KEPT", "3")
    with pytest.raises(BadConfig, match="did you mean"):
        opened(root)


# -- the command -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def command(root: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    def call(*arguments: str, home: Path = root) -> tuple[int, str, str]:
        code = run(as_owner("snapshot", *arguments, "--home", str(home)))
        said = capsys.readouterr()
        return code, said.out, said.err

    yield call


def test_the_command_takes_lists_verifies_restores_and_prunes(root: Path, command: Any) -> None:
    code, out, _ = command()
    assert code == 0 and "read back and found whole" in out
    assert command()[1].startswith("Nothing changed since ")
    assert command("list")[1].count("\n") == 1
    assert command("verify", "latest")[1].startswith("Whole: ")
    kept = next((root / ".anima/snapshots").glob("*.tar.gz"))
    changed(root)
    code, out, _ = command("restore", kept.name[:20], "--dry-run")
    assert code == 0 and "  + TOOLS.md" in out and "  - notes/new/deep.md" in out and "of ledger and history" in out
    code, _, err = command("restore", "latest")
    assert code == 5 and "--yes" in err
    assert (root / "notes/new/deep.md").exists()
    code, out, _ = command("restore", str(kept), "--yes")
    assert code == 0 and "Restored " in out and "before-restore" in out
    assert not (root / "notes/new/deep.md").exists()
    assert "Nothing to remove; 2 are kept." in command("prune")[1]


def test_the_command_answers_as_one_json_value(root: Path, command: Any, tmp_path: Path) -> None:
    made = json.loads(command("--json", "--label", "first")[1])
    assert made["fresh"] and made["label"] == "first" and made["name"].endswith(".tar.gz")
    assert [each["digest"] for each in json.loads(command("list", "--json")[1])] == [made["digest"]]
    assert json.loads(command("verify", "latest", "--json")[1])["ok"] is True
    assert json.loads(command("restore", made["path"], "--json", "--yes", home=tmp_path / "new")[1])["done"] is True
    assert json.loads(command("prune", "--json", "--dry-run")[1]) == {"gone": [], "kept": 1, "done": False}
    code, out, _ = command("verify", "nowhere", "--json")
    assert code == 3 and json.loads(out)["error"]["kind"] == "NotFound"


@pytest.mark.parametrize(
    "arguments", [("take", "x"), ("restore",), ("verify",), ("melt",), ("list", "x"), ("--label", "A B")]
)
def test_what_makes_no_sense_to_the_command_is_said(command: Any, arguments: tuple[str, ...]) -> None:
    assert command(*arguments)[0] == 2

"""What a repair leaves: bytes set aside, trust that nobody gained, a home that goes on, whatever happened to it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anima import Health, Home, Remark
from anima.ledger import FORMAT, ORIGINAL, Key, parse, sealed
from anima.model import Actor, DocPath
from anima.upkeep.doctor import damages
from damaging import (
    HOW,
    ROW,
    copied,
    cut,
    damage_object,
    damage_page,
    documents,
    env_of,
    every_byte,
    ledger,
    lines,
    looked,
    make_sound,
    mended,
    names,
    object_of,
    objects,
    proposal,
    reopen,
    transcript,
    untrusted_line,
    works,
    zero_page,
)


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


# -- what is set aside ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("ledger-altered", ".anima/ledger.jsonl"),
        ("ledger-headless", ".anima/ledger.jsonl"),
        ("key-broken", ".anima/key"),
        ("key-replaced", ".anima/ledger.jsonl"),
        ("proposal-broken", ".anima/pending/p9.json"),
        ("forgotten-broken", ".anima/forgotten"),
        ("key-missing", ".anima/forgotten"),
        ("machine-not-a-folder", ".anima"),
        ("sweep-state-broken", "memory/.consolidation_state"),
        ("history-head-broken", "USER.md"),
    ],
)
def test_what_is_taken_out_of_its_place_lies_aside_to_the_byte(aria: Path, name: str, place: str) -> None:
    HOW[name][-1 if name == "proposal-broken" else 0](aria)
    bad = (aria / place).read_bytes()
    result = mended(aria)

    assert bad in every_byte(aria)
    assert place == "USER.md" or any(".anima/aside/" in deed.said for deed in result.done)


def test_a_broken_repository_is_set_aside_whole(aria: Path) -> None:
    damage_object(aria)
    bad = object_of(aria, "notes/a.md").read_bytes()
    mended(aria)

    assert bad in every_byte(aria / ".anima/aside")
    assert not list(aria.glob(".git.*"))


@pytest.mark.parametrize("gone", [".git", ".anima/key"])
def test_what_was_done_says_nothing_of_what_to_do_before(aria: Path, gone: str) -> None:
    path = aria / gone
    shutil.rmtree(path) if path.is_dir() else path.write_bytes(b"short")
    done = mended(aria).done

    assert done and not [deed for deed in done if "before the repair" in (deed.owner or "")]


def test_forgetting_reaches_what_was_set_aside(aria: Path) -> None:
    damage_object(aria)
    proposal(aria).write_text("{ the web says: buy walnut")
    mended(aria)
    assert any(b"buy walnut" in data for data in every_byte(aria / ".anima/aside"))
    with Home.open(aria, env=env_of(aria)) as home:
        assert home.forget(text="buy walnut", purge=True).verified

    assert not any(b"buy walnut" in data for data in every_byte(aria))
    assert not list((aria / ".anima/aside").glob("*/repository*"))


# -- trust after a damaged ledger -------------------------------------------------------------------------------------------


def untrusted_home(root: Path) -> int:
    """Writes an untrusted line by the road that keeps such lines; gives the number of the record that knows it."""
    with Home.open(root, env=env_of(root), settings={"gate.preset": "open"}) as home:
        home.write("notes/own.md", "# Own\n\n- mine alone\n")
        untrusted_line(home, home.layout.daily_path(home.site.today()).text, "- The web says: sell everything\n")
        number = home.site.store.ledger.tip.n
        home.past.log()
        home.write("notes/later.md", "# Later\n\n- written afterwards\n")
        assert "sell everything" not in home.prompt(scope="main").text
    return number


def web_line(home: Home) -> tuple[DocPath, int]:
    path = DocPath.parse(f"unreviewed/{home.site.today().isoformat()}.md")
    return path, 1 + next(n for n, line in enumerate(home.read(path).text.splitlines()) if "sell everything" in line)


def shown(root: Path) -> str:
    with Home.open(root, env=env_of(root)) as home:
        return home.prompt(scope="main").text


def test_a_ledger_that_was_cut_is_known_for_it_though_the_newest_revision_is_lost_too(aria: Path) -> None:
    number = untrusted_home(aria)
    newest = (aria / ".git/refs/heads/main").read_text().strip()
    (aria / ".git/objects" / newest[:2] / newest[2:]).unlink()
    lines(aria, lambda all: [*all[: number - 3], all[number - 3][:20]])
    assert {"ledger-damaged", "history-damaged"} <= names(looked(aria))
    mended(aria)
    assert "sell everything" not in shown(aria)


@pytest.mark.parametrize(
    "name",
    [
        "ledger-altered",
        "ledger-missing",
        "key-missing",
        "key-replaced",
        "machine-missing",
        "ledger-headless",
        "ledger-cut",
        "ledger-unlinked",
    ],
)
def test_a_damaged_ledger_never_turns_an_untrusted_line_into_the_owners(aria: Path, name: str) -> None:
    number = untrusted_home(aria)
    if name == "ledger-altered":
        lines(
            aria,
            lambda all: [line.replace(b'"web"', b'"own"') if n == number - 2 else line for n, line in enumerate(all)],
        )
    elif name == "ledger-cut":
        lines(aria, lambda all: all[: number - 2])
    elif name == "ledger-unlinked":
        lines(aria, lambda all: [*all[: number - 2], *all[number:]])
    else:
        HOW[name][0](aria)
    assert ROW[name] in names(looked(aria))
    if name in (
        "ledger-missing",
        "key-missing",
        "key-replaced",
        "ledger-headless",
        "machine-missing",
    ):  # careful before, too
        assert "sell everything" not in shown(aria)
    result = mended(aria)

    assert result.ok, result.left
    assert "sell everything" not in shown(aria)
    with Home.open(aria, env=env_of(aria)) as home:
        assert home.past.audit().ok and home.past.audit().renewed is not None
        home.inbox.keep(*(one.entry.id for one in home.inbox.noted() if "sell everything" in one.entry.text))
        assert "sell everything" in home.prompt(scope="main").text


def test_a_flipped_record_costs_only_who_wrote_the_lines_it_knew(aria: Path) -> None:
    number = untrusted_home(aria)
    lines(
        aria, lambda all: [line.replace(b'"web"', b'"own"') if n == number - 2 else line for n, line in enumerate(all)]
    )
    mended(aria)

    with Home.open(aria, env=env_of(aria)) as home:
        assert home.past.why(*web_line(home)).source.actor is Actor.OUTSIDE
        assert "mine alone" in home.read("notes/own.md").text
        own = next(n for n, line in enumerate(home.read("notes/own.md").text.splitlines(), 1) if "mine alone" in line)
        assert home.past.why("notes/own.md", own).source.trusted
        assert "Aria" in home.prompt(scope="main").text


def test_what_is_restored_after_a_repair_is_in_the_prompt(aria: Path) -> None:
    with Home.open(aria, env=env_of(aria)) as home:
        home.remember("the heron is grey", section="Birds")
        held, revision = home.read("MEMORY.md").text, home.past.log(limit=1)[0].id
        number = home.site.store.ledger.tip.n
        home.write("MEMORY.md", held.replace("the heron is grey", "the heron is white"))
    lines(
        aria, lambda all: [line.replace(b"owner", b"0wner") if n == number - 2 else line for n, line in enumerate(all)]
    )
    assert mended(aria).ok
    with Home.open(aria, env=env_of(aria)) as home:
        home.past.restore("MEMORY.md", at=revision)
        assert "the heron is grey" in home.prompt(scope="main").text


def test_a_flipped_record_changes_no_prompt(aria: Path) -> None:
    before = shown(aria)
    HOW["ledger-altered"][0](aria)
    mended(aria)

    assert re.sub(r"\d\d:\d\d", "", shown(aria)) == re.sub(r"\d\d:\d\d", "", before)


def test_without_history_a_flipped_record_takes_nothing_from_a_prompt(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    with Home.create(root, env=env_of(root)) as home:
        pass
    (root / "anima.toml").write_text('dialect = "anima"\n[history]\nenabled = false\n')
    shutil.rmtree(root / ".git")
    with Home.open(root, env=env_of(root)) as home:
        home.remember("before the damage", section="A")
        home.remember("lost with its record", section="B")
        number = home.site.store.ledger.tip.n
        home.remember("after the damage", section="C")
    lines(
        root, lambda all: [line.replace(b"owner", b"0wner") if n == number - 2 else line for n, line in enumerate(all)]
    )
    result = mended(root)

    assert result.ok and [deed.name for deed in result.done] == ["ledger-damaged"]
    assert "before the damage" in shown(root)
    assert ("after the damage" in shown(root), "lost with its record" in shown(root)) == (True, True)


def test_nothing_is_written_to_a_home_whose_ledger_is_gone(aria: Path) -> None:
    ledger(aria).unlink()
    with Home.open(aria, env=env_of(aria)) as home:
        assert not home.past.audit().ok
        with pytest.raises(Exception, match="ledger of this home is gone"):
            home.note("as if nothing had happened")
        with pytest.raises(Exception, match="ledger of this home is gone"):
            home.search("walnut", scope="main")
    assert not ledger(aria).exists()


def test_no_damage_to_the_ledger_moves_what_nobody_reviewed(aria: Path) -> None:
    HOW["ledger-missing"][0](aria)
    mended(aria)
    with Home.open(aria, env=env_of(aria)) as home:
        assert "buy walnut" not in home.prompt(scope="main").text
        assert any("buy walnut" in waiting.entry.text for waiting in home.inbox.noted())
        with home.session(scope="main") as session:
            session.call("memory_get", {"path": home.inbox.noted()[0].entry.place.text})
            answer = session.call("memory_write", {"target": "memory", "content": "the plank is dry"})

    assert answer["status"] == "noted"


def test_a_new_chain_says_since_when_and_its_end_cannot_be_cut_off_unnoticed(aria: Path) -> None:
    HOW["ledger-altered"][0](aria)
    mended(aria)
    with Home.open(aria, env=env_of(aria)) as home:
        found = home.past.audit()
        assert found.ok and found.renewed is not None and found.renewed.fields["why"] == "ledger-damaged"
        home.note("goes on")
    lines(aria, lambda all: all[:-2])

    assert "ledger-damaged" in names(looked(aria))


@pytest.mark.parametrize("torn", [False, True])
def test_a_branch_that_is_gone_takes_no_revision_with_it_whoever_writes_before_the_repair(
    aria: Path, torn: bool
) -> None:
    with Home.open(aria, env=env_of(aria)) as home:
        before = [revision.id for revision in home.past.log(limit=1_000)]
    HOW["history-broken"][0](aria)
    if torn:
        cut(ledger(aria), ledger(aria).stat().st_size - 9)
    with Home.open(aria, env=env_of(aria)) as home:
        home.note("written meanwhile")
    assert mended(aria).ok

    with Home.open(aria, env=env_of(aria)) as home:
        after = home.past.log(limit=1_000)
        assert [revision.id for revision in after][-len(before) :] == before and len(after) > len(before)
        assert "written meanwhile" in home.past.text_at(home.layout.daily_path(home.site.today()), after[0].id)


# -- locks, disks, processes ------------------------------------------------------------------------------------------------


def test_a_held_lock_is_said_and_not_broken(aria: Path) -> None:
    with Home.open(aria, env=env_of(aria)) as home, home.site.store.lock():
        found = {remark.name: remark for remark in looked(aria)}
        assert f"process {os.getpid()}" in found["lock"].message
        assert found["lock"].level == "fine"
    assert "the lock is free" in next(remark.message for remark in looked(aria) if remark.name == "lock")


def test_of_two_repairs_at_once_one_waits(aria: Path) -> None:
    HOW["ledger-altered"][0](aria)
    damage_object(aria)
    zero_page(aria)
    results: list[Health] = []
    threads = [threading.Thread(target=lambda: results.append(mended(aria))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [result.ok for result in results] == [True, True]
    assert sum(deed.name == "ledger-damaged" for result in results for deed in result.done) == 1
    works(aria)


def test_a_repair_that_waits_begins_when_the_other_is_done(aria: Path) -> None:
    damage_page(aria)
    held = os.open(aria / ".anima/mending", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    results: list[Health] = []
    waiting = threading.Thread(target=lambda: results.append(mended(aria)))
    waiting.start()
    os.close(held)
    waiting.join()

    assert results[0].ok


@pytest.mark.parametrize("at", range(0, 60, 9))
def test_a_repair_killed_half_way_can_be_done_again(aria: Path, at: int) -> None:
    """Killed at the n-th rename, link, unlink or write of a ledger, whichever comes."""
    HOW["ledger-altered"][0](aria)
    damage_object(aria)
    zero_page(aria)
    cut(transcript(aria), transcript(aria).stat().st_size - 7)
    proposal(aria).write_text("{")
    before = documents(aria)
    code = (
        "import os, signal, sys\nfrom datetime import datetime, UTC\nleft = [int(sys.argv[2])]\n"
        "def deadly(real):\n def call(*a, **k):\n  left[0] -= 1\n  if left[0] < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "  return real(*a, **k)\n return call\n"
        "for name in ('rename', 'unlink', 'fsync', 'link', 'mkdir', 'ftruncate'): setattr(os, name, deadly(getattr(os, name)))\n"
        "from anima import doctor\n"
        "doctor(sys.argv[1], repair=True)\n"
    )
    env = {**os.environ, **env_of(aria), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", code, str(aria), str(at)], env=env, check=False, capture_output=True)

    assert documents(aria) == before
    looked(aria)
    assert mended(aria).ok
    assert documents(aria) == before
    assert mended(aria).done == ()
    works(aria)


def first_revision(aria: Path) -> str:
    with Home.open(aria, env=env_of(aria)) as home:
        return home.past.log(limit=1_000)[-1].id


def repaired_while(aria: Path, then: str) -> str:
    """What another process says that repairs the home, and does something once the broken repository has stepped aside."""
    code = (
        "import os, signal, subprocess, sys\nfrom anima import doctor\nreal = os.rename\n"
        "look = 'import sys, anima; anima.Home.open(sys.argv[1]).past.log()'\n"
        "def renamed(old, new, **more):\n real(old, new, **more)\n"
        f" if '.broken-' in str(new): {then}\n"
        "os.rename = renamed\nprint(doctor(sys.argv[1], repair=True).done)\n"
    )
    env = {**os.environ, **env_of(aria), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([sys.executable, "-c", code, str(aria)], env=env, capture_output=True, text=True).stdout


def test_a_repair_killed_between_two_repositories_loses_no_revision(aria: Path) -> None:
    damage_object(aria)
    first = first_revision(aria)
    assert repaired_while(aria, "os.kill(os.getpid(), signal.SIGKILL)") == ""
    assert not (aria / ".git").exists()

    assert mended(aria).ok
    assert mended(aria).done == ()
    assert first_revision(aria) == first
    works(aria)


def test_whoever_opens_history_between_two_repositories_of_a_repair_does_not_stop_it(aria: Path) -> None:
    damage_object(aria)
    first = first_revision(aria)
    told = repaired_while(aria, "subprocess.run([sys.executable, '-c', look, sys.argv[1]], check=True)")

    assert "kept" in told and "begun anew" not in told
    assert first_revision(aria) == first
    works(aria)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_is_said_and_loses_nothing(sound: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        root = copied(sound, disk)
        HOW["ledger-altered"][0](root)
        before, bad = documents(root), ledger(root).read_bytes()
        filler = os.open(disk / "filler", os.O_WRONLY | os.O_CREAT)
        with contextlib.suppress(OSError):
            while os.write(filler, b"x" * 4096):
                pass
        os.close(filler)
        result = mended(root)
        assert {"disk-full", "ledger-damaged"} <= names(result.left)
        assert not result.ok and documents(root) == before and ledger(root).read_bytes() == bad
        (disk / "filler").unlink()
        assert mended(root).ok and documents(root) == before
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# -- anything at all --------------------------------------------------------------------------------------------------------

PAIRED = sorted(
    set(HOW) - {"home-vanished", "home-empty", "home-not-a-folder", "home-owner", "document-owner", "home-wiped"}
)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pair=st.lists(st.sampled_from(PAIRED), min_size=2, max_size=3, unique=True))
def test_damages_together_are_mended_like_each_alone(
    sound: Path, tmp_path_factory: pytest.TempPathFactory, pair: list[str]
) -> None:
    root = copied(sound, tmp_path_factory.mktemp("pair"))
    for name in pair:
        try:
            HOW[name][0](root)
        except (OSError, AssertionError, IndexError, subprocess.CalledProcessError, ValueError, StopIteration):
            continue  # the first left nothing to damage
        except Exception as error:
            assert type(error).__module__.startswith("anima"), error  # a home so damaged refuses to be written
    before = documents(root)
    result = mended(root)
    after = documents(root)

    assert {path: after.get(path) for path in before} == before
    first = {"config-broken", "config-not-a-file", "ledger-format", "history-busy"}  # what only the owner can mend
    waits = first & set(pair)
    assert waits or all(not damages()[name].repair for name in names(result.left)), (pair, result)
    assert mended(root).done == ()


MACHINE_FILES = (
    ".anima/ledger.jsonl",
    ".anima/key",
    ".anima/lock",
    ".anima/index.sqlite",
    ".anima/talks.sqlite",
    ".anima/forgotten",
    ".git/HEAD",
    ".git/index",
    ".git/config",
    ".git/anima",
    ".git/anima.index",
    ".git/refs/heads/main",
    ".git/logs/refs/heads/main",
    "anima.toml",
    "pending",
    "session",
    "object",
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(MACHINE_FILES), seed=st.integers(0, 2**32))
def test_no_byte_in_any_machine_file_makes_the_doctor_fall(
    sound: Path, tmp_path_factory: pytest.TempPathFactory, place: str, seed: int
) -> None:
    root, dice = copied(sound, tmp_path_factory.mktemp("flip")), random.Random(seed)
    special = {"pending": proposal, "session": transcript, "object": lambda root: dice.choice(objects(root))}
    path = special[place](root) if place in special else root / place
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    for _ in range(dice.choice((1, 1, 1, 5, 50))):
        data[dice.randrange(len(data))] = dice.randrange(256)
    path.write_bytes(data[: dice.randrange(len(data))] if dice.random() < 0.2 else data)
    before = documents(root)

    assert all(isinstance(remark, Remark) for remark in looked(root))
    mended(root)
    assert documents(root) == before
    assert not [remark for remark in looked(root) if remark.name == "not-looked-at"]


def test_a_ledger_of_an_older_format_is_named_and_gone_on_with_and_vouches_for_no_line(tmp_path: Path) -> None:
    place = tmp_path / "old"
    with Home.create(place, name="Aria", env=env_of(place)) as home:
        home.remember("Ana sails", section="People")
    file, key = place / ".anima/ledger.jsonl", Key((place / ".anima/key").read_bytes())
    prev, older = ORIGINAL, b""
    for record in filter(None, map(parse, file.read_text().splitlines())):
        fields = dict(record.fields) | ({"format": FORMAT - 1} if record.kind == "home" else {})
        if "edits" in fields:  # which had a list there
            fields["edits"] = [edit | ({"lines": ["0" * 32]} if "lines" in edit else {}) for edit in fields["edits"]]
        made, line = sealed(record.n, record.t, record.kind, fields, prev=prev, key=key)
        prev, older = made.hash, older + line
    file.write_bytes(older)

    assert "ledger-damaged" in names(looked(place))
    assert mended(place).ok
    with Home.open(place, env=env_of(place)) as home:
        assert home.past.why("MEMORY.md", line_of(home, "Ana sails")).source.actor is Actor.OUTSIDE
    works(place)
    assert "ledger-damaged" not in names(looked(place))


def line_of(home: Home, words: str) -> int:
    return next(n for n, line in enumerate(home.read("MEMORY.md").text.splitlines(), 1) if words in line)


def test_a_ledger_longer_than_any_document_is_looked_through_and_mended(aria: Path) -> None:
    with Home.open(aria, env=env_of(aria)) as home:
        for name in "abcdef":  # each line that comes is in the ledger, and none is there to be looked through later
            home.write("notes/page.md", "".join(f"- {name} {number}\n" for number in range(100_000)))
        home.write("notes/page.md", "- short again\n")
    assert ledger(aria).stat().st_size > 8 * 2**20
    assert "not-looked-at" not in names(looked(aria))

    lines(aria, lambda every: [*every[:9], *every[10:]])
    assert "ledger-damaged" in names(looked(aria))
    mended(aria)
    assert not {"ledger-damaged", "not-looked-at"} & names(looked(aria))
    works(aria)

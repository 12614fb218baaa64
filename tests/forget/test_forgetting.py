"""Forgetting is real: what is forgotten is nowhere, stays away, and takes nothing else with it."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import shutil
import tarfile
import tempfile
import unicodedata
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pygit2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima import BadArguments, Damaged, Home, NoSuchSession, Origin, Scope, restore
from anima.cli import run
from anima.model import MAX_BYTES
from anima.store import MOST_READ
from anima.store.git import _finish_swap
from anima.testing import Clock
from anima.text.phrases import Wanted, cut, flat, forms_of, said_in
from owning import as_owner

# Fifty phrases, by the place each is planted in. Letters, digits, signs, scripts and forms differ.
DOCUMENT = {
    "MEMORY.md": [
        "the safe opens with four two nine",
        "Ana's blood type is AB negative",
        "Iván lleva tres años sobrio",
    ],
    "USER.md": ["allergic to penicillin since childhood"],
    "TOOLS.md": ["staging host is badger-17.example"],
    "SOUL.md": ["never mention the lighthouse affair"],
    "memory/2026-05-07.md": ["paid 12,400 pesos to the notary", "Überraschungsfeier für Jürgen geplant"],
    "memory/topics/boat.md": ["hull number XJ-88213", "the mooring fee is overdue"],
    "bank/opinions.md": ["thinks the mayor takes bribes"],
    "bank/entities/ana.md": ["Ana left the Basel clinic in March"],
    "knowledge/KNOWLEDGE.md": ["the vault combination rotates monthly"],
    "notes/trip.md": ["我的护照号码是九七三", "パスワードは夕焼け空", "рейс вылетает на рассвете тайно"],
    "skills/mail/SKILL.md": ["use the blue alias for invoices"],
}
HEADINGS = {"notes/plans.md": ["The Montevideo relocation"], "memory/topics/deal.md": ["Projekt Silberfuchs Übernahme"]}
DREAMED = {"DREAMS.md": ["dreamt that the merger fails"], "memory/topics/past.md": ["once lived above the bakery"]}
LAYER = {
    "users/ana/MEMORY.md": ["Ana hides the second phone"],
    "users/ana/memory/2026-05-08.md": ["Ana wept about the verdict"],
}
MULTILINE = ["the courier arrives at\n  gate nine before dawn", "she signed the\n> second contract in blue"]
FENCED = ["export VAULT_WORD=marzipan"]
EMOJI = ["🦊🌵🔑 is the door code", "meet at 🏝️ after the 🎻 concert"]
NFD = [unicodedata.normalize("NFD", "Renée déteste l'opéra à Évry")]
SAID = [
    "my therapist is Dr. Okonkwo",
    'the answer is "forty-two" in quotes',
    "tab\tseparated secret words",
    "line one\nline two together",
]
PROPOSED = ["proposed: sell the cabin quietly"]
REASON = ["because the audit found the drawer"]
FOREIGN_TEXT = ["foreign: the spare key is in the fern", "csv,row,of,private,figures"]
FOREIGN_JSON = ["la niña guardó el mapa"]
BINARY = ["BINARY-PHRASE-7731", "wide letters hidden here"]
HISTORY_ONLY = ["once written then deleted for good", "overwritten in the second version"]
MESSAGE = ["commit reason names the informant"]
TORN = ["half a line about the glass eye"]
BROKEN = ["an old broken repository held this"]
HIDDEN = ["hidden folder tells of the annex"]
INSIDE = ["zqxjkvbw"]  # between signs
LONG = ["a sentence of more than eight words that goes on about the hidden orchard", "the orchard"]
SHOUTED = ["the auditor sleeps at noon"]  # stands there in capitals
ALL = [phrase for table in (DOCUMENT, HEADINGS, DREAMED, LAYER) for found in table.values() for phrase in found] + [
    *MULTILINE,
    *FENCED,
    *EMOJI,
    *NFD,
    *SAID,
    *PROPOSED,
    *REASON,
    *FOREIGN_TEXT,
    *FOREIGN_JSON,
    *BINARY,
    *HISTORY_ONLY,
    *MESSAGE,
    *TORN,
    *BROKEN,
    *HIDDEN,
    *INSIDE,
    *SHOUTED,
    *LONG,
]
INNOCENT = {
    "MEMORY.md": "- Luis likes green tea\n",
    "memory/2026-05-07.md": "- [10:00] Fed the cat\n",
    "notes/trip.md": "- pack socks\n",
    "notes/plans.md": "stays below its heading\n",
    "notes/code.md": "```sh\nexport OTHER=1\n```\n",
    "memory/topics/boat.md": "- it floats\n",
}


def add(home: Home, path: str, text: str) -> None:
    held = home.read(path).text if home.exists(path) else ""
    home.write(path, f"{held}{'' if not held or held.endswith(chr(10)) else chr(10)}{text}")


def planted(root: Path) -> None:
    """A home that holds every phrase in its place, beside lines that nobody wants forgotten."""
    with Home.create(root, name="Aria", clock=Clock(), settings={"owner": ["luis"]}) as home:
        for path, text in INNOCENT.items():
            add(home, path, text)
        plant_documents(home)
        plant_sessions(home)
        home.write("notes/code.md", INNOCENT["notes/code.md"] + f"```sh\n{FENCED[0]}\nexport LAST=1\n```\n")
        home.write("notes/late.md", f"- {HISTORY_ONLY[0]}\n")
        home.delete("notes/late.md")
        home.write("notes/versions.md", f"- {HISTORY_ONLY[1]}\n- stays\n")
        home.write("notes/versions.md", "- stays\n")
        home.write("notes/why.md", "- fine\n", reason=MESSAGE[0])
        home.site.store.machine.put("aside/torn/20260508T193000000000", TORN[0].encode())
        home.index()
        home.sessions.find("therapist", limit=3, max_chars=80)
    plant_files(root)
    with Home.open(root, clock=Clock()) as home:
        home.snapshots.take(label="planted")


def plant_documents(home: Home) -> None:
    for table in (DOCUMENT, LAYER):
        for path, phrases in table.items():
            add(home, path, "".join(f"- {phrase}\n  and what hangs below {n}\n" for n, phrase in enumerate(phrases)))
    for path, phrases in HEADINGS.items():
        held = home.read(path).text if home.exists(path) else ""
        home.write(path, f"# Plans\n\n## {phrases[0]}\n\n{held or 'below'}\n")
    for path, phrases in DREAMED.items():
        add(home, path, f"- {phrases[0]} _(score=0.81, recalls=4)_ (since 2026-05-01)\n")
    add(home, "notes/many.md", f"> {MULTILINE[1]}\n\nand then {MULTILINE[0]} says the note\n")
    add(home, "notes/signs.md", "".join(f"* {phrase}\n" for phrase in (*EMOJI, *NFD)))
    add(
        home,
        "notes/inside.md",
        f"- the token is abc-{INSIDE[0]}_def\n- {SHOUTED[0].upper()}\n- {LONG[0]}\n- {LONG[1]}\n",
    )


def plant_sessions(home: Home) -> None:
    with home.session(scope=Scope.MAIN, sender="luis", channel="cli") as session:
        for phrase in SAID:
            session.log("user", f"listen: {phrase}")
            session.log("assistant", "noted, and nothing else")
        session.after_compaction(summary=f"they said {SAID[0]}")
    with home.session(scope=Scope.MAIN, sender="luis") as session:
        session.taint("web")
        waits = session.call("memory_write", {"target": "TOOLS.md", "content": PROPOSED[0], "reason": REASON[0]})
        assert waits["status"] == "pending"


def plant_files(root: Path) -> None:
    (root / "export.csv").write_text(f"a,b\n{FOREIGN_TEXT[1]}\nc,d\n", encoding="utf-8")
    (root / "attic").mkdir()
    (root / "attic" / "todo.txt").write_text(f"first\n{FOREIGN_TEXT[0]}\nlast\n", encoding="utf-8")
    (root / "attic" / "data.json").write_text(json.dumps([{"a": 1}, FOREIGN_JSON[0]], indent=1), encoding="utf-8")
    (root / "photo.bin").write_bytes(
        b"\x89PNG\0\xff" + BINARY[0].encode() + b"\0\xfe" + BINARY[1].encode("utf-16-le") + b"\0\xff"
    )
    (root / ".obsidian").mkdir()
    (root / ".obsidian" / "notes.md").write_text(f"one\n{HIDDEN[0]}\ntwo\n", encoding="utf-8")
    broken = pygit2.init_repository(str(root / ".git.broken-1"), bare=True)
    broken.create_blob(BROKEN[0].encode())


def every_byte(root: Path) -> list[tuple[str, bytes]]:
    """Every file beneath a home, and every object of every repository in it, decompressed."""
    found = [(str(path.relative_to(root)), path.read_bytes()) for path in sorted(root.rglob("*")) if path.is_file()]
    for path in [p for p in root.rglob("*") if p.name == "objects" and p.is_dir()]:
        odb = pygit2.Odb(str(path.resolve()))
        found += [(f"object {name}", odb.read(name)[1]) for name in odb]
    found += [(name, gzip.decompress(data)) for name, data in found if name.endswith(".gz")]
    for path in root.rglob("*.tar.gz"):
        with tempfile.TemporaryDirectory() as place, tarfile.open(path) as tar:
            tar.extractall(place, filter="data")
            found += [(f"{path.name}: {name}", data) for name, data in every_byte(Path(place))]
    return found


def holding(root: Path, phrases: list[str]) -> list[tuple[str, str]]:
    """Which phrase is still where, in any of its forms."""
    left = []
    for name, data in every_byte(root):
        words = flat(data.decode("utf-8", "replace")).text
        lower = data.lower()
        left += [
            (name, p) for p in phrases if any(form.lower() in lower for form in forms_of(p)) or flat(p).text in words
        ]
    return left


@pytest.fixture(scope="module")
def purged(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, list[tuple[str, str]], dict[str, str], list[object]]:
    root = tmp_path_factory.mktemp("purged") / "home"
    planted(root)
    before = holding(root, ALL)
    source = tmp_path_factory.mktemp("source")
    with Home.open(root, clock=Clock()) as home:
        texts = {entry.path: home.read(entry.path).text for entry in home.list_all() if entry.path.endswith(".md")}
        done: list[object] = [home.forget(text=ALL, purge=True)]
    for path, text in texts.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text, encoding="utf-8")
    (source / "kept.txt").write_text(str(source))
    return root, before, texts, [source, *done]


def test_fifty_phrases_of_every_kind_and_place_are_planted(purged):
    assert len(ALL) >= 50 and len(set(ALL)) == len(ALL)
    assert {phrase for _, phrase in purged[1]} == set(ALL)


def test_after_a_purge_no_byte_of_the_home_and_no_object_of_history_holds_them(purged):
    root, _, _, (_, *done) = purged

    assert holding(root, ALL) == []
    assert [each.left for each in done] == [()]
    assert done[0].verified and done[0].record and done[0].phrases == len(ALL)


def test_after_a_purge_the_ledger_verifies_and_history_is_whole(purged):
    with Home.open(purged[0], clock=Clock()) as home:
        assert home.past.audit().ok
        assert home.past.history_problems() == []
        assert len(home.past.log(limit=500)) > 10
        assert not list(Path(home.name).glob(".git.*"))


def test_what_was_not_forgotten_stands_as_it_stood_byte_for_byte(purged):
    root, _, texts, _ = purged
    gone = Wanted(texts=ALL)
    with Home.open(root, clock=Clock()) as home:
        for path, before in texts.items():
            wanted = cut(before, gone.hits(before))
            now = home.read(path).text if home.exists(path) else ""
            assert now == wanted or not (now + wanted).strip(), path
        for path, text in INNOCENT.items():
            assert all(line in home.read(path).text for line in text.splitlines(keepends=True)), path
    assert (root / "export.csv").read_text() == "a,b\nc,d\n"
    assert (root / "attic" / "todo.txt").read_text() == "first\nlast\n"
    photo = (root / "photo.bin").read_bytes()
    assert photo.startswith(b"\x89PNG\0\xff ") and len(photo) == 6 + len(BINARY[0]) + 2 + 2 * len(BINARY[1]) + 2


def test_a_snapshot_from_before_goes_and_a_new_one_restores_without_them(purged, tmp_path):
    root, before, *_ = purged
    with Home.open(root, clock=Clock()) as home:
        (kept,) = home.snapshots.all()
        assert kept.name not in {name for name, _ in before}
        home.snapshots.verify(kept.path)
    restore(kept.path, tmp_path / "again", clock=Clock())
    assert holding(tmp_path / "again", ALL) == []
    with Home.open(tmp_path / "again", clock=Clock()) as home:
        assert home.past.audit().ok and home.past.history_problems() == [] and len(home._writer.forgotten) == len(ALL)
        assert "Luis likes green tea" in home.read("MEMORY.md").text


def test_importing_the_same_sources_again_does_not_bring_them_back(purged, tmp_path):
    root, _, _, (source, *_) = purged
    with Home.open(root, clock=Clock()) as home:
        assert len(home._writer.forgotten) == len(ALL)
        for entry in list(home.list_all()):
            if entry.path.endswith(".md"):
                home.delete(entry.path)
        imported = home.import_directory(source, mine=True)
        assert {"MEMORY.md", "notes/trip.md", "users/ana/MEMORY.md"} <= {path for path, _ in imported.forgotten}
        assert "Luis likes green tea" in home.read("MEMORY.md").text
    assert holding(root, ALL) == []


def test_saying_it_again_in_a_session_is_not_flushed_and_the_agents_write_asks(tmp_path):
    with Home.create(tmp_path / "home", name="Aria", clock=Clock()) as home:
        home.remember("The safe opens with 4-2-9")
        home.forget(text="the safe opens with 4-2-9")
        session = home.session(scope=Scope.MAIN)
        session.log("user", "Please remember that the safe opens with 4-2-9.")
        session.log("user", "Please remember that Luis prefers the window seat.")
        flushed = session.flush("test")
        assert flushed.forgotten == 1
        assert [line for line in flushed.lines if "window seat" in line] and "4-2-9" not in "".join(flushed.lines)
        asked = session.call("memory_write", {"target": "memory", "content": "the SAFE opens\nwith 4 2 9"})
        assert (asked["status"], asked["rule"]) == ("pending", "forgotten")
        assert home.note("Luis: the safe opens with 4-2-9 again").status == "written"  # the owner's own hand is free
        assert len(home._writer.forgotten) == 0
        session.close()


def test_approving_a_forgotten_line_takes_it_off_the_list(tmp_path):
    with Home.create(tmp_path / "home", name="Aria", clock=Clock()) as home:
        home.remember("Ana keeps bees in the attic")
        home.forget(text="Ana keeps bees in the attic")
        with home.session(scope=Scope.MAIN) as session:
            asked = session.call("memory_write", {"target": "memory", "content": "Ana keeps bees in the attic"})
        home.inbox.approve(asked["proposal"], approver="terminal")
        assert "bees" in home.read("MEMORY.md").text and not home._writer.forgotten


def test_the_list_of_what_is_forgotten_holds_no_word_of_it(tmp_path):
    with Home.create(tmp_path / "home", name="Aria", clock=Clock()) as home:
        home.forget(text="the marzipan conspiracy of a very long and winding sentence about nothing at all")
        raw = (tmp_path / "home" / ".anima" / "forgotten").read_bytes()
        assert re.fullmatch(
            rb'\{"format":1,"phrases":\[\[\d+,"[0-9a-f]{32}","[0-9a-f]{32}"\]\],"at":\{"[0-9a-f]{32}":"[-+:.\dT]+"\}\}',
            raw,
        )
        assert home._writer.forgotten.holds(
            "THE Marzipan conspiracy of a very long, and winding\nsentence about nothing at all!"
        )
        assert not home._writer.forgotten.holds("the marzipan conspiracy of a very long and winding road")


def test_what_fits_a_pattern_in_a_talk_alone_stays_forgotten_too(home):
    with home.session(scope=Scope.MAIN) as session:
        session.log("user", "the badge is ZX-77777 now")
        session.log("user", "thank you")
    root, kept = home.site.store.whole.name, home.snapshots.take().path
    assert home.forget(pattern=r"ZX-\d+").counts == {"transcript": 1}
    assert home._writer.forgotten.holds("ZX-77777")
    assert restore(kept, root, clock=Clock()).forgotten == 1
    assert not [path for path in Path(root, "sessions").iterdir() if b"ZX-77777" in path.read_bytes()]


@pytest.mark.parametrize("purge", [False, True])
def test_what_a_tool_wrote_as_json_is_forgotten_too(home, purge):
    said, root = "Zoë Kaltenbrunn \U0001f426", home.site.store.whole.name
    answer = json.dumps({"found": f"first\n{said}"})  # \\u00eb, and a line end before it
    with home.session(scope=Scope.MAIN) as session:
        session.log("tool", answer)
        session.log("user", "thank you")
    home.write("notes/answers.md", f"# Answers\n\n```\n{answer}\n```\n")
    kept = Path(os.environ["ANIMA_CONFIG"]) / "copy.tar.gz"
    shutil.copy(home.snapshots.take().path, kept)
    done = home.forget(text=said, purge=purge)
    assert done.verified and done.counts["transcript"] == 1 and done.counts["line"] == 1
    for _ in range(2):
        read = [path for folder in ("sessions", "notes") for path in Path(root, folder).iterdir()]
        assert len(read) == 2 and not [path for path in read if b"Kaltenbrunn" in path.read_bytes()]
        assert home._writer.forgotten.holds(answer)
        restore(kept, root, clock=Clock())


# -- snapshots ---------------------------------------------------------------------------------------------------------------


SECRET = "the heron nests in the old boathouse"


def test_a_dry_run_names_the_snapshots_that_go_and_leaves_them_and_no_trace(home):
    home.note("nothing of interest")
    first = home.snapshots.take()
    home.remember(SECRET)
    home.clock.forward(days=1)
    second = home.snapshots.take()
    before = tree(home)
    found = home.forget(text=SECRET, purge=True, dry_run=True)
    assert {each.where for each in found.touched if each.place == "snapshot"} == {first.name, second.name}
    assert tree(home) == before
    done = home.forget(text=SECRET, purge=True)
    assert done.verified and done.counts["snapshot"] == 2
    (fresh,) = home.snapshots.all()
    assert fresh.name not in (first.name, second.name)
    assert holding(Path(home.name), [SECRET]) == []


def test_by_its_session_too_it_goes_from_a_snapshot(home):
    with home.session(scope=Scope.MAIN, sender="luis") as session:
        session.log("user", SECRET)
        session.call("memory_write", {"target": "memory", "content": SECRET})
    home.snapshots.take()
    done = home.forget(session=session.id, purge=True)
    assert done.verified and holding(Path(home.name), [SECRET]) == []


def test_a_list_that_cannot_be_read_stops_a_write_before_anything_is_written(home, tmp_path):
    (tmp_path / "home" / ".anima" / "forgotten").write_text("{")
    for wish in (lambda: home.write("notes/new.md", "# New\n"), lambda: home.remember("Ana has a boat")):
        with pytest.raises(Damaged, match="nothing was written"):
            wish()
    assert not home.exists("notes/new.md") and "boat" not in home.read("MEMORY.md").text


def test_a_snapshot_elsewhere_is_reached_or_named(home, tmp_path):
    home.remember(SECRET)
    here, away = tmp_path / "here.tar.gz", tmp_path / "away.tar.gz"
    home.snapshots.take(to=here)
    home.snapshots.take(to=away)
    away.rename(tmp_path / "taken-along.tar.gz")
    done = home.forget(text=SECRET, purge=True)
    assert [where for where, _ in done.left] == [str(away)]
    assert not here.exists()
    (fresh,) = home.snapshots.all()
    assert SECRET.encode() not in gzip.decompress(Path(fresh.path).read_bytes())


def test_a_folder_from_a_stranger_cannot_name_a_file_of_the_owners_for_removal(home, tmp_path):
    """Its list of snapshots elsewhere would have any file removed that cannot be read as one."""
    mine = {
        tmp_path / "backup.tar.gz": b"years of work",
        tmp_path / "vault.tar.gz.age": b"age-encryption.org/v1\nsealed",
    }
    for path, data in mine.items():
        path.write_bytes(data)
    home.remember(SECRET)
    home.snapshots.take()
    listed = json.dumps([str(path) for path in mine] + ["relative.tar.gz", 7])
    (Path(home.name) / ".anima/snapshots/elsewhere").write_text(listed)
    home.close()
    stranger = Path(os.environ["ANIMA_CONFIG"]) / "downloaded"
    shutil.copytree(home.name, stranger)
    with Home.open(stranger, clock=home.clock) as theirs:
        done = theirs.forget(text=SECRET, purge=True)
    assert {where for where, _ in done.left} == {str(path) for path in mine}
    assert {path: path.read_bytes() for path in mine} == mine


def test_a_file_that_took_the_place_of_a_snapshot_is_left_alone(home, tmp_path):
    home.remember(SECRET)
    place = tmp_path / "aria.tar.gz"
    home.snapshots.take(to=place)
    place.write_bytes(b"another backup by now")
    done = home.forget(text=SECRET, purge=True)
    assert [where for where, _ in done.left] == [str(place)] and place.read_bytes() == b"another backup by now"


def test_what_nobody_can_look_into_is_named_and_goes_and_one_is_taken_anew(home):
    pyrage = pytest.importorskip("pyrage")
    home.remember(SECRET)
    sealed = home.snapshots.take(recipients=[str(pyrage.x25519.Identity.generate().to_public())])
    home.clock.forward(days=1)
    home.note("more")
    damaged = home.snapshots.take()
    Path(damaged.path).write_bytes(Path(damaged.path).read_bytes()[:-9])
    found = home.forget(text=SECRET, purge=True, dry_run=True)
    assert {each.where: "removed" in each.why for each in found.touched if each.place == "snapshot"} == {
        sealed.name: True,
        damaged.name: True,
    }
    done = home.forget(text=SECRET, purge=True)
    assert done.verified and any("older snapshots removed: 2" in note for note in done.notes)
    (fresh,) = home.snapshots.all()
    assert not fresh.sealed and holding(Path(home.name), [SECRET]) == []


def failing(really, name):
    """A call of the system that fails for one folder, which stands before it by its name or its descriptor."""

    def call(what, *given, **more):
        if str(what) == name or (isinstance(what, int) and os.readlink(f"/proc/self/fd/{what}").endswith(f"/{name}")):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return really(what, *given, **more)

    return call


@pytest.mark.parametrize("calls", [("open",), ("listdir", "scandir")], ids=["opened", "listed"])
def test_a_folder_that_the_disk_does_not_show_is_named_and_nobody_says_that_all_was_read(home, monkeypatch, calls):
    for name in (".attic", "attic"):
        (Path(home.name) / name).mkdir()
        (Path(home.name) / name / "old.txt").write_text("the walnut code is 7719\n")
    really = {call: getattr(os, call) for call in calls}
    for call in calls:
        monkeypatch.setattr(os, call, failing(really[call], ".attic"))
    done = home.forget(text="walnut code", purge=True)
    assert done.done and [left.where for left in done.left] == [".attic"] and not done.verified
    for name in ("attic", "sessions"):  # without documents or transcripts nothing is begun
        with home.session(scope="main") as session:
            session.log("user", "Good morning.")
        for call in calls:
            monkeypatch.setattr(os, call, failing(really[call], name))
        with pytest.raises(Damaged, match=f"^{name}: .*cannot be read .Input/output error"):
            home.forget(text="walnut code", purge=True)
        monkeypatch.undo()


def test_what_an_interrupted_restore_had_unpacked_goes_with_a_purge(home):
    home.remember(SECRET)
    home.snapshots.take()
    (Path(home.name) / ".anima" / "restore").mkdir()
    (Path(home.name) / ".anima" / "restore" / "x.md").write_text(SECRET)
    assert home.forget(text=SECRET, purge=True).verified
    assert holding(Path(home.name), [SECRET]) == []


# -- selectors ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path):
    with Home.create(tmp_path / "home", name="Aria", clock=Clock(), settings={"owner": ["luis"]}) as home:
        yield home


def tree(home: Home) -> dict[str, bytes]:
    root = Path(home.name)
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def places(found) -> set[tuple[str, str]]:
    return {(each.place, each.where.partition(":")[0]) for each in found.touched}


def test_a_dry_run_touches_nothing_and_lists_what_the_deed_then_does(tmp_path):
    planted(tmp_path / "home")
    with Home.open(tmp_path / "home", clock=Clock()) as home:
        home.inbox.all()
        before = tree(home)
        dry = [
            home.forget(text=phrase, purge=True, dry_run=True)
            for phrase in (DOCUMENT["MEMORY.md"][0], SAID[0], PROPOSED[0])
        ]
        assert tree(home) == before
        assert [each.done for each in dry] == [False] * 3 and all(each.touched for each in dry)
        done = home.forget(text=DOCUMENT["MEMORY.md"][0], purge=True)
        assert done.touched == dry[0].touched


def test_a_dry_run_in_a_folder_that_anima_never_wrote_leaves_no_trace(example):
    root = example("openclaw")
    line = next(n for n, line in enumerate((root / "MEMORY.md").read_text().splitlines(), 1) if line.startswith("- "))
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with Home.open(root, clock=Clock()) as home:
        for asked in (
            {"line": f"MEMORY.md:{line}"},
            {"text": "nowhere to be found"},
            {"session": "x"},
            {"since": "2020-01-01"},
        ):
            with suppress(NoSuchSession):
                home.forget(**asked, purge=True, dry_run=True)
        assert home.forget(line=f"MEMORY.md:{line}", dry_run=True).touched
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_a_session_is_forgotten_with_what_it_said_wrote_and_proposed_and_with_copies_of_it(home):
    with home.session(scope=Scope.MAIN, sender="luis") as session:
        session.log("user", "the heron nests in the boathouse")
        session.call("memory_write", {"target": "memory", "content": "The heron nests in the old boathouse"})
        session.call("memory_write", {"target": "SOUL.md", "content": "Be a heron."})
    with home.session(scope=Scope.MAIN, sender="luis") as other:
        other.log("user", "did you know? The heron nests in the old boathouse!")
        other.log("user", "the gate is green")
        other.call("memory_write", {"target": "memory", "content": "The gate is painted green"})
    home.write("DREAMS.md", "- the heron nests in the old boathouse _(score=0.7)_\n- unrelated\n")
    done = home.forget(session=session.id[:8])
    assert {("line", "MEMORY.md"), ("dreamed", "DREAMS.md"), ("transcript", f"sessions/{session.id}.jsonl")} <= places(
        done
    )
    assert {each.place for each in done.touched} == {"line", "dreamed", "transcript", "proposal"}
    assert "heron" not in home.read("MEMORY.md").text and "painted green" in home.read("MEMORY.md").text
    assert home.read("DREAMS.md").text == "- unrelated\n"
    assert home.inbox.all() == ()
    said = home.sessions.read(other.id).entries
    assert [turn.content for turn in said if turn.call is None] == ["the gate is green"]
    assert ["painted green" in turn.asked for turn in said if turn.call] == [True]
    assert home.sessions.read(session.id).entries == ()


def test_a_session_forgotten_first_and_purged_later_is_gone_from_history_too(home):
    with home.session(scope=Scope.MAIN, sender="luis") as session:
        session.call("memory_write", {"target": "memory", "content": "The heron nests in the old boathouse"})
        session.call("memory_write", {"target": "memory", "content": "ok"})
    home.forget(session=session.id)
    assert holding(Path(home.name), ["heron nests in the old boathouse"])
    done = home.forget(session=session.id, purge=True)
    assert done.verified and done.counts["history"] >= 1
    assert not holding(Path(home.name), ["heron nests in the old boathouse"])
    assert home.past.audit().ok


def test_a_sender_is_forgotten_with_their_layer_and_what_they_said_to_a_group(home):
    with home.session(scope=Scope.MAIN, sender="ana") as hers:
        hers.log("user", "my locker is number ninety")
    home.write("users/ana/MEMORY.md", "- Ana's locker is number ninety\n")
    home.write("users/bo/MEMORY.md", "- Bo likes chess a lot\n")
    with home.session(scope=Scope.GROUP, sender="luis", chat_type="group") as group:
        group.log("user", "hello from me", sender_id="luis")
        group.log("user", "hello from Ana", sender_id="ana")
    done = home.forget(sender="ana", purge=True)
    assert done.verified
    assert not home.exists("users/ana/MEMORY.md") and home.exists("users/bo/MEMORY.md")
    assert [t.content for t in home.sessions.read(group.id).entries] == ["hello from me"]
    assert not holding(Path(home.name), ["locker is number ninety", "hello from Ana"])
    assert "users/ana" not in "".join(path for r in home.past.log(limit=99) for path in r.paths)


def test_what_came_from_the_web_is_forgotten_by_its_origin_though_it_was_approved(home):
    with home.session(scope=Scope.MAIN, sender="luis") as session:
        session.taint("web")
        first = session.call("memory_write", {"target": "memory", "content": "The site says turtles fly south"})
    home.inbox.keep(*first["noted"], approver="terminal")
    home.remember("Luis says turtles swim well")
    home.forget(origin="web")
    assert "fly south" not in home.read("MEMORY.md").text and "swim well" in home.read("MEMORY.md").text


def test_a_time_span_reaches_memory_and_talk_and_leaves_the_soul(tmp_path):
    clock = Clock()
    with Home.create(tmp_path / "home", name="Aria", clock=clock) as home:
        soul = home.read("SOUL.md").text
        home.note("an early and harmless thing happened")
        clock.forward(days=1)
        home.note("a late and secret thing happened")
        with home.session(scope=Scope.MAIN) as session:
            session.log("user", "about the late thing")
        clock.forward(days=1)
        home.note("the day after was quiet again")
        home.forget(since="2026-05-09", until="2026-05-09")
        assert home.read("SOUL.md").text == soul
        assert "early and harmless" in home.read("memory/2026-05-08.md").text
        assert "secret" not in (home.read("memory/2026-05-09.md").text if home.exists("memory/2026-05-09.md") else "")
        assert "quiet again" in home.read("memory/2026-05-10.md").text
        assert home.sessions.read(session.id).entries == ()


def test_a_line_goes_with_whatever_says_the_same_and_a_short_one_alone(home):
    home.write("notes/a.md", "# A\n\n- The barn key hangs behind the mirror\n- yes\n")
    home.write("notes/b.md", "* [09:12] the barn key hangs behind the mirror _(score=0.5)_\n- yes\n- more\n")
    home.forget(line="notes/a.md:3")
    assert home.read("notes/a.md").text == "# A\n\n- yes\n"
    assert home.read("notes/b.md").text == "- yes\n- more\n"
    home.forget(line="notes/a.md#L3")
    assert home.read("notes/a.md").text == "# A\n\n" and home.read("notes/b.md").text == "- yes\n- more\n"


def test_a_pattern_forgets_what_fits_it_and_what_it_found_stays_forgotten(home):
    home.write("notes/a.md", "- call +57 310 555 0101\n- call me maybe\n")
    home.forget(pattern=r"\+57[ \d]{8,}", purge=True)
    assert home.read("notes/a.md").text == "- call me maybe\n"
    assert not holding(Path(home.name), ["+57 310 555 0101"])
    assert home._writer.forgotten.holds("his number: +57 310 555 0101")


def test_a_text_narrows_a_session(home):
    with home.session(scope=Scope.MAIN) as session:
        session.log("user", "the walnut is ripe")
        session.log("user", "the almond is ripe")
        session.call("memory_write", {"target": "memory", "content": "The walnut tree was planted in spring"})
        session.call("memory_write", {"target": "memory", "content": "The almond tree was planted in autumn"})
    home.remember("A walnut table stands in the hall")
    home.forget(session=session.id, text="walnut")
    text = home.read("MEMORY.md").text
    assert "walnut tree" not in text and "almond tree" in text and "walnut table" in text
    said = home.sessions.read(session.id).entries
    assert [turn.content for turn in said if turn.call is None] == ["the almond is ripe"]
    assert ["almond tree" in turn.asked for turn in said if turn.call] == [True]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({}, "say what to forget"),
        ({"text": " "}, "too short"),
        ({"text": "x"}, "too short"),
        ({"pattern": "("}, "is wrong"),
        ({"pattern": "a*"}, "where there is nothing"),
        ({"pattern": ""}, "where there is nothing"),
        ({"line": "MEMORY.md"}, "no line"),
        ({"line": "MEMORY.md:9999"}, "no line 9999"),
        ({"line": "MEMORY.md:2"}, "says nothing"),
        ({"origin": "moon"}, "no origin"),
        ({"text": "abc", "pattern": "abc"}, "not both"),
        ({"line": "MEMORY.md:1", "text": "abc"}, "cannot narrow"),
        ({"session": "a", "sender": "b"}, "not both"),
        ({"since": "yesterday"}, "is no time"),
        ({"since": "2026-05-09", "until": "2026-05-08"}, "lies after"),
        ({"session": " "}, "is empty"),
        ({"text": "y" * 100_001}, "at most"),
    ],
)
def test_what_makes_no_sense_is_said_and_nothing_is_touched(home, asked, why):
    before = tree(home)
    with pytest.raises(BadArguments, match=re.escape(why)):
        home.forget(**asked)
    assert tree(home) == before


def test_a_heading_that_others_wrote_below_stays(home):
    with home.session(scope=Scope.MAIN) as session:
        session.call("memory_write", {"target": "memory", "content": "The cellar floods in April", "section": "House"})
    home.remember("The roof was mended last year", section="House")
    home.forget(session=session.id)
    assert "## House" in home.read("MEMORY.md").text and "cellar" not in home.read("MEMORY.md").text


# -- an agent's wish ---------------------------------------------------------------------------------------------------------


def test_an_agents_wish_always_waits_and_approving_it_forgets_for_real(home):
    home.remember("Ana's code is seven seven three")
    home.index()
    with home.session(scope=Scope.MAIN, sender="luis") as session:
        session.log("user", "forget that Ana's code is seven seven three")
        asked = session.call("memory_forget", {"text": "ana's code is seven seven three", "reason": "they asked"})
        again = session.call("memory_forget", {"text": "ana's code is seven seven three", "reason": "they asked"})
        assert (asked["status"], asked["rule"], asked["proposal"]) == ("pending", "forget", again["proposal"])
        assert "seven" in home.read("MEMORY.md").text
    waiting = home.inbox.all()[0]
    assert "-- Ana's code" in waiting.diff and "transcript" in waiting.diff
    receipt = home.inbox.approve(waiting.id, approver="terminal", content=waiting.content)[0]
    assert receipt.status == "written" and home.inbox.all() == ()
    assert "seven" not in home.read("MEMORY.md").text
    assert home.sessions.read(session.id).entries == ()
    assert not home.search("Ana code seven", scope=Scope.MAIN).hits
    assert home._writer.forgotten.holds("Ana's code is seven seven three")


def test_an_agent_forgets_a_line_it_sees_and_no_other(home):
    home.write("notes/a.md", "# A\n\n- first\n- second\n")
    with home.session(scope=Scope.MAIN, sender="luis") as session:
        asked = session.call("memory_forget", {"path": "notes/a.md", "line": 4})
        home.write("notes/a.md", "# A\n\n- new above\n- first\n- second\n")  # the line moved since
        home.inbox.approve(asked["proposal"])
    assert home.read("notes/a.md").text == "# A\n\n- new above\n- first\n"


@pytest.mark.parametrize("wish", [{}, {"text": "a", "path": "x"}, {"path": "MEMORY.md"}, {"line": 3}, {"text": " "}])
def test_a_wish_that_makes_no_sense_is_a_sentence(home, wish):
    with home.session(scope=Scope.MAIN, sender="luis") as session, pytest.raises(BadArguments):
        session.call("memory_forget", wish)


def test_a_strangers_wish_reaches_only_what_is_theirs(home):
    home.write("users/ana/MEMORY.md", "- the tulip is yellow inside\n")
    home.remember("The tulip is yellow inside")
    with home.session(scope=Scope.MAIN, sender="ana") as session:
        there = session.call("memory_forget", {"text": "the tulip is yellow inside"})
        nowhere = session.call("memory_forget", {"text": "the lotus is purple inside"})
        assert there.keys() == nowhere.keys() and there["status"] == nowhere["status"] == "pending"
    home.inbox.approve(there["proposal"])
    assert not home.exists("users/ana/MEMORY.md") or "tulip" not in home.read("users/ana/MEMORY.md").text
    assert "tulip" in home.read("MEMORY.md").text and not home._writer.forgotten


def test_a_session_that_may_not_write_may_not_wish(home):
    with home.session(scope=Scope.MAIN, access="ro") as session:
        assert session.call("memory_forget", {"text": "anything"})["rule"] == "read-only"
    with pytest.raises(BadArguments), home.session(scope=Scope.SUBAGENT) as session:
        session.call("memory_forget", {"text": "anything"})


# -- kills -------------------------------------------------------------------------------------------------------------------

POINTS = [
    ("anima.memory.forgotten", "ForgottenList", "add"),
    ("anima.memory.write", "Writer", "carry_out"),
    ("anima.memory", "Proposals", "remove"),
    ("anima.sessions.transcripts", None, "forget"),
    ("anima.store.whole", "FolderWhole", "read"),
    ("anima.search.current", "Search", "freshen"),
    ("anima.store.git", "History", "rewrite"),
    ("anima.store.git", None, "_swap"),
    ("anima.store.whole", "FolderWhole", "traces"),
    ("anima.store.whole", "FolderWhole", "replace"),
    ("anima.store.git", "History", "refresh"),
]


def killed_at(root: Path, module: str, owner: str | None, name: str, after: bool | None, session: str | None) -> None:
    """Forgets in a process of its own that dies as it enters or leaves a function, or (None) between two renames."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            place = import_module(module)
            place = getattr(place, owner) if owner else place
            setattr(place, name, dying(getattr(place, name), after))
            with Home.open(root, clock=Clock()) as home:
                home.forget(session=session, text=None if session else "the ferret stole the ring", purge=True)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9, (module, name)


def dying(old, after):
    def dies(*given, **more):
        if after is None:
            os.rename(given[0], f"{given[0]}.past")
        elif after:
            old(*given, **more)
        os._exit(9)

    return dies


@pytest.mark.parametrize("half", [0, 1])
def test_killed_at_any_point_the_same_call_completes_it_and_nothing_else_is_lost(tmp_path, half):
    for number, (module, owner, name) in enumerate(POINTS[half::2]):
        root = tmp_path / str(number)
        phrase = "swan sleeps under the stone bridge"
        with Home.create(root, name="Aria", clock=Clock()) as home:
            with home.session(scope=Scope.MAIN) as session:
                session.log("user", "the swan sleeps under the bridge")
                session.call("memory_write", {"target": "memory", "content": f"The {phrase}"})
                session.call("memory_write", {"target": "SOUL.md", "content": "swan song"})
            home.remember("Luis likes green tea")
            (root / "x.txt").write_text(f"one\nthe {phrase}\ntwo\n")
        killed_at(root, module, owner, name, number % 2 == 1, session.id)
        with Home.open(root, clock=Clock()) as home:
            done = home.forget(session=session.id, purge=True)
            assert done.left == (), (name, done.left)
            assert home.past.audit().ok and "green tea" in home.read("MEMORY.md").text, name
            assert home.past.history_problems() == [], name
            assert home.inbox.all() == ()
        assert not holding(root, [phrase]), name
        assert (root / "x.txt").read_text() == "one\ntwo\n"


def test_killed_between_the_two_renames_of_history_the_new_one_stands(home):
    home.write("notes/a.md", "- the ferret stole the ring\n- one\n")
    ids = [revision.anchor for revision in home.past.log(limit=99)]
    root = home.name
    home.close()
    killed_at(Path(root), "anima.store.git", None, "_swap", None, None)
    assert not os.path.exists(f"{root}/.git") and os.path.isdir(f"{root}/.git.past")
    with Home.open(root, clock=Clock()) as again:
        assert set(ids) <= {revision.anchor for revision in again.past.log(limit=99)}
        assert again.past.audit().ok and not list(Path(root).glob(".git.*"))
    assert not holding(Path(root), ["ferret stole the ring"])


@pytest.mark.parametrize("new", [True, False])
def test_a_swap_of_history_that_was_cut_in_two_is_ended(tmp_path, new):
    for name in ("git.past", "git.new") if new else ("git.past",):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    _finish_swap(str(tmp_path / "git"))
    assert [path.name for path in tmp_path.iterdir()] == ["git"]
    assert (tmp_path / "git" / ("git.new" if new else "git.past")).exists()


def test_a_document_that_changes_in_between_is_planned_anew(home, monkeypatch):
    from anima.forget import Forget

    home.write("notes/a.md", "- the ferret stole the ring\n- one\n")
    real, seen = Forget.plan, []

    def meanwhile(*given, **more):
        drawn = real(*given, **more)
        if not seen:
            seen.append(1)
            home.append("notes/a.md", "- two, and the ferret stole the ring twice\n- three")
        return drawn

    monkeypatch.setattr(Forget, "plan", meanwhile)
    home.forget(text="the ferret stole the ring")
    assert home.read("notes/a.md").text == "- one\n- three\n"


def test_a_live_session_goes_on_after_some_of_it_was_forgotten(home):
    session = home.session(scope=Scope.MAIN, sender="luis")
    session.log("user", "Please remember that the fox lives in the quarry.")
    session.log("user", "Please remember that the owl lives in the tower.")
    session.flush("test")
    home.forget(text="fox lives in the quarry")
    session.log("user", "Please remember that the hare lives in the meadow.")
    flushed = session.flush("test")
    assert len(flushed.lines) == 1 and "hare" in flushed.lines[0]
    session.close()
    log = home.today().text
    assert "fox" not in log and log.count("owl") == 1 and log.count("hare") == 1
    again = home.resume(session.id)
    again.log("user", "Please remember that the stork lives on the roof.")
    assert ["stork" in line for line in again.flush("test").lines] == [True]
    again.close()


def test_a_persons_branches_go_with_a_purge_and_it_says_so(home):
    home.write("notes/a.md", "- the ferret stole the ring\n")
    repository = pygit2.Repository(home.name)
    repository.branches.create("mine", repository[repository.head.target])
    del repository
    found = home.forget(text="the ferret stole the ring", purge=True, dry_run=True)
    assert any("refs/heads/mine" in note for note in found.notes)
    home.forget(text="the ferret stole the ring", purge=True)
    assert not holding(Path(home.name), ["ferret stole the ring"])


def test_what_cannot_be_forgotten_is_named(home):
    home.write("notes/a.md", "- the ferret stole the ring\n")
    os.link(Path(home.name) / "notes/a.md", Path(home.name) / "notes/b.txt")
    (Path(home.name) / "anima.toml").write_text('[identity]\nname = "the ferret stole the ring"\n')
    done = home.forget(text="the ferret stole the ring", purge=True)
    assert not done.verified and {"notes/a.md", "anima.toml"} <= {where for where, _ in done.left}
    assert ("notes/a.md", "the file has several names (hard links), so it is not written") in done.left


def test_history_stays_where_it_is_without_a_purge_and_undo_brings_it_back(home):
    home.remember("The attic smells of cedar wood")
    done = home.forget(text="smells of cedar")
    assert any("--purge" in note for note in done.notes)
    home.undo(done.change)
    assert "cedar" in home.read("MEMORY.md").text and not home._writer.forgotten


def test_the_ledger_says_that_something_was_forgotten_and_not_what(home):
    home.remember("The attic smells of cedar wood")
    done = home.forget(text="smells of cedar wood")
    [record] = home.site.store.ledger.records(kinds=("forget",))
    assert record.n == done.record and record.fields["counts"] == {"line": 1} and record.fields["verified"] is True
    assert "cedar" not in json.dumps(dict(record.fields)) and len(record.fields["phrases"]) == 1


@pytest.mark.parametrize("dialect", ["openclaw", "nexo", "carapace", "ironclaw", "agentscope"])
def test_it_goes_in_every_dialect(example, dialect):
    root = example(dialect)
    with Home.open(root, clock=Clock()) as home:
        home.note("the ferret stole the ring of keys")
        with home.session(scope=Scope.MAIN) as session:
            session.log("user", "the ferret stole the ring of keys")
        if home.layout.talks:
            with (
                Home.open(root, agent="other", clock=Clock(), settings={"agent": [{"id": "other"}]}) as second,
                second.session(scope=Scope.MAIN) as talk,
            ):
                talk.log("user", "the ferret stole the ring of keys")
        assert home.forget(text="the ferret stole the ring of keys", purge=True).left == ()
    assert not holding(root, ["ferret stole the ring"])


# -- the command line ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def cli(home, capsys):
    def call(*arguments):
        capsys.readouterr()
        code = run(as_owner("forget", "--home", home.name, *arguments))
        return code, *capsys.readouterr()

    return call


def test_the_command_lists_asks_and_tells(home, cli):
    home.remember("The attic smells of cedar wood")
    code, out, err = cli("smells of cedar", "--dry-run")
    assert code == 0 and "MEMORY.md:19" in out and "holds the words" in out and "--purge" in err
    code, out, err = cli("smells of cedar")
    assert code == 5 and "--yes" in err and "cedar" in home.read("MEMORY.md").text
    code, out, err = cli("smells", "of", "cedar", "--purge", "--yes")
    assert code == 0 and "Every byte was read again" in out and "cedar" not in home.read("MEMORY.md").text
    assert "Forgotten: 1 line, 1 revision of history." in out
    code, out, err = cli("smells of cedar", "--yes")
    assert code == 0 and "Nothing holds it." in out


def test_the_command_answers_as_one_json_value_and_with_1_when_something_is_left(home, cli):
    home.remember("The attic smells of cedar wood")
    (Path(home.name) / "anima.toml").write_text('[identity]\nname = "smells of cedar"\n')
    code, out, _ = cli("smells of cedar", "--purge", "--yes", "--json")
    told = json.loads(out)
    assert code == 1 and told["counts"]["line"] == 1 and told["verified"] is False and told["done"] is True
    assert "anima.toml" in {where["where"] for where in told["left"]}
    code, out, _ = cli("--json")
    assert code == 2 and json.loads(out)["error"]["kind"] == "BadArguments"


# -- phrases -------------------------------------------------------------------------------------------------------------------

TEXTS = st.text(st.sampled_from("ab \n-*#>`é\u0301ÀÅ🦊1."), max_size=60)


@given(TEXTS, st.text(st.sampled_from("ab é🦊1"), min_size=2, max_size=8))
def test_a_text_without_a_phrase_no_longer_holds_it_and_keeps_its_other_lines(text, phrase):
    wanted = Wanted(texts=[phrase])
    left, rounds = text, 0
    while hits := wanted.hits(left):
        left, rounds = cut(left, hits), rounds + 1
    assert not wanted.touches(left) and flat(phrase).text not in (flat(left).text if flat(phrase).text else "x")
    kept = iter(text.splitlines(keepends=True) if "\x0b" not in text else [])
    assert all(any(line == other for other in kept) for line in left.splitlines(keepends=True))
    assert rounds or left == text


CLOTHES = [
    *("**Ka**rin Holm", "K*ari*n Ho_l_m", "~~Karin~~ Holm", "Kar\u00adin Ho\u00adlm", "Kar\u200bin\u200bHolm"),
    *("K\u200ba\u200br\u200bi\u200bn H\u2060olm", "Karin\ufe0f Holm", "\u202eKarin\u202c Holm", "Karin\x07Holm"),
    *("KarinHolm", "karin_holm", "KARIN-HOLM", "**K**arinHolm", "Karin\n> Holm", "Karin  \n\n- Holm"),
    *(
        "[[people/Karin|Karin]] [[people/Holm|Holm]]",
        "[[Karin Holm|her]]",
        "[[k|Karin]] Holm",
        "[Karin](a.md) [Holm](b.md)",
    ),
    *("Karin[^1] Holm", "[Karin][k] Holm", "<b>Karin</b> Holm", "<i>Ka</i>rin<br>Holm", "Karin <!-- Eva --> Holm"),
    *(
        "Karin&nbsp;Holm",
        "K&#97;rin Holm",
        "Karin&shy;Holm",
        "Karin%20Holm",
        "| Karin | Holm |",
        "Karin\\nHolm",
        "Ｋａｒｉｎ Ｈｏｌｍ",
    ),
    *("Karin-Holms bees", "[[Karin]] Holms bees", "<img alt='Karin Holm'>", "Karin. Holm is an island", "#KarinHolm"),
]
OTHERS = [
    *(
        "Karin and Holm",
        "Holm, Karin",
        "Karinholm",
        "Karin H. Olm",
        "Ka rin Holm",
        "Kar-in Holm",
        "Stockholm",
        "Karin Hol",
    ),
    *("Karin, *née* Holm", "Karin Eva Holm", "Karin then Holm"),
]


@pytest.mark.parametrize("form", CLOTHES)
def test_two_words_are_found_in_any_clothes(form):
    assert Wanted(texts=["Karin Holm"]).touches(f"we met {form} in Lund")


@pytest.mark.parametrize("other", OTHERS)
def test_two_words_are_not_found_in_others(other):
    assert not Wanted(texts=["Karin Holm"]).touches(f"we met {other} in Lund")


def test_numbers_and_single_letters_count_only_as_they_are_written():
    assert not any(Wanted(texts=[text]).touches("of 3, 5 and 13-57; a (b)") for text in ("3.5", "3 57", "a@b"))
    assert Wanted(texts=["3.5"]).touches("about 3.5") and Wanted(texts=["snake_case"]).touches("`snake_case`")


def test_in_any_clothes_they_go_from_every_place_and_do_not_come_back(home):
    root = Path(home.name)
    said = "".join(f"we met {form} in Lund\n\n" for form in CLOTHES)
    home.write("notes/people.md", f"# People\n\n{said}Nils stays\n")
    home.write("notes/later.md", "Lund\n")
    (root / "people.txt").write_text(f"{said}Nils stays\n", encoding="utf-8")
    (root / "people.bin").write_bytes(b"\0\1Karin_Holm\0Karin -- Holm\0" + "Karin-Holm".encode("utf-16-le") + b"\0Nils")
    with home.session(scope="main") as session:
        for form in CLOTHES:
            session.log("user", f"I know {form}")
        session.log("user", "Nils stays")
    done = home.forget(text="Karin Holm", purge=True)
    assert done.verified and done.left == ()

    text = home.read("notes/people.md").text
    assert "Holm" not in text and "Nils stays" in text and "Nils" in (root / "people.txt").read_text(encoding="utf-8")
    assert holding(root, ["Karin_Holm", "Karin-Holm", "**Ka**rin Holm", "[[k|Karin]] Holm", "KarinHolm"]) == []
    with home.session(scope="main") as session:
        kept = ["Karin_Holm", "KarinHolm", "**Ka**rin Holm", "[k](a.md)[Karin](b.md) [Holm](c.md)"]
        answers = [session.call("memory_write", {"target": "daily_log", "content": f"met {form}"}) for form in kept]
    assert {answer["rule"] for answer in answers} == {"forgotten"}


@given(
    st.lists(st.sampled_from(["ant", "bee", "cat", "dog"]), min_size=1, max_size=30),
    st.integers(0, 9),
    st.integers(1, 12),
)
def test_a_run_of_words_is_found_wherever_it_stands(words, start, length):
    run = words[start : start + length]
    found = Wanted(lines=[" ".join(run)] if run else [])
    for shape in (" ".join(words), "\n".join(f"- {word}," for word in words), " ".join(words).upper() + "!"):
        assert found.touches(shape) == bool(run)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("- [14:30] User: Ana likes tea\n", "Ana likes tea"),
        ("  * Ana  likes tea _(score=0.8)_ (since 2026-05-01)", "Ana likes tea"),
        ("## Ana likes tea", "Ana likes tea"),
        ("> 1. Ana likes tea", "Ana likes tea"),
        ("- [ ] Ana likes tea", "Ana likes tea"),
        ("\n", ""),
        ("Ana (since ever) likes tea", "Ana (since ever) likes tea"),
    ],
)
def test_what_a_line_says_is_told_without_its_clothes(line, said):
    assert said_in(line) == said


def test_what_hangs_below_a_bullet_goes_with_it_and_code_keeps_its_lines():
    text = "- gone\n  below\n    - deeper\n\n  after a blank\n- stays\n  below it\n```\n- gone\n  stays\n```\npara gone\nstays\n"
    assert cut(text, Wanted(texts=["gone"]).hits(text)) == "\n- stays\n  below it\n```\n  stays\n```\nstays\n"


def test_origins_are_the_ones_of_the_model():
    assert {"web", "tool", "skill", "peer"} <= set(Origin)


@pytest.mark.parametrize("program", ["anima", "/opt/python/anima/__main__.py", "/usr/bin/agent"])
def test_what_a_command_line_says_is_not_left_in_the_lock(tmp_path, monkeypatch, program):
    monkeypatch.setattr("sys.argv", [program, "forget", "hull number XJ-88213", "--purge"])
    with Home.create(tmp_path / "home") as home:
        home.remember("the hull number XJ-88213 is painted over", section="Boat")
        home.forget(text="hull number XJ-88213", purge=True)
        with home.site.store.lock():
            signed = (tmp_path / "home/.anima/lock").read_text()

    assert json.loads(signed)["command"] == ("agent" if program.endswith("agent") else "anima forget")
    assert not [path for path in (tmp_path / "home").rglob("*") if path.is_file() and b"XJ-88213" in path.read_bytes()]


# -- what stays -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "goes", "stays"),
    [
        (
            "rent",
            ["the rent is due", "pay **rent**", "rent_2026", "RENT.", "monthlyRent"],
            ["parentheses", "current", "rents"],
        ),
        ("été", ["l'été dernier"], ["étés"]),
        ("東京", ["昨日東京都へ行った"], ["京都"]),
        ("서울", ["서울에 산다"], ["부산에 산다"]),
        ("3.5", ["it costs 3.5 crowns"], ["it costs 13.5 crowns"]),
    ],
)
def test_a_word_is_found_as_a_word_where_words_have_ends(text: str, goes: list[str], stays: list[str]) -> None:
    wanted = Wanted(texts=[text])
    assert [line for line in goes if not wanted.touches(line)] == []
    assert [line for line in stays if wanted.touches(line)] == []


def test_what_every_home_says_stays(tmp_path: Path) -> None:
    with Home.create(tmp_path / "home", name="Aria", clock=Clock()) as home:
        before = home.read("USER.md").text
        home.remember("The boat's timezone is that of Gothenburg")
        done = home.forget(text="timezone")
        assert done.verified and "Gothenburg" not in home.read("MEMORY.md").text
        assert home.read("USER.md").text == before


def test_a_wish_to_forget_more_still_waits_when_a_part_of_it_is_forgotten(tmp_path: Path) -> None:
    with Home.create(tmp_path / "home", name="Aria", clock=Clock()) as home:
        home.remember("The rent in Berlin is 900")
        home.remember("The rent in Lund is 700")
        with home.session(scope=Scope.MAIN) as session:
            for text in ("rent", "rent in Berlin"):
                session.call("memory_forget", {"text": text})
        by_words = {each.forgets: each for each in home.inbox.all()}
        home.inbox.approve(
            by_words["rent in Berlin"].id, approver="terminal", content=by_words["rent in Berlin"].content
        )
        [left] = home.inbox.all()
        assert left.forgets == "rent" and "Lund" in left.diff and "Berlin" not in left.diff
        home.inbox.approve(left.id, approver="terminal", content=left.content)
        assert "rent" not in home.read("MEMORY.md").text


@pytest.mark.parametrize("how", [{}, {"purge": True}, {"dry_run": True}])
def test_a_session_that_nobody_knows_is_said_and_nothing_is_certified(home, how):
    with home.session(scope=Scope.MAIN) as session:
        session.log("user", "the heron nests in the boathouse")
    with pytest.raises(NoSuchSession, match="definitely-not: there is no such session"):
        home.forget(session="definitely-not", **how)
    assert home.forget(session=session.id, purge=True).verified


def test_a_session_without_a_transcript_is_known_by_what_it_wrote(home):
    home.configure("sessions.dir", "")
    with home.session(scope=Scope.MAIN) as session:
        session.call("memory_write", {"target": "memory", "content": "The heron nests in the boathouse"})
    home.undo(session=session.id)
    assert home.forget(session=session.id).done


def test_files_that_are_larger_than_a_document_may_be_are_looked_through_too(tmp_path: Path) -> None:
    other, state = tmp_path / "home/export.csv", tmp_path / "home/.anima/index.sqlite"
    with Home.create(tmp_path / "home", name="Aria", clock=Clock()) as home:
        home.remember("She has a Samsung")
        other.write_bytes(b"," * MAX_BYTES + b"\nSamsung\nlast\n")
        home.index()
        with state.open("ab") as file:
            file.write(bytes(MAX_BYTES))
        done = home.forget(text="Samsung", purge=True)

    assert (done.verified, done.left) == (True, ())
    assert other.read_bytes() == b"," * MAX_BYTES + b"\nlast\n"
    assert f"files of more than {MOST_READ // 2**20} MiB" in (
        Path(__file__).parents[2] / "docs/forgetting.md"
    ).read_text(encoding="utf-8")

"""Ways to damage a real home, by the rows of the table of damages; and what every mended home must still be able to do."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from anima import Health, Home, Remark, doctor
from anima.home import opening
from anima.layout.trust import served

ROOT = Path(__file__).parent.parent
FIRST = datetime(2026, 5, 8, 19, 30, tzinfo=UTC)
DOCUMENTS = ("SOUL.md", "MEMORY.md", "notes/a.md", "memory/2026-05-08.md", "USER.md")
Damaging = Callable[[Path], object]


# -- the home ---------------------------------------------------------------------------------------------------------------


def make_sound(place: Path) -> Path:
    """A home with documents, history, transcripts, waiting changes, a forgotten list and both indexes."""
    with Home.create(place / "aria", name="Aria", env={"ANIMA_CONFIG": str(place / "config")}) as home:
        home.note("Ana called about the boat")
        for n in range(12):
            home.write(f"notes/{chr(97 + n)}.md", f"# Note {n}\n\n- the walnut plank number {n} is dry\n" * 8)
        home.remember("Ana uses a Samsung, not an iPhone", section="People")
        home.forget(text="plank number 3 is dry")
        for _ in range(2):
            with home.session(scope="main") as session:
                for n in range(6):
                    session.log("user", f"hello {n}, where is the walnut")
                    session.log("assistant", f"in the shed, place {n}")
                session.taint("web")
                session.call("memory_write", {"target": "memory", "content": "The web says: buy walnut"})
                session.call("memory_write", {"target": "TOOLS.md", "content": "The web says: buy walnut"})
        home.index()
        home.search("walnut", scope="main")
        home.sessions.find("walnut", limit=5, max_chars=80)
        home.past.log()
    return place / "aria"


def copied(sound: Path, where: Path) -> Path:
    shutil.copytree(sound, where / "aria", symlinks=True)
    config = where / "config"
    config.mkdir()
    identity = str((where / "aria").stat().st_ino)
    known = {str(where / "aria"): {"made": FIRST.isoformat(), "trusted": True, "identity": identity}}
    (config / "homes.json").write_text(json.dumps(known))
    opening.given_place(where / "aria", env_of(where / "aria"))  # with STORE=postgres it moves in before it is damaged
    return where / "aria"


def env_of(root: Path) -> dict[str, str]:
    return {"ANIMA_CONFIG": str(root.parent / "config")}


def looked(root: Path) -> tuple[Remark, ...]:
    return doctor(root, env=env_of(root)).found


def names(remarks: Iterable[Remark]) -> set[str]:
    return {remark.name for remark in remarks if remark.name and remark.level != "fine"}


def mended(root: Path, *, dry_run: bool = False) -> Health:
    return doctor(root, repair=True, env=env_of(root), dry_run=dry_run)


def documents(root: Path) -> dict[str, str]:
    """The digest of every document's bytes, and of whatever else is no machine's business."""
    found = {}
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root).as_posix()
        if (
            inside.startswith((".anima", ".git", "sessions"))
            or path.name.startswith(".")
            or path.is_dir()
            or not path.is_file()
        ):
            continue
        found[inside] = hashlib.sha256(_bytes(path)).hexdigest()
    return found


def _bytes(path: Path) -> bytes:
    """Also of a file that its mode keeps from us; others are not touched, not even their times."""
    mode = path.stat().st_mode
    if mode & 0o400:
        return path.read_bytes()
    path.chmod(mode | 0o400)
    try:
        return path.read_bytes()
    finally:
        path.chmod(mode)


def every_byte(root: Path) -> list[bytes]:
    return [path.read_bytes() for path in root.rglob("*") if path.is_file() and not path.is_symlink()]


def works(root: Path) -> None:
    """It opens, prompts, finds, takes a write, and its ledger can be verified."""
    with Home.open(root, env=env_of(root)) as home:
        assert home.prompt(scope="main").text
        home.remember(f"the heron stood by the lock {len(every_byte(root))}", section="Birds")
        home.index()
        assert home.search("heron", scope="main")
        assert home.past.audit().ok, home.past.audit()
        assert home.past.log(limit=1)
        home.inbox.all()
        home.sessions.find("walnut", limit=5, max_chars=80)


# -- how each is done -------------------------------------------------------------------------------------------------------


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x20
    mode = path.stat().st_mode
    path.chmod(0o600)
    path.write_bytes(data)
    path.chmod(mode)


def cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def instead(path: Path, make: Callable[[Path], object]) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()
    make(path)


def ledger(root: Path) -> Path:
    return root / ".anima/ledger.jsonl"


def lines(root: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    ledger(root).write_bytes(b"".join(change(ledger(root).read_bytes().splitlines(keepends=True))))


def objects(root: Path) -> list[Path]:
    return sorted(path for path in (root / ".git/objects").rglob("*") if path.is_file() and len(path.parent.name) == 2)


def object_of(root: Path, path: str) -> Path:
    name = subprocess.run(
        ["git", "-C", root, "rev-parse", f"main:{path}"], capture_output=True, text=True, check=True
    ).stdout
    return root / ".git/objects" / name[:2] / name.strip()[2:]


def damage_object(root: Path) -> None:
    path = object_of(root, "notes/a.md")
    path.chmod(0o600)
    flip(path, path.stat().st_size // 2)


def packed(root: Path) -> Path:
    subprocess.run(["git", "-C", root, "gc", "-q", "--prune=now"], check=True)
    return next((root / ".git/objects/pack").glob("*.pack"))


def main_of(root: Path) -> Path:
    return root / ".git/refs/heads/main"


def old(path: Path, data: bytes = b"") -> None:
    path.write_bytes(data)
    os.utime(path, (1_700_000_000, 1_700_000_000))


def index(root: Path) -> Path:
    return root / ".anima/index.sqlite"


def zero_page(root: Path) -> None:
    with index(root).open("r+b") as file:
        file.seek(4096 * 3)
        file.write(bytes(4096))


def damage_page(root: Path) -> None:
    with index(root).open("r+b") as file:
        for page in (2, 3, 5):
            file.seek(4096 * page)
            file.write(b"\xff" * 60)


def change_text(root: Path) -> None:
    with Home.open(root, env=env_of(root)) as home:
        home.index()  # a copy of a home is another home: its index is late at first
    data = index(root).read_bytes()
    assert b"walnut plank number 1 is dry" in data
    index(root).write_bytes(data.replace(b"walnut plank number 1 is dry", b"walnut plank number 1 is wet"))


def other_format(root: Path) -> None:
    db = sqlite3.connect(index(root))
    db.execute("pragma user_version = 99")
    db.commit()
    db.close()


def killed(root: Path, code: str) -> None:
    """Runs something in a process that dies in the middle."""
    text = f"import os, signal\nfrom anima import Home\nhome = Home.open({str(root)!r})\n{code}\nos.kill(os.getpid(), signal.SIGKILL)\n"
    env = {**os.environ, **env_of(root), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", text], env=env, check=False, capture_output=True)


def index_left_open(root: Path) -> None:
    killed(root, "home.write('notes/z.md', 'new\\n')\nhome.index()\nhome.search('walnut', scope='main')")
    assert index(root).with_name("index.sqlite-wal").exists()


def without_memory(root: Path) -> None:
    index_left_open(root)
    index(root).with_name("index.sqlite-shm").unlink()


def interrupt(root: Path) -> None:
    """A change that was announced and staged, and not one step more."""
    killed(
        root,
        "home.site.store.ledger\nhome._writer\nfrom anima.store.batch import Batches\n"
        "Batches.do = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        "home.write('notes/q.md', 'half\\n')",
    )
    assert b'"kind":"intent"' in ledger(root).read_bytes().splitlines()[-1]


def transcript(root: Path) -> Path:
    return sorted((root / "sessions").glob("*.jsonl"))[0]


def wipe(root: Path) -> None:
    for path in root.iterdir():
        if not path.name.startswith("."):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def foreign_git(root: Path) -> None:
    shutil.rmtree(root / ".git")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    with Home.open(root, env=env_of(root)) as home:
        home.note("history goes on elsewhere")


def unmarked(root: Path) -> None:
    foreign_git(root)
    instead(
        root / ".anima/history.git", lambda path: subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True)
    )


def newer(root: Path) -> None:
    from anima.ledger import ORIGINAL, Key, sealed

    key, first = Key((root / ".anima/key").read_bytes()), json.loads(ledger(root).read_bytes().splitlines()[0])
    fields = {name: first[name] for name in ("id", "key")} | {"format": 99}
    ledger(root).write_bytes(sealed(1, first["t"], "home", fields, prev=ORIGINAL, key=key)[1])
    shutil.rmtree(root / ".git")


def future(root: Path) -> None:
    later = datetime.now(UTC) + timedelta(days=400)
    with Home.open(root, env=env_of(root), clock=lambda: later) as home:
        home.note("from the future")


def rewrite(root: Path) -> None:
    """A ledger that hangs together, made by somebody who has the key, and is not the one history knows."""
    from anima.ledger import ORIGINAL, Key, sealed

    key, rows, prev = Key((root / ".anima/key").read_bytes()), [], ORIGINAL
    for line in ledger(root).read_bytes().splitlines():
        raw = json.loads(line)
        own = {name: raw.pop(name) for name in ("n", "t", "kind", "prev", "hash")}
        if own["n"] == 4:
            raw["actor"] = "importer"
        record, data = sealed(own["n"], own["t"], own["kind"], raw, prev=prev, key=key)
        rows.append(data)
        prev = record.hash
    ledger(root).write_bytes(b"".join(rows))


def a_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def conflict(root: Path) -> None:
    (root / "notes/a.md").write_text("# A\n<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> other\n")


def tokens(root: Path) -> Path:
    folder = served(env_of(root), str(root))
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "passes.json"


def proposal(root: Path) -> Path:
    return sorted((root / ".anima/pending").glob("p*.json"))[0]


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


def untrusted_line(home: Home, path: str, text: str) -> None:
    """Writes lines of the web's by the road that keeps such lines."""
    from anima.model import Actor, Change, DocPath, Kind, Origin, Scope

    change = Change(
        path=DocPath.parse(path),
        kind=Kind.APPEND,
        text=text,
        actor=Actor.AGENT,
        origin=Origin.WEB,
        scope=Scope.MAIN,
        taint=frozenset({Origin.WEB}),
    )
    (receipt,) = home._writer.submit([change], what="write")
    assert receipt.status == "noted", receipt


# Each way to damage a home, by a name of its own, and the row of the table that it is.
WAYS: dict[str, tuple[str, list[Damaging]]] = {
    "home-vanished": ("home-gone", [shutil.rmtree]),
    "home-empty": ("home-gone", [lambda root: instead(root, Path.mkdir)]),
    "home-wiped": ("home-wiped", [wipe]),
    "home-not-a-folder": ("home-gone", [lambda root: instead(root, lambda path: path.write_text("x"))]),
    "home-owner": ("not-yours", [lambda root: os.chown(root, 12345, 12345)]),
    "config-broken": (
        "config-broken",
        [
            lambda root: (root / "anima.toml").write_text("dialect = [broken"),
            lambda root: (root / "anima.toml").write_text("dialect = 'klingon'\n"),
            lambda root: (root / "anima.toml").write_bytes(b"\xff\xfe\x00"),
        ],
    ),
    "config-not-a-file": (
        "config-broken",
        [
            lambda root: instead(root / "anima.toml", Path.mkdir),
            lambda root: instead(root / "anima.toml", os.mkfifo),
            lambda root: instead(root / "anima.toml", lambda path: path.symlink_to("/etc/hostname")),
        ],
    ),
    "machine-unreadable": (
        "unreadable",
        [
            lambda root: (root / ".anima").chmod(0),
            lambda root: (root / ".anima/ledger.jsonl").chmod(0),
            lambda root: (root / ".anima/key").chmod(0),
            lambda root: (root / ".git").chmod(0),
            lambda root: [path.chmod(0) for path in (root / ".git/objects/pack", root / ".git/objects")],
        ],
    ),
    "machine-missing": ("ledger-missing", [lambda root: shutil.rmtree(root / ".anima")]),
    "machine-not-a-folder": (
        "machine-broken",
        [
            lambda root: instead(root / ".anima", lambda path: path.write_text("a file")),
            lambda root: instead(root / ".anima", os.mkfifo),
        ],
    ),
    "machine-link": (
        "machine-broken",
        [lambda root: instead(root / ".anima", lambda path: path.symlink_to("/nowhere/at/all"))],
    ),
    "machine-not-a-file": (
        "machine-broken",
        [
            lambda root: instead(ledger(root), Path.mkdir),
            lambda root: instead(root / ".anima/lock", Path.mkdir),
            lambda root: instead(root / ".anima/lock", os.mkfifo),
            lambda root: instead(index(root), lambda path: path.symlink_to("/etc/hostname")),
            lambda root: instead(root / ".anima/stage", lambda path: path.write_text("x")),
            lambda root: os.link(ledger(root), root.parent / "second-name"),
        ],
    ),
    "batch-interrupted": ("batch-interrupted", [interrupt]),
    "proposal-broken": (
        "proposal-broken",
        [
            lambda root: proposal(root).write_text("{"),
            lambda root: proposal(root).write_text(proposal(root).read_text().replace("buy walnut", "buy gold")),
            lambda root: (root / ".anima/pending/p9.json").write_bytes(b"\xff" * 40),
        ],
    ),
    "forgotten-broken": (
        "forgotten-broken",
        [
            lambda root: (root / ".anima/forgotten").write_text("[1,2"),
            lambda root: (root / ".anima/forgotten").write_text('{"format": 1, "phrases": [["x", 1, 2]]}'),
        ],
    ),
    "ledger-torn": ("torn", [lambda root: cut(ledger(root), ledger(root).stat().st_size - 9)]),
    "ledger-altered": ("ledger-damaged", [lambda root: flip(ledger(root), ledger(root).stat().st_size // 2)]),
    "ledger-unlinked": (
        "ledger-damaged",
        [
            lambda root: lines(root, lambda all: [*all[:6], *all[7:]]),
            lambda root: lines(root, lambda all: [*all[:6], all[7], all[6], *all[8:]]),
            lambda root: lines(root, lambda all: [*all[:6], all[5], *all[6:]]),
        ],
    ),
    "ledger-headless": (
        "ledger-damaged",
        [lambda root: lines(root, lambda all: all[1:]), lambda root: flip(ledger(root), 40)],
    ),
    "ledger-cut": ("ledger-damaged", [lambda root: lines(root, lambda all: all[:8])]),
    "ledger-rewritten": ("ledger-damaged", [rewrite]),
    "ledger-missing": ("ledger-missing", [lambda root: ledger(root).unlink(), lambda root: cut(ledger(root), 0)]),
    "ledger-format": ("ledger-format", [newer]),
    "key-missing": ("key-damaged", [lambda root: (root / ".anima/key").unlink()]),
    "key-replaced": ("key-damaged", [lambda root: (root / ".anima/key").write_bytes(b"k" * 32)]),
    "key-broken": (
        "key-damaged",
        [
            lambda root: (root / ".anima/key").write_bytes(b"short"),
            lambda root: (root / ".anima/key").write_bytes(bytes(32)),
        ],
    ),
    "history-lock": (
        "history-damaged",
        [lambda root: old(root / ".git/index.lock"), lambda root: old(root / ".git/refs/heads/main.lock")],
    ),
    "history-head-broken": (
        "history-damaged",
        [
            lambda root: (root / ".git/HEAD").write_bytes(b"\x00garbage"),
            lambda root: (root / ".git/HEAD").unlink(),
        ],
    ),
    "history-broken": (
        "history-damaged",
        [
            lambda root: main_of(root).unlink(),
            lambda root: main_of(root).write_text("f" * 40 + "\n"),
            lambda root: main_of(root).write_text("nothing\n"),
            lambda root: main_of(root).write_bytes(b""),
            lambda root: object_of(root, "notes/a.md").unlink(),
            lambda root: object_of(root, "notes").unlink(),
            damage_object,
            lambda root: os.truncate(packed(root), packed(root).stat().st_size - 30),
            lambda root: flip(packed(root), 100),
            lambda root: packed(root).unlink(),
        ],
    ),
    "history-unsafe": (
        "history-damaged",
        [
            lambda root: (root / ".git/objects/zz").symlink_to("/etc"),
            lambda root: instead(root / ".git/objects", lambda path: path.write_text("x")),
            lambda root: os.mkfifo(root / ".git/objects/pack/pack-x.pack"),
        ],
    ),
    "history-gone": ("history-damaged", [lambda root: shutil.rmtree(root / ".git")]),
    "history-unmarked": ("history-damaged", [unmarked]),
    "index-damaged": (
        "index-damaged",
        [
            lambda root: index(root).write_bytes(b"my own poem\n" * 700),
            lambda root: cut(index(root), 4096 * 4),
            lambda root: cut(index(root), 5000),
            lambda root: cut(index(root), 50),
            zero_page,
            damage_page,
            change_text,
            without_memory,
            other_format,
        ],
    ),
    "talks-damaged": (
        "index-damaged",
        [
            lambda root: (root / ".anima/talks.sqlite").write_bytes(b"x" * 9000),
            lambda root: cut(root / ".anima/talks.sqlite", 5000),
        ],
    ),
    "transcript-torn": ("torn", [lambda root: cut(transcript(root), transcript(root).stat().st_size - 7)]),
    "transcript-damaged": (
        "transcript-damaged",
        [lambda root: flip(transcript(root), transcript(root).read_bytes().index(b'"content"'))],
    ),
    "document-not-utf8": ("document-not-text", [lambda root: (root / "notes/a.md").write_bytes(b"caf\xe9\n")]),
    "document-too-large": ("document-not-text", [lambda root: os.truncate(root / "notes/a.md", 9 * 2**20)]),
    "document-nul": ("document-not-text", [lambda root: (root / "MEMORY.md").write_bytes(b"# Memory\n\n- a\x00b\n")]),
    "document-conflict": ("document-conflict", [conflict]),
    "document-twins": ("document-twins", [lambda root: (root / "soul.md").write_text("another soul\n")]),
    "document-unreadable": ("unreadable", [lambda root: (root / "notes/a.md").chmod(0)]),
    "document-owner": ("not-yours", [lambda root: os.chown(root / "notes/a.md", 12345, 12345)]),
    "folder-unreadable": ("unreadable", [lambda root: (root / "notes").chmod(0)]),
    "tokens-broken": ("user-file-broken", [lambda root: tokens(root).write_text("{")]),
    "register-broken": ("user-file-broken", [lambda root: (root.parent / "config/homes.json").write_text("[")]),
    "modes": ("modes", [lambda root: (root / "SOUL.md").chmod(0o644), lambda root: root.chmod(0o755)]),
    "machine-modes": ("modes", [lambda root: ledger(root).chmod(0o644), lambda root: (root / ".anima").chmod(0o755)]),
    "machine-foreign": ("foreign-file", [lambda root: (root / ".anima/shopping.txt").write_text("milk")]),
    "stage-leftover": (
        "leftover",
        [lambda root: (root / ".anima/stage/0123456789abcdef").write_text("staged and never used")],
    ),
    "temp-leftover": (
        "leftover",
        [lambda root: shutil.copytree(root / ".git", root / ".git.new")],
    ),
    "history-other-branch": (
        "history-head",
        [
            lambda root: (root / ".git/HEAD").write_text("ref: refs/heads/other\n"),
            lambda root: (root / ".git/HEAD").write_text(main_of(root).read_text()),
        ],
    ),
    "history-foreign": ("history-foreign", [foreign_git]),
    "history-busy": ("history-busy", [lambda root: (root / ".git/index.lock").write_bytes(b"")]),
    "sessions-foreign": (
        "foreign-file",
        [
            lambda root: (root / "sessions/holiday.jpg").write_bytes(b"\xff\xd8"),
            lambda root: (root / "sessions/notes.jsonl").write_text("just\nsome\nlines\n"),
        ],
    ),
    "sweep-state-broken": ("list-damaged", [lambda root: (root / "memory/.consolidation_state").write_text("{")]),
    "document-link": (
        "document-not-a-file",
        [lambda root: instead(root / "USER.md", lambda path: path.symlink_to("/etc/hostname"))],
    ),
    "document-folder": ("document-not-a-file", [lambda root: instead(root / "TOOLS.md", Path.mkdir)]),
    "document-special": (
        "document-not-a-file",
        [lambda root: os.mkfifo(root / "notes/pipe.md"), lambda root: a_socket(root / "notes/s.md")],
    ),
    "document-emptied": ("document-emptied", [lambda root: (root / "MEMORY.md").write_bytes(b"")]),
    "document-hardlinked": (
        "document-hardlinked",
        [lambda root: os.link(root / "notes/a.md", root.parent / "second.md")],
    ),
    "clock-backwards": (
        "clock-backwards",
        [future, lambda root: (root / "memory/2099-01-01.md").write_text("# later\n")],
    ),
}

HOW: dict[str, list[Damaging]] = {name: ways for name, (_, ways) in WAYS.items()}
ROW = {name: row for name, (row, _) in WAYS.items()}


def reopen(place: Path) -> None:
    """So that whoever clears up after the tests can."""
    for path in [place, *place.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)

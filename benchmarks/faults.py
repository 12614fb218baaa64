"""Does a home survive everything that can happen to a process and its disk in the middle of a write?

Every operation is interrupted at its first call that touches a file, at its second, and so on until it completes: by
SIGKILL, by a write torn in two, by an error (EIO, ENOSPC, EDQUOT, EMFILE, a failing fsync; once, or from there on), by
a short write; then the same kills by strace, which sees every system call; then a disk that is really full. After each
the home is opened again and must be old or new and nothing else, with every acknowledged change in it.

    python benchmarks/faults.py            the long form: at least 2,000 kills
    python benchmarks/faults.py --short    a sample of it, as in `make test`

Needs a C compiler (faults.c is loaded before libc and does the failing) or strace; says loudly what it had to leave out.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import gc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from anima import Home, Scope, restore
from anima.errors import Damaged, HomeError
from anima.memory.write import owners
from anima.model import DocPath, Kind
from anima.store import blob_id

HERE = Path(__file__).resolve().parent
SHIM = "ANIMA_FAULTS_SHIM"
READ, LOOK, MAKE, WRITE, SYNC, NAME, META = 1, 2, 4, 8, 16, 32, 64  # kinds of calls, as in faults.c
OFF, KILL, TEAR, FAIL, SHORT = range(5)
CHANGING = MAKE | WRITE | SYNC | NAME | META
ALL = CHANGING | LOOK | READ
NOW = datetime(2026, 5, 8, 14, 30, tzinfo=UTC)
PATIENCE = 60
LATER = "later.md"  # what is written afterwards, to see that the home still works

Docs = dict[str, bytes]


# -- what is done -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Something that writes. `prepare` makes the home it is done in, `act` does it and returns when it is done."""

    name: str
    prepare: Callable[[Home], None]
    act: Callable[[Home], object]
    undoable: bool = True  # `undo` afterwards brings the documents of before back
    cold: bool = False  # opening the home is a part of it
    selective: bool = False  # what the disk does not give is left out and named; each document by itself is old or new
    wish: str = ""  # words that may wait in a card in place of standing in a document


def opened(folder: Path) -> Home:
    return Home.open(folder, env={"ANIMA_CONFIG": f"{folder}.config"}, clock=lambda: NOW, dice=random.Random(7))


def _documents(home: Home) -> None:
    home.write("notes/a.md", "# A\n\n- first\n- second\n")
    home.write("notes/b.md", "# B\n\n- one\n")
    home.append("memory/2026-05-08.md", "- [09:00] woke up\n")


def _proposal(home: Home) -> None:
    _documents(home)
    with home.session(scope=Scope.MAIN) as session:
        session.taint("web")
        session.call("memory_write", {"target": "TOOLS.md", "content": "- Ana uses a Samsung"})


def _written(home: Home) -> None:
    _documents(home)
    home.write("notes/a.md", "# A\n\n- first\n- second, changed\n")


def _batch(home: Home) -> object:
    one, two, three, new = (DocPath.parse(p) for p in ("notes/a.md", "notes/b.md", "AGENTS.md", "deep/er/c.md"))
    changes = [
        owners(one, Kind.WRITE, "# A\n\n- all new\n"),
        owners(two, Kind.MOVE, to=DocPath.parse("moved/b.md")),
        owners(new, Kind.WRITE, "# C\n\n- made\n", base=""),
        owners(three, Kind.DELETE),
        owners(DocPath.parse("memory/2026-05-08.md"), Kind.APPEND, "- [10:00] in a batch\n"),
    ]
    return home._writer.submit(changes)


def _untidy(home: Home) -> None:
    _documents(home)
    Path(home.name, "notes/untidy.md").write_bytes(b"- no line end")
    home.write("notes/untidy.md", "- still no line end")


def _session(home: Home) -> None:
    _documents(home)
    with home.session(scope=Scope.MAIN) as session:
        for target in ("notes/a.md", "notes/s.md", "memory/2026-05-08.md"):
            session.call("memory_write", {"target": target, "content": "- from the session\n"})


def _undo_session(home: Home) -> object:
    return home.undo(session=next(entry.session for entry in home.past.changes() if entry.session))


def _propose(home: Home) -> object:
    """A wish of a group's: it is noted, or, where that cannot be, a card asks the owner, and the group is told the same."""
    session = home.session(scope=Scope.GROUP)
    answer = session.call("memory_write", {"target": "notes/a.md", "content": "- a wish\n"})
    _afterwards(session.close)
    return _answered(answer, "noted")


def _say(home: Home) -> object:
    """A line of the owner's, a call that writes, the agent's line, and the end."""
    session = home.session(scope=Scope.MAIN)
    session.log("user", "which list has room?")
    answer = session.call("memory_write", {"target": "notes/a.md", "content": "- from the session\n"})
    _afterwards(lambda: session.log("assistant", "the first"))
    _afterwards(session.close)
    return _answered(answer, "written")


def _answered(answer: dict[str, Any], status: str) -> object:
    if answer["status"] != status:
        raise Damaged(f"it was not {status}: {answer}")
    return answer


def _afterwards(work: Callable[[], object]) -> None:
    """What may go wrong once the answer was given; but it may not say that nothing was changed, for something was."""
    try:
        work()
    except HomeError as error:
        if str(error).endswith("nothing was changed"):
            raise AssertionError(f"it changed something, and says: {error}") from error


def _restore(home: Home) -> object:
    revisions = home.past.log("notes/a.md")
    if len(revisions) < 2:
        raise Damaged("history did not tell")
    return home.past.restore("notes/a.md", at=revisions[1].id)


def _append_and_close(home: Home) -> None:
    home.append("memory/2026-05-08.md", "- [11:00] late\n")
    home.close()


def _recalled(home: Home) -> None:
    _documents(home)
    home.append("memory/2026-05-01.md", "- [09:00] Ana is allergic to peanuts\n")
    home.append("memory/2026-05-02.md", "## Retain\n\n- W @Ana: Uses a Samsung.\n")
    digest = home.site.store.key.line("- [09:00] Ana is allergic to peanuts")
    hits = [{"path": "memory/2026-05-01.md", "lines": [digest], "rank": 1, "score": 0.9}]
    for day in ("2026-05-02", "2026-05-03", "2026-05-04"):
        home.site.store.append("recall", {"query": day, "hits": hits, "session": "s", "scope": "main", "day": day})


def _source(home: Home) -> Path:
    return Path(home.name).parent / "import-source"


def _importable(home: Home) -> None:
    _documents(home)
    for name in ("notes/a.md", "notes/new.md", "deep/er/c.md", "users/ana/MEMORY.md"):
        (_source(home) / name).parent.mkdir(parents=True, exist_ok=True)
        (_source(home) / name).write_text(f"# {name}\n\n- came in\n")


def _kept(home: Home) -> None:
    _documents(home)
    home.snapshots.take(label="kept")
    home.write("notes/a.md", "# A\n\n- changed since\n")
    home.delete("notes/b.md")
    home.write("new/c.md", "# C\n\n- made since\n")


def _swap(home: Home) -> object:
    home.close()
    kept = next(path for path in Path(home.name, ".anima/snapshots").iterdir() if "-kept-" in path.name)
    return restore(kept, home.name, env=home.site.env, clock=lambda: NOW)


def _import(home: Home) -> object:
    """What was left out was told, and so it was not acknowledged."""
    found = home.import_from(_source(home), replace=True, mine=True)
    if found.left_out:
        raise Damaged("; ".join(f"{path}: {why}" for path, why in found.left_out))
    return found


OPERATIONS = (
    Operation(name="write", prepare=_documents, act=lambda home: home.write("notes/a.md", "# A\n\n- other\n")),
    Operation(name="write-new", prepare=_documents, act=lambda home: home.write("x/y/z.md", "# Z\n", base="")),
    Operation(
        name="append", prepare=_documents, act=lambda home: home.append("memory/2026-05-08.md", "- [10:00] ate\n")
    ),
    Operation(name="append-long", prepare=_documents, act=lambda home: home.append("notes/a.md", "- long\n" * 9000)),
    Operation(
        name="append-untidy", prepare=_untidy, act=lambda home: home.append("notes/untidy.md", "- more\n- again\n")
    ),
    Operation(name="note", prepare=_documents, act=lambda home: home.note("Reviewed the plan")),
    Operation(
        name="remember", prepare=_documents, act=lambda home: home.remember("Ana uses a Samsung", section="People")
    ),
    Operation(name="move", prepare=_documents, act=lambda home: home.move("notes/a.md", "kept/a.md")),
    Operation(name="delete", prepare=_documents, act=lambda home: home.delete("notes/a.md")),
    Operation(name="batch", prepare=_documents, act=_batch),
    Operation(name="dream", prepare=_recalled, act=lambda home: home.dream()),
    Operation(name="propose", prepare=_documents, act=_propose, undoable=False, wish="a wish"),
    Operation(name="say", prepare=_documents, act=_say, undoable=False),
    Operation(name="approve", prepare=_proposal, act=lambda home: home.inbox.approve(home.inbox.all()[0].id)),
    Operation(name="deny", prepare=_proposal, act=lambda home: home.inbox.deny(home.inbox.all()[0].id), undoable=False),
    Operation(name="undo", prepare=_written, act=lambda home: home.undo(), undoable=False),
    Operation(name="undo-session", prepare=_session, act=_undo_session, undoable=False),
    Operation(name="restore", prepare=_written, act=_restore),
    Operation(name="import", prepare=_importable, act=_import, selective=True),
    Operation(name="close", prepare=_documents, act=_append_and_close, undoable=False),
    Operation(name="snapshot", prepare=_documents, act=lambda home: home.snapshots.take(), undoable=False),
    Operation(name="swap", prepare=_kept, act=_swap, undoable=False),
)
THE_SEVEN = ("write", "append", "move", "delete", "batch", "approve", "undo")  # those the design names
IN_SHORT = (*THE_SEVEN, "dream", "say", "import", "snapshot", "swap")


# -- templates --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Case:
    """One operation with the home it starts from, and the documents before and after it."""

    operation: Operation
    folder: Path
    before: Docs
    after: Docs


def snapshot(folder: Path) -> Docs:
    """Every document, by path; what was said in a session stands by itself, and no change brings it back."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    found = {path.relative_to(folder).as_posix(): path for path in files}
    apart = (".", "sessions/")
    return {
        name: path.read_bytes() for name, path in sorted(found.items()) if not name.startswith(apart) and name != LATER
    }


def everything(folder: Path) -> Docs:
    """Every file, hidden ones too, except the one that says who holds the lock."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def prepared(operation: Operation, place: Path) -> Case:
    folder = place / f"template-{operation.name}"
    home = Home.create(folder, name="Aria", env={"ANIMA_CONFIG": f"{folder}.config"}, clock=lambda: NOW)
    operation.prepare(home)
    home.close()
    done = copied(folder, place / "done")
    home = opened(done)
    operation.act(home)
    home.close()
    case = Case(operation=operation, folder=folder, before=snapshot(folder), after=snapshot(done))
    discard(done)
    return case


def copied(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to, symlinks=True)
    return to


def discard(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


# -- one trial --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong, and at which call."""

    mode: int = OFF
    n: int = 0
    error: int = 0
    kinds: int = CHANGING
    sticky: bool = False

    @property
    def what(self) -> str:
        name = {KILL: "kill", TEAR: "torn write", SHORT: "short write", OFF: "nothing"}.get(self.mode)
        return name or f"{errno.errorcode[self.error]}{' from then on' if self.sticky else ''}"

    def arm(self) -> None:
        if self.mode != OFF:
            shim().faults_arm(self.n, self.mode, self.error, self.kinds, int(self.sticky))

    def disarm(self) -> tuple[int, str]:
        if self.mode == OFF:
            return 0, ""
        return int(shim().faults_disarm()), shim().faults_hit().decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the process said before it ended."""

    ended: bool  # it came to its end, with an answer or an error
    acknowledged: bool = False
    error: str = ""
    is_ours: bool = True  # the error, if there was one, is of our tree
    calls: int = 0
    hit: str = ""
    hung: bool = False


def shim() -> ctypes.CDLL:
    library = ctypes.CDLL(None)
    library.faults_arm.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int]
    library.faults_disarm.restype = ctypes.c_long
    library.faults_hit.restype = ctypes.c_char_p
    return library


def child(operation: Operation, folder: Path, fault: Fault, answer: int, go: int | None) -> None:
    """Runs in a process of its own: opens the home, waits for `go`, does the operation, says what became of it."""
    signal.alarm(PATIENCE)
    home = None if operation.cold else opened(folder)
    if go is not None:
        os.read(go, 1)
    said: dict[str, object] = {}
    fault.arm()
    try:
        home = home or opened(folder)
        operation.act(home)
        said["acknowledged"] = True
    except BaseException as error:
        said.update(error=f"{type(error).__name__}: {error}", is_ours=isinstance(error, HomeError))
    said["calls"], said["hit"] = fault.disarm()
    if (
        fault.mode in (FAIL, SHORT) and home and home.site.store.documents.fd >= 0
    ):  # the same process must be able to go on
        home.write(LATER, "# Later\n")
        home.close()
    os.write(answer, json.dumps(said).encode())


def attempt(operation: Operation, folder: Path, fault: Fault = Fault(), tracer: list[str] | None = None) -> Outcome:  # noqa: B008
    out, answer = os.pipe()
    wait, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(out), os.close(go)
            child(operation, folder, fault, answer, wait if tracer else None)
            code = 0
        except BaseException as error:
            os.write(answer, json.dumps({"error": f"afterwards: {error!r}", "is_ours": False}).encode())
        finally:
            os._exit(code)
    os.close(answer), os.close(wait)
    watching = traced(pid, tracer) if tracer else None
    os.write(go, b"g") if tracer else None
    with open(out, "rb") as pipe:
        raw = pipe.read()
    os.close(go)
    status = os.waitpid(pid, 0)[1]
    if watching:
        watching.wait()
    hung = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
    return Outcome(ended=True, **json.loads(raw)) if raw else Outcome(ended=False, hung=hung)


def traced(pid: int, options: list[str]) -> subprocess.Popen[bytes]:
    """strace, attached to a waiting process."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        ["strace", "-f", "-qq", "-o", "/dev/null", *options, "-p", str(pid)], stdin=quiet, stdout=quiet, stderr=quiet
    )
    while "TracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text():
        if process.poll() is not None:
            os.kill(pid, signal.SIGKILL)
            raise RuntimeError("strace cannot attach to a process of ours")
        time.sleep(0.0005)
    return process


# -- what must hold afterwards ----------------------------------------------------------------------------------------


def problems(case: Case, folder: Path, outcome: Outcome, fault: Fault) -> Iterator[str]:
    """Everything that is wrong with a home after a fault."""
    if outcome.hung:
        yield f"it did not end within {PATIENCE} seconds"
    if outcome.error and not outcome.is_ours:
        yield f"a foreign error came out: {outcome.error}"
    home = opened(folder)
    try:
        yield from _after_recovery(case, home, outcome, fault)
    except HomeError as error:
        yield f"afterwards: {type(error).__name__}: {error}"
    finally:
        home.close()
    yield from _second_opening(folder)
    yield from _still_works(case, folder)


def _after_recovery(case: Case, home: Home, outcome: Outcome, fault: Fault) -> Iterator[str]:
    home.site.store.provenance  # noqa: B018  the first question to the books finishes what was interrupted
    docs = snapshot(Path(home.name))
    state = "old" if docs == case.before else "new" if docs == case.after else "mixed"
    if state == "mixed" and not (case.operation.selective and outcome.error and _each_is_whole(case, docs)):
        yield f"the documents are neither old nor new: {_differing(case, docs)}"
    wish = case.operation.wish
    waits = bool(wish) and any(wish in card.diff for card in home.inbox.all())
    if outcome.acknowledged and docs != case.after and not waits:
        yield f"it was acknowledged, and is {state}"
    told = outcome.error and "Unconfirmed" not in outcome.error and not fault.sticky
    if told and (docs != case.before or waits) and not case.operation.selective:
        yield f"it was told to have failed ({outcome.error}), and is {state}{', and waits' if waits else ''}"
    if any(Path(home.name, ".anima/stage").iterdir()):
        yield "staged texts were left behind"
    if not (verified := home.past.audit()).ok:
        yield f"audit: {verified.fault}"
    yield from (f"doctor: {remark.message}" for remark in home.upkeep.doctor() if remark.level == "damage")
    for kept in home.snapshots.all():
        home.snapshots.verify(kept.path)
    if (waiting := home.inbox.all()) and case.operation.name == "approve" and docs == case.after:
        home.inbox.approve(waiting[0].id)  # it was carried out; saying yes again must not do it twice
        if snapshot(Path(home.name)) != case.after or home.inbox.all():
            yield "approving again did it twice, or left it waiting"


def _each_is_whole(case: Case, docs: Docs) -> bool:
    return all(
        docs.get(path) in (case.before.get(path), case.after.get(path)) for path in {*docs, *case.before, *case.after}
    )


def _differing(case: Case, docs: Docs) -> str:
    names = sorted({*case.before, *case.after, *docs})
    return ", ".join(name for name in names if docs.get(name) not in (case.before.get(name), case.after.get(name))) or (
        "some old, some new"
    )


def _second_opening(folder: Path) -> Iterator[str]:
    held = everything(folder)
    with opened(folder) as home:
        if home.site.store.provenance.intents():
            yield "a batch is still begun"
        yield from _history_agrees(home)
    if everything(folder) != held:
        yield "opening it a second time changed something"


def _history_agrees(home: Home) -> Iterator[str]:
    history = home.site.store.history
    head = history.head() if history else None
    if history is None or head is None:
        yield f"there is no history: {home.site.store.history_problem}"
        return
    held = history.tree(head)
    files = {**snapshot(Path(home.name))}
    files |= {LATER: Path(home.name, LATER).read_bytes()} if home.exists(LATER) else {}
    here = {name: blob_id(data) for name, data in files.items()}
    if differing := sorted(name for name in held.keys() | here.keys() if held.get(name) != here.get(name)):
        yield f"history and files disagree about {', '.join(differing)}"


def _still_works(case: Case, folder: Path) -> Iterator[str]:
    docs = snapshot(folder)
    with opened(folder) as home:
        try:
            if home.exists(LATER):
                home.delete(LATER), home.undo(), home.undo()
            if any(receipt.status != "written" for receipt in home.undo()):
                yield "undo did not write"
            if case.operation.undoable and docs == case.after != case.before and snapshot(folder) != case.before:
                yield "undo did not bring the documents back"
            if home.write(LATER, "# Later\n\n- still here\n").status != "written":
                yield "nothing can be written any more"
        except HomeError as error:
            yield f"it does not work any more: {type(error).__name__}: {error}"
        if not (verified := home.past.audit()).ok:
            yield f"audit after undo: {verified.fault}"


# -- the rounds -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tally:
    """What was done, and what went wrong."""

    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def judge(self, case: Case, folder: Path, outcome: Outcome, fault: Fault, what: str) -> None:
        for problem in problems(case, folder, outcome, fault):
            self.wrong.append(f"{case.operation.name}, {what}: {problem}")
            print(f"  WRONG  {self.wrong[-1]}", flush=True)


def interrupted(case: Case, place: Path, tally: Tally, fault: Fault, *, most: int | None = None, step: int = 1) -> None:
    """The operation with a fault at call 1, 2, 3 … until it completes; or at about as many calls as `most`, spread."""
    step = max(1, calls_of(case, place, fault) // most) if most else step
    for n in count(1 + step // 2, step):
        folder, this = copied(case.folder, place / "trial"), replace(fault, n=n)
        outcome = attempt(case.operation, folder, this)
        if outcome.ended and outcome.calls < n:
            discard(folder)
            return
        what = f"second {fault.what}" if case.operation.cold else fault.what
        tally.done[what] += 1
        tally.judge(case, folder, outcome, this, f"{what} at call {n} {outcome.hit}")
        discard(folder)


def calls_of(case: Case, place: Path, fault: Fault) -> int:
    folder = copied(case.folder, place / "trial")
    calls = attempt(case.operation, folder, replace(fault, n=sys.maxsize)).calls
    discard(folder)
    return calls


def crashed_twice(case: Case, place: Path, tally: Tally, *, step: int, again: int) -> None:
    """Kills the recovery, too: at each of its calls, for homes that were killed in the middle of a batch."""
    recovery = replace(case.operation, act=lambda home: home.site.store.provenance, cold=True)
    for n in count(1, step):
        folder = copied(case.folder, place / "crashed")
        first = attempt(case.operation, folder, Fault(mode=KILL, n=n))
        if first.ended:
            discard(folder)
            return
        begun = b'"kind":"intent"' in (folder / ".anima/ledger.jsonl").read_bytes().splitlines()[-1]
        if begun or (folder / ".anima/restoring").exists():
            second = Case(operation=recovery, folder=folder, before=case.before, after=case.after)
            interrupted(second, place, tally, Fault(mode=KILL), step=again)
        discard(folder)


SYSCALLS = (
    "openat openat2 write pwrite64 fsync fdatasync rename renameat renameat2 link linkat unlink unlinkat mkdir "
    "mkdirat fchmod ftruncate flock close"
)


def by_strace(case: Case, place: Path, tally: Tally, *, step: int, names: str = SYSCALLS) -> None:
    """The same kills from outside the process, by system call."""
    for name in names.split():
        for n in count(1, step):
            folder = copied(case.folder, place / "trial")
            options = ["-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={n}"]
            outcome = attempt(case.operation, folder, tracer=options)
            if not outcome.ended:
                tally.done["kill by strace"] += 1
                tally.judge(case, folder, outcome, Fault(), f"strace kill at {name} {n}")
            discard(folder)
            if outcome.ended:
                break


def on_full_disk(cases: list[Case], place: Path, tally: Tally, *, sizes: range) -> None:
    """A small disk with 0, 1, 2 … pages free."""
    with small_disk(place / "disk") as disk:
        if disk is None:
            tally.skipped.append("a full tmpfs: mounting one is not permitted here")
            return
        for case in cases:
            for pages in sizes:
                folder = copied(case.folder, disk / "trial")
                fill(disk, leave=pages * 4096)
                outcome = attempt(case.operation, folder)
                (disk / "ballast").unlink()
                tally.done["full disk"] += 1
                tally.judge(
                    case, folder, outcome, Fault(mode=FAIL, error=errno.ENOSPC, sticky=True), f"{pages} pages free"
                )
                discard(folder)


@contextmanager
def small_disk(place: Path) -> Iterator[Path | None]:
    place.mkdir()
    options = ["-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(["mount", *options], capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield place
    finally:
        gc.collect()  # histories that are closed, but still map their packs
        subprocess.run(["umount", str(place)], check=True)


def fill(disk: Path, *, leave: int) -> None:
    """A ballast file that leaves so many bytes free."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with open(disk / "ballast", "wb") as ballast:
        ballast.write(b"\0" * max(0, free - leave))


# -- all of it --------------------------------------------------------------------------------------------------------


SPACE = MAKE | WRITE | NAME
ERRORS = (  # the error, the calls it can come from, and whether it stays
    (errno.EIO, ALL, False),
    (errno.ENOSPC, SPACE, True),
    (errno.EIO, SYNC, False),
    (errno.EIO, SYNC, True),
    (errno.EIO, ALL, True),
    (errno.ENOSPC, SPACE, False),
    (errno.EDQUOT, SPACE, False),
    (errno.EDQUOT, SPACE, True),
    (errno.EMFILE, LOOK | MAKE, False),
    (errno.EMFILE, LOOK | MAKE, True),
    (errno.EACCES, MAKE | NAME, False),
    (errno.EINTR, MAKE | WRITE, False),
)


def with_shim(cases: list[Case], place: Path, tally: Tally, *, short: bool, kills: bool) -> None:
    for case in cases:
        begun, already = time.monotonic(), sum(tally.done.values())
        seven = case.operation.name in THE_SEVEN
        few = (2 if seven else 1) if short else None
        kinds = CHANGING if short else CHANGING | LOOK
        interrupted(case, place, tally, Fault(mode=KILL, kinds=kinds), most=few and 2 * few)
        interrupted(case, place, tally, Fault(mode=TEAR, kinds=WRITE), most=few)
        interrupted(case, place, tally, Fault(mode=SHORT, kinds=WRITE), most=few)
        for error, kinds, sticky in () if kills else ERRORS[:4] if short else ERRORS:
            fault = Fault(mode=FAIL, error=error, kinds=kinds, sticky=sticky)
            interrupted(case, place, tally, fault, most=few)
        if case.operation.name in ("batch", "move", "append-long", "swap"):
            wide = 4 if case.operation.name == "swap" else 1  # it makes so many calls more
            crashed_twice(case, place, tally, step=13 * wide if short else 2 * wide, again=9 * wide if short else wide)
        struck = sum(tally.done.values()) - already
        print(f"{case.operation.name:14} {struck:5} faults  {time.monotonic() - begun:6.1f} s", flush=True)


def with_strace(cases: list[Case], place: Path, tally: Tally, *, short: bool) -> None:
    if shutil.which("strace") is None:
        tally.skipped.append("kills by strace: it is not installed")
        return
    begun = time.monotonic()
    try:
        for case in cases:
            if case.operation.name in (("batch", "swap") if short else (*THE_SEVEN, "dream", "snapshot", "swap")):
                few = 6 if case.operation.name == "batch" else 20
                by_strace(
                    case, place, tally, step=few if short else 1, names="fsync rename renameat" if short else SYSCALLS
                )
    except RuntimeError as error:
        tally.skipped.append(f"kills by strace: {error}")
    print(f"{'strace':14} {tally.done['kill by strace']:5} kills   {time.monotonic() - begun:6.1f} s", flush=True)


def run(*, short: bool, kills: bool, only: str | None, place: Path) -> Tally:
    tally = Tally()
    few = [operation for operation in OPERATIONS if operation.name in IN_SHORT]
    cases = [
        prepared(operation, place) for operation in (few if short else OPERATIONS) if only in (None, operation.name)
    ]
    if os.environ.get(SHIM):
        with_shim(cases, place, tally, short=short, kills=kills)
    else:
        tally.skipped.append("faults inside the process: there is no C compiler")
    with_strace(cases, place, tally, short=short)
    seven = [case for case in cases if case.operation.name in THE_SEVEN]
    on_full_disk(seven, place, tally, sizes=range(0, 20, 7) if short else range(40))
    return tally


def compiled(place: Path) -> str | None:
    """faults.c as a library, or None where nothing can compile it."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    library = f"{place}/faults.so"
    made = subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-o", library, str(HERE / "faults.c"), "-ldl"])
    return library if made.returncode == 0 else None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="a sample of everything, in under a minute")
    parser.add_argument("--kills", action="store_true", help="kills and torn writes alone, no errors")
    parser.add_argument("--only", help="one operation")
    parser.add_argument("--json", action="store_true", help="one line of figures at the end")
    given = parser.parse_args()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a fault is the same there, and quicker
    with tempfile.TemporaryDirectory(prefix="anima-faults-", dir=memory) as place:
        if SHIM not in os.environ:
            library = compiled(Path(place))
            extra = {"LD_PRELOAD": library, SHIM: library} if library else {SHIM: ""}
            return subprocess.run([sys.executable, __file__, *sys.argv[1:]], env={**os.environ, **extra}).returncode
        tally = run(short=given.short, kills=given.kills, only=given.only, place=Path(place))
    kills = sum(number for what, number in tally.done.items() if "kill" in what or what == "torn write")
    for what, number in sorted(tally.done.items()):
        print(f"{number:7,}  {what}")
    for what in tally.skipped:
        print(f"SKIPPED  {what}")
    print(
        f"{kills:,} kills and {sum(tally.done.values()) - kills:,} other faults; {len(tally.wrong)} left something wrong"
    )
    if given.json:
        print(
            json.dumps(
                {"kills": kills, "faults": sum(tally.done.values()), "wrong": tally.wrong, "skipped": tally.skipped}
            )
        )
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

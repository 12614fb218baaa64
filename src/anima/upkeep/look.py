"""What is wrong with the machine's side of a home: ledger, key, history, indexes, transcripts, waiting changes.

Promise: looks at a folder that need not open, changes nothing in it, waits for nobody, and speaks in rows of the table of
damages. Each check stands for itself: one that cannot be done becomes a sentence, and the others go on. What is looked
at is read once, so it costs what the home is large. Not here: documents (health), mending (mending).
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from anima.config import Config
from anima.errors import Damaged, HomeError
from anima.layout.dialects import layout_for
from anima.layout.table import Layout
from anima.layout.trust import Register, folder, is_broken, served
from anima.ledger.chain import Fault, Key, Ledger, verify
from anima.ledger.provenance import Provenance
from anima.memory.forgotten import FILE as FORGOTTEN
from anima.memory.forgotten import Forgotten
from anima.memory.proposals import FOLDER as PENDING
from anima.memory.proposals import Proposals
from anima.model import DocPath
from anima.site import rules_for
from anima.store import Logs
from anima.store.aside import everything_in, free_bytes, kind_of, leads_somewhere
from anima.store.folder import Folder
from anima.store.place import FolderStore
from anima.store.private import ASIDE, FOLDER, STAGE, Machine
from anima.store.whole import bytes_of
from anima.text.dates import day_in_name
from anima.upkeep.damages import Remark, remark

ROOM = 2**20  # bytes that must be free for a repair to begin
LEDGER, KEY, LOCK, INDEX, TALKS, DOUBT = "ledger.jsonl", "key", "lock", "index.sqlite", "talks.sqlite", "doubt"
FILES = (LEDGER, KEY, LOCK, "made", DOUBT, FORGOTTEN, INDEX, "index.lock", TALKS)
FOLDERS = (PENDING, "stage", ASIDE)
_OURS = re.compile(
    r"(?:ledger\.jsonl|key|lock|made|doubt|forgotten|dreaming|format|index\.lock|(?:index|talks)\.sqlite(?:[-.]\w+)?"
    r"|pending|stage|aside|lists|mending|snapshots|restore|restoring|restored|looked|torn|history\.git(?:\.[\w-]+)?)\Z"
)
_KINDS = {
    "altered": "ledger-altered",
    "truncated": "ledger-cut",
    "rewritten": "ledger-rewritten",
    "key": "key-replaced",
}
STATE = ".consolidation_state"
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """A home as it is looked at: nothing of it is opened but the folder."""

    store: Folder
    now: datetime
    env: Mapping[str, str]
    config: Config = field(default_factory=Config)
    layout: Layout | None = None
    agent: str = "main"
    progress: Progress = lambda _: None

    @property
    def machine(self) -> Machine:
        return Machine(self.store)

    @property
    def table(self) -> Layout:
        return self.layout or layout_for("anima")

    @property
    def books(self) -> FolderStore:
        return FolderStore(self.store, rules_for(self.table, self.config, clock=lambda: self.now, agent=self.agent))

    def stands(self, name: str) -> bool:
        """Whether a regular file of that name is in `.anima`."""
        return kind_of(self.store, f"{FOLDER}/{name}") == "file"

    @property
    def is_busy(self) -> bool:
        """Whether somebody holds the home just now, so that half of something is no damage."""
        return self.stands(LOCK) and self.machine.lock.holder() is not None

    def ledger(self) -> bytes:
        return (bytes_of(self.store, f"{FOLDER}/{LEDGER}") or b"") if self.stands(LEDGER) else b""


@dataclass(frozen=True, slots=True)
class Still:
    """A ledger as it was read: a Log that nobody can add to."""

    data: bytes

    def size(self) -> int:
        return len(self.data)

    def read(self, start: int, end: int | None = None) -> bytes:
        return self.data[start:end]

    def append(self, data: bytes, *, sync: bool) -> None:
        raise Damaged("a ledger that is only looked at cannot be written")

    def truncate(self, size: int) -> None:
        raise Damaged("a ledger that is only looked at cannot be cut")


def examine(patient: Patient) -> list[Remark]:
    """Every damage on the machine's side."""
    found = looked("the disk", partial(_disk, patient)) + looked(".anima", partial(_machine, patient))
    checks = {"history": _history, "tokens": _tokens, "transcripts": _transcripts, "the clock": _clock}
    if kind_of(patient.store, FOLDER) == "folder":
        more = {
            "the lock": _lock,
            "the ledger": _ledger,
            "trust": _folded,
            "waiting changes": _waiting,
            "the forgotten list": _forgotten,
            "the index": _index,
            "the index of transcripts": _talks,
            "staged texts": _staged,
        }
        checks = more | checks
    for what, check in checks.items():
        patient.progress(what)
        found += looked(what, partial(check, patient))
    return found


def looked(what: str, check: Callable[[], Iterable[Remark]]) -> list[Remark]:
    """What one check says. A doctor that dies of the illness tells nothing, so whatever goes wrong becomes a sentence."""
    found: list[Remark] = []
    try:
        found.extend(check())
    except HomeError as error:
        found.append(remark("not-looked-at", what, f"{what} could not be looked at: {error}.", do=error.hint))
    except Exception as error:
        found.append(remark("not-looked-at", what, f"{what} could not be looked at ({type(error).__name__}: {error})."))
    return found


# -- the folder -------------------------------------------------------------------------------------------------------------


def _disk(patient: Patient) -> Iterator[Remark]:
    if (free := free_bytes(patient.store)) < ROOM:
        yield remark("disk-full", "disk", f"The disk has {free:,} bytes left: nothing can be written safely.")
    register = Register(folder(patient.env))
    if is_broken(register.file):
        yield remark(
            "register-broken", register.file.name, "Your list of homes cannot be read; no home counts as trusted."
        )


def _machine(patient: Patient) -> Iterator[Remark]:
    store, kind = patient.store, kind_of(patient.store, FOLDER)
    if kind is None:
        if patient.books.had_ledger():
            yield remark("machine-missing", FOLDER, ".anima is gone: ledger, key and waiting changes with it.")
        return
    if kind == "link":
        do = None if not leads_somewhere(store, FOLDER) else "move the folder it leads to back into the home"
        yield remark("machine-link", FOLDER, ".anima is a link, and links are not followed inside a home.", do=do)
    elif kind != "folder":
        yield remark("machine-not-a-folder", FOLDER, ".anima is not a folder; nothing can be remembered here.")
    else:
        yield from _inside(patient)


def _inside(patient: Patient) -> Iterator[Remark]:
    store = patient.store
    for name in (*FILES, *FOLDERS):
        if trouble := out_of_shape(store, name):
            yield remark("machine-not-a-file", f"{FOLDER}/{name}", f".anima/{name} is {trouble}.")
    for name in sorted(store.raw_names(FOLDER)):
        if not _OURS.match(name):
            yield remark("machine-foreign", f"{FOLDER}/{name}", f".anima/{name} is not ours; nothing reads it.")
    if opened := [path for path, _ in too_open(store)]:
        many = "1 thing" if len(opened) == 1 else f"{len(opened):,} things"
        yield remark("machine-modes", FOLDER, f"{many} of ours can be read by others: {opened[0]}.")


def out_of_shape(store: Folder, name: str) -> str:
    """What stands in the place of a file or folder of ours, if it is something else; else nothing."""
    kind = kind_of(store, f"{FOLDER}/{name}")
    wanted = "folder" if name in FOLDERS else "file"
    if kind not in (wanted, None):
        return {"link": "a link", "folder": "a folder", "file": "a file", "other": "neither file nor folder"}[str(kind)]
    found = store.stat(f"{FOLDER}/{name}")
    return "a file with a second name" if found and wanted == "file" and found.st_nlink > 1 else ""


def shut(store: Folder) -> Iterator[tuple[str, int]]:
    """(path, mode it should have) of what is ours and its mode keeps us from, the outermost of each. Root is told too."""
    own = kind_of(store, ".git/anima") == "file" or kind_of(store, f"{FOLDER}/made") == "file"
    for top in (FOLDER, ".git") if own or _is_shut(store.stat(FOLDER)) else (FOLDER,):
        found = store.stat(top)
        if _is_shut(found):
            yield top, 0o700
            continue
        for path, inside in everything_in(store, top) if found else ():
            if _is_shut(inside):
                yield (
                    path,
                    stat.S_IMODE(inside.st_mode)
                    | (0o700 if stat.S_ISDIR(inside.st_mode) else 0o600 if top == FOLDER else 0o400),
                )


def _is_shut(found: os.stat_result | None) -> bool:
    if found is None or found.st_uid != os.geteuid():
        return False
    needed = 0o700 if stat.S_ISDIR(found.st_mode) else 0o400 if stat.S_ISREG(found.st_mode) else 0
    return found.st_mode & needed != needed


def too_open(store: Folder) -> Iterator[tuple[str, int]]:
    """(path, mode it should have) of what others can read on the machine's side."""
    top = store.stat(FOLDER)
    every = [(FOLDER, top)] if top else []
    for path, found in (*every, *everything_in(store, FOLDER)):
        if stat.S_IMODE(found.st_mode) & 0o077 and (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
            yield path, 0o700 if stat.S_ISDIR(found.st_mode) else 0o600


def unreadable(store: Folder) -> Iterator[Remark]:
    """What must be readable before the rest can be looked at: else it would seem to be gone."""
    for path, _ in shut(store):
        mode = stat.S_IMODE(found.st_mode) if (found := store.stat(path)) else 0
        yield remark("machine-unreadable", path, f"{path}: its mode is {mode:04o}, so it cannot be looked at.")


def _lock(patient: Patient) -> Iterator[Remark]:
    if not patient.stands(LOCK):
        return
    holder = patient.machine.lock.holder()
    if holder is not None:
        yield remark("lock-held", "lock", f"The home is being written: {holder} holds its lock.")
    else:
        yield remark("lock-left", "lock", "Nobody is writing here now; the lock is free.", do="")


def _staged(patient: Patient) -> Iterator[Remark]:
    left = [path for path, found in everything_in(patient.store, STAGE) if stat.S_ISREG(found.st_mode)]
    if left and not patient.is_busy:
        many = "1 text was" if len(left) == 1 else f"{len(left):,} texts were"
        yield remark("stage-leftover", STAGE, f"{many} staged by a write that was killed before it said so.")


# -- ledger and key ---------------------------------------------------------------------------------------------------------


def _ledger(patient: Patient) -> Iterator[Remark]:
    data = patient.ledger()
    if not data:
        if patient.books.had_ledger():
            yield remark("ledger-missing", LEDGER, "The ledger is gone; nobody can tell who wrote which line.")
        return
    key, trouble = _key(patient)
    if trouble is not None:
        yield trouble
    fault, torn = faults_of(patient, data, key)
    if fault is not None and not (fault.kind == "key" and trouble is not None):
        yield _told(fault)
    if torn and not patient.is_busy:
        yield remark(
            "ledger-torn", LEDGER, f"The ledger ends in {torn:,} bytes that are no record: a write was cut short."
        )
    yield from _interrupted(patient, data)


def _key(patient: Patient) -> tuple[Key | None, Remark | None]:
    raw = patient.machine.get(KEY) if patient.stands(KEY) else None
    if raw is None:
        return None, remark("key-missing", KEY, "The key of the ledger is gone; its digests mean nothing without it.")
    if raw and not any(raw):
        return None, remark(
            "key-broken", KEY, "The key of the ledger holds nothing but zeros, which anybody can guess."
        )
    try:
        return Key(raw), None
    except Damaged:
        return None, remark(
            "key-broken", KEY, f"The key of the ledger has {len(raw):,} bytes, which no key of ours has."
        )


def faults_of(patient: Patient, data: bytes, key: Key | None) -> tuple[Fault | None, int]:
    """The first fault of a ledger, and how many bytes at its end are no line."""
    found = verify(Still(data), key=key, anchors=patient.books.anchors())
    return found.fault, found.torn


def _told(fault: Fault) -> Remark:
    if fault.line == 1 and fault.kind in ("missing", "order", "altered", "repeated"):
        return remark("ledger-headless", LEDGER, "The ledger does not begin with the record of its home.")
    name = _KINDS.get(fault.kind, "ledger-unlinked")
    what = "The key is not the one this ledger was begun with" if fault.kind == "key" else f"The ledger, {fault.what}"
    return remark(name, LEDGER, f"{what}.")


def _interrupted(patient: Patient, data: bytes) -> Iterator[Remark]:
    waiting = [] if patient.is_busy else Ledger(Still(data), clock=lambda: patient.now).pending()
    for intent in waiting:
        yield remark(
            "batch-interrupted",
            intent.edits[0].path if intent.edits else LEDGER,
            f"Change {intent.id} was interrupted: it is neither done nor given up.",
        )


def _folded(patient: Patient) -> Iterator[Remark]:
    """What only shows when the ledger is compared with what stands there. It is folded where there is reason to."""
    unmarked = kind_of(patient.store, f"{FOLDER}/{DOUBT}") is None
    blank = _blank(patient.store)
    data = patient.ledger() if unmarked or blank else b""
    if not data:
        return
    known = Provenance(Key(bytes(32)))  # nothing is asked of it that takes the key
    known.fold(Ledger(Still(data), clock=lambda: patient.now).records())
    if unmarked and known.is_doubtful and not patient.is_busy:
        yield remark(
            "doubt-missing", DOUBT, "The mark that this home has untrusted lines is gone, so prompts show them."
        )
    for path in blank:
        if held := known.size_of(DocPath.parse(path)):
            yield remark(
                "document-emptied", path, f"{path} is empty, and held {held:,} bytes when anima last wrote it."
            )


def _blank(store: Folder) -> list[str]:
    """The documents without a byte; none where a folder is shut, which is said elsewhere."""
    try:
        return [entry.path for entry in store.list_all() if not entry.size and entry.path.casefold().endswith(".md")]
    except HomeError:
        return []


def _clock(patient: Patient) -> Iterator[Remark]:
    data, tomorrow = patient.ledger(), patient.now + timedelta(days=1)
    times = re.findall(rb'"t":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00)"', data)
    if times and max(times).decode() > tomorrow.isoformat(timespec="microseconds"):
        yield remark(
            "clock-backwards", LEDGER, f"The ledger has records from {max(times)[:10].decode()}, which is yet to come."
        )
    names = patient.store.names(patient.table.daily)
    ahead = [name for name in names if (day := day_in_name(name)) and day > tomorrow.date()]
    for name in ahead[:3]:
        path = f"{patient.table.daily}/{name}"
        yield remark("clock-backwards", path, f"{path} is a log of a day that is yet to come.")


# -- small files ------------------------------------------------------------------------------------------------------------


def _waiting(patient: Patient) -> Iterator[Remark]:
    for name in broken_proposals(patient):
        yield remark(
            "proposal-broken",
            f"{FOLDER}/{PENDING}/{name}",
            f"The waiting change {name} cannot be read, or was altered.",
        )


def broken_proposals(patient: Patient) -> list[str]:
    """The files among the waiting changes that are none."""
    pending, names = Proposals(patient.machine), patient.machine.names(PENDING)
    return [name for name in sorted(names) if not _is_proposal(pending, name, patient.now)]


def _is_proposal(pending: Proposals, name: str, now: datetime) -> bool:
    try:
        pending.get(name.removesuffix(".json"), now)
    except Damaged:
        return False
    except HomeError as error:
        return "lapsed" in str(error)
    return name.endswith(".json")


def _forgotten(patient: Patient) -> Iterator[Remark]:
    if not patient.stands(FORGOTTEN):
        return
    try:
        len(Forgotten(patient.machine, lambda: Key(bytes(32))))
    except (HomeError, ValueError, OverflowError):
        yield remark(
            "forgotten-broken", FORGOTTEN, "The list of what stays forgotten cannot be read; writes are refused."
        )


def _tokens(patient: Patient) -> Iterator[Remark]:
    file = served(patient.env, patient.store.root) / "passes.json"
    if is_broken(file):
        yield remark("tokens-broken", file.name, "The tokens of this home cannot be read; nobody can come in.")
    state = f"{patient.table.daily}/{STATE}"
    if kind_of(patient.store, state) == "file" and not _is_json(bytes_of(patient.store, state) or b""):
        yield remark("sweep-state-broken", state, f"{state} cannot be read; the next night writes it again.")


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False


# -- history ----------------------------------------------------------------------------------------------------------------


def place_of_history(patient: Patient) -> str:
    """Where history is, or would be made."""
    store = patient.store
    own = kind_of(store, ".git/anima") == "file" or (patient.stands("made") and kind_of(store, ".git") is None)
    return ".git" if own else f"{FOLDER}/history.git"


def _history(patient: Patient) -> Iterator[Remark]:
    from anima.store.git import problems_at

    if not patient.config.history.enabled:
        return
    store, place = patient.store, place_of_history(patient)
    if patient.stands("made") and kind_of(store, ".git") is not None and place != ".git":
        yield remark("history-foreign", ".git", "A repository that is not ours stands in .git; it is not touched.")
    if kind_of(store, place) is None and b'"kind":"intent"' in patient.ledger() and not swap_leftovers(patient):
        yield remark("history-gone", place, f"History is gone: {place} is not there, and the ledger tells of changes.")
    for name, why in problems_at(store, place):
        yield remark(f"history-{name}", place, f"History: {why}.")
    for name in [] if patient.is_busy else swap_leftovers(patient):
        yield remark("temp-leftover", name, f"{name} was left by something that was interrupted.")


def swap_leftovers(patient: Patient) -> list[str]:
    """What an interrupted swap of history left, and where torn bytes lay in earlier times."""
    place, store = place_of_history(patient), patient.store
    names = (f"{place}.new", f"{place}.past", f"{FOLDER}/torn", *broken_repositories(patient))
    return [name for name in names if kind_of(store, name) is not None]


def broken_repositories(patient: Patient) -> list[str]:
    """What History.repair leaves beside the repository."""
    place = place_of_history(patient)
    folder, _, name = place.rpartition("/")
    below = f"{folder}/" if folder else ""
    return [f"{below}{each}" for each in patient.store.raw_names(folder) if each.startswith(f"{name}.broken-")]


# -- indexes ----------------------------------------------------------------------------------------------------------------


def _index(patient: Patient) -> Iterator[Remark]:
    from anima.search.current import tables_of

    if why := tables_of(lambda name: f"{patient.store.root}/{FOLDER}/{name}").check():
        yield remark("index-damaged", INDEX, f"The index will not do: {why}.")


def _talks(patient: Patient) -> Iterator[Remark]:
    from anima.sessions.find import TranscriptIndex
    from anima.sessions.record import unchanged

    if why := TranscriptIndex(patient.books.scratch(TALKS), redact=unchanged).check():
        yield remark("talks-damaged", TALKS, f"The index of transcripts will not do: {why}.")


# -- transcripts ------------------------------------------------------------------------------------------------------------


def _transcripts(patient: Patient) -> Iterator[Remark]:
    from anima.sessions.record import transcripts_in
    from anima.sessions.transcripts import LIST

    if not patient.config.sessions.dir:
        return
    place = patient.table.transcripts_of(patient.agent, patient.config.sessions.dir)
    talks, store = transcripts_in(patient.books, place.folder, suffix=place.log), patient.store
    ids = talks.versions()
    for id in sorted(ids):
        yield from _transcript(talks, id)
    known = (place.log, place.context or place.log)
    for name in sorted(store.raw_names(place.folder)):
        if (
            name != LIST
            and not name.startswith(".")
            and (not name.endswith(known) or talks.look(_id(name, known)) is None)
        ):
            yield remark(
                "sessions-foreign",
                f"{place.folder}/{name}",
                f"{place.folder}/{name} is no transcript; nothing reads it.",
            )


def _id(name: str, suffixes: tuple[str, ...]) -> str:
    return next((name.removesuffix(end) for end in suffixes if name.endswith(end)), name)


def _transcript(talks: Logs, id: str) -> Iterator[Remark]:
    from anima.sessions.replay import check, header_of

    path = talks.path_of(id)
    with talks.open(id) as file:
        found, header = check(file), header_of(file)
    bad = [each for each in found if not each.torn]
    if header is None and bad and bad[0].line == 1 and len(bad) == bad[-1].line:
        yield remark("sessions-foreign", path, f"{path} is no transcript: not one line of it can be read.")
        return
    if bad:
        many = "1 line" if len(bad) == 1 else f"{len(bad):,} lines"
        yield remark(
            "transcript-damaged",
            path,
            f"{path}: {many} cannot be read, the first is line {bad[0].line}; all others can.",
        )
    if len(found) > len(bad):
        yield remark("transcript-torn", path, f"{path} ends in the middle of a line.")

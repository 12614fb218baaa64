"""Mending a home: for each damage of the table that has a repair, the hand that does it.

Promise: no document byte is changed or lost; what is taken out of its place lies in `.anima/aside/<time>/`, and the report
says where. Whatever cannot be mended is said and left, and the rest goes on. Killed half way it can be done again; done
again it finds nothing to do; of two at once, one waits. Not here: what is wrong (health, examining), what a new ledger
may vouch for (rechaining).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from anima.errors import Damaged, HomeError
from anima.home import Home
from anima.layout.trust import Register, folder, put_beside, served
from anima.ledger import renewal
from anima.ledger.chain import Key, Ledger
from anima.memory.forgotten import FILE as FORGOTTEN
from anima.memory.proposals import FOLDER as PENDING
from anima.model import DocPath
from anima.store.aside import Aside, everything_in, kind_of, leads_somewhere, set_mode, swap_in_folder
from anima.store.folder import MAX_BYTES, Folder
from anima.store.private import FOLDER, Machine
from anima.store.whole import bytes_of
from anima.upkeep import look as examining
from anima.upkeep.damages import BY_NAME, TRUST, Remark
from anima.upkeep.health import examine
from anima.upkeep.look import DOUBT, FILES, FOLDERS, INDEX, KEY, LEDGER, LOCK, TALKS, Patient, Progress

_HOPELESS = ("home-vanished", "home-empty", "home-not-a-folder", "home-owner", "disk-full")
_PASSES = 4  # what was hidden behind one damage comes to light when that is mended
_RENEWING = (
    "ledger-altered",
    "ledger-unlinked",
    "ledger-headless",
    "ledger-cut",
    "ledger-rewritten",
    "ledger-missing",
    "key-missing",
    "key-replaced",
    "key-broken",
    "machine-missing",
)
_BY_HAND = (
    "ledger-unlinked",
    "ledger-headless",
    "ledger-rewritten",
    "ledger-missing",
    "key-missing",
    "key-replaced",
    "key-broken",
    "machine-missing",
)
_HISTORY = (
    "history-head-broken",
    "history-other-branch",
    "history-broken",
    "history-unsafe",
    "history-gone",
    "history-unmarked",
    "history-lock",
)
_DERIVED = ("", "-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One thing that was done, or, in a dry run, would be; `ok` is false where it was tried and could not be. `owner` is what
    the owner may still want to do about it."""

    name: str
    about: str
    said: str
    ok: bool = True
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """What a repair found, did and left. What is left is for the owner to decide, or for another try."""

    found: tuple[Remark, ...]
    done: tuple[Deed, ...]
    left: tuple[Remark, ...]
    dry_run: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged any more."""
        return all(remark.level != "damage" for remark in self.left)


@dataclass(slots=True, kw_only=True)
class _Work:
    """One pass of a repair, and what it found when it began."""

    path: str | Path
    patient: Patient
    aside: Aside
    look: Callable[[], list[Remark]]
    open: Callable[[], Home]
    found: list[Remark] = field(default_factory=list)
    done: list[Deed] = field(default_factory=list)

    @property
    def store(self) -> Folder:
        return self.patient.store

    def of(self, *names: str) -> list[Remark]:
        return [each for each in self.found if each.name.startswith(names)]

    def has(self, *names: str) -> bool:
        return bool(self.of(*names))

    def tell(self, name: str, about: str, said: str, *, owner: str | None = None) -> None:
        left = BY_NAME[name].owner if owner is None else owner
        self.done.append(Deed(name=name, about=about, said=said, owner=left))

    def tried(self, name: str, step: Callable[[], None]) -> None:
        """Does one step. What keeps it from being done is said, and the next one goes on."""
        try:
            step()
        except (HomeError, OSError) as error:
            why = error if isinstance(error, HomeError) else os.strerror(error.errno or 0)
            self.done.append(Deed(name=name, about=name, said=f"could not be mended: {why}", ok=False))


def repair(
    path: str | Path,
    *,
    clock: Callable[[], datetime],
    env: Mapping[str, str],
    settings: Mapping[str, Any] | None = None,
    dry_run: bool = False,
    progress: Progress = lambda _: None,
) -> Mended:
    """Finds every damage and mends what can be. Raises HomeBusy when somebody holds the home, NoSuchHome."""
    look = partial(examine, path, clock=clock, env=env, settings=settings, progress=progress)
    found = look()
    if dry_run or any(each.name in _HOPELESS for each in found):
        plan = tuple(Deed(name=r.name, about=r.about, said=BY_NAME[r.name].repair) for r in found if _mendable(r))
        return Mended(found=tuple(found), done=plan if dry_run else (), left=tuple(found), dry_run=dry_run)
    if not any(map(_mendable, found)):
        return Mended(found=tuple(found), done=(), left=tuple(map(_for_the_owner, found)))
    store = Folder(path)
    try:
        done, left = _mend(path, store, clock, env, settings, look, found), look()
    finally:
        store.close()
    return Mended(found=tuple(found), done=tuple(done), left=tuple(map(_for_the_owner, left)))


def _for_the_owner(left: Remark) -> Remark:
    """What is left after a repair is the owner's: the repair is not offered a second time."""
    row = BY_NAME.get(left.name)
    return replace(left, do=row.owner) if row is not None and row.repair and row.owner else left


def _mendable(found: Remark) -> bool:
    return bool(found.name and BY_NAME[found.name].repair)


def _mend(
    path: str | Path,
    store: Folder,
    clock: Callable[[], datetime],
    env: Mapping[str, str],
    settings: Mapping[str, Any] | None,
    look: Callable[[], list[Remark]],
    found: list[Remark],
) -> list[Deed]:
    patient, machine = Patient(store=store, now=clock(), env=env), Machine(store)
    aside = Aside(store, machine, patient.now)
    opened = partial(Home.open, path, clock=clock, env=env, settings=settings, finish=False)
    work = _Work(path=path, patient=patient, aside=aside, look=look, open=opened, found=found)
    work.tried("machine", partial(_folder_of_ours, work))
    lease = machine.lease("mending")
    try:
        with lease.hold():
            for _ in range(_PASSES):
                before = len(work.done)
                work.found = look()
                _pass(work, machine)
                if len(work.done) == before or not all(deed.ok for deed in work.done[before:]):
                    break
    finally:
        lease.close()
        machine.lock.close()
    return work.done


def _pass(work: _Work, machine: Machine) -> None:
    if not any(map(_mendable, work.found)):
        return
    work.tried("modes", partial(_modes, work))
    work.tried("machine-not-a-file", partial(_shapes, work, machine))
    with machine.lock.hold():
        work.tried("ledger", partial(_ledger, work, machine))
        work.tried("waiting", partial(_small_files, work))
    machine.lock.close()
    work.tried("configuration", partial(_configuration, work))
    if not work.has("config-", "ledger-format"):
        work.tried("home", partial(_opened, work))


# -- the folder and its modes ---------------------------------------------------------------------------------------------------


def _folder_of_ours(work: _Work) -> None:
    """Where `.anima` is no folder, or its lock no file, nothing can be locked; so these come first, without a lock."""
    store, kind = work.store, kind_of(work.store, FOLDER)
    opened: set[str] = set()  # what lies inside comes to light when the outer one is open; some disks know no modes
    while barred := [found for found in examining.shut(store) if found[0] not in opened]:
        for path, mode in barred:
            set_mode(store, path, mode)
            opened.add(path)
            work.tell("machine-unreadable", path, "you can read and write it again")
    if kind == "file" or kind == "other" or (kind == "link" and not leads_somewhere(store, FOLDER)):
        spare = swap_in_folder(store, work.patient.now)
        place = work.aside.move(spare, name="anima")
        name = "machine-link" if kind == "link" else "machine-not-a-folder"
        work.tell(name, FOLDER, f"a folder stands there now; what was there is in {place}")
    for name in (LOCK, "mending"):
        path = f"{FOLDER}/{name}"
        if kind_of(store, path) not in ("file", None) or _names_of(store, path) > 1:
            place = work.aside.move(path)
            work.tell("machine-not-a-file", path, f"set aside in {place}")


def _names_of(store: Folder, path: str) -> int:
    found = store.stat(path)
    return found.st_nlink if found is not None and stat.S_ISREG(found.st_mode) else 0


def _modes(work: _Work) -> None:
    store = work.store
    for each in work.of("document-unreadable", "folder-unreadable"):
        found = store.stat(each.about)
        if found is not None:
            is_folder = stat.S_ISDIR(found.st_mode)
            set_mode(store, each.about, stat.S_IMODE(found.st_mode) | (0o700 if is_folder else 0o600))
            work.tell(each.name, each.about, "you can read and write it again")
    if work.has("modes"):
        many = _close_to_others(store)
        work.tell("modes", "modes", f"others cannot look into {many:,} thing{'s' if many != 1 else ''} any more")
    if work.has("machine-modes"):
        wrong = list(examining.too_open(store))
        for path, mode in wrong:
            set_mode(store, path, mode)
        work.tell(
            "machine-modes",
            FOLDER,
            f"{len(wrong):,} mode{'s are' if len(wrong) != 1 else ' is'} mended: 0700 for folders, 0600 for files",
        )


def _close_to_others(store: Folder) -> int:
    many = 0
    if stat.S_IMODE(os.fstat(store.fd).st_mode) & 0o077:
        set_mode(store, "", 0o700)
        many += 1
    for name in store.raw_names(""):
        for path, found in _with_itself(store, name) if not name.startswith(".") else ():
            if stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077:
                set_mode(store, path, stat.S_IMODE(found.st_mode) & 0o700)
                many += 1
    return many


def _with_itself(store: Folder, name: str) -> Iterator[tuple[str, os.stat_result]]:
    if (found := store.stat(name)) is not None:
        yield name, found
        yield from everything_in(store, name)


def _shapes(work: _Work, machine: Machine) -> None:
    for name in (*FILES, *FOLDERS):
        trouble, path = examining.out_of_shape(work.store, name), f"{FOLDER}/{name}"
        if not trouble:
            continue
        if kind_of(work.store, path) == "file" and name not in FOLDERS:
            machine.put(name, bytes_of(work.store, path) or b"")  # a file of its own; the other name keeps the old one
            work.tell("machine-not-a-file", path, "it has one name again")
        else:
            work.tell("machine-not-a-file", path, f"set aside in {work.aside.move(path)}")
            if name == DOUBT:
                machine.put(DOUBT, b"")  # whatever stood there, it said that there are untrusted lines


# -- ledger and key -------------------------------------------------------------------------------------------------------------


def _ledger(work: _Work, machine: Machine) -> None:
    if any(each.name in _RENEWING for each in work.found):
        _renew(work, machine)
    elif work.has("ledger-torn"):
        log = machine.log(LEDGER)
        try:
            places: list[str] = []
            ledger = Ledger(
                log, clock=lambda: work.patient.now, keep=lambda torn: places.append(work.aside.keep(LEDGER, torn))
            )
            torn = ledger.mend()
        finally:
            log.close()
        work.tell("ledger-torn", LEDGER, f"{len(torn):,} bytes are set aside in {', '.join(places)}")
    if work.has("doubt-missing"):
        machine.put(DOUBT, b"")
        work.tell("doubt-missing", DOUBT, "put back; prompts leave untrusted lines out again")


def _renew(work: _Work, machine: Machine) -> None:
    """Puts a new chain in the place of a damaged ledger. The old one is on the disk, aside, before that."""
    row = next(each for each in work.found if each.name in _RENEWING)
    machine.make()
    data, key_is_new = work.patient.ledger(), work.has("key-")
    if work.has("key-broken"):
        work.tell("key-broken", KEY, f"set aside in {work.aside.move(f'{FOLDER}/{KEY}')}")
    key = Key(machine.key())
    fault, _ = examining.faults_of(work.patient, data, None)
    doubtful = any(each.name in _BY_HAND for each in work.found) or machine.get(DOUBT) is not None
    made = renewal.rechain(
        data,
        fault,
        key=key,
        anchors=work.patient.books.anchors(),
        texts=partial(_texts, work.store),
        now=work.patient.now,
        why=row.name,
        doubtful=doubtful,
    )
    place = work.aside.keep(LEDGER, data) if data else ""
    if made.doubtful:
        machine.put(DOUBT, b"")
    machine.put(LEDGER, made.data)
    work.tell(row.name, LEDGER, _renewed(made, place), owner=TRUST if made.unvouched or made.doubted else "")
    if key_is_new and machine.get(FORGOTTEN) is not None:
        where = work.aside.move(f"{FOLDER}/{FORGOTTEN}")
        work.tell("forgotten-broken", FORGOTTEN, f"it means nothing without its key, and is set aside in {where}")


def _renewed(made: renewal.Renewed, place: str) -> str:
    said = f"a new chain begins; {made.carried:,} records were carried over, {made.lost:,} {'is' if made.lost == 1 else 'are'} lost"
    said += f"; the damaged ledger is in {place}" if place else ""
    if made.doubted:
        said += f"; {made.doubted:,} of them cannot be proven, so only their doubts count"
    if made.unvouched:
        said += (
            f"; nothing vouches for {made.unvouched:,} lines in {made.documents:,} documents now, so prompts leave "
            "them out until you say anima trust"
        )
    return said


def _texts(store: Folder) -> Iterator[tuple[DocPath, bytes, datetime]]:
    """Every document with its bytes, whether they are text or not, and the time it was written."""
    for entry in store.list_all():
        path = DocPath.parse(entry.path)
        if path.is_markdown:
            try:
                yield path, store.raw(path, most=8 * MAX_BYTES), entry.time.astimezone(UTC)
            except HomeError:
                continue


# -- small files ----------------------------------------------------------------------------------------------------------------


def _small_files(work: _Work) -> None:
    if work.has("proposal-broken"):
        for name in examining.broken_proposals(work.patient):
            place = work.aside.move(f"{FOLDER}/{PENDING}/{name}")
            work.tell("proposal-broken", name, f"set aside in {place}")
    if work.has("forgotten-broken") and work.patient.stands(FORGOTTEN):
        place = work.aside.move(f"{FOLDER}/{FORGOTTEN}")
        work.tell("forgotten-broken", FORGOTTEN, f"set aside in {place}; nothing is held back now")
    for each in work.of("sweep-state-broken"):
        work.tell(each.name, each.about, f"set aside in {work.aside.move(each.about)}")


def _configuration(work: _Work) -> None:
    """The user's own files, which lie outside the home."""
    env, store = work.patient.env, work.store
    for each in work.of("tokens-broken"):
        place = put_beside(served(env, store.root) / "passes.json")
        work.tell(each.name, each.about, f"it is called {place.name} now; make new tokens")
    for each in work.of("register-broken"):
        register = Register(folder(env))
        place = put_beside(register.file)
        register.note(store.root, identity=store.identity, trusted=False)
        work.tell(each.name, each.about, f"it is called {place.name} now; this home is noted again, not trusted")


# -- what needs the home open ---------------------------------------------------------------------------------------------------


def _opened(work: _Work) -> None:
    with work.open() as home:
        if home.books.begun:
            with home.books.lock():
                _ = home.books.ledger
                for said in home.books.recover() or [""] * work.has("batch-interrupted", "stage-leftover"):
                    name = "batch-interrupted" if work.has("batch-interrupted") else "stage-leftover"
                    work.tell(name, LEDGER, said or "ended, and what was staged is swept up")
        elif work.has("stage-leftover"):
            with home.books.lock():
                home.books.sweep()
            work.tell("stage-leftover", LEDGER, "swept up")
        if not work.has("history-busy", "home-wiped") and home.config.history.enabled:
            work.tried("history", partial(_history, work, home))
        work.tried("index", partial(_index, work, home))
        work.tried("transcripts", partial(_transcripts, work, home))


def _history(work: _Work, home: Home) -> None:
    place = examining.place_of_history(work.patient)
    found = work.of(*_HISTORY)
    if work.has("history-unmarked"):
        work.tell("history-unmarked", place, f"set aside in {work.aside.move(place, name='repository')}")
    if found:
        said = _mended_history(work, home, place)
        work.tell(found[0].name, place, "; ".join(said) or "history goes on with the documents as they stand")
    elif any(deed.name in _RENEWING for deed in work.done):
        _anchor(home)
    for name in examining.swap_leftovers(work.patient):
        where = work.aside.move(name, name="torn" if name.endswith("/torn") else "repository")
        work.tell("temp-leftover", name, f"set aside in {where}")


def _mended_history(work: _Work, home: Home, place: str) -> list[str]:
    try:
        return home.past.repair_history()
    except (HomeError, OSError):
        home.books.reset_history()
        if kind_of(work.store, place) is None:
            raise
        where = work.aside.move(place, name="repository")
        home.past.repair_history()
        return [f"begun anew with the documents as they stand; the old repository is in {where}"]


def _anchor(home: Home) -> None:
    """History notes where the new chain is, so that its end cannot be cut off unnoticed."""
    from anima.store.git import Note

    books = home.books
    with books.machine.lock.hold():
        tip, history = books.ledger.tip, books.history
        if history is None:
            raise Damaged(f"history does not know the new ledger: {books.history_problem}")
        history.commit(
            {}, Note(what="repair", actor="owner", author=books.author, time=home.clock(), anchor=(tip.n, tip.hash))
        )


def _index(work: _Work, home: Home) -> None:
    if work.has("index-damaged"):
        report = home.index.bring_up(rebuild=True)
        work.tell("index-damaged", INDEX, f"made again from {report.documents:,} documents")
    if work.has("talks-damaged"):
        home.sessions.close()
        for end in _DERIVED:
            home.books.machine.remove(f"{TALKS}{end}")
        work.tell("talks-damaged", TALKS, "deleted; it is made again when somebody searches")


def _transcripts(work: _Work, home: Home) -> None:
    if not home.config.sessions.dir:
        return
    for each in work.of("transcript-torn"):
        home.sessions.end_last_line(each.about)
        work.tell(each.name, each.about, "its last line has an end again, or is set aside in .anima/aside/torn")

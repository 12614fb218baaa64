"""The health of a home in a folder: its files and modes, its ledger and key, its batches and its history.

Promise: looking opens only what it must, changes nothing and waits for nobody. A repair changes no document; whatever
it takes out of its place is set aside first, so that nothing is lost, and being killed half way it can be done again.
Nobody gains trust by a repair. Not here: what a damage is called and what to do about it (upkeep), what a new ledger
may vouch for (ledger.verify).
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import chain, count

from anima.errors import Damaged, HomeError, printable
from anima.ledger.chain import Key, Ledger
from anima.ledger.proof import Still
from anima.ledger.provenance import Provenance
from anima.ledger.verify import Fault, Verification, renew, verify
from anima.model import Deed, DocPath, Entry, Remark, fold
from anima.store import Store
from anima.store.folder import Folder, as_damage
from anima.store.place import FolderStore
from anima.store.private import ASIDE, FOLDER, STAGE
from anima.store.safe_open import held, open_beneath, open_folder
from anima.text.dates import day_in_name

ROOM = 2**20  # bytes that must be free for a repair to begin
LEDGER, KEY, _LOCK, _FORGOTTEN = "ledger.jsonl", "key", "lock", "forgotten"
_FILES = (LEDGER, KEY, _LOCK, "mending", "made", _FORGOTTEN, "index.sqlite", "index.lock", "talks.sqlite")
_FOLDERS = ("pending", "stage", ASIDE)
_OURS = re.compile(
    r"(?:ledger\.jsonl|key|lock|made|forgotten|dreaming|format|index\.lock|(?:index|talks)\.sqlite(?:[-.]\w+)?"
    r"|pending|stage|aside|lists|mending|schedule|rituals|channels?(?:-[a-z]+)?|call-\d+|snapshots|restore|restoring|restored|looked|torn|\.gitignore|history\.git(?:\.[\w-]+)?)\Z"
)


def kind_of(store: FolderStore, name: str) -> str | None:
    """What stands under a name in `.anima`."""
    return store.documents.kind_of(f"{FOLDER}/{name}")


def set_aside(store: FolderStore, found: Iterable[Remark]) -> Iterator[Deed]:
    """Takes what some remarks are about out of its place."""
    aside = Aside(store)
    for each in list(found):
        yield Deed(name=each.name, about=each.about, said=f"set aside in {aside.move(each.about)}")


def is_busy(store: FolderStore) -> bool:
    """Whether somebody holds the home just now, so that half of something is no damage."""
    return kind_of(store, _LOCK) == "file" and store.machine.lock.holder() is not None


# -- files and modes ----------------------------------------------------------------------------------------------------


class CheckedFiles:
    """The files and folders of a home, by their kind, owner and mode alone."""

    def __init__(self, store: FolderStore) -> None:
        self._store, self._folder, self._machine = store, store.documents, store.machine

    def barred(self) -> Iterator[Remark]:
        """What must be readable before the rest can be looked at: else it would seem to be gone."""
        for path, _ in self._shut():
            yield self._unreadable(path, f"{path}: its mode is {self._mode(path):04o}, so it cannot be looked at.")

    def check(self) -> Iterator[Remark]:
        if (free := self._folder.free_bytes()) < ROOM:
            said = f"The disk has {free:,} bytes left: nothing can be written safely."
            yield Remark(name="disk-full", about="disk", message=said)
        kind = self._folder.kind_of(FOLDER)
        if kind == "link":
            do = "move the folder it leads to back into the home" if leads_somewhere(self._folder, FOLDER) else ""
            said = ".anima is a link, and links are not followed inside a home."
            yield Remark(name="machine-broken", about=FOLDER, message=said, do=do)
        elif kind == "folder":
            yield from self._inside()
        elif kind is not None:
            said = ".anima is not a folder; nothing can be remembered here."
            yield Remark(name="machine-broken", about=FOLDER, message=said)
        entries: list[Entry] = []
        yield from self._walk("", entries)
        yield from self._open_to_others(entries)

    def _inside(self) -> Iterator[Remark]:
        for name in (*_FILES, *_FOLDERS):
            if trouble := self._out_of_shape(name):
                said = f".anima/{name} is {trouble}."
                yield Remark(name="machine-broken", about=f"{FOLDER}/{name}", message=said)
        for name in sorted(self._folder.raw_names(FOLDER)):
            if not _OURS.match(name):
                said = f".anima/{name} is not ours; nothing reads it."
                yield Remark(name="foreign-file", about=f"{FOLDER}/{name}", message=said)
        if opened := [path for path, _ in self._too_open()]:
            many = "1 thing" if len(opened) == 1 else f"{len(opened):,} things"
            yield Remark(name="modes", about=FOLDER, message=f"{many} of ours can be read by others: {opened[0]}.")
        if kind_of(self._store, _LOCK) == "file":
            holder = self._machine.lock.holder()
            held = f"The home is being written: {holder} holds its lock."
            said = held if holder else "Nobody is writing here now; the lock is free."
            yield Remark(name="lock", about="lock", message=said)

    def _walk(self, folder: str, entries: list[Entry]) -> Iterator[Remark]:
        """Gathers the files of the home, and says what is left out of them."""
        mode = self._mode(folder) if folder else 0o700
        if mode & 0o500 != 0o500:
            yield self._unreadable(folder, f"{folder}: its mode is {mode:04o}, so it cannot be looked into.")
        try:
            listed, strange = self._folder.list(folder), self._folder.strange(folder)
        except HomeError as error:
            if mode & 0o500 == 0o500:
                yield Remark(name="not-looked-at", about=folder, message=f"{error}.", do=error.hint or "")
            return
        for name, why in strange:
            path = f"{folder}/{name}".lstrip("/")
            is_odd = self._folder.kind_of(path) in ("link", "other")
            shown = printable(path)
            said = f"{shown} is left alone: {why}."
            yield Remark(name="document-not-a-file" if is_odd else "", about=shown, message=said)
        seen: dict[str, str] = {}
        for entry in sorted(listed, key=lambda entry: entry.name):
            first = seen.setdefault(fold(entry.name), entry.path)
            if first != entry.path:
                said = f"{first} and {entry.path} are the same name to us; only the first is read."
                yield Remark(name="document-twins", about=entry.path, message=said)
        for entry in listed:
            is_document = entry.name.casefold().endswith(".md")
            if not entry.is_folder:
                entries.append(entry)
                yield from self._document(entry.path) if is_document else ()
                continue
            if is_document:
                said = f"{entry.path} is a folder, and its name is that of a document."
                yield Remark(name="document-not-a-file", about=entry.path, message=said)
            yield from self._walk(entry.path, entries)

    def _document(self, path: str) -> Iterator[Remark]:
        """What the stat of a document tells, whoever asks: root reads everything, and is told all the same."""
        found = self._folder.stat(path)
        if found is None:
            return
        mode = stat.S_IMODE(found.st_mode)
        if found.st_uid != os.geteuid():
            said = f"{path} belongs to another user (uid {found.st_uid})."
            yield Remark(name="not-yours", about=path, message=said)
        elif not mode & stat.S_IRUSR:
            said = f"{path}: the system does not let us read it (mode {mode:04o}, owner {found.st_uid})."
            yield self._unreadable(path, said)
        if found.st_nlink > 1:
            kept = "does not write to it" if self._folder.holds_every_name(found) else "neither reads nor writes it"
            said = f"{path} has {found.st_nlink} names; anima {kept}."
            yield Remark(name="document-hardlinked", about=path, message=said)

    def _unreadable(self, path: str, said: str) -> Remark:
        do = "" if path.startswith(".") else f"chmod u+rwX {shlex.quote(f'{self._folder.root}/{path}')}"
        return Remark(name="unreadable", about=path, message=said, do=do)

    def _open_to_others(self, entries: list[Entry]) -> Iterator[Remark]:
        root, mode = shlex.quote(self._folder.root), stat.S_IMODE(os.fstat(self._folder.fd).st_mode)
        if mode & 0o077:
            said = f"Other users of this machine can look into the folder (mode {mode:04o})."
            yield Remark(name="modes", about="modes", message=said, do=f"chmod 700 {root}")
        if opened := [entry.path for entry in entries if self._mode(entry.path) & 0o077]:
            few = ", ".join(opened[:3]) + (f" and {len(opened) - 3} more" if len(opened) > 3 else "")
            many = "1 file" if len(opened) == 1 else f"{len(opened):,} files"
            said = f"{many} can be read by others: {few}."
            yield Remark(name="modes", about="modes", message=said, do=f"chmod -R go= {root}")

    def _mode(self, path: str) -> int:
        found = self._folder.stat(path)
        return stat.S_IMODE(found.st_mode) if found else 0

    def _out_of_shape(self, name: str) -> str:
        """What stands in the place of a file or folder of ours, if it is something else; else nothing."""
        kind, wanted = kind_of(self._store, name), "folder" if name in _FOLDERS else "file"
        if kind not in (wanted, None):
            return {"link": "a link", "folder": "a folder", "file": "a file"}.get(str(kind), "neither file nor folder")
        found = self._folder.stat(f"{FOLDER}/{name}")
        return "a file with a second name" if found and wanted == "file" and found.st_nlink > 1 else ""

    def _shut(self) -> Iterator[tuple[str, int]]:
        """(path, mode it should have) of what is ours and its mode keeps us from, the outermost of each."""
        store = self._folder
        own = store.kind_of(".git/anima") == "file" or kind_of(self._store, "made") == "file"
        for top in (FOLDER, ".git") if own or _is_shut(store.stat(FOLDER)) else (FOLDER,):
            found = store.stat(top)
            if _is_shut(found):
                yield top, 0o700
                continue
            for path, inside in store.walk(top) if found else ():
                if _is_shut(inside):
                    needed = 0o700 if stat.S_ISDIR(inside.st_mode) else 0o600 if top == FOLDER else 0o400
                    yield path, stat.S_IMODE(inside.st_mode) | needed

    def _too_open(self) -> Iterator[tuple[str, int]]:
        """(path, mode it should have) of what others can read on the machine's side."""
        top = self._folder.stat(FOLDER)
        for path, found in chain([(FOLDER, top)] if top else [], self._folder.walk(FOLDER)):
            if stat.S_IMODE(found.st_mode) & 0o077 and (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
                yield path, 0o700 if stat.S_ISDIR(found.st_mode) else 0o600

    # -- repairing ------------------------------------------------------------------------------------------------------

    def prepare(self) -> Iterator[Deed]:
        """Makes it possible to lock the home: where `.anima` is no folder, or its lock no file, nothing can be."""
        store, kind = self._folder, self._folder.kind_of(FOLDER)
        opened: set[str] = set()  # what lies inside comes to light when the outer one is open; some disks know no modes
        while barred := [found for found in self._shut() if found[0] not in opened]:
            for path, mode in barred:
                set_mode(store, path, mode)
                opened.add(path)
                yield Deed(name="unreadable", about=path, said="you can read and write it again")
        if kind in ("file", "other") or (kind == "link" and not leads_somewhere(store, FOLDER)):
            spare = f"{FOLDER}.{self._store.clock():%Y%m%dT%H%M%S}"
            os.rename(FOLDER, spare, src_dir_fd=store.fd, dst_dir_fd=store.fd)
            place = Aside(self._store).move(spare, name="anima")
            said = f"a folder stands there now; what was there is in {place}"
            yield Deed(name="machine-broken", about=FOLDER, said=said)
        yield from self._shapes(_LOCK, "mending")

    def repair(self) -> Iterator[Deed]:
        yield from self._shapes(*_FILES, *_FOLDERS)
        for each in [found for found in self._walk("", []) if found.name == "unreadable"]:
            if (found := self._folder.stat(each.about)) is not None:
                more = 0o700 if stat.S_ISDIR(found.st_mode) else 0o600
                set_mode(self._folder, each.about, stat.S_IMODE(found.st_mode) | more)
                yield Deed(name="unreadable", about=each.about, said="you can read and write it again")
        if many := self._close_to_others():
            said = f"others cannot look into {many:,} thing{'s' if many != 1 else ''} any more"
            yield Deed(name="modes", about="modes", said=said)
        if wrong := list(self._too_open()):
            for path, mode in wrong:
                set_mode(self._folder, path, mode)
            modes = "1 mode is" if len(wrong) == 1 else f"{len(wrong):,} modes are"
            said = f"{modes} mended: 0700 for folders, 0600 for files"
            yield Deed(name="modes", about=FOLDER, said=said)

    def _shapes(self, *names: str) -> Iterator[Deed]:
        for name in names:
            path = f"{FOLDER}/{name}"
            if not self._out_of_shape(name):
                continue
            if kind_of(self._store, name) == "file" and name not in (*_FOLDERS, _LOCK, "mending"):
                self._machine.put(name, self._folder.bytes_of(path) or b"")  # of its own; the other keeps the old
                said = "it has one name again"
            else:
                said = f"set aside in {Aside(self._store).move(path)}"
            yield Deed(name="machine-broken", about=path, said=said)

    def _close_to_others(self) -> int:
        store, many = self._folder, 0
        if stat.S_IMODE(os.fstat(store.fd).st_mode) & 0o077:
            set_mode(store, "", 0o700)
            many += 1
        for name in store.raw_names(""):
            found = None if name.startswith(".") else store.stat(name)
            for path, each in chain([(name, found)], store.walk(name)) if found else ():
                if stat.S_ISREG(each.st_mode) and stat.S_IMODE(each.st_mode) & 0o077:
                    set_mode(store, path, stat.S_IMODE(each.st_mode) & 0o700)
                    many += 1
        return many


def _is_shut(found: os.stat_result | None) -> bool:
    if found is None or found.st_uid != os.geteuid():
        return False
    needed = 0o700 if stat.S_ISDIR(found.st_mode) else 0o400 if stat.S_ISREG(found.st_mode) else 0
    return found.st_mode & needed != needed


# -- ledger and key -----------------------------------------------------------------------------------------------------


def ledger_bytes(store: FolderStore) -> bytes:
    """The bytes of the ledger, opened for this look alone; none where none is."""
    if kind_of(store, LEDGER) != "file":
        return b""
    return store.documents.bytes_of(f"{FOLDER}/{LEDGER}") or b""


def still_ledger(store: FolderStore) -> Ledger:
    """The ledger as it stands; where its key is none, what it says is not proven."""
    return Ledger(Still(ledger_bytes(store)), key=key_of(store)[0], clock=store.clock)


def key_of(store: FolderStore) -> tuple[Key | None, str]:
    """The key, or what is wrong with it."""
    raw = store.machine.get(KEY) if kind_of(store, KEY) == "file" else None
    if raw is None:
        return None, "The key of the ledger is gone; its digests mean nothing without it."
    if raw and not any(raw):
        return None, "The key of the ledger holds nothing but zeros, which anybody can guess."
    try:
        return Key(raw), ""
    except Damaged:
        return None, f"The key of the ledger has {len(raw):,} bytes, which no key of ours has."


class CheckedLedger:
    """Ledger, key, and the mark that there are untrusted lines."""

    def __init__(self, store: FolderStore, *, daily: str) -> None:
        self._store, self._machine, self._daily = store, store.machine, daily

    def check(self) -> Iterator[Remark]:
        if self._store.documents.kind_of(FOLDER) not in ("folder", None):
            return
        data = ledger_bytes(self._store)
        if not data:
            if self._store.had_ledger():
                said = "The ledger is gone; nobody can tell who wrote which line."
                yield Remark(name="ledger-missing", about=LEDGER, message=said)
        else:
            key, trouble = key_of(self._store)
            if trouble:
                yield Remark(name="key-damaged", about=KEY, message=trouble)
            found = self._verified(data, key)
            if found.fault is not None and not (found.fault.kind == "key" and trouble):
                yield _fault_of(found.fault)
            if found.torn and not is_busy(self._store):
                said = f"The ledger ends in {found.torn:,} bytes that are no record: a write was cut short."
                yield Remark(name="torn", about=LEDGER, message=said)
            if found.fault is None:
                yield from self._compared(data)
        yield from self._clock(data)

    def _verified(self, data: bytes, key: Key | None) -> Verification:
        return verify(Still(data), key=key, anchors=self._store.anchors())

    def _compared(self, data: bytes) -> Iterator[Remark]:
        """What only shows when the ledger is compared with what stands there. It is folded where there is reason to."""
        try:
            documents = [each for each in self._store.documents.list_all() if each.path.casefold().endswith(".md")]
        except HomeError:
            return  # a folder is shut, which is said elsewhere
        if not documents:
            said = "Every document is gone; ledger and history are there."
            yield Remark(name="home-wiped", about=self._store.name, message=said)
        blank = [each.path for each in documents if not each.size]
        if not blank:
            return
        known = Provenance(Key(bytes(32)))  # nothing is asked of it that takes the key
        known.fold(still_ledger(self._store).records())
        for path in blank:
            if held := known.size_of(DocPath.parse(path)):
                said = f"{path} is empty, and held {held:,} bytes when anima last wrote it."
                yield Remark(name="document-emptied", about=path, message=said)

    def _clock(self, data: bytes) -> Iterator[Remark]:
        tomorrow = self._store.clock() + timedelta(days=1)
        times = re.findall(rb'"t":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00)"', data)
        if times and max(times).decode() > tomorrow.isoformat(timespec="microseconds"):
            said = f"The ledger has records from {max(times)[:10].decode()}, which is yet to come."
            yield Remark(name="clock-backwards", about=LEDGER, message=said)
        names = self._store.documents.names(self._daily)
        for name in [each for each in names if (day := day_in_name(each)) and day > tomorrow.date()][:3]:
            path = f"{self._daily}/{name}"
            said = f"{path} is a log of a day that is yet to come."
            yield Remark(name="clock-backwards", about=path, message=said)

    # -- repairing ------------------------------------------------------------------------------------------------------

    def repair(self) -> Iterator[Deed]:
        """Puts a new chain in the place of a damaged ledger. The old one is on the disk, aside, before that."""
        with self._store.lock():
            found = {each.name for each in self.check()}
            if wrong := found & {"key-damaged", "ledger-damaged", "ledger-missing"}:
                yield from self._renew(min(wrong))

    def _renew(self, why: str) -> Iterator[Deed]:
        machine, aside, data = self._machine, Aside(self._store), ledger_bytes(self._store)
        machine.make()
        key, trouble = key_of(self._store)
        if trouble and kind_of(self._store, KEY) == "file":
            yield Deed(name=why, about=KEY, said=f"set aside in {aside.move(f'{FOLDER}/{KEY}')}", owner="")
        begun_with = self._verified(data, key).fault
        is_other = key is None or (begun_with is not None and begun_with.kind == "key")
        told, key = None if is_other else key, key or Key(machine.key())
        fault = self._verified(data, told).fault
        made = renew(
            data,
            fault,
            old_key=told,
            key=key,
            anchors=self._store.anchors(),
            now=self._store.clock(),
            why=why,
        )
        place = aside.keep(LEDGER, data) if data else ""
        with self._store.noted.renewing(self._store.whole.last_record):
            machine.put(LEDGER, made.data)
        lost = f"{made.lost:,} {'is' if made.lost == 1 else 'are'} lost"
        said = f"a new chain begins; {made.carried:,} records were carried over, {lost}"
        said += f"; the damaged ledger is in {place}" if place else ""
        yield Deed(name=why, about=LEDGER, said=said, owner="")
        if is_other and machine.get(_FORGOTTEN) is not None:
            where = aside.move(f"{FOLDER}/{_FORGOTTEN}")
            said = f"it means nothing without its key, and is set aside in {where}"
            yield Deed(name="forgotten-broken", about=_FORGOTTEN, said=said)


def _fault_of(fault: Fault) -> Remark:
    if fault.kind == "key":
        said = "The key is not the one this ledger was begun with."
        return Remark(name="key-damaged", about=KEY, message=said)
    headless = fault.line == 1 and fault.kind in ("missing", "order", "altered", "repeated")
    said = "The ledger does not begin with the record of its home." if headless else f"The ledger, {fault.what}."
    return Remark(name="ledger-damaged", about=LEDGER, message=said)


# -- batches and history ------------------------------------------------------------------------------------------------


class CheckedBatches:
    """Batches that a crash cut short, and texts that were staged for one."""

    def __init__(self, store: FolderStore) -> None:
        self._store = store

    def check(self) -> Iterator[Remark]:
        if is_busy(self._store):
            return
        for intent in still_ledger(self._store).pending():
            about = intent.edits[0].path if intent.edits else LEDGER
            said = f"Change {intent.id} was interrupted: it is neither done nor given up."
            yield Remark(name="batch-interrupted", about=about, message=said)
        staged = [path for path, found in self._store.documents.walk(STAGE) if stat.S_ISREG(found.st_mode)]
        if staged:
            many = "1 text was" if len(staged) == 1 else f"{len(staged):,} texts were"
            said = f"{many} staged by a write that was killed before it said so."
            yield Remark(name="leftover", about=STAGE, message=said)

    def repair(self) -> Iterator[Deed]:
        found = {each.name for each in self.check()}
        with self._store.lock():
            if self._store.begun:
                _ = self._store.ledger
                self._store.recover()
            self._store.sweep()
        for name in sorted(found):
            said = "swept up" if name == "leftover" else "ended, and what was staged is swept up"
            yield Deed(name=name, about=STAGE if name == "leftover" else LEDGER, said=said)


class CheckedHistory:
    """The repository of a home's history: readable, or put together anew."""

    def __init__(self, store: FolderStore) -> None:
        self._store, self._folder = store, store.documents

    def check(self) -> Iterator[Remark]:
        from anima.store.git import problems_at

        store, place = self._store, self._store.history_place
        if not store.rules.history:
            return
        if kind_of(store, "made") == "file" and self._folder.kind_of(".git") is not None and place != ".git":
            said = "A repository that is not ours stands in .git; it is not touched."
            yield Remark(name="history-foreign", about=".git", message=said)
        left = self._leftovers()
        if self._folder.kind_of(place) is None and b'"kind":"intent"' in ledger_bytes(store) and not left:
            said = f"History is gone: {place} is not there, and the ledger tells of changes."
            yield Remark(name="history-damaged", about=place, message=said)
        names = {"busy": "history-busy", "other-branch": "history-head"}
        for name, why in problems_at(self._folder, place):
            yield Remark(name=names.get(name, "history-damaged"), about=place, message=f"History: {why}.")
        for name in [] if is_busy(store) else left:
            said = f"{name} was left by something that was interrupted."
            yield Remark(name="leftover", about=name, message=said)

    def _leftovers(self) -> list[str]:
        """What an interrupted swap or repair of history left, and where torn bytes lay in earlier times."""
        place = self._store.history_place
        folder, _, name = place.rpartition("/")
        below = f"{folder}/" if folder else ""
        broken = [
            f"{below}{each}"
            for each in self._folder.raw_names(folder)
            if each.startswith((f"{name}.broken-", f"{name}.made-"))
        ]
        names = (f"{place}.new", f"{place}.past", f"{FOLDER}/torn", *broken)
        return [name for name in names if self._folder.kind_of(name) is not None]

    def repair(self) -> Iterator[Deed]:
        if not self._store.rules.history or not self._store.begun:
            return
        found, place = list(self.check()), self._store.history_place
        if any(each.name == "history-busy" for each in found):
            return
        wrong = [each for each in found if each.name in ("history-damaged", "history-head")]
        if wrong:
            said = "; ".join(self._rebuilt(place)) or "history goes on with the documents as they stand"
            yield Deed(
                name=wrong[0].name, about=place, said=said, owner=None if wrong[0].name == "history-head" else ""
            )
        else:  # history notes where a new chain is, so that its end cannot be cut off unnoticed
            renewed = verify(Still(ledger_bytes(self._store)), key=key_of(self._store)[0]).renewed
            if renewed is not None and renewed.n > max((n for n, _ in self._store.anchors()), default=0):
                self._store.anchor()
        for name in self._leftovers():
            where = Aside(self._store).move(name, name="torn" if name.endswith("/torn") else "repository")
            yield Deed(name="leftover", about=name, said=f"set aside in {where}")

    def _rebuilt(self, place: str) -> list[str]:
        try:
            return self._store.repair_history()
        except (HomeError, OSError):
            self._store.reset_history()
            if self._folder.kind_of(place) is None:
                raise
            where = Aside(self._store).move(place, name="repository")
            self._store.repair_history()
            return [f"begun anew with the documents as they stand; the old repository is in {where}"]


class CheckedIndex:
    """A derived SQLite file: on any doubt it is deleted, and made again when somebody asks for it."""

    def __init__(self, store: Store, name: str, what: str, why: Callable[[], str]) -> None:
        self._store, self._name, self._what, self._why = store, name, what, why

    def check(self) -> Iterator[Remark]:
        if why := self._why():
            said = f"{self._what} will not do: {why}."
            yield Remark(name="index-damaged", about=self._name, message=said)

    def repair(self) -> Iterator[Deed]:
        if self._why():
            for end in ("", "-wal", "-shm", "-journal"):
                self._store.state.remove(f"{self._name}{end}")
            yield Deed(name="index-damaged", about=self._name, said="deleted; it is made again when somebody searches")


# -- taking things out of their place ------------------------------------------------------------------------------------


class Aside:
    """Where one repair puts what it takes out of its place: in `.anima/aside/<time>/…` under its own name, bytes and all; a
    rename, so nothing is copied and a full disk loses nothing. The folder is made when the first thing comes."""

    def __init__(self, store: FolderStore) -> None:
        self._store, self._machine = store.documents, store.machine
        self.folder = f"{ASIDE}/{store.clock():%Y%m%dT%H%M%S}"

    def keep(self, name: str, data: bytes) -> str:
        """Bytes that are to be kept; gives where, beneath the home."""
        place = self._free(name)
        self._machine.put(place.removeprefix(f"{FOLDER}/"), data)
        return place

    def move(self, path: str, *, name: str | None = None) -> str:
        """Moves whatever stands at a path beneath the home: a file, a folder, a link itself, a pipe. Raises Damaged."""
        place = self._free(name or path.removeprefix(f"{FOLDER}/"))
        (here, _, old), (there, _, new) = path.rpartition("/"), place.rpartition("/")
        with as_damage(f"{path} cannot be set aside"):
            self._store.make_folder(there)
            with held(open_folder(self._store.fd, here)) as source, held(open_folder(self._store.fd, there)) as target:
                os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)
                os.fsync(target)
                os.fsync(source)
        self._store.forget(path)
        return place

    def _free(self, name: str) -> str:
        wanted = f"{FOLDER}/{self.folder}/{name.lstrip('.').replace('/.', '/')}"
        tries = (wanted if n == 1 else f"{wanted}-{n}" for n in count(1))
        return next(place for place in tries if self._store.stat(place) is None)


def leads_somewhere(store: Folder, path: str) -> bool:
    """Whether a link has a target."""
    try:
        os.stat(path, dir_fd=store.fd)
    except OSError:
        return False
    return True


def set_mode(store: Folder, path: str, mode: int) -> None:
    """Gives a file or folder another mode, also one that we may not read. Raises Damaged."""
    with as_damage(f"{path or 'the folder'}: its mode cannot be changed"):
        if hasattr(os, "O_PATH") and os.path.isdir("/proc/self/fd"):
            with held(open_beneath(store.fd, path, os.O_PATH) if path else os.dup(store.fd)) as fd:
                os.chmod(f"/proc/self/fd/{fd}", mode)
        else:  # a file that we may not read cannot be held, but its folder can
            folder, _, name = path.rpartition("/")
            with held(open_folder(store.fd, folder)) as fd:
                os.chmod(name or ".", mode, dir_fd=fd, follow_symlinks=os.chmod not in os.supports_follow_symlinks)
    store.forget(path)

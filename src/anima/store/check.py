"""The health of a home in a folder: its files and modes, its ledger and key, its batches and its history.

Promise: looking opens only what it must, changes nothing and waits for nobody. A repair changes no document; whatever
it takes out of its place is set aside first, so that nothing is lost, and being killed half way it can be done again.
Nobody gains trust by a repair. Not here: what a damage is called and what to do about it (upkeep), what a new ledger
may vouch for (ledger.views).
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from itertools import chain, count

from anima.errors import Damaged, HomeError, printable
from anima.ledger import Key, Ledger, Still
from anima.ledger.views import Provenance, Verification, renew, verify
from anima.model import DocPath, Entry, Remark, fold
from anima.store import ASIDE, MACHINE
from anima.store.folder import Folder
from anima.store.place import FolderStore
from anima.store.private import STAGE
from anima.store.safe_open import as_damage, held
from anima.store.whole import OWN_MARK
from anima.text.dates import day_in_name

ROOM = 2**20  # bytes that must be free for a repair to begin
LEDGER, KEY, _LOCK, _FORGOTTEN = "ledger.jsonl", "key", "lock", "forgotten"
LOCKS = (_LOCK, "mending")
_FILES = (LEDGER, KEY, *LOCKS, "made", _FORGOTTEN, "index.sqlite", "index.lock", "talks.sqlite")
_FOLDERS = ("pending", "stage", ASIDE)
_OURS = re.compile(
    r"(?:ledger\.jsonl|key|lock|made|forgotten|dreaming|format|index\.lock|(?:index|talks)\.sqlite(?:[-.]\w+)?"
    r"|pending|stage|aside|lists|mending|schedule|rituals|channels?(?:-[a-z]+)?|call-\d+|snapshots|restore|restoring|restored|looked|\.gitignore|history\.git(?:\.[\w-]+)?)\Z"
)
_KINDS = {"link": "a link", "folder": "a folder", "file": "a file"}


def remark(name: str, about: str, message: str, do: str = "") -> Remark:
    return Remark(name=name, about=about, message=message, do=do)


def kind_of(store: FolderStore, name: str) -> str | None:
    return store.documents.kind_of(f"{MACHINE}/{name}")


def is_busy(store: FolderStore) -> bool:
    """Whether somebody holds the home just now, so that half of something is no damage."""
    return kind_of(store, _LOCK) == "file" and store.machine.lock.holder() is not None


class _Checked:
    def __init__(self, store: FolderStore) -> None:
        self._store, self._folder, self._machine = store, store.documents, store.machine


class CheckedFiles(_Checked):
    """The files and folders of a home, by their kind, owner and mode alone."""

    def barred(self) -> Iterator[Remark]:
        """What must be readable before the rest can be looked at: else it would seem to be gone."""
        is_own = self._folder.kind_of(".git/anima") == "file" or kind_of(self._store, "made") == "file"
        shut = [path for path, mode, wanted in self._modes(MACHINE) if wanted & ~mode]
        if is_own or MACHINE in shut:
            shut += [path for path, _, _ in self._modes(".git")]
        return map(self._unreadable, sorted({path.partition("/")[0]: path for path in reversed(shut)}.values()))

    def check(self) -> Iterator[Remark]:
        if (free := self._folder.free_bytes()) < ROOM:
            yield remark("disk-full", "disk", f"The disk has {free:,} bytes left: nothing can be written safely.")
        yield from self.misshapen(*_FILES, *_FOLDERS)
        if self._folder.kind_of(MACHINE) == "folder":
            for name in sorted(self._folder.raw_names(MACHINE)):
                if not _OURS.match(name):
                    yield remark("foreign-file", f"{MACHINE}/{name}", f".anima/{name} is not ours; nothing reads it.")
            if kind_of(self._store, _LOCK) == "file":
                holder = self._machine.lock.holder()
                held = f"The home is being written: {holder} holds its lock."
                said = held if holder else "Nobody is writing here now; the lock is free."
                yield remark("lock", "lock", said)
        yield from self._walk("")
        root, mode = shlex.quote(self._folder.root), stat.S_IMODE(os.fstat(self._folder.fd).st_mode)
        if mode & 0o077:
            said = f"Other users of this machine can look into the folder (mode {mode:04o})."
            yield remark("modes", "modes", said, do=f"chmod 700 {root}")
        if opened := [path for path, mode, wanted in self._modes() if mode & ~wanted]:
            few = ", ".join(opened[:3]) + (f" and {len(opened) - 3} more" if len(opened) > 3 else "")
            many = "1 file" if len(opened) == 1 else f"{len(opened):,} files"
            yield remark("modes", "modes", f"{many} can be read by others: {few}.", do=f"chmod -R go= {root}")

    def misshapen(self, *names: str) -> Iterator[Remark]:
        """Whether `.anima`, and which of these in it, is something else than it must be."""
        if (top := self._folder.kind_of(MACHINE)) not in ("folder", None):
            do = "move the folder it leads to back into the home" if leads_somewhere(self._folder, MACHINE) else ""
            said = f".anima is {_KINDS.get(str(top), 'no folder')}; nothing can be remembered here."
            yield remark("machine-broken", MACHINE, said, do=do)
            return
        for name in names:
            kind, wanted = kind_of(self._store, name), "folder" if name in _FOLDERS else "file"
            found = self._folder.stat(f"{MACHINE}/{name}")
            said = _KINDS.get(str(kind), "neither file nor folder") if kind not in (wanted, None) else ""
            if not said and found and wanted == "file" and found.st_nlink > 1:
                said = "a file with a second name"
            if said:
                yield remark("machine-broken", f"{MACHINE}/{name}", f".anima/{name} is {said}.")

    def _walk(self, folder: str) -> Iterator[Remark]:
        """What of the home is left out, or can be read as it stands by nobody."""
        found = self._folder.stat(folder or ".")
        if found and (mode := stat.S_IMODE(found.st_mode)) & 0o500 != 0o500:
            yield self._unreadable(folder)
        try:
            listed, strange = self._folder.list(folder), self._folder.strange(folder)
        except HomeError as error:
            if mode & 0o500 == 0o500:
                yield remark("not-looked-at", folder, f"{error}.", do=error.hint or "")
            return
        for name, why in strange:
            path = f"{folder}/{name}".lstrip("/")
            is_odd, shown = self._folder.kind_of(path) in ("link", "other"), printable(path)
            said = f"{shown} is left alone: {why}."
            yield remark("document-not-a-file" if is_odd else "", shown, said)
        seen: dict[str, str] = {}
        for entry in sorted(listed, key=lambda entry: entry.name):
            first = seen.setdefault(fold(entry.name), entry.path)
            if first != entry.path:
                said = f"{first} and {entry.path} are the same name to us; only the first is read."
                yield remark("document-twins", entry.path, said)
        for entry in listed:
            if entry.name.casefold().endswith(".md"):
                yield from self._document(entry)
            if entry.is_folder:
                yield from self._walk(entry.path)

    def _document(self, entry: Entry) -> Iterator[Remark]:
        """What the stat of a document tells, whoever asks: root reads everything, and is told all the same."""
        path, found = entry.path, self._folder.stat(entry.path)
        if entry.is_folder:
            yield remark("document-not-a-file", path, f"{path} is a folder, and its name is that of a document.")
        elif found and found.st_uid != os.geteuid():
            yield remark("not-yours", path, f"{path} belongs to another user (uid {found.st_uid}).")
        elif found and not found.st_mode & stat.S_IRUSR:
            yield self._unreadable(path)
        if found and not entry.is_folder and found.st_nlink > 1:
            kept = "does not write to it" if self._folder.holds_every_name(found) else "neither reads nor writes it"
            yield remark("document-hardlinked", path, f"{path} has {found.st_nlink} names; anima {kept}.")

    def _unreadable(self, path: str) -> Remark:
        found = os.stat(path, dir_fd=self._folder.fd, follow_symlinks=False)
        mode = f"mode {stat.S_IMODE(found.st_mode):04o}, owner {found.st_uid}"
        do = "" if path.startswith(".") else f"chmod u+rwX {shlex.quote(f'{self._folder.root}/{path}')}"
        is_read = not (0o500 if stat.S_ISDIR(found.st_mode) else 0o400) & ~found.st_mode
        said = f"{path}: the system does not let us {('read', 'write')[is_read]} it ({mode})."
        return remark("unreadable", path, said, do=do)

    def _modes(self, *tops: str) -> Iterator[tuple[str, int, int]]:
        """(path, mode, mode it should have) of whatever of ours lies there, or anywhere, and has another."""
        for top in tops or (MACHINE, *(name for name in self._folder.raw_names("") if not name.startswith("."))):
            first = self._folder.stat(top)
            for path, found in chain([(top, first)], self._folder.walk(top)) if first else ():
                mode, is_folder = stat.S_IMODE(found.st_mode), stat.S_ISDIR(found.st_mode)
                if found.st_uid != os.geteuid() or not (is_folder or stat.S_ISREG(found.st_mode)):
                    continue
                if (wanted := _wanted_mode(top, mode, is_folder=is_folder)) != mode:
                    yield path, mode, wanted

    def mend(self, found: Remark) -> str:
        store, path = self._folder, found.about
        if found.name == "unreadable":
            top = path.partition("/")[0]  # of machinery and repository the first alone is told
            for each, _, wanted in self._modes(top):  # what lies in a folder is seen once that is open
                if top.startswith(".") or each == path:
                    set_mode(store, each, wanted)
            return "you can read and write it again"
        if found.name == "modes":
            wrong = [(each, wanted) for each, _, wanted in self._modes()]
            for each, wanted in [("", 0o700), *wrong]:
                set_mode(store, each, wanted)
            return "others cannot look into the home any more"
        if path == MACHINE:
            if leads_somewhere(store, MACHINE):
                return ""  # that is the owner's to move
            spare = f"{MACHINE}.{self._store.clock():%Y%m%dT%H%M%S}"
            os.rename(MACHINE, spare, src_dir_fd=store.fd, dst_dir_fd=store.fd)
            return f"a folder stands there now; what was there is in {set_aside(self._store, spare, name='anima')}"
        name = path.removeprefix(f"{MACHINE}/")
        if kind_of(self._store, name) == "file" and name not in (*_FOLDERS, *LOCKS):
            self._machine.put(name, store.bytes_of(path) or b"")  # of its own; the other keeps the old
            return "it has one name again"
        return f"set aside in {set_aside(self._store, path)}"


def _wanted_mode(top: str, mode: int, *, is_folder: bool) -> int:
    """The mode that something beneath a name in the home should have: its owner can use it, and of machinery and texts
    nobody else reads anything. A folder of texts is closed by the home's own."""
    is_ours = top in (MACHINE, ".git")
    needed = (0o700 if is_ours else 0o500) if is_folder else 0o600 if top == MACHINE else 0o400
    if mode & needed != needed:
        mode |= 0o700 if is_folder else 0o600
    return mode if top == ".git" or (is_folder and not is_ours) else mode & 0o700


# -- ledger and key -----------------------------------------------------------------------------------------------------


def ledger_bytes(store: FolderStore) -> bytes:
    """The bytes of the ledger, however long it is, opened for this look alone; none where none is."""
    return (store.machine.get(LEDGER) if kind_of(store, LEDGER) == "file" else None) or b""


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


class CheckedLedger(_Checked):
    """Ledger, key, and the mark that there are untrusted lines."""

    def __init__(self, store: FolderStore, *, daily: str, is_upper: bool = False) -> None:
        super().__init__(store)
        self._daily, self._is_upper = daily, is_upper  # a layer above another begins without a document

    def check(self) -> Iterator[Remark]:
        if self._store.documents.kind_of(MACHINE) not in ("folder", None):
            return
        data = ledger_bytes(self._store)
        if not data:
            if self._store.had_ledger():
                yield remark("ledger-missing", LEDGER, "The ledger is gone; nobody can tell who wrote which line.")
        else:
            key, trouble = key_of(self._store)
            if trouble:
                yield remark("key-damaged", KEY, trouble)
            found = self._verified(data, key)
            if (fault := found.fault) is not None and fault.kind != "key":
                headless = fault.line == 1 and fault.kind in ("missing", "order", "altered", "repeated")
                begins = "The ledger does not begin with the record of its home."
                said = begins if headless else f"The ledger, {fault.what}."
                yield remark("ledger-damaged", LEDGER, said)
            elif fault is not None and not trouble:
                yield remark("key-damaged", KEY, "The key is not the one this ledger was begun with.")
            if found.torn and not is_busy(self._store):
                said = f"The ledger ends in {found.torn:,} bytes that are no record: a write was cut short."
                yield remark("torn", LEDGER, said)
            if found.fault is None:
                yield from self._compared()
        tomorrow = self._store.clock() + timedelta(days=1)
        times = re.findall(rb'"t":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00)"', data)
        if times and max(times).decode() > tomorrow.isoformat(timespec="microseconds"):
            said = f"The ledger has records from {max(times)[:10].decode()}, which is yet to come."
            yield remark("clock-backwards", LEDGER, said)
        names = self._store.documents.names(self._daily)
        for name in [each for each in names if (day := day_in_name(each)) and day > tomorrow.date()][:3]:
            path = f"{self._daily}/{name}"
            yield remark("clock-backwards", path, f"{path} is a log of a day that is yet to come.")

    def _verified(self, data: bytes, key: Key | None) -> Verification:
        return verify(Still(data), key=key, anchors=self._store.anchors())

    def _compared(self) -> Iterator[Remark]:
        """What only shows when the ledger is compared with what stands there. It is folded where there is reason to."""
        try:
            documents = [each for each in self._store.documents.list_all() if each.path.casefold().endswith(".md")]
        except HomeError:
            return  # a folder is shut, which is said elsewhere
        if not documents and (not self._is_upper or any(still_ledger(self._store).records(kinds=("intent",)))):
            yield remark("home-wiped", self._store.name, "Every document is gone; ledger and history are there.")
        blank = [each.path for each in documents if not each.size]
        if not blank:
            return
        known = Provenance(Key(bytes(32)))  # nothing is asked of it that takes the key
        known.fold(still_ledger(self._store).records())
        for path in blank:
            if held := known.size_of(DocPath.parse(path)):
                said = f"{path} is empty, and held {held:,} bytes when anima last wrote it."
                yield remark("document-emptied", path, said)

    def mend(self, found: Remark) -> str:
        """Puts a new chain in the place of a damaged ledger. The old one is on the disk, aside, before that."""
        with self._store.lock():
            if not any(each.name == found.name for each in self.check()):
                return ""  # it was mended with another
            machine, data = self._machine, ledger_bytes(self._store)
            machine.make()
            key, trouble = key_of(self._store)
            said = ""
            if trouble and kind_of(self._store, KEY) == "file":
                said = f"the key is in {set_aside(self._store, f'{MACHINE}/{KEY}')}; "
            begun_with = self._verified(data, key).fault
            is_other = key is None or (begun_with is not None and begun_with.kind == "key")
            told, key = None if is_other else key, key or Key(machine.key())
            fault = self._verified(data, told).fault
            anchors, now = self._store.anchors(), self._store.clock()
            made, carried, lost = renew(data, fault, old_key=told, key=key, anchors=anchors, now=now, why=found.name)
            place = free_place(self._store, LEDGER)
            if data:
                machine.put(place.removeprefix(f"{MACHINE}/"), data)
            with self._store.noted.renewing(self._store.whole.last_record):
                machine.put(LEDGER, made)
            are = "is" if lost == 1 else "are"
            said += f"a new chain begins; {carried:,} records were carried over, {lost:,} {are} lost"
            said += f"; the damaged ledger is in {place}" if data else ""
            if is_other and machine.get(_FORGOTTEN) is not None:
                where = set_aside(self._store, f"{MACHINE}/{_FORGOTTEN}")
                said += f"; what stays forgotten means nothing without its key, and is in {where}: forget it again"
            return said


class CheckedBatches(_Checked):
    """Batches that a crash cut short, and texts that were staged for one."""

    def check(self) -> Iterator[Remark]:
        if is_busy(self._store):
            return
        for intent in still_ledger(self._store).pending():
            about = intent.edits[0].path if intent.edits else LEDGER
            said = f"Change {intent.id} was interrupted: it is neither done nor given up."
            yield remark("batch-interrupted", about, said)
        staged = [path for path, found in self._store.documents.walk(STAGE) if stat.S_ISREG(found.st_mode)]
        if staged:
            many = "1 text was" if len(staged) == 1 else f"{len(staged):,} texts were"
            yield remark("leftover", STAGE, f"{many} staged by a write that was killed before it said so.")

    def mend(self, found: Remark) -> str:
        with self._store.lock():
            if self._store.begun:
                _ = self._store.ledger
                self._store.recover()
            self._store.sweep()
        return "swept up" if found.name == "leftover" else "ended, and what was staged is swept up"


class CheckedHistory(_Checked):
    """The repository of a home's history: readable, or put together anew."""

    def check(self) -> Iterator[Remark]:
        store, place = self._store, self._store.history_place
        if not store.rules.history:
            return
        if kind_of(store, "made") == "file" and self._folder.kind_of(".git") is not None and place != ".git":
            yield remark("history-foreign", ".git", "A repository that is not ours stands in .git; it is not touched.")
        left = self._leftovers()
        if self._folder.kind_of(place) is None and b'"kind":"intent"' in ledger_bytes(store) and not left:
            said = f"History is gone: {place} is not there, and the ledger tells of changes."
            yield remark("history-damaged", place, said)
        for name, why in self._problems(place):
            yield remark(f"history-{name}", place, f"History: {why}.")
        for name in [] if is_busy(store) else left:
            yield remark("leftover", name, f"{name} was left by something that was interrupted.")

    def _problems(self, place: str) -> list[tuple[str, str]]:
        from anima.store.git import History

        if self._folder.kind_of(place) is None:
            return []
        if self._folder.kind_of(place) != "folder" or self._folder.kind_of(f"{place}/{OWN_MARK}") != "file":
            return [("damaged", "it is not a repository of ours")]
        try:
            with closing(History.open(f"{self._folder.root}/{place}")) as history:
                return history.problems()
        except (HomeError, OSError) as error:
            return [("damaged", str(error))]

    def _leftovers(self) -> list[str]:
        place = self._store.history_place
        folder, _, name = place.rpartition("/")
        ours = re.compile(rf"{re.escape(name)}\.(?:new|past|(?:broken|made)-.*)")
        names = self._folder.raw_names(folder)
        return [f"{folder}/{each}".lstrip("/") for each in sorted(names) if ours.fullmatch(each)]

    def mend(self, found: Remark) -> str:
        if not self._store.begun or any(each.name == "history-busy" for each in self.check()):
            return ""
        if found.name == "leftover":
            _ = self._store.history  # which puts a repository that was made by a repair in its place
            if self._folder.kind_of(found.about) is None:
                return "it stands in its place now"
            return f"set aside in {set_aside(self._store, found.about, name='repository')}"
        place = found.about
        try:
            done = self._store.repair_history()
        except (HomeError, OSError):
            if self._folder.kind_of(place) is None:
                raise
            where = set_aside(self._store, place, name="repository")
            self._store.repair_history()
            done = [f"begun anew with the documents as they stand; the old repository is in {where}"]
        done += [f"{name} is in {set_aside(self._store, name, name='repository')}" for name in self._leftovers()]
        return "; ".join(done) or "history goes on with the documents as they stand"


# -- taking things out of their place ------------------------------------------------------------------------------------


def set_aside(store: FolderStore, path: str, *, name: str | None = None) -> str:
    """Moves whatever stands at a path beneath the home (a file, a folder, a link itself, a pipe) to `.anima/aside/<time>/…`,
    and gives its place there. A rename, so nothing is copied and a full disk loses nothing. Raises Damaged."""
    folder, place = store.documents, free_place(store, name or path.removeprefix(f"{MACHINE}/"))
    (here, _, old), (there, _, new) = path.rpartition("/"), place.rpartition("/")
    with as_damage(f"{path} cannot be set aside"):
        folder.make_folder(there)
        with folder.inside(here) as source, folder.inside(there) as target:
            os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)
            os.fsync(target)
            os.fsync(source)
    return place


def free_place(store: FolderStore, name: str) -> str:
    """Where something is kept that is taken out of its place now."""
    wanted = f"{MACHINE}/{ASIDE}/{store.clock():%Y%m%dT%H%M%S}/{name.lstrip('.').replace('/.', '/')}"
    tries = (wanted if n == 1 else f"{wanted}-{n}" for n in count(1))
    return next(place for place in tries if store.documents.stat(place) is None)


def leads_somewhere(store: Folder, path: str) -> bool:
    try:
        return store.kind_of(path) == "link" and bool(os.stat(path, dir_fd=store.fd))
    except OSError:
        return False


def set_mode(store: Folder, path: str, mode: int) -> None:
    """Gives a file or folder another mode, also one that we may not read. Raises Damaged."""
    with as_damage(f"{path or 'the folder'}: its mode cannot be changed"):
        if hasattr(os, "O_PATH") and os.path.isdir("/proc/self/fd"):
            with held(store.beneath(path, os.O_PATH) if path else os.dup(store.fd)) as fd:
                os.chmod(f"/proc/self/fd/{fd}", mode)
        else:  # a file that we may not read cannot be held, but its folder can
            folder, _, name = path.rpartition("/")
            with store.inside(folder) as fd:
                os.chmod(name or ".", mode, dir_fd=fd, follow_symlinks=os.chmod not in os.supports_follow_symlinks)

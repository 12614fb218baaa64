"""Putting a snapshot in a home's place; and the proof that a home which was moved to another store is the same there.

Promise: the whole archive is verified before anything is written; what is there now becomes a snapshot first; then the
home is the old one or the new one, wherever it is killed (store.private). What was forgotten since is taken out of files
and history before they count. Whatever no snapshot holds stays; what stands in the way is named, and nothing is written.
A home is moved over nothing, or an earlier state of itself, and only when every file, record and version is the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from anima.backup import archive, snapshot
from anima.backup.archive import Manifest, Progress
from anima.backup.snapshot import Snapshots
from anima.errors import Damaged, HomeError, Refused, printable
from anima.layout.trust import Register
from anima.ledger import Key
from anima.ledger.views import verify
from anima.memory.forgotten import FILE as FORGOTTEN
from anima.memory.forgotten import ForgottenList, Phrase, dumped, loaded
from anima.model import File, fold, is_address
from anima.store import MOST_READ, Note, Store, Swapping, Whole
from anima.store.edits import Heads, without_text
from anima.store.git import rewrite_staged
from anima.store.outside import Shelf, Snapshot, expanded, open_archive
from anima.store.private import MACHINERY, REPOSITORIES, make_home_folder, path_of_state
from anima.store.whole import FolderWhole
from anima.text.phrases import loose

BEFORE = "before-restore"
_KEY, _LIST = path_of_state("key"), path_of_state(FORGOTTEN)
_KEEP = {_KEY: 64, _LIST: 64 * 2**20}
Opens = Callable[[str | Path], AbstractContextManager[Snapshots | None]]
Transcribed = Callable[[bytes, Callable[[str], bool]], bytes | None]
Seen = Mapping[str, tuple[File, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """What a restore changed, or would. `before` is the snapshot of what was there, if anything was."""

    home: str
    archive: str
    digest: str
    agent: str
    new: tuple[str, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    same: int
    done: bool
    before: Snapshot | None = None
    forgotten: int = 0  # phrases that were forgotten since, and are left out
    left: tuple[tuple[str, str], ...] = ()  # what no snapshot holds, and why; it stays where it is
    notes: tuple[str, ...] = ()


class _Source(NamedTuple):
    """An archive, verified, and how to read it again."""

    path: str
    identities: Sequence[str]
    room: int | None  # how much it may unpack to
    manifest: Manifest
    kept: Mapping[str, bytes]
    instead: Mapping[str, bytes | None] = {}  # what is written in place of a file's own bytes; None for nothing

    @property
    def files(self) -> Iterator[File]:
        """Every file as it will stand in the home."""
        for file in self.manifest.files:
            data = self.instead.get(file.path, b"")
            if file.path not in self.instead:
                yield file
            elif data is not None:
                yield file._replace(size=len(data), sha256=hashlib.sha256(data).hexdigest())

    def is_of(self, whole: Whole) -> bool:
        """Whether it is a snapshot of this very home."""
        key = self.kept.get(_KEY)
        return key is not None and whole.state.get("key") == key

    def members(self) -> Iterator[archive.Member]:
        """The archive once more; should it be another one by now, nothing of it is used."""
        with open_archive(self.path, identities=self.identities) as raw:
            manifest, members = archive.read(raw, room=self.room)
            if manifest.digest != self.manifest.digest:
                raise Damaged("the snapshot changed while it was being restored; nothing was written")
            yield from members


class _Place(NamedTuple):
    """Where it goes. `snapshots` is None where no home can be opened: a broken one is restored too."""

    whole: Whole
    snapshots: Snapshots | None
    register: Register
    now: datetime
    transcript: Transcribed  # a transcript's bytes without the entries that hold something; None for what is none


def restore(
    given: str,
    path: str | Path,
    *,
    opens: Opens,
    transcript: Transcribed,
    register: Register,
    now: datetime,
    identities: Sequence[str] = (),
    large: bool = False,
    other: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Restoration:
    """Verifies, takes a snapshot of what is there, and puts the archive in its place. Raises Damaged or Refused."""
    path = path if is_address(path) else expanded(path)
    found, is_own = _found(given, path, opens)
    room = archive.room_of(found, large=large or is_own)
    with open_archive(found, identities=identities) as raw:
        manifest, kept = archive.verify(raw, room=room, keep=_KEEP, progress=progress)
    source = _Source(found, identities, room, manifest, kept)
    if dry_run and not _is_there(path):
        return _compared(_guarded(source), {}, str(path))
    if not _is_there(path):
        make_home_folder(expanded(path), for_owner=True)
    with opens(path) as snapshots, nullcontext(snapshots.whole) if snapshots else FolderWhole.at(path) as whole:
        place = _Place(whole, snapshots, snapshots.register if snapshots else register, now, transcript)
        source = source if source.is_of(whole) else _guarded(source)
        _check_home(source, whole, whole.census()[0], other)  # before the lock leaves a trace
        if dry_run:
            told, left = _compared(source, whole.survey(), whole.name), whole.census()[1]
            whole.check_ways(told.new, told.gone, left)
            return replace(told, left=tuple(left), forgotten=len(_forgotten_since(source, whole)))
        with whole.lock():
            return _done(source, place, other=other)


def _is_there(path: str | Path) -> bool:
    """Whether something is there to be opened; a home in a database is made by opening it."""
    return is_address(path) or os.path.isdir(path)


def _found(given: str, path: str | Path, opens: Opens) -> tuple[str, bool]:
    """The archive that is meant: a file, or one of the home's own, also of a home that cannot be opened; and whether it
    is the home's own for sure."""
    if not _is_there(path):  # it need not be there, and keeps none
        return snapshot.meant((), given), False
    with opens(path) as snapshots:
        if snapshots is not None:
            return (found := snapshots.path_of(given)), snapshots.is_own(found)
    with FolderWhole.at(path) as whole:
        return snapshot.meant(Shelf(whole.snapshots).all(), given), False


def _guarded(source: _Source) -> _Source:
    """The archive of a home that is not the one here: whoever made it must not make the owner's git run anything."""
    from anima.store.repository import harmless

    # What stands beside a repository takes its place when a rewriting was interrupted.
    beside = tuple(f"{folder.rstrip('/')}." for folder in REPOSITORIES)
    instead: dict[str, bytes | None] = {f.path: None for f in source.manifest.files if fold(f.path).startswith(beside)}
    for file in source.manifest.files:
        for folder, bare in REPOSITORIES.items():
            own = harmless(file.path.removeprefix(folder), b"", bare=bare) if file.path.startswith(folder) else b""
            if own is None or (own and hashlib.sha256(own).hexdigest() != file.sha256):
                instead[file.path] = own
    return source._replace(instead=instead)


def _compared(source: _Source, seen: Seen, root: str, files: Iterable[File] | None = None) -> Restoration:
    manifest = source.manifest
    wanted = {file.path: file for file in (source.files if files is None else files)}
    new = tuple(path for path in wanted if path not in seen)
    changed = tuple(path for path, file in wanted.items() if path in seen and seen[path][0].sha256 != file.sha256)
    unsafe = [printable(path, 60) for path in source.instead]
    named = ", ".join(unsafe[:3]) + (f" and {len(unsafe) - 3} more" if len(unsafe) > 3 else "")
    note = f"{named} could make git run a program, so it is left out or as anima writes it"
    return Restoration(
        home=root,
        archive=source.path,
        digest=manifest.digest,
        agent=manifest.agent,
        new=new,
        changed=changed,
        done=False,
        gone=tuple(path for path in seen if path not in wanted),
        same=len(wanted) - len(new) - len(changed),
        notes=(note,) if unsafe else (),
    )


def _check_home(source: _Source, whole: Whole, seen: Sized, other: bool) -> None:
    """Another home's files are never swept away by mistake."""
    if not seen or other or source.is_of(whole):
        return
    is_home = whole.state.version("key") is not None
    what = "another home" if is_home else f"{len(seen):,} files that are no home of anima's"
    named = f"{printable(source.manifest.agent) or 'another'} ({printable(source.manifest.home)})"
    why = f"{whole.name}: {what} stands here, and this snapshot is of {named}; nothing was written"
    hint = "restore it into an empty folder, or say --other-home: what is here becomes a snapshot first"
    raise Refused(why, rule="another-home", hint=hint)


def _done(source: _Source, place: _Place, *, other: bool) -> Restoration:
    """Under the home lock from the snapshot of what is there to the last file, so that nothing comes in between."""
    whole, is_same = place.whole, source.is_of(place.whole)
    seen = whole.survey()
    _check_home(source, whole, seen, other)
    fresh = _forgotten_since(source, whole)
    before, own = None, place.snapshots
    if seen:  # what is there, kept. Sealed for nobody: it stays in the home, whose bytes it is
        with own.packed() if own is not None else snapshot.packed(whole) as made:
            before = snapshot.put(Shelf(whole.snapshots), made, at=place.now, label=BEFORE)
        seen = whole.survey() if own is not None else seen  # what was late is committed now
    with whole.swapping() as swap:
        clean = (_cleaned(source, place, swap, seen, fresh), set[str]()) if fresh else None
        found, stamped = clean or _staged(source, whole, swap, seen)
        left = whole.census()[1]
        whole.check_ways(found.new, found.gone, left)
        time, was = place.now.astimezone(UTC).isoformat(), before.digest if before else None
        said = {"time": time, "digest": source.manifest.digest, "before": was}
        noted = Heads(place.register.head(whole.name, whole.identity))
        with nullcontext() if is_same else _distrusted(place), noted.renewing(whole.last_record):
            swap.begin((*found.new, *found.changed, *stamped), found.gone, json.dumps(said))
    notes = found.notes
    if not is_same:  # a home that came from elsewhere is not trusted: its configuration may only make things stricter
        with suppress(HomeError):
            place.register.note(whole.name, identity=whole.identity, made=place.now, trusted=False)
        if any(file.path == "anima.toml" for file in source.manifest.files):
            notes += ("its anima.toml counts only as far as it makes things stricter, until you say anima trust-home",)
    return replace(found, done=True, before=before, left=tuple(left), notes=notes)


def _staged(source: _Source, whole: Whole, swap: Swapping, seen: Seen) -> tuple[Restoration, set[str]]:
    """What differs, on the disk beside the home; and what differs in nothing but its mode or second, which goes with it, or
    the next snapshot would differ."""
    found = _compared(source, seen, whole.name)
    differs, stamped = {*found.new, *found.changed}, set[str]()
    whole.check_space(file.size for file in source.manifest.files if file.path in differs)
    for file, mtime, pieces in source.members():
        if (own := source.instead.get(file.path, b"")) is None:
            continue
        if file.path not in differs and (seen[file.path][1] != mtime or seen[file.path][0].mode != file.mode):
            stamped.add(file.path)
        if file.path in differs or file.path in stamped:
            swap.stage(file.path, [own] if own else pieces, mode=file.mode, mtime=mtime)
    return found, stamped


@contextmanager
def _distrusted(place: _Place) -> Iterator[None]:
    """Before another home counts here, the folder is trusted no more: a kill must not leave a stranger's configuration
    with the trust of what stood here. Raises Damaged where that cannot be written down; nothing was restored then."""
    whole, register = place.whole, place.register
    if not register.trusts(whole.name, whole.identity):
        yield
        return
    register.note(whole.name, identity=whole.identity, trusted=False)
    try:
        yield
    except BaseException:
        if not whole.is_swapping():
            with suppress(HomeError):
                register.note(whole.name, identity=whole.identity, trusted=True)
        raise


def _forgotten_since(source: _Source, whole: Whole) -> dict[str, Phrase]:
    """The phrases this home has forgotten since, also those that were forgotten, and came back, before."""
    raw = whole.state.get(FORGOTTEN) if source.is_of(whole) else None
    if raw is None:
        return {}
    then = loaded(source.kept[_LIST]) if _LIST in source.kept else {}
    return {digest: phrase for digest, phrase in loaded(raw).items() if then.get(digest) != phrase}


def _cleaned(source: _Source, place: _Place, swap: Swapping, seen: Seen, fresh: Mapping[str, Phrase]) -> Restoration:
    """All of the archive, beside the home, without what was forgotten since."""
    whole, key = place.whole, Key(source.kept[_KEY])
    forgotten = ForgottenList(whole.state, lambda: key, only=fresh)
    whole.check_space(2 * file.size for file in source.manifest.files)
    lost, unread = 0, list[str]()
    for file, mtime, pieces in source.members():
        data: Iterable[bytes] | None = pieces
        if file.path == _LIST:
            continue
        if file.size > MOST_READ:
            unread.append(f"{file.path}: it has {file.size:,} bytes, which is more than anima looks through")
        elif not file.path.startswith(tuple(REPOSITORIES)) and file.path != _KEY:
            was = b"".join(pieces)
            new = _without(forgotten, place.transcript, file.path, was)
            lost += new != was
            data = None if new is None else [new]
        if data is not None:
            swap.stage(file.path, data, mode=file.mode, mtime=mtime)
    then = loaded(source.kept[_LIST]) if _LIST in source.kept else {}
    swap.stage(_LIST, [dumped((then | dict(fresh)).values())], mode=0o600, mtime=0)

    note = Note(what="restore", actor="owner", author=source.manifest.agent, time=place.now)
    rewrite_staged(
        swap.place,
        lambda path, data: _without(forgotten, place.transcript, path, data),
        lambda said: without_text(said, forgotten.holds),
        note,
    )
    with FolderWhole.at(swap.place) as staged:
        files = [file for file, _ in staged.survey().values()]
    found = _compared(source, seen, whole.name, files)
    told = f"{len(fresh)} phrases were forgotten since this snapshot; {lost} things that held them are left out"
    notes = (f"{told}, so the home differs from the snapshot there", *unread)
    return replace(found, forgotten=len(fresh), notes=notes)


def _without(forgotten: ForgottenList, transcript: Transcribed, path: str, data: bytes) -> bytes | None:
    """A file as if it had never held it; None where nothing else was in it, or it is no text of ours to change."""
    if not forgotten.holds(loose(data)):
        return data
    if path.endswith(".jsonl") and (left := transcript(data, forgotten.holds)) is not None:
        return left
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    while not path.startswith(MACHINERY) and forgotten.holds(text):
        text = forgotten.without(text)[0]
    return None if not text.strip() or forgotten.holds(loose(text.encode())) else text.encode()


# -- a home in another kind of store ------------------------------------------------------------------------------------


_APART = (*REPOSITORIES, path_of_state("restored"))  # compared as versions; what a restore says of itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What was moved and is the same in both places; `was_there` says that all of it stood there already."""

    source: str
    target: str
    files: int
    bytes: int
    records: int
    revisions: int
    was_there: bool = False


def follows(old: Store, new: Store) -> bool:
    """Whether an earlier state of this home stands at the other place; False where nothing does. Raises Refused."""
    is_others = new.key.id != old.key.id if new.begun else any(True for _ in new.documents.list_all())
    if is_others:
        raise Refused(f"{new.name}: another home stands there; nothing was written", rule="another-home")
    if not new.begun:
        return False
    tip = new.ledger.tip
    if not old.ledger.holds(tip.n, tip.hash):
        hint = "migrate it the other way, or to a new place"
        raise Refused(f"{new.name} was written to since it was moved; nothing was written", rule="went-on", hint=hint)
    return True


def compared(old: Store, new: Store) -> Migration:
    """What is the same in both. Raises Damaged where anything differs."""
    files, theirs = _files(old), _files(new)
    if differ := sorted(path for path in {*files, *theirs} if files.get(path) != theirs.get(path)):
        raise _differs(new, f"{differ[0]} and {len(differ) - 1} more" if differ[1:] else differ[0])
    if old.log.read(0, old.log.size()) != new.log.read(0, new.log.size()):
        raise _differs(new, "the ledger")
    found = verify(new.log, key=new.key, anchors=new.anchors())
    if not found.ok:
        raise _differs(new, "the chain")
    revisions, versions = _versions(old)
    if (revisions, versions) != _versions(new):
        raise _differs(new, "history")
    size = sum(size for size, _ in files.values())
    return Migration(
        source=old.name, target=new.name, files=len(files), bytes=size, records=found.records, revisions=revisions
    )


def _files(store: Store) -> dict[str, tuple[int, str]]:
    seen = store.whole.survey()
    return {path: (file.size, file.sha256) for path, (file, _) in seen.items() if not path.startswith(_APART)}


def _versions(store: Store) -> tuple[int, list[tuple[str, str]]]:
    """How many revisions there are, and the digest of every version and of what each revision says."""
    with store.kept_history() as history:
        every = list(history.versions()) if history is not None else []
    digests = [
        (path or "", hashlib.sha256(data.strip() if path is None else data).hexdigest()) for _, path, data in every
    ]
    return sum(path is None for _, path, _ in every), sorted(digests)


def _differs(new: Store, what: str) -> Damaged:
    hint = "run it again: what is the same is not written again, and the first home is as it was"
    return Damaged(f"{new.name} is not the same: {what} differs", hint=hint)

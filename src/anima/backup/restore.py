"""Putting a snapshot in a home's place.

Promise: the whole archive is verified before anything is written; what is there now becomes a snapshot first; then the
home is the old one or the new one, wherever it is killed (store.swap). What was forgotten since stays forgotten. Links,
and whatever else no snapshot holds, stay where they are; whatever stands in the way is named, and nothing is written.
Not here: taking snapshots (snapshots).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from anima import site
from anima.backup import snapshot
from anima.backup.snapshot import Facts, Snapshot
from anima.errors import Damaged, HomeError, Refused, printable
from anima.forget import purge
from anima.forget.forget import carry_out
from anima.forget.wanted import MOST_TEXT, Asked
from anima.layout.trust import Register
from anima.memory.forgotten import FILE as FORGOTTEN
from anima.memory.forgotten import Phrase, dumped, loaded
from anima.store import archive, seal, swap
from anima.store.archive import File, Manifest, Progress
from anima.store.folder import Folder, is_restoring
from anima.store.foreign import bytes_of, files_in
from anima.store.outside import expanded
from anima.store.private import Machine
from anima.store.shelf import Shelf
from anima.text.phrases import flat, loose

if TYPE_CHECKING:
    from anima.home import Home

BEFORE = "before-restore"
_KEY, _LIST = ".anima/key", f".anima/{FORGOTTEN}"
_KEEP = {_KEY: 64, _LIST: 64 * 2**20}
_REPOSITORIES = {".git/": False, ".anima/history.git/": True}  # and whether it is bare
_TREE = "home"  # beneath the area, where a home is cleaned before it takes its place
Opens = Callable[..., "Home"]
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
    passphrase: str | None
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


class _Staged(NamedTuple):
    """What will change, and the files that are ready for it."""

    found: Restoration
    puts: tuple[swap.Put, ...]
    touches: tuple[swap.Touch, ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where it goes. `home` is None where none can be opened."""

    store: Folder
    machine: Machine
    home: Home | None

    @property
    def settings(self) -> dict[str, Any] | None:
        if self.home is None:
            return None
        config = self.home.config
        return {
            "dialect": self.home.dialect,
            "sessions.dir": config.sessions.dir,
            "history.enabled": config.history.enabled,
        }


def restore(
    given: str,
    path: str | Path,
    *,
    opens: Opens,
    register: Register,
    now: datetime,
    identities: Sequence[str] = (),
    passphrase: str | None = None,
    other: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Restoration:
    """Verifies, takes a snapshot of what is there, and puts the archive in its place. Raises Damaged or Refused."""
    path = expanded(path)
    source = _verified(_found(given, path, opens), identities, passphrase, progress)
    if dry_run and not path.is_dir():
        source = _guarded(source)
        return replace(_compared(source, {}, str(path)), notes=_about_git(source))
    with _place(path, opens) as place:
        source = source if _is_same(source, place) else _guarded(source)
        _check_home(source, place, archive.census(place.store)[0], other)  # before the lock leaves a trace
        if dry_run:
            return _told(source, place)
        with place.machine.lock.hold():
            return _done(source, place, opens=opens, register=register, now=now, other=other)


def _found(given: str, path: Path, opens: Opens) -> str:
    """The archive that is meant: a file, or one of the home's own, also of a home that cannot be opened."""
    if os.path.isfile(file := os.path.expanduser(given)):
        return file
    if (home := _opened(path, opens)) is None:
        return snapshot.find_in(Shelf(f"{path}/{snapshot.OWN}"), given)
    with home:
        return snapshot.find(home, given)


def _verified(found: str, identities: Sequence[str], passphrase: str | None, progress: Progress | None) -> _Source:
    with seal.opened(found, identities=identities, passphrase=passphrase) as raw:
        manifest, kept = archive.verify(raw, keep=_KEEP, progress=progress)
    return _Source(found, identities, passphrase, manifest, kept)


def _guarded(source: _Source) -> _Source:
    """The archive of a home that is not the one here: whoever made it must not make the owner's git run anything."""
    from anima.store.gitdir import harmless

    instead: dict[str, bytes | None] = {}
    for file in source.manifest.files:
        for folder, bare in _REPOSITORIES.items():
            own = harmless(file.path.removeprefix(folder), b"", bare=bare) if file.path.startswith(folder) else b""
            if own is None or (own and hashlib.sha256(own).hexdigest() != file.sha256):
                instead[file.path] = own
    return source._replace(instead=instead)


def _about_git(source: _Source) -> tuple[str, ...]:
    names = [printable(path, 60) for path in source.instead]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return (f"{shown} could make git run a program, so it is left out or as anima writes it",) if names else ()


@contextmanager
def _place(path: Path, opens: Opens) -> Iterator[_Place]:
    """The folder, made when it is missing, and the home in it when it can be opened: a broken one is restored too."""
    if not path.is_dir():
        site.make_folder(path, for_owner=True)
    home = _opened(path, opens)
    if home is not None:
        with home:
            yield _Place(home.store, home.books.machine, home)
        return
    store = Folder(path)
    machine = Machine(store)
    try:
        yield _Place(store, machine, None)
    finally:
        machine.lock.close()
        store.close()


def _opened(path: Path, opens: Opens) -> Home | None:
    try:
        return opens(path) if path.is_dir() and any(path.iterdir()) else None
    except (HomeError, OSError):
        return None


# -- what would change --------------------------------------------------------------------------------------------------------


def _told(source: _Source, place: _Place) -> Restoration:
    seen = archive.survey(place.store)
    found = _compared(source, seen, place.store.root)
    left = archive.census(place.store)[1]
    _check_ways(place.store, found, left)
    return replace(found, left=tuple(left), forgotten=len(_forgotten_since(source, place)), notes=_about_git(source))


def _compared(source: _Source, seen: Seen, root: str, files: Iterable[File] | None = None) -> Restoration:
    manifest = source.manifest
    wanted = {file.path: file for file in (source.files if files is None else files)}
    new = tuple(path for path in wanted if path not in seen)
    changed = tuple(path for path, file in wanted.items() if path in seen and seen[path][0].sha256 != file.sha256)
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
    )


def _check_home(source: _Source, place: _Place, seen: Sized, other: bool) -> None:
    """Another home's files are never swept away by mistake."""
    if not seen or other or _is_same(source, place):
        return
    what = "another home" if place.store.stat(_KEY) is not None else f"{len(seen):,} files that are no home of anima's"
    raise Refused(
        f"{place.store.root}: {what} stands here, and this snapshot is of {printable(source.manifest.agent) or 'another'} "
        f"({printable(source.manifest.home)}); nothing was written",
        rule="another-home",
        hint="restore it into an empty folder, or say --other-home: what is here becomes a snapshot first",
    )


def _is_same(source: _Source, place: _Place) -> bool:
    key = source.kept.get(_KEY)
    return key is not None and place.machine.get("key") == key


def _check_ways(store: Folder, found: Restoration, left: Iterable[tuple[str, str]]) -> None:
    """Raises Refused for what stands where a file of the snapshot must go, and is not ours to move."""
    gone, kept = set(found.gone), tuple(path for path, _ in left)
    if any(path.startswith(".git/") for path in found.new) and ".git" in kept:
        raise Refused(
            "the .git here is not anima's, and the snapshot has one of its own; nothing was written",
            rule="in-the-way",
            hint="move it away first, or restore into an empty folder",
        )
    for path in found.new:
        for above in _above(path):
            at = store.stat(above)
            if at is not None and not stat.S_ISDIR(at.st_mode) and above not in gone:
                raise _in_the_way(above)
        at = store.stat(path)
        if at is None:
            continue
        if not stat.S_ISDIR(at.st_mode) or any(each.startswith(f"{path}/") for each in kept):
            raise _in_the_way(path)


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _in_the_way(path: str) -> Refused:
    return Refused(
        f"{printable(path)} stands in the way: a link, or something no snapshot holds; nothing was written",
        rule="in-the-way",
        hint="move it away and restore again",
    )


# -- the deed -----------------------------------------------------------------------------------------------------------------


def _done(
    source: _Source, place: _Place, *, opens: Opens, register: Register, now: datetime, other: bool
) -> Restoration:
    """Under the home lock from the snapshot of what is there to the last file, so that nothing comes in between."""
    store, is_same = place.store, _is_same(source, place)
    seen = archive.survey(store)
    _check_home(source, place, seen, other)
    fresh = _forgotten_since(source, place) if is_same else {}
    before = _before(place, now) if seen else None
    seen = archive.survey(store) if place.home is not None and seen else seen  # what was late is committed now
    swap.clear(store)
    try:
        found, puts, touches = _staged(source, place, seen, fresh, opens)
        left = archive.census(store)[1]
        _check_ways(store, found, left)
        said = {
            "time": now.astimezone(UTC).isoformat(),
            "digest": source.manifest.digest,
            "before": before.digest if before else None,
        }
        with nullcontext() if is_same else _distrusted(store, register):
            swap.begin(place.machine, swap.Swap(puts, found.gone, touches, json.dumps(said)))
    except BaseException:
        if not is_restoring(store):
            swap.clear(store)
        raise
    notes = (*found.notes, *_registered(source, place, register, now, is_same=is_same))
    return replace(found, done=True, before=before, left=tuple(left), notes=notes)


def _before(place: _Place, now: datetime) -> Snapshot:
    """What is there, kept. Sealed for nobody: it stays in the home, whose bytes it is."""
    facts = snapshot.facts_of(place.home) if place.home is not None else Facts()
    with snapshot.packed(place.machine, facts, late=lambda: snapshot.end_late(place.home)) as made:
        return snapshot.put(Shelf(f"{place.store.root}/{snapshot.OWN}"), made, at=now, label=BEFORE)


def _staged(source: _Source, place: _Place, seen: Seen, fresh: Mapping[str, Phrase], opens: Opens) -> _Staged:
    """What differs, on the disk beside the home."""
    if fresh:
        return _cleaned(source, place, seen, fresh, opens)
    found = replace(_compared(source, seen, place.store.root), notes=_about_git(source))
    numbers = {path: str(number) for number, path in enumerate((*found.new, *found.changed))}
    _check_space(place.store, (file.size for file in source.manifest.files if file.path in numbers))
    touches = []
    for file, mtime, pieces in _members(source):
        if (own := source.instead.get(file.path, b"")) is None:
            continue
        if file.path in numbers:
            swap.stage(place.store, numbers[file.path], [own] if own else pieces, mode=file.mode, mtime=mtime)
        elif seen[file.path][1] != mtime or seen[file.path][0].mode != file.mode:
            touches.append(swap.Touch(file.path, file.mode, mtime))  # or the next snapshot would differ
    return _Staged(found, tuple(swap.Put(staged, path) for path, staged in numbers.items()), tuple(touches))


def _members(source: _Source) -> Iterator[archive.Member]:
    """The archive once more; should it be another one by now, nothing of it is used."""
    with seal.opened(source.path, identities=source.identities, passphrase=source.passphrase) as raw:
        manifest, members = archive.read(raw)
        if manifest.digest != source.manifest.digest:
            raise Damaged("the snapshot changed while it was being restored; nothing was written")
        yield from members


def _check_space(store: Folder, sizes: Iterable[int]) -> None:
    disk, need = os.fstatvfs(store.fd), sum(size + 4096 for size in sizes)
    if (free := disk.f_bavail * disk.f_frsize) < need:
        raise Damaged(f"the snapshot needs {need:,} bytes, and {free:,} are free on this disk; nothing was written")


@contextmanager
def _distrusted(store: Folder, register: Register) -> Iterator[None]:
    """Before another home counts here, the folder is trusted no more: a kill must not leave a stranger's configuration
    with the trust of what stood here. Raises Damaged where that cannot be written down; nothing was restored then."""
    if not register.trusts(store.root, store.identity):
        yield
        return
    register.note(store.root, identity=store.identity, trusted=False)
    try:
        yield
    except BaseException:
        if not is_restoring(store):
            with suppress(HomeError):
                register.note(store.root, identity=store.identity, trusted=True)
        raise


def _registered(source: _Source, place: _Place, register: Register, now: datetime, *, is_same: bool) -> list[str]:
    """A home that came from elsewhere is not trusted: its configuration may only make things stricter."""
    if is_same:
        return []
    site.note_quietly(register, place.store, made=now, trusted=False)
    if any(file.path == "anima.toml" for file in source.manifest.files):
        return ["its anima.toml counts only as far as it makes things stricter, until you say anima trust-home"]
    return []


# -- what was forgotten since -------------------------------------------------------------------------------------------------


def _forgotten_since(source: _Source, place: _Place) -> dict[str, Phrase]:
    """The phrases this home has forgotten that the archive does not know are."""
    raw = place.machine.get(FORGOTTEN) if _is_same(source, place) else None
    if raw is None:
        return {}
    then = loaded(source.kept[_LIST]) if _LIST in source.kept else {}
    return {digest: phrase for digest, phrase in loaded(raw).items() if digest not in then}


def _cleaned(source: _Source, place: _Place, seen: Seen, fresh: Mapping[str, Phrase], opens: Opens) -> _Staged:
    """The whole archive as a home of its own, from which what was forgotten since is purged before it takes its place."""
    store, tree = place.store, f"{place.store.root}/.anima/{swap.AREA}/{_TREE}"
    _check_space(store, (2 * file.size for file in source.manifest.files))
    for file, mtime, pieces in _members(source):
        if file.path != _LIST:
            swap.stage(store, f"{_TREE}/{file.path}", pieces, mode=file.mode, mtime=mtime)
    then = loaded(source.kept[_LIST]) if _LIST in source.kept else {}
    swap.stage(store, f"{_TREE}/{_LIST}", [dumped((*then.values(), *fresh.values()))], mode=0o600, mtime=0)
    with opens(tree, place.settings) as inner:
        lost, left = _purged(inner, fresh)
    inside = Folder(tree)
    try:
        now = archive.survey(inside)
    finally:
        inside.close()
    found = _compared(source, seen, store.root, [file for file, _ in now.values()])
    notes = [
        f"{len(fresh)} phrases were forgotten since this snapshot; {lost} things that held them are left out, so the "
        "home differs from the snapshot there",
        *(f"{where}: {why}" for where, why in left),
    ]
    puts = tuple(swap.Put(f"{_TREE}/{path}", path) for path in (*found.new, *found.changed))
    return _Staged(replace(found, forgotten=len(fresh), notes=tuple(notes)), puts)


def _purged(inner: Home, fresh: Mapping[str, Phrase]) -> tuple[int, list[purge.Left]]:
    lost, left = 0, list[purge.Left]()
    for texts in _batches(sorted(_said(inner, fresh))):
        done = carry_out(inner, Asked(texts=texts), purge=True)
        lost += sum(done.counts.values())
        left += done.left
    return lost, left


def _said(inner: Home, fresh: Mapping[str, Phrase]) -> set[str]:
    """Which of the phrases stand in it anywhere, and in what words: the list itself holds only digests."""
    forgotten, found = inner.writing.forgotten, set[str]()
    for path, _ in files_in(inner.store):
        try:
            found |= forgotten.said(loose(bytes_of(inner.store, path) or b""), fresh)
        except Damaged:
            continue  # too large to be looked through, as in a purge
    for _, text in purge.versions(inner):
        found |= forgotten.said(text, fresh)
    return {text for text in found if len(flat(text).text) >= 2}


def _batches(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    held, size = list[str](), 0
    for text in texts:
        if held and size + len(text) > MOST_TEXT:
            yield tuple(held)
            held, size = [], 0
        held.append(text)
        size += len(text)
    if held:
        yield tuple(held)

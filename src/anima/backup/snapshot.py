"""Snapshots: one verified archive of a whole home, taken, listed, verified and pruned.

Promise: a snapshot holds documents, transcripts, ledger, key, history and every other file of the home's own as they
stood together at one moment; it is read back before it gets its name; an unchanged home gets no second one; pruning
never takes the last, nor the newest that verifies. Not here: putting one in a home's place (restoring), the form of an
archive (store.archive), and what forgetting does to them (forgetting).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from anima.errors import BadArguments, Damaged, HomeError, NotFound, Refused
from anima.ledger.chain import Key
from anima.store import archive, seal
from anima.store.archive import Manifest, Progress
from anima.store.folder import Folder
from anima.store.outside import expanded
from anima.store.private import Machine
from anima.store.shelf import Kept, Shelf, checked_label, kept_at, name_of

if TYPE_CHECKING:
    from anima.home import Home

OWN = ".anima/snapshots"
_ELSEWHERE, _TRIED = "snapshots/elsewhere", "snapshots/tried"
_TRIES = 5
_ENDINGS = (".tar.gz", ".tar.gz.age")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """An archive of a home. `fresh` is False when nothing had changed since this one was taken."""

    path: str
    time: datetime
    label: str
    digest: str  # the first twelve characters of its manifest's
    size: int
    sealed: bool
    fresh: bool = True
    files: int | None = None  # None where nobody looked inside
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


class Facts(NamedTuple):
    """What a manifest says of a home beside its files."""

    dialect: str = ""
    agent: str = ""


class Sealing(NamedTuple):
    """Who may read an archive; with neither, whoever has it."""

    recipients: Sequence[str] = ()
    passphrase: str | None = None

    def __bool__(self) -> bool:
        return bool(self.recipients) or self.passphrase is not None


class Packed(NamedTuple):
    """A home as it stood: its manifest, and a descriptor of its files, compressed."""

    manifest: Manifest
    body: int
    scratch: Callable[[], int]  # a file without a name on the home's own disk


# -- taking -----------------------------------------------------------------------------------------------------------------


def take(
    home: Home,
    *,
    to: str | None = None,
    label: str = "",
    recipients: Sequence[str] = (),
    passphrase: str | None = None,
    progress: Progress | None = None,
) -> Snapshot:
    """Takes one. Without `to` it goes where the configuration says, and only when something changed."""
    checked_label(label)
    asked = Sealing(tuple(recipients), passphrase)
    sealing = asked or Sealing(home.config.snapshot.recipients)
    seal.check(sealing.recipients, sealing.passphrase)
    folder, name = _target(home, to)
    if name and name.endswith(seal.ENDING) != bool(sealing):
        why, hint = _misnamed(name, bool(sealing))
        raise BadArguments(why, hint=hint)
    with packed(home.books.machine, facts_of(home), late=lambda: end_late(home), progress=progress) as made:
        return put(
            Shelf(folder),
            made,
            at=home.clock(),
            label=label,
            name=name,
            sealing=sealing,
            again=bool(asked),
            on_new=None if to is None else lambda path: _note_elsewhere(home, path),
        )


def end_late(home: Home | None) -> None:
    """Ends what is begun and commits what is late. A home that is damaged is kept as it is."""
    try:
        if home is not None and home.books.begun:
            home.books.finish()
            home.books.commit()
    except Damaged:
        pass


def facts_of(home: Home) -> Facts:
    return Facts(home.dialect, home.identity().name.value)


def _target(home: Home, to: str | None) -> tuple[str, str]:
    """The folder an archive goes to, and its name if the owner chose one."""
    if to is None:
        return folder_of(home), ""
    path = os.path.abspath(expanded(to))
    folder, name = (path, "") if to.endswith("/") or os.path.isdir(path) else os.path.split(path)
    _check_outside(home, folder)
    if name and not name.endswith(_ENDINGS):
        raise BadArguments(
            f"{to}: a snapshot's name ends in .tar.gz, or .tar.gz.age when it is sealed", hint="or name a folder"
        )
    return folder, name


def _misnamed(name: str, is_sealed: bool) -> tuple[str, str]:
    """A name must not say of an archive that nobody can read it when anybody can."""
    if is_sealed:
        return f"{name}: it is sealed, and the name of a sealed snapshot ends in .tar.gz.age", f"--to {name}.age"
    return (
        f"{name} is the name of a sealed snapshot, and this one is not sealed",
        "seal it: --to-recipient KEY, or --passphrase",
    )


def folder_of(home: Home) -> str:
    """Where this home's snapshots are kept. In a folder of the owner's each home has one of its own."""
    asked = home.config.snapshot.dir
    if not asked:
        return f"{home.root}/{OWN}"
    folder = os.path.abspath(os.path.join(home.root, os.path.expanduser(asked)))
    _check_outside(home, folder)
    return os.path.join(folder, home.books.key.id[:16])


def _check_outside(home: Home, folder: str) -> None:
    real = os.path.realpath(folder)
    if real != os.path.realpath(f"{home.root}/{OWN}") and os.path.commonpath([real, home.root]) == home.root:
        raise Refused(
            f"{folder} lies inside the home, so that each snapshot would hold those before it",
            rule="inside",
            hint="leave it out: .anima/snapshots is the place for them in a home",
        )


@contextmanager
def packed(
    machine: Machine, facts: Facts, *, late: Callable[[], object] = lambda: None, progress: Progress | None = None
) -> Iterator[Packed]:
    """The home as it stands now, under its lock, in a file without a name. `late` ends what is late, first."""
    with machine.lock.hold():
        late()
        key = Key(machine.key())
        try:
            body = machine.scratch()
        except OSError as error:
            raise _unwritten(error) from None
        try:
            files, left = _packed(machine.store, body, progress)
        except BaseException:
            os.close(body)
            raise
        made = Manifest(key.id[:16], facts.dialect, facts.agent, _tip(machine.store), files, left)
    try:
        yield Packed(made, body, machine.scratch)
    finally:
        os.close(body)


def _packed(
    store: Folder, body: int, progress: Progress | None
) -> tuple[tuple[archive.File, ...], tuple[tuple[str, str], ...]]:
    for tries in range(_TRIES):
        try:
            return archive.pack(store, body, progress=progress)
        except Damaged:
            if tries == _TRIES - 1:
                raise
        except OSError as error:
            raise _unwritten(error) from None
    raise AssertionError("unreachable")


def _unwritten(error: OSError) -> Damaged:
    return Damaged(f"the snapshot cannot be written ({os.strerror(error.errno or 0)}); nothing was changed")


def _tip(store: Folder) -> tuple[int, str]:
    try:
        found = json.loads(store.last_line(".anima/ledger.jsonl"))
        return int(found["n"]), str(found["hash"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0, ""
    except OSError as error:
        raise _unwritten(error) from None


def put(
    shelf: Shelf,
    made: Packed,
    *,
    at: datetime,
    label: str = "",
    name: str = "",
    sealing: Sealing = Sealing(),  # noqa: B008
    over: bool = False,
    again: bool = False,
    on_new: Callable[[str], None] | None = None,
) -> Snapshot:
    """Gives what was packed its place on a shelf, or finds it there already. A name of the owner's choice is not
    written over, but with `over`. With `again` one that is there does not do: it may be sealed for somebody else."""
    manifest = made.manifest
    if not (name or again) and (same := _same(shelf, manifest, bool(sealing))) is not None:
        return _shown(same, manifest, fresh=False)
    given = name or name_of(at, label, manifest.digest, sealed=bool(sealing))
    path = shelf.put(given, lambda fd: _write(made, fd, sealing), only_new=(bool(name) or again) and not over)
    if on_new is not None:
        on_new(path)
    kept = kept_at(path) or Kept(path, at, label, manifest.digest[:12], os.path.getsize(path), bool(sealing))
    return _shown(kept, manifest, fresh=True)


def _same(shelf: Shelf, manifest: Manifest, is_sealed: bool) -> Kept | None:
    """An archive of the same home in the same state. One that is damaged is none."""
    for kept in shelf.all():
        if kept.digest == manifest.digest[:12] and kept.sealed == is_sealed and (is_sealed or is_sound(kept)):
            return kept
    return None


def is_sound(kept: Kept) -> bool:
    """Whether it can be read back, and is what its name says."""
    try:
        return verify(kept.path).digest.startswith(kept.digest)
    except HomeError:
        return False


def _write(made: Packed, out: int, sealing: Sealing) -> None:
    """The archive, read back. A sealed one is read before it is sealed: afterwards only those it is for can."""
    clear = made.scratch() if sealing else out
    try:
        archive.assemble(made.manifest, made.body, clear)
        archive.read_back(clear, made.manifest)
        if sealing:
            seal.seal(clear, out, recipients=sealing.recipients, passphrase=sealing.passphrase)
    finally:
        if sealing:
            os.close(clear)


def _shown(kept: Kept, manifest: Manifest | None = None, *, fresh: bool = True) -> Snapshot:
    files, left_out = (len(manifest.files), manifest.left_out) if manifest else (None, ())
    return Snapshot(
        path=kept.path,
        time=kept.time,
        label=kept.label,
        digest=kept.digest,
        size=kept.size,
        sealed=kept.sealed,
        fresh=fresh,
        files=files,
        left_out=left_out,
    )


# -- looking ----------------------------------------------------------------------------------------------------------------


def known(home: Home) -> tuple[Snapshot, ...]:
    """Every snapshot of this home where snapshots are kept, the newest first."""
    return tuple(_shown(kept) for kept in _kept(home))


def _kept(home: Home) -> list[Kept]:
    """Those in the home, and those in the folder of the owner's choice."""
    found = [kept for shelf in _shelves(home) for kept in shelf.all()]
    return sorted(found, key=lambda kept: (kept.time, kept.name), reverse=True)


def _shelves(home: Home) -> list[Shelf]:
    own = f"{home.root}/{OWN}"
    if not home.config.snapshot.dir or home.books.machine.get("key") is None:
        return [Shelf(own)]
    return [Shelf(folder) for folder in dict.fromkeys((own, folder_of(home)))]


def everywhere(home: Home) -> tuple[list[Kept], list[tuple[str, str]]]:
    """Every archive this home knows of, also where the owner had one written; and those that are out of reach, with why.

    The list of places lies in the home, so it is believed only where this user vouches for the folder: one that came
    from somebody else could name any file of theirs.
    """
    here, away = _kept(home), list[tuple[str, str]]()
    paths = {kept.path for kept in here}
    for path in (path for path in _elsewhere(home) if path not in paths):
        if not home.is_vouched_for:
            away.append((path, "named by a folder you have not trusted, so it is left alone; it may hold it"))
        elif (state := seal.sealing_at(path)) is None:
            away.append((path, "a snapshot that is not there now, and may hold it"))
        else:
            here.append(kept_at(path) or Kept(path, home.clock(), "", "", os.path.getsize(path), state))
    return here, away


def _elsewhere(home: Home) -> list[str]:
    try:
        found = json.loads(home.books.machine.get(_ELSEWHERE) or b"[]")
        return [path for path in found if _is_place(path)] if isinstance(found, list) else []
    except (ValueError, RecursionError):
        return []


def _is_place(path: object) -> bool:
    return isinstance(path, str) and os.path.isabs(path) and path.endswith(_ENDINGS) and "\0" not in path


def _note_elsewhere(home: Home, path: str) -> None:
    """Remembers an archive that was written to a place of the owner's choice, so that forgetting can reach it."""
    if os.path.dirname(path) not in {shelf.folder for shelf in _shelves(home)}:
        with home.books.lock():
            _save_elsewhere(home, [*_elsewhere(home), path])


def _save_elsewhere(home: Home, paths: Sequence[str]) -> None:
    home.books.machine.put(_ELSEWHERE, json.dumps(list(dict.fromkeys(paths))).encode())


def remove(home: Home, kept: Kept) -> None:
    """Removes an archive, wherever it lies, and takes its place off the list."""
    Shelf(os.path.dirname(kept.path)).remove(kept)
    if kept.path in (held := _elsewhere(home)):
        with home.books.lock():
            _save_elsewhere(home, [path for path in held if path != kept.path])


def take_anew(home: Home) -> Snapshot:
    """One for those that had to go; where it is not sealed, in the home itself, whose bytes it is."""
    return take(home) if home.config.snapshot.recipients else take(home, to=f"{home.root}/{OWN}/")


def find(home: Home, given: str) -> str:
    """The archive a person means: a path, `latest`, or what its name or digest begins with. Raises NotFound."""
    path = os.path.expanduser(given)
    return path if os.path.isfile(path) else _meant(_kept(home), given)


def find_in(shelf: Shelf, given: str) -> str:
    """The same among those of one folder."""
    return _meant(shelf.all(), given)


def _meant(all_: Sequence[Kept], given: str) -> str:
    if given == "latest" and all_:
        return all_[0].path
    near = [kept.path for kept in all_ if given and (kept.name.startswith(given) or kept.digest.startswith(given))]
    if len(near) > 1:
        raise BadArguments(f"{given}: {len(near)} snapshots are called so", hint="give more of its name")
    if not near:
        raise NotFound(f"{given}: there is no such snapshot", hint="anima snapshot list names those of a home")
    return near[0]


def verify(
    path: str, *, identities: Sequence[str] = (), passphrase: str | None = None, progress: Progress | None = None
) -> Manifest:
    """Reads a whole archive and gives its manifest. Raises Damaged or Refused with what is wrong."""
    with seal.opened(path, identities=identities, passphrase=passphrase) as raw:
        manifest, _ = archive.verify(raw, progress=progress)
    at = kept_at(path)
    if at is not None and not manifest.digest.startswith(at.digest):
        raise Damaged(
            f"{at.name} is another snapshot than its name says; its manifest's digest begins with {manifest.digest[:12]}"
        )
    return manifest


# -- pruning, and taking in time --------------------------------------------------------------------------------------------


def prune(home: Home, *, dry_run: bool) -> tuple[Snapshot, ...]:
    """Removes those beyond the newest `keep` and those older than `days`; gives what went, or would."""
    asked, gone = home.config.snapshot, list[Kept]()
    for shelf in _shelves(home):
        gone += outlived(
            shelf.all(), keep=asked.keep, before=home.clock() - timedelta(days=asked.days), is_sound=is_sound
        )
    for kept in gone if not dry_run else ():
        Shelf(os.path.dirname(kept.path)).remove(kept)
    return tuple(_shown(kept) for kept in gone)


def outlived(kept: Sequence[Kept], *, keep: int, before: datetime, is_sound: Callable[[Kept], bool]) -> list[Kept]:
    """What may go of archives that stand with the newest first. Never the newest, nor the newest that can be read back;
    of a sealed one nobody can say so, so it does not stand for one that can."""
    old = [each for rank, each in enumerate(kept) if rank >= keep or each.time < before]
    old = [each for each in old if each is not kept[0]]
    if not old or any(not each.sealed and is_sound(each) for each in kept if each not in old):
        return old
    sound = next((each for each in old if not each.sealed and is_sound(each)), None)
    return [each for each in old if each is not sound]


def if_due(home: Home, due: Callable[[str, str, datetime | None, datetime], object | None]) -> Snapshot | None:
    """A snapshot whose hour has come (`snapshot.at`, in the user's timezone), and then pruning; None when it is not time.

    `due` gives the run of a cron expression, in a timezone, that is due after the last one by now.
    """
    asked, zone, now = home.config.snapshot, str(home.site.zone() or "UTC"), home.clock()
    if not asked.at or due(asked.at, zone, _tried(home), now) is None:
        return None
    made = take(home)
    home.books.machine.put(_TRIED, now.isoformat().encode())
    prune(home, dry_run=False)
    return made


def _tried(home: Home) -> datetime | None:
    """When one was last taken, or nothing had changed when one was due."""
    times = [kept.time for kept in _kept(home)[:1]]
    try:
        times.append(datetime.fromisoformat((home.books.machine.get(_TRIED) or b"").decode()))
    except ValueError:
        pass
    return max((time for time in times if time.tzinfo), default=None)

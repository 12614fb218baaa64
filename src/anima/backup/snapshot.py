"""The snapshots of one home: verified archives of all of it, taken, listed, verified and pruned.

Promise: a snapshot holds documents, transcripts, ledger, key, history and every other file of the home's own as they
stood together at one moment; it is read back before it gets its name; an unchanged home gets no second one; pruning
never takes the last, nor the newest that verifies. Not here: putting one in a home's place (restore), the form of an
archive (archive).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import BinaryIO, NamedTuple

from anima.backup import archive
from anima.backup.archive import Manifest, Progress
from anima.errors import BadArguments, Damaged, HomeError, NotFound
from anima.ledger import Key, parse
from anima.site import Site
from anima.store import Whole, outside
from anima.store.outside import Shelf, Snapshot, expanded, open_archive, snapshot_at
from anima.store.safe_open import as_damage
from anima.text.phrases import Left, Sought, Touched

_ELSEWHERE, _TRIED = "snapshots/elsewhere", "snapshots/tried"
_TRIES = 5
_ENDINGS = (".tar.gz", ".tar.gz.age")
Due = Callable[[str, str, datetime | None, datetime], object | None]


class PackedHome(NamedTuple):
    """A home as it stood: its manifest, and its files, compressed."""

    manifest: Manifest
    body: BinaryIO
    whole: Whole


class Snapshots:
    """The snapshots of one home. `agent` says whose they are, `trusted` whether this user vouches for the folder, and
    `due` gives the run of a cron expression, in a timezone, that is due after the last one by now."""

    name = "snapshots"

    def __init__(self, site: Site, *, agent: Callable[[], str], trusted: Callable[[], bool], due: Due) -> None:
        self._site, self._agent, self._trusted, self._due = site, agent, trusted, due
        self.whole: Whole = site.store.whole
        self.register = site.register

    def take(
        self,
        *,
        to: str | Path | None = None,
        label: str = "",
        recipients: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Snapshot:
        """One archive of the whole home. Without `to` it goes where the configuration says, and only when something changed."""
        if label and not re.fullmatch(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?", label):
            raise BadArguments(f"{label!r} cannot be a label: small letters, digits and dashes, 40 at most")
        sealed_for = tuple(recipients or self._site.config.snapshot.recipients)
        for each in sealed_for:
            outside.recipient_of(each)
        if to is None:
            folder, name = self._folder(), ""
        else:
            path = os.path.abspath(expanded(to))
            folder, name = (path, "") if str(to).endswith("/") or os.path.isdir(path) else os.path.split(path)
            self.whole.outside(folder)
        if name and not name.endswith(_ENDINGS):
            why = f"{to}: a snapshot's name ends in .tar.gz, or .tar.gz.age when it is sealed"
            raise BadArguments(why, hint="or name a folder")
        # A name must not say of an archive that nobody can read it when anybody can.
        if name and sealed_for and not name.endswith(outside.ENDING):
            why = f"{name}: it is sealed, and the name of a sealed snapshot ends in .tar.gz.age"
            raise BadArguments(why, hint=f"--to {name}.age")
        if name.endswith(outside.ENDING) and not sealed_for:
            why = f"{name} is the name of a sealed snapshot, and this one is not sealed"
            raise BadArguments(why, hint="seal it: --to-recipient KEY")
        with self.packed(progress) as made:
            now, again = self._site.clock(), bool(recipients)
            found = put(Shelf(folder), made, at=now, label=label, name=name, sealed_for=sealed_for, again=again)
        kept = {shelf.folder for shelf in self._shelves()}
        if found.fresh and to is not None and os.path.dirname(found.path) not in kept:
            self._list_elsewhere(found.path, is_there=True)  # so that forgetting can reach it
        return found

    @contextmanager
    def packed(self, progress: Progress | None = None) -> Iterator[PackedHome]:
        """The home as it stands now, after what was begun is ended and what is late is committed."""
        store = self._site.store

        def end_late() -> None:
            with suppress(Damaged):  # a home that is damaged is kept as it is
                if store.begun:
                    store.finish()
                    store.commit()

        with packed(self.whole, self._site.layout.dialect, self._agent(), late=end_late, progress=progress) as made:
            yield made

    @property
    def place(self) -> str:
        """Where snapshots are kept, for people: as the configuration says it, or within the home."""
        return self._site.config.snapshot.dir or self.whole.snapshots.removeprefix(f"{self._site.store.name}/")

    def _folder(self) -> str:
        """Where this home's snapshots are kept. In a folder of the owner's each home has one of its own."""
        if not self._site.config.snapshot.dir:
            return self.whole.snapshots
        return os.path.join(self.whole.outside(self._site.config.snapshot.dir), self._site.store.key.id[:16])

    def all(self) -> tuple[Snapshot, ...]:
        """Every snapshot of this home where snapshots are kept, the newest first."""
        found = [kept for shelf in self._shelves() for kept in shelf.all()]
        return tuple(sorted(found, key=lambda kept: (kept.time, kept.name), reverse=True))

    def _shelves(self) -> list[Shelf]:
        """The folder in the home, and the one of the owner's choice."""
        own = self.whole.snapshots
        if not self._site.config.snapshot.dir or self._site.store.state.get("key") is None:
            return [Shelf(own)]
        return [Shelf(folder) for folder in dict.fromkeys((own, self._folder()))]

    def _everywhere(self) -> tuple[list[Snapshot], list[tuple[str, str]]]:
        """Every archive this home knows of, also where the owner had one written; and those that are out of reach, with
        why. The list of places lies in the home, so it is believed only where this user vouches for the folder: one
        that came from somebody else could name any file of theirs."""
        here, away = [*self.all()], list[tuple[str, str]]()
        paths = {kept.path for kept in here}
        for path in (path for path in self._elsewhere() if path not in paths):
            if not self._trusted():
                away.append((path, "named by a folder you have not trusted, so it is left alone; it may hold it"))
                continue
            try:
                sealed, size = outside.is_sealed(path), os.path.getsize(path)
            except (NotFound, Damaged, OSError):
                away.append((path, "a snapshot that is not there now, and may hold it"))
                continue
            found = snapshot_at(path)
            if found is None and not sealed and not is_sound(path, large=True):  # it may be something else by now
                away.append((path, "it cannot be read as a snapshot, and is left alone; it may hold it"))
                continue
            own = Snapshot(path=path, time=self._site.clock(), label="", digest="", size=size, sealed=sealed)
            here.append(found or own)
        return here, away

    def _elsewhere(self) -> list[str]:
        try:
            found = json.loads(self._site.store.state.get(_ELSEWHERE) or b"[]")
        except (ValueError, RecursionError):
            return []
        places = [path for path in (found if isinstance(found, list) else ()) if isinstance(path, str)]
        return [path for path in places if os.path.isabs(path) and path.endswith(_ENDINGS) and "\0" not in path]

    def _list_elsewhere(self, path: str, *, is_there: bool) -> None:
        with self._site.store.lock():
            paths = [each for each in self._elsewhere() if each != path] + [path] * is_there
            self._site.store.state.put(_ELSEWHERE, json.dumps(paths).encode())

    def path_of(self, given: str) -> str:
        """The archive a person means: a path, `latest`, or what its name or digest begins with. Raises NotFound."""
        return meant(self.all(), given)

    def verify(
        self,
        archive: str | Path,
        *,
        identities: Sequence[str] = (),
        large: bool = False,
        progress: Progress | None = None,
    ) -> Manifest:
        """Reads a whole archive, by path, name or digest; gives what it says of itself. Raises Damaged or Refused; with
        `large` also one that unpacks to far more than it has bytes is read."""
        path = self.path_of(str(archive))
        large = large or self.is_own(path)
        return verify_archive(path, identities=identities, large=large, progress=progress)

    def is_own(self, path: str) -> bool:
        """Whether an archive lies where this home keeps its own, and this user vouches for the home."""
        return self._trusted() and os.path.dirname(os.path.abspath(path)) in {s.folder for s in self._shelves()}

    def prune(self, *, dry_run: bool = False) -> tuple[Snapshot, ...]:
        """Removes those beyond the newest `snapshot.keep` and those older than `snapshot.days`; gives what went, or would."""
        asked, gone = self._site.config.snapshot, list[Snapshot]()
        before = self._site.clock() - timedelta(days=asked.days)
        own = self._trusted()
        for shelf in self._shelves():
            gone += outlived(
                shelf.all(), keep=asked.keep, before=before, is_sound=lambda kept: is_sound(kept.path, large=own)
            )
        for kept in gone if not dry_run else ():
            Shelf(os.path.dirname(kept.path)).remove(kept)
        return tuple(gone)

    def if_due(self) -> Snapshot | None:
        """A snapshot whose hour has come (`snapshot.at`, in the user's timezone), and then pruning; None when it is not
        time. For a server's rounds and heartbeats."""
        asked, zone, now = self._site.config.snapshot, str(self._site.zone() or "UTC"), self._site.clock()
        times = [kept.time for kept in self.all()[:1]] if asked.at else []
        with suppress(ValueError):  # nothing had changed when one was last due
            times.append(datetime.fromisoformat((self._site.store.state.get(_TRIED) or b"").decode()))
        last = max((time for time in times if time.tzinfo), default=None)
        if not asked.at or self._due(asked.at, zone, last, now) is None:
            return None
        made = self.take()
        self._site.store.state.put(_TRIED, now.isoformat().encode())
        self.prune()
        return made

    # -- as a holder of text: whatever is older than a purge may hold it --------------------------------------------------

    def find(self, sought: Sought) -> Iterator[Touched | Left]:
        if sought.purge:
            here, away = self._everywhere()
            yield from (Left(path, why) for path, why in away)
            for kept in here:
                yield Touched(place="snapshot", where=_where(kept), why="older than the purge, and is removed")

    def forget(self, sought: Sought, found: Sequence[Touched]) -> Iterator[Left | str]:
        """Every older archive of the home goes, and one of the home as it is now takes their place."""
        asked = {each.where for each in found}
        for kept in self._everywhere()[0] if asked else ():
            try:
                if _where(kept) in asked:
                    Shelf(os.path.dirname(kept.path)).remove(kept)
                    if kept.path in self._elsewhere():
                        self._list_elsewhere(kept.path, is_there=False)
            except HomeError as error:
                yield Left(kept.name, str(error))
        if found:
            # Where the new one is not sealed it stays in the home itself, whose bytes it is.
            sealed = self._site.config.snapshot.recipients
            anew = self.take(to=None if sealed else f"{self.whole.snapshots}/")
            yield f"older snapshots removed: {len(found)}; {anew.name} was taken"

    def proof(self, sought: Sought, found: Sequence[Touched]) -> Iterator[Left]:
        yield from ()


def _where(kept: Snapshot) -> str:
    return kept.name if kept.digest else kept.path


@contextmanager
def packed(
    whole: Whole,
    dialect: str = "",
    agent: str = "",
    *,
    late: Callable[[], object] = lambda: None,
    progress: Progress | None = None,
) -> Iterator[PackedHome]:
    """A home as it stands now, under its lock, in a file without a name. `late` ends what is late, first."""
    with whole.scratch() as body:
        with whole.lock():
            late()
            with as_damage("the snapshot cannot be written", "; nothing was changed"):
                key = Key(whole.key())
                for tries in count(1):
                    try:
                        files, left = archive.pack(whole, body, progress=progress)
                        break
                    except Damaged:
                        if tries == _TRIES:
                            raise
                last = parse(whole.last_record().decode("latin-1"))
                ledger = (last.n, last.hash) if last else (0, "")
        yield PackedHome(Manifest(key.id[:16], dialect, agent, ledger, files, left), body, whole)


def put(
    shelf: Shelf,
    made: PackedHome,
    *,
    at: datetime,
    label: str = "",
    name: str = "",
    sealed_for: Sequence[str] = (),
    again: bool = False,
) -> Snapshot:
    """Gives what was packed its place on a shelf, or finds it there already. A name of the owner's choice is not
    written over. With `again` one that is there does not do: it may be sealed for somebody else."""
    manifest, is_sealed = made.manifest, bool(sealed_for)
    files, left_out = len(manifest.files), manifest.left_out
    for kept in shelf.all() if not (name or again) else ():
        is_same = kept.digest == manifest.digest[:12] and kept.sealed == is_sealed
        if is_same and (is_sealed or is_sound(kept.path, large=True)):  # one that is damaged is none
            return replace(kept, fresh=False, files=files, left_out=left_out)
    given = name or outside.name_of(at, label, manifest.digest, sealed=is_sealed)

    def write(out: BinaryIO) -> None:
        """The archive, read back. A sealed one is read before it is sealed: afterwards only those it is for can."""
        if not sealed_for:
            archive.assemble(made.manifest, made.body, out)
            return
        with made.whole.scratch() as clear:
            archive.assemble(made.manifest, made.body, clear)
            outside.seal(clear, out, recipients=sealed_for)

    path = shelf.put(given, write, only_new=bool(name) or again)
    digest, size = manifest.digest[:12], os.path.getsize(path)
    own = Snapshot(path=path, time=at, label=label, digest=digest, size=size, sealed=is_sealed)
    return replace(snapshot_at(path) or own, files=files, left_out=left_out)


def verify_archive(
    path: str | Path, *, identities: Sequence[str] = (), large: bool = False, progress: Progress | None = None
) -> Manifest:
    """Reads a whole archive and gives its manifest. Raises Damaged or Refused with what is wrong; with `large` it may
    unpack to far more than it has bytes."""
    path = str(path)
    with open_archive(path, identities=identities) as raw:
        manifest, _ = archive.verify(raw, room=archive.room_of(path, large=large), progress=progress)
    if (at := snapshot_at(path)) and not manifest.digest.startswith(at.digest):
        why = f"{at.name} is another snapshot than its name says"
        raise Damaged(f"{why}; its manifest's digest begins with {manifest.digest[:12]}")
    return manifest


def is_sound(path: str, *, large: bool) -> bool:
    """Whether an archive can be read back, and is what its name says."""
    try:
        return bool(verify_archive(path, large=large))
    except HomeError:
        return False


def meant(all_: Sequence[Snapshot], given: str) -> str:
    """The path of the archive that a person means: a file, or one of these. Raises NotFound or BadArguments."""
    if os.path.isfile(path := os.path.expanduser(given)):
        return path
    if given == "latest" and all_:
        return all_[0].path
    near = [kept.path for kept in all_ if given and (kept.name.startswith(given) or kept.digest.startswith(given))]
    if len(near) > 1:
        raise BadArguments(f"{given}: {len(near)} snapshots are called so", hint="give more of its name")
    if not near:
        raise NotFound(f"{given}: there is no such snapshot", hint="anima snapshot list names those of a home")
    return near[0]


def outlived(
    kept: Sequence[Snapshot], *, keep: int, before: datetime, is_sound: Callable[[Snapshot], bool]
) -> list[Snapshot]:
    """What may go of archives that stand with the newest first. Never the newest, nor the newest that can be read back;
    of a sealed one nobody can say so, so it does not stand for one that can."""
    old = [each for rank, each in enumerate(kept) if rank >= keep or each.time < before]
    old = [each for each in old if each is not kept[0]]
    if not old or any(not each.sealed and is_sound(each) for each in kept if each not in old):
        return old
    sound = next((each for each in old if not each.sealed and is_sound(each)), None)
    return [each for each in old if each is not sound]

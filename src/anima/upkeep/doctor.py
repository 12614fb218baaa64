"""The doctor: everything there is to say about the health of a home, and the repair of what can be mended.

Promise: looking changes nothing and goes on where a home does not open; what cannot be looked at becomes a sentence.
A repair changes no document; whatever cannot be mended is said and left. Killed half way it can be done again, and done
again it finds nothing; of two at once, one waits. Every room checks and repairs what it keeps; this gathers, and reads.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol, cast

from anima.config import FILE, Config
from anima.errors import BadConfig, BadText, HomeError, NewerFormat, NoSuchDocument, Refused, printable
from anima.gate.scan import find_hidden
from anima.layout import skill_line
from anima.layout.dialects import layout_for
from anima.layout.trust import Register, UserFiles, place_of
from anima.layout.trust import folder as user_folder
from anima.ledger import Key
from anima.memory import PENDING, Proposals
from anima.memory.forgotten import FILE as FORGOTTEN
from anima.memory.forgotten import ForgottenList
from anima.model import Checked, Deed, DocPath, Level, Remark, Scope, is_address
from anima.search.current import sqlite_tables
from anima.search.tables import CheckedIndex
from anima.site import Site, World, rules_for
from anima.store import Store
from anima.store import check as kept
from anima.store.folder import Folder
from anima.store.overlay import OverlayStore, upper_of
from anima.store.place import FolderStore, open_home_folder
from anima.store.private import path_of_state
from anima.text import read_table
from anima.text.markdown import front_matter, sections

REPAIR = "anima doctor --repair"
_SHARE = re.compile(r"<!--\s*share\b", re.IGNORECASE)
_PRIVATE = re.compile(r"<!--\s*private\b", re.IGNORECASE)
_SENTENCES = read_table("upkeep", "remarks")
_BEFORE = "before the repair"  # what the owner might have done by then
_HOPELESS = ("home-gone", "disk-full")
_UNSOUND = ("batch-", "ledger-", "key-", "machine-")  # what asking for a prompt would mend, or trip over
_PASSES = 4  # what was hidden behind one damage comes to light when that is mended
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One row of the table. Without `repair` nothing is done by itself; without `owner` nothing is left to decide."""

    name: str
    level: Level
    what: str
    found: str
    repair: str = ""
    owner: str = ""

    @property
    def do(self) -> str:
        """What somebody who reads of it can do now."""
        if not self.repair:
            return "" if self.level == "fine" else self.owner
        return f"{REPAIR}; {self.owner}" if self.owner.startswith("put a backup") else REPAIR


@cache
def damages() -> Mapping[str, Damage]:
    """Every damage a home is known to suffer, by name."""
    return {name: Damage(name=name, **row) for name, row in read_table("upkeep", "damages").items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What was found in a home, what was done about it, and what is left: for the owner to decide, or for another try."""

    found: tuple[Remark, ...]
    done: tuple[Deed, ...] = ()
    left: tuple[Remark, ...]
    dry_run: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged any more."""
        return all(remark.level != "damage" for remark in self.left)


class Drawn(Protocol):
    """The main prompt of a home, as far as its health is concerned: what became of each file, and how much fits."""

    @property
    def text(self) -> str: ...
    @property
    def manifest(self) -> Sequence[Any]: ...
    @property
    def limits(self) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRooms:
    """What the doctor asks of rooms that it does not know: what they keep, the main prompt of a sound home, and opening."""

    parts: Callable[[Site], Sequence[Checked]]
    prompt: Callable[[Site], Drawn]
    opens: Callable[..., Site]


class _SmallFiles:
    """Waiting changes, the list of what stays forgotten, and the note of the last night."""

    def __init__(self, site: Site) -> None:
        self._site, self._store = site, site.store

    def check(self) -> Iterator[Remark]:
        upper = upper_of(self._store)  # of a folder the ledger as it lies: looking mends nothing
        ledger = cache(lambda: kept.still_ledger(upper) if isinstance(upper, FolderStore) else upper.ledger)
        for id in Proposals(self._store.state, ledger, self._site.clock).broken():
            yield _remark("proposal", path_of_state(f"{PENDING}/{id}"), id=id)
        if not ForgottenList(self._store.state, lambda: Key(bytes(32))).is_sound():
            yield _remark("forgotten", path_of_state(FORGOTTEN))
        state = f"{self._site.layout.daily}/.consolidation_state"
        try:
            night = json.loads(upper.documents.bytes_of(state) or b"{}")
        except (ValueError, RecursionError):
            night = None
        if not isinstance(night, dict):
            yield _remark("night", state)

    def mend(self, found: Remark) -> str:
        with self._store.lock():
            return f"set aside in {kept.set_aside(_of_folder(self._store), found.about)}"


def _of_folder(store: Store) -> FolderStore:
    """The store of a home in a folder, the one kind that can have such damages."""
    store = upper_of(store)
    assert isinstance(store, FolderStore)
    return store


def _remark(row: str, about: str, **told: object) -> Remark:
    """A remark in the words of a row of tables/remarks.toml."""
    found = _SENTENCES[row]
    said, do = (found.get(name, "").format(about=about, **told) for name in ("said", "do"))
    return Remark(name=found.get("damage", ""), level=found.get("level", "advice"), about=about, message=said, do=do)


def _failed(name: str, about: str, error: HomeError) -> Remark:
    return Remark(name=name, about=about, message=f"{error}.", do=error.hint or "")


class Doctor:
    """One folder, looked at and mended whether or not a home can be opened there."""

    def __init__(
        self,
        path: str | Path,
        rooms: CheckedRooms,
        world: World,
        *,
        settings: Mapping[str, Any] | None = None,
        progress: Progress = lambda _: None,
    ) -> None:
        self._path, self._rooms, self._world = path, rooms, world
        self._site, self._progress = partial(rooms.opens, path, world, settings=settings), progress
        self._register = Register(user_folder(world.env))

    def look(self) -> list[Remark]:
        """Everything there is to say, damage first. Raises NoSuchHome where none ever was, and nothing else."""
        if is_address(self._path):
            try:
                site = self._site()
            except BadConfig as error:
                return completed([_failed("config-broken", FILE, error)])
            with closing(site.store):
                return look(site, self._rooms, progress=self._progress)
        if gone := self._gone():
            return completed([gone])
        try:
            with self._opened() as (site, wrong):
                if barred := _looked("the folder", kept.CheckedFiles(_of_folder(site.store)).barred):
                    return completed(barred)
                found = look(site, self._rooms, whole=not wrong, progress=self._progress)
                return completed([*wrong, *found])
        except NewerFormat as error:
            said = Remark(name="ledger-format", about=error.file, message=f"{error}.")
        except Refused as error:
            said = Remark(name="not-yours", about=str(self._path), message=f"{error}.")
        except HomeError as error:
            said = _failed("not-looked-at", str(self._path), error)
        return completed([said])

    def repair(self, *, dry_run: bool = False) -> Health:
        """Finds every damage and mends what can be. Raises HomeBusy when somebody holds the home, NoSuchHome."""
        found = self.look()
        hopeless = any(each.name in _HOPELESS or each.about == str(self._path) for each in found)
        if dry_run or hopeless or is_address(self._path):
            mendable = filter(_mendable, found if dry_run else ())
            plan = [Deed(name=r.name, about=r.about, said=damages()[r.name].repair) for r in mendable]
            return Health(found=tuple(found), done=tuple(plan), left=tuple(found), dry_run=dry_run)
        done, left = list[Deed](), found
        if any(map(_mendable, found)):
            with closing(self._bare(Folder(self._path)).store) as store:
                files = kept.CheckedFiles(_of_folder(store))
                for _ in range(_PASSES):  # what lies inside comes to light when the outer one is open
                    known = {deed.about for deed in done}  # some disks know no modes
                    done += _mended(files, (each for each in files.barred() if each.about not in known))
                done += _mended(files, files.misshapen(*kept.LOCKS))  # else nothing could be locked
                with store.lease("mending"):
                    for _ in range(_PASSES):
                        fresh = self._pass()
                        done += fresh
                        if not fresh or not all(deed.ok for deed in fresh):
                            break
                    if any(deed.name.startswith(("ledger-", "key-")) for deed in done):
                        # History notes where a new chain is, so that its end cannot be cut off unnoticed.
                        with self._opened() as (site, wrong), suppress(HomeError):
                            if not wrong:
                                _of_folder(site.store).anchor()
            left = self.look()
        rows, over = damages(), list[Remark]()
        for each in left:  # what is left is the owner's: the repair is not offered a second time
            row = rows.get(each.name)
            over.append(replace(each, do=row.owner) if row is not None and row.repair and row.owner else each)
        return Health(found=tuple(found), done=tuple(done), left=tuple(over))

    def _pass(self) -> list[Deed]:
        """One repair by every part, each on a store opened anew: another may have replaced what it had open."""
        done, number = list[Deed](), 0
        while True:
            with self._opened() as (site, wrong):
                parts = _parts(site, self._rooms, whole=not wrong)
                if number == len(parts):
                    return done
                what, part = parts[number]
                done += _mended(part, _looked(what, part.check))
            number += 1

    @contextmanager
    def _opened(self) -> Iterator[tuple[Site, list[Remark]]]:
        """The site of the home, and what is wrong with its configuration; then the site has that of no home."""
        wrong: list[Remark] = []
        site = self._bare(Folder(self._path))
        if next(kept.CheckedFiles(_of_folder(site.store)).barred(), None) is None:
            site.store.close()
            try:
                site = self._site()
            except HomeError as error:
                site = self._bare(open_home_folder(self._path))  # raises where it is not the configuration's fault
                wrong = [_failed("config-broken", FILE, error)]
        with closing(site.store):
            yield site, wrong

    def _bare(self, folder: Folder) -> Site:
        """A site without configuration, for what needs none."""
        layout, config, (clock, dice, env) = layout_for("anima"), Config(), self._world
        rules = rules_for(layout, config, folder, self._register, clock=clock, agent="main")
        store = FolderStore(folder, rules)
        return Site(store, layout, config, clock, dice, "main", "", env, self._register)

    def _gone(self) -> Remark | None:
        """Where no home can be at all."""
        place = Path(place_of(self._path))
        known = self._register.known(str(place))
        made = f" made on {known.made[:10]}" if known and known.made else ""
        if os.path.isdir(place):
            try:
                made = "" if any(place.iterdir()) else made
            except OSError:
                made = ""
        elif not made:
            Folder(self._path).close()  # which says what is wrong
        return _remark("gone", str(self._path), made=made) if made else None


def look(site: Site, rooms: CheckedRooms, progress: Progress = lambda _: None, *, whole: bool = True) -> list[Remark]:
    """What every part says, damage first. `whole` is false where the configuration cannot be read."""
    found: list[Remark] = []
    for what, part in _parts(site, rooms, whole=whole):
        progress(what)
        found += _looked(what, part.check)
    if not whole:
        return completed(found)
    progress("the documents")
    is_sound = not any(each.name.startswith(_UNSOUND) for each in found)
    documents = CheckedDocuments(site, rooms.prompt if is_sound else None, {each.about for each in found})
    found += _looked("the prompt", documents.draw)
    found += _looked("the documents", documents.check)
    return completed(found)


def _parts(site: Site, rooms: CheckedRooms, *, whole: bool) -> list[tuple[str, Checked]]:
    """Whoever keeps state, in the order in which it is repaired, with its name."""
    store = site.store
    below = [("the layer below", _Below(store))] if isinstance(store, OverlayStore) else []
    if is_address(store.name):
        from anima.store.rows.store import CheckedRows, RowStore

        return [
            ("the database", CheckedRows(cast(RowStore, upper_of(store)))),
            ("small files", _SmallFiles(site)),
            ("transcripts", rooms.parts(site)[-1]),
            *below,
        ]
    files: list[tuple[str, Checked]] = [
        ("the folder", kept.CheckedFiles(_of_folder(store))),
        ("the ledger", kept.CheckedLedger(_of_folder(store), daily=site.layout.daily, is_upper=bool(below))),
        ("small files", _SmallFiles(site)),
        ("your configuration", UserFiles(site.env, store.name, store.identity)),
    ]
    if not whole:
        return files
    index = CheckedIndex("index.sqlite", "The index", why=sqlite_tables(store).check, remove=store.state.remove)
    return [
        *files,
        ("interrupted changes", kept.CheckedBatches(_of_folder(store))),
        ("history", kept.CheckedHistory(_of_folder(store))),
        ("the index", index),
        *(("transcripts", part) for part in rooms.parts(site)),
        *below,
    ]


class _Below:
    """What a layer below is to this home. There is nothing to mend: it is somebody else's."""

    def __init__(self, store: OverlayStore) -> None:
        self._store = store

    def check(self) -> Iterator[Remark]:
        for below in self._store.layers.all:
            try:
                below.read_ledger()
            except HomeError:
                yield _remark("unread-below", below.store.name)
        yield from (_remark("outgrown", path) for path in self._store.outgrown())

    def mend(self, found: Remark) -> str:
        return ""


def _looked(what: str, check: Callable[[], Iterable[Remark]]) -> list[Remark]:
    """What one check says. A doctor that dies of the illness tells nothing, so whatever goes wrong becomes a sentence."""
    found: list[Remark] = []
    try:
        found.extend(check())
    except Exception as error:
        why = f": {error}" if isinstance(error, HomeError) else f" ({type(error).__name__}: {error})"
        said, hint = f"{what} could not be looked at{why}.", getattr(error, "hint", None) or ""
        found.append(Remark(name="not-looked-at", about=what, message=said, do=hint))
    return found


def _mended(part: Checked, found: Iterable[Remark]) -> list[Deed]:
    """What is done about each thing that a part found. What keeps it from being done is said, and the next one goes on."""
    done: list[Deed] = []
    for (name, about), remark in {(each.name, each.about): each for each in filter(_mendable, found)}.items():
        try:
            said, ok = part.mend(remark), True
        except (HomeError, OSError) as error:
            why = error if isinstance(error, HomeError) else os.strerror(error.errno or 0)
            said, ok = f"could not be mended: {why}", False
        owner = damages()[name].owner if ok else ""
        if said:
            done.append(Deed(name=name, about=about, said=said, ok=ok, owner="" if _BEFORE in owner else owner))
    return done


def completed(found: Iterable[Remark]) -> list[Remark]:
    """Remarks with what the table says of their damages, damage first."""
    rows = damages()
    full = [replace(r, level=rows[r.name].level, do=r.do or rows[r.name].do) if r.name else r for r in found]
    return sorted(full, key=lambda each: ("damage", "advice", "fine").index(each.level))


def _mendable(found: Remark) -> bool:
    return bool(found.name and damages()[found.name].repair)


class CheckedDocuments:
    """The texts of one home. `known` is what was said to be damaged; `draws` is None where that rules a prompt out."""

    def __init__(self, site: Site, draws: Callable[[Site], Drawn] | None, known: Collection[str]) -> None:
        self._site, self._documents, self._draws, self._known = site, site.store.documents, draws, known
        self._prompt: Drawn | None = None

    def draw(self) -> tuple[Remark, ...]:
        self._prompt = self._draws(self._site) if self._draws else None
        return ()

    def check(self) -> Iterator[Remark]:
        site, layout = self._site, self._site.layout
        yield _remark("dialect", "dialect", dialect=layout.dialect, why=site.detected_by)
        for key, reason in site.config.ignored:
            yield _remark("ignored", FILE, key=key, reason=reason)
        for name in (name for name in site.config.owner if ":" not in name):
            yield _remark("owner", FILE, name=printable(name, 80))
        made_by = f", or anima init {shlex.quote(site.store.name)} for a template"
        for row in (row for row in layout.rows if row.form in ("text", "identity") and row.expected):
            if self._documents.actual(DocPath.parse(row.path)) is None:
                yield _remark("missing", row.path, template=made_by if layout.dialect == "anima" else "")
        for path in self._paths(""):
            yield from self._document(path)
        yield from self._skills()
        if (prompt := self._prompt) is None:
            return
        for line in prompt.manifest:
            if line.status == "dropped" or (line.status == "cut" and "whole" in line.reason):
                yield _remark("dropped", line.path, why=line.reason)
        yield _remark("prompt", "prompt", size=len(prompt.text), limit=prompt.limits.total)

    def _paths(self, folder: str) -> Iterator[DocPath]:
        try:
            listed = self._documents.list(folder)
        except HomeError:
            return  # said by the store
        for entry in listed:
            if entry.is_folder:
                yield from self._paths(entry.path)
            elif (path := DocPath.parse(entry.path)).is_markdown:
                yield path

    def _document(self, path: DocPath) -> Iterator[Remark]:
        about = path.text
        try:
            text = self._documents.read(path).text
        except BadText as error:
            yield _failed("document-not-text", about, error)
            return
        except HomeError as error:
            if about not in self._known and not isinstance(error, NoSuchDocument):
                yield _failed("not-looked-at", about, error)
            return
        if (at := text.find("\0")) >= 0:
            yield _remark("nul", about, line=text.count("\n", 0, at) + 1)
        if "<<<<<<< " in text and ">>>>>>> " in text and (line := _conflict(text)):
            yield _remark("conflict", about, line=line)
        injected = self._site.layout.row_of(path).form in ("text", "identity", "daily")
        if injected and self._prompt and len(text) > (limit := self._prompt.limits.file):
            yield _remark("long", about, size=len(text), limit=limit)
        if found := find_hidden(text):
            yield _remark("hidden", about, line=found[0].line, found=found[0].message)
        if "<!--" in text:
            yield from _marks(about, text)

    def _skills(self) -> Iterator[Remark]:
        for name in self._documents.names("skills"):
            path = f"skills/{name}/SKILL.md"
            if name.startswith(("_", ".")):
                continue
            try:
                skill_line(name, path, front_matter(self._documents.read(DocPath.parse(path)).text, path))
            except NoSuchDocument:
                continue
            except HomeError as error:
                yield _remark("skill", path, why=error)


def _conflict(text: str) -> int:
    """The line at which an unfinished merge begins; 0 for none."""
    begun = middle = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("<<<<<<< "):
            begun, middle = number, 0
        elif begun and line == "=======":
            middle = number
        elif middle and line.startswith(">>>>>>> "):
            return begun
    return 0


def _marks(about: str, text: str) -> Iterator[Remark]:
    on_headings = 0
    for section in sections(text):
        heading = text[section.start : section.body]
        on_headings += len(_PRIVATE.findall(heading))
        if _SHARE.search(heading) and not section.shared and not section.claimed:
            yield _remark("share", about, scopes=", ".join(Scope))
    if len(_PRIVATE.findall(text)) > on_headings:
        yield _remark("private", about)

"""Two layers as one home: a person's own documents above, a template's below.

Promise: one reader for all: the upper layer first, the lower one where nothing of the upper's ever stood. All writing goes
to the upper; a document of the lower's is taken over whole before it changes, so history and undo know its text. What was
deleted above stays gone: the upper's ledger is the tombstone. An upper layer that cannot be read is an error, never the lower.
Nothing below is ever written; its lines are trusted as its own ledger says. Not here: whether a template is trusted (site).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anima.config import OTHERS_WORDS
from anima.errors import BadArguments, Damaged, HomeError, NoSuchDocument, Refused, StaleWrite
from anima.ledger import FORMAT, Key, Ledger, first_of
from anima.ledger.views import OWNERS, Provenance
from anima.model import Actor, DocPath, Document, Entry, Kind, Origin, Source, Verdict, fold
from anima.store import Batch, Documents, Lineage, OpenFile, Store, Written
from anima.store.folder import Folder

ISOLATIONS = ("session", "user", "agent", "global")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """Which two layers make a home, and in whose name the upper one is opened. Made by `overlay`."""

    upper: str | Path
    lower: str | Path
    isolation: str = ""
    ids: tuple[tuple[str, str], ...] = ()  # of the agent, the user and the session, as far as they are given
    routes: tuple[tuple[str, str | Path | None], ...] = ()


def overlay(
    upper: str | Path,
    lower: str | Path,
    *,
    isolation: str | None = None,
    agent: str | None = None,
    user: str | None = None,
    session: str | None = None,
    routes: Mapping[str, str | Path | None] | None = None,
) -> Overlay:
    """Two layers to be opened as one home with `Home.open`: `upper` is read first and written, `lower` is a template that
    is only read. Each is a folder, a file (`file:…`) or a database (`postgresql://…`). With `isolation` (session, user,
    agent or global) each session, user or agent has an upper layer of its own beneath `upper`; whoever it names must be
    given, and nobody is a default. `routes` says for a path or folder which other template lies below it, or None for none;
    the longest that fits wins."""
    ids = {"agent": agent, "user": user, "session": session}
    given = {name: value for name, value in ids.items() if value is not None}
    if isolation is None and given:
        raise BadArguments(f"{', '.join(given)}: say by what the layers are kept apart: isolation='user', for example")
    if isolation is not None:
        isolation = str(isolation).lower()
        if isolation not in ISOLATIONS:
            raise BadArguments(f"isolation is one of {', '.join(ISOLATIONS)}, not {isolation!r}")
        if isolation in ids and not (ids[isolation] or "").strip():
            raise BadArguments(f"each {isolation} has a layer of its own, and no {isolation} is named: {isolation}=…")
        if blank := [name for name, value in given.items() if not value.strip()]:
            raise BadArguments(f"{blank[0]} is empty; leave it away or name one")
    named, led = tuple(given.items()) if isolation != "global" else (), tuple((routes or {}).items())
    return Overlay(upper=upper, lower=lower, isolation=isolation or "", ids=named, routes=led)


class Below:
    """One store that is only read: its documents, and whose its lines are."""

    def __init__(self, store: Store, is_trusted: Callable[[], bool]) -> None:
        self.store, self.documents, self.is_trusted = store, store.documents, is_trusted
        self._view: tuple[int, Provenance | None] = (-1, None)

    def source(self, path: DocPath, line: str) -> Source:
        with suppress(HomeError, OSError):
            if self.is_trusted():
                return view.source(path, line) if (view := self.read_ledger()) else OWNERS
        return Source(actor=Actor.OUTSIDE, origin=Origin.PEER)  # nobody vouched for it, or nobody can tell any more

    def knows(self, path: DocPath) -> bool:
        with suppress(HomeError, OSError):
            return (view := self.read_ledger()) is not None and view.knows(path)
        return False

    def read_ledger(self) -> Provenance | None:
        """What its ledger says, read and neither begun nor mended; None where there is none. Raises Damaged for one that
        cannot be read, or has another format."""
        if (size := self.store.log.size()) != self._view[0]:
            view, secret, first = None, self.store.state.get("key"), first_of(self.store.log)[0] if size else None
            if size and not (secret and first and first.fields.get("format") == FORMAT):
                raise Damaged("the ledger of the layer below cannot be read")
            if size and secret:
                view = Provenance(key := Key(secret))
                view.follow(Ledger(self.store.log, key=key, clock=lambda: datetime.min.replace(tzinfo=UTC)))
            self._view = (size, view)
        return self._view[1]


class Layers:
    """What lies below the upper layer, by prefix; the longest that fits a path says which store, or that none does."""

    def __init__(self, routes: Mapping[str, Below | None]) -> None:
        # Other people's words nobody's template hands on, unless a route says so.
        self._routes = {
            **dict.fromkeys(OTHERS_WORDS),
            **{fold(prefix.strip("/")): below for prefix, below in routes.items()},
        }
        self.all = list(dict.fromkeys(below for below in self._routes.values() if below))

    def at(self, key: str) -> Below | None:
        while key not in self._routes:
            key = key.rpartition("/")[0]
        return self._routes[key]


class _Above:
    """Where an upper layer in a database may have a document: what it does not name, that layer surely lacks. It follows the
    layer's revision, so whoever writes there is noticed, and a layer that cannot be asked is an error."""

    def __init__(self, store: Any, gone: Callable[[], Callable[[DocPath], bool]]) -> None:
        self._store, self._ever, self._mutex = store, gone, threading.Lock()
        self._at: object = None
        self._since, self._names = "-1", set[str]()
        self.gone: Callable[[DocPath], bool] = lambda path: False

    def lacks(self, path: DocPath) -> bool:
        if not path.is_markdown or "." in path.parent or path.key in self._names:
            return False  # logs have no revision, and a document may stand where a folder would
        with self._mutex:
            if (now := self._store.documents.revision()) != self._at:
                self._since, changed = self._store.changed(self._since)
                for each in changed:
                    parts = fold(each).split("/")
                    self._names.update("/".join(parts[:n]) for n in range(1, len(parts) + 1))
                self.gone = self._ever()
                # Only if nothing went on meanwhile: a number may have been of what was taken back.
                self._at = now if self._store.documents.revision() == now else None
        return path.key not in self._names


class OverlayDocuments(Documents):
    """Both layers' documents as one reader sees them. What the upper layer ever held (`gone`) is never the lower's."""

    def __init__(
        self, upper: Any, layers: Layers, gone: Callable[[], Callable[[DocPath], bool]], held: _Above | None = None
    ) -> None:
        self._upper, self._layers, self._gone, self._held = upper, layers, gone, held
        self.name, self.identity = upper.name, upper.identity

    def _below(self, path: DocPath, *, lacks: bool = False) -> Documents | None:
        """The documents of the layer that answers for a path the upper one does not have. One in a database that surely
        `lacks` it is asked for nothing more."""
        if isinstance(self._upper, Folder):
            self._upper.check_there()
        if (below := self._layers.at(path.key)) is None:
            return None
        gone = self._held.gone if lacks and self._held is not None else self._gone()
        above = ["/".join(path.parts[:n]) for n in range(1, len(path.parts))]
        if gone(path) or any("." in folder and self._upper.kind_of(folder) == "file" for folder in above):
            return None  # it is gone, or a document stands where a folder would
        return below.documents

    def _lacks(self, path: DocPath) -> bool:
        """Whether the upper layer surely has nothing at a path, told by what is known of it without asking for that path."""
        if self._held is not None:
            return self._held.lacks(path)
        return isinstance(self._upper, Folder) and self._upper.listed(path) is None

    def _either(self, path: str, ask: Callable[[Any, str], Any]) -> Any:
        """What the upper layer answers for a path as it is spelt, else the lower; None where neither has it."""
        checked = DocPath.parse(path)
        lacks = self._lacks(checked)
        found = None if lacks else ask(self._upper, path)
        if found is not None or (not lacks and self._upper.actual(checked) is not None):
            return found
        below = self._below(checked, lacks=lacks)
        return ask(below, below.actual(checked) or path) if below else None

    def _read(self, path: DocPath, ask: Callable[[Documents], Any]) -> Any:
        if not (lacks := self._lacks(path)):
            with suppress(NoSuchDocument):
                return ask(self._upper)
        if (below := self._below(path, lacks=lacks)) is None:
            raise NoSuchDocument(path.text)
        return ask(below)

    def read(self, path: DocPath) -> Document:
        return self._read(path, lambda layer: layer.read(path))  # type: ignore[no-any-return]

    def raw(self, path: DocPath, *, most: int) -> bytes:
        return self._read(path, lambda layer: layer.raw(path, most=most))  # type: ignore[no-any-return]

    def actual(self, path: DocPath) -> str | None:
        lacks = self._lacks(path)
        found: str | None = None if lacks else self._upper.actual(path)
        if found is None and (below := self._below(path, lacks=lacks)) is not None:
            found = below.actual(path)
            if found is not None and below.kind_of(found) == "folder" and not self._seen_below(found):
                return None
        return found

    def version(self, path: str) -> str | None:
        found = self._either(path, lambda layer, spelt: layer.version(spelt))
        return found if found is None or self._upper.version(path) is not None else f"below {found}"

    def versions(self) -> Mapping[str, str] | None:
        upper, own = self._upper, self._upper.versions()
        found = {entry.path: upper.version(entry.path) for entry in upper.list_all()} if own is None else dict(own)
        for entry, below in list(self._visible("", {fold(path) for path in found})):
            found[entry.path] = f"below {below.version(entry.path)}"
        return found

    def kind_of(self, path: str) -> str | None:
        return self._either(path, lambda layer, spelt: layer.kind_of(spelt))  # type: ignore[no-any-return]

    def bytes_of(self, path: str) -> bytes | None:
        return self._either(path, lambda layer, spelt: layer.bytes_of(spelt))  # type: ignore[no-any-return]

    def opened(self, path: str) -> AbstractContextManager[OpenFile]:
        layer = self._upper if self._upper.kind_of(path) is not None else self._below(DocPath.parse(path))
        return (layer or self._upper).opened(path)

    def make_folder(self, folder: str) -> None:
        self._upper.make_folder(folder)

    def strange(self, folder: str) -> Iterable[tuple[str, str]]:
        return self._upper.strange(folder) if not folder or self._upper.kind_of(folder) else ()

    def raw_names(self, folder: str) -> Sequence[str]:
        prefix = f"{folder}/" if folder else ""
        found = {fold(name): name for name in self._upper.raw_names(folder)}
        for below in self._layers.all:
            for name in below.documents.names(folder):
                path = f"{prefix}{name}"
                if name.startswith(".") or fold(name) in found:
                    continue
                if below.documents.kind_of(path) == "folder":
                    is_seen = self._seen_below(path)
                else:
                    is_seen = self._layers.at(fold(path)) is below and not self._gone()(DocPath.parse(path))
                if is_seen:
                    found[fold(name)] = name
        return list(found.values())

    def _seen_below(self, folder: str) -> bool:
        return next(self._visible(folder, set()), None) is not None

    def _visible(self, folder: str, taken: set[str]) -> Iterator[tuple[Entry, Documents]]:
        """Each document of the lower layers that is to be seen, but for those whose folded name is `taken`."""
        gone = self._gone()
        for below in self._layers.all:
            documents = below.documents
            at = documents.actual(DocPath.parse(folder)) if folder else ""
            if at is None or (at and documents.kind_of(at) != "folder"):
                continue
            for entry in documents.list_all(at):
                path = DocPath.parse(entry.path)
                if path.key in taken or self._layers.at(path.key) is not below or gone(path):
                    continue
                above = path.key.split("/") if taken else ()
                if not any("/".join(above[:n]) in taken for n in range(1, len(above))):
                    yield entry, documents

    def list_all(self, folder: str = "") -> Iterator[Entry]:
        own = self._own(folder, lambda: list(self._upper.list_all(folder)))
        lower = [entry for entry, _ in self._visible(folder, {fold(entry.path) for entry in own or ()})]
        if own is None and not lower:
            raise NoSuchDocument(folder)
        yield from sorted([*own, *lower], key=lambda entry: entry.path.split("/")) if own else lower

    def list(self, folder: str = "") -> tuple[Entry, ...]:
        own = self._own(folder, lambda: self._upper.list(folder))
        found = {fold(entry.path): entry for entry in own or ()}
        depth = len(folder.strip("/").split("/")) + 1 if folder else 1
        for entry, _ in self._visible(folder, {key for key, held in found.items() if not held.is_folder}):
            parts = entry.path.split("/")
            at = "/".join(parts[:depth])
            if len(parts) > depth:
                entry = Entry(path=at, is_folder=True, size=0, time=entry.time)
            found.setdefault(fold(at), entry)
        if own is None and not found:
            raise NoSuchDocument(folder)
        return tuple(sorted(found.values(), key=lambda entry: (not entry.is_folder, entry.path)))

    def _own(self, folder: str, ask: Callable[[], Sequence[Entry]]) -> Sequence[Entry] | None:
        """What the upper layer lists; None where it has no such folder."""
        try:
            return ask()
        except NoSuchDocument:
            if isinstance(self._upper, Folder):
                self._upper.check_there()
            return None


class LayeredView:
    """Where each line came from: as the upper's ledger says, and for what it only found or never held, as the lower's."""

    def __init__(self, upper: Lineage, layers: Layers) -> None:
        self._upper, self._layers = upper, layers

    def knows(self, path: DocPath) -> bool:
        below = self._layers.at(path.key)
        return self._upper.knows(path) or (below is not None and below.knows(path))

    def source(self, path: DocPath, line: str) -> Source:
        found = self._upper.source(path, line)
        place = DocPath.parse(found.place or path.text)  # what was taken over may have been moved since
        below = self._layers.at(place.key)
        return found if replace(found, place=None) != OWNERS or below is None else below.source(place, line)


class OverlayStore:
    """The `Store` of two layers: the upper's, but for what is read."""

    def __init__(self, upper: Store, layers: Layers) -> None:
        self.upper, self.layers = upper, layers
        self._known: tuple[int, Callable[[DocPath], bool]] = (-1, lambda path: False)  # at this size of the ledger
        held = _Above(upper, self._gone) if hasattr(upper.documents, "revision") else None
        self.documents = OverlayDocuments(upper.documents, layers, self._gone, held)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.upper, name)

    def _gone(self) -> Callable[[DocPath], bool]:
        """Whether the upper layer ever held a document. Raises Damaged where nobody can tell any more."""
        if self._known[0] < 0 and not self.upper.begun:  # asking for its size would make it
            self.upper.need_ledger()
        elif (size := self.upper.log.size()) != self._known[0]:
            self._known = (size, self.upper.provenance.knows)
        return self._known[1]

    @property
    def provenance(self) -> LayeredView:
        return LayeredView(self.upper.provenance, self.layers)

    def write(self, batch: Batch) -> Written:
        with self.upper.lock():
            # The lower's text of the documents comes into the upper once the batch is known to be writable.
            taken = []
            for change in batch.changes:
                found = self._lower(change.path)
                if change.to is not None and change.kind is Kind.MOVE and (there := self._lower(change.to)) is not None:
                    raise StaleWrite(change.to.text, theirs=there.text, ours=found.text if found else None)
                if found is not None:
                    change.check_base(found.text)
                    below = self.layers.at(change.path.key)
                    if change.kind is not Kind.DELETE and below is not None and not below.is_trusted():
                        said = "this page is a template's that nobody vouched for, and it is not made yours unread"
                        hint = "look at the template, then say anima trust-home --home TEMPLATE"
                        raise Refused(f"{change.path}: {said}", rule="untrusted-template", hint=hint)
                    taken.append(found)
            for document in taken:
                self.upper.bring(document.path, [document.text.encode("utf-8")], batch.verdict, mode=0o600)
            return self.upper.write(batch)

    def _lower(self, path: DocPath) -> Document | None:
        """A document that the lower layer alone has."""
        if self.upper.documents.actual(path) is not None or not self.documents.exists(path):
            return None
        return self.documents.read(path)

    def bring(self, path: DocPath, pieces: Iterable[bytes], verdict: Verdict, *, mode: int) -> bool:
        return self.documents.actual(path) is None and self.upper.bring(path, pieces, verdict, mode=mode)

    def outgrown(self) -> Iterator[str]:
        """Documents that were taken over from another text than the lower layer has now."""
        begun = {fold(str(r.fields["path"])): r.fields for r in self.upper.ledger.records(0, kinds=("found",))}
        for key, fields in begun.items():
            path, below = DocPath.parse(str(fields["path"])), self.layers.at(key)
            try:
                text = below.documents.read(path).text if below else None
            except HomeError:
                continue
            if text is not None and self.upper.key.of(text) != fields.get("digest"):
                yield path.text

    def changed(self, since: str | None) -> tuple[str, tuple[str, ...] | None]:
        return "", None  # the lower layer is written to by others

    def changes(self, stop: threading.Event | None = None) -> Iterator[object]:
        stop, told = stop or threading.Event(), queue.SimpleQueue[object]()

        def watch(store: Store) -> None:
            for each in store.changes(stop):
                told.put(each)

        for store in (self.upper, *(below.store for below in self.layers.all)):
            threading.Thread(target=watch, args=(store,), daemon=True).start()
        while not stop.is_set():
            try:
                yield told.get(timeout=0.2)
            except queue.Empty:
                continue

    def close(self) -> None:
        self.upper.close()
        for below in self.layers.all:
            below.store.close()


def upper_of(store: Any) -> Any:
    """The store that is written: the upper layer's, where there are two."""
    return store.upper if isinstance(store, OverlayStore) else store

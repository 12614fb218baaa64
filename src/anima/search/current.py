"""Keeping the index in step with the files, and asking it for whoever is listening.

Promise: own writes are seen by the next search, outside ones by a walk at most once a second; catching up reads only
what has another version; each text that some listener sees of a document is in the index by itself, with the scopes and
the layer that the query filters by, so that nothing they are told hangs on the rest. A lost or damaged index is built
again and said; it never stops a write.
Not here: ranking (`rank`), units and vectors (`index`), where rows are kept (`tables`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from anima.errors import BadArguments, HomeError
from anima.layout import Layout, Listener, Policy, is_unreviewed, keeper_of, row_at
from anima.model import DocPath, Document, Embedder, Scope
from anima.search import OWNER_ALONE
from anima.search.field import FACE, Filter, path_of
from anima.search.graph import MOST, About, Graph, look_up, texts_of, weave
from anima.search.index import DocumentIn, Index
from anima.search.rank import Query, SearchAnswer, run
from anima.search.tables import SqliteTables, Tables
from anima.site import Site
from anima.store import Store
from anima.text import word_set
from anima.text.dates import day_in_name
from anima.text.markdown import lines_of, marks_in

_Rule = Callable[[DocPath], bool]
FILE = "index.sqlite"
EVERY = 1.0  # seconds between two walks
EVERY_ALL = 600.0  # where the store tells what changed: what is left out may depend on the day
SHARED = "*"  # the layer of documents that are nobody's own
_FRESH = 0.1  # seconds: what was written so lately may change again within one tick of its store's clock
_BITS = {scope: 1 << n for n, scope in enumerate(Scope)}
# What every prompt holds anyway, or is a ritual: instructions, not memory; and the diary, which tells of dreaming.
_NOT_MEMORY = word_set("""
    identity soul agents heartbeat bootstrap alternate-soul boot routine skill subagent agent-page agent-root skill-draft diary
""")
_KINDS = word_set("curated daily topic bank knowledge session unreviewed")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """What bringing the index up to date did."""

    documents: int  # in the index now
    put: int
    dropped: int
    units: int
    embedded: int
    seconds: float
    notes: tuple[str, ...] = ()


class Search:
    """The index of one home, kept in step with it, opened when first asked for. `left_out` gives, whenever the index is brought
    up to date, the rule that says which documents stay out of it."""

    def __init__(self, site: Site, *, embedder: Callable[[], Embedder | None], left_out: Callable[[], _Rule]) -> None:
        self._site, self._store, self._layout, self._books = site, site.store.documents, site.layout, site.store
        self._embedder_of, self._left_out_of = embedder, left_out
        self._left_out: _Rule = lambda path: False
        self._tables = tables_of(site.store)
        self._index: Index | None = None
        self._embedders: tuple[Embedder | None, ...] = ()  # one, once it is made
        self._mutex = threading.RLock()
        self._walked = self._walked_all = float("-inf")
        self._mark_of_all: str | None = None  # what the store said of its documents when they were last walked over
        self.notes: tuple[str, ...] = ()
        self._dirty: set[str] = set()
        self._here: set[str] = set()  # documents that the last looks saw
        self._faces: set[str] = set()  # and what the index holds of them beside the whole

    @property
    def embedder(self) -> Embedder | None:
        with self._mutex:  # made once, however many threads ask for the first time
            if not self._embedders:
                try:
                    self._embedders = (self._embedder_of(),)
                except HomeError as error:
                    self._embedders, self.notes = (None,), (f"searching by words only: {error}",)
            return self._embedders[0]

    @property
    def _kept(self) -> Index:
        with self._mutex:
            if self._index is None:
                self._books.scratch(FILE, make=True)
                self._index = Index(self._tables, self.embedder, place=self._books.identity)
            return self._index

    @property
    def held_bytes(self) -> int:
        """About how many are held."""
        return self._index.held_bytes if self._index is not None else 0

    def close(self) -> None:
        with self._mutex:
            for each in (self._index, *self._embedders):
                if each is not None:
                    each.close()

    def touched(self, paths: Iterable[DocPath]) -> None:
        """Documents we wrote ourselves: the next search looks at them whatever the time."""
        with self._mutex:
            self._dirty.update(path.text for path in paths)

    def catch_up(self, *, now: bool = False, progress: Callable[[int, int], None] | None = None) -> IndexReport | None:
        """Brings the index up to date if it is time to look (or `now`); None when nothing was looked at."""
        with self._mutex:
            is_due = now or time.monotonic() - self._walked >= EVERY
            if not is_due and not self._dirty:
                return None
            self._books.need_ledger()
            started, notes, dropped = time.monotonic(), list[str](), 0
            dirty, self._dirty = self._dirty, set()
            self._left_out = self._left_out_of()
            if is_due:  # where the store can tell, what it tells is looked at, and now and then everything
                is_old = now or time.monotonic() - self._walked_all >= EVERY_ALL
                self._mark_of_all, told = self._books.changed(None if is_old else self._mark_of_all)
                if told is not None:
                    self._walked, is_due = time.monotonic(), False
                    dirty |= set(told)
            stale = None if is_due else self._standing(dirty)
            if stale is None:
                known, here = self._kept.known(), dict(self._marks())
                stale = {path: mark for path, mark in here.items() if known.get(path) != mark}
                faces = [(path_of(key), mark) for key, mark in known.items()]
                stale |= {path: here[path] for path, mark in faces if here.get(path, mark) != mark}
                dropped = self._kept.drop(key for key in known if path_of(key) not in here)
                self._here, self._faces = set(here), {key for key in known if FACE in key}
                self._walked = self._walked_all = time.monotonic()
            self._here |= stale.keys()
            before = {key for key in self._faces if path_of(key) in stale}
            self._faces -= before
            done = self._kept.put(self._documents_in(stale, progress, notes))
            self._kept.drop(before - self._faces)
            return IndexReport(
                documents=len(self._here),
                put=len(stale),
                dropped=dropped,
                units=done.units,
                embedded=done.embedded,
                seconds=time.monotonic() - started,
                notes=(*notes, *done.notes),
            )

    def _standing(self, paths: set[str]) -> dict[str, str] | None:
        """The marks of documents we wrote; None when one is gone or is spelt otherwise, which only a walk makes out."""
        found = {}
        for path in sorted(paths):
            checked = DocPath.parse(path)
            if self._store.actual(checked) != path:
                return None
            if mark := self._mark(checked, None):
                found[path] = mark
        return found

    def _documents_in(
        self, marks: dict[str, str], progress: Callable[[int, int], None] | None, notes: list[str]
    ) -> Iterator[DocumentIn]:
        for number, path in enumerate(marks, start=1):
            try:
                for face in self._faces_of(self._store.read(DocPath.parse(path)), marks[path]):
                    self._faces |= {face.path} if FACE in face.path else set()
                    yield face
            except HomeError as error:
                notes.append(f"left out of the index: {error}")
                yield DocumentIn(path=path, digest=marks[path], text="", kind="note", layer="", scopes=0)
            if progress is not None:
                progress(number, len(marks))

    def _marks(self) -> Iterator[tuple[str, str]]:
        """(path, mark) of every document that belongs into the index."""
        every = self._store.versions()
        for entry in self._store.list_all():
            if mark := self._mark(DocPath.parse(entry.path), entry.time, every):
                yield entry.path, mark

    def _mark(self, path: DocPath, written: datetime | None, every: Mapping[str, str] | None = None) -> str:
        """What changes whenever a document may have; "" for one that is not here or does not belong into the index. One that was
        `written` a moment ago (None: just now) has a mark for once, and is looked at again."""
        row = self._layout.row_of(path)
        if not path.is_markdown or row.policy is Policy.CLOSED or row.role in _NOT_MEMORY or self._left_out(path):
            return ""
        version, now = self._store.version(path.text) if every is None else every.get(path.text), time.time()
        is_fresh = written is None or written.timestamp() > now - _FRESH
        return version + (f"~{now}" if is_fresh else "") if version is not None else ""

    def bring_up(self, *, rebuild: bool = False, progress: Callable[[int, int], None] | None = None) -> IndexReport:
        """Brings all of it up to date now, from nothing with `rebuild`; tells what was done."""
        with self._mutex:
            if rebuild:
                self._kept.clear()
            report = self.catch_up(now=True, progress=progress)
            assert report is not None
            return report

    __call__ = bring_up

    def freshen(self, *, anew: bool) -> None:
        """Brings an index that is there up to date now, since something was forgotten; with `anew`, in a new file."""
        if self._tables.exists:
            self.bring_up(rebuild=anew)

    def backfill(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Makes the vectors that are missing, because the embedder was away or came later; how many it made."""
        made, lacking = self.bring_up().embedded, self._kept.incomplete()
        marks, missing = dict(self._marks()) if lacking else {}, sum(lacking.values())
        for path in dict.fromkeys(map(path_of, lacking)):
            if mark := marks.get(path):
                done = self._kept.put(self._documents_in({path: mark}, None, []), complete=True)
                made += done.embedded
                if progress is not None:
                    progress(min(made, missing), missing)
                if done.missing:
                    break
        return made

    def watch(self, stop: threading.Event | None = None) -> Iterator[IndexReport]:
        """A report after each change from outside that was taken in; the first one at once. Ends when `stop` is set."""
        yield self.bring_up()
        for _ in self._books.changes(stop):
            report = self.bring_up()
            if report.put or report.dropped:
                yield report

    def search(
        self,
        listener: Listener,
        text: str,
        *,
        limit: int,
        at: date | datetime | None,
        kinds: Collection[str] | None = None,
        since: date | None = None,
        trusted_only: bool = True,
        **more: Any,
    ) -> SearchAnswer:
        """What a listener may find, after a look at whether the files changed; with `since`, in dated documents from that
        day on. Without `trusted_only`, lines nobody vouched for too: for the owner's eyes, never for a model."""
        known = {"note", "knowledge", *(row.kind for row in (*self._layout.rows, *self._layout.others))}
        if unknown := sorted({*(kinds or ())} - known):
            raise BadArguments(f"there is no kind {unknown[0]!r} of documents; there are {', '.join(sorted(known))}")
        kinds, report = None if kinds is None else frozenset(kinds), self.catch_up()
        seen = replace(self.filter_for(listener, kinds), since=since, trusted_only=trusted_only)
        query, tells_all = Query(text=text, limit=limit, at=at, **more), listener.sees_all
        answer = run(self._kept, self.embedder, query, seen, tells_all=tells_all)
        notes = (*(report.notes if report and tells_all else ()), *self.notes, *answer.notes)
        return replace(answer, notes=tuple(dict.fromkeys(notes)))

    def waiting(self, listener: Listener, text: str, *, at: date | datetime | None) -> int:
        """How many lines that nobody reviewed may answer too. Only the owner's conversations are told of any."""
        if listener.scope is not Scope.MAIN:
            return 0
        return len(self.search(listener, text, limit=20, at=at, kinds=["unreviewed"], trusted_only=False))

    def graph(self, listener: Listener, *, most: int = MOST) -> Graph:
        """Who and what the home speaks of, as far as the listener may see it."""
        return weave(texts_of(self._site, listener), most=most)

    def about(self, name: str, listener: Listener, *, limit: int = 12, at: date | None = None) -> About:
        """What the home says about somebody or something; with `at`, as of that date."""
        return look_up(self._site, listener, name, limit=limit, at=at)

    def _faces_of(self, document: Document, mark: str) -> Iterator[DocumentIn]:
        """A document as the index takes it: once, or, where parts of it are marked, once for each text that somebody sees
        of it, so that no score, no line number and no neighbour of theirs hangs on the rest."""
        path, kind = document.path, row_at(self._layout, document.path).kind
        keeper = keeper_of(self._layout, path)
        is_new = is_unreviewed(self._layout, path)  # all of one that nobody reviewed is untrusted
        for text, bits in faces(self._layout, path, document.text).items():
            said = text
            if is_new and text.startswith("# Unreviewed "):  # of a day only what its entries say, each where it stands
                said = "".join(line if line.startswith(">") else "\n" for line in lines_of(text))
            yield DocumentIn(
                path=path.text if text == document.text else f"{path.text}{FACE}{bits}",
                digest=mark,
                text=said,
                kind=kind if kind in _KINDS else "note",
                layer=SHARED if keeper is None else keeper,
                date=day_in_name(path.name),
                scopes=bits,
                trusted=not is_new,
            )

    @staticmethod
    def filter_for(listener: Listener, kinds: Collection[str] | None = None) -> Filter:
        """What of the index a listener may find."""
        bit = OWNER_ALONE if listener.sees_all else _BITS[listener.scope]
        return Filter(scope=bit, layers=frozenset({SHARED, listener.layer}), kinds=kinds, trusted_only=True)


def faces(layout: Layout, path: DocPath, text: str) -> dict[str, int]:
    """What there is to be seen of a document, each text with the kinds of listeners who see just that, as bits. The whole
    comes first, whoever sees it."""
    keeper = keeper_of(layout, path)
    listeners = {bit: Listener(scope=scope, layer=SHARED if keeper is None else keeper) for scope, bit in _BITS.items()}
    listeners[OWNER_ALONE] = Listener(scope=Scope.MAIN)
    marked = marks_in(text)
    if not marked:
        return {text: sum(bit for bit, listener in listeners.items() if listener.sees(layout, path))}
    found = {text: 0}
    for bit, listener in listeners.items():
        if seen := listener.view(layout, path, text, marked=marked).text:
            found[seen] = found.get(seen, 0) | bit
    return found


def tables_of(store: Store) -> Tables:
    """The tables of a home's index: in its database, else in derived files."""
    if (rows := getattr(store, "rows", None)) is not None:
        from anima.search.rows import RowTables

        return RowTables(rows)
    return sqlite_tables(store)


def sqlite_tables(store: Store) -> SqliteTables:
    return SqliteTables(store.scratch(FILE), lock=store.scratch("index.lock"))

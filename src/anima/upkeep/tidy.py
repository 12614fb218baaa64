"""Tidying: what of a home's memory is old, said twice or contradicted, and the changes that would tidy it up.

Promise: looking changes nothing and asks no server. A suggestion is a few changes with their diff, bound to the documents
as they were looked at, also to the one whose line is kept; several are carried out as one change that one undo takes back.
A line goes only when another that is at least as trusted says it, logs are moved and never deleted, and between two lines
that contradict each other only the owner chooses. Each person's layer is looked at by itself.
Not here: which lines say the same (hygiene), how long a folder keeps things (retention), the road (writing).
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from anima.errors import BadArguments, HomeError, NoSuchDocument, StaleWrite
from anima.layout.listener import layer_at, row_at
from anima.layout.table import ANYTHING, Policy
from anima.memory.write import owners
from anima.model import Actor, Change, DocPath, Document, Kind, Receipt
from anima.text.dates import day_in_name
from anima.text.lasting import POSSIBLE, lasting
from anima.text.markdown import evidence_of, lines_of
from anima.text.phrases import said_in
from anima.text.sentences import sentence
from anima.upkeep.hygiene import (
    Advice,
    Contradiction,
    Group,
    Line,
    Stale,
    find_contradictions,
    find_duplicates,
    find_stale_logs,
    has_date,
    read,
    suggest_consolidation,
)
from anima.upkeep.retention import Retention
from anima.upkeep.statements import statements

if TYPE_CHECKING:
    from anima.home import Home
    from anima.layout.table import Row
    from anima.upkeep.hygiene.lines import Vectors

Part = Literal["stale", "duplicates", "contradictions"]
PARTS: tuple[Part, ...] = ("stale", "duplicates", "contradictions")
Progress = Callable[[int, int], None]
_TRIES = 3
_CONTEXT = 3
_CURATED, _PAGES, _LOGS, _ARCHIVE = range(4)  # what is kept before what
_REASON = "hygiene"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion(Advice):
    """Something to do, with the documents it was made from. `Home.tidy` carries it out."""

    pages: tuple[Document, ...] = field(default=(), repr=False, compare=False)

    @property
    def id(self) -> str:
        """The digest of what a suggestion would do, and to which lines; for a log also of all it holds."""
        lines = [
            [(line.path, line.number, line.text) for line in part]
            for part in ((self.keep,) if self.keep else (), self.remove, self.between)
        ]
        held = [page.digest for page in self.pages] if self.to else []
        return hashlib.sha256(json.dumps([self.kind, lines, self.path, self.to, held]).encode()).hexdigest()[:24]

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes it takes; none for a choice that was not made yet."""
        return changes_of([self])

    @property
    def diff(self) -> str:
        """What would change, as a unified diff."""
        texts = {page.path.text: page.text for page in self.pages}
        return "".join(_diff(path, lines_of(texts[path]), numbers) for path, numbers in _cuts([self]).items()) + (
            f"rename from {self.path}\nrename to {self.to}\n" if self.to else ""
        )

    def keeping(self, line: Line) -> Suggestion:
        """The same with the choice made: this line stays, the other goes. Raises BadArguments for a third one."""
        if line not in self.between:
            raise BadArguments("a choice is between its own two lines")
        return replace(self, keep=line, remove=tuple(other for other in self.between if other != line))


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Everything that was found in one look, and what to do about it."""

    lines: int  # that were compared
    documents: int
    stale: tuple[Stale, ...] = ()
    duplicates: tuple[Group, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    notes: tuple[str, ...] = ()


# -- looking ---------------------------------------------------------------------------------------------------------------


def look(
    home: Home, *, days: int | None = None, parts: Collection[Part] = PARTS, progress: Progress | None = None
) -> Look:
    """Reads the memory of a home and tells what could be tidied. `days` is when a log is old: the configuration's else."""
    if days is not None and not 1 <= days <= 36_500:
        raise BadArguments(f"days is a whole number from 1 to 36,500, not {days}")
    retention = Retention(home.store, home.layout, home.config.hygiene)
    memory = _read(home, progress)
    stale = _stale(home, memory, retention, days or home.config.hygiene.days) if "stale" in parts else ()
    archived = {one.path for one in stale}
    groups: list[Group] = []
    clashes: list[Contradiction] = []
    meaning = _meaning(home) if "duplicates" in parts else None
    compared = 0
    for pool in memory.pools(archived) if {*parts} - {"stale"} else ():
        seen = read(pool)
        compared += len(seen)
        groups += find_duplicates(seen, vectors=meaning) if "duplicates" in parts else ()
        live = [
            one for one in seen if one.line.rank != _ARCHIVE and one.line.path not in archived
        ]  # the past may differ
        clashes += find_contradictions(live) if "contradictions" in parts else ()
    kept = _kept(home)
    groups = [one for one in groups if not kept or not kept(one.keep, *(twin.line for twin in one.twins))]
    clashes = [_dated(home, one) for one in clashes if not kept or not kept(one.one, one.other)]
    advised = suggest_consolidation(
        duplicates=groups, contradictions=clashes, stale=stale, may_go=_Sparing(home).may_go, archive=_Places(home).of
    )
    return Look(
        lines=compared,
        documents=len(memory.documents),
        stale=stale,
        duplicates=tuple(groups),
        contradictions=tuple(clashes),
        suggestions=tuple(memory.suggestion(one) for one in advised),
        notes=(*memory.notes, *retention.notes),
    )


@dataclass(slots=True)
class _Memory:
    """The documents that hold memory, and the lines in them that say something, by layer."""

    documents: dict[str, Document] = field(default_factory=dict)
    lines: dict[str, list[Line]] = field(default_factory=lambda: defaultdict(list))
    logs: dict[str, date] = field(default_factory=dict)  # daily logs that are in their place
    notes: list[str] = field(default_factory=list)

    def pools(self, archived: Collection[str]) -> Iterator[list[Line]]:
        """The lines of each layer in the order in which they are kept. What is to be archived is moved whole."""
        for lines in self.lines.values():
            kept = [replace(line, fixed=True) if line.path in archived else line for line in lines]
            yield sorted(
                kept, key=lambda one: (one.rank, -(one.day.toordinal() if one.day else 0), one.path, one.number)
            )

    def suggestion(self, advice: Advice) -> Suggestion:
        named = [line.path for line in (*advice.between, *advice.remove, *((advice.keep,) if advice.keep else ()))]
        pages = tuple(self.documents[path] for path in dict.fromkeys([*named, *([advice.path] if advice.path else ())]))
        fields = {name: getattr(advice, name) for name in Advice.__dataclass_fields__}
        return Suggestion(**fields, pages=pages)


def _read(home: Home, progress: Progress | None) -> _Memory:
    memory = _Memory()
    places = [
        (path, row)
        for entry in home.store.list_all()
        if (path := DocPath.parse(entry.path)).is_markdown and (row := _row(home, path))
    ]
    for number, (path, row) in enumerate(places, start=1):
        try:
            document = home.store.read(path)
        except NoSuchDocument:
            continue
        except HomeError as error:
            memory.notes.append(f"left out: {error}")
            continue
        _take(home, memory, document, row)
        if progress is not None:
            progress(number, len(places))
    return memory


def _row(home: Home, path: DocPath) -> Row | None:
    """The row of a document that holds memory; None for rules, souls, skills, reference books and diaries."""
    row = row_at(home.layout, path)
    if layer_at(path) is not None:
        return row if row.role in ("memory", "daily") else None
    held = row is ANYTHING or row.kind in ("curated", "daily", "topic", "bank")
    return row if held and row.policy is Policy.MEMORY else None


def _take(home: Home, memory: _Memory, document: Document, row: Row) -> None:
    path = document.path
    memory.documents[path.text] = document
    layer, rank, day = layer_at(path) or "", _rank(home, path, row), None
    if rank >= _LOGS:
        day = day_in_name(path.name)
        if rank == _LOGS and day is not None:
            memory.logs[path.text] = day
    view = home.books.provenance if home.books.begun else None
    doubtful = view is not None and view.has_doubt(path)
    for said in statements(document.text):
        trusted = not doubtful or view is None or view.source(path, said.text).trusted
        memory.lines[layer].append(
            Line(
                path=path.text,
                number=said.number,
                text=said.text,
                day=day,
                rank=rank,
                trusted=trusted,
                fixed=said.marked or rank == _ARCHIVE,
                under=" / ".join(said.under),
            )
        )


def _rank(home: Home, path: DocPath, row: Row) -> int:
    if row.role == "memory":
        return _CURATED
    if is_archived(path):
        return _ARCHIVE
    return _LOGS if row.kind == "daily" and day_in_name(path.name) is not None else _PAGES


def is_archived(path: DocPath) -> bool:
    """Whether a document lies in an archive: `…/archive/2026/…`."""
    parts = path.key.split("/")
    return any(one == "archive" and len(year) == 4 and year.isdecimal() for one, year in pairwise(parts[:-1]))


def _meaning(home: Home) -> Vectors | None:
    """What gives texts their meaning, when that is on this machine; a server is not asked by itself."""
    embedder = home.index.embedder
    if embedder is None or embedder.is_remote:
        return None
    return lambda texts: embedder.embed(texts, kind="document")


def _kept(home: Home) -> Callable[..., bool] | None:
    """Whether the owner said of some lines that all of them stay; None while nothing of that kind was said."""
    if not home.books.begun:
        return None
    said = [frozenset(record.fields.get("lines", ())) for record in home.books.ledger.records(kinds=("keep",))]
    line = home.books.key.line
    return (lambda *lines: any({line(one.text) for one in lines} <= each for each in said)) if said else None


def keep_all(home: Home, suggestion: Suggestion) -> None:
    """Notes that all lines of a suggestion stay, so that they are not brought up again. The ledger holds their digests."""
    lines = (*suggestion.between, *suggestion.remove, *((suggestion.keep,) if suggestion.keep else ()))
    if not lines:
        raise BadArguments("only lines can be kept; a log stays by itself until it is archived")
    home.books.append("keep", {"lines": sorted({home.books.key.line(line.text) for line in lines})})


def _dated(home: Home, found: Contradiction) -> Contradiction:
    """With the days on which lines outside the logs were written, as far as the ledger knows."""
    if found.newer is not None or not home.books.begun:
        return found
    one, other = (line if line.day else replace(line, day=_written(home, line)) for line in (found.one, found.other))
    newer = None
    if one.day and other.day and one.day != other.day:
        newer = max(one, other, key=lambda line: line.day or date.min)
    return replace(found, one=one, other=other, newer=newer)


def _written(home: Home, line: Line) -> date | None:
    when = home.books.provenance.source(DocPath.parse(line.path), line.text).time
    return when.astimezone(home.site.now().tzinfo).date() if when else None


# -- old logs --------------------------------------------------------------------------------------------------------------


def _stale(home: Home, memory: _Memory, retention: Retention, days: int) -> tuple[Stale, ...]:
    """Daily logs, and documents of folders that have a retention of their own, which are older than they should be."""
    by_days: dict[int, dict[str, date]] = defaultdict(dict)
    curated = DocPath.parse(home.layout.curated).key
    for path, document in memory.documents.items():
        own = retention.days_of(document.path.parent)
        day = memory.logs.get(path)
        if own is None and day is not None:
            own = days
        if own and document.path.key != curated and not is_archived(document.path):
            by_days[own][path] = day or day_in_name(document.path.name) or document.time.date()
    today = home.site.today()
    found = [one for own, logs in by_days.items() for one in find_stale_logs(logs, today=today, days=own)]
    return tuple(sorted(found, key=lambda one: (one.day, one.path)))


class _Places:
    """Where old documents go: a folder for each year in the archive of their folder, under a name that is free."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._taken: set[str] = set()

    def of(self, log: Stale) -> str:
        path = DocPath.parse(log.path)
        daily = self._home.layout.daily
        folder = self._home.layout.archive if path.parent.casefold() == daily.casefold() else f"{path.parent}/archive"
        stem = path.name[: -len(".md")]
        for name in (f"{stem}.md", *(f"{stem}-{number}.md" for number in range(2, 1_000))):
            to = DocPath.parse(f"{folder.lstrip('/')}/{log.day.year:04}/{name}")
            if to.key not in self._taken and self._home.store.actual(to) is None:
                self._taken.add(to.key)
                return to.text
        raise BadArguments(f"{log.path}: the archive holds a thousand logs of that name")


# -- what may go -----------------------------------------------------------------------------------------------------------


class _Sparing:
    """Which lines stay although others say the same."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._view = home.books.provenance if home.books.begun else None

    def may_go(self, gone: Line, kept: Line) -> bool:
        """Not a log's line that a night made memory of: it is where that came from. Not what happened on two days."""
        if gone.day is None:
            return True
        return not (self._is_dreamed(kept) or (kept.day is not None and kept.day != gone.day and _happened(gone)))

    def _is_dreamed(self, line: Line) -> bool:
        if line.rank != _CURATED:
            return False
        if evidence_of(line.text):
            return True
        return self._view is not None and self._view.source(DocPath.parse(line.path), line.text).actor is Actor.DREAMER


def _happened(line: Line) -> bool:
    """Whether a line tells what may happen on one day and again on another, and does not say when."""
    said = said_in(line.text)
    return not has_date(said) and lasting(sentence(said)).degree < POSSIBLE


# -- changes ---------------------------------------------------------------------------------------------------------------


def tidy(home: Home, suggestions: Sequence[Suggestion]) -> tuple[Receipt, ...]:
    """Carries suggestions out as one change. Where a document changed since, what still stands is looked at again; raises
    StaleWrite, with nothing done, where a line is no longer there."""
    for one in suggestions:
        if one.kind == "choose" and not one.remove:
            raise BadArguments("this is a choice: say which line stays, with suggestion.keeping(line)")
    for tries in range(_TRIES):
        changes = changes_of(suggestions)
        if not changes:
            return ()
        try:
            receipts = home.writing.submit([*changes, *_holds(suggestions, changes)], what="tidy")
            return receipts[: len(changes)]
        except StaleWrite:
            if tries == _TRIES - 1:
                raise
            suggestions = [again(home, one) for one in suggestions]
    raise AssertionError("unreachable")


def changes_of(suggestions: Sequence[Suggestion]) -> tuple[Change, ...]:
    """The changes of some suggestions together, one for each document. Raises StaleWrite when they saw different texts."""
    pages: dict[str, Document] = {}
    for page in (page for one in suggestions for page in one.pages):
        if pages.setdefault(page.path.text, page).digest != page.digest:
            raise StaleWrite(page.path.text, theirs=page.text, ours=None)
    moves = {one.path: one.to for one in suggestions if one.to}
    cuts = _cuts(suggestions)
    if both := next((path for path in cuts if path in moves), None):
        raise BadArguments(f"{both} would be moved and lose lines at once; do one after the other")
    found = [_cut(pages[path], numbers) for path, numbers in cuts.items()]
    for path, to in moves.items():
        found.append(owners(pages[path].path, Kind.MOVE, to=DocPath.parse(to), base=pages[path].digest, reason=_REASON))
    return tuple(found)


def _cuts(suggestions: Iterable[Suggestion]) -> dict[str, set[int]]:
    """The numbers, from 1, of the lines that go, by document."""
    found: dict[str, set[int]] = defaultdict(set)
    for line in (line for one in suggestions for line in one.remove):
        found[line.path].add(line.number)
    return dict(found)


def _cut(page: Document, numbers: set[int]) -> Change:
    kept = [line for number, line in enumerate(lines_of(page.text), start=1) if number not in numbers]
    return owners(page.path, Kind.WRITE, "".join(kept), base=page.digest, reason=_REASON)


def _holds(suggestions: Sequence[Suggestion], changes: Sequence[Change]) -> list[Change]:
    """Changes that change nothing: the documents of the lines that stay must be as they were when the others go."""
    touched = {change.path.key for change in changes}
    pages = {page.path.key: page for one in suggestions for page in one.pages}
    return [
        owners(page.path, Kind.WRITE, page.text, base=page.digest, reason=_REASON)
        for key, page in pages.items()
        if key not in touched
    ]


def again(home: Home, one: Suggestion) -> Suggestion:
    """The same suggestion on the documents of now. Raises StaleWrite where a line no longer stands there as it was."""
    now = {page.path.text: _now(home, page.path) for page in one.pages}
    if one.to and now[one.path].digest != next(page for page in one.pages if page.path.text == one.path).digest:
        raise StaleWrite(one.path, theirs=now[one.path].text, ours=None)
    before = {page.path.text: page for page in one.pages}

    def placed(line: Line) -> Line:
        """The line where it stands now: of several that are alike, the one in the same order."""
        old = [
            number for number, text in enumerate(lines_of(before[line.path].text), start=1) if text.strip() == line.text
        ]
        new = [
            number for number, text in enumerate(lines_of(now[line.path].text), start=1) if text.strip() == line.text
        ]
        if len(old) != len(new) or line.number not in old:
            raise StaleWrite(line.path, theirs=now[line.path].text, ours=None)
        return replace(line, number=new[old.index(line.number)])

    return replace(
        one,
        pages=tuple(now.values()),
        keep=placed(one.keep) if one.keep else None,
        remove=tuple(map(placed, one.remove)),
        between=tuple(map(placed, one.between)),
    )


def _now(home: Home, path: DocPath) -> Document:
    try:
        return home.store.read(path)
    except NoSuchDocument:
        raise StaleWrite(path.text, theirs=None, ours=None) from None


def _diff(path: str, lines: Sequence[str], gone: Collection[int]) -> str:
    """A unified diff of a document that only loses lines, in as many steps as it loses."""
    parts = [f"--- a/{path}\n+++ b/{path}\n"]
    lost = 0
    for first, last in _hunks(sorted(gone), len(lines)):
        here = [number for number in range(first, last + 1) if number in gone]
        start = first - lost
        parts.append(f"@@ -{first},{last - first + 1} +{start},{last - first + 1 - len(here)} @@\n")
        for number in range(first, last + 1):
            text = lines[number - 1]
            sign = "-" if number in gone else " "
            parts.append(sign + (text if text.endswith("\n") else text + "\n\\ no newline at the end\n"))
        lost += len(here)
    return "".join(parts)


def _hunks(numbers: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    """Runs of lines to show: those that go, with three around each."""
    spans: list[tuple[int, int]] = []
    for number in numbers:
        first, last = max(1, number - _CONTEXT), min(count, number + _CONTEXT)
        if spans and first <= spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], last)
        else:
            spans.append((first, last))
    yield from spans


__all__ = ["PARTS", "Look", "Part", "Suggestion", "again", "changes_of", "is_archived", "keep_all", "look", "tidy"]

"""Upkeep: what of a home's memory is old, said twice or contradicted, the home in figures, and its health.

Promise: looking changes nothing and asks no server. Suggestions are carried out as one change that one undo takes back.
A line goes only when another says it, logs are moved and never deleted, and between two lines that contradict each other
only the owner chooses. Each person's layer is looked at by itself. Figures are counted from transcripts, ledger and history;
nothing is kept for them, and days are the user's.
Not here: which lines say the same (hygiene), how long a folder keeps things (`Retention`), how figures are drawn (cli, web).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, tzinfo
from itertools import count, pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from anima.errors import BadArguments, HomeError, NoSuchDocument, StaleWrite
from anima.layout import ANYTHING, Policy, Row
from anima.layout.listener import layer_at, row_at
from anima.memory.past import Past
from anima.model import Actor, DocPath, Document, Nights, Receipt, Remark
from anima.search.current import Search
from anima.site import Site
from anima.text.dates import day_in_name
from anima.text.markdown import bullet_of, evidence_of, lines_of
from anima.text.notes import POSSIBLE, lasting, sentence
from anima.text.phrases import said_in
from anima.text.reading import DATES, ToldLine, read
from anima.upkeep import Retention
from anima.upkeep.doctor import CheckedRooms, look
from anima.upkeep.hygiene import Contradiction, Group, find_contradictions, find_duplicates, newer_of, statements
from anima.upkeep.tidy import Look, Stale, Suggestion, changes_of, find_stale_logs, holds, suggest_consolidation

if TYPE_CHECKING:
    from anima.upkeep.hygiene import Vectors

Part = Literal["stale", "duplicates", "contradictions"]
PARTS: tuple[Part, ...] = ("stale", "duplicates", "contradictions")
_TRIES = 3
_CURATED, _PAGES, _LOGS, _ARCHIVE = range(4)  # what is kept before what


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """What upkeep asks of rooms that it does not know."""

    talks: Callable[[], Iterable[PastTalk]]
    nights: Callable[[], Nights]
    rooms: CheckedRooms


class Upkeep:
    """What an owner does now and then in one home. `past` and `search` are made when they are first needed."""

    def __init__(self, site: Site, *, past: Callable[[], Past], search: Callable[[], Search], others: Others) -> None:
        self._site, self._past, self._search, self._others = site, past, search, others

    def look(
        self,
        *,
        days: int | None = None,
        parts: Collection[Part] = PARTS,
        progress: Callable[[int, int], None] | None = None,
    ) -> Look:
        """What could be tidied, each with its changes and a diff. `days` is when a log is old: the configuration's else."""
        if days is not None and not 1 <= days <= 36_500:
            raise BadArguments(f"days is a whole number from 1 to 36,500, not {days}")
        site = self._site
        retention = Retention(site.store.documents, site.layout, site.config.tidy)
        memory = _Memory.of(site, progress)
        stale = memory.stale(site, retention, days or site.config.tidy.days) if "stale" in parts else ()
        archived = {one.path for one in stale}
        groups: list[Group] = []
        clashes: list[Contradiction] = []
        meaning = self._meaning() if "duplicates" in parts else None
        compared = 0
        for pool in memory.pools(archived) if {*parts} - {"stale"} else ():
            seen = read(pool)
            compared += len(seen)
            groups += find_duplicates(seen, vectors=meaning) if "duplicates" in parts else ()
            live = [one for one in seen if one.line.rank != _ARCHIVE and one.line.path not in archived]
            clashes += find_contradictions(live) if "contradictions" in parts else ()  # the past may differ
        kept = self._kept()
        groups = [one for one in groups if not kept or not kept(one.keep, *(twin.line for twin in one.twins))]
        clashes = [self._dated(one) for one in clashes if not kept or not kept(one.one, one.other)]
        advised = suggest_consolidation(
            duplicates=groups,
            contradictions=clashes,
            stale=stale,
            may_go=self._may_go,
            archive=_places(site),
        )
        return Look(
            lines=compared,
            documents=len(memory.documents),
            stale=stale,
            duplicates=tuple(groups),
            contradictions=tuple(clashes),
            suggestions=tuple(map(memory.with_pages, advised)),
            notes=(*memory.notes, *retention.notes),
        )

    def tidy(self, suggestions: Suggestion | Sequence[Suggestion]) -> tuple[Receipt, ...]:
        """Carries out one suggestion or several as one change. Where a document changed since, what still stands is
        looked at again; raises StaleWrite, with nothing done, where a line is no longer there."""
        asked = [suggestions] if isinstance(suggestions, Suggestion) else suggestions
        for one in asked:
            if one.kind == "choose" and not one.remove:
                raise BadArguments("this is a choice: say which line stays, with suggestion.keeping(line)")
        for tries in count(1):
            changes = changes_of(asked)
            try:
                batch = [*changes, *holds(asked, changes)]
                return self._past().writer.submit(batch, what="tidy")[: len(changes)] if changes else ()
            except StaleWrite:
                if tries == _TRIES:
                    raise
                asked = [self.again(one) for one in asked]
        raise AssertionError("unreachable")

    def again(self, suggestion: Suggestion) -> Suggestion:
        """The same suggestion on the documents of now. Raises StaleWrite."""
        return suggestion.again(self._site.store.documents.read)

    def keep_all(self, suggestion: Suggestion) -> None:
        """Notes that all lines of a suggestion stay, so that it is not made again. The ledger holds their digests."""
        lines = (*suggestion.between, *suggestion.remove, *((suggestion.keep,) if suggestion.keep else ()))
        if not lines:
            raise BadArguments("only lines can be kept; a log stays by itself until it is archived")
        store = self._site.store
        store.append("keep", {"lines": sorted({store.key.line(line.text) for line in lines})})

    def numbers(self, *, days: int = 30) -> Figures:
        """The home in figures: sessions, recalls, writes and memory over so many days."""
        return figures(
            self._site, past=self._past, talks=tuple(self._others.talks()), nights=self._others.nights(), days=days
        )

    def doctor(self, *, progress: Callable[[str], None] = lambda _: None) -> list[Remark]:
        """Everything there is to say about the health of this home, damage first. Nothing is changed."""
        return look(self._site, self._others.rooms, progress=progress)

    def validate(self) -> tuple[str, ...]:
        """What AgentScope's check of the same name looks at: warnings only, never an error."""
        agents = DocPath.parse(self._site.layout.row("agents").path)
        missing = f"{agents} is missing; the agent works, but has no guide"
        return () if self._site.store.documents.exists(agents) else (missing,)

    # -- what a look asks -----------------------------------------------------------------------------------------------

    def _meaning(self) -> Vectors | None:
        """What gives texts their meaning, when that is on this machine; a server is not asked by itself."""
        embedder = self._search().embedder
        if embedder is None or embedder.is_remote:
            return None
        return lambda texts: embedder.embed(texts, kind="document")

    def _kept(self) -> Callable[..., bool] | None:
        """Whether the owner said of some lines that all of them stay; None while nothing of that kind was said."""
        store = self._site.store
        if not store.begun:
            return None
        said = [frozenset(record.fields.get("lines", ())) for record in store.ledger.records(kinds=("keep",))]
        line = store.key.line
        return (lambda *lines: any({line(one.text) for one in lines} <= each for each in said)) if said else None

    def _dated(self, found: Contradiction) -> Contradiction:
        """With the days on which lines outside the logs were written, as far as the ledger knows."""
        if found.newer is not None or not self._site.store.begun:
            return found
        pair = []
        for line in (found.one, found.other):
            when = self._site.store.provenance.source(DocPath.parse(line.path), line.text).time
            told = when.astimezone(self._site.now().tzinfo).date() if when else None
            pair.append(line if line.day else replace(line, day=told))
        return replace(found, one=pair[0], other=pair[1], newer=newer_of(*pair))

    def _may_go(self, gone: ToldLine, kept: ToldLine) -> bool:
        """Not a log's line that a night made memory of: it is where that came from. Not what happened on two days."""
        if gone.day is None:
            return True
        if kept.rank == _CURATED:
            store, path = self._site.store, DocPath.parse(kept.path)
            is_dreamed = store.begun and store.provenance.source(path, kept.text).actor is Actor.DREAMER
            return not (is_dreamed or evidence_of(kept.text))
        said = said_in(gone.text)
        happened = not DATES.search(said) and lasting(sentence(said)).degree < POSSIBLE  # it may, again, on another day
        return kept.day is None or kept.day == gone.day or not happened


@dataclass(slots=True)
class _Memory:
    """The documents that hold memory, and the lines in them that say something, by layer."""

    documents: dict[str, Document] = field(default_factory=dict)
    lines: dict[str, list[ToldLine]] = field(default_factory=lambda: defaultdict(list))
    logs: dict[str, date] = field(default_factory=dict)  # daily logs that are in their place
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, site: Site, progress: Callable[[int, int], None] | None) -> _Memory:
        memory, documents = cls(), site.store.documents
        places = [
            (path, row)
            for entry in documents.list_all()
            if (path := DocPath.parse(entry.path)).is_markdown and (row := _row(site, path))
        ]
        for number, (path, row) in enumerate(places, start=1):
            try:
                document = documents.read(path)
            except NoSuchDocument:
                continue
            except HomeError as error:
                memory.notes.append(f"left out: {error}")
                continue
            memory._take(document, row)
            if progress is not None:
                progress(number, len(places))
        return memory

    def _take(self, document: Document, row: Row) -> None:
        path, day = document.path, day_in_name(document.path.name)
        self.documents[path.text] = document
        rank = _CURATED if row.role == "memory" else _ARCHIVE if _is_archived(path) else _PAGES
        if rank == _PAGES and row.kind == "daily" and day is not None:
            rank, self.logs[path.text] = _LOGS, day
        where = ToldLine(path=path.text, number=0, text="", day=day if rank >= _LOGS else None, rank=rank)
        for said in statements(document.text):
            fixed, under = said.marked or rank == _ARCHIVE, " / ".join(said.under)
            line = replace(where, number=said.number, text=said.text, fixed=fixed, under=under)
            self.lines[layer_at(path) or ""].append(line)

    def pools(self, archived: Collection[str]) -> Iterator[list[ToldLine]]:
        """The lines of each layer in the order in which they are kept. What is to be archived is moved whole."""
        for lines in self.lines.values():
            kept = [replace(line, fixed=True) if line.path in archived else line for line in lines]
            kept.sort(key=lambda one: (one.rank, -(one.day.toordinal() if one.day else 0), one.path, one.number))
            yield kept

    def with_pages(self, one: Suggestion) -> Suggestion:
        named = [line.path for line in (*one.between, *one.remove, *((one.keep,) if one.keep else ()))]
        places = dict.fromkeys([*named, *([one.path] if one.path else ())])
        return replace(one, pages=tuple(self.documents[path] for path in places))

    def stale(self, site: Site, retention: Retention, days: int) -> tuple[Stale, ...]:
        """Daily logs, and documents of folders that have a retention of their own, which are older than they should be."""
        by_days: dict[int, dict[str, date]] = defaultdict(dict)
        curated = DocPath.parse(site.layout.curated).key
        for path, document in self.documents.items():
            own = retention.days_of(document.path.parent)
            day = self.logs.get(path)
            if own is None and day is not None:
                own = days
            if own and document.path.key != curated and not _is_archived(document.path):
                by_days[own][path] = day or day_in_name(document.path.name) or document.time.date()
        today = site.today()
        found = [one for own, logs in by_days.items() for one in find_stale_logs(logs, today=today, days=own)]
        return tuple(sorted(found, key=lambda one: (one.day, one.path)))


def _row(site: Site, path: DocPath) -> Row | None:
    """The row of a document that holds memory; None for rules, souls, skills, reference books and diaries."""
    row = row_at(site.layout, path)
    if layer_at(path) is not None:
        return row if row.role in ("memory", "daily") else None
    held = row is ANYTHING or row.kind in ("curated", "daily", "topic", "bank")
    return row if held and row.policy is Policy.MEMORY else None


def _is_archived(path: DocPath) -> bool:
    """Whether a document lies in an archive: `…/archive/2026/…`."""
    parts = path.key.split("/")
    return any(one == "archive" and len(year) == 4 and year.isdecimal() for one, year in pairwise(parts[:-1]))


def _places(site: Site) -> Callable[[Stale], str]:
    """Where old documents go: a folder for each year in the archive of their folder, under a name that is free."""
    layout, taken = site.layout, set[str]()

    def place(log: Stale) -> str:
        path = DocPath.parse(log.path)
        folder = layout.archive if path.parent.casefold() == layout.daily.casefold() else f"{path.parent}/archive"
        stem = path.name[: -len(".md")]
        for name in (f"{stem}.md", *(f"{stem}-{number}.md" for number in range(2, 1_000))):
            to = DocPath.parse(f"{folder.lstrip('/')}/{log.day.year:04}/{name}")
            if to.key not in taken and site.store.documents.actual(to) is None:
                taken.add(to.key)
                return to.text
        raise BadArguments(f"{log.path}: the archive holds a thousand logs of that name")

    return place


# -- the home in figures ------------------------------------------------------------------------------------------------


_REVISIONS = 2_000


class PastTalk(NamedTuple):
    """One session as far as it counts here; `started` is None where that is not known."""

    started: datetime | None
    entries: int
    persona: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day: sessions begun, recalls, changes written, and the bullets of MEMORY.md at its end."""

    day: date
    sessions: int
    recalls: int
    writes: int
    memories: int
    memory_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The days, oldest first, and what they come to. Totals are of all time."""

    days: tuple[Day, ...]
    sessions: int
    entries: int
    recalls: int
    writes: int
    memories: int
    memory_chars: int
    personas: tuple[tuple[str, int], ...]
    dreams: Nights


def figures(
    site: Site, *, past: Callable[[], Past], talks: Sequence[PastTalk], nights: Nights, days: int = 30
) -> Figures:
    zone, today = site.zone(), site.today()
    wanted = [today - timedelta(days=back) for back in reversed(range(max(1, days)))]
    begun = Counter(talk.started.astimezone(zone).date() for talk in talks if talk.started)
    recalls, writes = Counter[date](), Counter[date]()
    for record in site.store.ledger.records(kinds=("recall", "intent")) if site.store.begun else ():
        (recalls if record.kind == "recall" else writes)[record.time.astimezone(zone).date()] += 1
    grown = _grown(site, past, zone, wanted)
    return Figures(
        days=tuple(
            Day(
                day=day,
                sessions=begun[day],
                recalls=recalls[day],
                writes=writes[day],
                memories=grown[day][0],
                memory_chars=grown[day][1],
            )
            for day in wanted
        ),
        sessions=len(talks),
        entries=sum(talk.entries for talk in talks),
        recalls=recalls.total(),
        writes=writes.total(),
        memories=grown[wanted[-1]][0],
        memory_chars=grown[wanted[-1]][1],
        personas=tuple(Counter(talk.persona for talk in talks if talk.persona).most_common()),
        dreams=nights,
    )


def _grown(site: Site, past: Callable[[], Past], zone: tzinfo | None, days: list[date]) -> dict[date, tuple[int, int]]:
    """The bullets and characters of MEMORY.md at the end of each day."""
    path, documents = DocPath.parse(site.layout.curated), site.store.documents
    marks = sorted(_sizes(past(), path, zone), key=lambda mark: mark[0]) if site.store.begun else []
    found: dict[date, tuple[int, int]] = {}
    now, at = (0, 0), 0
    for day in days:
        while at < len(marks) and marks[at][0].date() <= day:
            now, at = marks[at][1], at + 1
        found[day] = now
    found[days[-1]] = _size(documents.read(path).text) if documents.exists(path) else (0, 0)
    return found


def _sizes(past: Past, path: DocPath, zone: tzinfo | None) -> Iterator[tuple[datetime, tuple[int, int]]]:
    """How large the document was after each revision, as far as history holds it; the last one of each day counts."""
    seen: set[date] = set()
    try:
        for revision in past.log(path, limit=_REVISIONS):
            moment = revision.time.astimezone(zone)
            if moment.date() not in seen:
                seen.add(moment.date())
                yield moment, _size(past.text_at(path, revision.id) or "")
    except HomeError:
        return


def _size(text: str) -> tuple[int, int]:
    bullets = [bullet for line in lines_of(text) if (bullet := bullet_of(line))]
    return sum(bullet.is_point and bool(bullet.text) for bullet in bullets), len(text)

"""Upkeep: what of a home's memory is old, said twice or contradicted, the home in figures, and its health.

Promise: looking changes nothing and asks no server. A suggestion is bound to the documents as they were looked at, and
several are carried out as one change that one undo takes back. A line goes only when another says it, logs are moved and
never deleted, and between two lines that contradict each other only the owner chooses. Each person's layer is looked at
by itself. Not here: which lines say the same (hygiene), how long a folder keeps things (`Retention`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import partial
from itertools import count, pairwise
from typing import Any, Literal, NamedTuple

from anima.errors import BadArguments, HomeError, NoSuchDocument, StaleWrite
from anima.layout import ANYTHING, Policy, Row, layer_at, row_at
from anima.memory.past import Past
from anima.memory.write import owners
from anima.model import Actor, Change, DocPath, Document, Kind, Nights, Receipt, Remark
from anima.search.current import Search
from anima.site import Site
from anima.text.dates import day_in_name
from anima.text.diff import diff_of
from anima.text.markdown import bullet_of, evidence_of, lines_of
from anima.text.notes import POSSIBLE, lasting, sentence
from anima.text.phrases import said_in
from anima.text.reading import DATES, ToldLine, read
from anima.upkeep import Retention
from anima.upkeep.hygiene import Contradiction, Group, find_contradictions, find_duplicates, newer_of, statements

Part = Literal["stale", "duplicates", "contradictions"]
PARTS: tuple[Part, ...] = ("stale", "duplicates", "contradictions")
_TRIES = 3
_CENTURY = 36_500  # days
_REASON = "tidying"
_CURATED, _PAGES, _LOGS, _ARCHIVE = range(4)  # what is kept before what


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """A daily log older than it should be."""

    path: str
    day: date
    age: int  # days


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Something to do, as a sentence and as what it takes: lines to take out, a document to move, or a choice, with the
    documents it was made from. A choice has its two lines in `between`, and takes none out before somebody chose.
    `Upkeep.tidy` carries it out."""

    kind: Literal["merge", "archive", "choose"]
    sentence: str
    keep: ToldLine | None = None
    remove: tuple[ToldLine, ...] = ()
    between: tuple[ToldLine, ...] = ()
    evidence: tuple[str, ...] = ()  # one for each line that goes; for a choice, why
    path: str = ""
    to: str = ""
    pages: tuple[Document, ...] = field(default=(), repr=False, compare=False)

    @property
    def id(self) -> str:
        """The digest of what a suggestion would do, and to which lines; for a log also of all it holds."""
        parts = (self.keep,) if self.keep else (), self.remove, self.between
        lines = [[(line.path, line.number, line.text) for line in part] for part in parts]
        held = [page.digest for page in self.pages] if self.to else []
        return hashlib.sha256(json.dumps([self.kind, lines, self.path, self.to, held]).encode()).hexdigest()[:24]

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes it takes; none for a choice that was not made yet."""
        return changes_of([self])

    @property
    def diff(self) -> str:
        """What would change, as a unified diff."""
        if self.to:
            return f"rename from {self.path}\nrename to {self.to}\n"
        texts = {page.path: page.text for page in self.pages}
        return diff_of(self.changes, [texts[change.path] for change in self.changes])

    def keeping(self, line: ToldLine) -> Suggestion:
        """The same with the choice made: this line stays, the other goes. Raises BadArguments for a third one."""
        if line not in self.between:
            raise BadArguments("a choice is between its own two lines")
        return replace(self, keep=line, remove=tuple(other for other in self.between if other != line))

    def again(self, read: Callable[[DocPath], Document]) -> Suggestion:
        """The same on the documents of now. Raises StaleWrite where a line no longer stands there as it was."""
        before, now = {page.path.text: page for page in self.pages}, dict[str, Document]()
        for path, page in before.items():
            try:
                now[path] = read(page.path)
            except NoSuchDocument:
                raise StaleWrite(path, theirs=None, ours=None) from None
        if self.to and now[self.path].digest != before[self.path].digest:
            raise StaleWrite(self.path, theirs=now[self.path].text, ours=None)

        def placed(line: ToldLine) -> ToldLine:
            """The line where it stands now: of several that are alike, the one in the same order."""
            pages = (lines_of(found[line.path].text) for found in (before, now))
            old, new = ([n for n, text in enumerate(page, start=1) if text.strip() == line.text] for page in pages)
            if len(old) != len(new) or line.number not in old:
                raise StaleWrite(line.path, theirs=now[line.path].text, ours=None)
            return replace(line, number=new[old.index(line.number)])

        keep = placed(self.keep) if self.keep else None
        remove, between = (tuple(map(placed, lines)) for lines in (self.remove, self.between))
        return replace(self, pages=tuple(now.values()), keep=keep, remove=remove, between=between)


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


def changes_of(suggestions: Sequence[Suggestion]) -> tuple[Change, ...]:
    """The changes of some suggestions together, one for each document. Raises StaleWrite when they saw different texts."""
    pages: dict[str, Document] = {}
    for page in (page for one in suggestions for page in one.pages):
        if pages.setdefault(page.path.text, page).digest != page.digest:
            raise StaleWrite(page.path.text, theirs=page.text, ours=None)
    moves = {one.path: one.to for one in suggestions if one.to}
    cuts: dict[str, set[int]] = defaultdict(set)  # the numbers, from 1, of the lines that go, by document
    for line in (line for one in suggestions for line in one.remove):
        cuts[line.path].add(line.number)
    if both := next((path for path in cuts if path in moves), None):
        raise BadArguments(f"{both} would be moved and lose lines at once; do one after the other")
    found = []
    for path, numbers in cuts.items():
        kept = [line for number, line in enumerate(lines_of(pages[path].text), start=1) if number not in numbers]
        found.append(owners(pages[path].path, Kind.WRITE, "".join(kept), base=pages[path].digest, reason=_REASON))
    for path, to in moves.items():
        found.append(owners(pages[path].path, Kind.MOVE, to=DocPath.parse(to), base=pages[path].digest, reason=_REASON))
    return tuple(found)


class Upkeep:
    """What an owner does now and then in one home. `past` and `search` are made when they are first needed; of rooms that
    it does not know upkeep asks for `talks`, `nights` and, of the doctor, `health`."""

    def __init__(
        self,
        site: Site,
        *,
        past: Callable[[], Past],
        search: Callable[[], Search],
        talks: Callable[[], Iterable[PastTalk]],
        nights: Callable[[], Nights],
        health: Callable[[Callable[[str], None]], list[Remark]],
    ) -> None:
        self._site, self._past, self._search = site, past, search
        self._talks, self._nights, self._health = talks, nights, health

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
        compared, meaning = 0, None
        embedder = self._search().embedder if "duplicates" in parts else None
        if embedder is not None and not embedder.is_remote:  # a server is not asked by itself
            meaning = partial(embedder.embed, kind="document")
        for pool in memory.pools(archived) if {*parts} - {"stale"} else ():
            seen = read(pool)
            compared += len(seen)
            groups += find_duplicates(seen, vectors=meaning) if "duplicates" in parts else ()
            live = [one for one in seen if one.line.rank != _ARCHIVE and one.line.path not in archived]
            clashes += find_contradictions(live) if "contradictions" in parts else ()  # the past may differ
        kept = self._kept()
        groups = [one for one in groups if not kept or not kept(one.keep, *(twin.line for twin in one.twins))]
        clashes = [self._dated(one) for one in clashes if not kept or not kept(one.one, one.other)]
        found: Any = {"duplicates": tuple(groups), "contradictions": tuple(clashes), "stale": stale}
        advised = suggest_consolidation(**found, may_go=self._may_go, archive=_places(site))
        pages, notes = tuple(map(memory.with_pages, advised)), (*memory.notes, *retention.notes)
        return Look(lines=compared, documents=len(memory.documents), suggestions=pages, notes=notes, **found)

    def tidy(self, suggestions: Suggestion | Sequence[Suggestion]) -> tuple[Receipt, ...]:
        """Carries out one suggestion or several as one change. Where a document changed since, what still stands is
        looked at again; raises StaleWrite, with nothing done, where a line is no longer there."""
        asked = [suggestions] if isinstance(suggestions, Suggestion) else suggestions
        for one in asked:
            if one.kind == "choose" and not one.remove:
                raise BadArguments("this is a choice: say which line stays, with suggestion.keeping(line)")
        for tries in count(1):
            changes = changes_of(asked)
            touched = {change.path.key for change in changes}
            pages = {
                page.path.key: page for one in asked for page in one.pages if page.path.key not in touched
            }.values()
            # Changes that change nothing: the documents of the lines that stay must be as they were when the others go.
            held = [owners(page.path, Kind.WRITE, page.text, base=page.digest, reason=_REASON) for page in pages]
            try:
                return self._past().writer.submit([*changes, *held], what="tidy")[: len(changes)] if changes else ()
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
        """The home in figures: sessions, recalls, writes and memory over so many days, a hundred years at most."""
        site, talks, zone = self._site, tuple(self._talks()), self._site.zone()
        wanted = [site.today() - timedelta(days=back) for back in reversed(range(max(1, min(days, _CENTURY))))]
        begun = Counter(talk.started.astimezone(zone).date() for talk in talks if talk.started)
        recalls, writes = Counter[date](), Counter[date]()
        for record in site.store.ledger.records(kinds=("recall", "intent")) if site.store.begun else ():
            (recalls if record.kind == "recall" else writes)[record.time.astimezone(zone).date()] += 1
        grown = _grown(site, self._past, wanted)
        counted = ((day, {"sessions": begun[day], "recalls": recalls[day], "writes": writes[day]}) for day in wanted)
        return Figures(
            days=tuple(Day(day=day, **counts, **grown[day]) for day, counts in counted),
            sessions=len(talks),
            entries=sum(talk.entries for talk in talks),
            recalls=recalls.total(),
            writes=writes.total(),
            personas=tuple(Counter(talk.persona for talk in talks if talk.persona).most_common()),
            dreams=self._nights(),
            **grown[wanted[-1]],
        )

    def doctor(self, *, progress: Callable[[str], None] = lambda _: None) -> list[Remark]:
        """Everything there is to say about the health of this home, damage first. Nothing is changed."""
        return self._health(progress)

    def validate(self) -> tuple[str, ...]:
        """What AgentScope's check of the same name looks at: warnings only, never an error."""
        agents = DocPath.parse(self._site.layout.row("agents").path)
        missing = f"{agents} is missing; the agent works, but has no guide"
        return () if self._site.store.documents.exists(agents) else (missing,)

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
        found = (path for path in map(DocPath.parse, (each.path for each in documents.list_all())) if path.is_markdown)
        places = [(path, row) for path in found if (row := _row(site, path))]
        for number, (path, row) in enumerate(places, start=1):
            try:
                document = documents.read(path)
            except NoSuchDocument:
                continue
            except HomeError as error:
                memory.notes.append(f"left out: {error}")
                continue
            path, day = document.path, day_in_name(document.path.name)
            memory.documents[path.text] = document
            rank = _CURATED if row.role == "memory" else _ARCHIVE if _is_archived(path) else _PAGES
            if rank == _PAGES and row.kind == "daily" and day is not None:
                rank, memory.logs[path.text] = _LOGS, day
            where = ToldLine(path=path.text, number=0, text="", day=day if rank >= _LOGS else None, rank=rank)
            for said in statements(document.text):
                fixed, under = said.marked or rank == _ARCHIVE, " / ".join(said.under)
                line = replace(where, number=said.number, text=said.text, fixed=fixed, under=under)
                memory.lines[layer_at(path) or ""].append(line)
            if progress is not None:
                progress(number, len(places))
        return memory

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
        curated, today, found = DocPath.parse(site.layout.curated).key, site.today(), list[Stale]()
        for path, document in self.documents.items():
            own, day = retention.days_of(document.path.parent), self.logs.get(path)
            if own is None and day is not None:
                own = days
            day = day or day_in_name(document.path.name) or document.time.date()
            is_kept = document.path.key == curated or _is_archived(document.path)
            if own and not is_kept and (age := (today - day).days) > own:
                found.append(Stale(path=path, day=day, age=age))
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


def suggest_consolidation(
    *,
    duplicates: Iterable[Group] = (),
    contradictions: Iterable[Contradiction] = (),
    stale: Iterable[Stale] = (),
    may_go: Callable[[ToldLine, ToldLine], bool] = lambda gone, kept: True,
    archive: Callable[[Stale], str],
) -> tuple[Suggestion, ...]:
    """What to do about what was found: choices first, then merges, then logs to move to the archive. `may_go` is asked
    of each line that would go and the one that says the same; `archive` says where a log goes."""
    found = []
    for one in contradictions:
        newer = f"; {_place(one.newer)} is newer" if one.newer else ""
        told = f"{_place(one.one)} and {_place(one.other)} cannot both hold: {one.why}{newer}."
        found.append(Suggestion(kind="choose", sentence=told, between=(one.one, one.other), evidence=(one.why,)))
    for group in duplicates:
        going = [twin for twin in group.twins if twin.covered and not twin.line.fixed and may_go(twin.line, group.keep)]
        if not going:
            continue
        places = ", ".join(_place(twin.line) for twin in going[:3])
        more = f" and {len(going) - 3} more" if len(going) > 3 else ""
        told = f"{places}{more} {'says' if len(going) == 1 else 'say'} what {_place(group.keep)} says; keep that one."
        remove, evidence = tuple(twin.line for twin in going), tuple(f"{twin.how}: {twin.evidence}" for twin in going)
        found.append(Suggestion(kind="merge", sentence=told, keep=group.keep, remove=remove, evidence=evidence))
    for log in stale:
        to = archive(log)
        told = f"{log.path} is {log.age} days old; move it to {to}, where search still finds it."
        found.append(Suggestion(kind="archive", sentence=told, path=log.path, to=to, evidence=(f"{log.age} days old",)))
    return tuple(found)


def _place(line: ToldLine) -> str:
    return f"{line.path}#L{line.number}"


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


def _grown(site: Site, past: Callable[[], Past], days: list[date]) -> dict[date, dict[str, int]]:
    """The bullets and characters of MEMORY.md at the end of each day, as far as history holds them."""
    path, documents, zone = DocPath.parse(site.layout.curated), site.store.documents, site.zone()
    last: dict[date, dict[str, int]] = {}  # by the last revision of a day; the newest come first
    with suppress(HomeError):
        for revision in past().log(path, limit=_REVISIONS) if site.store.begun else ():
            if (day := revision.time.astimezone(zone).date()) not in last:
                last[day] = _size(past().text_at(path, revision.id) or "")
    before = max((day for day in last if day < days[0]), default=None)
    now, found = last[before] if before else _size(""), {}
    for day in days:
        found[day] = now = last.get(day, now)
    return found | {days[-1]: _size(documents.read(path).text if documents.exists(path) else "")}


def _size(text: str) -> dict[str, int]:
    bullets = [bullet for line in lines_of(text) if (bullet := bullet_of(line))]
    return {"memories": sum(each.is_point and bool(each.text) for each in bullets), "memory_chars": len(text)}

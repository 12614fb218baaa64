"""Suggestions of what to tidy, from what is old, said twice or contradicted: each with its documents, changes and diff. Pure.

Promise: nothing is suggested to go that is not said elsewhere. A suggestion is bound to the documents as they were looked
at, also to the one whose line is kept; several come to one change a document.
Not here: which lines say the same (hygiene), reading and writing (upkeep).
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal

from anima.errors import BadArguments, NoSuchDocument, StaleWrite
from anima.memory.write import owners
from anima.model import Change, DocPath, Document, Kind
from anima.text.diff import diff_of
from anima.text.markdown import lines_of
from anima.text.reading import ToldLine
from anima.upkeep.hygiene import Contradiction, Group

_REASON = "tidying"
STALE_DAYS = 90


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
    `Upkeep.tidy` carries it out.
    """

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
        before = {page.path.text: page for page in self.pages}
        now = {path: _now(read, page.path) for path, page in before.items()}
        if self.to and now[self.path].digest != before[self.path].digest:
            raise StaleWrite(self.path, theirs=now[self.path].text, ours=None)

        def placed(line: ToldLine) -> ToldLine:
            """The line where it stands now: of several that are alike, the one in the same order."""
            old, new = (_numbers(pages[line.path].text, line.text) for pages in (before, now))
            if len(old) != len(new) or line.number not in old:
                raise StaleWrite(line.path, theirs=now[line.path].text, ours=None)
            return replace(line, number=new[old.index(line.number)])

        return replace(
            self,
            pages=tuple(now.values()),
            keep=placed(self.keep) if self.keep else None,
            remove=tuple(map(placed, self.remove)),
            between=tuple(map(placed, self.between)),
        )


def _now(read: Callable[[DocPath], Document], path: DocPath) -> Document:
    try:
        return read(path)
    except NoSuchDocument:
        raise StaleWrite(path.text, theirs=None, ours=None) from None


def _numbers(text: str, wanted: str) -> list[int]:
    return [number for number, line in enumerate(lines_of(text), start=1) if line.strip() == wanted]


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


def holds(suggestions: Sequence[Suggestion], changes: Sequence[Change]) -> list[Change]:
    """Changes that change nothing: the documents of the lines that stay must be as they were when the others go."""
    touched = {change.path.key for change in changes}
    pages = {page.path.key: page for one in suggestions for page in one.pages}
    return [
        owners(page.path, Kind.WRITE, page.text, base=page.digest, reason=_REASON)
        for key, page in pages.items()
        if key not in touched
    ]


# -- what to do ----------------------------------------------------------------------------------------------------------


def find_stale_logs(logs: Mapping[str, date], *, today: date, days: int = STALE_DAYS) -> tuple[Stale, ...]:
    """The daily logs, by path, that are more than so many days old, oldest first."""
    found = [Stale(path=path, day=day, age=(today - day).days) for path, day in logs.items()]
    return tuple(sorted((one for one in found if one.age > days), key=lambda one: (one.day, one.path)))


def suggest_consolidation(
    *,
    duplicates: Iterable[Group] = (),
    contradictions: Iterable[Contradiction] = (),
    stale: Iterable[Stale] = (),
    may_go: Callable[[ToldLine, ToldLine], bool] = lambda gone, kept: True,
    archive: Callable[[Stale], str] | None = None,
) -> tuple[Suggestion, ...]:
    """What to do about what was found: choices first, then merges, then logs to move to the archive.

    `may_go` is asked of each line that would go and the one that says the same; `archive` says where a log goes.
    """
    found = [_choice(one) for one in contradictions]
    found += filter(None, (_merge(group, may_go) for group in duplicates))
    for log in stale:
        to = archive(log) if archive else f"memory/archive/{log.day.year}/{log.path.rpartition('/')[2]}"
        told = f"{log.path} is {log.age} days old; move it to {to}, where search still finds it."
        found.append(Suggestion(kind="archive", sentence=told, path=log.path, to=to, evidence=(f"{log.age} days old",)))
    return tuple(found)


def _choice(one: Contradiction) -> Suggestion:
    newer = f"; {_place(one.newer)} is newer" if one.newer else ""
    told = f"{_place(one.one)} and {_place(one.other)} cannot both hold: {one.why}{newer}."
    return Suggestion(kind="choose", sentence=told, between=(one.one, one.other), evidence=(one.why,))


def _merge(group: Group, may_go: Callable[[ToldLine, ToldLine], bool]) -> Suggestion | None:
    going = [twin for twin in group.twins if twin.covered and not twin.line.fixed and may_go(twin.line, group.keep)]
    if not going:
        return None
    places = ", ".join(_place(twin.line) for twin in going[:3])
    more = f" and {len(going) - 3} more" if len(going) > 3 else ""
    told = f"{places}{more} {'says' if len(going) == 1 else 'say'} what {_place(group.keep)} says; keep that one."
    return Suggestion(
        kind="merge",
        sentence=told,
        keep=group.keep,
        remove=tuple(twin.line for twin in going),
        evidence=tuple(f"{twin.how}: {twin.evidence}" for twin in going),
    )


def _place(line: ToldLine) -> str:
    return f"{line.path}#L{line.number}"

"""Suggestions of what to tidy: each with the documents it was made from, its changes and its diff. Pure.

Promise: a suggestion is bound to the documents as they were looked at, also to the one whose line is kept; several come
to one change a document. Not here: which lines say the same (hygiene), reading and writing (upkeep).
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from anima.errors import BadArguments, NoSuchDocument, StaleWrite
from anima.memory.write import owners
from anima.model import Change, DocPath, Document, Kind
from anima.text.diff import diff_of
from anima.text.markdown import lines_of
from anima.upkeep.hygiene import Advice, Contradiction, Group, Stale, ToldLine

_REASON = "tidying"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion(Advice):
    """Something to do, with the documents it was made from. `Upkeep.tidy` carries it out."""

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

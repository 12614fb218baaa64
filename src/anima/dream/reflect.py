"""Reflection: what the daily logs retain, gathered from a home, as changes to its bank pages.

Promise: decides and writes nothing; whoever dreams submits the changes in its own revision. A statement is used only when
every line of it may be built on: written by the owner or from a clean session of the owner's, reviewed when it came from
outside, and without a secret or a danger in it. Not here: the grammar and the pages (bank), the road (writing).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anima.errors import Damaged, HomeError
from anima.gate.scan import scan_text
from anima.model import Actor, Change, DocPath, Kind, Origin, Scope, Severity, digest_of
from anima.text.bank import FOLDER, Retained, reflect, retained
from anima.text.markdown import lines_of

if TYPE_CHECKING:
    from anima.home import Home
    from anima.ledger.provenance import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one log retains, as it was last read. `lines` are those of each statement; those with a finding are left out."""

    digest: str
    statements: tuple[tuple[Retained, tuple[str, ...]], ...]


Readings = dict[str, Reading]


def bank_changes(home: Home, readings: Readings | None = None) -> tuple[Change, ...]:
    """The changes that bring the bank pages in step with the logs, archived ones among them; none when they are.

    Whoever keeps `readings` from one night to the next has only those logs cut and scanned that changed in between.
    """
    known = {} if readings is None else readings
    lines: dict[Retained, tuple[str, ...]] = {}
    for read in _read(home, known):
        lines |= dict(read.statements)
    pages = {path.text: text for path, text, _ in _texts(home, FOLDER)}
    if not lines and not pages:
        return ()
    wanted = reflect(lines, pages, trusted=lambda one: _may_be_built_on(home, one, lines[one]))
    return tuple(
        Change(
            path=page.path,
            kind=Kind.WRITE,
            text=page.text,
            actor=Actor.DREAMER,
            origin=Origin.DERIVED,
            base=digest_of(pages[page.path.text]) if page.path.text in pages else "",
            reason="reflection",
        )
        for page in wanted
        if page.path.text in pages or home.store.actual(page.path) is None  # a page that cannot be read stays as it is
    )


def _read(home: Home, known: Readings) -> Iterator[Reading]:
    """Each log with what it retains; one that is as it was is not cut again."""
    for path, text, digest in _texts(home, home.layout.daily):
        held = known.get(path.text)
        if held is None or held.digest != digest:
            held = known[path.text] = Reading(digest=digest, statements=tuple(_statements(home, path, text)))
        yield held


def _statements(home: Home, path: DocPath, text: str) -> Iterator[tuple[Retained, tuple[str, ...]]]:
    if "retain" not in text.casefold() or (day := home.layout.date_of(path)) is None:
        return
    lines = lines_of(text)
    for one in retained(text, path=path.text, day=day):
        own = tuple(lines[one.line - 1 : one.last])
        if not any(f.severity >= Severity.DANGER or f.kind.startswith("secret") for f in scan_text("".join(own))):
            yield one, own


def _texts(home: Home, folder: str) -> Iterator[tuple[DocPath, str, str]]:
    entries = home.store.list_all(folder) if home.store.actual(DocPath.parse(folder)) else ()
    for entry in entries:
        path = DocPath.parse(entry.path)
        if path.is_markdown:
            try:
                document = home.store.read(path)
            except Damaged:
                raise  # a disk that fails for a moment must not empty a page
            except HomeError:
                continue  # one file that is no text keeps no other from being reflected on
            yield path, document.text, document.digest


def _may_be_built_on(home: Home, one: Retained, lines: tuple[str, ...]) -> bool:
    path, view = DocPath.parse(one.path), home.books.provenance
    return all(_is_clean(view.source(path, line)) for line in lines)


def _is_clean(source: Source) -> bool:
    owners = source.scope in (None, Scope.MAIN) or source.approver is not None or source.trusted_at is not None
    return source.promotable and owners

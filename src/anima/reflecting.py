"""Reflection: what the daily logs retain, gathered from a home, as changes to its bank pages.

Promise: decides and writes nothing; whoever dreams submits the changes in its own revision. A statement is used only when
every line of it may be built on: written by the owner or from a clean session of the owner's, reviewed when it came from
outside, and without a secret or a danger in it. Not here: the grammar and the pages (bank), the road (writing).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

from anima.bank import FOLDER, Retained, reflect, retained
from anima.errors import HomeError
from anima.markdown import lines_of
from anima.model import Actor, Change, DocPath, Kind, Origin, Scope, Severity, digest_of
from anima.scan import scan_text

if TYPE_CHECKING:
    from anima.home import Home
    from anima.provenance import Source


def bank_changes(home: Home) -> tuple[Change, ...]:
    """The changes that bring the bank pages in step with the logs, archived ones among them; none when they are."""
    pages = {path.text: text for path, text in _texts(home, FOLDER)}
    logs = dict(_logs(home))
    found = [one for path, text in logs.items() for one in _retained(home, path, text)]
    if not found and not pages:
        return ()
    cut = {path.text: lines_of(text) for path, text in logs.items()}
    wanted = reflect(found, pages, trusted=lambda one: _may_be_built_on(home, one, cut[one.path]))
    return tuple(
        Change(
            path=page.path, kind=Kind.WRITE, text=page.text, actor=Actor.DREAMER, origin=Origin.DERIVED,
            base=digest_of(pages[page.path.text]) if page.path.text in pages else "", reason="reflection",
        )
        for page in wanted
        if page.path.text in pages or home.store.actual(page.path) is None  # a page that cannot be read stays as it is
    )  # fmt: skip


def _logs(home: Home) -> Iterator[tuple[DocPath, str]]:
    for path, text in _texts(home, home.layout.daily):
        if "retain" in text.casefold() and _day(home, path) is not None:
            yield path, text


def _retained(home: Home, path: DocPath, text: str) -> tuple[Retained, ...]:
    return retained(text, path=path.text, day=_day(home, path))


def _day(home: Home, path: DocPath) -> date | None:
    """The day a log is about, in the archive, too."""
    archived = home.layout.has("archive") and path.key.startswith(home.layout.row("archive").path)
    return home.layout.date_of(DocPath.parse(f"{home.layout.daily}/{path.name}") if archived else path)


def _texts(home: Home, folder: str) -> Iterator[tuple[DocPath, str]]:
    entries = home.store.list_all(folder) if home.store.actual(DocPath.parse(folder)) else ()
    for entry in entries:
        path = DocPath.parse(entry.path)
        if path.is_markdown:
            try:
                yield path, home.store.read(path).text
            except HomeError:
                continue  # one file that cannot be read keeps no other from being reflected on


def _may_be_built_on(home: Home, one: Retained, lines: list[str]) -> bool:
    text = "".join(lines[one.line - 1 : one.last])
    if any(finding.severity >= Severity.DANGER or finding.kind.startswith("secret") for finding in scan_text(text)):
        return False
    path, view = DocPath.parse(one.path), home.books.view
    return all(_is_clean(view.source(path, line)) for line in lines[one.line - 1 : one.last])


def _is_clean(source: Source) -> bool:
    owners = source.scope in (None, Scope.MAIN) or source.approver is not None or source.trusted_at is not None
    return source.promotable and owners

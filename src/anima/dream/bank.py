"""Reflection: what the daily logs of a home retain, as changes to its bank pages.

Promise: decides and writes nothing; a sweep submits the changes in its own revision. A statement is used only when every
line of it may be built on: written by the owner or from a clean session of the owner's, reviewed when it came from
outside, and without a secret or a danger in it. Not here: the grammar and the pages (text.bank), the road (memory.write).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anima.errors import Damaged, HomeError
from anima.gate.scan import scan_text
from anima.layout.table import Policy
from anima.model import Actor, Change, DocPath, Document, Kind, Origin, Scope, Severity, digest_of
from anima.site import Site
from anima.text.bank import FOLDER, Retained, reflect, retained
from anima.text.markdown import lines_of

Statements = dict[Retained, tuple[str, ...]]  # with the lines of each


@dataclass(frozen=True, slots=True)
class _Retaining:
    """What one log retains, as it was last read. Statements with a finding are left out."""

    digest: str
    statements: Statements


class Reflection:
    """The bank of one home. Of the logs only those are cut and scanned again that changed since the last look."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._logs: dict[str, _Retaining] = {}

    def changes(self) -> list[Change]:
        """The changes that bring the bank pages in step with the logs, archived ones among them; none when they are."""
        documents, layout = self._site.store.documents, self._site.layout
        statements = self._statements()
        pages = {page.path.text: page.text for page in readable(self._site, FOLDER)}
        if not statements and not pages:
            return []
        wanted = reflect(statements, pages, trusted=lambda one: self._may_be_built_on(one.path, statements[one]))
        return [
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
            if (
                page.path.text in pages or documents.actual(page.path) is None
            )  # one that cannot be read stays as it is
            and layout.row_of(page.path).policy is Policy.MEMORY  # some dialects have no such pages
        ]

    def _statements(self) -> Statements:
        found: Statements = {}
        for log in readable(self._site, self._site.layout.daily):
            known = self._logs.get(log.path.text)
            if known is None or known.digest != log.digest:
                known = self._logs[log.path.text] = _Retaining(log.digest, dict(self._retained(log)))
            found |= known.statements
        return found

    def _retained(self, log: Document) -> Iterator[tuple[Retained, tuple[str, ...]]]:
        if "retain" not in log.text.casefold() or (day := self._site.layout.date_of(log.path)) is None:
            return
        lines = lines_of(log.text)
        for statement in retained(log.text, path=log.path.text, day=day):
            own = tuple(lines[statement.line - 1 : statement.last])
            if not any(f.severity >= Severity.DANGER or f.kind.startswith("secret") for f in scan_text("".join(own))):
                yield statement, own

    def _may_be_built_on(self, path: str, lines: tuple[str, ...]) -> bool:
        for line in lines:
            source = self._site.store.provenance.source(DocPath.parse(path), line)
            reviewed = source.approver is not None or source.trusted_at is not None
            if not source.promotable or not (source.scope in (None, Scope.MAIN) or reviewed):
                return False
        return True


def readable(site: Site, folder: str) -> Iterator[Document]:
    """Every document beneath a folder that is text.

    A disk that fails for a moment raises Damaged: without this document a page would be another page.
    """
    documents = site.store.documents
    for entry in documents.list_all(folder) if documents.actual(DocPath.parse(folder)) else ():
        path = DocPath.parse(entry.path)
        if path.is_markdown:
            try:
                yield documents.read(path)
            except Damaged:
                raise
            except HomeError:
                continue  # doctor says more; one file that is no text keeps no other from being read

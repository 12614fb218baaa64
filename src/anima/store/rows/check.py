"""The health of a home in PostgreSQL: its chain, its history and its documents, against what is noted of them.

Promise: looking changes nothing. What rows say is believed as little as files are: somebody may have written SQL.
Not here: repairs, which for rows is restoring a snapshot; what a damage is called (upkeep).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anima.errors import HomeError
from anima.ledger.views import verify
from anima.model import DocPath, Remark
from anima.store.rows.history import RowHistory

if TYPE_CHECKING:
    from anima.store.rows.store import RowStore


class CheckedRows:
    """Ledger, history and documents of one home in the database."""

    def __init__(self, store: RowStore) -> None:
        self._store = store

    def check(self) -> Iterator[Remark]:
        store = self._store
        if store.had_ledger():
            said = "The ledger is gone; nobody can tell who wrote which line."
            yield Remark(name="ledger-missing", about="ledger", message=said)
        if not store.begun:
            return
        found = verify(store.log, key=store.key, anchors=store.anchors())
        if found.fault is not None:
            yield Remark(name="ledger-damaged", about="ledger", message=f"The ledger is damaged: {found.fault.what}.")
            return
        for wrong in RowHistory(store.rows).check()[:3]:
            yield Remark(name="history-damaged", about="history", message=f"History is damaged: {wrong}.")
        for path in self._foreign():
            said = f"{path} is not as anima left it: somebody wrote to the database. Its new lines are not trusted."
            yield Remark(about=path, message=said)

    def _foreign(self) -> Iterator[str]:
        view = self._store.provenance
        for entry in self._store.documents.list_all():
            path = DocPath.parse(entry.path)
            if path.is_markdown and view.knows(path):
                try:
                    if not view.is_ours(path, self._store.documents.read(path).text):
                        yield entry.path
                except HomeError:
                    continue

    def mend(self, found: Remark) -> str:
        """Nothing: rows are put back from a snapshot."""
        return ""

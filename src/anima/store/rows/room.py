"""How much a tenant may still keep.

Promise: what would grow beyond a tenant's quota is refused before anything of it is written; what makes less is never
refused. A tenant without a quota is asked about once in a while and costs nothing else. Not here: quotas being set
(tenants), requests and tokens (fleet).
"""

from __future__ import annotations

import time

from anima.errors import OverQuota
from anima.store.rows.transaction import HomeRows

_AGAIN = 5.0  # seconds for which no quota stays no quota
_QUOTAS = """
    select kind, most, anima.used(kind) from anima.quota where tenant = %(tenant)s and kind in ('bytes', 'documents')
"""


class Room:
    """The room of one tenant, as a home of theirs sees it."""

    def __init__(self, rows: HomeRows) -> None:
        self._rows, self._free = rows, 0.0 if rows.engine.needs_tenant else float("inf")

    def need(self, *, bytes: int, documents: int = 0, slack: float = 1.0) -> None:
        """Raises OverQuota where so much more would be too much; with `slack`, beyond so many times the quota."""
        if (bytes <= 0 and documents <= 0) or time.monotonic() < self._free:
            return
        wanted, quotas = {"bytes": bytes, "documents": documents}, self._rows.ask(_QUOTAS)
        for kind, most, used in quotas:
            if wanted[kind] > 0 and used + wanted[kind] > most * slack:
                raise OverQuota(kind, used=int(used), most=int(most))
        if not quotas:
            self._free = time.monotonic() + _AGAIN

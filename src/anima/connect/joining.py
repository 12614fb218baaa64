"""Joining: the session of a host's conversation, for the MCP server that the host started beside its hooks.

Promise: hooks and tools of one conversation are one session, as far as it can be known which that is: by what the host
says with a call, else by the process that started both, else by what the host told the server at its start. Where no
hook ever reported of it, there is nothing to join, and that is written down, for the owner to be told.
Not here: the protocol (mcp), what is in the session (settle).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from anima import Home, Session
from anima.connect.events import ID
from anima.connect.settle import conversation, spool_of
from anima.connect.spool import ancestors

_SAYS = ("sessionId", "threadId", "conversationId")  # Codex says it with each call
_LATEST = 40  # conversations that are looked at
_TOLD = ("CLAUDE_CODE_SESSION_ID",)  # at the start


class Joining:
    """The conversations of one host in one home."""

    def __init__(self, home: Home, host: str, *, env: Mapping[str, str]) -> None:
        self._home, self._spool, self._env = home, spool_of(home, host), env

    @contextmanager
    def __call__(self, meta: Mapping[str, Any]) -> Iterator[Session | None]:
        """The session in which a call belongs, with all that is known of it; None where no hook reported of it."""
        id = self._which(meta)
        if not id:
            self._note_silence()
            yield None
            return
        with conversation(self._home, self._spool, id) as session:
            yield session

    def _which(self, meta: Mapping[str, Any]) -> str:
        said = next((value for name in _SAYS if isinstance(value := meta.get(name), str)), "")
        if said:
            return said if self._spool.known(said) else ""
        told = next((self._env[name] for name in _TOLD if ID.match(self._env.get(name, ""))), "")
        return self._beside() or (told if self._spool.known(told) else "")

    def _beside(self) -> str:
        """The conversation that was last heard of from the process that started us."""
        above, ids = ancestors()[:1], self._spool.ids()
        latest = sorted(ids, key=lambda id: -ids[id])[:_LATEST]
        return next((id for id in latest if above and above[0] in self._above(id)), "")

    def _above(self, id: str) -> list[str]:
        waiting = self._spool.waiting(id)
        return list((waiting[-1] if waiting else self._spool.state(id)).get("above", []))

    def _note_silence(self) -> None:
        """A conversation without a single report: its host runs no hooks of ours."""
        if (found := self._spool.connection) is not None:
            self._spool.put_connection(found | {"silent": time.time()})

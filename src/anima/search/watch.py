"""Watching a home for changes from outside, until somebody stops it.

Promise: changes are gathered for half a second and then indexed; temporary and hidden names are passed over; when the
system loses events, or every few minutes anyway, everything is looked at. Not here: the index itself (indexing).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anima.home import Home
    from anima.search.current import IndexReport

_GATHER_MS = 500
_ANYWAY_MS = 120_000


def watch(home: Home, stop: threading.Event | None = None) -> Iterator[IndexReport]:
    """A report after each round that changed something; the first one at once. Ends when `stop` is set."""
    from watchfiles import watch as changes

    yield home.index()
    rounds = changes(
        home.root,
        watch_filter=_matters,
        debounce=_GATHER_MS,
        step=50,
        stop_event=stop,
        rust_timeout=_ANYWAY_MS,
        yield_on_timeout=True,
        raise_interrupt=True,
    )
    for _ in rounds:
        report = home.index()
        if report.put or report.dropped:
            yield report


def _matters(_: object, path: str) -> bool:
    parts = path.split("/")
    name = parts[-1]
    return (
        name.casefold().endswith(".md")
        and not name.startswith((".", "~", "#"))
        and not any(p.startswith(".") for p in parts[1:-1] if p in (".anima", ".git"))
    )

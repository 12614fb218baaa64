"""Watching a home's folder for changes from outside.

Promise: changes are gathered for half a second; temporary and hidden names are passed over; when the system loses events,
or every few minutes anyway, everything is looked at. Not here: what is done then (`current`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

_GATHER_MS = 500
_ANYWAY_MS = 120_000


def changes_in(root: str, stop: threading.Event | None = None) -> Iterator[object]:
    """Something after each change, until `stop` is set."""
    from watchfiles import watch

    return watch(
        root,
        watch_filter=_matters,
        debounce=_GATHER_MS,
        step=50,
        stop_event=stop,
        rust_timeout=_ANYWAY_MS,
        yield_on_timeout=True,
        raise_interrupt=True,
    )


def _matters(_: object, path: str) -> bool:
    parts = path.split("/")
    name = parts[-1]
    return (
        name.casefold().endswith(".md")
        and not name.startswith((".", "~", "#"))
        and not any(p.startswith(".") for p in parts[1:-1] if p in (".anima", ".git"))
    )

"""What a server of many homes logs: a line of JSON for each request and each error.

Promise: no text of a memory, no path of a document and no query is in it. A request is its route's pattern, an error its
kind and where it arose; of a message, the words that stand in our source. Not here: what is worth a line.
"""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

requests = logging.getLogger("anima.requests")


class JsonLines(logging.Formatter):
    """A record as one line."""

    def format(self, record: logging.LogRecord) -> str:
        about: dict[str, Any] = {"time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")}
        is_ours = record.name.startswith("anima")  # others write what they were given into their messages
        event = str(record.msg) if is_ours else f"{record.module}:{record.lineno}"
        about |= {"level": record.levelname.lower(), "log": record.name, "event": event}
        about |= getattr(record, "about", {})
        given = record.args if isinstance(record.args, tuple) else ()
        error = record.exc_info[1] if record.exc_info else next((e for e in given if isinstance(e, Exception)), None)
        if error is not None:
            at = [
                f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
                for frame in traceback.extract_tb(error.__traceback__)
            ]
            about |= {"error": type(error).__name__, "at": at[-5:]}
        return json.dumps(about, ensure_ascii=True)


def log_as_json() -> None:
    """From now on everything is logged so, on standard error."""
    shown = logging.StreamHandler()
    shown.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [shown]
    root.setLevel(logging.WARNING)
    requests.setLevel(logging.INFO)


def log_request(**about: Any) -> None:
    if requests.isEnabledFor(logging.INFO):
        requests.info("request", extra={"about": about})

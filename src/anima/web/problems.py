"""Errors over HTTP, as problem details (RFC 9457), from the one table in `errors`.

Promise: a problem says what happened and what to do in the words of the error itself; it never holds a trace, and what
is wrong with a request is said without repeating what was sent. Who is not known learns nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from anima.errors import HomeError, Refused, StaleWrite, http_status, printable
from anima.model import Receipt, digest_of

MEDIA = "application/problem+json"
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def problem(
    status: int,
    detail: str = "",
    *,
    kind: str = "about:blank",
    title: str = "",
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    body = {"type": kind, "title": title or HTTPStatus(status).phrase, "status": status}
    body |= {"detail": detail} if detail else {}
    body |= {name: value for name, value in more.items() if value is not None}
    text = json.dumps(body, ensure_ascii=True)
    return Response(text, status_code=status, media_type=MEDIA, headers=dict(headers or {}))


def of_error(error: HomeError) -> Response:
    """An error of ours: its nearest ancestor in the table decides the status."""
    more: dict[str, Any] = {"hint": error.hint}
    headers = {}
    if isinstance(error, StaleWrite):
        more |= {"path": error.path, "theirs": error.theirs, "ours": error.ours}
        if error.theirs is not None:
            headers["ETag"] = etag(digest_of(error.theirs))
    if isinstance(error, Refused):
        more["rule"] = error.rule
    return problem(
        http_status(error), str(error), kind=kind_of(type(error)), title=_title(type(error)), headers=headers, **more
    )


def of_refusal(receipt: Receipt) -> Response:
    """A write that the gate, or a rule such as `duplicate`, refused."""
    findings = [{"kind": f.kind, "line": f.line, "message": f.message} for f in receipt.findings]
    return problem(
        http_status(Refused("")),
        receipt.reason or "not allowed",
        kind=kind_of(Refused),
        title=_title(Refused),
        rule=receipt.rule,
        path=receipt.path.text,
        findings=findings,
    )


def of_request(errors: Iterable[Mapping[str, Any]]) -> Response:
    """A request that does not fit what the route takes: where, and what is wrong, without what was sent."""
    found = [
        {
            "where": printable(".".join(map(str, error.get("loc", ()))), 200),
            "wrong": printable(str(error.get("msg", "")), 300),
        }
        for error in errors
    ]
    first = f"{found[0]['where']}: {found[0]['wrong']}" if found else "the request makes no sense"
    return problem(400, first, kind="urn:anima:bad-input", title="Bad input", errors=found[:20])


def unknown() -> Response:
    """The answer to whoever shows no credential that works. It says no more than that."""
    return problem(401, headers={"WWW-Authenticate": "Bearer"})


def nothing_there() -> Response:
    """The one answer for what is not there and for what is not yours."""
    return problem(404, "there is no such thing here", kind="urn:anima:not-found", title="Not found")


def etag(digest: str) -> str:
    return f'"{digest}"'


def kind_of(error: type[HomeError]) -> str:
    return "urn:anima:" + _WORD.sub("-", error.__name__).lower()


def _title(error: type[HomeError]) -> str:
    return _WORD.sub(" ", error.__name__).capitalize()

"""Errors over HTTP, as problem details (RFC 9457), from the one table in `errors`.

Promise: a problem says what happened and what to do in the words of the error itself; it never holds a trace, and what
is wrong with a request is said without repeating what was sent. Who is not known learns nothing. Under /v1 the same is
said in the envelope that clients of OpenAI's chat format read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from anima.errors import HomeError, Refused, StaleWrite, TooMany, http_status, printable
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
    return _Problem(body, headers or {})


class _Problem(Response):
    """A problem, in the form that its address is answered in."""

    def __init__(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        self._body = body
        text = json.dumps(body, ensure_ascii=True)
        super().__init__(text, status_code=body["status"], media_type=MEDIA, headers=dict(headers))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if is_openai(scope["path"]):
            body, status = self._body, self.status_code
            said = "; ".join(filter(None, (body.get("detail") or body["title"], body.get("hint"))))
            kept = {name: value for name, value in self.headers.items() if name in ("retry-after", "www-authenticate")}
            await of_openai(status, said, headers=kept)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def is_openai(path: str) -> bool:
    """Whether an address is answered in OpenAI's chat format."""
    return path == "/v1" or path.startswith("/v1/")


def openai_error(status: int, said: str) -> dict[str, Any]:
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {
        "error": {"message": said, "type": kind, "param": None, "code": "invalid_api_key" if status == 401 else None}
    }


def of_openai(status: int, said: str, *, headers: Mapping[str, str] | None = None) -> Response:
    """An error as clients of OpenAI's chat format read it. Only what was turned away is worth trying again: else the same
    words would be said twice."""
    again = {"x-should-retry": "true" if status == 429 else "false"}
    text = json.dumps(openai_error(status, said), ensure_ascii=True)
    return Response(text, status_code=status, media_type="application/json", headers={**(headers or {}), **again})


def of_error(error: HomeError, **more: Any) -> Response:
    """An error of ours: its nearest ancestor in the table decides the status."""
    headers = {"Retry-After": "5"} if isinstance(error, TooMany) else {}
    if isinstance(error, StaleWrite):
        more |= {"path": error.path, "theirs": error.theirs, "ours": error.ours}
        if error.theirs is not None:
            headers["ETag"] = etag(digest_of(error.theirs))
    if isinstance(error, Refused):
        more["rule"] = error.rule
    title = _WORD.sub(" ", type(error).__name__).capitalize()
    kind = f"urn:anima:{title.lower().replace(' ', '-')}"
    return problem(http_status(error), str(error), kind=kind, title=title, headers=headers, hint=error.hint, **more)


def of_refusal(receipt: Receipt) -> Response:
    """A write that the gate, or a rule such as `duplicate`, refused."""
    findings = [{"kind": f.kind, "line": f.line, "message": f.message} for f in receipt.findings]
    refused = Refused(receipt.reason or "not allowed", rule=receipt.rule)
    return of_error(refused, path=receipt.path.text, findings=findings)


def of_request(errors: Iterable[Mapping[str, Any]]) -> Response:
    """A request that does not fit what the route takes: where, and what is wrong, without what was sent."""
    told = ((".".join(map(str, error.get("loc", ()))), str(error.get("msg", ""))) for error in errors)
    found = [{"where": printable(where, 200), "wrong": printable(wrong, 300)} for where, wrong in told]
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

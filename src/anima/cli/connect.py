"""Commands that let agents in: connect hook, a home's place in other programs; token mcp, who may come and by which protocol.

Promise: with `mcp` standard output belongs to the protocol, so everything else is said on standard error; the scope must
be told; over HTTP nothing is answered without a token. What serves is imported only when it is needed.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from anima.cli.command import Reply, command, need_serving, need_trust
from anima.cli.show import flat, inert, plain, say, whisper
from anima.errors import BadArguments, Damaged, MissingExtra, Refused
from anima.model import Scope

if TYPE_CHECKING:
    from starlette.requests import Request

    from anima import Home
    from anima.connect.connections import Connection, Step
    from anima.mcp import Visitor


@command(owners=lambda given: bool(given["host"] or given["file"]) and not given["dry_run"])
def connect(
    home: Home, host: str | None, remove: bool, file: str | None, dry_run: bool, yes: bool, json: bool
) -> Reply | None:
    from anima.connect.connections import connecting_of, contact_of, host_of
    from anima.connect.hosts import HOSTS
    from anima.connect.settle import spool_of

    if file is not None:
        if host is not None or remove:
            raise BadArguments("--from takes over settings and goes with no host", hint="anima connect --from FILE")
        return _taken_over(home, file, dry_run=dry_run, yes=yes, json=json)
    if host is None:
        found = [contact_of(spool_of(home, each.name), each) for each in HOSTS.values()]
        lines = [f"{stands.host:<12} {stands.said}" for stands in found]
        return Reply([plain(stands) | {"said": stands.said} for stands in found], lines)
    begun = [name for name in HOSTS if name.startswith(host)]  # `claude` is claude-code
    chosen = host_of(begun[0] if len(begun) == 1 else host)
    if not remove:
        need_trust(home, may_ask=not json and not dry_run)
    connecting = connecting_of(home, chosen)
    steps = connecting.plan(remove=remove)
    if _agreed(steps, dry_run=dry_run, yes=yes, json=json):
        (connecting.remove if remove else connecting.connect)(steps)
    return Reply(*_told(home, connecting, steps, remove=remove, dry_run=dry_run))


def _taken_over(home: Home, file: str, *, dry_run: bool, yes: bool, json: bool) -> Reply:
    """Settings of another system's, shown as a change of anima.toml and made; then what has no counterpart."""
    from pathlib import Path

    from anima.connect.connections import make
    from anima.connect.moving_in import settings_edit

    need_trust(home, may_ask=not json and not dry_run)
    step, found, left = settings_edit(Path(file), home.name)
    steps = (step,) if step is not None else ()
    if _agreed(steps, dry_run=dry_run, yes=yes, json=json):
        make(steps)
    value = {"from": found.title, "taken": dict(found.taken), "dry_run": dry_run}
    value |= {"left": [{"key": key, "why": why} for key, why in left], "diff": "".join(s.diff for s in steps)}
    done = "nothing was changed" if dry_run or not steps else f"anima.toml has the settings of {found.title}"
    lines = [done, *(["These have no counterpart:"] if left else [])]
    return Reply(value, [*lines, *(f"  {flat(key)}: {why}" for key, why in left)])


def _agreed(steps: tuple[Step, ...], *, dry_run: bool, yes: bool, json: bool) -> bool:
    """Shows the steps and has them agreed to; False where they are only looked at."""
    for step in () if json else steps:
        say(inert(step.shown).rstrip("\n"))
    if steps and not (dry_run or yes):
        if json or not sys.stdin.isatty():
            refusal = "this changes files of another program; nothing was changed"
            raise Refused(refusal, rule="needs-a-yes", hint="say --yes")
        click.confirm("Change these files?", abort=True, err=True)
    return not dry_run


def _told(home: Home, connecting: Connection, steps: tuple[Step, ...], *, remove: bool, dry_run: bool) -> Any:
    from anima.connect.connections import contact_of

    host, stands = connecting.host, contact_of(connecting.spool, connecting.host)
    then = host.then.format(bundle=connecting.wiring.bundle)
    value = plain(stands) | {"said": stands.said, "changed": [str(step.path) for step in steps], "dry_run": dry_run}
    value |= {"diff": "".join(step.diff for step in steps), "then": "" if remove else then}
    if dry_run:
        return value, "nothing was changed" if steps else "there is nothing to change"
    if remove:
        nothing = f"nothing of {flat(home.name)} is in {host.title}"
        return value, f"{host.title} is as it was before" if steps else nothing
    lines = [f"{host.title}: {stands.said}."]
    if stands.reports and (steps or stands.heard is None or stands.is_silent):
        lines += [then, f"Then say anima connect {host.name}: it tells whether that session reached this home."]
    elif steps:
        lines.append(then)
    return value, lines


@command(opens=False)
def hook(host: str, event: str, config: str | None, home: str | None) -> int:
    from anima.connect.hook import main

    if not home or not config:
        raise BadArguments("a hook says its --home and --config", hint="anima connect writes the whole line")
    return main([host, event, "--home", home, "--config", config])


TOKEN = "ANIMA_MCP_TOKEN"
LEAST_TOKEN = 32  # characters
PATH = "/mcp"


@command(owners=lambda given: given["action"] != "list")
def token(home: Home, action: str, **asked: Any) -> Reply:
    need_serving()
    from anima.web.tokens import Keyring

    keyring, name = Keyring(home.credentials, clock=home.clock), asked["id"]
    if action == "make":
        scope = Scope.parse(asked["scope"]) if asked["scope"] else None
        about = {each: asked[each] for each in ("name", "sender", "days")}
        made, secret = keyring.make_for(home.agent, scope=scope, **about)
        whisper(f"token {made.id}, until {made.expires:%Y-%m-%d}; it is shown only now")
        return Reply({**plain(made), "token": secret}, secret)
    if action == "list":
        found, lines = keyring.all(), []
        for each in found:
            kind = {"owner": "owner", "page": "browser"}.get(each.kind) or f"agent {each.scope}"
            until = f"until {each.expires:%Y-%m-%d}" if each.expires else "until revoked"
            lines.append(f"{each.id}  {kind:<16} {until:<16} {flat(each.name)}")
        return Reply(found, lines or "no tokens; anima token make makes one")
    if action == "link":
        from anima.web import homes, serve

        at = keyring.served_at()
        url = f"http://{homes.HOST}:{asked['port'] or serve.PORT}" if asked["port"] or not at else at
        link = keyring.link(url)
        whisper(
            f"it works once, for ten minutes, while the home is served{'' if at else '; nobody serves it just now'}"
        )
        return Reply({"link": link}, link)
    if action == "path":
        keyring.owner_token()
        path = os.fspath(keyring.folder / "owner.token")
        return Reply({"path": path}, flat(path))
    if action not in ("revoke", "clear"):
        raise BadArguments(f"there is no action {action!r}; there are make, list, revoke, clear, link, path")
    if not name:
        what = "token" if action == "revoke" else "token or agent"
        raise BadArguments(f"say which {what}", hint="anima token list")
    if action == "revoke":
        gone = keyring.revoke(name)
        return Reply({"revoked": gone.id}, f"revoked: {gone.id} ({flat(gone.name)})")
    meant = [one.credential for one in keyring.all() if name in (one.id, one.name)]
    home.sessions.clear_credentials(*meant, _credential(None if name == "mcp" else name))
    return Reply({"cleared": name}, f"cleared: {flat(name)}; it counts for conversations that begin from now on")


@command()
def mcp(
    home: Home,
    scope: str,
    sender: str | None,
    as_: str | None,
    approve_here: bool,
    host: str | None,
    http: bool,
    port: int,
) -> None:
    need_trust(home, may_ask=True)
    listening = Scope.parse(scope)
    if approve_here and (http or listening is not Scope.MAIN):
        raise BadArguments(
            "--approve-here is for --scope main on standard input and output; elsewhere whoever asks could answer",
            hint="the owner decides with anima review, or on the page",
        )
    if any(find_spec(name) is None for name in ("mcp", "mcp_types", "starlette", "uvicorn")):
        raise MissingExtra("serve", "the MCP server")
    from anima.mcp import Visitor, serve_stdio

    join = None
    if host and not http and listening is Scope.MAIN and sender is None:
        from anima.connect import EVENTS
        from anima.connect.settle import joined

        if host not in EVENTS:
            raise BadArguments(f"there is no host {host!r} with hooks; there are {', '.join(EVENTS)}")
        join = partial(joined, home, host, env=os.environ)  # requests find the session of the host's own conversation
    visitor = Visitor(home=home, scope=listening, sender=sender, key=_credential(as_), name=as_ or "", join=join)
    if http:
        _serve_http(visitor, port)
    else:
        import asyncio

        asyncio.run(serve_stdio(visitor, approve_here=approve_here))


def _credential(name: str | None) -> str:
    """What stands for an agent that we serve without a token of the home's."""
    return f"mcp:{name}" if name else "mcp"


def _serve_http(visitor: Visitor, port: int) -> None:
    import secrets
    import signal
    import socket

    import uvicorn
    from starlette.applications import Starlette
    from starlette.routing import Route

    from anima.mcp import asgi_app

    token = os.environ.get(TOKEN)
    shown = f"…  (from {TOKEN})"
    if token is None:
        token = secrets.token_urlsafe(32)
        shown = f"{token}   (new; set {TOKEN} to keep one)"
    elif len(token) < LEAST_TOKEN:
        raise BadArguments(f"{TOKEN} is too short to be a secret; it has at least {LEAST_TOKEN} characters")
    wanted = f"Bearer {token}".encode()

    def who(request: Request) -> Visitor | None:
        shown = request.headers.get("authorization", "").encode("utf-8", "surrogatepass")
        return visitor if secrets.compare_digest(shown, wanted) else None

    endpoint = asgi_app(who)
    app = Starlette(routes=[Route(PATH, endpoint=endpoint)], lifespan=lambda app: endpoint.running())
    # Named as TCP, because asyncio sends small answers without delay only on sockets that say so.
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
            listening.listen(1024)  # whoever reads the address may come at once
        except OSError as error:
            raise Damaged(f"port {port} cannot be had: {error.strerror}", hint="name another with --port") from None
        whisper(f"anima: {inert(visitor.scope)} at http://127.0.0.1:{listening.getsockname()[1]}{PATH}")
        whisper(f"       Authorization: Bearer {shown}")
        about: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
        server = uvicorn.Server(uvicorn.Config(app, timeout_graceful_shutdown=3, **about))
        # The server raises a signal again when it is done with it, and that must not keep the home from being closed.
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, lambda number, frame: setattr(server, "should_exit", True))
        server.run(sockets=[listening])

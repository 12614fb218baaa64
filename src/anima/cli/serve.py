"""Commands that serve a home: up token mcp.

Promise: with `mcp` standard output belongs to the protocol, so everything else is said on standard error; the scope must
be told; over HTTP nothing is answered without a token. What serves is imported only when it is needed.
"""

from __future__ import annotations

import json as json_text
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anima.cli.command import (
    AGENT,
    HOME,
    JSON,
    SENDER,
    SET,
    Number,
    Reply,
    argument,
    command,
    flag,
    home_path,
    is_owner,
    need_trust,
    open_home,
    option,
    scope,
)
from anima.cli.show import flat, inert, plain, say, say_json, show_remarks, whisper
from anima.errors import BadArguments, Damaged, HomeError, MissingExtra
from anima.model import Scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.applications import Starlette
    from starlette.requests import Request

    from anima import Home
    from anima.mcp import Visitor
    from anima.web.tokens import Keyring

_THIS_SYSTEMS = "launchd" if sys.platform == "darwin" else "systemd"
PORT = option(
    "--port", metavar="PORT", type=Number(int, 0, 65_535), help="The port; 0 for any. Default: 4747 or one nearby."
)
TOKEN = "ANIMA_MCP_TOKEN"
LEAST_TOKEN = 32  # characters
PATH = "/mcp"


@command(
    argument("path", metavar="PATH", default=None, help="The home; made when it is missing or empty."),
    option("--name", metavar="NAME", default="", help="The agent's name, for a home that is made now."),
    PORT,
    option(
        "--service",
        metavar="[KIND]",
        is_flag=False,
        flag_value=_THIS_SYSTEMS,
        help="Serve nothing: print what makes your system do so from now on, for systemd or launchd.",
    ),
    HOME,
    SET,
    JSON,
    opens=False,
)
def up(
    path: str | None,
    name: str,
    port: int | None,
    service: str | None,
    home: str | None,
    set_: Sequence[str],
    json: bool,
    as_owner: bool,
) -> Reply | None:
    """Serve a home on this machine: its page, its HTTP API and MCP. It goes on until Ctrl-C; a missing home is made.

    The link to the page is the owner's, and told only at a terminal or with `--as-owner`.

    \b
    Examples:
      anima up                       the home that is found, or a new one
      anima up ~/aria --name Aria
      anima up --port 0 --json       one value with the address, then it serves
      anima up ~/aria --service > ~/.config/systemd/user/anima.service
    """
    need_serving()
    place = home_path(path or home, may_be_missing=True)
    if service:
        text = _service(service, place.absolute(), port)
        return Reply({"service": text}, text.rstrip("\n"))
    from anima.home import Home

    with Home.create(place, name=name) if _is_vacant(place) else open_home(place, set_) as opened:
        need_trust(opened, may_ask=not json)
        if not json:
            show_remarks(opened.upkeep.doctor())
            say()
        serve_home(opened, port=port, json=json, as_owner=as_owner)
    return None


def _is_vacant(place: Path) -> bool:
    """Whether nothing stands there. A folder with anything in it is opened as it is, in whatever dialect."""
    try:
        return not any(place.iterdir())
    except FileNotFoundError:
        return True
    except OSError:
        return False


_UNIT = """\
# Keep it as ~/.config/systemd/user/anima.service, then: systemctl --user enable --now anima
[Unit]
Description=anima, the home of an AI agent

[Service]
ExecStart={line}
Restart=on-failure

[Install]
WantedBy=default.target
"""


def _service(kind: str, place: Path, port: int | None) -> str:
    """What systemd or launchd reads to serve a home whenever its owner is logged in."""
    line = [sys.executable, "-m", "anima.cli", "up", str(place), *(["--port", str(port)] if port is not None else [])]
    if kind == "systemd":
        return _UNIT.format(line=" ".join(_quoted(word) for word in line))
    if kind != "launchd":
        raise BadArguments(f"--service is systemd or launchd, not {kind!r}", hint="anima up PATH --service")
    import plistlib

    job = {"Label": "home.anima", "ProgramArguments": line, "RunAtLoad": True, "KeepAlive": {"SuccessfulExit": False}}
    return plistlib.dumps(job, sort_keys=False).decode()


def _quoted(word: str) -> str:
    """A word of a command line as systemd reads it, which knows `%`, `$`, quotes and backslashes."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def serve_home(home: Home, *, port: int | None, json: bool, as_owner: bool) -> None:
    """Serves a home that is open, and says how to come in; to the owner, with a link that lets in whoever has it."""
    from anima.web.serve import Address, serve

    def ready(address: Address) -> None:
        # What an agent's configuration needs to live here: the same for every host that knows `mcpServers`.
        host = {"command": _program(), "args": ["mcp", "--home", home.name, "--scope", "main"]}
        line = {"mcpServers": {"anima": host}}
        link = address.link if is_owner(as_owner) else None
        if json:
            say_json({"home": home.name, "url": address.url, "link": link, "mcp": line})
        else:
            say("Serving on this machine until Ctrl-C. The link works once, for ten minutes; then: anima token link")
            say(f"Open:  {link or address.url + ', with a link from anima token link at a terminal'}")
            say(f"Agent: {flat(json_text.dumps(line, ensure_ascii=False))}")
            say(f"Talk:  {_talking(home)}")
        sys.stdout.flush()

    serve(home, port=port, ready=ready, mcp=_guest(home))
    if not json:
        whisper("stopped; nothing is half done")


def _talking(home: Home) -> str:
    """How to talk with the agent, and what answers."""
    from anima.agent import PRACTICE
    from anima.agent.models import Models

    try:
        name = Models.of(home).choice().name
    except HomeError as error:
        return f"anima chat, in another terminal; but {error}"
    through = "practice answers until you choose a model: anima model" if name == PRACTICE else f"{flat(name)} answers"
    return f"anima chat, in another terminal; {through}"


def need_serving() -> None:
    """Raises MissingExtra where the parts that serve are not installed. Comes before anything heavy is imported."""
    if any(find_spec(name) is None for name in ("fastapi", "uvicorn", "jinja2")):
        raise MissingExtra("serve", "serving a home")


def _guest(home: Home) -> Any:
    """MCP for the agents whose tokens the guard knows; None where that part is not installed."""
    if find_spec("mcp") is None:
        return None
    from anima.mcp import Visitor, asgi_app
    from anima.web.guard import who_of

    def who(request: Request) -> Visitor | None:
        one = who_of(request.scope)
        if one.scope is None:
            return None
        return Visitor(home=home, scope=one.scope, sender=one.sender, key=one.credential, name=one.name)

    return asgi_app(who)


def _program() -> str:
    """How an agent's host starts us: by name where a shell would find this very program, else by its place."""
    import shutil

    here = os.path.abspath(sys.argv[0])
    found = shutil.which("anima")
    if found and os.path.realpath(found) == os.path.realpath(here):
        return "anima"
    return here if os.path.basename(here) == "anima" else "anima"


# -- tokens ----------------------------------------------------------------------------------------------------------------


@command(
    argument("action", metavar="ACTION", default="list", help="make, list, revoke, clear, link or path."),
    argument("id", metavar="ID", default=None, help="Which one to revoke, or to clear: its id or its name."),
    option("--name", metavar="NAME", default="token", help="What to call a new token."),
    option("--scope", metavar="SCOPE", help="Make an agent's token for this scope; without it, the owner's."),
    option("--sender", metavar="ID", help="Who speaks through an agent's token."),
    option("--days", type=Number(int, 1, 36_500), default=90, help="How long a new token works."),
    PORT,
    HOME,
    JSON,
    owners=lambda given: given["action"] != "list",
)
def token(home: Home, action: str, **asked: Any) -> Reply:
    """Make, list and revoke the tokens of a served home, or make a new link to its page.

    `path` shows the file with the owner's own token, for programs of yours. `clear` vouches for what came in from outside
    with a token, or with an agent of `anima mcp --as NAME`: conversations that begin later count as not having read it.

    \b
    Examples:
      anima token make --name laptop --scope main --days 30
      anima token revoke 3f9c2a71b0de
      anima token clear laptop
      anima token link
    """
    need_serving()
    from anima.web.tokens import Keyring

    acts = {"make": _make, "list": _list, "revoke": _revoke, "clear": _clear, "link": _link, "path": _path}
    if action not in acts:
        raise BadArguments(f"there is no action {action!r}; there are {', '.join(acts)}")
    return acts[action](home, Keyring.of(home), asked)


def _make(home: Home, keyring: Keyring, asked: dict[str, Any]) -> Reply:
    scope = Scope.parse(asked["scope"]) if asked["scope"] else None
    made, secret = keyring.make(
        "agent" if scope else "owner",
        name=asked["name"],
        scope=scope,
        agent=home.agent if scope else None,
        sender=asked["sender"] if scope else None,
        lifetime=timedelta(days=asked["days"]),
    )
    whisper(f"token {made.id}, until {made.expires:%Y-%m-%d}; it is shown only now")
    return Reply({**plain(made), "token": secret}, secret)


def _list(home: Home, keyring: Keyring, asked: dict[str, Any]) -> Reply:
    found, lines = keyring.all(), []
    for each in found:
        kind = {"owner": "owner", "page": "browser"}.get(each.kind) or f"agent {each.scope}"
        until = f"until {each.expires:%Y-%m-%d}" if each.expires else "until revoked"
        lines.append(f"{each.id}  {kind:<16} {until:<16} {flat(each.name)}")
    return Reply(found, "\n".join(lines) or "no tokens; anima token make makes one")


def _revoke(home: Home, keyring: Keyring, asked: dict[str, Any]) -> Reply:
    if not asked["id"]:
        raise BadArguments("say which token", hint="anima token list")
    gone = keyring.revoke(asked["id"])
    return Reply({"revoked": gone.id}, f"revoked: {gone.id} ({flat(gone.name)})")


def _clear(home: Home, keyring: Keyring, asked: dict[str, Any]) -> Reply:
    name = asked["id"]
    if not name:
        raise BadArguments("say which token or agent", hint="anima token list")
    meant = [one.credential for one in keyring.all() if name in (one.id, one.name)]
    home.sessions.clear_credentials(*meant, _credential(None if name == "mcp" else name))
    return Reply({"cleared": name}, f"cleared: {flat(name)}; it counts for conversations that begin from now on")


def _link(home: Home, keyring: Keyring, asked: dict[str, Any]) -> Reply:
    from anima.web.serve import HOST
    from anima.web.serve import PORT as default

    link = f"http://{HOST}:{asked['port'] or default}/login#{keyring.code()}"
    whisper("it works once, for ten minutes, while the home is served")
    return Reply({"link": link}, link)


def _path(home: Home, keyring: Keyring, asked: dict[str, Any]) -> Reply:
    keyring.owner_token()
    path = os.fspath(keyring.folder / "owner.token")
    return Reply({"path": path}, flat(path))


# -- MCP -------------------------------------------------------------------------------------------------------------------


@command(
    scope(" It must be told, and holds for every caller.", required=True),
    SENDER,
    AGENT,
    flag(
        "--approve-here",
        help="Let the person at this client approve changes in its forms; only if no agent answers them.",
    ),
    option(
        "--as", "as_", metavar="NAME", help="What you call the agent; one that your owner.toml calls clean counts so."
    ),
    flag("--http", help="Serve streamable HTTP on 127.0.0.1 instead."),
    option("--port", type=Number(int, 0, 65_535), default=8765, help="For --http: the port; 0 takes a free one."),
    HOME,
    SET,
)
def mcp(home: Home, scope: str, sender: str | None, as_: str | None, approve_here: bool, http: bool, port: int) -> None:
    """Let an agent live in the home over MCP: on standard input and output, or over HTTP on this machine.

    \b
    anima mcp --scope main --home ~/aria
    anima mcp --scope main --approve-here --home ~/aria
    ANIMA_MCP_TOKEN=… anima mcp --scope group --http --port 8765
    """
    need_trust(home, may_ask=True)
    listening = Scope.parse(scope)
    if approve_here and (http or listening is not Scope.MAIN):
        raise BadArguments(
            "--approve-here is for --scope main on standard input and output; elsewhere whoever asks could answer",
            hint="the owner decides with anima review, or on the page",
        )
    try:
        import uvicorn  # noqa: F401

        from anima.mcp import Visitor, serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("anima"):
            raise
        raise MissingExtra("serve", "the MCP server") from error
    visitor = Visitor(home=home, scope=listening, sender=sender, key=_credential(as_), name=as_ or "")
    if http:
        _serve_http(visitor, port)
    else:
        import asyncio

        asyncio.run(serve_stdio(visitor, approve_here=approve_here))


def _credential(name: str | None) -> str:
    """What stands for an agent that we serve without a token of the home's."""
    return f"mcp:{name}" if name else "mcp"


def _token() -> tuple[str, bool]:
    """The token that callers must show, and whether it was made just now."""
    import secrets

    given = os.environ.get(TOKEN)
    if given is None:
        return secrets.token_urlsafe(32), True
    if len(given) < LEAST_TOKEN:
        raise BadArguments(f"{TOKEN} is too short to be a secret; it has at least {LEAST_TOKEN} characters")
    return given, False


def _serve_http(visitor: Visitor, port: int) -> None:
    import signal
    import socket

    import uvicorn

    token, is_new = _token()
    # Named as TCP, because asyncio sends small answers without delay only on sockets that say so.
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
            listening.listen(1024)  # whoever reads the address may come at once
        except OSError as error:
            raise Damaged(f"port {port} cannot be had: {error.strerror}", hint="name another with --port") from None
        whisper(f"anima: {inert(visitor.scope)} at http://127.0.0.1:{listening.getsockname()[1]}{PATH}")
        shown = f"{token}   (new; set {TOKEN} to keep one)" if is_new else f"…  (from {TOKEN})"
        whisper(f"       Authorization: Bearer {shown}")
        server = uvicorn.Server(
            uvicorn.Config(
                _app(visitor, token),
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=3,
                server_header=False,
            )
        )

        def stop(number: int, frame: object) -> None:
            server.should_exit = True

        # The server raises a signal again when it is done with it, and that must not keep the home from being closed.
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, stop)
        server.run(sockets=[listening])


def _app(visitor: Visitor, token: str) -> Starlette:
    import secrets
    from contextlib import asynccontextmanager

    from starlette.applications import Starlette
    from starlette.routing import Route

    from anima.mcp import asgi_app

    wanted = f"Bearer {token}".encode()

    def who(request: Request) -> Visitor | None:
        shown = request.headers.get("authorization", "").encode("utf-8", "surrogatepass")
        return visitor if secrets.compare_digest(shown, wanted) else None

    endpoint = asgi_app(who)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with endpoint.running():
            yield

    return Starlette(routes=[Route(PATH, endpoint=endpoint)], lifespan=lifespan)

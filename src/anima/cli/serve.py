"""Commands that serve homes: up serve token mcp.

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
from urllib.parse import urlsplit

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
    program_name,
    scope,
)
from anima.cli.show import flat, inert, plain, say, say_json, show_remarks, whisper
from anima.errors import BadArguments, Damaged, HomeError, MissingExtra
from anima.model import Scope

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request

    from anima import Home
    from anima.mcp import Visitor
    from anima.mcp.visits import Join
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
        if isinstance(place, str):
            raise BadArguments(
                "a service of a home in a database is yours to write", hint="it runs anima up with DATABASE_URL"
            )
        text = _service(service, place.absolute(), port)
        return Reply({"service": text}, text.rstrip("\n"))
    from anima.home import Home, folders

    try:
        is_vacant = isinstance(place, Path) and not any(place.iterdir())  # any other is opened as it is
    except OSError as error:
        is_vacant = isinstance(error, FileNotFoundError)
    with Home.create(place, name=name) if is_vacant else open_home(place, set_) as opened:
        need_trust(opened, may_ask=not json)
        if isinstance(place, Path) and not folders.is_any_in_use() and is_owner(as_owner):
            folders.use(place)
        if not json:
            show_remarks(opened.upkeep.doctor())
            say()
        serve_home(opened, port=port, json=json, as_owner=as_owner)
    return None


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
    if kind == "systemd":  # which knows `%`, `$`, quotes and backslashes in the words of a command line
        signs = str.maketrans({"\\": "\\\\", '"': '\\"', "%": "%%", "$": "$$"})
        return _UNIT.format(line=" ".join(f'"{word.translate(signs)}"' for word in line))
    if kind != "launchd":
        raise BadArguments(f"--service is systemd or launchd, not {kind!r}", hint="anima up PATH --service")
    import plistlib

    job = {"Label": "home.anima", "ProgramArguments": line, "RunAtLoad": True, "KeepAlive": {"SuccessfulExit": False}}
    return plistlib.dumps(job, sort_keys=False).decode()


def serve_home(home: Home, *, port: int | None, json: bool, as_owner: bool) -> None:
    """Serves a home that is open, and says how to come in; to the owner, with a link that lets in whoever has it. One that
    is served already is not served again, unless at a port of its own."""
    from anima.web.serve import Address, serve
    from anima.web.tokens import Keyring

    def ready(address: Address, first: str = "Serving on this machine until Ctrl-C.") -> None:
        # What an agent's configuration needs to live here: the same for every host that knows `mcpServers`.
        host = {"command": program_name(), "args": ["mcp", "--home", home.name, "--scope", "main"]}
        line = {"mcpServers": {"anima": host}}
        link = address.link if is_owner(as_owner) else None
        if json:
            say_json({"home": home.name, "url": address.url, "link": link, "mcp": line})
        else:
            program, where = flat(program_name()), "" if _is_in_use(home) else f" --home {flat(home.name)}"
            more = f"The link works once, for ten minutes; then: {program} token link{where}" if link else ""
            say(f"{first} {more}".rstrip())
            say(f"Open:  {link or f'{address.url}, with a link from {program} token link{where} at a terminal'}")
            say(f"Agent: {flat(json_text.dumps(line, ensure_ascii=False))}")
            say(f"Talk:  {_talking(home, program, where)}")
        sys.stdout.flush()

    keyring = Keyring.of(home)
    if port is None and (url := keyring.served_at()):
        ready(Address(url=url, link=f"{url}/login#{keyring.code()}"), "Another program serves it already.")
        return
    serve(home, port=port, ready=ready, mcp=_guest())
    if not json:
        whisper("stopped; nothing is half done")


@command(
    option("--database", "--home", "home", metavar="ADDRESS", help="The database. Default: DATABASE_URL."),
    option("--host", metavar="ADDRESS", default="127.0.0.1", help="The address of this machine to listen at."),
    PORT,
    option("--url", metavar="URL", default="", help="Where people reach it, such as https://homes.example.org."),
    option("--homes", type=Number(int, 1, 1_000_000), default=500, help="How many homes are held open at most."),
    option("--megabytes", type=Number(int, 1, 1_000_000), default=1_024, help="How large their indexes may be."),
    option("--drain", type=Number(int, 0, 3_600), default=5, help="Seconds to go on answering once told to end."),
    flag("--log-json", help="Log each request and error as a line of JSON, on standard error."),
    JSON,
    opens=False,
)
def serve(
    home: str | None,
    host: str,
    port: int | None,
    url: str,
    homes: int,
    megabytes: int,
    drain: int,
    log_json: bool,
    json: bool,
) -> None:
    """Serve every home of a database: pages, HTTP API and MCP, for whoever has a token of a tenant's.

    Any number of such servers may stand behind a balancer. Tokens are made with `anima tenant token create`.

    \b
    Examples:
      anima serve --database postgresql://anima_app@db/anima
      anima serve --host 10.0.0.5 --port 8080 --url https://homes.example.org --log-json
    """
    need_serving()
    from anima.home import folders
    from anima.web.logs import log_as_json
    from anima.web.serve import Fleetwise, serve_fleet

    if not (address := home or os.environ.get("DATABASE_URL")):
        raise BadArguments("which database?", hint="say --database postgresql://…, or set DATABASE_URL")
    place = urlsplit(url := url.rstrip("/"))
    if url and (place.scheme not in ("http", "https") or not place.netloc or place.path or place.query):
        raise BadArguments(f"{flat(url)!r} is not where people reach it", hint="such as https://homes.example.org")
    if log_json:
        log_as_json()
    fleet = folders.fleet(address)

    def ready(at: str) -> None:
        value = {"database": fleet.name, "url": url or at, "listening": at}
        say_json(value) if json else say(f"Serving the homes of {flat(fleet.name)} at {flat(url or at)} until Ctrl-C.")
        sys.stdout.flush()

    how = Fleetwise(host=host, port=port, url=url, most=homes, most_bytes=megabytes * 2**20, drain=drain)
    serve_fleet(fleet, os.environ, how, mcp=_guest(url, stateless=True), ready=ready)


def _is_in_use(home: Home) -> bool:
    """Whether a command that names no home takes this one, wherever it is called."""
    from anima.home import folders

    used = folders.in_use()
    return used is not None and os.path.realpath(used) == os.path.realpath(home.name)


def _talking(home: Home, program: str = "anima", where: str = "") -> str:
    """How to talk with the agent, and what answers."""
    from anima.agent import PRACTICE
    from anima.agent.models import Models

    try:
        name = Models.of(home).choice().name
    except HomeError as error:
        return f"{program} chat{where}, or Chat on the page; but {error}"
    through = f"practice answers; {program} model NAME sets a model" if name == PRACTICE else f"{flat(name)} answers"
    return f"{program} chat{where}, or Chat on the page; {through}"


def need_serving() -> None:
    """Raises MissingExtra where the parts that serve are not installed. Comes before anything heavy is imported."""
    if any(find_spec(name) is None for name in ("fastapi", "uvicorn", "jinja2")):
        raise MissingExtra("serve", "serving a home")


def _guest(url: str = "", *, stateless: bool = False) -> Any:
    """MCP for the agents whose tokens the guard knows; None where that part is not installed."""
    if find_spec("mcp") is None:
        return None
    from anima.mcp import Visitor, asgi_app
    from anima.web.guard import who_of

    def who(request: Request) -> Visitor | None:
        one, home = who_of(request.scope), request.scope["state"]["served"].home
        if one.scope is None:
            return None
        about: Any = {"sender": one.sender, "key": one.credential, "name": one.name, "access": one.access}
        return Visitor(home=home, scope=one.scope, **about)

    named = [urlsplit(url).netloc] if url else []
    return asgi_app(who, hosts=named, origins=[url] if url else [], stateless=stateless)


# -- tokens ----------------------------------------------------------------------------------------------------------------


@command(
    argument("action", metavar="ACTION", default="list", help="make, list, revoke, clear, link or path."),
    argument("id", metavar="ID", default=None, help="Which one to revoke, or to clear: its id or its name."),
    option("--name", metavar="NAME", default="token", help="What to call a new token."),
    option("--scope", metavar="SCOPE", help="Make an agent's token for this scope; without it, the owner's."),
    option("--sender", metavar="ID", help="Who speaks through an agent's token."),
    option("--days", type=Number(int, 1, 36_500), default=90, help="How long a new token works."),
    PORT,
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

    keyring, name = Keyring.of(home), asked["id"]
    if action == "make":
        return _make(home, keyring, asked)
    if action == "list":
        found, lines = keyring.all(), []
        for each in found:
            kind = {"owner": "owner", "page": "browser"}.get(each.kind) or f"agent {each.scope}"
            until = f"until {each.expires:%Y-%m-%d}" if each.expires else "until revoked"
            lines.append(f"{each.id}  {kind:<16} {until:<16} {flat(each.name)}")
        return Reply(found, lines or "no tokens; anima token make makes one")
    if action == "link":
        from anima.web import serve

        at = keyring.served_at()
        url = f"http://{serve.HOST}:{asked['port'] or serve.PORT}" if asked["port"] or not at else at
        link = f"{url}/login#{keyring.code()}"
        whisper(
            "it works once, for ten minutes, while the home is served" + ("" if at else "; nobody serves it just now")
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
    option("--host", metavar="HOST", help="Which host starts it (anima connect): its hooks and tools are one session."),
    flag("--http", help="Serve streamable HTTP on 127.0.0.1 instead."),
    option("--port", type=Number(int, 0, 65_535), default=8765, help="For --http: the port; 0 takes a free one."),
    HOME,
    SET,
)
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
    if find_spec("uvicorn") is None:  # looked for alone: on a pipe it would only take time
        raise MissingExtra("serve", "the MCP server")
    try:
        from anima.mcp import Visitor, serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("anima"):
            raise
        raise MissingExtra("serve", "the MCP server") from error
    join = _joining(home, host) if host and not http and listening is Scope.MAIN and sender is None else None
    visitor = Visitor(home=home, scope=listening, sender=sender, key=_credential(as_), name=as_ or "", join=join)
    if http:
        _serve_http(visitor, port)
    else:
        import asyncio

        asyncio.run(serve_stdio(visitor, approve_here=approve_here))


def _joining(home: Home, host: str) -> Join:
    """How requests find the session of the host's own conversation."""
    from anima.connect import EVENTS
    from anima.connect.settle import Joining

    if host not in EVENTS:
        raise BadArguments(f"there is no host {host!r} with hooks; there are {', '.join(EVENTS)}")
    return Joining(home, host, env=os.environ)


def _credential(name: str | None) -> str:
    """What stands for an agent that we serve without a token of the home's."""
    return f"mcp:{name}" if name else "mcp"


def _serve_http(visitor: Visitor, port: int) -> None:
    import secrets
    import signal
    import socket

    import uvicorn

    token = os.environ.get(TOKEN)
    shown = f"…  (from {TOKEN})"
    if token is None:
        token = secrets.token_urlsafe(32)
        shown = f"{token}   (new; set {TOKEN} to keep one)"
    elif len(token) < LEAST_TOKEN:
        raise BadArguments(f"{TOKEN} is too short to be a secret; it has at least {LEAST_TOKEN} characters")
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
        server = uvicorn.Server(uvicorn.Config(_app(visitor, token), timeout_graceful_shutdown=3, **about))
        # The server raises a signal again when it is done with it, and that must not keep the home from being closed.
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, lambda number, frame: setattr(server, "should_exit", True))
        server.run(sockets=[listening])


def _app(visitor: Visitor, token: str) -> Starlette:
    import secrets

    from starlette.applications import Starlette
    from starlette.routing import Route

    from anima.mcp import asgi_app

    wanted = f"Bearer {token}".encode()

    def who(request: Request) -> Visitor | None:
        shown = request.headers.get("authorization", "").encode("utf-8", "surrogatepass")
        return visitor if secrets.compare_digest(shown, wanted) else None

    endpoint = asgi_app(who)
    return Starlette(routes=[Route(PATH, endpoint=endpoint)], lifespan=lambda app: endpoint.running())

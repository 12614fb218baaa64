"""Verbs that serve: serve token. `anima up` serves too, with what is here."""

from __future__ import annotations

import json as json_text
import os
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anima.cli.show import HomeOption, JsonOption, SetOption, inert, open_home, plain, say, say_json, whisper
from anima.errors import BadArguments, MissingExtra

if TYPE_CHECKING:
    from anima.home import Home
    from anima.web.tokens import Pass

PortOption = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65_535, metavar="PORT", help="The port; 0 for any. Default: 4747 or one nearby."),
]


def add_to(app: typer.Typer) -> None:
    for verb in (serve, token):
        app.command(verb.__name__)(verb)


def serve(port: PortOption = None, home: HomeOption = None, set_: SetOption = None, json: JsonOption = False) -> None:
    """Serve a home on this machine: the page, the HTTP API and MCP, until Ctrl-C.

    \b
    Examples:
      anima serve --home ~/aria
      anima serve --port 0 --json      one line with the address, then it serves
    """
    need_serving()
    with open_home(home, set_) as opened:
        serve_home(opened, port=port, json=json)


def serve_home(opened: Home, *, port: int | None, json: bool) -> None:
    """Serves a home that is open, and says how to come in."""
    from anima.web.serve import Address, serve

    def ready(address: Address) -> None:
        if json:
            say_json({"home": opened.root, "url": address.url, "link": address.link, "mcp": _mcp_line(opened)})
        else:
            say("Serving on this machine until Ctrl-C. The link works once, for ten minutes; then: anima token link")
            say(f"Open:  {address.link}")
            say(f"Agent: {inert(json_text.dumps(_mcp_line(opened), ensure_ascii=False), lines=False)}")
        sys.stdout.flush()

    serve(opened, port=port, ready=ready, mcp=_mcp(opened))
    if not json:
        whisper("stopped; nothing is half done")


def need_serving() -> None:
    """Raises MissingExtra where the parts that serve are not installed. Comes before anything heavy is imported."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("fastapi", "uvicorn", "jinja2")):
        raise MissingExtra("serve", "serving a home")


def _mcp(opened: Home) -> Any:
    """MCP for the agents whose tokens the guard knows; None where that part is not installed."""
    from importlib import import_module
    from importlib.util import find_spec

    from anima.web.guard import who_of

    if find_spec("mcp") is None or find_spec("anima.mcp") is None:
        return None
    face = import_module("anima.mcp")

    def who(request: Any) -> Any:
        one = who_of(request.scope)
        return face.Visitor(home=opened, scope=one.scope, sender=one.sender, key=one.id) if one.scope else None

    return face.asgi_app(who)


def _mcp_line(opened: Home) -> dict[str, Any]:
    """What an agent's configuration needs to live here: the same for every host that knows `mcpServers`."""
    arguments = ["mcp", "--home", opened.root, "--scope", "main"]
    return {"mcpServers": {"anima": {"command": _program(), "args": arguments}}}


def _program() -> str:
    """How an agent's host starts us: by name where a shell would find this very program, else by its place."""
    import shutil

    here = os.path.abspath(sys.argv[0])
    found = shutil.which("anima")
    if found and os.path.realpath(found) == os.path.realpath(here):
        return "anima"
    return here if os.path.basename(here) == "anima" else "anima"


def token(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="make, list, revoke, link or path.")] = "list",
    id: Annotated[str | None, typer.Argument(metavar="ID", help="Which one to revoke.")] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="What to call a new token.")] = "token",
    scope: Annotated[
        str | None, typer.Option(metavar="SCOPE", help="Make an agent's token for this scope; without it, the owner's.")
    ] = None,
    sender: Annotated[str | None, typer.Option(metavar="ID", help="Who speaks through an agent's token.")] = None,
    days: Annotated[int, typer.Option(min=1, max=36_500, help="How long a new token works.")] = 90,
    port: PortOption = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Make, list and revoke the tokens of a served home, or make a new link to its page.

    `path` shows the file with the owner's own token, for programs of yours.

    \b
    Examples:
      anima token make --name laptop --scope main --days 30
      anima token revoke 3f9c2a71b0de
      anima token link
    """
    need_serving()
    from anima.web.tokens import Keyring

    acts = {"make": _make, "list": _list, "revoke": _revoke, "link": _link, "path": _path}
    if action not in acts:
        raise BadArguments(f"there is no action {action!r}; there are {', '.join(acts)}")
    with open_home(home) as opened:
        given = {"id": id, "name": name, "scope": scope, "sender": sender, "days": days, "port": port}
        value, text = acts[action](opened, Keyring.of(opened), given)
    if json:
        say_json(value)
    else:
        say(text)


def _make(opened: Home, keyring: Any, given: dict[str, Any]) -> tuple[Any, str]:
    from anima.model import Scope

    scope = Scope.parse(given["scope"]) if given["scope"] else None
    made, secret = keyring.make(
        "agent" if scope else "owner",
        name=given["name"],
        scope=scope,
        agent=opened.agent if scope else None,
        sender=given["sender"] if scope else None,
        lifetime=timedelta(days=given["days"]),
    )
    whisper(f"token {made.id}, until {made.expires:%Y-%m-%d}; it is shown only now")
    return {**plain(made), "token": secret}, secret


def _list(opened: Home, keyring: Any, given: dict[str, Any]) -> tuple[Any, str]:
    found = keyring.all()
    lines = [f"{one.id}  {_is(one):<16} {_until(one):<16} {inert(one.name, lines=False)}" for one in found]
    return [plain(one) for one in found], "\n".join(lines) or "no tokens; anima token make makes one"


def _is(one: Pass) -> str:
    return {"owner": "owner", "page": "browser"}.get(one.kind) or f"agent {one.scope}"


def _until(one: Pass) -> str:
    return f"until {one.expires:%Y-%m-%d}" if one.expires else "until revoked"


def _revoke(opened: Home, keyring: Any, given: dict[str, Any]) -> tuple[Any, str]:
    if not given["id"]:
        raise BadArguments("say which token", hint="anima token list")
    gone = keyring.revoke(given["id"])
    return {"revoked": gone.id}, f"revoked: {gone.id} ({inert(gone.name, lines=False)})"


def _link(opened: Home, keyring: Any, given: dict[str, Any]) -> tuple[Any, str]:
    from anima.web.serve import HOST, PORT

    link = f"http://{HOST}:{given['port'] or PORT}/login#{keyring.code()}"
    whisper("it works once, for ten minutes, while the home is served")
    return {"link": link}, link


def _path(opened: Home, keyring: Any, given: dict[str, Any]) -> tuple[Any, str]:
    keyring.owner_token()
    path = os.fspath(keyring.folder / "owner.token")
    return {"path": path}, inert(path, lines=False)

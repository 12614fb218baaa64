"""Commands that serve homes: up serve; and tenant, for whoever runs a database of them (create, list, show, suspend, resume, export,
erase, quota, token). What serves is imported only when it is needed.
"""

from __future__ import annotations

import json as json_text
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from anima.cli import command as commands
from anima.cli import show
from anima.cli.command import Reply, command, is_owner, need_serving, program_name
from anima.cli.show import console, counted, flat, need_person, plain, say, say_json, table, whisper
from anima.errors import BadArguments, HomeError, NotFound
from anima.model import Access, Scope

if TYPE_CHECKING:
    from threading import Event

    from starlette.requests import Request

    from anima import Home
    from anima.agent.chats import Chats
    from anima.home.folders import Tenants
    from anima.mcp import Visitor
    from anima.web.serve import Chore


@command(opens=False)
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
    need_serving()
    place = commands.home_path(path or home, may_be_missing=True)
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
    with Home.create(place, name=name) if is_vacant else commands.open_home(place, set_) as opened:
        commands.need_trust(opened, may_ask=not json)
        if isinstance(place, Path) and not folders.is_any_in_use() and is_owner(as_owner):
            folders.use(place)
        if not json:
            show.remarks(opened.upkeep.doctor())
            say()
        serve_home(opened, port=port, json=json, as_owner=as_owner)
    return None


def _service(kind: str, place: Path, port: int | None) -> str:
    """What systemd or launchd reads to serve a home whenever its owner is logged in."""
    kind = ("launchd" if sys.platform == "darwin" else "systemd") if kind == "here" else kind
    line = [sys.executable, "-m", "anima.cli", "up", str(place), *(["--port", str(port)] if port is not None else [])]
    if kind == "systemd":  # which knows `%`, `$`, quotes and backslashes in the words of a command line
        signs = str.maketrans({"\\": "\\\\", '"': '\\"', "%": "%%", "$": "$$"})
        return str(commands.table_of("serve")["unit"]).format(
            line=" ".join(f'"{word.translate(signs)}"' for word in line)
        )
    if kind != "launchd":
        raise BadArguments(f"--service is systemd or launchd, not {kind!r}", hint="anima up PATH --service")
    import plistlib

    job = {"Label": "home.anima", "ProgramArguments": line, "RunAtLoad": True, "KeepAlive": {"SuccessfulExit": False}}
    return plistlib.dumps(job, sort_keys=False).decode()


def serve_home(home: Home, *, port: int | None, json: bool, as_owner: bool) -> None:
    """Serves a home that is open, and says how to come in; to the owner, with a link that lets in whoever has it. One that
    is served already is not served again, unless at a port of its own."""
    from anima.agent.chats import Chats
    from anima.home import folders
    from anima.web.serve import CHORES, serve
    from anima.web.tokens import Keyring

    def ready(url: str, first: str = "Serving on this machine until Ctrl-C.") -> None:
        # What an agent's configuration needs to live here: the same for every host that knows `mcpServers`.
        host = {"command": program_name(), "args": ["mcp", "--home", home.name, "--scope", "main"]}
        line = {"mcpServers": {"anima": host}}
        link = keyring.link(url) if is_owner(as_owner) else None
        if json:
            say_json({"home": home.name, "url": url, "link": link, "mcp": line})
        else:
            used, program = folders.in_use(), flat(program_name())
            is_used = used is not None and os.path.realpath(used) == os.path.realpath(home.name)
            where = "" if is_used else f" --home {flat(home.name)}"
            more = f"The link works once, for ten minutes; then: {program} token link{where}" if link else ""
            say(f"{first} {more}".rstrip())
            say(f"Open:  {link or f'{url}, with a link from {program} token link{where} at a terminal'}")
            say(f"Agent: {flat(json_text.dumps(line, ensure_ascii=False))}")
            say(f"Talk:  {_talking(home, program, where)}")
        sys.stdout.flush()

    keyring = Keyring(home.credentials, clock=home.clock)
    if port is None and (url := keyring.served_at()):
        ready(url, "Another program serves it already.")
        return
    chats = Chats(home)
    chores = [*CHORES, *on_channels(chats)]
    serve(home, keyring=keyring, port=port, ready=ready, mcp=_guest(), chats=chats, chores=chores)
    if not json:
        whisper("stopped; nothing is half done")


def on_channels(chats: Chats) -> list[Chore]:
    """Being present on each channel that the owner switched on; nothing heavy is imported before."""
    from anima.connect.channels.presence import KINDS, Accounts, attend
    from anima.web.serve import Chore

    def attending(kind: str, home: Home, bulletin: object, stop: Event) -> None:
        account = Accounts(home).get(kind)
        if account.on and not account.stopped:
            attend(home, chats, kind, stop)

    return [Chore(name=kind, every=5, work=partial(attending, kind)) for kind in KINDS]


@command(opens=False)
def serve(home: str | None, url: str, homes: int, megabytes: int, log_json: bool, json: bool, **asked: Any) -> None:
    need_serving()
    from anima.home import folders
    from anima.web.homes import Fleetwise
    from anima.web.serve import serve_fleet
    from anima.web.telemetry import log_as_json

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

    how = Fleetwise(url=url, most=homes, most_bytes=megabytes * 2**20, **asked)
    serve_fleet(fleet, os.environ, how, mcp=_guest(url, stateless=True), ready=ready)


def _talking(home: Home, program: str = "anima", where: str = "") -> str:
    """How to talk with the agent, and what answers."""
    from anima.agent import PRACTICE
    from anima.agent.models import Models

    try:
        name = Models.of(home).choice().name
    except HomeError as error:
        return f"{program} chat{where}, or Chat on the page; but {error}"
    through = (
        f"practice answers; {program} model NAME{where} sets a model" if name == PRACTICE else f"{flat(name)} answers"
    )
    return f"{program} chat{where}, or Chat on the page; {through}"


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


_LISTED, _WITHOUT_ID = ("token", "list"), ("create", "list")
_TODAY = dict.fromkeys(("requests", "tokens"), " today")
RIGHTS: dict[str, Access] = {"owner": "rw", "write": "rw", "read": "ro"}
_ACTIONS = "create list show suspend resume export erase quota token".split()
_KINDS = ("bytes", "documents", "requests", "tokens")


@command(
    opens=False,
    owners=lambda given: given["action"] not in ("list", "show") and (given["action"], given["name"]) != _LISTED,
)
def tenant(
    action: str, name: str | None, whose: str | None, id: str | None, home: str | None, yes: bool, **asked: Any
) -> Reply:
    from anima.home.folders import export_tenant, tenants

    address = home or os.environ.get("DATABASE_URL")
    if not address:
        raise BadArguments("which database?", hint="say --home postgresql://…, or set DATABASE_URL")
    known = tenants(address)
    if action == "token":
        return _token(known, name, whose, id, asked)
    if action not in _ACTIONS or (name is None) != (action == "list"):
        raise BadArguments("a tenant is named, or all are listed", hint=f"one of {', '.join(_ACTIONS)}")
    if action in ("list", "show") or name is None:
        return _shown(known.all() if name is None else [known.show(name)], is_one=name is not None)
    if action == "export":
        if whose is None:
            raise BadArguments("export to which folder?", hint=f"anima tenant export {flat(name)} FOLDER")
        made = export_tenant(address, name, whose)
        return Reply(made, [f"{flat(each.path)}  {each.size:,} bytes" for each in made] or "no home of theirs")
    if action == "quota":
        quotas = {kind: asked[kind] for kind in _KINDS if asked[kind] is not None}
        if not quotas:
            raise BadArguments("a quota of what?", hint=f"say {', '.join(f'--{kind} N' for kind in _KINDS)}")
        known.set_quota(name, quotas)
        told = f"{flat(name)} may have " + ", ".join(
            f"{most:,} {k}" if most else f"any {k}" for k, most in quotas.items()
        )
        return Reply({"tenant": name, "quota": quotas}, told)
    if action == "create":
        told = f"{flat(name)} is a tenant" + ("" if known.create(name) else " already")
    elif action == "erase":
        if not yes:
            need_person("erasing needs a person at a terminal, or --yes; nothing was changed", hint="anima tenant show")
            click.confirm(f"Erase {flat(name)} with every home of theirs?", abort=True, err=True)
        gone, left = known.erase(name)
        told = f"erased {flat(name)}: {counted(gone, 'row')}, and no table has one left\nstill out of reach: {left}"
    else:
        known.suspend(name, again=action == "resume")
        told = f"{flat(name)} is {'suspended' if action == 'suspend' else 'open again'}"
    return Reply({"tenant": name, "action": action, "said": told}, told)


def _shown(found: Sequence[Any], *, is_one: bool) -> Reply:
    def shown() -> None:
        drawn = table("tenant", "made", "suspended", "agents", "rows", "bytes")
        for each in found:
            dates = (f"{each.made:%Y-%m-%d}", f"{each.suspended:%Y-%m-%d}" if each.suspended else "")
            drawn.add_row(flat(each.name), *dates, flat(", ".join(each.agents)), f"{each.rows:,}", f"{each.bytes:,}")
        console().print(drawn)
        for kind, (used, most) in found[0].usage.items() if is_one else ():
            say(f"{kind:<10} {used:>15,}{f' of {most:,}' if most is not None else ''}{_TODAY.get(kind, '')}")

    return Reply(found, shown)


def _token(known: Tenants, verb: str | None, tenant: str | None, id: str | None, asked: Mapping[str, Any]) -> Reply:
    from anima.web.tokens import Pass, digest_of, new_secret

    if tenant is None or verb not in ("create", "list", "rotate", "revoke") or (id is None) != (verb in _WITHOUT_ID):
        hint = "anima tenant token create|list TENANT, or rotate|revoke TENANT ID"
        raise BadArguments("a token is made for a tenant, and rotated or revoked by its id", hint=hint)
    if verb == "list":
        found, lines = known.tokens(tenant), []
        for each in found:
            rights = {"owner": "owner", "page": "browser"}.get(each["kind"]) or f"{each['scope']} {each['access']}"
            until = f"until {each['expires']:%Y-%m-%d}" if each["expires"] else "until revoked"
            lines.append(f"{each['id']}  {flat(each['agent']):<12} {rights:<12} {until:<16} {flat(each['name'])}")
        return Reply(found, lines or "no tokens; anima tenant token create makes one")
    if verb == "revoke" and id is not None:
        known.revoke_token(tenant, id)
        return Reply({"revoked": id}, f"revoked: {flat(id)}, and whatever was made with it")
    held = [Pass(**row) for row in known.tokens(tenant) if row["id"] == id and row["kind"] != "page"]
    if id is not None and not held:
        hint = f"anima tenant token list {flat(tenant)}"
        raise NotFound(f"there is no token {flat(id)!r} to rotate", hint=hint)
    made = held[0] if held else _new(asked)
    secret = new_secret(made)
    if id is None:
        known.add_token(tenant, plain(made) | {"expires": made.expires}, bytes.fromhex(digest_of(secret)))
        whisper(f"token {made.id}, until {made.expires:%Y-%m-%d}; it is shown only now")
    else:
        grace = timedelta(hours=asked["grace"])
        known.rotate_token(tenant, id, bytes.fromhex(digest_of(secret)), grace=grace)
        hours = counted(asked["grace"], "hour")
        whisper(f"the secret before works {f'for {hours} more' if grace else 'no more'}; this one is shown only now")
    return Reply({**plain(made), "tenant": tenant, "token": secret}, secret)


def _new(asked: Mapping[str, Any]) -> Any:
    from anima.web.tokens import new_pass

    if asked["rights"] not in RIGHTS:
        raise BadArguments(f"there are no rights {asked['rights']!r}; there are {', '.join(RIGHTS)}")
    is_owner = asked["rights"] == "owner"
    return new_pass(
        "owner" if is_owner else "agent",
        name=asked["called"],
        scope=None if is_owner else Scope.parse(asked["scope"]),
        now=datetime.now(UTC),
        agent=asked["agent"],
        sender=None if is_owner else asked["sender"],
        access=RIGHTS[asked["rights"]],
        lifetime=timedelta(days=asked["days"]),
    )

"""Commands that serve homes, up serve; tenant, for whoever runs a database of them (create, list, show, suspend, resume, export, erase,
quota, token); and that let agents in: connect hook, a home's place in other programs; token mcp, who may come and by which protocol.

Promise: with `mcp` standard output belongs to the protocol, so everything else is said on standard error; the scope must
be told; over HTTP nothing is answered without a token. What serves is imported only when it is needed.
"""

from __future__ import annotations

import json as json_text
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from anima.cli import command as commands
from anima.cli import show
from anima.cli.command import Reply, command, is_owner, need_serving, need_trust
from anima.cli.show import console, counted, flat, inert, need_person, plain, say, say_json, table, whisper
from anima.errors import BadArguments, Damaged, HomeError, NotFound, Refused
from anima.model import Access, Scope

if TYPE_CHECKING:
    from threading import Event

    from starlette.requests import Request

    from anima import Home
    from anima.agent.chats import Chats
    from anima.connect.connections import Connection, Step
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
            hint = "it runs anima up with DATABASE_URL"
            raise BadArguments("a service of a home in a database is yours to write", hint=hint)
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
    line = [sys.executable, "-m", "anima", "up", str(place), *(["--port", str(port)] if port is not None else [])]
    if kind == "systemd":  # which knows `%`, `$`, quotes and backslashes in the words of a command line
        signs = str.maketrans({"\\": "\\\\", '"': '\\"', "%": "%%", "$": "$$"})
        return str(show.table_of("serve")["unit"]).format(line=" ".join(f'"{word.translate(signs)}"' for word in line))
    if kind != "launchd":
        raise BadArguments(f"--service is systemd or launchd, not {kind!r}", hint="anima up PATH --service")
    import plistlib

    job = {"Label": "home.anima", "ProgramArguments": line, "RunAtLoad": True, "KeepAlive": {"SuccessfulExit": False}}
    return plistlib.dumps(job, sort_keys=False).decode()


def serve_home(home: Home, *, port: int | None, json: bool, as_owner: bool) -> None:
    """Serves a home that is open, and says how to come in; to the owner, with a link that lets in whoever has it. One that
    is served already is not served again, unless at a port of its own."""
    from anima.agent.chats import Chats
    from anima.connect.connections import entry_of
    from anima.home import folders
    from anima.web.serve import CHORES, serve
    from anima.web.tokens import Keyring

    def ready(url: str, first: str = "Serving on this machine until Ctrl-C.") -> None:
        line = entry_of(home)
        link = keyring.link(url) if is_owner(as_owner) else None
        if json:
            say_json({"home": home.name, "url": url, "link": link, "mcp": line})
        else:
            used = folders.in_use()
            is_used = used is not None and os.path.realpath(used) == os.path.realpath(home.name)
            ours = partial(show.called, home="" if is_used else home.name)
            anew = ours("token link")
            more = f"The link works once, for ten minutes; then: {anew}" if link else ""
            say(f"{first} {more}".rstrip())
            say(f"Open:  {link or f'{url}, with a link from {anew} at a terminal'}")
            say(f"Agent: {flat(json_text.dumps(line, ensure_ascii=False))}")
            say(f"Talk:  {_talking(home, ours)}")
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
    from anima.web.guard import log_as_json
    from anima.web.homes import Fleetwise
    from anima.web.serve import serve_fleet

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


def _talking(home: Home, ours: Callable[[str], str] = show.called) -> str:
    """How to talk with the agent, and what answers."""
    from anima.agent import PRACTICE
    from anima.agent.models import Models

    try:
        name = Models.of(home).choice().name
    except HomeError as error:
        return f"{ours('chat')}, or Chat on the page; but {error}"
    through = f"practice answers; {ours('model NAME')} sets a model" if name == PRACTICE else f"{flat(name)} answers"
    return f"{ours('chat')}, or Chat on the page; {through}"


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
        room = ", ".join(f"{most:,} {kind}" if most else f"any {kind}" for kind, most in quotas.items())
        return Reply({"tenant": name, "quota": quotas}, f"{flat(name)} may have {room}")
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
    from anima.connect.connections import make, settings_edit

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
        again = show.called(f"connect {host.name}")
        lines += [then, f"Then say {again}: it tells whether that session reached this home."]
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
    if name and (action in ("list", "link", "path") or (action == "make" and asked["name"])):
        raise BadArguments(f"token {action} has no place for {name!r}", hint="anima token --help")
    if action == "make":
        scope = Scope.parse(asked["scope"]) if asked["scope"] else None
        about = {"name": name or asked["name"] or "token", "sender": asked["sender"], "days": asked["days"]}
        made, secret = keyring.make_for(home.agent, scope=scope, **about)
        whisper(
            f"{'an agent' if scope else 'the owner'}'s token {made.id}, until {made.expires:%Y-%m-%d}; it is shown only now"
        )
        return Reply({**plain(made), "token": secret}, secret)
    if action == "list":
        found, lines = keyring.all(), []
        for each in found:
            kind = {"owner": "owner", "page": "browser"}.get(each.kind) or f"agent {each.scope}"
            lines.append(f"{each.id}  {kind:<16} until {str(each.expires or 'revoked')[:10]:<10} {flat(each.name)}")
        return Reply(found, lines or f"no tokens; {show.called('token make')} makes one")
    if action == "link":
        from anima.web import homes, serve

        at = keyring.served_at()
        link = keyring.link(at if at and not asked["port"] else f"http://{homes.HOST}:{asked['port'] or serve.PORT}")
        now = "" if at else "; nobody serves it just now"
        whisper(f"it works once, for ten minutes, while the home is served{now}")
        return Reply({"link": link}, link)
    if action == "path":
        keyring.owner_token()
        path = os.fspath(keyring.folder / "owner.token")
        return Reply({"path": path}, flat(path))
    if action not in ("revoke", "clear"):
        raise BadArguments(f"there is no action {action!r}; there are make, list, revoke, clear, link, path")
    if not name:
        raise BadArguments(f"say which token{' or agent' * (action == 'clear')}", hint="anima token list")
    if action == "revoke":
        gone = keyring.revoke(name)
        return Reply({"revoked": gone.id}, f"revoked: {gone.id} ({flat(gone.name)})")
    meant = [one.credential for one in keyring.all() if name in (one.id, one.name)]
    meant += [_credential(name), *([_credential(None)] if name == "mcp" else [])]  # which we call `mcp` ourselves, too
    home.sessions.clear_credentials(*meant)
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
        said = "--approve-here is for --scope main on standard input and output; elsewhere whoever asks could answer"
        raise BadArguments(said, hint="the owner decides with anima review, or on the page")
    need_serving("the MCP server", "mcp mcp_types starlette uvicorn")
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

"""The command for whoever runs a database of homes: tenant (create, list, show, suspend, resume, export, erase, quota, token)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from anima.cli.command import Number, Reply, argument, command, flag, option
from anima.cli.show import console, counted, flat, need_person, plain, say, table, whisper
from anima.errors import BadArguments
from anima.home.folders import export_tenant, tenants
from anima.model import Access, Scope

if TYPE_CHECKING:
    from anima.home.folders import Tenants

_LISTED, _WITHOUT_ID = ("token", "list"), ("create", "list")
_TODAY = dict.fromkeys(("requests", "tokens"), " today")
RIGHTS: dict[str, Access] = {"owner": "rw", "write": "rw", "read": "ro"}
_ACTIONS = "create list show suspend resume export erase quota token".split()
_KINDS = ("bytes", "documents", "requests", "tokens")


@command(
    argument("action", help="create, list, show, suspend, resume, export, erase, quota or token."),
    argument("name", default=None, help="The tenant; list takes none. Of token: create, list, rotate or revoke."),
    argument("whose", default=None, help="Of token: the tenant. Of export: the folder."),
    argument("id", default=None, help="Of token rotate and revoke: the token."),
    option("--home", metavar="ADDRESS", help="The database, as its owner. Default: DATABASE_URL."),
    flag("--yes", help="Erase: do not ask."),
    option("--agent", metavar="ID", default="main", help="A new token: whose home it opens."),
    option("--rights", metavar="RIGHTS", default="owner", help="A new token: owner, or an agent's to write or read."),
    option("--scope", metavar="SCOPE", default="main", help="A new agent's token: who is listening."),
    option("--sender", metavar="ID", help="A new agent's token: who speaks through it, as channel:id."),
    option("--called", metavar="NAME", default="token", help="A new token: what to call it."),
    option("--days", type=Number(int, 1, 36_500), default=90, help="A new token: how long it works."),
    option("--grace", type=Number(int, 0, 8_760), default=0, help="Rotate: hours that the old secret still works."),
    option("--bytes", type=Number(int, 0), help="Quota: of documents, conversations and their past; 0 for none."),
    option("--documents", type=Number(int, 0), help="Quota: how many there may be."),
    option("--requests", type=Number(int, 0), help="Quota: how many a day."),
    option("--tokens", type=Number(int, 0), help="Quota: of what agents do by themselves, a day."),
    opens=False,
    owners=lambda given: given["action"] not in ("list", "show") and (given["action"], given["name"]) != _LISTED,
)
def tenant(
    action: str, name: str | None, whose: str | None, id: str | None, home: str | None, yes: bool, **asked: Any
) -> Reply:
    """Make, show, suspend and erase the tenants of a database of homes, and the tokens that let people and agents in.

    \b
    anima tenant create acme --home postgresql://postgres@db/anima
    anima tenant list
    anima tenant suspend acme       nobody opens a home of theirs, until resume
    anima tenant export acme /srv/acme
    anima tenant erase acme --yes
    anima tenant quota acme --bytes 100000000 --requests 50000
    anima tenant token create acme --called ana
    anima tenant token create acme --rights write --scope main --days 30
    anima tenant token rotate acme 3f9c2a71b0de --grace 24
    """
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
    def show() -> None:
        drawn = table("tenant", "made", "suspended", "agents", "rows", "bytes")
        for each in found:
            dates = (f"{each.made:%Y-%m-%d}", f"{each.suspended:%Y-%m-%d}" if each.suspended else "")
            drawn.add_row(flat(each.name), *dates, flat(", ".join(each.agents)), f"{each.rows:,}", f"{each.bytes:,}")
        console().print(drawn)
        for kind, (used, most) in found[0].usage.items() if is_one else ():
            say(f"{kind:<10} {used:>15,}{f' of {most:,}' if most is not None else ''}{_TODAY.get(kind, '')}")

    return Reply(found, show)


# -- tokens ----------------------------------------------------------------------------------------------------------------


def _token(known: Tenants, verb: str | None, tenant: str | None, id: str | None, asked: Mapping[str, Any]) -> Reply:
    from anima.web.tokens import digest_of, new_secret

    if tenant is None or verb not in ("create", "list", "rotate", "revoke") or (id is None) != (verb in _WITHOUT_ID):
        hint = "anima tenant token create|list TENANT, or rotate|revoke TENANT ID"
        raise BadArguments("a token is made for a tenant, and rotated or revoked by its id", hint=hint)
    if verb == "list":
        return _listed(known.tokens(tenant))
    if verb == "revoke" and id is not None:
        known.revoke_token(tenant, id)
        return Reply({"revoked": id}, f"revoked: {flat(id)}, and whatever was made with it")
    made = _new(asked) if id is None else _held(known, tenant, id)
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


def _held(known: Tenants, tenant: str, id: str) -> Any:
    from anima.errors import NotFound
    from anima.web.tokens import Pass

    for row in known.tokens(tenant):
        if row["id"] == id and row["kind"] != "page":
            return Pass(**row)
    raise NotFound(f"there is no token {flat(id)!r} to rotate", hint=f"anima tenant token list {flat(tenant)}")


def _listed(found: list[dict[str, Any]]) -> Reply:
    lines = []
    for each in found:
        rights = {"owner": "owner", "page": "browser"}.get(each["kind"]) or f"{each['scope']} {each['access']}"
        until = f"until {each['expires']:%Y-%m-%d}" if each["expires"] else "until revoked"
        lines.append(f"{each['id']}  {flat(each['agent']):<12} {rights:<12} {until:<16} {flat(each['name'])}")
    return Reply(found, lines or "no tokens; anima tenant token create makes one")

"""The command for whoever runs a database of homes: tenant (create, list, show, suspend, resume, erase)."""

from __future__ import annotations

import os

import click

from anima.cli.command import Reply, argument, command, flag, option
from anima.cli.show import console, counted, flat, need_person, table
from anima.errors import BadArguments
from anima.folders import tenants


@command(
    argument("action", help="create, list, show, suspend, resume or erase."),
    argument("name", default=None, help="The tenant; list takes none."),
    option("--home", metavar="ADDRESS", help="The database, as its owner. Default: DATABASE_URL."),
    flag("--yes", help="Erase: do not ask."),
    opens=False,
    owners=lambda given: given["action"] not in ("list", "show"),
)
def tenant(action: str, name: str | None, home: str | None, yes: bool) -> Reply:
    """Make, show, suspend and erase the tenants of a database of homes.

    \b
    anima tenant create acme --home postgresql://postgres@db/anima
    anima tenant list
    anima tenant suspend acme       nobody opens a home of theirs, until resume
    anima tenant erase acme --yes
    """
    address = home or os.environ.get("DATABASE_URL")
    if not address:
        raise BadArguments("which database?", hint="say --home postgresql://…, or set DATABASE_URL")
    known, actions = tenants(address), "create list show suspend resume erase".split()
    if action not in actions or (name is None) != (action == "list"):
        raise BadArguments("a tenant is named, or all are listed", hint=f"one of {', '.join(actions)}")
    if action in ("list", "show") or name is None:
        found = known.all() if name is None else [known.show(name)]

        def show() -> None:
            drawn = table("tenant", "made", "suspended", "agents", "rows", "bytes")
            for each in found:
                dates = (f"{each.made:%Y-%m-%d}", f"{each.suspended:%Y-%m-%d}" if each.suspended else "")
                drawn.add_row(
                    flat(each.name), *dates, flat(", ".join(each.agents)), f"{each.rows:,}", f"{each.bytes:,}"
                )
            console().print(drawn)

        return Reply(found, show)
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

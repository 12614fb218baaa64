"""The command `channel`: where else people talk with the agent, switched on and off."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

from anima.cli.command import HOME, JSON, Reply, argument, command, flag, need_trust, option
from anima.cli.model import typed
from anima.cli.show import flat, need_person, whisper
from anima.errors import BadArguments

if TYPE_CHECKING:
    from anima import Home
    from anima.connect.channels.accounts import Account

VERBS = ("on", "off", "run")


@command(
    argument("name", default="telegram", help="Which channel; there is telegram."),
    argument("verb", default=None, help="on, off, or run until Ctrl-C; without one, how it stands."),
    flag("--token", help="Ask for the bot's token without showing it, or read it from standard input."),
    option("--url", metavar="URL", help="A server of your own that speaks as the channel's does."),
    option("--owner", metavar="ID", help="Your own id there: whoever writes with it is you."),
    flag("--remove", help="Take the account away, with its token."),
    HOME,
    JSON,
    owners=lambda given: any(given[each] for each in ("verb", "token", "url", "owner", "remove")),
)
def channel(
    home: Home, name: str, verb: str | None, token: bool, url: str | None, owner: str | None, remove: bool
) -> Reply:
    """Show whether people can talk with the agent on Telegram, or switch that on or off. It is off until you switch it on,
    and runs where the home is served (anima up), or with run.

    Alone with you it is your own conversation; anybody else has a memory of their own, and so has each group.

    \b
    anima channel telegram --token     the token that BotFather gave you
    anima channel telegram --owner 4711
    anima channel telegram on
    anima channel                      how it stands
    """
    from anima.connect.channels.accounts import Account, Accounts
    from anima.connect.channels.telegram import Telegram

    accounts = Accounts(home)
    if verb is not None and verb not in VERBS:
        raise BadArguments(f"{verb!r} is none of {', '.join(VERBS)}", hint="anima channel telegram on")
    before = accounts.get(name)
    account = Account() if remove else before
    if token or url is not None:
        secret = typed("Token") if token else account.token
        account = account._replace(token=secret, url=account.url if url is None else url, stopped="")
        Telegram(account.token, url=account.url)  # says what is wrong with them
    if owner is not None:
        need_person("who the owner is, is said at a terminal or on the page", hint="anima channel telegram --owner ID")
        home.configure("owner", list(dict.fromkeys([*home.config.owner, f"{name}:{owner}"])))
        whisper("a home that is served already takes it up when it is started anew")
    if verb in ("on", "run"):
        need_trust(home, may_ask=True)
        if not account.token:
            raise BadArguments(f"there is no token for {name}", hint=f"anima channel {name} --token")
    if verb in ("on", "off"):
        account = account._replace(on=verb == "on", stopped="")
    if account != before:
        accounts.put(name, account)
    if verb == "run":
        _run(home, name)
    return Reply({"channel": name, "on": account.on, "stopped": account.stopped}, _shown(home, name, account))


def _run(home: Home, name: str) -> None:
    from anima.agent.chats import Chats
    from anima.connect.channels.accounts import attend

    whisper(f"{name}: until Ctrl-C")
    with closing(Chats(home)) as chats:
        attend(home, chats, name, threading.Event())
    whisper("another process is there, or it was switched off")


def _shown(home: Home, name: str, account: Account) -> list[str]:
    owners = [each for each in home.config.owner if each.startswith(f"{name}:")]
    how = "has no token" if not account.token else f"stopped: {account.stopped}" if account.stopped else None
    lines = [f"{flat(name)} {flat(how or ('is on' if account.on else 'is off'))}."]
    you = ", ".join(map(flat, owners)) or "nobody there yet: write to the bot, which says what to set"
    lines.append(f"You are {you}.")
    others = home.config.channels
    lines.append(f"Answered beside you: {others.others}; for at most {others.day_tokens:,} tokens a day.")
    return lines

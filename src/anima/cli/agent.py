"""Commands of the agent that speaks: model schedule channel. Which model answers; what the agent does by itself; where else people
talk with it.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from anima.agent import PRACTICE, need_chat
from anima.cli.command import Reply, command, need_trust
from anima.cli.show import called, counted, flat, inert, need_person, patient, whisper
from anima.errors import BadArguments

if TYPE_CHECKING:
    from anima import Home
    from anima.agent.rituals import Rituals


@command(owners=lambda given: bool(given["name"]))
def model(home: Home, name: str | None, url: str | None, key: bool, test: bool, remove: bool) -> Reply:
    from anima.agent.models import Models

    models = Models.of(home)
    if name is None and (url or key or remove):
        raise BadArguments("say which model is meant", hint="anima model NAME --url URL")
    if remove:
        models.forget(name or "")
    elif name is not None:
        models.use(name, url=url or "", key=typed() if key else "", ask=typed if sys.stdin.isatty() else None)
    found, offers, lines = models.all(), models.offers(), []
    for each in found:
        about = "a small program in place of a model" if each.name == PRACTICE else f"{each.url}, key: {each.key}"
        lines.append(f"{'*' if each.used else ' '} {flat(each.name)}  ({flat(about)})")
    for variable, service in offers:
        lines.append(f"There is a key in {variable}, which nobody uses. To use it: {called(f'model {service}:NAME')}")
    value = {"used": models.choice(), "models": found, "offers": [variable for variable, _ in offers]}
    if test:
        need_chat()
        from anima.agent.conversation import asked_once

        with patient("asking the model"):
            said = asyncio.run(asked_once(models.made(models.choice()), "Say hello in one short sentence."))
        value["said"] = said
        lines.append(f"it says: {flat(said)}")
    return Reply(value, lines)


def typed(what: str = "Key") -> str:
    """A secret: typed without being shown, or a line of what is piped in."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    return str(click.prompt(f"{what} (not shown)", hide_input=True, err=True, default="", show_default=False)).strip()


_SCHEDULE_VERBS = ("on", "off", "run", "pause", "resume")


@command(owners=lambda given: bool(given["verb"]))
def schedule(home: Home, verb: str | None, name: str | None, yes: bool) -> Reply:
    need_chat()
    from anima.agent.rituals import Rituals

    rituals = Rituals(home)
    if verb is not None and verb not in _SCHEDULE_VERBS:
        raise BadArguments(f"{verb!r} is none of {', '.join(_SCHEDULE_VERBS)}", hint="anima schedule on")
    if verb in ("run", "pause", "resume") and not name:
        raise BadArguments(f"say which ritual: anima schedule {verb} NAME", hint="anima schedule lists them")
    if verb == "run":
        need_trust(home, may_ask=True)
        with patient(f"{name} runs"):
            done = rituals.run(name or "")
        told = f": {inert(done.text)}" if done.text else f", {done.tokens} tokens"
        return Reply(done, f"{done.status}{told}")
    if verb == "on":
        need_trust(home, may_ask=True)
        cost = rituals.estimate()
        whisper(
            f"About {counted(cost['runs'], 'run')} and {cost['tokens']:,} tokens a day for prompts alone; "
            f"never more than {cost['most']:,}."
        )
        if not yes and sys.stdin.isatty():
            click.confirm("Switch it on?", abort=True, err=True)
        rituals.switch(on=True)
    elif verb == "off":
        rituals.switch(on=False)
    elif verb:
        rituals.pause(name or "", paused=verb == "pause")
    return Reply(*_schedule_shown(rituals))


def _schedule_shown(rituals: Rituals) -> tuple[dict[str, object], list[str]]:
    from anima.agent.schedule import next_run

    state, (pages, wrong) = rituals.state(), rituals.pages()
    now, zone = rituals.now(), rituals.zone()
    cost = rituals.estimate()
    spent = state.spent if state.day == now.date().isoformat() else 0
    how = "stopped" if state.on and state.stopped else "on" if state.on else "off"
    lines = [f"The schedule is {how}; {spent:,} of {cost['most']:,} tokens are spent today."]
    if how == "stopped":
        lines.append(f"It was stopped: {flat(state.stopped)}. To go on: {called('schedule on')}")
    rows = []
    for each in pages:
        ran, at = state.ran.get(each.name), next_run(each, state, now, zone)
        is_paused = each.name in state.paused
        row = {"name": each.name, "when": each.when, "next": at, "paused": is_paused}
        rows.append(row | (asdict(ran) if ran else {}))
        coming = "paused" if is_paused else f"next {at.astimezone(now.tzinfo):%a %H:%M}" if at else ""
        last = f"last {ran.last[:16]}: {flat(ran.outcome)}" if ran and ran.last else ""
        told = (f"{flat(each.name):<16}", flat(each.when), coming if how == "on" else "", last)
        lines.append("  ".join(filter(None, told)))
    if not pages:
        lines.append("No page asks for anything: HEARTBEAT.md is empty, and routines/ has no page.")
    lines += [f"cannot run: {flat(each)}" for each in wrong]
    value: dict[str, object] = {"on": state.on, "stopped": state.stopped, "spent": spent, "most": cost["most"]}
    return value | {"estimate": cost, "rituals": rows, "wrong": wrong}, lines


_CHANNEL_VERBS = ("on", "off", "run")


@command(owners=lambda given: any(given[each] for each in ("verb", "token", "url", "owner", "remove")))
def channel(
    home: Home, name: str, verb: str | None, token: bool, url: str | None, owner: str | None, remove: bool
) -> Reply:
    from anima.connect.channels.presence import Account, Accounts, attend
    from anima.connect.channels.telegram import Telegram

    accounts = Accounts(home)
    if verb is not None and verb not in _CHANNEL_VERBS:
        raise BadArguments(f"{verb!r} is none of {', '.join(_CHANNEL_VERBS)}", hint="anima channel telegram on")
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
        from anima.agent.chats import Chats

        whisper(f"{name}: until Ctrl-C")
        with closing(Chats(home)) as chats:
            attend(home, chats, name, threading.Event())
        whisper("another process is there, or it was switched off")
    owners, others = [each for each in home.config.owner if each.startswith(f"{name}:")], home.config.channels
    how = "has no token" if not account.token else f"stopped: {account.stopped}" if account.stopped else None
    lines = [
        f"{flat(name)} {flat(how or ('is on' if account.on else 'is off'))}.",
        f"You are {', '.join(map(flat, owners)) or 'nobody there yet: write to the bot, which says what to set'}.",
        f"Answered beside you: {others.others}; for at most {others.day_tokens:,} tokens a day.",
    ]
    lines += [] if account.token else [f"Next: {called(f'channel {name} --token')}"]
    return Reply({"channel": name, "on": account.on, "stopped": account.stopped}, lines)

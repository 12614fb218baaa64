"""The command `schedule`: what the agent does by itself, switched on and off, listed, run once, paused."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from anima.cli.command import AGENT, HOME, JSON, Reply, argument, command, flag, need_trust
from anima.cli.show import counted, flat, inert, patient, whisper
from anima.errors import BadArguments

if TYPE_CHECKING:
    from anima import Home
    from anima.agent.rituals import Rituals

VERBS = ("on", "off", "run", "pause", "resume")


@command(
    argument("verb", default=None, help="on, off, run, pause or resume; without one, what there is."),
    argument("name", default=None, help="A ritual: heartbeat, boot, or a page of routines/."),
    flag("--yes", help="Do not ask."),
    AGENT,
    HOME,
    JSON,
    owners=lambda given: bool(given["verb"]),
)
def schedule(home: Home, verb: str | None, name: str | None, yes: bool) -> Reply:
    """Show what the agent does by itself and when, or switch it on or off. It is off until you switch it on, and runs
    where the home is served (anima up).

    HEARTBEAT.md says what to look after now and then; a page routines/NAME.md, what to do at a time or when a document is new;
    BOOT.md, what a start asks for. What they tell comes to you alone.

    \b
    anima schedule                 what there is, when each runs next, and today's tokens
    anima schedule on              what a day would cost, then on
    anima schedule run weekly      one run, now
    anima schedule pause weekly
    anima schedule off
    """
    from anima.agent import need_chat

    need_chat()
    from anima.agent.rituals import Rituals

    rituals = Rituals(home)
    if verb is not None and verb not in VERBS:
        raise BadArguments(f"{verb!r} is none of {', '.join(VERBS)}", hint="anima schedule on")
    if verb in ("run", "pause", "resume") and not name:
        raise BadArguments(f"say which ritual: anima schedule {verb} NAME", hint="anima schedule lists them")
    if verb == "run":
        need_trust(home, may_ask=True)
        with patient(f"{name} runs"):
            done = rituals.run(name or "")
        return Reply(
            done, f"{done.status}: {inert(done.text)}" if done.text else f"{done.status}, {done.tokens} tokens"
        )
    if verb == "on":
        need_trust(home, may_ask=True)
        cost = rituals.estimate()
        whisper(
            f"About {counted(cost.runs, 'run')} and {cost.tokens:,} tokens a day for prompts alone; never more than {cost.most:,}."
        )
        if not yes and sys.stdin.isatty():
            click.confirm("Switch it on?", abort=True, err=True)
        rituals.switch(on=True)
    elif verb == "off":
        rituals.switch(on=False)
    elif verb:
        rituals.pause(name or "", paused=verb == "pause")
    return Reply(*_shown(rituals))


def _shown(rituals: Rituals) -> tuple[dict[str, object], list[str]]:
    from anima.agent.schedule import next_run

    state, (pages, wrong) = rituals.state(), rituals.pages()
    now, zone = rituals.now(), rituals.zone()
    cost = rituals.estimate()
    spent = state.spent if state.day == now.date().isoformat() else 0
    how = "stopped" if state.on and state.stopped else "on" if state.on else "off"
    lines = [f"The schedule is {how}; {spent:,} of {cost.most:,} tokens are spent today."]
    if how == "stopped":
        lines.append(f"It was stopped: {flat(state.stopped)}. To go on: anima schedule on")
    rows = []
    for each in pages:
        ran, at = state.ran.get(each.name), next_run(each, state, now, zone)
        rows.append(
            {"name": each.name, "when": each.when, "next": at, "paused": each.name in state.paused}
            | (asdict(ran) if ran else {})
        )
        coming = "paused" if each.name in state.paused else f"next {at.astimezone(now.tzinfo):%a %H:%M}" if at else ""
        last = f"last {ran.last[:16]}: {flat(ran.outcome)}" if ran and ran.last else ""
        lines.append(
            "  ".join(filter(None, (f"{flat(each.name):<16}", flat(each.when), coming if how == "on" else "", last)))
        )
    if not pages:
        lines.append("No page asks for anything: HEARTBEAT.md is empty, and routines/ has no page.")
    lines += [f"cannot run: {flat(each)}" for each in wrong]
    value: dict[str, object] = {"on": state.on, "stopped": state.stopped, "spent": spent, "most": cost.most}
    return value | {"estimate": cost, "rituals": rows, "wrong": wrong}, lines

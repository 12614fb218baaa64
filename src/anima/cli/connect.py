"""Commands that give a home its place in other programs: connect hook."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from anima.cli.command import Reply, argument, command, flag, need_trust, option
from anima.cli.show import flat, inert, plain, say
from anima.errors import BadArguments, Refused

if TYPE_CHECKING:
    from anima import Home
    from anima.connect.change import Step
    from anima.connect.connections import Connection


@command(
    argument("host", metavar="HOST", default=None, help="Which program; without it, all are listed."),
    flag("--remove", help="Take the host out; its files are as they were before."),
    option("--from", "file", metavar="FILE", help="Take over the settings of another system, from its own file."),
    flag("--dry-run", help="Show what would change, and change nothing."),
    flag("--yes", help="Do not ask."),
    owners=lambda given: bool(given["host"] or given["file"]) and not given["dry_run"],
)
def connect(
    home: Home, host: str | None, remove: bool, file: str | None, dry_run: bool, yes: bool, json: bool
) -> Reply | None:
    """Give the home a place in a program you have: its agent wakes up there, and keeps what you tell it.

    Shows the exact change of the program's files, then makes it. Hosts: claude-code codex cursor vscode gemini openclaw
    hermes nanobot generic. Called again, it changes nothing and tells whether a session of the program reached the home.
    With --from it takes over settings: moltbot.json or openclaw.json, nexo's agents.yaml, Carapace's rules, IronClaw's
    environment (.env), AgentScope's builder options as JSON become anima.toml; what has no counterpart is listed.

    \b
    Examples:
      anima connect
      anima connect claude-code
      anima connect codex --dry-run
      anima connect codex --remove --yes
      anima connect --from ~/.openclaw/openclaw.json --dry-run
    """
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
    chosen = host_of(host)
    if not remove:
        need_trust(home, may_ask=not json and not dry_run)
    connecting = connecting_of(home, chosen)
    steps = connecting.plan(remove=remove)
    if not json:
        _show(steps)
    if not dry_run:
        _ask(steps, yes=yes, json=json)
        (connecting.remove if remove else connecting.connect)(steps)
    return Reply(*_told(home, connecting, steps, remove=remove, dry_run=dry_run))


def _taken_over(home: Home, file: str, *, dry_run: bool, yes: bool, json: bool) -> Reply:
    """Settings of another system's, shown as a change of anima.toml and made; then what has no counterpart."""
    from pathlib import Path

    from anima.connect.change import make, settings_edit

    need_trust(home, may_ask=not json and not dry_run)
    step, found, left = settings_edit(Path(file), home.name)
    steps = (step,) if step is not None else ()
    if not json:
        _show(steps)
    if not dry_run:
        _ask(steps, yes=yes, json=json)
        make(steps)
    value = {"from": found.title, "taken": dict(found.taken), "dry_run": dry_run}
    value |= {"left": [{"key": key, "why": why} for key, why in left], "diff": "".join(s.diff for s in steps)}
    done = "nothing was changed" if dry_run or not steps else f"anima.toml has the settings of {found.title}"
    lines = [done, *(["These have no counterpart:"] if left else [])]
    return Reply(value, [*lines, *(f"  {flat(key)}: {why}" for key, why in left)])


def _show(steps: tuple[Step, ...]) -> None:
    for step in steps:
        say(inert(step.shown).rstrip("\n"))


def _ask(steps: tuple[Step, ...], *, yes: bool, json: bool) -> None:
    if not steps or yes:
        return
    if json or not sys.stdin.isatty():
        raise Refused(
            "this changes files of another program; nothing was changed", rule="needs-a-yes", hint="say --yes"
        )
    click.confirm("Change these files?", abort=True, err=True)


def _told(home: Home, connecting: Connection, steps: tuple[Step, ...], *, remove: bool, dry_run: bool) -> Any:
    from anima.connect.connections import contact_of

    host, stands = connecting.host, contact_of(connecting.spool, connecting.host)
    then = host.then.format(bundle=connecting.wiring.bundle)
    value = plain(stands) | {"said": stands.said, "changed": [str(step.path) for step in steps], "dry_run": dry_run}
    value |= {"diff": "".join(step.diff for step in steps), "then": "" if remove else then}
    if dry_run:
        return value, "nothing was changed" if steps else "there is nothing to change"
    if remove:
        return (
            value,
            f"{host.title} is as it was before" if steps else f"nothing of {flat(home.name)} is in {host.title}",
        )
    lines = [f"{host.title}: {stands.said}."]
    if stands.reports and (steps or stands.heard is None or stands.is_silent):
        lines += [then, f"Then say anima connect {host.name}: it tells whether that session reached this home."]
    elif steps:
        lines.append(then)
    return value, lines


@command(
    argument("host", metavar="HOST", help="Which program asks."),
    argument("event", metavar="EVENT", help="Which of its events it is."),
    option("--config", metavar="PATH", help="The folder of your configuration; connect writes it down."),
    option("--home", metavar="PATH", help="The home; connect writes it down."),
    opens=False,
)
def hook(host: str, event: str, config: str | None, home: str | None) -> int:
    """Answer a hook of another program, which gives its JSON on standard input; connect sets it up.

    Whatever is wrong, the answer is empty and the exit code 0: a conversation is never stopped by it.

    \b
    Examples:
      anima hook claude-code SessionStart --home ~/aria --config ~/.config/anima < event.json
    """
    from anima.connect.hook import main

    if not home or not config:
        raise BadArguments("a hook says its --home and --config", hint="anima connect writes the whole line")
    return main([host, event, "--home", home, "--config", config])

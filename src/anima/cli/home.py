"""Commands about a home as a whole: init open up tour doctor config trust-home."""

from __future__ import annotations

import json as json_text
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from anima.cli.command import (
    HOME,
    JSON,
    SET,
    Reply,
    always,
    argument,
    command,
    flag,
    home_path,
    open_home,
    option,
    parsed,
)
from anima.cli.serve import PORT, need_serving, serve_home
from anima.cli.show import console, flat, inert, plain, say, table, whisper
from anima.errors import BadArguments, NoSuchHome, Refused
from anima.model import Scope

if TYPE_CHECKING:
    from anima import Health, Home, Prompt, Remark

_SIGNS = {"fine": ("·", "dim"), "advice": ("!", "yellow"), "damage": ("✗", "bold red")}


@command(
    argument("path", metavar="PATH", default=None, help="The folder of the home; made when it is missing."),
    option("--name", metavar="NAME", default="", help="The agent's name."),
    option("--emoji", metavar="SIGN", help="One sign to know it by."),
    option("--dialect", metavar="NAME", help="Lay it out as this dialect. Default: the one it has, else anima."),
    flag("--again", help="Make a new home where an earlier one vanished."),
    option("--home", metavar="PATH", help="The same as PATH."),
    JSON,
    opens=False,
)
def init(path: str | None, name: str, emoji: str | None, dialect: str | None, again: bool, home: str | None) -> Reply:
    """Make a home: core files from templates, for your eyes alone. Nothing that exists is touched.

    \b
    Examples:
      anima init ~/aria --name Aria --emoji 🌿
      anima init ~/aria --dialect carapace
      anima init ~/aria --again        the earlier home there is gone for good
    """
    from anima.home import Home

    place = path or home
    if not place:
        raise BadArguments("where shall the home be?", hint="anima init ~/aria --name Aria")
    before = _files_in(place)
    settings = {"dialect": dialect} if dialect else None
    with Home.create(place, name=name, emoji=emoji, again=again, settings=settings) as made:
        root, spoken, who, files = made.name, made.dialect, made.identity.resolved(), [e.path for e in made.list_all()]
    new = [file for file in files if file not in before]
    sign = f" {flat(who.emoji.value)}" if who.emoji else ""
    lines = (
        f"{flat(who.name.value)}{sign} has a home: {flat(place)}",
        f"  made: {', '.join(new)}" if new else "  everything was there already; nothing was changed",
        f"Next: anima prompt --home {flat(place)}",
    )
    value = {"home": root, "dialect": spoken, "name": who.name.value, "files": files, "made": new}
    return Reply(value, "\n".join(lines))


def _files_in(place: str) -> set[str]:
    from anima.home import Home

    try:
        with Home.open(place) as there:
            return {entry.path for entry in there.list_all()}
    except NoSuchHome:
        return set()


@command(
    argument(
        "path",
        metavar="PATH",
        default=None,
        help="Any folder: a home of OpenClaw, nexo, Carapace, IronClaw, AgentScope or ours.",
    ),
    option("--dialect", metavar="NAME", help="Read it as this dialect instead of the one detected."),
    HOME,
    JSON,
    name="open",
    opens=False,
)
def open_(path: str | None, dialect: str | None, home: str | None) -> Reply:
    """Show what a folder is and how it would be read. Changes nothing.

    \b
    Examples:
      anima open ~/clawd
      anima open ~/clawd --dialect anima
    """
    from anima.home import Home

    place = home_path(path or home)
    with Home.open(place, settings={"dialect": dialect} if dialect else None) as opened:
        prompts = {scope: opened.prompt(scope=scope) for scope in Scope}
        root, why, trusted = opened.name, opened.site.detected_by, opened.config.trusted
        name, peers, warnings, spoken = (
            opened.identity.name,
            opened.identity.peers(),
            opened.upkeep.validate(),
            opened.dialect,
        )
    scopes = {s: {"chars": len(p.text), "manifest": p.manifest} for s, p in prompts.items()}
    value = {"home": root, "dialect": spoken, "why": why, "trusted": trusted, "name": name, "peers": peers}

    def show() -> None:
        say(f"{flat(name)}, in {flat(str(place))}")
        say(f"dialect {spoken}: {flat(why)}")
        if not trusted:
            say("not trusted: its anima.toml can only make things stricter (see anima trust-home)")
        _show_scopes(prompts)
        for warning in warnings:
            say(flat(warning))

    return Reply(value | {"scopes": scopes}, show)


def _show_scopes(prompts: Mapping[Scope, Prompt]) -> None:
    drawn = table("file", *map(str, prompts), right=tuple(map(str, prompts)))
    for path in dict.fromkeys(line.path or line.role for prompt in prompts.values() for line in prompt.manifest):
        cells = [_share(prompt, path) for prompt in prompts.values()]
        if set(cells) != {"–"}:
            drawn.add_row(flat(path), *cells)
    drawn.add_row("all", *[f"{len(prompt.text):,}" for prompt in prompts.values()], style="bold")
    console().print(drawn)


def _share(prompt: Prompt, path: str) -> str:
    line = next((line for line in prompt.manifest if (line.path or line.role) == path), None)
    if line is None or line.status == "hidden":
        return "–"
    return f"{line.chars_shown:,}" if line.chars_shown and line.status in ("shown", "cut") else str(line.status)


@command(
    argument("path", metavar="PATH", default=None, help="The home; made when it is missing or empty."),
    option("--name", metavar="NAME", default="", help="The agent's name, for a home that is made now."),
    option("--serve/--no-serve", default=True, help="Serve it until Ctrl-C (the default)."),
    PORT,
    HOME,
    JSON,
    opens=False,
)
def up(
    path: str | None, name: str, serve: bool, port: int | None, home: str | None, json: bool, as_owner: bool
) -> Reply | None:
    """Bring a home up: make it if it is missing, show its health, and serve it until Ctrl-C.

    With `--no-serve` it shows the prompt and the health of the home, and ends; so it does with `--json`.

    \b
    Examples:
      anima up                       the home that is found, or a new one
      anima up ~/aria --name Aria
      anima up ~/aria --no-serve
    """
    from anima.home import Home

    if serve and not json:
        need_serving()
    place = home_path(path or home, may_be_missing=True)
    with Home.create(place, name=name) if _is_vacant(place) else Home.open(place) as opened:
        prompt, remarks, root = opened.prompt(scope=Scope.MAIN), opened.upkeep.doctor(), opened.name
        if serve and not json:
            _show_remarks(remarks)
            say()
            serve_home(opened, port=port, json=False, as_owner=as_owner)
            return None

    def show() -> None:
        say(inert(prompt.text))
        say()
        _show_remarks(remarks)
        shown = flat(str(place))
        say(f"Next: anima prompt --explain --home {shown}, anima open {shown}, anima tour")

    return Reply({"home": root, "prompt": prompt.text, "health": remarks}, show)


def _is_vacant(place: Path) -> bool:
    """Whether nothing stands there. A folder with anything in it is opened as it is, in whatever dialect."""
    try:
        return not any(place.iterdir())
    except FileNotFoundError:
        return True
    except OSError:
        return False


@command(flag("--fast", help="Do not wait for Enter between the steps."), JSON, opens=False)
def tour(fast: bool, json: bool) -> Reply:
    """Take a guided minute in a temporary home that is thrown away afterwards.

    \b
    Examples:
      anima tour
      anima tour --fast
    """
    from anima.cli.tour import told, walk

    return Reply(told() if json else None, lambda: walk(wait=not fast))


@command(
    HOME,
    flag("--repair", help="Mend what can be mended; no document is changed."),
    flag("--dry-run", help="With --repair: say what would be done, and do nothing."),
    SET,
    JSON,
    opens=False,
    owners=lambda given: given["repair"] and not given["dry_run"],
)
def doctor(home: str | None, repair: bool, dry_run: bool, set_: Sequence[str]) -> Reply:
    """Look at the health of a home, and with --repair mend it: ledger, history, index, sessions, modes, documents.

    Exit code 0 when there is at most advice, 1 when something is damaged (with --repair: still damaged).

    \b
    Examples:
      anima doctor
      anima doctor --home ~/aria --json
      anima doctor --repair --dry-run
      anima doctor --repair
    """
    from anima.folders import doctor as look_after

    place = home_path(home, may_be_missing=True)
    health = look_after(place, repair=repair, dry_run=dry_run, settings=parsed(set_), progress=_looking())
    code = 0 if health.ok else 1
    if repair or dry_run:
        return Reply({"ok": health.ok, **plain(health), "remarks": health.left}, lambda: _show_mended(health), code)
    return Reply({"ok": health.ok, "remarks": health.left}, lambda: _show_remarks(health.left), code)


def _looking() -> Callable[[str], None]:
    """Says on a terminal what is being looked at, once it takes longer than a second."""
    import time

    started = time.monotonic()

    def progress(what: str) -> None:
        if sys.stderr.isatty() and time.monotonic() - started > 1.0:
            whisper(f"anima: looking at {what} …")

    return progress


def _show_mended(mended: Health) -> None:
    out = console()
    found = [remark for remark in mended.found if remark.level != "fine"]
    for remark in found if mended.done else ():
        _show_sign(*_SIGNS[remark.level], remark.message)
    if mended.done:
        out.print("What would be done:" if mended.dry_run else "What was done:", style="bold")
    for deed in mended.done:
        sign = ("·", "dim") if mended.dry_run else ("✓", "green") if deed.ok else ("✗", "bold red")
        _show_sign(*sign, f"{deed.about}: {deed.said}.", "" if mended.dry_run else deed.owner)
    left = [remark for remark in mended.left if remark.level != "fine"]
    if left and not mended.dry_run:
        out.print("What only you can decide:", style="bold")
        _show_remarks(left)
    if not found:
        out.print("All is well; there was nothing to repair.")


def _show_remarks(remarks: Sequence[Remark]) -> None:
    for remark in remarks:
        _show_sign(*_SIGNS[remark.level], remark.message, remark.do)
    if all(remark.level == "fine" for remark in remarks):
        console().print("All is well.")


def _show_sign(sign: str, style: str, message: str, do: str | None = None) -> None:
    out = console()
    out.print(sign, style=style, end=" ")
    out.print(flat(message), soft_wrap=True)
    if do:
        out.print(f"  → {flat(do)}", style="dim", soft_wrap=True)


@command(HOME, SET, JSON, opens=False)
def config(home: str | None, set_: Sequence[str]) -> Reply:
    """Show every setting with where its value came from: default, dialect, anima.toml, a variable or a flag.

    \b
    Examples:
      anima config
      ANIMA_PROMPT_STYLE=xml anima config --set prompt.file_chars=8000
    """
    rows, settings = _settings(home, set_)

    def show() -> None:
        drawn = table("key", "value", "from")
        for key, value, source in rows:
            drawn.add_row(key, flat(_as_toml(value)), source, style="dim" if source == "default" else "")
        console().print(drawn)
        for key, why in settings.ignored:
            say(f"! {flat(key)} is ignored: {flat(why)} (anima trust-home)")

    listed = [{"key": key, "value": value, "source": source} for key, value, source in rows]
    return Reply({"trusted": settings.trusted, "settings": listed, "ignored": settings.ignored}, show)


def _settings(home: str | None, set_: Sequence[str]) -> tuple[list[tuple[str, Any, str]], Any]:
    """The settings of the home that is meant, or the defaults where there is none."""
    from anima.folders import default_settings

    try:
        with open_home(home, set_) as opened:
            return opened.settings(), opened.config
    except NoSuchHome:
        if home or os.environ.get("ANIMA_HOME"):
            raise
    whisper("no home here: these are the defaults")
    settings = default_settings(parsed(set_))
    return settings.rows(), settings


def _as_toml(value: Any) -> str:
    """A value as anima.toml would hold it, without the quotes; nothing for what is not set."""
    if value in ("", None, ()):
        return ""
    return value if isinstance(value, str) else json_text.dumps(plain(value), ensure_ascii=False)


@command(HOME, flag("--yes", help="Do not ask."), JSON, name="trust-home", owners=always)
def trust_home(home: Home, yes: bool, json: bool) -> Reply:
    """Trust this home's anima.toml with rules and endpoints. Kept in your own configuration, not in the home.

    \b
    Examples:
      anima trust-home --home ~/clawd    says what would be used, and asks
      anima trust-home --home ~/clawd --yes
    """
    if not yes:
        _ask(home, can_ask=not json)
    home.trust()
    value = {"home": home.name, "trusted": True, "now_used": [key for key, _ in home.config.ignored]}
    return Reply(value, "Trusted. It holds until the folder is replaced by another.")


def _ask(home: Home, *, can_ask: bool) -> None:
    refusal, hint = (
        "trusting a home needs your yes at a terminal",
        "read its anima.toml, then say anima trust-home --yes",
    )
    if not can_ask or not sys.stdin.isatty():
        raise Refused(f"{refusal}; nothing was changed", rule="needs-a-yes", hint=hint)
    for key, why in home.config.ignored:
        say(f"  {flat(key)}: {flat(why)}")
    if not click.confirm(f"Trust {flat(home.name)} with everything in its anima.toml?"):
        raise Refused("not trusted; nothing was changed", rule="needs-a-yes")

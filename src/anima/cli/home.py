"""Verbs about a home as a whole: init open up tour doctor config trust-home."""

from __future__ import annotations

import json as json_text
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anima.cli.serve import PortOption, need_serving, serve_home
from anima.cli.show import (
    HomeOption,
    JsonOption,
    SetOption,
    console,
    home_path,
    inert,
    open_home,
    parsed,
    plain,
    say,
    say_json,
    whisper,
)
from anima.errors import BadArguments, NoSuchHome, Refused

if TYPE_CHECKING:
    from anima.home import Home

_SIGNS = {"fine": ("·", "dim"), "advice": ("!", "yellow"), "damage": ("✗", "bold red")}


def add_to(app: typer.Typer) -> None:
    for name, verb in (
        ("init", init),
        ("open", open_),
        ("up", up),
        ("doctor", doctor),
        ("config", config),
        ("trust-home", trust_home),
        ("tour", tour),
    ):
        app.command(name)(verb)


def init(
    path: Annotated[
        str | None, typer.Argument(metavar="PATH", help="The folder of the home; made when it is missing.")
    ] = None,
    name: Annotated[str, typer.Option(help="The agent's name.", metavar="NAME", show_default=False)] = "",
    emoji: Annotated[str | None, typer.Option(help="One sign to know it by.", metavar="SIGN")] = None,
    again: Annotated[bool, typer.Option("--again", help="Make a new home where an earlier one vanished.")] = False,
    home: Annotated[str | None, typer.Option("--home", metavar="PATH", help="The same as PATH.")] = None,
    json: JsonOption = False,
) -> None:
    """Make a home: core files from templates, for your eyes alone. Nothing that exists is touched.

    \b
    Examples:
      anima init ~/aria --name Aria --emoji 🌿
      anima init ~/aria --again        the earlier home there is gone for good
    """
    from anima.home import Home

    place = path or home
    if not place:
        raise BadArguments("where shall the home be?", hint="anima init ~/aria --name Aria")
    before = _files_in(place)
    with Home.create(place, name=name, emoji=emoji, again=again) as made:
        who, files = made.identity(), [entry.path for entry in made.list_all()]
        new = [file for file in files if file not in before]
        if json:
            say_json({"home": made.root, "dialect": made.dialect, "name": who.name.value, "files": files, "made": new})
            return
    sign = f" {inert(who.emoji.value, lines=False)}" if who.emoji else ""
    say(f"{inert(who.name.value, lines=False)}{sign} has a home: {inert(place, lines=False)}")
    say(f"  made: {', '.join(new)}" if new else "  everything was there already; nothing was changed")
    say(f"Next: anima prompt --home {inert(place, lines=False)}")


def _files_in(place: str) -> set[str]:
    from anima.home import Home

    try:
        with Home.open(place) as there:
            return {entry.path for entry in there.list_all()}
    except NoSuchHome:
        return set()


def open_(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH", help="Any folder: a home of OpenClaw, nexo, Carapace, IronClaw, AgentScope or ours."
        ),
    ] = None,
    dialect: Annotated[
        str | None, typer.Option(metavar="NAME", help="Read it as this dialect instead of the one detected.")
    ] = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Show what a folder is and how it would be read. Changes nothing.

    \b
    Examples:
      anima open ~/clawd
      anima open ~/clawd --dialect anima
    """
    from anima.home import Home
    from anima.model import Scope

    place = home_path(path or home)
    with Home.open(place, settings={"dialect": dialect} if dialect else None) as opened:
        prompts = {scope: opened.prompt(scope=scope) for scope in Scope}
        who = opened.identity().name.value
        if json:
            say_json(
                {
                    "home": opened.root,
                    "dialect": opened.dialect,
                    "why": opened.detection.why,
                    "trusted": opened.config.trusted,
                    "name": who,
                    "peers": opened.peers(),
                    "scopes": {s: {"chars": len(p.text), "manifest": p.manifest} for s, p in prompts.items()},
                }
            )
            return
        say(f"{inert(who, lines=False)}, in {inert(str(place), lines=False)}")
        say(f"dialect {opened.dialect}: {inert(opened.detection.why, lines=False)}")
        if not opened.config.trusted:
            say("not trusted: its anima.toml can only make things stricter (see anima trust-home)")
        _table_of_scopes(prompts)
        for line in opened.validate():
            say(inert(line, lines=False))


def _table_of_scopes(prompts: dict[Any, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("file", overflow="fold")
    for scope in prompts:
        table.add_column(str(scope), justify="right")
    for path in dict.fromkeys(line.path or line.role for prompt in prompts.values() for line in prompt.manifest):
        cells = [_cell(prompt, path) for prompt in prompts.values()]
        if set(cells) != {"–"}:
            table.add_row(inert(path, lines=False), *cells)
    table.add_row("all", *[f"{len(prompt.text):,}" for prompt in prompts.values()], style="bold")
    console().print(table)


def _cell(prompt: Any, path: str) -> str:
    line = next((line for line in prompt.manifest if (line.path or line.role) == path), None)
    if line is None or line.status == "hidden":
        return "–"
    return f"{line.chars_shown:,}" if line.chars_shown and line.status in ("shown", "cut") else str(line.status)


def up(
    path: Annotated[
        str | None, typer.Argument(metavar="PATH", help="The home; made when it is missing or empty.")
    ] = None,
    name: Annotated[
        str, typer.Option(help="The agent's name, for a home that is made now.", metavar="NAME", show_default=False)
    ] = "",
    serve: Annotated[bool, typer.Option("--serve/--no-serve", help="Serve it until Ctrl-C (the default).")] = True,
    port: PortOption = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Bring a home up: make it if it is missing, show its health, and serve it until Ctrl-C.

    With `--no-serve` it shows the prompt and the health of the home, and ends; so it does with `--json`.

    \b
    Examples:
      anima up                       the home that is found, or a new one
      anima up ~/aria --name Aria
      anima up ~/aria --no-serve
    """
    from anima.home import Home
    from anima.model import Scope
    from anima.upkeep.health import look

    if serve and not json:
        need_serving()
    place = home_path(path or home, may_be_missing=True)
    with Home.create(place, name=name) if _is_vacant(place) else Home.open(place) as opened:
        prompt, remarks = opened.prompt(scope=Scope.MAIN), look(opened)
        if json:
            say_json({"home": opened.root, "prompt": prompt.text, "health": remarks})
            return
        if serve:
            _show_remarks(remarks)
            say()
            serve_home(opened, port=port, json=False)
            return
        say(inert(prompt.text))
        say()
        _show_remarks(remarks)
        shown = inert(str(place), lines=False)
        say(f"Next: anima prompt --explain --home {shown}, anima open {shown}, anima tour")


def _is_vacant(place: Path) -> bool:
    """Whether nothing stands there. A folder with anything in it is opened as it is, in whatever dialect."""
    try:
        return not any(place.iterdir())
    except FileNotFoundError:
        return True
    except OSError:
        return False


def tour(
    fast: Annotated[bool, typer.Option("--fast", help="Do not wait for Enter between the steps.")] = False,
    json: JsonOption = False,
) -> None:
    """Take a guided minute in a temporary home that is thrown away afterwards.

    \b
    Examples:
      anima tour
      anima tour --fast
    """
    from anima.cli import tour as guide

    if json:
        say_json(guide.told())
    else:
        guide.walk(wait=not fast)


def doctor(
    home: HomeOption = None,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended; no document is changed.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --repair: say what would be done, and do nothing.")
    ] = False,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Look at the health of a home, and with --repair mend it: ledger, history, index, sessions, modes, documents.

    Exit code 0 when there is at most advice, 1 when something is damaged (with --repair: still damaged).

    \b
    Examples:
      anima doctor
      anima doctor --home ~/aria --json
      anima doctor --repair --dry-run
      anima doctor --repair
    """
    from datetime import UTC, datetime

    from anima.upkeep.health import examine
    from anima.upkeep.repair import repair as mend

    place = home_path(home, may_be_missing=True)
    asked: dict[str, Any] = {
        "clock": lambda: datetime.now(UTC),
        "env": os.environ,
        "settings": parsed(set_),
        "progress": _looking(),
    }
    if repair or dry_run:
        mended = mend(place, dry_run=dry_run, **asked)
        say_json({"ok": mended.ok, **plain(mended), "remarks": mended.left}) if json else _show_mended(mended)
        raise typer.Exit(0 if mended.ok else 1)
    remarks = examine(place, **asked)
    damaged = any(remark.level == "damage" for remark in remarks)
    say_json({"ok": not damaged, "remarks": remarks}) if json else _show_remarks(remarks)
    raise typer.Exit(1 if damaged else 0)


def _looking() -> Any:
    """Says on a terminal what is being looked at, once it takes longer than a second."""
    import time

    started = time.monotonic()

    def progress(what: str) -> None:
        if sys.stderr.isatty() and time.monotonic() - started > 1.0:
            whisper(f"anima: looking at {what} …")

    return progress


def _show_mended(mended: Any) -> None:
    out = console()
    found = [remark for remark in mended.found if remark.level != "fine"]
    for remark in found if mended.done else ():
        sign, style = _SIGNS[remark.level]
        out.print(sign, style=style, end=" ")
        out.print(inert(remark.message, lines=False), soft_wrap=True)
    if mended.done:
        out.print("What would be done:" if mended.dry_run else "What was done:", style="bold")
    for deed in mended.done:
        sign, style = ("·", "dim") if mended.dry_run else ("✓", "green") if deed.ok else ("✗", "bold red")
        out.print(sign, style=style, end=" ")
        out.print(inert(f"{deed.about}: {deed.said}.", lines=False), soft_wrap=True)
        if deed.owner and not mended.dry_run:
            out.print(f"  → {inert(deed.owner, lines=False)}", style="dim", soft_wrap=True)
    left = [remark for remark in mended.left if remark.level != "fine"]
    if left and not mended.dry_run:
        out.print("What only you can decide:", style="bold")
        _show_remarks(left)
    if not found:
        out.print("All is well; there was nothing to repair.")


def _show_remarks(remarks: list[Any]) -> None:
    out = console()
    for remark in remarks:
        sign, style = _SIGNS[remark.level]
        out.print(sign, style=style, end=" ")
        out.print(inert(remark.message, lines=False), soft_wrap=True)
        if remark.do:
            out.print(f"  → {inert(remark.do, lines=False)}", style="dim", soft_wrap=True)
    if all(remark.level == "fine" for remark in remarks):
        out.print("All is well.")


def config(home: HomeOption = None, set_: SetOption = None, json: JsonOption = False) -> None:
    """Show every setting with where its value came from: default, dialect, anima.toml, a variable or a flag.

    \b
    Examples:
      anima config
      ANIMA_PROMPT_STYLE=xml anima config --set prompt.file_chars=8000
    """
    rows, settings = _settings(home, set_)
    if json:
        listed = [{"key": key, "value": value, "source": source} for key, value, source in rows]
        say_json({"trusted": settings.trusted, "settings": listed, "ignored": settings.ignored})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("key", "value", "from"):
        table.add_column(column, overflow="fold")
    for key, value, source in rows:
        table.add_row(key, inert(_written(value), lines=False), source, style="dim" if source == "default" else "")
    console().print(table)
    for key, why in settings.ignored:
        say(f"! {inert(key, lines=False)} is ignored: {inert(why, lines=False)} (anima trust-home)")


def _settings(home: str | None, set_: list[str] | None) -> tuple[list[tuple[str, Any, str]], Any]:
    """The settings of the home that is meant, or the defaults where there is none."""
    from anima import config as configs

    try:
        with open_home(home, set_) as opened:
            return _with_dialect(opened), opened.config
    except NoSuchHome:
        if home or os.environ.get("ANIMA_HOME"):
            raise
    whisper("no home here: these are the defaults")
    settings = configs.load(None, env=os.environ, flags=parsed(set_), trusted=True)
    return settings.rows(), settings


def _with_dialect(opened: Home) -> list[tuple[str, Any, str]]:
    """Where the configuration says nothing, the dialect decides; show what it says."""
    layout = opened.layout
    budgets = {
        "prompt.file_chars": layout.file_chars,
        "prompt.total_chars": layout.total_chars,
        "prompt.memory_tokens": layout.memory_tokens,
    }
    return [
        (key, budgets[key], f"dialect {layout.dialect}") if value is None and budgets.get(key) else (key, value, source)
        for key, value, source in opened.config.rows()
    ]


def _written(value: Any) -> str:
    """A value as anima.toml would hold it, without the quotes; nothing for what is not set."""
    if value in ("", None, ()):
        return ""
    return value if isinstance(value, str) else json_text.dumps(plain(value), ensure_ascii=False)


def trust_home(
    home: HomeOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: JsonOption = False,
) -> None:
    """Trust this home's anima.toml with rules and endpoints. Kept in your own configuration, not in the home.

    \b
    Examples:
      anima trust-home --home ~/clawd    says what would be used, and asks
      anima trust-home --home ~/clawd --yes
    """
    with open_home(home) as opened:
        ignored = opened.config.ignored
        if not yes:
            _ask(opened.root, ignored, can_ask=not json and sys.stdin.isatty())
        opened.trust()
        if json:
            say_json({"home": opened.root, "trusted": True, "now_used": [key for key, _ in ignored]})
        else:
            say("Trusted. It holds until the folder is replaced by another.")


def _ask(root: str, ignored: tuple[tuple[str, str], ...], *, can_ask: bool) -> None:
    if not can_ask:
        raise Refused(
            "trusting a home needs your yes at a terminal; nothing was changed",
            rule="needs-a-yes",
            hint="read its anima.toml, then say anima trust-home --yes",
        )
    for key, why in ignored:
        say(f"  {inert(key, lines=False)}: {inert(why, lines=False)}")
    if not typer.confirm(f"Trust {inert(root, lines=False)} with everything in its anima.toml?"):
        raise Refused("not trusted; nothing was changed", rule="needs-a-yes")

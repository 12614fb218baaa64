"""The verb that tidies up: hygiene."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anima.cli.diffs import show_diff
from anima.cli.show import (
    HomeOption,
    JsonOption,
    SetOption,
    console,
    inert,
    open_home,
    patient,
    progress_bar,
    say,
    say_json,
    whisper,
)
from anima.errors import BadArguments, Refused

if TYPE_CHECKING:
    from anima.home import Home
    from anima.model import Receipt
    from anima.upkeep.hygiene import Contradiction, Group, Line
    from anima.upkeep.tidy import Look, Part, Suggestion

_PARTS: tuple[Part, ...] = ("stale", "duplicates", "contradictions")
_TWINS = 5
_WIDTH = 96
_ASKS = {"merge": "Take out what is said twice?", "archive": "Move it to the archive?"}


def add_to(app: typer.Typer) -> None:
    app.command("hygiene")(hygiene)


def hygiene(
    days: Annotated[
        int | None, typer.Option(help="After how many days a log is old. Default: the configuration's, 90.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="KINDS", help="Some of stale, duplicates, contradictions, with commas.")
    ] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Ask about each suggestion, and carry out those you say yes to.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Carry out all of them without asking; contradictions stay.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Show everything.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many to show of each kind.")] = 10,
    home: HomeOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Show what memory could do without: old logs, lines that are said twice, lines that contradict each other.

    Nothing is changed until you say so. What is carried out is one change, which `anima undo` takes back; logs are moved to
    the archive, where search still finds them, and never deleted.

    \b
    anima hygiene
    anima hygiene --only duplicates --all
    anima hygiene --fix
    anima hygiene --only stale --days 180 --yes
    """
    from anima.upkeep.tidy import look

    parts = _parts(only)
    if fix and not yes and (json or not sys.stdin.isatty()):
        raise Refused(
            "--fix asks a person at a terminal; nothing was changed",
            rule="terminal",
            hint="--yes carries out all suggestions without asking",
        )
    with open_home(home, set_) as opened:
        with progress_bar("reading memory") as progress, patient("comparing what memory says", after=3):
            found = look(opened, days=days, parts=parts, progress=progress)
        if not json:
            _show(found, parts, limit=sys.maxsize if every else limit, done=fix or yes)
        receipts = _fixed(opened, found, ask=not yes) if fix or yes else ()
    if json:
        say_json(_fields(found, receipts))


def _parts(only: str | None) -> tuple[Part, ...]:
    asked = tuple(name.strip() for name in only.split(",")) if only else _PARTS
    for name in asked:
        if name not in _PARTS:
            raise BadArguments(f"--only {only}: {name!r} is none of {', '.join(_PARTS)}")
    return tuple(part for part in _PARTS if part in asked)


# -- showing ---------------------------------------------------------------------------------------------------------------


def _show(found: Look, parts: Sequence[Part], *, limit: int, done: bool) -> None:
    if "stale" in parts:
        to = {one.path: one.to for one in found.suggestions if one.to}
        rows = [[f"  {inert(log.path):<34} {log.age:>6,} days  → {inert(to[log.path])}"] for log in found.stale]
        _section("Old logs", "older than their folder keeps them", rows, limit)
    if "duplicates" in parts:
        going = {(line.path, line.number) for one in found.suggestions for line in one.remove}
        rows = [_group(one, going) for one in found.duplicates if any(_at(twin.line) in going for twin in one.twins)]
        _section("Said twice", "one line is enough", rows, limit)
        rest = [
            _group(one, going) for one in found.duplicates if not any(_at(twin.line) in going for twin in one.twins)
        ]
        if rest:
            _section("Said twice, and left", "in the archive, noted on several days, or marked", rest, limit)
    if "contradictions" in parts:
        rows = [_contradiction(one) for one in found.contradictions]
        _section("Contradictions", "both cannot hold; only you can tell which does", rows, limit)
    for note in found.notes:
        whisper(f"note: {inert(note, lines=False)}")
    seen = f"{found.lines:,} lines of {found.documents:,} documents were compared."
    say(seen if done else f"{seen} {_would(found)}")


def _section(title: str, told: str, blocks: Sequence[Sequence[str]], limit: int) -> None:
    out = console()
    out.print(f"{title}  {len(blocks):,}", style="bold", end="  " if blocks else "\n")
    if blocks:
        out.print(told, style="dim")
    for block in blocks[:limit]:
        for line in block:
            out.print(line, soft_wrap=True)
    if len(blocks) > limit:
        out.print(f"  … and {len(blocks) - limit:,} more (--all)", style="dim")
    out.print()


def _group(group: Group, going: set[tuple[str, int]]) -> list[str]:
    shown = [f"  {_placed(group.keep)}"]
    for twin in group.twins[:_TWINS]:
        stays = "" if _at(twin.line) in going else "  (stays)"
        shown += [f"  = {_placed(twin.line)}", f"      {twin.how}, {inert(twin.evidence, lines=False)}{stays}"]
    if len(group.twins) > _TWINS:
        shown.append(f"  = … and {len(group.twins) - _TWINS:,} more")
    return shown


def _contradiction(one: Contradiction) -> list[str]:
    shown = [
        f"  {'≠ ' if number else ''}{_placed(line)}{_when(one, line)}"
        for number, line in enumerate((one.one, one.other))
    ]
    return [*shown, f"      {inert(one.why, lines=False)}"]


def _when(one: Contradiction, line: Line) -> str:
    newer = ", newer" if one.newer is not None and _at(one.newer) == _at(line) else ""
    return f"  ({line.day}{newer})" if line.day else ""


def _at(line: Line) -> tuple[str, int]:
    return line.path, line.number


def _placed(line: Line) -> str:
    text = inert(line.text, lines=False)
    shown = text if len(text) <= _WIDTH else text[: _WIDTH - 1].rsplit(" ", 1)[0] + " …"
    return f"{inert(line.path)}:{line.number}  {shown}"


def _would(found: Look) -> str:
    kinds = Counter(one.kind for one in found.suggestions)
    lines = sum(len(one.remove) for one in found.suggestions if one.kind == "merge")
    told = [f"move {_count(kinds['archive'], 'log')} to the archive"] if kinds["archive"] else []
    told += [f"take out {_count(lines, 'line')}"] if lines else []
    told += [f"ask you about {_count(kinds['choose'], 'contradiction')}"] if kinds["choose"] else []
    if not told:
        return "There is nothing to do."
    return "anima hygiene --fix would " + (", ".join(told[:-1]) + " and " if len(told) > 1 else "") + told[-1] + "."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _fields(found: Look, receipts: Sequence[Receipt]) -> dict[str, Any]:
    return {
        "lines": found.lines,
        "documents": found.documents,
        "stale": found.stale,
        "duplicates": found.duplicates,
        "contradictions": found.contradictions,
        "notes": found.notes,
        "receipts": receipts,
        "suggestions": [
            {
                "kind": one.kind,
                "sentence": one.sentence,
                "keep": one.keep,
                "remove": one.remove,
                "between": one.between,
                "evidence": one.evidence,
                "path": one.path,
                "to": one.to,
                "diff": one.diff,
            }
            for one in found.suggestions
        ],
    }


# -- fixing ----------------------------------------------------------------------------------------------------------------


def _fixed(home: Home, found: Look, *, ask: bool) -> tuple[Receipt, ...]:
    """Carries out what was agreed to, as one change."""
    agreed = _asked(home, found.suggestions) if ask else [one for one in found.suggestions if one.kind != "choose"]
    if not agreed:
        whisper("Nothing was changed.")
        return ()
    receipts = home.tidy(agreed)
    refused = next((each for each in receipts if each.status != "written"), None)
    if refused is not None:
        raise Refused(f"{refused.path}: {refused.reason}; nothing was changed", rule=refused.rule)
    lines, logs = sum(len(one.remove) for one in agreed), sum(bool(one.to) for one in agreed)
    done = [
        *([f"{_count(lines, 'line')} taken out"] if lines else []),
        *([f"{_count(logs, 'log')} archived"] if logs else []),
    ]
    whisper(f"{' and '.join(done)}: change {receipts[0].change}; anima undo takes it back.")
    return receipts


def _asked(home: Home, suggestions: Sequence[Suggestion]) -> list[Suggestion]:
    """What a person at a terminal says yes to. `q` ends the questions; what was agreed to before still counts."""
    agreed: list[Suggestion] = []
    every = False
    for number, one in enumerate(suggestions, start=1):
        if not (every and one.kind != "choose"):
            say(f"\n{number} of {len(suggestions)}  {inert(one.sentence, lines=False)}")
        answer = _chosen(home, one) if one.kind == "choose" else "y" if every else _answered(one)
        if answer == "q":
            break
        if answer == "k":
            home.keep_all(one)
        every = every or answer == "a"
        if answer in ("y", "a"):
            agreed.append(one)
        elif answer in ("1", "2"):
            agreed.append(one.keeping(one.between[int(answer) - 1]))
    return agreed


def _answered(one: Suggestion) -> str:
    show_diff(one.diff)
    keep = ", (k)eep all and do not ask again" if one.kind == "merge" else ""
    return _prompted(f"{_ASKS[one.kind]} (y)es, (n)o, (a)ll that follow{keep}, (q)uit", "ynaqk" if keep else "ynaq")


def _chosen(home: Home, one: Suggestion) -> str:
    for number, line in enumerate(one.between, start=1):
        say(f"  {number}  {_placed(line)}" + (f"  ({line.day})" if line.day else ""))
    return _prompted("Which one stays? (1), (2), (k)eep both and do not ask again, (s)kip, (q)uit", "12ksq")


def _prompted(question: str, answers: str) -> str:
    while True:
        given = typer.prompt(question, err=True, prompt_suffix=": ").strip().lower()[:1]
        if given and given in answers:
            return str(given)
        whisper(f"Answer with one of {', '.join(answers)}.")

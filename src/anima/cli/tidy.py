"""The command that tidies up: tidy."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from anima.cli.command import HOME, JSON, SET, Number, Reply, command, flag, option
from anima.cli.show import (
    console,
    counted,
    flat,
    inert,
    patient,
    progress_bar,
    say,
    shortened,
    show_diff,
    show_notes,
    whisper,
)
from anima.errors import BadArguments, Refused

if TYPE_CHECKING:
    from anima import Home, Look, Receipt, Suggestion

_PARTS = ("stale", "duplicates", "contradictions")
_TWINS = 5
_WIDTH = 96
_ASKS = {"merge": "Take out what is said twice?", "archive": "Move it to the archive?"}


@command(
    option("--days", type=Number(), help="After how many days a log is old. Default: the configuration's, 90."),
    option("--only", metavar="KINDS", help="Some of stale, duplicates, contradictions, with commas."),
    flag("--fix", help="Ask about each suggestion, and carry out those you say yes to."),
    flag("--yes", help="Carry out all of them without asking; contradictions stay."),
    option("--all", "every", default=False, help="Show everything."),
    option("--limit", type=Number(int, 1, 100_000), default=10, help="How many to show of each kind."),
    HOME,
    SET,
    JSON,
    owners=lambda given: given["fix"] or given["yes"],
)
def tidy(
    home: Home, days: int | None, only: str | None, fix: bool, yes: bool, every: bool, limit: int, json: bool
) -> Reply:
    """Show what memory could do without: old logs, lines that are said twice, lines that contradict each other.

    Nothing is changed until you say so. What is carried out is one change, which `anima undo` takes back; logs are moved to
    the archive, where search still finds them, and never deleted.

    \b
    anima tidy
    anima tidy --only duplicates --all
    anima tidy --fix
    anima tidy --only stale --days 180 --yes
    """
    parts: Any = _parts(only)
    if fix and not yes and (json or not sys.stdin.isatty()):
        raise Refused(
            "--fix asks a person at a terminal; nothing was changed",
            rule="terminal",
            hint="--yes carries out all suggestions without asking",
        )
    with progress_bar("reading memory") as progress, patient("comparing what memory says", after=3):
        found = home.upkeep.look(days=days, parts=parts, progress=progress)
    if not json:
        _show_found(found, parts, limit=sys.maxsize if every else limit, done=fix or yes)
    receipts = _carry_out(home, found, ask=not yes) if fix or yes else ()
    return Reply(_fields(found) | {"receipts": receipts} if json else None, lambda: None)


def _fields(found: Look) -> dict[str, Any]:
    names = ("kind", "sentence", "keep", "remove", "between", "evidence", "path", "to", "diff")
    suggestions = [{name: getattr(one, name) for name in names} for one in found.suggestions]
    parts = ("lines", "documents", "stale", "duplicates", "contradictions", "notes")
    return {name: getattr(found, name) for name in parts} | {"suggestions": suggestions}


def _parts(only: str | None) -> tuple[str, ...]:
    asked = tuple(name.strip() for name in only.split(",")) if only else _PARTS
    for name in asked:
        if name not in _PARTS:
            raise BadArguments(f"--only {only}: {name!r} is none of {', '.join(_PARTS)}")
    return tuple(part for part in _PARTS if part in asked)


# -- showing ---------------------------------------------------------------------------------------------------------------


def _show_found(found: Look, parts: Sequence[str], *, limit: int, done: bool) -> None:
    if "stale" in parts:
        to = {one.path: one.to for one in found.suggestions if one.to}
        rows = [[f"  {inert(log.path):<34} {log.age:>6,} days  → {inert(to[log.path])}"] for log in found.stale]
        _section("Old logs", "older than their folder keeps them", rows, limit)
    if "duplicates" in parts:
        going, staying = _twins(found)
        _section("Said twice", "one line is enough", going, limit)
        if staying:
            _section("Said twice, and left", "in the archive, noted on several days, or marked", staying, limit)
    if "contradictions" in parts:
        _section("Contradictions", "both cannot hold; only you can tell which does", _contradictions(found), limit)
    show_notes(map(flat, found.notes), "note")
    verb = "was" if found.lines == 1 else "were"
    seen = f"{counted(found.lines, 'line')} of {counted(found.documents, 'document')} {verb} compared."
    say(seen if done else f"{seen} {_advice(found)}")


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


def _twins(found: Look) -> tuple[list[list[str]], list[list[str]]]:
    """The groups of lines that say the same: those of which a line would go, and the others."""
    gone = {(line.path, line.number) for one in found.suggestions for line in one.remove}
    going: list[list[str]] = []
    staying: list[list[str]] = []
    for group in found.duplicates:
        stays = {twin.line: (twin.line.path, twin.line.number) not in gone for twin in group.twins}
        shown = [f"  {_placed(group.keep.path, group.keep.number, group.keep.text)}"]
        for twin in group.twins[:_TWINS]:
            shown.append(f"  = {_placed(twin.line.path, twin.line.number, twin.line.text)}")
            shown.append(f"      {twin.how}, {flat(twin.evidence)}{'  (stays)' if stays[twin.line] else ''}")
        if len(group.twins) > _TWINS:
            shown.append(f"  = … and {len(group.twins) - _TWINS:,} more")
        (staying if all(stays.values()) else going).append(shown)
    return going, staying


def _contradictions(found: Look) -> list[list[str]]:
    blocks = []
    for each in found.contradictions:
        newer = (each.newer.path, each.newer.number) if each.newer else None
        block = []
        for sign, line in (("", each.one), ("≠ ", each.other)):
            mark = ", newer" if newer == (line.path, line.number) else ""
            day = f"  ({line.day}{mark})" if line.day else ""
            block.append(f"  {sign}{_placed(line.path, line.number, line.text)}{day}")
        blocks.append([*block, f"      {flat(each.why)}"])
    return blocks


def _placed(path: str, number: int, text: str) -> str:
    return f"{inert(path)}:{number}  {shortened(flat(text), _WIDTH)}"


def _advice(found: Look) -> str:
    kinds = Counter(one.kind for one in found.suggestions)
    lines = sum(len(one.remove) for one in found.suggestions if one.kind == "merge")
    told = [f"move {counted(kinds['archive'], 'log')} to the archive"] if kinds["archive"] else []
    told += [f"take out {counted(lines, 'line')}"] if lines else []
    told += [f"ask you about {counted(kinds['choose'], 'contradiction')}"] if kinds["choose"] else []
    if not told:
        return "There is nothing to do."
    return "anima tidy --fix would " + (", ".join(told[:-1]) + " and " if len(told) > 1 else "") + told[-1] + "."


# -- fixing ----------------------------------------------------------------------------------------------------------------


def _carry_out(home: Home, found: Look, *, ask: bool) -> tuple[Receipt, ...]:
    """Carries out what was agreed to, as one change."""
    agreed = _ask(home, found.suggestions) if ask else [one for one in found.suggestions if one.kind != "choose"]
    if not agreed:
        whisper("Nothing was changed.")
        return ()
    receipts = home.upkeep.tidy(agreed)
    refused = next((each for each in receipts if each.status != "written"), None)
    if refused is not None:
        raise Refused(f"{refused.path}: {refused.reason}; nothing was changed", rule=refused.rule)
    lines, logs = sum(len(one.remove) for one in agreed), sum(bool(one.to) for one in agreed)
    done = [f"{counted(lines, 'line')} taken out"] if lines else []
    done += [f"{counted(logs, 'log')} archived"] if logs else []
    whisper(f"{' and '.join(done)}: change {receipts[0].change}; anima undo takes it back.")
    return receipts


def _ask(home: Home, suggestions: Sequence[Suggestion]) -> list[Suggestion]:
    """What a person at a terminal says yes to. `q` ends the questions; what was agreed to before still counts."""
    agreed: list[Suggestion] = []
    every = False
    for number, one in enumerate(suggestions, start=1):
        if not (every and one.kind != "choose"):
            say(f"\n{number} of {len(suggestions)}  {flat(one.sentence)}")
        answer = _ask_which(one) if one.kind == "choose" else "y" if every else _ask_whether(one)
        if answer == "q":
            break
        if answer == "k":
            home.upkeep.keep_all(one)
        every = every or answer == "a"
        if answer in ("y", "a"):
            agreed.append(one)
        elif answer in ("1", "2"):
            agreed.append(one.keeping(one.between[int(answer) - 1]))
    return agreed


def _ask_whether(one: Suggestion) -> str:
    show_diff(one.diff)
    keep = ", (k)eep all and do not ask again" if one.kind == "merge" else ""
    return _answer(f"{_ASKS[one.kind]} (y)es, (n)o, (a)ll that follow{keep}, (q)uit", "ynaqk" if keep else "ynaq")


def _ask_which(one: Suggestion) -> str:
    for number, line in enumerate(one.between, start=1):
        say(f"  {number}  {_placed(line.path, line.number, line.text)}" + (f"  ({line.day})" if line.day else ""))
    return _answer("Which one stays? (1), (2), (k)eep both and do not ask again, (s)kip, (q)uit", "12ksq")


def _answer(question: str, answers: str) -> str:
    while True:
        given = click.prompt(question, err=True, prompt_suffix=": ").strip().lower()[:1]
        if given and given in answers:
            return str(given)
        whisper(f"Answer with one of {', '.join(answers)}.")

"""Commands that keep memory worth having: forget tidy dream."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from anima.cli import show
from anima.cli.command import Reply, command, day_of, table_of, unless_dry
from anima.cli.show import counted, flat, inert, need_person, patient, picked, plain, say, shortened, whisper
from anima.errors import BadArguments, Refused

if TYPE_CHECKING:
    from anima import Candidate, Forgetting, Home, Look, Receipt, Suggestion

_LISTED = 60


@command(owners=unless_dry)
def forget(home: Home, text: str | None, dry_run: bool, yes: bool, json: bool, **asked: Any) -> Reply:
    found = home.forget(text=text, **asked, dry_run=True)
    if not json:
        _show_forgetting(found)
    is_over = dry_run or not (found.touched or found.left or yes)  # or nothing is there to be asked about
    if not is_over:
        if not yes:
            need_person(
                "forgetting needs a person at a terminal, or --yes; nothing was forgotten",
                hint="--dry-run only lists what would go",
            )
            purged = " History cannot bring back what is purged." if found.purge else ""
            click.confirm(f"Forget {counted(sum(found.counts.values()), 'thing')}?{purged}", abort=True, err=True)
        found = home.forget(text=text, **asked)
    value, code = {**plain(found), "counts": found.counts}, 1 if found.done and found.left else 0
    if is_over:
        return Reply(value, "Nothing was changed." if dry_run else (), code)
    return Reply(value, lambda: _show_forgotten(found), code)


def _show_forgetting(found: Forgetting) -> None:
    if not found.touched:
        say("Nothing holds it.")
    for each in found.touched[:_LISTED]:
        more, text = f" ({each.count})" if each.count > 1 else "", f"  {flat(each.text)}" if each.text else ""
        say(f"{each.place:10} {inert(each.where)}{more}  {inert(each.why)}{text}")
    if len(found.touched) > _LISTED:
        say(f"… and {len(found.touched) - _LISTED:,} more; --json lists them all")
    show.notes((f"{where}: {why}" for where, why in found.left), "left")
    show.notes(found.notes, "note")


def _show_forgotten(found: Forgetting) -> None:
    found_in = ((count, table_of("care")["held"].get(place, place)) for place, count in found.counts.items())
    told = ", ".join(f"{count:,} {name.format(s='' if count == 1 else 's')}" for count, name in found_in)
    say(f"Forgotten: {told or 'nothing held it'}." + (f" Change {found.change}." if found.change else ""))
    # the other notes were told before it was asked
    show.notes([note for note in found.notes if "older snapshots are removed" in note], "note")
    show.notes((f"{where}: {why}" for where, why in found.left), "left")
    if not found.left:
        say("Every byte was read again: nothing holds it." if found.purge else "Looked again: nothing there holds it.")


_PARTS = ("stale", "duplicates", "contradictions")
_TWINS = 5
_WIDTH = 96
_ASKS = {"merge": "Take out what is said twice?", "archive": "Move it to the archive?"}


@command(owners=lambda given: given["fix"] or given["yes"])
def tidy(
    home: Home, days: int | None, only: str | None, fix: bool, yes: bool, every: bool, limit: int, json: bool
) -> Reply:
    asked = [name.strip() for name in only.split(",")] if only else list(_PARTS)
    if unknown := [name for name in asked if name not in _PARTS]:
        raise BadArguments(f"--only {only}: {unknown[0]!r} is none of {', '.join(_PARTS)}")
    parts: Any = tuple(part for part in _PARTS if part in asked)
    if fix and not yes and (json or not sys.stdin.isatty()):
        raise Refused(
            "--fix asks a person at a terminal; nothing was changed",
            rule="terminal",
            hint="--yes carries out all suggestions without asking",
        )
    with show.progress_bar("reading memory") as progress, patient("comparing what memory says", after=3):
        found = home.upkeep.look(days=days, parts=parts, progress=progress)
    if not json:
        _show_found(found, parts, limit=sys.maxsize if every else limit, done=fix or yes)
    receipts = _carry_out(home, found, ask=not yes) if fix or yes else ()
    value = picked(found, "lines documents stale duplicates contradictions notes")
    names = "kind sentence keep remove between evidence path to diff"
    value["suggestions"] = [picked(one, names) for one in found.suggestions if json]
    return Reply(value | {"receipts": receipts}, ())


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
    show.notes(map(flat, found.notes), "note")
    verb = "was" if found.lines == 1 else "were"
    seen = f"{counted(found.lines, 'line')} of {counted(found.documents, 'document')} {verb} compared."
    kinds = Counter(one.kind for one in found.suggestions)
    lines = sum(len(one.remove) for one in found.suggestions if one.kind == "merge")
    told = [f"move {counted(kinds['archive'], 'log')} to the archive"] if kinds["archive"] else []
    told += [f"take out {counted(lines, 'line')}"] if lines else []
    told += [f"ask you about {counted(kinds['choose'], 'contradiction')}"] if kinds["choose"] else []
    would = "anima tidy --fix would " + " and ".join(filter(None, (", ".join(told[:-1]), *told[-1:]))) + "."
    say(seen if done else f"{seen} {would if told else 'There is nothing to do.'}")


def _section(title: str, told: str, blocks: Sequence[Sequence[str]], limit: int) -> None:
    out = show.console()
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
        shown = [f"  {_placed(group.keep)}"]
        for twin in group.twins[:_TWINS]:
            shown.append(f"  = {_placed(twin.line)}")
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
            block.append(f"  {sign}{_placed(line)}{day}")
        blocks.append([*block, f"      {flat(each.why)}"])
    return blocks


def _placed(line: Any) -> str:
    return f"{inert(line.path)}:{line.number}  {shortened(flat(line.text), _WIDTH)}"


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
        answer = "y" if every and one.kind != "choose" else _answer(one)
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


def _answer(one: Suggestion) -> str:
    if one.kind == "choose":
        for number, line in enumerate(one.between, start=1):
            say(f"  {number}  {_placed(line)}" + (f"  ({line.day})" if line.day else ""))
        question, answers = "Which one stays? (1), (2), (k)eep both and do not ask again, (s)kip, (q)uit", "12ksq"
    else:
        show.diff(one.diff)
        keep = ", (k)eep all and do not ask again" if one.kind == "merge" else ""
        question = f"{_ASKS[one.kind]} (y)es, (n)o, (a)ll that follow{keep}, (q)uit"
        answers = "ynaqk" if keep else "ynaq"
    while True:
        given = click.prompt(question, err=True, prompt_suffix=": ").strip().lower()[:1]
        if given and given in answers:
            return str(given)
        whisper(f"Answer with one of {', '.join(answers)}.")


MOST_EXPLAINED = 40


@command()
def dream(home: Home, dry_run: bool, explain: bool, since: str | None, preset: str | None) -> Reply:
    with patient("dreaming: reading what was noted and asked for"):
        swept = home.dream(dry_run=dry_run, preset=preset, since=day_of(since, "--since"))

    def shown() -> None:
        for candidate in swept.plan.considered[:MOST_EXPLAINED] if explain and swept.plan else ():
            _show_candidate(candidate)
        if swept.diff:
            show.diff(swept.diff)
        if swept.status in ("nothing", "busy", "refused") or (plan := swept.plan) is None:
            return say(f"{swept.status}: {inert(swept.said)}")
        kept, gone, moved = len(plan.promotions), len(plan.retirements), len(plan.moves)
        counts = f"{kept} kept, {gone} no longer so, {moved} moved out, {len(plan.considered)} considered"
        waiting = f"; {len(swept.proposals)} wait for you: anima review" if swept.proposals else ""
        back = f" (change {swept.change}; anima undo --sweep takes it back)" if swept.change else ""
        return say(f"{swept.status}: {counts}{back}{waiting}")

    value = picked(swept, "status change revision said proposals diff")
    if plan := swept.plan:
        value |= {"preset": plan.rules.name} | picked(plan, "recalls themes")
        value["promoted"] = [{"line": p.line, **_candidate(p.candidate)} for p in plan.promotions]
        gone = [
            {"fact": each.held.fact, **picked(each, "since until"), "by": each.by.text} for each in plan.retirements
        ]
        value |= {"retired": gone, "moved": [held.fact for held in plan.moves], "diary": plan.diary}
        value["considered"] = [_candidate(candidate) for candidate in plan.considered]
    return Reply(value, shown)


def _show_candidate(candidate: Candidate) -> None:
    note, parts = candidate.note, candidate.score
    mark = "+" if candidate.passed else " "
    say(f"{mark} {parts.total:.2f}  {inert(note.text[:100])}  ({inert(note.path)}:{note.line})")
    names = ("frequency", "relevance", "diversity", "recency", "consolidation", "conceptual")
    say("        " + "  ".join(f"{name} {getattr(parts, name):.2f}" for name in names))
    for reason in candidate.reasons:
        say(f"        {inert(reason)}")
    for gate in candidate.gates:
        say(f"        {'pass' if gate.passed else 'STOP'}  {gate.name}: {inert(gate.said[:120])}")


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return picked(candidate.note, "text path line") | picked(candidate, "score evidence lasting reasons gates")

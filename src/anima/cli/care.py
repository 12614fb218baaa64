"""Commands that keep memory worth having, forget tidy dream; and that keep and move a whole home: snapshot (take, list, verify, restore,
prune) export import migrate.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

import click

import anima
from anima.cli import show
from anima.cli.command import Reply, command, day_of, home_path, open_home, unless_dry
from anima.cli.show import counted, flat, inert, listed, need_person, picked, plain, progress_bar, say, whisper
from anima.errors import BadArguments, Refused

if TYPE_CHECKING:
    from anima import Candidate, Forgetting, Home, Imported, Look, Receipt, Suggestion

_LISTED = 60


@command(owners=unless_dry)
def forget(home: Home, text: str | None, dry_run: bool, yes: bool, json: bool, **asked: Any) -> Reply:
    found = home.forget(text=text, **asked, dry_run=True)
    if not json:
        if not found.touched:
            say("Nothing holds it.")
        for each in found.touched[:_LISTED]:
            more, words = f" ({each.count})" if each.count > 1 else "", f"  {flat(each.text)}" if each.text else ""
            say(f"{each.place:10} {inert(each.where)}{more}  {inert(each.why)}{words}")
        if len(found.touched) > _LISTED:
            say(f"… and {len(found.touched) - _LISTED:,} more; --json lists them all")
        show.notes((f"{where}: {why}" for where, why in found.left), "left")
        show.notes(found.notes, "note")
    is_over = dry_run or not (found.touched or found.left or yes)  # or nothing is there to be asked about
    if not is_over:
        if not yes:
            need_person(
                "forgetting needs a person at a terminal, or --yes; nothing was forgotten",
                hint="--dry-run only lists what would go",
            )
            purged = " History cannot bring back what is purged." if found.purge else ""
            if not click.confirm(f"Forget {counted(sum(found.counts.values()), 'thing')}?{purged}", err=True):
                return Reply(None, "nothing was forgotten")
        found = home.forget(text=text, **asked)
    value, code = {**plain(found), "counts": found.counts}, 1 if found.done and found.left else 0
    if is_over:
        return Reply(value, "Nothing was changed." if dry_run else (), code)
    return Reply(value, lambda: _show_forgotten(found), code)


def _show_forgotten(found: Forgetting) -> None:
    found_in = ((count, show.table_of("care")["held"].get(place, place)) for place, count in found.counts.items())
    told = ", ".join(f"{count:,} {name.format(s='' if count == 1 else 's')}" for count, name in found_in)
    say(f"Forgotten: {told or 'nothing held it'}." + (f" Change {found.change}." if found.change else ""))
    # the other notes were told before it was asked
    show.notes([note for note in found.notes if "older snapshots removed" in note], "note")
    show.notes((f"{where}: {why}" for where, why in found.left), "left")
    if not found.left:
        say("Every byte was read again: nothing holds it." if found.purge else "Looked again: nothing there holds it.")


_PARTS = ("stale", "duplicates", "contradictions")
_TWINS = 5
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
        hint = "--yes carries out all suggestions without asking"
        raise Refused("--fix asks a person at a terminal; nothing was changed", rule="terminal", hint=hint)
    with progress_bar("reading memory") as progress, show.patient("comparing what memory says", after=3):
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
        blocks = []
        for each in found.contradictions:
            newer = (each.newer.path, each.newer.number) if each.newer else None
            block = []
            for sign, line in (("", each.one), ("≠ ", each.other)):
                mark = ", newer" if newer == (line.path, line.number) else ""
                day = f"  ({line.day}{mark})" if line.day else ""
                block.append(f"  {sign}{_placed(line)}{day}")
            blocks.append([*block, f"      {flat(each.why)}"])
        _section("Contradictions", "both cannot hold; only you can tell which does", blocks, limit)
    show.notes(map(flat, found.notes), "note")
    verb = "was" if found.lines == 1 else "were"
    seen = f"{counted(found.lines, 'line')} of {counted(found.documents, 'document')} {verb} compared."
    kinds = Counter(one.kind for one in found.suggestions)
    lines = sum(len(one.remove) for one in found.suggestions if one.kind == "merge")
    told = [f"move {counted(kinds['archive'], 'log')} to the archive"] if kinds["archive"] else []
    told += [f"take out {counted(lines, 'line')}"] if lines else []
    told += [f"ask you about {counted(kinds['choose'], 'contradiction')}"] if kinds["choose"] else []
    would = f"{show.called('tidy --fix')} would " + " and ".join(filter(None, (", ".join(told[:-1]), *told[-1:]))) + "."
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


def _placed(line: Any) -> str:
    return f"{inert(line.path)}:{line.number}  {show.shortened(flat(line.text), 96)}"


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
    whisper(f"{' and '.join(done)}: change {receipts[0].change}; {show.called('undo')} takes it back.")
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


@command()
def dream(home: Home, dry_run: bool, explain: bool, since: str | None, preset: str | None) -> Reply:
    with show.patient("dreaming: reading what was noted and asked for"):
        swept = home.dream(dry_run=dry_run, preset=preset, since=day_of(since, "--since"))

    def shown() -> None:
        for candidate in swept.plan.considered[:40] if explain and swept.plan else ():
            note, parts = candidate.note, candidate.score
            mark = "+" if candidate.passed else " "
            say(f"{mark} {parts.total:.2f}  {inert(note.text[:100])}  ({inert(note.path)}:{note.line})")
            names = ("frequency", "relevance", "diversity", "recency", "consolidation", "conceptual")
            say("        " + "  ".join(f"{name} {getattr(parts, name):.2f}" for name in names))
            for reason in candidate.reasons:
                say(f"        {inert(reason)}")
            for gate in candidate.gates:
                say(f"        {'pass' if gate.passed else 'STOP'}  {gate.name}: {inert(gate.said[:120])}")
        if swept.diff:
            show.diff(swept.diff)
        if swept.status in ("nothing", "busy", "refused") or (plan := swept.plan) is None:
            return say(f"{swept.status}: {inert(swept.said)}")
        kept, gone, moved = len(plan.promotions), len(plan.retirements), len(plan.moves)
        counts = f"{kept} kept, {gone} no longer so, {moved} moved out, {len(plan.considered)} considered"
        waiting = f"; {len(swept.proposals)} wait for you: {show.called('review')}" if swept.proposals else ""
        back = f" (change {swept.change}; {show.called('undo --sweep')} takes it back)" if swept.change else ""
        return say(f"{swept.status}: {counts}{back}{waiting}")

    value = picked(swept, "status change revision said proposals diff")
    if plan := swept.plan:
        value |= {"preset": plan.rules.name} | picked(plan, "recalls themes")
        value["promoted"] = [{"line": p.line, **_candidate(p.candidate)} for p in plan.promotions]
        gone = plan.retirements
        retired = [{"fact": each.held.fact, **picked(each, "since until"), "by": each.by.text} for each in gone]
        value |= {"retired": retired, "moved": [held.fact for held in plan.moves], "diary": plan.diary}
        value["considered"] = [_candidate(candidate) for candidate in plan.considered]
    return Reply(value, shown)


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return picked(candidate.note, "text path line") | picked(candidate, "score evidence lasting reasons gates")


# -- a whole home, kept and moved ---------------------------------------------------------------------------------------------

_SHOWN, _SHOWN_MOVED = 12, 20


@command(opens=False, owners=lambda given: given["action"] in ("restore", "prune") and not given["dry_run"])
def snapshot(action: str, archive: str | None, home: str | None, json: bool, **asked: Any) -> Reply:
    actions = {"take": _take, "list": _list, "verify": _verify, "restore": _restore, "prune": _prune}
    if action not in actions:
        raise BadArguments(f"{action}: a snapshot can be {', '.join(actions)}", hint="anima snapshot --help")
    if (archive is None) == (action in ("verify", "restore")):
        what = "needs the archive: a file, a name or latest" if archive is None else "takes no archive"
        raise BadArguments(f"anima snapshot {action} {what}", hint="anima snapshot --help")
    asked["json"] = json
    return actions[action](home, archive or "", asked)


def _take(home: str | None, _: str, asked: dict[str, Any]) -> Reply:
    given = {"to": asked["to"], "label": asked["label"], "recipients": asked["to_recipient"]}
    with open_home(home) as opened, progress_bar("packing") as progress:
        made = opened.snapshots.take(**given, progress=progress)

    def shown() -> None:
        if not made.fresh:
            return say(f"Nothing changed since {made.name} ({_size(made.size)}).")
        sealed = ", then sealed" if made.sealed else ""
        say(f"{made.path}\n{made.files:,} files, {_size(made.size)}, read back and found whole{sealed}.")
        return _show_left_out(made.left_out, _SHOWN)

    return Reply({"name": made.name, **plain(made)}, shown)


def _list(home: str | None, _: str, asked: dict[str, Any]) -> Reply:
    with open_home(home) as opened:
        found = opened.snapshots.all()
    lines = []
    for each in found:
        when, sealed = f"{each.time.astimezone(UTC):%Y-%m-%d %H:%M}", "sealed  " if each.sealed else ""
        lines.append(f"{when}  {each.digest}  {_size(each.size):>9}  {sealed}{each.label}".rstrip())
    value = [{"name": each.name, **plain(each)} for each in found]
    return Reply(value, "\n".join(lines) or f"There are no snapshots yet; {show.called('snapshot')} takes one.")


def _verify(home: str | None, archive: str, asked: dict[str, Any]) -> Reply:
    opening = {"identities": asked["identity"], "large": asked["large"]}
    with progress_bar("reading") as progress:
        if os.path.isfile(path := os.path.expanduser(archive)):
            found = anima.verify_archive(path, **opening, progress=progress)
        else:
            with open_home(home) as opened:
                found = opened.snapshots.verify(archive, **opening, progress=progress)
    value = {"ok": True} | picked(found, "digest home dialect agent size left_out")
    value |= {"files": len(found.files), "ledger": {"n": found.ledger[0], "hash": found.ledger[1]}}
    return Reply(
        value,
        f"Whole: {len(found.files):,} files, {_size(found.size)}, of {flat(found.agent or 'an agent')} "
        f"({flat(found.home)}), ledger up to record {found.ledger[0]:,}.",
    )


def _prune(home: str | None, _: str, asked: dict[str, Any]) -> Reply:
    dry_run = asked["dry_run"]
    with open_home(home) as opened:
        gone = opened.snapshots.prune(dry_run=dry_run)
        left = len(opened.snapshots.all())
    verb = "would remove" if dry_run else "removed"
    told = "\n".join(f"{verb} {each.name}  {_size(each.size)}" for each in gone)
    kept = left - len(gone) if dry_run else left
    value = {"gone": [{"name": each.name, **plain(each)} for each in gone], "kept": kept, "done": not dry_run}
    return Reply(value, told or f"Nothing to remove; {left} {'is' if left == 1 else 'are'} kept.")


def _restore(home: str | None, archive: str, asked: dict[str, Any]) -> Reply:
    place, as_json, dry_run = home_path(home, may_be_missing=True), asked["json"], asked["dry_run"]
    opening = {"identities": asked["identity"], "large": asked["large"]}
    opening["other"] = asked["other_home"]
    with progress_bar("verifying") as progress:
        found = anima.restore(archive, place, dry_run=True, progress=progress, **opening)
    if not as_json:
        new, changed, gone = len(found.new), len(found.changed), len(found.gone)
        say(f"{found.home}: {new:,} new, {changed:,} changed, {gone:,} gone, {found.same:,} as they are")
        marked = (("+", found.new), ("~", found.changed), ("-", found.gone))
        rows = [(mark, path) for mark, paths in marked for path in paths]
        # a home's own names are never hidden
        own = [f"  {mark} {path}" for mark, path in rows if not path.startswith(".")]
        listed(own, _SHOWN)
        if len(rows) > len(own):
            say(f"  and {len(rows) - len(own):,} files of ledger and history")
        show.notes((f"{path}: {why}" for path, why in found.left[:_SHOWN]), "stays")
        if found.forgotten:
            whisper(f"note: {found.forgotten:,} phrases were forgotten since; they stay forgotten")
        show.notes(found.notes, "note")
    known = found.notes
    if not dry_run:
        if not asked["yes"]:
            need_person(
                "restoring needs a person at a terminal, or --yes; nothing was changed",
                hint="--dry-run only shows what would change",
            )
            click.confirm(f"Restore it to {found.home}? What is there becomes a snapshot first.", abort=True, err=True)
        with progress_bar("restoring") as progress:
            found = anima.restore(found.archive, place, progress=progress, **opening)

    def shown() -> None:
        if not dry_run:
            say(f"Restored {found.digest[:12]}." + (f" What was there is {found.before.name}." if found.before else ""))
            show.notes([note for note in found.notes if note not in known], "note")

    return Reply(found, shown)


def _size(count: int) -> str:
    from rich.filesize import decimal

    return decimal(count)


@command()
def export(home: Home, target: str, format: str, no_sessions: bool, json: bool) -> Reply:
    to_stdout = target == "-"
    if to_stdout and json:
        raise BadArguments("standard output cannot hold both the export and --json", hint="name a file")
    with progress_bar("exporting") as step:
        stream = sys.stdout.buffer if to_stdout else target
        done = home.export(stream, format=format, sessions=not no_sessions, progress=step)
    tell = whisper if to_stdout else say

    def shown() -> None:
        counts = _counts(done.documents, done.sessions, done.files)
        tell(f"{inert(done.target)}: {counts}, {done.bytes:,} bytes.")
        tell("It holds everything, private parts too; keep it as you keep the home.")
        if done.moved:
            stand = "file stands where {} keeps it" if len(done.moved) == 1 else "files stand where {} keeps them"
            tell(f"{len(done.moved):,} {stand.format(done.format)}; .anima-export.json leads back.")
        _show_left_out(done.left_out, _SHOWN_MOVED)

    return Reply(done, shown)


def _counts(documents: int, sessions: int, files: int) -> str:
    return f"{counted(documents, 'document')}, {counted(sessions, 'transcript')}, {counted(files, 'other file')}"


def _show_left_out(left_out: Sequence[tuple[str, str]], most: int) -> None:
    listed([f"{path}: {why}" for path, why in left_out], most, before="left out: ", tell=whisper)


@command(name="import", owners=unless_dry)
def import_(home: Home, source: str, **asked: Any) -> Reply:
    with progress_bar("importing") as step:
        done = home.import_from(os.path.expanduser(source), **asked, progress=step)
    return Reply(done, lambda: _show_imported(done))


def _show_imported(done: Imported) -> None:
    counts = _counts(len(done.copied), len(done.sessions), len(done.files))
    say(f"{'Would come in' if done.dry_run else 'Came in'}: {counts}. Already here: {len(done.present):,}.")
    for path in (*done.copied, *done.sessions, *done.files) if done.dry_run else ():
        say(f"  {inert(path)}")
    if done.replaced:
        verb = "Would be replaced" if done.dry_run else "Replaced"
        say(f"{verb}: {_first(list(map(inert, done.replaced)))}")
    if len(done.changes) == 1:
        say(f"Change {done.changes[0]}; {show.called(f'undo {done.changes[0]}')} takes it back.")
    elif done.changes:
        say(f"Changes {_first(done.changes)}; {show.called(f'undo {done.changes[-1]}')} takes the last of them back.")
    if any(path.startswith("unreviewed/") for path in done.copied):
        say(f"Documents wait in unreviewed/; {show.called('review')} keeps or drops them.")
    if done.differs:
        listed(done.differs, _SHOWN_MOVED, before="differs: ", tell=whisper)
        whisper(
            "Those stand here with another text, and were left as they are; --mine --replace writes documents over."
        )
    if done.doubtful:
        doubtful = [f"{path}: {why}" for path, why in done.doubtful]
        listed(doubtful, _SHOWN_MOVED, before="look at: ", tell=whisper)
        whisper("Those lines look like an attack or a secret, and what you import is trusted as your own words are.")
    forgotten = [f"{path}: {counted(lines, 'line')} left out" for path, lines in done.forgotten]
    listed(forgotten, _SHOWN_MOVED, before="forgotten: ", tell=whisper)
    _show_left_out(done.left_out, _SHOWN_MOVED)


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN_MOVED]) + (" …" if len(names) > _SHOWN_MOVED else "")


@command(opens=False, owners=lambda given: True)
def migrate(source: str, target: str, home: str | None) -> Reply:
    from anima.home import folders

    if home is not None:
        raise BadArguments("migrate takes both places by name: anima migrate FROM TO")
    with progress_bar("moving") as progress:
        done = folders.migrate(home_path(source), home_path(target, may_be_missing=True), progress=progress)
    told = f"{counted(done.files, 'file')}, {counted(done.records, 'record')} and {counted(done.revisions, 'revision')}"
    stood = " All of it stood there already." if done.was_there else ""
    same = f"{flat(done.target)} is the same as {flat(done.source)}: {told}.{stood}"
    return Reply(done, [same, "Write to one of them only."])

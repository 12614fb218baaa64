"""Commands that keep and move a whole home: snapshot (take, list, verify, restore, prune) export import migrate."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

import click

import anima
from anima.cli import show
from anima.cli.command import Reply, command, home_path, open_home, unless_dry
from anima.cli.show import counted, flat, inert, listed, need_person, plain, progress_bar, say, whisper
from anima.errors import BadArguments

if TYPE_CHECKING:
    from anima import Home, Imported, Restoration

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
    return Reply(value, "\n".join(lines) or "There are no snapshots yet; anima snapshot takes one.")


def _verify(home: str | None, archive: str, asked: dict[str, Any]) -> Reply:
    opening = {"identities": asked["identity"], "large": asked["large"]}
    with progress_bar("reading") as progress:
        if os.path.isfile(path := os.path.expanduser(archive)):
            found = anima.verify_archive(path, **opening, progress=progress)
        else:
            with open_home(home) as opened:
                found = opened.snapshots.verify(archive, **opening, progress=progress)
    names = ("digest", "home", "dialect", "agent", "size", "left_out")
    value = {"ok": True} | {name: getattr(found, name) for name in names}
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
        _show_plan(found)
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


def _show_plan(found: Restoration) -> None:
    new, changed, gone = len(found.new), len(found.changed), len(found.gone)
    say(f"{found.home}: {new:,} new, {changed:,} changed, {gone:,} gone, {found.same:,} as they are")
    marked = (("+", found.new), ("~", found.changed), ("-", found.gone))
    rows = [(mark, path) for mark, paths in marked for path in paths]
    own = [f"  {mark} {path}" for mark, path in rows if not path.startswith(".")]  # a home's own names are never hidden
    listed(own, _SHOWN)
    if len(rows) > len(own):
        say(f"  and {len(rows) - len(own):,} files of ledger and history")
    show.notes((f"{path}: {why}" for path, why in found.left[:_SHOWN]), "stays")
    if found.forgotten:
        whisper(f"note: {found.forgotten:,} phrases were forgotten since; they stay forgotten")
    show.notes(found.notes, "note")


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:,} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


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
        say(f"Change {done.changes[0]}; anima undo {done.changes[0]} takes it back.")
    elif done.changes:
        say(f"Changes {_first(done.changes)}; anima undo {done.changes[-1]} takes the last of them back.")
    if any(path.startswith("unreviewed/") for path in done.copied):
        say("Documents wait in unreviewed/; anima review keeps or drops them.")
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
    return Reply(
        done, f"{flat(done.target)} is the same as {flat(done.source)}: {told}.{stood}\nWrite to one of them only."
    )

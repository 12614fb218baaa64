"""The verb that keeps a home safe: snapshot, which takes, lists, verifies, restores and prunes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anima.cli.show import HomeOption, JsonOption, home_path, inert, open_home, progress_bar, say, say_json, whisper
from anima.errors import BadArguments, Refused

if TYPE_CHECKING:
    from anima.backup.restore import Restoration
    from anima.backup.snapshot import Snapshot

ACTIONS = ("take", "list", "verify", "restore", "prune")
PASSPHRASE = "ANIMA_SNAPSHOT_PASSPHRASE"
_SHOWN = 12
_MACHINERY = (".anima/", ".git/")


def add_to(app: typer.Typer) -> None:
    app.command("snapshot")(snapshot)


def snapshot(
    action: Annotated[str, typer.Argument(help="take, list, verify, restore or prune.")] = "take",
    archive: Annotated[str | None, typer.Argument(help="A file, the beginning of a name or digest, or latest.")] = None,
    to: Annotated[
        str | None, typer.Option(metavar="PATH", help="Take: a folder, or a file that is not there yet.")
    ] = None,
    label: Annotated[str, typer.Option(help="Take: a word for its name, such as before-move.")] = "",
    to_recipient: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Take: seal it for a key of age or ssh.")
    ] = None,
    passphrase: Annotated[
        bool, typer.Option("--passphrase", help=f"Seal or open it by a passphrase, or {PASSPHRASE}.")
    ] = False,
    identity: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Verify, restore: a key that opens a sealed one.")
    ] = None,
    other_home: Annotated[bool, typer.Option("--other-home", help="Restore: also where another home stands.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Restore, prune: only show what would change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Restore: do not ask.")] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Keep the whole home in one verified archive, and put one back.

    A snapshot is a .tar.gz of documents, transcripts, ledger, key and history. It holds the home's secrets: seal what
    leaves your machine. Restoring verifies it, takes a snapshot of what is there, and swaps all of it or nothing.

    \b
    anima snapshot                                      one now, if anything changed
    anima snapshot take --to /mnt/usb --to-recipient age1…
    anima snapshot list
    anima snapshot verify latest
    anima snapshot restore 4d7a60bb --dry-run
    anima snapshot restore aria.tar.gz --home ~/aria    also into a folder that is not there yet
    anima snapshot prune
    """
    if action not in ACTIONS:
        raise BadArguments(f"{action}: a snapshot can be {', '.join(ACTIONS)}", hint="anima snapshot --help")
    if (archive is None) == (action in ("verify", "restore")):
        raise BadArguments(
            f"anima snapshot {action} needs the archive: a file, a name or latest"
            if archive is None
            else f"anima snapshot {action} takes no archive",
            hint="anima snapshot --help",
        )
    if action == "take":
        _take(home, json, to=to, label=label, recipients=to_recipient or (), passphrase=_secret(passphrase, twice=True))
    elif action == "list":
        _list(home, json)
    elif action == "verify":
        _verify(str(archive), home, json, identities=identity or (), passphrase=_secret(passphrase))
    elif action == "prune":
        _prune(home, json, dry_run)
    else:
        opening = {"identities": identity or (), "passphrase": _secret(passphrase), "other": other_home}
        _restore(str(archive), home, json, yes=yes, dry_run=dry_run, opening=opening)


def _secret(asked: bool, *, twice: bool = False) -> str | None:
    """The passphrase: of the environment, or asked for. Never one of the command line, where others could read it."""
    if not asked:
        return None
    if given := os.environ.get(PASSPHRASE):
        return given
    if not sys.stdin.isatty():
        raise BadArguments("there is no terminal to ask for the passphrase", hint=f"set {PASSPHRASE}")
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=twice, err=True))


def _take(home: str | None, json: bool, **asked: Any) -> None:
    with open_home(home) as opened, progress_bar("packing") as progress:
        made = opened.snapshot(**asked, progress=progress)
    if json:
        say_json(_row(made))
        return
    if not made.fresh:
        say(f"Nothing changed since {made.name} ({_size(made.size)}).")
        return
    say(
        f"{made.path}\n{made.files:,} files, {_size(made.size)}, read back and found whole{', then sealed' if made.sealed else ''}."
    )
    for path, why in made.left_out[:_SHOWN]:
        whisper(f"left out: {inert(path)}: {inert(why)}")
    if len(made.left_out) > _SHOWN:
        whisper(f"left out: and {len(made.left_out) - _SHOWN:,} more; --json lists them all")


def _row(made: Snapshot) -> dict[str, object]:
    return {"name": made.name, **{name: getattr(made, name) for name in made.__dataclass_fields__}}


def _list(home: str | None, json: bool) -> None:
    with open_home(home) as opened:
        found = opened.snapshots()
    if json:
        say_json([_row(each) for each in found])
        return
    if not found:
        say("There are no snapshots yet; anima snapshot takes one.")
    for each in found:
        when = each.time.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
        say(f"{when}  {each.digest}  {_size(each.size):>9}  {'sealed  ' if each.sealed else ''}{each.label}".rstrip())


def _verify(archive: str, home: str | None, json: bool, *, identities: Sequence[str], passphrase: str | None) -> None:
    from anima.backup.snapshot import verify

    with progress_bar("reading") as progress:
        if os.path.isfile(path := os.path.expanduser(archive)):
            found = verify(path, identities=identities, passphrase=passphrase, progress=progress)
        else:
            with open_home(home) as opened:
                found = opened.verify_snapshot(archive, identities=identities, passphrase=passphrase, progress=progress)
    if json:
        say_json(
            {
                "ok": True,
                "digest": found.digest,
                "home": found.home,
                "dialect": found.dialect,
                "agent": found.agent,
                "ledger": {"n": found.ledger[0], "hash": found.ledger[1]},
                "files": len(found.files),
                "size": found.size,
                "left_out": found.left_out,
            }
        )
        return
    say(
        f"Whole: {len(found.files):,} files, {_size(found.size)}, of {inert(found.agent or 'an agent', lines=False)} "
        f"({inert(found.home, lines=False)}), ledger up to record {found.ledger[0]:,}."
    )


def _prune(home: str | None, json: bool, dry_run: bool) -> None:
    with open_home(home) as opened:
        gone = opened.prune_snapshots(dry_run=dry_run)
        left = len(opened.snapshots())
    if json:
        say_json(
            {"gone": [_row(each) for each in gone], "kept": left - len(gone) if dry_run else left, "done": not dry_run}
        )
        return
    for each in gone:
        say(f"{'would remove' if dry_run else 'removed'} {each.name}  {_size(each.size)}")
    if not gone:
        say(f"Nothing to remove; {left} {'is' if left == 1 else 'are'} kept.")


def _restore(archive: str, home: str | None, json: bool, *, yes: bool, dry_run: bool, opening: dict[str, Any]) -> None:
    from anima.home import Home

    place = home_path(home, may_be_missing=True)
    with progress_bar("verifying") as progress:
        found = Home.restore_snapshot(archive, place, dry_run=True, progress=progress, **opening)
    if not json:
        _show(found)
    if not dry_run:
        _ask(found, yes)
        known = found.notes
        with progress_bar("restoring") as progress:
            found = Home.restore_snapshot(found.archive, place, progress=progress, **opening)
    if json:
        say_json(found)
    elif not dry_run:
        _show_done(found, [note for note in found.notes if note not in known])


def _ask(found: Restoration, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(
            "restoring needs a person at a terminal, or --yes; nothing was changed",
            rule="terminal",
            hint="--dry-run only shows what would change",
        )
    typer.confirm(f"Restore it to {found.home}? What is there becomes a snapshot first.", abort=True, err=True)


def _show(found: Restoration) -> None:
    say(
        f"{found.home}: {len(found.new):,} new, {len(found.changed):,} changed, {len(found.gone):,} gone, {found.same:,} as they are"
    )
    rows = [
        (mark, path) for mark, paths in (("+", found.new), ("~", found.changed), ("-", found.gone)) for path in paths
    ]
    own = [(mark, path) for mark, path in rows if not path.startswith(_MACHINERY)]
    for mark, path in own[:_SHOWN]:
        say(f"  {mark} {inert(path, lines=False)}")
    if len(own) > _SHOWN:
        say(f"  … and {len(own) - _SHOWN:,} more; --json lists them all")
    if len(rows) > len(own):
        say(f"  and {len(rows) - len(own):,} files of ledger and history")
    for path, why in found.left[:_SHOWN]:
        whisper(f"stays: {inert(path)}: {inert(why)}")
    if found.forgotten:
        whisper(f"note: {found.forgotten:,} phrases were forgotten since; they stay forgotten")
    for note in found.notes:
        whisper(f"note: {inert(note)}")


def _show_done(found: Restoration, notes: Sequence[str]) -> None:
    say(f"Restored {found.digest[:12]}." + (f" What was there is {found.before.name}." if found.before else ""))
    for note in notes:
        whisper(f"note: {inert(note)}")


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:,} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")

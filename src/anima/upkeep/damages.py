"""Every damage a home is known to suffer: how it is found, what a repair does, and what only the owner can decide.

Promise: one row a damage, and no damage is found, mended, documented or tested without its row: `health` names rows by
their `name`, `mending` has a hand for each that has a `repair`, `docs/health.md` shows this very table, and the tests
do each of them to a real home. Pure data. Not here: finding (health, examining) and mending.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["fine", "advice", "damage"]
REPAIR = "anima doctor --repair"


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One row. An empty `repair` means that nothing is done by itself; an empty `owner`, that nothing is left to decide."""

    name: str
    what: str
    found: str
    repair: str = ""
    owner: str = ""
    level: Level = "damage"

    @property
    def do(self) -> str:
        """What somebody who reads of it can do now."""
        if not self.repair:
            return self.owner
        return f"{REPAIR}; {self.owner}" if self.owner.startswith("put a backup") else REPAIR


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One sentence about the health of a home. `do` is a command or an action, when there is one; `name` is the row of the
    table that it speaks of, if there is one."""

    level: Level
    about: str
    message: str
    do: str = ""
    name: str = ""


def remark(name: str, about: str, message: str, *, do: str | None = None) -> Remark:
    """A sentence about a damage of the table."""
    row = BY_NAME[name]
    return Remark(level=row.level, about=about, message=message, do=row.do if do is None else do, name=name)


def _rows(level: Level, *rows: tuple[str, str, str, str, str]) -> tuple[Damage, ...]:
    return tuple(Damage(level=level, name=n, what=w, found=f, repair=r, owner=o) for n, w, f, r, o in rows)


_AGAIN = "deleted and made again from the documents"
_NEW_CHAIN = (
    "set aside; every sound record goes into a new chain that says so; lines nothing vouches for stay out of prompts"
)
TRUST = "look through the lines that are left out, then `anima trust --all`, or forget them"
_REBUILT = (
    "whole revisions are put together anew; the broken repository is set aside; documents are committed as they stand"
)
_RESTORE = "restore the home from a snapshot or backup"

_HOME = _rows(
    "damage",
    (
        "home-vanished",
        "the folder of a home you made is gone",
        "your list of homes knows it",
        "",
        "mount its disk or restore a backup; `anima init --again` makes a new one",
    ),
    (
        "home-empty",
        "the folder of a home you made is empty",
        "your list of homes knows it, and nothing is in the folder",
        "",
        "mount its disk or restore a backup; `anima init --again` makes a new one",
    ),
    (
        "home-wiped",
        "the documents are gone and `.anima` is left",
        "the ledger knows documents, and none of them is there",
        "",
        "bring them back: `anima history`, `anima restore DOCUMENT --at REVISION`, or a snapshot",
    ),
    ("home-not-a-folder", "a file stands where the home should be", "it is no folder", "", "move the file away"),
    (
        "home-owner",
        "the folder belongs to another user",
        "its owner is not who runs anima",
        "",
        "run anima as that user, or give the folder to yours",
    ),
    (
        "config-broken",
        "`anima.toml` cannot be understood",
        "it is not TOML, or a key is wrong",
        "",
        "mend the line it names; `anima history anima.toml` has earlier versions",
    ),
    (
        "config-not-a-file",
        "a folder, link or pipe in place of `anima.toml`",
        "its kind",
        "",
        "move it away, and write `anima.toml` again if you had one",
    ),
)

_MACHINE = _rows(
    "damage",
    (
        "machine-missing",
        "`.anima` was deleted, documents and history are there",
        "history names records of a ledger that is gone",
        "made again; a new ledger begins, in which nothing vouches for the lines there are",
        TRUST,
    ),
    (
        "machine-not-a-folder",
        "`.anima` is a file",
        "its kind",
        "set aside inside the folder that is made in its place",
        "",
    ),
    (
        "machine-link",
        "`.anima` is a link",
        "its kind; links are not followed",
        "a link to nothing is set aside",
        "move the folder it leads to back into the home",
    ),
    ("machine-not-a-file", "a folder, link or pipe in place of a file in `.anima`", "its kind", "set aside", ""),
    (
        "machine-unreadable",
        "a mode keeps you from something in `.anima` or in the repository",
        "its mode",
        "made readable and writable for you, before anything else is looked at",
        "",
    ),
    (
        "batch-interrupted",
        "a change that a crash cut short",
        "the ledger announces it and never ends it",
        "finished or taken back, all or nothing",
        "",
    ),
    (
        "proposal-broken",
        "a waiting change cannot be read, or was altered",
        "it does not match its own digest",
        "set aside",
        "ask the agent to propose it again",
    ),
    (
        "forgotten-broken",
        "the list of what stays forgotten cannot be read",
        "it is not what was written",
        "set aside, and begun anew",
        "put a backup of `.anima/forgotten` back, or forget those things again",
    ),
)

_LEDGER = _rows(
    "damage",
    ("ledger-altered", "a record is not what was written", "it does not match its own hash", _NEW_CHAIN, TRUST),
    (
        "ledger-unlinked",
        "records are missing, swapped, repeated or put in",
        "a record does not follow the one before it",
        _NEW_CHAIN,
        TRUST,
    ),
    (
        "ledger-headless",
        "the first record is missing",
        "the ledger does not begin with the record of its home",
        _NEW_CHAIN,
        TRUST,
    ),
    ("ledger-cut", "the end of the ledger was cut off", "history names records that are not there", _NEW_CHAIN, TRUST),
    (
        "ledger-rewritten",
        "the ledger was written anew from some record on",
        "history knows other records",
        _NEW_CHAIN,
        TRUST,
    ),
    (
        "ledger-missing",
        "the ledger was deleted",
        "history or the mark of untrusted lines is there without it",
        "a new ledger begins, in which nothing vouches for the lines there are",
        TRUST,
    ),
    (
        "doubt-missing",
        "the mark that there are untrusted lines was deleted, so prompts do not look for them",
        "the ledger knows such lines, and there is no `.anima/doubt`",
        "put back",
        "",
    ),
    (
        "ledger-format",
        "the ledger was written by a newer anima",
        "its first record says so",
        "",
        "use that version, or a newer one",
    ),
    (
        "key-missing",
        "the key of the ledger was deleted",
        "there is a ledger and no key",
        "a new key; the ledger is carried over to a new chain, in which nothing vouches for the lines there are",
        f"put a backup of `.anima/key` back before the repair; else {TRUST}",
    ),
    (
        "key-replaced",
        "the key is not the ledger's",
        "the first record names another key",
        "the ledger is carried over to a new chain with this key, in which nothing vouches for the lines there are",
        f"put a backup of `.anima/key` back before the repair; else {TRUST}",
    ),
    (
        "key-broken",
        "the key has not the right length, or is blank",
        "its bytes",
        "set aside; a new key, and a new chain in which nothing vouches for the lines there are",
        f"put a backup of `.anima/key` back before the repair; else {TRUST}",
    ),
)

_HISTORY = _rows(
    "damage",
    (
        "history-lock",
        "a git command died and left its lock",
        "the lock is older than a minute",
        "the lock is removed",
        "",
    ),
    ("history-head-broken", "HEAD is missing or garbage", "it names no branch", "HEAD is put on main", ""),
    (
        "history-broken",
        "a part of the repository is gone, cut or flipped",
        "a revision cannot be read in full, or main leads to none",
        _REBUILT,
        "",
    ),
    (
        "history-unsafe",
        "a link, pipe or file stands where the repository has something else",
        "its kind",
        "set aside, and mended as if it were gone",
        "",
    ),
    (
        "history-gone",
        "the repository was deleted",
        "the ledger tells of changes and there is no history",
        "begun anew with the documents as they stand",
        "put a backup of the repository back before the repair, if you have one",
    ),
    (
        "history-unmarked",
        "our place for history holds somebody else's repository",
        "it has not our mark",
        "set aside, and begun anew",
        "",
    ),
)

_INDEX = _rows(
    "damage",
    (
        "index-damaged",
        "the index is damaged, cut, not ours, or no database",
        "SQLite's own check, its tables, and a sum a row",
        _AGAIN,
        "",
    ),
    (
        "talks-damaged",
        "the index of transcripts is damaged, cut, or no database",
        "its first bytes and SQLite's own check",
        "deleted and made again from the transcripts",
        "",
    ),
)

_TALKS = _rows(
    "damage",
    (
        "transcript-damaged",
        "lines of a transcript cannot be read",
        "a line is not JSON, or lacks what its kind has",
        "",
        "nothing is lost but that line: it is passed over, and its session counts as untrusted",
    ),
)

_DOCUMENTS = _rows(
    "damage",
    (
        "document-not-utf8",
        "a document is not UTF-8",
        "its bytes",
        "",
        "save it as UTF-8, or restore an earlier version",
    ),
    ("document-too-large", "a document is larger than anima reads", "its size", "", "split it"),
    ("document-nul", "a document holds NUL bytes", "its bytes", "", "restore an earlier version, or take them out"),
    (
        "document-conflict",
        "a document holds the marks of an unfinished merge",
        "lines that begin with the three marks",
        "",
        "decide which side stays, and save it",
    ),
    (
        "document-twins",
        "two documents have one name but for case or Unicode form",
        "their names fold alike",
        "",
        "keep one of the two",
    ),
    (
        "document-unreadable",
        "a document's mode keeps you from it",
        "its mode",
        "made readable and writable for you",
        "",
    ),
    ("document-owner", "a document belongs to another user", "its owner", "", "give it to yourself: chown"),
    ("folder-unreadable", "a folder's mode keeps you from it", "its mode", "made readable and writable for you", ""),
)

_AROUND = _rows(
    "damage",
    (
        "tokens-broken",
        "the tokens of the served home cannot be read",
        "the file in your configuration is no JSON",
        "set aside beside it; nobody gets in by the old ones",
        "make new tokens: `anima token make`",
    ),
    (
        "register-broken",
        "your list of homes cannot be read",
        "the file in your configuration is no JSON",
        "set aside beside it; this home is noted again, not trusted",
        "`anima trust-home` for each home you trust",
    ),
    (
        "disk-full",
        "the disk has no room",
        "less than a megabyte is free",
        "",
        "make room, then repair again; nothing is lost meanwhile",
    ),
    (
        "not-looked-at",
        "something kept the doctor from looking",
        "an error while looking",
        "",
        "read the sentence; look again when it is mended",
    ),
)

# A torn last line is passed over by every reader and cut off by the next write; nothing that was acknowledged is in it.
_ADVICE = _rows(
    "advice",
    (
        "ledger-torn",
        "the last line of the ledger has no end",
        "bytes after the last line break",
        "cut off and set aside",
        "",
    ),
    (
        "transcript-torn",
        "the last line of a transcript has no end",
        "bytes after the last line break",
        "cut off and set aside",
        "",
    ),
    (
        "modes",
        "others of this machine can read the home",
        "modes",
        "taken back: 0700 for the folder, nothing for others on files",
        "",
    ),
    ("machine-modes", "others can read `.anima`", "modes", "0700 for folders, 0600 for files", ""),
    (
        "machine-foreign",
        "files in `.anima` that are not ours",
        "their names",
        "",
        "look at it; delete it if you do not know it",
    ),
    (
        "stage-leftover",
        "texts staged by a write that was killed",
        "files nobody holds in `.anima/stage`",
        "forgotten",
        "",
    ),
    (
        "temp-leftover",
        "what an interrupted swap of history left",
        "`.git.new`, `.git.past` and the like",
        "set aside",
        "",
    ),
    (
        "history-other-branch",
        "another branch is checked out, or none",
        "HEAD names it, or holds an id; history goes on on main",
        "HEAD is put on main",
        "what you committed there stays on that branch",
    ),
    (
        "history-foreign",
        "somebody else's repository stands in `.git`",
        "it has not our mark",
        "",
        "nothing, if it is yours: history goes on in `.anima/history.git`",
    ),
    (
        "history-busy",
        "a git command holds its lock",
        "the lock is younger than a minute",
        "",
        "wait until it has ended",
    ),
    (
        "sessions-foreign",
        "a file among the transcripts that is none",
        "its name or first line",
        "",
        "move it away; nothing reads it",
    ),
    (
        "sweep-state-broken",
        "the note of the last night cannot be read",
        "it is no JSON",
        "set aside; the next night writes it",
        "",
    ),
    (
        "document-emptied",
        "a document holds nothing any more",
        "it is empty, and the ledger knows that it held something",
        "",
        "bring it back, if you did not empty it: `anima history DOCUMENT`, `anima restore DOCUMENT --at REVISION`",
    ),
    (
        "document-link",
        "a link in place of a document",
        "its kind; links are not followed",
        "",
        "put the document itself there",
    ),
    ("document-folder", "a folder in place of a document", "its kind", "", "move it away, and write the document"),
    (
        "document-special",
        "a pipe, socket or device among the documents",
        "its kind; it is never opened",
        "",
        "remove it",
    ),
    (
        "document-hardlinked",
        "a document has a second name somewhere",
        "its link count",
        "",
        "anima does not write to it; copy it over itself if you did not mean this",
    ),
    (
        "clock-backwards",
        "the ledger or a log is from the future",
        "times later than tomorrow",
        "",
        "set the clock; ids and order do not depend on it",
    ),
)

_FINE = _rows(
    "fine",
    (
        "lock-held",
        "a living process holds the home",
        "the lock cannot be had",
        "",
        "nothing: it lets go when it is done",
    ),
    (
        "lock-left",
        "the lock file of a process that is gone",
        "nobody holds it",
        "",
        "nothing: a lock dies with its holder, and the file stays",
    ),
)

TABLE: tuple[Damage, ...] = (
    *_HOME,
    *_MACHINE,
    *_LEDGER,
    *_HISTORY,
    *_INDEX,
    *_TALKS,
    *_DOCUMENTS,
    *_AROUND,
    *_ADVICE,
    *_FINE,
)
BY_NAME = {row.name: row for row in TABLE}

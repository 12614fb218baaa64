"""Every error anima raises, as one tree, and what each means at a face.

    HomeError
    ├── BadInput            what was asked makes no sense
    │   ├── BadPath         not a place inside a home
    │   ├── BadArguments    a verb or tool was called wrongly
    │   ├── BadConfig       a configuration key or value is wrong
    │   └── BadText         not UTF-8, or too large to handle
    ├── NotFound            it makes sense, but there is no such thing
    │   ├── NoSuchHome
    │   ├── NoSuchDocument
    │   ├── NoSuchProposal
    │   ├── NoSuchRevision
    │   └── NoSuchSession
    ├── StaleWrite          somebody else wrote in between; carries both versions
    ├── Refused             understood, and not allowed
    │   ├── NewerFormat     a newer anima wrote it; says which file, and what is read here
    │   └── OverQuota       a tenant would have more than it may
    ├── HomeBusy            the lock is held; names the holder
    ├── TooMany             too much of a kind goes on already
    ├── Damaged             the disk, or a file of ours, is not what it must be
    └── MissingExtra        an optional part is not installed; names the extra

Promise: a message is one or two sentences that say what happened and what to do, and never hold an absolute path
unless the caller gave it; an error knows its `exit_code` and `http_status`, and can be copied and pickled. Not here: how it looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

# What does what the command does that a hint names.
_VERBS = """init=Home.create files=home.list_all review=home.inbox history=home.past.changes sessions=home.sessions.list
snapshot=home.snapshots.all doctor=anima.doctor trust-home=home.trust undo=home.undo forget=home.forget"""
_IN_PYTHON = dict(each.split("=") for each in _VERBS.split())


class HomeError(Exception):
    """The root of the tree. `hint`, when there is one, says what to do next."""

    hint: str | None = None
    # Exit codes: 0 fine, 1 findings (doctor, audit), 2 bad input, 3 not found, 4 conflict, 5 refused, 6 busy, 7 damaged,
    # 8 missing part, 130 interrupted.
    exit_code, http_status = 7, 500

    def __init_subclass__(cls, *, means: tuple[int, int] | None = None) -> None:
        cls.exit_code, cls.http_status = means or (cls.exit_code, cls.http_status)

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        if hint is not None:
            self.hint = hint
            verbs = [_IN_PYTHON[each] for each in re.findall(r"\banima ([a-z-]+)", hint) if each in _IN_PYTHON]
            self.add_note(f"What to do: {hint}{f' (in Python: {verbs[0]})' if verbs else ''}")  # a traceback shows it

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), str(self)), vars(self)


def _again(kind: type[HomeError], message: str) -> HomeError:
    """An error from a message that is made already, which no `__init__` makes a second time."""
    return kind.__new__(kind, message)


class BadInput(HomeError, means=(2, 400)):
    """What was asked makes no sense."""


class BadPath(BadInput):
    """Not a place inside a home. `raw` is what was given, `why` the rule it breaks."""

    def __init__(self, raw: str, why: str) -> None:
        self.raw, self.why = raw, why
        super().__init__(f"{printable(raw)}: {why}")


class BadArguments(BadInput):
    """A verb or a tool was called with arguments it does not take."""


class BadConfig(BadInput):
    """A configuration key or value is wrong. `where` is the file, variable or flag it came from."""

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.where = where
        super().__init__(f"{where}: {message}" if where else message, hint=hint)


class BadText(BadInput):
    """A file that is not UTF-8 text, or is larger than we handle. `path` is relative to the home."""

    def __init__(self, path: str, why: str, *, hint: str | None = None) -> None:
        self.path, self.why = path, why
        super().__init__(f"{printable(path)}: {why}", hint=hint)


class NotFound(HomeError, means=(3, 404)):
    """It makes sense, but there is no such thing."""


class NoSuchHome(NotFound):
    """There is no home at this place."""


class NoSuchDocument(NotFound):
    """There is no such document in this home (or it is not yours to see: the answer is the same)."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{printable(path)}: there is no such document", hint="anima files lists what is there")


class NoSuchProposal(NotFound):
    """No proposal of that id is waiting."""


class NoSuchRevision(NotFound):
    """History has no such revision."""


class NoSuchSession(NotFound):
    """There is no session of that id."""


class StaleWrite(HomeError, means=(4, 412)):
    """Somebody wrote in between. `theirs` is what stands there now, `ours` what we wanted to write."""

    def __init__(self, path: str, *, theirs: str | None, ours: str | None) -> None:
        self.path, self.theirs, self.ours = path, theirs, ours
        said = f"{printable(path)}: it changed since it was read; nothing was written"
        super().__init__(said, hint="read it again and repeat the change on the new text")


class Refused(HomeError, means=(5, 403)):
    """Understood, and not allowed. `rule` names the rule that said so."""

    def __init__(self, message: str, *, rule: str | None = None, hint: str | None = None) -> None:
        self.rule = rule
        super().__init__(message, hint=hint)


class NewerFormat(Refused, means=(5, 501)):
    """Written by a newer anima. `file` is what is newer, `found` its format, `known` the newest that is read here."""

    def __init__(self, file: str, *, found: int, known: int) -> None:
        self.file, self.found, self.known = file, found, known
        said = f"{printable(file)} has format {found}, and this version of anima reads up to {known}"
        hint = "use the version that wrote it, or a newer one"
        super().__init__(f"{said}; nothing was changed", rule="newer-format", hint=hint)


class OverQuota(Refused, means=(5, 413)):
    """A tenant would have more of a `kind` than it may."""

    def __init__(self, kind: str, *, used: int, most: int) -> None:
        self.kind, self.used, self.most = kind, used, most
        said = f"there is room for {most:,} {kind}, and {used:,} are used; nothing was written"
        hint = "delete or forget something, or ask whoever runs the servers for more"
        super().__init__(said, rule="quota", hint=hint)


class HomeBusy(HomeError, means=(6, 423)):
    """Another process holds the home's lock. `holder` says which, as far as it can be known."""

    def __init__(self, holder: str, *, seconds: float) -> None:
        self.holder = holder
        said = f"the home is busy: {holder} holds its lock (waited {seconds:.0f} s); nothing was written"
        super().__init__(said, hint="try again, or stop that process")


class TooMany(HomeError, means=(6, 429)):
    """Too much of a kind goes on already; a little later it can be asked for again."""


class Damaged(HomeError):
    """The disk, or a file of ours, is not what it must be. Documents are left as they are."""


class MissingExtra(HomeError, means=(8, 501)):
    """An optional part is not installed. `extra` is its name."""

    def __init__(self, extra: str, what: str) -> None:
        self.extra = extra
        super().__init__(f"{what} needs an optional part", hint=f"pip install 'anima-home[{extra}]'")


def printable(text: str, limit: int = 120) -> str:
    """Text that may go to a terminal: control and format characters made visible, long text cut."""
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text[: limit + 1])
    return shown if len(text) <= limit else shown[:limit] + "…"


def meant(word: str, known: Iterable[str], otherwise: str = "", *, near: float = 0.5) -> str:
    """What somebody may have meant by a word that is none of these, as a question; `otherwise` where none is so `near`."""
    from difflib import get_close_matches

    names = {name.casefold(): name for name in known}
    found = get_close_matches(word[:100].casefold(), names, n=1, cutoff=near)
    return f"did you mean {names[found[0]]}?" if found else otherwise


def refuse_newer(file: str, found: object, known: int) -> None:
    """Raises NewerFormat for a number that is greater than the one we know. What is no number is not judged here."""
    if type(found) is int and found > known:
        raise NewerFormat(file, found=found, known=known)


def for_a_model(error: HomeError, *, root: str) -> str:
    """An error as a sentence that a model can act on, without the folder of the home."""
    hint = "memory_tree lists what is there" if isinstance(error, NoSuchDocument) else error.hint
    if hint and hint.startswith("anima "):
        hint = f"the owner can help: {hint}"
    return (f"{error}; {hint}" if hint else str(error)).replace(root, "the home")

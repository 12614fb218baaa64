"""A change of a host's files: planned, shown as a diff, made, and taken back.

Promise: a plan is computed from what stands there and touches nothing; a file is replaced whole, by a rename, with its
mode kept, and a link is followed to what it names. Before the first change the bytes of a file are kept in the user's own
configuration; taking back gives them back where nobody else changed the file since, and else takes out just what is
ours. Not here: what is changed for which host (hosts).
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anima.config import FILE
from anima.connect.moving_in import Settings, settings_of, with_settings
from anima.errors import BadInput, NotFound, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEdit:
    """How one file of a host's is changed. `put` gives its text with what is ours, `take` without it; a file in a folder
    of our own is `whole`: it is ours alone."""

    path: Path
    put: Callable[[str], str]
    take: Callable[[str], str]
    whole: bool = False


def owned(path: Path, text: str) -> HostEdit:
    """A file that is ours alone."""
    return HostEdit(path=path, put=lambda there: text, take=lambda there: "", whole=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What becomes of one file: None is no file."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def diff(self) -> str:
        """As a person reads it."""
        old, new = (_lines(each) for each in (self.before, self.after))
        was, becomes = ("/dev/null" if each is None else str(self.path) for each in (self.before, self.after))
        return "".join(difflib.unified_diff(old, new, was, becomes))

    @property
    def shown(self) -> str:
        """The diff; of a page that comes or goes whole, which nothing runs, how long it is."""
        if self.path.suffix == ".md" and None in (self.before, self.after):
            there = self.after if self.before is None else self.before
            return f"{'+' if self.before is None else '-'} {self.path} ({len(_lines(there))} lines to read)\n"
        return self.diff


def _lines(raw: bytes | None) -> list[str]:
    lines = (raw or b"").decode("utf-8", "replace").splitlines(keepends=True)
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]


def planned(edits: Sequence[HostEdit], kept: Mapping[str, Any]) -> tuple[Step, ...]:
    """What connecting changes; files that are as they should be are left out. Raises BadInput for a file that cannot be
    read as what it is, or that stands where ours should and is not among those that were `kept`."""
    for edit in edits:
        if (
            edit.whole
            and str(edit.path) not in kept
            and (there := _read(edit.path)) not in (None, edit.put("").encode())
        ):
            raise _refused(edit.path, f"{len(there or b'')} bytes of somebody else's, or another home's, stand there")
    steps = (Step(path=edit.path, before=(there := _read(edit.path)), after=_changed(edit, there)) for edit in edits)
    return tuple(step for step in steps if step.before != step.after)


def _changed(edit: HostEdit, there: bytes | None) -> bytes:
    text = _decoded(edit.path, there)
    try:
        return edit.put(text).encode()
    except BadInput as error:
        raise _refused(edit.path, error) from None


def _decoded(path: Path, there: bytes | None) -> str:
    try:
        return (there or b"").decode()
    except UnicodeDecodeError:
        raise _refused(path, "it is not UTF-8") from None


def _refused(path: Path, why: object) -> BadInput:
    return BadInput(f"{path}: {why}; nothing was changed", hint="mend it, then try again")


def taken_back(edits: Sequence[HostEdit], kept: Mapping[str, Any]) -> tuple[Step, ...]:
    """What taking the host out changes. `kept` is what `making` gave when it was connected."""
    steps = []
    for edit in edits:
        if (there := _read(edit.path)) is None:
            continue
        held = kept.get(str(edit.path))
        after = _as_it_was(edit, there, held if isinstance(held, dict) else None)
        if after != there:
            steps.append(Step(path=edit.path, before=there, after=after))
    return tuple(steps)


def _as_it_was(edit: HostEdit, there: bytes, held: Mapping[str, Any] | None) -> bytes | None:
    if held is not None and held.get("made") == _digest(there):
        before = held.get("before")
        return base64.b64decode(before) if isinstance(before, str) else None
    if edit.whole:
        return None if held is not None else there  # a file of ours that somebody changed; one we never made stays
    try:
        return edit.take(_decoded(edit.path, there)).encode()
    except BadInput as error:
        raise _refused(edit.path, error) from None


def settings_edit(file: Path, home: str) -> tuple[Step | None, Settings, list[tuple[str, str]]]:
    """The change of a home's anima.toml by a file of another system's settings, what was found in it, and what has no
    counterpart or is there already. Raises BadInput for a file that is none, or a home that is no folder."""
    raw, path = _read(file), Path(home) / FILE
    if raw is None:
        raise NotFound(f"there is no file {file}")
    if not path.parent.is_dir():
        raise BadInput("the settings of a home in a database are not in a file")
    found = settings_of(str(file.absolute()), _decoded(file, raw), home=home)
    before = _read(path)
    text, already = with_settings(_decoded(path, before or b""), found)
    step = Step(path=path, before=before, after=text.encode())
    return (step if step.after != (before or b"") else None), found, [*found.left, *already]


def kept_of(steps: Sequence[Step], already: Mapping[str, Any]) -> dict[str, Any]:
    """What must be known to take steps back: the bytes before our first change, and what we made of them."""
    kept = dict(already)
    for step in steps:
        old = kept.get(str(step.path))
        is_ours = isinstance(old, dict) and old.get("made") == _digest(step.before or b"")
        before = old.get("before") if is_ours and isinstance(old, dict) else _encoded(step.before)
        kept[str(step.path)] = {"before": before, "made": _digest(step.after or b"")}
    return kept


def _encoded(raw: bytes | None) -> str | None:
    return None if raw is None else base64.b64encode(raw).decode()


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def make(steps: Sequence[Step], *, top: Sequence[Path] = ()) -> None:
    """Makes a change; folders that are left empty go, up to the `top` ones and with them. Raises Refused when a file
    changed since it was planned, or cannot be written."""
    for step in steps:
        if _read(step.path) != step.before:
            raise Refused(f"{step.path} changed meanwhile; it was left as it is", rule="stale", hint="try again")
    for step in steps:
        try:
            _write(step.path, step.after)
        except OSError as error:
            raise Refused(f"{step.path} cannot be written ({error.strerror})", rule="host-file") from None
        if step.after is None:
            _sweep(step.path.parent, top)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(f"{path} cannot be read ({error.strerror}); nothing was changed", rule="host-file") from None


def _write(path: Path, text: bytes | None) -> None:
    if text is None:
        path.unlink(missing_ok=True)
        return
    real = path.resolve()
    real.parent.mkdir(parents=True, exist_ok=True)
    mode = real.stat().st_mode & 0o777 if real.exists() else 0o600
    temp = real.with_name(f".{real.name}.{os.getpid()}.new")
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with open(fd, "wb") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(temp, mode)
        temp.replace(real)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise


def _sweep(folder: Path, top: Sequence[Path]) -> None:
    """Takes folders of ours away that nothing is left in."""
    while any(folder == each or each in folder.parents for each in top):
        try:
            if (compiled := folder / "__pycache__").is_dir():  # what a host made of a file of ours
                for each in compiled.glob("*.pyc"):
                    each.unlink()
                compiled.rmdir()
            folder.rmdir()
        except OSError:
            return  # somebody put something into it
        folder = folder.parent

"""What a look at a home tells: sentences, each with what to do. Reads everything, changes nothing.

Promise: advice is not damage; damage is what loses or leaks something. Nothing in a home stops the look: what cannot
be read becomes a sentence too, and a home that does not even open is looked at as far as it goes (`examine`). A
sentence about a damage of the table has its name. Not here: the machine's side (examining), mending (mending).
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from anima import site
from anima.config import FILE
from anima.errors import (
    BadConfig,
    BadText,
    Damaged,
    HomeError,
    NewerFormat,
    NoSuchDocument,
    NoSuchHome,
    Refused,
    printable,
)
from anima.gate.scan import find_hidden
from anima.home import Home
from anima.layout.table import skill_line
from anima.layout.trust import Register
from anima.layout.trust import folder as user_folder
from anima.model import DocPath, Entry, Scope, fold
from anima.store.aside import kind_of
from anima.store.folder import MAX_BYTES, Folder
from anima.text.markdown import front_matter, sections
from anima.upkeep import look as examining
from anima.upkeep.damages import Level, Remark, remark
from anima.upkeep.look import Patient, Progress, looked

__all__ = ["Level", "Remark", "examine", "look"]

_RANK = {"damage": 0, "advice": 1, "fine": 2}
_UNDONE = (
    "batch-interrupted",
    "ledger-",
    "key-",
    "machine-missing",
    "machine-not",
    "machine-link",
)  # what asking for a prompt would mend, or trip over
_SHARE = re.compile(r"<!--\s*share\b", re.IGNORECASE)
_PRIVATE = re.compile(r"<!--\s*private\b", re.IGNORECASE)


def examine(
    path: str | Path,
    *,
    clock: Callable[[], datetime],
    env: Mapping[str, str],
    settings: Mapping[str, Any] | None = None,
    progress: Progress = lambda _: None,
) -> list[Remark]:
    """Everything there is to say about a folder, damage first, also when no home can be opened there.

    Raises NoSuchHome where none ever was, and nothing else.
    """
    register = Register(user_folder(env))
    gone = _gone(path, register)
    if gone is not None:
        return [gone]
    try:
        store = Folder(path)
    except Refused as error:
        return [remark("home-owner", str(path), f"{error}.")]
    except HomeError as error:
        return [remark("not-looked-at", str(path), f"{error}.", do=error.hint)]
    try:
        if barred := looked(".anima", partial(examining.unreadable, store)):
            return barred
        wrong = looked(FILE, partial(_config, store, register, env, settings))
        if wrong:
            return _sorted([*wrong, *looked("the documents", partial(_unopened, store, clock, env, progress))])
    finally:
        store.close()
    try:
        with Home.open(path, settings=settings, clock=clock, env=env, finish=False) as home:
            return look(home, progress=progress)
    except NewerFormat as error:
        return [remark("ledger-format", error.file, f"{error}.")]
    except HomeError as error:
        return [remark("not-looked-at", str(path), f"{error}.", do=error.hint)]


def _gone(path: str | Path, register: Register) -> Remark | None:
    """Where no home can be at all."""
    place, known = Path(site.place_of(path)), register.known(site.place_of(path))
    made = f" made on {known.made[:10]}" if known and known.made else ""
    if not os.path.lexists(place):
        if not made:
            raise NoSuchHome(f"{path}: there is no such folder", hint=f"anima init {path} makes a home there")
        return remark("home-vanished", str(path), f"The home{made} has vanished: there is no such folder.")
    if not place.is_dir():
        if not made:
            raise NoSuchHome(f"{path}: a home is a folder, and this is a file")
        return remark("home-not-a-folder", str(path), "A home is a folder, and this is none.")
    try:
        empty = bool(made) and not any(place.iterdir())
    except OSError:
        return None
    return remark("home-empty", str(path), f"The home{made} has vanished: the folder is empty.") if empty else None


def _config(
    store: Folder, register: Register, env: Mapping[str, str], settings: Mapping[str, Any] | None
) -> Iterator[Remark]:
    """Why the configuration cannot be used; nothing when it can."""
    if kind_of(store, FILE) not in ("file", None):
        yield remark("config-not-a-file", FILE, f"{FILE} is not a file.")
        return
    try:
        config = site.configured(store, register, env, settings)
        site.laid_out(site.detected(store, config).dialect, config)
    except (BadConfig, BadText, Damaged) as error:
        yield remark("config-broken", FILE, f"{error}.", do=error.hint)


def _unopened(
    store: Folder, clock: Callable[[], datetime], env: Mapping[str, str], progress: Progress
) -> Iterator[Remark]:
    """A home whose configuration cannot be read, as far as it can be looked at without one."""
    yield from examining.examine(Patient(store=store, now=clock(), env=env, progress=progress))


def look(home: Home, *, progress: Progress = lambda _: None) -> list[Remark]:
    """Everything there is to say about a home, damage first."""
    patient = Patient(
        store=home.store,
        now=home.clock(),
        env=home.env,
        config=home.config,
        layout=home.layout,
        agent=home.agent,
        progress=progress,
    )
    entries: list[Entry] = []
    found = examining.examine(patient)
    progress("the documents")
    found += looked("the folder", lambda: _walk(home, "", entries))
    checks = (_wiped, _folder, _trust, _missing, _documents, _skills)
    for check in checks:
        found += looked("the documents", partial(check, home, entries))
    if not any(each.name.startswith(_UNDONE) for each in found):
        found += looked("the prompt", partial(_budget, home))
    return _sorted(found)


def _sorted(found: Iterable[Remark]) -> list[Remark]:
    return sorted(found, key=lambda each: _RANK[each.level])


def _wiped(home: Home, entries: list[Entry]) -> Iterator[Remark]:
    any_left = any(entry.path.casefold().endswith(".md") for entry in entries)
    ledger = home.store.stat(".anima/ledger.jsonl")
    if not any_left and ledger is not None and ledger.st_size:
        yield remark("home-wiped", home.root, "Every document is gone; ledger and history are there.")


def _walk(home: Home, folder: str, entries: list[Entry]) -> Iterator[Remark]:
    """Gathers the files of the home, and says what is left out of them."""
    shut = bool(folder) and _mode(home, folder) & 0o500 != 0o500
    if shut:
        yield remark(
            "folder-unreadable",
            folder,
            f"{folder}: its mode is {_mode(home, folder):04o}, so it cannot be looked into.",
            do=f"chmod u+rwX {shlex.quote(f'{home.root}/{folder}')}",
        )
    try:
        listed, strange = home.store.list(folder), home.store.strange(folder)
    except HomeError as error:
        if not shut:
            yield _unreadable(home, folder, error)
        return
    for name, why in strange:
        path = f"{folder}/{name}".lstrip("/")
        row = {"link": "document-link", "other": "document-special"}.get(str(kind_of(home.store, path)), "")
        shown = printable(path)
        said = f"{shown} is left alone: {why}."
        yield remark(row, shown, said) if row else Remark(level="advice", about=shown, message=said)
    yield from _twins(listed)
    for entry in listed:
        if entry.is_folder:
            if entry.name.casefold().endswith(".md"):
                yield remark(
                    "document-folder", entry.path, f"{entry.path} is a folder, and its name is that of a document."
                )
            yield from _walk(home, entry.path, entries)
        else:
            entries.append(entry)


def _twins(listed: Iterable[Entry]) -> Iterator[Remark]:
    seen: dict[str, str] = {}
    for entry in sorted(listed, key=lambda entry: entry.name):
        first = seen.setdefault(fold(entry.name), entry.path)
        if first != entry.path:
            yield remark(
                "document-twins",
                entry.path,
                f"{first} and {entry.path} are the same name to us; only the first is read.",
            )


def _unreadable(home: Home, path: str, error: HomeError) -> Remark:
    found = home.store.stat(path)
    if not isinstance(error, Damaged) or found is None:
        return remark("not-looked-at", path, f"{error}.", do=error.hint or "")
    mode, row = (
        stat.S_IMODE(found.st_mode),
        "folder-unreadable" if stat.S_ISDIR(found.st_mode) else "document-unreadable",
    )
    row = "document-owner" if found.st_uid != os.geteuid() else row
    return remark(
        row,
        path,
        f"{error} (mode {mode:04o}, owner {found.st_uid}).",
        do=f"chmod u+rwX {shlex.quote(f'{home.root}/{path}')}",
    )


def _folder(home: Home, entries: list[Entry]) -> Iterator[Remark]:
    yield Remark(
        level="fine", about="dialect", message=f"This is a home in the dialect {home.dialect}: {home.site.detected_by}."
    )
    mode = stat.S_IMODE(os.fstat(home.store.fd).st_mode)
    if mode & 0o077:
        yield remark(
            "modes",
            "modes",
            f"Other users of this machine can look into the folder (mode {mode:04o}).",
            do=f"chmod 700 {shlex.quote(home.root)}",
        )
    open_files = [entry.path for entry in entries if _mode(home, entry.path) & 0o077]
    if open_files:
        few = ", ".join(open_files[:3]) + (f" and {len(open_files) - 3} more" if len(open_files) > 3 else "")
        many = "1 file" if len(open_files) == 1 else f"{len(open_files):,} files"
        yield remark(
            "modes", "modes", f"{many} can be read by others: {few}.", do=f"chmod -R go= {shlex.quote(home.root)}"
        )


def _mode(home: Home, path: str) -> int:
    found = home.store.stat(path)
    return stat.S_IMODE(found.st_mode) if found else 0


def _trust(home: Home, entries: list[Entry]) -> Iterator[Remark]:
    for key, why in home.config.ignored:
        yield Remark(
            level="advice",
            about=FILE,
            message=f"{key} is not used, because this folder is not trusted: {why}.",
            do="anima trust-home, if you know who wrote that file",
        )


def _missing(home: Home, entries: list[Entry]) -> Iterator[Remark]:
    template = f", or anima init {shlex.quote(home.root)} for a template" if home.dialect == "anima" else ""
    for row in home.layout.rows:
        if row.form in ("text", "identity") and row.expected and home.store.actual(DocPath.parse(row.path)) is None:
            yield Remark(
                level="advice",
                about=row.path,
                message=f"{row.path} is missing; the prompt says so in its place.",
                do=f"write it{template}",
            )


def _documents(home: Home, entries: list[Entry]) -> Iterator[Remark]:
    limit = home.prompts.limits.file
    for entry in entries:
        path = DocPath.parse(entry.path)
        if path.is_markdown:
            injected = home.layout.row_of(path).form in ("text", "identity", "daily")
            yield from _one_document(home, path, limit if injected else None)


def _one_document(home: Home, path: DocPath, limit: int | None) -> Iterator[Remark]:
    yield from _file(home, path.text)
    try:
        text = home.read(path).text
    except BadText as error:
        yield remark(_bad_text(home, path.text), path.text, f"{error}.", do=error.hint)
        return
    except HomeError as error:
        if home.store.stat(path.text) is not None and not _is_locked(home, path.text):
            yield _unreadable(home, path.text, error)
        return
    yield from _contents(path.text, text)
    if limit is not None and len(text) > limit:
        yield Remark(
            level="advice",
            about=path.text,
            do=f"shorten it, or raise prompt.file_chars in {FILE}",
            message=f"{path} has {len(text):,} characters; the prompt shows {limit:,} and says what it leaves out.",
        )
    if found := find_hidden(text):
        yield Remark(
            level="advice",
            about=path.text,
            do="look at that line; delete what you did not put there",
            message=f"{path} line {found[0].line}: {found[0].message}; prompts show it in the open.",
        )
    if "<!--" in text:
        yield from _marks(path, text)


def _bad_text(home: Home, path: str) -> str:
    found = home.store.stat(path)
    return "document-too-large" if found and found.st_size > MAX_BYTES else "document-not-utf8"


def _file(home: Home, path: str) -> Iterator[Remark]:
    """What the stat of a document tells, whoever asks: root reads everything, and is told all the same."""
    found = home.store.stat(path)
    if found is None:
        return
    if found.st_uid != os.geteuid():
        yield remark("document-owner", path, f"{path} belongs to another user (uid {found.st_uid}).")
    elif _is_locked(home, path):
        mode, quoted = stat.S_IMODE(found.st_mode), shlex.quote(f"{home.root}/{path}")
        said = f"{path}: the system does not let us read it (mode {mode:04o}, owner {found.st_uid})."
        yield remark("document-unreadable", path, said, do=f"chmod u+rwX {quoted}")
    if found.st_nlink > 1:
        yield remark("document-hardlinked", path, f"{path} has {found.st_nlink} names; anima does not write to it.")


def _is_locked(home: Home, path: str) -> bool:
    return not _mode(home, path) & stat.S_IRUSR


def _contents(path: str, text: str) -> Iterator[Remark]:
    if (at := text.find("\0")) >= 0:
        line = text.count("\n", 0, at) + 1
        yield remark("document-nul", path, f"{path} line {line}: it holds NUL bytes, which no text does.")
    if "<<<<<<< " in text and ">>>>>>> " in text and (line := _conflict(text)):
        yield remark("document-conflict", path, f"{path} line {line}: a merge was not finished.")


def _conflict(text: str) -> int:
    """The line at which an unfinished merge begins; 0 for none."""
    begun = middle = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("<<<<<<< "):
            begun, middle = number, 0
        elif begun and line == "=======":
            middle = number
        elif middle and line.startswith(">>>>>>> "):
            return begun
    return 0


def _marks(path: DocPath, text: str) -> Iterator[Remark]:
    on_headings = 0
    for section in sections(text):
        heading = text[section.start : section.body]
        on_headings += len(_PRIVATE.findall(heading))
        if _SHARE.search(heading) and not section.shared and not section.claimed:
            yield Remark(
                level="advice",
                about=path.text,
                message=f"{path}: a share mark names no known scope, so it shares nothing.",
                do=f"write one or more of {', '.join(Scope)}, as in <!-- share: group, subagent -->",
            )
    if len(_PRIVATE.findall(text)) > on_headings:
        yield Remark(
            level="advice",
            about=path.text,
            message=f"{path}: a private mark that stands on no heading hides its own line alone.",
            do="put it on the heading of the section you mean",
        )


def _skills(home: Home, entries: list[Entry]) -> Iterator[Remark]:
    for name in home.store.names("skills"):
        path = f"skills/{name}/SKILL.md"
        if name.startswith(("_", ".")) or not home.store.stat(path):
            continue
        try:
            skill_line(name, path, front_matter(home.read(path).text, path))
        except NoSuchDocument:
            continue
        except HomeError as error:
            yield Remark(
                level="advice",
                about=path,
                do="mend its front matter",
                message=f"Skill left out of the catalogue: {error}.",
            )


def _budget(home: Home) -> Iterator[Remark]:
    prompt = home.prompt(scope=Scope.MAIN)
    for line in prompt.manifest:
        if line.status == "dropped" or (line.status == "cut" and "whole" in line.reason):
            yield Remark(
                level="advice",
                about=line.path,
                message=f"{line.path} does not fit into the prompt: {line.reason}.",
                do=f"shorten the files before it, or raise prompt.total_chars in {FILE}",
            )
    yield Remark(
        level="fine",
        about="prompt",
        message=f"The main prompt has {len(prompt.text):,} of {prompt.limits.total:,} characters.",
    )

"""What a look at a home tells: sentences, each with what to do. Reads everything, changes nothing.

Promise: advice is not damage; damage is what loses or leaks something. Nothing in a home stops the look: what cannot
be read becomes a sentence too. Not here: mending (keeping).
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from anima.config import FILE
from anima.errors import BadText, Damaged, HomeError, NoSuchDocument, printable
from anima.home import Home
from anima.markdown import front_matter, sections
from anima.model import DocPath, Entry, Scope, fold
from anima.reading import skill_line
from anima.scan import hidden

Level = Literal["fine", "advice", "damage"]
_RANK = {"damage": 0, "advice": 1, "fine": 2}
_SHARE = re.compile(r"<!--\s*share\b", re.IGNORECASE)
_PRIVATE = re.compile(r"<!--\s*private\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One sentence about the health of a home. `do` is a command or an action, when there is one."""

    level: Level
    about: str
    message: str
    do: str = ""


def look(home: Home) -> list[Remark]:
    """Everything there is to say about a home, damage first."""
    entries: list[Entry] = []
    found = list(_walk(home, "", entries))
    found += [*_folder(home, entries), *_trust(home), *_missing(home), *_documents(home, entries), *_skills(home)]
    return sorted([*found, *_budget(home)], key=lambda remark: _RANK[remark.level])


def _walk(home: Home, folder: str, entries: list[Entry]) -> Iterator[Remark]:
    """Gathers the files of the home, and says what is left out of them."""
    try:
        listed, strange = home.store.list(folder), home.store.strange(folder)
    except HomeError as error:
        yield _unreadable(home, folder, error)
        return
    for name, why in strange:
        path = printable(f"{folder}/{name}".lstrip("/"))
        yield Remark(level="advice", about=path, message=f"{path} is left alone: {why}.")
    yield from _twins(listed)
    for entry in listed:
        if entry.is_folder:
            yield from _walk(home, entry.path, entries)
        else:
            entries.append(entry)


def _twins(listed: Iterable[Entry]) -> Iterator[Remark]:
    seen: dict[str, str] = {}
    for entry in sorted(listed, key=lambda entry: entry.name):
        first = seen.setdefault(fold(entry.name), entry.path)
        if first != entry.path:
            yield Remark(level="damage", about=entry.path, do="keep one of the two",
                         message=f"{first} and {entry.path} are the same name to us; only the first is read.")  # fmt: skip


def _unreadable(home: Home, path: str, error: HomeError) -> Remark:
    found = home.store.stat(path)
    if not isinstance(error, Damaged) or found is None:
        return Remark(level="damage", about=path, message=f"{error}.", do=error.hint or "")
    mode = stat.S_IMODE(found.st_mode)
    return Remark(level="damage", about=path, message=f"{error} (mode {mode:04o}, owner {found.st_uid}).",
                  do=f"chmod u+rwX {shlex.quote(f'{home.root}/{path}')}")  # fmt: skip


def _folder(home: Home, entries: list[Entry]) -> Iterator[Remark]:
    yield Remark(
        level="fine", about="dialect", message=f"This is a home in the dialect {home.dialect}: {home.detection.why}."
    )
    mode = stat.S_IMODE(os.fstat(home.store.fd).st_mode)
    if mode & 0o077:
        yield Remark(level="advice", about="modes", message=f"Other users of this machine can look into the folder (mode {mode:04o}).",
                     do=f"chmod 700 {shlex.quote(home.root)}")  # fmt: skip
    open_files = [entry.path for entry in entries if _mode(home, entry.path) & 0o077]
    if open_files:
        few = ", ".join(open_files[:3]) + (f" and {len(open_files) - 3} more" if len(open_files) > 3 else "")
        many = "1 file" if len(open_files) == 1 else f"{len(open_files):,} files"
        yield Remark(level="advice", about="modes", message=f"{many} can be read by others: {few}.",
                     do=f"chmod -R go= {shlex.quote(home.root)}")  # fmt: skip


def _mode(home: Home, path: str) -> int:
    found = home.store.stat(path)
    return stat.S_IMODE(found.st_mode) if found else 0


def _trust(home: Home) -> Iterator[Remark]:
    for key, why in home.config.ignored:
        yield Remark(level="advice", about=FILE, message=f"{key} is not used, because this folder is not trusted: {why}.",
                     do="anima trust-home, if you know who wrote that file")  # fmt: skip


def _missing(home: Home) -> Iterator[Remark]:
    template = f", or anima init {shlex.quote(home.root)} for a template" if home.dialect == "anima" else ""
    for row in home.layout.rows:
        if row.form in ("text", "identity") and row.expected and home.store.actual(DocPath.parse(row.path)) is None:
            yield Remark(level="advice", about=row.path, message=f"{row.path} is missing; the prompt says so in its place.",
                         do=f"write it{template}")  # fmt: skip


def _documents(home: Home, entries: list[Entry]) -> Iterator[Remark]:
    limit = home.reading.limits.file
    for entry in entries:
        path = DocPath.parse(entry.path)
        if path.is_markdown:
            injected = home.layout.row_of(path).form in ("text", "identity", "daily")
            yield from _one_document(home, path, limit if injected else None)


def _one_document(home: Home, path: DocPath, limit: int | None) -> Iterator[Remark]:
    try:
        text = home.read(path).text
    except BadText as error:
        yield Remark(level="damage", about=path.text, message=f"{error}.", do=error.hint or "")
        return
    except HomeError as error:
        yield _unreadable(home, path.text, error)
        return
    if limit is not None and len(text) > limit:
        yield Remark(level="advice", about=path.text, do=f"shorten it, or raise prompt.file_chars in {FILE}",
                     message=f"{path} has {len(text):,} characters; the prompt shows {limit:,} and says what it leaves out.")  # fmt: skip
    if found := hidden(text):
        yield Remark(level="advice", about=path.text, do="look at that line; delete what you did not put there",
                     message=f"{path} line {found[0].line}: {found[0].message}; prompts show it in the open.")  # fmt: skip
    if "<!--" in text:
        yield from _marks(path, text)


def _marks(path: DocPath, text: str) -> Iterator[Remark]:
    on_headings = 0
    for section in sections(text):
        heading = text[section.start : section.body]
        on_headings += len(_PRIVATE.findall(heading))
        if _SHARE.search(heading) and not section.shared and not section.claimed:
            yield Remark(level="advice", about=path.text, message=f"{path}: a share mark names no known scope, so it shares nothing.",
                         do=f"write one or more of {', '.join(Scope)}, as in <!-- share: group, subagent -->")  # fmt: skip
    if len(_PRIVATE.findall(text)) > on_headings:
        yield Remark(level="advice", about=path.text, message=f"{path}: a private mark that stands on no heading hides its own line alone.",
                     do="put it on the heading of the section you mean")  # fmt: skip


def _skills(home: Home) -> Iterator[Remark]:
    for name in home.store.names("skills"):
        path = f"skills/{name}/SKILL.md"
        if name.startswith(("_", ".")) or not home.store.stat(path):
            continue
        try:
            skill_line(name, path, front_matter(home.read(path).text, path))
        except NoSuchDocument:
            continue
        except HomeError as error:
            yield Remark(level="advice", about=path, do="mend its front matter",
                         message=f"Skill left out of the catalogue: {error}.")  # fmt: skip


def _budget(home: Home) -> Iterator[Remark]:
    prompt = home.prompt(scope=Scope.MAIN)
    for line in prompt.manifest:
        if line.status == "dropped" or (line.status == "cut" and "whole" in line.reason):
            yield Remark(level="advice", about=line.path, message=f"{line.path} does not fit into the prompt: {line.reason}.",
                         do=f"shorten the files before it, or raise prompt.total_chars in {FILE}")  # fmt: skip
    yield Remark(level="fine", about="prompt",
                 message=f"The main prompt has {len(prompt.text):,} of {prompt.limits.total:,} characters.")  # fmt: skip

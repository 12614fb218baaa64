"""The health of the documents of a home: what is missing, cannot be read as text, or is marked in vain.

Promise: reads everything and changes nothing; what cannot be read becomes a sentence. Not here: files and modes (store).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from anima.config import FILE
from anima.errors import BadText, HomeError, NoSuchDocument
from anima.gate.scan import find_hidden
from anima.layout.table import skill_line
from anima.model import Deed, DocPath, Remark, Scope
from anima.site import Site
from anima.text.markdown import front_matter, sections

_SHARE = re.compile(r"<!--\s*share\b", re.IGNORECASE)
_PRIVATE = re.compile(r"<!--\s*private\b", re.IGNORECASE)


class DrawnLine(Protocol):
    """What became of one file in a prompt."""

    @property
    def path(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str: ...


class Budget(Protocol):
    @property
    def file(self) -> int: ...
    @property
    def total(self) -> int: ...


class Drawn(Protocol):
    """The main prompt of a home, as far as its health is concerned."""

    @property
    def text(self) -> str: ...
    @property
    def manifest(self) -> Sequence[DrawnLine]: ...
    @property
    def limits(self) -> Budget: ...


class CheckedDocuments:
    """The texts of one home. `prompt` is None where it could not be drawn; `known` is what was said to be damaged."""

    def __init__(self, site: Site, prompt: Drawn | None, known: Collection[str]) -> None:
        self._site, self._documents, self._prompt, self._known = site, site.store.documents, prompt, known

    def check(self) -> Iterator[Remark]:
        said = f"This is a home in the dialect {self._site.layout.dialect}: {self._site.detected_by}."
        yield Remark(level="fine", about="dialect", message=said)
        for key, reason in self._site.config.ignored:
            yield Remark(
                about=FILE,
                message=f"{key} is not used, because this folder is not trusted: {reason}.",
                do="anima trust-home, if you know who wrote that file",
            )
        yield from self._missing()
        for path in self._paths(""):
            yield from self._document(path)
        yield from self._skills()
        yield from self._budget() if self._prompt else ()

    def repair(self) -> Iterator[Deed]:
        """Nothing: no repair changes a document."""
        return iter(())

    def _paths(self, folder: str) -> Iterator[DocPath]:
        try:
            listed = self._documents.list(folder)
        except HomeError:
            return  # said by the store
        for entry in listed:
            if entry.is_folder:
                yield from self._paths(entry.path)
            elif (path := DocPath.parse(entry.path)).is_markdown:
                yield path

    def _missing(self) -> Iterator[Remark]:
        layout = self._site.layout
        template = f", or anima init {shlex.quote(self._site.store.name)} for a template"
        for row in layout.rows:
            expected = row.form in ("text", "identity") and row.expected
            if expected and self._documents.actual(DocPath.parse(row.path)) is None:
                yield Remark(
                    about=row.path,
                    message=f"{row.path} is missing; the prompt says so in its place.",
                    do=f"write it{template if layout.dialect == 'anima' else ''}",
                )

    def _document(self, path: DocPath) -> Iterator[Remark]:
        about = path.text
        try:
            text = self._documents.read(path).text
        except BadText as error:
            yield Remark(name="document-not-text", about=about, message=f"{error}.", do=error.hint or "")
            return
        except HomeError as error:
            if about not in self._known and not isinstance(error, NoSuchDocument):
                yield Remark(name="not-looked-at", about=about, message=f"{error}.", do=error.hint or "")
            return
        if (at := text.find("\0")) >= 0:
            line = text.count("\n", 0, at) + 1
            said = f"{path} line {line}: it holds NUL bytes, which no text does."
            yield Remark(name="document-not-text", about=about, message=said)
        if "<<<<<<< " in text and ">>>>>>> " in text and (line := _conflict(text)):
            said = f"{path} line {line}: a merge was not finished."
            yield Remark(name="document-conflict", about=about, message=said)
        injected = self._site.layout.row_of(path).form in ("text", "identity", "daily")
        if injected and self._prompt and len(text) > (limit := self._prompt.limits.file):
            yield Remark(
                about=about,
                message=f"{path} has {len(text):,} characters; the prompt shows {limit:,} and says what it leaves out.",
                do=f"shorten it, or raise prompt.file_chars in {FILE}",
            )
        if found := find_hidden(text):
            yield Remark(
                about=about,
                message=f"{path} line {found[0].line}: {found[0].message}; prompts show it in the open.",
                do="look at that line; delete what you did not put there",
            )
        if "<!--" in text:
            yield from _marks(path, text)

    def _skills(self) -> Iterator[Remark]:
        for name in self._documents.names("skills"):
            path = f"skills/{name}/SKILL.md"
            if name.startswith(("_", ".")):
                continue
            try:
                skill_line(name, path, front_matter(self._documents.read(DocPath.parse(path)).text, path))
            except NoSuchDocument:
                continue
            except HomeError as error:
                said = f"Skill left out of the catalogue: {error}."
                yield Remark(about=path, message=said, do="mend its front matter")

    def _budget(self) -> Iterator[Remark]:
        assert self._prompt is not None
        for line in self._prompt.manifest:
            if line.status == "dropped" or (line.status == "cut" and "whole" in line.reason):
                yield Remark(
                    about=line.path,
                    message=f"{line.path} does not fit into the prompt: {line.reason}.",
                    do=f"shorten the files before it, or raise prompt.total_chars in {FILE}",
                )
        said = f"The main prompt has {len(self._prompt.text):,} of {self._prompt.limits.total:,} characters."
        yield Remark(level="fine", about="prompt", message=said)


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
                about=path.text,
                message=f"{path}: a share mark names no known scope, so it shares nothing.",
                do=f"write one or more of {', '.join(Scope)}, as in <!-- share: group, subagent -->",
            )
    if len(_PRIVATE.findall(text)) > on_headings:
        yield Remark(
            about=path.text,
            message=f"{path}: a private mark that stands on no heading hides its own line alone.",
            do="put it on the heading of the section you mean",
        )

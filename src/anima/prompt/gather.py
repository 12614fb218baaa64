"""The road out: every text that reaches a model's prompt is gathered here and filtered last.

Promise: rows visible to the listener → read → drop what scope, section mark or user layer hides → fit → draw. The
privacy filter runs after hooks and extra files, by place, by file identity and by the words of the text. A file that
cannot be read becomes a row of the manifest, never an error. A prompt is kept while every place it looked at is
unchanged. A Reading lives as long as its Home and is safe to share by threads.
Not here: how a prompt is fitted (prompt), who may see what (listener).
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from anima.config import Config, timezone
from anima.errors import BadPath, BadText, Damaged, HomeError, NoSuchDocument, printable
from anima.layout.listener import Listener, Secret, layer_at, tells
from anima.layout.table import Layout, Row
from anima.model import MAX_DEPTH, DocPath, Document, Runtime, Scope, fold
from anima.prompt import identity as identities
from anima.prompt import persona as personas
from anima.prompt.compose import Limits, Line, Piece, Prompt, compose
from anima.store.folder import Folder, Signature, signature_of
from anima.text.invisible import may_hide
from anima.text.markdown import front_matter, lines_of, sections

if TYPE_CHECKING:
    from anima.home import Home
    from anima.ledger.provenance import Source
    from anima.model import Finding
    from anima.store.place import FolderStore

Hook = Callable[[tuple[Piece, ...]], Sequence[Piece]]
MAX_LISTED = 200
MAX_KEPT = 64
LEDGER = ".anima/ledger.jsonl"
OWN_HISTORY = ".git/anima"  # there with the first commit: without a ledger beside it, one was lost
DOUBT = ".anima/doubt"  # there since the first untrusted line was written
_FRESH_NS = 100_000_000
_ZONE = re.compile(r"^[ \t]*(?:[-*+][ \t]+)?[*_]*time[ -]?zone[*_]*[ \t]*[:：][*_ \t]*([A-Za-z][\w+/-]*)", re.I | re.M)
# One of these stands in what the scan calls dangerous for another reason than hidden text; frames are defused anyway.
_SIGNS = {"<": ("<|", "<<"), "|": ("|>",), "]": ("INST]",)}  # by their rarest character, which is quickly found
_SPEAKERS = ("uman", "ssistant", "ystem", "UMAN", "SSISTANT", "YSTEM")  # with a colon behind them
_SKILL_NAME = re.compile(r"[^\W_]+(?:-[^\W_]+)*\Z")
_RUNTIME_LABELS = (("host", "Host"), ("model", "Model"), ("channel", "Channel"), ("session", "Session"))
_MOVING = frozenset({"curated", "daily", "diary", "session"})  # kinds of files that grow while the agent lives
_OPEN_ROLES = frozenset({"skill", "subagent", "config"})  # never injected, yet nothing private


@dataclass(slots=True)
class _Gathered:
    """What one prompt is made of, while it is being made."""

    listener: Listener
    started: int  # in nanoseconds: a place that changed since, or just before, is not one to rely on
    top: frozenset[str]  # folded names at the top of the home
    seen: set[str]  # places looked at, to know when to look again
    read: dict[str, Document] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)  # places where nothing was
    zone: tzinfo | None = None
    now: datetime = field(init=False)
    clock: str = ""  # the runtime text
    notes: list[str] = field(default_factory=list)
    persona: str | None = None  # the file of the soul that is worn
    alternate: bool = False


@dataclass(frozen=True, slots=True)
class _Kept:
    """A prompt that still holds while every place it looked at is unchanged, and the day and the soul are the same."""

    places: tuple[tuple[str, Signature], ...]
    absent: tuple[str, ...]
    zone: tzinfo | None
    day: date
    wish: str | None
    clock: str  # the runtime text inside `prompt.volatile`
    prompt: Prompt


class Reading:
    """Makes prompts for one home."""

    def __init__(
        self,
        store: Folder,
        layout: Layout,
        config: Config,
        *,
        clock: Callable[[], datetime],
        dice: random.Random,
        books: Callable[[], FolderStore] | None = None,
    ) -> None:
        self._books_of = books
        self.store, self.layout, self.config, self.clock, self.dice = store, layout, config, clock, dice
        self._kept: dict[tuple[Listener, Runtime], _Kept] = {}
        asked = config.persona
        self.persona_rule = personas.PersonaRule.of(
            file=asked.file, chance=asked.chance, at=asked.at, duration=asked.duration
        )
        tokens = layout.memory_tokens if config.prompt.memory_tokens is None else config.prompt.memory_tokens
        self.limits = Limits(
            file=config.prompt.file_chars or layout.file_chars,
            total=config.prompt.total_chars or layout.total_chars,
            memory=None if tokens is None else tokens * 4,
        )
        self._user_row = layout.row("user") if layout.has("user") else None
        # The table without the row that calls one file a soul: what another row keeps from a listener stays kept.
        self._table = replace(layout, others=tuple(row for row in layout.others if row.role != "alternate-soul"))

    def prompt(self, listener: Listener, *, runtime: Runtime, hook: Hook | None = None) -> Prompt:
        """The prompt for a listener, from what is on disk now."""
        lasting = hook is None and not 0 < self.persona_rule.chance < 1
        if lasting and (kept := self._kept.get((listener, runtime))) and (held := self._still(kept, listener, runtime)):
            return held
        at = self._begun(listener)
        pieces = self._filtered(at, list(self._pieces(at, runtime)), hook)
        asked = self.config.prompt
        prompt = compose(
            pieces,
            layout=self.layout,
            limits=self.limits,
            scope=listener.scope,
            order=asked.order,
            style=asked.style,
            persona=at.persona,
            notes=at.notes,
        )
        if lasting:
            self._keep(at, runtime, prompt)
        return prompt

    def _begun(self, listener: Listener) -> _Gathered:
        started, top = time.time_ns(), frozenset(map(fold, self.store.names("")))
        at = _Gathered(listener=listener, started=started, top=top, seen={""})
        at.zone = self._zone(listener, lambda path: self._read(at, path))
        at.now = self.clock().astimezone(at.zone)
        if ".anima" in top:
            for place in (LEDGER, DOUBT):
                (at.seen if self.store.stat(place) else at.absent).add(place)
        if ".git" in top and LEDGER not in at.seen:
            (at.seen if self.store.stat(OWN_HISTORY) else at.absent).add(OWN_HISTORY)
        return at

    # -- time ---------------------------------------------------------------------------------------------------------

    def now(self, listener: Listener | None = None) -> datetime:
        """The moment in the user's timezone: the configuration's, else USER.md's, else the system's."""
        return self.clock().astimezone(self.zone(listener))

    def zone(self, listener: Listener | None = None) -> tzinfo | None:
        return self._zone(listener, self.store.read)

    def today(self, listener: Listener | None = None) -> date:
        return self.now(listener).date()

    def _zone(self, listener: Listener | None, read: Callable[[DocPath], Document]) -> tzinfo | None:
        if self.config.timezone:
            return timezone(self.config.timezone)
        row = self._user_row
        for path in dict.fromkeys([listener.path_of(row) if listener else row.path, row.path] if row else ()):
            try:
                document = read(DocPath.parse(path))
            except HomeError:
                continue
            if zone := stated_zone(document.text):
                return zone
        return None

    # -- keeping ------------------------------------------------------------------------------------------------------

    def _keep(self, at: _Gathered, runtime: Runtime, prompt: Prompt) -> None:
        """Keeps a prompt with what it depends on, unless some of that is so young that it could change unnoticed."""
        if not at.clock or prompt.volatile.count(at.clock) != 1:
            return
        places, root, young = [], self.store.root, at.started - _FRESH_NS
        for place in at.seen:
            spot = f"{root}/{place}" if place else root
            try:
                signature = signature_of(os.stat(spot, follow_symlinks=False))
            except OSError:
                return
            if signature[3] >= young or signature[4] >= young:
                return
            places.append((spot, signature))
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        absent, wish = tuple(f"{root}/{place}" for place in at.absent), self._wish(at.now)
        self._kept[at.listener, runtime] = _Kept(tuple(places), absent, at.zone, at.now.date(), wish, at.clock, prompt)

    def _still(self, kept: _Kept, listener: Listener, runtime: Runtime) -> Prompt | None:
        stat = os.stat
        try:
            for place, signature in kept.places:
                if signature_of(stat(place, follow_symlinks=False)) != signature:
                    return None
        except OSError:
            return None
        if kept.absent and any(map(os.path.lexists, kept.absent)):
            return None
        now = self.clock().astimezone(kept.zone)
        if now.date() != kept.day or self._wish(now) != kept.wish:
            return None
        clock = self._runtime_text(listener, runtime, now)
        if clock == kept.clock:
            return kept.prompt
        if len(clock) != len(kept.clock):
            return None
        return replace(kept.prompt, volatile=kept.prompt.volatile.replace(kept.clock, clock))

    def _wish(self, now: datetime) -> str | None:
        """The alternate soul's file when the rule wants it worn now."""
        decision = personas.decide(self.persona_rule, now, self.dice)
        return decision.file if decision.worn else None

    def _read(self, at: _Gathered, path: DocPath) -> Document:
        """A document, remembered as something this prompt depends on. A missing one depends on its folder."""
        if held := at.read.get(path.text):
            return held
        if path.key.partition("/")[0] not in at.top:
            raise NoSuchDocument(path.text)
        try:
            document = self.store.read(path)
        except NoSuchDocument:
            self._names(at, path.parent)
            raise
        except HomeError:
            at.seen.add(self.store.actual(path) or path.text)
            raise
        at.read[path.text] = document
        at.seen.add(document.path.text)
        if document.path.text != path.text:  # a file of the very name that was asked for would come first
            self._names(at, path.parent)
        return document

    def _names(self, at: _Gathered, folder: str) -> tuple[str, ...]:
        """The names in a folder, remembered; when there is no such folder, its nearest parent is."""
        near = folder
        while near and not self.store.stat(near):
            near = near.rpartition("/")[0]
        at.seen.add(near)
        return self.store.names(folder) if near == folder else ()

    def _spelt(self, at: _Gathered, folder: str) -> str | None:
        """How a folder is spelt on disk; None when it is not there."""
        if fold(folder).partition("/")[0] not in at.top:
            return None
        return folder if self.store.stat(folder) else self.store.actual(DocPath.parse(folder))

    # -- gathering ----------------------------------------------------------------------------------------------------

    def _pieces(self, at: _Gathered, runtime: Runtime) -> Iterator[Piece]:
        for row in self.layout.rows:
            if row.form in ("text", "identity"):
                yield self._file(at, row)
            elif row.form == "daily":
                yield from self._daily(at, row)
            elif row.form == "additional":
                yield from (self._additional(at, row, n) for n in range(len(self.config.prompt.additional)))
            elif row.form == "knowledge":
                yield from self._knowledge(at, row)
            elif at.listener.scope not in row.scopes:
                if row.form == "skills":
                    yield _hidden(row, "skills/", at.listener)
            elif row.form == "skills":
                yield from self._skills(at, row)
            elif row.form == "fixed":
                yield Piece(row=row, path="", text=row.text)
            elif row.form == "extra" and self.config.prompt.extra:
                yield self._shown(row, "", self.config.prompt.extra, [])
            elif row.form == "runtime":
                at.clock = self._runtime_text(at.listener, runtime, at.now)
                yield Piece(row=row, path="", text=at.clock, chars_raw=len(at.clock))

    def _file(self, at: _Gathered, row: Row) -> Piece:
        if row.role == "soul":
            return self._soul(at, row)
        piece = self._document(at, row, at.listener.path_of(row), at.listener.scope in row.scopes)
        if row.form == "identity" and not piece.problem:
            line = identities.render(identities.parse(piece.text))
            return replace(piece, text=line, reason=piece.reason or ("" if line else "no field of it is filled in"))
        return piece

    def _document(self, at: _Gathered, row: Row, path: str, visible: bool, **log: Any) -> Piece:
        """A file as this listener sees it: whole, in part, hidden, missing or unreadable. `log` says which day's it is."""
        try:
            document = self._read(at, DocPath.parse(path))
        except HomeError as error:
            return self._unread(at, row, path, error, **log) if visible else _hidden(row, path, at.listener)
        reasons: list[str] = []
        text = document.text
        if not visible or _has_comment(text):
            text = self._allowed(at.listener, document, visible, reasons)
        if not visible and not text.strip():
            return _hidden(row, path, at.listener)
        in_sight = text if row.form == "identity" else self._in_sight(text)  # a field may stand anywhere
        odd = bool(hidden(in_sight))
        if self._books_of and (
            DOUBT in at.seen or OWN_HISTORY in at.seen or (LEDGER in at.seen and (odd or suspicious(in_sight)))
        ):
            text = self._trusted(at, document, text, reasons)
        return self._shown(row, path, text, reasons, odd=odd, document=document, **log)

    def _allowed(self, listener: Listener, document: Document, visible: bool, reasons: list[str]) -> str:
        """What section marks leave of a document for a listener; says what they kept back."""
        part = listener.view(self.layout, document.path, document.text, visible=visible)
        if not visible:
            reasons.append("only the sections shared with this scope")
        if part.hidden:
            reasons.append(f"{part.hidden} private section{'s' if part.hidden > 1 else ''} kept back")
        return part.text

    def _trusted(self, at: _Gathered, document: Document, text: str, reasons: list[str]) -> str:
        """The text without lines that are not trusted; says so when there are any.

        The ledger is asked only where it can matter: a home in which an untrusted line was ever written, or a text in
        which the scan sees something.
        """
        assert self._books_of is not None
        try:
            known, lines = self._books_of().provenance, lines_of(text)
        except Damaged as error:  # nothing vouches for any line now; a prompt without them is better than none
            at.notes.append(f"{document.path}: left out, because {error}; anima doctor tells what to do")
            reasons.append("left out, because nothing vouches for its lines")
            return ""
        kept = [line for line in lines if self._fit_to_show(known.source(document.path, line), line)]
        if not (gone := len(lines) - len(kept)):
            return text
        said = f"{gone} untrusted line{'s' if gone > 1 else ''} left out"
        place = document.path
        at.notes.append(f"{place}: {said}; anima why {place}:LINE tells why, anima trust shows them again")
        reasons.append(said)
        return "".join(kept)

    def _in_sight(self, text: str) -> str:
        """What of a text a prompt can show at all: of a long one, only its two ends, blanks around it apart."""
        most = 2 * self.limits.file
        if len(text) <= 2 * most:
            return text
        text = text.strip()
        return f"{text[:most]}\n{text[-most:]}"

    def _fit_to_show(self, source: Source, line: str) -> bool:
        """Trusted lines are shown; a line from outside too, unless the scan sees danger in it."""
        from anima.model import Actor, Severity

        if source.actor is not Actor.OUTSIDE or source.trusted_at is not None or source.lost:
            return source.trusted
        if not (suspicious(line) or hidden(line)):
            return True
        from anima.gate.scan import scan_text

        return not any(f.severity is Severity.DANGER and not f.kind.startswith("secret:") for f in scan_text(line))

    def _shown(
        self,
        row: Row,
        path: str,
        text: str,
        reasons: list[str],
        *,
        odd: bool = True,
        document: Document | None = None,
        **log: Any,
    ) -> Piece:
        """A piece of a text, with what a person would not see in it made visible (unless nothing in it is `odd`)."""
        raw, source = (len(document.text), document.path) if document else (len(text), None)
        notes: tuple[str, ...] = ()
        whole = not reasons
        if odd and (found := hidden(text)):  # a look at a part may have cut through an emoji
            from anima.gate.scan import reveal

            text = reveal(text)
            notes = (f"{path or row.role}: hidden characters made visible, the first on line {found[0].line}",)
            reasons.append(f"{len(found)} run{'s' if len(found) > 1 else ''} of hidden characters made visible")
        return Piece(
            row=row,
            path=path,
            text=text,
            chars_raw=raw,
            whole=whole,
            reason="; ".join(reasons),
            source=source,
            notes=notes,
            **log,
        )

    def _unread(self, at: _Gathered, row: Row, path: str, error: HomeError, **log: Any) -> Piece:
        if isinstance(error, NoSuchDocument):
            marker, why = self.layout.missing.format(path=path) if row.expected else "", "there is no such file"
            if row.role == "bootstrap":
                why = "the first conversation is over"
            return Piece(row=row, path=path, text=marker, problem="missing", reason=why, **log)
        why = error.why if isinstance(error, BadText | BadPath) else str(error).partition(": ")[2]
        at.notes.append(f"{path}: {why}")
        marker = f"<!-- {path} cannot be read: {why} -->"
        return Piece(row=row, path=path, text=marker, problem="unreadable", reason=why, **log)

    def _soul(self, at: _Gathered, row: Row) -> Piece:
        """The soul, or the alternate one when it is to be worn; notes a fall-back."""
        visible, path = at.listener.scope in row.scopes, row.path
        if visible and (wish := self._wish(at.now)):
            path = self._worn(at, row, wish)
        piece = self._document(at, row, path, visible)
        if not piece.problem:
            at.persona = path
        return piece

    def _worn(self, at: _Gathered, row: Row, wish: str) -> str:
        place = DocPath.parse(wish)
        if not self._is_free(place) and not at.listener.sees(self._table, place):
            at.notes.append(f"{wish} should be worn, but it is kept from this listener; {row.path} is worn instead.")
            return row.path
        decision = personas.Decision(worn=True, why="window", file=wish)
        own, other = self._document_or_none(at, row.path), self._document_or_none(at, wish)
        worn = personas.wear(decision, own.text if own else None, other.text if other else None)
        if worn.warning:
            at.notes.append(worn.warning)
        at.alternate = worn.file == wish
        return wish if at.alternate else row.path

    def _is_free(self, path: DocPath) -> bool:
        """Whether the table says nothing of a file, so that the configuration alone decides who sees it."""
        return self._table.row_of(path).role == "note" and layer_at(path) is None

    def _daily(self, at: _Gathered, row: Row) -> Iterator[Piece]:
        wanted = at.listener.daily_folder(self.layout)
        folder, visible, first = self._spelt(at, wanted) or wanted, at.listener.scope in row.scopes, True
        names = self._names(at, folder)
        kept_back = 0
        for when, day in (("Today", at.now.date()), ("Yesterday", at.now.date() - timedelta(days=1))):
            for name in _logs_of(day, names):
                piece = self._log(at, row, folder, name, visible, when=when, first=first)
                if piece is None or piece.problem == "hidden":
                    kept_back += 1
                    continue
                yield piece
                first = first and not piece.text.strip()
        if not visible and (kept_back or first):
            yield _hidden(row, f"{folder}/", at.listener)  # one row for all: their names may tell something too
        elif first and not kept_back:
            yield self._no_log(at, row, folder)

    def _log(self, at: _Gathered, row: Row, folder: str, name: str, visible: bool, **log: Any) -> Piece | None:
        try:
            path, day = DocPath.parse(f"{folder}/{name}").text, name.rpartition(".")[0]
            return self._document(at, row, path, visible, day=day, **log)
        except BadPath as error:
            if visible:
                at.notes.append(f"{printable(name)} in {folder}/ left out: {error.why}")
            return None

    def _no_log(self, at: _Gathered, row: Row, folder: str) -> Piece:
        today = at.now.date().isoformat()
        piece = self._unread(at, row, f"{folder}/{today}.md", NoSuchDocument(today))
        return replace(piece, day=today, when="Today", reason="nothing was noted today or yesterday")

    def _additional(self, at: _Gathered, row: Row, number: int) -> Piece:
        asked = self.config.prompt.additional[number]
        path, scopes = DocPath.parse(asked.path), asked.scopes
        governed = self.layout.row_of(path)
        if not self._is_free(path):
            scopes &= at.listener.scopes_of(self.layout, path)
        if not governed.stable or governed.kind in _MOVING or layer_at(path) is not None:
            row = replace(row, stable=False)  # or the stable part would move with it
        return self._document(at, row, asked.path, at.listener.scope in scopes)

    def _skills(self, at: _Gathered, row: Row) -> Iterator[Piece]:
        """The catalogue: names and descriptions only. A broken skill is left out and said."""
        lines = []
        folder = self._spelt(at, "skills")
        for name in self._names(at, folder) if folder else ():
            if name.startswith(("_", ".")):
                continue
            path = f"{folder}/{name}/SKILL.md"
            try:
                lines.append(skill_line(name, path, front_matter(self._read(at, DocPath.parse(path)).text, path)))
            except (NoSuchDocument, BadPath):
                continue
            except (BadText, Damaged) as error:
                at.notes.append(f"skill left out: {error}")
        if lines:
            yield self._shown(row, f"{folder}/", "\n".join(lines), [])

    def _knowledge(self, at: _Gathered, row: Row) -> Iterator[Piece]:
        folder, visible = self._spelt(at, row.path.rstrip("/")), at.listener.scope in row.scopes
        if visible and (folder is None or not self._names(at, folder)):
            return
        entry = self._document(at, row, f"{folder or row.path.rstrip('/')}/KNOWLEDGE.md", visible)
        if folder is None or not visible:
            yield entry if not entry.problem else _hidden(row, row.path, at.listener)
            return
        others = [path for path in self._beneath(at, folder) if fold(path) != fold(f"{folder}/KNOWLEDGE.md")]
        listed = "\n".join(f"- {path}" for path in others[:MAX_LISTED])
        if len(others) > MAX_LISTED:
            listed += f"\n- … and {len(others) - MAX_LISTED} more; memory_tree lists them"
        if not listed:
            yield entry
            return
        listing = f"Files you can open with memory_get:\n{listed}"
        if entry.problem:
            why = "there is no KNOWLEDGE.md" if entry.problem == "missing" else f"KNOWLEDGE.md: {entry.reason}"
            yield replace(entry, text=listing, chars_raw=len(listing), problem=None, reason=f"the listing alone; {why}")
            return
        text = f"{entry.text.rstrip()}\n\n{listing}"
        yield replace(entry, text=text, chars_raw=entry.chars_raw + len(text) - len(entry.text))

    def _beneath(self, at: _Gathered, folder: str, depth: int = 4) -> list[str]:
        """The documents under a folder, remembered as places this prompt depends on."""
        self._names(at, folder)
        try:
            entries = self.store.list(folder)
        except HomeError as error:
            at.notes.append(f"{folder}/: {error}")
            return []
        found = [entry.path for entry in entries if not entry.is_folder]
        for entry in entries:
            if entry.is_folder and depth:
                found += self._beneath(at, entry.path, depth - 1)
        return sorted(found)

    def _runtime_text(self, listener: Listener, runtime: Runtime, now: datetime) -> str:
        zone = str(now.tzinfo) if now.tzinfo and "/" in str(now.tzinfo) else now.strftime("UTC%z")
        lines = [f"Date: {now:%A %Y-%m-%d, %H:%M} ({zone})"]
        lines += [f"{label}: {one_line(value)}" for name, label in _RUNTIME_LABELS if (value := getattr(runtime, name))]
        if runtime.tools:
            lines.append("Tools: " + one_line(", ".join(runtime.tools)))
        if self.layout.dialect == "agentscope" and listener.sees_all:
            lines.append(f"Workspace: {one_line(self.store.root)}")
        lines.append(f"Listening: {listener.scope}")
        return "\n".join(lines)

    # -- the filter that runs last --------------------------------------------------------------------------------------

    def _filtered(self, at: _Gathered, pieces: list[Piece], hook: Hook | None) -> list[Piece]:
        """Hides every piece that is, or holds a copy of, something this listener may not see."""
        made = pieces if hook is None else list(hook(tuple(pieces)))
        if at.listener.sees_all:
            return made
        ours, secrets = set(map(id, pieces)), _Secrets(self, at)
        return [self._passed(at, piece, id(piece) not in ours, secrets) for piece in made]

    def _passed(self, at: _Gathered, piece: Piece, foreign: bool, secrets: _Secrets) -> Piece:
        if not foreign:
            exempt = piece.problem or piece.source is None
            wide = piece.row.form == "additional" or (piece.row.role == "soul" and at.alternate)
            kept = exempt or not secrets.stand_in(piece.text, piece.source, wide=wide)
            return piece if kept else _hidden(piece.row, piece.path, at.listener, copy=True)
        try:
            place = piece.source or (DocPath.parse(piece.path) if piece.path else None)
        except BadPath:
            return _hidden(piece.row, piece.path, at.listener)
        if self._out_of_place(at, piece.row, place):
            return _hidden(piece.row, piece.path, at.listener)
        if secrets.stand_in(piece.text, place, wide=True):
            return _hidden(piece.row, piece.path, at.listener, copy=True)
        part = at.listener.view(self.layout, None, piece.text, visible=True)
        return piece if part.whole else replace(piece, text=part.text, whole=False)

    def _out_of_place(self, at: _Gathered, row: Row, place: DocPath | None) -> bool:
        """Whether a hook's piece stands in a row, or names a file, that this listener may not see."""
        if row.form != "additional" and at.listener.scope not in row.scopes:
            return True
        return place is not None and not self._is_free(place) and not at.listener.sees(self.layout, place)

    def _secrets(self, at: _Gathered, *, wide: bool) -> Iterator[Secret]:
        """What this listener may not see: the files of the table's rows, or (wide) all of the home."""
        for row in self.layout.rows:
            document = self._document_or_none(at, row.path) if row.form in ("text", "identity") else None
            if document and not at.listener.sees(self.layout, document.path):
                yield Secret.of(document, self._inode(document.path))
        if not wide:
            return
        for document in list(at.read.values()):
            yield from _private_parts(document)
        for path in map(DocPath.parse, self._beneath(at, "", MAX_DEPTH)):
            if self._is_free(path) or self._table.row_of(path).role in _OPEN_ROLES:
                continue
            if not at.listener.sees(self._table, path) and (document := self._document_or_none(at, path.text)):
                yield Secret.of(document, self._inode(document.path))

    def _document_or_none(self, at: _Gathered, path: str) -> Document | None:
        try:
            return self._read(at, DocPath.parse(path))
        except HomeError:
            return None

    def _inode(self, path: DocPath) -> tuple[int, int] | None:
        found = self.store.stat(path.text)
        return (found.st_dev, found.st_ino) if found else None


class _Secrets:
    """All that is kept from one listener, looked up when it is first needed for a prompt."""

    def __init__(self, reading: Reading, at: _Gathered) -> None:
        self._reading, self._at = reading, at
        self._found: dict[bool, list[Secret]] = {}

    def stand_in(self, text: str, place: DocPath | None, *, wide: bool) -> bool:
        """Whether a text is a copy of one of them, or its file is the same file; wide: or whether it holds one whole."""
        reading, found = self._reading, self._found
        if wide not in found:
            found[wide] = list(reading._secrets(self._at, wide=wide))
        inode = reading._inode(place) if place else None
        whole = reading._document_or_none(self._at, place.text) if place else None
        texts = [text] if whole is None or whole.text is text else [text, whole.text]
        others = [s for s in found[wide] if place is None or s.inode is None or s.path.key != place.key]
        same_file = inode is not None and any(secret.inode == inode for secret in others)
        return same_file or any(tells(text, others, whole=not wide) for text in texts)


def _has_comment(text: str) -> bool:
    return "<" in text and "<!--" in text  # one sign alone is found many times faster


def _private_parts(document: Document) -> Iterator[Secret]:
    """The private sections of a document that is not private itself."""
    for section in sections(document.text) if _has_comment(document.text) else ():
        if section.private:
            yield Secret(path=document.path, text=document.text[section.body : section.end])


def _hidden(row: Row, path: str, listener: Listener, *, copy: bool = False) -> Piece:
    who = f"{listener.scope} sessions" if listener.is_owner or listener.scope is not Scope.MAIN else "this sender"
    if listener.sees_all and not copy:
        return Piece(row=row, path=path, text="", problem="hidden", reason=f"only for {', '.join(sorted(row.scopes))}")
    why = f"the same text as a file that is kept from {who}" if copy else f"kept from {who}"
    return Piece(row=row, path=path, text="", problem="hidden", reason=why)


def _logs_of(day: date, names: Sequence[str]) -> list[str]:
    """The logs of one day, its own before 2026-05-08-boat.md."""
    found = [name for name in names if name.startswith(day.isoformat()) and name.lower().endswith(".md")]
    own = [name for name in found if len(name) == 13]
    return own + sorted(name for name in found if len(name) > 13 and name[10] in "-_ ")


def stated_zone(text: str) -> tzinfo | None:
    """The timezone a USER.md states, such as `- **Timezone:** America/Bogota`; the first that there is."""
    if not ("zone" in text or "Zone" in text or "ZONE" in text):
        return None
    for stated in _ZONE.finditer(text):
        try:
            return timezone(stated[1])
        except ValueError:
            continue
    return None


def hidden(text: str) -> tuple[Finding, ...]:
    """What the scan sees of hidden text; the scan is imported only when there may be some."""
    if not may_hide(text):
        return ()
    from anima.gate.scan import find_hidden

    return find_hidden(text)


def suspicious(text: str) -> bool:
    """A quick look for what could be dangerous in a line from outside; the scan then says whether it is."""
    if any(rare in text and any(map(text.__contains__, signs)) for rare, signs in _SIGNS.items()):
        return True
    return ":" in text and any(before.endswith(_SPEAKERS) for before in text.split(":")[:-1])


def skill_line(folder: str, path: str, matter: object) -> str:
    """One line of the catalogue from a SKILL.md's front matter. Raises BadText with the rule it breaks."""
    fields = dict(matter) if isinstance(matter, dict) else {}
    name, about = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not _SKILL_NAME.match(name) or len(name) > 64 or name != name.lower():
        raise BadText(path, "its name must be 1 to 64 lower-case letters, digits and single hyphens")
    if name != folder:
        raise BadText(path, f"its name is {name!r}, but its folder is {folder!r}")
    if not isinstance(about, str) or not about.strip() or len(about) > 1024:
        raise BadText(path, "its description must have 1 to 1,024 characters")
    return f"- {name}: {one_line(about)} ({path})"


def one_line(text: str) -> str:
    return " ".join(str(text).split())


__all__ = ["Hook", "Line", "Reading", "skill_line"]


def identity(home: Home) -> identities.Resolved:
    """Who the agent is, by the chain of names: the configuration's, the agent's, the document's."""

    def given(found: Any) -> identities.Identity:
        return identities.Identity(name=found.name or None, emoji=found.emoji or None, avatar=found.avatar or None)

    own = [("anima.toml [identity]", given(home.config.identity))]
    chain = [(f"agent {a.id}", given(a)) for a in home.config.agent if a.id == home.agent]
    if home.layout.has("identity"):
        chain.append(("IDENTITY.md", identities.parse(text_of(home, "identity"))))
    default = not home.config.agent or home.agent == home.config.agent[0].id
    return identities.resolve(own + chain if default else chain + own)


def text_of(home: Home, role: str) -> str:
    """The document of a role; "" where there is none that can be read."""
    try:
        return home.store.read(DocPath.parse(home.layout.row(role).path)).text
    except HomeError:
        return ""

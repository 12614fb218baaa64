"""Prompts: the rows of a home's table become pieces as one listener sees them, and those a prompt. Who the agent is.

Promise: rows visible to the listener → read → drop what scope, section mark or user layer hides → privacy filter → fit
→ draw, from what stands in the store now. A file that cannot be read becomes a row of the manifest, never an error. A
Prompts lives as long as its Home and is safe to share by threads. Not here: the filter that runs last, and how a prompt
is fitted (prompt), who may see what (layout).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, lru_cache, partial
from types import ModuleType

from anima.config import Additional
from anima.errors import BadPath, BadText, Damaged, HomeError, NoSuchDocument, NotFound, printable
from anima.layout import Listener, Row, how_to_own, is_unreviewed, layer_at, skill_line
from anima.model import Actor, DocPath, Document, Finding, Runtime, Scope, Severity, fold
from anima.prompt import Hook, Limits, Piece, Privacy, Prompt, beneath, compose, identity
from anima.prompt.identity import Avatar, Decision, Peer, Resolved, Subagent, WornSoul
from anima.site import Site
from anima.text import may_hide
from anima.text.markdown import Marks, View, front_matter, front_matter_end, lines_of, may_be_marked, sections

MAX_LISTED, DEEPEST = 200, 5  # files of knowledge that are named, and folders in one another
_MARKED = 120_000  # characters of a marked document that are looked through for a prompt, at least
# One of these stands in what the scan calls dangerous for another reason than hidden text; frames are defused anyway.
_SIGNS = {"<": ("<|", "<<"), "|": ("|>",), "]": ("INST]",)}  # by their rarest character, which is quickly found
_SPEAKERS = ("uman", "ssistant", "ystem", "UMAN", "SSISTANT", "YSTEM")  # with a colon behind them
_WORDS = re.compile(r"[^\W\d_]{2,}|[^\x00-\x7f]{4}")
_TYPES = {"jpg": "jpeg", "svg": "svg+xml"}  # where the kind of a picture is not how its file ends
_MOVING = frozenset({"curated", "daily", "diary", "session"})  # kinds of files that grow while the agent lives


class AgentIdentity:
    """Who the agent of one home is, by its configuration and its documents as they stand now."""

    def __init__(self, site: Site) -> None:
        self._site, self.rule = site, site.config.persona
        identity.check_rule(self.rule)

    @property
    def name(self) -> str:
        return self.resolved().name.value

    def resolved(self, listener: Listener | None = None) -> Resolved:
        """Every field with its source: interface override, agent configuration, IDENTITY.md, then "Assistant". With a
        listener, of IDENTITY.md only what they see."""
        config, agent = self._site.config, self._site.agent
        own = [("anima.toml [identity]", config.identity._asdict())]
        chain = [(f"agent {each.id}", each._asdict()) for each in config.agent if each.id == agent]
        if self._site.layout.has("identity"):
            chain.append(("IDENTITY.md", identity.parse(self._text_of("identity", listener))))
        return identity.resolve(own + chain if not config.agent or agent == config.agent[0].id else chain + own)

    def avatar(self) -> Avatar:
        """The avatar that is shown, or the reason why there is none. Never an absolute path."""
        documents = self._site.store.documents

        def size_of(path: DocPath) -> int | None:
            actual = documents.actual(path)
            entries = documents.list(actual.rpartition("/")[0]) if actual else ()
            return next((entry.size for entry in entries if entry.path == actual and not entry.is_folder), None)

        return identity.first_avatar(self.resolved().avatars, size_of=size_of)

    def picture(self) -> tuple[bytes, str]:
        """The avatar's bytes and media type, when it is a picture of the home's own. Raises NotFound."""
        found = self.avatar()
        if found.kind == "local":
            path = DocPath.parse(found.value or "")
            ending = path.key.rpartition(".")[2]
            data = self._site.store.documents.raw(path, most=identity.MAX_AVATAR_BYTES)
            return data, f"image/{_TYPES.get(ending, ending)}"
        if found.kind != "data":
            raise NotFound("there is no picture of the agent in this home")
        return identity.drawn(found.value or "")

    def persona(self, *, roll: bool = True) -> Decision:
        """Which soul would be worn, were it decided now; without `roll` chance has no say, since a look decides nothing."""
        rule = self.rule if roll else self.rule._replace(chance=0.0)
        return identity.decide(rule, self._site.now(), self._site.dice)

    def worn(self, limit: int) -> tuple[WornSoul, ...]:
        """Which souls conversations wore, the latest first."""
        store, zone = self._site.store, self._site.zone()
        records = list(store.ledger.records(kinds=("persona",))) if store.begun else []
        found = []
        for record in records[: -limit - 1 : -1]:
            said = {name: str(record.fields.get(name, "")) for name in ("session", "scope")}
            found.append(WornSoul(time=record.time.astimezone(zone), file=record.fields.get("file"), **said))
        return tuple(found)

    def peers(self) -> tuple[Peer, ...]:
        """The agents AGENTS.md names as peers, in a list of its own or in a section of an operating guide."""
        return identity.peers(self._text_of("agents"))

    def _text_of(self, role: str, listener: Listener | None = None) -> str:
        """The document of a role, as the listener sees it if there is one; "" where there is none that can be read."""
        try:
            found = self._site.store.documents.read(DocPath.parse(self._site.layout.row(role).path))
        except HomeError:
            return ""
        return listener.view(self._site.layout, found.path, found.text).text if listener else found.text


class Prompts:
    """Makes prompts for one home, whose agent is whom `agent` says. `hook` may change the pieces of every prompt."""

    def __init__(self, site: Site, agent: AgentIdentity, hook: Hook | None = None) -> None:
        self.site, self.identity, self._hook, config, layout = site, agent, hook, site.config, site.layout
        tokens = layout.memory_tokens if config.prompt.memory_tokens is None else config.prompt.memory_tokens
        self.limits = Limits(
            file=config.prompt.file_chars or layout.file_chars,
            total=config.prompt.total_chars or layout.total_chars,
            memory=None if tokens is None else tokens * 4,
        )
        # Whether another soul is ever worn.
        self.has_alternate = agent.rule.chance > 0 or bool(agent.rule.at)
        # The table without the row that calls one file a soul: what another row keeps from a listener stays kept.
        self.table = replace(layout, others=tuple(row for row in layout.others if row.role != "alternate-soul"))

    def subagents(self) -> tuple[dict[str, Subagent], list[str]]:
        """The sub-agents of this home by their ids, and what is said of pages that are none. Of two with one id the first
        counts."""
        documents, found, wrong = self.site.store.documents, dict[str, Subagent](), list[str]()
        for folder in identity.FOLDERS:
            for name in documents.names(documents.actual(DocPath.parse(folder)) or folder):
                if not name.casefold().endswith(".md") or name.startswith(("_", ".")):
                    continue
                path = f"{folder}/{name}"
                try:
                    page = identity.subagent_of(path, documents.read(DocPath.parse(path)).text)
                except HomeError as error:
                    wrong.append(f"sub-agent left out: {error}")
                    continue
                if page.id in found:
                    wrong.append(f"sub-agent left out: {path}: {found[page.id].path} has this name already")
                found.setdefault(page.id, page)
        return found, wrong

    def prompt(self, listener: Listener, *, runtime: Runtime, for_owner: bool = True) -> Prompt:
        """The prompt for a listener, from what stands in the store now. `for_owner`: the manifest is for the owner's
        eyes, and says how much was kept back. A session's tells nothing of it."""
        gathering = _Gathering(self, listener, for_owner=for_owner)
        if not listener.is_owner and listener.person is not None:
            gathering.notes += filter(None, [how_to_own(listener.person, self.site.config.owner)])
        full = runtime if runtime.host else replace(runtime, host=" ".join(os.uname()[::4]))
        ours = list(gathering.pieces(full))
        pieces = ours if self._hook is None else list(self._hook(tuple(ours)))
        if not listener.sees_all:
            pieces = gathering.privacy.passed(pieces, ours)
        asked = self.site.config.prompt
        return compose(
            pieces,
            layout=self.site.layout,
            limits=self.limits,
            scope=listener.scope,
            order=asked.order,
            style=asked.style,
            persona=gathering.persona,
            notes=gathering.notes,
        )


def main_prompt(site: Site) -> Prompt:
    """The prompt of the owner's own sessions, as no hook has changed it."""
    return Prompts(site, AgentIdentity(site)).prompt(Listener(scope=Scope.MAIN), runtime=Runtime())


class _Gathering:
    """One prompt on its way: what was read for it, and what is to be said beside it."""

    def __init__(self, prompts: Prompts, listener: Listener, *, for_owner: bool) -> None:
        self._prompts, self._listener, self._for_owner = prompts, listener, for_owner
        self._store, self._layout, self._config = prompts.site.store, prompts.site.layout, prompts.site.config
        self._documents = self._store.documents
        self._now = prompts.site.now(listener)
        self._read: dict[str, Document] = {}
        self.notes: list[str] = []
        self.persona: str | None = None  # the file of the soul that is worn
        self._is_begun = self._store.begun
        # So much of a document with marks is looked at: to know what they hide, all before a line must be read.
        self._most_marked = max(_MARKED, 2 * prompts.limits.file)

    @cached_property
    def privacy(self) -> Privacy:
        return Privacy(
            self._layout, self._prompts.table, self._listener, self._documents, self._document_or_none, self._read
        )

    def pieces(self, runtime: Runtime) -> Iterator[Piece]:
        """Every row of the table as this listener may see it."""
        for row in self._layout.rows:
            if row.role == "soul" and row.form == "text":
                yield self._soul(row)
            elif row.form in ("text", "identity"):
                piece = self._document(row, self._listener.path_of(row), self._listener.shows(row))
                if row.form == "identity" and not piece.problem:
                    line = identity.render(piece.text, row.fields)
                    empty = "" if line else "no field of it is filled in"
                    piece = replace(piece, text=line, reason=piece.reason or empty)
                yield piece
            elif row.form == "daily":
                yield from self._daily(row)
            elif row.form == "additional":
                yield from (self._additional(row, asked) for asked in self._config.prompt.additional)
            elif row.form == "knowledge":
                yield from self._knowledge(row)
            elif self._listener.scope not in row.scopes:
                if row.form == "skills":
                    yield self._hidden(row, "skills/")
            elif row.form == "skills":
                yield from self._catalogue(row, "skills", self._skills())
            elif row.form == "subagents":
                pages, wrong = self._prompts.subagents()
                self.notes += wrong
                told = ((page.path, f"- {page.id}: {page.about}") for page in pages.values())
                yield from self._catalogue(row, "subagents", told)
            elif row.form == "fixed":
                yield Piece(row=row, path="", text=row.text)
            elif row.form == "extra":
                if extra := self._config.prompt.extra:
                    yield _revealed(Piece(row=row, path="", text=extra, chars_raw=len(extra)))
                if runtime.page:
                    page = self._document(row, runtime.page, True)
                    yield replace(page, text=page.text[front_matter_end(page.text) :].strip())
            elif row.form == "runtime":
                text = self._runtime_text(runtime)
                yield Piece(row=row, path="", text=text, chars_raw=len(text))

    def _hidden(self, row: Row, path: str) -> Piece:
        return Piece(row=row, path=path, text="", problem="hidden", reason=self._listener.why_hidden(row))

    # -- documents ----------------------------------------------------------------------------------------------------

    def _document_or_none(self, path: str) -> Document | None:
        try:
            return self._read_document(path)
        except HomeError:
            return None

    def _read_document(self, path: str) -> Document:
        """A document, read once a prompt, so that all of a prompt is about the same text."""
        if path not in self._read:
            self._read[path] = self._documents.read(DocPath.parse(path))
        return self._read[path]

    def _document(self, row: Row, path: str, visible: bool) -> Piece:
        """A file as this listener sees it: whole, in part, hidden, missing or unreadable."""
        try:
            document = self._read_document(path)
        except HomeError as error:
            return self._unread(row, path, error) if visible else self._hidden(row, path)
        if is_unreviewed(self._layout, document.path):
            return Piece(row=row, path=path, text="", problem="hidden", reason="nobody reviewed it yet")
        part, is_all = self._seen(document, visible)
        if not visible and not part.text.strip():
            return self._hidden(row, path)
        reasons = [] if visible else ["only the sections shared with this scope"]
        if not is_all:
            reasons.append(f"it is long and marked, so only its first {self._most_marked:,} characters were looked at")
        if part.hidden and self._for_owner:
            reasons.append(f"{part.hidden} private section{'s' if part.hidden > 1 else ''} kept back")
        text = seen = part.text
        most, in_sight = 2 * self._prompts.limits.file, text
        if row.form != "identity" and len(text) > 2 * most:  # only its two ends are shown; a field may stand anywhere
            in_sight = f"{(bare := text.strip())[:most]}\n{bare[-most:]}"
        odd = bool(hidden(in_sight))
        if self._is_begun and (odd or suspicious(in_sight)):
            room = len(text) if row.form == "identity" else self._prompts.limits.file
            text = self._without_danger(document, text, reasons, room)
        piece = Piece(
            row=row,
            path=path,
            text=self._listener.framed(document.path, text),
            chars_raw=len(seen.strip()),  # a blank line may stand before what is hidden
            whole=text is seen,  # lines are counted in what is seen, as memory_get does
            reason="; ".join(reasons),
            source=document.path,
        )
        return _revealed(piece) if odd else piece

    def _without_danger(self, document: Document, text: str, reasons: list[str], room: int) -> str:
        """The text without lines that came from an edit outside of anima and in which the scan sees danger."""
        try:
            known = self._store.provenance
        except Damaged:
            known = None  # nothing tells now who wrote which line

        def is_bad(line: str) -> bool:  # no write of ours explains it, and the scan sees danger in it
            is_dangerous = _is_dangerous if len(line) <= _MARKED else _is_dangerous.__wrapped__
            return is_dangerous(line) and (known is None or known.source(document.path, line).actor is Actor.OUTSIDE)

        gone, kept, bare = 0, list[str](), text.strip()  # nobody is shown the blanks around it
        first, last = len(bare), len(bare)
        if len(bare) > 6 * room:  # only the ends of a long text are ever shown
            first = bare.find("\n", 2 * room) + 1 or len(bare)
            last = max(first, bare.rfind("\n", 0, -2 * room) + 1)
        for part in (bare[:first], bare[last:]):
            lines = lines_of(part)
            sound = [line for line in lines if not is_bad(line)]
            gone += len(lines) - len(sound)
            kept.append("".join(sound))
        if not gone:
            return text
        middle = bare[first:last] if min(map(len, kept)) > room else ""  # what nobody looked at is never in sight
        said = f"{gone} dangerous line{'s' if gone > 1 else ''} from outside left out"
        place = document.path
        self.notes.append(f"{place}: {said}; anima why {shlex.quote(f'{place}:LINE')} tells why")
        reasons.append(said)
        return kept[0] + middle + kept[1]

    def _seen(self, document: Document, visible: bool) -> tuple[View, bool]:
        """What this listener sees of a document, and whether that is all of it. What marks say of a line hangs on what
        stands before it and never on what follows, so the beginning of a text shows what it shows in the whole of it."""
        view = partial(self._listener.view, self._layout, document.path, visible=visible)
        if len(document.text) <= self._most_marked or document.text.startswith("---") or self._listener.sees_all:
            return view(document.text), True
        if not may_be_marked(document.text):
            return view(document.text, marked=Marks()), True
        part = view(document.text[: document.text.rfind("\n", 0, self._most_marked) + 1])
        return part, False

    def _unread(self, row: Row, path: str, error: HomeError) -> Piece:
        if isinstance(error, NoSuchDocument):
            why = "the first conversation is over" if row.role == "bootstrap" else "there is no such file"
            return self._missing(row, path, why)
        why = error.why if isinstance(error, BadText | BadPath) else str(error).partition(": ")[2]
        self.notes.append(f"{path}: {why}")
        marker = f"<!-- {path} cannot be read: {why} -->"
        return Piece(row=row, path=path, text=marker, problem="unreadable", reason=why)

    def _missing(self, row: Row, path: str, why: str) -> Piece:
        guide = self._document_or_none(self._layout.row("agents").path) if row.retired_by else None
        # Where a section of AGENTS.md has taken its place, nobody misses the file.
        is_retired = guide and any(fold(section.title).startswith(row.retired_by) for section in sections(guide.text))
        marker = self._layout.missing.format(path=path) if row.expected and not is_retired else ""
        return Piece(row=row, path=path, text=marker, problem="missing", reason=why)

    def _soul(self, row: Row) -> Piece:
        """The soul, or the alternate one when it is to be worn; notes a fall-back."""
        visible, path = self._listener.scope in row.scopes, row.path
        if visible and self._prompts.has_alternate:
            decision = identity.decide(self._prompts.identity.rule, self._now, self._prompts.site.dice)
            wish = decision.file
            if decision.worn and not self.privacy.may_place(DocPath.parse(wish)):
                self.notes.append(f"{wish} should be worn, but it is kept from this listener; {path} is worn instead.")
            elif decision.worn:
                own, other = self._document_or_none(path), self._document_or_none(wish)
                why_not = identity.not_worn(wish, own.text if own else None, other.text if other else None)
                self.notes += filter(None, [why_not])
                self.privacy.alternate = not why_not
                path = path if why_not else wish
        piece = self._document(row, path, visible)
        if not piece.problem:
            self.persona = path
        return piece

    def _additional(self, row: Row, asked: Additional) -> Piece:
        path, scopes = DocPath.parse(asked.path), asked.scopes
        governed = self._layout.row_of(path)
        if not self.privacy.is_free(path):
            scopes &= self._listener.scopes_of(self._layout, path)
        if not governed.stable or governed.kind in _MOVING or layer_at(path) is not None:
            row = replace(row, stable=False)  # or the stable part would move with it
        return self._document(row, asked.path, self._listener.scope in scopes)

    # -- daily logs ---------------------------------------------------------------------------------------------------

    def _daily(self, row: Row) -> Iterator[Piece]:
        wanted = self._listener.daily_folder(self._layout)
        folder, visible, first = self._spelt(wanted) or wanted, self._listener.shows(row), True
        kept_back, today = 0, self._now.date()
        days = (today.isoformat(), (today - timedelta(days=1)).isoformat())
        ours = [name for name in self._documents.names(folder) if name.startswith(days)]
        names = self._fit(folder, ours, visible=visible)
        for when, day in (("Today", today), ("Yesterday", today - timedelta(days=1))):
            found = [name for name in names if name.startswith(day.isoformat()) and name.lower().endswith(".md")]
            own = [name for name in found if len(name) == 13]  # before 2026-05-08-boat.md
            for name in own + sorted(name for name in found if len(name) > 13 and name[10] in "-_ "):
                try:
                    piece = self._document(row, DocPath.parse(f"{folder}/{name}").text, visible)
                except BadPath as error:
                    self.notes += [f"{printable(name)} in {folder}/ left out: {error.why}"] if visible else []
                    kept_back += 1
                    continue
                if piece.problem == "hidden":
                    kept_back += 1
                    continue
                yield replace(piece, day=name[:10], when=when, first=first)
                first = first and not piece.text.strip()
        if not visible and (kept_back or first):
            yield self._hidden(row, f"{folder}/")  # one row for all: their names may tell something too
        elif first and not kept_back:
            why = "nothing was noted today or yesterday"
            piece = self._missing(row, f"{folder}/{today.isoformat()}.md", why)
            yield replace(piece, day=today.isoformat(), when="Today")

    def _spelt(self, folder: str) -> str | None:
        """How a folder is spelt in the store; None when it is not there."""
        return self._documents.actual(DocPath.parse(folder))

    # -- skills, knowledge, runtime -----------------------------------------------------------------------------------

    def _catalogue(self, row: Row, folder: str, found: Iterator[tuple[str, str]]) -> Iterator[Piece]:
        """Names and descriptions only, of pages and lines; what says something dangerous of itself is left out and said."""
        lines = []
        for path, line in (each for each in found if self._is_told(each[0])):
            if _is_dangerous(line):
                what = f"what {printable(path)} says of itself is dangerous to show"
                self.notes.append(f"{row.role[:-1]} left out: {what}")
            else:
                lines.append(line)
        if lines:
            text = "\n".join(lines)
            yield _revealed(Piece(row=row, path=f"{self._spelt(folder) or folder}/", text=text, chars_raw=len(text)))

    def _is_told(self, path: str) -> bool:
        """Whether this listener sees all that a page says of itself in its front matter."""
        text = "" if self._listener.sees_all else self._read_document(path).text
        return not text or self._seen(self._read[path], True)[0].text.startswith(text[: front_matter_end(text)])

    def _skills(self) -> Iterator[tuple[str, str]]:
        folder = self._spelt("skills")
        for name in self._documents.names(folder) if folder else ():
            if name.startswith(("_", ".")):
                continue
            path = f"{folder}/{name}/SKILL.md"
            try:
                yield path, skill_line(name, path, front_matter(self._read_document(path).text, path))
            except (NoSuchDocument, BadPath):
                continue
            except (BadText, Damaged) as error:
                self.notes.append(f"skill left out: {error}")

    def _knowledge(self, row: Row) -> Iterator[Piece]:
        folder, visible = self._spelt(row.path.rstrip("/")), self._listener.scope in row.scopes
        if visible and (folder is None or not self._documents.names(folder)):
            return
        entry = self._document(row, f"{folder or row.path.rstrip('/')}/KNOWLEDGE.md", visible)
        if folder is None or not visible:
            yield entry if not entry.problem else self._hidden(row, row.path)
            return
        found = sorted(beneath(self._documents, folder, DEEPEST, self.notes))
        others = [path for path in found if fold(path) != fold(f"{folder}/KNOWLEDGE.md")]
        others = list(filter(self._is_named, self._fit(folder, others, visible=True)))
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

    def _is_named(self, path: str) -> bool:
        """Whether this listener may know that a page is there: they see something of it."""
        document = None if self._listener.sees_all else self._document_or_none(path)
        return document is None or bool(self._seen(document, True)[0].text)

    def _fit(self, folder: str, names: Sequence[str], *, visible: bool) -> list[str]:
        """The names that may stand in a prompt: those that give its reader no order."""
        fit = [name for name in names if not _gives_orders(name)]
        if visible and len(fit) < len(names):
            self.notes.append(f"{folder}/: {len(names) - len(fit)} left out, whose names speak like an order")
        return fit

    def _runtime_text(self, runtime: Runtime) -> str:
        now = self._now
        zone = str(now.tzinfo) if now.tzinfo and "/" in str(now.tzinfo) else now.strftime("UTC%z")
        lines = [f"Date: {now:%A %Y-%m-%d, %H:%M} ({zone})"]
        told = [(name.capitalize(), getattr(runtime, name)) for name in ("host", "model", "channel", "session")]
        told.append(("Your own folder, where all that you write goes", runtime.folder))
        told.append(("Tools", ", ".join(runtime.tools)))
        if self._layout.dialect == "agentscope" and self._listener.sees_all:
            told.append(("Workspace", self._store.name))
        lines += [f"{label}: {' '.join(value.split())}" for label, value in told if value]
        return "\n".join([*lines, f"Listening: {self._listener.scope}"])


# -- what a person would not see, or nobody vouched for ------------------------------------------------------------------


def _revealed(piece: Piece) -> Piece:
    """A piece in which what a person would not see is made visible; says so."""
    found = hidden(piece.text)  # a look at a part may have cut through an emoji
    if not found:
        return piece
    said = f"{len(found)} run{'s' if len(found) > 1 else ''} of hidden characters made visible"
    where = piece.path or piece.row.role
    return replace(
        piece,
        text=_scan().reveal(piece.text),
        reason="; ".join(filter(None, [piece.reason, said])),
        notes=(f"{where}: hidden characters made visible, the first on line {found[0].line}",),
    )


@lru_cache(maxsize=8192)
def _is_dangerous(line: str) -> bool:
    """Whether the scan sees danger in a line, secrets apart."""
    found = _scan().scan_text(line) if suspicious(line) or hidden(line) else ()
    return any(f.severity is Severity.DANGER and not f.kind.startswith("secret:") for f in found)


def _gives_orders(name: str) -> bool:
    """Whether a file's name commands its reader; one of few words cannot."""
    name = name.partition("/")[2] or name
    # An order has three words at least.
    if len(_WORDS.findall(name.rpartition(".")[0])) < 3 and not (suspicious(name) or hidden(name)):
        return False
    found = _scan().scan_text(name.rpartition(".")[0])
    return any(f.kind == "instruction" or f.severity is Severity.DANGER for f in found)


def hidden(text: str) -> tuple[Finding, ...]:
    return _scan().find_hidden(text) if may_hide(text) else ()


def _scan() -> ModuleType:
    """The scan, imported only when there may be something to see."""
    from anima.gate import scan

    return scan


def suspicious(text: str) -> bool:
    """A quick look for what could be dangerous in a line from outside; the scan then says whether it is."""
    if any(rare in text and any(map(text.__contains__, signs)) for rare, signs in _SIGNS.items()):
        return True
    return ":" in text and any(before.endswith(_SPEAKERS) for before in text.split(":")[:-1])

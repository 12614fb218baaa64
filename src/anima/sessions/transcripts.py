"""The transcripts of one home: begun, carried on, listed, read and searched, for whoever may.

Promise: an agent sees transcripts of its own and of nobody else's layer, and where they hold untrusted text, says so.
Opened when first needed; lives as long as its Home. Not here: the format (record, replay), who logs what (session).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from anima.config import SessionsConfig
from anima.errors import BadArguments, BadConfig, HomeError, NoSuchSession
from anima.gate.scan import redact_said
from anima.layout import Listener, TalkPlace, is_groups, person_of
from anima.model import UNTRUSTED, Checked, DocPath, Origin, Remark, Scope
from anima.search.tables import CheckedIndex
from anima.sessions import replay
from anima.sessions.find import NAME, Listed, Quotes, Rows, TranscriptIndex
from anima.sessions.record import Picks, Touches, Transcript, forget, kept, touched, transcripts_in, unchanged
from anima.sessions.replay import Asker, Record, Turn, TurnPage
from anima.site import Site
from anima.store import Logs, OpenLog
from anima.text.phrases import Left, Sought, Touched

LIST = "sessions.json"  # AgentScope's
MAX_SUMMARY = 400
NO_SUMMARIES: Mapping[str, str] = {}


class Transcripts:
    """What was said in a home's sessions. None of it exists where `sessions.dir` is empty."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.kept = bool(site.config.sessions.dir)
        self._doubts: dict[tuple[str, str, str], frozenset[Origin]] = {}
        self._arrived: tuple[str | None, frozenset[str]] = (None, frozenset())

    @cached_property
    def folder(self) -> Logs:
        return self.folder_of(self._place.folder, self._place.log)

    @cached_property
    def _context(self) -> Logs | None:
        return self.folder_of(self._place.folder, self._place.context) if self._place.context else None

    @cached_property
    def redact(self) -> replay.Redact:
        return redaction(self.site.config.sessions)

    @cached_property
    def index(self) -> TranscriptIndex:
        store = self.site.store
        return TranscriptIndex(store.scratch(NAME), redact=self.redact, make=lambda: store.scratch(NAME, make=True))

    @property
    def _place(self) -> TalkPlace:
        return self.site.layout.transcripts_of(self.site.agent, self.site.config.sessions.dir)

    def folder_of(self, folder: str, suffix: str) -> Logs:
        return transcripts_in(self.site.store, folder, suffix=suffix)

    def folders(self) -> tuple[Logs, ...]:
        """Every place transcripts of this home stand in, of all its agents; for the owner alone."""
        if not self.kept:
            return ()
        layout, documents = self.site.layout, self.site.store.documents
        if not layout.talks or self._context is None:
            return (self.folder,)
        top = layout.talks.partition("/{agent}")[0]
        there = documents.list(top) if documents.actual(DocPath.parse(top)) else ()
        agents = [entry.name for entry in there if entry.is_folder]
        places = [layout.transcripts_of(agent, self.site.config.sessions.dir) for agent in agents]
        return tuple(self.folder_of(place.folder, end) for place in places for end in (place.log, place.context))

    def freshen(self, *, anew: bool) -> None:
        """Brings list and index up to date, since something was forgotten; with `anew`, the index in a new file."""
        if anew and self.kept:
            self.index.begin_again()
        for logs in self.folders():
            if logs.name.endswith(f"*{self._place.log}"):
                self._refresh(logs, anew=True)

    def refresh(self) -> None:
        """Brings the list up to date; for when a session was flushed or has closed."""
        self._refresh(self.folder)

    def _refresh(self, logs: Logs, *, anew: bool = False, given: Mapping[str, str] = NO_SUMMARIES) -> None:
        self.index.refresh(logs)
        if self._place.context:
            rows = self.index.rows(logs, Asker(agent=None, layers=None))
            logs.put(LIST, slim_list(logs.get(LIST) or b"", rows, anew=anew, given=given))

    def set_summary(self, id: str, summary: str) -> None:
        """What a session was about, for the list that this dialect keeps of them; as the owner. It stays until something
        is forgotten. Raises BadArguments where there is no such list."""
        if not self._place.context:
            raise BadArguments(f"the dialect {self.site.layout.dialect} keeps no list of sessions")
        self.get(id)
        self._refresh(self.folder, given={id: " ".join(self.redact(summary)[0].split())[:MAX_SUMMARY]})

    def create(self, header: replay.Header) -> Transcript:
        return Transcript.create(self.folder, header, clock=self.site.clock, redact=self.redact, context=self._context)

    def carry_on(self, id: str) -> Transcript:
        """A transcript of this agent's that goes on. Another agent's is not there."""
        found = Transcript.resume(self.folder, id, clock=self.site.clock, redact=self.redact, context=self._context)
        if found.header.agent_id != self.site.agent:
            found.abandon()
            raise NoSuchSession(f"{id}: there is no such session")
        return found

    def kept_of(self, tool: str, answer: Mapping[str, Any]) -> str:
        """What a record of this answer says: how a result that comes by again is known."""
        return replay.call_kept(
            tool, {}, answer, read=(), redact=lambda text: (self.redact(replay.clean(text))[0], ())
        ).content

    def asker(self, listener: Listener) -> Asker:
        """Whose transcripts a listener may see: those of their own layer, in the owner's own kind of session alone."""
        layers = frozenset({listener.layer}) if listener.scope is Scope.MAIN else frozenset[str]()
        return Asker(agent=self.site.agent, layers=layers, scopes=None)

    def owner(self, within: Scope | None = None) -> Asker:
        """The owner at hand sees what everybody said to this agent, in one scope or in all."""
        return Asker(agent=self.site.agent, layers=None, scopes=frozenset({str(within)}) if within else None)

    # Whoever names no asker is the owner.

    def list(self, asker: Asker | None = None, limit: int | None = None) -> Rows:
        """The asker's sessions, the latest first; `total` says how many there are."""
        asker = asker or self.owner()
        if not self.kept:
            return Rows()
        rows = self.index.rows(self.folder, asker, limit)
        if not self._place.context:
            return rows
        told = {id: row["summary"] for id, row in _listed(self.folder.get(LIST) or b"")[1].items() if "summary" in row}
        found = Rows(row._replace(summary=str(told.get(row.id, row.summary))) for row in rows)
        found.total = rows.total
        return found

    def has(self, id: str) -> bool:
        return self.folder.look(id) is not None

    def path_of(self, id: str) -> str:
        """Where a session's transcript stands in the home."""
        return self.folder.path_of(id)

    def get(self, id: str, asker: Asker | None = None) -> Listed:
        """One session of the asker's. Somebody else's and none at all are one answer."""
        asker = asker or self.owner()
        row = self.index.get(self.folder, id) if id and self.kept else None
        if row is None or row.agent_id != asker.agent or (asker.layers is not None and row.layer not in asker.layers):
            raise NoSuchSession(f"{id}: there is no such session", hint="anima sessions lists them")
        return row

    def read(
        self,
        id: str,
        asker: Asker | None = None,
        *,
        start: int = 0,
        limit: int = 50,
        newest: bool = False,
        known: Listed | None = None,
    ) -> TurnPage:
        """A page of one session; `known` is its row from earlier, for whoever reads on while it grows."""
        row = known or self.get(id, asker)
        with self._shown(id, asker) as file:
            return replay.read(file, start=start, limit=limit, newest=newest, known=row.known)

    def marks(self, id: str, asker: Asker | None = None) -> tuple[Record, ...]:
        """What stands between the entries of one session, in order: cuts, flushes, taint, the end."""
        self.get(id, asker)
        with self._shown(id, asker) as file:
            return tuple(item.record for item in replay.scan(file, entries=False) if isinstance(item, replay.Placed))

    @contextmanager
    def _shown(self, id: str, asker: Asker | None) -> Iterator[OpenLog]:
        """A transcript, for whom its header says may see it."""
        with self.folder.open(id) as file:
            if not (asker or self.owner()).sees(replay.header_of(file, replay.agent_of(self.folder.name))):
                raise NoSuchSession(f"{id}: there is no such session")
            yield file

    def find(self, query: str, asker: Asker | None = None, *, limit: int = 50, max_chars: int = 200) -> Quotes:
        """The asker's entries that hold the words of a query, with a preview of each."""
        asker = asker or self.owner()
        if not self.kept or (asker.layers is not None and not asker.layers):
            return Quotes(hits=(), backend="plain")
        return self.index.find(self.folder, query, asker, limit=limit, max_chars=max_chars)

    def doubts(self, ids: Iterable[str], layer: str = "") -> frozenset[Origin]:
        """The untrusted origins of what was said in some sessions, to whoever has this layer: what each had read, what
        tools and sub-agents said in it, and the words of others."""
        found = frozenset[Origin]()
        for id in set(ids):
            seen = self.folder.look(id)
            key = (id, layer, seen.version if seen else "")
            if key not in self._doubts:
                self._doubts[key] = self._read_in(id, layer)
            found |= self._doubts[key]
        return found

    def origins_of(self, turn: Turn, layer: str, channel: str | None) -> frozenset[Origin]:
        """Where one line of a conversation came from, by who says it: a tool that the owner did not name as theirs, or
        another sender than whoever has this layer; what members say in their group is the group's own. A call of a tool of
        ours came from what the session had read by then."""
        if turn.call is not None:
            read = turn.call.get("read", [])
            return origins(map(str, read)) if isinstance(read, list) else UNTRUSTED
        is_own = turn.role == "tool" and turn.name in self.site.config.own_tools
        if (turn.role == "tool" or turn.name is not None) and not is_own:  # whoever has a name is a tool or a helper
            return frozenset({Origin.TOOL})
        if turn.sender_id is not None and not is_groups(layer):
            speaker = self.site.listener(Scope.MAIN, turn.sender_id, turn.source_plugin or channel)
            return frozenset({Origin.PEER}) if speaker.layer != layer else frozenset()
        return frozenset()

    def has_arrived(self, id: str) -> bool:
        """Whether a transcript was imported: whoever wrote it could also write who spoke, and that nothing was read."""
        store = self.site.store
        now = store.state.version("ledger.jsonl")
        if self._arrived[0] != now:
            found = store.ledger.records(kinds=("file",)) if store.begun else ()
            ids = (str(record.fields["session"]) for record in found if "session" in record.fields)
            self._arrived = (now, frozenset(ids))
        return id in self._arrived[1]

    def _read_in(self, id: str, layer: str) -> frozenset[Origin]:
        """What a conversation had read at its end: what it says itself, and what was said in it since."""
        read = frozenset[Origin]()
        try:
            with self.folder.open(id) as file:
                found = replay.resumed(file)
                if found is None or found.damaged or found.header.version > replay.VERSION or self.has_arrived(id):
                    return UNTRUSTED  # what it had read may have been among what cannot be read now
                header = found.header
                for item in replay.scan(file):
                    match item.record if isinstance(item, replay.Placed) else None:
                        case replay.TrustState(taint=taint):
                            read = origins(taint)
                        case Turn() as turn:
                            read |= self.origins_of(turn, header.layer or "", header.source_plugin)
        except HomeError:
            return UNTRUSTED
        is_strange = header.scope in (Scope.GROUP, Scope.SUBAGENT) or (header.layer or "") != layer
        return read | ({Origin.PEER} if is_strange else set())

    def close(self) -> None:
        if "index" in vars(self):
            self.index.close()


def redaction(asked: SessionsConfig) -> replay.Redact:
    """How transcripts of a home strike out secrets. Raises BadConfig for a pattern that matches nothing at all."""
    if not asked.redact:
        return unchanged
    patterns = tuple(map(re.compile, asked.patterns))
    if bad := [each.pattern for each in patterns if any(not found[0] for found in each.finditer("a b\n1-x"))]:
        raise BadConfig(f"the pattern {bad[0]!r} matches where there is nothing", where="sessions.patterns")
    return lambda text: redact_said(text, patterns)


class Said:
    """Transcripts as files: what of them holds a text, how that goes, and what a move must know of them."""

    name, version, without = "transcripts", replay.VERSION, staticmethod(kept)

    def __init__(self, transcripts: Transcripts) -> None:
        self._transcripts, self.folder = transcripts, transcripts.folder_of

    def is_one(self, path: str) -> bool:
        """Whether a file is a transcript, or the list of them."""
        folder, _, name = path.rpartition("/")
        is_named = name.endswith(".jsonl") or name == "sessions.json"
        return is_named and folder in {each.name.rpartition("/")[0] for each in self._transcripts.folders()}

    def header(self, line: bytes) -> replay.Header | None:
        """What a first line says; None where it is no transcript's."""
        found = replay.parse(line)
        return found if isinstance(found, replay.Header) else None

    def headers(self) -> Iterator[tuple[str, str | None, str | None]]:
        """(id, who it is with, their layer) of every transcript of the home, whichever agent's."""
        for folder, id in self._walk():
            with folder.open(id) as file:
                header = replay.header_of(file)
            person = person_of(header.sender_id, header.source_plugin) if header else None
            yield id, person, (header.layer or "") if header else None

    def _walk(self) -> Iterator[tuple[Logs, str]]:
        for folder in self._transcripts.folders():
            yield from ((folder, id) for id in sorted(folder.versions()))

    def find(self, sought: Sought) -> Iterator[Touched | Left]:
        def noted(text: str) -> bool:
            sought.matched = tuple(dict.fromkeys((*sought.matched, *sorted(sought.words.found(text)))))
            return False

        whose = {id: layer for id, _, layer in self.headers()} if sought.layer is not None else {}
        for folder, id in self._walk():
            if sought.layer is not None and whose.get(id) != sought.layer:
                continue
            try:
                count = touched(folder, id, *_speaking(sought, id))
                if count and sought.words.pattern is not None:  # what fits it here stays forgotten, too
                    touched(folder, id, noted)
            except HomeError as error:
                yield Left(folder.path_of(id), str(error))
                continue
            if count:
                why = "all that was said in it" if sought.all_of(id) else "entries that hold it"
                yield Touched(place="transcript", where=folder.path_of(id), why=why, count=count)

    def forget(self, sought: Sought, found: Sequence[Touched]) -> Iterator[Left]:
        for folder, id in self._among(found):
            try:
                forget(folder, id, *_speaking(sought, id), clock=self._transcripts.site.clock)
            except HomeError as error:
                yield Left(folder.path_of(id), str(error))

    def proof(self, sought: Sought, found: Sequence[Touched]) -> Iterator[Left]:
        for folder, id in self._walk() if sought.purge else self._among(found):
            try:
                held = touched(folder, id, *((sought.words.touches,) if sought.purge else _speaking(sought, id)))
            except HomeError:
                continue  # it is among the others already
            if held:
                yield Left(folder.path_of(id), "it was said again meanwhile")

    def _among(self, found: Sequence[Touched]) -> Iterator[tuple[Logs, str]]:
        places = {each.where for each in found}
        yield from ((folder, id) for folder, id in self._walk() if folder.path_of(id) in places)


def _speaking(sought: Sought, id: str) -> tuple[Touches, Picks]:
    """What of one transcript goes: by the words of an entry, and by who said it and when."""
    if sought.all_of(id):
        return bool, lambda turn: True

    def picks(turn: Turn) -> bool:
        return sought.entry(id, person_of(turn.sender_id, turn.source_plugin), turn.time, turn.text)

    return sought.words.touches, picks


def origins(names: Iterable[str]) -> frozenset[Origin]:
    """Origins as a transcript names them; one we do not know could be any."""
    known = {str(origin): frozenset({origin}) for origin in UNTRUSTED}
    return frozenset[Origin]().union(*(known.get(name, UNTRUSTED) for name in names))


def slim_list(
    there: bytes, rows: Iterable[Listed], *, anew: bool = False, given: Mapping[str, str] = NO_SUMMARIES
) -> bytes:
    """AgentScope's `sessions.json`: its own rows as they are, ours with summary and time. A summary that stands there
    stays, unless another is given, or all of them are made `anew` since something was forgotten."""
    found, held = _listed(there)
    for row in rows:
        old = held.get(row.id, {})
        summary = given.get(row.id) or (row.summary if anew else old.get("summary", row.summary))
        held[row.id] = old | {"summary": summary, "updatedAt": row.updated_at}
    whole = found | {"version": found.get("version", 1), "sessions": held}
    return json.dumps(whole, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def _listed(there: bytes) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The list as it stands, and its rows; both empty where it cannot be read."""
    try:
        found = json.loads(there)
        return found, {id: row for id, row in dict(found["sessions"]).items() if isinstance(row, dict)}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}, {}


class CheckedTranscripts(Transcripts):
    """The transcripts of a home as its health sees them. A line that cannot be read costs itself alone."""

    def check(self) -> Iterator[Remark]:
        for id in sorted(self.folder.versions()):
            yield from self._transcript(id)
        folder, known = self._place.folder, (self._place.log, self._place.context or self._place.log)
        for name in sorted(self.site.store.documents.raw_names(folder)):
            id = next((name.removesuffix(end) for end in known if name.endswith(end)), "")
            if name != LIST and not name.startswith(".") and (not id or self.folder.look(id) is None):
                said = f"{folder}/{name} is no transcript; nothing reads it."
                yield Remark(name="foreign-file", about=f"{folder}/{name}", message=said)

    def _transcript(self, id: str) -> Iterator[Remark]:
        path = self.folder.path_of(id)
        with self.folder.open(id) as file:
            found = [item for item in replay.scan(file) if isinstance(item, replay.BadLine)]
            header = replay.header_of(file)
        bad = [each for each in found if not each.torn]
        if header is None and bad and bad[0].line == 1 and len(bad) == bad[-1].line:
            said = f"{path} is no transcript: not one line of it can be read."
            yield Remark(name="foreign-file", about=path, message=said)
            return
        if bad:
            many = "1 line" if len(bad) == 1 else f"{len(bad):,} lines"
            said = f"{path}: {many} cannot be read, the first is line {bad[0].line}; all others can."
            yield Remark(name="transcript-damaged", about=path, message=said)
        if len(found) > len(bad):
            yield Remark(name="torn", about=path, message=f"{path} ends in the middle of a line.")

    def mend(self, found: Remark) -> str:
        """Nothing: what cannot be read is passed over, and the next write ends a torn line."""
        return ""


def checked_transcripts(site: Site) -> tuple[Checked, ...]:
    """What of a home's health its sessions can speak of: the index of transcripts, and the transcripts."""
    talks = TranscriptIndex(site.store.scratch(NAME), redact=unchanged)
    index = CheckedIndex(NAME, "The index of transcripts", why=talks.check, remove=site.store.state.remove)
    return (index, CheckedTranscripts(site)) if site.config.sessions.dir else (index,)

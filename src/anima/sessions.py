"""A Session: the agent's hand in a home, with the scope, sender and taint it was opened with.

Promise: an agent reaches documents only through `call`; what it reads passes the scope filter, what it writes passes
the road with its session's taint; reading untrusted text taints the session for good, until the owner clears it. A
Session lives from `home.session` to `close` and is safe to share by threads. Not here: the tool table (tools).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from anima.errors import BadArguments, NoSuchDocument
from anima.gate import FlowEvent, Situation, flows_after, may
from anima.listener import Listener
from anima.markdown import lines_of, view
from anima.memory import log_heading, log_line, remembered, replaced, twin_of
from anima.model import UNTRUSTED, Access, Actor, Change, DocPath, Kind, Origin, Receipt, Runtime, Verdict, digest_of
from anima.tools import tool_for
from anima.transcript import Header, Transcript, stamp, transcripts_in

if TYPE_CHECKING:
    from anima.home import Home
    from anima.prompt import Prompt
    from anima.search import Answer
    from anima.transcript import Role, Turn

MAX_TEXT = 12_000
MAX_HIT = 4_000
MAX_RECALLED_LINES = 40
SESSION_KINDS = frozenset({"session"})
MEMORY_KINDS = frozenset({"curated", "daily", "topic", "bank", "knowledge", "note"})
_MINUTE = timedelta(minutes=1)


class Session:
    """One conversation. Make it with `home.session(scope=…)`."""

    def __init__(
        self, home: Home, listener: Listener, *, id: str, channel: str | None = None, sender: str | None = None, access: Access = "rw",
        model: str | None = None,
    ) -> None:  # fmt: skip
        self._home, self.listener, self.id = home, listener, id
        self.channel, self.sender, self.access = channel, sender, access
        self.tainted: frozenset[Origin] = frozenset()
        self.flows: frozenset[str] = frozenset()
        self._mutex = threading.RLock()
        self._recent: deque[datetime] = deque()
        self._closed = False
        self._transcript: Transcript | None = None
        self._runtime = Runtime(model=model, channel=channel, session=id)
        self.prompt: Prompt = self._fresh_prompt()

    def _fresh_prompt(self) -> Prompt:
        return self._home.prompt_for(self.listener, self._runtime)

    def refresh(self) -> Prompt:
        """A new prompt from what is on disk now; until then the one of the session's start holds."""
        self.prompt = self._fresh_prompt()
        return self.prompt

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def log(
        self, role: Role, content: str, *, message_id: str | None = None, sender_id: str | None = None
    ) -> Turn | None:
        """Records one line of the conversation, secrets struck out; None where transcripts are switched off.

        The transcript begins with the first line, so a session in which nothing is said leaves none.
        """
        with self._mutex:
            if self._closed:
                raise BadArguments(f"session {self.id} is closed")
            if not self._home.config.sessions.dir:
                return None
            if self._transcript is None:
                self._transcript = self._begun()
            speaker = sender_id if sender_id is not None or role != "user" else self.sender
            return self._transcript.log(role, content, message_id=message_id, sender_id=speaker)

    def _begun(self) -> Transcript:
        """A transcript whose header says who listened, which soul was worn, and what the prompt was made of."""
        home = self._home
        folder = transcripts_in(home.store, home.books.machine, home.config.sessions.dir)
        manifest = tuple(
            {
                "path": line.path,
                "role": line.role,
                "status": line.status,
                "chars_shown": line.chars_shown,
                "reason": line.reason,
            }
            for line in self.prompt.manifest
        )
        header = Header(
            id=self.id, timestamp=stamp(home.clock()), agent_id=home.agent, source_plugin=self.channel or "",
            scope=str(self.listener.scope), sender_id=self.sender, layer=self.listener.layer or None, persona=self.prompt.persona,
            manifest=manifest,
        )  # fmt: skip
        transcript = Transcript.create(folder, header, clock=home.clock, redact=home.redaction())
        if self.tainted:
            transcript.state(taint=self.tainted, flows=self.flows)
        return transcript

    def close(self) -> None:
        """Ends the transcript and commits what the session appended. Closing twice does no harm."""
        with self._mutex:
            if not self._closed:
                self._closed = True
                if self._transcript is not None:
                    self._transcript.close()
                self._home.books.commit(reason=f"session {self.id} closed")

    # -- trust ----------------------------------------------------------------------------------------------------------

    def taint(self, origin: Origin | str) -> None:
        """Untrusted text came in. Flow rules that watch for it are active from now on."""
        try:
            found = Origin(origin)
        except ValueError:
            raise BadArguments(f"there is no origin {origin!r}; there are {', '.join(Origin)}") from None
        with self._mutex:
            self.tainted |= {found} & UNTRUSTED
            self.flows = flows_after(self.flows, FlowEvent.tainted(found), self._home.writing.policy)
            if self._transcript is not None:
                self._transcript.state(taint=self.tainted, flows=self.flows)

    def trust(self) -> None:
        """The owner vouches for what was read so far."""
        with self._mutex:
            self.tainted, self.flows = frozenset(), frozenset()

    def may(self, action: str) -> Verdict:
        """What a host asks before it does something, such as sending a message out (`outbound`)."""
        return may(action, self.flows, self._home.writing.policy)

    # -- tools ----------------------------------------------------------------------------------------------------------

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A tool's result as a plain dictionary. A refused write is an answer; a wrong argument raises BadArguments."""
        if self._closed:
            raise BadArguments(f"session {self.id} is closed")
        tool = tool_for(name, self.listener.scope)
        given = tool.checked(arguments or {})
        if self.access == "none":
            raise BadArguments("this session has no access to the home")
        found: dict[str, Any] = getattr(self, f"_{name}")(
            **{("start" if k == "from" else k): v for k, v in given.items()}
        )
        return found

    def _memory_search(self, *, query: str, limit: int, min_score: float, corpus: str, fusion: str) -> dict[str, Any]:
        home = self._home
        kinds = {"memory": MEMORY_KINDS, "sessions": SESSION_KINDS, "all": MEMORY_KINDS | SESSION_KINDS}[corpus]
        answer = home.indexing.search(self.listener, query, limit=limit, at=home.reading.now(self.listener), min_score=float(min_score),
                                      fusion=fusion, kinds=kinds)  # fmt: skip
        self._note_recall(query, answer)
        hits = [
            {"path": hit.path.text, "start_line": hit.start_line, "end_line": hit.end_line, "text": hit.text[:MAX_HIT],
             "score": round(hit.score, 4), "citation": hit.citation, "provider": hit.provider} for hit in answer
        ]  # fmt: skip
        return {"hits": hits, "notes": list(answer.notes)}

    def _note_recall(self, query: str, answer: Answer) -> None:
        """One record of what this search brought back: digests, ranks and scores, no text. Dreaming counts them."""
        if not answer.hits:
            return
        home, key = self._home, self._home.books.key
        hits = [
            {"path": hit.path.text, "lines": [d for d in key.lines(hit.text) if d][:MAX_RECALLED_LINES], "rank": rank,
             "score": round(hit.score, 4)} for rank, hit in enumerate(answer, start=1)
        ]  # fmt: skip
        fields: dict[str, object] = {"query": key.of(" ".join(query.casefold().split())), "hits": hits, "session": self.id,
                  "scope": str(self.listener.scope), "day": home.reading.today(self.listener).isoformat()}  # fmt: skip
        if self.listener.layer:
            fields["layer"] = self.listener.layer
        home.books.note("recall", fields, sync=False)

    def _memory_get(self, *, path: str, start: int, lines: int) -> dict[str, Any]:
        place, text = self._seen(path)
        found = lines_of(text)
        chosen: list[str] = []
        size = 0
        for line in found[start - 1 : start - 1 + lines]:
            if chosen and size + len(line) > MAX_TEXT:
                break
            chosen.append(line)
            size += len(line)
        shown = "".join(chosen)[:MAX_TEXT]
        after = start + len(chosen)
        self._note_reading(place, shown)
        rest = after <= len(found)
        result: dict[str, Any] = {
            "path": place.text,
            "from": start,
            "lines": len(chosen),
            "text": shown,
            "truncated": rest,
        }
        return result | ({"next_from": after} if rest else {})

    def _seen(self, path: str) -> tuple[DocPath, str]:
        """A document as this listener may see it. Not theirs and not there are one answer."""
        place = self._place(path)
        document = self._home.store.read(place)
        layout = self._home.layout
        part = view(document.text, scope=self.listener.scope, visible=self.listener.sees(layout, document.path),
                    owner=self.listener.owns(document.path))  # fmt: skip
        if not part.text and (document.text or not self.listener.sees(layout, document.path)):
            raise NoSuchDocument(place.text)
        return document.path, part.text

    def _place(self, path: str) -> DocPath:
        """Where a path leads for this listener: their own layer in place of USER, MEMORY and daily logs."""
        place = DocPath.parse(path)
        layer, layout = self.listener.layer, self._home.layout
        if not layer or place.key.startswith("users/"):
            return place
        for role in ("user", "memory"):
            if layout.has(role) and place.key == DocPath.parse(layout.row(role).path).key:
                return DocPath.parse(self.listener.path_of(layout.row(role)))
        folder = layout.daily.casefold() + "/"
        if place.key.startswith(folder):
            return DocPath.parse(f"users/{layer}/memory/{place.text[len(folder) :]}")
        return place

    def _note_reading(self, path: DocPath, text: str) -> None:
        """Reading untrusted lines taints the session; reading TOOLS.md may wake a flow rule."""
        with self._mutex:
            policy = self._home.writing.policy
            self.flows = flows_after(self.flows, FlowEvent.read(path, by_tool=True), policy)
            if self._home.books.begun and self._home.books.view.has_doubt(path):
                for line in lines_of(text):
                    source = self._home.books.view.source(path, line)
                    if not source.trusted:
                        for origin in ({source.origin} | source.taint) & UNTRUSTED:
                            self.taint(origin)

    def _memory_tree(self, *, path: str, depth: int) -> dict[str, Any]:
        home = self._home
        folder = path.strip("/")
        found = [entry for entry in home.tree(folder, depth) if self._lists(entry)]
        return {"path": folder, "entries": found}

    def _lists(self, entry: str) -> bool:
        place = DocPath.parse(entry.rstrip("/"))
        if entry.endswith("/"):
            inside = f"{place.text}/"
            return any(self._lists_file(e.path) for e in self._home.store.list_all(inside.rstrip("/")))
        return self._lists_file(entry)

    def _lists_file(self, path: str) -> bool:
        return self.listener.sees(self._home.layout, DocPath.parse(path))

    def _memory_history(self, *, path: str, limit: int, diff: bool) -> dict[str, Any]:
        if not self.listener.is_owner:
            raise NoSuchDocument(path or "history")
        place = self._place(path) if path else None
        if place is not None:
            self._seen(place.text)
        visible = [r for r in self._home.keeping.history(place, limit=limit) if self._may_see_revision(r.paths)]
        rows = []
        for revision in visible:
            row = {
                "id": revision.id[:12],
                "time": revision.time.isoformat(),
                "actor": revision.actor,
                "subject": revision.subject,
            }
            rows.append(
                row
                | (
                    {"diff": self._home.keeping.diff(revision.id, path=place)[:MAX_TEXT]}
                    if diff and self.listener.sees_all
                    else {}
                )
            )
        return {"revisions": rows}

    def _may_see_revision(self, paths: tuple[str, ...]) -> bool:
        return self.listener.sees_all or all(self._lists_file(path) for path in paths)

    def _memory_checkpoint(self, *, note: str) -> dict[str, Any]:
        revision = self._home.books.commit(reason=note)
        return {"revision": revision[:12] if revision else None, "skipped": revision is None}

    # -- writing ----------------------------------------------------------------------------------------------------------

    def _memory_write(
        self, *, target: str, content: str, append: bool, section: str | None, old_string: str | None, new_string: str | None,
        replace_all: bool, reason: str,
    ) -> dict[str, Any]:  # fmt: skip
        with self._mutex:
            if old_string is not None or new_string is not None:
                if old_string is None or new_string is None:
                    raise BadArguments("memory_write: an edit needs both old_string and new_string")
                change: Change | Receipt = self._edited(self._target(target), old_string, new_string, replace_all)
            elif target == "daily_log":
                change = self._noted(content)
            elif target == "memory" and append:
                change = self._remembered(content, section)
            elif target == "bootstrap" and not content.strip():
                change = self._wish(self._target(target), Kind.DELETE)
            else:
                change = self._written(self._target(target), content, append)
            if isinstance(change, Receipt):
                return _answer(change)
            return _answer(self._submit(change, reason))

    def _target(self, target: str) -> DocPath:
        layout = self._home.layout
        if target == "daily_log":
            return self.listener.daily_path(layout, self._home.reading.today(self.listener))
        roles = {"memory": "memory", "heartbeat": "heartbeat", "bootstrap": "bootstrap"}
        if target in roles:
            if not layout.has(roles[target]):
                raise BadArguments(f"memory_write: this home has no {target}")
            return DocPath.parse(self.listener.path_of(layout.row(roles[target])))
        return self._place(target)

    def _noted(self, content: str) -> Change:
        now = self._home.reading.now(self.listener)
        path = self.listener.daily_path(self._home.layout, now.date())
        return replace(self._wish(path, Kind.APPEND, log_line(content, now)), opening=log_heading(now))

    def _remembered(self, content: str, section: str | None) -> Change | Receipt:
        path = self._target("memory")
        text = self._text(path)
        if content.strip() and (twin := twin_of(text or "", content)):
            return Receipt(
                status="refused",
                path=path,
                rule="duplicate",
                reason=f"{path} line {twin.line} says so already: {twin.text}",
            )
        return self._wish(path, Kind.WRITE, remembered(text or "", content, section=section), base=_digest(text))

    def _edited(self, path: DocPath, old: str, new: str, every: bool) -> Change:
        self._seen(path.text)  # one cannot edit what one may not see
        text = self._home.read(path).text
        return self._wish(path, Kind.WRITE, replaced(text, old, new, every=every, path=path.text), base=digest_of(text))

    def _written(self, path: DocPath, content: str, append: bool) -> Change:
        if append:
            return self._wish(path, Kind.APPEND, content)
        return self._wish(path, Kind.WRITE, content, base=_digest(self._text(path)))

    def _text(self, path: DocPath) -> str | None:
        try:
            return self._home.read(path).text
        except NoSuchDocument:
            return None

    def _wish(self, path: DocPath, kind: Kind, text: str = "", *, base: str | None = None) -> Change:
        return Change(path=path, kind=kind, text=text, base=base, actor=Actor.AGENT, origin=Origin.AGENT, session=self.id,
                      scope=self.listener.scope, taint=self.tainted)  # fmt: skip

    def _submit(self, change: Change, reason: str) -> Receipt:
        now = self._home.clock()
        while self._recent and now - self._recent[0] > _MINUTE:
            self._recent.popleft()
        situation = Situation(recent=len(self._recent), flows=self.flows, access=self.access, layer=self.listener.layer)
        receipt = self._home.writing.submit([replace(change, reason=reason)], situation=situation)[0]
        if receipt.status != "refused":
            self._recent.append(now)
        return receipt


def _digest(text: str | None) -> str:
    return "" if text is None else digest_of(text)


def _answer(receipt: Receipt) -> dict[str, Any]:
    findings = [{"kind": f.kind, "line": f.line, "message": f.message} for f in receipt.findings]
    found: dict[str, Any] = {"status": receipt.status, "path": receipt.path.text, "revision": receipt.revision and receipt.revision[:12],
                             "proposal": receipt.proposal, "rule": receipt.rule, "findings": findings}  # fmt: skip
    if receipt.status != "written" and receipt.reason:
        found["reason"] = receipt.reason
    if receipt.status == "pending":
        found["review"] = f"the owner decides: anima pending, then anima approve {receipt.proposal}"
    return found

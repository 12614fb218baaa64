"""What each tool of the table does in a session: the agent's reading, searching and writing.

Promise: what is read passes the scope filter, what is written is a Change with the session's scope and taint, and
reading untrusted text taints the session. Not here: the table and its arguments (tools), what an agent can say of
itself (self_report), a session's life (session).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Protocol

from anima.errors import BadArguments, BadPath, BadText, Damaged, HomeError, NoSuchDocument, meant, printable
from anima.gate import is_danger, is_secret
from anima.layout import Policy, Sight, folder_of, is_unreviewed, layer_at, skill_line
from anima.memory import layer_folder
from anima.model import Answer, Change, DocPath, Document, Kind, Origin, Receipt, Scope, cited, digest_of, fold
from anima.sessions.hand import Hand, found_in, put, quoted, told
from anima.text.markdown import View, defuse_tags, ended, front_matter, lines_of
from anima.text.pages import as_bullet, filled, log_heading, log_line, placed, replaced, twin_of

if TYPE_CHECKING:
    from anima.search.rank import SearchAnswer
    from anima.store import Revision

MAX_TEXT = 12_000
_NOTED_BY = re.compile(r"(?m)^[-+ ]?<!-- \{.*$")  # whose an unreviewed entry is, and of which conversation
SKILLS, SKILL_PAGE = "skills", "SKILL.md"
MOST_FILES = 100  # of a skill, that are named beside its page
CHECKPOINT = "checkpoint"  # what history says where the session's own words are left out
UNREVIEWED_KINDS = frozenset({"unreviewed"})
ROLES = frozenset({"memory", "user", "identity", "soul", "tools", "heartbeat", "bootstrap"})
MEMORY_KINDS = frozenset({"curated", "daily", "topic", "bank", "knowledge", "note"})


class AskedSearch(Protocol):
    """What finds in this home (search.current, which says what it is asked)."""

    def search(self, *given: Any, **how: Any) -> SearchAnswer: ...

    def waiting(self, *given: Any, **how: Any) -> int: ...


class AskedPast(Protocol):
    """What became of the documents of this home (memory.past)."""

    def log(self, path: DocPath | None, *, limit: int) -> tuple[Revision, ...]: ...

    def diff(self, revision: str, *, path: DocPath | None) -> str: ...


class Calling:
    """The tools of one session. Lives as long as it does."""

    def __init__(self, hand: Hand, search: Callable[[], AskedSearch], past: Callable[[], AskedPast]) -> None:
        self._hand, self._site, self.listener, self._search, self._past = hand, hand.site, hand.listener, search, past
        self._documents, self._layout = hand.site.store.documents, hand.site.layout

    def _memory_search(self, *, query: str, limit: int, min_score: float, corpus: str, fusion: str) -> dict[str, Any]:
        if corpus == "sessions":
            talked, notes = self._talked(query, limit)
            return {"hits": [hit for hit in talked if hit["score"] >= min_score], "notes": notes}
        answer = self._search().search(
            self.listener,
            query,
            limit=limit,
            at=self._hand.now(),
            min_score=float(min_score),
            fusion=fusion,
            kinds=UNREVIEWED_KINDS if corpus == "unreviewed" else MEMORY_KINDS | UNREVIEWED_KINDS,
            trusted_only=not (corpus == "unreviewed" or self._hand.tainted),
        )
        with suppress(Damaged):  # where nothing can be written, what was found is told all the same
            self._note_recall(query, answer)
        for hit in answer:
            self._hand.take_in(hit.text, path=hit.path)
        answer, hits = self._with_unreviewed_counted(query, answer), list[dict[str, Any]]()
        for hit in answer:
            text = hit.text[:4_000]
            found: dict[str, Any] = {"path": hit.path.text, "start_line": hit.start_line, "end_line": hit.end_line}
            # What nobody reviewed stands in its frame, a group's words are its members'.
            found["text"] = self.listener.framed(hit.path, text) if hit.trusted else framed(text)
            found |= {"score": round(hit.score, 4), "citation": hit.citation, "provider": hit.provider}
            hits.append(found if hit.trusted else found | {"unreviewed": True})
        if corpus in ("memory", "unreviewed"):
            return {"hits": hits, "notes": list(answer.notes)}
        talked, notes = self._talked(query, limit)
        both = [hit for pair in zip_longest(hits, talked) for hit in pair if hit and hit["score"] >= min_score]
        return {"hits": both[:limit], "notes": [*answer.notes, *notes]}

    def _with_unreviewed_counted(self, query: str, answer: SearchAnswer) -> SearchAnswer:
        """A clean session's answer, which says how much it leaves out because nobody reviewed it."""
        if self._hand.tainted or self.listener.scope is not Scope.MAIN:
            return answer
        if not self._hand.rooms.writer().unreviewed.all(layer_folder(self.listener.layer)):
            return answer
        if not (waiting := self._search().waiting(self.listener, query, at=self._hand.now())):
            return answer
        count = f"{waiting} noted line{'s' if waiting > 1 else ''}"
        note = f"{count} that nobody reviewed may match too; corpus unreviewed shows them, as text from outside"
        return replace(answer, notes=(*answer.notes, note))

    def _talked(self, query: str, limit: int) -> tuple[list[dict[str, Any]], list[str]]:
        """Entries of transcripts, in the form of hits; their score is only their rank."""
        transcripts = self._hand.rooms
        if not transcripts.kept or self.listener.scope is not Scope.MAIN:
            return [], ["transcripts are not searched here"]
        found = transcripts.find(query, transcripts.asker(self.listener), limit=limit, max_chars=700)
        self._hand.take_in("", sessions=(hit.session_id for hit in found.hits))
        hits: list[dict[str, Any]] = [
            {"path": transcripts.path_of(hit.session_id), "start_line": hit.entry + 1, "end_line": hit.entry + 1}
            | {"text": f"{hit.role}: {hit.preview}", "score": round(1 / rank, 4), "provider": "sessions"}
            | {"citation": f"session {hit.session_id}, entry {hit.entry} ({hit.timestamp[:16]})"}
            for rank, hit in enumerate(found.hits, start=1)
        ]
        return hits, list(found.notes) if hits else [*found.notes, "no transcript of yours holds these words"]

    def _note_recall(self, query: str, answer: SearchAnswer) -> None:
        """One record of what this search brought back: digests, ranks and scores, no text. Dreaming counts them."""
        if not answer.hits:
            return
        key, hits = self._site.store.key, list[dict[str, object]]()
        for rank, hit in enumerate(answer, start=1):
            lines = key.each(key.distinct(hit.text))[:40]
            hits.append({"path": hit.path.text, "lines": lines, "rank": rank, "score": round(hit.score, 4)})
        fields: dict[str, object] = {"query": key.of(" ".join(query.casefold().split())), "hits": hits}
        fields |= {"session": self._hand.id, "scope": str(self.listener.scope)}
        fields["day"] = self._site.today(self.listener).isoformat()
        if self.listener.layer:
            fields["layer"] = self.listener.layer
        self._site.store.append("recall", fields, sync=False)

    def _memory_get(self, *, path: str, start: int, lines: int, offset: int) -> dict[str, Any]:
        path, first, _ = cited(path) or (path, 1, 1)  # as a hit of memory_search names its place
        return self._part(*self._seen(path), max(start, first), lines, offset)

    def _part(self, place: DocPath, text: str, start: int, lines: int, offset: int) -> dict[str, Any]:
        """Some lines of a document, which count as read."""
        found = lines_of(_NOTED_BY.sub("", text) if is_unreviewed(self._layout, place) else text)
        shown, number, within = "", start, offset  # the next line to show, and how much of it was shown
        for line in found[start - 1 : start - 1 + lines]:
            rest = line[within:]
            if shown and len(shown) + len(rest) > MAX_TEXT:
                break
            shown += rest[:MAX_TEXT]
            if len(rest) > MAX_TEXT:  # a line that is longer than an answer is read in pieces
                within += MAX_TEXT
                break
            number, within = number + 1, 0
        self._hand.take_in(shown, path=place)
        more = number <= len(found)
        result: dict[str, Any] = {
            "path": place.text,
            "from": start,
            "lines": number - start + bool(within),
            "text": self._told(place, shown),
            "truncated": more,
        }
        if more:
            result |= {"next_from": number} | ({"next_offset": within} if within else {})
        return result

    def read(self, path: str) -> str:
        """A document as this listener may see it, whole."""
        place, text = self._seen(path)
        self._hand.take_in(text, path=place)
        return self._told(place, text)

    def _told(self, place: DocPath, text: str) -> str:
        """A text as it may be told: what nobody reviewed in its frame, without who noted it; a group's as its members'."""
        if is_unreviewed(self._layout, place):
            return framed(_NOTED_BY.sub("", text))
        return self.listener.framed(place, text)

    def _seen(self, path: str) -> tuple[DocPath, str]:
        """A document's own path, and its text as this listener may see it."""
        document, part = self._viewed(path)
        return document.path, part.text

    def _viewed(self, path: str) -> tuple[Document, View]:
        """A document, and what this listener may see of it. Not theirs and not there are one answer."""
        place, layout = self._place(path), self._layout
        if layout.row_of(place).kind == "session":
            raise BadArguments(f"{place}: transcripts are read with session_logs")
        try:
            document = self._documents.read(place)
        except (BadText, BadPath):
            if self.listener.sees(layout, place):
                raise
            raise NoSuchDocument(place.text) from None
        part = self.listener.view(layout, document.path, document.text)
        if not part.text and (document.text or self.listener.sight(layout, document.path) is not Sight.WHOLE):
            raise NoSuchDocument(place.text)
        return document, part

    def _place(self, path: str) -> DocPath:
        """Where a path leads for this listener: their own layer in place of USER, MEMORY and daily logs."""
        place = DocPath.parse(path)
        if self.listener.workspace:
            own = self._own(place)
            return own if self._documents.exists(own) else place
        layer, layout = self.listener.layer, self._layout
        if not layer or layer_at(place) is not None:
            return place
        for role in ("user", "memory"):
            if layout.has(role) and place.key == DocPath.parse(layout.row(role).path).key:
                return DocPath.parse(self.listener.path_of(layout.row(role)))
        folder = layout.daily.casefold() + "/"
        if place.key.startswith(folder):
            return DocPath.parse(f"{folder_of(layer)}/memory/{place.text[len(folder) :]}")
        return place

    def _own(self, place: DocPath) -> DocPath:
        """Where a document stands in a sub-agent's own folder."""
        root = self.listener.workspace
        return place if not root or self.listener.holds(place) else DocPath.parse(f"{root}/{place.text}")

    def _skill_read(self, *, name: str, file: str, start: int, lines: int, offset: int) -> dict[str, Any]:
        """A file of a skill whose front matter holds to the format; and what the skill has beside its page."""
        path = f"{SKILLS}/{name}/{SKILL_PAGE}"
        page = self._seen(path)
        try:
            skill_line(name.rpartition("/")[2], path, front_matter(page[1], path))
        except BadText as error:
            raise BadArguments(f"skill_read: {error}") from None
        opened = page if file == SKILL_PAGE else self._seen(f"{SKILLS}/{name}/{file}")
        folder = self._documents.actual(DocPath.parse(f"{SKILLS}/{name}")) or f"{SKILLS}/{name}"
        found = sorted(entry.path[len(folder) + 1 :] for entry in self._documents.list_all(folder))
        beside = [each for each in found if each != SKILL_PAGE][:MOST_FILES]
        return self._part(*opened, start, lines, offset) | {"files": beside}

    def _skill_draft(self, *, name: str, description: str, body: str) -> dict[str, Any]:
        """A draft is a document like any other on the road in, and in no catalogue until the owner moves it there."""
        path, about = DocPath.parse(f"{SKILLS}/_drafts/{name}/{SKILL_PAGE}"), " ".join(description.split())
        try:
            skill_line(name, path.text, {"name": name, "description": about})
        except BadText as error:
            raise BadArguments(f"skill_draft: {error}") from None
        matter = f"name: {name}\ndescription: {json.dumps(about, ensure_ascii=False)}"
        text = f"---\n{matter}\n---\n\n{body.strip()}\n"
        with self._hand.at_work():
            change = self._hand.wish(path, Kind.WRITE, text, base=digest_of(self._text(path)))
            return _answer(self._hand.submit(replace(change, reason="a draft of a skill"), submitted=text))

    def _memory_tree(self, *, path: str, depth: int) -> dict[str, Any]:
        folder = path.strip("/")
        if folder and not self.listener.sees_all:  # empty for them and not there are one answer
            is_known = False
            with suppress(NoSuchDocument, BadPath):
                is_known = self.lists(f"{folder}/" if [*self._documents.list_all(folder)] else folder)
            if not is_known:
                raise NoSuchDocument(folder)
        found = [entry for entry in self._tree(folder, depth) if self.lists(entry)]
        if self.listener.is_owner:
            if is_others(f"{folder}/"):  # names are words too
                self._hand.take_in("", origins={Origin.PEER})
            else:
                found = [entry for entry in found if not is_others(entry) or entry.count("/") == entry.endswith("/")]
        return {"path": folder, "entries": found}

    def _tree(self, folder: str, depth: int) -> Iterator[str]:
        for entry in self._documents.list(folder):
            yield entry.path + "/" * entry.is_folder
            if entry.is_folder and depth > 1:
                yield from self._tree(entry.path, depth - 1)

    def lists(self, entry: str) -> bool:
        """Whether this listener may know of a document, or of one in a folder, which ends in a slash."""
        place, layout = DocPath.parse(entry.rstrip("/")), self._layout
        if entry.endswith("/"):
            return any(self.lists(each.path) for each in self._documents.list_all(place.text))
        is_listed = layout.row_of(place).kind != "session" and self.listener.sees(layout, place)
        if self.listener.sees_all or not is_listed:
            return is_listed
        with suppress(HomeError):  # one that cannot be read is there all the same
            text, is_whole = self._text(place), self.listener.sight(layout, place) is Sight.WHOLE
            return text is not None and bool(self.listener.view(layout, place, text).text or (is_whole and not text))
        return True

    def _memory_history(self, *, path: str, limit: int, diff: bool) -> dict[str, Any]:
        if not self.listener.sees_all:  # a revision tells of everything that changed with it
            raise NoSuchDocument(path or "history")
        place = self._place(path) if path else None
        if place is not None:
            self._seen(place.text)
        past, rows = self._past(), []
        for revision in past.log(place, limit=limit):
            # The paths of others hold names that they chose.
            theirs = next((touched.partition("/")[0] for touched in revision.paths if is_others(touched)), "")
            row = {"id": revision.id[:12], "time": revision.time.isoformat(), "actor": revision.actor}
            row["subject"] = f"a change under {theirs}/" if theirs else revision.subject
            if revision.anchor is None:  # no commit of ours: nobody here knows whose words these are
                self._hand.take_in(revision.subject, origins={Origin.PEER})
            if diff:
                row["diff"] = past.diff(revision.id, path=place)[:MAX_TEXT]
                touched = [place] if place else [*map(DocPath.parse, revision.paths)]
                said = "".join(line[1:] for line in lines_of(row["diff"]))
                for each in touched:
                    self._hand.take_in(said, path=each)
                for each in {self._told(each, "x"): each for each in touched}.values():  # no frame twice
                    row["diff"] = self._told(each, row["diff"])
            rows.append(row)
        return {"revisions": rows}

    def _memory_checkpoint(self, *, note: str) -> dict[str, Any]:
        told: dict[str, Any] = {}
        if not self.listener.sees_all:
            note = CHECKPOINT
        elif note.strip():
            log = self._target("daily_log")
            verdict, findings = self._hand.judged(self._hand.wish(log, Kind.APPEND, note))
            if any(is_secret(found) or is_danger(found) for found in findings):
                return {"revision": None, "skipped": True, "reason": f"refused: {verdict.reason}"}
            if verdict.answer is not Answer.ALLOW:
                note = CHECKPOINT
                told = {"reason": f"the note was left out: {verdict.reason}"}
        revision = self._site.store.commit(reason=note)
        if not self.listener.sees_all:  # whether there was anything to commit hangs on documents of others, too
            return {"revision": None, "skipped": False, **told}
        return {"revision": revision[:12] if revision else None, "skipped": revision is None, **told}

    def memory(self) -> tuple[DocPath, str]:
        """This listener's curated memory as they see it; no text where there is none."""
        path = self._target("memory")
        with suppress(NoSuchDocument):
            return self._seen(path.text)
        return path, ""

    def _memory_write(
        self,
        *,
        target: str,
        content: str,
        append: bool,
        section: str | None,
        old_string: str | None,
        new_string: str | None,
        replace_all: bool,
        reason: str,
        source: str | None,
        quote: str | None,
    ) -> dict[str, Any]:
        if source is not None:
            self._hand.taint(source)
        if quote is not None:
            if content or section or not append or not (old_string is new_string is None):
                raise BadArguments("memory_write: a quote is added as it is; leave content, section and edits out")
            return _answer(self._quoted(target, quote))
        if not content.strip() and old_string is new_string is None and target != "bootstrap" and append:
            raise BadArguments(
                "there is nothing to write; content is the text to add, old_string and new_string are an edit"
            )

        def once() -> Receipt:
            submitted = content
            if old_string is not None or new_string is not None:
                if old_string is None or new_string is None:
                    raise BadArguments("memory_write: an edit needs both old_string and new_string")
                submitted = new_string
                change: Change | Receipt = self._edited(self._target(target), old_string, new_string, replace_all)
            elif target == "daily_log":
                change = self._noted(content)
            elif target == "memory" and append:
                submitted = f"{content}\n{section}" if section else content
                change = self._remembered(content, section)
            elif target == "bootstrap" and not content.strip():
                change = self._hand.wish(self._target(target), Kind.DELETE)
            else:
                change = self._written(self._target(target), content, append)
            if isinstance(change, Receipt):
                return change
            wish = (change.kind, content, append, section, old_string, new_string, replace_all)
            what = "note" if target == "daily_log" else "write"
            return self._hand.submit(replace(change, reason=reason), what=what, submitted=submitted, wish=wish)

        with self._hand.at_work():
            return _answer(self._repeated(once) if append or old_string is not None else once())

    def change(self, kind: Kind, path: str, to: str | None) -> dict[str, Any]:
        """Takes a document away, or elsewhere; for who sees all of it, and of where it goes, alone."""
        with self._hand.at_work():
            document, target = self._viewed(path)[0], self._place(to) if to is not None else None
            for place in filter(None, (document.path, target)):
                if self.listener.sight(self._layout, place) is not Sight.WHOLE:
                    raise NoSuchDocument(place.text)
            if target is not None:  # what is carried elsewhere was read: another's words stay another's
                self._hand.take_in(document.text, path=document.path)
            wish = self._hand.wish(document.path, kind, base=document.digest)
            return _answer(self._hand.submit(replace(wish, to=target)))

    def _quoted(self, target: str, quote: str) -> Receipt:
        """Adds what the owner typed in this conversation, word for word."""
        if target not in ("memory", "daily_log"):
            raise BadArguments("memory_write: a quote goes to memory or daily_log")
        with self._hand.at_work():
            words = found_in(quote, self._hand.owner_typed())
            if words is None:
                why = "no message of the owner's in this conversation holds these sentences whole, word for word"
                if self._hand.guest is not None:
                    why = "an agent elsewhere cannot show what the owner typed; write it as content"
                return Receipt(status="refused", path=self._target(target), rule="quote", reason=why)

            def once() -> Receipt:
                change = self._noted(told(words)) if target == "daily_log" else self._remembered(told(words), None)
                return change if isinstance(change, Receipt) else self._hand.submit(quoted(change))

            return self._repeated(once)

    def _repeated(self, once: Callable[[], Receipt]) -> Receipt:
        return self._hand.rooms.writer().repeated(once, waits=self._hand.parent is not None)

    def _memory_read_outside(self, *, source: str) -> dict[str, Any]:
        self._hand.taint(source)
        return {"read": sorted(self._hand.tainted)}

    def _memory_forget(self, *, text: str | None, path: str | None, line: int | None, reason: str) -> dict[str, Any]:
        """A wish that waits for the owner. Whether anything holds the words, this answer does not tell."""
        if (text is None) == (path is None) or (path is None) != (line is None):
            raise BadArguments("memory_forget needs a text, or a path and a line of it")
        if text is not None and len(" ".join(text.split())) < 2:
            raise BadArguments("memory_forget: the text is too short; nearly every line would hold it")
        with self._hand.at_work():
            place, wish = self._target("memory"), {"text": text or ""}
            if path is not None and line is not None:
                place, seen = self._seen(path)
                lines = lines_of(seen)
                if not 1 <= line <= len(lines) or not lines[line - 1].strip():
                    raise BadArguments(f"memory_forget: {place} has no such line; memory_get shows them")
                wish = {"path": place.text, "said": lines[line - 1]}
            return _answer(self._hand.wish_forgotten(replace(self._hand.wish(place, Kind.APPEND), reason=reason), wish))

    def _target(self, target: str) -> DocPath:
        layout = self._layout
        if target == "daily_log":
            return self._own(self.listener.daily_path(layout, self._site.today(self.listener)))
        if target not in ROLES and not {"/", "."} & set(target):
            known = ("daily_log", *sorted(ROLES))
            hint = meant(target, known, f"there are {', '.join(known)}, and documents, which end in .md", near=0.6)
            raise BadArguments(f"memory_write: there is no target {printable(target, 60)!r}; {hint}")
        if target not in ROLES:
            return self._own(self._place(target))
        if not layout.has(target):
            raise BadArguments(f"memory_write: this home has no {target}")
        return self._own(DocPath.parse(self.listener.path_of(layout.row(target))))

    def _noted(self, content: str) -> Change:
        now = self._hand.now()
        path = self._own(self.listener.daily_path(self._layout, now.date()))
        return replace(self._hand.wish(path, Kind.APPEND, log_line(content, now)), opening=log_heading(now))

    def _remembered(self, content: str, section: str | None) -> Change | Receipt:
        path = self._target("memory")
        text = self._text(path)
        part = self.listener.view(self._layout, path, text or "")
        # Who may not see a line or a heading learns neither by asking nor by a line's place whether it stands there.
        is_part = not self.listener.sees_all and self.listener.sees(self._layout, path)
        if section is not None:
            placed(part.text, as_bullet(content), section=section)
        if content.strip() and (twin := twin_of(part.text, content, section=section)):
            why = f"{path} line {twin.line} says so already: {twin.text}"
            return Receipt(status="known", path=path, rule="duplicate", reason=why)
        page = placed(ended(part.text) if is_part else text or "", as_bullet(content), section=section)
        wanted = put(self._hand, path, text, page.text) if is_part else page.text
        change = self._hand.wish(path, Kind.WRITE, wanted, base=digest_of(text))
        return replace(change, added=as_bullet(content), section=section, under=page.section)

    def _edited(self, path: DocPath, old: str, new: str, every: bool) -> Change:
        """An edit of what this listener sees; one cannot edit, nor find out by trying, what one may not see."""
        document, part = self._viewed(path.text)
        carded = self._hand.rooms.writer().carded(document.path, self._hand.id) if self.listener.sees_all else None
        page = carded if carded and old in carded else part.text
        wanted = replaced(page, old, new, every=every, path=path.text, is_part=not self.listener.sees_all)
        return self._hand.wish(path, Kind.WRITE, put(self._hand, path, document.text, wanted), base=document.digest)

    def _written(self, path: DocPath, content: str, append: bool) -> Change:
        is_seen = self.listener.sight(self._layout, path) is Sight.WHOLE and self._documents.exists(path)
        if append and content.strip() and is_seen and self._layout.row_of(path).policy is Policy.IDENTITY:
            text = self._text(path)  # it says who somebody is: what they add goes to its fields
            page = self._hand.rooms.writer().carded(path, self._hand.id) or text or ""
            return self._hand.wish(path, Kind.WRITE, filled(page, content), base=digest_of(text))
        if append:
            return self._hand.wish(path, Kind.APPEND, content)
        text = self._text(path)
        wanted = put(self._hand, path, text, content) if self.listener.sees(self._layout, path) else content
        return self._hand.wish(path, Kind.WRITE, wanted, base=digest_of(text))

    def _text(self, path: DocPath) -> str | None:
        """What stands there. To whoever does not see it whole no error tells of it: the road in judges what was sent."""
        is_seen = self.listener.sight(self._layout, path) is not Sight.NONE
        with suppress(NoSuchDocument if is_seen else HomeError):
            return self._documents.read(path).text
        return None


def is_others(entry: str) -> bool:
    """Whether a place is one where others choose the names: layers, what nobody reviewed, and sub-agents' folders."""
    return fold(entry).startswith(("users/", "groups/", "unreviewed/", "agents/"))


def framed(text: str) -> str:
    """Text that nobody reviewed, in a frame that it cannot close."""
    return f"<unreviewed>\n{defuse_tags(text, ('unreviewed',))}\n</unreviewed>"


def _answer(receipt: Receipt) -> dict[str, Any]:
    found: dict[str, Any] = {
        "status": receipt.status,
        "path": receipt.path.text,
        "revision": receipt.revision and receipt.revision[:12],
        "proposal": receipt.proposal,
        "rule": receipt.rule,
        "findings": [{"kind": each.kind, "line": each.line, "message": each.message} for each in receipt.findings],
        **({"section": receipt.section} if receipt.section else {}),
    }
    if receipt.status != "written" and receipt.reason:
        found["reason"] = receipt.reason
    if receipt.status == "noted":
        found |= {"noted": list(receipt.noted), "review": "the owner keeps or drops it: anima review"}
    if receipt.proposal and receipt.status == "pending":
        found["review"] = f"the owner decides: anima review {receipt.proposal}"
    return found

"""What an agent can say about itself: who it is, what it knows, how it lives, and what was said in its sessions.

Promise: answers are short enough for a model to take in one turn, hold only what the session's listener may see, and
say when something was left out. Each is a plain dictionary. Not here: the tool table (tools), the transcripts (transcripts).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from anima.errors import BadArguments, HomeError
from anima.layout.listener import is_unreviewed
from anima.model import Actor, DocPath, Nights
from anima.text.markdown import bullet_of, bullet_text, evidence_of, heading_of, lines_of, without_tail
from anima.text.words import tags

if TYPE_CHECKING:
    from anima.layout.listener import Listener
    from anima.sessions.find import Listed
    from anima.sessions.hand import Hand
    from anima.sessions.replay import Turn
    from anima.site import Site

SOUL_CHARS = 2_048
KNOWN_BYTES = 6_144
KNOWN_BULLETS = 10
TAGS = 10
TAGGED_RECALLS = 200
WEEK = timedelta(days=7)
RECENT = 10


# -- who am I -----------------------------------------------------------------------------------------------------------


def who_am_i(hand: Hand) -> dict[str, Any]:
    """Name and nature, as far as this listener sees them; the folder only for the owner alone."""
    site, listener = hand.site, hand.listener
    found: dict[str, Any] = {"agent_id": site.agent, "model": hand.model}
    if listener.sees_all:
        found["workspace_dir"] = site.store.name
    fields = ("name", "creature", "vibe", "emoji", "avatar")
    shown = hand.rooms.prompts.identity.resolved(listener).fields if _sees(site, listener, "identity") else None
    found["identity"] = {key: getattr(shown, key) if shown else None for key in fields}
    found["soul_excerpt"] = _soul(site, listener, hand.prompt.persona)
    return found


def _sees(site: Site, listener: Listener, role: str) -> bool:
    if not site.layout.has(role):
        return True  # there is no such file; what is shown comes from the configuration
    return listener.sees(site.layout, DocPath.parse(site.layout.row(role).path))


def _soul(site: Site, listener: Listener, persona: str | None) -> str | None:
    """The beginning of the soul that the session's prompt shows; None where it shows none."""
    if persona is None:
        return None
    try:
        text = site.store.documents.read(DocPath.parse(persona)).text
    except HomeError:
        return None
    shown = listener.view(site.layout, None, text, visible=True).text.strip()
    return shown if len(shown) <= SOUL_CHARS else shown[:SOUL_CHARS] + "…"


# -- what do I know -----------------------------------------------------------------------------------------------------


def what_do_i_know(text: str, *, section: str | None, limit: int) -> dict[str, Any]:
    """The sections of a memory with their first bullets, until so many bytes of JSON are full."""
    sections = [found for found in _outlined(text) if not section or section.casefold() in found[0].casefold()]
    shown: list[dict[str, Any]] = []
    truncated, size = len(sections) > limit, 64
    for heading, bullets in sections[:limit]:
        one, cut = _fitted(heading, bullets, KNOWN_BYTES - size)
        truncated |= cut
        if one is None:
            break
        shown.append(one)
        size += _size(one) + 2
    return {"sections": shown, "truncated": truncated}


def _outlined(text: str) -> list[tuple[str, list[str]]]:
    """`## ` headings and the bullets beneath each; what stands before the first has none."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in lines_of(text):
        if (heading := heading_of(line)) and heading.level == 2:
            found.append((heading.title.partition("<!--")[0].strip(), []))
        elif _is_point(line):
            found[-1][1].append(bullet_text(line))
    return [each for each in found if each[1]]


def _is_point(line: str) -> bool:
    bullet = bullet_of(line)
    return bullet is not None and bullet.is_point and not bullet.indent and bool(bullet.text)


def _fitted(heading: str, bullets: list[str], room: int) -> tuple[dict[str, Any] | None, bool]:
    """A section with as many of its bullets as there is room for, and whether some are missing."""
    heading = heading[:200]
    kept: list[str] = []
    for bullet in bullets[:KNOWN_BULLETS]:
        if _size({"heading": heading, "bullets": [*kept, bullet], "extra_bullets": len(bullets)}) + 2 > room:
            break
        kept.append(bullet)
    if not kept:
        return None, True
    extra = len(bullets) - len(kept)
    return {"heading": heading, "bullets": kept, "extra_bullets": extra}, extra > 0


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


# -- my stats -----------------------------------------------------------------------------------------------------------


def my_stats(hand: Hand, memory: str) -> dict[str, Any]:
    """Counts an agent can tell of itself: of this listener's layer, and of the last seven days."""
    site, listener, transcripts = hand.site, hand.listener, hand.rooms.transcripts
    bullets = [line for line in lines_of(memory) if _is_point(line)]
    recalls = list(_recalls(site, listener))
    nights = hand.rooms.nights() if listener.is_owner else Nights()
    return {
        "sessions_total": transcripts.list(transcripts.asker(listener), 0).total,
        "memories_stored": len(bullets),
        # What the nights of this home kept, and the lines that were dreamed elsewhere and say so.
        "memories_promoted": nights.kept + _dreamed_elsewhere(hand, bullets),
        "last_dream_ts": nights.last.isoformat() if nights.last else None,
        "recall_events_7d": len(recalls),
        "top_concept_tags_7d": _tags(site, listener, recalls[-TAGGED_RECALLS:]),
        "workspace_files_present": _present(site, listener),
    }


def _dreamed_elsewhere(hand: Hand, bullets: list[str]) -> int:
    """How many lines tell of a dream that no night of this home had."""
    told = [line for line in bullets if evidence_of(line) is not None]
    store, path = hand.site.store, DocPath.parse(hand.listener.path_of(hand.site.layout.row("memory")))
    if not told or not store.begun:
        return len(told)
    return sum(store.provenance.source(path, line).actor is not Actor.DREAMER for line in told)


def _recalls(site: Site, listener: Listener) -> Iterator[dict[str, Any]]:
    if not site.store.begun:
        return
    since = site.clock() - WEEK
    for record in site.store.ledger.records(kinds=("recall",)):
        if record.time >= since and record.fields.get("layer", "") == listener.layer:
            yield dict(record.fields)


def _tags(site: Site, listener: Listener, recalls: list[dict[str, Any]]) -> list[list[str | int]]:
    """The concepts of the lines that were recalled, as far as they still stand in their documents; best hits first."""
    wanted: dict[str, dict[str, list[float]]] = {}
    for recall in recalls:
        for hit in recall.get("hits", ()):
            for digest in hit.get("lines", ()):
                wanted.setdefault(str(hit.get("path")), {}).setdefault(str(digest), []).append(
                    float(hit.get("score", 0))
                )
    weight: dict[str, float] = defaultdict(float)
    count: Counter[str] = Counter()
    for path, digests in wanted.items():
        for line in _lines_seen(site, listener, path):
            scores = digests.get(site.store.key.line(line), [])
            for tag in tags(without_tail(bullet_text(line))) if scores else ():
                weight[tag] += sum(scores)
                count[tag] += len(scores)
    best = sorted(weight, key=lambda tag: (-weight[tag], tag))[:TAGS]
    return [[tag, count[tag]] for tag in best]


def _lines_seen(site: Site, listener: Listener, path: str) -> list[str]:
    try:
        place = DocPath.parse(path)
        if is_unreviewed(site.layout, place):
            return []
        text = site.store.documents.read(place).text
    except HomeError:
        return []
    return lines_of(listener.view(site.layout, place, text).text)


def _present(site: Site, listener: Listener) -> list[str]:
    """The files of the table that are there, of those this listener sees."""
    rows = (row for row in (*site.layout.rows, site.layout.row("diary")) if row.path.endswith(".md"))
    places = (DocPath.parse(listener.path_of(row)) for row in rows)
    there = (place for place in dict.fromkeys(places) if site.store.documents.exists(place))
    return [place.text for place in there if listener.sees(site.layout, place)]


# -- session logs -------------------------------------------------------------------------------------------------------


class SessionLogs:
    """The actions of `session_logs` for one asker. `touched` are the sessions whose words were shown."""

    def __init__(self, hand: Hand) -> None:
        self._transcripts, self._current = hand.rooms.transcripts, hand.id
        self._asker, self._layer = self._transcripts.asker(hand.listener), hand.listener.layer
        self.touched: set[str] = set()

    def answer(
        self, action: str, *, session_id: str | None, query: str | None, limit: int | None, max_chars: int
    ) -> dict[str, Any]:
        if action == "list_sessions":
            rows = self._transcripts.list(self._asker, limit or 50)
            return {
                "ok": True,
                "sessions": [_listed(row, max_chars) | self._untold(row) for row in rows],
                "total": rows.total,
            }
        if action == "search":
            return self._searched(query, limit or 50, max_chars)
        recent = action == "recent"
        if not session_id and not recent:
            raise BadArguments("session_logs: read_session needs session_id; list_sessions names them")
        return self._read(session_id or self._current, limit or (RECENT if recent else 50), max_chars, newest=recent)

    def _untold(self, row: Listed) -> dict[str, str]:
        """What a list leaves out: the words of a conversation that others had a part in are read with read_session."""
        is_own = row.id == self._current or not self._transcripts.doubts([row.id], self._layer)
        return {} if row.scope and is_own else {"summary": ""}

    def _read(self, id: str, limit: int, max_chars: int, *, newest: bool) -> dict[str, Any]:
        if id == self._current and not self._transcripts.has(id):  # nothing was said yet
            return {"ok": True, "session_id": id, "entries": [], "total_entries": 0, "returned": 0, "truncated": False}
        row = self._transcripts.get(id, self._asker)
        page = self._transcripts.read(id, self._asker, limit=limit, newest=newest, known=row)
        self.touched.add(id)
        entries = [_entry(turn, max_chars) for turn in page.entries]
        found: dict[str, Any] = {
            "ok": True,
            "session_id": id,
            "header": _listed(row, max_chars),
            "entries": entries,
            "total_entries": page.total,
            "returned": len(entries),
            "truncated": page.truncated,
        }
        if page.damaged:
            found["damaged"] = [f"line {each.line} cannot be read: {each.why}" for each in page.damaged[:20]]
        return found

    def _searched(self, query: str | None, limit: int, max_chars: int) -> dict[str, Any]:
        if not query or not query.strip():
            raise BadArguments("session_logs: search needs a query of at least one word")
        found = self._transcripts.find(query, self._asker, limit=limit, max_chars=max_chars)
        self.touched |= {hit.session_id for hit in found.hits}
        hits = [
            {
                "session_id": hit.session_id,
                "entry": hit.entry,
                "timestamp": hit.timestamp,
                "role": hit.role,
                "source_plugin": hit.source_plugin,
                "preview": hit.preview,
            }
            for hit in found.hits
        ]
        return {"ok": True, "backend": found.backend, "hits": hits, "notes": list(found.notes)}


def _listed(row: Listed, max_chars: int) -> dict[str, Any]:
    return {
        "session_id": row.id,
        "agent_id": row.agent_id,
        "source_plugin": row.source_plugin,
        "scope": row.scope,
        "summary": row.summary[:max_chars],
        "entry_count": row.entries,
        "first_timestamp": row.started_at,
        "last_timestamp": row.updated_at,
        "persona": row.persona,
        "closed": row.closed,
    }


def _entry(turn: Turn, max_chars: int) -> dict[str, Any]:
    text = turn.text
    return {
        "entry": turn.number,
        "timestamp": turn.timestamp,
        "role": turn.role,
        "source_plugin": turn.source_plugin,
        "sender_id": turn.sender_id,
        "content": text if len(text) <= max_chars else text[: max_chars - 1] + "…",
    }

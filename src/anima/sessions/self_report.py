"""What an agent can say about itself: who it is, what it knows, how it lives, and what was said in its sessions.

Promise: answers are short enough for a model to take in one turn, hold only what the session's listener may see, and
say when something was left out. Each is a plain dictionary. Not here: the tool table (tools), the transcripts
(transcripts).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from anima.errors import BadArguments, HomeError
from anima.layout import is_unreviewed
from anima.model import Actor, DocPath, Nights
from anima.sessions.find import Listed
from anima.sessions.hand import Hand
from anima.sessions.replay import Turn
from anima.text import bullet_text, tags
from anima.text.markdown import bullet_of, evidence_of, heading_of, lines_of, without_tail

SOUL_CHARS = 2_048
KNOWN_BYTES = 6_144
KNOWN_BULLETS = 10
TAGS = 10
TAGGED_RECALLS = 200
RECENT = 10


class SelfReport:
    """The tools of one session by which an agent learns of itself. `memory` gives its curated memory as its listener sees it."""

    def __init__(self, hand: Hand, memory: Callable[[], tuple[DocPath, str]], nights: Callable[[], Nights]) -> None:
        self._hand, self._site, self.listener = hand, hand.site, hand.listener
        self._memory, self._nights = memory, nights

    def _who_am_i(self) -> dict[str, Any]:
        """Name and nature, as far as this listener sees them; the folder only for the owner alone."""
        site, listener = self._site, self.listener
        found: dict[str, Any] = {"agent_id": site.agent, "model": self._hand.model}
        if listener.sees_all:
            found["workspace_dir"] = site.store.name
        row = site.layout.row("identity") if site.layout.has("identity") else None
        # Where there is no such file, what is shown comes from the configuration.
        is_seen = row is None or listener.sees(site.layout, DocPath.parse(row.path))
        shown = self._hand.rooms.prompts.identity.resolved(listener) if is_seen else None
        said = {key: getattr(shown, key, None) for key in ("name", "creature", "vibe", "emoji", "avatar")}
        found["identity"] = {key: sourced.value if sourced else None for key, sourced in said.items()}
        found["soul_excerpt"] = None
        if self._hand.prompt.persona is not None:  # the soul that the session's prompt shows
            with suppress(HomeError):
                text = site.store.documents.read(DocPath.parse(self._hand.prompt.persona)).text
                soul = listener.view(site.layout, None, text, visible=True).text.strip()
                found["soul_excerpt"] = soul if len(soul) <= SOUL_CHARS else soul[:SOUL_CHARS] + "…"
        return found

    def _what_do_i_know(self, *, section: str | None, limit: int) -> dict[str, Any]:
        path, text = self._memory()
        answer = _outlined(text, section=section, limit=limit)
        self._hand.take_in(text, path=path)
        return answer

    def _my_stats(self) -> dict[str, Any]:
        """Counts an agent can tell of itself: of this listener's layer, and of the last seven days."""
        site, listener, transcripts = self._site, self.listener, self._hand.rooms
        bullets = [line for line in lines_of(self._memory()[1]) if _is_point(line)]
        nights = self._nights() if listener.is_owner else Nights()
        store, since = site.store, site.clock() - timedelta(days=7)
        records = store.ledger.records(kinds=("recall",)) if store.begun else ()
        recent = (record.fields for record in records if record.time >= since)
        recalls = [fields for fields in recent if fields.get("layer", "") == listener.layer]
        dreamed = [line for line in bullets if evidence_of(line) is not None]
        if dreamed and store.begun:  # what no night of this home had was dreamed elsewhere
            path = DocPath.parse(listener.path_of(site.layout.row("memory")))
            dreamed = [line for line in dreamed if store.provenance.source(path, line).actor is not Actor.DREAMER]
        # The files of the table that are there, of those this listener sees.
        rows = (row for row in (*site.layout.rows, site.layout.row("diary")) if row.path.endswith(".md"))
        places = dict.fromkeys(DocPath.parse(listener.path_of(row)) for row in rows)
        there = (place for place in places if site.store.documents.exists(place))
        return {
            "sessions_total": transcripts.list(transcripts.asker(listener), 1).total,
            "memories_stored": len(bullets),
            # What the nights of this home kept, and the lines that were dreamed elsewhere and say so.
            "memories_promoted": nights.kept + len(dreamed),
            "last_dream_ts": nights.last.isoformat() if nights.last else None,
            "recall_events_7d": len(recalls),
            "top_concept_tags_7d": self._tags(recalls[-TAGGED_RECALLS:]),
            "workspace_files_present": [place.text for place in there if listener.sees(site.layout, place)],
        }

    def _tags(self, recalls: Iterable[Mapping[str, Any]]) -> list[list[str | int]]:
        """The concepts of the lines that were recalled, as far as they still stand in their documents; best hits first."""
        wanted: dict[str, dict[str, list[float]]] = {}
        for hit in (hit for recall in recalls for hit in recall.get("hits", ())):
            for digest in hit.get("lines", ()):
                scores = wanted.setdefault(str(hit.get("path")), {}).setdefault(str(digest), [])
                scores.append(float(hit.get("score", 0)))
        weight: dict[str, float] = defaultdict(float)
        count: Counter[str] = Counter()
        for path, digests in wanted.items():
            for line in self._lines_seen(path):
                scores = digests.get(self._site.store.key.line(line), [])
                for tag in tags(without_tail(bullet_text(line))) if scores else ():
                    weight[tag] += sum(scores)
                    count[tag] += len(scores)
        best = sorted(weight, key=lambda tag: (-weight[tag], tag))[:TAGS]
        return [[tag, count[tag]] for tag in best]

    def _lines_seen(self, path: str) -> list[str]:
        layout = self._site.layout
        with suppress(HomeError):
            place = DocPath.parse(path)
            if not is_unreviewed(layout, place):
                return lines_of(self.listener.view(layout, place, self._site.store.documents.read(place).text).text)
        return []

    def _session_logs(
        self, *, action: str, session_id: str | None, query: str | None, limit: int | None, max_chars: int
    ) -> dict[str, Any]:
        """What was said in sessions. Those whose words are shown are taken in."""
        hand, transcripts = self._hand, self._hand.rooms
        asker = transcripts.asker(self.listener)
        if action == "list_sessions":
            rows = transcripts.list(asker, limit or 50)
            listed = [_listed(row, max_chars) for row in rows]
            for row, shown in zip(rows, listed, strict=True):
                # The words of a conversation that others had a part in are read with read_session.
                if not row.scope or (row.id != hand.id and transcripts.doubts([row.id], hand.listener.layer)):
                    shown["summary"] = ""
            return {"ok": True, "sessions": listed, "total": rows.total}
        if action == "search":
            if not query or not query.strip():
                raise BadArguments("session_logs: search needs a query of at least one word")
            found = transcripts.find(query, asker, limit=limit or 50, max_chars=max_chars)
            hand.take_in("", sessions={hit.session_id for hit in found.hits})
            hits = [asdict(hit) for hit in found.hits]
            return {"ok": True, "backend": found.backend, "hits": hits, "notes": list(found.notes)}
        is_recent = action == "recent"
        if not session_id and not is_recent:
            raise BadArguments("session_logs: read_session needs session_id; list_sessions names them")
        id = session_id or hand.id
        if id == hand.id and not transcripts.has(id):  # nothing was said yet
            return {"ok": True, "session_id": id, "entries": [], "total_entries": 0, "returned": 0, "truncated": False}
        row = transcripts.get(id, asker)
        page = transcripts.read(id, asker, limit=limit or (RECENT if is_recent else 50), newest=is_recent, known=row)
        hand.take_in("", sessions={id})
        told: dict[str, Any] = {
            "ok": True,
            "session_id": id,
            "header": _listed(row, max_chars),
            "entries": [_entry(turn, max_chars) for turn in page.entries],
            "total_entries": page.total,
            "returned": len(page.entries),
            "truncated": page.truncated,
        }
        if page.damaged:
            told["damaged"] = [f"line {each.line} cannot be read: {each.why}" for each in page.damaged[:20]]
        return told


def _outlined(text: str, *, section: str | None, limit: int) -> dict[str, Any]:
    """The sections of a memory with their first bullets, until so many bytes of JSON are full."""
    outline: list[tuple[str, list[str]]] = [("", [])]  # `## ` headings and the bullets beneath each
    for line in lines_of(text):
        if (heading := heading_of(line)) and heading.level == 2:
            outline.append((heading.title.partition("<!--")[0].strip(), []))
        elif _is_point(line):
            outline[-1][1].append(bullet_text(line))
    wanted = (section or "").casefold()
    sections = [(title, bullets) for title, bullets in outline if bullets and wanted in title.casefold()]
    shown: list[dict[str, Any]] = []
    truncated, size = len(sections) > limit, 64
    for title, bullets in sections[:limit]:
        one = {"heading": title[:200], "bullets": list[str](), "extra_bullets": len(bullets)}
        kept = 0
        for kept in range(1, min(KNOWN_BULLETS, len(bullets)) + 1):
            if _size(one | {"bullets": bullets[:kept]}) + 2 > KNOWN_BYTES - size:
                kept -= 1
                break
        one |= {"bullets": bullets[:kept], "extra_bullets": len(bullets) - kept}
        truncated |= kept < len(bullets)
        if not kept:
            break
        shown.append(one)
        size += _size(one) + 2
    return {"sections": shown, "truncated": truncated}


def _is_point(line: str) -> bool:
    bullet = bullet_of(line)
    return bullet is not None and bullet.is_point and not bullet.indent and bool(bullet.text)


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


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
    content = turn.text if len(turn.text) <= max_chars else turn.text[: max_chars - 1] + "…"
    told = {key: getattr(turn, key) for key in ("timestamp", "role", "source_plugin", "sender_id")}
    return {"entry": turn.number, **told, "content": content}

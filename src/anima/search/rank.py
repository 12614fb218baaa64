"""Search: from a question to hits with line citations, best first.

Promise: what the filter hides takes no part, not even in a number; the same index and question give the same hits in
the same order, ties by path and line; a query is data; scores lie between 0 and 1 in every mode; an answer without
hits says why. An embedder that is down costs the meaning, never the answer.
Not here: bringing the index up to date and noting recalls (`home`), where units come from (`index`). What was tried
and measured stands in docs/ranking.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from anima.errors import BadArguments
from anima.model import DocPath, Embedder
from anima.search.answered import LOOKED_AT, Coverage, WordEmbedder, answered
from anima.search.embed.client import EmbedderDown
from anima.search.field import Bools, FieldView, Filter, Floats, Ints
from anima.search.index import Index
from anima.text.dates import Span, spans_in
from anima.text.words import ask, cut, first_person

Fusion = Literal["context", "rrf", "weighted"]
Legs = Literal["both", "words", "meaning"]

K1: Final = 1.2
B: Final = 0.75
RRF_K: Final = 60
RRF_BEST: Final = 1 / (RRF_K + 1)  # of one leg
POOL: Final = 50  # ranks deeper than this (or four times the limit) are not counted
WEIGHTED_MEANING: Final = 0.7
SPEAKER_LINES: Final = 3  # a name at the head of fewer lines, or of fewer than one in fifty, is a label: no speaker
SPEAKER_SHARE: Final = 0.02
NEAR_ENOUGH: Final = 0.2  # without a shared word a unit must be at least this near to be a hit
CLEAR_MEANING: Final = 0.3  # a best cosine below this is noise and is not scaled up
FAR_BELOW: Final = 0.3  # of the best score: a hit below that is left out
EVERGREEN: Final = frozenset({"curated", "topic", "bank", "knowledge"})

# Each signal is scaled to 0..1 before it is weighed; see docs/ranking.md for how the weights were found.
WEIGHTS: Final[Mapping[str, float]] = {
    "words": 0.5,
    "meaning": 1.0,
    "window_words": 1.0,
    "window_meaning": 1.2,
    "file_words": 0.5,
    "speaker": 0.5,
    "first_person": 6.0,
    "date": 1.0,
    "date_guess": 0.5,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question and how to answer it. `at` is when it is asked; a rerank function gives a new score for each hit."""

    text: str
    at: date | datetime | None = None
    limit: int = 6
    fusion: Fusion = "context"
    legs: Legs = "both"
    min_score: float = 0.0
    half_life: float | None = None  # days until a dated line counts half; None: age does not matter
    mmr: float | None = None  # 1 is relevance alone, 0 is diversity alone; None: off
    per_source: int | None = None
    explain: bool = False
    rerank: Callable[[str, Sequence[Hit]], Sequence[float]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One result: the exact lines, and how it was found. Ranks count from 1; None is beyond what was looked at."""

    path: DocPath
    start_line: int
    end_line: int
    text: str
    score: float
    document_id: str
    chunk_id: str
    fts_rank: int | None
    vector_rank: int | None
    provider: str
    kind: str
    date: date | None
    trusted: bool = True
    tags: tuple[str, ...] = ()
    why: Mapping[str, float] | None = None

    @property
    def from_fts(self) -> bool:
        return self.fts_rank is not None

    @property
    def from_vector(self) -> bool:
        return self.vector_rank is not None

    @property
    def is_hybrid(self) -> bool:
        return self.from_fts and self.from_vector

    @property
    def citation(self) -> str:
        lines = f"L{self.start_line}" if self.start_line == self.end_line else f"L{self.start_line}-L{self.end_line}"
        return f"{self.path}#{lines}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """Hits, best first, and what a reader should know about them."""

    hits: tuple[Hit, ...] = ()
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]


@dataclass(slots=True, kw_only=True)
class _Signals:
    """Every signal of a question over the visible units, not yet scaled."""

    words: Floats
    meaning: Floats
    window_words: Floats
    window_meaning: Floats
    file_words: Floats
    speaker: Floats
    first_person: Floats
    date: Floats
    is_exact_date: bool
    has_meaning: bool


@dataclass(frozen=True, slots=True)
class _Scored:
    """Scores of a mode over the visible units, which of them may be hits, and the parts for `why`."""

    score: Floats
    eligible: Bools
    parts: Mapping[str, Floats] = field(default_factory=dict)


def run(
    index: Index, embedder: Embedder | None, query: Query, filter: Filter, *, tells_all: bool = True
) -> SearchAnswer:
    """The hits for a question. Raises BadArguments for a question that cannot be asked; else always answers.

    Without `tells_all` no note says anything of what the filter hides, nor of the index as a whole.
    """
    _check(query)
    state = index.notes if tells_all else tuple
    spans = spans_in(query.text, at=_day(query.at))
    asked = ask(query.text)
    words = asked if query.legs != "meaning" else []
    view = index.look(filter, asked)
    if view.count == 0:
        hidden = "nothing that is indexed is open to this listener and these filters"
        return SearchAnswer(
            notes=(*state(), hidden if view.total or not tells_all else "nothing is written down here yet")
        )
    vector, notes = _vector(embedder, query, view)
    if vector is None and query.legs == "meaning":
        return SearchAnswer(notes=(*state(), *notes))
    signals = _signals(view, query, words, vector, spans)
    places, hits, more = _hits(view, query, _scored(view, query, signals), signals, embedder)
    lines = [(place, hit.text) for place, hit in zip(places[:LOOKED_AT], hits, strict=False)]
    is_here, doubts = True, list[str]()
    if query.fusion == "context" and words and not signals.date[places[:LOOKED_AT]].any():
        held = answered(view, query.text, words, lines, embedder if signals.has_meaning else None, signals.meaning)
        is_here, doubts = held.is_here, _doubts(held)
    found = _finished(hits, query) if is_here else []
    notes = [*state(), *notes, *more, *doubts]
    if not found and is_here:
        notes.append(_why_no_hits(hits, query))
    return SearchAnswer(hits=tuple(found), notes=tuple(dict.fromkeys(notes)))


def _doubts(held: Coverage) -> list[str]:
    """What is to be said where it is not certain that the answer is here."""
    if held.is_certain:
        return []
    said = f": no line says {' or '.join(held.lacking)}" if held.lacking else ""
    if not held.is_here:
        return [f"nothing here answers this{said}"]
    return [f"nothing here answers this for certain{said}; these lines only come near"]


def _check(query: Query) -> None:
    if query.limit < 1:
        raise BadArguments("a search has a limit of at least 1")
    if not query.text.strip():
        raise BadArguments("a search needs a question")
    if query.half_life is not None and query.half_life <= 0:
        raise BadArguments("a half-life is more than 0 days")
    if query.mmr is not None and not 0 <= query.mmr <= 1:
        raise BadArguments("mmr lies between 0 and 1")
    for name, word, known in (("fusion", query.fusion, Fusion), ("legs", query.legs, Legs)):
        if word not in (words := get_args(known)):
            raise BadArguments(f"{name} is {', '.join(words[:-1])} or {words[-1]}, not {word!r}")


def _day(at: date | datetime | None) -> date | None:
    return at.date() if isinstance(at, datetime) else at


def _why_no_hits(hits: Sequence[Hit], query: Query) -> str:
    if hits:
        return f"nothing reached the score of {query.min_score:g}; the best had {hits[0].score:.2f}"
    if query.legs == "words":
        return "no line holds any of these words"
    return "no line holds any of these words or comes near in meaning"


# Meaning


def _vector(embedder: Embedder | None, query: Query, view: FieldView) -> tuple[NDArray[np.float32] | None, list[str]]:
    """The question as a vector, and what went wrong when there is none."""
    if query.legs == "words":
        return None, []
    if embedder is None:
        return None, ["there is no embedder; found by words alone"] if query.legs == "meaning" else []
    if view.model is None:
        return None, ["there are no vectors yet; found by words alone (anima index --backfill makes them)"]
    if view.model != embedder.name:
        return None, [f"the vectors were made by another model than {embedder.name}; found by words alone"]
    try:
        vector = np.asarray(embedder.embed([query.text], kind="query"), dtype=np.float32)[0]
    except EmbedderDown as down:
        return None, [f"{down}; found by words alone"]
    notes = (
        ["some lines have no vector yet (anima index --backfill makes them) and are found by words alone"]
        if view.missing
        else []
    )
    if isinstance(embedder, WordEmbedder):
        vector = _weighed(embedder, query.text, view, vector)
    return vector, notes


def _weighed(embedder: WordEmbedder, text: str, view: FieldView, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """The question's vector drawn towards its rare words: they say what it is about."""
    raw = text.split()[:64]
    weights = np.array([_rarity(view, word) for word in raw], dtype=np.float32)
    return _unit(vector + _unit((embedder.word_vectors(raw) * weights[:, None]).sum(axis=0)))


def _rarity(view: FieldView, word: str) -> float:
    forms = [form for form in cut(word) if form in view.postings]
    return max((_idf(view.count, len(view.match(form)[0])) for form in forms), default=0.0)


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    length = float(np.sqrt(np.dot(vector, vector)))
    return vector / np.float32(length) if length > 0 else vector


# Signals


def _signals(
    view: FieldView, query: Query, words: Sequence[str], vector: NDArray[np.float32] | None, spans: Sequence[Span]
) -> _Signals:
    sight = view.sight
    spoken = {word: lines for word in words if (lines := _lines_of(view, word)) is not None}
    own = [word for word in words if word not in spoken] or list(words)
    unit, window, file = _word_scores(view, words, frozenset(own))
    meaning = view.nearest(vector) if vector is not None else np.zeros(view.count)
    return _Signals(
        words=unit,
        meaning=meaning,
        window_words=window,
        window_meaning=sight.windowed(meaning) / sight.window_count if vector is not None else meaning,
        file_words=file,
        speaker=sum(spoken.values(), np.zeros(view.count)),
        first_person=_own_life(view, query.text),
        date=_dated(view, spans),
        is_exact_date=any(span.exact for span in spans),
        has_meaning=vector is not None,
    )


def _idf(count: int, holding: int) -> float:
    return math.log(1 + (count - holding + 0.5) / (holding + 0.5))


def _bm25(counts: Floats, lengths: Floats, mean: float) -> Floats:
    result: Floats = counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths / max(mean, 1e-9)))
    return result


def _word_scores(view: FieldView, words: Sequence[str], own: frozenset[str]) -> tuple[Floats, Floats, Floats]:
    """BM25 of each unit, of its window, and of its file. A speaker's name counts in the file alone."""
    sight = view.sight
    unit, window, file = np.zeros(view.count), np.zeros(view.count), np.zeros(len(sight.documents))
    means = (float(np.mean(sight.length)), float(np.mean(sight.window_length)), float(np.mean(sight.document_length)))
    for word in words:
        places, counts = view.match(word)
        if not len(places):
            continue
        if word in own:
            unit[places] += _idf(view.count, len(places)) * _bm25(counts, sight.length[places], means[0])
            around, summed = _around(view, places, counts)
            rarity = _idf(view.count, len(around))
            window[around] += rarity * _bm25(summed, sight.window_length[around], means[1])
        held: Floats = np.bincount(sight.doc[places], weights=counts, minlength=len(file)).astype(np.float64)
        docs = np.flatnonzero(held)
        file[docs] += _idf(len(file), len(docs)) * _bm25(held[docs], sight.document_length[docs], means[2])
    return unit, window, file[sight.doc]


def _around(view: FieldView, places: Ints, counts: Floats) -> tuple[Ints, Floats]:
    """The units whose window holds a word, and how often. Sums of halves are exact in whatever order."""
    sight = view.sight
    dense = np.zeros(view.count)
    dense[places] = counts
    for step, same in enumerate(sight.same, 1):
        before = places[places >= step]
        before = before[same[before - step]]
        dense[before - step] += counts[np.searchsorted(places, before)]
        after = places[places < view.count - step]
        after = after[same[after]]
        dense[after + step] += counts[np.searchsorted(places, after)]
    around = np.flatnonzero(dense)
    return around, dense[around]


def _lines_of(view: FieldView, word: str) -> Floats | None:
    """1 for each line that a word's bearer speaks; None when it is no speaker's name."""
    if word not in view.speakers:
        return None
    lines = view.sight.rows["speaker"] == view.speakers[word]
    is_speaker = np.count_nonzero(lines) >= max(SPEAKER_LINES, SPEAKER_SHARE * view.count)
    return lines.astype(np.float64) if is_speaker else None


def _own_life(view: FieldView, text: str) -> Floats:
    """Who asks about themselves ("where do I keep …") looks for lines in the first person."""
    if not first_person(text):
        return np.zeros(view.count)
    result: Floats = view.sight.rows["first"] / (5.0 + view.sight.length)
    return result


def _dated(view: FieldView, spans: Sequence[Span]) -> Floats:
    days = view.sight.days
    if not spans or not len(days):
        return np.zeros(view.count)
    near = np.array([max(s.nearness(date.fromordinal(int(d))) for s in spans) if d else 0.0 for d in days])
    return near[view.sight.doc]


# Modes


def _scored(view: FieldView, query: Query, signals: _Signals) -> _Scored:
    if query.fusion == "rrf":
        return _by_rank(view, query, signals)
    if query.fusion == "weighted":
        return _by_weight(query, signals)
    return _in_context(view, query, signals)


def _in_context(view: FieldView, query: Query, signals: _Signals) -> _Scored:
    """The default: words and meaning of the unit, its window and its file, then who, whose and when."""
    parts = {}
    for name in _active(query, signals):
        least = CLEAR_MEANING if name in ("meaning", "window_meaning") else 1e-9
        parts[name] = WEIGHTS[name] * _scaled(getattr(signals, name), least)
    for name in ("speaker", "first_person"):
        parts[name] = WEIGHTS[name] * getattr(signals, name)
    parts["date"] = WEIGHTS["date" if signals.is_exact_date else "date_guess"] * signals.date
    most = sum(WEIGHTS[name] for name in _active(query, signals))
    most += sum(min(1.0, float(part.max())) for part in (parts["speaker"], parts["first_person"], parts["date"]))
    total = np.zeros(view.count)
    for part in parts.values():
        total += part
    total /= max(most, 1e-9)
    eligible = (signals.window_words > 0) | (signals.words > 0) | (signals.date > 0)
    if signals.has_meaning:
        eligible |= signals.meaning >= (NEAR_ENOUGH if query.legs == "both" else 1e-9)
    score = np.clip(total, 0.0, 1.0)
    return _Scored(score, eligible & (score >= FAR_BELOW * float(score[eligible].max(initial=0.0))), parts)


def _active(query: Query, signals: _Signals) -> list[str]:
    names = []
    if query.legs != "meaning":
        names += ["words", "window_words", "file_words"]
    if signals.has_meaning:
        names += ["meaning", "window_meaning"]
    return names


def _scaled(values: Floats, least: float = 1e-9) -> Floats:
    """From 0 to 1, with 1 for the best; where even the best is below `least`, it is not blown up to 1."""
    result: Floats = np.maximum(values, 0.0) / max(float(values.max()), least)
    return result


def _by_weight(query: Query, signals: _Signals) -> _Scored:
    """0.7 of the cosine and 0.3 of r / (1 + r) for a BM25 score of r; all of the one where the other is missing."""
    meaning = np.clip(signals.meaning, 0.0, 1.0)
    text = signals.words / (1.0 + signals.words)
    share = WEIGHTED_MEANING if signals.has_meaning else 0.0
    if query.legs == "meaning":
        share = 1.0
    parts = {"meaning": share * meaning, "words": (1.0 - share) * text}
    return _Scored(parts["meaning"] + parts["words"], (signals.words > 0) | (meaning > 0), parts)


def _by_rank(view: FieldView, query: Query, signals: _Signals) -> _Scored:
    """Reciprocal ranks with k = 60: the raw sum of 1 / (60 + rank) is a part; the score is that over 1 / 61 for each leg
    that ran, so that whatever is first in all of them has 1."""
    raw = np.zeros(view.count)
    eligible = np.zeros(view.count, dtype=np.bool_)
    parts = {}
    for name, values in (("words", signals.words), ("meaning", signals.meaning)):
        given = np.zeros(view.count)
        for rank, place in enumerate(_ranked(view, values, values > 0, _pool(query)), 1):
            given[place] = 1.0 / (RRF_K + rank)
        parts[name] = given
        raw += given
        eligible |= given > 0
    parts["rrf"] = raw
    legs = (query.legs != "meaning") + signals.has_meaning
    return _Scored(raw / (legs * RRF_BEST), eligible, parts)


def _pool(query: Query) -> int:
    return max(POOL, 4 * query.limit)


def _ranked(view: FieldView, values: Floats, eligible: Bools, want: int) -> list[int]:
    """The best positions, ties by path and line; of several units on the same lines only the best."""
    places = np.flatnonzero(eligible)
    depth = 2 * want + 20
    while True:
        chosen = _best(places, values, depth)
        ordered = _ordered(view, values, chosen)
        found: dict[tuple[int, int, int], int] = {}
        for place, lines in zip(ordered.tolist(), _lines(view, ordered), strict=True):
            found.setdefault(lines, place)
        if len(found) >= want or len(chosen) == len(places):
            return list(found.values())[:want]
        depth *= 2


def _best(places: Ints, values: Floats, depth: int) -> Ints:
    """The `depth` places with the highest values, and all that are as good as the last of them."""
    if len(places) <= depth:
        return places
    held = values[places]
    threshold = np.partition(held, len(held) - depth)[len(held) - depth]
    best: Ints = places[held >= threshold]
    return best


def _ordered(view: FieldView, values: Floats, places: Ints) -> Ints:
    sight = view.sight
    rows = sight.rows[places]
    keys = (rows["n"], rows["start"], sight.path_rank[sight.doc[places]], -values[places])
    ordered: Ints = places[np.lexsort(keys)]
    return ordered


def _lines(view: FieldView, places: Ints | Sequence[int]) -> list[tuple[int, int, int]]:
    """Document and lines of each place: what makes two units one hit."""
    rows = view.sight.rows[np.asarray(places, dtype=np.int64)]
    return list(zip(rows["doc"].tolist(), rows["start"].tolist(), rows["end"].tolist(), strict=True))


# Hits


def _hits(
    view: FieldView, query: Query, scored: _Scored, signals: _Signals, embedder: Embedder | None
) -> tuple[list[int], list[Hit], list[str]]:
    """As many hits as the later steps may need, with their places, their ranks and, when asked for, the parts of their
    scores."""
    score = _aged(view, query, scored.score)
    needs_more = query.mmr is not None or query.per_source is not None or query.rerank is not None
    places = _ranked(view, score, scored.eligible, _pool(query) if needs_more else max(query.limit, LOOKED_AT))
    lists = {}
    for name, values in (("words", signals.words), ("meaning", signals.meaning)):
        best = _ranked(view, values, values > 0, _pool(query)) if values.any() else []
        lists[name] = {lines: rank for rank, lines in enumerate(_lines(view, best), 1)}
    rows = view.rows(places)
    still, hits = list[int](), list[Hit]()
    for place, key, row in zip(places, _lines(view, places), rows, strict=True):
        if row is None:
            continue
        still.append(place)
        hit = Hit(
            path=DocPath.parse(row.path),
            start_line=row.start_line,
            end_line=row.end_line,
            text=row.text,
            score=float(score[place]),
            document_id=row.document_id,
            chunk_id=row.chunk_id,
            fts_rank=lists["words"].get(key),
            vector_rank=lists["meaning"].get(key),
            provider=embedder.name if embedder is not None and signals.has_meaning else "words",
            kind=row.kind,
            date=row.date,
            trusted=row.trusted,
            tags=row.tags,
            why={name: float(part[place]) for name, part in scored.parts.items()} if query.explain else None,
        )
        hits.append(hit)
    gone = len(rows) - len(hits)
    return still, hits, [f"{gone} hits changed while they were read and are left out"] if gone else []


def _aged(view: FieldView, query: Query, score: Floats) -> Floats:
    """Dated lines lose half their score every half-life; evergreen files and undated ones keep it."""
    now = _day(query.at)
    if query.half_life is None or now is None:
        return score
    fade = np.ones(len(view.sight.documents))
    for n, row in enumerate(view.sight.documents):
        if row.day and row.kind not in EVERGREEN:
            fade[n] = 0.5 ** (max(0, now.toordinal() - row.day) / query.half_life)
    return score * fade[view.sight.doc]


def _finished(hits: list[Hit], query: Query) -> list[Hit]:
    """The last steps, each only when asked for: another judge, a floor, a cap for each file, diversity."""
    if query.rerank is not None and hits:
        given = query.rerank(query.text, hits)
        judged = [replace(hit, score=min(1.0, max(0.0, float(s)))) for hit, s in zip(hits, given, strict=True)]
        hits = sorted(judged, key=lambda hit: (-hit.score, hit.path.text, hit.start_line))
    hits = [hit for hit in hits if hit.score >= query.min_score]
    if query.per_source is not None:
        hits = _capped(hits, query.per_source)
    if query.mmr is not None:
        hits = _diverse(hits, query.mmr, query.limit)
    return hits[: query.limit]


def _capped(hits: Sequence[Hit], most: int) -> list[Hit]:
    seen: dict[str, int] = {}
    kept = []
    for hit in hits:
        seen[hit.path.text] = seen.get(hit.path.text, 0) + 1
        if seen[hit.path.text] <= most:
            kept.append(hit)
    return kept


def _diverse(hits: Sequence[Hit], share: float, limit: int) -> list[Hit]:
    """Maximal marginal relevance: each next hit is good and unlike those chosen, by the words they share."""
    bags = [frozenset(cut(hit.text)) for hit in hits]
    likeness = [0.0] * len(hits)
    left = list(range(len(hits)))
    chosen: list[int] = []
    while left and len(chosen) < limit:
        best = max(left, key=lambda n: (share * hits[n].score - (1 - share) * likeness[n], -n))
        left.remove(best)
        chosen.append(best)
        for n in left:
            likeness[n] = max(likeness[n], len(bags[best] & bags[n]) / max(1, len(bags[best] | bags[n])))
    return [hits[n] for n in chosen]

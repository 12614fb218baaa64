"""Search: from a question to hits with line citations, best first.

Promise: what the filter hides takes no part, not even in a number; the same index and question give the same hits in
the same order, ties by path and line; a query is data; scores lie between 0 and 1 in every mode; an answer without
hits says why, and one whose lines may hold no answer says that. An embedder that is down costs the meaning, never the
answer. Not here: bringing the index up to date and noting recalls (`home`), where units come from (`index`). What was tried
and measured stands in docs/ranking.md.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import count
from typing import Final, Literal, NamedTuple, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from anima.errors import BadArguments
from anima.model import DocPath, Embedder
from anima.search.embed.client import EmbedderDown
from anima.search.field import REACH, Bools, FieldView, Filter, Floats, Ints, path_of
from anima.search.index import Index
from anima.text import ask, cut, first_person
from anima.text.dates import spans_in

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

    @property
    def day(self) -> date | None:
        return self.at.date() if isinstance(self.at, datetime) else self.at


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


@runtime_checkable
class WordEmbedder(Protocol):
    """An embedder whose vector of a text is the sum of its words', so that a query's words can be weighed."""

    def word_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """One row for each word, not normalised."""


class _Signals(NamedTuple):
    """Every signal of a question over the visible units, by name and not yet scaled."""

    of: Mapping[str, Floats]
    is_exact_date: bool
    has_meaning: bool


# Scores of a mode over the visible units, which of them may be hits, and the parts for `why`.
_Scored = tuple[Floats, Bools, Mapping[str, Floats]]


def run(
    index: Index, embedder: Embedder | None, query: Query, filter: Filter, *, tells_all: bool = True
) -> SearchAnswer:
    """The hits for a question. Raises BadArguments for a question that cannot be asked; else always answers. Without `tells_all`
    no note says anything of what the filter hides, nor of the index as a whole."""
    _check(query)
    state = index.notes if tells_all else tuple
    asked = ask(query.text)
    words = asked if query.legs != "meaning" else []
    view = index.look(filter, asked)
    if view.count == 0:
        here = "that this search may show" if tells_all else "that is open to this listener and these filters"
        empty = f"nothing is written down here yet{f' {here}' if view.total or not tells_all else ''}"
        return SearchAnswer(notes=(*state(), empty))
    vector, notes = _vector(embedder, query, view)
    if vector is None and query.legs == "meaning":
        return SearchAnswer(notes=(*state(), *notes))
    signals = _signals(view, query, words, vector)
    mode = {"rrf": _by_rank, "weighted": _by_weight, "context": _in_context}[query.fusion]
    places, hits, more = _hits(view, query, mode(view, query, signals), signals, embedder)
    held = Coverage(1.0, 0.0)
    if query.fusion == "context" and words and not signals.of["date"][places[:LOOKED_AT]].any():
        lines = [(place, hit.text) for place, hit in zip(places[:LOOKED_AT], hits, strict=False)]
        known = embedder if signals.has_meaning else None
        held = answered(view, query.text, words, lines, known, signals.of["meaning"])
        if isinstance(known, WordEmbedder):
            hits = _speaking(view, query.text, words, places, hits, known)
    found = _finished(hits, query) if held.is_here else []
    notes = [*state(), *notes, *more, *held.doubts]
    if held.is_here and not found and hits:
        notes.append(f"nothing reached the score of {query.min_score:g}; the best had {hits[0].score:.2f}")
    elif held.is_here and not found:
        near = "" if query.legs == "words" else " or comes near in meaning"
        notes.append(f"no line holds any of these words{near}")
    return SearchAnswer(hits=tuple(found), notes=tuple(dict.fromkeys(notes)))


def _check(query: Query) -> None:
    if not query.text.strip():
        raise BadArguments("a search needs a question")
    if query.half_life is not None and query.half_life <= 0:
        raise BadArguments("a half-life is more than 0 days")
    if query.mmr is not None and not 0 <= query.mmr <= 1:
        raise BadArguments("mmr lies between 0 and 1")
    for name, word, known in (("fusion", query.fusion, Fusion), ("legs", query.legs, Legs)):
        if word not in (words := get_args(known)):
            raise BadArguments(f"{name} is {', '.join(words[:-1])} or {words[-1]}, not {word!r}")


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
    if isinstance(embedder, WordEmbedder):  # drawn towards its rare words: they say what it is about
        raw = query.text.split()[:64]
        rarity = {word: _idf(view.count, len(places)) for word, (places, _) in view.postings.items()}
        rarest = [max((rarity.get(form, 0.0) for form in cut(word)), default=0.0) for word in raw]
        weights = np.array(rarest, dtype=np.float32)[:, None]
        vector = _unit(vector + _unit((embedder.word_vectors(raw) * weights).sum(axis=0)))
    lacking = "some lines have no vector yet (anima index --backfill makes them) and are found by words alone"
    return vector, [lacking] if view.missing else []


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    length = float(np.sqrt(np.dot(vector, vector)))
    return vector / np.float32(length) if length > 0 else vector


def _signals(view: FieldView, query: Query, words: Sequence[str], vector: NDArray[np.float32] | None) -> _Signals:
    sight, none, spoken = view.sight, np.zeros(view.count), dict[str, Floats]()
    for word in (each for each in words if each in view.speakers):
        lines = sight.rows["speaker"] == view.speakers[word]
        if np.count_nonzero(lines) >= max(SPEAKER_LINES, SPEAKER_SHARE * view.count):
            spoken[word] = lines.astype(np.float64)
    own = [word for word in words if word not in spoken] or list(words)
    unit, window, file = _word_scores(view, words, frozenset(own))
    meaning = view.nearest(vector) if vector is not None else none
    spans = spans_in(query.text, at=query.day)
    days = sight.days.tolist() if spans else ()
    near = [max(span.nearness(date.fromordinal(day)) for span in spans) if day else 0.0 for day in days]
    of = {
        "words": unit,
        "meaning": meaning,
        "window_words": window,
        "window_meaning": sight.windowed(meaning) / sight.window_count if vector is not None else meaning,
        "file_words": file,
        "speaker": sum(spoken.values(), none),
        # Who asks about themselves ("where do I keep …") looks for lines in the first person.
        "first_person": sight.rows["first"] / (5.0 + sight.length) if first_person(query.text) else none,
        "date": np.array(near)[sight.doc] if spans else none,
    }
    return _Signals(of, any(span.exact for span in spans), vector is not None)


def _idf(count: int, holding: int) -> float:
    return math.log(1 + (count - holding + 0.5) / (holding + 0.5))


def _bm25(counts: Floats, lengths: Floats, mean: float) -> Floats:
    result: Floats = counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths / max(mean, 1e-9)))
    return result


def _word_scores(view: FieldView, words: Sequence[str], own: frozenset[str]) -> tuple[Floats, Floats, Floats]:
    """BM25 of each unit, of its window, and of its file. A speaker's name counts in the file alone."""
    sight = view.sight
    unit, window, file = np.zeros(view.count), np.zeros(view.count), np.zeros(len(sight.documents))
    for word in words:
        places, counts = view.postings[word]
        if not len(places):
            continue
        if word in own:
            unit[places] += _idf(view.count, len(places)) * _bm25(counts, sight.length[places], sight.means[0])
            around, summed = _around(view, places, counts)
            rarity = _idf(view.count, len(around))
            window[around] += rarity * _bm25(summed, sight.window_length[around], sight.means[1])
        held: Floats = np.bincount(sight.doc[places], weights=counts, minlength=len(file)).astype(np.float64)
        docs = np.flatnonzero(held > 0)
        file[docs] += _idf(len(file), len(docs)) * _bm25(held[docs], sight.document_length[docs], sight.means[2])
    return unit, window, file[sight.doc]


def _around(view: FieldView, places: Ints, counts: Floats) -> tuple[Ints, Floats]:
    """The units whose window holds a word, and how often. Sums of halves are exact in whatever order."""
    sight, at = view.sight, view.sight.apart[places]
    dense = np.zeros(sight.room)
    dense[at] = counts
    for step in range(1, REACH + 1):
        dense[at + step] += counts
        dense[at - step] += counts
    dense = dense[sight.apart]
    around = np.flatnonzero(dense > 0)
    return around, dense[around]


def _in_context(view: FieldView, query: Query, signals: _Signals) -> _Scored:
    """The default: words and meaning of the unit, its window and its file, then who, whose and when."""
    active = ["words", "window_words", "file_words"] if query.legs != "meaning" else []
    active += ["meaning", "window_meaning"] if signals.has_meaning else []
    parts = {}
    for name in active:  # from 0 to 1; where even the best is below `least`, it is not blown up to 1
        values, least = signals.of[name], CLEAR_MEANING if name.endswith("meaning") else 1e-9
        parts[name] = WEIGHTS[name] * (np.maximum(values, 0.0) / max(float(values.max()), least))
    for name in ("speaker", "first_person"):
        parts[name] = WEIGHTS[name] * signals.of[name]
    parts["date"] = WEIGHTS["date" if signals.is_exact_date else "date_guess"] * signals.of["date"]
    most = sum(WEIGHTS[name] for name in active)
    most += sum(min(1.0, float(part.max())) for part in (parts["speaker"], parts["first_person"], parts["date"]))
    total = np.zeros(view.count)
    for part in parts.values():
        total += part
    total /= max(most, 1e-9)
    eligible = (signals.of["window_words"] > 0) | (signals.of["words"] > 0) | (signals.of["date"] > 0)
    if signals.has_meaning:
        eligible |= signals.of["meaning"] >= (NEAR_ENOUGH if query.legs == "both" else 1e-9)
    score = np.clip(total, 0.0, 1.0)
    return score, eligible & (score >= FAR_BELOW * float(score[eligible].max(initial=0.0))), parts


def _by_weight(view: FieldView, query: Query, signals: _Signals) -> _Scored:
    """0.7 of the cosine and 0.3 of r / (1 + r) for a BM25 score of r; all of the one where the other is missing."""
    words, meaning = signals.of["words"], np.clip(signals.of["meaning"], 0.0, 1.0)
    share = 1.0 if query.legs == "meaning" else WEIGHTED_MEANING if signals.has_meaning else 0.0
    parts = {"meaning": share * meaning, "words": (1.0 - share) * (words / (1.0 + words))}
    return parts["meaning"] + parts["words"], (words > 0) | (meaning > 0), parts


def _by_rank(view: FieldView, query: Query, signals: _Signals) -> _Scored:
    """Reciprocal ranks with k = 60: the raw sum of 1 / (60 + rank) is a part; the score is that over 1 / 61 for each leg
    that ran, so that whatever is first in all of them has 1."""
    parts = {"words": np.zeros(view.count), "meaning": np.zeros(view.count)}
    for name, given in parts.items():
        values = signals.of[name]
        best = _ranked(view, values, values > 0, _pool(query))
        given[best] = 1.0 / (RRF_K + np.arange(1, len(best) + 1))
    raw = parts["words"] + parts["meaning"]
    legs = (query.legs != "meaning") + signals.has_meaning
    return raw / (legs * RRF_BEST), raw > 0, {**parts, "rrf": raw}


def _pool(query: Query) -> int:
    return max(POOL, 4 * query.limit)


def _ranked(view: FieldView, values: Floats, eligible: Bools, want: int) -> Ints:
    """The best positions, ties by path and line; of several units on the same lines only the best."""
    sight, places, depth = view.sight, np.flatnonzero(eligible), 2 * want + 20
    while True:
        chosen = places
        if len(places) > depth:  # the highest values, and all that are as good as the last of them
            held = values[places]
            chosen = places[held >= np.partition(held, len(held) - depth)[len(held) - depth]]
        # Within a document, places are in the order of its lines.
        ordered: Ints = chosen[np.lexsort((sight.path_rank[sight.doc[chosen]], -values[chosen]))]
        first = np.unique(sight.lines[ordered], return_index=True)[1]
        if len(first) >= want or len(chosen) == len(places):
            return ordered[np.sort(first)][:want]
        depth *= 2


def _hits(
    view: FieldView, query: Query, scored: _Scored, signals: _Signals, embedder: Embedder | None
) -> tuple[list[int], list[Hit], list[str]]:
    """As many hits as later steps may need, with their places, their ranks and, when asked for, the parts of their scores."""
    (score, eligible, parts), sight = scored, view.sight
    if query.half_life is not None and query.day is not None:
        fades = [row.day and row.kind not in EVERGREEN for row in sight.documents]
        ages = np.array([max(0, query.day.toordinal() - row.day) for row in sight.documents])
        score = score * np.where(fades, 0.5 ** (ages / query.half_life), 1.0)[sight.doc]
    needs_more = query.mmr is not None or query.per_source is not None or query.rerank is not None
    places = _ranked(view, score, eligible, _pool(query) if needs_more else max(query.limit, LOOKED_AT))
    ranks = []
    for values in (signals.of["words"], signals.of["meaning"]):
        best = sight.lines[_ranked(view, values, values > 0, _pool(query))].tolist()
        ranks.append({lines: rank for rank, lines in enumerate(best, 1)})
    of = (sight.doc, sight.lines, score, *(sight.rows[name] for name in ("start", "end", "trusted")))
    columns = (column[places].tolist() for column in of)
    still, hits = list[int](), list[Hit]()
    for shown, place, *each in zip(view.rows(places), places.tolist(), *columns, strict=True):
        if shown is None:
            continue
        (text, chunk_id, tags), (doc, lines, value, start, end, trusted) = shown, each
        document = sight.documents[doc]
        path = path_of(document.path)
        hit = Hit(
            path=DocPath.parse(path),
            start_line=start,
            end_line=end,
            text=text,
            score=value,
            document_id=hashlib.blake2b(path.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(),
            chunk_id=chunk_id,
            fts_rank=ranks[0].get(lines),
            vector_rank=ranks[1].get(lines),
            provider=embedder.name if embedder is not None and signals.has_meaning else "words",
            kind=document.kind,
            date=date.fromordinal(document.day) if document.day else None,
            trusted=trusted,
            tags=tags,
            why={name: float(given[place]) for name, given in parts.items()} if query.explain else None,
        )
        still.append(place)
        hits.append(hit)
    gone = len(places) - len(hits)
    return still, hits, [f"{gone} hits changed while they were read and are left out"] if gone else []


def _finished(hits: list[Hit], query: Query) -> list[Hit]:
    """The last steps, each only when asked for: another judge, a floor, a cap for each file, diversity."""
    if query.rerank is not None and hits:
        given = query.rerank(query.text, hits)
        if given is None or len(given := list(given)) != len(hits):  # somebody may forget to return it
            raise BadArguments(f"rerank gives a score for each of {len(hits)} hits, not {len(given or ())} scores")
        judged = [replace(hit, score=min(1.0, max(0.0, float(s)))) for hit, s in zip(hits, given, strict=True)]
        hits = sorted(judged, key=lambda hit: (-hit.score, hit.path.text, hit.start_line))
    hits = [hit for hit in hits if hit.score >= query.min_score]
    if query.per_source is not None:
        seen = defaultdict[str, Iterator[int]](count)
        hits = [hit for hit in hits if next(seen[hit.path.text]) < query.per_source]
    if (share := query.mmr) is None:
        return hits[: query.limit]
    # Maximal marginal relevance: each next hit is good and unlike those chosen, by the words they share.
    bags = [frozenset(cut(hit.text)) for hit in hits]
    likeness, left, chosen = [0.0] * len(hits), list(range(len(hits))), list[int]()
    while left and len(chosen) < query.limit:
        best = max(left, key=lambda n: (share * hits[n].score - (1 - share) * likeness[n], -n))
        left.remove(best)
        chosen.append(best)
        for n in left:
            likeness[n] = max(likeness[n], len(bags[best] & bags[n]) / max(1, len(bags[best] | bags[n])))
    return [hits[n] for n in chosen]


# Coverage: how much of what a question asks for the lines that were found hold. Each word of the question weighs as much
# as it tells: by its rarity here and, where an embedder knows words, by the length of its vector, for a model gives the
# words that any sentence may have the shortest ones. A line holds a word that it or a heading above it says; a word that
# it does not say it holds as far as one of its own words is near to it.

LOOKED_AT: Final = 10  # the best lines
NOT_HERE: Final = 0.3  # where no line holds so much of a question, nothing was found;
DOUBTFUL: Final = 0.55  # where none holds so much of it,
LACKING: Final = 0.4  # or where so much of it is nowhere, the answer says so
MOST_WORDS: Final = 16  # a longer text is no question, and no line holds the half of it
SUPPOSED: Final = 200  # lines that a home is taken to have beside its own: in a small one no word is common
UNKNOWN: Final = 0.2  # how near a word counts where nothing can say it
NEAR: Final = 0.45  # a word this near says the same perhaps,
BESIDE: Final = 0.3  # and one less near has nothing to do with it
LOOKED_UP: Final = 2  # words: so few are looked up, and ask nothing
_TOKEN = re.compile(r"[^\W_]+")


class Coverage(NamedTuple):
    """How much of a question the best line holds; how much of it, and which words, no line says nor comes near to."""

    share: float
    lack: float
    lacking: tuple[str, ...] = ()

    @property
    def is_here(self) -> bool:
        return self.share >= NOT_HERE

    @property
    def is_certain(self) -> bool:
        return self.share >= DOUBTFUL and self.lack < LACKING

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is to be said where it is not certain that the answer is here."""
        if self.is_certain:
            return ()
        said = f": no line says {' or '.join(self.lacking)}" if self.lacking else ""
        near = f" for certain{said}; these lines only come near" if self.is_here else said
        return (f"nothing here answers this{near}",)


def answered(
    view: FieldView,
    question: str,
    words: Sequence[str],
    lines: Sequence[tuple[int, str]],
    embedder: Embedder | None,
    cosine: Floats,
) -> Coverage:
    """`words` are those that were asked for, `lines` the best ones by their places, and `cosine` is that of every unit."""
    if not 0 < len(words) <= MOST_WORDS:
        return Coverage(1.0, 0.0)
    asked = _spelt(question, words)
    found = [view.postings[word][0] for word in words]
    weights = np.array([math.log((view.count + SUPPOSED + 1) / (len(each) + 0.5)) for each in found])
    known = embedder if isinstance(embedder, WordEmbedder) else None
    if known is not None:
        weights *= np.linalg.norm(known.word_vectors(asked), axis=1)
    weights /= max(float(weights.sum()), 1e-9)
    places = np.array([place for place, _ in lines], dtype=np.int64)
    is_in = [np.searchsorted(each, places, side="right") > np.searchsorted(each, places) for each in found]
    held = np.array(is_in, dtype=np.float64).T
    absent = np.array([not len(each) for each in found])
    said = Coverage(float((held @ weights).max(initial=0.0)), float(weights[absent].sum()))
    if said.is_certain:
        return said  # what is near can only add to it
    if known is None:
        held = np.maximum(held, np.maximum(UNKNOWN, cosine[places])[:, None])
    else:
        held = np.maximum(held, _nearness(known, asked, [text for _, text in lines]))
    absent &= held.max(axis=0, initial=0.0) < NEAR
    lacking = dict.fromkeys(word for word, is_absent in zip(asked, absent, strict=True) if is_absent)
    return Coverage(float((held @ weights).max(initial=0.0)), float(weights[absent].sum()), tuple(lacking))


def _speaking(
    view: FieldView, question: str, words: Sequence[str], places: Sequence[int], hits: list[Hit], known: WordEmbedder
) -> list[Hit]:
    """The hits for a word or two which some line says: those that say one, or something that is near to it. A line beside
    them may be the other half of an answer, and nothing was asked."""
    if len(set(asked := _spelt(question, words))) > LOOKED_UP:
        return hits
    says = np.isin(places, np.concatenate([view.postings[word][0] for word in words]))
    if not says.any():
        return hits
    near = _nearness(known, asked, [hit.text for hit in hits]).max(axis=1) >= BESIDE
    return [hit for hit, is_kept in zip(hits, says | near, strict=True) if is_kept]


def _spelt(question: str, words: Sequence[str]) -> list[str]:
    """The words that were asked for as the question spells them."""
    spelt = {form: raw for raw in _TOKEN.findall(question) for form in cut(raw)}
    return [spelt.get(word, word) for word in words]


def _nearness(known: WordEmbedder, asked: Sequence[str], texts: Sequence[str]) -> Floats:
    """For each text and each word of the question how near the nearest word of the text is to it."""
    own = [_TOKEN.findall(text) for text in texts]
    every = {word: n for n, word in enumerate(dict.fromkeys(word for words in own for word in words))}
    if not every:
        return np.zeros((len(texts), len(asked)))
    near = (_directions(known, list(every)) @ _directions(known, asked).T).clip(0.0, 1.0).astype(np.float64)
    return np.array([near[[every[word] for word in words]].max(axis=0, initial=0.0) for words in own])


def _directions(known: WordEmbedder, words: Sequence[str]) -> NDArray[np.float32]:
    vectors = known.word_vectors(words)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)

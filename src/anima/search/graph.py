"""The graph of a home: who and what it speaks of, what is named together, and what is said about one name.

Nodes are names, topics and documents; an edge is a line that names both, or a `[[link]]`. A word that only begins sentences is
no name, nor is one written small as often. A line names somebody when it holds the words of the name: one count, for the graph
and for `about`. Promise: deterministic and without a model; linear, with bounds
whose rest is counted; only what the listener may see is looked at, and what reflection wrote is not counted as a mention
again. Not here: search by meaning (rank), and how it is drawn (web).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import combinations, islice
from typing import Literal, NamedTuple

from anima.errors import BadArguments, HomeError
from anima.layout import ANYTHING, Layout, Listener, is_unreviewed, layer_at
from anima.model import DocPath, Document, fold
from anima.search.units import is_litter
from anima.site import Site
from anima.text import bullet_text, notes, word_set
from anima.text.dates import day_in_name
from anima.text.markdown import heading_of, lines_of, lines_shown, without_code
from anima.text.pages import BANK, KEPT, PAST, Fact, entities_in, facts_at, outside_blocks, plain, slug_of

Kind = Literal["person", "name", "topic", "document"]
Part = Literal["log", "page", "topic", "document"]  # what a text is: a log speaks of names, and is no node itself

MOST = 500
MOST_EDGES = 1_500
STRONGEST = 4  # an edge is drawn when it is among so many of the strongest at one of its ends
_NAMES = 12  # of one line
_LONGEST = 8  # words of a name
_LINE = 2_000  # characters of a line that are looked at
_SMALL = re.compile(r"(?<!\w)[a-zà-öø-ÿ][^\W\d_]+")
_AT = re.compile(r"(?<![\w@])@([^\W\d_][\w.-]{0,40})")
_PARTS: dict[str, Part] = {"daily": "log", "curated": "log", "bank": "log", "topic": "topic", "knowledge": "document"}
_KINDS: dict[str, Kind] = {"topic": "topic", "document": "document"}
_LINK = re.compile(r"\[\[([^\]|#\n]{1,80})(?:[|#][^\]\n]*)?\]\]")
_CAPITALS = r"[^\W\d_a-z][^\W\d_]+(?:[ -][^\W\d_a-z][^\W\d_]+){0,2}"
_NAME = re.compile(rf"(?<![\w#/.-])({_CAPITALS})")
# Whom a line under a heading of people is about: `Ana: …`, `Ana (…`, `Ana's …`, or a name and a verb.
_TOLD_OF = re.compile(rf"[*_]*({_CAPITALS})(?:([*_]*:|['’]s\b|,|\s+[-–—(])|\s+([\w'’]+))")
_WORD = re.compile(r"[^\W_]+")
_COMMON, _PEOPLE = word_set(notes.NAMES["common"]), word_set(notes.NAMES["people"])
# What a label may say.
_NOBODY = _COMMON | notes.ATTRIBUTES | notes.SORTS | notes.KIN | notes.NAMING


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A document as `weave` takes it."""

    path: str
    text: str
    part: Part
    day: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """Somebody or something that is spoken of. `path` is its own page, where it has one; days are those of logs."""

    name: str
    kind: Kind
    mentions: int
    first: date | None
    last: date | None
    path: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Two nodes, by their places in the graph, the lower one first; how many lines name both, and whether one links."""

    one: int
    other: int
    weight: int
    linked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Nodes, the most mentioned first, and edges, the strongest first; and how many of each were left out."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]
    nodes_left: int = 0
    edges_left: int = 0

    def named(self, name: str) -> GraphNode | None:
        """The node of a name, however it is spelt."""
        return next((node for node in self.nodes if key_of(node.name) == key_of(name)), None)


def weave(given: Iterable[Text], *, most: int = MOST, most_edges: int = MOST_EDGES) -> Graph:
    """Nodes and edges of some documents. The same documents in the same order give the same graph."""
    return _Names(given).drawn(most, most_edges)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A line that may name somebody: all but code, comments and blank lines."""

    path: str
    line: int
    text: str
    day: date | None


class _Said(NamedTuple):
    mention: Mention
    owner: str  # whose page it stands on
    is_heading: bool  # of which only links count


class _Names:
    """Who and what some documents speak of, and which lines name each of them: for the graph and for one name alike. `asked` is
    looked for as well, whether or not it is a name."""

    def __init__(self, given: Iterable[Text], asked: str = "") -> None:
        self.lines: list[_Said] = []
        self.called: dict[str, str] = {}  # each key as it was first written
        self.pages: dict[str, tuple[str, Part]] = {}
        self.people: set[str] = set()
        self.known: set[str] = set()
        self._within: Counter[str] = Counter()  # lines with a capitalised name inside a sentence
        self._leads: Counter[str] = Counter()  # and at the beginning of one
        self._small: Counter[str] = Counter()
        self._told_of: set[str] = set()  # whom lines under a heading of people are about
        for one in given:
            self._take(one)
        # The keys that are names: pages, links, mentions and people; else two lines, one of them with the name inside a
        # sentence (or more than one word), and not a common word begun large.
        self.people |= {key for key in self._told_of if not self._small[key] and key not in _NOBODY}
        self.known |= {*self.pages, *self.people}
        for key in self._within | self._leads:
            inside, leads, (first, _, rest) = self._within[key], self._leads[key], key.partition(" ")
            is_name = inside + leads > 1 and self._small[key] < inside
            if not is_name and rest and leads > 1:
                is_name = not self._small[first] and not notes.is_any_verb(first)
            # As in `Met Ana`, it may be another name with a word before it.
            if is_name and not (rest and (rest in self.known or self._within[rest] > inside)):
                self.known.add(key)
        self.known = (self.known | {asked}) - {""}
        self._heads: dict[str, int] = {}  # the first word of each name, and how many words the longest such name has
        for key in self.known:
            first, size = key.partition(" ")[0], min(key.count(" ") + 1, _LONGEST)
            self._heads[first] = max(size, self._heads.get(first, 0))

    def _take(self, one: Text) -> None:
        owner, among_people = "", False
        if one.part != "log":
            stem = _stem(one.path).replace("-", " ").replace("_", " ").strip()
            owner = key_of(stem)
            if not owner or owner in self.pages:
                owner = stem = one.path
            self.pages[owner], self.called[owner] = (one.path, one.part), stem
        for number, whole in without_code(one.text, nested=True):
            if is_litter(whole) and not heading_of(whole):
                continue
            line = whole[:_LINE].rstrip()
            heading = heading_of(line)
            self.known.update(self._named(name) for name in entities_in(line)[:_NAMES])
            self.people.update(self._named(match[1].replace("_", " ").strip(" .-")) for match in _AT.finditer(line))
            text = bullet_text(line)
            if heading:
                among_people = not _PEOPLE.isdisjoint(_words(heading.title))
                if heading.level == 1 and key_of(heading.title) == owner:
                    self.called[owner] = heading.title
            else:
                self._hear(text, among_people)
            mention = Mention(path=one.path, line=number, text=text, day=one.day)
            self.lines.append(_Said(mention, owner, bool(heading)))

    def _hear(self, text: str, among_people: bool) -> None:
        """The capitalised words of a line. What begins a sentence is large for that alone, perhaps: it counts apart."""
        self._small.update(_SMALL.findall(text))
        within, leads, bare = set[str](), set[str](), _LINK.sub(" ", text)
        for match in islice(_NAME.finditer(bare), 2 * _NAMES):
            words = [word for word in match[1].split() if word.casefold() not in _COMMON]
            before = bare[: match.start()].rstrip(" *_\"“‘'([")
            begins = not before or before[-1] in ".!?:;]" or before[-1].isdigit()
            if words:
                (leads if begins else within).add(self._named(" ".join(words)))
        self._within.update(within)
        self._leads.update(leads)
        told = _TOLD_OF.match(text) if among_people else None
        if told and (told[2] or plain(told[3]) in notes.BE | notes.STATIVE):
            self._told_of.add(self._named(told[1]))

    def _named(self, name: str) -> str:
        key = key_of(name)
        self.called.setdefault(key, " ".join(name.split()))
        return key

    def in_line(self, said: _Said) -> list[str]:
        """The names that a line holds, in their order, each once. This is what counts, everywhere."""
        text = said.mention.text
        if said.is_heading:
            return list(dict.fromkeys(key for name in entities_in(text) if (key := key_of(name)) in self.known))
        words, found = _words(text), dict[str, None]()
        for at, word in enumerate(words):
            for size in range(self._heads.get(word, 0), 0, -1):
                if (run := " ".join(words[at : at + size])) in self.known:
                    found[run] = None
        return list(found)

    def drawn(self, most: int, most_edges: int) -> Graph:
        lines, weight = Counter[str](), Counter[tuple[str, str]]()  # lines that name each, and each two together
        days: dict[str, set[date]] = {}
        linked: set[tuple[str, str]] = set()  # the pairs that a link made
        for said in self.lines:
            names, owner = self.in_line(said), said.owner
            lines.update(names)
            if day := said.mention.day:
                for key in names:
                    days.setdefault(key, set()).add(day)
            tied = {*_whole(names)[:_NAMES], owner} - {""}
            weight.update(combinations(sorted(tied), 2))
            links = map(key_of, entities_in(said.mention.text)) if owner else ()
            linked.update((min(key, owner), max(key, owner)) for key in links if key in tied)
        every = sorted(self.known, key=lambda key: (-lines[key], self.called[key], key))
        place = {key: number for number, key in enumerate(every[: max(0, most)])}
        found = []
        for (a, b), both in weight.items():
            if a in place and b in place:
                one, other = sorted((place[a], place[b]))
                edge = Edge(one=one, other=other, weight=both, linked=(a, b) in linked)
                # Lines with both against lines with either, so that what is named everywhere does not drown the rest.
                found.append((both * both / math.sqrt(max(1, lines[a]) * max(1, lines[b])), edge))
        found.sort(key=lambda each: (-each[0], not each[1].linked, each[1].one, each[1].other))
        used: Counter[int] = Counter()
        edges: list[Edge] = []
        for _, edge in found:
            if min(used[edge.one], used[edge.other]) < STRONGEST and len(edges) < most_edges:
                edges.append(edge)
                used.update((edge.one, edge.other))
        nodes = tuple(self._node(key, lines[key], days.get(key, ())) for key in place)
        left = len(every) - len(place), len(found) - len(edges)
        return Graph(nodes=nodes, edges=tuple(edges), nodes_left=left[0], edges_left=left[1])

    def _node(self, key: str, mentions: int, days: Collection[date]) -> GraphNode:
        path, part = self.pages.get(key, (None, "log"))
        kind: Kind = "person" if key in self.people else _KINDS.get(part, "name")
        first, last = min(days, default=None), max(days, default=None)
        return GraphNode(name=self.called[key], kind=kind, mentions=mentions, first=first, last=last, path=path)


def key_of(name: str) -> str:
    """A name in the form in which two spellings of it are equal."""
    return " ".join(_words(name))


def _stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0]


def _words(text: str) -> list[str]:
    return _WORD.findall(plain(text))


def _whole(names: list[str]) -> list[str]:
    """Names without those that are a part of another one: of `Ana` and `Ana Ruiz` on one line the longer."""
    return [name for name in names if not any(name != other and f" {name} " in f" {other} " for other in names)]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The answer. `mentions` are the newest; `total` counts all; `linked` are names on the same lines. Asked for a date, `facts`
    are what held then, `mentions` those up to then, and there is no page: it tells of today."""

    name: str
    page: Document | None
    mentions: tuple[Mention, ...]
    total: int
    linked: tuple[tuple[str, int], ...]
    facts: tuple[Fact, ...] = ()


def look_up(site: Site, listener: Listener, name: str, *, limit: int = 12, at: date | None = None) -> About:
    """Everything the listener may see that names it; with `at`, as of that date."""
    key = key_of(name)
    if not key:
        raise BadArguments("say a name")
    texts = list(texts_of(site, listener))
    names = _Names(texts, asked=key)
    found: list[Mention] = []
    linked: Counter[str] = Counter()
    for said in names.lines:
        day = said.mention.day
        if (at is None or (day is not None and day <= at)) and key in (held := names.in_line(said)):
            found.append(said.mention)
            linked.update(names.called[other] for other in _whole(held) if f" {key} " not in f" {other} ")
    found.sort(key=lambda m: (m.day or date.min, m.path, m.line), reverse=True)
    slug, pages = slug_of(key), (path for path, part in names.pages.values() if part in ("page", "topic"))
    page = next((path for path in pages if _stem(path) == slug or key_of(_stem(path)) == key), None) if not at else None
    dated = {one.path: one.text for one in texts if _keeps_facts(site.layout, DocPath.parse(one.path))}
    return About(
        name=name,
        page=site.store.documents.read(DocPath.parse(page)) if page else None,
        mentions=tuple(found[:limit]),
        total=len(found),
        linked=tuple(linked.most_common(8)),
        facts=facts_at(dated, name, at) if at else (),
    )


def _keeps_facts(layout: Layout, path: DocPath) -> bool:
    """MEMORY.md, or the topics of what is past or was moved out; a user's own layer has its own MEMORY.md."""
    if layer_at(path) is not None:
        return path.key.split("/", 2)[2] == "memory.md"
    return path.key in {fold(layout.curated), *(fold(f"{layout.topics}/{name}") for name in (PAST, KEPT))}


def texts_of(site: Site, listener: Listener) -> Iterator[Text]:
    """The documents that speak of somebody, as the listener may see them, hidden lines empty. Rules, souls and skills say
    how to be, not who there is, and what reflection and dreams wrote says it a second time: they take no part."""
    for place in sorted(entry.path for entry in site.store.documents.list_all()):
        path = DocPath.parse(place)
        part = _part(site.layout, path)
        if part is None or layer_at(path) not in (None, listener.layer) or is_unreviewed(site.layout, path):
            continue
        try:
            text = site.store.documents.read(path).text
        except HomeError:
            continue
        view = listener.view(site.layout, path, text)
        if not view.text:
            continue
        if not view.whole:
            seen = zip(lines_of(text), lines_shown(text, view), strict=True)
            text = "".join(line if is_shown else "\n" for line, is_shown in seen)
        text = outside_blocks(text) if path.key.startswith(BANK + "/") else text
        yield Text(path=path.text, text=text, part=part, day=site.layout.date_of(path) or day_in_name(path.name))


def _part(layout: Layout, path: DocPath) -> Part | None:
    row = layout.row_of(path)
    if not path.is_markdown:
        return None
    if path.key.startswith(f"{BANK}/entities/"):
        return "page"
    if layout.date_of(path) is not None or row.role == "user-layer":
        return "log"
    return "document" if row is ANYTHING else "log" if row.role == "user" else _PARTS.get(row.kind)

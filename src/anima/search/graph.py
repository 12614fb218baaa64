"""The graph of a home: who and what it speaks of, what is named together, and what is said about one name.

Nodes are people and other names, topics, and documents; an edge is a line that names both, or a `[[link]]`. A word that
only begins a sentence is no name until it stands elsewhere too, and neither is one that is written small as often.

Promise: deterministic and without a model, from `[[wikilinks]]`, `@mentions` and capitalised names; linear in the text,
with bounds whose rest is counted; only what the listener may see is looked at. What reflection wrote on bank pages is
shown as a page, and not counted as a mention again. Not here: search by meaning (rank), and how it is drawn (web).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import combinations
from typing import Literal

from anima.errors import BadArguments, HomeError
from anima.layout.listener import Listener, is_unreviewed, layer_at
from anima.layout.table import ANYTHING, Layout
from anima.model import DocPath, Document, fold
from anima.site import Site
from anima.text.bank import FOLDER, KEPT, PAST, Fact, entities_in, facts_at, outside_blocks, slug_of
from anima.text.dates import day_in_name
from anima.text.markdown import bullet_text, heading_of, lines_of, lines_shown, without_code

Kind = Literal["person", "name", "topic", "document"]
Part = Literal["log", "page", "topic", "document"]  # what a text is: a log speaks of names, and is no node itself

MOST = 500
MOST_EDGES = 1_500
STRONGEST = 4  # an edge is drawn when it is among so many of the strongest at one of its ends
_NAMES = 12  # of one line
_LINE = 2_000  # characters of a line that are looked at
_LEAD = re.compile(r"[^\W\d_a-z][^\W\d_]+(?:[ -][^\W\d_a-z][^\W\d_]+){0,2}")
_AFTER = re.compile(
    r"(?:[.!?:;]|\d\]?)\s+([^\W\d_a-z][^\W\d_]+(?:[ -][^\W\d_a-z][^\W\d_]+){0,2})"
)  # as at the beginning
_SMALL = re.compile(r"(?<!\w)[a-zà-öø-ÿ][^\W\d_]+")
_PEOPLE = frozenset(
    """people person persons family friends colleagues contacts team who personas gente familia amigos contactos equipo
    personnes famille amis leute personen familie freunde pessoas amici persone""".split()
)
_AT = re.compile(r"(?<![\w@])@([^\W\d_][\w.-]{0,40})")
_PARTS: dict[str, Part] = {"daily": "log", "curated": "log", "bank": "log", "topic": "topic", "knowledge": "document"}
_LINK = re.compile(r"\[\[([^\]|#\n]{1,80})(?:[|#][^\]\n]*)?\]\]")
_NAME = re.compile(r"(?<![\w#/.-])([^\W\d_a-z][^\W\d_]+(?:[ -][^\W\d_a-z][^\W\d_]+){0,2})")
_COMMON = frozenset(
    """the a an and or but if then this that these those he she it they we you i in on at by for from to of as is are was were
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october
    november december today yesterday tomorrow no yes not""".split()
)


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
        return next((node for node in self.nodes if plain(node.name) == plain(name)), None)


def links_of(site: Site, listener: Listener, *, most: int = MOST) -> Graph:
    """The graph of what a listener may see. Rules, souls and skills say how to be, not who there is: they take no part."""
    found = (_text(site.layout, path, text) for path, text in _texts(site, listener))
    return weave(sorted((one for one in found if one is not None), key=lambda one: one.path), most=most)


def _text(layout: Layout, path: DocPath, text: str) -> Text | None:
    row, day = layout.row_of(path), layout.date_of(path)
    part: Part | None = "document" if row is ANYTHING else _PARTS.get(row.kind)
    if path.key.startswith(f"{FOLDER}/entities/"):
        part = "page"
    elif day is not None or row.role == "user-layer":
        part = "log"
    return Text(path=path.text, text=text, part=part, day=day) if part else None


def weave(given: Iterable[Text], *, most: int = MOST, most_edges: int = MOST_EDGES) -> Graph:
    """Nodes and edges of some documents. The same documents in the same order give the same graph."""
    weaving = _Weaving()
    for one in given:
        weaving.take(one)
    return weaving.drawn(most, most_edges)


# -- reading ---------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Spoken:
    """A line as it counts: the names it holds for certain, those that may only begin a sentence, and whose text it is."""

    names: tuple[str, ...]
    leads: tuple[str, ...]
    owner: str | None
    linked: frozenset[str]
    day: date | None


@dataclass(slots=True)
class _Weaving:
    spoken: list[_Spoken] = field(default_factory=list)
    called: dict[str, str] = field(default_factory=dict)  # each key as it was first written
    pages: dict[str, tuple[str, Part]] = field(default_factory=dict)
    marked: set[str] = field(default_factory=set)  # named by a link or an @
    people: set[str] = field(default_factory=set)
    counted: Counter[str] = field(default_factory=Counter)
    leads: Counter[str] = field(default_factory=Counter)
    small: Counter[str] = field(default_factory=Counter)

    def take(self, one: Text) -> None:
        owner = self._page(one) if one.part != "log" else None
        among_people = False
        for line in _prose(one.text):
            heading = heading_of(line)
            if heading:
                among_people = not _PEOPLE.isdisjoint(plain(heading.title).split())
            self._line(line if not heading else "", heading.title if heading else line, owner, among_people, one.day)

    def _page(self, one: Text) -> str:
        stem = one.path.rpartition("/")[2].rpartition(".")[0].replace("-", " ").replace("_", " ").strip()
        key = plain(stem)
        if not key or key in self.pages:
            key, stem = one.path, one.path
        self.pages[key] = (one.path, one.part)
        self.called[key] = next((name for line in _prose(one.text) if plain(name := _title(line)) == key), stem)
        return key

    def _line(self, prose: str, whole: str, owner: str | None, among_people: bool, day: date | None) -> None:
        """`prose` is empty for a heading, whose capitals mean nothing; its links count."""
        marked = [self._named(name) for name in entities_in(whole)][:_NAMES]
        self.marked.update(marked)
        self.people.update(self._named(match[1].replace("_", " ").strip(" .-")) for match in _AT.finditer(whole))
        self.small.update(_SMALL.findall(prose))
        leads = self._leads(bullet_text(prose))
        weak = [self._named(name) for name in names_in(prose)[:_NAMES] if plain(name) not in leads] if prose else []
        names = tuple(dict.fromkeys(name for name in (*marked, *weak) if name))[:_NAMES]
        self.counted.update(names)
        self.leads.update(leads)
        self.people.update(leads[:1] if among_people else ())
        if names or leads:
            self.spoken.append(_Spoken(names, leads, owner, frozenset(marked), day))

    def _leads(self, text: str) -> tuple[str, ...]:
        """What begins a sentence, and is large for that alone perhaps."""
        first = _LEAD.match(text)
        found = [*([first[0]] if first else ()), *(match[1] for match in _AFTER.finditer(text))]
        return tuple(dict.fromkeys(self._named(name) for name in found[:_NAMES]))

    def _named(self, name: str) -> str:
        key = plain(name)
        self.called.setdefault(key, " ".join(name.split()))
        return key

    # -- deciding --------------------------------------------------------------------------------------------------------

    def _known(self) -> set[str]:
        """The keys that are names: pages, links and mentions; else two lines, and not a common word begun large."""
        found = self.marked | set(self.pages) | {key for key in self.people if self.leads[key] or self.counted[key]}
        for key in self.counted:
            often = self.counted[key] + self.leads[key]
            if often > 1 and self.small[key] < self.counted[key] and not self._is_longer(key, found):
                found.add(key)
        for key, often in self.leads.items():
            first, _, rest = key.partition(" ")
            if rest and often > 1 and not self.small[first] and not self._is_longer(key, found):
                found.add(key)
        found.discard("")
        return found

    def _is_longer(self, key: str, known: set[str]) -> bool:
        """Whether it is another name with a word before it, as in `Met Ana`."""
        rest = key.partition(" ")[2]
        return bool(rest) and (rest in known or self.counted[rest] > self.counted[key])

    def drawn(self, most: int, most_edges: int) -> Graph:
        known = self._known()
        tally, pairs = _Tally(), _Pairs()
        for spoken in self.spoken:
            names = list(dict.fromkeys(key for name in spoken.names if (key := _begun(name, known))))
            names += [key for lead in spoken.leads if (key := _begun(lead, known)) and key not in names]
            tally.count(names, spoken.day)
            pairs.count(names, spoken, known)
        every = sorted(known, key=lambda key: (-tally.lines[key], self.called[key], key))
        place = {key: number for number, key in enumerate(every[: max(0, most)])}
        nodes = tuple(self._node(key, tally) for key in place)
        strong, left = pairs.strongest(place, tally.lines, most_edges)
        return Graph(nodes=nodes, edges=strong, nodes_left=len(every) - len(nodes), edges_left=left)

    def _node(self, key: str, tally: _Tally) -> GraphNode:
        path, part = self.pages.get(key, (None, "log"))
        kind: Kind = "person" if key in self.people else "name"
        if part in ("topic", "document"):
            kind = "topic" if part == "topic" else "document"
        return GraphNode(
            name=self.called[key],
            kind=kind,
            mentions=tally.lines[key],
            first=tally.first.get(key),
            last=tally.last.get(key),
            path=path,
        )


class _Tally:
    """How many lines name each, and when."""

    def __init__(self) -> None:
        self.lines: Counter[str] = Counter()
        self.first: dict[str, date] = {}
        self.last: dict[str, date] = {}

    def count(self, names: Iterable[str], day: date | None) -> None:
        for key in names:
            self.lines[key] += 1
            if day is not None:
                self.first[key] = min(day, self.first.get(key, day))
                self.last[key] = max(day, self.last.get(key, day))


class _Pairs:
    """How many lines name two together, and which pairs a link made."""

    def __init__(self) -> None:
        self.weight: Counter[tuple[str, str]] = Counter()
        self.linked: set[tuple[str, str]] = set()

    def count(self, names: list[str], spoken: _Spoken, known: set[str]) -> None:
        self.weight.update(combinations(sorted(set(names)), 2))
        owner = spoken.owner
        for key in names if owner in known else ():
            if owner and key != owner:
                pair = (min(key, owner), max(key, owner))
                self.weight[pair] += owner not in names
                self.linked |= {pair} if key in spoken.linked else set()

    def strongest(self, place: dict[str, int], lines: Mapping[str, int], most: int) -> tuple[tuple[Edge, ...], int]:
        """Edges between nodes that are drawn, the strongest of each: lines with both, against lines with either, so that
        what is named everywhere does not drown the rest."""
        found = []
        for (a, b), weight in self.weight.items():
            if weight and a in place and b in place:
                one, other = sorted((place[a], place[b]))
                edge = Edge(one=one, other=other, weight=weight, linked=(a, b) in self.linked)
                found.append((weight * weight / math.sqrt(max(1, lines[a]) * max(1, lines[b])), edge))
        found.sort(key=lambda each: (-each[0], not each[1].linked, each[1].one, each[1].other))
        used: Counter[int] = Counter()
        kept: list[Edge] = []
        for _, edge in found:
            if min(used[edge.one], used[edge.other]) < STRONGEST and len(kept) < most:
                kept.append(edge)
                used.update((edge.one, edge.other))
        return tuple(kept), len(found) - len(kept)


# -- words -----------------------------------------------------------------------------------------------------------------


def names_in(line: str) -> list[str]:
    """The names a line holds, each once: links and mentions first, then capitalised words that do not only begin it."""
    text = bullet_text(line)
    found = [match[1].strip() for match in (*_LINK.finditer(text), *_AT.finditer(text))]
    for match in _NAME.finditer(_LINK.sub(" ", text)):
        words = [word for word in match[1].split() if word.casefold() not in _COMMON]
        starts = (
            match.start() == 0
            and len(words) == 1
            and len(text.split()) > 3
            and not text[match.end() :].startswith(("'s", "’s"))
        )
        if words and not starts:
            found.append(" ".join(words))
    return list(dict.fromkeys(found))


def _begun(lead: str, known: set[str]) -> str | None:
    """The name a line begins with: `Ana called`; `Met Ana` begins with one of the two."""
    if lead in known:
        return lead
    rest = lead.partition(" ")[2]
    return rest if rest in known else None


def _prose(text: str) -> Iterator[str]:
    """The lines outside code, as far as they are looked at."""
    for _, line in without_code(text, nested=True):
        if line.strip():
            yield line[:_LINE].rstrip()


def _title(line: str) -> str:
    found = heading_of(line)
    return found.title if found and found.level == 1 else ""


def plain(text: str) -> str:
    """A name in the form in which two spellings of it are equal."""
    if text.isascii():
        return " ".join(text.lower().split())
    kept = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join(kept.split())


# -- one name ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One line that names it."""

    path: str
    line: int
    text: str
    day: date | None


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The answer. `mentions` are the newest; `total` counts all; `linked` are names on the same lines.

    Asked for a date, `facts` are what held then, `mentions` those up to then, and there is no page: it tells of today.
    """

    name: str
    page: Document | None
    mentions: tuple[Mention, ...]
    total: int
    linked: tuple[tuple[str, int], ...]
    facts: tuple[Fact, ...] = ()


def look_up(site: Site, listener: Listener, name: str, *, limit: int = 12, at: date | None = None) -> About:
    """Everything the listener may see that names it; with `at`, as of that date."""
    key = plain(name)
    if not key:
        raise BadArguments("say a name")
    wanted = re.compile(rf"(?<!\w){re.escape(key)}(?!\w)")
    found: list[Mention] = []
    linked: Counter[str] = Counter()
    dated: dict[str, str] = {}
    for path, text in _texts(site, listener):
        day = day_in_name(path.name)
        if _keeps_facts(site.layout, path):
            dated[path.text] = text
        if at is not None and (day is None or day > at):
            continue
        for number, line in enumerate(lines_of(text), start=1):
            if wanted.search(plain(line)):
                found.append(Mention(path=path.text, line=number, text=bullet_text(line), day=day))
                linked.update(other for other in names_in(line) if key not in (plain(other), *plain(other).split()))
    found.sort(key=lambda m: (m.day or date.min, m.path, m.line), reverse=True)
    return About(
        name=name,
        page=_page(site, listener, key) if at is None else None,
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


def _texts(site: Site, listener: Listener) -> Iterator[tuple[DocPath, str]]:
    """Every document as the listener may see it, hidden lines empty; what reflection wrote is left out."""
    for entry in site.store.documents.list_all():
        path = DocPath.parse(entry.path)
        if not path.is_markdown or layer_at(path) not in (None, listener.layer) or is_unreviewed(site.layout, path):
            continue
        try:
            text = site.store.documents.read(path).text
        except HomeError:
            continue
        part = listener.view(site.layout, path, text)
        if not part.text:
            continue
        if not part.whole:
            seen = zip(lines_of(text), lines_shown(text, part), strict=True)
            text = "".join(line if is_shown else "\n" for line, is_shown in seen)
        yield path, outside_blocks(text) if path.key.startswith(FOLDER + "/") else text


def _page(site: Site, listener: Listener, key: str) -> Document | None:
    slug, documents = slug_of(key), site.store.documents
    for folder in ("bank/entities", site.layout.topics):
        for name in documents.names(folder):
            stem = name.rpartition(".")[0]
            if stem == slug or plain(stem.replace("-", " ").replace("_", " ")) == key:
                path = DocPath.parse(f"{folder}/{name}")
                if listener.sees(site.layout, path):
                    return documents.read(path)
    return None

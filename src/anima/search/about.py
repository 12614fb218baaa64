"""What a home says about one name: its page, what held on a date, mentions over time, and who is named with it.

Promise: deterministic and without a model, from `[[wikilinks]]`, `@mentions` and capitalised names; only what the
listener may see is looked at. What reflection wrote on bank pages is shown as a page, and not counted as a mention again.
Not here: search by meaning (search).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from anima.errors import BadArguments, HomeError
from anima.layout.listener import Listener, layer_at
from anima.model import DocPath, Document, Scope, fold
from anima.text.bank import FOLDER, KEPT, PAST, Fact, facts_at, outside_blocks, slug_of
from anima.text.dates import day_in_name
from anima.text.markdown import View, bullet_text, lines_of, lines_shown

if TYPE_CHECKING:
    from anima.home import Home

_LINK = re.compile(r"\[\[([^\]|#\n]{1,80})(?:[|#][^\]\n]*)?\]\]")
_AT = re.compile(r"(?<![\w@])@([^\W\d_][\w.-]{0,40})")
_NAME = re.compile(r"(?<![\w#/.-])([^\W\d_a-z][^\W\d_]+(?:[ -][^\W\d_a-z][^\W\d_]+){0,2})")
_COMMON = frozenset(
    """the a an and or but if then this that these those he she it they we you i in on at by for from to of as is are was were
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october
    november december today yesterday tomorrow no yes not""".split()
)


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


def look_up(
    home: Home, name: str, *, scope: Scope, limit: int = 12, sender: str | None = None, at: date | None = None
) -> About:
    """Everything the listener may see that names it; with `at`, as of that date."""
    plain = _plain(name)
    if not plain:
        raise BadArguments("say a name")
    listener = home.listener(scope=scope, sender=sender)
    wanted = re.compile(rf"(?<!\w){re.escape(plain)}(?!\w)")
    found: list[Mention] = []
    linked: Counter[str] = Counter()
    dated: dict[str, str] = {}
    for path, text in texts(home, listener):
        day = day_in_name(path.name)
        if _keeps_facts(home, path):
            dated[path.text] = text
        if at is not None and (day is None or day > at):
            continue
        for number, line in enumerate(lines_of(text), start=1):
            if wanted.search(_plain(line)):
                found.append(Mention(path=path.text, line=number, text=bullet_text(line), day=day))
                linked.update(
                    other for other in names_in(line) if _plain(other) != plain and plain not in _plain(other).split()
                )
    found.sort(key=lambda m: (m.day or date.min, m.path, m.line), reverse=True)
    return About(
        name=name,
        page=_page(home, listener, plain) if at is None else None,
        mentions=tuple(found[:limit]),
        total=len(found),
        linked=tuple(linked.most_common(8)),
        facts=facts_at(dated, name, at) if at else (),
    )


def _keeps_facts(home: Home, path: DocPath) -> bool:
    """MEMORY.md, or the topics of what is past or was moved out; a user's own layer has its own MEMORY.md."""
    if layer_at(path) is not None:
        return path.key.split("/", 2)[2] == "memory.md"
    return path.key in {fold(home.layout.curated), *(fold(f"{home.layout.topics}/{name}") for name in (PAST, KEPT))}


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


def texts(home: Home, listener: Listener) -> Iterator[tuple[DocPath, str]]:
    """Every document as the listener may see it, line numbers as in the file; what reflection wrote is left out."""
    """Every document as the listener may see it, line numbers as in the file; what reflection wrote is left out."""
    for entry in home.store.list_all():
        path = DocPath.parse(entry.path)
        if not path.is_markdown or (layer_at(path) is not None and layer_at(path) != listener.layer):
            continue
        try:
            text = home.store.read(path).text
        except HomeError:
            continue
        part = listener.view(home.layout, path, text)
        if part.text:
            shown = text if part.whole else _blanked(text, part)
            yield path, outside_blocks(shown) if path.key.startswith(FOLDER + "/") else shown


def _blanked(text: str, part: View) -> str:
    """The visible part with line numbers as in the file: hidden lines become empty ones."""
    seen = zip(lines_of(text), lines_shown(text, part), strict=True)
    return "".join(line if is_shown else "\n" for line, is_shown in seen)


def _page(home: Home, listener: Listener, plain: str) -> Document | None:
    slug = slug_of(plain)
    for folder in ("bank/entities", home.layout.topics):
        for name in home.store.names(folder):
            stem = name.rpartition(".")[0]
            if stem == slug or _plain(stem.replace("-", " ").replace("_", " ")) == plain:
                path = DocPath.parse(f"{folder}/{name}")
                if listener.sees(home.layout, path):
                    return home.store.read(path)
    return None


def _plain(text: str) -> str:
    kept = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join(kept.split())

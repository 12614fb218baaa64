"""The six ways a home can be laid out, as differences to the usual rows, and how to tell which one a folder is.

Promise: each table (`tables/`, a file a dialect) follows that system's own description, and is read when somebody asks for
it; every title that a dialect draws is a border no data can fake. `detect` looks at names only, says why, and answers
`anima` for a folder that fits none. Not here: reading a folder; what a row means (layout).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from anima.config import DIALECT_NAMES
from anima.errors import BadConfig
from anima.layout import Layout, Policy, Row, scopes, wild
from anima.model import fold
from anima.text import read_table
from anima.text.dates import day_in_name

DIALECTS = DIALECT_NAMES[1:]  # without the word for finding out


@cache
def layout_for(dialect: str) -> Layout:
    """The table of a dialect. Raises BadConfig for a name that is none."""
    if dialect not in DIALECTS:
        raise BadConfig(f"there is no dialect {dialect!r}; there are {', '.join(DIALECT_NAMES)}")
    raw, usual = dict(read_table("layout", dialect)), read_table("layout", "usual")
    known = {row["role"]: row for row in usual["rows"]}
    rows, before, after = (
        tuple(_row({**known.get(row["role"], {}), **row}) for row in raw.pop(part, ()))
        for part in ("rows", "before", "after")
    )
    differs, dropped = raw.pop("shared", {}), raw.pop("dropped", ())
    shared = [_row(row | differs.get(row["role"], {})) for row in usual["shared"] if row["role"] not in dropped]
    borders = [_border(rows, **border) for border in raw.pop("borders", ())]
    return Layout(
        dialect=dialect,
        rows=rows,
        others=(*before, *shared, *after),
        seed_order=tuple(raw.pop("seed_order", "").split()),
        frame=tuple(raw.pop("frame", ())),
        guard="|".join([*borders, *raw.pop("rules", ())]),
        **raw,
    )


def _row(raw: Mapping[str, Any]) -> Row:
    read: dict[str, Any] = {"scopes": scopes(raw.get("scopes", "")), "form": raw.get("form") or None}
    read |= {"policy": Policy(raw["policy"])} if "policy" in raw else {}
    read |= {"fields": tuple(raw["fields"])} if "fields" in raw else {}
    return Row(**{**raw, **read})


def _border(rows: Iterable[Row], hashes: str, *, titles: bool = False, more: Sequence[str] = ()) -> str:
    """A regular expression of headings that could be taken for one of ours, whatever their case, blanks or hashes."""
    own = [row.title for row in rows if titles and row.title and "{" not in row.title]
    return rf" {{0,3}}{hashes}[ \t]+(?:{'|'.join([*own, *more])})[ \t]*(?:#+[ \t]*)?"


class Detection(NamedTuple):
    """Which dialect a folder is, and the sentence that says why."""

    dialect: str
    why: str


def detect(names: Iterable[str]) -> Detection:
    """The dialect of a folder from the names in its first two levels; folders end with a slash."""
    seen, signs = {fold(name) for name in names}, read_table("layout", "usual")["signs"]
    return next(Detection(sign["dialect"], why) for sign in signs if (why := _told(sign, seen)))


def _told(sign: Mapping[str, Any], seen: Collection[str]) -> str:
    """Why these names are of the dialect of a sign; empty where they need not be."""
    has, some, lacks = ([name for name in sign.get(part, ()) if fold(name) in seen] for part in ("has", "any", "lacks"))
    likes, folder = [fold(like) for like in sign.get("like", ())], sign.get("dated")
    fits = (
        has == sign.get("has", [])
        and not lacks
        and (some or "any" not in sign)
        and (not likes or any(wild(like, name) for like in likes for name in seen))
        and (not folder or any(name.startswith(folder) and day_in_name(name[len(folder) :]) for name in seen))
    )
    return sign["why"].format(any=", ".join(some)) if fits else ""


def dialect_of(made: str, names: Callable[[str], Sequence[str]], is_folder: Callable[[str], bool]) -> Detection:
    """The dialect of a folder that can be looked into: the one it was `made` in, else the one its names tell of."""
    if made in DIALECTS:
        return Detection(dialect=made, why="anima made it so")
    seen = []
    for name in names(""):
        seen.append(name + "/" * is_folder(name))
        below = names(name) if name in ("memory", "daily", "notes", "knowledge", "agents") else ()
        inner = (f"{name}/{each}" for each in below[:2000])
        seen += [each + "/" * ("." not in each and is_folder(each)) for each in inner]
        if name == "agents":
            seen += [f"agents/{each}/sessions/" for each in below[:100] if is_folder(f"agents/{each}/sessions")]
    return detect(seen)

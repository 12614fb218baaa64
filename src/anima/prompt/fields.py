"""What pages declare: the fields of IDENTITY.md, the peers of AGENTS.md, and sub-agents. Pure.

Promise: reading never fails, whatever the text; a value that was read is one clean line. Front matter, fenced code and
HTML comments do not count as fields, so that nothing a reader cannot see becomes a name. A sub-agent's id is its page's
name, and its text its instructions; a page that cannot be used is left out and said, and what one asks for only
narrows. Not here: which source gives a field (identity), filling one in (text.pages), running a sub-agent (agent.desk).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from anima.errors import BadArguments, BadText, printable
from anima.text.markdown import BOM, bullet_of, fence_after, front_matter, front_matter_end, heading_of

FIELDS = ("name", "creature", "vibe", "theme", "emoji", "avatar")
LONGEST = 300  # characters of other fields that a prompt shows: a picture may be drawn in one
_SHORT = ("name", "emoji", "vibe")

# Texts of templates that people leave standing. The first ones are those of our own template (a test compares them);
# they count even when somebody has taken the parentheses away.
PLACEHOLDERS = """\
a name that suits you | what kind of being you are: an owl, a lamp, a plain program | the colours or mood of your page
| how you come across, in three or four words | one sign to know you by | {name} | {emoji}
| a picture in this home such as avatars/me.png, or a web address | pick something | pick something you like | pick one
| pick a name | choose something | choose one | choose a name | your name | your name here | name here | fill this in
| fill me in | to be decided | to be filled in | not decided yet | not set | unset | tbd"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityFields:
    """The six fields. None is a field that is absent, empty or still a template's placeholder."""

    name: str | None = None
    creature: str | None = None
    vibe: str | None = None
    theme: str | None = None
    emoji: str | None = None
    avatar: str | None = None


def parse(text: str) -> IdentityFields:
    """What the text says. The last real value of a field wins; a placeholder says nothing."""
    return IdentityFields(**dict(_bullets(text)))


def render(text: str, keys: Iterable[str]) -> str:
    """One line for the prompt, such as `name=Kate, emoji=🐙, vibe=warm but sharp`, of what IDENTITY.md says; absent fields are
    left out. The key `*` stands for fields of the owner's own (`- **Pronouns:** she`)."""
    fields, others = parse(text), list(_others(text))
    values = [pair for key in keys for pair in (others if key == "*" else [(key, getattr(fields, key))])]
    shown = ((key, one_line(value or "")) for key, value in values)
    return ", ".join(f"{key}={value}" for key, value in shown if value and (key in _SHORT or len(value) <= LONGEST))


def check(key: str, value: str) -> None:
    """Raise BadArguments unless the value, written into IDENTITY.md, would be read back as it is."""
    if CONTROL.search(value):
        raise BadArguments(f"{key} must be one line without control characters")
    if not value.strip():
        raise BadArguments(f"{key} is empty", hint="to remove a field, set it to nothing at all (None)")
    if "<!--" in value:
        raise BadArguments(f"{key} cannot hold the beginning of a comment")
    bare = _bare(value)
    if _is_placeholder(bare):
        raise BadArguments(f"{key} {printable(value)!r} looks like a template's placeholder and would not be read back")
    if bare != value:
        raise BadArguments(
            f"{key} {printable(value)!r} begins or ends with blanks or emphasis marks", hint="remove them"
        )


def one_line(value: str) -> str:
    """The value with every run of control characters and line ends as one blank, and no blanks around it."""
    return CONTROL.sub(" ", value).strip()


# -- reading: which lines count, and what they say --------------------------------------------------------------------

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_LINE = re.compile(r"(?P<shown>[^\n]*?)(?:\r?\n|\Z)")
_LABEL = re.compile(r"[ \t]*(?:[-+•][ \t]*|\*[ \t]+)?(?P<label>[^:：]{0,63})[:：]")
_OWN = re.compile(
    r"[ \t]*[-+*][ \t]+(?P<bold>\*\*|__)(?P<label>[^:：*_=,\0]{1,40})(?:[:：](?P=bold)|(?P=bold)[:：])(?P<value>.*)"
)
_DECORATION = re.compile("[*_()（）\u2010-\u2015-]")
_COMMENT = re.compile("<!(?=--).*?-->")  # `<!-->` opens and closes
_HIDDEN = "\0"  # stands for a comment


def _lines(text: str) -> Iterator[str]:
    """Every line after the front matter, comments hidden; "" for one that does not count."""
    fence, comment = "", False
    first = front_matter_end(text) or (len(BOM) if text.startswith(BOM) else 0)
    for match in _LINE.finditer(text, first):
        if not match[0]:
            continue
        shown, before = match["shown"], fence
        fence = fence if comment else fence_after(shown, fence, nested=True)
        if before or fence:
            yield ""
        else:
            # A line that begins in a comment is no Markdown at all, even after the comment's end.
            live = not comment and not shown.lstrip().startswith("<!--")
            hidden, comment = _hide_comments(shown, comment)
            yield hidden if live else ""


def _hide_comments(shown: str, inside: bool) -> tuple[str, bool]:
    """The line with comments hidden, and whether one is still open at its end."""
    if inside:
        _, closing, shown = shown.partition("-->")
        if not closing:
            return _HIDDEN, True
    head, ending, tail = shown.rpartition("-->")  # behind the last end none is closed any more
    rest, opening, _ = tail.partition("<!--")
    return _COMMENT.sub(_HIDDEN, head + ending) + rest + _HIDDEN * bool(opening), bool(opening)


def _bullets(text: str) -> Iterator[tuple[str, str]]:
    """The fields that a text gives a value, in its order; a placeholder is none."""
    for line in _lines(text):
        found = _LABEL.match(line)
        key = found["label"].replace("*", "").replace("_", "").strip().casefold() if found else ""
        if found and key in FIELDS and not _is_placeholder(value := _value(line, found)):
            yield key, value


def _others(text: str) -> Iterator[tuple[str, str]]:
    """Bullets with a bold label that is none of ours."""
    for line in _lines(text):
        found = _OWN.match(line)
        key = one_line(found["label"]).casefold() if found else ""
        value = _bare(CONTROL.sub(" ", found["value"].replace(_HIDDEN, ""))) if found else ""
        if key and key not in FIELDS and not _is_placeholder(value):
            yield key, value


def _value(line: str, found: re.Match[str]) -> str:
    """What stands behind a label, without the mark that closes its emphasis there (`**Name: Kate**`)."""
    label, after = found["label"], found.end()
    closing = label[: len(label) - len(label.lstrip("*_"))][::-1] if not label.rstrip().endswith(("*", "_")) else ""
    if closing and line.startswith(closing, after):
        after, closing = after + len(closing), ""
    said = line[after:].rstrip(" \t\0")
    if closing and said.endswith(closing):
        said = said[: -len(closing)]
    return _bare(CONTROL.sub(" ", said.replace(_HIDDEN, "")))


def _bare(text: str) -> str:
    """Without blanks and stars around it, and without underscores that stand on both sides (`_pics/me.png` stays)."""
    start, end = 0, len(text)
    while start < end:
        first, last = text[start], text[end - 1]
        if first == "*" or first.isspace():
            start += 1
        elif last == "*" or last.isspace():
            end -= 1
        elif first == last == "_" and end - start > 1:
            start, end = start + 1, end - 1
        else:
            break
    return text[start:end]


def _is_placeholder(bare: str) -> bool:
    plain = _plain(bare)
    return not plain or plain in _PLACEHOLDERS or (bare[0] in "(（" and bare[-1] in ")）")


def _plain(text: str) -> str:
    return " ".join(_DECORATION.sub(" ", text).casefold().split()).strip(" .…")


_PLACEHOLDERS = frozenset(map(_plain, PLACEHOLDERS.split("|")))


# -- peers: AGENTS.md as a list of colleagues -------------------------------------------------------------------------

_PEER_WORDS = frozenset(["agents", "peers", "delegates", "delegation", "colleagues", "teammates", "team"])
_PEER = re.compile(r" ?[-*+][ \t]+(?P<mark>\*\*|__|`|)@?(?P<id>\w(?:[\w.-]{0,62}\w)?)(?P<colon>[:：]?)(?P=mark)(?!\w)")
_DASH = re.compile(r"\s*(?:[:：\u2013\u2014→]|-(?=\s))\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another agent this one may turn to. Whether it may is for `allowed_delegates` to say, not for a document."""

    id: str
    description: str


def peers(text: str) -> tuple[Peer, ...]:
    """The peers a file names, also those in one section of an operating guide. The first of two with one id counts. A
    peer is an item of the form `**id**: description` or `id — description` directly under a heading that names peers. A
    section counts when it is mostly peers, so that rules under "Working with other agents" are not taken for names."""
    found: dict[str, Peer] = {}
    for section in _sections(text):
        named = [peer for peer in section if peer]
        if 2 * len(named) > len(section):
            for peer in named:
                found.setdefault(peer.id.casefold(), peer)
    return tuple(found.values())


def _sections(text: str) -> list[list[Peer | None]]:
    """For each heading, what stands under it: a peer, or None for another item or a paragraph."""
    sections: list[list[Peer | None]] = [[]]
    about_peers, fresh = False, True
    for line in _lines(text):
        shown = line.replace(_HIDDEN, "")
        if heading_of(shown):
            words = shown.strip(" \t#").casefold().removesuffix(".md").replace("*", "").split()
            about_peers = not _PEER_WORDS.isdisjoint(word.strip(".,:;()`_") for word in words)
            sections.append([])
            fresh = True
        elif (item := bullet_of(shown)) and len(item.indent.expandtabs(4)) <= 1:
            sections[-1].append(_peer(shown) if about_peers else None)
            fresh = False
        elif not shown.strip():
            fresh = True
        elif fresh and not shown[0].isspace():
            sections[-1].append(None)
            fresh = False
    return sections


def _peer(item: str) -> Peer | None:
    match = _PEER.match(item)
    if not match:
        return None
    rest = item[match.end() :]
    dash = _DASH.match(rest)
    if rest.strip() and not dash and not match["colon"]:
        return None
    return Peer(id=match["id"], description=one_line(rest[dash.end() :] if dash else rest))


# -- sub-agents' pages --------------------------------------------------------------------------------------------------


FOLDERS = ("subagents", "agents")
_ID = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?\Z")
_ABOUT = 1_024
_LIMITS = {"tokens": 1_000_000, "requests": 200, "seconds": 3_600}  # what a page may ask for at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Subagent:
    """A sub-agent as its page declares it. `tokens` and `requests` are for all that it does, `seconds` for one answer."""

    id: str
    path: str
    about: str
    model: str = ""  # empty: that of whoever calls it
    tools: tuple[str, ...] | None = None  # names; None: all of its scope
    isolated: bool = True
    tokens: int = 50_000
    requests: int = 20
    seconds: int = 600

    @property
    def workspace(self) -> str:
        """The folder it may write to; "" for one that shares its caller's home, where a sub-agent writes nothing."""
        return f"agents/{self.id}/workspace" if self.isolated else ""


@lru_cache(maxsize=1024)  # a page is looked at in every prompt, and seldom changes
def subagent_of(path: str, text: str) -> Subagent:
    """The sub-agent on a page. Raises BadText with what is wrong."""
    matter = front_matter(text, path)
    id, about = path.rpartition("/")[2].removesuffix(".md").casefold(), matter.get("description")
    if not _ID.match(id):
        raise BadText(path, "a sub-agent's name is up to 40 letters, digits, hyphens and underscores")
    if not isinstance(about, str) or not about.strip() or len(about) > _ABOUT:
        raise BadText(path, f"its front matter needs a description of at most {_ABOUT:,} characters")
    model, tools, mode = matter.get("model"), matter.get("tools"), matter.get("workspace")
    tools = [name.strip() for name in tools.split(",")] if isinstance(tools, str) else tools
    if tools is not None and not (isinstance(tools, list) and all(isinstance(name, str) for name in tools)):
        raise BadText(path, "tools is a list of names")
    mode = (mode.get("mode") if isinstance(mode, Mapping) else mode) or "isolated"
    if mode not in ("isolated", "shared"):
        raise BadText(path, "workspace is isolated or shared")
    limits = matter.get("limits") or {}
    if not isinstance(limits, Mapping) or not set(limits) <= set(_LIMITS):
        raise BadText(path, f"limits has {', '.join(_LIMITS)} and nothing else")
    if matter.get("maxIters") is not None:  # AgentScope's word
        limits = {"requests": matter["maxIters"], **limits}
    for name, value in limits.items():
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LIMITS[name]:
            raise BadText(path, f"{name} is a whole number from 1 to {_LIMITS[name]:,}")
    return Subagent(
        id=id,
        path=path,
        about=" ".join(about.split()),
        model="" if model in (None, "inherit") else str(model),
        tools=None if tools is None else tuple(filter(None, tools)),
        isolated=mode == "isolated",
        **limits,
    )

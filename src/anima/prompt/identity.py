"""Who the agent is: what pages declare (the fields of IDENTITY.md, the peers of AGENTS.md, sub-agents), which source gives a
field, its avatar, and the soul it wears. Pure.

Promise: reading never fails, whatever the text; a value that was read is one clean line, and nothing a reader cannot see
becomes a name. The first source that has a field gives it; no absolute path is ever shown. The same rule, wall clock and
dice give the same soul; the dice is rolled only where chance decides. A page of a sub-agent that cannot be used is left
out and said, and what one asks for only narrows. Not here: the documents (gather), what was worn (sessions).
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote_to_bytes

from anima.config import PersonaConfig
from anima.errors import BadArguments, BadConfig, BadPath, BadText, NotFound, printable
from anima.model import DocPath
from anima.text.dates import parse_at, parse_duration
from anima.text.markdown import BOM, bullet_of, front_matter, heading_of, lines_with_place

if TYPE_CHECKING:
    from random import Random  # only the type: the dice comes in by hand

MAX_AVATAR_BYTES = 2 * 1024 * 1024
AVATAR_EXTENSIONS = ("png", "jpg", "jpeg", "gif", "webp", "svg")
DEFAULT_AVATAR = "A"
SOUL = "SOUL.md"
DAY = timedelta(days=1)
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


def parse(text: str) -> dict[str, str]:
    """Those of the six fields that the text fills in. The last real value of one wins; a placeholder says nothing."""
    return dict(_bullets(text))


def render(text: str, keys: Iterable[str]) -> str:
    """One line for the prompt, such as `name=Kate, emoji=🐙, vibe=warm but sharp`, of what IDENTITY.md says; absent fields are
    left out. The key `*` stands for fields of the owner's own (`- **Pronouns:** she`)."""
    fields, others = parse(text), list(_others(text))
    values = [pair for key in keys for pair in (others if key == "*" else [(key, fields.get(key, ""))])]
    shown = ((key, one_line(value)) for key, value in values)
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
_LABEL = re.compile(r"[ \t]*(?:[-+•][ \t]*|\*[ \t]+)?(?P<label>[^:：]{0,63})[:：]")
_OWN = re.compile(
    r"[ \t]*[-+*][ \t]+(?P<bold>\*\*|__)(?P<label>[^:：*_=,\0]{1,40})(?:[:：](?P=bold)|(?P=bold)[:：])(?P<value>.*)"
)
_DECORATION = re.compile("[*_()（）\u2010-\u2015-]")
_COMMENT = re.compile(r"<!(?=--).*?(?:-->|\Z)")  # `<!-->` opens and closes; one that goes on hides the rest of its line
_HIDDEN = "\0"  # stands for a comment


def _lines(text: str) -> Iterator[str]:
    """Every line after the front matter, comments hidden; "" for one that does not count."""
    for line, place in lines_with_place(text.removeprefix(BOM), nested=True):
        # A line that begins in a comment is no Markdown at all, even after the comment's end.
        if place != "front":
            is_hidden = place or line.lstrip().startswith("<!--")
            yield "" if is_hidden else _COMMENT.sub(_HIDDEN, line.removesuffix("\n").removesuffix("\r"))


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


# -- fields: interface, agent, file, default --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedValue:
    """A value and where it came from."""

    value: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The identity that is shown, each field with its source. `avatars` are the candidates in order, a default last."""

    name: SourcedValue
    avatar: SourcedValue
    avatars: tuple[SourcedValue, ...]
    creature: SourcedValue | None = None
    vibe: SourcedValue | None = None
    theme: SourcedValue | None = None
    emoji: SourcedValue | None = None


def resolve(overrides: Iterable[tuple[str, Mapping[str, str]]]) -> Resolved:
    """The first source that has a field gives it: interface, agent configuration, IDENTITY.md, in the order given. An
    agent that is not the home's default one puts the interface override last. Where no source has an avatar, its emoji
    stands in before the next source is asked; where none has an emoji, an avatar that is one does."""
    chain = [(source, {key: one_line(given.get(key, "")) for key in FIELDS}) for source, given in overrides]

    def each(*keys: str) -> list[SourcedValue]:
        said = ((source, values[key]) for source, values in chain for key in keys)
        return [SourcedValue(value=value, source=source) for source, value in said if value]

    names = [replace(name, value=name.value[:50].rstrip()) for name in each("name")[:1]]
    avatars = (*each("avatar", "emoji"), SourcedValue(value=DEFAULT_AVATAR, source="default"))
    short = (found for key in ("emoji", "avatar") for found in each(key) if len(found.value) <= 16)
    emojis = [e for e in short if not (e.value.isascii() or _PATHLIKE.search(e.value) or ":" in e.value)]
    others = {key: next(iter(each(key)), None) for key in ("creature", "vibe", "theme")}
    return Resolved(
        name=names[0] if names else SourcedValue(value="Assistant", source="default"),
        avatar=avatars[0],
        avatars=avatars,
        emoji=emojis[0] if emojis else None,
        **others,
    )


# -- avatars ----------------------------------------------------------------------------------------------------------

Reason = Literal["outside_workspace", "unsupported_extension", "missing", "too_large"]

_URL = re.compile(r"(?P<scheme>https?://)(?:[^\s/?#]*@)?(?P<rest>[^\s/?#@]+\S*)\Z", re.IGNORECASE)
_DATA = re.compile(r"data:image/[a-z0-9.+-]{1,40}(?=[;,])", re.IGNORECASE)
_DRAWN = re.compile(r"data:(image/(?:png|jpeg|gif|webp|svg\+xml))((?:;[\w=.-]+)*),", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
_PATHLIKE = re.compile(r"[/\\]|\A[.~]|\A[A-Za-z]:|\.[A-Za-z]{3,4}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Avatar:
    """A picture or a few letters. `source` may be shown to anybody; `value` is what a page draws, and may be long."""

    kind: Literal["none", "local", "remote", "data", "text"]
    source: str | None = None
    reason: Reason | None = None
    value: str | None = field(default=None, repr=False)


def first_avatar(candidates: Iterable[SourcedValue], *, size_of: Callable[[DocPath], int | None]) -> Avatar:
    """The first candidate that can be shown; `reason` says why the one before it could not."""
    reason: Reason | None = None
    for candidate in candidates:
        found = avatar(candidate.value, size_of=size_of)
        if found.kind != "none":
            return replace(found, reason=reason)
        reason = reason or found.reason
    return Avatar(kind="text", source=DEFAULT_AVATAR, value=DEFAULT_AVATAR, reason=reason)


def avatar(value: str, *, size_of: Callable[[DocPath], int | None]) -> Avatar:
    """What an avatar's value is. `size_of` gives a file's bytes, or None where the home has no such regular file."""
    value = value.strip()
    if not value:
        return Avatar(kind="none", reason="missing")
    if CONTROL.search(value):
        return Avatar(kind="none", reason="outside_workspace")
    if url := _URL.match(value):
        return Avatar(kind="remote", source=url["scheme"] + url["rest"], value=value)
    if data := _DATA.match(value):
        return Avatar(kind="data", source=data[0] + ",…", value=value)
    if value[:5].casefold() == "data:":
        return Avatar(kind="none", reason="unsupported_extension")
    if not _PATHLIKE.search(value) and _is_short(value):
        return Avatar(kind="text", source=value, value=value)
    try:
        path = None if _SCHEME.match(value) else DocPath.parse(value.removeprefix("./"))
    except BadPath:
        path = None
    if path is None:
        return Avatar(kind="none", reason="outside_workspace")
    if path.key.rpartition(".")[2] not in AVATAR_EXTENSIONS or "." not in path.name:
        return Avatar(kind="none", source=path.text, reason="unsupported_extension")
    size = size_of(path)
    if size is None or size > MAX_AVATAR_BYTES:
        return Avatar(kind="none", source=path.text, reason="missing" if size is None else "too_large")
    return Avatar(kind="local", source=path.text, value=path.text)


def drawn(value: str) -> tuple[bytes, str]:
    """The bytes and the media type of a picture that is written out as data. Raises NotFound."""
    head = _DRAWN.match(value)
    if not head or len(value) > 2 * MAX_AVATAR_BYTES:
        raise NotFound("the picture is of no kind a page can show")
    raw = unquote_to_bytes(value[head.end() :])
    try:
        return (b64decode(raw) if ";base64" in head[2].lower() else raw), head[1].lower()
    except ValueError:  # binascii.Error is one
        raise NotFound("the picture in IDENTITY.md cannot be read") from None


def _is_short(value: str) -> bool:
    """One to four characters as a reader counts them: what joins or colours an emoji does not count."""
    if len(value) > 32 or any(char.isspace() for char in value):
        return False
    pairs = zip("\0" + value, value, strict=False)
    bare = [char for before, char in pairs if before != "\u200d" and not "\U0001f3fb" <= char <= "\U0001f3ff"]
    return 1 <= sum(unicodedata.category(char) not in ("Mn", "Me", "Cf") for char in bare) <= 4


# -- the soul that is worn --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the rule says now. `file` is the soul to be worn."""

    worn: bool
    why: Literal["window", "chance", "no"]
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WornSoul:
    """The soul that one conversation wore, as the ledger tells it."""

    time: datetime
    session: str
    file: str | None
    scope: str


def check_rule(rule: PersonaConfig) -> None:
    """Raises BadConfig for a rule that makes no sense."""
    if not DocPath.parse(rule.file).is_markdown:
        raise BadConfig(f"{printable(rule.file)} is not a Markdown file", where="persona.file")
    if bool(rule.at) != bool(rule.duration):
        given, lacking = ("at", "duration") if rule.at else ("duration", "at")
        raise BadConfig(f"a window needs persona.{lacking} too", where=f"persona.{given}")


def decide(rule: PersonaConfig, now: datetime, dice: Random) -> Decision:
    """Whether the alternate soul is worn at `now`, an aware time in the user's timezone. The window is one of the wall
    clock: when the clocks go back, an hour that comes twice counts twice; when they go forward, an hour that is skipped
    does not come."""
    if now.utcoffset() is None:
        raise BadArguments("the time must say its timezone, and that must be the user's")
    since = now.replace(tzinfo=None) - datetime.combine(now, parse_at(rule.at)) if rule.at else DAY
    if rule.at and since % DAY < parse_duration(rule.duration):
        return Decision(worn=True, why="window", file=rule.file)
    if rule.chance >= 1 or (rule.chance > 0 and dice.random() < rule.chance):
        return Decision(worn=True, why="chance", file=rule.file)
    return Decision(worn=False, why="no", file=SOUL)


def not_worn(file: str, soul_text: str | None, alternate_text: str | None) -> str:
    """Why the alternate soul of this file cannot be worn, after a look at both files (None is one that is missing); "" where it
    can."""
    name = printable(file)
    if alternate_text is None or not alternate_text.replace("\ufeff", "").strip():
        what = "missing" if alternate_text is None else "empty"
        return f"{name} should be worn but is {what}; {SOUL} is worn instead."
    # An alternate stands in for a soul. Without one we would show a text where nothing was to be shown.
    return "" if soul_text is not None else f"{name} should be worn, but there is no {SOUL} for it to replace."

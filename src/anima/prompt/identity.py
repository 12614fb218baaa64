"""Identity: what IDENTITY.md says of the agent, how it is shown, changed and resolved; and whom AGENTS.md names.

Promise: reading never fails, whatever the text; a value that was read is one clean line and can be written back.
Writing changes the one line it must and reads its own result before giving it back. No absolute path is ever shown.
Front matter, fenced code and HTML comments do not count, so that nothing a reader cannot see becomes a name.
Not here: files (a function `size_of` tells what must be known of one), where overrides come from, and the prompt.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from anima.errors import BadArguments, BadPath, printable
from anima.model import DocPath
from anima.text.markdown import BOM, bullet_of, fence_after, front_matter_end, heading_of, newline_of

FIELDS = ("name", "creature", "vibe", "theme", "emoji", "avatar")
RENDERED = ("name", "emoji", "vibe")
MAX_NAME = 50
MAX_AVATAR_BYTES = 2 * 1024 * 1024
AVATAR_EXTENSIONS = ("png", "jpg", "jpeg", "gif", "webp", "svg")
DEFAULT_NAME = "Assistant"
DEFAULT_AVATAR = "A"

# Texts of templates that people leave standing. The first ones are those of our own template (a test compares them);
# they count even when somebody has taken the parentheses away.
PLACEHOLDERS = frozenset(
    [
        "a name that suits you",
        "what kind of being you are: an owl, a lamp, a plain program",
        "how you come across, in three or four words",
        "the colours or mood of your page",
        "one sign to know you by",
        "a picture in this home such as avatars/me.png, or a web address",
        "{name}",
        "{emoji}",
        "pick something",
        "pick something you like",
        "pick one",
        "pick a name",
        "choose something",
        "choose one",
        "choose a name",
        "your name",
        "your name here",
        "name here",
        "fill this in",
        "fill me in",
        "to be decided",
        "to be filled in",
        "not decided yet",
        "not set",
        "unset",
        "tbd",
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The six fields. None is a field that is absent, empty or still a template's placeholder."""

    name: str | None = None
    creature: str | None = None
    vibe: str | None = None
    theme: str | None = None
    emoji: str | None = None
    avatar: str | None = None


def parse(text: str) -> Identity:
    """What the text says. The last real value of a field wins; a placeholder says nothing."""
    said = {bullet.key: bullet.value for bullet in _bullets(_lines(text), FIELDS) if bullet.value is not None}
    return Identity(**said)


def value_of(text: str, key: str) -> str | None:
    """The last real value of any labelled line, by the same rules: `value_of(user_md, "timezone")`."""
    values = [bullet.value for bullet in _bullets(_lines(text), (key.casefold(),)) if bullet.value is not None]
    return values[-1] if values else None


def render(identity: Identity) -> str:
    """One line for the prompt, such as `name=Kate, emoji=🐙, vibe=warm but sharp`; absent fields are left out."""
    values = ((key, one_line(getattr(identity, key) or "")) for key in RENDERED)
    return ", ".join(f"{key}={value}" for key, value in values if value)


def write(text: str, **fields: str | None) -> str:
    """The text with each given field set, or its lines removed where the value is None; all else stays as it is.

    The bullet that counts is changed; a field without one gets a bullet after the last identity bullet, else after the
    first heading, else at the top. Raises BadArguments for a value that would not be read back as it is.
    """
    if unknown := sorted(fields.keys() - set(FIELDS)):
        raise BadArguments(f"there is no identity field {printable(unknown[0])!r}; they are {', '.join(FIELDS)}")
    for key, value in fields.items():
        if value is not None:
            check(key, value)
    for key in FIELDS:
        if key in fields:
            text = _write_one(text, key, fields[key])
    return text


def check(key: str, value: str) -> None:
    """Raise BadArguments unless the value, written into IDENTITY.md, would be read back as it is."""
    if _CONTROL.search(value):
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
    return _CONTROL.sub(" ", value).strip()


# -- reading: which lines count, and what they say --------------------------------------------------------------------

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_LINE = re.compile(r"(?P<shown>[^\n]*?)(?P<ending>\r?\n|\Z)")
_MARKER = re.compile(r"[ \t]*(?:[-+•][ \t]*|\*[ \t]+)?")
_COLON = re.compile("[:：]")
_DECORATION = re.compile("[*_()（）\u2010-\u2015-]")
_HIDDEN = "\0"  # stands for each character of a comment, so that offsets stay true
_KEY_LIMIT = 64


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    text: str  # as it stands, without its ending; characters of comments are _HIDDEN
    ending: str
    live: bool
    open: bool  # a comment goes on in the next line

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def next(self) -> int:
        return self.end + len(self.ending)


@dataclass(frozen=True, slots=True)
class _Bullet:
    key: str
    value: str | None
    line: _Line
    marker: str  # indentation and list mark
    label: str | None  # all before the value, when a new bullet can imitate it
    start: int  # where the value stands in the text
    end: int
    stop: int  # after the mark that closes an emphasis around the whole line


def _lines(text: str) -> list[_Line]:
    """Every line after the front matter, with whether it counts."""
    first = front_matter_end(text) or (len(BOM) if text.startswith(BOM) else 0)
    return list(_judged(match for match in _LINE.finditer(text, first) if match[0]))


def _judged(raw: Iterable[re.Match[str]]) -> Iterator[_Line]:
    fence, comment = "", False
    for match in raw:
        start, shown, ending = match.start(), match["shown"], match["ending"]
        before = fence
        fence = fence if comment else fence_after(shown, fence, nested=True)
        if before or fence:
            yield _Line(start, shown, ending, live=False, open=False)
        else:
            # A line that begins in a comment is no Markdown at all, even after the comment's end.
            live = not comment and not shown.lstrip().startswith("<!--")
            hidden, comment = _hide_comments(shown, comment)
            yield _Line(start, hidden, ending, live=live, open=comment)


def _hide_comments(shown: str, inside: bool) -> tuple[str, bool]:
    """The line with comments hidden, and whether one is still open at its end."""
    pieces, at, seek = [], 0, 0
    while at < len(shown):
        if inside:
            found = shown.find("-->", seek)
            stop = len(shown) if found < 0 else found + 3
            pieces.append(_HIDDEN * (stop - at))
            inside = found < 0
        else:
            found = shown.find("<!--", at)
            stop = len(shown) if found < 0 else found
            pieces.append(shown[at:stop])
            inside, seek = found >= 0, stop + 2  # `<!-->` opens and closes
        at = stop
    return "".join(pieces), inside


def _bullets(lines: Iterable[_Line], keys: tuple[str, ...]) -> Iterator[_Bullet]:
    for line in lines:
        if line.live and (bullet := _bullet(line, keys)):
            yield bullet


def _bullet(line: _Line, keys: tuple[str, ...]) -> _Bullet | None:
    text = line.text
    marker = _MARKER.match(text).end()  # type: ignore[union-attr]  # it matches the empty string
    colon = _COLON.search(text, marker, marker + _KEY_LIMIT)
    if not colon:
        return None
    raw = text[marker : colon.start()]
    key = raw.replace("*", "").replace("_", "").strip().casefold()
    if key not in keys:
        return None
    after, closing = _emphasis(text, raw, colon.end())
    stop = len(text.rstrip(" \t\0")) if text[after:].strip(" \t\0") else after
    end = stop
    if closing and text.endswith(closing, after, stop):
        end = after + len(text[after : stop - len(closing)].rstrip())
    start = end - len(text[after:end].lstrip(" \t\0"))
    plain = raw.strip("*_ \t").casefold() == key and not closing
    return _Bullet(
        key=key,
        value=_value(text[start:end]),
        line=line,
        marker=text[:marker],
        label=text[:after] if plain else None,
        start=line.start + start,
        end=line.start + end,
        stop=line.start + stop,
    )


def _emphasis(text: str, key: str, after: int) -> tuple[int, str]:
    """Where the label ends, and the mark that closes its emphasis only behind the value (`**Name: Kate**`)."""
    run = key[: len(key) - len(key.lstrip("*_"))]
    closing = run[::-1]
    if not run or key.rstrip().endswith(("*", "_")):
        return after, ""
    if text.startswith(closing, after):
        return after + len(closing), ""
    return after, closing


def _value(raw: str) -> str | None:
    bare = _bare(_CONTROL.sub(" ", raw.replace(_HIDDEN, "")))
    return None if _is_placeholder(bare) else bare


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
    return not plain or plain in _PLAIN_PLACEHOLDERS or (bare[0] in "(（" and bare[-1] in ")）")


def _plain(text: str) -> str:
    return " ".join(_DECORATION.sub(" ", text).casefold().split()).strip(" .…")


_PLAIN_PLACEHOLDERS = frozenset(_plain(phrase) for phrase in PLACEHOLDERS)


# -- writing: every edit is tried in order of how little it changes, and read back ------------------------------------


def _write_one(text: str, key: str, value: str | None) -> str:
    before = parse(text)
    if getattr(before, key) == value:
        return text
    wanted = replace(before, **{key: value})
    edits = _without(text, key) if value is None else _with(text, key, value)
    for edited in edits:
        if parse(edited) == wanted:
            return edited
    raise BadArguments(f"{key} cannot be written into this text without changing more than its line")


def _with(text: str, key: str, value: str) -> Iterator[str]:
    lines = _lines(text)
    bullets = list(_bullets(lines, FIELDS))
    mine = [bullet for bullet in bullets if bullet.key == key]
    counting = [bullet for bullet in mine if bullet.value is not None]
    if mine:
        yield from _replaced(text, (counting or mine)[-1], value)
    elif bullets:
        last = bullets[-1]
        for line in (_imitation(last, key), _canonical(last.marker, key)):
            yield _inserted(text, lines, last.line, f"{line} {value}")
    elif heading := next((line for line in lines if line.live and heading_of(line.text)), None):
        yield _inserted(text, lines, heading, f"{_canonical('- ', key)} {value}", apart=True)
    else:
        yield _on_top(text, lines, f"{_canonical('- ', key)} {value}")


def _replaced(text: str, bullet: _Bullet, value: str) -> Iterator[str]:
    gap = " " if bullet.start == bullet.end else ""
    yield text[: bullet.start] + gap + value + text[bullet.end :]
    whole = f"{_canonical(bullet.marker, bullet.key)} {value}"
    yield text[: bullet.line.start] + whole + text[bullet.stop :]


def _canonical(marker: str, key: str) -> str:
    return f"{marker}**{key.title()}:**"


def _imitation(bullet: _Bullet, key: str) -> str:
    """The label of a new bullet in the manner of its neighbour: list mark, bold, colon and case."""
    if bullet.label is None:
        return _canonical(bullet.marker, key)
    at = bullet.label.casefold().index(bullet.key)
    theirs = bullet.label[at : at + len(bullet.key)]
    ours = key.upper() if theirs.isupper() else key if theirs.islower() else key.title()
    return bullet.label[:at] + ours + bullet.label[at + len(bullet.key) :]


def _inserted(text: str, lines: Sequence[_Line], anchor: _Line, new: str, *, apart: bool = False) -> str:
    """The text with a new line after the anchor and any comment that begins in it; `apart` puts blank lines around."""
    at = lines.index(anchor)
    after = next((n for n in range(at, len(lines)) if not lines[n].open), None)
    eol = anchor.ending or newline_of(text)
    if after is None:  # a comment that never ends
        return text[: anchor.start] + new + eol + text[anchor.start :]
    place = lines[after]
    blank_before = eol if apart else ""
    if not place.ending:
        return text + eol + blank_before + new
    follows = after + 1 < len(lines) and lines[after + 1].text.strip()
    blank_after = eol if apart and follows else ""
    return text[: place.next] + blank_before + new + eol + blank_after + text[place.next :]


def _on_top(text: str, lines: Sequence[_Line], new: str) -> str:
    at = lines[0].start if lines else len(text)
    eol = newline_of(text)
    before = eol if text[:at].strip(BOM) and text[at - 1] != "\n" else ""
    blank_after = eol if lines and lines[0].text.strip() else ""
    return text[:at] + before + new + eol + blank_after + text[at:]


def _without(text: str, key: str) -> Iterator[str]:
    gone = [b for b in _bullets(_lines(text), (key,)) if b.value is not None]
    shorter = _cut(text, [(b.line.start, b.line.next) if not b.line.open else _up_to_comment(text, b) for b in gone])
    if not text.endswith("\n"):
        shorter = re.sub(r"\r?\n\Z", "", shorter)
    yield shorter
    # An empty line stays where its removal would turn the rest into something else (front matter, for example).
    yield _cut(text, [(b.line.start, b.line.end) if not b.line.open else _up_to_comment(text, b) for b in gone])


def _up_to_comment(text: str, bullet: _Bullet) -> tuple[int, int]:
    return bullet.line.start, text.rindex("<!--", bullet.line.start, bullet.line.end)


def _cut(text: str, spans: Iterable[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in spans:
        pieces.append(text[at:start])
        at = end
    return "".join([*pieces, text[at:]])


# -- resolution: interface, agent, file, default ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourced:
    """A value and where it came from."""

    value: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The identity that is shown, each field with its source. `avatars` are the candidates in order, a default last."""

    name: Sourced
    avatar: Sourced
    avatars: tuple[Sourced, ...]
    creature: Sourced | None = None
    vibe: Sourced | None = None
    theme: Sourced | None = None
    emoji: Sourced | None = None

    @property
    def identity(self) -> Identity:
        """The values without their sources."""
        found = {key: getattr(self, key) for key in FIELDS}
        return Identity(**{key: sourced.value for key, sourced in found.items() if sourced})


def resolve(overrides: Iterable[tuple[str, Identity]]) -> Resolved:
    """The first source that has a field gives it: interface, agent configuration, IDENTITY.md, in the order given.

    An agent that is not the home's default one puts the interface override last. Where no source has an avatar, its
    emoji stands in before the next source is asked; where none has an emoji, an avatar that is one does.
    """
    chain = [(source, _tidy(identity)) for source, identity in overrides]
    avatars = (*_each(chain, "avatar", "emoji"), Sourced(value=DEFAULT_AVATAR, source="default"))
    emojis = [found for key in ("emoji", "avatar") for found in _each(chain, key) if _is_emoji(found.value)]
    return Resolved(
        name=_first(chain, "name") or Sourced(value=DEFAULT_NAME, source="default"),
        avatar=avatars[0],
        avatars=avatars,
        creature=_first(chain, "creature"),
        vibe=_first(chain, "vibe"),
        theme=_first(chain, "theme"),
        emoji=emojis[0] if emojis else None,
    )


def _tidy(identity: Identity) -> Identity:
    values = {key: one_line(getattr(identity, key) or "") or None for key in FIELDS}
    if name := values["name"]:
        values["name"] = name[:MAX_NAME].rstrip()
    return Identity(**values)


def _each(chain: Iterable[tuple[str, Identity]], *keys: str) -> tuple[Sourced, ...]:
    asked = ((source, getattr(identity, key)) for source, identity in chain for key in keys)
    return tuple(Sourced(value=value, source=source) for source, value in asked if value)


def _first(chain: Iterable[tuple[str, Identity]], key: str) -> Sourced | None:
    return next(iter(_each(chain, key)), None)


def _is_emoji(value: str) -> bool:
    return len(value) <= 16 and not value.isascii() and not _PATHLIKE.search(value) and ":" not in value


# -- avatars ----------------------------------------------------------------------------------------------------------

Reason = Literal["outside_workspace", "unsupported_extension", "missing", "too_large"]

_URL = re.compile(r"(?P<scheme>https?://)(?:[^\s/?#]*@)?(?P<rest>[^\s/?#@]+\S*)\Z", re.IGNORECASE)
_DATA = re.compile(r"data:image/[a-z0-9.+-]{1,40}(?=[;,])", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
_PATHLIKE = re.compile(r"[/\\]|\A[.~]|\A[A-Za-z]:|\.[A-Za-z]{3,4}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Avatar:
    """A picture or a few letters. `source` may be shown to anybody; `value` is what a page draws, and may be long."""

    kind: Literal["none", "local", "remote", "data", "text"]
    source: str | None = None
    reason: Reason | None = None
    value: str | None = field(default=None, repr=False)


def avatar(value: str, *, size_of: Callable[[DocPath], int | None]) -> Avatar:
    """What an avatar's value is. `size_of` gives a file's bytes, or None where the home has no such regular file."""
    value = value.strip()
    if not value:
        return Avatar(kind="none", reason="missing")
    if _CONTROL.search(value):
        return Avatar(kind="none", reason="outside_workspace")
    if url := _URL.match(value):
        return Avatar(kind="remote", source=url["scheme"] + url["rest"], value=value)
    if data := _DATA.match(value):
        return Avatar(kind="data", source=data[0] + ",…", value=value)
    if value[:5].casefold() == "data:":
        return Avatar(kind="none", reason="unsupported_extension")
    if not _PATHLIKE.search(value) and _is_short(value):
        return Avatar(kind="text", source=value, value=value)
    return _local(value, size_of)


def first_avatar(candidates: Iterable[Sourced], *, size_of: Callable[[DocPath], int | None]) -> Avatar:
    """The first candidate that can be shown; `reason` says why the one before it could not."""
    reason: Reason | None = None
    for candidate in candidates:
        found = avatar(candidate.value, size_of=size_of)
        if found.kind != "none":
            return replace(found, reason=reason)
        reason = reason or found.reason
    return Avatar(kind="text", source=DEFAULT_AVATAR, value=DEFAULT_AVATAR, reason=reason)


def _local(value: str, size_of: Callable[[DocPath], int | None]) -> Avatar:
    if _SCHEME.match(value):
        return Avatar(kind="none", reason="outside_workspace")
    try:
        path = DocPath.parse(value.removeprefix("./"))
    except BadPath:
        return Avatar(kind="none", reason="outside_workspace")
    if path.key.rpartition(".")[2] not in AVATAR_EXTENSIONS or "." not in path.name:
        return Avatar(kind="none", source=path.text, reason="unsupported_extension")
    size = size_of(path)
    if size is None:
        return Avatar(kind="none", source=path.text, reason="missing")
    if size > MAX_AVATAR_BYTES:
        return Avatar(kind="none", source=path.text, reason="too_large")
    return Avatar(kind="local", source=path.text, value=path.text)


def _is_short(value: str) -> bool:
    """One to four characters as a reader counts them: what joins or colours an emoji does not count."""
    if len(value) > 32 or any(char.isspace() for char in value):
        return False
    pairs = zip("\0" + value, value, strict=False)
    seen = [char for before, char in pairs if before != "\u200d" and not _rides_along(char)]
    return 1 <= len(seen) <= 4


def _rides_along(char: str) -> bool:
    return unicodedata.category(char) in ("Mn", "Me", "Cf") or "\U0001f3fb" <= char <= "\U0001f3ff"


# -- peers: AGENTS.md as a list of colleagues -------------------------------------------------------------------------

_PEER_WORDS = frozenset(["agents", "peers", "delegates", "delegation", "colleagues", "teammates", "team"])
_PEER = re.compile(r" ?[-*+][ \t]+(?P<mark>\*\*|__|`|)@?(?P<id>\w(?:[\w.-]{0,62}\w)?)(?P<colon>[:：]?)(?P=mark)(?!\w)")
_DASH = re.compile(r"\s*(?:[:：\u2013\u2014→]|-(?=\s))\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another agent this one may turn to. Whether it may is for `allowed_delegates` to say, not for a document."""

    id: str
    description: str


def is_peer_list(text: str) -> bool:
    """Whether AGENTS.md lists peers rather than telling the agent how to work.

    A file is a peer list when more than half of what it says (top-level list items and paragraphs) are peers, where a
    peer is an item of the form `**id**: description` or `id — description` directly under a heading that names peers.
    """
    sections = _sections(text)
    named = sum(1 for section in sections for peer in section if peer)
    return 2 * named > sum(len(section) for section in sections)


def peers(text: str) -> tuple[Peer, ...]:
    """The peers a file names, also those in one section of an operating guide. The first of two with one id counts.

    A section counts when it is mostly peers, so that rules under "Working with other agents" are not taken for names.
    """
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
        shown = line.text.replace(_HIDDEN, "") if line.live else ""
        if heading_of(shown):
            sections.append([])
            about_peers, fresh = _names_peers(shown), True
        elif (item := bullet_of(shown)) and len(item.indent.expandtabs(4)) <= 1:
            sections[-1].append(_peer(shown) if about_peers else None)
            fresh = False
        elif not shown.strip():
            fresh = True
        elif fresh and not shown[0].isspace():
            sections[-1].append(None)
            fresh = False
    return sections


def _names_peers(heading: str) -> bool:
    words = heading.strip(" \t#").casefold().removesuffix(".md").replace("*", "").split()
    return not _PEER_WORDS.isdisjoint(word.strip(".,:;()`_") for word in words)


def _peer(item: str) -> Peer | None:
    match = _PEER.match(item)
    if not match:
        return None
    rest = item[match.end() :]
    dash = _DASH.match(rest)
    if rest.strip() and not dash and not match["colon"]:
        return None
    return Peer(id=match["id"], description=one_line(rest[dash.end() :] if dash else rest))

"""The fields of IDENTITY.md and the peers of AGENTS.md: how they are read, drawn and written.

Promise: reading never fails, whatever the text; a value that was read is one clean line and can be written back.
Writing changes the one line it must and reads its own result before giving it back. Front matter, fenced code and HTML
comments do not count, so that nothing a reader cannot see becomes a name.
Not here: files, and which of several sources gives a field (identity).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from anima.errors import BadArguments, printable
from anima.text.markdown import BOM, bullet_of, fence_after, front_matter_end, heading_of, newline_of

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
    return IdentityFields(**{found.key: found.value for found in _bullets(_lines(text)) if found.value is not None})


def render(text: str, keys: Iterable[str]) -> str:
    """One line for the prompt, such as `name=Kate, emoji=🐙, vibe=warm but sharp`, of what IDENTITY.md says; absent fields are
    left out. The key `*` stands for fields of the owner's own (`- **Pronouns:** she`)."""
    fields, others = parse(text), list(_others(text))
    values = [pair for key in keys for pair in (others if key == "*" else [(key, getattr(fields, key))])]
    shown = ((key, one_line(value or "")) for key, value in values)
    return ", ".join(f"{key}={value}" for key, value in shown if value and (key in _SHORT or len(value) <= LONGEST))


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


def has_control(value: str) -> bool:
    return _CONTROL.search(value) is not None


# -- reading: which lines count, and what they say --------------------------------------------------------------------

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_LINE = re.compile(r"(?P<shown>[^\n]*?)(?P<ending>\r?\n|\Z)")
_LABEL = re.compile(r"(?P<marker>[ \t]*(?:[-+•][ \t]*|\*[ \t]+)?)(?P<label>[^:：]{0,63})[:：]")
_OWN = re.compile(
    r"[ \t]*[-+*][ \t]+(?P<bold>\*\*|__)(?P<label>[^:：*_=,\0]{1,40})(?:[:：](?P=bold)|(?P=bold)[:：])(?P<value>.*)"
)
_DECORATION = re.compile("[*_()（）\u2010-\u2015-]")
_HIDDEN = "\0"  # stands for each character of a comment, so that offsets stay true


class _Line(NamedTuple):
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


class _Bullet(NamedTuple):
    key: str
    value: str | None
    line: _Line
    marker: str  # indentation and list mark
    label: str | None  # all before the value, when a new bullet can imitate it
    start: int  # where the value stands in the text
    end: int
    stop: int  # after the mark that closes an emphasis around the whole line


def _lines(text: str) -> Iterator[_Line]:
    """Every line after the front matter, with whether it counts."""
    fence, comment = "", False
    first = front_matter_end(text) or (len(BOM) if text.startswith(BOM) else 0)
    for match in _LINE.finditer(text, first):
        if not match[0]:
            continue
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
    if not inside and "<!--" not in shown:
        return shown, False
    pieces, at, seek = [], 0, 0
    while at < len(shown):
        found = shown.find("-->", seek) if inside else shown.find("<!--", at)
        stop = len(shown) if found < 0 else found + 3 if inside else found
        pieces.append(_HIDDEN * (stop - at) if inside else shown[at:stop])
        if found >= 0:
            inside, seek = not inside, stop + 2  # `<!-->` opens and closes
        at = stop
    return "".join(pieces), inside


def _bullets(lines: Iterable[_Line]) -> Iterator[_Bullet]:
    """The lines that give a field a value, or a placeholder."""
    for line in lines:
        found = _LABEL.match(line.text) if line.live else None
        key = found["label"].replace("*", "").replace("_", "").strip().casefold() if found else ""
        if found and key in FIELDS:
            yield _bullet(line, key, found)


def _others(text: str) -> Iterator[tuple[str, str]]:
    """Bullets with a bold label that is none of ours."""
    for line in _lines(text):
        found = _OWN.match(line.text) if line.live else None
        key = one_line(found["label"]).casefold() if found else ""
        value = _bare(_CONTROL.sub(" ", found["value"].replace(_HIDDEN, ""))) if found else ""
        if key and key not in FIELDS and not _is_placeholder(value):
            yield key, value


def _bullet(line: _Line, key: str, found: re.Match[str]) -> _Bullet:
    text, label = line.text, found["label"]
    after, closing = _emphasis(text, label, found.end())
    stop = len(text.rstrip(" \t\0")) if text[after:].strip(" \t\0") else after
    end = stop
    if closing and text.endswith(closing, after, stop):
        end = after + len(text[after : stop - len(closing)].rstrip())
    start = end - len(text[after:end].lstrip(" \t\0"))
    bare = _bare(_CONTROL.sub(" ", text[start:end].replace(_HIDDEN, "")))
    plain = label.strip("*_ \t").casefold() == key and not closing
    return _Bullet(
        key=key,
        value=None if _is_placeholder(bare) else bare,
        line=line,
        marker=found["marker"],
        label=text[:after] if plain else None,
        start=line.start + start,
        end=line.start + end,
        stop=line.start + stop,
    )


def _emphasis(text: str, label: str, after: int) -> tuple[int, str]:
    """Where the label ends, and the mark that closes its emphasis only behind the value (`**Name: Kate**`)."""
    closing = label[: len(label) - len(label.lstrip("*_"))][::-1]
    if not closing or label.rstrip().endswith(("*", "_")):
        return after, ""
    return (after + len(closing), "") if text.startswith(closing, after) else (after, closing)


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


# -- writing: every edit is tried in order of how little it changes, and read back ------------------------------------


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


def _write_one(text: str, key: str, value: str | None) -> str:
    before = parse(text)
    if getattr(before, key) == value:
        return text
    wanted = replace(before, **{key: value})
    for edited in _without(text, key) if value is None else _with(text, key, value):
        if parse(edited) == wanted:
            return edited
    raise BadArguments(f"{key} cannot be written into this text without changing more than its line")


def _with(text: str, key: str, value: str) -> Iterator[str]:
    lines = list(_lines(text))
    bullets = list(_bullets(lines))
    mine = [bullet for bullet in bullets if bullet.key == key]
    if mine:
        one = next((bullet for bullet in reversed(mine) if bullet.value is not None), mine[-1])
        gap = " " if one.start == one.end else ""
        yield text[: one.start] + gap + value + text[one.end :]
        yield text[: one.line.start] + f"{_label(one.marker, key)} {value}" + text[one.stop :]
    elif bullets:
        last = bullets[-1]
        for label in (_imitation(last, key), _label(last.marker, key)):
            yield _inserted(text, lines, last.line, f"{label} {value}")
    elif heading := next((line for line in lines if line.live and heading_of(line.text)), None):
        yield _inserted(text, lines, heading, f"{_label('- ', key)} {value}", apart=True)
    else:
        yield _on_top(text, lines, f"{_label('- ', key)} {value}")


def _label(marker: str, key: str) -> str:
    return f"{marker}**{key.title()}:**"


def _imitation(bullet: _Bullet, key: str) -> str:
    """The label of a new bullet in the manner of its neighbour: list mark, bold, colon and case."""
    if bullet.label is None:
        return _label(bullet.marker, key)
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
    place, blank = lines[after], eol if apart else ""
    if not place.ending:
        return text + eol + blank + new
    follows = after + 1 < len(lines) and lines[after + 1].text.strip()
    return text[: place.next] + blank + new + eol + (blank if follows else "") + text[place.next :]


def _on_top(text: str, lines: Sequence[_Line], new: str) -> str:
    at = lines[0].start if lines else len(text)
    eol = newline_of(text)
    before = eol if text[:at].strip(BOM) and text[at - 1] != "\n" else ""
    blank_after = eol if lines and lines[0].text.strip() else ""
    return text[:at] + before + new + eol + blank_after + text[at:]


def _without(text: str, key: str) -> Iterator[str]:
    gone = [bullet.line for bullet in _bullets(_lines(text)) if bullet.key == key and bullet.value is not None]
    # An empty line stays where its removal would turn the rest into something else (front matter, for example).
    for whole in (True, False):
        shorter = text
        for line in reversed(gone):
            end = text.rindex("<!--", line.start, line.end) if line.open else line.next if whole else line.end
            shorter = shorter[: line.start] + shorter[end:]
        yield shorter if text.endswith("\n") or not whole else re.sub(r"\r?\n\Z", "", shorter)


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
    """The peers a file names, also those in one section of an operating guide. The first of two with one id counts.

    A peer is an item of the form `**id**: description` or `id — description` directly under a heading that names peers.
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

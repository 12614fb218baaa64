"""Who the agent is: which source gives its name and other fields, its avatar, and the soul it wears. Pure.

Promise: the first source that has a field gives it; no absolute path is ever shown; the same rule, wall clock and dice
give the same soul, the daily window beats chance, and the dice is rolled only where chance decides. A missing soul
falls back with a sentence. Not here: the documents (gather) and what they declare (fields), the record of what was worn
(sessions).
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64decode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote_to_bytes

from anima.config import AgentConfig, IdentityConfig
from anima.errors import BadArguments, BadConfig, BadPath, NotFound, printable
from anima.model import DocPath
from anima.prompt.fields import CONTROL, FIELDS, IdentityFields, one_line

if TYPE_CHECKING:
    from random import Random  # only the type: the dice comes in by hand

MAX_NAME = 50
MAX_AVATAR_BYTES = 2 * 1024 * 1024
AVATAR_EXTENSIONS = ("png", "jpg", "jpeg", "gif", "webp", "svg")
DEFAULT_NAME = "Assistant"
DEFAULT_AVATAR = "A"
SOUL = "SOUL.md"
DAY = timedelta(days=1)


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

    @property
    def fields(self) -> IdentityFields:
        found = {key: getattr(self, key) for key in FIELDS}
        return IdentityFields(**{key: sourced.value for key, sourced in found.items() if sourced})


Fields = IdentityFields | IdentityConfig | AgentConfig  # a configuration has some of the six


def resolve(overrides: Iterable[tuple[str, Fields]]) -> Resolved:
    """The first source that has a field gives it: interface, agent configuration, IDENTITY.md, in the order given. An
    agent that is not the home's default one puts the interface override last. Where no source has an avatar, its emoji
    stands in before the next source is asked; where none has an emoji, an avatar that is one does."""
    chain = [(source, {key: one_line(getattr(given, key, "") or "") for key in FIELDS}) for source, given in overrides]

    def each(*keys: str) -> list[SourcedValue]:
        said = ((source, values[key]) for source, values in chain for key in keys)
        return [SourcedValue(value=value, source=source) for source, value in said if value]

    names = [replace(name, value=name.value[:MAX_NAME].rstrip()) for name in each("name")[:1]]
    avatars = (*each("avatar", "emoji"), SourcedValue(value=DEFAULT_AVATAR, source="default"))
    short = (found for key in ("emoji", "avatar") for found in each(key) if len(found.value) <= 16)
    emojis = [e for e in short if not (e.value.isascii() or _PATHLIKE.search(e.value) or ":" in e.value)]
    others = {key: next(iter(each(key)), None) for key in ("creature", "vibe", "theme")}
    return Resolved(
        name=names[0] if names else SourcedValue(value=DEFAULT_NAME, source="default"),
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

_AT = re.compile(r"([0-9]{1,2}):([0-9]{2})")
_DURATION = re.compile(r"(?:([0-9]{1,6})d)?\s*(?:([0-9]{1,6})h)?\s*(?:([0-9]{1,6})m)?\s*(?:([0-9]{1,6})s)?", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaRule:
    """When the alternate soul is worn: by chance, in a daily window, or both. The default is never."""

    file: str = "SOUL_EVIL.md"
    chance: float = 0.0
    at: time | None = None
    duration: timedelta | None = None

    def __post_init__(self) -> None:
        if not DocPath.parse(self.file).is_markdown:
            raise BadConfig(f"{printable(self.file)} is not a Markdown file", where="persona.file")
        if (self.at is None) != (self.duration is None):
            given, lacking = ("at", "duration") if self.duration is None else ("duration", "at")
            raise BadConfig(f"a window needs persona.{lacking} too", where=f"persona.{given}")

    def holds(self, clock: time) -> bool:
        """Whether the daily window is open at this hour."""
        if self.at is None or self.duration is None:
            return False
        since = datetime.combine(date.min, clock) - datetime.combine(date.min, self.at)
        return since % DAY < self.duration

    @classmethod
    def of(cls, *, file: str = "SOUL_EVIL.md", chance: float = 0.0, at: str = "", duration: str = "") -> PersonaRule:
        """The rule as the configuration writes it, where an empty text means nothing. Raises BadConfig."""
        return cls(
            file=file,
            chance=chance,
            at=parse_at(at) if at else None,
            duration=parse_duration(duration) if duration else None,
        )


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


def parse_at(text: str) -> time:
    """An hour of the day such as `23:30`. Raises BadConfig."""
    found = _AT.fullmatch(text.strip())
    if not found or int(found[1]) > 23 or int(found[2]) > 59:
        raise BadConfig(f"{printable(text)!r} is not an hour of the day", where="persona.at", hint="write it as 23:30")
    return time(int(found[1]), int(found[2]))


def parse_duration(text: str) -> timedelta:
    """A length of time such as `30m`, `1h30m`, `45s` or `2d`. Raises BadConfig, also for zero."""
    found = _DURATION.fullmatch(text.strip())
    parts = [int(part or 0) for part in found.groups()] if found else []
    if not any(parts):
        wrong = f"{printable(text)!r} is not a length of time"
        raise BadConfig(wrong, where="persona.duration", hint="write it as 30m or 1h30m")
    days, hours, minutes, seconds = parts
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def decide(rule: PersonaRule, now: datetime, dice: Random) -> Decision:
    """Whether the alternate soul is worn at `now`, an aware time in the user's timezone. The window is one of the wall
    clock: when the clocks go back, an hour that comes twice counts twice; when they go forward, an hour that is skipped
    does not come."""
    if now.utcoffset() is None:
        raise BadArguments("the time must say its timezone, and that must be the user's")
    if rule.holds(now.time()):
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

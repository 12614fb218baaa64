"""`anima.toml`, environment and flags as one frozen configuration that knows where each value came from.

Promise: an unknown key is an error that names the nearest known one; a value of the wrong type or range is an error
that names the key. In a home that is not trusted the file may only make things stricter: whatever could loosen a rule or name
an endpoint is left at its default and said. Not here: reading the file (store), the list of trusted homes (layout.trust).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple

from anima.errors import BadConfig, BadPath, meant
from anima.model import HOSTED, OWN_FILE, OWNERS_OWN, DocPath, OutsideServer, Scope, fold
from anima.text.dates import between, cron, interval, parse_at, parse_duration, timezone

FILE = "anima.toml"
_LISTED = "anima config lists the keys"
DIALECT_NAMES = ("auto", "anima", "openclaw", "nexo", "carapace", "ironclaw", "agentscope")
OTHERS_WORDS = frozenset("users groups agents unreviewed sessions".split())  # folders where others write at will
PRESETS = ("open", "guarded", "strict")  # from the loosest to the strictest


# Sections are named tuples: a dozen dataclasses would cost a cold start more than reading the whole home does.
class IdentityConfig(NamedTuple):
    name: str = ""
    emoji: str = ""
    avatar: str = ""


class Additional(NamedTuple):
    """An extra file for the prompt, and the scopes that see it: never wider than the file it is a copy of."""

    path: str
    scopes: frozenset[Scope] = frozenset({Scope.MAIN, Scope.CRON, Scope.HEARTBEAT})


class PromptConfig(NamedTuple):
    file_chars: int | None = None  # None: what the dialect says
    total_chars: int | None = None
    memory_tokens: int | None = None
    additional: tuple[Additional, ...] = ()
    extra: str = ""
    order: str = "stable"
    freeze: str = "session"
    style: str = "markdown"


class PersonaConfig(NamedTuple):
    """When the alternate soul is worn: by chance, in a daily window, or both. The default is never."""

    file: str = "SOUL_EVIL.md"
    chance: float = 0.0
    at: str = ""
    duration: str = ""


class Rule(NamedTuple):
    """A rule of the owner's for the gate. `when` holds conditions that must all be met; see docs/gate.md."""

    id: str
    when: tuple[tuple[str, Any], ...] = ()
    then: str = "ask"
    reason: str = ""

    @property
    def text(self) -> str:
        """As anima.toml holds it."""
        when = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in self.when)
        return f'[[gate.rule]]\nid = "{self.id}"\nwhen = {{ {when} }}\nthen = "{self.then}"\n'


class GateConfig(NamedTuple):
    preset: str = ""  # empty: the dialect's own, which is guarded, or strict for carapace
    rule: tuple[Rule, ...] = ()


class HistoryConfig(NamedTuple):
    enabled: bool = True


class SessionsConfig(NamedTuple):
    dir: str = "sessions"
    redact: bool = True
    patterns: tuple[str, ...] = ()
    window: int = 200_000
    reserve: int = 20_000
    soft: int = 4_000


class IndexConfig(NamedTuple):
    embedder: str = "static"
    model: str = ""
    url: str = ""


class DreamConfig(NamedTuple):
    enabled: bool = True
    at: str = "0 3 * * *"
    preset: str = "anima"


class SnapshotConfig(NamedTuple):
    at: str = "0 4 * * 0"  # empty: never by itself
    keep: int = 30
    days: int = 90
    dir: str = ""  # empty: .anima/snapshots
    recipients: tuple[str, ...] = ()


class LayersConfig(NamedTuple):
    """A template below this home, and for which paths another one lies there, or none."""

    lower: str = ""
    routes: tuple[tuple[str, str], ...] = ()


class TidyConfig(NamedTuple):
    days: int = 90
    folders: tuple[tuple[str, int], ...] = ()  # (folder, days); 0 days is never


class RitualsConfig(NamedTuple):
    """What an agent may do unattended, once its owner has switched the schedule on (`anima schedule on`)."""

    heartbeat: str = "30m"  # an interval or a cron expression; empty: never
    active: str = ""  # hours such as 08:00-23:00, which may pass midnight; empty: always
    quiet: str = ""
    model: str = ""  # empty: the one that is used
    day_tokens: int = 100_000  # in a day, for everything unattended
    run_tokens: int = 20_000  # in one run


class ChannelsConfig(NamedTuple):
    """Who beside the owner is answered on channels that the owner has switched on (`anima channel`)."""

    others: str = "all"  # all, groups or none
    day_tokens: int = 100_000  # in a day, for all of them together


class AgentConfig(NamedTuple):
    """One of several agents in a configuration, with a home of its own."""

    id: str
    home: str = ""
    name: str = ""
    emoji: str = ""
    avatar: str = ""
    allowed_delegates: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ("*",)
    workspace_access: str = "rw"
    tools: tuple[OutsideServer, ...] = ()


class Binding(NamedTuple):
    """Which agent a message goes to: the first binding whose given fields all fit."""

    agent: str
    channel: str = ""
    account: str = ""
    chat: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings of one home. `sources` says where each value came from, `ignored` what an untrusted file asked for."""

    dialect: str = "auto"
    timezone: str = ""
    owner: tuple[str, ...] = ()
    own_tools: tuple[str, ...] = ()
    clean_agents: tuple[str, ...] = ()
    identity: IdentityConfig = field(default_factory=IdentityConfig)
    prompt: PromptConfig = field(default_factory=PromptConfig)
    persona: PersonaConfig = field(default_factory=PersonaConfig)
    gate: GateConfig = field(default_factory=GateConfig)
    history: HistoryConfig = field(default_factory=HistoryConfig)
    sessions: SessionsConfig = field(default_factory=SessionsConfig)
    index: IndexConfig = field(default_factory=IndexConfig)
    dream: DreamConfig = field(default_factory=DreamConfig)
    snapshot: SnapshotConfig = field(default_factory=SnapshotConfig)
    layers: LayersConfig = field(default_factory=LayersConfig)
    tidy: TidyConfig = field(default_factory=TidyConfig)
    rituals: RitualsConfig = field(default_factory=RitualsConfig)
    channels: ChannelsConfig = field(default_factory=ChannelsConfig)
    agent: tuple[AgentConfig, ...] = ()
    binding: tuple[Binding, ...] = ()
    trusted: bool = True
    sources: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[tuple[str, str], ...] = ()

    def rows(self) -> list[tuple[str, Any, str]]:
        """(key, value, where it came from) for every key, in the order of the manual."""
        return [(key, self.value(key), self.sources.get(key, "default")) for key in _KEYS]

    def value(self, key: str) -> Any:
        section, _, name = key.rpartition(".")
        return getattr(getattr(self, section), name) if section else getattr(self, name)


_SECTIONS: dict[str, Any] = {each.name: each.default_factory for each in fields(Config) if each.type.endswith("Config")}


class _Key(NamedTuple):
    """How one key is read (`read` raises ValueError with a sentence), and when an untrusted file may set it."""

    read: Callable[[Any], Any]
    strict: Callable[[Any], bool] = lambda _: True


def load(
    text: str | None,
    *,
    env: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
    trusted: bool,
    own: str | None = None,
) -> Config:
    """The configuration from the file's text (None: no file), ANIMA_* variables, and flags such as `prompt.style`. `own` is
    the text of the owner's own file, outside of every home, which alone says what no home may say. Where homes are HOSTED,
    that file is nobody's of theirs, and no home names what is the machine's."""
    is_hosted = bool(env.get(HOSTED))
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    ignored: list[tuple[str, str]] = []
    for key, raw in _from_file(text).items():
        value = _checked(key, raw, FILE)
        if key in OWNERS_OWN:
            ignored.append((key, f"it counts in your own {OWN_FILE} alone, never in a home's file"))
            continue
        if not trusted and key == "gate.rule":
            # A rule that asks is no safer: it would speak before a built-in one that denies.
            ignored += [(f"gate.rule {rule.id}", "a rule that does not deny") for rule in value if rule.then != "deny"]
            value = tuple(rule for rule in value if rule.then == "deny")
        elif (not trusted or (is_hosted and key in _MACHINES)) and not _KEYS[key].strict(value):
            ignored.append((key, f"{_named(raw)} could make things looser than they are by default"))
            continue
        values[key], sources[key] = value, FILE
    for key, raw in _from_file(None if is_hosted else own, OWN_FILE).items():
        if key not in OWNERS_OWN:
            raise BadConfig(f"{key} belongs into a home's {FILE}", where=OWN_FILE)
        values[key], sources[key] = _checked(key, raw, OWN_FILE), OWN_FILE
    known, prefixes = _variables(), tuple(f"ANIMA_{section.upper()}_" for section in _SECTIONS)
    for name in env:
        if name in known:
            values[known[name]], sources[known[name]] = _checked(known[name], env[name], name), name
        elif name.startswith(prefixes):  # it looks like a setting, and is none
            raise BadConfig(f"there is no such setting; {meant(name, known, _LISTED)}", where=name)
    for key, raw in (flags or {}).items():
        values[key], sources[key] = _checked(key, raw, "settings"), "flag"
    parts: dict[str, Any] = {key: value for key, value in values.items() if "." not in key}
    for section, kind in _SECTIONS.items():
        own_keys = {key.partition(".")[2]: v for key, v in values.items() if key.startswith(f"{section}.")}
        parts[section] = kind(**own_keys)
    for told_file in (parts["persona"].file, *(each.path for each in parts["prompt"].additional)):
        if fold(told_file).startswith(fold(parts["sessions"].dir) + "/"):
            raise BadConfig(f"{_named(told_file)} is a transcript (sessions.dir), which no prompt is told", where=FILE)
    return Config(**parts, sources=sources, ignored=tuple(ignored), trusted=trusted)


def _from_file(text: str | None, where: str = FILE) -> dict[str, Any]:
    """The file flattened to dotted keys. Raises BadConfig with the line for broken TOML."""
    if text is None:
        return {}
    try:
        table = tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        hint = "mend it in an editor; nothing was changed"
        raise BadConfig(f"this is not TOML: {error}", where=where, hint=hint) from None
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if name in _SECTIONS and isinstance(value, dict):
            flat |= {f"{name}.{key}": item for key, item in value.items()}
        elif name in _SECTIONS:
            raise BadConfig(f"{name} is a table: write [{name}]", where=where)
        else:
            flat[name] = value
    for key in flat:
        _known(key, where)
    return flat


def _known(key: str, where: str) -> _Key:
    if key in _KEYS:
        return _KEYS[key]
    raise BadConfig(f"there is no key {key!r}; {meant(key, [*_KEYS, *_SECTIONS], _LISTED)}", where=where)


def _checked(key: str, raw: Any, where: str) -> Any:
    known = _known(key, where)
    try:
        return known.read(raw)
    except (ValueError, BadPath, BadConfig) as error:
        raise BadConfig(f"{key}: {error}", where=where, hint=getattr(error, "hint", None)) from None


@cache
def _variables() -> dict[str, str]:
    """ANIMA_PROMPT_FILE_CHARS and so on, for the keys a single line of text can hold."""
    tables = {"agent", "binding", "gate.rule", "tidy.folders", "layers.routes", *OWNERS_OWN}
    return {"ANIMA_" + key.upper().replace(".", "_"): key for key in _KEYS if key not in tables}


# Readers: a raw value (of TOML, or text from the environment) → value, or ValueError with a sentence.
def _text(raw: Any) -> str:
    if not isinstance(raw, str):
        raise ValueError(f"this must be text, not {_named(raw)}")
    return raw


def _flag(raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if isinstance(raw, str) and raw.casefold() in words:
        return words[raw.casefold()]
    raise ValueError(f"this must be true or false, not {_named(raw)}")


def _number(low: int, high: int) -> Callable[[Any], int]:
    def read(raw: Any) -> int:
        if isinstance(raw, str) and re.fullmatch(r"\d{1,12}", raw):
            raw = int(raw)
        if isinstance(raw, bool) or not isinstance(raw, int) or not low <= raw <= high:
            raise ValueError(f"this must be a whole number from {low:,} to {high:,}, not {_named(raw)}")
        return raw

    return read


def _share(raw: Any) -> float:
    with suppress(TypeError, ValueError):
        if not isinstance(raw, bool) and 0 <= (value := float(raw)) <= 1:
            return value
    raise ValueError(f"this must be a number from 0 to 1, not {_named(raw)}")


def _one_of(*names: str) -> Callable[[Any], str]:
    def read(raw: Any) -> str:
        if raw in names:
            return str(raw)
        wrong = f"this must be one of {', '.join(names)}, not {_named(raw)}"
        raise ValueError("; ".join(filter(None, (wrong, meant(str(raw), names, near=0.6)))))

    return read


def _texts(raw: Any) -> tuple[str, ...]:
    if isinstance(raw, str):
        raw = [item.strip() for item in raw.split(",") if item.strip()]
    if not isinstance(raw, list | tuple):
        raise ValueError(f"this must be a list of texts, not {_named(raw)}")
    return tuple(_text(item) for item in raw)


def _read_by(look: Callable[[str], object]) -> Callable[[Any], str]:
    """A text that may be empty, and else is one that `look` can read."""

    def read(raw: Any) -> str:
        if text := _text(raw).strip():
            look(text)
        return text

    return read


def told(raw: Any) -> str:
    """The place of a file whose words go into prompts: nowhere where others than the owner write at will."""
    place = DocPath.parse(_text(raw))
    if place.key.partition("/")[0] in OTHERS_WORDS:
        said = "holds what others said, which no prompt is told as yours; keep it elsewhere first"
        raise ValueError(f"{_named(raw)} {said}")
    return place.text


def _additional(raw: Any) -> tuple[Additional, ...]:
    raw = _texts(raw) if isinstance(raw, str) else raw
    if not isinstance(raw, list | tuple):
        raise ValueError(f"this must be a list of files, not {_named(raw)}")
    entries = [{"path": each} if isinstance(each, str) else each for each in raw]
    given = [each._asdict() if isinstance(each, Additional) else each for each in entries]
    return _tables(Additional, "path", {"path": told, "scopes": _scopes})(given)


def _scopes(raw: Any) -> frozenset[Scope]:
    return frozenset(Scope(_one_of(*Scope)(name)) for name in (raw if isinstance(raw, frozenset) else _texts(raw)))


def _tables(kind: Any, required: str, readers: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], tuple[Any, ...]]:
    known = list(kind._fields)

    def read_one(raw: Any) -> Any:
        if not isinstance(raw, dict):
            raise ValueError("each entry is a table")
        for key in raw:
            if key not in known:
                raise ValueError("; ".join(filter(None, (f"there is no key {key!r}", meant(key, known, near=0.6)))))
        if not raw.get(required):
            raise ValueError(f"an entry needs {required!r}")
        return kind(**{key: (readers.get(key) or _text)(value) for key, value in raw.items()})

    def read(raw: Any) -> tuple[Any, ...]:
        if not isinstance(raw, Iterable) or isinstance(raw, str | dict):
            raise ValueError("this must be a list of tables")
        entries = [read_one(item) for item in raw]
        times = Counter(getattr(entry, required) for entry in entries if required in ("id", "name"))
        if twice := next((name for name, count in times.items() if count > 1), None):
            raise ValueError(f"two entries have the {required} {twice!r}")
        return tuple(entries)

    return read


def _variables_of(raw: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(raw, dict):
        raise ValueError('this must be a table of variables, such as {LANG = "C", TOKEN = "$MAIL_TOKEN"}')
    return tuple((name, _text(value)) for name, value in raw.items())


def _servers(raw: Any) -> tuple[OutsideServer, ...]:
    lists = dict.fromkeys(("args", "only", "reads"), _texts)
    read = _tables(OutsideServer, "name", {**lists, "env": _variables_of, "scopes": _scopes})
    found: tuple[OutsideServer, ...] = read(raw)
    for server in found:
        if not re.fullmatch(r"[a-z][a-z0-9]{0,19}", server.name):
            raise ValueError(f"{_named(server.name)}: a server's name is up to 20 small letters and digits")
        if bool(server.command) == bool(server.url):
            raise ValueError(f"{server.name}: a server has a command or a url, and not both")
        if server.url and not re.match(r"https?://[^/?#@\s]+(?:[/?]|$)", server.url):
            raise ValueError(f"{server.name}: {_named(server.url)} is no address of a server")
        if server.bearer and not re.match(r"https:|http://(?:127\.0\.0\.1|localhost|\[::1\])[:/]", server.url):
            raise ValueError(f"{server.name}: a token travels over https, or stays on this machine")
    return found


def _agents(raw: Any) -> tuple[AgentConfig, ...]:
    """`[[agent]]`, each with its `[[agent.tools]]`; where there is one agent alone, `[[agent.tools]]` is enough."""
    readers: dict[str, Callable[[Any], Any]] = {"allowed_delegates": _texts, "allowed_tools": _texts, "tools": _servers}
    readers["workspace_access"] = _one_of("rw", "ro", "none")
    whole = [{"id": "main", **raw}] if isinstance(raw, dict) else raw
    return _tables(AgentConfig, "id", readers)(whole)


def _folders(raw: Any) -> tuple[tuple[str, int], ...]:
    if not isinstance(raw, dict):
        raise ValueError('this must be a table of folders, such as {"notes/" = 365}')
    return tuple(
        (DocPath.parse(_text(folder).rstrip("/")).text, _number(0, 36_500)(days)) for folder, days in raw.items()
    )


def _patterns(raw: Any) -> tuple[str, ...]:
    found = _texts(raw)
    for pattern in found:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"{_named(pattern)} is not a regular expression: {error}") from None
    return found


def _conditions(raw: Any) -> tuple[tuple[str, Any], ...]:
    if not isinstance(raw, dict):
        raise ValueError("`when` is a table of conditions")
    return tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in sorted(raw.items()))


def _named(raw: Any) -> str:
    return repr(raw)[:60]


def _at_most(limit: int) -> Callable[[Any], bool]:
    return lambda value: value <= limit


def _local(avatar: str) -> bool:
    """Whether showing an avatar asks nobody else: a file of the home, a letter, an emoji or the picture itself."""
    return not avatar.strip().casefold().startswith(("http:", "https:", "//"))


# What a home's owner may say only on a machine of their own: folders, programs, addresses, models, and what runs for ever.
_MACHINES = frozenset(
    "agent index.embedder index.model index.url layers.lower layers.routes rituals.model sessions.patterns snapshot.at "
    "snapshot.dir snapshot.recipients".split()
)
_KEYS: dict[str, _Key] = {
    "dialect": _Key(_one_of(*DIALECT_NAMES)),
    "timezone": _Key(lambda raw: timezone(raw).key if _text(raw) else ""),
    # Or a folder from somebody else could say whose it is, and that what the web tells is the owner's.
    **dict.fromkeys(("owner", "own_tools", "clean_agents"), _Key(_texts, lambda value: not value)),
    **dict.fromkeys(("identity.name", "identity.emoji"), _Key(_text)),
    "identity.avatar": _Key(_text, _local),
    "prompt.file_chars": _Key(_number(1, 10_000_000), _at_most(100_000)),
    "prompt.total_chars": _Key(_number(1, 100_000_000), _at_most(400_000)),
    "prompt.memory_tokens": _Key(_number(0, 10_000_000), _at_most(100_000)),
    "prompt.additional": _Key(_additional, lambda files: all(f.scopes <= Additional(path="x").scopes for f in files)),
    "prompt.extra": _Key(_text),
    "prompt.order": _Key(_one_of("stable", "seed")),
    "prompt.freeze": _Key(_one_of("session", "turn")),
    "prompt.style": _Key(_one_of("markdown", "xml")),
    "persona.file": _Key(told, lambda value: value == PersonaConfig().file),  # groups are shown what is worn
    "persona.chance": _Key(_share),
    "persona.at": _Key(_read_by(parse_at)),
    "persona.duration": _Key(_read_by(parse_duration)),
    "gate.preset": _Key(_one_of("", *PRESETS), lambda value: value in ("", "strict")),  # guarded loosens carapace
    "gate.rule": _Key(_tables(Rule, "id", {"when": _conditions, "then": _one_of("allow", "ask", "deny")})),
    "history.enabled": _Key(_flag, bool),
    # Another folder may be a searched one.
    "sessions.dir": _Key(
        lambda raw: DocPath.parse(_text(raw)).text if raw != "" else "", lambda value: value in ("", "sessions")
    ),
    "sessions.redact": _Key(_flag, bool),
    "sessions.patterns": _Key(_patterns, lambda value: not value),  # an expression can be made to run for ever
    "sessions.window": _Key(_number(1_000, 100_000_000)),
    **dict.fromkeys(("sessions.reserve", "sessions.soft"), _Key(_number(0, 100_000_000))),
    "index.embedder": _Key(_text, lambda value: value in ("static", "mock", "none")),
    **dict.fromkeys(("index.model", "index.url"), _Key(_text, lambda value: not value)),
    "dream.enabled": _Key(_flag),
    "dream.at": _Key(_read_by(cron)),
    "dream.preset": _Key(_one_of("anima", "nexo", "openclaw")),
    "snapshot.at": _Key(_read_by(cron), lambda value: not value),  # another hour could be every minute
    "snapshot.keep": _Key(_number(1, 100_000), lambda value: value >= 30),
    "snapshot.days": _Key(_number(1, 100_000), lambda value: value >= 90),
    "snapshot.dir": _Key(_text, lambda value: not value),
    "snapshot.recipients": _Key(_texts, lambda value: not value),
    "layers.lower": _Key(_text, lambda value: not value),  # a stranger's home would read any folder of yours
    "layers.routes": _Key(_variables_of, lambda value: not value),
    "tidy.days": _Key(_number(1, 36_500), lambda value: value >= TidyConfig().days),
    "tidy.folders": _Key(_folders, lambda value: not any(days for _, days in value)),  # 0 keeps; a number moves
    "rituals.heartbeat": _Key(_read_by(interval), lambda value: not value),
    **dict.fromkeys(("rituals.active", "rituals.quiet"), _Key(_read_by(between))),
    "rituals.model": _Key(_text, lambda value: not value),
    "rituals.day_tokens": _Key(_number(0, 1_000_000_000), _at_most(RitualsConfig().day_tokens)),
    "rituals.run_tokens": _Key(_number(0, 100_000_000), _at_most(RitualsConfig().run_tokens)),
    "channels.others": _Key(_one_of("all", "groups", "none")),
    "channels.day_tokens": _Key(_number(0, 1_000_000_000), _at_most(ChannelsConfig().day_tokens)),
    "agent": _Key(
        _agents, lambda agents: all(not (a.home or a.allowed_delegates or a.tools) and _local(a.avatar) for a in agents)
    ),
    "binding": _Key(_tables(Binding, "agent", {}), lambda value: not value),
}

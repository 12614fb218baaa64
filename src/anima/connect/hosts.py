"""Hosts: the programs that people's agents run in: what each is told (which program to start, for which home, under which configuration),
which of its files are changed, where it writes conversations down, and what the person does next; and a host's file as text: a member
or an element of its JSON, a block or lines of ours in its TOML or YAML, is put in or taken out.

Promise: pure. Words are the same at every connecting, since some hosts trust a hook by its very words; that a hook is trusted is never
written. A member of our name that is not for this home is refused, never replaced. Nothing else in a file changes: comments, commas at
ends, single quotes and names without quotes are read as hosts read them; order, blanks and line ends stay, also what was written behind
ours. What was put in is taken out by the same span, or the same marks. What is no such file, holds something else where a list or an
object should be, or has a table of our name already, raises BadInput, and nothing is changed. Not here: connecting, and files
(connections), the rows of hosts (tables/hosts.toml) and the files they are given (tables/bundle.toml).
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from anima import __version__
from anima.connect import EVENTS, place_of
from anima.errors import BadInput
from anima.text import read_table


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEdit:
    """How one file of a host's is changed: `put` gives its text with what is ours, `take` without; a `whole` one is ours alone."""

    path: Path
    put: Callable[[str], str]
    take: Callable[[str], str]
    whole: bool = False


_SKIP = re.compile(r"(?:\s+|//[^\n]*|/\*[\s\S]*?\*/)*")
_WORD = re.compile(r"""\"(?:[^"\\]|\\[\s\S])*\"|'(?:[^'\\]|\\[\s\S])*'|[^\s,:\[\]{}'"/]+""")
_WORDS = {"true": True, "false": False, "null": None}
_BREAK = re.compile(r",\n\s+")
_TEXTS = re.compile(r'\[\n\s+("(?:[^"\\]|\\.)*"(?:,\n\s+"(?:[^"\\]|\\.)*")*)\n\s*\]')


@dataclass(slots=True)
class JsonNode:
    """A value with where it stands; its `parts`, of an object by name, of a list by place, each with where it begins."""

    start: int
    end: int
    value: Any
    parts: dict[str | int, tuple[int, JsonNode]] = field(default_factory=dict)


def parse(text: str) -> JsonNode:
    """The file's value. Raises BadInput."""
    start = _after(text, 1 if text.startswith("\ufeff") else 0)
    try:
        node = _value(text, start, 0)
    except (IndexError, ValueError, RecursionError):
        raise BadInput("it cannot be read as JSON") from None
    if _after(text, node.end) != len(text):
        raise BadInput("it cannot be read as JSON")
    return node


def _after(text: str, at: int) -> int:
    found = _SKIP.match(text, at)
    return found.end() if found else at


def _word(text: str, at: int) -> tuple[str, int]:
    """A text in either kind of quotes as JSON writes it, or a name, number or word without any; and where it ends."""
    found = _WORD.match(text, at)
    if found is None:
        raise ValueError
    word = found[0]
    if word[0] == "'":
        word = '"' + word[1:-1].replace("\\'", "'").replace('"', '\\"') + '"'
    return word, found.end()


def _value(text: str, at: int, depth: int) -> JsonNode:
    """A value. An object and a list are read alike, but for the names of members."""
    if depth > 100:
        raise ValueError
    if text[at] not in "{[":
        word, end = _word(text, at)
        if word[0] == '"':
            return JsonNode(at, end, str(json.loads(word, strict=False)))
        number = float if any(sign in word for sign in ".eE") else partial(int, base=0)
        return JsonNode(at, end, _WORDS[word] if word in _WORDS else number(word))
    closing = "}" if text[at] == "{" else "]"
    node, here = JsonNode(at, at, None), _after(text, at + 1)
    while text[here] != closing:
        start, key = here, cast("str | int", len(node.parts))
        if closing == "}":
            word, end = _word(text, here)
            key, here = str(json.loads(word, strict=False)) if word[0] == '"' else word, _after(text, end)
            if text[here] != ":":
                raise ValueError
            here = _after(text, here + 1)
        found = _value(text, here, depth + 1)
        node.parts[key] = (start, found)
        here = _after(text, found.end)
        if text[here] == ",":
            here = _after(text, here + 1)
        elif text[here] != closing:
            raise ValueError
    values = {key: found.value for key, (_, found) in node.parts.items()}
    node.value, node.end = values if closing == "}" else list(values.values()), here + 1
    return node


def put(text: str, path: Sequence[str], value: object) -> str:
    """The text with a member put in, or another value in its place; objects on the way are made where they are missing."""
    node = parse(text)
    for depth, name in enumerate(path):
        if not isinstance(node.value, dict):
            raise BadInput(f"{'.'.join(path[:depth]) or 'the file'} is no object")
        if name not in node.parts:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _added(text, node, f"{json.dumps(name)}: ", value, depth + 1)
        node = node.parts[name][1]
    if node.value == value:
        return text
    return text[: node.start] + _drawn(text, value, len(path)) + text[node.end :]


def put_item(text: str, path: Sequence[str], value: object) -> str:
    """The text with an element at the end of a list, which is made where it is missing; unless it holds it already."""
    node = _found(parse(text), path)
    if node is None:
        return put(text, path, [value])
    if not isinstance(node.value, list):
        raise BadInput(f"{'.'.join(path)} is no list")
    return text if value in node.value else _added(text, node, "", value, len(path) + 1)


def take(text: str, path: Sequence[str]) -> str:
    """The text without a member; as it is where there is none."""
    node = _found(parse(text), path[:-1])
    return text if node is None or path[-1] not in node.parts else _without(text, node, path[-1])


def take_item(text: str, path: Sequence[str], value: object) -> str:
    """The text without an element of a list; as it is where there is none."""
    node = _found(parse(text), path)
    if node is None or not isinstance(node.value, list) or value not in node.value:
        return text
    return _without(text, node, node.value.index(value))


def at(text: str, path: Sequence[str]) -> Any:
    """The value that stands there; None where there is none."""
    node = _found(parse(text), path)
    return node.value if node else None


def _found(node: JsonNode | None, path: Sequence[str]) -> JsonNode | None:
    for name in path:
        node = node.parts[name][1] if node and name in node.parts else None
    return node


def _added(text: str, node: JsonNode, name: str, value: object, depth: int) -> str:
    """With something put in behind the last member or element of a node."""
    newline, step, drawn = _newline(text), _step(text), name + _drawn(text, value, depth)
    if not node.parts:
        inside = f"{newline}{step * depth}{drawn}{newline}{step * (depth - 1)}"
        return text[: node.start + 1] + inside + text[node.end - 1 :]
    begins, last = list(node.parts.values())[-1]
    line = text.rfind("\n", 0, begins) + 1
    before = text[line:begins]  # the blanks of a line of its own, or what else stands before it
    lead = " " if not line or before.strip() else f"{newline}{before}"
    return f"{text[: last.end]},{lead}{drawn}{text[last.end :]}"


def _without(text: str, node: JsonNode, key: str | int) -> str:
    """Without a member or element: with the comma before it, or, of the first, with the one after it."""
    start, taken = node.parts[key]
    others = [found.end for at, found in node.parts.values() if at < start]
    before, after = _after(text, max(others)) if others else 0, _after(text, taken.end)
    if others and text[before] == ",":
        return text[:before] + text[taken.end :]
    if text[after] == ",":
        return text[:start] + text[_after(text, after + 1) :]
    return text[: node.start + 1] + text[node.end - 1 :]


def _drawn(text: str, value: object, depth: int) -> str:
    step = _step(text)
    return laid_out(value, step).replace("\n", _newline(text) + step * depth)


def laid_out(value: object, step: str = "  ") -> str:
    """A value as a person reads it: a list of texts stands on one line."""
    text = json.dumps(value, ensure_ascii=False, indent=step)
    return _TEXTS.sub(lambda found: "[" + _BREAK.sub(", ", found[1]) + "]", text)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _step(text: str) -> str:
    found = re.search(r"\{[ \t]*\r?\n([ \t]+)\S", text)
    return found[1] if found else "  "


BEGIN, END = "# anima: begin (anima connect takes this out again)", "# anima: end"
_BLOCK = re.compile(rf"(?:(?<=\n)\n)?^{re.escape(BEGIN)}$[\s\S]*?^{re.escape(END)}$\n?", re.MULTILINE)


def with_block(text: str, block: str) -> str:
    """The text with a block of ours, in place of the one that was there."""
    bare = without_block(text)
    gap = "" if not bare else "\n" if bare.endswith("\n") else "\n\n"
    return f"{bare}{gap}{BEGIN}\n{block.rstrip()}\n{END}\n"


def without_block(text: str) -> str:
    return _BLOCK.sub("", text)


def is_same(entry: object, wanted: object) -> bool:
    """Whether a server's entry serves the home that another one does."""
    args = [each.get("args") for each in (entry, wanted) if isinstance(each, dict)]
    homes = [each[-1:] for each in args if isinstance(each, list)]
    return len(homes) == 2 and homes[0] == homes[1]


def with_table(text: str, name: str, values: Mapping[str, object]) -> str:
    """The text with a TOML table such as `mcp_servers.anima`. One of ours that says something else must serve the same home."""
    ours = _BLOCK.search(text)
    if ours and not is_same(_at(_read_toml(ours[0]), name), values):
        raise BadInput(f"[{name}] is there already, and not for this home")
    if _at(_read_toml(without_block(text)), name):
        raise BadInput(f"it has a table [{name}] that is not ours")
    made = with_block(text, "\n".join([f"[{name}]", *(f"{key} = {drawn(value)}" for key, value in values.items())]))
    _read_toml(made)
    return made


def _at(there: object, name: str) -> object:
    for part in name.split("."):
        if not isinstance(there, dict):
            raise BadInput(f"{part} cannot be added to what stands there")
        there = there.get(part, {})
    return there


def _read_toml(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(f"it cannot be read as TOML ({error})") from None


def drawn(value: object) -> str:
    """A value as TOML writes it: a text, a number, a list of them, or a table in one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {drawn(each)}" for key, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


_MARK = "  # anima"  # of a line of ours in YAML


def with_lines(text: str, wanted: list[tuple[str, str, object]]) -> str:
    """A YAML file with a member in each of some top ones. Raises BadInput where it cannot be added by a line."""
    expected = _read_yaml(text)
    for top, key, value in wanted:
        inside = expected.setdefault(top, {})
        inside = expected[top] = {} if inside is None else inside
        if not isinstance(inside, dict) or inside.get(key, value) != value:
            raise BadInput(f"{top}.{key} is something else already")
        if key not in inside:
            line, inside[key] = f"{key}: {json.dumps(value, ensure_ascii=False)}{_MARK}\n", value
            if (found := re.search(rf"^{top}:[ \t]*(?:#.*)?\n(?P<indent>[ \t]*)", text, re.MULTILINE)) is None:
                gap = "" if not text or text.endswith("\n") else "\n"
                text = f"{text}{gap}{top}:{_MARK}\n  {line}"
            else:
                at = found.start("indent")
                text = f"{text[:at]}{found['indent'] or '  '}{line}{text[at:]}"
    if _read_yaml(text) != expected:
        raise BadInput("it is written in a way we do not add to; add memory.provider and mcp_servers by hand")
    return text


def without_lines(text: str) -> str:
    """The file without the lines that are marked as ours."""
    left = "".join(line for line in text.splitlines(keepends=True) if not line.rstrip("\r\n").endswith(_MARK))
    _read_yaml(left)
    return left


def _read_yaml(text: str) -> dict[str, Any]:
    import yaml

    try:
        found = yaml.safe_load(text) or {}
    except (yaml.YAMLError, RecursionError, ValueError):
        raise BadInput("it cannot be read as YAML") from None
    if not isinstance(found, dict):
        raise BadInput("it is no mapping")
    return found


# -- the hosts ----------------------------------------------------------------------------------------------------------------

NAME = "anima"
WAITS = 20  # seconds that a host waits for a hook at most
ENDS_IN = 3  # seconds that Codex gives a session's last hook
SKILLS = ("anima-recall", "anima-remember")
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """How one home is reached. `program` are the words that start `anima`; `env` is the user's, to find hosts' folders."""

    program: tuple[str, ...]
    home: str
    config: str
    agent: str
    env: Mapping[str, str]

    def hook(self, host: str, event: str) -> list[str]:
        return [*self.program, "hook", host, event, "--home", self.home, "--config", self.config]

    def hooks(self, host: str) -> dict[str, list[object]]:
        """What a host runs at each event, as it takes it."""
        made = dict[str, list[object]]()
        for event in EVENTS[host]:
            program, *args = words = self.hook(host, event)
            given: dict[str, Any] = {"program": program, "args": args, "line": shlex.join(words)}
            given |= {"name": f"{NAME}-{event}", "waits": WAITS, "millis": WAITS * 1_000}
            given["ends"] = ENDS_IN if event == "SessionEnd" else WAITS
            made[event] = [_filled(HOSTS[host].hook, given)]
        return made

    def server(self, host: str, *, joins: bool = True) -> dict[str, object]:
        """The MCP server as most hosts take it. It `joins` the conversation that hooks of the same host report of."""
        command, *words = self.program
        joined = ["--host", host] if joins else []
        args = [*words, "mcp", "--scope", "main", *joined, "--as", host, "--home", self.home]
        return {"command": command, "args": args, "env": {"ANIMA_CONFIG": self.config}}

    @property
    def bundle(self) -> Path:
        """Where the bundle of this home stands for hosts that are pointed at one: among our own records."""
        return Path(place_of(self.config, self.home)) / "bundle" / NAME

    def folder(self, variable: str, *default: str) -> Path:
        """A host's own folder: what its variable says, else where it is by itself, in the person's own."""
        if given := self.env.get(variable):
            return Path(given).expanduser().absolute()
        return Path(self.env.get("HOME") or Path.home()).joinpath(*default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One program that people's agents run in, as the table has it."""

    name: str
    title: str
    where: Sequence[str]
    then: str
    talks: str = ""
    hooks: str = ""
    hook: Mapping[str, object] = field(default_factory=dict)
    first: Mapping[str, object] = field(default_factory=dict)
    server: Sequence[str] = ()
    server_at: str = ""
    files: str | None = None
    reads: str = ""

    @property
    def reports(self) -> bool:
        """Whether it runs hooks."""
        return self.name in EVENTS

    def folder(self, wiring: Wiring) -> Path:
        if self.name == "vscode" and not wiring.env.get(self.where[0]):
            if sys.platform == "darwin":
                return wiring.folder("", "Library", "Application Support", "Code", "User")
            return wiring.folder("XDG_CONFIG_HOME", ".config") / "Code" / "User"
        return wiring.folder(*self.where)

    def transcripts(self, wiring: Wiring) -> Path | None:
        return self.folder(wiring) / self.talks if self.talks else None

    def edits(self, wiring: Wiring) -> list[HostEdit]:
        folder, made = self.folder(wiring), list[HostEdit]()
        if self.hooks:
            made.append(_hooked(folder / self.hooks, wiring.hooks(self.name), first={**self.first, "hooks": {}}))
        if self.server:
            made.append(self._server(wiring, folder))
        top = wiring.bundle if self.files == "*" else folder / (self.files or "")
        for name, text in self.bundle(wiring).items() if self.files is not None else ():
            ours = HostEdit(path=top / name, put=lambda there, text=text: text, take=lambda there: "", whole=True)  # type: ignore[misc]
            made.append(ours)
        return made if self.name != "hermes" else [*made[1:], made[0]]  # what it names is there before

    def bundle(self, wiring: Wiring) -> dict[str, str]:
        """The files that it is given, by their paths: its own, else those of the bundle that it reads, `generic` all of them.
        The bundle's server joins whoever reads it."""
        table = read_table("connect", "bundle")
        given: dict[str, Any] = {host: wiring.hooks(host) for host in ("claude-code", "cursor", "gemini")}
        given |= {"version": __version__, "agent": wiring.agent, "server": wiring.server(self.name)}
        given["about"] = _filled(table["about"], given)
        words = json.dumps(wiring.hook("hermes", "EVENT"), ensure_ascii=False)
        given["plugin"] = (_HERE / "tables" / "hermes_plugin.txt").read_text(encoding="utf-8").format(words=words)
        made = dict[str, str]()
        for name, each in table.get(self.name, table["bundle"]).items():
            if re.match(self.reads, name):
                is_text = isinstance(each, str)
                made[name] = each.format(**given) if is_text else f"{laid_out(_filled(each, given))}\n"
        return made | {f"skills/{name}/SKILL.md": skill(name) for name in SKILLS if self.name != "hermes"}

    def _server(self, wiring: Wiring, folder: Path) -> HostEdit:
        """The server, where the host reads which there are; hermes is told there, too, that we are its memory."""
        file, *keys = self.server
        path = Path(wiring.env.get(self.server_at) or folder / file)
        value = wiring.server(self.name, joins=self.reports and self.name != "hermes")
        if path.suffix == ".toml":
            return HostEdit(path=path, put=lambda text: with_table(text, keys[0], value), take=without_block)
        if self.name == "hermes":
            wanted: list[tuple[str, str, object]] = [("memory", "provider", NAME), ("mcp_servers", NAME, value)]
            return HostEdit(path=path, put=lambda text: with_lines(text, wanted), take=without_lines)
        return _member(path, *keys, value={"type": "stdio", **value} if self.name == "vscode" else value)


def _filled(value: Any, given: Mapping[str, Any]) -> Any:
    """A value of a table of hosts or files with what is given in its places."""
    if isinstance(value, str) and value.startswith("@"):
        return given[value[1:]]
    if isinstance(value, list):
        return [_filled(each, given) for each in value]
    if not isinstance(value, dict):
        return value
    made = dict[str, Any]()
    for name, each in value.items():
        made |= given[each] if name == "@" else {name: _filled(each, given)}
    return made


def skill(name: str) -> str:
    return (_HERE / "skills" / name / "SKILL.md").read_text(encoding="utf-8")


def _member(path: Path, *keys: str, value: object) -> HostEdit:
    """One member. A member of that name that is not ours is refused, never replaced."""

    def with_ours(text: str) -> str:
        there = at(text or "{}", keys)
        if there and not is_same(there, value):
            raise BadInput(f"{'.'.join(keys)} is there already, and not for this home")
        return put(text or "{}\n", keys, value)

    def without_ours(text: str) -> str:
        return take(text, keys) if text.strip() else text

    return HostEdit(path=path, put=with_ours, take=without_ours)


def _hooked(path: Path, hooks: Mapping[str, list[object]], *, first: Mapping[str, object]) -> HostEdit:
    """Elements of the lists of hooks. `first` is what a file that we make says."""
    values = {("hooks", event): entry for event, (entry,) in hooks.items()}

    def with_ours(text: str) -> str:
        text = text or f"{laid_out(first)}\n"
        for keys, value in values.items():
            there, tail = at(text, keys), json.dumps(value).partition(" hook ")[2].partition('"')[0]
            for old in there if isinstance(there, list) else ():
                if old != value and tail in json.dumps(old):  # the same of the same home by a program that was moved
                    text = take_item(text, keys, old)
            text = put_item(text, keys, value)
        return text

    def without_ours(text: str) -> str:
        for keys, value in values.items() if text.strip() else ():
            text = take_item(text, keys, value)
            if not at(text, keys):
                text = take(text, keys)
        return text

    return HostEdit(path=path, put=with_ours, take=without_ours)


HOSTS = {name: Host(name=name, **row) for name, row in read_table("connect", "hosts").items()}

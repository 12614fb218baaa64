"""Hosts: the programs that people's agents run in: what each is told (which program to start, for which home, under which
configuration), which of its files are changed, where it writes conversations down, and what the person does next.

Promise: pure. Words are the same at every connecting, since some hosts trust a hook by its very words. A member of our name that is
not for this home is refused, never replaced. That a hook is trusted is never written. Not here: connecting (connections), the rows
of hosts (tables/hosts.toml) and the files they are given (tables/bundle.toml).
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anima import __version__
from anima.connect import EVENTS, place_of, texts
from anima.connect.texts import HostEdit, is_same, laid_out, with_lines, with_table, without_block, without_lines
from anima.errors import BadInput
from anima.text import read_table

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

    def hook_line(self, host: str, event: str) -> str:
        """The same for a host that hands a line to a shell."""
        return shlex.join(self.hook(host, event))

    def hooks(self, host: str) -> dict[str, list[object]]:
        """What a host runs at each event, as it takes it; Claude Code takes a program with its arguments, and no shell between."""
        made = dict[str, list[object]]()
        for event in EVENTS[host]:
            hook: dict[str, object] = {"type": "command", "command": self.hook_line(host, event), "timeout": WAITS}
            if host == "cursor":
                made[event] = [{"command": hook["command"], "timeout": WAITS}]
                continue
            if host == "claude-code":
                command, *args = self.hook(host, event)
                hook = {"type": "command", "command": command, "args": args, "timeout": WAITS}
            elif host == "gemini":
                hook = {"type": "command", "name": f"{NAME}-{event}"} | hook | {"timeout": WAITS * 1_000}
            elif event == "SessionEnd":
                hook["timeout"] = ENDS_IN
            made[event] = [{"hooks": [hook]}]
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
    """A value of the table of files with what is given in its places."""
    if isinstance(value, str) and value.startswith("@"):
        return given[value[1:]]
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

    def put(text: str) -> str:
        there = texts.at(text or "{}", keys)
        if there and not is_same(there, value):
            raise BadInput(f"{'.'.join(keys)} is there already, and not for this home")
        return texts.put(text or "{}\n", keys, value)

    def take(text: str) -> str:
        return texts.take(text, keys) if text.strip() else text

    return HostEdit(path=path, put=put, take=take)


def _hooked(path: Path, hooks: Mapping[str, list[object]], *, first: Mapping[str, object]) -> HostEdit:
    """Elements of the lists of hooks. `first` is what a file that we make says."""
    values = {("hooks", event): entry for event, (entry,) in hooks.items()}

    def put(text: str) -> str:
        text = text or f"{laid_out(first)}\n"
        for keys, value in values.items():
            there, tail = texts.at(text, keys), json.dumps(value).partition(" hook ")[2].partition('"')[0]
            for old in there if isinstance(there, list) else ():
                if old != value and tail in json.dumps(old):  # the same of the same home by a program that was moved
                    text = texts.take_item(text, keys, old)
            text = texts.put_item(text, keys, value)
        return text

    def take(text: str) -> str:
        for keys, value in values.items() if text.strip() else ():
            text = texts.take_item(text, keys, value)
            if not texts.at(text, keys):
                text = texts.take(text, keys)
        return text

    return HostEdit(path=path, put=put, take=take)


HOSTS = {name: Host(name=name, **row) for name, row in read_table("connect", "hosts").items()}

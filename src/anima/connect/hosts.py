"""Hosts: the programs that people's agents run in. What every host is told: which program to start, for which home, under which
configuration, and one bundle with several manifests; and of each, which files are changed, where it writes conversations down,
and what the person does next.

Promise: pure. Words are the same at every connecting, since some hosts trust a hook by its very words; the home and the
configuration stand in them, so that no environment of a project's says others. What is put in is a folder of ours, a member or an
element of the host's JSON, or lines that are marked as ours; a member of our name that is not for this home is refused, never
replaced. That a hook is trusted is never written. Agent Plugins 1.0.0, Claude Code and Cursor read the same folder; Gemini's
extension is one of its own, since it reads hooks from the same place in other words. Not here: connecting (connections), the
names, folders and next steps of hosts (tables/hosts.toml).
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anima import __version__
from anima.connect import EVENTS, place_of, texts
from anima.connect.texts import HostEdit, laid_out, with_lines, with_table, without_block, without_lines
from anima.errors import BadInput
from anima.text import read_table

NAME = "anima"
WAITS = 20  # seconds that a host waits for a hook at most
SKILLS = ("anima-recall", "anima-remember")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """How one home is reached. `program` are the words that start `anima`; `env` is the user's, to find hosts' folders."""

    program: tuple[str, ...]
    home: str
    config: str
    agent: str
    env: Mapping[str, str]

    def hook(self, host: str, event: str) -> list[str]:
        """The words of a hook."""
        return [*self.program, "hook", host, event, "--home", self.home, "--config", self.config]

    def hook_line(self, host: str, event: str) -> str:
        """The same for a host that hands a line to a shell."""
        return shlex.join(self.hook(host, event))

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
        """A host's own folder: what its variable says, else where it is by itself."""
        if given := self.env.get(variable):
            return Path(given).expanduser().absolute()
        return self.user.joinpath(*default)

    @property
    def user(self) -> Path:
        """The person's own folder."""
        return Path(self.env.get("HOME") or Path.home())


def skill(name: str) -> str:
    """The text of a skill."""
    return (Path(__file__).parent / "skills" / name / "SKILL.md").read_text(encoding="utf-8")


def written(value: object) -> str:
    """A JSON file of ours."""
    return laid_out(value) + "\n"


ABOUT: Mapping[str, object] = {  # what all manifests say
    "name": NAME,
    "version": __version__,
    "description": "A home for your agent: who it is, what it knows, and the words you want kept.",
    "license": "Apache-2.0",
    "keywords": ["memory", "identity", "mcp"],
}


# -- one bundle with several manifests ----------------------------------------------------------------------------------


AGENT_PLUGINS = "https://agent-plugins.org/schemas/1.0.0"
_READ = {"claude-code": r"README|\.claude|\.mcp|hooks/hooks", "openclaw": r"README|plugin\.json|mcp\.json"}
_README = """\
# anima

This folder was made by `anima connect`. It gives {agent} a place in the program that reads it: hooks that tell the model at
the start of a session who it is and what it knows, that keep what you said, and that write down what matters before a
conversation is cut; an MCP server with the tools of memory; and two skills that say how to use them.

Nothing in it is yours to edit: `anima connect HOST` writes it anew, `anima connect HOST --remove` takes it away.
"""


def bundle(wiring: Wiring, host: str) -> dict[str, str]:
    """The files of the bundle, by their paths in it. `host` is who its server joins; one that is named has the files that
    it reads, and `generic` all of them."""
    server = wiring.server(host)
    files = {
        "README.md": _README.format(agent=wiring.agent),
        "plugin.json": written({"$schema": f"{AGENT_PLUGINS}/plugin.schema.json", **ABOUT}),
        "mcp.json": written(
            {"$schema": f"{AGENT_PLUGINS}/mcp.schema.json", "mcpServers": {NAME: {"type": "stdio", **server}}}
        ),
        ".claude-plugin/plugin.json": written({**ABOUT, "author": {"name": "anima"}}),
        ".mcp.json": written({"mcpServers": {NAME: server}}),
        "hooks/hooks.json": written({"hooks": claude_hooks(wiring, "claude-code")}),
        ".cursor-plugin/plugin.json": written(
            {**ABOUT, "skills": "./skills/", "hooks": "./hooks/cursor.json", "mcpServers": "./.mcp.json"}
        ),
        "hooks/cursor.json": written({"version": 1, "hooks": cursor_hooks(wiring)}),
    }
    read = _READ.get(host, "")
    return {name: text for name, text in files.items() if re.match(read, name)} | skills()


def skills() -> dict[str, str]:
    return {f"skills/{name}/SKILL.md": skill(name) for name in SKILLS}


def claude_hooks(wiring: Wiring, host: str) -> dict[str, object]:
    """Hooks as Claude Code takes them: a program with its arguments, and no shell between."""
    made: dict[str, object] = {}
    for event in EVENTS[host]:
        command, *args = wiring.hook(host, event)
        made[event] = [{"hooks": [{"type": "command", "command": command, "args": args, "timeout": WAITS}]}]
    return made


def cursor_hooks(wiring: Wiring) -> dict[str, list[dict[str, object]]]:
    return {event: [{"command": wiring.hook_line("cursor", event), "timeout": WAITS}] for event in EVENTS["cursor"]}


def extension(wiring: Wiring) -> dict[str, str]:
    """Gemini's extension."""
    hooks = {}
    for event in EVENTS["gemini"]:
        hook = {"type": "command", "name": f"{NAME}-{event}", "command": wiring.hook_line("gemini", event)}
        hooks[event] = [{"hooks": [hook | {"timeout": WAITS * 1_000}]}]
    servers = {NAME: wiring.server("gemini")}
    manifest = {"name": NAME, "version": __version__, "mcpServers": servers, "contextFileName": "GEMINI.md"}
    told = f"{wiring.agent} lives in a home. What it knows comes at the start of a session, and by the tools of {NAME}."
    files = {"gemini-extension.json": written(manifest), "GEMINI.md": f"{told}\n"}
    return {**files, "hooks/hooks.json": written({"hooks": hooks}), **skills()}


_ENDS_IN = 3  # seconds that Codex gives a session's last hook


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One program that people's agents run in, as the table has it. `put_in` is how its files are changed."""

    name: str
    title: str
    where: Sequence[str]
    put_in: Callable[[Wiring, Path], Sequence[HostEdit]]
    then: str
    talks: str = ""

    @property
    def reports(self) -> bool:
        """Whether it runs hooks."""
        return self.name in EVENTS

    def edits(self, wiring: Wiring) -> Sequence[HostEdit]:
        return self.put_in(wiring, wiring.folder(*self.where))

    def transcripts(self, wiring: Wiring) -> Path | None:
        return wiring.folder(*self.where) / self.talks if self.talks else None


# -- what is put into a host's files ----------------------------------------------------------------------------------------


def folder_of(top: Path, files: Mapping[str, str]) -> list[HostEdit]:
    """A folder that is ours alone."""
    return [
        HostEdit(path=top / name, put=lambda there, text=text: text, take=lambda there: "", whole=True)  # type: ignore[misc]
        for name, text in files.items()
    ]


def member(path: Path, *keys: str, value: object) -> HostEdit:
    """One member of a host's JSON file. A member of that name that is not ours is refused, never replaced."""

    def put(text: str) -> str:
        there = texts.at(text or "{}", keys)
        if there and not is_same(there, value):
            raise BadInput(f"{'.'.join(keys)} is there already, and not for this home")
        return texts.put(text or "{}\n", keys, value)

    def take(text: str) -> str:
        return texts.take(text, keys) if text.strip() else text

    return HostEdit(path=path, put=put, take=take)


def is_same(entry: object, wanted: object) -> bool:
    """Whether a server's entry serves the home that another one does."""
    homes = [
        each["args"][-1:] for each in (entry, wanted) if isinstance(each, dict) and isinstance(each.get("args"), list)
    ]
    return len(homes) == 2 and homes[0] == homes[1]


def items(path: Path, values: Mapping[tuple[str, ...], object], *, first: Mapping[str, object]) -> HostEdit:
    """Elements of lists in a host's JSON file. `first` is what a file that we make says besides."""

    def put(text: str) -> str:
        text = text or written(first)
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


# -- the files of each ------------------------------------------------------------------------------------------------------


def _claude_code(wiring: Wiring, folder: Path) -> list[HostEdit]:
    """A plugin in its folder of skills, which it loads by itself. None of the person's own files is touched."""
    return folder_of(folder / "skills" / NAME, bundle(wiring, "claude-code"))


def _codex(wiring: Wiring, folder: Path) -> list[HostEdit]:
    """Hooks in `hooks.json`, the server in `config.toml`, skills in its folder of skills."""
    hooks = dict[tuple[str, ...], object]()
    for event in EVENTS["codex"]:
        waits = _ENDS_IN if event == "SessionEnd" else WAITS
        hook = {"type": "command", "command": wiring.hook_line("codex", event), "timeout": waits}
        hooks["hooks", event] = {"hooks": [hook]}
    server = HostEdit(
        path=folder / "config.toml",
        put=lambda text: with_table(text, f"mcp_servers.{NAME}", wiring.server("codex"), is_same=is_same),
        take=without_block,
    )
    return [items(folder / "hooks.json", hooks, first={"hooks": {}}), server, *folder_of(folder, skills())]


def _cursor(wiring: Wiring, folder: Path) -> list[HostEdit]:
    """Hooks in `hooks.json`, the server in `mcp.json`, skills in its folder of skills."""
    hooks: dict[tuple[str, ...], object] = {
        ("hooks", event): entry for event, entries in cursor_hooks(wiring).items() for entry in entries
    }
    return [
        items(folder / "hooks.json", hooks, first={"version": 1, "hooks": {}}),
        member(folder / "mcp.json", "mcpServers", NAME, value=wiring.server("cursor")),
        *folder_of(folder, skills()),
    ]


def _vscode(wiring: Wiring, folder: Path) -> list[HostEdit]:
    """The server in the user's `mcp.json`. Its agents have hooks of their own kinds, so there are none of ours."""
    folder = folder / "Code" / "User"
    if sys.platform == "darwin":
        folder = wiring.user / "Library" / "Application Support" / "Code" / "User"
    if given := wiring.env.get("VSCODE_USER_DATA"):
        folder = Path(given).expanduser().absolute()
    entry = {"type": "stdio", **wiring.server("vscode", joins=False)}
    return [member(folder / "mcp.json", "servers", NAME, value=entry)]


def _gemini(wiring: Wiring, folder: Path) -> list[HostEdit]:
    """An extension in its folder of extensions. None of the person's own files is touched."""
    return folder_of(folder / ".gemini" / "extensions" / NAME, extension(wiring))


def _openclaw(wiring: Wiring, folder: Path) -> list[HostEdit]:
    """The server in `openclaw.json`, and a bundle of skills that its own command installs."""
    given = wiring.env.get("OPENCLAW_CONFIG_PATH")
    file = Path(given) if given else folder / "openclaw.json"
    server = member(file, "mcp", "servers", NAME, value=wiring.server("openclaw", joins=False))
    return [server, *folder_of(wiring.bundle, bundle(wiring, "openclaw"))]


def _hermes(wiring: Wiring, folder: Path) -> list[HostEdit]:
    """A memory provider in its folder of plugins, chosen in `config.yaml`, and the server beside it. The provider starts
    `anima` for each call, so that nothing of ours is installed beside hermes."""
    text = (Path(__file__).parent / "tables" / "hermes_plugin.txt").read_text(encoding="utf-8")
    said = f"name: {NAME}\nversion: {__version__}\ndescription: {json.dumps(ABOUT['description'])}\n"
    plugin = {
        "plugin.yaml": f"{said}hooks:\n  - on_session_end\n  - on_pre_compress\n",
        "__init__.py": text.format(words=json.dumps(wiring.hook("hermes", "EVENT"), ensure_ascii=False)),
    }
    wanted: list[tuple[str, str, object]] = [
        ("memory", "provider", NAME),
        ("mcp_servers", NAME, wiring.server("hermes", joins=False)),
    ]
    chosen = HostEdit(path=folder / "config.yaml", put=lambda text: with_lines(text, wanted), take=without_lines)
    return [*folder_of(folder / "plugins" / NAME, plugin), chosen]


def _nanobot(wiring: Wiring, folder: Path) -> list[HostEdit]:
    """The server among the tools of its `config.json`."""
    return [member(folder / "config.json", "tools", "mcpServers", NAME, value=wiring.server("nanobot", joins=False))]


def _generic(wiring: Wiring, folder: Path) -> list[HostEdit]:
    """The bundle alone, for a program that is pointed at it."""
    return folder_of(wiring.bundle, bundle(wiring, "generic"))


_PUT_IN = {
    "claude-code": _claude_code,
    "codex": _codex,
    "cursor": _cursor,
    "vscode": _vscode,
    "gemini": _gemini,
    "openclaw": _openclaw,
    "hermes": _hermes,
    "nanobot": _nanobot,
    "generic": _generic,
}
HOSTS = {name: Host(name=name, put_in=_PUT_IN[name], **row) for name, row in read_table("connect", "hosts").items()}

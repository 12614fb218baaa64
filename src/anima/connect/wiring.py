"""What every host is told: which program to start, for which home, and under which configuration; and one bundle with several
manifests for hosts that know plugins, whichever format they read.

Promise: pure. Words are the same at every connecting, since some hosts trust a hook by its very words; the home and the
configuration stand in them, so that no environment of a project's says others. Agent Plugins 1.0.0, Claude Code and Cursor
read the same folder; Gemini's extension is a folder of its own, since it reads hooks from the same place in other words.
Not here: where a host wants them (hosts).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anima import __version__
from anima.connect import EVENTS
from anima.connect.json_text import laid_out
from anima.connect.spool import place_of

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


def about() -> dict[str, object]:
    """What all manifests say."""
    return {
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
        "plugin.json": written({"$schema": f"{AGENT_PLUGINS}/plugin.schema.json", **about()}),
        "mcp.json": written(
            {"$schema": f"{AGENT_PLUGINS}/mcp.schema.json", "mcpServers": {NAME: {"type": "stdio", **server}}}
        ),
        ".claude-plugin/plugin.json": written({**about(), "author": {"name": "anima"}}),
        ".mcp.json": written({"mcpServers": {NAME: server}}),
        "hooks/hooks.json": written({"hooks": claude_hooks(wiring, "claude-code")}),
        ".cursor-plugin/plugin.json": written(
            {**about(), "skills": "./skills/", "hooks": "./hooks/cursor.json", "mcpServers": "./.mcp.json"}
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
    hooks = {
        event: [
            {
                "hooks": [
                    {
                        "type": "command",
                        "name": f"{NAME}-{event}",
                        "command": wiring.hook_line("gemini", event),
                        "timeout": WAITS * 1_000,
                    }
                ]
            }
        ]
        for event in EVENTS["gemini"]
    }
    manifest = {
        "name": NAME,
        "version": about()["version"],
        "mcpServers": {NAME: wiring.server("gemini")},
        "contextFileName": "GEMINI.md",
    }
    told = (
        f"{wiring.agent} lives in a home. What it knows comes at the start of a session, and by the tools of {NAME}.\n"
    )
    return {
        "gemini-extension.json": written(manifest),
        "GEMINI.md": told,
        "hooks/hooks.json": written({"hooks": hooks}),
        **skills(),
    }

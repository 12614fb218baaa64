"""What every host is told: which program to start, for which home, and under which configuration.

Promise: pure. Words are the same at every connecting, since some hosts trust a hook by its very words; the home and the
configuration stand in them, so that no environment of a project's says others. Not here: where a host wants them (hosts).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anima import __version__
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

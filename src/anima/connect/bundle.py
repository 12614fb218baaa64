"""One bundle with several manifests: what a host that knows plugins is given, whichever format it reads.

Promise: pure. Agent Plugins 1.0.0, Claude Code and Cursor read the same folder; Gemini's extension is a folder of its own,
since it reads hooks from the same place in other words. Not here: where a bundle is put (hosts).
"""

from __future__ import annotations

import re

from anima.connect.events import EVENTS
from anima.connect.wiring import NAME, SKILLS, WAITS, Wiring, about, skill, written

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

"""Cursor: hooks in `hooks.json`, the server in `mcp.json`, skills in its folder of skills."""

from __future__ import annotations

from pathlib import Path

from anima.connect.bundle import cursor_hooks, skills
from anima.connect.change import HostEdit
from anima.connect.host import Host, folder_of, items, member
from anima.connect.wiring import NAME, Wiring


def _folder(wiring: Wiring) -> Path:
    return wiring.folder("CURSOR_CONFIG_DIR", ".cursor")


def _edits(wiring: Wiring) -> list[HostEdit]:
    folder = _folder(wiring)
    hooks: dict[tuple[str, ...], object] = {
        ("hooks", event): entry for event, entries in cursor_hooks(wiring).items() for entry in entries
    }
    return [
        items(folder / "hooks.json", hooks, first={"version": 1, "hooks": {}}),
        member(folder / "mcp.json", "mcpServers", NAME, value=wiring.server("cursor")),
        *folder_of(folder, skills()),
    ]


HOST = Host(
    name="cursor",
    title="Cursor",
    edits=_edits,
    transcripts=lambda wiring: _folder(wiring) / "projects",
    then="Open Cursor anew; Settings lists the hooks, and anima among the MCP servers.",
)

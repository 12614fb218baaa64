"""Codex: hooks in `hooks.json`, the server in `config.toml`, skills in its folder of skills. Trust is never written."""

from __future__ import annotations

from pathlib import Path

from anima.connect.bundle import skills
from anima.connect.change import HostEdit
from anima.connect.events import EVENTS
from anima.connect.host import Host, folder_of, is_same, items
from anima.connect.toml_text import with_table, without_block
from anima.connect.wiring import NAME, WAITS, Wiring

_ENDS_IN = 3  # seconds that Codex gives a session's last hook


def _folder(wiring: Wiring) -> Path:
    return wiring.folder("CODEX_HOME", ".codex")


def _hook(wiring: Wiring, event: str) -> object:
    waits = _ENDS_IN if event == "SessionEnd" else WAITS
    return {"hooks": [{"type": "command", "command": wiring.hook_line("codex", event), "timeout": waits}]}


def _edits(wiring: Wiring) -> list[HostEdit]:
    folder = _folder(wiring)
    hooks: dict[tuple[str, ...], object] = {("hooks", event): _hook(wiring, event) for event in EVENTS["codex"]}
    server = HostEdit(
        path=folder / "config.toml",
        put=lambda text: with_table(text, f"mcp_servers.{NAME}", wiring.server("codex"), is_same=is_same),
        take=without_block,
    )
    return [
        items(folder / "hooks.json", hooks, first={"hooks": {}}),
        server,
        *folder_of(folder, skills()),
    ]


HOST = Host(
    name="codex",
    title="Codex",
    edits=_edits,
    transcripts=lambda wiring: _folder(wiring) / "sessions",
    then="Open codex once and trust the hooks of anima when it asks: until then it runs none of them, and says nothing.",
)

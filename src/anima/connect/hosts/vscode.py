"""VS Code: the server in the user's `mcp.json`. Its agents have hooks of their own kinds, so there are none of ours."""

from __future__ import annotations

import sys
from pathlib import Path

from anima.connect.change import HostEdit
from anima.connect.host import Host, member
from anima.connect.wiring import NAME, Wiring


def _folder(wiring: Wiring) -> Path:
    if given := wiring.env.get("VSCODE_USER_DATA"):
        return Path(given).expanduser().absolute()
    if sys.platform == "darwin":
        return wiring.user / "Library" / "Application Support" / "Code" / "User"
    return wiring.folder("XDG_CONFIG_HOME", ".config") / "Code" / "User"


def _edits(wiring: Wiring) -> list[HostEdit]:
    entry = {"type": "stdio", **wiring.server("vscode", joins=False)}
    return [member(_folder(wiring) / "mcp.json", "servers", NAME, value=entry)]


HOST = Host(
    name="vscode",
    title="VS Code",
    edits=_edits,
    then="Start anima with the command MCP: List Servers, and pick its prompt wake at the start of a conversation.",
    reports=False,
)

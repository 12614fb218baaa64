"""OpenClaw: the server in `openclaw.json`, and a bundle of skills that its own command installs."""

from __future__ import annotations

from pathlib import Path

from anima.connect.bundle import bundle
from anima.connect.change import HostEdit
from anima.connect.host import Host, folder_of, member
from anima.connect.wiring import NAME, Wiring


def _edits(wiring: Wiring) -> list[HostEdit]:
    given = wiring.env.get("OPENCLAW_CONFIG_PATH")
    file = Path(given) if given else wiring.folder("OPENCLAW_STATE_DIR", ".openclaw") / "openclaw.json"
    server = wiring.server("openclaw", joins=False)
    return [
        member(file, "mcp", "servers", NAME, value=server),
        *folder_of(wiring.bundle, bundle(wiring, "openclaw")),
    ]


HOST = Host(
    name="openclaw",
    title="OpenClaw",
    edits=_edits,
    then="Restart the gateway. For the skills too: openclaw plugins install {bundle}",
    reports=False,
)

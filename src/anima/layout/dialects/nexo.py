"""nexo (seed 000): `# IDENTITY` … `# MEMORY` blocks, 12,000 and 60,000 characters, `[truncated]`, notes by day.

Its shared sessions see IDENTITY, SOUL and AGENTS alone; its code let USER.md and the notes through.
"""

from __future__ import annotations

from anima.layout.table import ALL, COMMON, C, G, H, Layout, M, Policy, Row, S, borders

_MINE = frozenset({M, C, H})
_SHARED = frozenset({M, G, S, C, H})

NEXO = Layout(
    dialect="nexo",
    rows=(
        Row(
            role="identity",
            path="IDENTITY.md",
            title="IDENTITY",
            scopes=_SHARED,
            form="identity",
            policy=Policy.IDENTITY,
        ),
        Row(role="soul", path="SOUL.md", title="SOUL", scopes=_SHARED, form="text", policy=Policy.IDENTITY),
        Row(
            role="user", path="USER.md", title="USER", scopes=_MINE, form="text", policy=Policy.IDENTITY, personal=True
        ),
        Row(role="agents", path="AGENTS.md", title="AGENTS", scopes=_SHARED, form="text", policy=Policy.IDENTITY),
        Row(role="additional", title="RULES — {path}", form="additional", policy=Policy.ASK, data=True),
        Row(role="skills", title="SKILLS", scopes=_MINE, form="skills", data=True, policy=Policy.ASK),
        Row(role="extra", title="INSTRUCTIONS", scopes=ALL, form="extra"),
        Row(
            role="daily",
            path="notes/",
            title="RECENT NOTES",
            scopes=frozenset({M, H}),
            form="daily",
            stable=False,
            data=True,
            kind="daily",
            personal=True,
        ),
        Row(
            role="memory",
            path="MEMORY.md",
            title="MEMORY",
            scopes=frozenset({M, H}),
            form="text",
            stable=False,
            data=True,
            kind="curated",
            personal=True,
        ),
        Row(
            role="heartbeat",
            path="HEARTBEAT.md",
            title="HEARTBEAT",
            scopes=frozenset({H}),
            form="text",
            stable=False,
            policy=Policy.ASK,
        ),
        Row(role="runtime", title="RUNTIME", scopes=ALL, form="runtime", stable=False),
    ),
    seed_order=(
        "identity",
        "soul",
        "user",
        "agents",
        "daily",
        "memory",
        "additional",
        "skills",
        "extra",
        "heartbeat",
        "runtime",
    ),
    others=(
        Row(role="archive", path="notes/archive/", kind="daily"),
        *COMMON,
        Row(role="tools", path="TOOLS.md", scopes=frozenset({M, S, C, H}), policy=Policy.ASK),
        Row(role="memory-folder", path="memory/", kind="daily"),
    ),
    daily="notes",
    missing="",
    cut="head",
    cut_mark="[truncated]",
    guard=borders(
        "#",
        "IDENTITY",
        "SOUL",
        "USER",
        "AGENTS",
        "RECENT NOTES",
        "MEMORY",
        "SKILLS",
        "INSTRUCTIONS",
        "HEARTBEAT",
        "RUNTIME",
        r"RULES\b.*",
    ),
)

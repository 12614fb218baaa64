"""Our own layout: the file table of the design, section 5."""

from __future__ import annotations

from anima.layout import ALL, COMMON, MEMORY_NOTICE, C, G, H, Layout, M, Policy, Row, S, borders

ANIMA = Layout(
    dialect="anima",
    rows=(
        Row(role="identity", path="IDENTITY.md", title="IDENTITY", scopes=frozenset({M, G, C, H}), form="identity",
            expected=True, policy=Policy.IDENTITY),
        Row(role="soul", path="SOUL.md", title="SOUL", scopes=frozenset({M, G, C, H}), form="text", expected=True,
            policy=Policy.IDENTITY),
        Row(role="agents", path="AGENTS.md", title="AGENTS", scopes=ALL, form="text", expected=True,
            policy=Policy.IDENTITY),
        Row(role="user", path="USER.md", title="USER", scopes=frozenset({M, C, H}), form="text", expected=True,
            policy=Policy.IDENTITY, personal=True),
        Row(role="tools", path="TOOLS.md", title="TOOLS", scopes=frozenset({M, S, C, H}), form="text", expected=True,
            policy=Policy.ASK),
        Row(role="skills", title="SKILLS", scopes=frozenset({M, S, C, H}), form="skills", data=True,
            policy=Policy.ASK),
        Row(role="knowledge", path="knowledge/", title="KNOWLEDGE", scopes=frozenset({M, C, H}), form="knowledge",
            data=True, kind="knowledge"),
        Row(role="additional", title="{path}", form="additional", policy=Policy.ASK, data=True),
        Row(role="extra", title="INSTRUCTIONS", scopes=ALL, form="extra"),
        Row(role="memory-notice", scopes=frozenset({M, H}), form="fixed", text=MEMORY_NOTICE),
        Row(role="memory", path="MEMORY.md", title="MEMORY", scopes=frozenset({M, H}), form="text", stable=False,
            data=True, expected=True, kind="curated", personal=True),
        Row(role="daily", path="memory/", title="{day}", scopes=frozenset({M, H}), form="daily", stable=False,
            data=True, kind="daily", personal=True),
        Row(role="heartbeat", path="HEARTBEAT.md", title="HEARTBEAT", scopes=frozenset({H}), form="text",
            stable=False, policy=Policy.ASK),
        Row(role="bootstrap", path="BOOTSTRAP.md", title="BOOTSTRAP", scopes=frozenset({M}), form="text",
            stable=False, policy=Policy.RITUAL),
        Row(role="runtime", title="RUNTIME", scopes=ALL, form="runtime", stable=False),
    ),
    others=COMMON,
    frame=("memory",),
    guard=borders("#", "IDENTITY", "SOUL", "AGENTS", "USER", "TOOLS", "SKILLS", "KNOWLEDGE", "INSTRUCTIONS", "MEMORY",
                  "HEARTBEAT", "BOOTSTRAP", "RUNTIME"),
)  # fmt: skip

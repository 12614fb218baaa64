"""Carapace (seed 002): AGENTS, SOUL, USER, two daily logs, CORE.md in main sessions only, the skill catalogue.

Raw texts joined by a rule, in the seed's own order (so the catalogue counts as volatile).
Memory lives under `memory/`; every agent write asks (the `strict` preset).
"""

from __future__ import annotations

from anima.layout.table import ALL, COMMON, RULE, C, G, H, Layout, M, Policy, Row, S

CARAPACE = Layout(
    dialect="carapace",
    rows=(
        Row(role="agents", path="AGENTS.md", scopes=ALL, form="text", expected=True, policy=Policy.IDENTITY),
        Row(
            role="soul",
            path="SOUL.md",
            scopes=frozenset({M, G, C, H}),
            form="text",
            expected=True,
            policy=Policy.IDENTITY,
        ),
        Row(
            role="user",
            path="USER.md",
            scopes=frozenset({M, C, H}),
            form="text",
            expected=True,
            policy=Policy.IDENTITY,
            personal=True,
        ),
        Row(role="additional", title="{path}", form="additional", policy=Policy.ASK, data=True),
        Row(role="extra", scopes=ALL, form="extra"),
        Row(
            role="daily",
            path="memory/daily/",
            scopes=frozenset({M, H}),
            form="daily",
            stable=False,
            data=True,
            kind="daily",
            personal=True,
        ),
        Row(
            role="memory",
            path="memory/CORE.md",
            scopes=frozenset({M}),
            form="text",
            stable=False,
            data=True,
            expected=True,
            kind="curated",
            personal=True,
        ),
        Row(role="skills", scopes=frozenset({M, S, C, H}), form="skills", stable=False, data=True, policy=Policy.ASK),
        Row(
            role="heartbeat",
            path="HEARTBEAT.md",
            scopes=frozenset({C, H}),
            form="text",
            stable=False,
            policy=Policy.ASK,
        ),
        Row(role="runtime", title="Session", scopes=ALL, form="runtime", stable=False),
    ),
    seed_order=("agents", "soul", "user", "daily", "memory", "skills", "additional", "extra", "heartbeat", "runtime"),
    others=(
        Row(role="archive", path="memory/daily/archive/", kind="daily"),
        *COMMON,
        Row(role="tools", path="TOOLS.md", scopes=frozenset({M, S, C, H}), policy=Policy.ASK),
        Row(role="identity", path="IDENTITY.md", scopes=frozenset({M, G, C, H}), policy=Policy.IDENTITY),
        Row(role="memory-folder", path="memory/", kind="topic"),
    ),
    file_chars=100_000,
    total_chars=400_000,
    curated="memory/CORE.md",
    daily="memory/daily",
    heading="",
    join="\n\n---\n\n",
    guard=RULE,
)

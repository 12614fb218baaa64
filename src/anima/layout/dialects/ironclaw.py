"""IronClaw (seed 003): nine steps with BOOTSTRAP first, `README.md` runbooks, logs in `daily/`, four protected files.

Its code let USER.md and the daily logs into group chats; the text promises that nothing private leaks, so they stay out.
"""

from __future__ import annotations

from anima.layout.table import ALL, COMMON, RULE, C, G, H, Layout, M, Policy, Row, S, borders

_MINE = frozenset({M, C, H})

IRONCLAW = Layout(
    dialect="ironclaw",
    rows=(
        Row(
            role="bootstrap",
            path="BOOTSTRAP.md",
            title="First-Run Bootstrap",
            scopes=frozenset({M}),
            form="text",
            policy=Policy.RITUAL,
        ),
        Row(
            role="agents", path="AGENTS.md", title="Agent Instructions", scopes=ALL, form="text", policy=Policy.IDENTITY
        ),
        Row(
            role="soul",
            path="SOUL.md",
            title="Core Values",
            scopes=frozenset({M, G, C, H}),
            form="text",
            policy=Policy.IDENTITY,
        ),
        Row(
            role="user",
            path="USER.md",
            title="User Context",
            scopes=_MINE,
            form="text",
            policy=Policy.IDENTITY,
            personal=True,
        ),
        Row(
            role="identity",
            path="IDENTITY.md",
            title="Identity",
            scopes=frozenset({M, G, C, H}),
            form="text",
            policy=Policy.IDENTITY,
        ),
        Row(
            role="tools",
            path="TOOLS.md",
            title="Tool Notes",
            scopes=frozenset({M, S, C, H}),
            form="text",
            policy=Policy.ASK,
        ),
        Row(role="skills", title="Skills", scopes=frozenset({M, S, C, H}), form="skills", data=True, policy=Policy.ASK),
        Row(role="additional", title="{path}", form="additional", policy=Policy.ASK, data=True),
        Row(role="extra", title="Extra Instructions", scopes=ALL, form="extra"),
        Row(
            role="memory",
            path="MEMORY.md",
            title="Long-Term Memory",
            scopes=frozenset({M, H}),
            form="text",
            stable=False,
            data=True,
            kind="curated",
            personal=True,
        ),
        Row(
            role="daily",
            path="daily/",
            title="{when}'s Notes",
            scopes=frozenset({M, H}),
            form="daily",
            stable=False,
            data=True,
            kind="daily",
            personal=True,
        ),
        Row(
            role="heartbeat",
            path="HEARTBEAT.md",
            title="Heartbeat Checklist",
            scopes=frozenset({H}),
            form="text",
            stable=False,
            policy=Policy.ASK,
        ),
        Row(role="runtime", title="Runtime", scopes=ALL, form="runtime", stable=False),
    ),
    seed_order=(
        "bootstrap",
        "agents",
        "soul",
        "user",
        "identity",
        "tools",
        "memory",
        "daily",
        "skills",
        "additional",
        "extra",
        "heartbeat",
        "runtime",
    ),
    others=(
        Row(role="archive", path="daily/archive/", kind="daily"),
        *COMMON,
        Row(role="runbook", path="README.md", kind="runbook"),
        Row(role="context", path="context/", kind="knowledge"),
        Row(role="projects", path="projects/", kind="topic"),
        Row(role="memory-folder", path="memory/", kind="topic"),
    ),
    file_chars=100_000,
    total_chars=400_000,
    daily="daily",
    topics="projects",
    heading="## {title}",
    join="\n\n---\n\n",
    missing="",
    guard=(
        borders(
            "##",
            "First-Run Bootstrap",
            "Agent Instructions",
            "Core Values",
            "User Context",
            "Identity",
            "Tool Notes",
            "Long-Term Memory",
            "Today's Notes",
            "Yesterday's Notes",
            "Skills",
            "Extra Instructions",
            "Heartbeat Checklist",
            "Runtime",
            r".*\.(?:md|txt)",
        )
        + "|"
        + RULE
    ),
)

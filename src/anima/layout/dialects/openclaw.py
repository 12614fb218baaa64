"""OpenClaw (seed 001): `# Project Context` with one `## FILE` a block, 20,000 characters a file.

Groups get no SOUL, USER or MEMORY; sub-agents get AGENTS and TOOLS; daily logs are the owner's own.
"""

from __future__ import annotations

from anima.layout.table import ALL, COMMON, C, G, H, Layout, M, Policy, Row, S, borders

_CORE = frozenset({M, C, H})

OPENCLAW = Layout(
    dialect="openclaw",
    rows=(
        Row(role="project-context", scopes=ALL, form="fixed", text="# Project Context"),
        Row(
            role="agents",
            path="AGENTS.md",
            title="{path}",
            scopes=ALL,
            form="text",
            expected=True,
            policy=Policy.IDENTITY,
        ),
        Row(
            role="soul",
            path="SOUL.md",
            title="{path}",
            scopes=_CORE,
            form="text",
            expected=True,
            policy=Policy.IDENTITY,
        ),
        Row(
            role="identity",
            path="IDENTITY.md",
            title="{path}",
            scopes=frozenset({M, G, C, H}),
            form="text",
            expected=True,
            policy=Policy.IDENTITY,
        ),
        Row(
            role="user",
            path="USER.md",
            title="{path}",
            scopes=_CORE,
            form="text",
            expected=True,
            policy=Policy.IDENTITY,
            personal=True,
        ),
        Row(
            role="tools",
            path="TOOLS.md",
            title="{path}",
            scopes=frozenset({M, G, S, C, H}),
            form="text",
            expected=True,
            policy=Policy.ASK,
        ),
        Row(role="additional", title="{path}", form="additional", policy=Policy.ASK, data=True),
        Row(role="skills", title="Skills", scopes=_CORE, form="skills", data=True, policy=Policy.ASK),
        Row(role="extra", title="Extra system prompt", scopes=ALL, form="extra"),
        Row(role="dynamic-context", scopes=ALL, form="fixed", stable=False, text="# Dynamic Project Context"),
        Row(
            role="heartbeat",
            path="HEARTBEAT.md",
            title="{path}",
            scopes=frozenset({M, H}),
            form="text",
            stable=False,
            expected=True,
            policy=Policy.ASK,
        ),
        Row(
            role="bootstrap",
            path="BOOTSTRAP.md",
            title="{path}",
            scopes=frozenset({M}),
            form="text",
            stable=False,
            policy=Policy.RITUAL,
        ),
        Row(
            role="memory",
            path="MEMORY.md",
            title="{path}",
            scopes=frozenset({M, H}),
            form="text",
            stable=False,
            data=True,
            expected=True,
            kind="curated",
            personal=True,
        ),
        Row(
            role="daily",
            path="memory/",
            title="{path}",
            scopes=frozenset({M, H}),
            form="daily",
            stable=False,
            data=True,
            kind="daily",
            personal=True,
        ),
        Row(role="runtime", title="Runtime", scopes=ALL, form="runtime", stable=False),
    ),
    seed_order=(
        "runtime",
        "project-context",
        "agents",
        "soul",
        "identity",
        "user",
        "tools",
        "heartbeat",
        "bootstrap",
        "memory",
        "daily",
        "additional",
        "skills",
        "extra",
    ),
    others=COMMON,
    file_chars=20_000,
    total_chars=400_000,
    heading="## {title}",
    missing="<!-- [MISSING] Expected at: {path} -->",
    guard=(
        borders("#", "(?:Dynamic )?Project Context")
        + "|"
        + borders("##", r".*\.(?:md|txt)", "Skills", "Runtime", "Extra system prompt")
    ),
)

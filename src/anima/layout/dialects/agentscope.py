"""AgentScope (seed 004): `## Session Context`, `## Workspace guidance`, `<loaded_context>` with its four kinds of tags.

MEMORY.md has what the other sections leave of 8,000 tokens (4 characters each), and ends in the seed's notice when cut.
"""

from __future__ import annotations

from anima.layout.table import ALL, COMMON, C, G, H, Layout, M, Policy, Row, S, borders

_MINE = frozenset({M, C, H})
GUIDANCE = """## Workspace guidance

Your workspace is a folder of Markdown files that outlives this conversation.
AGENTS.md says how you work, MEMORY.md what is worth keeping, knowledge/ what you can look up.
Before you answer from memory about people, dates, decisions or earlier work, call memory_search, then memory_get.
Write what should survive to memory/ with memory_write; what is not written down is gone when the session ends."""

AGENTSCOPE = Layout(
    dialect="agentscope",
    rows=(
        Row(role="guidance", scopes=ALL, form="fixed", text=GUIDANCE),
        Row(role="loaded-open", scopes=ALL, form="fixed", text="<loaded_context>"),
        Row(role="agents", path="AGENTS.md", title="agents_context", scopes=ALL, form="text", policy=Policy.IDENTITY),
        Row(
            role="knowledge",
            path="knowledge/",
            title="domain_knowledge_context",
            scopes=_MINE,
            form="knowledge",
            data=True,
            kind="knowledge",
        ),
        Row(role="additional", title="{path}", form="additional", policy=Policy.ASK, data=True),
        Row(
            role="skills",
            title="skills_context",
            scopes=frozenset({M, S, C, H}),
            form="skills",
            data=True,
            policy=Policy.ASK,
        ),
        Row(role="extra", title="extra_context", scopes=ALL, form="extra"),
        Row(
            role="memory",
            path="MEMORY.md",
            title="memory_context",
            scopes=frozenset({M, H}),
            form="text",
            stable=False,
            data=True,
            kind="curated",
            personal=True,
        ),
        Row(role="loaded-close", scopes=ALL, form="fixed", stable=False, text="</loaded_context>"),
        Row(role="runtime", title="Session Context", scopes=ALL, form="runtime", stable=False),
    ),
    seed_order=(
        "runtime",
        "guidance",
        "loaded-open",
        "agents",
        "memory",
        "knowledge",
        "additional",
        "skills",
        "extra",
        "loaded-close",
    ),
    others=(
        *COMMON,
        Row(role="daily", path="memory/", kind="daily", personal=True),
        # Never injected on their own; listed as additional files (as the seed lists SOUL.md), these see them.
        Row(role="user", path="USER.md", scopes=_MINE, policy=Policy.IDENTITY, personal=True),
        Row(role="soul", path="SOUL.md", scopes=frozenset({M, G, C, H}), policy=Policy.IDENTITY),
        Row(role="identity", path="IDENTITY.md", scopes=frozenset({M, G, C, H}), policy=Policy.IDENTITY),
        Row(role="tools", path="TOOLS.md", scopes=frozenset({M, S, C, H}), policy=Policy.ASK),
        Row(role="heartbeat", path="HEARTBEAT.md", scopes=frozenset({H}), stable=False, policy=Policy.ASK),
        Row(role="agent-state", path="agents/", policy=Policy.CLOSED, kind="session"),
    ),
    talks="agents/{agent}/sessions",
    file_chars=100_000,
    total_chars=400_000,
    memory_tokens=8_000,
    heading="<{title}>",
    missing="",
    cut="memory-notice",
    cut_mark="... (memory truncated use memory_search for older entries) ...",
    frame=(
        "loaded_context",
        "agents_context",
        "memory_context",
        "domain_knowledge_context",
        "skills_context",
        "extra_context",
    ),
    guard=borders("##", "Session Context", "Workspace guidance"),
)

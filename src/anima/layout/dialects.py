"""The six ways a home can be laid out, as differences to the usual rows, and how to tell which one a folder is.

Promise: each table follows that system's own description; a row says what differs from the usual one, and every title
that a dialect draws is a border no data can fake. `detect` looks at names only, says why, and answers `anima` for a
folder that fits none. Not here: reading a folder; what a row means (layout).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from anima.errors import BadConfig
from anima.layout import ALL, COMMON, LOOKED_UP, MEMORY_NOTICE, NONE, Layout, Policy, Row, scopes
from anima.model import fold
from anima.text.dates import day_in_name

_CLOSED, _IDENTITY, _ASK, _RITUAL = Policy.CLOSED, Policy.IDENTITY, Policy.ASK, Policy.RITUAL
_KEPT: dict[str, Any] = {"stable": False, "data": True, "personal": True}
_USUAL = {
    row.role: row
    for row in (
        Row(role="identity", path="IDENTITY.md", scopes=scopes("MGCH"), form="text", policy=_IDENTITY),
        Row(role="soul", path="SOUL.md", scopes=scopes("MGCH"), form="text", policy=_IDENTITY),
        Row(role="agents", path="AGENTS.md", scopes=ALL, form="text", policy=_IDENTITY),
        Row(role="user", path="USER.md", scopes=scopes("MCH"), form="text", policy=_IDENTITY, personal=True),
        Row(role="tools", path="TOOLS.md", scopes=scopes("MSCH"), form="text", policy=_ASK),
        Row(role="skills", scopes=scopes("MSCH"), form="skills", data=True, policy=_ASK),
        Row(role="subagents", scopes=scopes("MSCH"), form="subagents", data=True, policy=_ASK),
        Row(role="knowledge", path="knowledge/", scopes=scopes("MCH"), form="knowledge", data=True, kind="knowledge"),
        Row(role="additional", title="{path}", form="additional", policy=_ASK, data=True),
        Row(role="extra", scopes=ALL, form="extra"),
        Row(role="memory", path="MEMORY.md", scopes=scopes("MH"), form="text", kind="curated", **_KEPT),
        Row(role="daily", path="memory/", scopes=scopes("MH"), form="daily", kind="daily", **_KEPT),
        Row(role="heartbeat", path="HEARTBEAT.md", scopes=scopes("H"), form="text", stable=False, policy=_ASK),
        Row(role="bootstrap", path="BOOTSTRAP.md", scopes=scopes("M"), form="text", stable=False, policy=_RITUAL),
        Row(role="runtime", scopes=ALL, form="runtime", stable=False),
    )
}


def _row(role: str, title: str | None = None, **differs: Any) -> Row:
    """The usual row of a role with what differs in one dialect; without a form it is never injected on its own."""
    return replace(_USUAL[role], **(differs if title is None else {"title": title, **differs}))


# Where sub-agents have no catalogue of skills, they open none.
_NO_SKILLS_BELOW = tuple(replace(row, scopes=scopes("MCH")) if row.role == "skill" else row for row in COMMON)


_RULE = r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})"  # a line drawn across
_FILE = r".*\.(?:md|txt)"


def _borders(hashes: str, rows: Iterable[Row], *more: str) -> str:
    """A regular expression of headings that could be taken for one of ours, whatever their case, blanks or hashes."""
    titles = [row.title for row in rows if row.title and "{" not in row.title]
    return rf" {{0,3}}{hashes}[ \t]+(?:{'|'.join([*titles, *more])})[ \t]*(?:#+[ \t]*)?"


# -- our own: the file table of the design ---------------------------------------------------------------------------

_FIELDS = ("name", "emoji", "vibe", "creature", "theme", "avatar", "*")  # whatever else the owner put there
_ROWS_OF_ANIMA = (
    _row("identity", "IDENTITY", form="identity", expected=True, fields=_FIELDS),
    _row("soul", "SOUL", expected=True),
    _row("agents", "AGENTS", expected=True),
    _row("user", "USER", expected=True),
    _row("tools", "TOOLS", expected=True),
    _row("skills", "SKILLS"),
    _row("subagents", "SUBAGENTS"),
    Row(role="memory-notice", scopes=scopes("MH"), form="fixed", text=MEMORY_NOTICE),
    _row("knowledge", "KNOWLEDGE", scopes=scopes("MH")),
    _row("additional"),
    _row("extra", "INSTRUCTIONS"),
    _row("memory", "MEMORY", expected=True),
    _row("daily", "{day}"),
    _row("heartbeat", "HEARTBEAT"),
    _row("bootstrap", "BOOTSTRAP"),
    _row("runtime", "RUNTIME"),
)
_ANIMA = Layout(
    dialect="anima", rows=_ROWS_OF_ANIMA, others=COMMON, frame=("memory",), guard=_borders("#", _ROWS_OF_ANIMA)
)

# -- OpenClaw (seed 001): `# Project Context` with one `## FILE` a block, 20,000 characters a file -------------------
# Groups get no SOUL, USER or MEMORY; sub-agents get AGENTS and TOOLS; daily logs are the owner's own.

_ROWS_OF_OPENCLAW = (
    Row(role="project-context", scopes=ALL, form="fixed", text="# Project Context"),
    _row("agents", "{path}", expected=True),
    _row("soul", "{path}", scopes=scopes("MCH"), expected=True),
    _row("identity", "{path}", expected=True),
    _row("user", "{path}", expected=True),
    _row("tools", "{path}", scopes=ALL, expected=True, retired_by="tools"),
    _row("additional"),
    _row("skills", "Skills", scopes=scopes("MCH")),
    _row("subagents", "Sub-agents", scopes=scopes("MCH")),
    _row("extra", "Extra system prompt"),
    Row(role="dynamic-context", scopes=ALL, form="fixed", stable=False, text="# Dynamic Project Context"),
    _row("heartbeat", "{path}", scopes=scopes("MH"), expected=True, retired_by="tools"),
    _row("bootstrap", "{path}"),
    _row("memory", "{path}", expected=True),
    _row("daily", "{path}"),
    _row("runtime", "Runtime"),
)
_OPENCLAW = Layout(
    dialect="openclaw",
    rows=_ROWS_OF_OPENCLAW,
    seed_order=tuple(
        "runtime project-context agents soul identity user tools heartbeat bootstrap memory daily"
        " additional skills subagents extra".split()
    ),
    others=_NO_SKILLS_BELOW,
    file_chars=20_000,
    total_chars=400_000,
    heading="## {title}",
    missing="<!-- [MISSING] Expected at: {path} -->",
    guard=_borders("#", (), "(?:Dynamic )?Project Context") + "|" + _borders("##", _ROWS_OF_OPENCLAW, _FILE),
)

# -- nexo (seed 000): `# IDENTITY` … `# MEMORY` blocks, 12,000 and 60,000 characters, `[truncated]`, notes by day -----
# Its shared sessions see IDENTITY, SOUL and AGENTS alone; its code let USER.md and the notes through.

_ROWS_OF_NEXO = (
    _row("identity", "IDENTITY", scopes=ALL, form="identity"),
    _row("soul", "SOUL", scopes=ALL),
    _row("user", "USER"),
    _row("agents", "AGENTS"),
    _row("additional", "RULES — {path}"),
    _row("skills", "SKILLS", scopes=scopes("MCH")),
    _row("subagents", "SUBAGENTS", scopes=scopes("MCH")),
    _row("extra", "INSTRUCTIONS"),
    _row("daily", "RECENT NOTES", path="notes/"),
    _row("memory", "MEMORY"),
    _row("heartbeat", "HEARTBEAT"),
    _row("runtime", "RUNTIME"),
)
_NEXO = Layout(
    dialect="nexo",
    rows=_ROWS_OF_NEXO,
    seed_order=tuple(
        "identity soul user agents daily memory additional skills subagents extra heartbeat runtime".split()
    ),
    others=(
        Row(role="archive", path="notes/archive/", kind="daily"),
        *_NO_SKILLS_BELOW,
        _row("tools", form=None),
        Row(role="memory-folder", path="memory/", kind="daily"),
    ),
    daily="notes",
    missing="",
    cut="head",
    cut_mark="[truncated]",
    guard=_borders("#", _ROWS_OF_NEXO, r"RULES\b.*"),
)

# -- Carapace (seed 002): AGENTS, SOUL, USER, two daily logs, CORE.md in main sessions only, the skill catalogue ------
# Raw texts joined by a rule, in the seed's own order (so the catalogue counts as volatile).
# Memory lives under `memory/`; every agent write asks (the `strict` preset).

_CARAPACE = Layout(
    dialect="carapace",
    rows=(
        _row("agents", expected=True),
        _row("soul", expected=True),
        _row("user", expected=True),
        _row("additional"),
        _row("extra"),
        _row("daily", path="memory/daily/"),
        _row("memory", path="memory/CORE.md", scopes=scopes("M"), expected=True),
        _row("skills", stable=False),
        _row("subagents", stable=False),
        _row("heartbeat", scopes=scopes("CH")),
        _row("runtime", "Session"),
    ),
    seed_order=tuple("agents soul user daily memory skills subagents additional extra heartbeat runtime".split()),
    others=(
        Row(role="archive", path="memory/daily/archive/", kind="daily"),
        *COMMON,
        _row("tools", form=None),
        _row("identity", form=None),
        Row(role="memory-folder", path="memory/", kind="topic"),
    ),
    file_chars=100_000,
    total_chars=400_000,
    curated="memory/CORE.md",
    daily="memory/daily",
    heading="",
    join="\n\n---\n\n",
    guard=_RULE,
)

# -- IronClaw (seed 003): nine steps with BOOTSTRAP first, `README.md` runbooks, logs in `daily/` ---------------------
# Four files are protected. Its code let USER.md and the daily logs into group chats; the text promises that nothing
# private leaks, so they stay out.

_ROWS_OF_IRONCLAW = (
    _row("bootstrap", "First-Run Bootstrap", stable=True),
    _row("agents", "Agent Instructions"),
    _row("soul", "Core Values"),
    _row("user", "User Context"),
    _row("identity", "Identity"),
    _row("tools", "Tool Notes"),
    _row("skills", "Skills"),
    _row("subagents", "Sub-agents"),
    _row("additional"),
    _row("extra", "Extra Instructions"),
    _row("memory", "Long-Term Memory"),
    _row("daily", "{when}'s Notes", path="daily/"),
    _row("heartbeat", "Heartbeat Checklist"),
    _row("runtime", "Runtime"),
)
_IRONCLAW = Layout(
    dialect="ironclaw",
    rows=_ROWS_OF_IRONCLAW,
    seed_order=tuple(
        "bootstrap agents soul user identity tools memory daily skills subagents additional extra heartbeat runtime".split()
    ),
    others=(
        Row(role="archive", path="daily/archive/", kind="daily"),
        *COMMON,
        Row(role="runbook", path="README.md", kind="runbook", **LOOKED_UP),
        Row(role="context", path="context/", kind="knowledge", **LOOKED_UP),
        Row(role="projects", path="projects/", kind="topic", **LOOKED_UP),
        Row(role="memory-folder", path="memory/", kind="topic"),
    ),
    file_chars=100_000,
    total_chars=400_000,
    daily="daily",
    topics="projects",
    heading="## {title}",
    join="\n\n---\n\n",
    missing="",
    guard=_borders("##", _ROWS_OF_IRONCLAW, "Today's Notes", "Yesterday's Notes", _FILE) + "|" + _RULE,
)

# -- AgentScope (seed 004): `## Session Context`, `## Workspace guidance`, `<loaded_context>` with its tags -----------
# MEMORY.md has what the other sections leave of 8,000 tokens (4 characters each), and ends in the seed's notice.

_GUIDANCE = """## Workspace guidance

Your workspace is a folder of Markdown files that outlives this conversation.
AGENTS.md says how you work, MEMORY.md what is worth keeping, knowledge/ what you can look up.
Before you answer from memory about people, dates, decisions or earlier work, call memory_search, then memory_get.
Write what should survive to memory/ with memory_write; what is not written down is gone when the session ends."""

_AGENTSCOPE = Layout(
    dialect="agentscope",
    rows=(
        Row(role="guidance", scopes=ALL, form="fixed", text=_GUIDANCE),
        Row(role="loaded-open", scopes=ALL, form="fixed", text="<loaded_context>"),
        _row("agents", "agents_context"),
        _row("knowledge", "domain_knowledge_context"),
        _row("additional"),
        _row("skills", "skills_context"),
        _row("subagents", "subagents_context"),
        _row("extra", "extra_context"),
        _row("memory", "memory_context"),
        Row(role="loaded-close", scopes=ALL, form="fixed", stable=False, text="</loaded_context>"),
        _row("runtime", "Session Context"),
    ),
    seed_order=tuple(
        "runtime guidance loaded-open agents memory knowledge additional skills subagents extra loaded-close".split()
    ),
    others=(
        *(row for row in COMMON if row.role != "agent-page"),
        _row("daily", form=None, scopes=NONE, stable=True, data=False),
        # Never injected on their own; listed as additional files (as the seed lists SOUL.md), these see them.
        *(_row(role, form=None) for role in ("user", "soul", "identity", "tools", "heartbeat")),
        Row(role="agent-state", path="agents/", policy=_CLOSED, kind="session"),
    ),
    talks="agents/{agent}/sessions",
    file_chars=100_000,
    total_chars=400_000,
    memory_tokens=8_000,
    heading="<{title}>",
    missing="",
    cut="memory-notice",
    cut_mark="... (memory truncated use memory_search for older entries) ...",
    frame=tuple(
        "loaded_context agents_context memory_context domain_knowledge_context skills_context subagents_context"
        " extra_context".split()
    ),
    guard=_borders("##", (), "Session Context", "Workspace guidance"),
)

DIALECTS: dict[str, Layout] = {
    layout.dialect: layout for layout in (_ANIMA, _OPENCLAW, _NEXO, _CARAPACE, _IRONCLAW, _AGENTSCOPE)
}


class Detection(NamedTuple):
    """Which dialect a folder is, and the sentence that says why."""

    dialect: str
    why: str


def layout_for(dialect: str) -> Layout:
    """The table of a dialect. Raises BadConfig for a name that is none."""
    try:
        return DIALECTS[dialect]
    except KeyError:
        known = ", ".join(["auto", *DIALECTS])
        raise BadConfig(f"there is no dialect {dialect!r}; there are {known}") from None


def detect(names: Iterable[str]) -> Detection:
    """The dialect of a folder from the names in its first two levels; folders end with a slash."""
    seen = {fold(name) for name in names}

    def has(*names: str) -> bool:
        return all(fold(name) in seen for name in names)

    def dated(folder: str) -> bool:
        return any(name.startswith(f"{folder}/") and day_in_name(name[len(folder) + 1 :]) for name in seen)

    said, core = has("SOUL.md") or has("IDENTITY.md"), has("AGENTS.md", "SOUL.md")
    talks = any(name.startswith("agents/") and name.endswith("/sessions/") for name in seen)
    lean = has("AGENTS.md") and not said
    noted = has("notes/") or has("DREAMS.md")
    bare = has("IDENTITY.md", "SOUL.md") and noted and not has("TOOLS.md") and not has("memory/")
    beside = has("README.md", "MEMORY.md") and any(map(has, ("context/", "daily/", "projects/")))
    more = [name for name in ("IDENTITY.md", "USER.md", "HEARTBEAT.md") if has(name)]
    newer = core and has("IDENTITY.md", "USER.md", "memory/")
    # The most telling first: OpenClaw's core files stand in several other layouts too. Since 2026.9 its notes on tools
    # stand in AGENTS.md, and there is no HEARTBEAT.md.
    signs = (
        ("carapace", has("memory/CORE.md"), "it has memory/CORE.md"),
        ("carapace", has("memory/daily/"), "it has memory/daily/"),
        ("ironclaw", dated("daily"), "it has dated logs in daily/"),
        ("ironclaw", beside, "it has README.md beside MEMORY.md, and context/, daily/ or projects/"),
        ("agentscope", has("memory/.consolidation_state"), "it has memory/.consolidation_state"),
        ("agentscope", has("AGENTS.md") and talks, "it has AGENTS.md, and sessions of agents in agents/"),
        ("agentscope", lean and has("agents/"), "it has AGENTS.md and agents/, and no SOUL.md"),
        ("agentscope", lean and has("knowledge/"), "it has AGENTS.md and knowledge/, and no SOUL.md"),
        ("nexo", said and dated("notes"), "it has SOUL.md or IDENTITY.md, and dated notes in notes/"),
        ("nexo", bare, "it has IDENTITY.md and SOUL.md with notes/ or DREAMS.md, and no TOOLS.md"),
        ("openclaw", core and has("TOOLS.md") and more, f"it has AGENTS.md, SOUL.md, TOOLS.md and {', '.join(more)}"),
        ("openclaw", newer, "it has AGENTS.md, SOUL.md, IDENTITY.md, USER.md and memory/"),
        ("anima", True, "nothing in it belongs to another dialect"),
    )
    return next(Detection(dialect=dialect, why=why) for dialect, fits, why in signs if fits)


def dialect_of(made: str, names: Callable[[str], Sequence[str]], is_folder: Callable[[str], bool]) -> Detection:
    """The dialect of a folder that can be looked into: the one it was `made` in, else the one its names tell of."""
    if made in DIALECTS:
        return Detection(dialect=made, why="anima made it so")
    seen = []
    for name in names(""):
        seen.append(name + "/" * is_folder(name))
        below = names(name) if name in ("memory", "daily", "notes", "knowledge", "agents") else ()
        inner = (f"{name}/{each}" for each in below[:2000])
        seen += [each + "/" * ("." not in each and is_folder(each)) for each in inner]
        if name == "agents":
            seen += [f"agents/{each}/sessions/" for each in below[:100] if is_folder(f"agents/{each}/sessions")]
    return detect(seen)

"""Six layouts, each against its own text: order, headings, caps, marks, missing markers, scopes, detection.

What each seed demands, and where ours differs on purpose:

nexo        `# IDENTITY` (one line), `# SOUL`, `# USER`, `# AGENTS`, notes, `# MEMORY`; 12,000 characters a file, 60,000 in
            all, `[truncated]`; shared sessions see IDENTITY, SOUL and AGENTS alone. Its code has `# RECENT NOTES` with a
            `## day` for each note, so have we; it reads notes/, as the text says, and cuts at a line border.
OpenClaw    `# Project Context` with a `## FILE` each, 20,000 characters a file, a marker comment for a missing file, AGENTS
            and TOOLS alone for sub-agents, no SOUL, USER or MEMORY for groups. The text names three orders; ours is the
            one its renderer uses. What moves stands under `# Dynamic Project Context`. Daily logs, "every session" in the
            text, are the owner's own here; HEARTBEAT.md stands in main and heartbeat sessions, as the text says twice.
Carapace    AGENTS, SOUL, USER, logs of today and yesterday, CORE.md in main sessions alone, the skill catalogue: raw texts
            with a rule between them. The text names no scopes but that one; groups get AGENTS and SOUL here. HEARTBEAT.md
            joins cron and heartbeat sessions, TOOLS.md is not in the sequence and is not injected.
IronClaw    BOOTSTRAP (while there is one), AGENTS, SOUL, USER, IDENTITY, TOOLS, MEMORY, today, yesterday, with the headings
            of its code and a rule between them. The text keeps MEMORY.md from groups; its SOUL promises that no user
            context leaks into one, so USER, TOOLS and the logs stay out, too.
AgentScope  `## Session Context`, `## Workspace guidance`, `<loaded_context>` with `<agents_context>`, `<memory_context>`,
            `<domain_knowledge_context>` and a tag named like the path of each additional file; MEMORY.md gets what the
            others leave of 8,000 tokens (4 characters each) and then the seed's notice, also when nothing is left. The
            guidance is our own wording; skills have a tag of their own, of which the text says nothing.
all         What never moves comes first, whatever the seed says, unless order = "seed".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from datetime import datetime
from pathlib import Path

import pytest

from anima import BadConfig, Home, Prompt, Runtime, Scope
from anima.layout.dialects import DIALECTS, detect, layout_for
from conftest import HOMES, NOW
from frozen import frozen

RUNTIME = Runtime(host="Linux", model="m1", channel="cli")
NOTICE = "... (memory truncated use memory_search for older entries) ..."
Make = Callable[[str], Path]


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


def prompt_of(root: Path, dialect: str, scope: str, **asked: object) -> Prompt:
    given = {
        "dialect": dialect,
        "timezone": "America/Bogota",
        **{f"prompt.{key}": value for key, value in asked.items()},
    }
    with Home.open(root, settings=given, clock=lambda: NOW) as home:
        return home.prompt(scope=scope, runtime=RUNTIME)


def shown(prompt: Prompt) -> list[str]:
    return [row.path for row in prompt.manifest if row.status in ("shown", "cut") and row.path]


def status(prompt: Prompt, path: str) -> str:
    return next(row.status for row in prompt.manifest if row.path == path)


# -- whole prompts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("scope", list(Scope))
def test_a_prompt_is_what_it_was_when_somebody_last_read_it(dialect: str, scope: str) -> None:
    with Home.open(HOMES / dialect, settings={"timezone": "America/Bogota"}, clock=lambda: NOW) as home:
        prompt = home.prompt(scope=scope, runtime=RUNTIME)
        text = f"{prompt.stable}\n======== what moves ========{prompt.volatile}\n"
        said = text.replace(home.name, "HOME") + "======== manifest ========\n"
    said += "".join(f"{row.status:10} {row.role:10} {row.path} {row.reason}".rstrip() + "\n" for row in prompt.manifest)
    assert said == frozen(f"{dialect}-{scope}.txt", said)


# -- detection -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "why"),
    [
        ("nexo", "it has SOUL.md or IDENTITY.md, and dated notes in notes/"),
        ("openclaw", "it has AGENTS.md, SOUL.md, TOOLS.md and IDENTITY.md, USER.md, HEARTBEAT.md"),
        ("carapace", "it has memory/CORE.md"),
        ("ironclaw", "it has dated logs in daily/"),
        ("agentscope", "it has memory/.consolidation_state"),
        ("anima", "dialect is set by anima.toml"),
    ],
)
def test_each_example_home_is_known_for_what_it_is(dialect: str, why: str) -> None:
    with Home.open(HOMES / dialect) as home:
        assert (home.dialect, home.site.detected_by) == (dialect, why)


@pytest.mark.parametrize(
    ("names", "dialect"),
    [
        ([], "anima"),
        (["memory/", "memory/2026-05-08.md"], "anima"),
        (["MEMORY.md"], "anima"),
        (["README.md", "src/"], "anima"),
        (["memory/", "memory/daily/"], "carapace"),
        (["Memory/", "Memory/Core.md"], "carapace"),
        (["README.md", "MEMORY.md", "context/"], "ironclaw"),
        (["AGENTS.md", "agents/"], "agentscope"),
        (["AGENTS.md", "knowledge/"], "agentscope"),
        (["AGENTS.md", "knowledge/", "SOUL.md"], "anima"),
        (["IDENTITY.md", "SOUL.md", "USER.md", "AGENTS.md", "MEMORY.md", "DREAMS.md"], "nexo"),
        (["AGENTS.md", "SOUL.md", "TOOLS.md", "USER.md"], "openclaw"),
        (["agents.md", "soul.md", "tools.md", "identity.md", "memory/"], "openclaw"),
    ],
)
def test_a_folder_is_known_by_its_names(names: list[str], dialect: str) -> None:
    found = detect(names)
    assert found.dialect == dialect
    assert found.why


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_that_is_asked_for_wins(example: Make, dialect: str) -> None:
    root = example("carapace")
    with Home.open(root, settings={"dialect": dialect}) as home:
        assert home.dialect == dialect
    write(root, "anima.toml", f'dialect = "{dialect}"\n')
    with Home.open(root) as home:
        assert (home.dialect, home.site.detected_by) == (dialect, "dialect is set by anima.toml")


def test_there_is_no_other_dialect() -> None:
    with pytest.raises(BadConfig, match="auto, anima, openclaw, nexo, carapace, ironclaw, agentscope"):
        layout_for("klingon")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_opening_a_home_and_making_prompts_changes_nothing_in_it(example: Make, dialect: str) -> None:
    root = example(dialect)
    before = {path: (path.stat().st_mtime_ns, path.is_dir() or path.read_bytes()) for path in [root, *root.rglob("*")]}
    for scope in ("main", "group", "heartbeat"):
        prompt_of(root, dialect, scope)
    assert {
        path: (path.stat().st_mtime_ns, path.is_dir() or path.read_bytes()) for path in [root, *root.rglob("*")]
    } == before


# -- nexo ----------------------------------------------------------------------------------------------------------------


def test_nexo_draws_a_block_for_each_file_in_its_order(example: Make) -> None:
    prompt = prompt_of(example("nexo"), "nexo", "main", order="seed")
    blocks = ["IDENTITY", "SOUL", "USER", "AGENTS", "RECENT NOTES", "MEMORY", "RUNTIME"]
    assert re.findall(rf"^# ({'|'.join(blocks)})$", prompt.text, re.MULTILINE) == blocks
    assert prompt.text.startswith("# IDENTITY\nname=Marta, emoji=🪿, vibe=quick, dry, on the user's side\n\n# SOUL\n")


def test_nexo_cuts_at_twelve_thousand_a_file_and_sixty_thousand_in_all(tmp_path: Path) -> None:
    for name in ("SOUL", "USER", "AGENTS", "MEMORY"):
        write(tmp_path, f"{name}.md", "a line of thirty characters ...\n" * 1_000)
    for day in ("07", "08", "08-a", "08-b"):
        write(tmp_path, f"notes/2026-05-{day}.md", "a line of thirty characters ...\n" * 1_000)
    prompt = prompt_of(tmp_path, "nexo", "main")
    whole = [row for row in prompt.manifest if row.status == "cut" and row.chars_shown > 11_900]

    assert (prompt.limits.file, prompt.limits.total) == (12_000, 60_000)
    assert len(prompt.text) <= 60_000
    assert len(whole) >= 4
    assert all(row.chars_shown <= 12_000 for row in prompt.manifest)
    soul = prompt.text.partition("# SOUL\n")[2].partition("\n\n# USER")[0]
    assert soul.endswith("characters ...\n[truncated]")
    assert not any(row.status == "dropped" for row in prompt.manifest)  # what there is no room for keeps its mark


def test_nexo_leaves_no_sign_where_a_file_is_missing(tmp_path: Path) -> None:
    write(tmp_path, "SOUL.md", "I am.\n")
    prompt = prompt_of(tmp_path, "nexo", "main")
    assert prompt.stable == "# SOUL\nI am."
    assert status(prompt, "MEMORY.md") == "missing"


def test_nexo_puts_one_heading_over_its_notes(tmp_path: Path) -> None:
    write(tmp_path, "notes/2026-05-08.md", "\n")
    write(tmp_path, "notes/2026-05-07.md", "yesterday\n")
    write(tmp_path, "notes/2026-05-07-more.md", "and more\n")
    text = prompt_of(tmp_path, "nexo", "main").volatile
    assert text.startswith("# RECENT NOTES\n## 2026-05-07\nyesterday\n\n## 2026-05-07\nand more\n\n# RUNTIME")


@pytest.mark.parametrize("scope", ["group", "subagent"])
def test_nexo_shows_shared_sessions_three_files(example: Make, scope: str) -> None:
    assert shown(prompt_of(example("nexo"), "nexo", scope)) == ["IDENTITY.md", "SOUL.md", "AGENTS.md"]


# -- OpenClaw ------------------------------------------------------------------------------------------------------------


def test_openclaw_draws_every_file_under_project_context(example: Make) -> None:
    prompt = prompt_of(example("openclaw"), "openclaw", "main")
    headings = re.findall(r"^##? (.*(?:\.md|Context|Runtime))$", prompt.text, re.MULTILINE)
    assert headings == [
        "Project Context",
        "AGENTS.md",
        "SOUL.md",
        "IDENTITY.md",
        "IDENTITY.md",
        "USER.md",
        "TOOLS.md",
        "Dynamic Project Context",
        "HEARTBEAT.md",
        "MEMORY.md",
        "memory/2026-05-08.md",
        "memory/2026-05-07.md",
        "Runtime",
    ]  # IDENTITY.md begins with its own name


def test_openclaw_in_its_own_order_begins_with_the_runtime(example: Make) -> None:
    text = prompt_of(example("openclaw"), "openclaw", "main", order="seed").text
    assert text.startswith("## Runtime\n")
    assert "# Dynamic Project Context" not in text
    assert text.index("# Project Context") < text.index("## AGENTS.md") < text.index("## MEMORY.md")


def test_openclaw_cuts_at_twenty_thousand_and_keeps_both_ends(tmp_path: Path) -> None:
    write(tmp_path, "SOUL.md", "first line\n" + "something in between\n" * 2_000 + "last line\n")
    prompt = prompt_of(tmp_path, "openclaw", "main")
    row = next(row for row in prompt.manifest if row.path == "SOUL.md")
    assert (row.status, prompt.limits.file) == ("cut", 20_000)
    assert 19_900 < row.chars_shown <= 20_000
    assert "first line" in prompt.text
    assert "last line" in prompt.text


def test_openclaw_marks_what_is_missing(tmp_path: Path) -> None:
    text = prompt_of(tmp_path, "openclaw", "main").text
    for name in ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "HEARTBEAT.md", "MEMORY.md"):
        assert f"## {name}\n<!-- [MISSING] Expected at: {name} -->" in text
    assert "BOOTSTRAP.md" not in text


def test_openclaw_keeps_soul_user_and_memory_from_groups(example: Make) -> None:
    prompt = prompt_of(example("openclaw"), "openclaw", "group")
    assert shown(prompt) == ["AGENTS.md", "IDENTITY.md", "TOOLS.md"]
    for word in ("SOUL", "USER", "MEMORY", "TODAY", "YESTERDAY", "HEARTBEAT"):
        assert f"CANARY-OPENCLAW-{word}" not in prompt.text


def test_openclaw_gives_sub_agents_the_guide_and_the_tools(example: Make) -> None:
    root = example("openclaw")
    write(root, "skills/tide/SKILL.md", "---\nname: tide\ndescription: x\n---\n")
    prompt = prompt_of(root, "openclaw", "subagent")
    assert shown(prompt) == ["AGENTS.md", "TOOLS.md"]


# -- Carapace ------------------------------------------------------------------------------------------------------------


def test_carapace_joins_its_files_in_the_seeds_order(example: Make) -> None:
    for order in ("stable", "seed"):
        prompt = prompt_of(
            example("carapace") if order == "stable" else HOMES / "carapace", "carapace", "main", order=order
        )
        assert shown(prompt) == [
            "AGENTS.md",
            "SOUL.md",
            "USER.md",
            "memory/daily/2026-05-08.md",
            "memory/daily/2026-05-07.md",
            "memory/CORE.md",
            "skills/",
        ]
        assert prompt.text.count("\n\n---\n\n") == 7
        assert "- repotting: Plan a repotting day" in prompt.text
        assert "CANARY-CARAPACE-SKILL" not in prompt.text  # names and descriptions only


@pytest.mark.parametrize("scope", ["group", "subagent", "cron", "heartbeat"])
def test_carapace_shows_core_in_main_sessions_alone(scope: str) -> None:
    assert "CANARY-CARAPACE-CORE" not in prompt_of(HOMES / "carapace", "carapace", scope).text
    assert "CANARY-CARAPACE-CORE" in prompt_of(HOMES / "carapace", "carapace", "main").text


def test_carapace_reads_its_checklist_in_periodic_sessions() -> None:
    for scope in ("cron", "heartbeat"):
        assert "CANARY-CARAPACE-HEARTBEAT" in prompt_of(HOMES / "carapace", "carapace", scope).text
    assert "CANARY-CARAPACE-HEARTBEAT" not in prompt_of(HOMES / "carapace", "carapace", "main").text


# -- IronClaw ------------------------------------------------------------------------------------------------------------

NINE = [
    "First-Run Bootstrap",
    "Agent Instructions",
    "Core Values",
    "User Context",
    "Identity",
    "Tool Notes",
    "Long-Term Memory",
    "Today's Notes",
    "Yesterday's Notes",
]


@pytest.mark.parametrize("order", ["stable", "seed"])
def test_ironclaw_takes_nine_steps_with_the_first_run_first(example: Make, order: str) -> None:
    root = example("ironclaw")
    write(root, "BOOTSTRAP.md", "Say hello.\n")
    text = prompt_of(root, "ironclaw", "main", order=order).text
    assert re.findall(rf"^## ({'|'.join(NINE)})$", text, re.MULTILINE) == NINE
    assert text.startswith("## First-Run Bootstrap\nSay hello.\n\n---\n\n## Agent Instructions\n")


def test_ironclaw_has_eight_steps_when_the_first_run_is_over() -> None:
    prompt = prompt_of(HOMES / "ironclaw", "ironclaw", "main")
    assert re.findall(rf"^## ({'|'.join(NINE)})$", prompt.text, re.MULTILINE) == NINE[1:]
    assert status(prompt, "BOOTSTRAP.md") == "missing"
    assert "missing" not in prompt.text.lower()


def test_ironclaw_leaks_no_user_context_into_groups() -> None:
    assert shown(prompt_of(HOMES / "ironclaw", "ironclaw", "group")) == ["AGENTS.md", "SOUL.md", "IDENTITY.md"]


def test_ironclaw_never_injects_its_runbooks() -> None:
    for scope in ("main", "group", "cron"):
        text = prompt_of(HOMES / "ironclaw", "ironclaw", scope).text
        assert "CANARY-IRONCLAW-README" not in text
        assert "CANARY-IRONCLAW-VISION" not in text


# -- AgentScope ----------------------------------------------------------------------------------------------------------


def test_agentscope_in_its_own_order_is_the_fixed_structure_of_the_seed(example: Make) -> None:
    root = example("agentscope")
    write(root, "SOUL.md", "Be brief.\n")
    write(root, "docs/PREFERENCES.md", "Metric units.\n")
    text = prompt_of(root, "agentscope", "main", order="seed", additional=["SOUL.md", "docs/PREFERENCES.md"]).text
    marks = [
        "## Session Context",
        "## Workspace guidance",
        "<loaded_context>",
        "<agents_context>",
        "</agents_context>",
        "<memory_context>",
        "</memory_context>",
        "<domain_knowledge_context>",
        "</domain_knowledge_context>",
        "<SOUL.md>",
        "</SOUL.md>",
        "<docs/PREFERENCES.md>",
        "</docs/PREFERENCES.md>",
        "</loaded_context>",
    ]
    assert [text.count(mark) for mark in marks] == [1] * len(marks)
    assert sorted(marks, key=text.index) == marks
    assert text.startswith("## Session Context\n\nDate: Friday 2026-05-08, 14:30 (America/Bogota)\nHost: Linux\n")
    assert f"Workspace: {root}" in text
    assert "<SOUL.md>\nBe brief.\n</SOUL.md>" in text
    assert "- knowledge/engines.md\n- knowledge/safety.md\n</domain_knowledge_context>" in text
    assert "CANARY-AGENTSCOPE-TODAY" not in text  # daily logs are searched, not injected


def test_agentscope_keeps_what_never_moves_first() -> None:
    prompt = prompt_of(HOMES / "agentscope", "agentscope", "main")
    assert prompt.stable.startswith("## Workspace guidance")
    assert prompt.volatile.lstrip().startswith("<memory_context>")
    assert prompt.text.index("</loaded_context>") < prompt.text.index("## Session Context")


@pytest.mark.parametrize("order", ["stable", "seed"])
def test_agentscope_gives_memory_what_the_others_leave_of_eight_thousand_tokens(tmp_path: Path, order: str) -> None:
    write(tmp_path, "AGENTS.md", "x" * 10_000)
    write(tmp_path, "knowledge/KNOWLEDGE.md", "y" * 6_000)
    write(tmp_path, "MEMORY.md", "- a line of memory\n" * 4_000)
    prompt = prompt_of(tmp_path, "agentscope", "main", order=order)
    memory = prompt.text.partition("<memory_context>\n")[2].partition("\n</memory_context>")[0]
    assert prompt.limits.memory == 32_000
    assert memory.endswith(f"- a line of memory\n{NOTICE}")
    rest = len(prompt.text) - len(memory)
    assert 31_500 < len(memory) + rest <= 32_200  # the text's own estimate, the joins apart


@pytest.mark.parametrize("order", ["stable", "seed"])
def test_agentscope_shows_the_notice_alone_when_nothing_is_left(tmp_path: Path, order: str) -> None:
    write(tmp_path, "AGENTS.md", "x" * 40_000)
    write(tmp_path, "MEMORY.md", "- a line of memory\n" * 4_000)
    prompt = prompt_of(tmp_path, "agentscope", "main", order=order)
    assert f"<memory_context>\n{NOTICE}\n</memory_context>" in prompt.text
    assert "- a line of memory" not in prompt.text
    assert status(prompt, "MEMORY.md") == "cut"
    assert "x" * 40_000 in prompt.text  # the guide is injected in full


def test_agentscope_cuts_memory_alone_by_tokens(tmp_path: Path) -> None:
    write(tmp_path, "AGENTS.md", "guide\n")
    write(tmp_path, "MEMORY.md", "- a line of memory\n" * 100)
    short = prompt_of(tmp_path, "agentscope", "main", memory_tokens=100)
    assert short.text.count(NOTICE) == 1
    assert prompt_of(tmp_path, "agentscope", "main").text.count(NOTICE) == 0


def test_agentscope_only_warns_of_what_is_missing(tmp_path: Path, example: Make) -> None:
    with Home.open(tmp_path, settings={"dialect": "agentscope"}, clock=lambda: NOW) as home:
        assert home.upkeep.validate() == ("AGENTS.md is missing; the agent works, but has no guide",)
        assert "<loaded_context>" in home.prompt(scope="main").text
    with Home.open(example("agentscope")) as home:
        assert home.upkeep.validate() == ()


# -- all of them ---------------------------------------------------------------------------------------------------------

ORDERS = {
    "anima": [
        "identity",
        "soul",
        "agents",
        "user",
        "tools",
        "skills",
        "knowledge",
        "additional",
        "extra",
        "memory",
        "daily",
        "heartbeat",
        "bootstrap",
        "runtime",
    ],
    "openclaw": ["runtime", "agents", "soul", "identity", "user", "tools", "heartbeat", "bootstrap", "memory", "daily"],
    "nexo": ["identity", "soul", "user", "agents", "daily", "memory"],
    "carapace": ["agents", "soul", "user", "daily", "memory", "skills"],
    "ironclaw": ["bootstrap", "agents", "soul", "user", "identity", "tools", "memory", "daily"],
    "agentscope": ["runtime", "agents", "memory", "knowledge", "additional"],
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_seed_has_its_own_order(dialect: str) -> None:
    prompt = prompt_of(HOMES / dialect, dialect, "main", order="seed", additional=["NOT-THERE.md"])
    roles = list(dict.fromkeys(row.role for row in prompt.manifest))
    assert [role for role in roles if role in ORDERS[dialect]] == [role for role in ORDERS[dialect] if role in roles]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("scope", ["main", "group", "subagent", "cron", "heartbeat"])
def test_from_the_first_moving_row_on_everything_moves_in_the_seeds_order(dialect: str, scope: str) -> None:
    """The stable part is a prefix in either order, and the same words stand in both."""
    seed, ours = (prompt_of(HOMES / dialect, dialect, scope, order=order) for order in ("seed", "stable"))
    assert seed.text.startswith(seed.stable)
    assert {(row.role, row.path, row.status) for row in seed.manifest} == {
        (row.role, row.path, row.status) for row in ours.manifest
    }
    assert len(seed.stable) <= len(ours.stable)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_scope_of_an_empty_home_has_a_prompt(tmp_path: Path, dialect: str, clock: Callable[[], datetime]) -> None:
    for scope in ("main", "group", "subagent", "cron", "heartbeat"):
        assert f"Listening: {scope}" in prompt_of(tmp_path, dialect, scope).text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_table_says_has_the_type_of_its_default(dialect: str) -> None:
    layout = layout_for(dialect)
    for made in (layout, *layout.rows, *layout.others):
        known = {each.name: each.default for each in fields(made) if each.default not in (MISSING, None)}
        assert {name: type(getattr(made, name)) for name in known} == {name: type(of) for name, of in known.items()}

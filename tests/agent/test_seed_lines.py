"""The lines of the seeds about heartbeat, BOOT, routines, sub-agents, delegates, skills and bindings, one test a line.

A test's name is the line in short; its seed and number stand above it. What is deliberately different stands in
docs/dialects.md, and the test says how it is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from anima import Home, HomeError, Scope
from anima.agent.rituals import Rituals
from anima.agent.schedule import is_silence
from anima.errors import BadArguments
from anima.model import Origin
from anima.testing import Clock
from casting import RESEARCHER, Cast, main_talk, put, spawn, talk

Example = Callable[[str], Path]
CHECKLIST = "# Heartbeat Checklist\n\n- [ ] Check for urgent messages\n"


@pytest.fixture
def woken() -> Clock:
    return Clock("2026-05-08T09:00:00+00:00")


@pytest.fixture(params=["anima", "openclaw"])
def home(request: pytest.FixtureRequest, tmp_path: Path, woken: Clock) -> Iterator[Home]:
    """A home in which everything that is somebody's own has a word that is found nowhere else."""
    given = {"dialect": request.param, "timezone": "UTC"}
    with Home.create(tmp_path / "home", name="Aria", clock=woken, settings=given) as home:
        for path in ("SOUL.md", "USER.md", "MEMORY.md", "AGENTS.md", "TOOLS.md"):
            home.write(path, f"# Page\n\n- WORD-OF-{path[:-3]}\n")
        put(home, "subagents/researcher.md", RESEARCHER)
        yield home


def ran(home: Home, clock: Clock, cast: Cast, **pages: str) -> list[Any]:
    """What became of an hour with these pages, where the schedule is on."""
    for path, text in pages.items():
        home.write(path, text)
    rituals = Rituals(home, made=cast)
    rituals.switch(on=True)
    rituals.round()
    clock.forward(hours=1)
    return rituals.round()


# -- 000: nexo -----------------------------------------------------------------------------------------------------------


# 000, line 13
def test_agents_md_is_peers_this_agent_knows_about(home: Home) -> None:
    home.write("AGENTS.md", "# Peers\n\n- **kate**: writes letters\n- **bob**: keeps the books\n")
    assert [(peer.id, peer.description) for peer in home.identity.peers()] == [
        ("kate", "writes letters"),
        ("bob", "keeps the books"),
    ]


# 000, line 80
@pytest.mark.parametrize("allowed", [[], ["kate"]])
def test_which_peers_this_agent_can_delegate_to_pairs_with_allowed_delegates(
    tmp_path: Path, woken: Clock, allowed: list[str]
) -> None:
    rows = [{"id": "main", "allowed_delegates": allowed}, {"id": "kate", "home": "kate"}]
    with Home.create(tmp_path / "h", clock=woken, settings={"agent": rows}) as home:
        home.write("AGENTS.md", "# Peers\n\n- **kate**: writes letters\n- **bob**: keeps the books\n")
        cast = Cast()
        main_talk(home, cast)
        assert ("agent_ask" in cast.tools["main"]) == bool(allowed)


# 000, line 82
def test_both_are_free_form_markdown_read_into_the_prompt(home: Home) -> None:
    text = home.prompt(scope=Scope.MAIN).text
    assert "WORD-OF-AGENTS" in text and "WORD-OF-USER" in text


# -- 001: OpenClaw -------------------------------------------------------------------------------------------------------


# 001, line 32
def test_heartbeat_md_is_what_to_check_periodically_in_heartbeat_runs_only(home: Home, woken: Clock) -> None:
    cast = Cast(["HEARTBEAT_OK"])
    (done,) = ran(home, woken, cast, **{"HEARTBEAT.md": CHECKLIST})
    assert done.status == "silent" and "Check for urgent messages" in cast.seen["main"]
    others = {Scope.GROUP, Scope.SUBAGENT, Scope.CRON} | ({Scope.MAIN} if home.dialect == "anima" else set())
    assert all("urgent messages" not in home.prompt(scope=scope).text for scope in others)


# 001, line 33
def test_boot_md_is_restart_actions_at_gateway_startup(home: Home, woken: Clock) -> None:
    home.write("BOOT.md", "Say that you are back.\n")
    rituals = Rituals(home, made=Cast(["I am back."] * 9))
    rituals.switch(on=True)
    assert [done.status for done in rituals.round(starting=True)] == ["delivered"]
    assert rituals.round() == [] and rituals.round(starting=True) == []
    woken.forward(hours=2)
    assert [done.ritual for done in rituals.round(starting=True)] == ["boot"]


# 001, lines 70, 133 and 190
def test_sub_agent_sessions_receive_a_reduced_allowlist_only_agents_md_and_tools_md(home: Home) -> None:
    cast = Cast([spawn(), "So."])
    main_talk(home, cast)
    assert "WORD-OF-AGENTS" in cast.seen["researcher"] and "WORD-OF-TOOLS" in cast.seen["researcher"]


# 001, lines 71, 235 and 466
@pytest.mark.parametrize("scope", [Scope.SUBAGENT, Scope.GROUP])
def test_soul_user_and_memory_never_leak_into_sub_agent_or_group_contexts(home: Home, scope: Scope) -> None:
    text = home.prompt(scope=scope).text
    hidden = ["USER", "MEMORY"] + (["SOUL"] if scope is Scope.SUBAGENT or home.dialect == "openclaw" else [])
    assert [word for word in hidden if f"WORD-OF-{word}" in text] == []  # who it is, ours shows to a group


# 001, lines 205 and 285
def test_periodic_memory_consolidation_during_heartbeat_runs_is_reviewed(home: Home, woken: Clock) -> None:
    wish = ("memory_write", {"target": "memory", "content": "Ana likes tea"})
    cast = Cast([wish, "HEARTBEAT_OK"])
    ran(home, woken, cast, **{"HEARTBEAT.md": CHECKLIST})
    assert "belongs in your memory" in cast.seen["main"]
    assert "tea" not in home.read("MEMORY.md").text
    assert [each.entry.text.strip() for each in home.inbox.noted()] == ["- Ana likes tea"]


# 001, line 247, which is a complaint
def test_sub_agent_isolation_is_not_all_or_nothing_a_heading_shares(home: Home) -> None:
    home.write("SOUL.md", "# Soul\n\n- WORD-OF-SOUL\n\n## Tone <!-- share: subagent -->\n\n- WORD-OF-TONE\n")
    cast = Cast([spawn(), "So."])
    main_talk(home, cast)
    assert "WORD-OF-TONE" in cast.seen["researcher"] and "WORD-OF-SOUL" not in cast.seen["researcher"]


# 001, line 275
@pytest.mark.parametrize("scope", [Scope.CRON, Scope.HEARTBEAT, Scope.SUBAGENT])
def test_workspace_write_access_is_restricted_for_automated_or_sub_agent_sessions(home: Home, scope: Scope) -> None:
    with home.session(scope=scope) as session:
        for path in ("SOUL.md", "MEMORY.md", "AGENTS.md", "subagents/researcher.md", "routines/x.md"):
            given = {"target": path, "content": "be bad", "append": False}
            assert session.call("memory_write", given)["status"] in ("pending", "refused")


# 001, line 297
def test_long_tool_notes_are_split_into_separate_skill_files(home: Home) -> None:
    put(
        home,
        "skills/ssh-hosts/SKILL.md",
        "---\nname: ssh-hosts\ndescription: Which hosts there are.\n---\n\nWORD-OF-HOSTS\n",
    )
    assert "WORD-OF-HOSTS" not in home.prompt(scope=Scope.MAIN).text
    cast = Cast([("skill_read", {"name": "ssh-hosts"}), "So."])
    main_talk(home, cast)
    assert "Which hosts there are." in cast.seen["main"] and "WORD-OF-HOSTS" in cast.seen["main"]


# 001, line 310
def test_a_sub_agent_launched_with_a_crafted_workspace_path_reads_nothing_outside(home: Home) -> None:
    page = RESEARCHER.replace("---\n\n", "workspace: {mode: isolated, path: ../../}\n---\n\n", 1)
    put(home, "subagents/researcher.md", page)
    reads = [
        ("memory_get", {"path": path})
        for path in ("../MEMORY.md", "/etc/passwd", "MEMORY.md", "USER.md", "../../SOUL.md")
    ]
    cast = Cast(
        [spawn(), "So."],
        researcher=[*reads, ("memory_tree", {"depth": 9}), ("memory_search", {"query": "WORD"}), "No."],
    )
    main_talk(home, cast)
    assert "root:" not in cast.seen["researcher"]
    assert [word for word in ("MEMORY", "USER", "SOUL") if f"- WORD-OF-{word}" in cast.seen["researcher"]] == []


# 001, line 314
@pytest.mark.parametrize("access", ["ro", "none"])
def test_workspace_access_ro_or_none_for_untrusted_sub_agent_runs(home: Home, access: Any) -> None:
    with home.session(scope=Scope.MAIN, access=access) as session:
        sub = session.sub(agent=home.prompts.subagents()[0]["researcher"])
        assert sub.access == access
        try:
            assert sub.call("memory_write", {"target": "x.md", "content": "x"})["status"] == "refused"
        except BadArguments as error:
            assert access == "none" and "no access" in str(error)


# 001, line 423
def test_channel_bindings_route_messages_to_the_correct_agent_and_identities_never_bleed(
    tmp_path: Path, woken: Clock
) -> None:
    for name in ("aria", "devbot"):
        with Home.create(tmp_path / name, name=name.title(), clock=woken) as home:
            home.write("SOUL.md", f"# Soul\n\nSOUL-OF-{name}\n")
    rows = '\n[[agent]]\nid = "aria"\n\n[[agent]]\nid = "devbot"\nhome = "../devbot"\n'
    rows += '\n[[binding]]\nagent = "devbot"\nchannel = "slack"\n'
    with (tmp_path / "aria" / "anima.toml").open("a", encoding="utf-8") as file:
        file.write(rows)
    with (
        Home.open(tmp_path / "aria", clock=woken) as aria,
        Home.open(tmp_path / "aria", clock=woken, agent="devbot") as bot,
    ):
        assert (aria.sessions.agent_for(channel="slack"), aria.sessions.agent_for(channel="telegram")) == (
            "devbot",
            "aria",
        )
        with pytest.raises(BadArguments, match="a binding gives this to agent 'devbot'"):
            aria.session(scope=Scope.MAIN, channel="slack")
        assert "SOUL-OF-aria" not in bot.prompt(scope=Scope.MAIN).text
        assert "SOUL-OF-devbot" in bot.prompt(scope=Scope.MAIN).text


# 001, line 438
def test_the_sub_agent_knows_the_operating_rules_and_tool_conventions(home: Home) -> None:
    with home.session(scope=Scope.MAIN) as session, session.sub() as sub:
        assert "WORD-OF-AGENTS" in sub.prompt.text and "WORD-OF-TOOLS" in sub.prompt.text


# 001, line 439
def test_it_does_not_know_the_users_name_the_persona_or_any_memories(home: Home) -> None:
    home.note("WORD-OF-TODAY")
    cast = Cast([spawn("Look it up."), "So."])
    main_talk(home, cast)
    for word in ("USER", "SOUL", "MEMORY", "TODAY"):
        assert f"WORD-OF-{word}" in cast.seen["main"] and f"WORD-OF-{word}" not in cast.seen["researcher"]


# 001, line 440
def test_personal_data_in_memory_md_cannot_be_exfiltrated_via_a_sub_agent_tool_call(home: Home) -> None:
    page = home.prompts.subagents()[0]["researcher"]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("memory_get", {"path": "MEMORY.md"}),
        ("memory_search", {"query": "WORD-OF-MEMORY", "corpus": "all"}),
        ("memory_write", {"target": "MEMORY.md", "old_string": "WORD-OF-MEMORY", "new_string": "x"}),
        ("memory_write", {"target": "x.md", "old_string": "WORD", "new_string": "x"}),
        ("memory_tree", {"depth": 9}),
        ("who_am_i", {}),
    ]
    with home.session(scope=Scope.MAIN) as session, session.sub(agent=page) as sub:
        for name, given in calls:
            try:
                answer = str(sub.call(name, given))
            except HomeError as error:
                answer = str(error)
            assert "- WORD-OF-MEMORY" not in answer


# -- 003: IronClaw -------------------------------------------------------------------------------------------------------


# 003, line 176
def test_heartbeat_md_is_a_periodic_background_task_checklist(example: Example, woken: Clock) -> None:
    with Home.open(example("ironclaw"), clock=woken, settings={"timezone": "UTC"}) as home:
        cast = Cast(["HEARTBEAT_OK"])
        (done,) = ran(home, woken, cast, **{"HEARTBEAT.md": CHECKLIST})
        assert (done.ritual, done.status) == ("heartbeat", "silent") and "urgent messages" in cast.seen["main"]


# 003, line 181
def test_rotate_through_these_checks_2_to_4_times_per_day(tmp_path: Path, woken: Clock) -> None:
    given = {"rituals.heartbeat": "6h", "timezone": "UTC"}
    with Home.create(tmp_path / "h", clock=woken, settings=given) as home:
        home.write("HEARTBEAT.md", CHECKLIST)
        rituals = Rituals(home, made=Cast(["HEARTBEAT_OK"] * 50))
        rituals.switch(on=True)
        runs = []
        for _ in range(48):
            runs += rituals.round()
            woken.forward(minutes=30)
        assert 2 <= len(runs) <= 4


# 003, line 186
def test_stay_quiet_during_23_00_to_08_00_user_local_time(tmp_path: Path) -> None:
    clock = Clock("2026-05-08T20:00:00-07:00")
    given = {"rituals.quiet": "23:00-08:00", "timezone": "America/Los_Angeles"}
    with Home.create(tmp_path / "h", clock=clock, settings=given) as home:
        home.write("HEARTBEAT.md", CHECKLIST)
        rituals = Rituals(home, made=Cast(["HEARTBEAT_OK"] * 50))
        rituals.switch(on=True)
        hours = []
        for _ in range(40):
            hours += [home.site.now().hour for _ in rituals.round()]
            clock.forward(minutes=30)
        assert hours and not {23, 0, 1, 2, 3, 4, 5, 6, 7} & set(hours)


# 003, line 187
def test_if_nothing_needs_attention_reply_heartbeat_ok(home: Home, woken: Clock) -> None:
    (done,) = ran(home, woken, Cast(["HEARTBEAT_OK"]), **{"HEARTBEAT.md": CHECKLIST})
    assert done.status == "silent" and is_silence("HEARTBEAT_OK") and not is_silence("CI is red")


# 003, line 188
def test_keep_heartbeat_md_empty_to_disable_periodic_checks_and_save_api_costs(home: Home, woken: Clock) -> None:
    cast = Cast()
    assert ran(home, woken, cast, **{"HEARTBEAT.md": "# Heartbeat\n\n<!-- nothing -->\n- [ ]\n"}) == []
    assert cast.tools == {}


# 003, line 147
def test_session_routine_and_operational_instructions_are_agents_md(example: Example, woken: Clock) -> None:
    with Home.open(example("ironclaw"), clock=woken) as home:
        assert home.read("AGENTS.md").text.splitlines()[2] in home.prompt(scope=Scope.MAIN).text


# 003, line 389
def test_automate_periodic_tasks_with_routines(home: Home, woken: Clock) -> None:
    cast = Cast(["The week was quiet."])
    (done,) = ran(home, woken, cast, **{"routines/weekly.md": "---\nevery: 1h\n---\nSum up the week.\n"})
    assert (done.ritual, done.status, home.sessions.get(done.session).scope) == ("weekly", "delivered", "cron")
    assert (
        "Sum up the week." in cast.seen["main"] and "[schedule] weekly: delivered" in home.prompt(scope=Scope.MAIN).text
    )


# -- 004: AgentScope -----------------------------------------------------------------------------------------------------


# 004, line 5
def test_subagent_declarations_and_skill_definitions_land_here_as_directories_and_markdown(example: Example) -> None:
    with Home.open(example("agentscope")) as home:
        text = home.prompt(scope=Scope.MAIN).text
        assert "<subagents_context>\n- parts: Looks up part numbers and delivery times." in text
        assert "<skills_context>" in text and "inspection-report" in text


# 004, line 38
def test_skills_skill_name_skill_md_are_custom_skills(example: Example) -> None:
    with Home.open(example("agentscope")) as home:
        for scope in (Scope.MAIN, Scope.SUBAGENT, Scope.CRON, Scope.HEARTBEAT):
            with home.session(scope=scope) as session:
                answer = session.call("skill_read", {"name": "inspection-report"})
                assert "inspection-report" in answer["text"]


# 004, line 39
def test_subagents_id_md_filename_is_agent_id_and_auto_discovered(example: Example) -> None:
    folder = example("agentscope")
    page = "---\nname: somebody else\ndescription: Drives.\ncolor: red\nmaxIters: 7\n---\n\nYou are the driver.\n"
    (folder / "subagents" / "driver.md").write_text(page, encoding="utf-8")
    with Home.open(folder) as home:
        cast = Cast([spawn("Drive.", agent="driver"), "So."], driver=["There."])
        main_talk(home, cast)
        assert "There." in cast.seen["main"] and home.prompts.subagents()[0]["driver"].requests == 7


# 004, line 41
def test_agents_id_workspace_is_the_runtime_root_for_isolated_subagents_auto_created(example: Example) -> None:
    with Home.open(example("agentscope")) as home:
        cast = Cast([spawn("Look.", agent="parts"), "So."])
        page = home.prompts.subagents()[0]["parts"]
        main_talk(home, cast)
        with home.session(scope=Scope.MAIN) as session, session.sub(agent=page) as sub:
            found = sub.call("memory_write", {"target": "list.md", "content": "bolts"})
            assert (found["status"], found["path"]) == ("written", "agents/parts/workspace/list.md")
            assert "bolts" in sub.call("memory_get", {"path": "list.md"})["text"]


# 004, line 41: what stood there before is that sub-agent's
def test_a_workspace_that_agentscope_made_is_that_sub_agents_own(example: Example) -> None:
    folder = example("agentscope")
    (folder / "subagents" / "helper.md").write_text("---\ndescription: Helps.\n---\n\nHelp.\n", encoding="utf-8")
    with Home.open(folder) as home:
        pages = home.prompts.subagents()[0]
        own = (folder / "agents" / "helper" / "workspace" / "AGENTS.md").read_text(encoding="utf-8")
        with home.session(scope=Scope.MAIN) as session, session.sub(agent=pages["helper"]) as sub:
            assert sub.call("memory_get", {"path": "AGENTS.md"})["text"] == own and Origin.PEER in sub.tainted
        with home.session(scope=Scope.MAIN) as session, session.sub(agent=pages["parts"]) as sub:
            with pytest.raises(HomeError, match="no such document"):
                sub.call("memory_get", {"path": "agents/helper/workspace/AGENTS.md"})


# 004, line 44: of sub-agents, see docs/dialects.md
def test_sessions_of_a_sub_agent_are_beneath_the_session_that_called_it(example: Example) -> None:
    with Home.open(example("agentscope")) as home:
        session = main_talk(home, Cast([spawn("Look.", agent="parts"), "So."]))
        (row,) = [row for row in home.sessions.list() if row.parent == session.id]
        assert (row.scope, row.source_plugin, row.closed) == ("subagent", "parts", True)


def test_unattended_sub_agents_use_the_days_tokens(home: Home, woken: Clock) -> None:
    """Issue 17: one hard budget covers everything unattended, sub-agents included."""
    cast = Cast([spawn(), "HEARTBEAT_OK"], researcher=["x" * 20_000])
    (done,) = ran(home, woken, cast, **{"HEARTBEAT.md": CHECKLIST})
    assert done.tokens > 5_000 and Rituals(home).state().spent == done.tokens
    looping = Cast([spawn()] * 60, researcher=[("memory_tree", {})] * 600)
    woken.forward(hours=1)
    (done,) = Rituals(home, made=looping).round()
    assert done.status == "failed" and "used up" in done.text and Rituals(home).state().spent <= 100_000


def test_a_stranger_who_writes_to_the_owners_agent_reaches_no_sub_agent(home: Home) -> None:
    with home.session(scope=Scope.MAIN, sender="telegram:mallory") as session:
        cast = Cast([spawn("Tell me USER.md."), "No."])
        talk(session, cast, "Start the researcher.")
    assert "researcher" not in cast.tools

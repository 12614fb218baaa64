"""The gate: the file table cell by cell, the presets, the owner's rules, flow rules, and what no rule opens."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anima.gate as gate
from anima.config import GateConfig, Rule, load
from anima.errors import BadArguments, BadConfig
from anima.gate import (
    FLOWS,
    RATE_LIMIT,
    SIZE_LIMIT,
    FlowEvent,
    GatePolicy,
    Situation,
    check_rules,
    covers,
    flows_after,
    judge,
    may,
    read_glob,
    suggest_rule,
)
from anima.layout import Policy, Row
from anima.layout.dialects import DIALECTS, layout_for
from anima.model import (
    UNTRUSTED,
    Actor,
    Answer,
    Change,
    DocPath,
    Finding,
    Kind,
    Origin,
    Scope,
    Severity,
    Verdict,
)
from anima.text import read_table

M, G, S, C, H = Scope.MAIN, Scope.GROUP, Scope.SUBAGENT, Scope.CRON, Scope.HEARTBEAT
ALLOW, NOTE, ASK, DENY = Answer
GUARDED, STRICT, OPEN = GatePolicy(preset="guarded"), GatePolicy(preset="strict"), GatePolicy(preset="open")
WEB = frozenset({Origin.WEB})
CLEAN: frozenset[Origin] = frozenset()
DOCS = Path(__file__).parents[2] / "docs" / "gate.md"


def path(text: str) -> DocPath:
    return DocPath.parse(text)


def row_of(text: str, dialect: str = "anima") -> Row:
    return layout_for(dialect).row_of(path(text))


def change(place: str = "MEMORY.md", *, to: str | None = None, **more: Any) -> Change:
    fields: dict[str, Any] = {
        "kind": Kind.APPEND,
        "text": "- Ana likes tea\n",
        "actor": Actor.AGENT,
        "origin": Origin.AGENT,
        "session": "s1",
        "scope": M,
    }
    return Change(path=path(place), to=path(to) if to else None, **(fields | more))


def found(kind: str, severity: Severity = Severity.DANGER) -> Finding:
    return Finding(kind=kind, severity=severity, start=0, end=4, line=1, shown="sk-4…", message="something")


def verdict_on(wish: Change, policy: GatePolicy = GUARDED, *findings: Finding, **situation: Any) -> Verdict:
    return judge(
        wish,
        row=layout_for(policy.dialect).row_of(wish.path),
        to_row=layout_for(policy.dialect).row_of(wish.to) if wish.to else None,
        policy=policy,
        findings=findings,
        situation=Situation(**situation),
    )


def rule(then: str = "allow", *, name: str = "mine", reason: str = "", **when: Any) -> Rule:
    return Rule(id=name, when=tuple(sorted(when.items())), then=then, reason=reason)


def ruled(*rules: Rule, preset: str = "guarded", dialect: str = "anima") -> GatePolicy:
    return GatePolicy.of(GateConfig(preset=preset, rule=rules), dialect)


# -- the file table of the design, cell by cell -------------------------------------------------------------------------

IDENTITY, ASKED, MEMORY, LOG, RITUAL, NEVER = "identity", "ask", "memory", "log", "ritual", "never"
TABLE = {
    "IDENTITY.md": IDENTITY,
    "SOUL.md": IDENTITY,
    "SOUL_EVIL.md": IDENTITY,
    "AGENTS.md": IDENTITY,
    "USER.md": IDENTITY,
    "TOOLS.md": ASKED,
    "skills/boat/SKILL.md": ASKED,
    "skills/_drafts/boat.md": ASKED,
    "knowledge/KNOWLEDGE.md": MEMORY,
    "knowledge/engines.md": MEMORY,
    "MEMORY.md": MEMORY,
    "memory/2026-05-08.md": LOG,
    "memory/2026-05-08-boat.md": LOG,
    "HEARTBEAT.md": ASKED,
    "BOOTSTRAP.md": RITUAL,
    "DREAMS.md": MEMORY,
    "bank/world.md": MEMORY,
    "bank/entities/ana.md": MEMORY,
    "memory/topics/boats.md": MEMORY,
    "notes/anything.md": MEMORY,
    "sessions/s1.jsonl": NEVER,
    "sessions/sessions.json": NEVER,
    "sessions/summary.md": NEVER,
    "anima.toml": NEVER,
}


def cell(column: str, kind: Kind, scope: Scope, taint: frozenset[Origin]) -> Answer:
    """What the last column of the design's table says."""
    if column == NEVER:
        return DENY
    if column == RITUAL:
        return ALLOW if kind is Kind.DELETE else ASK
    if column not in (MEMORY, LOG):
        return ASK
    if scope is S:
        return DENY
    if column == LOG and kind is not Kind.APPEND:
        return ASK  # a log is only added to
    if scope is M and not taint:
        return ALLOW
    return NOTE if kind is Kind.APPEND else ASK


@pytest.mark.parametrize(("place", "column"), TABLE.items())
def test_guarded_answers_every_cell_of_the_file_table(place: str, column: str) -> None:
    taints = [CLEAN, *(frozenset({origin}) for origin in sorted(UNTRUSTED)), frozenset(UNTRUSTED)]
    for kind, scope, taint in product((Kind.WRITE, Kind.APPEND, Kind.DELETE), Scope, taints):
        text = "" if kind is Kind.DELETE else "- a line\n"
        wish = change(place, kind=kind, scope=scope, taint=taint, text=text)
        assert verdict_on(wish).answer is cell(column, kind, scope, taint), (kind, scope, taint)


def test_an_additional_context_file_asks() -> None:
    row = layout_for("anima").row("additional")
    said = judge(change("VISION.md"), row=row, policy=GUARDED, findings=(), situation=Situation())
    assert (said.answer, said.rule) == (ASK, "ask-file")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_in_every_dialect_identity_files_ask_and_configuration_is_closed(dialect: str) -> None:
    policy = ruled(preset="guarded", dialect=dialect)
    for name in ("SOUL.md", "IDENTITY.md", "USER.md", "AGENTS.md"):
        said = verdict_on(change(name), policy)
        assert said.answer is (DENY if dialect == "ironclaw" else ASK), name
    assert verdict_on(change("anima.toml"), policy).rule == "closed"
    assert verdict_on(change(layout_for(dialect).curated), policy).answer is ALLOW


@pytest.mark.parametrize("place", ["soul.md", "Soul.MD", "ＳＯＵＬ.md", "ſoul.md"])
def test_an_identity_file_is_one_under_any_spelling(place: str) -> None:
    assert verdict_on(change(place)).rule == "identity-file"
    assert verdict_on(change(place), ruled(preset="guarded", dialect="ironclaw")).rule == "protected"


@pytest.mark.parametrize("place", ["anima.toml", "Anima.TOML", ".anima/x.md", "notes/.hidden.md", "../x.md"])
def test_what_is_closed_is_closed_whatever_row_is_given(place: str) -> None:
    wish = replace(change(actor=Actor.OWNER, session=None), path=DocPath(place))  # a path that nobody checked
    said = judge(wish, row=Row(role="note"), policy=OPEN, findings=(), situation=Situation())
    assert (said.answer, said.rule) == (DENY, "closed")


def test_a_ritual_may_be_emptied_or_deleted_and_nothing_else() -> None:
    emptied = change("BOOTSTRAP.md", kind=Kind.WRITE, text=" \n")
    assert verdict_on(emptied).rule == "bootstrap-done"
    assert verdict_on(emptied, exists=False).rule == "ask-file"
    assert verdict_on(change("BOOTSTRAP.md", kind=Kind.APPEND, text="")).answer is ASK
    assert verdict_on(change("BOOTSTRAP.md", kind=Kind.MOVE, to="notes/old.md", text="")).answer is ASK


def test_an_agents_change_without_a_scope_asks() -> None:
    assert verdict_on(change(scope=None)).rule == "scope"


def test_each_question_about_memory_names_its_own_rule() -> None:
    assert verdict_on(change()).rule == "clean-session"
    assert verdict_on(change(scope=G)).rule == "scope"
    assert verdict_on(change(scope=S)).rule == "subagent"
    assert verdict_on(change(taint=WEB)).rule == "tainted"
    assert verdict_on(change(taint=WEB), flows=frozenset({"no-write-after-web"})).rule == "no-write-after-web"
    assert "web" in verdict_on(change(taint=WEB)).reason


def test_text_of_an_untrusted_origin_taints_its_own_change() -> None:
    for origin in Origin:
        said = verdict_on(change(origin=origin))
        assert said.answer is (NOTE if origin in UNTRUSTED else ALLOW), origin


def test_an_outside_edit_is_never_taken_for_a_clean_session() -> None:
    assert verdict_on(change(actor=Actor.OUTSIDE, origin=Origin.OUTSIDE)).answer is NOTE


# -- presets ------------------------------------------------------------------------------------------------------------


def test_an_empty_preset_is_the_dialects_own() -> None:
    assert {name: GatePolicy.of(GateConfig(), name).preset for name in DIALECTS} == {
        name: "strict" if name == "carapace" else "guarded" for name in DIALECTS
    }
    assert GatePolicy.of(GateConfig(preset="open"), "carapace").preset == "open"


def test_strict_asks_for_every_memory_write_and_names_the_rule() -> None:
    for place, taint in product([p for p, column in TABLE.items() if column == MEMORY], (CLEAN, WEB)):
        said = verdict_on(change(place, taint=taint), STRICT)
        assert (said.answer, said.rule) == (ASK, "memory-write")
    assert "web" in verdict_on(change(taint=WEB), STRICT).reason
    assert verdict_on(change(scope=S), STRICT).answer is DENY
    assert verdict_on(change("SOUL.md"), STRICT).rule == "identity-file"


def test_open_only_records() -> None:
    for place, column in TABLE.items():
        wish = change(place, scope=S, taint=WEB)
        said = verdict_on(wish, OPEN, found("secret:openai-key"), size=SIZE_LIMIT + 1, recent=RATE_LIMIT)
        assert said.answer is (DENY if column == NEVER else NOTE if column in (MEMORY, LOG) else ALLOW), place
        said = verdict_on(replace(wish, kind=Kind.WRITE), OPEN, found("secret:openai-key"))
        assert said.answer is (DENY if column == NEVER else ALLOW), place
    assert verdict_on(change("notes/a.txt"), OPEN).rule == "not-markdown"
    assert verdict_on(change(), OPEN, access="ro").rule == "read-only"
    assert verdict_on(change(), OPEN).rule == "open"


def test_a_preset_that_is_none_names_the_nearest() -> None:
    with pytest.raises(BadConfig, match="did you mean guarded"):
        GatePolicy(preset="gaurded")  # type: ignore[arg-type]


# -- owner, importer, dreamer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [OPEN, GUARDED, STRICT, ruled(rule("deny"), preset="strict", dialect="ironclaw")])
def test_the_owner_is_never_blocked_but_from_what_is_no_document(policy: GatePolicy) -> None:
    for place, column in TABLE.items():
        wish = change(place, actor=Actor.OWNER, origin=Origin.OWNER, session=None, scope=None)
        said = verdict_on(wish, policy, found("secret:openai-key"), size=10 * SIZE_LIMIT, recent=10 * RATE_LIMIT)
        assert said.answer is (DENY if column == NEVER else ALLOW), place
        assert said.rule in ("owner", "closed", "not-markdown")


def test_who_calls_himself_the_owner_in_a_session_is_judged_as_an_agent() -> None:
    assert verdict_on(change("SOUL.md", actor=Actor.OWNER, origin=Origin.OWNER)).answer is ASK
    assert verdict_on(change("SOUL.md", actor=Actor.IMPORTER, origin=Origin.OWNER)).answer is ASK
    assert verdict_on(change(actor=Actor.OWNER), GUARDED, found("secret:jwt")).answer is DENY


def test_an_import_is_the_owners_and_keeps_its_findings() -> None:
    wish = change("SOUL.md", actor=Actor.IMPORTER, origin=Origin.OUTSIDE, session=None, scope=None)
    for policy in (OPEN, GUARDED, STRICT):
        assert verdict_on(wish, policy, found("secret:jwt"), found("bidi")).rule == "import"
    assert (
        verdict_on(wish, ruled(rule("ask", actor="importer", findings="secret:*")), found("secret:jwt")).answer is ASK
    )


def dreamt(place: str = "MEMORY.md", **more: Any) -> Change:
    return change(place, **({"actor": Actor.DREAMER, "origin": Origin.DERIVED, "session": None, "scope": None} | more))


@pytest.mark.parametrize("policy", [OPEN, GUARDED, STRICT, ruled(rule("allow", taint=True, findings="secret:*"))])
def test_dreaming_writes_only_memory_and_nothing_untrusted_or_secret(policy: GatePolicy) -> None:
    for origin in (*UNTRUSTED, Origin.OUTSIDE):
        for wish in (dreamt(taint=frozenset({origin})), dreamt(origin=origin)):
            said = verdict_on(wish, policy)
            assert (said.answer, said.rule) == (DENY, "tainted")
    assert verdict_on(dreamt(), policy, found("secret:jwt")).rule == "secret"
    for place, column in TABLE.items():
        said = verdict_on(dreamt(place), policy)
        assert (said.answer is DENY) is (column not in (MEMORY, LOG)), place


def test_clean_dreaming_lands_and_under_strict_asks() -> None:
    assert verdict_on(dreamt()) == Verdict(answer=ALLOW, rule="dream", reason=read_table("gate", "rules")["dream"])
    assert verdict_on(dreamt(), STRICT).rule == "memory-write"
    assert verdict_on(dreamt("users/ana/USER.md")).rule == "dreamer"


# -- findings -----------------------------------------------------------------------------------------------------------


def test_a_secret_is_refused_with_its_kind_and_never_shown() -> None:
    for policy, place in product((GUARDED, STRICT), ("MEMORY.md", "TOOLS.md", "SOUL.md", "BOOTSTRAP.md")):
        said = verdict_on(change(place), policy, found("secret:openai-key"))
        assert (said.answer, said.rule) == (DENY, "secret")
        assert "openai-key" in said.reason
        assert "sk-4" not in said.reason


def test_a_long_list_of_secrets_makes_a_short_sentence() -> None:
    said = verdict_on(change(), GUARDED, *(found(f"secret:kind-{n}") for n in range(50)))
    assert "kind-2 and 47 more" in said.reason


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("tag-characters", "hidden-text"),
        ("bidi", "hidden-text"),
        ("zero-width", "hidden-text"),
        ("html-comment", "hidden-text"),
        ("base64", "hidden-text"),
        ("special-token", "special-token"),
        ("frame-marker", "frame-marker"),
        ("instruction", "danger"),
        ("of tomorrow", "danger"),
    ],
)
def test_a_danger_asks_by_the_rule_of_its_kind(kind: str, name: str) -> None:
    for policy in (GUARDED, STRICT):
        said = verdict_on(change(), policy, found(kind))
        assert (said.answer, said.rule) == (ASK, name)
        assert kind in said.reason


def test_phrasing_alone_is_noted_and_asks_only_where_something_is_replaced() -> None:
    order = found("instruction", Severity.WARN)
    assert verdict_on(change(), GUARDED, order, found("bidi", Severity.NOTE)).answer is NOTE
    assert verdict_on(change(), OPEN, order).answer is NOTE
    assert verdict_on(change(kind=Kind.WRITE), GUARDED, order).answer is ASK
    assert verdict_on(change(kind=Kind.WRITE), GUARDED, found("bidi", Severity.NOTE)).answer is ALLOW


def test_a_write_that_only_adds_is_an_addition() -> None:
    new, more = (change("notes/a.md", kind=Kind.WRITE, taint=WEB) for _ in range(2))
    assert verdict_on(replace(new, base="")).answer is NOTE  # where nothing stands
    assert verdict_on(replace(more, base="0" * 64, added="- a line\n")).answer is NOTE
    for kind in (Kind.WRITE, Kind.DELETE):
        assert verdict_on(change("notes/a.md", kind=kind, text="", taint=WEB)).answer is ASK
    assert verdict_on(change("notes/a.md", kind=Kind.MOVE, to="notes/b.md", text="", taint=WEB)).answer is ASK


@pytest.mark.parametrize("policy", [OPEN, GUARDED, STRICT, ruled(rule("allow", path="unreviewed/**"), preset="open")])
@pytest.mark.parametrize("place", ["unreviewed/2026-05-08.md", "users/ana/unreviewed/a.md", "groups/1/unreviewed/a.md"])
def test_no_tool_writes_what_nobody_reviewed(policy: GatePolicy, place: str) -> None:
    for wish in (change(place), change(place, kind=Kind.DELETE, text=""), dreamt(place)):
        assert verdict_on(wish, policy).rule == "unreviewed"
    for source, target in ((place, "notes/a.md"), ("notes/a.md", place)):
        assert verdict_on(change(source, to=target, kind=Kind.MOVE, text=""), policy).rule == "unreviewed"
    assert verdict_on(change(place, actor=Actor.OWNER, origin=Origin.OWNER, session=None), policy).answer is ALLOW


def test_an_owners_rule_may_note_what_would_land_and_softens_nothing() -> None:
    noting = ruled(rule("note"))
    assert verdict_on(change(), noting).answer is NOTE
    assert verdict_on(change(kind=Kind.WRITE), noting).answer is ASK
    assert verdict_on(change("TOOLS.md"), noting).answer is ASK
    assert verdict_on(change(), noting, found("bidi")).answer is ASK
    assert verdict_on(change(scope=S), noting).answer is DENY


def test_what_is_denied_stays_denied_when_something_worse_is_found() -> None:
    assert verdict_on(change(scope=S), GUARDED, found("bidi")).answer is DENY


# -- limits, access, layers, moves, approval ------------------------------------------------------------------------------


def test_an_agent_writes_up_to_the_size_limit() -> None:
    assert verdict_on(change(), size=SIZE_LIMIT).answer is ALLOW
    said = verdict_on(change(), size=SIZE_LIMIT + 1)
    assert (said.answer, said.rule) == (DENY, "size")
    assert "262,144" in said.reason
    assert verdict_on(change(text="x" * (SIZE_LIMIT + 1))).rule == "size"


def test_an_agent_session_writes_six_hundred_times_a_minute() -> None:
    assert verdict_on(change(), recent=599).answer is ALLOW
    said = verdict_on(change(), recent=600)
    assert (said.answer, said.rule) == (DENY, "rate")
    assert "wait" in said.reason


@pytest.mark.parametrize("access", ["ro", "none", "anything"])
def test_a_session_that_may_only_read_writes_nothing(access: Any) -> None:
    for place in TABLE:
        assert verdict_on(change(place), ruled(rule("allow", path=place)), access=access).answer is DENY
    assert verdict_on(change(actor=Actor.OWNER, session=None), access=access).answer is ALLOW


@pytest.mark.parametrize("policy", [OPEN, GUARDED, STRICT, ruled(rule("allow"))])
def test_another_persons_session_writes_only_in_its_own_layer(policy: GatePolicy) -> None:
    for place in (*TABLE, "users/luis/MEMORY.md", "users/ana.md", "users/anabel/MEMORY.md", "users/ana-2/memory/a.md"):
        assert verdict_on(change(place), policy, layer="ana").answer is DENY, place
    assert verdict_on(change("SOUL.md"), policy, layer="ana").rule == "layer"
    assert (
        verdict_on(change("users/ana/MEMORY.md", kind=Kind.MOVE, to="MEMORY.md"), policy, layer="ana").rule == "layer"
    )


def test_in_its_own_layer_another_persons_session_writes_memory() -> None:
    for place in ("users/ana/MEMORY.md", "users/ana/memory/2026-05-08.md", "Users/Ana/memory.md"):
        assert verdict_on(change(place), layer="ana").answer is ALLOW
        assert verdict_on(change(place, scope=G), layer="ana").answer is NOTE


def test_a_layers_user_file_is_guarded_as_the_owners_is() -> None:
    assert verdict_on(change("users/ana/USER.md"), layer="ana").rule == "identity-file"
    assert verdict_on(change("users/ana/user.md")).rule == "identity-file"


def moved(source: str, target: str, **more: Any) -> Change:
    return change(source, to=target, kind=Kind.MOVE, text="", **more)


@pytest.mark.parametrize(("place", "column"), TABLE.items())
def test_a_move_is_judged_at_both_ends(place: str, column: str) -> None:
    expected = {MEMORY: ALLOW, NEVER: DENY}.get(column, ASK)
    assert verdict_on(moved("notes/a.md", place)).answer is expected
    assert verdict_on(moved(place, "notes/a.md")).answer is expected


def test_a_move_without_a_known_target_is_denied() -> None:
    assert verdict_on(change(kind=Kind.MOVE)).rule == "no-target"
    wish = moved("notes/a.md", "notes/b.md")
    said = judge(wish, row=row_of("notes/a.md"), policy=OPEN, findings=(), situation=Situation())
    assert said.rule == "no-target"


def test_a_move_is_allowed_by_a_rule_only_where_both_ends_are() -> None:
    both = ruled(rule("allow", path=["TOOLS.md", "HEARTBEAT.md"]))
    one = ruled(rule("allow", path="TOOLS.md"))
    assert verdict_on(moved("TOOLS.md", "HEARTBEAT.md"), both).answer is ALLOW
    assert verdict_on(moved("TOOLS.md", "HEARTBEAT.md"), one).answer is ASK
    assert verdict_on(moved("notes/a.md", "notes/b.md"), ruled(rule("deny", path="notes/b.md"))).answer is DENY


def test_the_owners_approval_opens_all_but_what_is_closed() -> None:
    for place, column in TABLE.items():
        for where in ("terminal", "page"):
            said = verdict_on(change(place, scope=S, taint=WEB), STRICT, found("bidi"), approver=where, access="ro")
            assert said.answer is (DENY if column == NEVER else ALLOW), place


def test_an_identity_file_is_approved_only_at_a_terminal_or_on_the_page() -> None:
    for place in ("SOUL.md", "users/ana/USER.md"):
        said = verdict_on(change(place), approver="mcp")
        assert (said.answer, said.rule) == (ASK, "identity-file")
        assert verdict_on(moved("notes/a.md", place), approver="mcp").answer is ASK
    assert verdict_on(change(scope=G), approver="mcp").rule == "approved"
    assert verdict_on(change(scope=G), approver="").rule == "scope"


def test_the_ironclaw_dialect_denies_its_four_files_to_tools() -> None:
    policy = GatePolicy.of(GateConfig(), "ironclaw")
    for name in ("SOUL.md", "IDENTITY.md", "USER.md", "AGENTS.md"):
        assert verdict_on(change(name), policy).rule == "protected"
        assert verdict_on(change(name, kind=Kind.DELETE, text=""), policy).rule == "protected"
    assert verdict_on(change("BOOTSTRAP.md", kind=Kind.DELETE, text=""), policy).answer is ALLOW
    assert verdict_on(change("projects/SOUL.md"), policy).answer is ALLOW


# -- the owner's rules ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("when", "meets", "misses"),
    [
        ({"actor": "agent"}, {}, {"actor": Actor.OUTSIDE}),
        ({"actor": ["agent", "outside"]}, {"actor": Actor.OUTSIDE}, {"actor": Actor.DREAMER}),
        ({"path": "memory/**"}, {"place": "memory/a/b.md"}, {"place": "MEMORY.md"}),
        ({"path": "Memory/"}, {"place": "memory/a/b.md"}, {"place": "MEMORY.md"}),
        ({"path": ["TOOLS.md", "notes/*.md"]}, {"place": "NOTES/a.md"}, {"place": "notes/a/b.md"}),
        ({"kind": "append"}, {}, {"kind": Kind.DELETE}),
        ({"scope": ["main", "cron"]}, {"scope": C}, {"scope": G}),
        ({"scope": "main"}, {}, {"scope": None}),
        ({"taint": True}, {"taint": WEB}, {}),
        ({"taint": False}, {}, {"taint": WEB}),
        ({"taint": ["web", "peer"]}, {"taint": WEB}, {"taint": frozenset({Origin.TOOL})}),
        ({"taint": "web"}, {"origin": Origin.WEB}, {"taint": frozenset({Origin.OUTSIDE})}),
        ({"origin": "derived"}, {"origin": Origin.DERIVED}, {}),
        ({"findings": "instr*"}, {"findings": [found("instruction", Severity.WARN)]}, {"findings": [found("bidi")]}),
        ({"findings": "warn"}, {"findings": [found("x")]}, {"findings": [found("x", Severity.NOTE)]}),
        ({"findings": ["danger", "x"]}, {"findings": [found("x", Severity.NOTE)]}, {}),
        ({"size": ">100"}, {"size": 101}, {"size": 100}),
        ({"size": "<= 100"}, {"size": 100}, {"size": 101}),
        ({"size": "=100"}, {"size": 100}, {"size": 99}),
        ({"size": "<100"}, {"size": 99}, {"size": 100}),
        ({"rate": ">30"}, {"recent": 30}, {"recent": 29}),
        ({"rate": ">=30"}, {"recent": 29}, {"recent": 28}),
        ({"flow": "no-write-after-web"}, {"flows": frozenset({"no-write-after-web"})}, {}),
        ({"scope": "main", "kind": "append"}, {}, {"kind": Kind.WRITE}),
    ],
)
def test_each_condition_holds_where_it_says(
    when: dict[str, Any], meets: dict[str, Any], misses: dict[str, Any]
) -> None:
    policy = ruled(rule("deny", **when))
    for told, expected in ((dict(meets), True), (dict(misses), False)):
        place, findings = told.pop("place", "TOOLS.md"), told.pop("findings", [])
        situation = {name: told.pop(name) for name in ("size", "recent", "flows") if name in told}
        said = verdict_on(change(place, **told), policy, *findings, **situation)
        assert (said.rule == "mine") is expected, told


def test_the_first_rule_that_speaks_wins_and_says_its_reason() -> None:
    policy = ruled(
        rule("deny", name="not-this", path="notes/**"),
        rule("ask", name="this", path="memory/**", reason="logs are \x1b[31mread first"),
        rule("deny", name="too-late", path="memory/**"),
    )
    said = verdict_on(change("memory/2026-05-08.md"), policy)
    assert (said.answer, said.rule, said.reason) == (ASK, "this", "logs are \\u001b[31mread first")
    assert verdict_on(change("MEMORY.md"), policy).rule == "clean-session"


def test_rules_come_from_the_configuration_file() -> None:
    text = """
    [gate]
    preset = "strict"
    [[gate.rule]]
    id = "logs"
    when = { path = "memory/*.md", scope = ["main"], kind = "append", taint = false }
    then = "allow"
    """
    policy = GatePolicy.of(load(text, env={}, trusted=True).gate, "anima")
    assert verdict_on(change("memory/2026-05-08.md"), policy).rule == "logs"
    assert verdict_on(change("memory/2026-05-08.md", taint=WEB), policy).rule == "memory-write"
    assert verdict_on(change("MEMORY.md"), policy).rule == "memory-write"


def test_an_allow_opens_only_what_it_names() -> None:
    everything = ruled(rule("allow"))
    closed_doors: list[tuple[Change, tuple[Finding, ...], dict[str, Any], dict[str, Any]]] = [
        (change("SOUL.md"), (), {}, {"path": "soul.md"}),
        (change("users/ana/USER.md"), (), {}, {"path": ["notes/**", "users/ana/USER.md"]}),
        (change(scope=S), (), {}, {"scope": "subagent"}),
        (change(taint=WEB), (), {}, {"taint": "web"}),
        (change(taint=WEB), (), {"flows": frozenset({"no-write-after-web"})}, {"taint": True}),
        (change(), (), {"flows": frozenset({"no-write-after-web"})}, {"flow": "no-write-after-web"}),
        (change(), (found("bidi"),), {}, {"findings": "bidi"}),
        (change(), (found("bidi"),), {}, {"findings": "danger"}),
        (change(), (found("secret:jwt"),), {}, {"findings": "secret:*"}),
        (change(), (), {"size": SIZE_LIMIT + 1}, {"size": "<=1000000"}),
        (change(), (), {"recent": RATE_LIMIT}, {"rate": "<=1000"}),
    ]
    for wish, findings, situation, key in closed_doors:
        assert verdict_on(wish, everything, *findings, **situation).answer is not ALLOW, key
        said = verdict_on(wish, ruled(rule("allow", **key)), *findings, **situation)
        assert (said.answer, said.rule) == (ALLOW, "mine"), key


def test_an_allow_for_one_taint_opens_no_other() -> None:
    policy = ruled(rule("allow", taint="web"))
    assert verdict_on(change(taint=WEB | {Origin.PEER}), policy).rule == "tainted"
    assert verdict_on(change(taint=WEB, origin=Origin.PEER), policy).rule == "tainted"


@pytest.mark.parametrize("findings", ["*", "danger", "secret*", "secret:aws", ["bidi", "note"]])
def test_a_secret_is_opened_only_by_its_own_kind(findings: Any) -> None:
    said = verdict_on(change(), ruled(rule("allow", findings=findings)), found("secret:jwt"))
    assert (said.answer, said.rule) == (DENY, "secret")


def test_an_allow_for_a_secret_opens_no_other_danger_and_no_cut_off_list() -> None:
    policy = ruled(rule("allow", findings=["secret:*"]))
    assert verdict_on(change(), policy, found("secret:jwt"), found("bidi")).answer is DENY
    assert verdict_on(change(), ruled(rule("allow", findings="*")), found("more")).answer is ASK


@pytest.mark.parametrize("glob", ["**", "*.md", "SOUL.m?", "S*.md", "**/SOUL.md"])
def test_a_glob_opens_no_identity_file(glob: str) -> None:
    assert verdict_on(change("SOUL.md"), ruled(rule("allow", path=glob))).rule == "identity-file"
    protected = ruled(rule("allow", path=glob), dialect="ironclaw")
    assert verdict_on(change("SOUL.md"), protected).rule == "protected"
    assert verdict_on(change("SOUL.md"), ruled(rule("allow", path="SOUL.md"), dialect="ironclaw")).rule == "mine"


def test_a_question_never_softens_a_denial() -> None:
    policy = ruled(rule("ask"))
    assert verdict_on(change(scope=S), policy).rule == "subagent"
    assert verdict_on(change(), policy, found("secret:jwt")).rule == "secret"
    assert verdict_on(change("SOUL.md"), ruled(rule("ask"), dialect="ironclaw")).rule == "protected"
    assert verdict_on(change(), policy).rule == "mine"


@pytest.mark.parametrize(
    ("when", "sentence"),
    [
        ({"pth": "x.md"}, "there is no condition 'pth'; did you mean path"),
        ({"zzzzz": 1}, "there are actor, path, kind"),
        ({"actor": "agnet"}, "did you mean agent"),
        ({"scope": []}, "empty list"),
        ({"scope": 3}, "a text or a list of texts"),
        ({"kind": ["append", ""]}, "a text or a list of texts"),
        ({"taint": "owner"}, "there is no value 'owner'"),
        ({"taint": "wbe"}, "did you mean web"),
        ({"origin": {"a": 1}}, "a text or a list of texts"),
        ({"findings": True}, "a text or a list of texts"),
        ({"size": 100}, "a comparison such as"),
        ({"size": "> 1e9"}, "a comparison such as"),
        ({"rate": ">-1"}, "a comparison such as"),
        ({"flow": "no-write-after-wbe"}, "did you mean no-write-after-web"),
        ({"path": "/etc/passwd"}, "relative to the home"),
        ({"path": "../x.md"}, "begins with a dot"),
        ({"path": ".anima/**"}, "begins with a dot"),
        ({"path": "a**b.md"}, "stands alone between slashes"),
        ({"path": "a//b.md"}, "no empty parts"),
    ],
)
def test_a_rule_that_makes_no_sense_is_said_and_refused(when: dict[str, Any], sentence: str) -> None:
    problems = check_rules([rule("ask", **when)])
    assert len(problems) == 1
    assert sentence in problems[0]
    assert problems[0].startswith("gate.rule 'mine': ")
    with pytest.raises(BadConfig, match=re.escape("anima.toml: gate.rule 'mine'")):
        ruled(rule("ask", **when))


def test_every_problem_of_every_rule_is_listed() -> None:
    rules = [
        rule("alow", scope="x"),
        rule("ask"),
        Rule(id=""),
        Rule(id="a\x1bb"),
        rule(name=next(iter(FLOWS)), scope="main"),
    ]
    problems = check_rules(rules)
    assert len(problems) == 6
    assert [len(check_rules([Rule(id="x" * length)])) for length in (1, 80, 81)] == [0, 0, 1]
    assert any("did you mean allow" in problem for problem in problems)
    assert any("another rule has this id" in problem for problem in problems)
    assert any("flow rule" in problem for problem in problems)
    assert all(problem.isprintable() for problem in problems)


@given(st.text(max_size=20), st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), st.lists))
def test_checking_a_rule_never_raises(name: str, value: Any) -> None:
    known = ("actor", "path", "kind", "scope", "taint", "origin", "findings", "size", "rate", "flow")
    for condition in (name, *known):
        check_rules([Rule(id="x", when=((condition, value),))])


# -- globs ----------------------------------------------------------------------------------------------------------------

glob_text = st.lists(
    st.sampled_from(["**", "*", "a", "b", "a*", "*b", "a?b", "*a*b", "?", "ab", "aab"]), min_size=1, max_size=5
).map("/".join)
path_text = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=5).map("/".join)


def slowly(glob: str) -> re.Pattern[str]:
    """The same meaning as a regular expression over "/a/b"."""
    parts = [
        r"(?:/[^/]+)*" if part == "**" else "/" + re.escape(part).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
        for part in glob.split("/")
    ]
    return re.compile("".join(parts))


@settings(max_examples=500)
@given(glob_text, path_text)
def test_a_glob_means_what_the_manual_says(glob: str, place: str) -> None:
    assert covers(read_glob(glob), place.split("/")) is (slowly(glob).fullmatch("/" + place) is not None)


def test_a_hostile_glob_is_matched_without_blowing_up() -> None:
    assert not covers(read_glob("*a" * 120 + "b"), ["a" * 250])
    assert not covers(read_glob("/".join(["**", "a"] * 15)), ["a", "b"] * 16)


def test_brackets_in_a_glob_are_only_brackets() -> None:
    assert covers(read_glob("notes/[a].md"), ["notes", "[a].md"])
    assert not covers(read_glob("notes/[a].md"), ["notes", "a.md"])


def test_a_later_rule_speaks_where_an_allow_does_not_open() -> None:
    first, second = rule("allow", name="first", path="memory/**"), rule("deny", name="second", path="memory/a.md")
    policy = ruled(first, second)
    assert verdict_on(change("memory/a.md"), policy).rule == "first"
    assert verdict_on(change("memory/a.md", taint=WEB), policy).rule == "second"


# -- flow rules ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [GUARDED, STRICT])
def test_untrusted_text_activates_no_write_after_web_and_it_stays(policy: GatePolicy) -> None:
    for origin in Origin:
        active = flows_after(frozenset(), FlowEvent(origin=origin), policy)
        assert active == ({"no-write-after-web"} if origin in UNTRUSTED else set()), origin
    active = flows_after(frozenset({"no-write-after-web"}), FlowEvent(origin=Origin.OWNER), policy)
    assert active == {"no-write-after-web"}


def test_under_open_no_flow_rule_is_on() -> None:
    assert flows_after(frozenset(), FlowEvent(origin=Origin.WEB), OPEN) == frozenset()


def test_reading_the_homes_own_files_at_start_activates_none() -> None:
    policy = ruled(Rule(id="ask-outbound-after-tools"))
    for place in TABLE:
        assert flows_after(frozenset(), FlowEvent(path=path(place), by_tool=False), policy) == frozenset()


def test_asking_before_sending_out_is_off_until_the_owner_switches_it_on() -> None:
    read = FlowEvent(path=path("Tools.md"), by_tool=True)
    assert flows_after(frozenset(), read, GUARDED) == frozenset()
    assert may("outbound", frozenset({"ask-outbound-after-tools"}), GUARDED).answer is ALLOW
    policy = ruled(Rule(id="ask-outbound-after-tools"))
    assert may("outbound", frozenset(), policy).answer is ALLOW
    active = flows_after(frozenset(), read, policy)
    said = may("outbound", active, policy)
    assert (said.answer, said.rule) == (ASK, "ask-outbound-after-tools")
    assert may("memory", active, policy).answer is ALLOW
    assert flows_after(frozenset(), FlowEvent(path=path("MEMORY.md"), by_tool=True), policy) == frozenset()


def test_a_flow_rule_can_be_made_to_deny_or_switched_off() -> None:
    active = frozenset({"no-write-after-web"})
    denying = ruled(Rule(id="no-write-after-web", then="deny"))
    assert verdict_on(change(taint=WEB), denying, flows=active).answer is DENY
    assert verdict_on(change("TOOLS.md", taint=WEB), denying, flows=active).answer is ASK
    assert (
        verdict_on(change(taint=WEB), ruled(Rule(id="no-write-after-web"), preset="open"), flows=active).answer is ASK
    )
    off = ruled(Rule(id="no-write-after-web", then="allow"))
    assert flows_after(frozenset(), FlowEvent(origin=Origin.WEB), off) == frozenset()
    assert verdict_on(change(taint=WEB), off, flows=active).rule == "tainted"


def test_may_says_what_memory_writes_would_meet() -> None:
    assert may("memory", frozenset(), GUARDED).rule == "default"
    assert may("memory", frozenset({"no-write-after-web"}), GUARDED).rule == "no-write-after-web"
    assert may("memory", frozenset(), STRICT).rule == "memory-write"
    with pytest.raises(BadArguments, match="did you mean outbound"):
        may("outbund", frozenset(), GUARDED)


# -- suggestions ----------------------------------------------------------------------------------------------------------------


def suggested(wish: Change, policy: GatePolicy = STRICT, *findings: Finding) -> Rule | None:
    said = verdict_on(wish, policy, *findings)
    rows = [layout_for(policy.dialect).row_of(place) if place else None for place in (wish.path, wish.to)]
    assert rows[0] is not None
    return suggest_rule(wish, row=rows[0], findings=findings, to_row=rows[1]) if said.answer is ASK else None


def test_a_suggested_rule_allows_the_same_kind_of_change_and_nothing_wider() -> None:
    mine = suggested(change("memory/2026-05-08.md"))
    assert mine is not None
    assert dict(mine.when) == {
        "actor": "agent",
        "kind": "append",
        "path": ("memory/*.md",),
        "scope": "main",
        "taint": False,
    }
    policy = ruled(mine, preset="strict")
    assert verdict_on(change("memory/2026-05-09.md"), policy).rule == mine.id
    for other in (
        change("MEMORY.md"),
        change("memory/topics/a.md"),
        change("memory/a.md", kind=Kind.WRITE),
        change("memory/a.md", scope=G),
        change("memory/a.md", taint=WEB),
        dreamt("memory/a.md"),
    ):
        assert verdict_on(other, policy).answer is not ALLOW


def test_from_an_untrusted_session_only_the_very_file_is_suggested() -> None:
    mine = suggested(change("notes/a.md", kind=Kind.WRITE, taint=WEB), GUARDED)
    assert mine is not None
    assert (dict(mine.when)["path"], dict(mine.when)["taint"]) == (("notes/a.md",), ("web",))


def test_no_rule_is_suggested_for_identity_files_dangers_and_denials() -> None:
    assert suggested(change("SOUL.md")) is None
    assert suggested(change("users/ana/USER.md")) is None
    assert suggested(moved("notes/a.md", "SOUL.md")) is None
    assert suggested(change(), STRICT, found("bidi")) is None
    assert suggested(change(), OPEN) is None
    assert suggested(change(scope=S)) is None
    assert suggested(change(scope=None), GUARDED) is None
    assert suggest_rule(change(), row=row_of("MEMORY.md"), findings=[found("secret:x", Severity.NOTE)]) is None


def test_two_suggestions_never_share_an_id() -> None:
    wishes = [
        change(f"{folder}/a.md", scope=scope) for folder in ("笔记", "заметки", "notes", "x" * 80) for scope in (M, G)
    ]
    rules = [suggested(wish) for wish in wishes]
    assert not check_rules([mine for mine in rules if mine])
    assert len({mine.id for mine in rules if mine}) == 8


# -- properties, over many random policies and changes ----------------------------------------------------------------------------

PLACES = (*TABLE, "users/ana/MEMORY.md", "users/ana/USER.md", "users/luis/memory/a.md", "notes/a.txt", "notes/b.md")
CLOSED_PLACES = ("anima.toml", "sessions/a.md", "sessions/a.jsonl", "notes/a.txt", "Anima.toml")
KINDS_FOUND = ("secret:jwt", "secret:openai-key", "bidi", "frame-marker", "special-token", "instruction", "more", "x")
VALUES: dict[str, tuple[Any, ...]] = {
    "actor": ("agent", "agent", *Actor),
    "path": ("**", "**", "*.md", "memory/**", "notes/*", *["SOUL.md"] * 8, "users/", "**/USER.md", *PLACES),
    "kind": tuple(Kind),
    "scope": tuple(Scope),
    "taint": tuple(sorted(UNTRUSTED)),
    "origin": tuple(Origin),
    "findings": ("*", "note", "warn", "danger", "secret:*", "secret:jwt", "s*", "bidi", "frame*"),
    "size": (">50", "<=100", "<0", ">200000", "=0"),
    "rate": (">5", "<=6", "<1", ">=600"),
    "flow": tuple(FLOWS),
}
STRICTNESS = {ALLOW: 0, NOTE: 1, ASK: 2, DENY: 3}
Case = tuple[GatePolicy, Change, list[Finding], Situation]


def some(dice: Random, values: Any, most: int = 3) -> Any:
    return dice.choices(list(values), k=dice.randint(0, most))


def random_value(dice: Random, name: str) -> Any:
    if name in ("size", "rate"):
        return dice.choice(VALUES[name])
    if name == "taint" and dice.random() < 0.5:
        return dice.choice([True, True, False])
    return tuple(dice.choices(VALUES[name], k=dice.randint(1, 3)))


def random_rule(dice: Random, name: str, answers: tuple[str, ...] = ("allow", "allow", "ask", "deny")) -> Rule:
    return rule(dice.choice(answers), name=name, **{key: random_value(dice, key) for key in set(some(dice, VALUES))})


def random_policy(
    dice: Random, *, presets: tuple[Any, ...] = ("open", "guarded", "strict"), most: int = 4
) -> GatePolicy:
    rules = tuple(random_rule(dice, f"r{n}") for n in range(dice.randint(0, most)))
    return GatePolicy(preset=dice.choice(presets), rules=rules, dialect=dice.choice(sorted(DIALECTS)))


def random_change(dice: Random, **fixed: Any) -> Change:
    fields: dict[str, Any] = {
        "path": path(dice.choice(PLACES)),
        "to": dice.choice([None, path(dice.choice(PLACES))]),
        "kind": dice.choice(list(Kind)),
        "text": dice.choice(["", " \n", "- a line\n", "- a line\n"]),
        "actor": dice.choice([Actor.AGENT, Actor.AGENT, *Actor]),
        "origin": dice.choice([Origin.AGENT, Origin.AGENT, *Origin]),
        "session": dice.choice([None, "s1"]),
        "scope": dice.choice([None, M, *Scope]),
        "taint": frozenset(some(dice, Origin, dice.choice([0, 0, 2]))),
    }
    return Change(**(fields | fixed))


def by_agent(dice: Random) -> Change:
    place = path(dice.choice(["SOUL.md", *["memory/2026-05-08.md"] * 2, dice.choice(PLACES)]))
    kind, scope = dice.choice([Kind.WRITE, Kind.APPEND, Kind.DELETE]), dice.choice([None, M, S, *Scope])
    return random_change(dice, actor=Actor.AGENT, session="s1", path=place, kind=kind, scope=scope)


def random_findings(dice: Random) -> list[Finding]:
    return [found(dice.choice(KINDS_FOUND), dice.choice(list(Severity))) for _ in range(dice.choice([0, 0, 1, 2]))]


def random_situation(dice: Random, **fixed: Any) -> Situation:
    fields: dict[str, Any] = {
        "recent": dice.choice([0, 0, 5, 599, 600, 10**9]),
        "flows": frozenset(some(dice, [*FLOWS, "unknown"])),
        "access": dice.choice(["rw", "rw", "rw", "rw", "ro", "none"]),
        "size": dice.choice([0, 0, 100, SIZE_LIMIT, SIZE_LIMIT + 1]),
        "exists": dice.choice([True, False]),
        "layer": dice.choice(["", "", "", "ana"]),
    }
    return Situation(**(fields | fixed))


def cases(
    seed: int,
    *,
    policies: int = 150,
    wish: Callable[[Random], Change] = random_change,
    calm: bool = False,
    **policy: Any,
) -> Iterator[Case]:
    dice = Random(seed)
    plain: dict[str, Any] = {"recent": 0, "size": 0, "access": "rw", "layer": ""} if calm else {}
    for _ in range(policies):
        rules = random_policy(dice, **policy)
        for _ in range(40):
            yield rules, wish(dice), random_findings(dice), random_situation(dice, **plain)


def answered(policy: GatePolicy, wish: Change, findings: list[Finding], situation: Situation) -> Verdict:
    layout = layout_for(policy.dialect)
    to_row = layout.row_of(wish.to) if wish.to else None
    return judge(
        wish, row=layout.row_of(wish.path), to_row=to_row, policy=policy, findings=findings, situation=situation
    )


def conditions_of(said: Verdict, policy: GatePolicy) -> dict[str, Any]:
    return dict(next(mine for mine in policy.rules if mine.id == said.rule).when)


def tainted(wish: Change) -> frozenset[Origin]:
    return (wish.taint | {wish.origin}) & UNTRUSTED


@settings(max_examples=300)
@given(
    st.integers(0, 10**9),
    st.text(),
    st.text(max_size=40),
    st.sampled_from(list(Policy)),
    st.none() | st.text(max_size=9),
)
def test_judging_is_total_and_gives_the_same_answer_twice(
    seed: int, text: str, kind: str, file: Policy, approver: str | None
) -> None:
    dice, row = Random(seed), Row(role="any", policy=file)
    policy, findings = random_policy(dice), [found(kind), *random_findings(dice)]
    wish = random_change(dice, text=text, path=DocPath(text))  # not even a path that was checked
    here = random_situation(dice, approver=approver, access=kind, layer=text)
    said = judge(wish, row=row, to_row=row, policy=policy, findings=findings, situation=here)
    assert said == judge(wish, row=row, to_row=row, policy=policy, findings=findings, situation=here)
    assert said.rule in read_table("gate", "rules") or said.rule in {mine.id for mine in policy.rules}
    assert said.reason
    assert said.reason.isprintable()


def test_no_rules_let_anybody_write_what_is_closed() -> None:
    dice = Random(1)
    for policy, wish, findings, situation in cases(2):
        closed = path(dice.choice(CLOSED_PLACES))
        here = replace(situation, approver=dice.choice([None, "terminal"]))
        assert answered(policy, replace(wish, path=closed), findings, here).answer is DENY
        assert answered(policy, replace(wish, kind=Kind.MOVE, to=closed), findings, here).answer is DENY


def test_an_agent_writes_a_secret_only_by_a_rule_that_names_it() -> None:
    allowed = 0
    for policy, wish, findings, situation in cases(3, wish=by_agent, calm=True, presets=("guarded", "strict")):
        said = answered(policy, wish, [*findings, found("secret:jwt")], situation)
        if said.answer is ALLOW:
            allowed += 1
            assert any(str(entry).startswith("secret:") for entry in conditions_of(said, policy)["findings"])
        else:
            assert said.answer is DENY
    assert allowed  # such rules came up; how many hangs on the order of sets


def test_a_guarded_door_is_opened_only_by_a_rule_that_names_it() -> None:
    opened: Counter[str] = Counter()
    for policy, wish, findings, situation in cases(
        4, policies=500, wish=by_agent, calm=True, presets=("guarded", "strict")
    ):
        said = answered(policy, wish, findings, situation)
        without = answered(replace(policy, rules=()), wish, findings, situation)
        if said.answer is not ALLOW or without.answer is ALLOW:
            continue
        when = conditions_of(said, policy)
        if layout_for(policy.dialect).row_of(wish.path).policy is Policy.IDENTITY or wish.path.key.endswith("/user.md"):
            opened["identity"] += 1
            assert wish.path.key in [entry.lower() for entry in when["path"]]
        if wish.scope is S:
            opened["subagent"] += 1
            assert "subagent" in when["scope"]
        if tainted(wish):
            opened["taint"] += 1
            assert when["taint"] is True or tainted(wish) <= set(when["taint"])
        if any(finding.severity is Severity.DANGER for finding in findings):
            opened["danger"] += 1
            assert "findings" in when
    assert min(opened[door] for door in ("identity", "subagent", "taint", "danger")) >= 3, opened


def test_without_rules_only_a_clean_main_session_writes_memory_and_nothing_writes_identity() -> None:
    allowed = 0
    for policy, wish, findings, situation in cases(5, wish=by_agent, calm=True, presets=("guarded", "strict"), most=0):
        if answered(policy, wish, findings, situation).answer is not ALLOW:
            continue
        allowed += 1
        file = layout_for(policy.dialect).row_of(wish.path).policy
        ritual = file is Policy.RITUAL and wish.kind in (Kind.DELETE, Kind.WRITE)
        clean = policy.preset == "guarded" and wish.scope is M and not tainted(wish)
        assert ritual or (file is Policy.MEMORY and clean)
        assert not any(finding.severity is Severity.DANGER for finding in findings)
    assert allowed > 50


def test_something_worse_never_gets_a_milder_answer() -> None:
    dice = Random(6)
    for policy, wish, findings, situation in cases(7, wish=by_agent, most=0):
        before = answered(policy, wish, findings, situation)
        worse = replace(wish, taint=wish.taint | set(some(dice, Origin)))
        after = answered(policy, worse, findings + random_findings(dice), situation)
        assert STRICTNESS[after.answer] >= STRICTNESS[before.answer]


def test_a_rule_that_asks_or_denies_never_makes_things_looser() -> None:
    dice = Random(8)
    for plain, wish, findings, situation in cases(9, most=0):
        stricter = replace(plain, rules=(random_rule(dice, "mine", ("ask", "deny")),))
        before, after = (answered(policy, wish, findings, situation) for policy in (plain, stricter))
        assert STRICTNESS[after.answer] >= STRICTNESS[before.answer]


def test_a_suggested_rule_would_have_allowed_the_change() -> None:
    tried = 0
    for policy, wish, findings, situation in cases(11):
        flows = frozenset({"no-write-after-web"}) if tainted(wish) else frozenset()  # as a session keeps them
        here = replace(situation, flows=flows)
        asked = answered(policy, wish, findings, here).answer is ASK
        layout = layout_for(policy.dialect)
        to_row = layout.row_of(wish.to) if wish.to and wish.kind is Kind.MOVE else None
        mine = suggest_rule(wish, row=layout.row_of(wish.path), findings=findings, to_row=to_row) if asked else None
        if mine is None:
            continue
        tried += 1
        again = answered(replace(policy, rules=(mine, *policy.rules)), wish, findings, here)
        assert (again.answer, again.rule) == (ALLOW, mine.id)
    assert tried > 100


# -- manual and shape ---------------------------------------------------------------------------------------------------------------


def test_the_manual_names_every_rule_condition_and_flow() -> None:
    text = DOCS.read_text(encoding="utf-8")
    conditions_known = ("actor", "path", "kind", "scope", "taint", "origin", "findings", "size", "rate", "flow")
    for name in (*read_table("gate", "rules"), *FLOWS, *conditions_known):
        assert f"`{name}`" in text, name


def test_the_examples_of_the_manual_are_rules_that_work() -> None:
    examples = re.findall(r"```toml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) >= 3
    for example in examples:
        policy = GatePolicy.of(load(example, env={}, trusted=True).gate, "anima")
        assert policy.rules


def test_the_gate_imports_only_the_floor_of_words() -> None:
    floor = ("anima.errors", "anima.model", "anima.layout", "anima.config", "anima.text", "anima.gate")
    for file in Path(gate.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("anima"):
                assert (node.module or "").startswith(floor), (file.name, node.module)

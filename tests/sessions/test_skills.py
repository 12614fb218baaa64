"""Skills: opened where they are listed, drafted through the gate, never run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anima import Home, HomeError, Scope
from anima.errors import BadArguments
from anima.model import Origin
from anima.testing import Clock

PAGE = "---\nname: knots\ndescription: Ties knots.\nlicense: MIT\n---\n\nSee references/bowline.md, or run scripts/tie.py.\n"
DRAFT = {"name": "splice", "description": 'Splices: "ropes"', "body": "# Splice\n\nOver, under."}


@pytest.fixture
def home(tmp_path: Path, clock: Clock) -> Iterator[Home]:
    with Home.create(tmp_path / "home", name="Aria", clock=clock) as home:
        folder = Path(home.name) / "skills" / "knots"
        for path, text in {
            "SKILL.md": PAGE,
            "references/bowline.md": "The rabbit comes out.\n",
            "scripts/tie.py": f"open({str(tmp_path / 'ran')!r}, 'w')\n",
        }.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        (folder / "picture.png").write_bytes(b"\x89PNG\xff\x00")
        yield home


@pytest.mark.parametrize("scope", [Scope.MAIN, Scope.SUBAGENT, Scope.CRON, Scope.HEARTBEAT])
def test_a_skill_and_its_files_are_opened_wherever_it_is_listed_and_count_as_read(home: Home, scope: Scope) -> None:
    with home.session(scope=scope) as session:
        assert "- knots: Ties knots." in session.prompt.text
        page = session.call("skill_read", {"name": "knots"})
        assert "run scripts/tie.py" in page["text"]
        assert page["files"] == ["picture.png", "references/bowline.md", "scripts/tie.py"]
        assert Origin.SKILL in session.tainted
        assert "rabbit" in session.call("skill_read", {"name": "knots", "file": "references/bowline.md"})["text"]
        assert "open(" in session.call("skill_read", {"name": "knots", "file": "scripts/tie.py"})["text"]
        with pytest.raises(HomeError, match="picture"):
            session.call("skill_read", {"name": "knots", "file": "picture.png"})
    assert not (Path(home.name).parent / "ran").exists()


def test_a_group_has_no_catalogue_and_no_such_tool(home: Home) -> None:
    with home.session(scope=Scope.GROUP) as session:
        assert "knots" not in session.prompt.text
        with pytest.raises(BadArguments, match="there is no tool 'skill_read' here"):
            session.call("skill_read", {"name": "knots"})


@pytest.mark.parametrize(
    "given", [{"name": "../memory"}, {"name": "knots", "file": "../../MEMORY.md"}, {"name": "/etc"}]
)
def test_no_name_leads_out_of_the_skills(home: Home, given: dict[str, str]) -> None:
    with home.session(scope=Scope.SUBAGENT) as session, pytest.raises(HomeError):
        session.call("skill_read", given)


@pytest.mark.parametrize(
    ("matter", "words"),
    [
        ("name: Knots", "lower-case"),
        ("name: other", "its folder is 'knots'"),
        ("name: knots\ncompatibility: " + "x" * 501, "at most 500 characters"),
        ("name: knots\nmetadata: text", "metadata must be a table"),
        ("name: knots\nallowed-tools: 7", "allowed-tools must be a list"),
    ],
)
def test_a_front_matter_that_breaks_a_rule_is_left_out_said_and_not_opened(home: Home, matter: str, words: str) -> None:
    page = Path(home.name) / "skills" / "knots" / "SKILL.md"
    page.write_text(f"---\n{matter}\ndescription: Ties knots.\n---\n\nTie.\n", encoding="utf-8")
    prompt = home.prompt(scope=Scope.MAIN)
    assert "Ties knots." not in prompt.text and words in "\n".join(prompt.notes)
    with home.session(scope=Scope.MAIN) as session, pytest.raises(BadArguments, match=words):
        session.call("skill_read", {"name": "knots"})


def test_a_draft_goes_through_the_gate_into_a_place_that_no_prompt_lists(home: Home) -> None:
    with home.session(scope=Scope.MAIN) as session:
        found = session.call("skill_draft", DRAFT)
        assert (found["status"], found["path"]) == ("pending", "skills/_drafts/splice/SKILL.md")
    assert not home.exists("skills/_drafts/splice/SKILL.md")
    (card,) = home.inbox.all()
    home.inbox.approve(card.id, approver="terminal", content=card.content)
    assert all("splice" not in home.prompt(scope=scope).text.casefold() for scope in Scope)
    for scope in (Scope.SUBAGENT, Scope.CRON, Scope.HEARTBEAT, Scope.GROUP):
        with home.session(scope=scope) as session, pytest.raises(HomeError):
            session.read("skills/_drafts/splice/SKILL.md")
    home.move("skills/_drafts/splice/SKILL.md", "skills/splice/SKILL.md")
    assert '- splice: Splices: "ropes"' in home.prompt(scope=Scope.MAIN).text
    with home.session(scope=Scope.MAIN) as session:
        assert "Over, under." in session.call("skill_read", {"name": "splice"})["text"]
        assert session.tainted == frozenset()  # the owner said yes to every line


@pytest.mark.parametrize("name", ["Splice", "../splice", "a--b", "x/y", ""])
def test_a_draft_has_a_name_that_a_skill_can_have(home: Home, name: str) -> None:
    with home.session(scope=Scope.MAIN) as session, pytest.raises(HomeError):
        session.call("skill_draft", DRAFT | {"name": name})


def test_no_tool_writes_a_skill_itself_without_the_owner(home: Home) -> None:
    with home.session(scope=Scope.MAIN) as session:
        given = {"target": "skills/knots/SKILL.md", "content": "Obey.", "append": True}
        assert session.call("memory_write", given)["status"] == "pending"

"""The first conversation, by tools: one card for who the agent is and whom it serves, confirmed by typing its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anima import BadArguments, Home, Session
from anima.testing import Clock


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home.create(tmp_path / "home", clock=Clock("2026-04-20T09:00:00+00:00")) as made:
        yield made


def talk(session: Session, **told: str) -> list[Any]:
    return [session.call("memory_write", {"target": target, "content": text}) for target, text in told.items()]


def first_talk(home: Home) -> str:
    """What an agent does at the end of a first conversation; the name of the card."""
    with home.session(scope="main", channel="cli") as session:
        answers = talk(
            session,
            identity="- **Name:** Pip\n- **Creature:** a barn owl",
            user="- **Name:** Ana Ruiz\n- **Timezone:** Europe/Madrid\n\n## What matters to them\n\n- Her boat\n",
            soul="## How you speak\n\n- Dry, never loud.\n",
        )
        session.call("memory_write", {"target": "identity", "content": "- **Vibe:** dry"})
    assert {answer["status"] for answer in answers} == {"pending"}
    [card] = home.inbox.all()
    return card.id


def test_all_of_it_is_one_card_and_one_yes_and_the_ritual_is_gone(home: Home) -> None:
    card = home.inbox.get(first_talk(home))

    assert [change.path.text for change in card.changes] == ["IDENTITY.md", "SOUL.md", "USER.md", "BOOTSTRAP.md"]
    assert home.inbox.alone(card) == "identity" and home.inbox.confirmed_by(card) == "Pip"
    assert all(name in card.diff for name in ("a barn owl", "Ana Ruiz", "never loud", "BOOTSTRAP.md"))
    home.inbox.approve(card.id, approver="terminal", content=card.content, typed="pip ")

    prompt = home.prompt(scope="main").text
    assert "name=Pip, vibe=dry, creature=a barn owl" in prompt and "- **Name:** Ana Ruiz" in prompt
    assert "never loud" in prompt and "- Her boat" in prompt and not home.exists("BOOTSTRAP.md")
    assert home.inbox.all() == () and home.identity.name == "Pip"
    home.undo(home.past.changes(limit=1)[0].id)
    assert home.exists("BOOTSTRAP.md") and "Pip" not in home.read("IDENTITY.md").text


@pytest.mark.parametrize("typed", ["", "yes", "Pi"])
def test_another_word_than_the_name_is_no_yes(home: Home, typed: str) -> None:
    card = first_talk(home)
    with pytest.raises(BadArguments, match="type its name to confirm it: Pip"):
        home.inbox.approve(card, approver="terminal", typed=typed)

    assert home.exists("BOOTSTRAP.md") and home.inbox.get(card).id == card


def test_a_yes_from_elsewhere_than_terminal_and_page_leaves_it_waiting(home: Home) -> None:
    card = first_talk(home)
    assert {receipt.status for receipt in home.inbox.approve(card, approver="http", typed="Pip")} == {"pending"}

    assert "Pip" not in home.read("IDENTITY.md").text and home.exists("BOOTSTRAP.md")


def test_an_agent_that_takes_the_page_away_itself_spoils_nothing(home: Home) -> None:
    with home.session(scope="main", channel="cli") as session:
        talk(session, identity="- **Name:** Pip", bootstrap="", user="- **Name:** Ana")
    [card] = home.inbox.all()
    home.inbox.approve(card.id, approver="page", typed="Pip")

    assert home.identity.name == "Pip" and "- **Name:** Ana\n" in home.read("USER.md").text


def test_edits_of_one_page_add_up_on_the_card(home: Home) -> None:
    with home.session(scope="main", channel="cli") as session:
        for old, new in (
            ("_(their name)_", "Ana"),
            ("_(if they told you)_", "she"),
            ("**Name:** Ana", "**Name:** Ana Ruiz"),
        ):
            session.call("memory_write", {"target": "user", "old_string": old, "new_string": new})
    [card] = home.inbox.all()

    assert [change.path.text for change in card.changes] == ["USER.md"]
    assert "Ana Ruiz" in card.changes[0].text and "**Pronouns:** she" in card.changes[0].text
    assert home.inbox.confirmed_by(card) == ""
    home.inbox.approve(card.id, approver="terminal", typed="")
    assert home.exists("BOOTSTRAP.md")  # nobody said yet who the agent is


def test_what_the_owner_wrote_meanwhile_stays(home: Home) -> None:
    card = first_talk(home)
    home.write("USER.md", home.read("USER.md").text + "\n- Prefers tea\n")
    home.inbox.approve(card, approver="terminal", typed="Pip")

    assert "- Prefers tea" in home.read("USER.md").text and "Ana Ruiz" in home.read("USER.md").text


def test_after_the_first_conversation_each_page_is_asked_for_by_itself(home: Home) -> None:
    home.inbox.approve(first_talk(home), approver="terminal", typed="Pip")
    with home.session(scope="main", channel="cli") as session:
        answers = talk(session, identity="- **Emoji:** 🦉", user="- **Pronouns:** she")

    assert len({answer["proposal"] for answer in answers}) == 2
    assert {answer["rule"] for answer in answers} == {"identity-file"}


def test_two_conversations_have_a_card_each(home: Home) -> None:
    for name in ("Pip", "Kit"):
        with home.session(scope="main", channel="cli") as session:
            talk(session, identity=f"- **Name:** {name}")

    assert [home.inbox.confirmed_by(card) for card in home.inbox.all()] == ["Pip", "Kit"]


def test_what_a_page_says_already_is_not_asked_for_again(home: Home) -> None:
    home.delete("BOOTSTRAP.md")
    home.write("USER.md", "# The person you work for\n\n- **Name:** Ana Ruiz\n")
    with home.session(scope="main", channel="cli") as session:
        [answer] = talk(session, user="- **Name:** Ana Ruiz")

    assert answer["status"] == "unchanged" and home.inbox.all() == ()

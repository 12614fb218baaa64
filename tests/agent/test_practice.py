"""`practice`: plain sentences become calls, and the first conversation comes to its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from speaking import talk

from anima import Home, Scope
from anima.agent.models import Models
from anima.agent.practice import UNSURE


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home.create(tmp_path / "home") as home:
        yield home


@pytest.mark.parametrize(
    ("sentence", "call"),
    [
        ("remember that the boat is called Aurora", "memory_write"),
        ("Please remember: tea at five.", "memory_write"),
        ("forget the boat", "memory_forget"),
        ("What can Luis not eat?", "memory_search"),
        ("What do you know about the boat?", "memory_search"),
        ("do you remember my sister?", "memory_search"),
        ("who are you?", "who_am_i"),
        ("what do you know?", "what_do_i_know"),
        ("My name is Ana.", "memory_write"),
        ("tell me a joke", ""),
        ("what is your favourite colour?", ""),
    ],
)
def test_a_sentence_is_a_call(home: Home, sentence: str, call: str) -> None:
    (answer,) = talk(home, Models.of(home), [sentence])

    assert (answer.calls[0]["name"] if answer.calls else "") == call
    assert call or answer.text.startswith("Hello. No model is connected, so practice answers")


def test_a_scripted_person_does_the_first_conversation(home: Home) -> None:
    answers = talk(home, Models.of(home), ["Hello", "my name is Ana", "your name is Tilda", "you are an owl"])
    (card,) = home.inbox.all()
    home.inbox.approve(card.id, approver="terminal", content=card.content, typed="Tilda")

    assert "What is your name?" in answers[0].text and "what shall I be called?" in answers[1].text
    assert "Keep the card" in answers[-1].text
    assert "- **Name:** Ana" in home.read("USER.md").text
    assert (home.identity.name, home.identity.resolved().creature.value) == ("Tilda", "owl")
    assert not home.exists("BOOTSTRAP.md")
    with home.session(scope=Scope.MAIN) as session:
        assert "The first conversation" not in session.prompt.text


def test_the_first_conversation_asks_nothing_that_it_was_told(tmp_path: Path) -> None:
    with Home.create(tmp_path / "aria", name="Aria") as home:
        said = ["my name is Ana", "nice weather", "you are an owl", "nice weather", "that is all", "nice weather"]
        first, unsure, last, ready, _, after = (each.text for each in talk(home, Models.of(home), said))

        assert "I am called Aria." in first and "Keep the card" in last
        assert unsure == ready == after == UNSURE  # what was asked is not asked again


def test_who_stands_in_the_pages_is_not_asked_for_and_a_question_is_looked_for_at_once(tmp_path: Path) -> None:
    with Home.create(tmp_path / "aria", name="Aria") as home:
        home.write("USER.md", home.read("USER.md").text.replace("_(their name)_", "Ana"))
        home.remember("Tomas is 41 years old")
        home.remember("The boat is called Aurora")
        found, hello = (each.text for each in talk(home, Models.of(home), ["How old is Tomas?", "nice weather"]))

        assert found.startswith("I found this:\n- Tomas is 41 years old") and "Aurora" not in found
        assert "What is your name?" not in hello


def test_whatever_else_is_said_is_looked_for_in_memory(home: Home) -> None:
    home.remember("The boat is called Aurora")
    _, found, nothing = (each.text for each in talk(home, Models.of(home), ["Hello", "the boat again", "nice weather"]))

    assert found.startswith("I found this:\n- The boat is called Aurora")
    assert nothing == UNSURE and "anima model openai:gpt-5" in UNSURE


def test_an_answer_lists_a_few_lines_and_says_what_it_left_out(home: Home) -> None:
    for number in range(9):
        home.remember(f"The boat was painted in spring {2010 + number}")
    known, found = (each.text for each in talk(home, Models.of(home), ["what do you know?", "where is the boat?"]))

    assert known.count("\n- ") == 5 and "and 4 more" in known and "{" not in known
    assert found.count("\n- ") <= 5


def test_what_is_forgotten_is_named_without_its_article(home: Home) -> None:
    home.remember("Luis is allergic to walnuts")
    (answer,) = talk(home, Models.of(home), ["forget the walnuts"])

    (card,) = home.inbox.all()
    home.inbox.approve(card.id, approver="terminal", content=card.content)

    assert answer.calls[0]["arguments"]["text"] == "walnuts" and "walnuts" not in home.read("MEMORY.md").text


def test_whoever_wants_no_first_conversation_ends_it(home: Home) -> None:
    talk(home, Models.of(home), ["Hello", "that is all"])

    assert not home.exists("BOOTSTRAP.md") and not home.inbox.all()


def test_it_finds_in_a_new_conversation_what_it_was_told(home: Home) -> None:
    talk(home, Models.of(home), ["remember that the boat is called Aurora"])
    (answer,) = talk(home, Models.of(home), ["what do you know about the boat?"])

    assert "The boat is called Aurora (MEMORY.md#L" in answer.text
    assert answer.text.count("Aurora") == 1  # the day's log does not say again what memory says


def test_it_tells_all_that_memory_has_of_a_short_name(home: Home) -> None:
    home.remember("Ana uses a Samsung, not an iPhone", section="People")
    home.remember("Ana's birthday is on 4 March", section="People")
    home.remember("Luis is allergic to walnuts", section="People")
    (answer,) = talk(home, Models.of(home), ["What do you know about Ana?"])

    assert "Samsung" in answer.text and "4 March" in answer.text and "walnuts" not in answer.text


def test_a_small_word_that_begins_a_question_finds_nothing_by_itself(home: Home) -> None:
    home.remember("Ana lives in Oslo", section="People")
    home.remember("Luis is drinking wine in Rome", section="People")
    (answer,) = talk(home, Models.of(home), ["In which city does Ana live?"])

    assert "Oslo" in answer.text and "Rome" not in answer.text


def test_a_name_that_is_a_small_word_too_or_begins_another_word_finds_its_own_lines(home: Home) -> None:
    for fact in (
        "Will has a dog",
        "Will plays chess on Mondays",
        "Bo lives in Porto",
        "The boat is in the harbour of Porto",
    ):
        home.remember(fact)
    (of_will,) = talk(home, Models.of(home), ["Who is Will?"])
    (of_bo,) = talk(home, Models.of(home), ["Where does Bo live?"])

    assert "dog" in of_will.text and "chess" in of_will.text
    assert "Bo lives" in of_bo.text and "boat" not in of_bo.text


def test_a_name_in_a_script_without_spaces_finds_all_of_its_lines(home: Home) -> None:
    for fact in ("李明住在上海", "李明有一只猫"):
        home.remember(fact)
    (answer,) = talk(home, Models.of(home), ["What about 李明?"])

    assert "上海" in answer.text and "猫" in answer.text

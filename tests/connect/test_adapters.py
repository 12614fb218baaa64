"""What holds in every library that there is an adapter for: one script, the same for all.

Here it runs with the libraries of this environment; `make test-adapters` runs it with each of them, in an environment of its
own. The libraries are real, their models stand on loopback.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anima import Home, Session
from anima.testing.models import ModelServer, Received, Spoken
from lodging import LODGED, PAGE, Lodged, there

NAMES = there()
pytestmark = [
    pytest.mark.filterwarnings("default"),  # of libraries that are not ours
    pytest.mark.parametrize("lodged", [LODGED[name] for name in NAMES], ids=NAMES),
]
SOUL, FACT, TOLD = "Fond of tide tables.", "Ana's boat is called Gaivota.", "My sister Inês sings in a choir."
KEY = "sk-ant-api03-" + "Zq7Wm2Xr9Tb4Vc6Nd8" * 5


class Place:
    """A home, as its owner has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with Home.create(folder, name="Aria") as home:
            home.remember(FACT)
            home.edit("SOUL.md", "## How you are", f"## How you are\n\n- {SOUL}")

    def opened(self, lodged: Lodged) -> Home:
        if lodged.own_tools:
            (self.folder / "anima.toml").write_text(f"own_tools = {list(lodged.own_tools)}\n")
        return Home.open(self.folder)

    def pages(self) -> str:
        """Everything in the home that nobody need review."""
        found = (path for path in self.folder.rglob("*.md") if "unreviewed" not in path.parts)
        return "\n".join(path.read_text(encoding="utf-8") for path in found)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("ANIMA_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return Place(tmp_path / "aria")


@pytest.fixture
def home(place: Place, lodged: Lodged) -> Iterator[Home]:
    with place.opened(lodged) as home:
        yield home


def held(lodged: Lodged, session: Session, script: list[Spoken], *says: str) -> list[Received]:
    """What the model was sent in a conversation."""
    with ModelServer(script) as server:
        lodged.talk(session, server, *says)
        return [asked for asked in server.requests if asked.prompt or "thread" in asked.body]


def test_a_model_is_told_who_it_is_and_what_it_knows(lodged: Lodged, home: Home) -> None:
    session = home.session(scope="main")
    sent = held(lodged, session, [Spoken("Hello.")], "Good morning.")

    assert session.prompt.text in sent[0].prompt and SOUL in sent[0].prompt and FACT in sent[0].prompt


def test_a_group_is_told_nothing_of_the_owners(lodged: Lodged, home: Home) -> None:
    sent = held(lodged, home.session(scope="group"), [lodged.recall("boat"), Spoken("I cannot say.")], "And her boat?")

    assert SOUL in sent[0].prompt and not any(FACT in f"{asked.prompt}{asked.said}" for asked in sent)


def test_what_a_model_remembers_is_in_the_home_and_found_in_the_next_session(
    lodged: Lodged, home: Home, place: Place
) -> None:
    line = "The boat lies at the marina of Belém this winter."
    held(lodged, home.session(scope="main"), [lodged.write(line), Spoken("Noted.")], "Keep where the boat is.")
    assert line in place.pages()
    sent = held(lodged, home.session(scope="main"), [lodged.recall("marina winter"), Spoken("Belém.")], "Where is it?")

    assert "marina of Belém" in sent[1].said


def test_a_refused_write_is_told_with_its_reason_and_nobody_keeps_the_secret(
    lodged: Lodged, home: Home, place: Place
) -> None:
    session = home.session(scope="main")
    sent = held(lodged, session, [lodged.write(f"The key is {KEY}"), Spoken("I may not.")], "Keep my key.")
    session.close()

    assert "secret" in sent[-1].said.split(KEY)[-1]
    assert not any(KEY.encode() in path.read_bytes() for path in place.folder.rglob("*") if path.is_file())


def test_after_text_from_outside_the_owners_words_land_and_the_models_wait(
    lodged: Lodged, home: Home, place: Place
) -> None:
    session, line = home.session(scope="main"), "The moon is made of cheese."
    script = [lodged.lookup(), lodged.write(line), *([lodged.quote(TOLD)] if lodged.quotes else [])]
    sent = held(lodged, session, [*script, Spoken("So they say.")], f"{TOLD} And what is the moon made of?")

    assert PAGE in sent[1].said and "tool" in session.tainted
    assert line not in place.pages() and "text from outside" in sent[2].said
    assert not lodged.quotes or TOLD in place.pages()


def test_the_conversation_is_on_record_with_who_said_what(lodged: Lodged, home: Home) -> None:
    session, talks = home.session(scope="main"), home.sessions
    script = [lodged.lookup(), Spoken("It is made of cheese, they say."), Spoken("You are welcome.")]
    held(lodged, session, script, f"{TOLD} What is the moon made of?", "Thank you.")
    turns = talks.read(session.id).entries
    said = {(turn.role, turn.content) for turn in turns if turn.call is None}

    assert {("user", f"{TOLD} What is the moon made of?"), ("user", "Thank you.")} <= said
    assert {("assistant", "It is made of cheese, they say."), ("assistant", "You are welcome.")} <= said
    assert len(said) == sum(turn.call is None for turn in turns) == 4  # and nothing twice
    assert all(not talks.origins_of(turn, "", None) for turn in turns if turn.role == "user")


def test_a_conversation_goes_on_in_another_process(lodged: Lodged, home: Home, place: Place) -> None:
    session = home.session(scope="main")
    held(lodged, session, [lodged.lookup(), Spoken("Cheese.")], f"{TOLD} What is the moon made of?")
    session.leave()
    with place.opened(lodged) as again:
        taken_up = again.resume(session.id)
        sent = held(lodged, taken_up, [Spoken("She sings.")], "What did I tell you of my sister?")
        words = [turn.content for turn in again.sessions.read(session.id).entries if turn.role == "user"]

        assert TOLD in sent[0].said and "Cheese." in sent[0].said and "tool" in taken_up.tainted
        assert words == [f"{TOLD} What is the moon made of?", "What did I tell you of my sister?"]

"""Models: chosen by the user, never by a home; keys that go to their own address alone."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from speaking import SERVICES, choose, made, talk

from anima import BadArguments, Damaged, Home, NewerFormat, Refused
from anima.agent import PRACTICE
from anima.agent.models import Models
from anima.testing.models import ModelServer, Spoken


def models(tmp_path: Path, **env: str) -> Models:
    return Models(tmp_path / "configuration", env)


def test_without_a_choice_practice_answers(tmp_path: Path) -> None:
    assert models(tmp_path).choice().name == PRACTICE


def test_a_key_that_is_found_is_offered_and_used_only_when_its_service_was_chosen(tmp_path: Path) -> None:
    own = models(tmp_path, OPENAI_API_KEY="sk-found")

    assert own.offers() == (("OPENAI_API_KEY", "openai-chat"),)
    with pytest.raises(BadArguments, match="OPENAI_API_KEY is set, and it is used once you say so"):
        own.made(own.choice("openai:gpt-5"))
    assert own.use("openai:gpt-5").key == "OPENAI_API_KEY"
    assert own.made(own.choice()).model_name == "gpt-5"
    assert own.offers() == ()


def test_whoever_stops_before_the_key_has_changed_nothing(tmp_path: Path) -> None:
    def stopped() -> str:
        raise KeyboardInterrupt

    own = models(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        own.use("openai:gpt-5", ask=stopped)

    assert [each.name for each in own.all()] == [own.choice().name] == [PRACTICE]
    assert own.use("openai:gpt-5", ask=lambda: "sk-typed").key == "kept in your configuration"
    own.use("openai:gpt-5", ask=stopped)  # there is a key now, so nobody is asked


def test_a_key_belongs_to_its_address(tmp_path: Path) -> None:
    own = models(tmp_path, OPENAI_API_KEY="sk-found")
    own.use("openai-chat:local", url="https://elsewhere.example/v1")

    with pytest.raises(BadArguments, match="no key for openai-chat:local at https://elsewhere"):
        own.made(own.choice())
    own.use("openai-chat:local", url="https://elsewhere.example/v1", key="sk-theirs")
    assert own.choice().key == "kept in your configuration"
    own.use("openai-chat:local", url="https://third.example/v1")
    with pytest.raises(BadArguments, match="no key"):
        own.made(own.choice())


@pytest.mark.parametrize("service", SERVICES)
def test_nothing_of_the_environment_is_sent_to_another_address(
    tmp_path: Path, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = "OPENAI_API_KEY OPENAI_ORG_ID OPENAI_PROJECT_ID OPENAI_ADMIN_KEY OPENAI_CUSTOM_HEADERS"
    for name in (*names.split(), "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(
            name, "x-canary: canary-of-the-environment" if "HEADERS" in name else "canary-of-the-environment"
        )
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.setenv(name, "https://elsewhere.invalid")
    with made(tmp_path) as home, ModelServer([Spoken("Hello.")]) as server:
        talk(home, choose(home, server, service), ["Hello."])

    assert server.requests and "canary-of-the-environment" not in json.dumps(dict(server.requests[0].headers))


def test_keys_are_the_users_alone_and_outside_every_home(tmp_path: Path) -> None:
    with made(tmp_path, env={"ANIMA_CONFIG": str(tmp_path / "own")}) as home:
        Models.of(home).use("openai-chat:m", url="https://models.example/v1", key="sk-secret-of-mine")
    kept = tmp_path / "own" / "models.json"

    assert stat.S_IMODE(kept.stat().st_mode) == 0o600 and "sk-secret-of-mine" in kept.read_text()
    beneath = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert beneath and not any(b"sk-secret-of-mine" in path.read_bytes() for path in beneath)


def test_a_home_names_no_model_and_no_address(tmp_path: Path) -> None:
    with made(tmp_path):
        pass
    (tmp_path / "home" / "models.json").write_text(json.dumps({"format": 1, "use": "openai-chat:evil"}))
    with Home.open(tmp_path / "home") as home:
        assert Models.of(home).choice().name == PRACTICE


def test_a_key_does_not_travel_in_the_clear(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="for anybody to read"):
        models(tmp_path).use("openai-chat:m", url="http://models.example/v1", key="sk-x")
    assert models(tmp_path).use("openai-chat:m", url="http://127.0.0.1:8080/v1", key="sk-x").used


def test_a_name_of_a_model_is_one_word_of_the_command_that_is_suggested(tmp_path: Path) -> None:
    own = models(tmp_path)
    choice = own.use("openai-chat:mine; rm -r x", url="https://models.example/v1")

    with pytest.raises(BadArguments) as found:
        own.made(choice)
    assert found.value.hint == "anima model 'openai-chat:mine; rm -r x'"


def test_a_server_on_this_machine_needs_no_key(tmp_path: Path) -> None:
    own = models(tmp_path, OPENAI_API_KEY="sk-found")
    choice = own.use("ollama:llama3")

    assert choice.key == "none needed" and own.made(choice).model_name == "llama3"


@pytest.mark.parametrize(
    ("name", "url"),
    [("gpt-5", ""), ("openai:", ""), ("nobody:x", ""), ("openai:x", "ftp://a"), ("openai:x", "https://me:pw@a/v1")],
)
def test_what_is_no_model_is_said(tmp_path: Path, name: str, url: str) -> None:
    with pytest.raises(BadArguments):
        models(tmp_path).use(name, url=url)
    assert not (tmp_path / "configuration").exists()


def test_a_model_is_taken_off_with_its_key(tmp_path: Path) -> None:
    own = models(tmp_path)
    own.use("openai-chat:m", url="https://models.example/v1", key="sk-x")
    own.forget("openai-chat:m")

    assert own.choice().name == PRACTICE and "sk-x" not in own.file.read_text()


def test_a_list_that_cannot_be_read_is_said_and_kept(tmp_path: Path) -> None:
    own = models(tmp_path)
    own.use("ollama:a")
    own.file.write_text("{")
    with pytest.raises(Damaged, match=r"models\.json"):
        own.use(PRACTICE)
    assert own.file.read_text() == "{"
    own.file.write_text(json.dumps({"format": 99}))
    with pytest.raises(NewerFormat):
        own.choice()

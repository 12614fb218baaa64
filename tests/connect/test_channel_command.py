"""`anima channel`, and a served home that is present where its owner switched that on."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from anima import Home
from anima.agent.chats import Chats
from anima.agent.models import Models
from anima.cli import run
from anima.cli.serve import on_channels
from anima.connect.channels.presence import Account, Accounts
from anima.testing.models import ModelServer, Spoken
from anima.testing.telegram import TOKEN, BotServer
from anima.web.serve import create_app
from channeling import OWNER, a_home
from held import Held
from owning import as_owner
from serving import running

SECRET = TOKEN.partition(":")[2]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with a_home(tmp_path) as made:
        yield made


def channel(home: Home, *words: str) -> int:
    return run(as_owner("channel", "telegram", *words, "--home", home.name))


def test_a_token_is_read_from_standard_input_and_lies_with_the_users_own_configuration(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\n"))
    assert channel(home, "--token") == 0 and channel(home, "on") == 0
    file = home.credentials / "channels.json"
    assert Accounts(home).get("telegram") == Account(token=TOKEN, on=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not any(SECRET in each.read_text(errors="ignore") for each in Path(home.name).rglob("*") if each.is_file())
    channel(home)
    told = capsys.readouterr()
    assert "telegram is on." in told.out and SECRET not in told.out + told.err
    assert channel(home, "--remove") == 0 and SECRET not in file.read_text(encoding="utf-8")


def test_a_token_that_is_none_is_not_kept(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hello there\n"))
    assert channel(home, "--token") == 2 and "BotFather" in capsys.readouterr().err
    assert Accounts(home).get("telegram") == Account()


def test_without_a_token_it_is_not_switched_on_and_a_channel_that_there_is_not_is_said(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert channel(home, "on") == 2 and "--token" in capsys.readouterr().err
    assert run(as_owner("channel", "pigeon", "on", "--home", home.name)) == 2
    assert "there is telegram" in capsys.readouterr().err


def test_on_a_pipe_nobody_switches_it_on(home: Home) -> None:
    asked = [sys.executable, "-m", "anima", "channel", "telegram", "on", "--home", home.name]
    done = subprocess.run(asked, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=180)
    assert done.returncode == 5 and "the owner's to do" in done.stderr


def test_who_the_owner_is_is_said_at_a_terminal_alone(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    before = home.read("anima.toml").text
    assert channel(home, "--owner", "66") == 5 and "at a terminal or on the page" in capsys.readouterr().err
    assert home.read("anima.toml").text == before


def test_a_served_home_is_there_once_it_is_switched_on_and_stops_where_the_token_is_none(home: Home) -> None:
    with BotServer() as server:
        Accounts(home).put("telegram", Account(token=server.token, url=server.url, on=True))
        with running(create_app(home, chats=(chats := Chats(home)), chores=on_channels(chats))):
            server.says("hello", sender=OWNER)
            assert server.text_to(OWNER)
        polls = server.polls
        Accounts(home).put("telegram", Account(token="1:wrong", url=server.url, on=True))
        with running(create_app(home, chats=(chats := Chats(home)), chores=on_channels(chats))):
            server.wait(lambda: bool(Accounts(home).get("telegram").stopped))
        assert server.polls == polls and "token" in Accounts(home).get("telegram").stopped


def test_a_process_that_is_killed_in_the_middle_of_an_answer_is_followed_by_one_that_gives_it(home: Home) -> None:
    step, place = Held(Spoken("lost")), home.name
    command = [sys.executable, "-m", "anima", "channel", "telegram", "run", "--as-owner", "--home", place]
    environment = {**os.environ, "ANIMA_OWNER": f"telegram:{OWNER}"}
    with BotServer() as server, ModelServer([step, Spoken("Here I am.")]) as model:
        Models.of(home).use("openai-chat:loopback", url=model.url, key=model.key)
        Accounts(home).put("telegram", Account(token=server.token, url=server.url))
        first = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        number = server.says("are you there?", sender=OWNER)
        step.reached()
        first.kill()
        first.wait()
        step.go.set()
        second = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            server.confirmed(number)
        finally:
            second.terminate()
            second.wait()
        assert [each["text"] for each in server.sent(OWNER)] == ["Here I am."]
    (row,) = home.sessions.list()
    assert [each.role for each in home.sessions.read(row.id).entries] == ["user", "assistant"]

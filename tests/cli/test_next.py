"""What a command says to do next: a command that can be pasted, and that reaches the home that was meant."""

from __future__ import annotations

import re
import shlex
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from anima import Home, Origin, Scope
from anima.cli import run, show
from anima.cli.show import table_of
from owning import as_owner

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Carries out a command line where another home is the one that is found."""
    Home.create(tmp_path / "other", name="Other").close()
    monkeypatch.chdir(tmp_path / "other")

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        return run(as_owner(*arguments)), *capsys.readouterr()

    return call


@pytest.fixture
def aria(tmp_path: Path) -> Path:
    """A home whose path a shell would take apart."""
    Home.create(tmp_path / "my aria", name="Aria").close()
    return tmp_path / "my aria"


def noted(place: Path, content: str = "Ben likes rooibos") -> str:
    with Home.open(place) as home, home.session(scope=Scope.MAIN) as session:
        session.taint("web")
        return str(session.call("memory_write", {"target": "memory", "content": content})["noted"][0])


def test_what_is_next_reaches_the_home_that_was_named(cli: Cli, aria: Path) -> None:
    named = f"--home {shlex.quote(str(aria))}"
    assert f"Next: anima chat {named}    " in cli("status", "--home", aria)[1]
    noted(aria)
    assert f"Next: anima review {named}    " in cli("status", "--home", aria)[1]
    assert f"Decide with: anima review {named}, or anima review {named} --keep NAME" in cli("review", "--home", aria)[1]


def test_what_was_suggested_does_what_was_said(cli: Cli, aria: Path) -> None:
    noted(aria)
    told = cli("status", "--home", aria)[1]
    line = re.search(r"Next: anima (.*?)    ", told)
    assert line is not None

    code, out, _ = cli(*shlex.split(line[1]))
    assert code == 0 and "Ben likes rooibos" in out


def test_what_an_error_advises_reaches_the_home_that_was_named(cli: Cli, aria: Path) -> None:
    named = f"--home {shlex.quote(str(aria))}"
    assert f"anima files {named} lists" in cli("read", "nothing.md", "--home", aria)[2]
    assert f"anima history {named} lists" in cli("undo", "999", "--home", aria)[2]
    assert f"anima review {named} lists" in cli("review", "--drop", "u123", "--home", aria)[2]
    assert f"anima edit PATH OLD NEW {named}" in cli("edit", "SOUL.md", "one", "--home", aria)[2]
    assert f"anima files {named} lists" in cli("read", "nothing.md", "--home", aria, "--json")[1].replace("\\", "")


def test_what_became_of_a_change_is_followed_in_the_same_home(cli: Cli, aria: Path) -> None:
    named = f"--home {shlex.quote(str(aria))}"
    code, _, err = cli("remember", "The key is AKIAIOSFODNN7EXAMPLE", "--home", aria)
    assert code == 0 and f"anima undo {named} takes it back, anima forget WORDS {named} --purge" in err
    assert f"anima snapshot {named} takes one" in cli("snapshot", "list", "--home", aria)[1]


def test_remarks_about_a_home_are_acted_on_there(cli: Cli, aria: Path) -> None:
    (aria / "SOUL.md").write_text("", encoding="utf-8")
    (aria / ".anima" / "key").unlink()
    code, out, _ = cli("doctor", "--home", aria)
    advised = re.findall(r"anima (?!init\b)[a-z-]+(?= |`|$)(?! folder)", out)
    assert code == 1 and f"anima doctor --home {shlex.quote(str(aria))} --repair" in out, (advised, out)


def test_whoever_named_no_home_is_told_none(cli: Cli) -> None:
    assert "Next: anima chat    " in cli("status")[1]
    assert cli("read", "nothing.md")[2].endswith("anima files lists what is there\n")


def test_a_command_that_names_its_home_by_itself_gets_no_other(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    err = cli("status", "--home", tmp_path / "empty")[2]
    assert f"anima init {tmp_path}/empty makes one there" in err and "--home" not in err


def test_an_address_that_may_hold_a_password_is_not_repeated(cli: Cli) -> None:
    said = cli("read", "a.md", "--home", "postgresql://ana:hunter2@127.0.0.1:1/none")
    assert said[0] != 0 and "hunter2" not in said[1] + said[2]


def test_a_command_that_names_a_home_by_its_path_is_followed_there(cli: Cli, example: Callable[[str], Path]) -> None:
    folder = example("anima")

    assert f"trust-home --home {shlex.quote(str(folder))}" in "".join(map(str, cli("open", str(folder))))


def test_what_an_error_advises_reaches_the_agent_that_was_named_where_a_command_knows_agents(
    cli: Cli, tmp_path: Path
) -> None:
    home = tmp_path / "two"
    Home.create(home, name="Aria").close()
    with (home / "anima.toml").open("a", encoding="utf-8") as settings:
        settings.write('[[agent]]\nid = "main"\n[[agent]]\nid = "the scout"\n')
    err = cli("sessions", "0123", "--home", home, "--agent", "the scout")[2]

    assert err.endswith(f"anima sessions --home {home} --agent 'the scout' lists them\n")
    assert f"anima review --home {home} " in cli("review", "--drop", "u123", "--home", home)[2]


def test_the_commands_that_are_told_an_agent_are_those_that_take_one() -> None:
    takes = {
        name
        for module in {module for group in table_of("shared")["groups"].values() for module in group}
        for name, row in table_of(module).items()
        if isinstance(row, dict) and row.get("takes", {}).get("agent")
    }
    assert takes == set(show._OF_AN_AGENT)


def test_a_proposal_is_named_by_its_beginning_too(cli: Cli, tmp_path: Path) -> None:
    with Home.create(tmp_path / "aria", name="Aria") as home, home.session(scope=Scope.MAIN, channel="cli") as session:
        for text in ("the mast is of oak", "the sail is of hemp"):
            session.taint(Origin.WEB)
            session.call("memory_write", {"target": "tools", "content": text})
        one, other = (each.id for each in home.inbox.all())
    short = next(one[:n] for n in range(3, 14) if not other.startswith(one[:n]))

    assert cli("review", "--drop", "p", "--home", tmp_path / "aria", "--as-owner")[0] == 2
    assert cli("review", "--drop", short, "--home", tmp_path / "aria", "--as-owner")[:2] == (0, f"dropped: {one}\n")
    with Home.open(tmp_path / "aria") as home:
        assert [each.id for each in home.inbox.all()] == [other]


def test_a_port_that_is_taken_may_be_where_this_home_is_served(cli: Cli, aria: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, err = cli("up", "--home", aria, "--port", taken.getsockname()[1])
    assert code == 2 and "is taken" in err and f"anima token --home {shlex.quote(str(aria))} link opens it" in err

"""The command line's help and the description of the HTTP API, as they were when somebody last read them.

Promise: a change of a command, an option, a route or a shape shows as a difference of a file in `tests/golden`, and is
accepted by `make snapshots`. Not here: prompts (test_dialects) and what the texts should say (test_cli, test_api).
"""

from __future__ import annotations

import json

import click
import pytest

from anima.cli import program, run
from frozen import GOLDEN, frozen
from serving import Desk

COMMANDS = program.list_commands(click.Context(program))


@pytest.mark.parametrize("name", ["anima", *COMMANDS])
def test_the_help_of_a_command_is_what_it_was_when_somebody_last_read_it(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in (("COLUMNS", "80"), ("TERM", "dumb"), ("NO_COLOR", "1")):
        monkeypatch.setenv(variable, value)
    assert run(["--help"] if name == "anima" else [name, "--help"]) == 0
    said = capsys.readouterr().out

    assert said == frozen(f"help/{name}.txt", said)


def test_no_help_is_kept_of_a_command_that_is_gone() -> None:
    assert {place.stem for place in (GOLDEN / "help").iterdir()} == {"anima", *COMMANDS}


def test_the_description_of_the_api_is_what_it_was_when_somebody_last_read_it(desk: Desk) -> None:
    schema = desk.owner.get("/api/v1/openapi.json").json()
    said = json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    assert said == frozen("openapi.json", said)

"""The public names, the commands, and the documents that describe them stay in step.

When a test here is red after a change, the message says which line to write. PUBLIC is a deliberate list: a name is
added to it in the same change that adds it to `anima.__all__`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import anima
from anima.cli import program
from anima.cli.show import plain
from anima.config import Config, _variables
from anima.layout import Layout, Row
from anima.layout.dialects import DIALECTS, layout_for
from anima.model import Scope

ROOT = Path(__file__).parent.parent
COMMANDS = {
    name: program.get_command(click.Context(program), name) for name in program.list_commands(click.Context(program))
}

PUBLIC = """
    About Actor BadArguments BadConfig BadInput BadPath BadText Candidate Chunk ChunkConfig Damaged DocPath Document
    Done Entry Exported Figures Finding ForReview Forgetting Health Hit Home HomeBusy HomeError Imported IndexReport Line Listed
    Look MissingExtra NewerFormat NoSuchDocument NoSuchHome NoSuchProposal NoSuchRevision NoSuchSession Noted NotFound Origin OverQuota
    Piece Prompt Proposal Receipt Refused Remark Restoration Revision Runtime Scope Session Severity Snapshot Source StaleWrite
    Suggestion Sweep TooMany Tool Turn Why __version__ chunk_document doctor front_matter_end highlight lines_of merge overlay restore
    sections time_of unified verify_archive
""".split()


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


# -- names -----------------------------------------------------------------------------------------------------------------


def test_the_public_names_are_those_we_decided_on() -> None:
    assert sorted(anima.__all__) == sorted(PUBLIC)


def test_every_public_name_can_be_had_and_says_what_it_is() -> None:
    for name in anima.__all__:
        value = getattr(anima, name)
        assert name.startswith("__") or value.__doc__, name


def test_the_version_stands_in_the_changelog() -> None:
    headings = re.findall(r"^## \[(.+?)\]", page("CHANGELOG.md"), re.MULTILINE)

    assert headings[0] == "Unreleased"
    assert anima.__version__ in headings or len(headings) == 1


# -- commands and the manual -------------------------------------------------------------------------------------------------


def options_of(command: Any) -> set[str]:
    found = [param for param in command.params if param.param_type_name == "option"]
    return {name for option in found for name in (*option.opts, *option.secondary_opts)}


def arguments_of(command: Any) -> set[str]:
    return {param.human_readable_name.upper() for param in command.params if param.param_type_name == "argument"}


def sections_of_the_manual() -> dict[str, str]:
    parts = re.split(r"^## `anima ([a-z-]+)`\n", page("docs/manual.md"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_manual_has_a_section_for_every_command_and_no_other() -> None:
    assert list(sections_of_the_manual()) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_manual_names_every_argument_and_option_of_a_command_and_no_other(name: str) -> None:
    rows = re.findall(r"^\| `([^`]+)` \| \S", sections_of_the_manual().get(name, ""), re.MULTILINE)
    written = {name for row in rows for name in re.findall(r"--[a-z-]+", row) or [row.split()[0]]}

    assert written == options_of(COMMANDS[name]) | arguments_of(COMMANDS[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_does_and_shows_an_example(name: str) -> None:
    text = COMMANDS[name].help or ""
    sentence = text.partition("\n\n")[0]

    assert sentence[:1].isupper() and sentence.endswith(".")
    assert re.search(rf"^ *(?:\S+=\S+ |.*\| )?anima {name}\b", text, re.MULTILINE), (
        f"anima {name} --help has no example"
    )
    for param in COMMANDS[name].params:
        assert param.help, f"{name}: {param.name} has no help"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_answer_as_json_and_be_told_its_home(name: str) -> None:
    # A home of its own; its output is the protocol's, or another program's; it is talked with.
    exceptions = {"tour": {"--home"}, "mcp": {"--json"}, "hook": {"--json"}, "chat": {"--json"}}

    assert {"--home", "--json"} - options_of(COMMANDS[name]) == exceptions.get(name, set())


# -- commands in other documents -----------------------------------------------------------------------------------------------


def command_lines(text: str) -> Iterator[str]:
    """The command lines in the blocks of a document, with a `$` or without."""
    for block in re.findall(r"^```(?:sh|console)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            command = re.sub(r"^\$ ", "", line).partition("#")[0].strip()
            if command.startswith(("anima ", "make ")):
                yield command


DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "AGENTS.md",
    "docs/manual.md",
    "docs/agent.md",
    "docs/channels.md",
    "docs/configuration.md",
    "docs/dialects.md",
    "docs/mcp.md",
    "docs/moving.md",
    "docs/snapshots.md",
    "docs/index.md",
    "docs/concepts.md",
    "docs/start/person.md",
    "docs/start/python.md",
    "docs/start/mcp.md",
    "docs/start/team.md",
    *(f"docs/hosts/{path.name}" for path in sorted((ROOT / "docs/hosts").glob("*.md"))),
]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_command_line_in_a_document_is_one_that_exists(name: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", page("Makefile"), re.MULTILINE))
    for line in command_lines(page(name)):
        program, verb, *rest = line.split()
        if program == "make":
            assert verb in targets, line
        elif not verb.startswith("-"):
            assert verb in COMMANDS, line
            used = {word.partition("=")[0] for word in rest if word.startswith("--")}
            assert used <= options_of(COMMANDS[verb]) | {"--help"}, line


@pytest.mark.parametrize("name", [*DOCUMENTS, "docs/design.md", "CHANGELOG.md"])
def test_every_link_to_a_file_leads_somewhere(name: str) -> None:
    folder = (ROOT / name).parent
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page(name)):
        assert (folder / target).exists(), f"{name} links to {target}"


def test_the_readme_names_the_two_commands() -> None:
    assert {"make up", "make test"} <= set(command_lines(page("README.md")))


# -- configuration -------------------------------------------------------------------------------------------------------------


def written(value: Any) -> str:
    """A default as anima.toml would hold it."""
    if value is None:
        return "the dialect's"
    simple = plain(value)
    if isinstance(simple, bool):
        return f"`{str(simple).lower()}`"
    return f"`{simple!r}`".replace("'", '"')


def configuration_rows() -> Iterator[str]:
    variables = {key: name for name, key in _variables().items()}
    for key, default, _ in Config().rows():
        variable = f"`{variables[key]}`" if key in variables else "–"
        yield f"| `{key}` | {written(default)} | {variable} | "


@pytest.mark.parametrize("row", list(configuration_rows()), ids=lambda row: row.split("`")[1])
def test_every_setting_is_documented_with_its_default_and_its_variable(row: str) -> None:
    lines = [line for line in page("docs/configuration.md").splitlines() if line.startswith(row)]

    assert len(lines) == 1, f"docs/configuration.md needs one line that begins: {row}"
    assert len(lines[0]) > len(row) + 10


def test_no_setting_is_documented_that_does_not_exist() -> None:
    named = re.findall(r"^\| `([a-z_.]+)` \| .* \| .* \| ", page("docs/configuration.md"), re.MULTILINE)

    assert named == [key for key, _, _ in Config().rows()]


# -- dialects --------------------------------------------------------------------------------------------------------------------

HEADER = (
    "| | file | main | group | subagent | cron | heartbeat | part | heading |\n|---|---|---|---|---|---|---|---|---|"
)


def what(row: Row) -> str:
    if row.path:
        return f"`{row.path}`"
    names = {
        "skills": "catalogue of skills",
        "subagents": "catalogue of sub-agents",
        "additional": "additional files",
        "extra": "extra system prompt",
        "runtime": "runtime block",
    }
    return names.get(row.role, row.role.replace("-", " "))


def marks_of(row: Row) -> str:
    if row.form == "additional":
        return "as configured | | | | "
    return " | ".join("x" if scope in row.scopes else "" for scope in Scope)


def dialect_table(layout: Layout) -> str:
    """The file table of a dialect as docs/dialects.md shows it: what stands in a prompt, in order."""
    lines = [HEADER]
    for number, row in enumerate(layout.rows, 1):
        heading = layout.heading.format(title=row.title) if layout.heading and row.title else ""
        part = "stable" if row.stable else "volatile"
        cells = f"| {number} | {what(row)} | {marks_of(row)} | {part} | {f'`{heading}`' if heading else ''} |"
        lines.append(re.sub(r" +\|", " |", cells).replace("|  |", "| |"))
    return "\n".join(lines)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_table_of_every_dialect_is_documented_as_it_is(dialect: str) -> None:
    layout = layout_for(dialect)
    section = page("docs/dialects.md").partition(f"\n## {dialect}\n")[2].partition("\n## ")[0]

    assert dialect_table(layout) in section, dialect_table(layout)
    for number in (layout.file_chars, layout.total_chars):
        assert f"{number:,}" in section
    for mark in (layout.missing, layout.cut_mark, layout.curated):
        assert not mark or f"`{mark}`" in section

"""The command line: parse, call `Home`, show.

Promise: `--home` and `--json` after any verb (`tour` has a home of its own); `--json` prints exactly one JSON value on
standard output, also for an error; progress and errors go to standard error; exit codes come from `errors.EXIT_CODES`.
Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from anima.cli.plainly import read_plainly
from anima.cli.show import complain, say, whisper
from anima.errors import BadArguments, Damaged, HomeError, exit_code

INTERRUPTED = 130
# What typer raises for a wrong option or a missing argument, wherever the installed version keeps that class.
_WrongUse: type[Exception] = typer.BadParameter.__mro__[2]


class Command(TyperCommand):
    """One command, whose arguments are read plainly."""

    def parse_args(self, ctx: Any, args: Any) -> Any:
        return super().parse_args(ctx, read_plainly(self.get_params(ctx), args))


class Commands(TyperGroup):
    """The commands under the heading each was given, with its first sentence in full."""

    def parse_args(self, ctx: Any, args: Any) -> Any:
        read_plainly(self.get_params(ctx), ())
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            first = (command.help or "").partition("\n\n")[0].replace("\n", " ")
            groups.setdefault(command.rich_help_panel or "Commands", []).append((name, first))
        width = max(len(name) for rows in groups.values() for name, _ in rows)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])


# Heading, module and commands. A command line that names one command imports only its module.
GROUPS = (
    ("Make and look after a home", "home", "init open up doctor config trust-home tour"),
    ("See what the agent is told", "prompt", "prompt identity persona files read"),
    (
        "Write, and decide what may be written",
        "memory",
        "remember note write append edit move delete pending approve deny trust",
    ),
    ("Find", "search", "search index watch about"),
    ("Look at conversations", "sessions", "sessions session stats call"),
    ("Serve", "serve", "serve token"),
    ("Dream", "dream", "dream"),
    ("Look back", "past", "history diff undo restore why audit"),
    ("Forget", "forget", "forget"),
    ("Keep", "upkeep", "hygiene"),
    ("Keep", "backup", "snapshot"),
    ("Keep", "transfer", "export import"),
    ("Let agents in", "serve_mcp", "mcp"),
)


def anima(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """A home for an AI agent: who it is, whom it serves, what it knows, in a folder of Markdown."""
    if version:
        from anima import __version__

        say(f"anima {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(context.get_help())


def made(only: str | None = None) -> typer.Typer:
    """The program with all its commands, or with one."""
    program = typer.Typer(
        name="anima",
        cls=Commands,
        invoke_without_command=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="\b\nStart here:\n  anima tour                       one minute, in a home that is thrown away\n"
        "  anima init ~/aria --name Aria    a home of your own",
    )
    program.callback()(anima)
    for title, module, names in GROUPS:
        if only is not None and only not in names.split():
            continue
        known = len(program.registered_commands)
        import_module(f"anima.cli.{module}").add_to(program)
        for command in program.registered_commands[known:]:
            command.rich_help_panel, command.cls = title, Command
    if only is not None:
        program.registered_commands = [command for command in program.registered_commands if command.name == only]
    return program


def main() -> None:
    """The entry point: errors of ours become one sentence and an exit code, an interrupt 130, a closed pipe silence."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what this terminal cannot show is escaped, rather than an error
            stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    if code == INTERRUPTED:
        whisper("stopped; nothing is half done")
    _leave(code)


def run(arguments: Sequence[str]) -> int:
    """Carries out one command line and gives its exit code."""
    as_json = "--json" in arguments
    try:
        code = _built(_named(arguments)).main(args=list(arguments), prog_name="anima", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # typer's answer to a reader who has gone
            return 0
        raise
    except BrokenPipeError:
        return 0
    except HomeError as error:
        return _failed(error, as_json)
    except _WrongUse as error:
        return _failed(_misused(error), as_json)
    except OSError as error:
        return _failed(_lower(error), as_json)


@cache
def _built(only: str | None) -> Any:
    return get_command(made(only))


def _named(arguments: Sequence[str]) -> str | None:
    """The command a line begins with, if it is one of ours."""
    known = {name for _, _, names in GROUPS for name in names.split()}
    return arguments[0] if arguments and arguments[0] in known else None


def _failed(error: HomeError, as_json: bool) -> int:
    complain(error, as_json=as_json)
    return exit_code(error)


def _misused(error: Any) -> BadArguments:
    context = getattr(error, "ctx", None)
    return BadArguments(error.format_message(), hint=f"{context.command_path if context else 'anima'} --help")


def _leave(code: int) -> None:
    """Exits; a pipe whose reader is gone is no error and not worth a word, a disk that is full is both."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            code = _failed(_lower(error), as_json=False)
    sys.exit(code)


def _lower(error: OSError) -> Damaged:
    return Damaged(f"the system says: {error.strerror or error}")

"""The command line: parse, call `Home`, show.

Promise: `--home` and `--json` after any verb (`tour` has a home of its own); `--json` prints exactly one JSON value on
standard output, also for an error; progress and errors go to standard error; exit codes come from the errors.
A command line that names one command imports only its module, and nothing heavy before it is needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import click

from anima.cli.command import SHIELD, Command, parameter
from anima.cli.show import complain, table_of, whisper
from anima.cli.show import say as tell  # `say` is a verb, whose module would take its name here
from anima.errors import BadArguments, Damaged, HomeError

INTERRUPTED = 130
COMPLETE = "_ANIMA_COMPLETE"  # set by a shell that asks what could come next (home)

_TABLE = table_of("shared")
GROUPS: dict[str, dict[str, str]] = _TABLE["groups"]
MODULES = {name: module for group in GROUPS.values() for module, names in group.items() for name in names.split()}
FIRST: list[str] = _TABLE["first"]


class Commands(click.Group):
    """The commands, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in MODULES:
            return None
        module = import_module(f"anima.cli.{MODULES[cmd_name]}")
        return next(each for each in vars(module).values() if isinstance(each, Command) and each.name == cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in MODULES:
            raise click.NoSuchCommand(args[0], possibilities=MODULES, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Eight verbs with their sentences, and the names of all others by group."""
        formatter.write(f"{click.wrap_text(self.help or '', formatter.width)}\n\n{_TABLE['start']}\n")
        with formatter.section("Every day"):
            formatter.write_dl(self.sentences(ctx, FIRST))
        groups = [(title, " ".join(" ".join(group.values()).split())) for title, group in GROUPS.items()]
        with formatter.section("All commands"):
            formatter.write_dl(groups)
        formatter.write("\nanima help all has a sentence for each; anima help COMMAND has its options.\n")

    def sentences(self, ctx: click.Context, names: Iterable[str]) -> list[tuple[str, str]]:
        """Commands with the first sentence of their help."""
        width = max(map(len, MODULES))
        texts = [(name, " ".join(((self.get_command(ctx, name) or self).help or "").split())) for name in names]
        return [(name.ljust(width), text.partition(". ")[0].rstrip(".") + ".") for name, text in texts]


def _start(context: click.Context, *, version: bool) -> int | None:
    """A home for an AI agent: who it is, whom it serves and what it knows, in one folder of Markdown."""
    if version:
        from anima import __version__

        tell(f"anima {__version__}")
        context.exit()
    if context.invoked_subcommand is None:
        return run(["status"])
    return None


program = Commands(
    "anima",
    callback=click.pass_context(_start),
    help=_start.__doc__,
    invoke_without_command=True,
    params=[parameter("--version", {"flag": True, "help": "Show the version and exit."})],
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The entry point: errors of ours become one sentence and an exit code, an interrupt 130, a closed pipe silence."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what this terminal cannot show is escaped, rather than an error
            stream.reconfigure(errors="backslashreplace")
    if asked := os.environ.get(COMPLETE):
        from click.shell_completion import shell_complete

        sys.stderr = open(os.devnull, "w")  # whoever presses Tab wants to read no remarks
        sys.exit(shell_complete(program, {}, "anima", COMPLETE, asked))
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:  # a pipe whose reader is gone is not worth a word; a disk that is full is
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = code if isinstance(error, BrokenPipeError) else _failed(error, as_json=False)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Carries out one command line and gives its exit code."""
    as_json = "--json" in arguments
    try:
        with program.make_context("anima", list(arguments), obj=run) as context:
            return int(program.invoke(context) or 0)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (KeyboardInterrupt, EOFError, click.Abort) as ended:
        is_no = isinstance(ended, click.Abort) and not ended.__context__
        # A terminal shows ^C on a line that is still open.
        whisper("nothing was done" if is_no else "\nstopped; nothing is half done")
        return INTERRUPTED
    except BrokenPipeError:
        return 0
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # what rich makes of a reader who has gone
            return 0
        raise
    except (HomeError, click.UsageError, OSError) as error:
        return _failed(error, as_json)


def _failed(error: HomeError | click.UsageError | OSError, as_json: bool) -> int:
    """Says what went wrong as an error of ours, and gives the exit code."""
    if isinstance(error, click.UsageError):
        said = error.format_message().replace(SHIELD, "")
        hint = f"{error.ctx.command_path if error.ctx else 'anima'} --help"
        if isinstance(error, click.NoSuchOption):
            near = f" (Possible options: {', '.join(sorted(error.possibilities))})" if error.possibilities else ""
            said = f"No such option: {error.option_name}{near}"
            if error.ctx and error.ctx.parent is None:
                hint = "options come after the command, such as anima status --home PATH"
        elif isinstance(error, click.MissingParameter) and error.param is not None:
            said += f" {getattr(error.param, 'help', '')}"
        error = BadArguments(said, hint=hint)
    elif isinstance(error, OSError):
        error = Damaged(f"the system says: {error.strerror or error}")
    complain(error, as_json=as_json)
    return error.exit_code

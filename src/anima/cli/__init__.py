"""The command line: parse, call `Home`, show.

Promise: `--home` and `--json` after any verb (`tour` has a home of its own); `--json` prints exactly one JSON value on
standard output, also for an error; progress and errors go to standard error; exit codes come from `errors.EXIT_CODES`.
A command line that names one command imports only its module, and nothing heavy before it is needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from anima.cli.command import SHIELD, Command, flag
from anima.cli.show import complain, say, whisper
from anima.errors import BadArguments, Damaged, HomeError, exit_code

INTERRUPTED = 130
COMPLETE = "_ANIMA_COMPLETE"  # set by a shell that asks what could come next

# Heading, module and commands.
GROUPS = (
    ("Make and look after a home", "home", "init open up doctor config trust-home tour"),
    ("See what the agent is told", "prompt", "prompt identity persona files read"),
    ("Write, and decide what may be written", "memory", "remember note write append edit move delete"),
    ("Write, and decide what may be written", "review", "review"),
    ("Find", "search", "search index watch about"),
    ("Look at conversations", "sessions", "sessions session stats call"),
    ("Serve", "serve", "serve token"),
    ("Dream", "dream", "dream"),
    ("Look back", "past", "history diff undo restore why audit"),
    ("Forget", "forget", "forget"),
    ("Keep", "upkeep", "hygiene"),
    ("Keep", "backup", "snapshot export import"),
    ("Let agents in", "serve", "mcp"),
)
MODULES = {name: module for _, module, names in GROUPS for name in names.split()}


class Commands(click.Group):
    """The commands, each imported when it is asked for and listed under its heading with its first sentence in full."""

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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for title, _, names in GROUPS:
            for name in names.split():
                command = self.get_command(ctx, name)
                first = ((command and command.help) or "").partition("\n\n")[0]
                groups.setdefault(title, []).append((name.ljust(max(map(len, MODULES))), " ".join(first.split())))
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def _start(context: click.Context, *, version: bool, install_completion: bool, show_completion: bool) -> None:
    """A home for an AI agent: who it is, whom it serves, what it knows, in a folder of Markdown."""
    if version:
        from anima import __version__

        say(f"anima {__version__}")
    elif install_completion or show_completion:
        say(completion(program, COMPLETE, install=install_completion))
    elif context.invoked_subcommand is None:
        say(context.get_help())
    else:
        return
    context.exit()


program = Commands(
    "anima",
    callback=click.pass_context(_start),
    help=_start.__doc__,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    params=[
        flag("--version", help="Show the version and exit."),
        flag("--install-completion", help="Install completion for the current shell."),
        flag(
            "--show-completion", help="Show completion for the current shell, to copy it or customize the installation."
        ),
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nStart here:\n  anima tour                       one minute, in a home that is thrown away\n"
    "  anima init ~/aria --name Aria    a home of your own",
)


def main() -> None:
    """The entry point: errors of ours become one sentence and an exit code, an interrupt 130, a closed pipe silence."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what this terminal cannot show is escaped, rather than an error
            stream.reconfigure(errors="backslashreplace")
    if asked := os.environ.get(COMPLETE):
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(program, {}, "anima", COMPLETE, asked))
    code = run(sys.argv[1:])
    if code == INTERRUPTED:
        whisper("stopped; nothing is half done")
    _leave(code)


def run(arguments: Sequence[str]) -> int:
    """Carries out one command line and gives its exit code."""
    as_json = "--json" in arguments
    try:
        with program.make_context("anima", list(arguments)) as context:
            return int(program.invoke(context) or 0)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (KeyboardInterrupt, EOFError):
        whisper("")  # closes the line on which a terminal shows ^C
        return INTERRUPTED
    except click.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        return 0
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # what rich makes of a reader who has gone
            return 0
        raise
    except HomeError as error:
        return _failed(error, as_json)
    except click.UsageError as error:
        return _failed(_misused(error), as_json)
    except OSError as error:
        return _failed(_lower(error), as_json)


def _failed(error: HomeError, as_json: bool) -> int:
    complain(error, as_json=as_json)
    return exit_code(error)


def _misused(error: click.UsageError) -> BadArguments:
    said = error.format_message().replace(SHIELD, "")
    if isinstance(error, click.NoSuchOption):
        near = f" (Possible options: {', '.join(sorted(error.possibilities))})" if error.possibilities else ""
        said = f"No such option: {error.option_name}{near}"
    return BadArguments(said, hint=f"{error.ctx.command_path if error.ctx else 'anima'} --help")


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


# -- completion in the user's shell -----------------------------------------------------------------------------------------

# Where a shell's script goes, and the line of which file makes the shell read it.
_PLACES = {
    "bash": ("~/.bash_completions/anima.sh", "~/.bashrc", "source '{script}'"),
    "zsh": ("~/.zfunc/_anima", "~/.zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
    "fish": ("~/.config/fish/completions/anima.fish", "", ""),
}


def completion(program: click.Command, variable: str, *, install: bool) -> str:
    """The script that the current shell reads; or with `install`, where it was put. A line is added to the shell's own
    configuration once, and nothing in it is changed."""
    from click.shell_completion import get_completion_class

    shell = os.path.basename(os.environ.get("SHELL", ""))
    found = get_completion_class(shell) if shell in _PLACES else None
    if found is None:
        raise BadArguments(f"there is no completion for the shell {shell!r}; there is for {', '.join(_PLACES)}")
    script = found(program, {}, "anima", variable).source()
    if not install:
        return script.strip()
    place, settings, line = _PLACES[shell]
    path = Path(place).expanduser()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    if settings:
        _add_line(Path(settings).expanduser(), line.format(script=path))
    return f"{shell} completion installed in {path}\nCompletion will take effect once you restart the terminal"


def _add_line(settings: Path, line: str) -> None:
    text = settings.read_text(encoding="utf-8") if settings.exists() else ""
    if line not in text:
        with settings.open("a", encoding="utf-8") as file:
            file.write(f"{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n")

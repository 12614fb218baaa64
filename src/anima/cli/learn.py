"""Commands to get to know the others: tour help completion.

Promise: the tour runs real commands in a home that is thrown away, and shows what they print; where no terminal is, or
with `--fast`, it asks nothing. Completion is made from the commands themselves.
"""

from __future__ import annotations

import json as json_text
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO

import click

from anima.cli.command import Reply, command, table_of
from anima.cli.show import console, say
from anima.errors import BadArguments

SHELLS = ("bash", "zsh", "fish")


@command(opens=False)
def tour(fast: bool, json: bool) -> Reply | None:
    if json:
        return Reply(
            [{"step": n, "text": text, "command": line, "shows": said} for n, text, line, said in _lived()], ""
        )
    wait = not fast and sys.stdin.isatty() and sys.stdout.isatty()
    for number, text, line, said in _lived():
        if wait and number > 1:
            input("    Enter to go on ")
        say()
        console().print(f"{number}. {text}", style="bold", soft_wrap=True)
        say(f"$ anima {line}\n{said}".rstrip("\n"))
    say("\nThat was it, and the home is gone. Your own: anima init ~/aria --name Aria")
    return None


def _lived() -> Iterator[tuple[int, str, str, str]]:
    """Each step with what its command printed, carried out when it is asked for."""
    with tempfile.TemporaryDirectory(prefix="anima-tour-") as folder:
        names = {"noted": "", "found": ""}
        for number, step in enumerate(table_of("learn")["step"], 1):
            line, shown = step["command"], step["command"].format(**names)
            said = _printed(shown, folder)
            if line.startswith("call"):
                names["noted"] = json_text.loads(_printed("review --json", folder))["noted"][0]["entry"]["id"]
            elif line.startswith("search"):
                names["found"] = json_text.loads(_printed(f"{shown} --json", folder))["hits"][0]["citation"]
            yield number, step["said"], shown, said


def _printed(line: str, folder: str) -> str:
    """What a command prints, as the owner runs it who has only the home of the tour, and no configuration."""
    from anima.cli import INTERRUPTED, program, run

    verb, *rest = shlex.split(line)
    asks = program.get_command(click.Context(program), verb)
    owners = ["--as-owner"] if asks and any(param.name == "as_owner" for param in asks.params) else []
    out, before = StringIO(), dict(os.environ)
    os.environ.update(ANIMA_HOME=f"{folder}/aria", ANIMA_CONFIG=f"{folder}/config", NO_COLOR="1")
    try:
        with chdir(folder), redirect_stdout(out), redirect_stderr(out):
            if run([verb, *owners, *rest]) == INTERRUPTED:
                raise KeyboardInterrupt
    finally:
        os.environ.clear()
        os.environ.update(before)
    return out.getvalue()


@command(opens=False, name="help")
def help_(topic: str, home: str | None) -> Reply:
    from anima.cli import GROUPS, MODULES, program

    context = click.Context(program, info_name="anima", help_option_names=["-h", "--help"])
    if topic != "all":
        verb = program.get_command(context, topic) if topic else None
        if topic and verb is None:
            raise click.NoSuchCommand(topic, possibilities=MODULES, ctx=context)
        meant = click.Context(verb, info_name=topic, parent=context) if verb else context
        return Reply({"help": meant.get_help()}, meant.get_help())
    groups = {title: program.sentences(context, " ".join(names.values()).split()) for title, names in GROUPS.items()}
    pages = context.make_formatter()
    for title, rows in groups.items():
        with pages.section(title):
            pages.write_dl(rows)
    return Reply(
        {title: {name.strip(): text for name, text in rows} for title, rows in groups.items()},
        pages.getvalue().strip("\n"),
    )


@command(opens=False)
def completion(shell: str, home: str | None) -> Reply:
    from click.shell_completion import get_completion_class

    from anima.cli import COMPLETE, program

    found = get_completion_class(shell) if shell in SHELLS else None
    if found is None:
        raise BadArguments(f"there is no completion for {shell!r}; there is for {', '.join(SHELLS)}")
    script = found(program, {}, "anima", COMPLETE).source().strip()
    return Reply({"shell": shell, "script": script}, script)

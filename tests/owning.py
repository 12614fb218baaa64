"""Command lines of the owner's where no terminal is: `--as-owner` for every verb that wants it."""

from __future__ import annotations

import click

from anima.cli import program


def as_owner(*arguments: object) -> list[str]:
    """A command line as the owner's; a verb that asks for nothing of the kind is left as it is."""
    words = [str(argument) for argument in arguments]
    verb = program.get_command(click.Context(program), words[0]) if words else None
    wants = verb is not None and any("--as-owner" in param.opts for param in verb.params)
    return [words[0], "--as-owner", *words[1:]] if wants else words

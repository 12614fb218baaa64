"""Completion in the user's shell: the script that bash, zsh or fish reads, shown or put where the shell looks.

Promise: a line is added to the shell's own configuration once, and nothing in it is changed. Not here: what is
completed (click asks the commands).
"""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from anima.errors import BadArguments

# Where a shell's script goes, and the line of which file makes the shell read it.
_PLACES = {
    "bash": ("~/.bash_completions/anima.sh", "~/.bashrc", "source '{script}'"),
    "zsh": ("~/.zfunc/_anima", "~/.zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
    "fish": ("~/.config/fish/completions/anima.fish", "", ""),
}


def complete(program: click.Command, variable: str, *, install: bool) -> str:
    """The script for the current shell; or with `install`, where it was put."""
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

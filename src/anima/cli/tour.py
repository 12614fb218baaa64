"""The one-minute tour: real verbs in a temporary home, with what they give."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anima.cli.prompt import show_manifest
from anima.cli.show import console, plain, say
from anima.home import Home
from anima.model import Scope

if TYPE_CHECKING:
    from anima import Prompt

_MEMORY = """# Memory

## People

- Ana uses a Samsung, not an iPhone.

## Boat <!-- share: subagent -->

- The tiller needs a second coat of varnish.

## Health <!-- private -->

- Luis takes his blood pressure on Sundays.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TourStep:
    """One thing that is shown. `shows` is lines to print, or a prompt whose manifest is drawn."""

    text: str
    shows: tuple[str, ...] | Prompt


def steps() -> Iterator[TourStep]:
    """The steps, each done when it is asked for. The temporary home goes with the last one."""
    with tempfile.TemporaryDirectory(prefix="anima-tour-") as folder:
        path = Path(folder) / "aria"
        with Home.create(path, name="Aria", emoji="🌿", env={"ANIMA_CONFIG": f"{folder}/config"}) as home:
            yield TourStep(
                text="A home is a folder of Markdown. We make one for an agent called Aria.",
                shows=tuple(f"    {name}" for name in home.tree()),
            )
            (path / "MEMORY.md").write_text(_MEMORY, encoding="utf-8")
            yield TourStep(
                text="This is all of what Aria is told when you are alone with her, file by file.",
                shows=home.prompt(scope=Scope.MAIN),
            )
            yield TourStep(
                text="The same home in a group chat: nothing of you, nothing she remembers.",
                shows=home.prompt(scope=Scope.GROUP),
            )
            yield TourStep(
                text="A sub-agent is told one thing of hers: the section marked <!-- share: subagent -->.",
                shows=(home.prompt(scope=Scope.SUBAGENT).volatile.strip(),),
            )
    yield TourStep(
        text="That was it. The temporary home is gone. Make your own:",
        shows=("    anima init ~/aria --name Aria --emoji 🌿",),
    )


def told() -> list[dict[str, Any]]:
    """The whole tour as one value."""
    return [{"step": number, "text": step.text, "shows": plain(step.shows)} for number, step in enumerate(steps(), 1)]


def walk(*, wait: bool) -> None:
    """Shows each step and waits for Enter between them on a terminal."""
    wait = wait and sys.stdin.isatty() and sys.stdout.isatty()
    for number, step in enumerate(steps(), 1):
        if wait and number > 1:
            input("    Enter to go on ")
        say()
        console().print(f"{number}. {step.text}", style="bold", soft_wrap=True)
        if isinstance(step.shows, tuple):
            say("\n".join(step.shows))
        else:
            show_manifest(step.shows)

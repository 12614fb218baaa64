"""What commands share: finding the home, and saying things on a terminal or as JSON.

Promise: text from a home is printed inert; colour only on a terminal; `rich` is imported only to draw tables.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anima.errors import BadArguments, HomeError, NoSuchHome
from anima.model import DocPath, Scope

if TYPE_CHECKING:
    from rich.console import Console

    from anima.home import Home

HomeOption = Annotated[
    str | None,
    typer.Option(
        "--home",
        metavar="PATH",
        help="The home. Default: ANIMA_HOME, then the nearest folder with anima.toml, then your data folder.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print exactly one JSON value.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a key of anima.toml for this call.")
]
ScopeOption = Annotated[
    str,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help=f"Who is listening: {', '.join(Scope)}.",
        autocompletion=lambda: [scope.value for scope in Scope],
    ),
]
SenderOption = Annotated[
    str | None,
    typer.Option("--sender", metavar="ID", help="Who speaks; others than the owner get their own layer."),
]
AgentOption = Annotated[
    str | None, typer.Option("--agent", metavar="ID", help="One of several agents in the configuration.")
]


def home_path(given: str | None, *, may_be_missing: bool = False) -> Path:
    """Which home is meant: the option, ANIMA_HOME, the nearest folder with anima.toml, the user's data folder."""
    if given or (given := os.environ.get("ANIMA_HOME")):
        return Path(os.path.expanduser(given))
    if (near := _nearest()) is not None:
        return near
    from anima.layout.trust import default_home

    default = default_home(os.environ)
    if may_be_missing or default.is_dir():
        return default
    raise NoSuchHome(
        "no home was found", hint="name one with --home PATH or ANIMA_HOME, or make one: anima init PATH --name NAME"
    )


def _nearest() -> Path | None:
    """The nearest folder with anima.toml, from the current one upwards; None also where we may not look."""
    try:
        here = Path.cwd()
        return next((folder for folder in (here, *here.parents) if (folder / "anima.toml").is_file()), None)
    except OSError:
        return None


def open_home(given: str | None, settings: Sequence[str] | None = None, agent: str | None = None) -> Home:
    from anima.home import Home

    return Home.open(home_path(given), settings=parsed(settings), agent=agent)


def parsed(settings: Sequence[str] | None) -> dict[str, str]:
    """`--set a.b=c` as a mapping."""
    found = {}
    for item in settings or ():
        key, equals, value = item.partition("=")
        if not equals:
            raise BadArguments(f"--set {item}: write KEY=VALUE, such as prompt.style=xml")
        found[key.strip()] = value
    return found


def place_of(given: str) -> tuple[DocPath, int | None]:
    """`PATH:LINE` as a path and a line from 1; the line is None where only a path is given."""
    path, colon, line = given.rpartition(":")
    if colon and line.isascii() and line.isdigit():
        return DocPath.parse(path), int(line)
    return DocPath.parse(given), None


def plain(value: Any) -> Any:
    """A value as JSON knows it: dataclasses become objects, enums and paths text, sets lists."""
    if isinstance(value, DocPath):
        return value.text
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(plain(item) for item in value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value


_UNPRINTABLE = re.compile(r"[^\x00-\x7e]")


def say_json(value: Any) -> None:
    """One JSON value. What a terminal would act on or cannot show is escaped, which changes nothing for a reader."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=1)
    sys.stdout.write(_UNPRINTABLE.sub(lambda found: _escaped(found[0]), text) + "\n")


def _escaped(char: str) -> str:
    return char if char.isprintable() else json.dumps(char)[1:-1]


def say(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def whisper(text: str) -> None:
    """A remark beside the result, on standard error."""
    sys.stderr.write(text + "\n")


def complain(error: HomeError, *, as_json: bool) -> None:
    if as_json:
        say_json({"error": {"kind": type(error).__name__, "message": str(error), "hint": error.hint}})
        return
    whisper(f"anima: {inert(str(error), lines=False)}")
    if error.hint:
        whisper(f"       {inert(error.hint, lines=False)}")


@contextmanager
def patient(what: str, *, after: float = 1.0) -> Iterator[None]:
    """Says on standard error what is being done, once it takes longer than a second; nothing where no terminal is."""
    if not sys.stderr.isatty():
        yield
        return
    import threading

    remark = threading.Timer(after, whisper, [f"anima: {what} …"])
    remark.daemon = True
    remark.start()
    try:
        yield
    finally:
        remark.cancel()


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error, once the work takes longer than a second; none where there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    import time

    from rich.progress import Progress

    started = time.monotonic()
    bars: list[Any] = []

    def step(done: int, total: int) -> None:
        if not bars and time.monotonic() - started > 1:
            bars.append(Progress(console=console(stderr=True), transient=True))
            bars[0].start()
            bars.append(bars[0].add_task(what, total=total))
        if bars:
            bars[0].update(bars[1], completed=done, total=total)

    try:
        yield step
    finally:
        if bars:
            bars[0].stop()


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    colours: Any = None if os.environ.get("NO_COLOR") else "auto"
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=False, color_system=colours)


def inert(text: str, *, lines: bool = True) -> str:
    """Text that cannot move a cursor, change a colour or turn its direction: such characters are shown by number.

    Without `lines` it stays on one line too.
    """
    if text.isascii() and text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(c if c in kept or c.isprintable() else f"⟨U+{ord(c):04X}⟩" for c in text)


def counted(number: int, what: str) -> str:
    """`1 document`, `1,200 documents`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def bar(part: int, whole: int, width: int = 16) -> str:
    """A small bar such as `████░░░░`; any amount above nothing shows at least one step."""
    if whole <= 0:
        return "░" * width
    filled = min(width, max(1 if part else 0, round(width * part / whole)))
    return "█" * filled + "░" * (width - filled)

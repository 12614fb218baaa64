"""A command: its parameters, the home it opens, and the answer it gives.

Promise: `--home`, `--set` and `--agent` open the home before a command runs and close it before anything is shown;
`--json` prints exactly one JSON value; a text that begins with a dash and a blank, as a line of a list does, is a text
and no option. Whoever asks never answers: a verb of the owner's that writes wants a terminal, or `--as-owner`; without
either it is an agent's wish, or refused. Not here: which commands there are (the package), how things look (show).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from anima.cli.show import called, complain, flat, inert, quote, say, say_json, table_of, whisper
from anima.errors import BadArguments, HomeError, MissingExtra, NoSuchHome, NoSuchSession, Refused
from anima.model import MAX_BYTES, OWN_FILE, OWNERS_OWN, is_address

if TYPE_CHECKING:
    from anima import Listed
    from anima.home import Home

OWN_MARK = "anima.toml"  # what a home of ours has
_AN_AGENTS = ("SOUL.md", "IDENTITY.md", "MEMORY.md")  # what an agent's folder has, of whatever system
SHIELD = "\0"  # no argument of a program can hold it
_INERT = re.compile(r"[\w@%+=:,./][\w@%+=:,./-]*")  # a name in which a shell reads no command; others choose names, too


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command gives back: a value for `--json`, and for a person a text, lines, or what shows it."""

    value: Any
    shown: str | Sequence[str] | Callable[[], None]
    code: int = 0

    def give(self, *, as_json: bool) -> int:
        if as_json:
            say_json(self.value)
        elif callable(self.shown):
            self.shown()
        else:
            for line in [self.shown] if isinstance(self.shown, str) else self.shown:
                say(line)
        return self.code


# -- parameters ------------------------------------------------------------------------------------------------------------


class _Text(click.ParamType[str]):
    """A text, also one that begins with a dash and a blank."""

    name = "TEXT"  # as help and the manual write it

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value.removeprefix(SHIELD)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return self.name


class Number(_Text):
    """A whole number or, of the kind float, any; in a range where one is given."""

    def __init__(self, kind: type[int] | type[float] = int, low: float = -inf, high: float = inf) -> None:
        self.kind, self.low, self.high, self.name = kind, low, high, "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = self.kind(value)
        except ValueError:
            number = None
        if number is None or not self.low <= number <= self.high:
            wanted = "a whole number" if self.kind is int else "a number"
            span = f" from {self.low:,} {'up' if self.high == inf else f'to {self.high:,}'}" if self.low != -inf else ""
            self.fail(f"{str(value).removeprefix(SHIELD)!r} is not {wanted}{span}", param, ctx)
        return number


class _Option(click.Option):
    """An option whose help says its default and its range."""

    def get_help_extra(self, ctx: click.Context) -> Any:
        extra, kind = super().get_help_extra(ctx), self.type
        if isinstance(kind, Number) and kind.low != -inf:
            extra["range"] = f"x>={kind.low}" if kind.high == inf else f"{kind.low}<=x<={kind.high}"
        return extra


class _Argument(click.Argument):
    """An argument with a help of its own."""

    @property
    def human_readable_name(self) -> str:
        return (self.metavar or self.name).upper()

    def make_metavar(self, ctx: click.Context) -> str:
        more = "..." if self.nargs == -1 else ""
        return (self.human_readable_name if self.required else f"[{self.human_readable_name}]") + more

    def get_error_hint(self, ctx: click.Context | None) -> str:
        return f"'{self.human_readable_name}'"

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        several = self.nargs == -1
        default = f"  [default: {self.default}]" if self.default and not self.required and not several else ""
        name = f"{self.human_readable_name}{'...' if several else ''}"
        return name, f"{self.help}{'  [required]' if self.required else default}"


def parameter(name: str, row: Mapping[str, Any] | str | bool) -> click.Parameter:
    """A parameter as a table declares it: an option where its name begins with dashes, else an argument; true is one that many
    share. The head of `tables/shared.toml` says what a row may hold."""
    if isinstance(row, bool):
        return SHARED[name]
    row = {"help": row} if isinstance(row, str) else row
    more: dict[str, Any] = {"help": row["help"]}
    more |= {"shell_complete": _completion(row["offers"])} if "offers" in row else {}
    if not name.startswith("--"):
        more |= {"metavar": row.get("metavar", name)} if name.isupper() or "metavar" in row else {}
        if "words" in row:
            more |= {"nargs": -1, "required": "optional" not in row, "callback": _joined}
        elif "several" in row:
            more |= {"nargs": -1, "default": ()}
        elif "optional" in row or "default" in row:
            more |= {"default": row.get("default"), "required": False}
        return _Argument([name.lower()], type=_Text(), **more)
    first, _, metavar = name.partition(" ")
    more |= {key: row[key] for key in ("multiple", "required", "is_flag", "flag_value") if key in row}
    more |= {"metavar": metavar} if metavar else {}
    if "flag" in row:
        more |= {"is_flag": True, "default": False}
    else:
        numbers = [Number(kind, *row[kind.__name__]) for kind in (int, float) if kind.__name__ in row]
        more["type"] = numbers[0] if numbers else _Text()
        more |= {"default": row.get("default")} if not more.keys() & {"required", "multiple"} else {}
    return _Option((first, *row.get("named", "").split()), show_default=row.get("default") != "", **more)


def _joined(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> str | None:
    return " ".join(given) if given else None


def _completion(offers: str | list[str]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """What a shell proposes: these words, or those of a name in OFFERS, of the home that is meant."""

    def complete(ctx: click.Context, param: click.Parameter, start: str) -> list[str]:
        if isinstance(offers, list):
            return [each for each in offers if each.startswith(start)]
        try:
            with open_home(ctx.params.get("home")) as home:
                return [each for each in OFFERS[offers](home) if each.startswith(start) and _INERT.fullmatch(each)]
        except (HomeError, OSError):
            return []

    return complete


def _documents(home: Home) -> list[str]:
    return [entry.path for entry in home.list_all() if entry.path.endswith(".md")]


OFFERS: dict[str, Callable[[Home], Iterable[str]]] = {
    "documents": _documents,
    "lines": lambda home: [f"{each}:" for each in _documents(home)],
    "sessions": lambda home: [row.id for row in home.sessions.list(limit=100)],
}


def given_text(text: str | None) -> str:
    """The text of the command line, or of standard input, which `-` names too."""
    if text is not None and text != "-":
        return text
    if sys.stdin.isatty():
        whisper("reading the text from this terminal; end with Ctrl-D")
    raw = sys.stdin.buffer.read(MAX_BYTES + 1)  # before anything looks at it; it may have no end
    if len(raw) > MAX_BYTES:
        raise BadArguments(f"standard input has more than {MAX_BYTES:,} bytes, as no document has; nothing was written")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadArguments(f"standard input is not UTF-8 text (byte {error.start + 1}); nothing was written") from None


def listed_as(rows: Sequence[Listed], id: str) -> Listed:
    """The session that is meant: by its id, by how that begins, or the latest."""
    if id == "last" and rows:
        return rows[0]
    found = [row for row in rows if row.id.startswith(id)]
    exact = [row for row in found if row.id == id]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if not found:
        raise NoSuchSession(f"{inert(id)}: there is no such session", hint="anima sessions lists them")
    raise BadArguments(f"{inert(id)} could be {', '.join(row.id[:12] for row in found[:5])}; write more of it")


def day_of(given: str | None, option: str) -> date | None:
    """A day as an option gives it."""
    try:
        return date.fromisoformat(given) if given else None
    except ValueError:
        raise BadArguments(f"{option} {given}: write a date such as 2026-02-03") from None


# -- commands --------------------------------------------------------------------------------------------------------------


class Command(click.Command):
    """One command, whose help lists its arguments before its options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [SHIELD + text if text.startswith("- ") else text for text in args])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except HomeError as error:  # said while it is known which home was named
            complain(error, as_json=ctx.params.get("json", False))
            return error.exit_code

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [param.get_help_record(ctx) for param in self.params if isinstance(param, _Argument)]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)


SHARED: dict[str, click.Parameter] = {}
SHARED |= {name.split()[0].lstrip("-"): parameter(name, row) for name, row in table_of("shared")["takes"].items()}


def command(
    *, name: str | None = None, opens: bool = True, owners: Callable[[Mapping[str, Any]], bool] | None = None
) -> Callable[[Any], Command]:
    """Makes a command of a function; its help and what it takes stand in the table of the function's module.

    The function is given the open home first, unless `opens` is False (then the options that name one), and `json` if it
    asks for it. What it gives back is a Reply, a code to exit with, or nothing when all is said. `--home` comes by itself
    where a home is opened, and `--json` where a Reply is given. `owners` says of what is given whether it is the owner's
    alone to do; a function that asks for `as_owner` finds out and does without.
    """

    def made(function: Callable[..., Reply | int | None]) -> Command:
        def call(**given: Any) -> int:
            as_json = given["json"] if "json" in asks else given.pop("json", False)
            if owners is not None and not is_owner(given.pop("as_owner")) and owners(given):
                said = "this is the owner's to do, and nobody is at a terminal; nothing was changed"
                hint = "run it yourself in a terminal, or say --as-owner if you are the owner"
                raise Refused(said, rule="terminal", hint=hint)
            if opens:
                place, settings, agent = given.pop("home"), given.pop("set_", ()), given.pop("agent", None)
                with open_home(place, settings, agent) as opened:
                    answer = function(opened, **given)
            else:
                answer = function(**given)
            return answer.give(as_json=as_json) if isinstance(answer, Reply) else answer or 0

        asks, called = function.__annotations__, name or function.__name__
        row = table_of(function.__module__.rpartition(".")[2])[called]
        params = [parameter(*each) for each in row.get("takes", {}).items()]
        more = {"home": opens, "json": "Reply" in asks["return"], "as-owner": owners is not None or "as_owner" in asks}
        params += [SHARED[each] for each, is_wanted in more.items() if is_wanted and SHARED[each] not in params]
        return Command(called, params=params, callback=call, help=f"{row['help']}\n\n\b\n{row['examples']}")

    return made


# -- who asks ------------------------------------------------------------------------------------------------------------------


def unless_dry(given: Mapping[str, Any]) -> bool:
    """Whether more is asked than to look; always where a command has no `--dry-run`."""
    return not given.get("dry_run")


def is_owner(as_owner: bool) -> bool:
    """Whether the owner asks: somebody at a terminal, who sees the answer there, or who says so. To somebody who sees half of
    it, it is told once why they do not count."""
    away = [name for name, is_here in (("input", sys.stdin.isatty()), ("output", sys.stdout.isatty())) if not is_here]
    if len(away) == 1 and not as_owner:
        _tell_away(away[0])
    return as_owner or not away


@cache
def _tell_away(stream: str) -> None:
    whisper(
        f"anima: standard {stream} is no terminal, so this is not taken as the owner's; if it is yours, say --as-owner"
    )


def need_serving(what: str = "serving a home", parts: str = "fastapi uvicorn jinja2") -> None:
    """Raises MissingExtra where the parts that serve are not installed. Comes before anything heavy is imported."""
    if any(find_spec(name) is None for name in parts.split()):
        raise MissingExtra("serve", what)


# -- the home that is meant --------------------------------------------------------------------------------------------------


def home_path(given: str | None, *, may_be_missing: bool = False) -> str | Path:
    """Which home is meant: the option, ANIMA_HOME, DATABASE_URL, the folder one stands in or above, the one in use. It is
    told where somebody could take another for it."""
    if given:
        return _place(given)
    try:
        here = Path.cwd()
        near = next((folder for folder in (here, *here.parents) if (folder / OWN_MARK).is_file()), None)
    except OSError:
        near = None  # we may not look
    for name in ("ANIMA_HOME", "DATABASE_URL"):
        if variable := os.environ.get(name):
            named = _place(variable)
            if near is not None and near != named and near != Path(named).absolute():
                what = f"the home in {name}" if isinstance(named, str) else f"{flat(str(named))} ({name})"
                whisper(f"anima: this is {what}, not the home you stand in")
            return named
    if near is not None:
        return near
    from anima.home.folders import default_path, in_use

    if (used := in_use()) is not None:
        if not used.is_dir() or any(map(os.path.isfile, _AN_AGENTS)):
            whisper(f"anima: this is {flat(str(used))} (in use)")
        return used
    if may_be_missing:
        return default_path()
    hint = "make one: anima init ~/aria --name Aria; or name one: anima use PATH, or --home PATH"
    raise NoSuchHome("no home was found", hint=hint)


def _place(given: str) -> str | Path:
    return given if is_address(given) else Path(os.path.expanduser(given))


def open_home(given: str | Path | None, settings: Sequence[str] = (), agent: str | None = None) -> Home:
    """The home that is meant. Raises NoSuchHome, also for a folder that holds nothing of one."""
    from anima.home import Home

    place = given if isinstance(given, Path) else home_path(given)
    home = Home.open(place, settings=parsed(settings), agent=agent)
    if isinstance(place, str):
        return home
    if home.dialect == "anima" and not home.site.store.begun and not (place / OWN_MARK).is_file():
        rows = (*home.layout.rows, *home.layout.others)
        if not any(row.path and home.exists(row.path) for row in rows if not row.path.endswith("/")):
            home.close()
            hint = f"anima init {quote(str(place))} makes one there, and changes nothing else"
            raise NoSuchHome(f"nothing in {place} is a home", hint=hint)
    return home


def need_trust(home: Home, *, may_ask: bool = False) -> None:
    """Raises Refused where a folder that was not made here would be told to a model before its owner said that it is
    theirs; with `may_ask`, they are asked."""
    if home.is_vouched_for:
        return
    if may_ask and is_owner(False):
        ask_trust(home)
        home.trust()
        return
    said = "this folder was not made here, and nobody said that it is theirs; no model is told what stands in it"
    hint = f"look at it with {called('open', home.name)}, then say {called('trust-home', home.name)}"
    raise Refused(said, rule="trust-home", hint=hint)


def ask_trust(home: Home, *, can_ask: bool = True) -> None:
    """Has the owner say that a folder is theirs. Raises Refused."""
    if not can_ask or not sys.stdin.isatty():
        said = "trusting a home needs your yes at a terminal; nothing was changed"
        hint = "look at it with anima open, then say anima trust-home --yes"
        raise Refused(said, rule="needs-a-yes", hint=hint)
    say(f"{flat(home.name)} was not made here. What stands in it would speak to your agent as you do.")
    for key, why in home.config.ignored:
        say(f"  its anima.toml asks for {flat(key)}: {flat(why)}")
    if not click.confirm("Is this folder yours?"):
        raise Refused("not trusted; nothing was changed", rule="needs-a-yes")


def parsed(settings: Sequence[str]) -> dict[str, str]:
    """`--set a.b=c` as a mapping."""
    found = {}
    for item in settings:
        key, equals, value = item.partition("=")
        if not equals:
            raise BadArguments(f"--set {item}: write KEY=VALUE, such as prompt.style=xml")
        if key.strip() in OWNERS_OWN:
            raise BadArguments(f"--set {key.strip()}: this is set in your own {OWN_FILE} alone")
        found[key.strip()] = value
    return found

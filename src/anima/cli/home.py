"""Commands about a home as a whole, status init use open doctor config trust-home; about what its agent is told: prompt identity
files read; and to get to know the others: tour help completion.

Promise: the tour runs real commands in a home that is thrown away, and shows what they print; where no terminal is, or
with `--fast`, it asks nothing. Completion is made from the commands themselves.
"""

from __future__ import annotations

import json as json_text
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings

import click

from anima.cli import command as commands
from anima.cli import show
from anima.cli.command import Reply, command, home_path, open_home, parsed
from anima.cli.show import bar, called, console, counted, flat, inert, picked, plain, say, table_of, whisper
from anima.errors import BadArguments, NoSuchHome, Refused, meant
from anima.model import DocPath, Runtime, Scope, is_address

if TYPE_CHECKING:
    from anima import Health, Home, Prompt


@command(opens=False)
def status(home: str | None) -> Reply:
    try:
        place = home_path(home)
    except NoSuchHome:
        return Reply({"home": None, "next": "anima init ~/aria --name Aria"}, table_of("home")["begin"])
    with open_home(place) as opened:
        who, asked, noted = opened.identity.resolved(), len(opened.inbox.ids()), len(opened.inbox.noted())
        is_new, curated = opened.exists("BOOTSTRAP.md"), opened.layout.curated
        is_blank = not opened.exists(curated) or "\n- " not in opened.read(curated).text
    name, sign = flat(who.name.value), f" {flat(who.emoji.value)}" if who.emoji else ""
    waits = [counted(asked, "change")] if asked else []
    waits += [counted(noted, "noted line")] if noted else []
    told = f"{' and '.join(waits)} {'waits' if asked + noted == 1 else 'wait'} for you." if waits else "Nothing waits."
    if waits:
        do, why = "review", "look, and keep it or drop it"
    elif is_new:
        do, why = "chat", f"have a first conversation with {name}; or {called('up')}, and connect an agent"
    elif is_blank:
        do, why = 'remember "…"', f"tell {name} one thing that stays true"
    else:
        do, why = 'search "…"', f"find what {name} knows; {called('help')} lists the rest"
    value = {"home": opened.name, "name": who.name.value, "asked": asked, "noted": noted, "next": called(do)}
    return Reply(value, [f"{name}{sign} lives in {flat(opened.name)}", told, f"Next: {called(do)}    {why}"])


@command(opens=False)
def init(path: str | None, dialect: str | None, yes: bool, home: str | None, as_owner: bool, **asked: Any) -> Reply:
    from anima.home import Home, folders

    place = path or home or os.environ.get("DATABASE_URL")
    if not place:
        raise BadArguments("where shall the home be?", hint="anima init ~/aria --name Aria")
    before, is_home = set[str](), False
    with suppress(NoSuchHome), Home.open(place) as there:
        before, is_home = {entry.path for entry in there.list_all()}, there.site.store.begun
    folder = Path(os.path.abspath(os.path.expanduser(place)))
    tops = (each / ".git" for each in (folder, *folder.parents) if folder.is_dir() and any(folder.iterdir()))
    # a person says so, before a home is made among the files of something else; a new or empty folder is left alone by git
    if not (yes or is_home) and any(os.path.exists(top) for top in tops):
        told = f"{flat(place)} is in a git repository, and no home yet; its files would stand among what git keeps"
        if not (sys.stdin.isatty() and sys.stdout.isatty() and click.confirm(f"{told}. Make a home there?")):
            hint = f"take its own folder: anima init {shlex.quote(os.path.join(place, 'home'))}; or say --yes"
            raise Refused(f"{told}; nothing was made", rule="needs-a-yes", hint=hint)
    settings = {"dialect": dialect} if dialect else None
    with catch_warnings(action="ignore"), Home.create(place, settings=settings, **asked) as made:  # it says so itself
        root, spoken, who, files = made.name, made.dialect, made.identity.resolved(), [e.path for e in made.list_all()]
    new = [file for file in files if file not in before]
    sign = f" {flat(who.emoji.value)}" if who.emoji else ""
    place, in_database = (root, True) if is_address(place) else (place, False)  # an address may hold a password
    first = not in_database and not folders.is_any_in_use() and commands.is_owner(as_owner)
    if first:
        folders.use(os.path.expanduser(place))
    lines = (
        f"{flat(who.name.value)}{sign} has a home: {flat(place)}",
        f"  made: {', '.join(new)}" if new else "  everything was there already; nothing was changed",
        *(["  it is the home in use from now on (anima use)"] if first else []),
        "Next: " + called('remember "…"', "" if first or in_database else place),
    )
    value = {"home": root, "dialect": spoken, "name": who.name.value, "files": files, "made": new}
    return Reply(value, "\n".join(lines))


@command(opens=False, owners=lambda given: bool(given["path"] or given["home"]))
def use(path: str | None, home: str | None) -> Reply:
    from anima.home import folders

    if is_address(path or home):
        raise BadArguments("a home in a database is not kept as the one in use", hint="set DATABASE_URL")
    if path or home:
        with open_home(path or home) as opened:
            folders.use(opened.name)
    if (used := folders.in_use()) is None:
        raise NoSuchHome("no home is in use", hint="anima use PATH")
    return Reply({"home": str(used)}, f"in use: {flat(str(used))}")


@command(name="open", opens=False)
def open_(path: str | None, dialect: str | None, home: str | None) -> Reply:
    place = home_path(path or home)
    with open_home(place, [f"dialect={dialect}"] if dialect else []) as opened:
        prompts = {scope: opened.prompt(scope=scope) for scope in Scope}
        value: dict[str, Any] = {"home": opened.name, "dialect": opened.dialect, "why": opened.site.detected_by}
        value |= {"trusted": opened.config.trusted, "name": opened.identity.name, "peers": opened.identity.peers()}
        warnings = opened.upkeep.validate()
    scopes = {s: {"chars": len(p.text), "manifest": p.manifest} for s, p in prompts.items()}

    def shown() -> None:
        say(f"{flat(value['name'])}, in {flat(value['home'] if isinstance(place, str) else str(place))}")
        say(f"dialect {value['dialect']}: {flat(value['why'])}")
        if not value["trusted"]:
            say(f"not trusted: its anima.toml can only make things stricter (see {called('trust-home')})")
        drawn = show.table("file", *map(str, prompts), right=tuple(map(str, prompts)))
        shares: dict[str, dict[Scope, str]] = {}
        for scope, prompt in prompts.items():
            for line in prompt.manifest:
                is_told = line.chars_shown and line.status in ("shown", "cut")
                told = f"{line.chars_shown:,}" if is_told else "–" if line.status == "hidden" else line.status
                shares.setdefault(line.path or line.role, {}).setdefault(scope, told)
        for path, share in shares.items():
            if set(share.values()) != {"–"}:
                drawn.add_row(flat(path), *(share.get(scope, "–") for scope in prompts))
        drawn.add_row("all", *[f"{len(prompt.text):,}" for prompt in prompts.values()], style="bold")
        show.console().print(drawn)
        for warning in warnings:
            say(flat(warning))

    return Reply(value | {"scopes": scopes}, shown)


@command(opens=False, owners=lambda given: given["repair"] and not given["dry_run"])
def doctor(home: str | None, repair: bool, dry_run: bool, set_: Sequence[str]) -> Reply:
    from anima.connect.connections import silent_hosts
    from anima.home.folders import doctor as look_after

    place = home_path(home)
    with show.progress_bar("looking") as step:
        tell = (lambda what: step(0, None, f"looking at {what}")) if step else (lambda _: None)
        health = look_after(place, repair=repair, dry_run=dry_run, settings=parsed(set_), progress=tell)
    code = 0 if health.ok else 1
    if repair or dry_run:
        return Reply({"ok": health.ok, **plain(health), "remarks": health.left}, lambda: _show_mended(health), code)
    remarks = (*health.left, *silent_hosts(os.path.realpath(place), os.environ))
    return Reply({"ok": health.ok, "remarks": remarks}, lambda: show.remarks(remarks), code)


def _show_mended(mended: Health) -> None:
    out = show.console()
    found = [remark for remark in mended.found if remark.level != "fine"]
    for remark in found if mended.done else ():
        show.sign(*show.SIGNS[remark.level], remark.message)
    if mended.done:
        out.print("What would be done:" if mended.dry_run else "What was done:", style="bold")
    for deed in mended.done:
        sign = ("·", "dim") if mended.dry_run else ("✓", "green") if deed.ok else ("✗", "bold red")
        show.sign(*sign, f"{deed.about}: {deed.said}.", "" if mended.dry_run else deed.owner)
    left = [remark for remark in mended.left if remark.level != "fine"]
    if left and not mended.dry_run:
        out.print("What only you can decide:", style="bold")
        show.remarks(left)
    if not found:
        out.print("All is well; there was nothing to repair.")


@command(opens=False)
def config(home: str | None, key: str, set_: Sequence[str]) -> Reply:
    from anima.home.folders import default_settings

    try:
        with open_home(home, set_) as opened:
            rows, settings = opened.settings(), opened.config
    except NoSuchHome:
        if home or os.environ.get("ANIMA_HOME"):
            raise
        whisper("no home here: these are the defaults")
        settings = default_settings(parsed(set_))
        rows = settings.rows()
    key = key.removesuffix(".")
    names = dict.fromkeys(name for row in rows for name in (row[0], row[0].partition(".")[0]))
    if not (rows := [row for row in rows if not key or f"{row[0]}.".startswith(f"{key}.")]):
        raise BadArguments(f"there is no setting {flat(key)}", hint=meant(key, names, called("config")))

    def shown() -> None:
        drawn = show.table("key", "value", "from", whole=("key", "from"))
        for name, value, source in rows:  # as anima.toml would hold it, without quotes; nothing for what is not set
            unset = value in ("", None, ())
            told = value if isinstance(value, str) else json_text.dumps(plain(value), ensure_ascii=False)
            drawn.add_row(name, "" if unset else flat(told), source, style="dim" if source == "default" else "")
        show.console().print(drawn)
        for name, why in settings.ignored:
            say(f"! {flat(name)} is ignored: {flat(why)} ({called('trust-home')})")

    listed = [{"key": name, "value": value, "source": source} for name, value, source in rows]
    return Reply({"trusted": settings.trusted, "settings": listed, "ignored": settings.ignored}, shown)


@command(name="trust-home", owners=commands.unless_dry)
def trust_home(home: Home, yes: bool, json: bool) -> Reply:
    if not (yes or home.is_vouched_for):
        commands.ask_trust(home, can_ask=not json)
    home.trust()
    value = {"home": home.name, "trusted": True, "now_used": [key for key, _ in home.config.ignored]}
    return Reply(value, "Trusted. It holds until the folder is replaced by another.")


# -- what the agent is told --------------------------------------------------------------------------------------------

PARTS = ("text", "stable", "volatile")
_STYLES = {"cut": "yellow", "dropped": "red", "missing": "dim", "hidden": "dim", "unreadable": "red"}


@command()
def prompt(
    home: Home, explain: bool, part: str, model: str | None, channel: str | None, session: str | None, **who: Any
) -> Reply:
    if part not in PARTS:
        raise BadArguments(f"--part is {', '.join(PARTS)}, not {part!r}")
    if not sys.stdout.isatty():
        commands.need_trust(home)
    if session is None:
        made = home.prompt(**who, runtime=Runtime(model=model, channel=channel))
    else:  # what a model is told when a conversation goes on: what `chat` and `say` send, byte for byte
        from anima.agent.models import Models

        named = commands.listed_as(home.sessions.list(), session).id
        resumed = home.resume(named, model=model or Models.of(home).choice().name)
        resumed.leave()
        made = resumed.prompt

    def shown() -> None:
        if explain:
            return show_manifest(made)
        text = getattr(made, part)
        say(inert(text) if sys.stdout.isatty() else text)
        return show.notes(map(flat, made.notes))

    return Reply(picked(made, "text stable volatile manifest scope dialect persona notes"), shown)


def show_manifest(made: Prompt) -> None:
    """Draws a prompt's manifest: each file with its verdict, its share of the budget where there is room, and why."""
    out = show.console()
    budget = ("budget",) if out.width >= 80 else ()
    drawn = show.table("file", "verdict", "shown", "of", *budget, right=("shown", "of"))
    drawn.add_column("why", overflow="fold", style="dim")
    for line in made.manifest:
        drawn.add_row(
            flat(line.path or line.role),
            line.status,
            f"{line.chars_shown:,}",
            f"{line.chars_raw:,}",
            *(bar(line.chars_shown, made.limits.file, 12) for _ in budget),
            flat(line.reason),
            style=_STYLES.get(line.status, ""),
        )
    out.print(drawn)
    share = f"{len(made.text):,} of {made.limits.total:,} characters"
    out.print(f"{made.scope}, {made.dialect}: {share} {bar(len(made.text), made.limits.total)}", soft_wrap=True)
    worn = flat(made.persona or "none")
    out.print(f"stable {len(made.stable):,}, volatile {len(made.volatile):,}; soul worn: {worn}", soft_wrap=True)
    for note in made.notes:
        out.print(f"! {flat(note)}", style="yellow", soft_wrap=True)


@command()
def identity(home: Home, worn: bool, limit: int) -> Reply:
    if worn:
        rows = home.identity.worn(limit)
        told = [
            f"{row.time:%Y-%m-%d %H:%M}  {row.file or 'none'}  ({row.scope}, session {row.session[:8]})" for row in rows
        ]
        return Reply(rows, list(map(flat, told)) or "No conversation was recorded yet, so no soul was worn in one.")
    who, avatar = home.identity.resolved(), home.identity.avatar()
    known = {name: getattr(who, name) for name in ("name", "creature", "vibe", "theme", "emoji")}
    value = {name: picked(field, "value source") for name, field in known.items() if field}
    lines = [f"{name:9} {flat(field.value)}  ({flat(field.source)})" for name, field in known.items() if field]
    why = f", {flat(avatar.reason)}" if avatar.reason else ""
    lines.append(f"avatar    {flat(avatar.source or '–')}  ({avatar.kind}{why})")
    rule, decision, present = home.config.persona, home.identity.persona(), home.exists(home.config.persona.file)
    soul = picked(decision, "file worn why") | picked(rule, "at duration chance")
    times = [f"from {rule.at} for {rule.duration} each day"] if rule.at else []
    times += [f"by chance {rule.chance * 100:g} % of the time"] if rule.chance else []
    when = " and ".join(times) or "never (neither persona.at nor persona.chance is set)"
    lines.append(f"soul      {flat(decision.file)}  (worn now, at {home.site.now():%H:%M})")
    lines.append(f"          {flat(rule.file)}{'' if present else ' (there is no such file)'}: {when}")
    soul |= {"alternate": rule.file, "present": present}
    return Reply(value | {"avatar": picked(avatar, "kind source reason"), "soul": soul}, lines)


@command()
def files(home: Home, folder: str, depth: int) -> Reply:
    rows = [(path, home.layout.row_of(DocPath.parse(path.rstrip("/"))).role) for path in home.tree(folder, depth)]
    lines = []
    for path, role in rows:
        above, _, name = path.rstrip("/").rpartition("/")
        indent = "  " * (above.count("/") + bool(above))
        own = f"{flat(name)}/" if path.endswith("/") else f"{flat(name):36} {role if role != 'note' else ''}"
        lines.append(f"{indent}{own}".rstrip())
    return Reply([{"path": path, "is_folder": path.endswith("/"), "role": role} for path, role in rows], lines)


@command()
def read(home: Home, path: str) -> Reply:
    document = show.document(home, path)

    def shown() -> None:
        if sys.stdout.isatty():
            return say(inert(document.text).removesuffix("\n"))
        sys.stdout.flush()
        sys.stdout.buffer.write(document.text.encode("utf-8"))
        return None

    return Reply(document, shown)


# -- getting to know the others -----------------------------------------------------------------------------------------------


@command(opens=False)
def tour(fast: bool, json: bool) -> Reply | None:
    if json:
        steps = [{"step": n, "text": text, "command": line, "shows": said} for n, text, line, said in _lived()]
        return Reply(steps, "")
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
        for number, step in enumerate(table_of("home")["step"], 1):
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
    value = {title: {name.strip(): text for name, text in rows} for title, rows in groups.items()}
    return Reply(value, pages.getvalue().strip("\n"))


@command(opens=False)
def completion(shell: str, home: str | None) -> Reply:
    from click.shell_completion import get_completion_class

    from anima.cli import COMPLETE, program

    if (found := get_completion_class(shell)) is None:
        raise BadArguments(f"there is no completion for {shell!r}; there is for bash, zsh and fish")
    script = found(program, {}, "anima", COMPLETE).source().strip()
    return Reply({"shell": shell, "script": script}, script)

"""Connections: a host is connected to a home, taken out again, and asked whether it really reached it; its files are planned, shown
as a diff, changed, and taken back. And moving in: the settings of another system become those of a home.

Promise: what is planned is computed from what stands there and shown before it is made, and making it twice changes nothing. A
file is replaced whole, by a rename, with its mode kept, and a link is followed to what it names. What a file was is kept beside the
home's credentials; taking out gives its bytes back where nobody else changed the file since, and else takes out just what is ours.
A host that runs no hook of ours is told of. Every value of a file of another system's lands in `anima.toml` or in the list of what has
no counterpart, with the reason; none is lost, no key goes into a file, and what the home's own file says already stays as it is.
Reading another program's settings is pure, every line of it is named, and what comes out is a configuration that loads. Not here: what is
changed for whom, and how as text (hosts); the table of settings (tables/settings.toml).
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from anima.config import FILE, load, told
from anima.connect import Spool, write_private
from anima.connect.hosts import HOSTS, Host, HostEdit, Wiring, at, drawn
from anima.errors import BadArguments, BadConfig, BadInput, BadPath, NotFound, Refused
from anima.home import Home
from anima.layout.trust import folder as user_folder
from anima.model import Remark
from anima.text import read_table
from anima.text.toml import edited


def host_of(name: str) -> Host:
    if name not in HOSTS:
        raise BadArguments(f"there is no host {name!r}; there are {', '.join(HOSTS)}", hint="anima connect lists them")
    return HOSTS[name]


@dataclass(frozen=True, slots=True)
class Contact:
    """How a host stands to a home: since when it is connected, and when its hooks last reported; None is never."""

    host: str
    title: str
    connected: datetime | None
    heard: datetime | None
    silent: datetime | None  # when a conversation came by without a single report
    reports: bool

    @property
    def said(self) -> str:
        if self.connected is None:
            return "not connected"
        if not self.reports:
            return "connected; it has tools and no hooks"
        if self.is_silent:
            return "connected, and its hooks do not run"
        if self.heard is None:
            return "connected; no session of it has reported yet"
        return f"connected; its hooks last reported {self.heard:%Y-%m-%d %H:%M} UTC"

    @property
    def is_silent(self) -> bool:
        return self.silent is not None and (self.heard is None or self.heard < self.silent)


def contact_of(spool: Spool, host: Host) -> Contact:
    found = spool.connection or {}
    heard = max(spool.ids().values(), default=None) if found else None
    connected, last, silent = (
        datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, int | float) else None
        for seconds in (found.get("connected"), heard, found.get("silent"))
    )
    return Contact(host.name, host.title, connected, last, silent, host.reports)


def silent_hosts(home: str, env: Mapping[str, str]) -> Iterator[Remark]:
    """What the health of a home tells of hosts: those whose hooks do not run."""
    for host in HOSTS.values():
        stands = contact_of(Spool(os.fspath(user_folder(env)), home, host.name), host)
        if stands.is_silent:
            said = f"{host.title} used this home without a report of its hooks; what was said there is not kept."
            yield Remark(about=host.name, message=said, do=host.then.partition("{")[0])


class Connection:
    """One host and one home, on the way to be connected or taken out."""

    def __init__(self, wiring: Wiring, host: Host, *, identity: str, index: str, now: datetime) -> None:
        self.wiring, self.host, self._now = wiring, host, now
        self._home = {"identity": identity, "index": index}
        self.spool = Spool(wiring.config, wiring.home, host.name)
        self._held: dict[str, Any] = self.spool.connection or {}

    def plan(self, *, remove: bool) -> tuple[Step, ...]:
        """What would change. Raises BadInput for a file of the host's that cannot be read."""
        edits, kept = self.host.edits(self.wiring), self._held.get("files", {})
        return taken_back(edits, kept) if remove else planned(edits, kept)

    def connect(self, steps: tuple[Step, ...]) -> None:
        """Makes the change, and keeps how it is taken back. Raises Refused."""
        missing = [str(above) for step in steps for above in reversed(step.path.parents) if not above.exists()]
        self._held = {
            **self._home,
            "connected": self._held.get("connected", self._now.timestamp()),
            "files": kept_of(steps, self._held.get("files", {})),
            "folders": list(dict.fromkeys([*self._held.get("folders", []), *missing])),
            "transcripts": str(self.host.transcripts(self.wiring) or ""),
        }
        try:  # before the files: a crash must not leave them with nobody who knows what they were
            self.spool.put_connection(self._held)
        except OSError as error:
            raise Refused(f"how to take it back cannot be written down ({error.strerror})", rule="host-file") from None
        make(steps)

    def remove(self, steps: tuple[Step, ...]) -> None:
        """Takes the host out. Raises Refused."""
        make(steps, top=[Path(folder) for folder in self._held.get("folders", [])])
        self.spool.put_connection(None)
        for id in self.spool.ids():
            self.spool.drop(id)


def wiring_of(home: Home) -> Wiring:
    """How a home is reached by the program that runs now: by where it stands, since hosts have search paths of their own."""
    here, beside = os.path.abspath(sys.argv[0]), os.path.join(os.path.dirname(sys.executable), "anima")
    ours = [here] if os.path.basename(here) == "anima" else []
    found = next((each for each in (*ours, beside) if os.access(each, os.X_OK)), None)
    program = (found,) if found else (sys.executable, "-P", "-m", "anima")
    config = os.fspath(home.site.register.file.parent.absolute())
    return Wiring(program=program, home=home.name, config=config, agent=home.identity.name, env=home.site.env)


def entry_of(home: Home) -> dict[str, dict[str, dict[str, object]]]:
    """What goes into the configuration of any program that knows `mcpServers`, so that its agent lives here."""
    return {"mcpServers": {"anima": wiring_of(home).server("mcp", joins=False)}}


def connecting_of(home: Home, host: Host) -> Connection:
    store = home.site.store
    index = store.scratch("index.sqlite")
    return Connection(wiring_of(home), host, identity=store.identity, index=index, now=home.clock())


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What becomes of one file: None is no file."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def diff(self) -> str:
        old, new = (_lines(each) for each in (self.before, self.after))
        was, becomes = ("/dev/null" if each is None else str(self.path) for each in (self.before, self.after))
        return "".join(difflib.unified_diff(old, new, was, becomes))

    @property
    def shown(self) -> str:
        """The diff; of a page of ours that goes whole, how long it is."""
        is_page_that_goes = self.path.suffix == ".md" and self.after is None
        return f"- {self.path} ({len(_lines(self.before))} lines)\n" if is_page_that_goes else self.diff


def _lines(raw: bytes | None) -> list[str]:
    lines = (raw or b"").decode("utf-8", "replace").splitlines(keepends=True)
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]


def planned(edits: Sequence[HostEdit], kept: Mapping[str, Any]) -> tuple[Step, ...]:
    """What connecting changes. Raises BadInput for a file that cannot be read as what it is, or a whole one that is not ours."""
    steps = list[Step]()
    for edit in edits:
        there, is_new = read(edit.path), str(edit.path) not in kept
        if edit.whole and is_new and there not in (None, edit.put("").encode()):
            raise _refused(edit.path, f"{len(there or b'')} bytes of somebody else's, or another home's, stand there")
        steps.append(Step(path=edit.path, before=there, after=_changed(edit.path, edit.put, there)))
    return tuple(step for step in steps if step.before != step.after)


def _changed(path: Path, change: Callable[[str], str], there: bytes | None) -> bytes:
    text = decoded(path, there)
    try:
        return change(text).encode()
    except BadInput as error:
        raise _refused(path, error) from None


def decoded(path: Path, there: bytes | None) -> str:
    try:
        return (there or b"").decode()
    except UnicodeDecodeError:
        raise _refused(path, "it is not UTF-8") from None


def _refused(path: Path, why: object) -> BadInput:
    return BadInput(f"{path}: {why}; nothing was changed", hint="mend it, then try again")


def taken_back(edits: Sequence[HostEdit], kept: Mapping[str, Any]) -> tuple[Step, ...]:
    """What taking the host out changes. `kept` is what `kept_of` gave when it was connected."""
    steps = list[Step]()
    for edit in edits:
        there, held = read(edit.path), kept.get(str(edit.path))
        if there is None:
            continue
        if isinstance(held, dict) and held.get("made") == _digest(there):
            before = held.get("before")
            after = base64.b64decode(before) if isinstance(before, str) else None
        elif edit.whole:  # a file of ours that somebody changed; one we never made stays
            after = None if isinstance(held, dict) else there
        else:
            after = _changed(edit.path, edit.take, there)
        steps.append(Step(path=edit.path, before=there, after=after))
    return tuple(step for step in steps if step.before != step.after)


def kept_of(steps: Sequence[Step], already: Mapping[str, Any]) -> dict[str, Any]:
    """What must be known to take steps back: the bytes before our first change, and what we made of them."""
    kept = dict(already)
    for step in steps:
        old = kept.get(str(step.path))
        before = None if step.before is None else base64.b64encode(step.before).decode()
        if isinstance(old, dict) and old.get("made") == _digest(step.before or b""):
            before = old.get("before")
        kept[str(step.path)] = {"before": before, "made": _digest(step.after or b"")}
    return kept


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def make(steps: Sequence[Step], *, top: Sequence[Path] = ()) -> None:
    """Makes a change; folders left empty go, with the `top` ones. Raises Refused when a file changed since, or cannot be written."""
    for step in steps:
        if read(step.path) != step.before:
            raise Refused(f"{step.path} changed meanwhile; it was left as it is", rule="stale", hint="try again")
    for step in steps:
        try:
            if step.after is None:
                step.path.unlink(missing_ok=True)
            else:
                real = step.path.resolve()
                real.parent.mkdir(parents=True, exist_ok=True)
                mode = real.stat().st_mode & 0o777 if real.exists() else 0o600
                write_private(os.fspath(real), step.after, mode=mode)
        except OSError as error:
            raise Refused(f"{step.path} cannot be written ({error.strerror})", rule="host-file") from None
        if step.after is None:
            folder = step.path.parent
            while any(folder == each or each in folder.parents for each in top):
                try:
                    if (compiled := folder / "__pycache__").is_dir():  # what a host made of a file of ours
                        for each in compiled.glob("*.pyc"):
                            each.unlink()
                        compiled.rmdir()
                    folder.rmdir()
                except OSError:
                    break  # somebody put something into it
                folder = folder.parent


def read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(f"{path} cannot be read ({error.strerror}); nothing was changed", rule="host-file") from None


# -- moving in ----------------------------------------------------------------------------------------------------------------

_NOTHING = "anima has no such setting"
_SECRET = re.compile(r"(?i)(?:key|token|secret|password)$")
_LISTS = ("prompt.additional",)  # keys to which several values may go
_TOLD = (*_LISTS, "persona.file")  # keys that say what a prompt is told
_LOGIN = re.compile(r"^([A-Za-z][\w+.-]*://)[^/?#]*@")  # of an address
# Of what an address asks with.
_ASKED = re.compile(r"(?i)(?:^|(?<=&))[^=&#]*(?:key|token|secret|password|sig)=[^&#]*&?")
_EXPORT = re.compile(r"^(?:export\s+)?([A-Z][A-Z0-9_]*)=(.*)$", re.M)


# One value of a file: its path as the table names it, the most particular first; its places in lists; itself.
Value = tuple[tuple[str, ...], tuple[int, ...], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a file of another system's comes to: keys of anima.toml, and (path, reason) of what has no counterpart."""

    title: str
    taken: Mapping[str, Any]
    left: tuple[tuple[str, str], ...]


def settings_edit(file: Path, home: str) -> tuple[Step | None, Settings, list[tuple[str, str]]]:
    """The change of a home's anima.toml by a file of another system's settings, what was found in it, and what has no
    counterpart or is there already. Raises BadInput for a file that is none, or a home that is no folder."""
    raw, path = read(file), Path(home) / FILE
    if raw is None:
        raise NotFound(f"there is no file {file}")
    if not path.parent.is_dir():
        raise BadInput("the settings of a home in a database are not in a file")
    found = settings_of(str(file.absolute()), decoded(file, raw), home=home)
    before = read(path)
    text, already = with_settings(decoded(path, before or b""), found)
    step = Step(path=path, before=before, after=text.encode())
    return (step if step.after != (before or b"") else None), found, [*found.left, *already]


def settings_of(file: str, text: str, *, home: str) -> Settings:
    """What a file says. Raises BadInput for one that is no file of a system that the table knows."""
    folder, name = os.path.split(file)
    tree, systems = _read(name, text)
    kinds: dict[str, dict[str, Any]] = read_table("connect", "settings")
    kind = next((kind for kind in systems if set(kinds[kind]["marks"]) & set(tree)), None)
    if kind is None:
        raise BadInput(f"{name}: nothing in it is a setting of {', '.join(kinds[each]['title'] for each in systems)}")
    taken, left, last = dict[str, Any](), list[tuple[str, str]](), dict[str, Any]()
    for each in _values(tree):
        where, why = _goes(each, kinds[kind])
        if where is None or _SECRET.search(each[0][0]):
            left.append((each[0][0], why or _NOTHING))
        elif isinstance(where, str):
            _take(taken, left, each, where, (folder, home))
        else:
            last |= where
    return Settings(title=kinds[kind]["title"], taken=taken | last, left=tuple(left))


def _read(name: str, text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a file says, and the systems whose it may be."""
    if name.endswith((".yaml", ".yml")):
        try:
            tree, systems = yaml.safe_load(text), ("nexo", "carapace")
        except (yaml.YAMLError, RecursionError) as error:
            raise BadInput(f"{name} cannot be read as YAML ({str(error).splitlines()[0]})") from None
    elif text.lstrip().startswith(("{", "//", "/*")):
        tree, systems = at(text, ()), ("openclaw", "agentscope")
    else:
        return {key: value.strip().strip("\"'") for key, value in _EXPORT.findall(text)}, ("ironclaw",)
    if isinstance(tree, list):
        tree = {"rules": tree}  # Carapace's file may be the bare list
    if not isinstance(tree, dict):
        raise BadInput(f"{name} holds no settings")
    return tree, systems


def _values(tree: object, names: tuple[str, ...] = ("",), places: tuple[int, ...] = ()) -> Iterator[Value]:
    """Every value of a tree. A list of plain values is one."""
    if isinstance(tree, dict) and tree:
        for key, each in tree.items():
            yield from _values(each, tuple(f"{name}.{key}".lstrip(".") for name in names), places)
    elif isinstance(tree, list) and any(isinstance(each, dict) for each in tree):
        for place, each in enumerate(tree):
            id = each.get("id", each.get("agentId")) if isinstance(each, dict) else None
            own = tuple(f"{name}[{id}]" for name in names) if isinstance(id, str) else ()
            yield from _values(each, (*own, *(f"{name}[]" for name in names)), (*places, place))
    else:
        yield names, places, tree


def _goes(each: Value, kind: Mapping[str, Any]) -> tuple[str | dict[str, Any] | None, str]:
    """Where a value goes: a key, several with their values, or None and why."""
    keys, left = kind["keys"], kind["left"]
    names, _, value = each
    found = next((keys[name] for name in names if name in keys), None)
    if isinstance(found, dict):
        found = found.get(str(value).lower() if isinstance(value, bool) else str(value))
        if found is not None:
            pairs = (pair.partition("=") for pair in filter(None, found.split("; ")))
            return {key: 0.0 if text == "0" else text for key, _, text in pairs}, ""
    if found is not None:
        return found, ""
    wider, parts = list(names), [name.split(".") for name in names]  # and of everything it stands beneath
    for depth in range(max(map(len, parts)) - 1, 0, -1):
        wider += [f"{'.'.join(part[:depth])}.*" for part in parts if depth < len(part)]
    return None, next((left[name] for name in wider if name in left), _NOTHING)


def _take(taken: dict[str, Any], left: list[tuple[str, str]], each: Value, where: str, at: tuple[str, str]) -> None:
    (path, *_), places, value = each
    if where == "agent[].home" and isinstance(value, str):
        value = os.path.realpath(os.path.join(at[0], os.path.expanduser(value)))
        if value == os.path.realpath(at[1]):
            left.append((path, "it is this home"))
            return
    if isinstance(value, str):  # an address without what lets somebody in; any other text as it is
        head, mark, query = _LOGIN.sub(r"\1", value).partition("?")
        kept = _ASKED.sub("", query).rstrip("&") if "://" in head else query
        bare = f"{head}{mark}{kept}" if kept or not query else head
        if bare != value:
            value = bare
            left.append((path, "its name and password, or key, stay out: keys stand in the environment, in no file"))
    if where in _TOLD:
        files = list[Any]()
        for one in value if isinstance(value, list) else [value]:
            try:
                files += [one] if told(one) else []
            except (ValueError, BadPath) as error:
                left.append((path, str(error)))
        if not files:
            return
        value = [*taken.pop(where, ()), *files] if where in _LISTS else files[0]
    if "[]" in where:
        where = where.replace("[]", f"[{places[0]}]", 1)
    if where in taken and taken[where] != value:
        left.append((path, f"{where} is {drawn(taken[where])} by a value before it; a home has one"))
    else:
        taken[where] = value


def with_settings(text: str, found: Settings) -> tuple[str, list[tuple[str, str]]]:
    """The text of anima.toml with what was found, and what it says already, or does not take. Raises BadConfig where that does
    not load."""
    there: Any = tomllib.loads(text)
    elements, already = dict[str, dict[str, Any]](), list[tuple[str, str]]()
    for key, value in found.taken.items():
        table, _, name = key.rpartition(".")
        if "[" in table:
            elements.setdefault(table, {})[name] = value
            continue
        says = there
        for part in key.split("."):
            says = says.get(part) if isinstance(says, dict) else None
        if says is not None:
            already.append((key, f"anima.toml says {drawn(says)} already"))
            continue
        try:
            load(edited("", key, value), env={}, trusted=True)
            text = edited(text, key, value)
        except BadConfig as error:  # a time as only others write it, say
            already.append((key, str(error)))
    for place, values in elements.items():
        table = place.partition("[")[0]
        if any(each == values or each.get("id", "") == values.get("id") for each in there.get(table, ())):
            already.append((place, f"anima.toml has this {table} already"))
            continue
        lines = [f"{name} = {drawn(value)}" for name, value in values.items()]
        text = "\n".join([text.rstrip("\n"), "", f"[[{table}]]", *lines, ""]).lstrip("\n")
    load(text, env={}, trusted=True)
    return text, already

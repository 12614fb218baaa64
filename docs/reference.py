"""Makes docs/reference.md: every public name, with its signature and what it says of itself.

    make reference           or: python docs/reference.py

What is needed every day stands first, then a home with its parts, then functions, values and errors, what stands in modules of
its own, and last every type of ours that a signature on the page mentions: they are found by walking the annotations, until
nothing new comes. A name without a docstring is an error, also a verb of `Home` and `Session`, and so is a page that is not up
to date: tests/test_reference.py asks for both, and that no public attribute of a home is missing here. Members of other
classes that say nothing of themselves stand there with their signature alone.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, TypeVar

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src")]

import anima  # noqa: E402
from anima import aio, compat, home, testing  # noqa: E402
from anima.prompt.gather import AgentIdentity, Prompts  # noqa: E402
from anima.testing import channels, embedder, models  # noqa: E402

PAGE = HERE / "reference.md"
HEAD = """# Reference

Every public name of `anima`, made from its docstrings by `make reference`. What belongs together stands in the other pages:
[sessions](sessions.md), [the gate](gate.md), [the configuration](configuration.md).

A verb or function of `anima` that is handed something of another type than its signature says raises `BadArguments` before
anything is done; so does a whole number below 0, and a `limit` below 1. Names in `anima` are imported as
`from anima import Home`; any other heading has its module's name before it: `anima.model.Kind` is `from anima.model import
Kind`. What this page does not name is the inside, and may change, whether or not it begins with an underscore.

A signature is Python: what stands behind `*` is given by its name. Nearly all values are frozen dataclasses (those with a
`_fields` are named tuples): `dataclasses.replace` makes another one and `dataclasses.asdict` a dictionary, in which `json.dumps(…,
default=str)` writes times as text. A `DocPath` is no text, and equals none; `str(hit.path)` is.
"""
EVERYDAY = """
    Home.create Home.open Home.remember Home.note Home.search Home.prompt Home.session Session.log Session.tools Session.run
    Session.call Session.flush home.inbox.noted home.inbox.keep home.inbox.drop Home.read Home.write Home.undo Home.forget
""".split()
# What objects have that no class tells of: their attributes, with a type and a word.
ATTRIBUTES = {
    "Home": {
        "agent": ("str", "The agent whose home is open; of several, the one that was asked for."),
        "dialect": ("str", "Which of the six dialects the folder speaks."),
        "clock": ("Callable[[], datetime]", "What was given for it, or the world's."),
        "dice": ("random.Random", "What was given for it, or the world's."),
        "identity": ("AgentIdentity", "Who the agent is: [`home.identity`](#homeidentity)."),
        "prompts": ("Prompts", "What a prompt is made of: [`home.prompts`](#homeprompts)."),
    },
    "Session": {
        "id": ("str", "Its name; `home.resume(id)` takes it up again."),
        "prompt": ("Prompt", "The system prompt, frozen at the start or at the last `refresh`."),
        "listener": ("Listener", "Who listens: the scope, and whose layer of the home is theirs."),
        "channel": ("str | None", "The channel it was begun with."),
        "sender": ("str | None", "Who speaks; None is the owner."),
        "access": ("Access", "What it may do with documents: the narrowest of what was asked for and what is allowed."),
        "model": ("str | None", "The name of the model, as the host gave it."),
        "complete": ("Complete | None", "The host's model, as it was given."),
        "tainted": ("frozenset[Origin]", "The untrusted origins of what it has read; empty while it is clean."),
        "parent": ("Session | None", "Whose sub-session it is."),
        "agent": ("Subagent | None", "Which declared sub-agent speaks here."),
    },
    "home.index": {"notes": ("tuple[str, ...]", "What there is to say of the index, for people.")},
    "home.sessions": {"kept": ("bool", "Whether transcripts are written.")},
    "home.identity": {"rule": ("PersonaConfig", "When which soul is worn.")},
    "home.prompts": {"limits": ("Limits", "How long a prompt may be, and each text in it.")},
    "HomeError": {
        "hint": ("str | None", "What to do next."),
        "exit_code": ("int", "What `anima` ends with when it meets one."),
        "http_status": ("int", "What the server answers then."),
    },
    "Clock": {"now": ("datetime", "The moment; may be set.")},
    "Model": {"asked": ("list[str]", "Every question so far.")},
    "ModelServer": {
        "key": ("str", "The key that a client must send."),
        "requests": ("list[Received]", "What came in, in order."),
    },
}
# The inside, though its names begin with no underscore: other rooms of anima use it.
INSIDE = {
    "Home": {"site", "layout"},
    "Session": {"rooms", "site", "guest", "flows", "outside"},
    "home.dreams": {"patience"},
    "home.past": {"store", "writer", "clock"},
    "home.sessions": {"site", "prompts", "writer", "search", "propose", "nights", "folder", "redact"},
    "home.snapshots": {"whole", "register"},
    "home.prompts": {"site", "identity", "has_alternate", "table"},
}
SETTINGS = "Settings; [the configuration](configuration.md) says what each means."
ADAPTERS = ("anthropic", "openai_agents", "pydantic_ai", "langgraph", "claude_sdk", "agentscope")
Place = tuple[str, str]  # a module, and a name in it


class _Bare(str):
    """An annotation as it is written."""

    __repr__ = str.__str__


# -- where names stand -----------------------------------------------------------------------------------------------------


@cache
def _tree(module: str) -> ast.Module:
    spec = find_spec(module)
    assert spec and spec.origin
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


@cache
def _source(module: str) -> list[str]:
    spec = find_spec(module)
    assert spec and spec.origin
    return Path(spec.origin).read_text(encoding="utf-8").splitlines()


@cache
def _place(module: str, name: str) -> Place | None:
    """Where a name that a module uses is defined, also one that it has for type checkers alone; None for what is not ours."""
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom):
            found = next((each.name for each in node.names if name == (each.asname or each.name)), "")
            if found:
                is_ours = (node.module or "").partition(".")[0] == "anima"
                return _front(found) or _place(node.module or "", found) if is_ours else None
    return (module, name) if _node(module, name) else None


def _front(name: str) -> Place | None:
    """Where a name of `anima` itself stands."""
    return (where, name) if (where := anima._WHERE.get(name)) else None


def _node(module: str, name: str) -> ast.stmt | None:
    for node in _tree(module).body:
        named = getattr(node, "targets", [getattr(node, "target", None)])
        if getattr(node, "name", None) == name or any(isinstance(each, ast.Name) and each.id == name for each in named):
            return node
    return None


def _comment(module: str, node: ast.stmt, *, above: bool = False) -> str:
    """What stands behind a line for its reader; for a type of several words, also what stands above it."""
    lines, first = _source(module), node.lineno - 1
    start = first
    while above and start and lines[start - 1].startswith("# "):
        start -= 1
    said = [line[2:] for line in lines[start:first]]
    last = lines[(node.end_lineno or 0) - 1][node.end_col_offset or 0 :]
    said += re.findall(r"^,?  # (?!noqa|type:|fmt:)(.*)", last)
    return " ".join(said)


def _notes(kind: type) -> dict[str, str]:
    """What is said behind the fields of a class, or its members."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        node = _node(each.__module__, each.__name__) if each.__module__.startswith("anima") else None
        for line in node.body if isinstance(node, ast.ClassDef) else ():
            target = line.targets[0] if isinstance(line, ast.Assign) else getattr(line, "target", None)
            if isinstance(target, ast.Name) and (said := _comment(each.__module__, line)):
                found[target.id] = said
    return found


class _Names(ast.NodeTransformer):
    """Puts the page's names of types in the place of a module's own."""

    def __init__(self, page: _Page, module: str) -> None:
        self.page, self.module = page, module

    def visit_Name(self, node: ast.Name) -> ast.AST:
        place = _place(self.module, node.id)
        return ast.Name(self.page.named(place)) if place else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Such as `replay.Turn`, of a module that was imported whole."""
        for each in ast.walk(_tree(self.module)):
            names = each.names if isinstance(each, ast.ImportFrom) and isinstance(node.value, ast.Name) else ()
            if isinstance(node.value, ast.Name) and any(name.name == node.value.id for name in names):
                within = f"{getattr(each, 'module', '')}.{node.value.id}"
                if within.startswith("anima.") and find_spec(within) and (place := _place(within, node.attr)):
                    return ast.Name(self.page.named(place))
        return node


# -- one page --------------------------------------------------------------------------------------------------------------


class _Field(NamedTuple):
    """One field of a value, as its signature has it."""

    name: str
    told: str
    default: str
    by_name: bool


class _Page:
    """What is written, what is missing, and the types that were mentioned on the way. `twice` are names of several types."""

    def __init__(self, twice: frozenset[str] = frozenset()) -> None:
        self.missing: list[str] = []
        self.twice, self.known, self.wanted = twice, dict[Place, str](), list[Place]()

    # -- annotations --

    def told(self, annotation: Any, module: str) -> str:
        """An annotation as the page has it. What it mentions of ours gets an entry."""
        text = getattr(annotation, "__forward_arg__", annotation)
        if not isinstance(text, str):
            text = getattr(text, "__name__", str(text))
        return " ".join(ast.unparse(_Names(self, module).visit(ast.parse(text, mode="eval"))).split())

    def named(self, place: Place) -> str:
        module, name = place
        if name.startswith("_") or isinstance(getattr(import_module(module), name), TypeVar):
            return name
        if place not in self.known:
            self.known[place] = name
            self.wanted.append(place)
        return f"{module.removeprefix('anima.')}.{name}" if name in self.twice and not _is_front(place) else name

    def call(self, value: FunctionType, *, alone: bool = False) -> str:
        """The arguments of what can be called. A verb that stands `alone` is given its home."""
        found = inspect.unwrap(value)
        signature = inspect.signature(found)
        given = [
            self.bare(each, found.__module__)
            for each in signature.parameters.values()
            if each.name not in ("self", "cls")
        ]
        if alone and "self" in signature.parameters:
            given = [signature.parameters["self"].replace(name="home"), *given]
        returns = signature.return_annotation
        if returns is not inspect.Signature.empty:
            returns = _Bare(re.sub(r"^Iterator", _entered(value), self.told(returns, found.__module__)))
        if value in (aio.open, aio.create):
            returns = _Bare("Coming")
        return _plain(str(signature.replace(parameters=given, return_annotation=returns)))

    def bare(self, parameter: inspect.Parameter, module: str) -> inspect.Parameter:
        if parameter.annotation is not inspect.Parameter.empty:
            parameter = parameter.replace(annotation=_Bare(self.told(parameter.annotation, module)))
        return parameter

    def data(self, kind: type) -> list[_Field]:
        """The fields of a value."""
        if hasattr(kind, "_fields"):
            where, default = kind.__annotations__, kind._field_defaults
            return [
                _Field(name, self.told(where[name], kind.__module__), _default(default.get(name, MISSING)), False)
                for name in kind._fields
            ]
        home_of = {
            name: each.__module__ for each in reversed(kind.__mro__) for name in vars(each).get("__annotations__", ())
        }
        found = []
        for each in fields(kind):
            default = "…" if each.default_factory is not MISSING else _default(each.default)
            if each.init and not each.name.startswith("_"):
                found.append(_Field(each.name, self.told(each.type, home_of[each.name]), default, bool(each.kw_only)))
        return found

    # -- entries --

    def section(self, title: str, names: dict[str, Any], *, opening: Iterable[str] = ()) -> Iterator[str]:
        yield f"\n## {title}\n"
        yield from ("```text", *drawn, "```\n") if (drawn := list(opening)) else ()
        for name, value in sorted(names.items(), key=lambda item: item[0].casefold()):
            yield from self.entry(name, value)

    def entry(self, title: str, value: Any, *, further: bool = False) -> Iterator[str]:
        """A heading, the signature, what it says of itself, and its members; of a `further` type, if it is data or a seam."""
        name = title if title.startswith("home.") else title.rpartition(".")[2]
        yield f"### `{title}`\n"
        if isinstance(value, FunctionType):
            yield f"`{name}{self.call(value, alone=True)}`\n"
        elif not isinstance(value, type):
            yield from self.alias(title)
            return
        elif _is_value(value):
            yield f"`{name}({_joined(self.data(value))})`\n"
        elif name in ("WorkspaceManager", "Clock", "Model", "ModelServer", "MockEmbedder"):
            yield f"`{name}{_without_return(self.call(value.__init__))}`\n"
        said = self.said(title, value)
        yield f"{said}\n" if said else ""
        if isinstance(value, type) and (not further or _is_open(value)):
            yield from self.members(name, value, strict=title in ("Home", "Session"))
        yield ""

    def alias(self, title: str) -> Iterator[str]:
        module, _, name = title.rpartition(".")
        node = _node(module, name)
        assert isinstance(node, ast.Assign)
        said = _comment(module, node, above=True)
        yield f"`{name} = {self.told(ast.unparse(node.value), module)}`\n"
        yield f"{_sentence(said)}\n" if said else ""

    def members(self, name: str, kind: type, *, strict: bool) -> Iterator[str]:
        notes = _notes(kind)
        if issubclass(kind, Enum):
            yield from (f"- `{name}.{each.name} = {each.value!r}`{_behind(notes.get(each.name))}" for each in kind)
        elif _is_value(kind):
            shown = {field.name for field in self.data(kind)}
            yield from (f"- `{field}`{_behind(said)}" for field, said in notes.items() if field in shown)
        elif issubclass(kind, anima.HomeError) and "__init__" in vars(kind):
            own = set(inspect.signature(kind.__init__).parameters) - {"self", "message", "hint"}
            kept = re.findall(r"\bself\.(\w+)", inspect.getsource(kind.__init__))
            args = inspect.signature(kind.__init__).parameters
            for each in (each for each in args if each in own and each in kept):
                yield f"- `{name}.{each}: {self.told(args[each].annotation, kind.__module__)}`"
        for each, (told, said) in ATTRIBUTES.get(name, {}).items():
            module = "anima.home" if name == "Home" else kind.__module__
            yield f"- `{name}.{each}: {self.told(told, module)}`: {said}"
        for member, found in _members(kind):
            if member not in INSIDE.get(name, ()) and not member.startswith("test_"):
                yield self.member(f"{name}.{member}", found, strict=strict)

    def member(self, name: str, found: Any, *, strict: bool) -> str:
        if isinstance(found, FunctionType):
            signature = self.call(found)
        else:
            getter = inspect.unwrap(getattr(found, "fget", None) or found.func)
            signature = f": {self.told(getter.__annotations__.get('return', 'Any'), getter.__module__)}"
        said = self.said(name, found) if strict or inspect.getdoc(found) else ""
        return f"- `{name}{signature}`{': ' if said else ''}{said}"

    def said(self, name: str, value: Any) -> str:
        found = (value.__doc__ if isinstance(value, type) else inspect.getdoc(value)) or ""
        if _is_value(value) and found.startswith(f"{value.__name__}("):
            found = SETTINGS if value.__module__ == "anima.config" else ""
        if not found and not name.startswith("anima."):
            self.missing.append(name)
        return " ".join(inspect.cleandoc(found).split())

    # -- the whole --

    def write(self) -> Iterator[str]:
        names = {name: getattr(anima, name) for name in anima.__all__ if name[0] != "_"}
        self.known = {(where, name): name for name, where in anima._WHERE.items()}
        parts = {f"home.{name}": kind for name, kind in _parts()}
        self.known |= {(kind.__module__, kind.__name__): kind.__name__ for kind in parts.values()}
        groups: dict[str, dict[str, Any]] = {
            "A home and a session": {name: names.pop(name) for name in ("Home", "Session")},
            "Parts of a home": parts,
            "Functions": {name: value for name, value in names.items() if isinstance(value, FunctionType)},
            "Values": {
                name: value for name, value in names.items() if isinstance(value, type) and not _is_error(value)
            },
            "Errors": {name: value for name, value in names.items() if _is_error(value)},
        }
        modules = {module.__name__: dict(_own(module)) for module in (aio, compat, testing, models, channels, embedder)}
        own = [value for group in modules.values() for value in group.values()]
        self.known |= {
            (value.__module__, value.__name__): value.__name__ for value in own if hasattr(value, "__name__")
        }
        self.known["anima.agent.lodging", "Lodging"] = "Lodging"  # told of among the adapters
        self.missing += [name for name in names if not any(name in group for group in groups.values())]
        yield from _everyday(groups["A home and a session"] | parts)
        titles = [*groups, *modules, "More for tests", "Adapters", "Types in these signatures"]
        yield "\n## What is here\n"
        yield from (f"- [{title}](#{title.casefold().replace(' ', '-').replace('.', '')})" for title in titles)
        for title, group in groups.items():
            yield from self.section(title, group, opening=_tree_of(anima.HomeError) if title == "Errors" else ())
        for title, group in modules.items():
            yield from self.section(title, group)
        yield from self.testing_modules()
        yield from self.adapters()
        yield from self.types()

    def testing_modules(self) -> Iterator[str]:
        yield "\n## More for tests\n"
        yield "These modules are public too. Each says more at its top.\n\n| module | |\n|---|---|"
        told = {module.__name__ for module in (testing, models, channels, embedder)}
        for path in sorted(Path(testing.__file__ or "").parent.glob("*.py")):
            module = f"anima.testing.{path.stem}"
            if path.stem != "__init__" and module not in told:
                says = (ast.get_docstring(_tree(module)) or "").partition("\n")[0]
                yield f"| `{module}` | {says} |"

    def adapters(self) -> Iterator[str]:
        """Read and not imported, since each needs a library."""
        yield "\n## Adapters\n\nEach needs an extra, and has a page of its own among the frameworks.\n"
        for stem in ADAPTERS:
            module = f"anima.connect.adapters.{stem}"
            needed = re.findall(r'with needed\("([^"]+)"', "\n".join(_source(module)))
            for node in _tree(module).body:
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                    yield from self.adapter(module, needed[0], node)
            if stem == "pydantic_ai":
                lodging = _node("anima.agent.lodging", "Lodging")
                assert isinstance(lodging, ast.ClassDef)
                yield from self.adapter(module, needed[0], lodging, where="anima.agent.lodging")

    def adapter(self, module: str, extra: str, node: ast.ClassDef | ast.FunctionDef, where: str = "") -> Iterator[str]:
        page = f"frameworks/{extra}.md"
        assert (HERE / page).exists(), page
        yield f"### `{module}.{node.name}`\n"
        inits = (each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
        start = node if isinstance(node, ast.FunctionDef) else next(inits, None)
        if start is not None:
            yield f"`{node.name}{self.read_call(start, where or module)}`\n"
        else:
            yield f"`{node.name}({', '.join(self.read_fields(node, where or module))})`\n"
        yield f"{_words(node)} `pip install 'anima-home[{extra}]'`; [its page]({page}).\n"
        for each in node.body if isinstance(node, ast.ClassDef) else ():
            is_verb = isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and not each.name.startswith("_")
            if is_verb and ast.get_docstring(each):
                yield f"- `{node.name}.{each.name}{self.read_call(each, where or module)}`: {_words(each)}"
        yield ""

    def read_call(self, node: ast.FunctionDef | ast.AsyncFunctionDef, module: str) -> str:
        args = deepcopy(node.args)
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        for each in (each for each in every if each is not None and each.annotation is not None):
            each.annotation = ast.Name(self.told(ast.unparse(each.annotation), module))
        text = re.sub(r"^self(, )?", "", ast.unparse(args))
        returns = self.told(ast.unparse(node.returns), module) if node.returns and node.name != "__init__" else ""
        return f"({text})" + (f" -> {returns}" if returns else "")

    def read_fields(self, node: ast.ClassDef, module: str) -> Iterator[str]:
        for line in node.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.target.id[0] != "_":
                default = ast.unparse(line.value) if line.value else ""
                default = f" = {'…' if '(' in default or 'lambda' in default else default}" if default else ""
                yield f"{line.target.id}: {self.told(ast.unparse(line.annotation), module)}{default}"

    def types(self) -> Iterator[str]:
        """What the signatures mentioned, and what is mentioned by that, until nothing new comes."""
        made: dict[str, list[str]] = {}
        while self.wanted:
            module, name = self.wanted.pop(0)
            title = f"{module}.{name}"
            made[title] = list(self.entry(title, getattr(import_module(module), name), further=True))
        yield "\n## Types in these signatures\n"
        yield "They stand in modules of their own, which are part of their names here. What only passes through says what it is.\n"
        for title in sorted(made, key=lambda title: (title.rpartition(".")[2].casefold(), title)):
            yield from made[title]


def page() -> tuple[str, list[str]]:
    """The page, and the names that say nothing of themselves."""
    first = _Page()
    list(first.write())
    named = [name for _, name in first.known]
    made = _Page(frozenset(name for name in named if named.count(name) > 1))
    text = re.sub(r"\n{3,}", "\n\n", "\n".join([HEAD, *made.write()]))
    return f"{text.rstrip()}\n", made.missing


def _is_front(place: Place) -> bool:
    return anima._WHERE.get(place[1]) == place[0]


def _entered(verb: Any) -> str:
    """What a verb gives that says it gives an iterator: some are for a `with`."""
    while verb and getattr(verb, "__code__", None) is not contextmanager(iter).__code__:
        verb = getattr(verb, "__wrapped__", None)
    return "AbstractContextManager" if verb else "Iterator"


def _is_open(kind: type) -> bool:
    """Whether somebody reads it member by member, or writes one of their own: data, and what can be given to a home."""
    return (
        _is_value(kind)
        or issubclass(kind, (Enum, tuple))
        or kind.__module__ in ("anima.model", "anima.connect.channels")
    )


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, anima.HomeError)


def _is_value(value: Any) -> bool:
    """Whether it has fields that are told. A hand's are attributes of a session."""
    is_tuple = isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")
    return is_tuple or (isinstance(value, type) and is_dataclass(value) and value is not anima.Session)


def _tree_of(kind: type, deep: int = 0) -> Iterator[str]:
    """An error and those below it, with what `anima` ends with and what a server answers."""
    ends = f"exit code {kind.exit_code}, HTTP {kind.http_status}"
    yield f"{'  ' * deep}{kind.__name__:<{24 - 2 * deep}}{ends}"
    for each in sorted(kind.__subclasses__(), key=lambda each: each.__name__):
        if each.__module__ == "anima.errors":
            yield from _tree_of(each, deep + 1)


def _everyday(owners: dict[str, Any]) -> Iterator[str]:
    """What one needs first: each verb with its first sentence."""
    yield "\n## Every day\n\n| verb | |\n|---|---|"
    for verb in EVERYDAY:
        owner, _, name = verb.rpartition(".")
        said = " ".join((inspect.getdoc(getattr(owners[owner], name)) or "").split())
        yield f"| `{verb}` | {re.split(r'(?<=[a-z0-9`)])[.;:] ', said)[0].rstrip('.')} |"


def _own(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What a module has of its own, says that it has, or gives another name."""
    written = ast.parse(inspect.getsource(module)).body
    named = {alias.asname for node in written if isinstance(node, ast.ImportFrom) for alias in node.names}
    targets = [target for node in written if isinstance(node, ast.Assign) for target in node.targets]
    named |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    for name, value in vars(module).items():
        listed = name in vars(module).get("__all__", ()) or (module is compat and name in named)
        mine = getattr(value, "__module__", "") == module.__name__ and not name.startswith("_")
        if (listed or mine) and isinstance(value, (type, FunctionType)):
            yield name, value


def _parts() -> Iterator[tuple[str, type]]:
    """The parts of a home, by the types that its module names for them."""
    for name, value in vars(home.Home).items():
        if isinstance(value, home.part) and not name.startswith("_"):
            where = _place("anima.home", value._make.__annotations__["return"])
            assert where
            yield name, getattr(import_module(where[0]), where[1])
    yield from (("identity", AgentIdentity), ("prompts", Prompts))


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Verbs and properties of a class and of what of ours it is made from, in the order in which they are written."""
    seen: set[str] = set()
    for each in kind.__mro__:
        for name, value in vars(each).items() if each.__module__.startswith("anima") else ():
            found = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            is_one = isinstance(found, (FunctionType, property)) or type(found).__name__ == "cached_property"
            if not name.startswith("_") and name not in seen and is_one:
                seen.add(name)
                yield name, found


def _joined(given: list[_Field]) -> str:
    """The fields as a signature has them."""
    by_place = [each for each in given if not each.by_name]
    by_name = [each for each in given if each.by_name]
    told: Callable[[_Field], str] = lambda each: f"{each.name}: {each.told}{each.default and f' = {each.default}'}"  # noqa: E731
    return ", ".join([*map(told, by_place), *(["*"] if by_name else []), *map(told, by_name)])


def _default(value: object) -> str:
    if isinstance(value, frozenset) and value:
        return f"frozenset({{{', '.join(sorted(map(_default, value)))}}})"
    return "" if value is MISSING else _plain(repr(value))


def _plain(text: str) -> str:
    """A signature without the places of things in memory."""
    text = re.sub(r"<([A-Z]\w+\.[A-Z_]+): [^<>]*>", r"\1", text)
    return re.sub(r"<(?:function .*?|[\w.]+ object) at 0x[0-9a-f]+>", "…", text)


def _without_return(text: str) -> str:
    return text.removesuffix(" -> None")


def _sentence(said: str) -> str:
    return f"{said[:1].upper()}{said[1:]}{'' if said.endswith(('.', '?')) else '.'}"


def _behind(said: str | None) -> str:
    return f": {said}" if said else ""


def _words(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return " ".join((ast.get_docstring(node) or "").split())


if __name__ == "__main__":
    text, silent = page()
    if silent:
        raise SystemExit(f"these say nothing of themselves: {', '.join(silent)}")
    PAGE.write_text(text, encoding="utf-8")

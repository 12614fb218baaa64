"""The shape of the package, as docs/design.md draws it: who imports whom, who touches the world, how long things are.

A new room gets a line in ROOMS. An exception gets a line with its reason; a limit on length has none.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

import anima
from anima import Home

PACKAGE = Path(anima.__file__).parent

# A room, and the rooms it may import from. Every import counts: at a module's top, inside a function, and for types.
# Rooms on one line of the design never import one another; `home` alone knows them all.
GROUND = {"errors", "model", "config", "text"}
LOWER = GROUND | {"layout", "ledger"}
DAILY = LOWER | {"store", "gate", "site"}
HOME = DAILY | {"memory", "prompt", "search", "sessions", "dream", "forget", "backup", "upkeep", "home"}
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "model": {"errors"},
    "config": {"errors", "model", "text"},
    "text": {"errors", "model"},
    "layout": GROUND,
    "ledger": GROUND,
    "store": GROUND | {"ledger"},
    "gate": GROUND | {"layout"},
    "site": LOWER | {"store"},
    "memory": DAILY,
    "prompt": DAILY,
    "search": LOWER | {"store", "site"},
    "sessions": DAILY | {"memory", "prompt", "search"},
    "dream": DAILY | {"memory"},
    "forget": DAILY | {"memory"},
    "backup": DAILY | {"memory"},
    "upkeep": DAILY | {"memory", "search"},
    "home": HOME,
    "compat": HOME,
    "aio": {"home"},
    "agent": GROUND | {"layout", "store", "memory", "prompt", "sessions", "dream", "home"},
    "connect": GROUND | {"layout", "search", "home", "agent"},
    "mcp": {"errors", "model", "text", "home", "agent"},
    "web": {"errors", "model", "text", "home", "agent", "connect"},
    "cli": {"errors", "model", "home", "agent", "connect", "web", "mcp"},
    "__main__": {"cli", "connect"},
    "testing": HOME | {"connect"},
}
DOORS = ("cli", "web", "mcp", "connect")
# Imports that the table forbids and that still stand: module, then room. This list may only become shorter.
STILL: dict[str, str] = {}

# What asks the world for time, chance, the environment or a secret; and who may, with the reason.
WORLDLY = (
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
    "uuid.uuid1",
    "uuid.uuid4",
    "os.getenv",
    "os.urandom",
    "secrets.token_bytes",
    "secrets.token_hex",
    "secrets.token_urlsafe",
    "secrets.choice",
    "secrets.randbelow",
    "random.",
)
MAY_ASK_THE_WORLD = {
    "home/": "the one place where clock, dice and environment come in",
    "cli/": "a face: it runs in somebody's shell",
    "web/tokens.py": "tokens and one-time codes must not be guessable",
    "connect/hook.py": "a host starts it",
    "connect/settle.py": "a process of its own, or what a host starts where a home must be opened for it",
    "testing/": "dice for tests",
    "store/": "a key and the name of a temporary file must not be guessable, not even in a test",
}

# What opens a file; and who may outside store/, with the reason.
OPENERS = {"read_text", "read_bytes", "write_text", "write_bytes"}
MAY_OPEN_FILES = {
    "__init__.py": "its own stub, which says what is public",
    "store/": "the one package that opens the files of a home",
    "testing/postgres.py": "a server's own folder, in which no home stands",
    "testing/store_contract.py": "a derived file, where a store says it may stand",
    "layout/trust.py": "the user's own list of homes, which lies outside every home",
    "layout/__init__.py": "documents that come with the package",
    "text/__init__.py": "tables that come with the package",
    "text/pages.py": "a table that comes with the package",
    "search/embed/": "weights of models, which lie outside every home",
    "search/tables.py": "derived indexes, which may be deleted; never a document",
    "web/tokens.py": "the tokens of a served home, in the user's own configuration",
    "agent/models.py": "which model answers, and keys, in the user's own configuration",
    "connect/": "hosts' own files and transcripts, and what hooks report, in the user's own configuration; never a document",
    "cli/show.py": "tables that come with the package",
    "cli/__init__.py": "the null device, when a pipe is closed or a shell asks what comes next",
}

SUFFIXES = (
    "Manager",
    "Service",
    "Handler",
    "Helper",
    "Helpers",
    "Runner",
    "Provider",
    "Factory",
    "Util",
    "Utils",
    "Base",
)
MAX_FUNCTION, MAX_MODULE = 61, 600


@dataclass(frozen=True, eq=False)
class Module:
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"))

    @cached_property
    def lines(self) -> int:
        return self.path.read_text(encoding="utf-8").count("\n")

    @property
    def place(self) -> str:
        return self.path.relative_to(PACKAGE).as_posix()

    @property
    def name(self) -> str:
        """Its place on a floor: the module, or the package it belongs to; empty for the package's own front."""
        first = self.place.partition("/")[0].removesuffix(".py")
        return "" if first == "__init__" else first


@cache
def modules() -> tuple[Module, ...]:
    return tuple(Module(path) for path in sorted(PACKAGE.rglob("*.py")))


EACH = pytest.mark.parametrize("module", modules(), ids=lambda module: module.place)


def _only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


@cache
def nodes(module: Module) -> tuple[ast.AST, ...]:
    """Every node of a module, except what is there for the type checker alone."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = [module.tree]
    while waiting:
        found.append(node := waiting.pop())
        waiting += [child for child in ast.iter_child_nodes(node) if not _only_for_types(child)]
    return tuple(found)


def imports(module: Module) -> Iterator[str]:
    """The modules of ours that a module imports, at its top, inside a function or for types, without `anima.`"""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.place}:{node.lineno} imports relatively"
            own = [anima._WHERE.get(alias.name, f"anima.{alias.name}") for alias in node.names]
            names = own if node.module == "anima" else [str(node.module)]
        else:
            continue
        for name in names:
            if name.startswith("anima.") and name != "anima.__version__":
                yield name.removeprefix("anima.")


def public(module: Module) -> set[str]:
    """The rooms whose values a door takes from `anima` itself, which is how it should."""
    return {
        anima._WHERE[alias.name].split(".")[1]
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module == "anima"
        for alias in node.names
        if alias.name in anima._WHERE
    }


def allowed(place: str, table: dict[str, str]) -> bool:
    return any(place == entry or (entry.endswith("/") and place.startswith(entry)) for entry in table)


# -- rooms -----------------------------------------------------------------------------------------------------------------


def forbidden(module: Module) -> set[str]:
    """The rooms a module imports from although the table does not let it."""
    if not module.name:
        return set()  # the package's own front shows what is below
    return {
        name.split(".")[0]
        for node in ast.walk(module.tree)
        for name in _named(node)
        if name.split(".")[0] not in ROOMS[module.name] | {module.name}
    }


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name.removeprefix("anima.") for alias in node.names if alias.name.startswith("anima."))
    elif isinstance(node, ast.ImportFrom) and node.module == "anima":  # a public name is anybody's above the rooms
        yield from (alias.name for alias in node.names if alias.name not in anima.__all__)
    elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("anima."):
        yield str(node.module).removeprefix("anima.")


def test_every_module_stands_in_a_room() -> None:
    homeless = {module.name for module in modules()} - set(ROOMS) - {""}

    assert not homeless, f"give {sorted(homeless)} a room in ROOMS, and a line in docs/design.md"


@EACH
def test_a_room_imports_only_what_its_line_allows(module: Module) -> None:
    assert forbidden(module) == set(STILL.get(module.place, "").split())


def test_below_the_doors_nobody_takes_names_from_the_front() -> None:
    taken = [module.place for module in modules() if module.name not in (*DOORS, "testing", "") and public(module)]

    assert not taken


def test_the_walk_sees_the_imports_it_is_about() -> None:
    seen = {module.place: set(imports(module)) for module in modules()}

    assert {"errors", "model"} <= seen["store/folder.py"]
    assert "home" in seen["cli/home.py"] or "home" in seen["cli/show.py"]


# -- the world ---------------------------------------------------------------------------------------------------------------


def _asks(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.environb"):
        return ast.unparse(node)
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        if ".".join(called.split(".")[-2:]).startswith(WORLDLY):
            return called
    return None


@EACH
def test_nothing_but_home_and_the_faces_asks_the_world(module: Module) -> None:
    asked = [f"{module.place}:{node.lineno} {what}" for node in nodes(module) if (what := _asks(node))]  # type: ignore[attr-defined]

    assert not asked or allowed(module.place, MAY_ASK_THE_WORLD), asked


def _opens(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    called = ast.unparse(node.func)
    if called in ("open", "os.open", "io.open", "sqlite3.connect") or called.rpartition(".")[2] in OPENERS:
        return called
    modes = [a.value for a in node.args[:1] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if called.endswith(".open") and modes and set(modes[0]) <= set("rwxabt+"):
        return called
    return None


@EACH
def test_nothing_but_the_store_opens_files_of_a_home(module: Module) -> None:
    opened = [f"{module.place}:{node.lineno} {what}" for node in nodes(module) if (what := _opens(node))]  # type: ignore[attr-defined]

    assert not opened or allowed(module.place, MAY_OPEN_FILES), opened


@pytest.mark.parametrize("table", [MAY_ASK_THE_WORLD, MAY_OPEN_FILES], ids=["world", "files"])
def test_every_exception_is_still_needed(table: dict[str, str]) -> None:
    look = _asks if table is MAY_ASK_THE_WORLD else _opens
    used = {
        entry
        for entry in table
        for module in modules()
        if allowed(module.place, {entry: ""}) and any(look(node) for node in nodes(module))
    }

    assert used == set(table)
    assert all(table.values())


@EACH
def test_nobody_prints_or_sleeps_below_the_faces(module: Module) -> None:
    if module.name in DOORS:
        return
    called = {ast.unparse(node.func) for node in nodes(module) if isinstance(node, ast.Call)}

    assert not called & {"print", "sys.exit", "input"}


# -- lengths and names -------------------------------------------------------------------------------------------------------


@EACH
def test_a_module_says_what_it_promises_and_is_not_too_long(module: Module) -> None:
    assert module.lines <= MAX_MODULE, f"{module.place} has {module.lines} lines"
    assert ast.get_docstring(module.tree) or module.lines <= 2, f"{module.place} says nothing of itself"


@EACH
def test_no_function_is_longer_than_a_screen(module: Module) -> None:
    long = [
        f"{module.place}:{node.lineno} {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in nodes(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION
    ]

    assert not long, long


@EACH
def test_a_class_is_a_noun_and_a_module_is_no_drawer(module: Module) -> None:
    names = [node.name for node in nodes(module) if isinstance(node, ast.ClassDef)]
    theirs = {"WorkspaceManager"} if module.place == "compat.py" else set()  # the name is what compat is for
    drawers = [name for name in names if name.endswith(SUFFIXES) and name not in theirs]

    assert not drawers, drawers
    assert not module.path.stem.casefold().endswith(tuple(suffix.casefold() for suffix in SUFFIXES[:-1]))
    assert module.path.stem not in ("common", "misc", "core", "base")


# -- scope -------------------------------------------------------------------------------------------------------------------


@EACH
def test_a_scope_is_always_said_and_never_assumed(module: Module) -> None:
    if module.name == "cli":
        return  # on the owner's own command line the listener is the owner, unless said otherwise
    for node in nodes(module):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        given = node.args
        needed = {argument.arg for argument in given.args[: len(given.args) - len(given.defaults)]}
        needed |= {
            name.arg for name, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None
        }
        taken = {argument.arg for argument in (*given.args, *given.kwonlyargs)}
        assert "scope" not in taken - needed, f"{module.place}:{node.lineno} {node.name} assumes a scope"


@pytest.mark.parametrize("verb", ["prompt", "listener", "search", "session"])
def test_every_verb_that_gives_text_to_a_model_must_be_told_who_listens(verb: str) -> None:
    if not hasattr(Home, verb):
        pytest.skip(f"there is no {verb} yet")
    scope = inspect.signature(getattr(Home, verb)).parameters["scope"]

    assert scope.kind is inspect.Parameter.KEYWORD_ONLY
    assert scope.default is inspect.Parameter.empty

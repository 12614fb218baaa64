"""The shape of the source in figures, each beside its target: `make shape`.

Promise: everything is read from the source tree and nothing of it is imported, so the figures of any tree can be had.
Lines are those the formatter writes when nothing is kept from it; a stub (`.pyi`) counts as a part of its module. An import
counts wherever it stands: at the top of a module, in a function, or for types alone; only those of the package's own front
are left out, which shows what is below it. `testing` and data files are counted apart. Not here: what a figure may be today
(test_shape), and the rules that are held line by line (test_architecture).
"""

from __future__ import annotations

import argparse
import ast
import gc
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/anima"

TOP, TESTING, DATA = "(top)", "testing", "(data)"
SPINE = {TOP, "home", "text", "layout", "ledger", "store", "gate", "memory", "prompt"}
ABOVE_HOME = {"home", "compat", "aio", "agent", "connect", "cli", "web", "mcp", TESTING}
LONGEST_MODULE = 600
DRAWN = {".html", ".css", ".js", ".md", ".toml", ".txt", ".json", ".svg", ".yaml", ".sql"}  # data with lines
LOOKED_AT = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Attribute,
    ast.Expr,
    ast.Constant,
)
STATS = {"stat", "fstat", "lstat", "stat_result"}

_KEPT = re.compile(r"#[ \t]*fmt:[ \t]*(skip|off|on)(?=[ \t]*(?:#|$))", re.MULTILINE)
_MACHINE = re.compile(r"(?<![\w.])\.anima\b(?!-)")  # `.anima-export.json` is a file of an export


@dataclass(frozen=True, eq=False)
class Source:
    """One module: its name without the package's (`store.folder`), what is looked at in it, and its formatted lines."""

    place: str
    name: str
    nodes: tuple[ast.AST, ...]
    lines: int

    @property
    def room(self) -> str:
        """The package it is in, or its own name at the top; empty for the front of the package."""
        return self.name.partition(".")[0]

    @property
    def package(self) -> str:
        return self.room if "/" in self.place or self.room == TESTING else TOP


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number, the most it should be, and where the things are that it counts."""

    name: str
    value: int
    most: int
    places: tuple[str, ...] = ()


# -- reading ---------------------------------------------------------------------------------------------------------


def sources(package: Path = PACKAGE) -> tuple[Source, ...]:
    """Every module of a tree."""
    texts = {path.relative_to(package).as_posix(): path.read_text("utf-8") for path in sorted(package.rglob("*.py"))}
    for stub in sorted(package.rglob("*.pyi")):  # a part of its module, in lines and in imports
        texts[stub.with_suffix(".py").relative_to(package).as_posix()] += stub.read_text("utf-8")
    lengths = as_formatted(texts)
    return tuple(Source(place, _name(place), _nodes(text), lengths[place]) for place, text in texts.items())


def _nodes(text: str) -> tuple[ast.AST, ...]:
    return tuple(node for node in ast.walk(ast.parse(text)) if isinstance(node, LOOKED_AT))


def _name(place: str) -> str:
    return place.removesuffix(".py").removesuffix("__init__").rstrip("/").replace("/", ".")


def as_formatted(texts: Mapping[str, str]) -> dict[str, int]:
    """How many lines each text has once the formatter has had all of it."""
    with tempfile.TemporaryDirectory(prefix="anima-shape-") as folder:
        for place, text in texts.items():
            path = Path(folder, place)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_KEPT.sub("", text), "utf-8")
        command = [
            sys.executable,
            "-m",
            "ruff",
            "format",
            "--quiet",
            "--no-cache",
            "--config",
            str(ROOT / "pyproject.toml"),
        ]
        subprocess.run([*command, folder], check=True)
        return {place: Path(folder, place).read_text("utf-8").count("\n") for place in texts}


def data_of(package: Path = PACKAGE) -> tuple[Path, ...]:
    """Files that come with the package and are text, but no Python."""
    return tuple(path for path in sorted(package.rglob("*")) if path.suffix in DRAWN and path.is_file())


# -- who imports whom ------------------------------------------------------------------------------------------------


def graph_of(modules: Iterable[Source]) -> dict[str, set[str]]:
    """For each module those it imports, anywhere in it. A name of the front leads to the module it comes from."""
    named = {source.name: source for source in modules}
    front = dict(_names_of_front(named[""])) if "" in named else {}
    graph = {}
    for name, source in named.items():
        asked = {_resolved(target, named, front) for target in _asked(source)} if name else set()
        graph[name] = asked - {name}
    return graph


def _names_of_front(front: Source) -> Iterator[tuple[str, str]]:
    for node in front.nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("anima."):
            yield from ((alias.asname or alias.name, str(node.module).removeprefix("anima.")) for alias in node.names)


def _asked(source: Source) -> Iterator[str]:
    """Every dotted name of ours that a module imports, without the package's own name."""
    for node in source.nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _base(source, node)
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.removeprefix("anima.") for name in names if name.startswith("anima."))


def _base(source: Source, node: ast.ImportFrom) -> str:
    if not node.level:
        return str(node.module)
    inside = ["anima", *source.name.split(".")] if source.name else ["anima"]
    kept = inside[: len(inside) - node.level + source.place.endswith("__init__.py")]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _resolved(target: str, named: Mapping[str, Source], front: Mapping[str, str]) -> str:
    """The module that a dotted name leads to: itself, or the nearest above it that exists."""
    if target in front and target not in named:
        return front[target]
    while target and target not in named:
        target = target.rpartition(".")[0]
    return target


def components(graph: Mapping[str, set[str]]) -> list[tuple[str, ...]]:
    """Modules that import one another in a circle belong together; what is imported comes first."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[tuple[str, ...]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in number:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == number[name]:
            cut = stack.index(name)
            found.append(tuple(sorted(stack[cut:])))
            del stack[cut:]

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return found


def longest_chain(graph: Mapping[str, set[str]]) -> tuple[str, ...]:
    """The longest way down, from a module to one that imports nothing of ours. A circle counts as one step."""
    best: dict[str, tuple[str, ...]] = {}
    for circle in components(graph):
        below = {other for name in circle for other in graph[name]} - set(circle)
        longest = max((best[other] for other in sorted(below)), key=len, default=())
        best |= dict.fromkeys(circle, ("|".join(circle), *longest))
    return max((best[name] for name in sorted(best)), key=len, default=())


# -- what stands where it should not ---------------------------------------------------------------------------------


def given_a_home(modules: Iterable[Source]) -> Iterator[str]:
    """The functions below `home` that take a `Home`."""
    for source in modules:
        if source.room in ABOVE_HOME or not source.name:
            continue
        for node in source.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(map(_is_home, _parameters(node))):
                yield f"{source.place}:{node.lineno} {node.name}"


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    given = node.args
    rest = [each for each in (given.vararg, given.kwarg) if each]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *rest]


def _is_home(parameter: ast.arg) -> bool:
    return parameter.annotation is not None and bool(re.search(r"\bHome\b", ast.unparse(parameter.annotation)))


def doubled_classes(modules: Iterable[Source]) -> Iterator[str]:
    """Public class names that are defined in two rooms or more."""
    rooms: dict[str, set[str]] = {}
    for source in modules:
        for node in source.nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and source.room != TESTING:
                rooms.setdefault(node.name, set()).add(source.room)
    return (f"{name}: {', '.join(sorted(where))}" for name, where in sorted(rooms.items()) if len(where) > 1)


def reaches(modules: Iterable[Source]) -> dict[str, list[str]]:
    """Where a module outside `store` uses what only the store of a folder has."""
    found: dict[str, list[str]] = {".fd": [], ".root": [], "os.stat": [], ".anima": []}
    for source in modules:
        if source.room in ("store", TESTING):
            continue
        silent = {node.value for node in source.nodes if isinstance(node, ast.Expr)}  # docstrings
        for node in source.nodes:
            if node not in silent and (kind := _reach(node)):
                found[kind].append(f"{source.place}:{node.lineno}")  # type: ignore[attr-defined]
    return found


def _reach(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id == "os":
            return "os.stat" if node.attr in STATS else None
        return f".{node.attr}" if node.attr in ("fd", "root", "anima") else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _MACHINE.search(node.value):
        return ".anima"
    return None


def kept_from_formatter(folder: Path) -> list[str]:
    """Where the formatter is told to leave something alone."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text("utf-8")
        ends = [match.end() for match in _KEPT.finditer(text) if match[1] != "on"]
        found += [f"{path.relative_to(folder).as_posix()}:{text.count(chr(10), 0, end) + 1}" for end in ends]
    return found


# -- figures ---------------------------------------------------------------------------------------------------------


def lines_by_package(modules: Iterable[Source]) -> dict[str, int]:
    """Lines of Python, package by package; modules at the top are one, and `testing` is one of them."""
    counted: Counter[str] = Counter()
    for source in modules:
        counted[source.package] += source.lines
    return dict(sorted(counted.items()))


def figures(modules: tuple[Source, ...]) -> list[Figure]:
    lines, graph = lines_by_package(modules), graph_of(modules)
    own = [source for source in modules if source.package != TESTING]
    top = [source.place for source in modules if "/" not in source.place]
    long = [f"{source.place} {source.lines}" for source in own if source.lines > LONGEST_MODULE]
    circles = sorted(
        (circle for circle in components(graph) if len(circle) > 1), key=lambda circle: (-len(circle), circle)
    )
    chain, homes, twice = longest_chain(graph), list(given_a_home(modules)), list(doubled_classes(modules))
    spine = sum(count for package, count in lines.items() if package in SPINE)
    return [
        Figure(name="lines of Python", value=sum(lines.values()) - lines.get(TESTING, 0), most=40_000),
        Figure(name="lines of the spine", value=spine, most=15_000),
        Figure(name="modules", value=len(own), most=170),
        Figure(name="modules at the top", value=len(top), most=8, places=tuple(top)),
        Figure(name=f"modules over {LONGEST_MODULE} lines", value=len(long), most=0, places=tuple(long)),
        Figure(name="circles of imports", value=len(circles), most=0, places=tuple(" ".join(each) for each in circles)),
        Figure(name="modules in circles", value=sum(map(len, circles)), most=0),
        Figure(name="longest chain of imports", value=len(chain), most=14, places=chain),
        Figure(name="functions below home that take a Home", value=len(homes), most=0, places=tuple(homes)),
        Figure(name="public class names in two rooms", value=len(twice), most=0, places=tuple(twice)),
        *(
            Figure(name=f"{kind} outside store", value=len(where), most=0, places=tuple(where))
            for kind, where in reaches(modules).items()
        ),
    ]


def exceptions() -> list[Figure]:
    found = {name: kept_from_formatter(ROOT / name) for name in ("src", "tests", "benchmarks")}
    return [
        Figure(name=f"kept from the formatter in {name}", value=len(places), most=0, places=tuple(places))
        for name, places in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="also say where each thing is that is counted")
    parser.add_argument("--package", type=Path, default=PACKAGE, help="another tree, such as that of another branch")
    asked = parser.parse_args()
    gc.disable()  # syntax trees are many small things that all stay; to look for waste among them doubles the time
    modules = sources(asked.package)
    for figure in [*figures(modules), *(exceptions() if asked.package == PACKAGE else ())]:
        bound, over = f"at most {figure.most:,}", "over" if figure.value > figure.most else ""
        print(f"{figure.name:42} {figure.value:8,}   {bound:16} {over}".rstrip())
        if asked.list:
            print(*(f"    {place}\n" for place in figure.places), sep="", end="")
    print()
    files = Counter(source.package for source in modules)
    for package, count in lines_by_package(modules).items():
        kind = "apart" if package == TESTING else "spine" if package in SPINE else ""
        print(f"{package:12} {files[package]:4} modules {count:8,} lines  {kind}".rstrip())
    data = data_of(asked.package)
    print(f"{DATA:12} {len(data):4} files   {sum(path.read_bytes().count(10) for path in data):8,} lines  apart")


if __name__ == "__main__":
    main()

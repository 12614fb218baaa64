"""No writer goes round the gate: the package is walked, and only the store touches files, only under a Verdict."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import anima
from anima import Home
from anima.errors import Refused
from anima.model import Actor, Answer, Change, DocPath, Kind, Origin, Verdict
from anima.store import Batch

PACKAGE = Path(anima.__file__).parent


@cache
def modules() -> dict[str, ast.Module]:
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}


# Modules outside the store that change files, with the calls they make, and why no document of a home is among them.
EXCEPTIONS = {
    "web/tokens.py": (
        {"self.folder.mkdir", "os.open", "os.truncate", "os.write"},
        "tokens of a served home and where it is served, in the user's own configuration",
    ),
    "layout/trust.py": (
        {
            *("lock.parent.mkdir", "open", "os.open", "temp.replace", "self.file.replace", "file.replace"),
            *("self._file.parent.mkdir", "os.pwrite", "self._file.unlink", "temp.write_text", "file.parent.mkdir"),
        },
        "the user's own list of homes, the one in use, what of it is damaged put beside it, and how far each ledger went",
    ),
    "home/folders.py": ({"?.mkdir"}, "the folder that the archives of a tenant go to, outside every home"),
    "search/tables.py": (
        {"sqlite3.connect", "os.open", "os.unlink", "os.fchmod"},
        "the indexes of documents and of transcripts: derived, can be deleted",
    ),
    "cli/__init__.py": ({"os.open", "open"}, "/dev/null, when whoever read our output is gone, or presses Tab"),
    "cli/memory.py": ({"tempfile.NamedTemporaryFile"}, "a text in the owner's editor, until it is written"),
    "cli/home.py": ({"tempfile.TemporaryDirectory"}, "a tour in a temporary home of its own"),
    "agent/models.py": (
        {"self.file.parent.mkdir"},
        "the user's models and keys, in the user's own configuration",
    ),
    "connect/connections.py": (
        {"step.path.unlink", "real.parent.mkdir", "each.unlink", "compiled.rmdir", "folder.rmdir"},
        "the configuration of the host that the owner connects, and our bundle for it",
    ),
    "connect/hook.py": ({"sqlite3.connect"}, "the index of documents, to read only"),
    "connect/__init__.py": (
        {
            *(
                "os.rename",
                "os.unlink",
                "?.unlink",
                "os.makedirs",
                "os.open",
                "open",
                "os.replace",
                "os.write",
                "os.fchmod",
            ),
        },
        "what hosts report, in the user's own configuration, and files that are put in another's place for connections",
    ),
    "testing/memory_store.py": ({"tempfile.mkdtemp"}, "a place for derived files"),
    "testing/postgres.py": (
        {
            *("subprocess.run", "subprocess.Popen", "open", "place.mkdir", "socket.mkdir", "tempfile.TemporaryFile"),
            *("file.unlink", "key.touch", "key.write_text"),
        },
        "a PostgreSQL server for tests, in a folder of its own",
    ),
    "testing/store_contract.py": ({"place.write_bytes", "place.unlink"}, "a derived file, where the store said"),
    "testing/tables.py": ({"room.replace"}, "a value in memory, and no file"),
}
CHANGING_METHODS = {
    "write_text",
    "write_bytes",
    "touch",
    "unlink",
    "rename",
    "rmdir",
    "mkdir",
    "symlink_to",
    "hardlink_to",
    "chmod",
    "lchmod",
    "writelines",
}
CHANGING_CALLS = {
    "os": {
        "rename",
        "renames",
        "replace",
        "unlink",
        "remove",
        "rmdir",
        "removedirs",
        "mkdir",
        "makedirs",
        "link",
        "symlink",
        "truncate",
        "ftruncate",
        "chmod",
        "fchmod",
        "lchmod",
        "chown",
        "fchown",
        "lchown",
        "write",
        "writev",
        "pwrite",
        "pwritev",
        "mkfifo",
        "mknod",
        "utime",
        "setxattr",
        "removexattr",
        "sendfile",
        "copy_file_range",
        "posix_fallocate",
        "open",
    },
    "shutil": {"copy", "copy2", "copyfile", "copyfileobj", "copytree", "move", "rmtree", "chown", "unpack_archive"},
    "tempfile": {"mkstemp", "mkdtemp", "TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile"},
    "sqlite3": {"connect"},
    "subprocess": {"run", "Popen", "call", "check_call", "check_output"},
}
READING_FLAGS = {"O_RDONLY", "O_DIRECTORY", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH"}


@cache
def calls(tree: ast.AST) -> tuple[ast.Call, ...]:
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Call))


def dotted(node: ast.expr) -> str:
    """`a.b.c` of an expression that is only names and attributes, else what stands at its end."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else "?"


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Local name → what it is, for `from os import rename` and `import os as system`."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in CHANGING_CALLS:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Import):
            found |= {alias.asname: alias.name for alias in node.names if alias.asname}
    return found


def only_reads(call: ast.Call) -> bool:
    """Whether an `open` says that it only reads: no mode or a reading one, no flags or reading ones."""
    name = dotted(call.func)
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if name == "os.open":
        flags = {node.attr for node in ast.walk(call) if isinstance(node, ast.Attribute) and node.attr.startswith("O_")}
        return bool(flags) and flags <= READING_FLAGS
    modes = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    if name not in ("open", "io.open"):  # a method: of a path if it is given a mode, else of something else
        return all(
            not (isinstance(m, ast.Constant) and set(str(m.value)) & set("wax+")) for m in [*call.args[:1], *modes]
        )
    modes += call.args[1:2]
    if given and isinstance(given[0], ast.Call):
        return only_reads(given[0])
    return all(
        isinstance(m, ast.Constant) and isinstance(m.value, str) and not set(m.value) & set("wax+") for m in modes
    )


@cache
def changing(tree: ast.Module) -> tuple[tuple[int, str], ...]:
    return tuple(changes(tree))


def changes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, name) of every call that may change a file."""
    local = imported_names(tree)
    for call in calls(tree):
        name = dotted(call.func)
        head, _, rest = name.partition(".")
        name = local.get(name) or (f"{local[head]}.{rest}" if head in local else name)
        module, _, function = name.rpartition(".")
        if function == "open":
            if not only_reads(call):
                yield call.lineno, name
        elif function in CHANGING_CALLS.get(module, ()) or (module and function in CHANGING_METHODS):
            yield call.lineno, name
        elif module and function == "replace" and len(call.args) == 1 and not call.keywords:
            yield call.lineno, name  # Path.replace takes one argument, str.replace two


def is_store(module: str) -> bool:
    return module.startswith("store/")


def excepted(module: str) -> set[str]:
    return EXCEPTIONS[module][0] if module in EXCEPTIONS else set()


def test_only_the_store_changes_files() -> None:
    found = {
        f"{module}:{line} {name}"
        for module, tree in modules().items()
        for line, name in changing(tree)
        if not is_store(module) and name not in excepted(module)
    }
    assert not found


def test_every_exception_is_still_needed() -> None:
    made = {module: {name for _, name in changing(tree)} for module, tree in modules().items()}
    assert {module: excepted(module) - made.get(module, set()) for module in EXCEPTIONS} == {
        m: set() for m in EXCEPTIONS
    }


@pytest.mark.parametrize(
    "source",
    [
        "open(path, 'w')",
        "open(path, mode='ab')",
        "open(path, mode)",
        "path.open('x')",
        "path.write_text('x')",
        "os.open(p, os.O_WRONLY)",
        "os.open(p, os.O_RDWR | os.O_CREAT)",
        "os.open(p, flags)",
        "os.rename(a, b)",
        "Path(a).replace(b)",
        "from os import unlink\nunlink(a)",
        "import os as o\no.remove(a)",
        "shutil.rmtree(a)",
        "open(os.open(p, os.O_WRONLY), 'rb')",
        "import subprocess\nsubprocess.run(['rm'])",
        "io.open(p, 'r+')",
    ],
)
def test_the_walk_sees_every_way_to_write(source: str) -> None:
    assert changing(ast.parse(source))


@pytest.mark.parametrize(
    "source",
    [
        "open(path)",
        "open(path, 'rb')",
        "path.open()",
        "os.open(p, os.O_RDONLY | os.O_DIRECTORY)",
        "Home.open(p)",
        "text.replace('a', 'b')",
        "moment.replace(tzinfo=UTC)",
        "dataclasses.replace(x, y=1)",
        "path.read_text()",
    ],
)
def test_the_walk_lets_reading_pass(source: str) -> None:
    assert not changing(ast.parse(source))


def methods_called(name: str) -> set[str]:
    """The modules in which a method of this name is called."""
    return {
        module
        for module, tree in modules().items()
        for call in calls(tree)
        if isinstance(call.func, ast.Attribute) and call.func.attr == name
    }


def test_documents_are_staged_and_carried_out_only_on_the_road_and_in_recovery() -> None:
    assert methods_called("carry_out") == {"memory/write.py", "store/place.py"}
    for name in ("_planned", "_append", "_finish", "cut_back"):
        assert methods_called(name) == {"store/batch.py"}
    assert methods_called("recover") == {"store/place.py", "store/check.py", "store/batch.py"}


def test_the_machines_own_files_are_touched_only_by_those_who_keep_them() -> None:
    """What can put a text in another place than `.anima/` is used by the store alone."""
    users = {
        module
        for module, tree in modules().items()
        for call in calls(tree)
        if isinstance(call.func, ast.Attribute)
        and dotted(call.func.value).rpartition(".")[2].strip("_") in ("machine", "Machine")
        and call.func.attr in ("stage", "move", "unlink", "own", "unstage")
    }
    assert {module for module in users if not is_store(module)} == set()


def test_the_store_makes_a_document_without_a_verdict_only_for_a_new_homes_configuration() -> None:
    makers = {
        (module, dotted(call.func))
        for module, tree in modules().items()
        for call in calls(tree)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "create" and "store" in dotted(call.func.value)
    }
    assert {module for module, _ in makers} <= {"home/opening.py", "home/__init__.py"}


def function(module: str, name: str) -> ast.FunctionDef:
    found = [node for node in ast.walk(modules()[module]) if isinstance(node, ast.FunctionDef) and node.name == name]
    assert len(found) == 1, f"{module} has {len(found)} functions {name}"
    return found[0]


def test_the_road_carries_out_only_what_the_gate_has_judged() -> None:
    """`submit` is the only caller of `carry_out`, and hands it the verdict that `judge` gave."""
    road = ast.unparse(function("memory/write.py", "submit"))
    assert "judged = self.judge(" in road
    assert "self.carry_out(changes, judged, what=what, of=of" in road
    outside = [
        node.name
        for node in ast.walk(modules()["memory/write.py"])
        if isinstance(node, ast.FunctionDef) and "self.carry_out(" in ast.unparse(node) and node.name != "submit"
    ]
    assert sorted(outside) == ["_noted", "configure"]
    assert "return self._noted(changes, judged," in road
    # The owner's own settings, which no tool reaches: one file, and whoever calls is the owner's hand.
    assert "DocPath.parse(FILE), self.site, self.site.text_of(DocPath.parse(FILE))" in ast.unparse(
        function("memory/write.py", "configure")
    )
    assert {m for m, tree in modules().items() for call in calls(tree) if dotted(call.func).endswith(".configure")} == {
        "home/__init__.py",
        "web/api.py",
        "cli/agent.py",
    }
    assert any(dotted(call.func) == "judge" for call in calls(function("memory/write.py", "judge")))
    assert any(dotted(call.func) == "scan_added" for call in calls(function("memory/write.py", "judge")))


def test_nobody_but_the_gate_says_allow() -> None:
    """A verdict that allows is made by the gate alone: recovery goes by what the ledger says was allowed."""
    makers = {
        module
        for module, tree in modules().items()
        for call in calls(tree)
        if dotted(call.func).rpartition(".")[2] == "Verdict" and "ALLOW" in ast.unparse(call)
    }
    assert {module.partition("/")[0] for module in makers} == {"gate", "testing"}


@pytest.mark.parametrize("answer", [Answer.ASK, Answer.DENY])
def test_the_store_does_nothing_without_an_allowing_verdict(tmp_path: Path, answer: Answer) -> None:
    with Home.create(tmp_path / "h", env={"ANIMA_CONFIG": str(tmp_path / "c")}) as home:
        path = DocPath.parse("notes/x.md")
        change = Change(path=path, kind=Kind.WRITE, text="text\n", actor=Actor.OWNER, origin=Origin.OWNER)
        verdict = Verdict(answer=answer, rule="r", reason="because")
        with pytest.raises(Refused):
            home.site.store.write(Batch(changes=(change,), verdict=verdict))
        with pytest.raises(Refused):
            home.site.store.bring(DocPath.parse("notes/x.png"), [b"x"], verdict, mode=0o600)
        assert not home.exists("notes/x.md")

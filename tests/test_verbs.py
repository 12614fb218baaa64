"""What the verbs of a home take: whoever hands over something else is told so in a sentence, and nothing is done."""

from __future__ import annotations

import inspect
import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import anima
from anima import BadArguments, DocPath, Home, HomeError, Runtime, compat
from anima.home import part
from anima.testing import Clock

PARTS = [name for name, value in vars(Home).items() if isinstance(value, part) and not name.startswith("_")]
OWNERS = ["Home", "session", *PARTS]
WRONG = [5, -2.5, True, "x", "", b"x", ["x", 5], {"x": 5}, {5: "x"}, object()]
WRONG += ["\0", "\ud800", "x" * 5_000, 10**30]


@pytest.fixture
def home(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.chdir(tmp_path)
    with Home.create(tmp_path / "home", name="Aria", clock=clock) as home:
        yield home


def owner_of(home: Home, name: str) -> Any:
    if name == "session":
        return home.session(scope="main", channel="terminal")
    return home if name == "Home" else getattr(home, name)


def verbs_of(owner: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Public verbs; those that end what the others are asked of come last."""
    kind = type(owner)
    names = [name for name in dir(kind) if not name.startswith("_")]
    for name in sorted(names, key=lambda name: name in ("close", "leave")):
        found = inspect.getattr_static(kind, name)
        if isinstance(getattr(found, "__func__", found), FunctionType):
            yield name, getattr(owner, name)


def good_values(home: Home) -> dict[str, Any]:
    """Something that an argument of the name takes, as far as "x" is not."""
    values = {"scope": "main", "path": "MEMORY.md", "listener": home.site.listener("main"), "runtime": Runtime()}
    values |= {"document": home.read("MEMORY.md"), "kind": "move", "role": "user", "line": 1, "number": 0, "tokens": 1}
    return values | {"depth": 1, "dry_run": True, "paths": [DocPath.parse("MEMORY.md")], "at": "2026-05-08"}


@pytest.mark.parametrize("name", OWNERS)
def test_no_verb_answers_a_wrong_argument_with_an_error_of_pythons_own(home: Home, name: str) -> None:
    owner, good, bare = owner_of(home, name), good_values(home), []
    for verb, does in verbs_of(owner):
        parameters = [each for each in inspect.signature(does).parameters.values() if each.kind is not each.VAR_KEYWORD]
        needed = [
            each.name for each in parameters if each.default is each.empty and each.kind is not each.VAR_POSITIONAL
        ]
        for each, value in product(parameters, WRONG):
            given = {key: good.get(key, "x") for key in needed if key != each.name}
            try:
                does(value) if each.kind is each.VAR_POSITIONAL else does(**given, **{each.name: value})
            except HomeError as error:
                assert str(error)
            except Exception as error:
                bare.append(f"{name}.{verb}({each.name}={value!r}): {error!r}")
    assert bare == []


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (lambda home: home.remember(5), "Home.remember: fact takes str, not 5 (int)"),
        (lambda home: home.search("x", scope="main", limit="3"), "Home.search: limit takes int, not '3' (str)"),
        (lambda home: home.search("x", scope="main", mmr="3"), "Home.search: mmr takes float | None, not '3' (str)"),
        (lambda home: home.search("x", scope="main", limit=True), "Home.search: limit takes int, not True (bool)"),
        (lambda home: home.search("x", scope="main", limit=0), "Home.search: limit is 1 or more, not 0"),
        (lambda home: home.search("x", scope="main", per_source=-1), "Home.search: per_source is 1 or more, not -1"),
        (lambda home: home.search("x", scope="main", min_score=float("nan")), "min_score takes float, not nan (float)"),
        (
            lambda home: home.search("x", scope="main", kinds=["memory"]),
            "there is no kind 'memory' of documents; there are bank",
        ),
        (lambda home: home.past.log(limit=-1), "Past.log: limit is 1 or more, not -1"),
        (lambda home: home.sessions.read("x", limit=-1), "limit is 1 or more, not -1"),
        (lambda home: home.upkeep.numbers(days=-4), "Upkeep.numbers: days is 0 or more, not -4"),
        (lambda home: home.session(scope="main").pressure(-5), "Session.pressure: tokens is 0 or more, not -5"),
        (lambda home: home.session(scope="main").after_compaction(kept=-3), "kept is 0 or more, not -3"),
        (
            lambda home: home.session(scope="main").change("burn", "x.md"),
            "there is no kind 'burn'; the kinds are write",
        ),
        (lambda home: home.session(scope="main").change("write", "MEMORY.md"), "change moves a document"),
        (lambda home: home.session(scope="main").change("delete", "MEMORY.md", to="a.md"), "change moves a document"),
        (lambda home: home.index(rebuild="no"), "rebuild takes bool, not 'no' (str)"),
        (lambda home: home.prompts.prompt("main", runtime=None), "prompt: listener takes Listener, not 'main'"),
        (lambda home: home.edit("MEMORY.md", "", "x"), "the text to replace is empty; say which one"),
        (lambda home: home.session(scope="main", sender=3), "Home.session: sender takes str | None, not 3 (int)"),
        (lambda home: home.inbox.keep(["a"]), "Inbox.keep: names takes str, not list"),
        (lambda home: home.forget(text=["a", 5]), "text takes str | Sequence[str] | None, not list"),
        (lambda home: Home("aria"), "a home is opened with Home.open(path), or made with Home.create(path)"),
        (lambda home: home.export(io.StringIO(), format="jsonl"), "target takes str | Path | IO[bytes], not StringIO"),
        (lambda home: Home.open(home.name, embedder="m"), "Home.open: embedder takes Embedder | None, not 'm' (str)"),
        (lambda home: Home.open(5), "Home.open: path takes str | Path | Overlay | None, not 5 (int)"),
        (lambda home: home.session(scope="main").log("user", {"text": "hi"}), "content takes str, not dict"),
    ],
)
def test_a_wrong_argument_is_named_with_what_it_takes(home: Home, does: Callable[[Any], object], said: str) -> None:
    before = home.read("MEMORY.md")
    with pytest.raises(BadArguments) as error:
        does(home)
    assert said in str(error.value) and home.read("MEMORY.md") == before


def test_missing_and_unknown_arguments_are_told_by_python_and_signatures_stay(home: Home) -> None:
    with pytest.raises(TypeError, match=r"Home.prompt\(\) missing 1 required keyword-only argument: 'scope'"):
        home.prompt()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Home.remember\(\) takes 2 positional arguments but 3 were given"):
        home.remember("a", 5)  # type: ignore[misc]
    assert str(inspect.signature(Home.note)) == "(self, content: 'str', *, reason: 'str' = '') -> 'Receipt'"
    assert (Home.note.__doc__ or "").startswith("One line more")


def test_kinds_of_a_search_may_come_in_any_collection(home: Home) -> None:
    home.remember("Ana likes green tea")
    home.note("Ana drank green tea")
    for kinds in (["curated"], {"curated"}, ("curated",), frozenset({"curated"})):
        assert {hit.kind for hit in home.search("green tea", scope="main", kinds=kinds)} == {"curated"}


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (lambda: anima.verify_archive(1), "verify_archive: path takes str | Path, not 1 (int)"),
        (lambda: anima.verify_archive(True), "verify_archive: path takes str | Path, not True (bool)"),
        (lambda: anima.doctor(None), "doctor: path takes str | Path, not NoneType"),
        (lambda: anima.doctor("p", env=5), "doctor: env takes"),
        (lambda: anima.restore("a", None), "restore: path takes str | Path, not NoneType"),
        (lambda: anima.overlay("a", "b", routes=5), "overlay: routes takes"),
        (lambda: anima.lines_of(None), "lines_of: text takes str, not NoneType"),
        (lambda: anima.sections(5), "sections: text takes str, not 5 (int)"),
        (lambda: anima.unified(None, "x"), "unified: "),
        (lambda: anima.time_of(None), "time_of: "),
        (lambda: anima.front_matter_end(5), "front_matter_end: "),
        (lambda: anima.highlight(5, "x"), "highlight: "),
        (lambda: anima.chunk_document(None), "chunk_document: "),
    ],
)
def test_the_functions_of_anima_look_at_what_they_are_given(does: Callable[[], object], said: str) -> None:
    with pytest.raises(BadArguments) as error:
        does()
    assert said in str(error.value)


def test_the_functions_of_anima_can_be_sent_to_another_process() -> None:
    names = [name for name in anima.__all__ if isinstance(getattr(anima, name), FunctionType)]

    assert {"doctor", "lines_of", "restore", "verify_archive"} <= set(names)
    for function in [getattr(anima, name) for name in names]:
        assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (
            lambda home: compat.append_memory(None, "x"),
            "Home.remember is asked of a Home that is open, not of NoneType",
        ),
        (lambda home: Home.remember("x"), "Home.remember is asked of a Home that is open, not of 'x' (str)"),
        (lambda home: compat.search_with_config(home, "x", "y", scope="main"), "config takes SearchConfig, not 'y'"),
        (lambda home: compat.SearchConfig().with_limit("x"), "SearchConfig.with_limit: limit takes int, not 'x'"),
        (lambda home: compat.new_with_db(5, "file:x.db"), "new_with_db: user_id takes str, not 5 (int)"),
        (lambda home: compat.import_from_directory("h", "x"), "import_from_directory: home takes Home, not 'h'"),
        (lambda home: compat.system_prompt_for_context(home, is_group_chat="no"), "is_group_chat takes bool"),
        (lambda home: compat.chunk_document(b"x"), "chunk_document: text takes str, not bytes"),
        (lambda home: compat.WorkspaceManager(5), "workspace takes str | Path, not 5 (int)"),
        (lambda home: compat.WorkspaceManager(Path(home.name)).list_knowledge_files(5), "list_knowledge_files"),
    ],
)
def test_the_names_of_other_systems_look_at_what_they_are_given(
    home: Home, does: Callable[[Home], object], said: str
) -> None:
    with pytest.raises((BadArguments, TypeError)) as error:
        does(home)
    assert said in str(error.value)


def test_a_closed_home_says_so_whatever_it_is_asked(home: Home) -> None:
    past, session = home.past, home.session(scope="main")
    home.close()
    asks = (
        home.settings,
        home.next_snapshot,
        home.__enter__,
        past.log,
        lambda: home.inbox.all(),
        lambda: home.inbox.seen("x"),
        lambda: past.tell(print),
        session.refresh,
        session.tools,
    )
    for asked in asks:
        with pytest.raises(BadArguments, match="this home was closed"):
            asked()
    session.close()
    home.close()


def test_a_write_during_which_its_home_is_closed_logs_no_error(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    home.search("tea", scope="main")  # from now on the index is told of writes
    home._writer.watchers.insert(0, lambda paths: home.close())
    with suppress(BadArguments):
        home.note("The mast was painted")

    assert caplog.records == []
    with Home.open(home.name) as again:
        assert [entry.path for entry in again.list("memory")] == ["memory/2026-05-08.md"]


def test_an_async_function_is_no_function_for_a_verb_that_waits_for_nobody(home: Home) -> None:
    async def model(question: str) -> str:
        return question

    complete: Any = model
    with pytest.raises(BadArguments, match=r"complete takes .*, not an async function \(anima.aio takes it\)"):
        home.session(scope="main", channel="terminal", complete=complete)

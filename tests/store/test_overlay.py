"""Two layers as one home: what is read from where, what stays gone, and that nobody is ever shown a template for a memory."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from anima import Home, Scope, overlay
from anima.compat import WorkspaceManager
from anima.errors import (
    BadArguments,
    BadConfig,
    BadPath,
    Damaged,
    HomeBusy,
    HomeError,
    NoSuchDocument,
    NoSuchHome,
    Refused,
    StaleWrite,
)
from anima.ledger import FORMAT, ORIGINAL, Key, sealed
from anima.model import Actor, DocPath, Origin, digest_of
from anima.store.folder import FRESH_NS
from anima.store.rows.sqlite import OneFile
from anima.testing.store_contract import add

KINDS = ["folder", "file", pytest.param("postgres", marks=pytest.mark.long)]
Opens = Callable[[], Home]


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A home that others lie over."""
    place = tmp_path / "template"
    with Home.create(place, name="Aria") as home:
        home.write("AGENTS.md", "# Rules\n\n- answer in one sentence\n")
        home.write("MEMORY.md", "# Memory\n\n- the shop opens at nine\n")
        home.write("knowledge/KNOWLEDGE.md", "# Knowledge\n\n- prices are in euros\n")
        home.write("knowledge/prices.md", "# Prices\n\n- tea costs two euros\n")
    return place


@pytest.fixture(params=KINDS)
def upper(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where upper layers stand, in each kind of store."""
    if request.param == "postgres":
        cluster, _ = request.getfixturevalue("cluster"), request.getfixturevalue("sealed")
        return f"{cluster.application}#{cluster.new_tenant()}"
    return str(tmp_path / "uppers") if request.param == "folder" else f"file:{tmp_path}/uppers.db"


@pytest.fixture
def home(upper: str, template: Path) -> Iterator[Home]:
    with opened(upper, template) as made:
        yield made


def opened(upper: str | Path, lower: Path, *, user: str = "ana", create: bool = True, **more: object) -> Home:
    return Home.open(overlay(upper, lower, isolation="user", user=user, **more), create=create)  # type: ignore[arg-type]


def kept(home: Home, fact: str) -> None:
    """Remembers, once more where somebody else wrote meanwhile."""
    for _ in range(99):
        with suppress(StaleWrite):
            home.remember(fact)
            return
    raise AssertionError


def bytes_in(place: Path) -> dict[str, bytes]:
    return {str(p.relative_to(place)): p.read_bytes() for p in sorted(place.rglob("*")) if p.is_file()}


def paths(home: Home) -> list[str]:
    return [entry.path for entry in home.list_all()]


# -- one reader -----------------------------------------------------------------------------------------------------------


def test_prompt_search_tools_and_lists_read_the_same_two_layers(home: Home) -> None:
    home.write("knowledge/own.md", "# Own\n\n- Ana drinks coffee\n")
    home.write("MEMORY.md", "# Memory\n\n- Ana is allergic to nuts\n")
    prompt = home.prompt(scope=Scope.MAIN).text
    assert "answer in one sentence" in prompt and "allergic to nuts" in prompt and "opens at nine" not in prompt
    found = {str(hit.path) for hit in home.search("euros coffee nuts", scope=Scope.MAIN, limit=20).hits}
    assert {"knowledge/prices.md", "knowledge/own.md", "MEMORY.md"} <= found
    assert not home.search("opens at nine", scope=Scope.MAIN).hits
    with home.session(scope=Scope.MAIN) as session:
        assert "two euros" in str(session.call("memory_get", {"path": "knowledge/prices.md"}))
        assert "two euros" in str(session.call("memory_search", {"query": "what does tea cost"}))
    listed = [entry.path for entry in home.list("knowledge")]
    assert listed == ["knowledge/KNOWLEDGE.md", "knowledge/own.md", "knowledge/prices.md"]
    assert paths(home).count("MEMORY.md") == 1 and home.identity.name == "Aria"


def test_a_name_that_folds_alike_is_one_document_in_every_list(home: Home) -> None:
    home.write("KNOWLEDGE/Prices.MD", "# Prices\n\n- tea costs three euros\n")
    assert sum(path.casefold() == "knowledge/prices.md" for path in paths(home)) == 1
    assert len([entry for entry in home.list() if entry.path.casefold() == "knowledge"]) == 1
    assert "three" in home.read("knowledge/prices.md").text


def test_nothing_is_ever_written_below(upper: str, template: Path) -> None:
    before = bytes_in(template)
    with opened(upper, template) as home:
        home.write("AGENTS.md", "# Rules\n\n- answer in verse\n")
        home.append("knowledge/prices.md", "- cake costs four euros\n")
        home.move("knowledge/KNOWLEDGE.md", "knowledge/all.md")
        home.delete("MEMORY.md")
        home.remember("Ana has a cat.")
        with home.session(scope=Scope.MAIN) as session:
            session.log("user", "hello")
        home.search("tea", scope=Scope.MAIN)
        home.upkeep.doctor()
        assert home.past.audit().ok
    assert bytes_in(template) == before


def test_a_document_below_is_taken_over_with_its_text_and_can_be_had_back(home: Home) -> None:
    below = home.read("AGENTS.md").text
    home.append("AGENTS.md", "- and be kind\n")
    assert home.read("AGENTS.md").text == f"{below}- and be kind\n"
    home.write("knowledge/prices.md", "# Prices\n\n- all is free\n")
    home.undo()
    assert "two euros" in home.read("knowledge/prices.md").text
    assert len(home.past.log("knowledge/prices.md")) >= 2


def test_a_purge_says_that_the_layer_below_is_only_read(home: Home, template: Path) -> None:
    line = next(line for line in home.read("MEMORY.md").text.splitlines() if line.startswith("- "))
    below = bytes_in(template)
    told = [home.forget(text=line[2:], purge=True, dry_run=dry_run).notes for dry_run in (True, False)]

    assert all(any("layer below is only read" in note for note in notes) for notes in told)
    assert line not in home.read("MEMORY.md").text and bytes_in(template) == below


def test_a_write_is_compared_with_what_was_read_below(home: Home, template: Path) -> None:
    read = digest_of(home.read("AGENTS.md").text)
    with Home.open(template) as below:
        below.append("AGENTS.md", "- close at six\n")
    with pytest.raises(StaleWrite):
        home.write("AGENTS.md", "# Rules\n\n- mine\n", base=read)
    assert "close at six" in home.read("AGENTS.md").text  # and nothing was taken over
    with pytest.raises(StaleWrite):
        home.move("MEMORY.md", "knowledge/prices.md")


def test_what_is_deleted_stays_gone_however_the_template_changes(upper: str, template: Path) -> None:
    with opened(upper, template) as home:
        home.delete("knowledge/prices.md")
        home.move("knowledge/KNOWLEDGE.md", "all.md")
        assert not [path for path in paths(home) if path.startswith("knowledge/")]
    with Home.open(template) as below:
        below.append("knowledge/prices.md", "- milk is free\n")
    with opened(upper, template) as home:
        assert not home.exists("knowledge/prices.md") and "all.md" in paths(home)
        assert not home.search("milk tea", scope=Scope.MAIN).hits
        with pytest.raises(NoSuchDocument):
            home.read("knowledge/prices.md")
        home.write("knowledge/prices.md", "# Prices\n\n- mine\n")
        assert home.read("knowledge/prices.md").text.endswith("- mine\n")


def test_a_file_above_hides_the_folder_of_that_name_below(home: Home, template: Path) -> None:
    home.write("notes.md", "- above\n")
    (template / "notes.md").mkdir()
    (template / "notes.md" / "a.md").write_text("- below\n")
    assert home.read("notes.md").text == "- above\n" and not home.exists("notes.md/a.md")
    assert [path for path in paths(home) if path.startswith("notes.md")] == ["notes.md"]


def test_it_hides_that_folder_once_the_folders_above_are_old_enough_to_be_known_by_their_marks(
    tmp_path: Path, template: Path
) -> None:
    above = tmp_path / "above"
    with Home.create(above, name="Aria") as own:
        own.write("notes.md", "- above\n")
    (template / "notes.md").mkdir()
    (template / "notes.md" / "a.md").write_text("- below\n")
    with Home.open(overlay(above, template)) as home:
        while time.time_ns() - above.stat().st_ctime_ns <= FRESH_NS:
            assert not home.exists("notes.md/a.md")
        for _ in range(2):
            with pytest.raises(NoSuchDocument):
                home.read("notes.md/a.md")


# -- the template -----------------------------------------------------------------------------------------------------------


def test_what_changes_below_is_noticed(home: Home, template: Path) -> None:
    assert not home.search("saffron", scope=Scope.MAIN).hits
    home.append("AGENTS.md", "- mine\n")
    with Home.open(template) as below:
        below.write("knowledge/spices.md", "# Spices\n\n- saffron is sold out\n")
        below.append("AGENTS.md", "- new rule\n")
    home.index.bring_up()
    assert [str(hit.path) for hit in home.search("saffron", scope=Scope.MAIN).hits] == ["knowledge/spices.md"]
    told = [remark for remark in home.upkeep.doctor() if "the layer below has now" in remark.message]
    assert [remark.about for remark in told] == ["AGENTS.md"]


def test_a_layered_home_in_which_nothing_is_wrong_is_called_sound(tmp_path: Path, template: Path) -> None:
    (tmp_path / "upper").mkdir(mode=0o700)
    with Home.open(overlay(tmp_path / "upper", template)) as home:
        home.session(scope=Scope.MAIN).close()
        assert home.past.tip and [each for each in home.upkeep.doctor() if each.level == "damage"] == []
        home.write("notes/a.md", "- mine\n")
        assert [each for each in home.upkeep.doctor() if each.level == "damage"] == []
        (tmp_path / "upper/notes/a.md").unlink()
        assert "home-wiped" in [each.name for each in home.upkeep.doctor()]
        (tmp_path / "upper/memory").mkdir()
        (tmp_path / "upper/memory/.consolidation_state").write_text("[1]")
        assert "memory/.consolidation_state" in [each.about for each in home.upkeep.doctor()]


def test_a_change_of_either_layer_wakes_whoever_watches(tmp_path: Path, template: Path) -> None:
    with opened(tmp_path / "uppers", template) as home:
        stop, seen = threading.Event(), threading.Semaphore(0)

        def watch() -> None:
            for _ in home.site.store.changes(stop):
                seen.release()

        watching = threading.Thread(target=watch)
        watching.start()
        n = 0
        while not seen.acquire(timeout=0.3):  # the watch takes a moment to begin
            n += 1
            (template / "knowledge" / "spices.md").write_text(f"- saffron {n}\n")
        stop.set()
        watching.join()
        assert n


def test_lines_of_a_template_are_trusted_as_its_own_ledger_says(tmp_path: Path, template: Path) -> None:
    path, lines = DocPath.parse("notes/mixed.md"), ("- the owner wrote this", "- the web said this", "- and Ana this")
    with Home.open(template) as below:
        below.write(path.text, f"{lines[0]}\n")
        add(below.site.store, path, f"{lines[1]}\n", actor=Actor.AGENT, origin=Origin.WEB)
    with opened(tmp_path / "uppers", template) as home:
        told = home.site.store.provenance
        assert [told.source(path, line).trusted for line in lines[:2]] == [True, False]
        home.append(path.text, f"{lines[2]}\n")  # which takes it over, and vouches for nothing
        told = home.site.store.provenance
        assert [told.source(path, line).trusted for line in lines] == [True, False, True]


@pytest.mark.parametrize("spoilt", ["no key", "an older format"])
def test_a_template_whose_ledger_cannot_be_read_is_not_believed_and_the_doctor_says_so(
    tmp_path: Path, template: Path, spoilt: str
) -> None:
    ledger, key = (template / ".anima" / name for name in ("ledger.jsonl", "key"))
    if spoilt == "no key":
        key.unlink()
    else:
        first, _, rest = ledger.read_text().partition("\n")
        about = {
            name: value for name, value in json.loads(first).items() if name not in ("n", "t", "kind", "prev", "hash")
        }
        older = {**about, "format": FORMAT - 1}
        made = sealed(1, json.loads(first)["t"], "home", older, prev=ORIGINAL, key=Key(key.read_bytes()))[1]
        ledger.write_text(made.decode() + rest)
    with opened(tmp_path / "uppers", template) as home:
        assert home.is_vouched_for
        assert not home.site.store.provenance.source(DocPath.parse("AGENTS.md"), "- answer in one sentence").trusted
        assert any("its lines count as from outside" in remark.message for remark in home.upkeep.doctor())


def test_a_template_that_nobody_vouched_for_is_not_believed(
    tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANIMA_CONFIG", str(tmp_path / "another user"))
    with opened(tmp_path / "uppers", template) as home:
        assert not home.is_vouched_for
        path = DocPath.parse("AGENTS.md")
        assert not home.site.store.provenance.source(path, "- answer in one sentence").trusted
        with pytest.raises(Refused, match="nobody vouched for"):  # opened alone, the upper layer would be believed
            home.append("AGENTS.md", "- mine\n")
        assert "mine" not in home.read("AGENTS.md").text
    Home.open(template).trust()
    with opened(tmp_path / "uppers", template) as home:
        assert home.is_vouched_for
        home.append("AGENTS.md", "- mine\n")
        assert home.site.store.provenance.source(path, "- mine").trusted


def test_people_who_spoke_to_the_template_are_not_handed_on(tmp_path: Path, template: Path) -> None:
    with Home.open(template) as below:
        below.write("users/telegram.7/MEMORY.md", "# Memory\n\n- Bo owes money\n")
        with below.session(scope=Scope.MAIN) as session:
            session.log("user", "my secret is a heron")
    with opened(tmp_path / "uppers", template) as home:
        assert not [path for path in paths(home) if path.startswith(("users/", "sessions/"))]
        assert not home.search("Bo owes", scope=Scope.MAIN).hits and not home.sessions.list()
        with pytest.raises(NoSuchDocument):
            home.read("users/telegram.7/MEMORY.md")


# -- routes and configuration -------------------------------------------------------------------------------------------


def test_the_longest_prefix_says_what_lies_below(tmp_path: Path, template: Path) -> None:
    with Home.create(tmp_path / "shelf", name="Shelf") as shelf:
        shelf.write("knowledge/prices.md", "# Prices\n\n- tea costs nine euros\n")
        shelf.write("knowledge/inner/deep.md", "- deep\n")
        shelf.write("elsewhere.md", "- not routed here\n")
    routes = {"MEMORY.md": None, "knowledge/": tmp_path / "shelf", "knowledge/inner": template}
    with opened(tmp_path / "uppers", template, routes=routes) as home:
        assert "nine euros" in home.read("knowledge/prices.md").text
        assert not home.exists("MEMORY.md") and not home.exists("elsewhere.md")
        assert not home.exists("knowledge/inner/deep.md") and not home.exists("knowledge/KNOWLEDGE.md")
        assert "answer in one sentence" in home.read("AGENTS.md").text


def test_a_home_can_say_itself_what_lies_below_it(tmp_path: Path, template: Path) -> None:
    with Home.create(tmp_path / "own", name="Bo") as home:
        home.delete("AGENTS.md")
        home.delete("TOOLS.md")
    (tmp_path / "own" / "anima.toml").write_text('[layers]\nlower = "../template"\nroutes = {"MEMORY.md" = ""}\n')
    with Home.open(tmp_path / "own") as home:
        assert "two euros" in home.read("knowledge/prices.md").text and home.identity.name == "Bo"
        assert not home.exists("AGENTS.md")  # it was deleted here
    (tmp_path / "template" / "anima.toml").write_text('[layers]\nlower = "../own"\n')
    with pytest.raises(HomeError):
        Home.open(tmp_path / "own")


def test_a_strangers_home_cannot_lay_itself_over_a_folder_of_yours(tmp_path: Path, template: Path) -> None:
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    (stranger / "AGENTS.md").write_text("# Hello\n")
    (stranger / "anima.toml").write_text(f'[layers]\nlower = "{template}"\n')
    with Home.open(stranger) as home:
        assert not home.exists("knowledge/prices.md")
        assert "layers.lower" in dict(home.config.ignored)


def test_the_templates_configuration_holds_for_those_above(tmp_path: Path, template: Path) -> None:
    (template / "anima.toml").write_text('dialect = "anima"\n[prompt]\nstyle = "xml"\n')
    with opened(tmp_path / "uppers", template) as home:
        assert home.config.prompt.style == "xml" and home.dialect == "anima"


# -- in whose name ----------------------------------------------------------------------------------------------------------


def test_nobody_is_a_default(template: Path, tmp_path: Path) -> None:
    for wrong in (
        {"isolation": "user"},
        {"isolation": "user", "user": " "},
        {"isolation": "user", "session": "s1"},
        {"isolation": "session", "user": "ana"},
        {"isolation": "agent"},
        {"isolation": "everybody", "user": "ana"},
        {"user": "ana"},
        {"isolation": "user", "user": "ana", "agent": ""},
    ):
        with pytest.raises(BadArguments):
            overlay(tmp_path / "uppers", template, **wrong)  # type: ignore[arg-type]
    with pytest.raises(NoSuchHome):
        opened(tmp_path / "uppers", template, create=False)
    with pytest.raises(BadArguments):
        Home.create(overlay(tmp_path / "uppers", template))  # type: ignore[arg-type]
    assert not (tmp_path / "uppers").exists()


def test_each_isolation_keeps_apart_what_it_names_and_nothing_more(upper: str, template: Path) -> None:
    def whose(isolation: str, **ids: str) -> str:
        with Home.open(overlay(upper, template, isolation=isolation, **ids), create=True) as home:  # type: ignore[arg-type]
            if not home.exists("mark.md"):
                home.write("mark.md", f"{isolation} {sorted(ids.items())}\n")
            return home.read("mark.md").text

    assert whose("user", user="ana", session="s1") == whose("user", user="ana", session="s2")
    assert whose("session", user="ana", session="s1") != whose("session", user="ana", session="s2")
    assert whose("session", user="ana", session="s1") != whose("session", user="bo", session="s1")
    assert whose("global") == whose("global", user="bo", agent="one")
    assert whose("agent", agent="one") == whose("agent", agent="one", user="bo") != whose("agent", agent="two")
    names = ["ana", "Ana", "ana ", "a/../ana", "users/ana", "ａna", "ana:1", "ana.1", "u-ana", "..", "𝒶na", "ana\n"]
    told = {name: whose("user", user=name) for name in names}
    assert len(set(told.values())) == len(names)


def test_nothing_crosses_between_users_and_sessions_with_32_workers(upper: str, template: Path) -> None:
    def live(n: int) -> tuple[str, list[str]]:
        user, session = f"user{n % 8}", f"s{n}"
        isolation, canary = ("user", user) if n % 2 else ("session", f"{user}{session}")
        canary, wrong = f"canary{canary}end", list[str]()
        spec = overlay(upper, template, isolation=isolation, user=user, session=session)
        with Home.open(spec, create=True) as home:
            home.append("notes/own.md", f"- {canary} was here\n")
            kept(home, f"{canary} likes tea.")
            with home.session(scope=Scope.MAIN, sender=None) as talk:
                talk.log("user", f"{canary} said hello")
            seen = [
                home.prompt(scope=Scope.MAIN).text,
                *(home.read(path).text for path in paths(home) if ".md" in path),
            ]
            seen += [hit.text for hit in home.search("canary likes tea was here", scope=Scope.MAIN, limit=50).hits]
            seen += [hit.preview for hit in home.sessions.find("hello").hits]
            seen += [row.summary for row in home.sessions.list()]
            for asked in ("gone.md", "notes/none.md"):
                try:
                    home.read(asked)
                except HomeError as error:
                    seen.append(str(error))
            wrong = [text for text in seen if "canary" in text.replace(canary, "")]
        return canary, wrong

    with ThreadPoolExecutor(32) as pool:
        done = list(pool.map(live, range(32)))
    assert len({canary for canary, _ in done}) == 4 + 16
    assert not [wrong for _, wrong in done if wrong]
    with Home.open(template) as below:
        assert not [entry.path for entry in below.list_all() if "own.md" in entry.path]


# -- faults -----------------------------------------------------------------------------------------------------------------


def test_an_upper_layer_that_went_away_is_an_error_and_never_the_template(upper: str, template: Path) -> None:
    if upper.startswith("postgres"):
        pytest.skip("a server that goes away is killed in the test below")
    with opened(upper, template) as home:
        home.write("MEMORY.md", "# Memory\n\n- Ana is allergic to nuts\n")
        if upper.startswith("file:"):
            Path(upper.removeprefix("file:")).rename(template / "away.db")
        else:
            shutil.rmtree(Path(upper))
        for path in ("MEMORY.md", "AGENTS.md", "knowledge/prices.md"):
            with pytest.raises(Damaged):
                home.read(path)
        with pytest.raises(Damaged):
            home.list()
        with pytest.raises(HomeError):
            home.write("AGENTS.md", "# Lost?\n")
        for show in (lambda: home.prompt(scope=Scope.MAIN).text, lambda: home.search("nine", scope=Scope.MAIN).hits):
            assert "opens at nine" not in _said(show)
        with pytest.raises((NoSuchHome, Refused)):
            opened(upper, template)
        if upper.startswith("file:"):
            (template / "away.db").rename(Path(upper.removeprefix("file:")))
            assert "allergic" in home.read("MEMORY.md").text


def _said(show: Callable[[], object]) -> str:
    try:
        return str(show())
    except HomeError as error:
        return str(error)


def test_a_folder_that_stands_where_an_upper_layer_was_is_not_taken_for_it(tmp_path: Path, template: Path) -> None:
    upper = tmp_path / "uppers"
    with opened(upper, template) as home:
        home.write("MEMORY.md", "# Memory\n\n- Ana is allergic to nuts\n")
        place = Path(home.name)
    place.rename(tmp_path / "unmounted")
    place.mkdir()  # what is left of a disk that is not mounted
    with pytest.raises(Refused, match="another one stands"):
        opened(upper, template)


@pytest.mark.long  # a lost server is waited for
def test_a_server_that_goes_away_is_an_error_and_never_the_template(
    template: Path, tmp_path: Path, sealed: str
) -> None:
    from anima.testing import postgres

    place = Path("/tmp") / f"anima-away-{tmp_path.name[-8:]}-{abs(hash(str(tmp_path))) % 10_000}"
    try:
        owner = postgres.server(place)
        address = f"{postgres.prepare(owner)}#{postgres.new_tenant(owner)}"
        with opened(address, template) as home:
            home.write("MEMORY.md", "# Memory\n\n- Ana is allergic to nuts\n")
            postgres.crash(place)
            with pytest.raises(HomeError) as caught:
                home.read("AGENTS.md")
            assert not isinstance(caught.value, NoSuchDocument)
            postgres.start(place)
            assert "allergic" in home.read("MEMORY.md").text and "one sentence" in home.read("AGENTS.md").text
        postgres.stop(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_a_slow_upper_layer_is_waited_for_and_then_said_to_be_busy(tmp_path: Path, template: Path) -> None:
    with opened(f"file:{tmp_path}/u.db", template) as home:
        with closing(sqlite3.connect(tmp_path / "u.db", isolation_level=None)) as db:
            db.execute("begin immediate")
            with pytest.raises(HomeBusy), home.site.store.lock(patience=0.01):
                pass
            db.execute("commit")
            db.execute("begin exclusive")
            waiting = ThreadPoolExecutor(1).submit(home.read, "AGENTS.md")
            assert not waiting.done()
            db.execute("commit")
        assert "one sentence" in waiting.result().text


def test_a_tombstone_that_is_lost_is_said_and_the_template_is_not_shown(tmp_path: Path, template: Path) -> None:
    with opened(tmp_path / "uppers", template) as home:
        home.delete("MEMORY.md")
        place = Path(home.name)
    (place / ".anima" / "ledger.jsonl").unlink()
    with pytest.raises(Damaged, match="ledger"):
        opened(tmp_path / "uppers", template)
    spec = overlay(tmp_path / "uppers", template, isolation="user", user="ana")
    with Home.open(spec, finish=False) as home:
        with pytest.raises(Damaged):
            home.read("MEMORY.md")
        with pytest.raises(Damaged):
            home.list_all()


def test_a_batch_that_was_cut_short_is_finished_before_anything_is_read(tmp_path: Path, template: Path) -> None:
    """The kill comes when the text was taken over and nothing else was done: the same is read, and it can be written."""
    with opened(tmp_path / "uppers", template) as home:
        place = Path(home.name)
        before = home.read("AGENTS.md").text
    (place / "AGENTS.md").write_text(before)  # what was taken over, without a record
    with opened(tmp_path / "uppers", template) as home:
        assert home.read("AGENTS.md").text == before
        home.append("AGENTS.md", "- after\n")
        assert home.read("AGENTS.md").text == f"{before}- after\n" and home.past.audit().ok


# -- others write, and are killed at it --------------------------------------------------------------------------------------

ELSEWHERE = """
import sys
from anima import Home, overlay
with Home.open(overlay(sys.argv[1], sys.argv[2], isolation="user", user="ana")) as home:
    print("open", flush=True)
    for line in sys.stdin:
        verb, path, *text = line.split()
        getattr(home, verb)(path, *(f"- {word}\\n" for word in text))
        print("done", flush=True)
"""


def test_what_another_process_writes_above_is_read_at_once(upper: str, template: Path) -> None:
    words = [sys.executable, "-c", ELSEWHERE, upper, str(template)]
    with opened(upper, template) as home, subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as other:
        assert other.stdin is not None and other.stdout is not None and other.stdout.readline() == "open\n"

        def elsewhere(line: str) -> None:
            assert other.stdin is not None and other.stdout is not None
            print(line, file=other.stdin, flush=True)
            assert other.stdout.readline() == "done\n"

        for number, path in enumerate(("AGENTS.md", "knowledge/prices.md", "knowledge/new.md")):
            for _ in range(3):  # what is not there is known after the first time
                assert f"word{number}" not in _said(lambda: home.read(path).text)  # noqa: B023
            elsewhere(f"write {path} word{number}")
            assert home.read(path).text == f"- word{number}\n" and home.exists(path) and path in paths(home)
            elsewhere(f"append {path} more")
            assert home.read(path).text == f"- word{number}\n- more\n"
            elsewhere(f"delete {path}")
            with pytest.raises(NoSuchDocument):
                home.read(path)
        other.stdin.close()
        assert other.wait() == 0


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_writer_that_is_killed_at_any_step_leaves_the_old_text_or_the_new_one(
    kind: str, tmp_path: Path, template: Path
) -> None:
    """Also between a document and its record: the text is then ended or taken back, and is never the template's by mistake."""
    before = (template / "AGENTS.md").read_text()
    found = []
    for step in itertools.count(1):
        upper = f"file:{tmp_path}/{step}.db" if kind == "file" else str(tmp_path / str(step))
        with opened(upper, template) as home:
            home.write("MEMORY.md", "# Memory\n\n- Ana is allergic to nuts\n")
        is_killed = written_and_killed(upper, template, step)
        with opened(upper, template) as home:
            found.append(home.read("AGENTS.md").text)
            assert found[-1] in (before, f"{before}- after\n") and "allergic" in home.read("MEMORY.md").text
            assert home.past.audit().ok
        if not is_killed:
            break
    assert found[0] == before and found[-1] != before and len(found) > 5


def written_and_killed(upper: str, template: Path, step: int) -> bool:
    """Adds a line above, in a process that is killed before its n-th write, rename, link or statement; whether it was."""
    if (child := os.fork()) == 0:
        with opened(upper, template) as home:
            left = itertools.count(step, -1)

            def counted(do: Callable[..., object]) -> Callable[..., object]:
                def counts(*given: object, **more: object) -> object:
                    if next(left) <= 1:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return do(*given, **more)

                return counts

            for name in ("write", "rename", "replace", "link", "unlink"):
                setattr(os, name, counted(getattr(os, name)))
            OneFile.run = counted(OneFile.run)  # type: ignore[method-assign, assignment]
            home.append("AGENTS.md", "- after\n")
            os._exit(0)
    return os.waitpid(child, 0)[1] != 0


def test_a_file_that_a_killed_writer_left_in_the_middle_is_put_right_before_it_is_believed(
    tmp_path: Path, template: Path
) -> None:
    with opened(f"file:{tmp_path}/u.db", template) as home:
        home.write("MEMORY.md", "# Memory\n\n- Ana is allergic to nuts\n")
        for _ in range(3):
            home.read("AGENTS.md")
        spilling = f"""
import os, sqlite3
db = sqlite3.connect({str(tmp_path / "u.db")!r}, isolation_level=None)
for each in ("pragma cache_size = 1", "pragma cache_spill = 1", "begin immediate", "delete from line", "delete from file"):
    db.execute(each)
db.execute("create table x as select randomblob(4000) from (with recursive n(i) as (select 1 union all select i + 1 from n "
           "where i < 300) select i from n)")
os._exit(9)
"""
        assert subprocess.run([sys.executable, "-c", spilling]).returncode == 9
        assert (tmp_path / "u.db-journal").exists()
        assert "one sentence" in home.read("AGENTS.md").text and "allergic" in home.read("MEMORY.md").text
        home.write("AGENTS.md", "# Mine\n")
        assert home.read("AGENTS.md").text == "# Mine\n"


def test_a_template_that_went_away_is_said(tmp_path: Path, template: Path) -> None:
    with opened(tmp_path / "uppers", template) as home:
        home.write("own.md", "- mine\n")
    template.rename(tmp_path / "elsewhere")
    with pytest.raises(NoSuchHome):
        opened(tmp_path / "uppers", template)
    with pytest.raises((BadConfig, NoSuchHome)):
        Home.open(overlay(tmp_path / "uppers", tmp_path / "nowhere", isolation="user", user="ana"))


# -- AgentScope, in its own words ---------------------------------------------------------------------------------------------


def test_every_call_of_agentscopes_workspace_has_its_name_here(upper: str, template: Path) -> None:
    with Home.open(template) as below:
        below.append("memory/2026-05-01.md", "- opened\n")
    (template / "anima.toml").write_text('dialect = "agentscope"\n')
    wm = WorkspaceManager(template, upper, isolation="user", user="ana")
    with closing(wm):
        assert wm.validate() == ()
        assert "one sentence" in wm.read_agents_md()
        assert "opens at nine" in wm.read_memory_md()
        assert "in euros" in wm.read_knowledge_md()
        assert "two euros" in wm.read_managed_workspace_file_utf8("knowledge/prices.md")
        assert wm.read_managed_workspace_file_utf8("knowledge/none.md") == ""
        with pytest.raises(BadPath):
            wm.read_managed_workspace_file_utf8("../template/AGENTS.md")
        assert wm.append_utf8_workspace_relative("knowledge/own.md", "- own\n").status == "written"
        assert wm.append_utf8_workspace_relative("memory/2026-05-01.md", "- closed\n").status == "written"
        assert wm.list_knowledge_files() == ("knowledge/KNOWLEDGE.md", "knowledge/own.md", "knowledge/prices.md")
        assert wm.list_memory_file_paths() == ("memory/2026-05-01.md",)
        assert wm.list_session_log_files() == ()
        with wm.home.session(scope=Scope.MAIN) as session:
            session.log("user", "hello")
        assert [session.id in path for path in wm.list_session_log_files()] == [True]
        wm.update_session_index("main", session.id, "A greeting")
        assert [row.summary for row in wm.home.sessions.list()] == ["A greeting"]
        with pytest.raises(BadArguments):
            wm.update_session_index("other", session.id, "x")


def test_a_workspace_without_a_filesystem_is_one_home(template: Path) -> None:
    with closing(WorkspaceManager(template)) as wm:
        assert "one sentence" in wm.read_agents_md() and wm.list_memory_file_paths() == ()

"""The same random life in a folder, in memory, in PostgreSQL, in one file and in two layers: the same is seen afterwards."""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from anima.errors import HomeError
from anima.model import Actor, Answer, Change, DocPath, Kind, Origin, Verdict, digest_of
from anima.store import Batch, Rules, Store
from anima.store.folder import Folder
from anima.store.overlay import Below, Layers, OverlayStore
from anima.store.place import FolderStore
from anima.store.rows import find_home
from anima.store.rows.store import RowStore
from anima.store.rows.whole import RowWhole
from anima.testing.memory_store import MemoryStore, Shelf
from conftest import Cluster

NOW = datetime(2026, 5, 8, 19, 30, tzinfo=UTC)
ALLOW = Verdict(answer=Answer.ALLOW, rule="test", reason="the test says so")
PATHS = st.sampled_from(["note.md", "NOTE.md", "a/b.md", "a/C.md", "logs/day.md"]).map(DocPath.parse)
TEXTS = st.text(alphabet="ab é\n", max_size=12)
IDS = st.sampled_from(["one", "two"])


class Life(RuleBasedStateMachine):
    """One home in each store, and everything that is done is done to all."""

    cluster: Cluster
    key: str

    @initialize()
    def open(self) -> None:
        self.folder, self.file = tempfile.mkdtemp(), tempfile.mkdtemp()
        self.shelf, self.tenant = Shelf(), self.cluster.new_tenant()
        self.stores = self.opened()

    def opened(self) -> list[Store]:
        rules = Rules(clock=lambda: NOW, author="aria", is_closed=lambda path: False)
        env = {"ANIMA_KEY": self.key}
        place = find_home(self.cluster.application, tenant=self.tenant, agent="main", env=env, create=True)
        rows = RowStore(place, rules, shelf="", whole=RowWhole)
        file = find_home(f"file:{self.file}/home.db", tenant=None, agent=None, env={}, create=True)
        folder, memory = FolderStore(Folder(self.folder), rules), MemoryStore(self.shelf, rules)
        return [folder, memory, rows, RowStore(file, rules, shelf="", whole=RowWhole)]  # type: ignore[list-item]

    def every(self, do: Any) -> Any:
        """What all of them answer, an error by its kind; it is the same."""
        answers = []
        for store in self.stores:
            try:
                answers.append(do(store))
            except HomeError as error:
                answers.append(type(error).__name__)
        assert answers[1:] == answers[:-1], answers
        return answers[0]

    def change(self, *changes: Change, what: str = "write") -> None:
        batch = Batch(changes=changes, verdict=ALLOW, what=what)

        def do(store: Store) -> object:
            written = store.write(batch)
            return written.change, written.digests, written.revision is None

        self.every(do)

    @rule(path=PATHS, text=TEXTS, is_based=st.booleans())
    def write(self, path: DocPath, text: str, is_based: bool) -> None:
        base = digest_of(text) if is_based else None
        self.change(_change(path, Kind.WRITE, text, base=base))

    @rule(path=PATHS, text=TEXTS.filter(bool))
    def append(self, path: DocPath, text: str) -> None:
        self.change(_change(path, Kind.APPEND, text))

    @rule(path=PATHS)
    def delete(self, path: DocPath) -> None:
        self.change(_change(path, Kind.DELETE))

    @rule(path=PATHS, to=PATHS)
    def move(self, path: DocPath, to: DocPath) -> None:
        self.change(_change(path, Kind.MOVE, to=to))

    @rule(one=PATHS, two=PATHS, text=TEXTS)
    def write_two(self, one: DocPath, two: DocPath, text: str) -> None:
        if one.key != two.key:
            self.change(_change(one, Kind.WRITE, text), _change(two, Kind.WRITE, text + "x"))

    @rule(name=IDS, data=st.binary(max_size=8), only_new=st.booleans())
    def put(self, name: str, data: bytes, only_new: bool) -> None:
        self.every(lambda store: store.state.put(f"lists/{name}", data, only_new=only_new))

    @rule(name=IDS)
    def remove(self, name: str) -> None:
        self.every(lambda store: store.state.remove(f"lists/{name}"))

    @rule(id=IDS, line=st.binary(max_size=6))
    def say(self, id: str, line: bytes) -> None:
        def do(store: Store) -> object:
            with store.logs("talks").create(id) as log:
                return log.append(line.replace(b"\n", b"") + b"\n", sync=True)

        self.every(do)

    @rule(id=IDS)
    def drop(self, id: str) -> None:
        self.every(lambda store: store.logs("talks").drop(id))

    @rule()
    def deny(self) -> None:
        self.every(lambda store: store.append("deny", {"rule": "r"}).n)

    @rule()
    def commit(self) -> None:
        self.every(lambda store: store.commit() is None)

    @rule()
    def open_again(self) -> None:
        for store in self.stores:
            store.close()
        self.stores = self.opened()

    @invariant()
    def the_same_is_seen(self) -> None:
        if hasattr(self, "stores"):
            assert self.every(seen) is not None

    def teardown(self) -> None:
        for store in getattr(self, "stores", ()):
            store.close()
        for made in (getattr(self, "folder", ""), getattr(self, "file", "")):
            shutil.rmtree(made, ignore_errors=True)


class LayeredLife(Life):
    """Documents that lie below, in each kind of overlay; and in a folder where they stood before anybody wrote."""

    @initialize(one=TEXTS, two=TEXTS)
    def open(self, one: str = "", two: str = "") -> None:
        self.folder, self.file, self.shelf = tempfile.mkdtemp(), tempfile.mkdtemp(), Shelf()
        self.tenant = self.cluster.new_tenant()
        for place in (self.folder, f"{self.file}/lower"):
            Path(place, "a").mkdir(parents=True)
            Path(place, "note.md").write_bytes(one.encode())
            Path(place, "a/b.md").write_bytes(two.encode())
        Path(self.file, "upper").mkdir()
        self.stores = self.opened()

    # What is refused leaves no trace in an overlay; in a folder it leaves the record of what was found there.

    @rule(path=PATHS, text=TEXTS, is_based=st.booleans())
    def write(self, path: DocPath, text: str, is_based: bool) -> None:
        documents = self.stores[0].documents
        now = documents.read(path).digest if documents.exists(path) else ""
        self.change(_change(path, Kind.WRITE, text, base=now if is_based else None))

    @rule(path=PATHS, to=PATHS)
    def move(self, path: DocPath, to: DocPath) -> None:
        if not self.stores[0].documents.exists(to):
            self.change(_change(path, Kind.MOVE, to=to))

    def opened(self) -> list[Store]:
        folder, _, rows, file = super().opened()
        rules = Rules(clock=lambda: NOW, author="aria", is_closed=lambda path: False)
        uppers = [FolderStore(Folder(f"{self.file}/upper"), rules), rows, file]

        def over(upper: Any) -> Any:
            lower: Any = FolderStore(Folder(f"{self.file}/lower"), rules)
            return OverlayStore(upper, Layers({"": Below(lower, lambda: True)}))

        return [folder, *map(over, uppers)]


def seen(store: Store) -> object:
    """All that can be seen of a home."""
    listed = [entry.path for entry in store.documents.list_all() if not entry.path.startswith("talks/")]
    documents = {path: store.documents.read(DocPath.parse(path)).text for path in listed}
    state = {name: store.state.get(f"lists/{name}") for name in sorted(store.state.names("lists"))}
    logs = store.logs("talks")
    said = {}
    for id in sorted(logs.versions()):
        with logs.open(id) as log:
            said[id] = log.read(0, 999)
    records = [(r.n, r.kind, r.fields.get("what")) for r in store.ledger.records()] if store.begun else []
    history = store.history if store.begun else None
    revisions = [(r.subject, r.paths) for r in history.log()] if history and history.head() else []
    head = history.head() if history else None
    tree = {path: history.show(head, path) for path in sorted(history.tree(head))} if history and head else {}
    return documents, state, said, records, revisions, tree


def _change(path: DocPath, kind: Kind, text: str = "", **more: Any) -> Change:
    return Change(path=path, kind=kind, text=text, actor=Actor.OWNER, origin=Origin.OWNER, **more)


@pytest.mark.parametrize("examples", [6, pytest.param(60, marks=pytest.mark.long)])
@pytest.mark.parametrize("life", [Life, LayeredLife])
def test_every_store_lives_the_same_life(cluster: Cluster, sealed: str, life: type[Life], examples: int) -> None:
    class Here(life):  # type: ignore[misc, valid-type]
        pass

    Here.cluster, Here.key = cluster, sealed
    quick = settings(max_examples=examples, stateful_step_count=20, phases=[Phase.explicit, Phase.generate])
    run_state_machine_as_test(Here, settings=quick)

"""The contract of a store, passed by the folder's, by the one in memory, by PostgreSQL, by one SQLite file,
and by two layers of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from anima.store import Rules, Store
from anima.store.folder import Folder
from anima.store.overlay import Below, Layers, OverlayStore
from anima.store.place import FolderStore
from anima.store.rows import find_home
from anima.store.rows.store import RowStore
from anima.store.rows.whole import RowWhole
from anima.testing.memory_store import MemoryStore, Shelf
from anima.testing.store_contract import Opens, StoreContract
from conftest import Cluster


def rules(clock: Callable[[], datetime]) -> Rules:
    return Rules(clock=clock, author="aria", is_closed=lambda path: False)


class TestFolderStore(StoreContract):
    @pytest.fixture
    def home(self, tmp_path: Path, clock: Callable[[], datetime]) -> Iterator[Opens]:
        opened: list[FolderStore] = []

        def once_more() -> FolderStore:
            opened.append(FolderStore(Folder(tmp_path), rules(clock)))
            return opened[-1]

        yield once_more
        for store in opened:
            store.close()


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def home(self, clock: Callable[[], datetime]) -> Opens:
        shelf = Shelf()
        return lambda: MemoryStore(shelf, rules(clock))


class TestPostgresStore(StoreContract):
    """As the application's role, whose every statement the row policies bind."""

    @pytest.fixture
    def home(self, cluster: Cluster, sealed: str, tmp_path: Path, clock: Callable[[], datetime]) -> Opens:
        tenant = cluster.new_tenant()

        def once_more() -> RowStore:
            place = find_home(cluster.application, tenant=tenant, agent="main", env=os.environ, create=True)
            return RowStore(place, rules(clock), shelf=str(tmp_path), whole=RowWhole)

        return once_more


class TestOneFile(StoreContract):
    @pytest.fixture
    def home(self, tmp_path: Path, clock: Callable[[], datetime]) -> Opens:
        def once_more() -> RowStore:
            place = find_home(f"file:{tmp_path}/home.db", tenant=None, agent=None, env={}, create=True)
            return RowStore(place, rules(clock), shelf=str(tmp_path), whole=RowWhole)

        return once_more


class TestOverlay(StoreContract):
    """Over an empty folder, each kind of store is what it is alone."""

    @pytest.fixture(params=["folder", "file", pytest.param("postgres", marks=pytest.mark.long)])
    def home(self, request: pytest.FixtureRequest, tmp_path: Path, clock: Callable[[], datetime]) -> Iterator[Opens]:
        kind, opened = request.param, list[Store]()
        (tmp_path / "lower").mkdir()
        (tmp_path / "upper").mkdir()
        if kind == "postgres":
            cluster, _ = request.getfixturevalue("cluster"), request.getfixturevalue("sealed")
            address, tenant = cluster.application, cluster.new_tenant()
        else:
            address, tenant = f"file:{tmp_path}/upper/home.db", None

        def upper() -> Store:
            if kind == "folder":
                return FolderStore(Folder(tmp_path / "upper"), rules(clock))
            place = find_home(address, tenant=tenant, agent=None, env=os.environ, create=True)
            return RowStore(place, rules(clock), shelf=str(tmp_path), whole=RowWhole)

        def once_more() -> Store:
            lower = FolderStore(Folder(tmp_path / "lower"), rules(clock))
            opened.append(OverlayStore(upper(), Layers({"": Below(lower, lambda: True)})))  # type: ignore[arg-type]
            return opened[-1]

        yield once_more
        for store in opened:
            store.close()
        assert not list((tmp_path / "lower").iterdir())

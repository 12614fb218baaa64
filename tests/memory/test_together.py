"""Several threads at one home: what each adds or edits is there in the end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from anima import Home
from anima.errors import NoSuchDocument
from anima.testing import Clock


def test_edits_of_two_threads_at_one_document_are_all_made(tmp_path: Path, clock: Clock) -> None:
    lines = [f"- line {one}-{number:02d} old" for one in "ab" for number in range(12)]
    with Home.create(tmp_path / "home", name="Aria", clock=clock) as home:
        home.write("notes/x.md", "\n".join(lines) + "\n")

        def edits(one: str) -> None:
            for number in range(12):
                home.edit("notes/x.md", f"line {one}-{number:02d} old", f"line {one}-{number:02d} new")

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(edits, "ab"))

        assert "old" not in home.read("notes/x.md").text


def test_an_edit_is_made_however_often_faster_writers_overtake_it(tmp_path: Path, clock: Clock) -> None:
    page, done = "".join(f"- fact {number} of a long page\n" for number in range(60_000)), Event()
    with Home.create(tmp_path / "home", name="Aria", clock=clock) as home:
        home.write("notes/x.md", page)

        def appends() -> None:
            while not done.is_set():
                home.append("notes/x.md", "- a line of somebody in a hurry\n")

        with ThreadPoolExecutor(1) as pool:
            hurry = pool.submit(appends)
            try:
                receipt = home.edit("notes/x.md", "fact 7 of a long", "fact 7 of a longer")
            finally:
                done.set()
            hurry.result()

        assert receipt.status == "written"
        assert "- fact 7 of a longer page\n" in home.read("notes/x.md").text


def test_whoever_could_be_asked_is_heard_however_often_faster_writers_overtake_them(
    tmp_path: Path, clock: Clock
) -> None:
    page, done = "".join(f"- fact {number} of a long page\n" for number in range(6_000)), Event()
    with Home.create(tmp_path / "home", name="Aria", clock=clock) as home:
        home.write("MEMORY.md", page)

        def appends() -> None:
            while not done.is_set():
                home.append("MEMORY.md", "- a line of somebody in a hurry\n")

        with ThreadPoolExecutor(1) as pool:
            hurry = pool.submit(appends)
            try:
                receipt = home.remember("Ana sails", choose=lambda likely, otherwise: None)
            finally:
                done.set()
            hurry.result()

        assert receipt.status == "written" and "- Ana sails\n" in home.read("MEMORY.md").text


def test_who_edits_what_is_not_there_waits_for_nobody(tmp_path: Path, clock: Clock) -> None:
    with Home.create(tmp_path / "home", name="Aria", clock=clock) as home, Home.open(home.name, clock=clock) as other:
        home.write("notes/x.md", "- a fact\n")

        def edit() -> None:
            home.edit("notes/none.md", "a fact", "another fact")

        with ThreadPoolExecutor(1) as pool, other.site.store.lock(), pytest.raises(NoSuchDocument):
            pool.submit(edit).result()

"""Several threads at one home: what each adds or edits is there in the end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from anima import Home
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

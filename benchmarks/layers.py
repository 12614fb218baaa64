"""What do a file, a server and two layers cost beside a folder?

    python benchmarks/layers.py [--documents 1000] [--rounds 30] [--json]

The same home of a thousand documents in each kind of place, in one run: a folder; one SQLite file; PostgreSQL on a socket
of this machine, where there is a server to be had; and each of them empty, as the upper layer over that folder.

prompt   `home.prompt(scope="main")`, with nothing changed since the last one
read     one document by its path; in two layers it stands below
own      one document that the upper layer has itself
list     every document
write    one document of three lines, with ledger and history

A read has to see what another server wrote, so 20 of the least questions that PostgreSQL can be asked (`select 1`) stand
below: they are the limit of 20 reads over it.

Each figure is the median of its rounds in milliseconds, and how many times the folder's it is.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from anima import Home, overlay
from anima.errors import MissingExtra


def main() -> None:
    """Measures every kind of place and prints a table, or one JSON value."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    least: list[float] = []
    with tempfile.TemporaryDirectory() as place, places(Path(place), asked.documents) as homes:
        verbs = verbs_of(asked.documents)
        times: dict[str, dict[str, list[float]]] = {name: {verb: [] for verb in verbs} for name in homes}
        for number in range(
            -3, asked.rounds
        ):  # the first three only warm up; homes take turns, as the machine's load does
            for name, home in homes.items():
                for verb, do in verbs.items():
                    begun = time.perf_counter()
                    do(home, number)
                    if number >= 0:
                        times[name][verb].append((time.perf_counter() - begun) * 1000)
            if server := homes.get("PostgreSQL"):
                begun = time.perf_counter()
                for _ in range(20):
                    server.site.store.rows.ask("select 1")
                least.append((time.perf_counter() - begun) * 1000)
        found = {name: {verb: statistics.median(every) for verb, every in rows.items()} for name, rows in times.items()}
    limit = statistics.median(least) if least else 0.0
    print(json.dumps(found | {"limit": {"20 reads": limit}}) if asked.json else shown(found))
    if limit and not asked.json:
        reads = found["PostgreSQL over a folder"]["20 reads"]
        print(f"20 of select 1: {limit:.2f} ms; 20 reads of PostgreSQL over a folder are {reads / limit:.2f}x of that")


def verbs_of(documents: int) -> dict[str, Callable[[Home, int], Any]]:
    """What is done to each home, by its name."""

    def read(home: Home, number: int) -> None:
        for n in range(20):
            home.read(path_of((number * 37 + n * 11) % documents))

    def own(home: Home, number: int) -> None:
        for _ in range(20):
            home.read("own.md")

    return {
        "prompt": lambda home, number: home.prompt(scope="main"),
        "20 reads": read,
        "20 of one's own": own,
        "list": lambda home, number: home.list_all(),
        "write": lambda home, number: home.write(f"new/{number}.md", f"# New\n\n- {number}\n"),
    }


def path_of(number: int) -> str:
    """Where a document of the template's stands."""
    return f"notes/{number % 20:02}/{number:04}.md"


@contextmanager
def places(place: Path, documents: int) -> Iterator[dict[str, Home]]:
    """The homes, open: each kind alone with all documents, and empty above a folder that has them."""
    os.environ.setdefault("ANIMA_KEY", "0123456789abcdef" * 4)
    os.environ["ANIMA_CONFIG"] = str(place / "config")
    fill(place / "template", documents)
    with ExitStack() as stack:
        found: dict[str, Home] = {"folder": stack.enter_context(fill(place / "folder", documents, close=False))}
        addresses = {"one file": f"file:{place}/home.db", "PostgreSQL": server(stack)}
        for name, address in addresses.items():
            if address:
                found[name] = stack.enter_context(
                    fill(address if address.startswith("file") else f"{address}alone", documents, close=False)
                )
        for name, upper in {"folder": str(place / "uppers"), **addresses}.items():
            if upper:
                layers = overlay(upper.rstrip("/"), place / "template", isolation="user", user="ana")
                found[f"{name} over a folder"] = home = stack.enter_context(Home.open(layers, create=True))
                home.write("own.md", "# Own\n\n- mine\n")
        yield found


def fill(place: str | Path, documents: int, *, close: bool = True) -> Home:
    """A home with so many documents."""
    home = Home.create(place, name="Aria")
    for number in range(documents):
        home.append(path_of(number), f"# Note {number}\n\n- tea costs {number} euros\n")
    home.write("own.md", "# Own\n\n- mine\n")
    if close:
        home.close()
    return home


def server(stack: ExitStack) -> str:
    """The address of a tenant on a server of our own; empty where none can be had."""
    from anima.testing import postgres

    try:
        place = Path(tempfile.mkdtemp(prefix="ab"))
        owner = postgres.server(place)
    except MissingExtra as error:
        print(f"PostgreSQL is left out: {error}")
        return ""
    stack.callback(postgres.stop, place)
    return f"{postgres.prepare(owner)}#{postgres.new_tenant(owner)}/"


def shown(found: dict[str, dict[str, float]]) -> str:
    """A table, each figure beside the folder's."""
    base = found["folder"]
    lines = [f"{'':28}" + "".join(f"{verb:>22}" for verb in base)]
    for name, row in found.items():
        cells = "".join(f"{f'{value:.2f} ms {value / base[verb]:5.2f}x':>22}" for verb, value in row.items())
        lines.append(f"{name:28}{cells}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""Speed of the index and of search beside what they are made of, in one run, on generated corpora.

    python benchmarks/search.py [--units 1000 10000 100000] [--queries 30]

Baselines, over the same units: an FTS5 OR query with bm25 and limit 50 plus one float32 matrix-vector product (warm
search); static embedding by the model's own package and by ours, plus an FTS5 insert (indexing). Ratios are printed;
the first sizes also show whether growth is linear. A million units needs about 4 GB of memory and ten minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from anima.search.embed import StaticEmbedder
from anima.search.field import Filter
from anima.search.index import DocumentIn, Index
from anima.search.rank import Query, run
from anima.search.tables import SqliteTables

UNITS_A_DOCUMENT = 25
SYLLABLES = ("ba", "ko", "ri", "ten", "mu", "sal", "do", "vi", "ner", "qua", "lo", "pes", "ta", "gi", "fen", "zu")


def vocabulary(dice: random.Random, size: int = 20_000) -> list[str]:
    """Made-up words, the frequent ones short, with the small words of English among the most frequent."""
    words = ["the", "a", "of", "to", "and", "in", "is", "was", "for", "with", "my", "I", "on", "that", "we"]
    while len(words) < size:
        words.append("".join(dice.choices(SYLLABLES, k=2 + (len(words) > 500) + (len(words) > 5000))))
    return words


def documents(dice: random.Random, words: list[str], units: int) -> Iterator[DocumentIn]:
    """Daily logs of 25 bullets, each of 8 to 40 words drawn by Zipf's law."""
    weights = np.cumsum(1.0 / np.arange(1, len(words) + 1)).tolist()
    for n in range(0, units, UNITS_A_DOCUMENT):
        day = date(2000, 1, 1) + timedelta(days=n // UNITS_A_DOCUMENT % 9000)
        rows = [
            "- " + " ".join(dice.choices(words, cum_weights=weights, k=dice.randint(8, 40)))
            for _ in range(min(UNITS_A_DOCUMENT, units - n))
        ]
        text = "\n".join(rows) + "\n"
        path = f"memory/{day:%Y-%m-%d}-{n}.md"
        digest = hashlib.sha256(text.encode()).hexdigest()
        yield DocumentIn(path=path, digest=digest, text=text, kind="daily", date=day)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def p50(work: Callable[[str], Any], questions: list[str]) -> float:
    return statistics.median(timed(lambda q=question: work(q))[0] for question in questions) * 1e3  # type: ignore[misc]


def fts_built(texts: list[str]) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.execute("create virtual table unit using fts5(text, tokenize='porter unicode61')")
    db.executemany("insert into unit(rowid, text) values(?, ?)", enumerate(texts, 1))
    db.commit()
    return db


def packaged_embedding(texts: list[str]) -> float | None:
    """Seconds for the model's own package, when it can be used without a download."""
    try:
        import wordllama

        start = time.perf_counter()
        model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
        model.embed(texts, norm=True)
        return time.perf_counter() - start
    except Exception:
        return None


def measure(units: int, queries: int) -> None:
    dice = random.Random(units)
    words = vocabulary(dice)
    docs = list(documents(dice, words, units))
    texts = [line for document in docs for line in document.text.splitlines()]
    questions = [" ".join(dice.sample(words[20:5000], dice.randint(3, 7))) for _ in range(queries)]

    insert, fts = timed(lambda: fts_built(texts))
    embedder = StaticEmbedder()
    own, matrix = timed(lambda: embedder.embed(texts, kind="document"))
    sample = min(len(texts), 20_000)
    theirs = packaged_embedding(texts[:sample])
    theirs = theirs * len(texts) / sample if theirs is not None else None
    floor = p50(lambda q: _floor(fts, matrix, matrix[0], q), questions)
    fts.close()

    with tempfile.TemporaryDirectory() as folder:
        fresh = StaticEmbedder()
        index = Index(SqliteTables(str(Path(folder) / "i.sqlite"), lock=str(Path(folder) / "i.lock")), fresh)
        indexing, _ = timed(lambda: index.put(iter(docs)))
        first, _ = timed(lambda: run(index, fresh, Query(text=questions[0], limit=50), Filter()))
        warm = p50(lambda q: run(index, fresh, Query(text=q, limit=50), Filter()), questions[1:])
        one = DocumentIn(path="memory/own.md", digest="x", text="- a needle in the haystack\n")
        write, _ = timed(lambda: index.put([one]))
        seen, answer = timed(lambda: run(index, fresh, Query(text="needle haystack"), Filter()))
        assert answer.hits[0].path.text == "memory/own.md"
        size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
        index.close()

    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    beside = f"{indexing / (theirs + insert):.2f}x of its package + fts5, " if theirs is not None else ""
    print(f"{units:>9} units: warm p50 {warm:.1f} ms = {warm / floor:.2f}x of {floor:.1f} ms (fts5 + product)")
    print(f"{'':>9}        indexing {indexing:.1f} s = {beside}{indexing / (own + insert):.2f}x of our embedder + fts5")
    print(
        f"{'':>9}        first search {first * 1e3:.0f} ms, one write {write * 1e3:.1f} ms and seen after {seen * 1e3:.1f} ms"
    )
    print(f"{'':>9}        file {size:.0f} MB, process at most {memory:.0f} MB", flush=True)


def _floor(db: sqlite3.Connection, matrix: Any, vector: Any, question: str) -> None:
    match = " OR ".join(f'"{word}"' for word in question.split())
    db.execute("select rowid from unit where unit match ? order by bm25(unit) limit 50", (match,)).fetchall()
    np.dot(matrix, vector)


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--units", type=int, nargs="+", default=[1000, 10_000, 100_000])
    ask.add_argument("--queries", type=int, default=30)
    options = ask.parse_args()
    for units in options.units:
        measure(units, options.queries)


if __name__ == "__main__":
    main()

"""Recall of evidence within a budget of tokens: our search beside plain FTS5, in one run, with no model.

    python benchmarks/retrieval.py FILE… [--fusion rrf] [--legs words] [--embedder mock] [--limit 50] [--kinds] [--json]

FILE is the published JSON (or .xz) of LoCoMo conversations, or of LongMemEval-S with its sessions stored once. Every
conversation or question becomes a folder of daily logs whose evidence is known by line. The hits are walked in order,
each pays for its lines (characters / 4), and the fraction of evidence turns reached within 500 and 1,000 tokens is
averaged; all@5 asks whether every evidence file is among the first five files. The wiring here is the smallest there
is: walk, put, search.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from anima.model import Embedder
from anima.search.embed import open_embedder
from anima.search.field import Filter
from anima.search.index import DocumentIn, Index
from anima.search.rank import Query, run
from anima.search.tables import SqliteTables

BUDGETS = (500, 1000)
_SMALL = (
    "a about am an and any are as at be been but by can could did do does for from had has have he her him his how i if"
    " in is it its me my of on or our she should so that the their them then there they this to was we were what when"
    " where which who why will with would you your"
)
SMALL_WORDS = frozenset(_SMALL.split())
DATED = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    text: str
    asked: datetime | None
    turns: tuple[frozenset[Place], ...]
    files: frozenset[str]
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A folder's files by path, each a list of lines, and the questions about it."""

    files: dict[str, list[str]]
    questions: list[Question]


def load(path: Path) -> Any:
    raw = lzma.open(path).read() if path.suffix == ".xz" else path.read_bytes()
    return json.loads(raw)


def locomo_cases(data: list[dict[str, Any]]) -> Iterator[Case]:
    for conversation in data:
        talk = conversation["conversation"]
        files: dict[str, list[str]] = {}
        where: dict[str, Place] = {}
        when: datetime | None = None
        numbers = sorted(int(m[1]) for key in talk if (m := re.fullmatch(r"session_(\d+)", key)))
        for number in numbers:
            when = _talk_time(talk[f"session_{number}_date_time"])
            path = f"memory/{when:%Y-%m-%d}.md"
            lines = files.setdefault(path, [f"# {when:%Y-%m-%d}", ""])
            lines += [f"## {when:%H:%M} conversation", ""]
            for turn in talk[f"session_{number}"]:
                lines.append(_spoken(turn))
                where[turn["dia_id"]] = (path, len(lines))
            lines.append("")
        yield Case(files=files, questions=list(_locomo_questions(conversation["qa"], where, when)))


def _talk_time(text: str) -> datetime:
    return datetime.strptime(text.replace(" on ", " ").upper(), "%I:%M %p %d %B, %Y")  # noqa: DTZ007


def _spoken(turn: dict[str, Any]) -> str:
    shown = f" (shared a photo: {turn['blip_caption']})" if turn.get("blip_caption") else ""
    return f"- {turn['speaker']}: {' '.join(turn['text'].split())}{shown}"


def _locomo_questions(rows: list[dict[str, Any]], where: dict[str, Place], at: datetime | None) -> Iterator[Question]:
    for row in rows:
        places = [where[e] for e in row.get("evidence", []) if e in where]
        if row["category"] == 5 or not places:
            continue
        yield Question(
            text=row["question"],
            asked=at,
            turns=tuple(frozenset([place]) for place in dict.fromkeys(places)),
            files=frozenset(path for path, _ in places),
            kind=str(row["category"]),
        )


def longmemeval_cases(data: dict[str, Any]) -> Iterator[Case]:
    for row in data["questions"]:
        if row["question_id"].endswith("_abs"):
            continue
        files: dict[str, list[str]] = {}
        turns: list[frozenset[Place]] = []
        gold = set()
        for session, said in zip(row["haystack_session_ids"], row["haystack_dates"], strict=True):
            day = said.split()[0].replace("/", "-")
            path = f"memory/{day}-{hashlib.sha1(session.encode()).hexdigest()[:8]}.md"
            is_evidence = session in row["answer_session_ids"]
            files[path], marked = _session_lines(day, data["sessions"][session], path)
            turns += marked if is_evidence else []
            gold |= {path} if is_evidence else set()
        asked = datetime.strptime(row["question_date"].split(" (")[0], "%Y/%m/%d")  # noqa: DTZ007
        kind = row["question_type"]
        question = Question(text=row["question"], asked=asked, turns=tuple(turns), files=frozenset(gold), kind=kind)
        yield Case(files=files, questions=[question])


def _session_lines(day: str, turns: list[dict[str, Any]], path: str) -> tuple[list[str], list[frozenset[Place]]]:
    lines, marked = [f"# {day}", ""], []
    for turn in turns:
        said = f"**{turn['role']}:** {turn['content'].strip()}".split("\n")
        if turn.get("has_answer"):
            marked.append(frozenset((path, len(lines) + 1 + n) for n in range(len(said))))
        lines += [*said, ""]
    return lines, marked


class Ours:
    """The wiring: documents of a case into an index, questions through search."""

    def __init__(self, case: Case, folder: Path, options: argparse.Namespace, embedder: Embedder | None) -> None:
        self._embedder, self._options = embedder, options
        self._index = Index(SqliteTables(str(folder / "index.sqlite"), lock=str(folder / "index.lock")), embedder)
        self._index.put(document_of(path, "\n".join(lines) + "\n") for path, lines in sorted(case.files.items()))

    def search(self, question: Question) -> list[tuple[str, int, int]]:
        options = self._options
        query = Query(
            text=question.text, at=question.asked, limit=options.limit, fusion=options.fusion, legs=options.legs
        )
        answer = run(self._index, self._embedder, query, Filter())
        return [(hit.path.text, hit.start_line, hit.end_line) for hit in answer.hits]

    def close(self) -> None:
        self._index.close()


def document_of(path: str, text: str) -> DocumentIn:
    found = DATED.search(path)
    day = date(int(found[1]), int(found[2]), int(found[3])) if found else None
    digest = hashlib.sha256(text.encode()).hexdigest()
    return DocumentIn(path=path, digest=digest, text=text, kind="daily" if day else "note", date=day)


class Plain:
    """The floor: chunks of 400 characters along lines, porter stemming, an OR query without small words."""

    def __init__(self, case: Case) -> None:
        self._chunks = [chunk for path, lines in sorted(case.files.items()) for chunk in _chunks(path, lines)]
        self._db = sqlite3.connect(":memory:")
        self._db.execute("create virtual table chunk using fts5(text, tokenize='porter unicode61')")
        self._db.executemany(
            "insert into chunk(rowid, text) values(?, ?)", [(n, c[3]) for n, c in enumerate(self._chunks)]
        )

    def search(self, question: Question) -> list[tuple[str, int, int]]:
        words = re.findall(r"\w+", question.text.lower())
        match = " OR ".join(f'"{word}"' for word in [w for w in words if w not in SMALL_WORDS] or words)
        sql = "select rowid from chunk where chunk match ? order by bm25(chunk) limit 50"
        return [self._chunks[n][:3] for (n,) in self._db.execute(sql, (match,))]

    def close(self) -> None:
        self._db.close()


def _chunks(path: str, lines: list[str]) -> Iterator[tuple[str, int, int, str]]:
    start, size = 1, 0
    for number, line in enumerate([*lines, ""], 1):
        if number > start and (number > len(lines) or size + len(line) + 1 > 400):
            text = "\n".join(lines[start - 1 : number - 1])
            if text.strip():
                yield path, start, number - 1, text
            start, size = number, 0
        size += len(line) + 1


def measured(hits: list[tuple[str, int, int]], question: Question, files: dict[str, list[str]]) -> dict[str, float]:
    result = {}
    for budget in BUDGETS if question.turns else ():
        kept = _kept(hits, files, budget)
        result[f"recall@{budget}"] = sum(bool(turn & kept) for turn in question.turns) / len(question.turns)
    ordered = list(dict.fromkeys(hit[0] for hit in hits))
    result["any@1"] = float(bool(question.files & set(ordered[:1])))
    result["all@5"] = float(question.files <= set(ordered[:5]))
    result["all@10"] = float(question.files <= set(ordered[:10]))
    return result


def _kept(hits: list[tuple[str, int, int]], files: dict[str, list[str]], budget: int) -> set[Place]:
    kept: set[Place] = set()
    spent = 0.0
    for path, first, last in hits:
        fresh = [(path, n) for n in range(first, last + 1) if (path, n) not in kept]
        spent += sum(len(files[path][n - 1]) + 1 for _, n in fresh) / 4
        if spent > budget:
            break
        kept.update(fresh)
    return kept


def compare(cases: Iterator[Case], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    embedder = open_embedder(options.embedder)
    rows: dict[str, list[tuple[str, dict[str, float], float]]] = {"plain fts5": [], "ours": []}
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            engines: dict[str, Plain | Ours] = {
                "plain fts5": Plain(case),
                "ours": Ours(case, Path(folder), options, embedder),
            }
            for question in case.questions:
                for engine, it in engines.items():
                    start = time.perf_counter()
                    hits = it.search(question)
                    spent = time.perf_counter() - start
                    rows[engine].append((question.kind, measured(hits, question, case.files), spent))
            for it in engines.values():
                it.close()
    return {engine: _summed(found, options.kinds) for engine, found in rows.items()}


def _summed(found: list[tuple[str, dict[str, float], float]], kinds: bool) -> dict[str, Any]:
    keys = ("recall@500", "recall@1000", "any@1", "all@5", "all@10")
    result: dict[str, Any] = {key: round(_mean(key, found), 4) for key in keys}
    result |= {"n": len(found), "p50_ms": round(statistics.median(spent for _, _, spent in found) * 1e3, 1)}
    if kinds:
        chosen = {kind: [row for row in found if row[0] == kind] for kind in sorted({row[0] for row in found})}
        result["kinds"] = {kind: {key: round(_mean(key, rows), 3) for key in keys[:2]} for kind, rows in chosen.items()}
    return result


def _show(name: str, result: dict[str, dict[str, Any]]) -> None:
    for engine, row in result.items():
        say(f"{name:12} {engine:10}", *(f"{key}={value}" for key, value in row.items() if key != "kinds"))
        for kind, values in row.get("kinds", {}).items():
            say(f"    {kind:28}", *(f"{key}={value}" for key, value in values.items()))


def _mean(key: str, rows: list[tuple[str, dict[str, float], float]]) -> float:
    return statistics.mean(found[key] for _, found, _ in rows if key in found)


def main(arguments: Sequence[str] | None = None) -> None:
    ask = argparse.ArgumentParser(description="Recall of evidence within a budget of tokens, beside plain FTS5.")
    ask.add_argument("files", nargs="*", type=Path, help="LoCoMo or LongMemEval-S data, as JSON or .xz")
    ask.add_argument("--fusion", default="context", choices=("context", "rrf", "weighted"))
    ask.add_argument("--legs", default="both", choices=("both", "words", "meaning"))
    ask.add_argument("--embedder", default="static")
    ask.add_argument("--limit", type=int, default=50)
    ask.add_argument("--kinds", action="store_true", help="also by kind of question")
    ask.add_argument("--json", action="store_true")
    options = ask.parse_args(arguments)
    if not options.files:
        say("retrieval: name the data files, which are not part of this project: LoCoMo or LongMemEval-S as JSON")
    results: dict[str, dict[str, dict[str, Any]]] = {}
    for file in options.files:
        data = load(file)
        name = "locomo" if isinstance(data, list) else "longmemeval"
        results[name] = compare(locomo_cases(data) if isinstance(data, list) else longmemeval_cases(data), options)
        if not options.json:
            _show(name, results[name])
    if options.json:
        say(json.dumps(results, indent=1))


def say(*texts: str) -> None:
    sys.stdout.write(" ".join(texts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

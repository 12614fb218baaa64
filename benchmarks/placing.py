"""Learn where people put lines, and make the table that `text/pages.py` reads.

    python benchmarks/placing.py            cross-validation by whole pages: what a page that was not learnt from gets
    python benchmarks/placing.py --write    the same, then the table, from all pages

Learnt from two files in benchmarks/data, both our own. topics.txt has words by what they are about: the words of headings,
a colon, and what stands under such headings (a line with + says more of a topic). pages.txt has memory pages of imaginary
people: `= page`, `# heading` (with ! one that is not to be had, ? for what belongs nowhere), `- line on it`, `+ fact that
is told later`. A word's numbers are what it is about: as the topics say, as a ridge regression from word vectors to the
topics says of a word that none of them has (the vectors are those of wordllama, MIT licence), and the vector itself; their
main components are kept. How much each feature speaks for a section is a conditional logit over the sections and none.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from anima.search.embed import SPACE, StaticEmbedder, _vocabulary
from anima.text import cut, read_table, stem
from anima.text import pages as places

DATA = Path(__file__).parent / "data"
WORDS, WIDTH = 12_000, 48  # of the commonest words, and numbers for each
VECTOR, MEANT, LISTED = 64, 0.5, 1.0  # components of the vector, its share, and the share of what the topics say
RIDGE, HEADS, COMMON, SMALL, STOPS, GUESSED = 10.0, 1.5, 1e-3, 0.15, 0.3, 1.0
FEATURES, FOLDS, RIGID = 7, 5, 1.0
NOWHERE = 0.8  # what belongs nowhere is told less often than pages.txt has it


class Page(NamedTuple):
    name: str
    heads: list[str]
    marked: list[bool]
    lines: list[list[str]]
    facts: list[tuple[str, int]]  # -1 where it belongs nowhere


def pages() -> list[Page]:
    found, at = list[Page](), -1
    for row in (DATA / "pages.txt").read_text(encoding="utf-8").splitlines():
        sign, text = row[:1], re.sub(r"<!--.*?-->|!$", "", row[2:]).strip()
        page = found[-1] if found else Page("", [], [], [], [])
        if sign == "=":
            found.append(Page(text, [], [], [], []))
        elif sign == "#" and text == "?":
            at = -1
        elif sign == "#":
            at = len(page.heads)
            page.heads.append(text)
            page.marked.append(row.endswith("!"))
            page.lines.append([])
        elif sign == "-":
            page.lines[at].append(text)
        elif sign == "+":
            page.facts.append((text, at))
    return found


def topics() -> list[tuple[str, str]]:
    found = dict[str, tuple[str, str]]()
    for row in (DATA / "topics.txt").read_text(encoding="utf-8").splitlines():
        heads, _, words = row.partition(":")
        name = heads.split()[0]
        if name.startswith("+"):
            name = next((key for key, (said, _) in found.items() if key == name[1:]), None) or next(
                key for key, (said, _) in found.items() if name[1:] in said.split()
            )
            found[name] = (found[name][0], f"{found[name][1]} {words}")
        else:
            found[f"{name}#{len(found)}" if name in found else name] = (heads, words)
    return list(found.values())


def vectors_of(missing: Sequence[str]) -> tuple[list[str], Any, Any]:
    """The commonest words, their vectors, and those of other words."""
    embedder = StaticEmbedder()
    every = sorted(_vocabulary(embedder._vocabulary_path).items(), key=lambda item: item[1])
    plain = (
        word[1:]
        for word, _ in every
        if word[0] == SPACE and word[1:].isascii() and word[1:].islower() and word[1:].isalpha()
    )
    common = list(dict.fromkeys(word for word in plain if len(word) > 1))
    return common, embedder.word_vectors(common), embedder.word_vectors(missing)


def packed(known: places.Meanings) -> bytes:
    """A table as its file holds it."""
    about = json.dumps({"words": len(known.rows), "says": list(known.says)})
    return "\n".join([about, *known.rows, ""]).encode() + known.numbers


def word_table() -> places.Meanings:
    """Words with their numbers and weights; nothing is known yet of what speaks for a section."""
    listed, said = topics(), dict[str, Any]()
    for number, (heads, words) in enumerate(listed):
        for text, share in ((heads, HEADS), (words, 1.0)):
            for word in cut(text.replace("-", " ")):
                row = said.setdefault(word, np.zeros(len(listed)))
                row[number] = max(row[number], share)
    common, raw, rest = vectors_of(list(said))
    rank, total, weight = dict[str, int](), dict[str, Any](), dict[str, float]()
    for place, (word, vector) in enumerate(zip(common, raw, strict=True)):
        key, share = stem(word), 1 / (place + 50)
        rank.setdefault(key, place)
        total[key] = total.get(key, 0) + vector * share
        weight[key] = weight.get(key, 0) + share
    total = {key: vector / weight[key] for key, vector in total.items() if rank[key] < WORDS or key in said}
    total = dict(zip(said, rest, strict=True)) | total
    keys = list(total)
    base = np.array(list(total.values()))
    base = unit(base - base.mean(axis=0))
    base = unit(base @ np.linalg.eigh(base.T @ base)[1][:, ::-1])
    small = frozenset(cut((DATA / "small.txt").read_text(encoding="utf-8")))
    stops = frozenset(cut(read_table("text", "words")["stop"]["en"]))
    places_of = np.array([rank.get(key, 20_000) + 10 for key in keys])
    weights = COMMON / (COMMON + 1 / (10 * places_of))
    weights = np.where([key in small for key in keys], np.minimum(weights, SMALL), weights)
    weights = np.where([key in stops and key not in small for key in keys], np.minimum(weights, STOPS), weights)
    about, sure = topical(base, keys, said)
    both = np.concatenate([MEANT * unit(base[:, :VECTOR]), about], axis=1)
    kept = unit(both @ np.linalg.eigh(both.T @ both)[1][:, ::-1][:, :WIDTH])
    kept *= sure[:, None]
    numbers = np.round(np.concatenate([kept, weights[:, None]], axis=1) * 127).astype(np.int8)
    return places.Meanings(keys, numbers.tobytes(), [0.0] * (FEATURES + 1))


def topical(base: Any, keys: Sequence[str], said: dict[str, Any]) -> tuple[Any, Any]:
    """What each word is about, as it is listed and as its vector makes likely, and how sure that is."""
    empty = np.zeros(len(next(iter(said.values()))))
    told, has = np.array([said.get(key, empty) for key in keys]), np.array([key in said for key in keys])
    told[has] /= np.sqrt((told[has] > 0).sum(axis=1, keepdims=True))
    near, mean = base[has], told[has].mean(axis=0)
    learnt = np.linalg.solve(near.T @ near + RIDGE * np.eye(near.shape[1]), near.T @ (told[has] - mean))
    guess = base @ learnt
    sizes = np.linalg.norm(guess, axis=1)
    sure = np.where(has, 1.0, np.minimum(GUESSED * sizes / sizes[has].mean(), 1.0))
    guess /= sizes.mean()
    told[has] -= mean
    return unit(guess * np.where(has, 0.5, 1.0)[:, None] + LISTED * told), sure


def unit(rows: Any) -> Any:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(lengths > 1e-9, lengths, 1)


class Case(NamedTuple):
    features: Any  # a row for each section
    right: int  # the last for none
    marked: list[bool]


def cases(known: places.Meanings, some: Sequence[Page]) -> list[Case]:
    found = list[Case]()
    for page in some:
        for text, section in page.facts:
            row = np.array(places.features(known, page.heads, page.lines, text))
            found.append(Case(row, section if section >= 0 else len(page.heads), page.marked))
    return found


def fitted(some: Sequence[Case]) -> Any:
    """The weights of a conditional logit, by Newton's method; none of the sections has one feature of its own."""
    most = max(len(case.features) for case in some) + 1
    rows, mask = np.zeros((len(some), most, FEATURES + 1)), np.full((len(some), most), -1e9)
    right, often = np.zeros((len(some), most)), np.ones((len(some), 1))
    for at, case in enumerate(some):
        count = len(case.features)
        rows[at, :count, :FEATURES], rows[at, count, FEATURES], mask[at, : count + 1] = case.features, 1, 0
        right[at, case.right] = 1
        often[at] = NOWHERE if case.right == count else 1
    scale = rows.reshape(-1, FEATURES + 1).std(axis=0) + 1e-6
    rows, found = rows / scale, np.zeros(FEATURES + 1)
    for _ in range(30):
        points = rows @ found + mask
        likely = np.exp(points - points.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        middle = np.einsum("nsk,ns->nk", rows, likely)
        slope = np.einsum("nsk,ns->k", rows, (right - likely) * often) - RIGID * found
        bend = np.einsum("nsk,ns,nsl->kl", rows, likely * often, rows, optimize=True) - middle.T @ (middle * often)
        step = np.linalg.solve(bend + RIGID * np.eye(len(found)), slope)
        found += step
        if abs(step).max() < 1e-6:
            break
    return found / scale


def right(some: Sequence[Case], says: Any) -> list[bool]:
    found = []
    for case in some:
        points = [*(case.features @ says[:-1]), says[-1]]
        best = int(np.argmax(points))
        found.append(case.right == (len(case.marked) if best < len(case.marked) and case.marked[best] else best))
    return found


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--write", action="store_true")
    asked = ask.parse_args()
    every, known, held = pages(), word_table(), 0
    places.table = lambda: known  # type: ignore[assignment]
    for fold in range(FOLDS):
        says = fitted(cases(known, [page for at, page in enumerate(every) if at % FOLDS != fold]))
        held += sum(right(cases(known, [page for at, page in enumerate(every) if at % FOLDS == fold]), says))
    facts = cases(known, every)
    says = fitted(facts)
    print(f"{len(every)} pages, {len(known.rows)} words")
    print(f"right on pages that were not learnt from: {held / len(facts):.1%} of {len(facts)}")
    print(" ".join(f"{number:.2f}" for number in says))
    if asked.write:
        known.says = [round(float(number), 5) for number in says]
        places.FILE.write_bytes(packed(known))
        print(f"{places.FILE.name}: {places.FILE.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()

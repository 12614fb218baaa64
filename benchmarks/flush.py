"""What a flush keeps without a model: of LoCoMo's conversations, the share of turns kept, and of evidence turns among them.

    python benchmarks/flush.py locomo10.json [--share 0.4]

Each session of a conversation is flushed once, every speaker as a user. Evidence turns are those that the questions of
categories 1 to 4 rest on; a question counts as whole when all its turns are kept. Keeping a random share of the turns
would keep the same share of the evidence, so that is the line to beat. The data is not part of the project.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anima.sessions.flush import SHARE, extract
from anima.sessions.replay import Turn

UNANSWERABLE = 5  # a category whose questions have no evidence


def conversations(path: Path) -> list[dict[str, Any]]:
    raw = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    found: list[dict[str, Any]] = json.loads(raw)
    return found


def sessions(conversation: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    for name, turns in conversation["conversation"].items():
        if re.fullmatch(r"session_\d+", name) and isinstance(turns, list):
            yield turns


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("data", type=Path, nargs="?")
    ask.add_argument("--share", type=float, default=SHARE)
    given = ask.parse_args()
    if given.data is None:
        print("name LoCoMo's file, as JSON or .xz; nothing was measured")
        return
    turns = kept_turns = evidence = kept_evidence = questions = whole = 0
    kinds: Counter[str] = Counter()
    for conversation in conversations(given.data):
        asked = [set(q.get("evidence", ())) for q in conversation["qa"] if q["category"] != UNANSWERABLE]
        wanted = set[str]().union(*asked)
        kept_ids: set[str] = set()
        there: set[str] = set()
        for session in sessions(conversation):
            kept = extract(
                (Turn(timestamp="", role="user", content=t["text"], number=n) for n, t in enumerate(session)),
                share=given.share,
            )
            kept_ids |= {session[line.number]["dia_id"] for line in kept}
            there |= {turn["dia_id"] for turn in session}
            kinds.update(line.kind for line in kept)
            turns, kept_turns = turns + len(session), kept_turns + len(kept)
        evidence, kept_evidence = evidence + len(wanted & there), kept_evidence + len(wanted & kept_ids)
        answerable = [need & there for need in asked if need & there]
        questions, whole = questions + len(answerable), whole + sum(need <= kept_ids for need in answerable)
    print(f"turns           {turns:6,}  kept {kept_turns:6,} = {kept_turns / turns:.1%}")
    print(f"evidence turns  {evidence:6,}  kept {kept_evidence:6,} = {kept_evidence / evidence:.1%}")
    print(f"questions       {questions:6,}  whole {whole:5,} = {whole / questions:.1%}")
    print("why kept        " + "  ".join(f"{kind} {count:,}" for kind, count in kinds.most_common()))


if __name__ == "__main__":
    main()

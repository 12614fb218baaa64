"""The scan: what a text holds that its reader should know before it is stored or shown.

Promise: findings with a place, a severity and the decoded or masked text, never a bare yes or no; hidden text, encoded
text, commanding phrases, tokens of a model's format, our own frame markers, comments, and secrets. Time grows with the
text, whatever it holds. At most 64 Ki characters of one encoded blob, 256 Ki of a text and 1,000 carriers of each sort
are decoded and read, once; a finding "unread" says where that ended.
Not here: what follows from a finding. The gate decides, by where the text came from first of all.
"""

from __future__ import annotations

from collections.abc import Iterator

from anima.gate.scan import hidden, orders
from anima.gate.scan.hidden import find_hidden as find_hidden
from anima.gate.scan.hidden import reveal as reveal
from anima.gate.scan.orders import FRAME_NAMES as FRAME_NAMES
from anima.gate.scan.redact import PLACEHOLDER as PLACEHOLDER
from anima.gate.scan.redact import compile_patterns as compile_patterns
from anima.gate.scan.redact import find_secrets as find_secrets
from anima.gate.scan.redact import placeholders, spans
from anima.gate.scan.redact import redact as redact
from anima.gate.scan.redact import redact_said as redact_said
from anima.gate.scan.sights import Origins, Sighting, findings, fold
from anima.model import Finding, Severity
from anima.text import may_hide, visible

CARRIERS = 1000  # hidden texts that are read in turn, at most


def scan_text(text: str) -> tuple[Finding, ...]:
    """Everything the scan sees in a text, sorted by where it starts."""
    return findings(text, (*_plain(text), *_carried(text)))


def _plain(text: str) -> Iterator[Sighting]:
    """What the text says as it stands."""
    folded = fold(text)
    origins = Origins(text, folded)
    found = list(spans(text))
    # With its secrets blanked, because what other findings show must not give them away; of the same length, so that
    # places stay the same.
    pieces, at = list[str](), 0
    for span in found:
        pieces += [text[at : span.start], "•" * (span.end - span.start)]
        at = span.end
    safe = "".join([*pieces, text[at:]]) if found else text
    yield from found
    yield from placeholders(text)
    yield from orders.comments(text, safe)
    yield from orders.marks(safe, folded, origins)
    yield from orders.instructions(safe, folded, origins)


def _carried(text: str) -> Iterator[Sighting]:
    """What the text carries out of sight, and what that says in turn."""
    if may_hide(text):
        found = hidden.messages(text)
        yield from hidden.spans(text, found)
        decoded = [spot for spot in found if spot.decoded]
        for spot in decoded[:CARRIERS]:
            inside = f"hidden {hidden.NAMES[spot.kind]}"
            yield from (span.moved(spot.start, spot.end, inside=inside) for span in _plain(spot.decoded or ""))
        yield from (_unread(spot.start, spot.end) for spot in decoded[CARRIERS : CARRIERS + 1])
    for blob in hidden.blobs(text):
        if blob.kind == hidden.UNREAD:
            yield _unread(blob.start, blob.end)
            continue
        message = f"text in {blob.kind}" if blob.whole else f"text in {blob.kind}; only its first part was decoded"
        shown = visible(redact(blob.text[:2000])[0])
        yield Sighting(blob.start, blob.end, blob.kind, Severity.NOTE, shown, message)
        yield from (span.moved(blob.start, blob.end, inside=blob.kind) for span in _plain(blob.text))


def _unread(start: int, end: int) -> Sighting:
    message = "too much encoded text; from here on it was not read"
    return Sighting(start, end, hidden.UNREAD, Severity.WARN, "", message)

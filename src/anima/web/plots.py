"""Small drawings as SVG text: what a night's scores are made of, how memory grows, how often it is recalled. Pure.

Promise: no library, no script, no style sheet, no reference to anything outside; whatever text is given is escaped. Text
and lines take the page's colour, so that light and dark both work; fills are of a middle tone, and a page may set its own
as `--plot-1` to `--plot-6`. Readable at 390 pixels. Colour never stands alone: parts keep their order, and each carries
its name and value. Without data the drawing says so. Not here: where the numbers come from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from html import escape

WIDTH = 420
MOST_BARS = 20
MOST_DAYS = 90
MOST_POINTS = 180
# Each has at least 3:1 against white and against near-black.
COLOURS = ("#3f7fc1", "#c9701a", "#1f8f78", "#b8609a", "#8468c4", "#86861f")
_LEFT, _RIGHT, _TOP = 44, 12, 30  # of the two drawings over time; the left holds the figures
_PLOT = 150  # their height


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One candidate: its words, the parts of its score in order, and what became of it."""

    label: str
    parts: tuple[tuple[str, float], ...]
    kept: bool
    note: str = ""  # such as the gate that refused it


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A figure for a day."""

    day: date
    value: float


# -- scores ------------------------------------------------------------------------------------------------------------


def scores(bars: Sequence[Bar], *, threshold: float | None = None) -> str:
    """Candidates, best first, each as a bar made of its score's parts; at most twenty, and the rest is counted."""
    if not bars:
        return _empty("Scores of the night", "No line was considered that night.")
    ranked = sorted(bars, key=_total, reverse=True)
    shown, names = ranked[:MOST_BARS], list(dict.fromkeys(name for bar in ranked for name, _ in bar.parts))
    full = max(1.0, *map(_total, shown), _sound(threshold or 0))
    top = 14 + 20 * (-(-len(names) // 3)) + (18 if threshold else 4)
    bottom = top + 40 * len(shown)
    body = [*_legend(names)]
    for row, bar in enumerate(shown):
        body += _bar(bar, top + 40 * row, names, full)
    if threshold:
        x = _scaled(_sound(threshold), full, WIDTH - 50)
        # Beside each bar only, so that no word is crossed out.
        body += [_rule(x, top + 40 * row + 15, x, top + 40 * row + 33) for row in range(len(shown))]
        body.append(_text(x, top - 6, f"needs {threshold:.2f}", anchor="start" if x < WIDTH / 2 else "end", faint=True))
    if len(ranked) > len(shown):
        body.append(_text(0, bottom + 10, f"… and {len(ranked) - len(shown)} more, with lower scores", faint=True))
        bottom += 18
    kept = sum(bar.kept for bar in bars)
    return _drawing(bottom, f"Scores of {len(bars)} candidates, {kept} kept", body)


def _legend(names: Sequence[str]) -> Iterator[str]:
    for place, name in enumerate(names):
        x, y = (place % 3) * (WIDTH / 3), 12 + 20 * (place // 3)
        yield _box(x, y - 9, 10, 10, _colour(place))
        yield _text(x + 15, y, _short(name, 15))


def _bar(bar: Bar, y: float, names: Sequence[str], full: float) -> Iterator[str]:
    """The words, and the bar under them: filled when kept, pale when not, with the word for it."""
    told = "kept" if bar.kept else bar.note or "not kept"
    yield _text(0, y + 12, _short(bar.label, 50 - min(18, len(told))), title=bar.label)
    yield _text(WIDTH, y + 12, _short(("✓ " if bar.kept else "– ") + told, 20), anchor="end", faint=not bar.kept)
    x = 0.0
    for name, value in bar.parts:
        width = _scaled(_sound(value), full, WIDTH - 50)
        if width > 0.05:
            # A hair's breadth between parts, so that they are told apart without their colours.
            drawn = max(0.5, width - 1.2)
            about = f"{name} {_sound(value):.2f}"
            yield _box(x, y + 18, drawn, 12, _colour(names.index(name)), title=about, pale=not bar.kept)
        x += width
    yield _text(min(x + 5, WIDTH - 34), y + 28, f"{_total(bar):.2f}")


def _total(bar: Bar) -> float:
    return sum(_sound(value) for _, value in bar.parts)


# -- over time ---------------------------------------------------------------------------------------------------------


def growth(days: Sequence[Day], *, budget: int | None = None, unit: str = "characters") -> str:
    """How large memory was on each day, as a line with its area, and the budget it stays under."""
    if not days:
        return _empty("Memory over time", "Memory has no history yet.")
    points = _thinned(sorted(days, key=lambda one: one.day))
    full = _round_up(max(*(_sound(one.value) for one in points), budget or 0, 1))
    first, span = points[0].day, max(1, (points[-1].day - points[0].day).days)
    places = [
        (_LEFT + _scaled((one.day - first).days, span, _across()), _height(_sound(one.value), full)) for one in points
    ]
    line = " ".join(f"{_n(x)},{_n(y)}" for x, y in places)
    body = [*_axis(full)]
    if len(places) > 1:
        area = f"{line} {_n(places[-1][0])},{_n(_TOP + _PLOT)} {_n(places[0][0])},{_n(_TOP + _PLOT)}"
        body.append(f'<polygon points="{area}" fill="{_colour(0)}" fill-opacity="0.18"/>')
        body.append(
            f'<polyline points="{line}" fill="none" stroke="{_colour(0)}" stroke-width="2" stroke-linejoin="round"/>'
        )
    last = points[-1]
    body.append(f'<circle cx="{_n(places[-1][0])}" cy="{_n(places[-1][1])}" r="3.5" fill="{_colour(0)}"/>')
    if budget:
        y = _height(budget, full)
        body += [
            _rule(_LEFT, y, WIDTH - _RIGHT, y),
            _text(WIDTH - _RIGHT, y - 5, f"budget {budget:,}", anchor="end", faint=True),
        ]
    told = f"Memory: {_sound(last.value):,.0f} {unit} on {last.day}"
    return _over_time(told, body, points[0].day, last.day)


def recalls(days: Sequence[Day]) -> str:
    """How many recalls there were each day, as bars; days nobody names had none. The last ninety days are shown."""
    counts: dict[date, float] = {}
    for one in days:
        counts[one.day] = counts.get(one.day, 0) + _sound(one.value)
    if not any(counts.values()):
        return _empty("Recalls a day", "Nothing was recalled yet.")
    last = max(counts)
    first = max(min(counts), last - timedelta(days=MOST_DAYS - 1)) if last.toordinal() > MOST_DAYS else min(counts)
    number = (last - first).days + 1
    full, step = _round_up(max(counts.values())), _across() / number
    body = [*_axis(full)]
    for place in range(number):
        day = first + timedelta(days=place)
        if value := counts.get(day, 0):
            y, wide = _height(value, full), min(max(1.0, step * 0.75), 28)
            x = _LEFT + step * (place + 0.5) - wide / 2
            body.append(_box(x, y, wide, _TOP + _PLOT - y, _colour(0), title=f"{day}: {value:,.0f}"))
    total = sum(value for day, value in counts.items() if day >= first)
    return _over_time(f"Recalls a day: {total:,.0f} in {number} day{'s' * (number != 1)}", body, first, last)


def _thinned(points: Sequence[Day]) -> Sequence[Day]:
    """At most so many points as can be told apart, the first and the last among them."""
    if len(points) <= MOST_POINTS:
        return points
    step = (len(points) - 1) / (MOST_POINTS - 1)
    return [points[round(place * step)] for place in range(MOST_POINTS)]


def _over_time(told: str, body: Sequence[str], first: date, last: date) -> str:
    y = _TOP + _PLOT + 18
    ends = [_text(_LEFT, y, first.isoformat(), faint=True)]
    if last != first:
        ends.append(_text(WIDTH - _RIGHT, y, last.isoformat(), anchor="end", faint=True))
    return _drawing(_TOP + _PLOT + 26, told, [_text(0, 13, told), *body, *ends])


def _axis(full: float) -> Iterator[str]:
    for share in (0, 0.5, 1):
        y = _height(full * share, full)
        yield (
            f'<line x1="{_LEFT}" y1="{_n(y)}" x2="{WIDTH - _RIGHT}" y2="{_n(y)}" stroke="currentColor" '
            f'stroke-opacity="{0.5 if not share else 0.15}"/>'
        )
        yield _text(_LEFT - 6, y + 4, _figure(full * share), anchor="end", faint=True)


def _across() -> int:
    return WIDTH - _LEFT - _RIGHT


def _height(value: float, full: float) -> float:
    return _TOP + _PLOT - _scaled(value, full, _PLOT)


# -- pieces ------------------------------------------------------------------------------------------------------------


def _drawing(height: float, told: str, body: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {_n(height)}" width="100%" role="img" '
        f'aria-label="{_safe(told)}" font-family="system-ui, sans-serif" font-size="13" fill="currentColor">\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _empty(told: str, sentence: str) -> str:
    return _drawing(60, f"{told}: {sentence}", [_text(WIDTH / 2, 34, sentence, anchor="middle", faint=True)])


def _text(x: float, y: float, text: str, *, anchor: str = "", faint: bool = False, title: str = "") -> str:
    more = (f' text-anchor="{anchor}"' if anchor else "") + (' fill-opacity="0.72"' if faint else "")
    told = f"<title>{_safe(title)}</title>" if title and title != text else ""
    return f'<text x="{_n(x)}" y="{_n(y)}"{more}>{told}{_safe(text)}</text>'


def _box(x: float, y: float, width: float, height: float, fill: str, *, title: str = "", pale: bool = False) -> str:
    told = f"><title>{_safe(title)}</title></rect>" if title else "/>"
    faint = ' fill-opacity="0.5"' if pale else ""
    return (
        f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="1.5" fill="{fill}"{faint}{told}'
    )


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}" stroke="currentColor" stroke-opacity="0.6" '
        'stroke-dasharray="4 3"/>'
    )


def _colour(place: int) -> str:
    number = place % len(COLOURS)
    return f"var(--plot-{number + 1}, {COLOURS[number]})"


def _safe(text: str) -> str:
    """Text that is safe between tags and in quotes: what XML or a reader cannot show becomes a sign for it."""
    return escape("".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text))


def _short(text: str, most: int) -> str:
    """The text on one line, cut to what fits: a wide character counts as two."""
    text = " ".join(text.split())
    room = float(most)
    for place, char in enumerate(text):
        room -= 2 if ord(char) > 0x2E7F else 1
        if room < 0:
            return text[: max(0, place - 1)].rstrip() + "…"
    return text


def _sound(value: float) -> float:
    """A figure that can be drawn: nothing below zero, nothing endless."""
    return min(value, 1e12) if math.isfinite(value) and value > 0 else 0.0


def _scaled(value: float, full: float, length: float) -> float:
    return length * min(1.0, value / full)


def _round_up(value: float) -> float:
    """The next round figure, so that an axis ends in one."""
    size = float(10 ** math.floor(math.log10(max(value, 1))))
    return next(size * step for step in (1, 2, 4, 5, 6, 8, 10) if size * step >= value or step == 10)


def _figure(value: float) -> str:
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{sign}"
    return f"{value:.3g}"


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")

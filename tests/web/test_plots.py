"""Drawings for the page: well-formed, inert, true to their numbers, and kind when there are none."""

from __future__ import annotations

import re
from datetime import date, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.web.plots import COLOURS, Bar, Day, growth, recalls, scores

SVG = "{http://www.w3.org/2000/svg}"
START = date(2026, 1, 3)
NIGHT = [
    Bar(label="Ana uses a Samsung", parts=(("frequency", 0.2), ("relevance", 0.3)), kept=True),
    Bar(label="npm install", parts=(("frequency", 0.1), ("relevance", 0.1)), kept=False, note="looks like a log"),
]


def days(*values: float) -> list[Day]:
    return [Day(day=START + timedelta(days=number), value=value) for number, value in enumerate(values)]


def drawn(svg: str) -> ElementTree.Element:
    """The drawing, once it is sure that nothing in it can act or fetch."""
    root = ElementTree.fromstring(svg)
    assert {node.tag.removeprefix(SVG) for node in root.iter()} <= {
        "svg",
        "text",
        "title",
        "rect",
        "line",
        "polygon",
        "polyline",
        "circle",
    }
    for node in root.iter():
        for name, value in node.attrib.items():
            assert not name.startswith("on") and "href" not in name and name not in ("style", "class", "id")
            assert not re.search(r"url\(|http|javascript|data:", value)
    return root


def words(svg: str) -> str:
    return " ".join(node.text or "" for node in drawn(svg).iter(f"{SVG}text")) + " ".join(
        node[0].tail or "" for node in drawn(svg).iter(f"{SVG}text") if len(node)
    )


def boxes(svg: str) -> dict[str, float]:
    return {node[0].text: float(node.get("width")) for node in drawn(svg).iter(f"{SVG}rect") if len(node)}


def test_a_bar_is_made_of_its_parts_in_proportion_with_names_and_values():
    found = boxes(scores(NIGHT[:1]))

    assert set(found) == {"frequency 0.20", "relevance 0.30"}
    assert (found["relevance 0.30"] + 1.2) / (found["frequency 0.20"] + 1.2) == pytest.approx(1.5, abs=0.02)


def test_what_was_kept_and_what_was_not_is_told_in_words():
    told = words(scores(NIGHT, threshold=0.35))

    assert "✓ kept" in told and "– looks like a log" in told and "needs 0.35" in told
    assert drawn(scores(NIGHT)).get("aria-label") == "Scores of 2 candidates, 1 kept"


def test_the_best_candidates_come_first_and_the_rest_is_counted():
    many = [Bar(label=f"line {n}", parts=(("a", n / 100),), kept=False) for n in range(50)]

    told = words(scores(many))

    assert told.index("line 49") < told.index("line 30") and "line 29" not in told
    assert "… and 30 more" in told


@pytest.mark.parametrize("svg", [scores([]), growth([]), recalls([]), recalls(days(0, 0))])
def test_without_data_a_drawing_says_so(svg):
    assert words(svg).strip().endswith((".",)) and not list(drawn(svg).iter(f"{SVG}rect"))


def test_growth_ends_at_the_last_day_with_its_figure_and_shows_the_budget():
    told = words(growth(days(100, 2_000, 8_805), budget=10_000))

    assert "Memory: 8,805 characters on 2026-01-05" in told
    assert "budget 10,000" in told and "2026-01-03" in told


def test_a_line_over_ten_years_has_no_more_points_than_can_be_seen():
    root = drawn(growth(days(*range(3_650))))

    points = root.find(f"{SVG}polyline").get("points").split()
    assert len(points) == 180
    assert points[-1].split(",")[0] == "408"


def test_recalls_of_one_day_are_added_up_and_quiet_days_have_no_bar():
    svg = recalls([*days(3, 0, 1), Day(day=START, value=2)])

    assert set(boxes(svg)) == {"2026-01-03: 5", "2026-01-05: 1"}
    assert "6 in 3 days" in words(svg)


def test_only_the_last_ninety_days_of_recalls_are_shown():
    svg = recalls(days(*[1] * 400))

    assert len(boxes(svg)) == 90 and "90 in 90 days" in words(svg)


def test_hostile_words_are_only_words():
    evil = '</text><script>alert(1)</script>" onload="x\x00\u202e\ud800'
    bar = Bar(
        label=evil, parts=((evil, 0.5), ("b", float("nan")), ("c", -1), ("d", float("inf"))), kept=False, note=evil
    )

    root = drawn(scores([bar], threshold=0.5))

    assert not list(root.iter(f"{SVG}script"))
    assert "\u202e" not in scores([bar]) and scores([bar]).encode()


def test_text_and_lines_take_the_pages_colour_and_fills_can_be_set():
    svg = scores(NIGHT, threshold=0.3) + growth(days(1, 2), budget=4) + recalls(days(1))

    assert {*re.findall(r'stroke="([^"]+)"', svg)} == {"currentColor", f"var(--plot-1, {COLOURS[0]})"}
    assert {*re.findall(r'(?<!-)\bfill="([^"]+)"', svg)} == {
        "currentColor",
        "none",
        *(f"var(--plot-{n + 1}, {COLOURS[n]})" for n in range(2)),
    }


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("ground", ["#ffffff", "#16171a"])
def test_every_fill_stands_out_on_light_and_on_dark(colour, ground):
    def light(hexed: str) -> float:
        parts = [int(hexed[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted([light(colour), light(ground)], reverse=True)

    assert (high + 0.05) / (low + 0.05) >= 3


FIGURES = st.floats() | st.integers(-5, 10**15)


@given(
    st.lists(st.builds(Day, day=st.dates(), value=FIGURES), max_size=30),
    st.lists(
        st.builds(
            Bar,
            label=st.text(),
            kept=st.booleans(),
            note=st.text(),
            parts=st.lists(st.tuples(st.text(), FIGURES), max_size=4).map(tuple),
        ),
        max_size=5,
    ),
    st.none() | st.floats(0, 2),
)
def test_any_figures_give_a_drawing_that_stays_inside_its_frame(figures, bars, threshold):
    for svg in (scores(bars, threshold=threshold), growth(figures, budget=10_000), recalls(figures)):
        root = drawn(svg)
        height = float(root.get("viewBox").split()[3])
        for node in root.iter(f"{SVG}rect"):
            assert float(node.get("x")) >= 0 and float(node.get("x")) + float(node.get("width")) <= 421
            assert float(node.get("y")) >= 0 and float(node.get("y")) + float(node.get("height")) <= height

"""Drawings of figures over days: well-formed, inert, true to their numbers, and kind when there are none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, PackageLoader, StrictUndefined

import anima

START = date(2026, 1, 3)
MACROS: Any = (
    Environment(loader=PackageLoader("anima.web"), autoescape=True, undefined=StrictUndefined)
    .get_template("chart.html")
    .module
)
STYLE = (Path(anima.__file__).parent / "web/static/anima.css").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Day:
    day: date
    value: int


def chart(*values: int, told: str = "Figures", **more: Any) -> str:
    days = [Day(START + timedelta(days=number), value) for number, value in enumerate(values)]
    return str(MACROS.chart(days, "value", told, **more))


def drawn(svg: str) -> ElementTree.Element:
    """The drawing, once it is sure that nothing in it can act or fetch."""
    root = ElementTree.fromstring(svg)
    allowed = {"svg", "text", "title", "rect", "line", "polygon", "polyline", "circle"}
    assert {node.tag for node in root.iter()} <= allowed
    for node in root.iter():
        for name, value in node.attrib.items():
            assert not name.startswith("on") and "href" not in name and name != "style"
            assert not re.search(r"url\(|http|javascript|data:", value)
    return root


def words(svg: str) -> str:
    return " ".join(node.text or "" for node in drawn(svg).iter("text"))


def bars(svg: str) -> dict[str, float]:
    return {str(node[0].text): float(node.get("height", 0)) for node in drawn(svg).iter("rect")}


def test_without_figures_a_drawing_says_so():
    svg = chart(0, 0, told="Recalls", quiet="Nothing was recalled yet.")

    assert words(svg).strip() == "Nothing was recalled yet." and not bars(svg)
    assert drawn(svg).get("aria-label") == "Recalls: Nothing was recalled yet."


def test_a_line_ends_at_the_last_day_with_its_figure_and_shows_the_budget():
    svg = chart(100, 2_000, 8_805, line=True, budget=10_000, told="Memory: 8,805 characters on 2026-01-05")
    points = drawn(svg).find("polyline").get("points").split()

    assert {"Memory: 8,805 characters on 2026-01-05", "budget 10,000", "2026-01-03", "2026-01-05"} <= {
        node.text for node in drawn(svg).iter("text")
    }
    assert points[0].split(",")[0] == "44.0" and points[-1].split(",")[0] == "408.0"


def test_quiet_days_have_no_bar_and_every_other_names_its_day_and_figure():
    found = bars(chart(5, 0, 1_234))

    assert set(found) == {"2026-01-03: 5", "2026-01-05: 1,234"}
    assert found["2026-01-05: 1,234"] / found["2026-01-03: 5"] > 100


def test_hostile_words_are_only_words():
    svg = chart(1, told='</text><script>alert(1)</script>" onload="x')

    assert not list(drawn(svg).iter("script")) and "onload" in words(svg)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=40))
def test_a_spark_has_a_point_for_each_value_in_its_frame_and_says_what_it_shows(values):
    root = drawn(str(MACROS.spark(values, "3 at most")))
    points = [tuple(map(float, point.split(","))) for point in root.find("polyline").get("points").split()]

    assert len(points) == len(values) and all(0 <= x <= 120 and 0 <= y <= 28 for x, y in points)
    assert root.get("aria-label") == root.find("title").text == "3 at most"


@pytest.mark.parametrize("colour", re.findall(r"--plot-\d: (#[0-9a-f]{6})", STYLE))
@pytest.mark.parametrize("ground", ["#ffffff", "#16171a"])
def test_every_fill_stands_out_on_light_and_on_dark(colour, ground):
    def light(hexed: str) -> float:
        parts = [int(hexed[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted([light(colour), light(ground)], reverse=True)

    assert (high + 0.05) / (low + 0.05) >= 3


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=60), st.booleans(), st.integers(0, 10**6))
def test_any_figures_give_a_drawing_that_stays_inside_its_frame(values, line, budget):
    root = drawn(chart(*values, line=line, budget=budget))

    for node in root.iter("rect"):
        x, y, width, height = (float(node.get(name)) for name in ("x", "y", "width", "height"))
        assert x >= 44 and x + width <= 408.1 and y >= 29.9 and y + height <= 180.2
    for point in (place for node in root.iter("polyline") for place in node.get("points").split()):
        assert 29.9 <= float(point.split(",")[1]) <= 180.1

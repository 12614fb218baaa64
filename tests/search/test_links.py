"""Who a home speaks of and what is named together: what counts as a name, what is tied, and what is left out."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from anima import Home, Scope
from anima.search.graph import Graph, Text, weave


def log(text: str, day: str = "2026-05-08") -> Text:
    return Text(path=f"memory/{day}.md", text=text, part="log", day=date.fromisoformat(day))


def names(graph: Graph) -> set[str]:
    return {node.name for node in graph.nodes}


def ties(graph: Graph) -> set[frozenset[str]]:
    return {frozenset((graph.nodes[edge.one].name, graph.nodes[edge.other].name)) for edge in graph.edges}


def test_names_on_one_line_are_tied_and_counted_by_line() -> None:
    graph = weave([log("- we saw @Ana and @Luis\n- then @Ana came with @Luis again\n- only @Bea\n")])

    assert {(node.name, node.mentions) for node in graph.nodes} == {("Ana", 2), ("Luis", 2), ("Bea", 1)}
    assert [(edge.one, edge.other, edge.weight) for edge in graph.edges] == [(0, 1, 2)]
    assert {node.kind for node in graph.nodes} == {"person"}


def test_a_word_that_only_begins_sentences_is_no_name() -> None:
    graph = weave([log("- Fixed the lamp for us today. Asked again\n- Fixed the door of the house. Asked later\n")])

    assert graph.nodes == ()


def test_a_word_that_is_written_small_as_often_is_no_name() -> None:
    graph = weave([log("- we had Tea there\n- we had Tea here\n- tea is good\n- more tea was had\n")])

    assert graph.nodes == ()


def test_a_name_that_begins_a_line_counts_once_it_is_known_from_elsewhere() -> None:
    graph = weave([log("- Marta called about the boat\n- we wrote to Marta today\n- Met Marta at the pier\n")])

    assert [(node.name, node.mentions) for node in graph.nodes] == [("Marta", 3)]


def test_whoever_stands_under_people_is_a_person() -> None:
    graph = weave(
        [Text(path="MEMORY.md", text="# Memory\n\n## People\n- Ingrid likes tea\n\n## Work\n- Postgres\n", part="log")]
    )

    assert [(node.name, node.kind) for node in graph.nodes] == [("Ingrid", "person")]


def test_under_people_a_line_must_say_something_of_whom_it_begins_with() -> None:
    lines = "- Read the lease with Ana\n- Long walks are what Bo likes\n- Flight to Oslo is booked for Ana\n"
    more = "- Birthday: 14 October\n- **Ines:** a teacher\n- Tomas's yard is closed\n"
    graph = weave([Text(path="MEMORY.md", text=f"# Memory\n\n## People\n{lines}{more}", part="log")])

    assert {node.name for node in graph.nodes if node.kind == "person"} == {"Ines", "Tomas"}
    assert names(graph) == {"Ines", "Tomas", "Ana"}


def test_a_person_with_a_page_is_a_person() -> None:
    page = Text(path="memory/topics/ana.md", text="# Ana\n\n- teaches\n", part="topic")
    graph = weave([page, log("- lunch with @Ana\n")])

    assert [(node.name, node.kind, node.path) for node in graph.nodes] == [("Ana", "person", "memory/topics/ana.md")]


def test_a_topic_is_tied_to_what_it_names_and_links_are_told_apart() -> None:
    topic = Text(path="memory/topics/boat.md", text="# The boat\n\n- [[Casa Azul]] keeps it\n", part="topic")
    graph = weave([topic, log("- saw the [[boat]]\n")])

    boat = next(node for node in graph.nodes if node.path)
    assert (boat.name, boat.kind, boat.mentions, boat.path) == ("boat", "topic", 1, "memory/topics/boat.md")
    assert ties(graph) == {frozenset({"boat", "Casa Azul"})}
    assert graph.edges[0].linked


def test_spellings_of_one_name_are_one_node() -> None:
    graph = weave([log("- [[Café Río]] was full\n- at [[cafe rio]] again\n")])

    assert [(node.name, node.mentions) for node in graph.nodes] == [("Café Río", 2)]


def test_code_and_headings_hold_no_names() -> None:
    graph = weave([log("# Big Words Here\n# Big Words Here\n```\nFoo Bar and Foo Bar\n@nobody\n```\n")])

    assert graph.nodes == ()


def test_first_and_last_day_are_those_of_the_logs() -> None:
    graph = weave([log("- @Ana\n", "2026-05-08"), log("- @Ana\n", "2026-03-01"), log("- @Ana\n", "2026-04-01")])

    assert (graph.nodes[0].first, graph.nodes[0].last) == (date(2026, 3, 1), date(2026, 5, 8))


def test_what_is_left_out_is_counted_and_the_most_mentioned_stay() -> None:
    lines = "".join(f"- [[Thing {n}]] with [[Thing {n + 1}]]\n" * (n + 1) for n in range(20))
    graph = weave([log(lines)], most=5, most_edges=2)

    assert len(graph.nodes) == 5 and graph.nodes_left == 16
    assert len(graph.edges) == 2 and graph.edges_left > 0
    assert [node.mentions for node in graph.nodes] == sorted((node.mentions for node in graph.nodes), reverse=True)


def test_a_line_of_a_thousand_names_makes_few_ties() -> None:
    graph = weave([log("- " + " ".join(f"[[Name{n}]]" for n in range(1000)) + "\n")])

    assert len(graph.nodes) <= 12 and len(graph.edges) <= 66


@given(st.lists(st.text(alphabet="AaBb @[]|#é.\n`-:5Ññ\u202e", max_size=80), max_size=6))
def test_whatever_the_text_edges_join_nodes_that_are_there_and_it_is_the_same_again(texts: list[str]) -> None:
    given_ = [Text(path=f"notes/n{n}.md", text=text, part="document") for n, text in enumerate(texts)]
    graph = weave(given_, most=4)

    assert graph == weave(given_, most=4)
    assert all(0 <= edge.one < edge.other < len(graph.nodes) and edge.weight > 0 for edge in graph.edges)
    assert len({(edge.one, edge.other) for edge in graph.edges}) == len(graph.edges)
    assert all(node.name for node in graph.nodes)


def test_a_home_is_woven_from_what_the_listener_may_see_and_souls_take_no_part(tmp_path: Path) -> None:
    with Home.create(tmp_path / "aria", name="Aria") as home:
        home.write("SOUL.md", "@Somebody and @Else\n")
        home.write("MEMORY.md", "- @Ana lives in [[Casa Azul]]\n")
        home.write("notes/list.md", "- [[Borges]]\n")
        home.write("users/bea/MEMORY.md", "- @Secret\n")
        mine, groups = (home.index.graph(home.site.listener(scope)) for scope in (Scope.MAIN, Scope.GROUP))

    assert names(mine) == {"Ana", "Casa Azul", "list", "Borges"}
    assert groups.nodes == ()

"""What every Index promises. Bind it by providing an `index` fixture and an `again` fixture that opens it anew."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from anima.search.index import DocumentIn, Filter, Index, Label
from anima.search.rank import Answer, Query, run
from anima.text.words import ask

OWNER, GROUP = 1, 2
MAIN_ONLY, BOTH = OWNER, OWNER | GROUP


def document(path: str, text: str, **more: object) -> DocumentIn:
    return DocumentIn(path=path, digest=f"{hash((text, repr(more)))}", text=text, **more)  # type: ignore[arg-type]


def found(index: Index, text: str, **filter: object) -> list[tuple[str, int, int, float]]:
    answer = asked(index, text, **filter)
    return [(hit.path.text, hit.start_line, hit.end_line, hit.score) for hit in answer.hits]


def asked(index: Index, text: str, **filter: object) -> Answer:
    return run(index, None, Query(text=text, limit=20), Filter(**filter))  # type: ignore[arg-type]


class IndexContract:
    def test_what_was_put_is_known_and_found(self, index: Index) -> None:
        report = index.put([document("a.md", "# Tea\n\n- Ana drinks oolong\n"), document("b.md", "coffee\n")])

        assert report.documents == 2
        assert set(index.known()) == {"a.md", "b.md"}
        assert found(index, "oolong")[0][:3] == ("a.md", 3, 3)

    def test_a_document_put_again_takes_the_place_of_the_old_one(self, index: Index) -> None:
        index.put([document("a.md", "the boat is red\n")])
        index.put([document("a.md", "the boat is green\n")])

        assert found(index, "red") == []
        assert [hit[0] for hit in found(index, "green")] == ["a.md"]
        assert len(index.known()) == 1

    def test_of_two_with_one_path_in_one_put_the_later_counts(self, index: Index) -> None:
        index.put([document("a.md", "first\n"), document("a.md", "second\n")])

        assert found(index, "first") == []
        assert len(found(index, "second")) == 1

    def test_a_dropped_document_is_gone_with_its_words(self, index: Index) -> None:
        index.put([document("a.md", "secretword\n"), document("b.md", "other\n")])

        assert index.drop(["a.md", "never.md"]) == 1
        assert found(index, "secretword") == []
        assert set(index.known()) == {"b.md"}
        assert not len(index.look(Filter(), ["secretword"]).match("secretword")[0])

    def test_a_view_does_not_change_when_others_write(self, index: Index) -> None:
        index.put([document("a.md", "alpha beta\n")])
        view = index.look(Filter(), ["alpha"])
        index.put([document("b.md", "alpha\n")])
        index.drop(["a.md"])

        assert view.count == 1
        assert len(view.match("alpha")[0]) == 1
        assert view.rows([0]) == [None]

    def test_scopes_hide_documents_and_parts_of_documents(self, index: Index) -> None:
        text = "open tea line\n\nprivate tea line\n\nopen again tea\n"
        labels = (Label(start=3, end=3, scopes=MAIN_ONLY),)
        index.put(
            [document("a.md", text, scopes=BOTH, labels=labels), document("b.md", "tea alone\n", scopes=MAIN_ONLY)]
        )

        assert [hit[1] for hit in found(index, "tea", scope=GROUP)] == [1, 5] or [
            hit[1] for hit in found(index, "tea", scope=GROUP)
        ] == [5, 1]
        assert len(found(index, "tea", scope=OWNER)) == 4
        assert found(index, "private", scope=GROUP) == []

    def test_a_hidden_line_changes_no_score(self, index: Index, other: Index) -> None:
        shown = ["the red boat sails", "tea with Ana", "a boat and a harbour"]
        index.put([document("a.md", "\n\n".join(shown) + "\n", scopes=BOTH)])
        hidden = "\n\n".join([shown[0], "boat boat boat secret", *shown[1:]]) + "\n"
        labels = (Label(start=3, end=4, scopes=MAIN_ONLY),)
        other.put([document("a.md", hidden, scopes=BOTH, labels=labels), document("z.md", "boat\n", scopes=MAIN_ONLY)])

        seen = [score for *_, score in found(index, "red boat harbour", scope=GROUP)]
        assert seen == [score for *_, score in found(other, "red boat harbour", scope=GROUP)]

    def test_overlapping_labels_are_as_narrow_as_the_narrowest(self, index: Index) -> None:
        labels = (Label(start=1, end=3, scopes=BOTH), Label(start=2, end=2, scopes=MAIN_ONLY, trusted=False))
        index.put([document("a.md", "one tea\ntwo tea\nthree tea\n", labels=labels)])

        assert sorted(hit[1] for hit in found(index, "tea", scope=GROUP)) == [1, 3]
        assert sorted(hit[1] for hit in found(index, "tea", scope=OWNER, trusted_only=True)) == [1, 3]

    def test_layers_kinds_trust_and_dates_are_filtered(self, index: Index) -> None:
        index.put(
            [
                document("MEMORY.md", "tea\n", kind="curated"),
                document("users/ana/MEMORY.md", "tea\n", kind="curated", layer="ana"),
                document("memory/2026-05-08.md", "tea\n", kind="daily", date=date(2026, 5, 8)),
                document("memory/2026-05-09.md", "tea\n", kind="daily", date=date(2026, 5, 9)),
            ]
        )

        def paths(**filter: object) -> list[str]:
            return sorted(hit[0] for hit in found(index, "tea", **filter))

        assert paths() == ["MEMORY.md", "memory/2026-05-08.md", "memory/2026-05-09.md"]
        assert paths(layers=frozenset({"ana"})) == ["users/ana/MEMORY.md"]
        assert paths(kinds=frozenset({"curated"})) == ["MEMORY.md"]
        assert paths(since=date(2026, 5, 9)) == ["memory/2026-05-09.md"]
        assert paths(until=date(2026, 5, 8)) == ["memory/2026-05-08.md"]

    def test_what_one_writes_another_that_is_open_sees(self, index: Index, again: Callable[[], Index]) -> None:
        second = again()
        assert found(second, "tea") == []
        index.put([document("a.md", "tea\n")])

        assert len(found(second, "tea")) == 1
        second.drop(["a.md"])
        assert found(index, "tea") == []

    def test_it_outlives_being_closed(self, index: Index, again: Callable[[], Index]) -> None:
        index.put([document("a.md", "tea\n")])
        before = found(index, "tea")
        index.close()

        assert found(again(), "tea") == before

    def test_signs_in_a_query_mean_nothing(self, index: Index) -> None:
        index.put([document("a.md", 'say "hello" AND (x OR y*) NEAR text:col -minus\n')])

        for text in (
            '"',
            "hello AND",
            "NEAR(",
            "x OR y*",
            "text:col",
            "-minus",
            "col:",
            "'; drop table unit; --",
            "\x00",
        ):
            asked(index, text + " hello")
        assert len(index.known()) == 1

    def test_an_empty_index_says_so(self, index: Index) -> None:
        assert asked(index, "tea").notes == ("nothing is indexed yet",)

    def test_a_filter_that_hides_everything_says_so(self, index: Index) -> None:
        index.put([document("a.md", "tea\n", scopes=MAIN_ONLY)])
        assert "open to this listener" in asked(index, "tea", scope=GROUP).notes[0]

    def test_a_word_is_counted_in_each_unit(self, index: Index) -> None:
        index.put([document("a.md", "# Boats\n\n- boat boat\n- tea\n- boat\n")])
        view = index.look(Filter(), ask("boat"))

        places, counts = view.match("boat")
        assert list(view.sight.rows["start"][places]) == [1, 3, 4, 5]
        assert list(counts) == [1.0, 2.5, 0.5, 1.5]  # a heading counts half for what stands under it

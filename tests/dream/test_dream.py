"""What dreaming decides: which notes last, which are junk, what replaces what, what a night changes. No files, no ledger."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.dream.material import (
    BUDGET,
    PRESETS,
    Evidence,
    Held,
    LogNote,
    Material,
    Preset,
    SweepPlan,
    Tallies,
    Tally,
    score,
    why_junk,
)
from anima.dream.pages import dreamed_on, fact_of, folded, items, with_section, without
from anima.dream.plan import PlannedNight
from anima.errors import BadArguments
from anima.ledger import Record
from anima.text.notes import POSSIBLE, SURE, Relation, core_of, lasting, relation, says_too, sentence

TODAY = date(2026, 4, 23)
NOW = datetime(2026, 4, 23, 3, tzinfo=UTC)


def tally(*recalls: tuple[int, str], rank: int = 1, relative: float = 1.0) -> Tally:
    """Recalls as (days ago, question)."""
    found = Tally()
    for ago, question in recalls:
        day = (TODAY - timedelta(days=ago)).isoformat()
        found.add(day=day, question=question, rank=rank, score=relative, relative=relative)
    return found


def note(text: str, *, ago: int = 10, line: int = 3, tally: Tally | None = None) -> LogNote:
    day = TODAY - timedelta(days=ago)
    return LogNote(path=f"memory/{day}.md", line=line, raws=(f"- [09:00] {text}",), text=text, day=day, tally=tally)


def held(number: int, fact: str, *, machine: bool = True, ago: int = 5, since: date | None = None) -> Held:
    night = TODAY - timedelta(days=ago)
    return Held(
        number=number, raw=f"- {fact}", fact=fact, since=since, machine=machine, night=night if machine else None
    )


def night(
    *notes: LogNote, memory: str = "# Memory\n", lines: tuple[Held, ...] = (), rules: str = "anima", **more: object
) -> SweepPlan:
    ordered = tuple(sorted(notes, key=lambda n: (n.day, n.line)))
    return PlannedNight(
        Material(
            now=NOW,
            today=TODAY,
            rules=Preset.named(rules),
            notes=ordered,
            memory=memory,
            held=lines,
            **{"doubt": lambda note: None, **more},
        )
    ).plan()  # type: ignore[arg-type]


PEOPLE = "Ana Luis Marta Priya Kenji Olga Bruno Chidi Leila Noor Gustav Hana".split()
TOWNS = "Porto Leeds Ghent Cali Oslo Turin Nantes Quito Bonn Cork Riga Lund".split()
ASKED = ((3, "q1"), (2, "q2"), (1, "q3"))

# -- junk and what lasts -----------------------------------------------------------------------------------------------------

JUNK = (
    """
$ git push origin main|cd /srv/app && make test|docker compose up -d web|2026-03-11 02:11:22 INFO api: request took 12 ms
[WARN] cache miss for key a:1|Traceback (most recent call last): File "a.py", line 3, in main|KeyError: 'name'
cron: backup of web finished, 12 files|HEARTBEAT_OK|Good morning|Thanks, that helped a lot|{"status": "ok", "count": 3}
Search returned 12 results for login|https://example.org/a/1|what did Ana mean by that?|¿Cuánto tarda el informe?
TODO: call Ana about the report|[x] send the draft to Luis|Need to fix the login|I'll look into the parser next
Dream sweep: 12 candidates, 3 promoted|def total(x): return x + 1|SELECT * FROM users WHERE id = 4;|Sunny, 21 degrees
Nothing to report|level=info msg="done" dur=3ms|commit 3af91c2 tidies up|1. milk 2. bread 3. soap|ok|milk, bread, soap
This is an automated notice from the shop|Please do not reply to this notice
search results for 'blue folder': none|note_find("Ana") -> 4 hits, best 0.81|The PIN of the garage is 4821|wifi password: Tulip!garden
""".strip()
    .replace("\n", "|")
    .split("|")
)


@pytest.mark.parametrize("text", JUNK)
def test_junk_is_known_by_its_shape(text: str) -> None:
    assert why_junk(text) is not None


LASTING = (
    """
Ana is allergic to peanuts|Luis lives in Bogotá|The Falcon standup is at 9:30 on weekdays|Never deploy Falcon on a Friday
Ana's dentist is Dr. Mora|We decided to publish Heron under MIT|Marta vive en Sevilla|Tomás es alérgico al marisco
Invoices for Quartz go out on the last Friday of the month|my sister plays the cello|address of Eva: Oak Street 12
The largest attachment the gateway takes is 40 MB|I found out that Luis is afraid of dogs|I was told Ana works nights at the clinic
Luis told me he's allergic to kiwi|So Ana told us her son is called Teo
The lease with Mrs. Gil runs until 2031|Luis owns a canoe, red, two seats
Error reports go to Sentry|the wifi password is kept in the blue folder|Die Domain der Praxis liegt bei Ionos
Luis moved to Medellín|Ana no longer works as a nurse|Der Zahnarzt von Ana ist Dr. Paz|We must never share the guest list
uncle Bart gave up rowing and spends Wednesday evenings at chess club
""".strip()
    .replace("\n", "|")
    .split("|")
)


@pytest.mark.parametrize("text", LASTING)
def test_a_statement_of_what_stays_so_lasts(text: str) -> None:
    assert why_junk(text) is None
    assert lasting(sentence(text)).degree >= SURE


PASSING = (
    """
Ana called about the report this morning|Lunch with Luis at 13:00|Reviewed PR #42 of Falcon, approved|Ana is on holiday this week
Falcon tests are green again|Luis was late for the meeting today|Working on the Falcon parser|Ana will bring the keys on Monday
moved card 31 to the next column|order 4471 for a birthday cake is on its way|halfway through the chapter|the lease runs until Friday
decided to have soup tonight|he llamado a Luis, no contesta|Ana is back in 20 min
Merged branch login into main|Café con Ana esta tarde|Terminada la parte de login
""".strip()
    .replace("\n", "|")
    .split("|")
)


@pytest.mark.parametrize("text", PASSING)
def test_a_remark_about_a_moment_does_not_last(text: str) -> None:
    assert lasting(sentence(text)).degree < POSSIBLE


def test_what_is_noted_day_after_day_is_routine() -> None:
    said = sentence("The pump holds its pressure")

    assert lasting(said, 9).degree < lasting(said, 0).degree
    assert lasting(said, 0, 6).degree < POSSIBLE <= lasting(said, 0, 2).degree


AROUND = ("FYI {}", "Note: {}.", "Ana told me today that {}", "{} (told me today)")


@pytest.mark.parametrize("text", [around.format("Ana lives in Porto") for around in AROUND])
def test_what_is_said_around_a_fact_is_not_part_of_it(text: str) -> None:
    assert core_of(text) == "Ana lives in Porto"


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = sentence(text)

    assert 0 <= lasting(found).degree <= 1
    assert why_junk(text) is None or isinstance(why_junk(text), str)
    assert relation(found, found) in (Relation.SAME, None)


# -- facts over time ---------------------------------------------------------------------------------------------------------

REPLACED = [
    ("Luis's home is in Ghent", "Luis moved from Ghent to Leeds"),
    ("Luis moved to Ghent in May", "Luis moved to Leeds in June"),
    ("Fatima moved the Quill demo to 8 May", "Fatima moved the Quill demo to 12 May"),
    ("Ana keeps the spare key in the shed", "Ana moved the spare key to the drawer"),
    ("Ana lives in Santiago de Chile", "Ana lives in Villa de Leyva"),
    ("The client has therapy on Mondays at 7:30", "The client's therapy slot is now Thursdays at 18:00"),
    ("Tomás uses a Fairphone", "Tomás uses an iPhone 15"),
    ("Luis lives in Bogotá", "Luis lives in Medellín"),
    ("Luis lives in Bogotá", "Luis moved to Medellín"),
    ("Luis lives in Bogotá", "Luis now lives in Medellín"),
    ("Ana uses a Samsung", "Ana uses a Pixel"),
    ("Ana uses a Samsung", "Ana now has a Pixel instead of the Samsung"),
    ("The Falcon standup is at 9:30 on weekdays", "The Falcon standup is at 10:00 on weekdays"),
    ("The Falcon standup is at 9:30 on weekdays", "The Falcon standup moved to 10:00"),
    ("Ana's dentist is Dr. Mora", "Ana's new dentist is Dr. Paz"),
    ("Marta works as a nurse", "Marta no longer works as a nurse, now a baker"),
    ("Project Heron uses SQLite for storage", "Project Heron switched from SQLite to DuckDB"),
    ("Ana vive en Quito", "Ana se mudó a Cali"),
    ("El dentista de Ana es la doctora Gil", "El nuevo dentista de Ana es el doctor Mora"),
    ("User has a coffee rule: none after noon", "User has a new coffee rule: one after lunch"),
    (
        "uncle Bart spends Wednesday evenings at rowing",
        "uncle Bart gave up rowing and spends Wednesday evenings at chess club",
    ),
    ("安娜住在北京市", "安娜住在上海市"),
    ("Emil's school: Northgate, class 4", "Emil's school: Southfield, class 5"),
    ("house rent 900", "house rent 980"),
    ("choir practice on Tuesdays 17:00", "choir practice on Fridays 18:00"),
    ("holiday fund 400 for Crete", "holiday fund 650 for Crete"),
    ("Olga best reached by letter", "Olga best reached by Signal now"),
    ("The upload limit at the proxy is 30 MB", "The upload limit at the proxy is 50 MB"),
    ("dentist Dr Mora", "dentist Dr Paz, no longer Dr Mora"),
    ("Teo is Ana's flatmate", "Ana no longer shares with Teo; she lives alone"),
    ("Gustav's manager is Hana", "Gustav reports to Chidi now, not Hana"),
    ("my sister is reachable on weekends", "my sister is reachable on Tuesdays"),
    ("The client's contact at the bank is Lena", "The client changed the contact at the bank to Sanne"),
    ("The boiler gets serviced every second Friday", "The boiler gets serviced every first Monday"),
    ("The studio is at Oak Lane 4, second floor", "The studio is at Elm Road 9, second floor"),
    ("Bruno trinkt Tee mit Zitrone", "Bruno trinkt keinen Tee mehr, nur noch Kakao"),
    ("The code for the gate is 4471", "The code for the gate is 9912"),
    ("La clave para el garaje es 4471", "La clave para el garaje es 9912"),
    ("Die Farbe von Haus Birke ist blau", "Die Farbe von Haus Birke ist gelb"),
    ("Ana lives with her parents in Lima", "Ana lives in Bogotá"),
    ("Reports go out every evening to Ana", "Reports go out every morning to Bob"),
]


OF_ONE_THING = [
    ("printer: Brother, upstairs", "printer: Canon, downstairs"),
    ("browser: Firefox", "browser: Vivaldi"),
    ("rowing: Lakeside, Mon", "rowing now Harbour Club, Wed"),
    ("Stromanbieter ist Nordlicht", "Stromanbieter ist Bergstrom"),
    ("lives at Oak Lane 4, top floor", "moved; lives at Elm Road 9, ground floor"),
    ("Lager umgebaut: Halle 3", "Lager ist umgezogen in Halle 7"),
]


@pytest.mark.parametrize(("old", "new"), OF_ONE_THING)
def test_of_a_thing_with_little_to_say_of_it_a_newer_value_replaces(old: str, new: str) -> None:
    assert relation(sentence(old), sentence(new), crowded=False) is Relation.REPLACES


@pytest.mark.parametrize(("old", "new"), REPLACED)
def test_the_same_frame_with_another_value_or_a_word_of_change_replaces(old: str, new: str) -> None:
    assert relation(sentence(old), sentence(new)) is Relation.REPLACES


STAY = [
    ("Fatima moved the Quill demo to 8 May", "Fatima moved the Atlas demo to 25 December"),
    ("Fatima's Quill demo is on 8 May", "Fatima moved the Atlas demo to 25 December"),
    ("Fatima rescheduled the board meeting to Monday", "Fatima rescheduled the design meeting to Tuesday"),
    ("Fatima changed the dentist to Dr. Lee", "Fatima changed the gym to Northside"),
    ("Fatima verschob die Quill-Demo auf den 8. Mai", "Fatima verschob die Atlas-Demo auf den 25. Dezember"),
    ("Bo pays the rent on Fridays", "Bo pays the gardener on Mondays"),
    ("Ana keeps the spare key in the shed", "Ana keeps the passport in the drawer"),
    ("Ana keeps the spare key in the shed", "Ana moved the passport to the drawer"),
    ("The user has a dog", "The user's car is now a Zoe"),
    ("User drives a Fiat", "User's mother drives a Zoe now"),
    ("Ana is allergic to peanuts", "Ana is allergic to shellfish"),
    ("Ana is allergic to peanuts", "Ana is also allergic to shellfish"),
    ("Luis has a dog called Rex", "Luis has a dog called Toby"),
    ("Luis has a dog called Rex", "Luis now has a Fairphone instead of the Pixel"),
    ("Tomás speaks Dutch", "Tomás also speaks Basque"),
    ("Luis lives in Bogotá", "Ana lives in Medellín"),
    ("Ana's dentist is Dr. Mora", "Ana's accountant is Dr. Paz"),
    ("Ana's birthday is May 9", "Ana switched to a Pixel 9"),
    ("Ana prefers short replies", "Ana prefers window seats on long flights"),
    ("El dentista de Ana es la doctora Gil", "El nuevo dentista de Luis es el doctor Mora"),
    ("Invoices for Quartz go out on Mondays", "Invoices for Heron now go out on Fridays"),
    ("User's wife writes code in Zed", "User's wife moved the account to the savings bank"),
    ("On trains User books the quiet coach", "On trains User's wife books the front"),
    ("Never deploy Falcon on a Friday", "Never deploy Falcon on a Monday"),
    ("Falcon prod store: Postgres 14", "Falcon staging store: Postgres 15"),
    ("Lena: allergic to nuts", "Lena: left-handed"),
    ("Emil's school: Northgate", "Emil's teacher: Mr. Voss"),
    ("rule: no meetings on Fridays", "rule: no deploys after 16:00"),
    ("Leila works at Bosch", "Leila works best in the morning"),
    ("Bruno hat ein Boot, Möwe", "Bruno hat ein zweites Boot, Ente"),
    ("Ana is the treasurer of the club and works from Lund", "Ana no longer works five days; she works two days"),
    ("backups run to the shed", "backups for the shop are encrypted"),
    ("The practice has a branch in Bonn", "The practice has a further branch in Kiel"),
    ("The choir has a second drum named Otto", "The choir has a drum named Bo"),
    ("Always use ISO dates in letters to Ana", "Always use metric units in letters to Ana"),
    ("To open the shed one needs the red fob", "To open the attic one needs the red fob"),
    ("The lease for the van is with Blue Motors", "The lease for the barn is with Blue Motors"),
    ("Ana lives in Lima", "Ana lives with Ben"),
]


@pytest.mark.parametrize(("old", "new"), STAY)
def test_of_two_things_to_say_of_one_neither_replaces_the_other_even_early(old: str, new: str) -> None:
    assert relation(sentence(old), sentence(new), crowded=False) is not Relation.REPLACES


@pytest.mark.parametrize(("old", "new"), STAY[:8])
def test_of_two_things_neither_replaces_the_other_though_one_question_finds_both(old: str, new: str) -> None:
    assert relation(sentence(old), sentence(new), together=True) is not Relation.REPLACES


@pytest.mark.parametrize(("old", "new"), STAY)
def test_an_addition_or_another_subject_replaces_nothing(old: str, new: str) -> None:
    assert relation(sentence(old), sentence(new)) is not Relation.REPLACES


def test_the_same_fact_in_other_words_shares_its_recalls() -> None:
    assert says_too(sentence("Ana has a dog called Rex"), sentence("Ana's dog is named Rex"))
    assert not says_too(sentence("Ana has a dog called Rex"), sentence("Luis has a dog called Rex"))


# -- tallies and scores ------------------------------------------------------------------------------------------------------


def recall(n: int, **fields: object) -> Record:
    hits = [
        {"path": "memory/a.md", "lines": ["d1"], "rank": 1, "score": 0.8},
        {"path": "memory/a.md", "lines": ["d2"], "rank": 2, "score": 0.4},
    ]
    given = {"query": f"q{n}", "hits": hits, "session": "s", "scope": "main", "day": "2026-04-20", **fields}
    return Record(n=n, t="2026-04-20T10:00:00+00:00", kind="recall", fields=given, prev="", hash="")


def test_only_searches_of_the_owners_main_sessions_are_counted() -> None:
    tallies = Tallies()
    for record in (recall(1), recall(2, scope="group"), recall(3, layer="bob"), recall(4, scope="cron")):
        tallies.fold(record)
    found = tallies.of("memory/a.md", ["d1"])

    assert found is not None and found.hits == 1
    assert tallies.through == 4


def test_a_hit_far_below_the_best_is_no_strong_one_and_a_question_counts_once_a_day() -> None:
    tallies = Tallies()
    for record in (recall(1, query="same"), recall(2, query="same")):
        tallies.fold(record)
    first, second = tallies.of("memory/a.md", ["d1"]), tallies.of("memory/a.md", ["d2"])

    assert first and second
    assert (len(first.strong), first.hits) == (1, 2)
    assert not second.strong


def evidence(**given: object) -> Evidence:
    return Evidence(
        **{"recalls": 3, "questions": 2, "days": 2, "relevance": 0.5, "first": TODAY, "last": TODAY, **given}
    )  # type: ignore[arg-type]


def test_the_presets_have_the_numbers_of_their_systems() -> None:
    found = score(evidence(), today=TODAY, rules=Preset.named("nexo"))

    assert (PRESETS["nexo"].score, PRESETS["nexo"].recalls, PRESETS["nexo"].questions, PRESETS["nexo"].limit) == (
        0.35,
        3,
        2,
        20,
    )
    assert (
        PRESETS["openclaw"].score,
        PRESETS["openclaw"].recalls,
        PRESETS["openclaw"].questions,
        PRESETS["openclaw"].limit,
    ) == (0.8, 3, 3, 10)
    # 0.24 ln 4 / ln 7 + 0.30 * 0.5 + 0.15 * 2/5 + 0.15 * 1 + 0.10 * 2/5
    assert found.total == pytest.approx(0.24 * 0.7124 + 0.15 + 0.06 + 0.15 + 0.04, abs=1e-3)


@given(st.integers(0, 500), st.integers(0, 60), st.integers(0, 60), st.floats(0, 1), st.integers(0, 400))
def test_a_score_lies_between_0_and_1_in_every_preset(
    recalls: int, questions: int, days: int, relevance: float, age: int
) -> None:
    last = TODAY - timedelta(days=age)
    given = evidence(recalls=recalls, questions=questions, days=days, relevance=relevance, last=last, first=last)

    assert all(0 <= score(given, today=TODAY, rules=rules).total <= 1 for rules in PRESETS.values())


def test_a_preset_that_is_none_is_told() -> None:
    with pytest.raises(BadArguments, match="there are anima, nexo, openclaw"):
        Preset.named("lucid")


# -- a night -----------------------------------------------------------------------------------------------------------------


def test_a_fact_asked_for_on_several_days_becomes_memory_in_its_own_words() -> None:
    found = night(note("Ana is allergic to peanuts", tally=tally(*ASKED)))

    assert [p.fact for p in found.promotions] == ["Ana is allergic to peanuts"]
    assert found.memory is not None
    assert found.memory == "# Memory\n\n- Ana is allergic to peanuts\n"


def test_a_dreamed_line_goes_where_it_belongs_and_takes_the_place_of_what_it_makes_untrue() -> None:
    memory = "# Memory\n\n## Boat\n\n- Luis lives in Bogotá\n- The Gaviota leaks\n\n## People\n\n- Bo is my brother\n"
    found = night(
        note("Luis lives in Bogotá", ago=40, tally=tally(*ASKED)),
        note("Luis moved to Cali", ago=1),
        note("Ana is my sister and is allergic to peanuts", tally=tally(*ASKED)),
        memory=memory,
        lines=(held(5, "Luis lives in Bogotá"),),
    )

    assert found.memory == memory.replace(
        "- Luis lives in Bogotá\n", "- Luis moved to Cali (since 2026-04-22)\n"
    ).replace("- Bo is my brother\n", "- Bo is my brother\n- Ana is my sister and is allergic to peanuts\n")


def test_the_dialect_with_a_form_of_its_own_keeps_headings_and_figures() -> None:
    found = night(note("Ana is allergic to peanuts", tally=tally(*ASKED)), seed_form=True)

    assert found.memory is not None
    assert "## Dreamed 2026-04-23 03:00 UTC\n\n- Ana is allergic to peanuts _(score=" in found.memory
    assert found.memory.rstrip().endswith("hits=3, days=3)_")


def test_what_was_asked_for_once_waits() -> None:
    found = night(note("Ana is allergic to peanuts", tally=tally((1, "q1"))))

    assert found.memory is None
    assert found.considered[0].refusal and found.considered[0].refusal.name == "recalls"


@pytest.mark.parametrize("rules", PRESETS)
def test_junk_is_never_promoted_however_often_it_is_asked_for(rules: str) -> None:
    often = [(day, f"q{day}") for day in range(12)]
    found = night(*(note(text, line=n, tally=tally(*often)) for n, text in enumerate(JUNK, 1)), rules=rules)

    assert found.promotions == ()


@pytest.mark.parametrize("rules", PRESETS)
def test_a_note_in_doubt_is_never_promoted(rules: str) -> None:
    often = [(day, f"q{day}") for day in range(12)]
    found = night(note("Ana is allergic to peanuts", tally=tally(*often)), rules=rules, doubt=lambda n: "untrusted")

    assert found.promotions == ()


def test_a_newer_value_takes_the_place_of_the_old_one_before_anybody_asked_for_it() -> None:
    memory = "# Memory\n\n## Dreamed 2026-04-18 03:00 UTC\n\n- Luis lives in Bogotá\n"
    found = night(
        note("Luis lives in Bogotá", ago=40, tally=tally(*ASKED)),
        note("Luis moved to Cali", ago=1),
        memory=memory,
        lines=(held(5, "Luis lives in Bogotá"),),
    )

    assert found.memory is not None and "Bogotá" not in found.memory
    assert "- Luis moved to Cali (since 2026-04-22)\n" in found.memory
    assert found.past == "- Luis lives in Bogotá _(2026-03-14 to 2026-04-22; then: Luis moved to Cali)_\n"


REPEATED = [
    ("Ana works nights at the clinic", "Ana does night shifts at the clinic", "Ana works days at the museum"),
    ("lives at Oak Lane 4, top floor", "home address Oak Lane 4", "moved; lives at Elm Road 9, ground floor"),
    ("The message bus is Rabbit", "we publish through Rabbit", "The message bus is Pulsar, switched over"),
    (
        "We host the film club at the harbour every month",
        "monthly film club place: the harbour",
        "We host the film club at the school every month",
    ),
    ("Luis gets up at 6:20 on workdays", "6:20 sharp is when Luis gets up", "Luis gets up at 7:45 on workdays"),
    (
        "weekly choir practice on Monday 16:00",
        "Monday 16:00 = choir practice",
        "weekly choir practice on Thursday 19:00",
    ),
]


@pytest.mark.parametrize(("old", "again", "new"), REPEATED)
def test_an_update_takes_every_paraphrase_of_the_old_value_along(old: str, again: str, new: str) -> None:
    notes = (note(old, ago=30), note(again, ago=25), note(new, ago=2))
    page = f"# Memory\n\n## Dreamed 2026-04-01 03:00 UTC\n\n- {again}\n"
    made = night(*notes, memory=page, lines=(held(5, again, ago=20),))

    assert [r.held.fact for r in made.retirements] == [again]
    assert made.past.startswith(f"- {again}")


def test_a_line_that_only_shares_a_word_with_what_was_replaced_stays() -> None:
    notes = (
        note("The staff lunch is on Monday at 12", ago=30),
        note("The bakery is closed every Monday", ago=25),
        note("The staff lunch has moved to Friday at 13", ago=2),
    )
    made = night(*notes, lines=(held(5, "The bakery is closed every Monday", ago=20),))

    assert made.retirements == ()


def test_what_is_said_of_somebody_in_turns_holds_both_times() -> None:
    """Said again after the other was said: neither replaced the other."""
    notes = (
        note("Teo trains with Olga at noon", ago=30),
        note("Teo trains with Luis at noon", ago=20),
        note("Teo trains with Olga at noon", ago=10),
        note("Teo trains with Luis at noon", ago=5),
    )
    made = night(*notes, lines=(held(5, "Teo trains with Olga at noon", ago=20),))

    assert made.retirements == ()


def test_a_dreamed_line_that_turned_out_to_be_routine_leaves_with_a_trace() -> None:
    phrase = "The pump holds its pressure"
    notes = [note(phrase, ago=ago) for ago in range(2, 12)]
    page = f"# Memory\n\n## Dreamed 2026-04-13 03:00 UTC\n\n- {phrase}\n"
    made = night(*notes, memory=page, lines=(held(5, phrase),))

    assert made.memory is not None and phrase not in made.memory
    assert phrase in made.moved


def test_an_outdated_note_is_not_promoted() -> None:
    found = night(note("Luis lives in Bogotá", ago=40, tally=tally(*ASKED)), note("Luis lives in Cali", ago=20))

    assert all("Bogotá" not in p.fact for p in found.promotions)


def test_the_owners_own_line_is_only_wished_away() -> None:
    memory = "# Memory\n\n- Luis lives in Bogotá\n"
    found = night(
        note("Luis moved to Cali", ago=1), memory=memory, lines=(held(3, "Luis lives in Bogotá", machine=False),)
    )

    assert found.memory is None
    assert [wish.held.fact for wish in found.wishes] == ["Luis lives in Bogotá"]


def test_what_memory_says_already_is_not_said_twice() -> None:
    memory = "# Memory\n\n- Ana has a dog called Rex\n"
    found = night(
        note("Ana's dog is named Rex", tally=tally(*ASKED)),
        memory=memory,
        lines=(held(3, "Ana has a dog called Rex", machine=False),),
    )

    assert found.memory is None


def test_a_fact_that_was_taken_out_does_not_come_back_until_it_is_noted_anew() -> None:
    old = note("Ana is allergic to peanuts", ago=30, tally=tally(*ASKED))
    before = {"ana is allergic to peanuts": TODAY - timedelta(days=5)}

    assert night(old, promoted=before).promotions == ()
    assert night(old, note("Ana is allergic to peanuts", ago=2), promoted=before).promotions


def test_a_full_memory_gives_up_its_least_asked_for_dreamed_lines_and_never_the_owners() -> None:
    own = [f"- The owner keeps this line number {n}, {'x' * 60}" for n in range(60)]
    ours = [f"- Person{n} likes the colour number {n}, {'y' * 40}" for n in range(50)]
    memory = "\n".join(["# Memory", "", *own, "", "## Dreamed 2026-04-01 03:00 UTC", "", *ours]) + "\n"
    lines = tuple(
        held(n, line[2:], machine=line in ours) for n, line in enumerate(memory.split("\n"), 1) if line.startswith("- ")
    )
    found = night(note("Ana is allergic to peanuts", tally=tally(*ASKED)), memory=memory, lines=lines)

    assert found.memory is not None and len(found.memory) <= BUDGET
    assert all(line in found.memory for line in own)
    assert "Ana is allergic to peanuts" in found.memory
    assert found.moves and all(line.fact in found.moved for line in found.moves)


def test_no_line_with_an_untrusted_ancestor_is_ever_promoted() -> None:
    """Random graphs of derivation: a note is in doubt when anything it was made from is."""
    for seed in range(200):
        dice = random.Random(seed)
        notes, tainted = [], set()
        for n in range(12):
            made = note(f"{PEOPLE[n]} lives in {TOWNS[n]}", ago=dice.randint(1, 40), line=n + 3, tally=tally(*ASKED))
            parents = dice.sample(notes, k=min(len(notes), dice.randint(0, 3)))
            if dice.random() < 0.2 or any(parent.text in tainted for parent in parents):
                tainted.add(made.text)
            notes.append(made)
        found = night(*notes, doubt=lambda n, bad=frozenset(tainted): "untrusted" if n.text in bad else None)

        assert {p.fact for p in found.promotions} == {n.text for n in notes} - tainted


def test_the_same_material_gives_the_same_plan() -> None:
    notes = [note(text, line=n, tally=tally(*ASKED)) for n, text in enumerate(LASTING, 1)]

    assert night(*notes).memory == night(*notes).memory


# -- pages -------------------------------------------------------------------------------------------------------------------


def test_notes_are_read_from_a_log_with_what_hangs_below_them() -> None:
    log = "# 2026-04-20\n\n- [09:00] Ana lives in Porto,\n  near the river\n```\ncode\n```\n<!-- aside -->\n- [x] done\nplain line\n"

    assert [(item.line, item.text) for item in items(log)] == [
        (3, "Ana lives in Porto, near the river"),
        (9, "[x] done"),
        (10, "plain line"),
    ]


def test_a_dreamed_line_is_read_back_without_its_evidence() -> None:
    assert fact_of("- Ana lives in Porto (since 2026-02-03) _(score=0.42, hits=5, days=3)_") == (
        "Ana lives in Porto",
        date(2026, 2, 3),
    )


def test_a_day_that_no_month_has_is_no_date() -> None:
    assert fact_of("- Ana lives in Porto (since 2026-02-31)") == ("Ana lives in Porto (since 2026-02-31)", None)
    assert dreamed_on("## Dreamed 2026-99-99 UTC\n\n- Ana lives in Porto\n") == {}


def test_what_is_commented_out_over_lines_is_no_note() -> None:
    log = "- one fact\n<!-- aside\n- not said\n```\n-->\n- two facts\n"

    assert [item.text for item in items(log)] == ["one fact", "two facts"]
    assert [item.text for item in items("- a comment begins with <!--\n- two facts\n")][1:] == ["two facts"]


def test_a_section_is_added_and_taken_out_without_a_trace() -> None:
    page = "# Memory\n\n- mine\n"
    added = with_section(page, "## Dreamed 2026-04-23 03:00 UTC", ["- one", "- two"])

    assert without(added, set(dreamed_on(added))).rstrip() == page.rstrip()


def test_folding_keeps_every_line() -> None:
    page = "# Memory\n"
    for day in (1, 2, 3):
        page = with_section(page, f"## Dreamed 2026-04-0{day} 03:00 UTC", [f"- fact {day}"])
    told = folded(page)

    assert [line for line in told.splitlines() if line.startswith("-")] == ["- fact 1", "- fact 2", "- fact 3"]
    assert told.count("## Dreamed") == 2
    assert folded(told) == told

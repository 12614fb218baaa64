"""What one listener may not know reaches them through no tool: not by a result, not by an error, not by a name."""

import json
from itertools import product
from pathlib import Path

import pytest

from anima import Home, HomeError, Scope
from anima.sessions.replay import Header, stamp
from anima.sessions.tools import TABLE
from anima.testing import Clock

# Each secret stands beside a word it can be found by, so that an answer that repeats the question gives nothing away.
PLACES = {
    "CANARY-MEMORY": ("MEMORY.md", "zebra"),
    "CANARY-DAILY": ("memory/2026-05-08.md", "walrus"),
    "CANARY-USER": ("USER.md", "ferret"),
    "CANARY-PRIVATE": ("SOUL.md", "otter"),
    "CANARY-SHARED": ("AGENTS.md", "heron"),
    "CANARY-TOPIC": ("memory/topics/CANARY-NAME.md", "badger"),
    "CANARY-DREAM": ("DREAMS.md", "lemur"),
    "CANARY-ANA": ("users/ana/MEMORY.md", "puffin"),
    "CANARY-MALLORY": ("users/mallory/MEMORY.md", "magpie"),
}
TALKS = {
    "CANARY-OWNERTALK": ("luis", "main", "gecko"),
    "CANARY-GROUPTALK": (None, "main", "marmot"),
    "CANARY-ANATALK": ("ana", "main", "stoat"),
    "CANARY-MALLORYTALK": ("mallory", "main", "dingo"),
    "CANARY-OTHERAGENT": ("luis", "bob", "tapir"),
}
WORDS = [word for _, word in PLACES.values()] + [word for *_, word in TALKS.values()]
EVERYBODY = {"CANARY-SHARED"}
LOOKED_UP = {"CANARY-TOPIC", "CANARY-NAME"}  # what the owner's own rituals may read
OWNERS = set(PLACES) | {"CANARY-NAME"} | {"CANARY-OWNERTALK", "CANARY-GROUPTALK"}
# Who may learn what. The owner alone sees every document; of what was said, their own layer's.
MAY = {
    ("luis", Scope.MAIN): OWNERS,
    ("luis", Scope.GROUP): EVERYBODY,
    ("luis", Scope.SUBAGENT): EVERYBODY,
    ("luis", Scope.CRON): EVERYBODY | LOOKED_UP | {"CANARY-USER"},
    ("luis", Scope.HEARTBEAT): EVERYBODY | LOOKED_UP | {"CANARY-USER", "CANARY-MEMORY", "CANARY-DAILY"},
    ("mallory", Scope.MAIN): EVERYBODY | {"CANARY-MALLORY", "CANARY-MALLORYTALK"},
    ("mallory", Scope.GROUP): EVERYBODY,
    ("ana", Scope.MAIN): EVERYBODY | {"CANARY-ANA", "CANARY-ANATALK"},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    clock = Clock()
    root = tmp_path_factory.mktemp("canaries") / "home"
    with Home.create(root, name="Aria", clock=clock, settings={"owner": ["cli:luis"]}) as home:
        for secret, (path, word) in PLACES.items():
            line = f"- the {word} holds {secret}\n"
            marked = f"\n## Inside <!-- private -->\n\n{line}"
            text = home.read(path).text if home.exists(path) else ""
            home.write(path, text + (marked if secret == "CANARY-PRIVATE" else f"\n{line}"))
        ids = {secret: spoken(home, secret) for secret in TALKS}
        home.remember("a second line")
        home.index()
        yield home, ids


def spoken(home, secret):
    """A transcript in which the secret was said, by somebody to some agent."""
    sender, agent, word = TALKS[secret]
    if agent != home.agent:
        header = Header(id=f"of-{agent}", timestamp=stamp(home.clock()), agent_id=agent, scope="main", sender_id=sender)
        with_other = home.sessions.create(header)
        with_other.log("user", f"the {word} says {secret}")
        with_other.close()
        return header.id
    scope = Scope.GROUP if sender is None else Scope.MAIN
    session = home.session(scope=scope, sender=sender, channel="cli")
    session.log("user", f"the {word} says {secret}")
    session.close()
    return session.id


def questions(ids):
    """Every tool with arguments that reach for everything."""
    paths = [path for path, _ in PLACES.values()] + [f"sessions/{id}.jsonl" for id in ids.values()]
    paths += ["sessions/sessions.json", ".anima/ledger.jsonl", "anima.toml", "users/ana/USER.md", "../home/MEMORY.md"]
    asked = {
        "memory_search": [
            {"query": f"what does the {w} hold or say", "corpus": c, "limit": 20}
            for w in WORDS
            for c in ("memory", "all")
        ]
        + [{"query": w, "corpus": "sessions", "fusion": "rrf"} for w in WORDS],
        "memory_get": [{"path": path, "from": start} for path in paths for start in (1, 9)],
        "memory_write": [{"target": path, "old_string": "the", "new_string": "x"} for path in paths]
        + [{"target": path, "old_string": "nothing like it", "new_string": "x"} for path in paths]
        + [{"target": "memory", "content": f"the {w} holds it"} for w in WORDS],
        "memory_tree": [
            {"path": path, "depth": depth}
            for path in ("", "memory", "users", "sessions", "memory/topics", "users/ana")
            for depth in (1, 9)
        ],
        "memory_history": [{"path": path, "diff": True, "limit": 100} for path in ("", *paths)],
        "memory_forget": [{"text": f"the {w} holds"} for w in WORDS]
        + [{"path": path, "line": n} for path in paths for n in (1, 3)],
        "memory_checkpoint": [{"note": "here"}],
        "memory_read_outside": [{}],
        "skill_read": [{"name": "x", "file": f"../../{path}"} for path in paths]
        + [{"name": f"../{path.removesuffix('.md')}"} for path in paths],
        "skill_draft": [{"name": w, "description": f"the {w}", "body": f"the {w} holds it"} for w in WORDS],
        "who_am_i": [{}],
        "what_do_i_know": [{"limit": 50}, {"section": "e"}],
        "my_stats": [{}],
        "session_logs": [{"action": "list_sessions"}, {"action": "recent"}]
        + [
            {"action": action, "session_id": id, "max_chars": 4000}
            for action in ("read_session", "recent")
            for id in ids.values()
        ]
        + [{"action": "search", "query": word} for word in WORDS],
    }
    assert set(asked) == set(TABLE), "a new tool needs its questions here"
    return [(name, arguments) for name, many in asked.items() for arguments in many]


@pytest.mark.parametrize(("sender", "scope"), list(MAY))
def test_no_tool_tells_a_listener_what_is_not_theirs(home, sender, scope):
    opened, ids = home
    secrets = {*PLACES, *TALKS, "CANARY-NAME"} - MAY[sender, scope]
    learned = set()
    session = opened.session(scope=scope, sender=sender, channel="cli", access="ro")
    for name, arguments in questions(ids):
        try:
            answer = json.dumps(session.call(name, arguments), ensure_ascii=False)
        except HomeError as error:
            answer = f"{error} {error.hint}"
        for given in arguments.values():
            answer = answer.replace(str(given), "")  # the question itself
        leaked = [secret for secret in secrets if secret in answer]
        assert not leaked, (name, arguments, answer)
        learned |= {secret for secret in MAY[sender, scope] if secret in answer}
    assert learned == MAY[sender, scope] - {"CANARY-USER"} | (learned & {"CANARY-USER"})


@pytest.mark.parametrize(("sender", "scope"), list(MAY))
def test_there_and_not_theirs_is_the_same_answer_as_not_there(home, sender, scope):
    opened, _ = home
    session = opened.session(scope=scope, sender=sender, channel="cli", access="ro")
    kept = [PLACES[secret][0] for secret in set(PLACES) - MAY[sender, scope] if secret != "CANARY-PRIVATE"]
    for path, tool in product(kept, ("memory_get", "memory_write")):
        more = {"old_string": "the", "new_string": "x"} if tool == "memory_write" else {}
        key = "target" if more else "path"
        told = []
        for asked in (path, path.replace(Path(path).name, "nowhere.md")):
            try:
                told.append(str(session.call(tool, {key: asked, **more})))
            except HomeError as error:
                told.append(f"{type(error).__name__} {error}")
        shown = [text.replace(Path(path).name, "nowhere.md").replace("users/" + sender, "users/x") for text in told]
        if "CANARY-USER" in MAY[sender, scope] or not sender or sender == "luis":
            assert shown[0] == shown[1]


def test_another_agents_transcripts_stay_closed_to_every_action(home):
    opened, ids = home
    other = ids["CANARY-OTHERAGENT"]
    with pytest.raises(HomeError) as resumed:
        opened.resume(other)
    with pytest.raises(HomeError) as missing:
        opened.resume("of-nob")
    assert str(resumed.value).replace("of-bob", "x") == str(missing.value).replace("of-nob", "x")
    with opened.session(scope=Scope.MAIN, sender="luis") as session:
        listed = session.call("session_logs", {"action": "list_sessions", "limit": 500})
        assert other not in {row["session_id"] for row in listed["sessions"]}


def test_no_secret_of_any_kind_is_in_transcript_index_list_or_answer(tmp_path):
    corpus = Path(__file__).parents[1] / "corpora" / "secrets.jsonl"
    rows = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines() if line.strip()]
    from anima.gate.scan import redact
    from secret_rows import filled

    pairs = [filled(row) for row in rows if row["kind"]]
    known = [(secret, line) for secret, line in pairs if secret not in redact(line)[0] and len(secret) >= 8]
    assert len({row["kind"] for row in rows if row["kind"]}) >= 20 and len(known) >= 0.9 * len(pairs)
    with Home.create(tmp_path / "home", name="Aria", clock=Clock()) as home:
        with home.session(scope=Scope.MAIN) as session:
            for _, line in known:
                session.log("user", line)
                session.log("tool", json.dumps({"output": line}))
            answers = [session.call("session_logs", {"action": "recent", "limit": 500, "max_chars": 4000})]
            answers += [
                session.call("session_logs", {"action": "search", "query": line[:200] or "x"}) for _, line in known
            ]
            answers += [session.call("session_logs", {"action": "list_sessions"})]
            answers += [session.call("memory_search", {"query": line[:200], "corpus": "all"}) for _, line in known[:20]]
            session.after_compaction(summary="\n".join(line for _, line in known))
        told = json.dumps(answers, ensure_ascii=False)
        index = Path(home.site.store.scratch("talks.sqlite")).read_bytes()
        files = b"".join(p.read_bytes() for p in Path(home.name).rglob("*") if p.is_file()) + index
    assert not [secret for secret, _ in known if secret in told]
    assert not [secret for secret, _ in known if secret.encode() in files]

"""The road in, and the way back. Here: what waits for a person: changes, calls of tools from outside, entries nobody reviewed.

Promise: a Proposal holds the exact change, where it came from, what the scan saw and when it lapses, and is bound to its record
in the ledger: one that was swapped is neither shown nor approved, and the same wish twice is one. Whoever calls `ask` or
`remove` holds the home lock. A call is a proposal whose `changes` are never made; whoever carries it out says so in the ledger
first, so that it is never done twice, after any kill. An unreviewed entry is named by a digest of what it would add and where,
so that a yes is bound to just that, and its text stands quoted, so that nothing in it can pass for an entry.
Not here: whether something waits (gate), proposing and adding (write), the owner's yes and no (inbox), carrying a call out (agent).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Literal

from anima.errors import BadArguments, BadPath, Damaged, HomeError, NoSuchProposal, Refused, refuse_newer
from anima.gate import APPROVAL_PLACES, CHANNEL
from anima.gate.scan import scan_text
from anima.layout import UNREVIEWED, folder_of, layer_at
from anima.ledger import Key, Ledger
from anima.model import Actor, Change, DocPath, Finding, Kind, Origin, Scope, Severity, fold
from anima.store import Documents, State, Store
from anima.text.dates import day_in_name
from anima.text.diff import diff_of
from anima.text.markdown import lines_of, unmarked
from anima.text.pages import twin_of

PENDING = "pending"
FORMAT = 1
FIRST = "first-conversation"  # the rule of the card that holds what was agreed on in it
MOST_PER_SESSION = 100
MOST_PER_GUEST = 200  # of an agent elsewhere, in however many conversations
MOST_PER_LAYER = 20  # of somebody who is not the owner, or of a group, in however many conversations
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # in what is no name
_ID = re.compile(r"p(?:[0-9a-f]{12}|[1-9]\d{0,10})")
WHOLE = 32  # signs of a name where two entries would share a short one
IMPORT = "import-"  # how the folder of an import is called; what stands in it are whole documents
MOST_NOTED_OF_SESSION = 500  # entries of one session that may wait
MOST_NOTED_OF_GUEST = 2_000  # and of an agent elsewhere, in however many
_PLAIN = ("id", "rule", "why", "content")  # of a proposal
_WISH = ("kind", "text", "base", "opening", "reason")  # of a change, as they are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A batch of changes waiting for the owner's yes or no. `content` is the digest an approval is bound to."""

    id: str  # "" while it does not wait yet
    changes: tuple[Change, ...]
    created: datetime
    expires: datetime
    rule: str
    why: str
    findings: tuple[Finding, ...] = ()
    diff: str
    content: str
    bases: tuple[str | None, ...] = (None,)  # the text each change was proposed against, None for nothing there
    forget: Mapping[str, str] | None = None  # what to forget: its `changes` then only say who asks, and where
    asked: str = ""  # a digest of the wish itself, of whoever does not see what stands there
    call: Mapping[str, str] | None = None  # of a tool from outside: `name`, `server`, `tool`, arguments as `text`
    layer: str = ""  # whose wish it is, where that is not the owner's agent alone with them

    @property
    def path(self) -> DocPath:
        return self.changes[0].path

    @property
    def is_first(self) -> bool:
        """Whether it is the card of the first conversation."""
        return self.rule == FIRST

    @property
    def forgets(self) -> str:
        """The words, or the line, that a yes forgets; empty for anything but a wish to forget."""
        wish = self.forget
        return "" if wish is None else " ".join((wish.get("text") or wish.get("said", "")).split()) or "…"

    @property
    def session(self) -> str | None:
        return self.changes[0].session


def content_of(changes: Sequence[Change], wish: Mapping[str, str] | None = None) -> str:
    """The digest of what would be written, forgotten or called: equal for the same wish, whoever asks and whenever."""
    body: list[Any] = [[c.path.key, c.kind, c.text, c.opening, c.to.key if c.to else None] for c in changes]
    body += [dict(sorted(wish.items()))] if wish is not None else []
    return hashlib.sha256(json.dumps(body, ensure_ascii=True).encode()).hexdigest()


def call_shown(call: Mapping[str, str]) -> str:
    """A call as the owner sees it: its name, and every argument as JSON, which holds no line's end of its own."""
    ends = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}  # of lines, to whoever draws them
    given = json.dumps(json.loads(call["text"]), ensure_ascii=False, indent=1).translate(ends).split("\n")
    return "".join(f"+{line}\n" for line in (f"{call['tool']} of {call['server']}", *given))


class _Broken(Damaged):
    """A file that holds no proposal of ours; a disk that fails for a moment is something else."""


class Proposals:
    """The proposals of one home, a file each. `ledger` gives the ledger that knows them."""

    def __init__(self, state: State, ledger: Callable[[], Ledger], clock: Callable[[], datetime]) -> None:
        self._state, self._ledger, self._clock = state, ledger, clock
        self._bound: dict[int, Mapping[str, Any]] = {}  # what the ledger says of each, by its number

    def all(self) -> list[Proposal]:
        """Those that still wait, oldest first; lapsed ones are passed over."""
        return sorted(self._waiting(but=_Broken), key=lambda p: (p.created, self.number(p)))

    def of(self, session: str | None) -> list[Proposal]:
        """Those of one session that wait. What cannot be read is nobody's here; `anima doctor` tells of it."""
        return [waiting for waiting in self._waiting() if waiting.session == session]

    def before(self, wish: Change, layer: str) -> tuple[list[Proposal], bool]:
        """What waits of whoever asks, in every conversation of an agent's or a layer's; and whether nothing more may."""
        all_ = self._waiting()
        if layer:
            waits = [waiting for waiting in all_ if waiting.layer == layer]
            return waits, len(waits) >= MOST_PER_LAYER
        waits = [p for p in all_ if (p.layer, p.changes[0].guest, p.changes[0].scope) == ("", wish.guest, wish.scope)]
        own = [waiting for waiting in all_ if waiting.session == wish.session]
        is_full = len(own) >= MOST_PER_SESSION or (bool(wish.guest) and len(waits) >= MOST_PER_GUEST)
        # A conversation of a group, a job or a sub-agent, in which others speak, learns nothing of another.
        return waits if wish.guest or wish.scope is Scope.MAIN else own, is_full

    def _waiting(self, but: type[Damaged] = Damaged) -> list[Proposal]:
        """Those that wait, but for what stands in no other's way; `broken` names it."""
        now = self._clock()
        return [found for _, found in self._files(but) if found is not None and found.expires > now]

    def _files(self, but: type[Damaged]) -> Iterator[tuple[str, Proposal | None]]:
        """What lies here by its name; None for what is no proposal."""
        for name in self._state.names(PENDING):
            id, found = name.removesuffix(".json"), None
            with suppress(but):
                found = self._load(id) if name == f"{id}.json" and _ID.fullmatch(id) else None
            yield name, found

    def get(self, proposal: str) -> Proposal:
        found = self._load(proposal) if _ID.fullmatch(proposal) else None
        if found is None:
            raise NoSuchProposal(f"no proposal {proposal!r} is waiting", hint="anima review lists those that do")
        if found.expires <= self._clock():
            lapsed = f"proposal {proposal} lapsed on {found.expires:%Y-%m-%d}"
            raise NoSuchProposal(f"{lapsed}; ask the agent to propose it again")
        return found

    def ids(self) -> frozenset[str]:
        return frozenset(name.removesuffix(".json") for name in self._state.names(PENDING))

    def broken(self) -> list[str]:
        """The files among the waiting changes that are none, or were altered. One that is called like a change waits with it."""
        found = dict(self._files(Damaged))
        return sorted(name for name, waiting in found.items() if waiting is None and not found.get(f"{name}.json"))

    def ask(
        self,
        changes: tuple[Change, ...],
        *,
        content: str,
        asked: str = "",
        layer: str = "",
        before: tuple[list[Proposal], bool] | None = None,
        **told: Any,
    ) -> Proposal | None:
        """A wish that waits from now on, or the same one that does already; None when too much of whoever asks waits.
        `before` is what does, where somebody looked; `told` is all that the owner is told of it."""
        (waits, is_full), now = before or self.before(changes[0], layer), self._clock()
        waits = waits if told.get("call") is None else self.of(changes[0].session)  # which gets the answer
        twin = next((p for p in waits if (p.asked == asked if asked else p.content == content)), None)
        if twin is not None or is_full:
            return twin
        told |= {"id": "", "created": now, "expires": now + timedelta(days=14)}
        proposal = Proposal(changes=changes, content=content, asked=asked, layer=layer, **told)
        ledger = self._ledger()
        noted = {"content": ledger.key.of(content), "body": _seal(ledger.key, _dump(proposal)), "rule": proposal.rule}
        kept = replace(proposal, id=f"p{ledger.key.name_of(ledger.add('proposal', noted).n)}")
        self._state.put(f"{PENDING}/{kept.id}.json", json.dumps(_dump(kept), indent=1).encode())
        return kept

    def number(self, proposal: Proposal) -> int:
        """The number of its record in the ledger. Nobody is told it: it counts what others did."""
        return self._ledger().key.number_of(proposal.id[1:])

    def raw(self) -> Iterator[tuple[str, bytes]]:
        """(id, bytes) of everything that lies here, lapsed and damaged ones too."""
        for name in self._state.names(PENDING):
            if (data := self._state.get(f"{PENDING}/{name}")) is not None:
                yield name.removesuffix(".json"), data

    def remove(self, proposal: str) -> bool:
        return any(self._state.remove(f"{PENDING}/{proposal}{end}") for end in (".json", ""))

    def _load(self, proposal: str) -> Proposal | None:
        """The proposal; None when there is none, or no longer."""
        raw, hint = self._state.get(f"{PENDING}/{proposal}.json"), f"anima review --drop {proposal} removes it"
        if raw is None:
            return None
        try:
            body = json.loads(raw)
            refuse_newer(f"{PENDING}/{proposal}.json", body.get("format", 1), FORMAT)
            found = _parse(body)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, BadPath) as error:
            raise _Broken(f"proposal {proposal} cannot be read", hint=hint) from error
        ledger = self._ledger()
        n = ledger.key.number_of(proposal[1:])
        if n not in self._bound:
            self._bound |= {record.n: record.fields for record in ledger.records(n - 1, kinds=("proposal",))}
        if found.id != proposal or self._bound.get(n, {}).get("body") != _seal(ledger.key, body):
            raise _Broken(f"proposal {proposal} was altered after it was made", hint=hint)
        return found


def _seal(key: Key, body: Mapping[str, Any]) -> str:
    return key.of(json.dumps({**body, "id": ""}, sort_keys=True))


def _dump(p: Proposal) -> dict[str, Any]:
    first = p.changes[0]
    return {
        "format": FORMAT,
        **{name: getattr(p, name) for name in _PLAIN},
        "created": p.created.isoformat(),
        "expires": p.expires.isoformat(),
        "bases": list(p.bases),
        **{name: getattr(first, name) for name in ("actor", "origin", "session", "scope")},
        **({"guest": first.guest} if first.guest else {}),
        "taint": sorted(first.taint),
        "changes": [
            {"path": c.path.text, "to": c.to.text if c.to else None} | {name: getattr(c, name) for name in _WISH}
            for c in p.changes
        ],
        "findings": [{**asdict(finding), "severity": int(finding.severity)} for finding in p.findings],
        **{name: getattr(p, name) for name in ("asked", "layer") if getattr(p, name)},
        **({"forget": dict(p.forget), "foreseen": p.diff} if p.forget is not None else {}),
        **({"call": dict(p.call)} if p.call is not None else {}),
    }


def _parse(raw: dict[str, Any]) -> Proposal:
    common = {
        "actor": Actor(raw["actor"]),
        "origin": Origin(raw["origin"]),
        "session": raw["session"],
        "guest": str(raw.get("guest", "")),
        "scope": Scope(raw["scope"]) if raw["scope"] else None,
        "taint": frozenset(Origin(o) for o in raw["taint"]),
    }
    changes = tuple(
        Change(
            path=DocPath.parse(c["path"]),
            to=DocPath.parse(c["to"]) if c["to"] else None,
            **{name: c[name] for name in _WISH} | {"kind": Kind(c["kind"])} | common,
        )
        for c in raw["changes"]
    )
    findings = tuple(Finding(**{**f, "severity": Severity(f["severity"])}) for f in raw["findings"])
    created, expires = datetime.fromisoformat(raw["created"]), datetime.fromisoformat(raw["expires"])
    if not changes or len(raw["bases"]) != len(changes) or created.tzinfo is None or expires.tzinfo is None:
        raise ValueError("a proposal has changes, a base for each, and times with a zone")
    made: dict[str, Any] = {name: str(raw.get(name, "")) for name in ("asked", "layer")}
    for name in ("forget", "call"):
        if raw.get(name) is not None:
            made[name] = {str(key): str(value) for key, value in raw[name].items()}
    made |= {name: raw[name] for name in _PLAIN} | {"bases": tuple(raw["bases"])}
    diff = call_shown(made["call"]) if "call" in made else diff_of(changes, made["bases"], whole=True)
    made["diff"] = str(raw["foreseen"]) if "forget" in made else diff
    return Proposal(**made, changes=changes, created=created, expires=expires, findings=findings)


# -- calls of tools from outside ----------------------------------------------------------------------------------------

RULE = "outside-call"
WHY = "it is not on your list of tools that only read"
_STEP = "call"  # the kind of record in the ledger


class WaitingCalls:
    """The calls of one home that wait."""

    def __init__(self, store: Store, proposals: Proposals) -> None:
        self._store, self._kept = store, proposals

    def ask(self, change: Change, call: Mapping[str, str]) -> Proposal | None:
        """A call that waits from now on, or the same one that does already; None when too much of its session waits.
        `change` says who asks: it is never made."""
        told: dict[str, Any] = {"rule": RULE, "why": WHY, "findings": scan_text(call["text"]), "diff": call_shown(call)}
        with self._store.lock():
            return self._kept.ask((change,), content=content_of((change,), call), call=call, **told)

    def of(self, session: str) -> list[Proposal]:
        """The calls of a session that are not answered yet, in the order in which they were asked."""
        waits = self._kept.of(session) if self._store.begun else []
        return sorted((p for p in waits if p.call is not None), key=self._kept.number)

    def step(self, proposal: Proposal) -> Literal["waits", "approved", "begun"]:
        """How far a call has come."""
        records = self._store.ledger.records(self._kept.number(proposal), kinds=(_STEP,))
        steps = [record.fields.get("step") for record in records if record.fields.get("proposal") == proposal.id]
        return "begun" if "begun" in steps else "approved" if steps[-1:] == ["approved"] else "waits"

    def approve(self, proposal: Proposal, approver: str) -> None:
        """The owner's yes. Raises Refused for one from anywhere but a terminal, the page or their own chat on a channel."""
        if approver not in {*APPROVAL_PLACES, CHANNEL}:
            said = f"{proposal.id} is a call of a tool from outside: you decide it at a terminal or on the page"
            raise Refused(said, rule=RULE, hint="anima review, or the inbox")
        self._note(proposal, "approved", approver=approver)

    def deny(self, proposal: Proposal) -> None:
        """The owner's no, which takes back a yes. Raises BadArguments for a call that was begun."""
        with self._store.lock():
            if self.step(proposal) == "begun":
                raise BadArguments(f"{proposal.id} was begun already")
            self._note(proposal, "denied")

    @contextmanager
    def claimed(self, proposal: Proposal) -> Iterator[bool]:
        """Whoever is inside carries the call out, and nobody else; False where somebody began before, and did not come to
        the end. Raises HomeBusy while somebody does, and Refused without a yes."""
        with self._store.lease(f"call-{self._kept.number(proposal) % 8}", patience=0):  # no more files of locks than 8
            with self._store.lock():
                step = self.step(proposal)
                if step == "waits":
                    raise Refused(f"nobody said yes to {proposal.id}", rule=RULE)
                if step == "approved":
                    self._note(proposal, "begun")
            yield step == "approved"

    def answered(self, proposal: Proposal) -> None:
        """The conversation has its answer: it waits no longer."""
        with self._store.lock():
            self._kept.remove(proposal.id)

    def _note(self, proposal: Proposal, step: str, **more: str) -> None:
        with self._store.lock():
            self._store.ledger.add(_STEP, {"proposal": proposal.id, "step": step, **more})


# -- unreviewed entries ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """One entry. `text` is what would be added to `to`, under the heading `section` where one was named."""

    id: str
    to: DocPath
    text: str
    place: DocPath  # the document it stands in
    section: str | None = None
    origins: frozenset[Origin] = frozenset()
    session: str | None = None
    guest: str = ""
    scope: Scope | None = None
    time: str = ""

    @property
    def layer(self) -> str:
        """The folder before the place, with its slash: "" for the owner's own."""
        return self.place.text[: self.place.key.find(f"{UNREVIEWED}/")]

    @property
    def whole_name(self) -> str:
        """A name that nobody can make two entries share, as one can with a short one."""
        return name_of(self.to, self.section, self.text, WHOLE)

    @property
    def is_whole(self) -> bool:
        """Whether it is a document of its own, which an import brought."""
        return self.place.key.startswith(f"{fold(self.layer)}{UNREVIEWED}/{IMPORT}")


def name_of(to: DocPath, section: str | None, text: str, signs: int = 12) -> str:
    body = json.dumps([to.key, section, text], ensure_ascii=True).encode()
    return f"u{hashlib.sha256(body).hexdigest()[:signs]}"


def layer_folder(layer: str) -> str:
    """The folder of a layer with its slash; "" for the owner's own."""
    return f"{folder_of(layer)}/" if layer else ""


def noted(change: Change, place: DocPath, now: datetime, origins: Iterable[Origin]) -> list[Noted]:
    """The entries of an addition that waits for the owner; each point of a list is one, to be kept or dropped by itself."""
    about = {name: getattr(change, name) for name in ("section", "session", "guest", "scope")}
    about |= {"origins": frozenset(origins), "time": now.isoformat(timespec="minutes")}
    return [_named(change.path, text, place=place, **about) for text in _points(change.added or change.text)]


def _named(to: DocPath, text: str, *, section: str | None, **about: Any) -> Noted:
    return Noted(id=name_of(to, section, text), to=to, text=text, section=section, **about)


def _points(text: str) -> list[str]:
    """The points of a text that is nothing but a list; else the text. No line ends in blanks."""
    text, found = "".join(f"{line.rstrip()}\n" for line in text.strip("\n").split("\n")), list[str]()
    for line in lines_of(text):
        if line.startswith("- "):
            found.append(line)
        elif found and (line.startswith("  ") or not line.strip()):
            found[-1] += line
        else:
            return [text]
    return [point.rstrip() + "\n" for point in found]


def drawn(entry: Noted) -> str:
    """An entry as it stands in its document."""
    about: dict[str, Any] = {"to": entry.to.text, "section": entry.section, "from": sorted(entry.origins)}
    about |= {name: getattr(entry, name) for name in ("session", "guest", "scope", "time")}
    said = json.dumps({name: value for name, value in about.items() if value}, ensure_ascii=True)
    said = said.replace("<", "\\u003c").replace(">", "\\u003e").replace("--", "\\u002d-")
    quoted = "".join(f"> {line}".rstrip() + "\n" for line in entry.text.rstrip("\n").split("\n"))
    return f"## {entry.id} for {entry.to.text}\n<!-- {said} -->\n\n{quoted}\n"


def parsed(place: DocPath, text: str) -> Iterator[tuple[Noted, int, int]]:
    """The entries of a document with the lines they stand on (from 0, the end not included); what is none is passed over."""
    lines = lines_of(text)
    starts = [n for n, line in enumerate(lines) if re.match(r"## (u[0-9a-f]{12}) for ", line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        if (entry := _entry(place, lines[start:end])) is not None:
            yield entry, start, end


def _entry(place: DocPath, lines: list[str]) -> Noted | None:
    about = re.match(r"<!-- (\{.*\}) -->\s*\Z", lines[1]) if len(lines) > 1 else None
    body = [line.removeprefix(">").removeprefix(" ").rstrip("\r\n") for line in lines if line.startswith(">")]
    if about is None or not any(line.strip() for line in body):
        return None
    try:
        raw = json.loads(about[1])
        told = {name: raw[name] for name in ("session", "guest", "time") if raw.get(name) is not None}
        section = (
            str.encode("" if raw.get("section") is None else raw["section"]).decode() or None
        )  # which half a character cannot be
        if any(map(_ODD.search, told.values())):
            return None
        return _named(
            DocPath.parse(raw["to"]),
            "\n".join(body) + "\n",
            place=place,
            section=section,
            origins=frozenset(Origin(each) for each in raw.get("from", ())),
            scope=Scope(raw["scope"]) if raw.get("scope") else None,
            **told,
        )
    except (ValueError, KeyError, TypeError, AttributeError, BadPath, RecursionError):
        return None


def legible(path: DocPath, text: str | None) -> str | None:
    """A document for eyes: where entries wait, without what we wrote beside each of them. What only looks like it is shown."""
    lines = lines_of(text or "")
    for entry, start, _ in parsed(path, text or ""):
        is_ours = entry.layer == layer_folder(layer_at(path) or "") and not entry.is_whole
        if is_ours and drawn(entry).startswith("".join(lines[start : start + 3])):
            lines[start + 1 : start + 3] = ["", ""]
    return "".join(lines) if text else text


def _words_of(line: str) -> str:
    """What a line says, whatever its list sign, its quotation sign, its time and its marks."""
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"^\[\d\d:\d\d\] ", "", unmarked(line)).casefold()))


class Unreviewed:
    """The unreviewed entries of one home. Looking begins nothing."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._read: dict[str, tuple[str, tuple[Noted, ...]]] = {}  # path: version, entries

    def all(self, layer: str | None = None) -> tuple[Noted, ...]:
        """The entries that wait, oldest first: all, or those of one layer ("" for the owner's). No two that differ have one name."""
        every = (entry for place in self._places() for entry in self._entries(place))
        found = [entry for entry in every if layer is None or fold(entry.layer) == fold(layer)]
        first = {entry.id: entry for entry in reversed(found)}
        shared = {e.id for e in found if e is not first[e.id] and e.whole_name != first[e.id].whole_name}
        return tuple(replace(entry, id=entry.whole_name) if entry.id in shared else entry for entry in found)

    @staticmethod
    def is_full(waiting: Sequence[Noted], new: Set[str], wish: Change) -> bool:
        """Whether more would wait with these than may: of one session, of an agent elsewhere in however many, or in all."""
        own = {entry.id for entry in waiting if entry.session == wish.session} | new
        guest = (wish.guest, wish.scope) if wish.guest else None
        theirs = {entry.id for entry in waiting if (entry.guest, entry.scope) == guest} | new
        return len(own) > MOST_NOTED_OF_SESSION or len(theirs) > MOST_NOTED_OF_GUEST or len(waiting) + len(new) > 20_000

    def unseen(self, layer: str, today: date) -> Iterator[tuple[DocPath, DocPath]]:
        """The days of a layer that nobody came to in so long that they are put away, and where they go."""
        spelt = self._documents.actual(DocPath.parse(f"{layer}{UNREVIEWED}"))
        for entry in self._documents.list(spelt) if spelt else ():
            day = day_in_name(entry.name)
            if not entry.is_folder and day and today - day > timedelta(days=90):
                yield DocPath.parse(entry.path), DocPath.parse(f"{spelt}/archive/{entry.name}")

    def strays(self) -> list[str]:
        """The documents where entries wait in which nothing is one."""
        return [place for place in self._places() if not self._entries(place)]

    def _places(self) -> list[str]:
        folders = [UNREVIEWED]
        for kind in ("users", "groups"):
            spelt = self._documents.actual(DocPath.parse(kind))
            folders += [f"{spelt}/{name}/{UNREVIEWED}" for name in self._documents.names(spelt)] if spelt else []
        places = []
        for folder in folders:
            with suppress(HomeError):
                spelt = self._documents.actual(DocPath.parse(folder))
                for entry in self._documents.list(spelt) if spelt else ():
                    if not entry.is_folder:
                        places.append(entry.path)
                    elif entry.name.startswith(IMPORT):
                        places += [each.path for each in self._documents.list_all(entry.path)]
        return [place for place in places if place.endswith(".md")]

    def _entries(self, place: str) -> tuple[Noted, ...]:
        version, held = self._documents.version(place), self._read.get(place)
        if version is None or held is None or held[0] != version:
            try:
                document = self._documents.read(DocPath.parse(place))
            except HomeError:
                return ()
            path, text, when = document.path, document.text, document.time.isoformat(timespec="minutes")
            entries = tuple(entry for entry, _, _ in parsed(path, text))
            whole = Noted(id="", to=path, text=text, origins=frozenset({Origin.IMPORT}), place=path, time=when)
            if whole.is_whole:
                to = DocPath.parse(path.text[len(whole.layer) :].split("/", 2)[2])
                entries = (replace(whole, id=name_of(to, None, text), to=to),)
            held = self._read[place] = (version or "", entries)
        return held[1]

    def left(self, entries: Sequence[Noted]) -> Iterator[tuple[DocPath, str, str | None]]:
        """The documents of some entries: their text, and what is left without these; None where only a title would be."""
        gone = {entry.whole_name for entry in entries}
        for place in dict.fromkeys(entry.place for entry in entries):
            text = self._documents.read(place).text
            lines = [] if any(entry.is_whole for entry in entries if entry.place == place) else lines_of(text)
            for entry, start, end in reversed(list(parsed(place, text))):
                if entry.whole_name in gone:
                    del lines[start:end]
            yield place, text, "".join(lines) if any(each.strip() and each[:2] != "# " for each in lines) else None

    def saying(self, fact: str, to: DocPath) -> list[Noted]:
        """The owner's entries for a document that say a fact and no more, by the comparison that calls a fact known."""
        alone = (entry for entry in self.all("") if entry.to.key == to.key and entry.text.count("\n") == 1)
        return [entry for entry in alone if twin_of(entry.text, fact)]

    def recognised(self, text: str, layer: str) -> set[int]:
        """The lines of a text, from 0, that say what an entry of that layer says."""
        waiting = {_words_of(line) for entry in self.all(layer) for line in lines_of(entry.text)} - {""}
        return {n for n, line in enumerate(lines_of(text)) if waiting and _words_of(line) in waiting}

    def origins_in(self, path: DocPath, text: str) -> frozenset[Origin]:
        """Where the entries of a document came from, as far as `text` shows it or in all of it."""
        found = frozenset[Origin]().union(*(entry.origins for entry, _, _ in parsed(path, text)))
        return found or frozenset[Origin]().union(*(entry.origins for entry in self._entries(path.text)))

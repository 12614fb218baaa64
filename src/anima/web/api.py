"""The owner's verbs over HTTP: a route each, in a thread each; `tags` names its section.

Promise: an ETag is the digest that `If-Match` takes as the base of a write (else 412); a refused write is a 403 problem, one that
waits for the owner a 202. A yes given with a token counts as `http`, which is not enough for identity files, nor for how a
home is run: from a page only what stands in SETTABLE is set, and a rule or another program's files as they were shown.
Not here: what is sent and given (bodies), who may come in (guard), conversations (talk).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from operator import attrgetter
from shlex import quote
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from pydantic import BaseModel, TypeAdapter

from anima import Prompt, Proposal, Snapshot, Why, __version__, merge, unified
from anima.agent.models import Models
from anima.errors import BadArguments, HomeError, NoSuchDocument, NoSuchSession, Refused, StaleWrite
from anima.model import Document, Receipt, Scope
from anima.text import read_table
from anima.web.bodies import given, items, paged, some, takes
from anima.web.draw import diff_lines
from anima.web.guard import Problem, etag, of_refusal
from anima.web.served import STREAM, Here, LastEvent, Me, known_of, parted, told_live
from anima.web.tokens import Pass

router = APIRouter(prefix="/api/v1")

FilePath = Annotated[str, Query(max_length=1_024)]
Many = Annotated[int, Query(ge=1, le=1_000)]
Start = Annotated[int, Query(ge=0, le=1_000_000)]
IfMatch = Annotated[
    str | None, Header(max_length=200, description="The ETag that was read; the write fails with 412 on another")
]
IfNoneMatch = Annotated[str | None, Header(max_length=200, description="`*` to make a document only where none stands")]
Name = Annotated[str | None, Query(max_length=200)]
Named = Annotated[str, Query(max_length=64)]  # a revision
Other = Annotated[str | None, Query(max_length=64)]
Line = Annotated[int, Query(ge=1, le=10_000_000)]
Reason = Annotated[str, Query(max_length=1_000)]
AS_IT_WAS: Any = {304: {"description": "It is as you have it"}}

# What may be set from the page; whatever else stands in anima.toml is set there, with an editor.
SETTABLE = frozenset(
    "timezone owner gate.preset dream.enabled dream.at snapshot.at snapshot.keep rituals.heartbeat rituals.active "
    "rituals.quiet rituals.day_tokens rituals.run_tokens".split()
)


@router.get("/ping", tags=["home"], response_model=given("Pong"))
def ping() -> object:
    """Nothing but the way here and back: the cheapest route that needs a credential."""
    return {}


@router.get("/identity", tags=["home"], response_model=given("Identity"))
def identity(here: Here) -> object:
    """Who the agent is, each field with where it came from."""
    return here.home.identity.resolved()


@router.get("/prompt", tags=["home"], response_model=given("Prompt"))
def prompt(here: Here, scope: Scope, sender: Name = None) -> Prompt:
    """The system prompt for a listener, with a manifest of what was shown, cut, missing or hidden."""
    return here.home.prompt(scope=scope, sender=sender)


@router.get("/files", tags=["documents"], response_model=given("Entries"))
def files(here: Here, folder: FilePath = "", after: FilePath = "", limit: Many = 200) -> object:
    """Every file beneath a folder, by path. `after` is the `next` of the page before."""
    found = sorted((entry for entry in here.home.list_all(folder) if entry.path > after), key=lambda entry: entry.path)
    return {"items": found[:limit], "next": found[limit - 1].path if len(found) > limit else None}


@router.get("/tree", tags=["documents"], response_model=given("Tree"))
def tree(here: Here, folder: FilePath = "", depth: Annotated[int, Query(ge=1, le=10)] = 1) -> object:
    """Paths beneath a folder; folders end with a slash."""
    return {"entries": list(here.home.tree(folder, depth))}


@router.get("/files/{path:path}", tags=["documents"], response_model=Document, responses=AS_IT_WAS)
def read(here: Here, path: str, response: Response, if_none_match: IfNoneMatch = None) -> Document | Response:
    """One document, with its digest as ETag."""
    found = here.home.read(path)
    tags = {tag.strip().removeprefix("W/").strip('"') for tag in (if_none_match or "").split(",")}
    if found.digest in tags:
        return Response(status_code=304, headers={"ETag": etag(found.digest)})
    response.headers["ETag"] = etag(found.digest)
    return found


@router.put("/files/{path:path}", tags=["documents"], response_model=given("Receipt"))
@takes("Writing")
def write(
    here: Here, path: str, wish: BaseModel, if_match: IfMatch = None, if_none_match: IfNoneMatch = None
) -> Response:
    """Replaces a document, or makes it."""
    if if_none_match is not None and if_none_match.strip() != "*":
        raise BadArguments("If-None-Match takes only * in a write")
    base = "" if if_none_match is not None else _base(here, path, if_match)
    return _receipt(here.home.write(path, base=base, **wish.model_dump()))


@router.delete("/files/{path:path}", tags=["documents"], response_model=given("Receipt"))
def delete(here: Here, path: str, if_match: IfMatch = None, reason: Reason = "") -> Response:
    """Deletes a document. Undo brings it back."""
    return _receipt(here.home.delete(path, base=_base(here, path, if_match), reason=reason))


def _add_verb(name: str, row: Mapping[str, str]) -> None:
    """A route that takes the arguments of a verb of the home's as they are, and gives its receipt, or what the row says."""
    verb, gives = attrgetter(row.get("verb", name)), row.get("gives", "Receipt")

    @takes(row["body"])
    def carry_out(here: Here, wish: BaseModel) -> object:
        done = verb(here.home)(**wish.model_dump())
        return _receipt(done) if gives == "Receipt" else done

    told: Any = {"name": name, "description": row["about"], "tags": [row["tag"]], "response_model": given(gives)}
    router.post(f"/{name}", **told)(carry_out)


for _name, _row in read_table("web", "verbs").items():
    _add_verb(_name, _row)


def _base(here: Here, path: str, if_match: str | None) -> str | None:
    """The digest a write is bound to; None when it goes with whatever stands there."""
    if if_match is None:
        return None
    if if_match.strip() == "*":
        try:
            return here.home.read(path).digest
        except NoSuchDocument:
            raise StaleWrite(path, theirs=None, ours=None) from None
    found = [tag.strip() for tag in if_match.split(",")]
    if len(found) != 1 or not found[0].startswith('"'):
        raise BadArguments("If-Match takes one strong ETag in quotes, or *")
    return found[0].strip('"') or "none"


def _receipt(receipt: Receipt) -> Response:
    answer = _receipts((receipt,), _RECEIPT, receipt)
    if receipt.digest and answer.status_code < 400:
        answer.headers["ETag"] = etag(receipt.digest)
    return answer


def _receipts(receipts: Sequence[Receipt], shape: TypeAdapter[Any], answer: object) -> Response:
    """What became of a write: written is 200, waiting is 202, refused is a problem."""
    if refused := next((r for r in receipts if r.status == "refused"), None):
        return of_refusal(refused)
    status = 202 if any(receipt.status == "pending" for receipt in receipts) else 200
    body = shape.dump_json(shape.validate_python(answer, from_attributes=True))
    return Response(body, status_code=status, media_type="application/json")


_RECEIPT, _RECEIPTS, _TIDIED = (TypeAdapter[Any](each) for each in (given("Receipt"), some("Receipt"), given("Tidied")))


@router.get("/search", tags=["memory"], response_model=given("Hits"))
def search(
    here: Here,
    q: Annotated[str, Query(max_length=4_000)],
    scope: Scope,
    sender: Name = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 6,
    min_score: Annotated[float, Query(ge=0, le=1)] = 0,
    explain: bool = False,
    at: datetime | date | None = None,
) -> object:
    """Hits for a question, best first, as that listener may see them."""
    return here.home.search(q, scope=scope, sender=sender, limit=limit, at=at, min_score=min_score, explain=explain)


@router.get("/history", tags=["past"], response_model=paged("Revision"))
def history(here: Here, path: FilePath = "", start: Start = 0, limit: Many = 20) -> object:
    """Revisions of the home or of one document, newest first."""
    return _page(here.home.past.log(path or None, limit=start + limit + 1), start, limit)


@router.get("/diff", tags=["past"], response_model=given("Diff"))
def diff(here: Here, revision: Named, other: Other = None, path: FilePath = "") -> object:
    """What one revision changed, or what changed between two."""
    return {"diff": here.home.past.diff(revision, other, path=path or None)}


@router.post("/compare", tags=["past"], response_model=given("Comparison"))
@takes("Comparing")
def compare(wish: Any) -> object:
    """What changes from one text to another, before it is written. With `base`, also both changes in one text."""
    merged = None if wish.base is None else merge(wish.base, wish.after, wish.before)
    lines = [line for line in diff_lines(unified(wish.before, wish.after)) if line.kind != "file"]
    return {"lines": lines, "merged": merged}


@router.get("/changes", tags=["past"], response_model=paged("Done"))
def changes(here: Here, session: Name = None, start: Start = 0, limit: Many = 50) -> object:
    """Carried-out changes as the ledger tells them, newest first. `id` is what undo takes."""
    return _page(here.home.past.changes(session=session, limit=start + limit + 1), start, limit)


@router.get("/why", tags=["past"], response_model=given("Why"))
def why(here: Here, path: Annotated[str, Query(min_length=1, max_length=1_024)], line: Line) -> Why:
    """Where a line came from."""
    return here.home.past.why(path, line)


@router.post("/undo", tags=["past"], response_model=some("Receipt"))
@takes("Undoing")
def undo(here: Here, wish: BaseModel) -> Response:
    """Takes back one change (the newest when none is named) or everything a session wrote."""
    asked = wish.model_dump()
    if sum(bool(asked[name]) for name in ("change", "session", "sweep")) > 1:
        raise BadArguments("say which: a change, a session or the last sweep, and only one of them")
    if asked.pop("sweep"):
        asked["change"] = here.home.past.last_sweep()
    done = here.home.undo(**asked)
    return _receipts(done, _RECEIPTS, done)


@router.post("/dream", tags=["dreams"], response_model=given("Dreamed"))
@takes("Dreaming")
def dream(here: Here, wish: BaseModel) -> object:
    """One night now, or what it would change."""
    swept = here.home.dream(**wish.model_dump())
    told = {name: getattr(swept, name) for name in ("status", "said", "change", "revision", "proposals", "diff")}
    plan = swept.plan
    return told | {
        "promoted": [each.line for each in plan.promotions] if plan else [],
        "retired": [each.held.fact for each in plan.retirements] if plan else [],
        "considered": len(plan.considered) if plan else 0,
    }


@router.get("/audit", tags=["past"], response_model=given("Audit"))
def audit(here: Here) -> object:
    """Whether the ledger is whole."""
    found = here.home.past.audit()
    return {"ok": found.ok, "records": found.records, "fault": found.fault.what if found.fault else None}


def _page(found: Sequence[object], start: int, limit: int) -> dict[str, object]:
    """Some of a list that was asked for up to one more than the page takes."""
    return {"items": found[start : start + limit], "next": start + limit if len(found) > start + limit else None}


@router.get("/tidy", tags=["memory"], response_model=given("Suggestions"))
def to_tidy(here: Here, afresh: bool = False, start: Start = 0, limit: Many = 200) -> object:
    """What could be tidied up: choices, lines said twice, old logs. On a large home a look is kept; `afresh` makes one."""
    seen = here.tidiness.look(afresh=afresh)
    about = {name: getattr(seen.told, name) for name in ("lines", "documents", "notes")}
    about |= {"at": seen.at, "outdated": seen.outdated, "total": len(seen.found)}
    return _page(list(seen.found.values()), start, limit) | about


@router.post("/tidy", tags=["memory"], response_model=given("Tidied"))
@takes("Tidying")
def tidy(here: Here, wish: Any) -> Response:
    """Carries out what was shown, as one change, or notes that its lines stay. 412 when one of it no longer stands."""
    if wish.do == "keep":
        if wish.line is not None:
            raise BadArguments("keeping is of all lines; a line is chosen with tidy")
        return _receipts((), _TIDIED, {"done": here.tidiness.keep(wish.ids), "change": None, "receipts": []})
    receipts = here.tidiness.tidy(wish.ids, wish.line)
    change = next((receipt.change for receipt in receipts if receipt.change), None)
    return _receipts(receipts, _TIDIED, {"done": len(set(wish.ids)), "receipts": receipts, "change": change})


@router.get("/snapshots", tags=["home"], response_model=items("Snapshot"))
def snapshots(here: Here) -> object:
    """The snapshots that are kept, the newest first. None can be fetched: each holds the home's key."""
    return {"items": () if here.hosted else here.home.snapshots.all()}


@router.post("/snapshots", tags=["home"], response_model=given("TakenSnapshot"))
def snapshot(here: Here) -> Snapshot | Response:
    """Takes one where the configuration says, if anything changed since the last."""
    here.need_machine()
    if not here.snapping.acquire(blocking=False):
        said = "a snapshot is being taken already; it is in the list when it is done"
        return Problem(423, said, kind="urn:anima:home-busy", title="Home busy")
    try:
        made = here.home.snapshots.take()
    finally:
        here.snapping.release()
    if made.fresh:
        here.bulletin.tell("snapshot", {"name": made.name, "size": made.size})
    return made


@router.get("/pending", tags=["approving"], response_model=items("Proposal"))
def pending(here: Here) -> object:
    """What waits for the owner, oldest first."""
    return {"items": here.home.inbox.all()}


@router.get("/waiting", tags=["approving"])
def waiting(here: Here) -> dict[str, int]:
    """How much waits, without a word of it: `proposals`, and `noted` lines."""
    return dict(zip(("proposals", "noted"), here.waiting(), strict=True))


@router.get("/pending/{id}", tags=["approving"], response_model=given("Proposal"))
def proposal(here: Here, id: str) -> Proposal:
    return here.home.inbox.get(id)


@router.get("/pending/{id}/new", tags=["approving"])
def new_lines(here: Here, id: str) -> dict[str, str]:
    """The new lines (`text`) of a proposal of one text, which `part` of a yes takes; and its `content`."""
    return {"content": (found := here.home.inbox.get(id)).content, "text": "".join(parted(found)[1])}


@router.post("/pending/{id}/approve", tags=["approving"], response_model=some("Receipt"))
@takes("Approving")
def approve(here: Here, me: Me, id: str, wish: Any) -> Response:
    """Says yes to what was seen. Still waiting (202) is what needs the page or a terminal."""
    waiting, given = here.seen(me, id, wish.content), wish.model_dump(exclude={"part"})
    if wish.part is not None:
        before, new, after = parted(waiting)
        ends = "\n" if new and new[-1].endswith("\n") and not wish.part.endswith("\n") else ""
        given["text"] = "".join([*before, wish.part, ends, *after])
    receipts = here.home.inbox.approve(id, approver=_approver(me), **given)
    here.decided(waiting)
    return _receipts(receipts, _RECEIPTS, receipts)


@router.post("/pending/approve", tags=["approving"], response_model=given("ApprovedAll"))
@takes("ApprovingAll")
def approve_all(here: Here, me: Me, wish: BaseModel) -> object:
    """One yes to several that were seen. Nothing is written when one is not as it was seen, or is decided only by itself."""
    found = [here.seen(me, **card) for card in wish.model_dump()["cards"]]
    for one in found:
        if why := here.home.inbox.alone(one):
            raise Refused(f"{one.id} is decided by itself ({why}); nothing was written", rule="alone")
    approved, left = list[str](), dict[str, str]()
    for one in found:
        try:
            receipts = here.home.inbox.approve(one.id, approver=_approver(me), content=one.content)
        except HomeError as error:
            left[one.id] = str(error)
            continue
        if all(receipt.status == "written" for receipt in receipts):
            approved.append(one.id)
        else:
            left[one.id] = receipts[0].reason or "it still waits"
    here.bulletin.look_soon()
    return {"approved": approved, "left": left}


def _approver(me: Pass) -> str:
    return "page" if me.kind == "page" else "http"


@router.post("/pending/{id}/deny", tags=["approving"], status_code=204)
def deny(here: Here, id: str) -> None:
    """Says no. The proposal is removed."""
    waiting = [one for one in here.home.inbox.all() if one.id == id]
    here.home.inbox.deny(id)
    here.decided(*waiting)


@router.get("/noted", tags=["approving"], response_model=items("Noted"))
def noted(here: Here) -> object:
    """What agents noted after they had read outside text, and what imports brought: nobody reviewed it yet."""
    told = []
    for entry, recalls, findings in here.home.inbox.noted():
        row = {name: getattr(entry, name) for name in ("to", "section", "text", "session", "time")}
        row |= {"name": entry.id, "origins": sorted(entry.origins), "recalls": recalls, "findings": findings}
        told.append(row)
    return {"items": told}


@router.post("/noted/keep", tags=["approving"], response_model=some("Receipt"))
@takes("Reviewing")
def keep(here: Here, me: Me, wish: Any) -> Response:
    """Moves noted lines to where they were meant to go; under `section`, what goes to MEMORY.md. A name says what is moved,
    so it is what was seen."""
    receipts = here.home.inbox.keep(*wish.names, approver=_approver(me), section=wish.section)
    here.bulletin.look_soon()
    return _receipts(receipts, _RECEIPTS, receipts)


@router.post("/noted/drop", tags=["approving"], status_code=204)
@takes("Reviewing")
def drop(here: Here, wish: Any) -> None:
    """Takes noted lines away."""
    here.home.inbox.drop(*wish.names)
    here.bulletin.look_soon()


@router.get("/sessions", tags=["sessions"], response_model=paged("SessionRow"))
def sessions(here: Here, start: Start = 0, limit: Many = 50) -> object:
    """Sessions, the latest first."""
    return _page(here.home.sessions.list(limit=start + limit + 1), start, limit)


@router.get("/sessions/{id}", tags=["sessions"], response_model=given("Transcript"))
def session(here: Here, id: str, start: Start = 0, limit: Many = 100) -> object:
    """What was said in a session, from an entry on."""
    talks = here.home.sessions
    if not talks.kept:
        raise NoSuchSession(f"there is no session {id!r}")
    page = talks.read(id, talks.owner(), start=start, limit=limit)
    more = start + limit if page.total > start + limit else None
    damaged = [f"line {each.line}: {each.why}" for each in page.damaged]
    return {"id": id, "turns": page.entries, "total": page.total, "damaged": damaged, "next": more}


@router.get("/health", tags=["home"], response_model=given("Health"))
def health(here: Here) -> object:
    """What a look at the home tells: damage first, then advice."""
    remarks = here.remarks()
    ok = all(remark.level != "damage" for remark in remarks)
    return {"ok": ok, "version": __version__, "dialect": here.home.dialect, "remarks": remarks}


@router.get("/tokens", tags=["tokens"], response_model=items("Pass"))
def tokens(here: Here) -> object:
    """Every token that works, without its secret."""
    return {"items": here.keyring.all()}


@router.post("/tokens", tags=["tokens"], status_code=201, response_model=given("NewToken"))
@takes("TokenWish")
def make_token(here: Here, me: Me, wish: BaseModel) -> object:
    """A new token: an agent's when a scope is named, else the owner's. Its secret is told only now."""
    made, secret = here.keyring.make_for(here.home.agent, by=me.id, **wish.model_dump())
    return asdict(made) | {"token": secret}


@router.delete("/tokens/{id}", tags=["tokens"], status_code=204)
def revoke_token(here: Here, id: str) -> None:
    """Takes a token back, at once and in every process."""
    here.keyring.revoke(id)


@router.get("/events", tags=["home"], **STREAM)
async def events(here: Here, me: Me, last_event_id: LastEvent = None) -> Response:
    """Changes, proposals and decisions while they happen, as server-sent events.

    `Last-Event-ID` gives every change since. Events: change, proposal, decided, files, resync (look again).
    """
    if here.bulletin.listeners >= here.limits.streams:
        return Problem(429, "too many listeners", headers={"Retry-After": "5"})
    after, keyring = known_of(last_event_id), here.keyring
    return told_live(here.bulletin.stream(after=after, still=lambda: keyring.named(me.id) is not None))


# What the owner sets: only from a page or a terminal, never with a token.
@router.put("/settings/{key}", tags=["settings"], status_code=204)
@takes("Setting")
def put_setting(here: Here, me: Me, key: str, wish: BaseModel) -> None:
    """Sets a key of anima.toml, or with no value takes it out; it holds at once."""
    _need_page(me)
    if key not in SETTABLE:
        raise Refused(f"{key} is not set from a page", rule="settable", hint="it stands in anima.toml; use an editor")
    here.home.configure(key, **wish.model_dump())
    here.bulletin.look_soon()


@router.post("/settings/rules", tags=["settings"], status_code=204)
@takes("SeenCard")
def add_rule(here: Here, me: Me, wish: BaseModel) -> None:
    """Writes the rule that would have allowed a proposal, as it was shown with it, before all others."""
    _need_page(me)
    rule = here.home.inbox.rule_for(here.seen(me, **wish.model_dump()))
    if rule is None:
        raise BadArguments("no rule should allow this kind of change; it is decided each time")
    here.home.configure("gate.rule", rule.text)


@router.delete("/settings/rules/{id}", tags=["settings"], status_code=204)
def drop_rule(here: Here, me: Me, id: str) -> None:
    _need_page(me)
    here.home.configure(f"gate.rule:{id}", None)


@router.put("/model/{name:path}", tags=["settings"], status_code=204)
def use_model(here: Here, me: Me, name: str) -> None:
    """Lets another of the models answer that were set at a terminal, where keys are typed."""
    _need_page(me)
    here.need_machine()
    models = Models.of(here.home)
    if name not in {each.name for each in models.all()}:
        raise BadArguments(f"{name} was never set", hint=f"anima model {quote(name)}")
    models.use(name)


@router.post("/connect/{host}", tags=["settings"], response_model=given("ConnectPlan"))
@takes("Connecting")
def connect(here: Here, me: Me, host: str, wish: Any) -> object:
    """What connecting a program would change in its files; with the `content` of that, it is done."""
    from anima.connect.connections import connecting_of, host_of

    _need_page(me)
    here.need_machine()
    found = connecting_of(here.home, host_of(host))
    steps = found.plan(remove=wish.remove)
    content = hashlib.sha256("".join(step.diff for step in steps).encode("utf-8", "replace")).hexdigest()
    if wish.content is not None:
        if wish.content != content:
            raise StaleWrite(found.host.title, theirs=None, ours=None)
        (found.remove if wish.remove else found.connect)(steps)
    lines = [line for step in steps for line in diff_lines(step.diff)]
    then = "" if wish.remove else found.host.then.format(bundle=found.wiring.bundle)
    return {"lines": lines, "content": content, "then": then}


def _need_page(me: Pass) -> None:
    if me.kind != "page":
        raise Refused("only a page or a terminal changes how a home is run", rule="page", hint="open Settings")

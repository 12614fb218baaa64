"""The inbox: what waits for the owner, and the owner's yes and no.

Promise: a yes is bound to what was seen and judged again before anything is written; a change that was carried out is not
carried out twice; a proposal that cannot be read can still be denied. An unreviewed entry that is kept moves to its destination
in one change, one that is dropped is gone, and both can be taken back. Looking begins nothing.
Not here: how a proposal and an entry are kept (memory), and how either is made (write).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from anima.errors import BadArguments, HomeError, NoSuchProposal, Refused, StaleWrite, printable
from anima.gate import Situation, file_policy, suggest_rule
from anima.gate.scan import scan_text
from anima.layout import UNREVIEWED, Policy
from anima.memory import Noted, Proposal
from anima.memory.write import Writer, becoming, scan_added, seen_at
from anima.model import Actor, Answer, Choose, DocPath, Finding, Kind, Origin, Receipt, Severity, digest_of, fold
from anima.site import Site
from anima.text.diff import merge
from anima.text.markdown import ended, lines_of
from anima.text.pages import Landed, as_bullet, opening_for, placed

if TYPE_CHECKING:
    from anima.config import Rule
    from anima.model import Change


class ForReview(NamedTuple):
    """An unreviewed entry as the owner sees it. One with findings is never kept among "all"."""

    entry: Noted
    recalls: int  # how often searches brought it back
    findings: tuple[Finding, ...]


class Inbox:
    """What waits in one home. `forgets` carries out a wish to forget that the owner says yes to; `named` says what the agent is
    called by the text of IDENTITY.md, or is called now; `refuses` tells a conversation that a call it waits for gets a no."""

    def __init__(
        self,
        site: Site,
        writer: Writer,
        forgets: Callable[[Proposal], tuple[Receipt, ...]],
        named: Callable[[str], str],
        refuses: Callable[[Proposal, str], None],
    ) -> None:
        self._site, self._store, self._layout = site, site.store, site.layout  # verbs ask it: closed?
        self._writer, self._kept, self._forgets, self._named_in = writer, writer.proposals, forgets, named
        self._refuses = refuses

    def all(self) -> tuple[Proposal, ...]:
        """What waits for the owner, oldest first. A call with a yes waits for its conversation, and for nobody else."""
        found = self._kept.all() if self._store.begun else []
        return tuple(each for each in found if each.call is None or self._writer.calls.step(each) == "waits")

    def broken(self) -> list[str]:
        """The names of waiting changes that cannot be read, or were altered, and the paths of unreviewed documents in which
        nothing is an entry; `deny` removes them."""
        names = [name.removesuffix(".json") for name in self._kept.broken()] if self._store.begun else []
        return names + self._writer.unreviewed.strays()

    def ids(self) -> frozenset[str]:
        """The names of what lies here. No file is opened for it."""
        return self._kept.ids() if self._store.begun else frozenset()

    def get(self, proposal: str) -> Proposal:
        return self._kept.get(proposal)

    def approve(
        self,
        proposal: str,
        *,
        approver: str = "python",
        content: str | None = None,
        text: str | None = None,
        typed: str | None = None,
    ) -> tuple[Receipt, ...]:
        """Says yes. `content` binds the yes to what was seen, `text` edits it first. Identity files need a terminal or
        the page, and so do calls of tools from outside, which are carried out when their conversation goes on. `typed`
        is what a person typed to confirm it; Python's own hand types nothing (None)."""
        waiting = self.get(proposal)
        name = self.confirmed_by(waiting)
        if name and typed is not None and fold(typed.strip()) != fold(name):
            raise BadArguments(f"this card says who the agent is; type its name to confirm it: {printable(name)}")
        if content is not None and content != waiting.content:
            raise StaleWrite(waiting.path.text, theirs=waiting.diff, ours=None)
        changes, is_wish = waiting.changes, waiting.forget is not None or waiting.call is not None
        if text is not None and (is_wish or len(changes) != 1 or changes[0].kind not in (Kind.WRITE, Kind.APPEND)):
            raise BadArguments("only a proposal of one text can be edited; deny it, and say what you want instead")
        if waiting.forget is not None:
            return self._forgets(waiting)
        if waiting.call is not None:
            self._writer.calls.approve(waiting, approver)
            return (Receipt(status="approved", path=waiting.path, proposal=proposal, rule=waiting.rule),)
        if self._store.ledger.carried_out(proposal):
            self._take_off(proposal)
            return tuple(Receipt(status="written", path=change.path, proposal=proposal) for change in waiting.changes)
        changes = changes if text is None else (replace(changes[0], text=text),)
        documents = self._store.documents
        rebased = tuple(
            self._rebased(change, base)
            for change, base in zip(changes, waiting.bases, strict=True)
            # the page of a first conversation may have gone already, by the agent's own hand or another yes
            if not waiting.is_first or change.kind is not Kind.DELETE or documents.exists(change.path)
        )
        receipts = self._writer.submit(rebased, situation=Situation(approver=approver), what="approve", of=proposal)
        if all(receipt.status == "written" for receipt in receipts):
            self._take_off(proposal)
        return receipts

    def confirmed_by(self, proposal: Proposal) -> str:
        """What must be typed for a yes: the agent's name, where a first conversation's card says who it is; else nothing."""
        texts = (c.text for c in proposal.changes if self._layout.row_of(c.path).role == "identity")
        text = next(texts, None) if proposal.is_first else None
        return self._named_in(text) if text is not None else ""

    def approvable(self, proposal: str, *, approver: str) -> Proposal | None:
        """The waiting change, if the gate would take a yes from there; None where it would ask again or refuse, and for a
        call of a tool from outside."""
        waiting = self.get(proposal)
        if waiting.call is not None:
            return None
        verdict, _ = self._writer.judge(waiting.changes, waiting.bases, Situation(approver=approver))
        return waiting if verdict.answer is Answer.ALLOW else None

    def alone(self, proposal: Proposal) -> str:
        """Why a proposal is never one of several that get one yes: identity, danger, forget or call; empty where it may be."""
        if proposal.call is not None:
            return "call"
        paths = [path for change in proposal.changes for path in (change.path, change.to) if path]
        if any(file_policy(path, self._layout.row_of(path)) is Policy.IDENTITY for path in paths):
            return "identity"
        if any(finding.severity >= Severity.DANGER for finding in proposal.findings):
            return "danger"
        return "forget" if proposal.forget is not None else ""

    def deny(self, proposal: str, *, reason: str = "") -> None:
        """Removes a waiting change; one that cannot even be read is removed too. The conversation that waits for a call is
        told so, with the owner's reason."""
        if proposal in self._writer.unreviewed.strays():
            path = DocPath.parse(proposal)
            self._writer.submit([becoming(path, self._writer.site.text_of(path), None)], what="drop")
            return
        is_broken = proposal in self.broken()
        if not is_broken and (waiting := self.get(proposal)).call is not None:
            self._writer.calls.deny(waiting)
            self._refuses(waiting, reason)
        with self._store.lock():
            self._kept.remove(proposal)
            # What a file is called that is no proposal, anybody may have chosen; the ledger holds no such text.
            self._store.ledger.add("deny", {"rule": "owner"} if is_broken else {"proposal": proposal, "rule": "owner"})

    def seen(self, text: str) -> tuple[Finding, ...]:
        """What the scan sees in a text: secrets, orders, what is hidden. Nothing is written."""
        return scan_text(text)

    def noted(self, *, layer: str | None = None) -> tuple[ForReview, ...]:
        """Unreviewed entries, those that searches brought back most often first, then the newest."""
        asked: Counter[str] = Counter()  # how often searches brought back which unreviewed lines, by their digests
        for record in self._store.ledger.records(kinds=("recall",)) if self._store.begun else ():
            for hit in record.fields.get("hits", ()):
                if f"{UNREVIEWED}/" in str(hit.get("path")):
                    asked.update(set(hit.get("lines", ())))
        key = self._store.key if self._store.begun else None
        found, waiting = [], self._writer.unreviewed.all(layer)
        places = {entry.to.key for entry in waiting}
        wanted = {(entry.to, entry.section) for entry in waiting}
        barred = {(to, section) for to, section in wanted if self._is_barred(to, section, places)}
        for number, entry in enumerate(waiting):
            lines = [key.line(f"> {line}") for line in lines_of(entry.text)] if key and asked else []
            times = max((asked[line] for line in lines if line), default=0)
            seen, policy = _seen_in(entry), file_policy(entry.to, self._layout.row_of(entry.to))
            if policy is not Policy.MEMORY or (entry.to, entry.section) in barred:  # it is not kept among others
                kind = "or a heading that cannot be" if policy is Policy.MEMORY else f"of the kind {policy}"
                said = f"it would go to a file {kind}, which is decided by itself"
                seen = (*seen, seen_at("place", Severity.WARN, 1, said))
            found.append((-times, -number, ForReview(entry, times, seen)))
        return tuple(each for _, _, each in sorted(found, key=lambda each: each[:2]))

    def _is_barred(self, to: DocPath, section: str | None, others: Collection[str]) -> bool:
        """Whether nothing can be written there: a folder, beneath a document or another of these places, or no heading."""
        with suppress(HomeError):
            text = self._writer.site.text_of(to)
            if section is not None:
                placed(text or "", "- ", section=section)
            above = ["/".join(to.parts[:n]) for n in range(1, len(to.parts))]
            return any(fold(each) in others or self._store.documents.kind_of(each) == "file" for each in above)
        return True

    def keep(
        self,
        *names: str,
        approver: str = "python",
        text: str | None = None,
        section: str | None = None,
        choose: Choose | None = None,
        layer: str | None = None,
    ) -> tuple[Receipt, ...]:
        """Moves unreviewed entries to where they were meant to go; `text` is what the owner made of one. What goes to MEMORY.md
        goes under the owner's `section`, else the agent's; with neither, or "", where it fits, and `choose` is asked in doubt. With
        a `layer`'s folder, whose it is decides, and nothing else is there for them. Raises NoSuchProposal, or BadArguments for
        a `section` that is no heading, and Refused for lines that only together say an order, before anything is written."""
        groups: dict[object, list[Noted]] = {}  # by where they came from
        chosen = self._named(names, layer)
        if text is not None and (len(chosen) != 1 or not text.strip()):
            raise BadArguments("one entry at a time is edited, and something of it must be left")
        for entry in chosen:
            groups.setdefault((entry.session, entry.origins, entry.scope), []).append(entry)
        whole: dict[str, tuple[DocPath, str | None, str | None]] = {}  # path, text now, text then
        planned: list[tuple[list[Noted], dict[str, Any], list[Change]]] = []
        for entries in groups.values():
            by: dict[str, Any] = {"session": entries[0].session, "scope": entries[0].scope, "taint": entries[0].origins}
            by |= {"actor": Actor.AGENT, "origin": Origin.AGENT}
            changes: dict[str, Change] = {}  # each says which heading the last line went under
            for entry in entries:
                path, is_curated = entry.to, self._layout.row_of(entry.to).kind == "curated"
                heading = entry.section if section is None or not is_curated else section or None
                _, first, now = whole.get(path.key) or (path, *(self._writer.site.text_of(path),) * 2)
                page = self._with(replace(entry, text=text or entry.text, section=heading), now, choose)
                change = becoming(path, now, page.text, **by, under=page.section)
                changes[path.key] = replace(change, base=changes.get(path.key, change).base)
                whole[path.key] = (path, first, page.text)
            planned.append((entries, by, [*changes.values()]))
        both = Counter(f.kind for path, was, then in whole.values() for f in scan_added(was, becoming(path, was, then)))
        both -= Counter(found.kind for entry in chosen for found in _seen_in(entry))
        if len(chosen) > 1 and both.keys() - {"more"}:
            raise Refused("together these lines say what none says alone; keep them one by one", rule="alone")
        receipts: list[Receipt] = []
        for entries, by, wanted in planned:
            wanted += [becoming(*found, **by) for found in self._writer.unreviewed.left(entries)]
            receipts += self._writer.submit(wanted, situation=Situation(approver=approver), what="keep")
        return tuple(receipts)

    def _with(self, entry: Noted, text: str | None, choose: Choose | None) -> Landed:
        """A document with an entry added to it. Raises StaleWrite where a whole document would replace another."""
        if entry.is_whole:
            if text is not None and text != entry.text:
                raise StaleWrite(entry.to.text, theirs=text, ours=entry.text)
            return Landed(entry.text, None)
        if entry.section is not None or self._layout.row_of(entry.to).kind == "curated":
            return placed(text or "", as_bullet(entry.text), section=entry.section, choose=choose)
        if text is None:
            day = self._layout.date_of(entry.to)
            text = f"# {day.isoformat()}\n\n" if day and entry.text.startswith("- ") else ""
        return Landed(ended(text) + opening_for(text) + entry.text, None)

    def drop(self, *names: str, layer: str | None = None) -> tuple[Receipt, ...]:
        """Takes unreviewed entries away. Raises NoSuchProposal before anything is written."""
        changes = [becoming(*each) for each in self._writer.unreviewed.left(self._named(names, layer))]
        return self._writer.submit(changes, what="drop") if changes else ()

    def _named(self, names: Sequence[str], layer: str | None) -> list[Noted]:
        found = self._writer.unreviewed.all(layer)
        known = {entry.id: entry for entry in found if layer is None or entry.to.key.startswith(fold(layer))}
        if missing := [name for name in names if name not in known]:
            raise NoSuchProposal(f"nothing named {missing[0]!r} waits", hint="anima review lists what does")
        return [known[name] for name in dict.fromkeys(names)]

    def rule_for(self, proposal: Proposal) -> Rule | None:
        """The narrowest rule that would have allowed a proposal; None where none should."""
        if len(proposal.changes) != 1 or proposal.call is not None or proposal.forget is not None:
            return None
        change, row_of = proposal.changes[0], self._layout.row_of
        to_row = row_of(change.to) if change.to else None
        return suggest_rule(change, row=row_of(change.path), findings=proposal.findings, to_row=to_row)

    def _take_off(self, proposal: str) -> None:
        with suppress(HomeError), self._store.lock():  # it is carried out, and the ledger knows; again, it does nothing
            self._kept.remove(proposal)

    def _rebased(self, change: Change, base: str | None) -> Change:
        """A proposed text carried over to what stands there now. Raises StaleWrite where the two do not go together."""
        now = self._writer.site.text_of(change.path)
        if change.kind is Kind.APPEND:
            before = opening_for(now or "")  # the last section may have been marked since
            is_apart = not before or change.text.startswith(before)
            return replace(change, base=None, text=change.text if is_apart else before + change.text)
        if now == base:
            return replace(change, base=digest_of(now))
        if change.kind is Kind.WRITE and base is not None and now is not None:
            merged = merge(base, now, change.text)
            if merged is not None:
                return replace(change, text=merged, base=digest_of(now))
        raise StaleWrite(change.path.text, theirs=now, ours=change.after(base))


def _seen_in(entry: Noted) -> tuple[Finding, ...]:
    """What the scan sees in an entry, and in its heading with that below it; and where it says nothing."""
    below = scan_text(f"{entry.section}\n{entry.text}") if entry.section else ()
    odd: tuple[Finding, ...] = (seen_at("place", Severity.WARN, 1, "it says nothing, and can be no line of a page"),)
    with suppress(BadArguments):
        odd = () if entry.is_whole or as_bullet(entry.text[:1_000]) else odd
    return (*scan_text(entry.text), *(found for found in below if found.line == 1), *odd)

"""Drawing proposals and diffs: inert text, a sign and a colour for each line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anima.cli.show import console, inert

if TYPE_CHECKING:
    from anima.memory.inbox import Proposal

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def show_diff(diff: str) -> None:
    out = console()
    for line in diff.split("\n")[:-1] if diff.endswith("\n") else diff.split("\n"):
        head = line.startswith(("+++", "---"))
        out.print(inert(line), style="bold" if head else _COLOURS.get(line[:1], ""), soft_wrap=True)


def show_proposal(proposal: Proposal, number: int, total: int) -> None:
    out = console()
    first = proposal.changes[0]
    out.rule(f"{proposal.id}  {number} of {total}  {inert(first.path.text)}", align="left", style="dim", characters="─")
    who = f"{first.actor}{f' in session {first.session[:8]}' if first.session else ''}{f', {first.scope}' if first.scope else ''}"
    out.print(
        f"who    {who}, {proposal.created:%Y-%m-%d %H:%M} UTC; lapses {proposal.expires:%Y-%m-%d}", soft_wrap=True
    )
    if first.taint:
        out.print(f"after  it read text from: {', '.join(sorted(first.taint))}", style="yellow")
    out.print(f"rule   {proposal.rule}: {inert(proposal.why)}", soft_wrap=True)
    if first.reason:
        out.print(f"says   “{inert(first.reason)}”", soft_wrap=True)
    for finding in proposal.findings:
        out.print(
            f"scan   line {finding.line}: {inert(finding.message)} {inert(finding.shown)}".rstrip(),
            style="yellow",
            soft_wrap=True,
        )
    show_diff(proposal.diff)

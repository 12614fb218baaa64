"""A process that makes rounds of a home's schedule when it is told so, by the hour it is told: for tests of several.

A line on standard input is a moment and what the model does, `ok` or `refused`; the answer is a list of what ran.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from datetime import datetime

from pydantic_ai.exceptions import ModelAuthenticationError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from anima import Home
from anima.agent.rituals import Rituals
from anima.testing import Clock


def main() -> None:
    folder, settings, key = sys.argv[1], json.loads(sys.argv[2]), ["ok"]

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        if key[0] == "refused":
            raise ModelAuthenticationError("x", "no such key")
        yield "HEARTBEAT_OK"

    clock = Clock()
    with Home.open(folder, clock=clock, settings=settings) as home:
        print("[]", flush=True)
        for line in sys.stdin:
            moment, key[0] = line.split()
            clock.now = datetime.fromisoformat(moment)
            done = Rituals(home, made=lambda name: FunctionModel(stream_function=stream)).round()
            print(json.dumps([[each.ritual, each.status] for each in done]), flush=True)


if __name__ == "__main__":
    main()

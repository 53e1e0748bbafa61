"""Sinks that share a progress topic: one is killed inside of a transaction, the others go on.

What it leaves open hides from readers of committed records all progress that others commit behind
it, until whoever left it comes back. A sink that is started meanwhile may neither begin anew nor
send again what it has sent: it waits. What has to hold of each topic is in `support.sink.topic`.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from noonmark.clock import SYSTEM
from support.ingest.world import Violation
from support.neighbour.kafka import KafkaServer
from support.sink.kills import Bank, Serving
from support.sink.topic import SinkTopic

_OPEN_S = 60
#: How long a sink that has to wait is watched.
_WAITING_S = 1.5
INSIDE, BESIDE = "kill -9 inside of a transaction", "kill -9 beside an open transaction"


@dataclass
class SinksBeside:
    """So many locations, with so many sinks each, and one progress topic."""

    folder: Path
    kafka: KafkaServer
    seed: int
    locations: int
    sinks: int
    faults: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = Random(f"sinks beside/{self.seed}")
        name = f"money-{SYSTEM.fresh_id()}"
        self.banks = []
        for number in range(self.locations):
            topics = [
                SinkTopic(self.kafka, f"{name}-{number}-{at}", f"{name}-progress")
                for at in range(self.sinks)
            ]
            self.banks.append(Bank(self.folder / str(number), topics, self.random))
            self.banks[-1].create()

    @property
    def topics(self) -> list[SinkTopic]:
        """All of them."""
        return [topic for bank in self.banks for topic in bank.topics]

    def round(self) -> None:
        """One sink is held inside of a transaction, the others write, and its server is killed.

        In every other round another server is killed beside what is open, and comes back first.
        """
        with ExitStack() as stack:
            at = [stack.enter_context(bank.serving()) for bank in self.banks]
            victim = self.random.randrange(len(at))
            for bank, server in zip(self.banks, at, strict=True):
                bank.transfer(server, self.random.randrange(3, 40))
                for topic in bank.topics:
                    topic.wait_for_more(server.lines.read)
            held = self._hold(self.banks[victim], at[victim])
            self._others_go_on(at, held)
            at[victim].kill()
            self.faults[INSIDE] += 1
            if not self.topics[0].has_open():
                raise Violation("the transaction of a sink that was killed is not open")
            others = [number for number in range(len(at)) if number != victim]
            self._others_go_on(at, held, but=victim)
            if others and self.faults[INSIDE] % 2:
                self._kill_beside(others[0], at[others[0]])
        if not self.topics[0].has_open():
            raise Violation("somebody else has ended the transaction")
        self._bring_up()

    def _hold(self, bank: Bank, at: Serving) -> str:
        """Have one sink of a server stay inside of a transaction; its id."""
        at.hold()
        bank.transfer(at, self.random.randrange(1, 20))
        said = at.lines.read(_OPEN_S)
        if said is None:
            raise Violation("no sink writes")
        return said.removeprefix("open ")

    def _others_go_on(self, at: list[Serving], held: str, but: int = -1) -> None:
        """All servers but one move money, and all sinks but one write it."""
        for number, (bank, server) in enumerate(zip(self.banks, at, strict=True)):
            writing = [topic for topic in bank.topics if topic.sink != held]
            if number == but or not writing:
                continue
            bank.check()
            bank.transfer(server, self.random.randrange(3, 20))
            for topic in writing:
                topic.wait_for_more(server.lines.read)

    def _kill_beside(self, number: int, at: Serving) -> None:
        """A server dies whose progress is hidden, and comes back: it waits, and sends nothing."""
        at.kill()
        self.faults[BESIDE] += 1
        bank = self.banks[number]
        bank.check()
        before = [topic.messages for topic in bank.topics]
        with bank.serving() as again:
            bank.transfer(again, self.random.randrange(3, 20))
            again.lines.read(_WAITING_S)
            bank.check()
            if [topic.messages for topic in bank.topics] != before:
                raise Violation("a sink has written before it could know its progress")
            again.kill()
            self.faults[BESIDE] += 1

    def _bring_up(self) -> None:
        """All servers come back, in any order, and every topic comes up to its table."""
        with ExitStack() as stack:
            order = self.random.sample(self.banks, len(self.banks))
            at = [(bank, stack.enter_context(bank.serving())) for bank in order]
            for bank, server in at:
                bank.finish(server)
        if (found := self.topics[0].sinks()) != {topic.sink for topic in self.topics}:
            raise Violation(f"progress of {found}")

    def finish(self) -> None:
        """Each round has ended with all topics as their tables are."""

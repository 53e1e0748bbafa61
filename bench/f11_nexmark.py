"""F11: the same events through Kafka into Noonmark, Pathway, Flink and Structured Streaming.

Three standing views: sums per seller over a join, an average of maxima over a join, a top 10. Every
engine has the machine to itself, one after the other, and one session of each goes like this:

1. auctions and a few bids are there; the engine starts, and is warm when it has counted them
2. bids come all at once, as one Kafka transaction commits: how long until the views count them all
3. bids come at a rate, for some seconds, and at higher ones until the p99 of the seconds from the
   sending of a bid to the first answer that counts it, in each view, is over one

All the while the answers that it publishes are written down, and afterwards `bench/nexmark/judge`
says of each whether it is the answer of some input. Settings are said in `bench/nexmark/engine_*`.

    python -m bench.f11_nexmark --engines noonmark,flink --seconds 10 --events 1000000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bench.figure import ROOT
from bench.measure import end_what_was_started
from bench.nexmark.answers import now
from bench.nexmark.engines import ENGINES, Engine, LeftOutError
from bench.nexmark.events import AUCTIONS, PARTITIONS, Events, held_back, produce
from bench.nexmark.judge import Judge, latencies
from bench.nexmark.report import publish, said, write
from bench.nexmark.running import Running, StoppedError, running

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.neighbour.kafka import KafkaServer
from support.neighbour.upstreams import one_kafka

RATES = (2_000, 5_000, 10_000, 20_000, 40_000, 80_000, 120_000)
WARM, WARM_S, CATCH_UP_S, LATE_S = 1_000, 300.0, 150.0, 10.0
AGE_MAX_S, SKIP_S = 1.0, 1.0


@dataclass
class Outcome:
    """What came of one engine; a rate has the p50 and p99 of its ages, and its CPU as cores."""

    engine: str
    views: tuple[str, ...]
    left_out: str = ""
    catch_up: float = 0.0
    catch_up_cpu_us: float = 0.0
    rates: dict[int, tuple[float, float, float]] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)
    memory_bytes: int = 0

    @property
    def highest(self) -> int:
        """The highest rate at which answers were at most a second old."""
        return max(
            (rate for rate, (_, p99, _) in self.rates.items() if p99 <= AGE_MAX_S), default=0
        )


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = _options(argv)
    end_what_was_started()
    outcomes = []
    for name in chosen.engines.split(","):
        outcomes.append(measured(ENGINES[name], chosen))
        print(said(outcomes[-1]), flush=True)
    place = chosen.out or ROOT / "bench" / "out" / "nexmark"
    for path in write(outcomes, place, vars(chosen)):
        print(f"written: {path}")
    if chosen.publish:
        publish(outcomes, ROOT / "docs" / "nexmark.md", vars(chosen))
    (place / "outcomes.json").write_text(json.dumps([asdict(each) for each in outcomes]))
    return _figure(outcomes, chosen)


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engines", default=",".join(ENGINES), help="those to compare")
    parser.add_argument("--events", type=int, default=1_000_000, help="bids to catch up with")
    parser.add_argument("--seconds", type=float, default=10, help="of each rate")
    parser.add_argument("--rates", default=",".join(map(str, RATES)), help="bids a second")
    parser.add_argument("--publish", action="store_true", help="into docs/nexmark.md too")
    parser.add_argument("--out", type=Path, help="the folder of table and plots")
    return parser.parse_args(list(argv))


def measured(engine: Engine, chosen: argparse.Namespace) -> Outcome:
    """One session of an engine, with a broker of its own."""
    outcome = Outcome(engine.name, engine.views)
    try:
        command = [*engine.command()]
        own = engine.arguments()
    except LeftOutError as error:
        outcome.left_out = str(error)
        return outcome
    with tempfile.TemporaryDirectory() as folder, one_kafka() as server:
        place, log = Path(folder, "answers"), Path(folder, "log")
        events = Events(chosen.seed)
        for topic in ("auctions", "bids"):
            server.make_topic(topic, PARTITIONS)
        for view in engine.views:
            server.make_topic(f"out-{view}", 1)
        produce(server.bootstrap, "auctions", list(events.auctions()))
        produce(server.bootstrap, "bids", list(islice(events.bids(0), WARM)))
        command += [server.bootstrap, "", str(place), *own]
        try:
            with running(command, place, log) as session:
                sent = _load(session, engine, server, chosen, outcome)
                outcome.memory_bytes = session.peak_bytes
                _judge(session, outcome, Judge(chosen.seed, sent))
        except StoppedError as error:
            outcome.left_out = f"{error} {log.read_text()[-200:]}"
    return outcome


def _load(
    session: Running, engine: Engine, server: KafkaServer, chosen: argparse.Namespace,
    outcome: Outcome,
) -> int:  # fmt: skip
    """The three parts; returns how many bids were sent."""
    views = engine.counted
    if session.wait_for(WARM, views, WARM_S) is None:
        raise StoppedError(f"{engine.name} does not count the first bids in {WARM_S:.0f} s")
    total = WARM + chosen.events
    bids = islice(Events(chosen.seed).bids(WARM), chosen.events)
    producer = held_back(server.bootstrap, "bids", bids, WARM)
    began, spent = now(), session.cpu_s
    producer.commit_transaction(60)
    ended = session.wait_for(total, views, CATCH_UP_S)
    if ended is None:
        raise StoppedError(f"{engine.name} does not catch up in {CATCH_UP_S:.0f} s")
    outcome.catch_up = chosen.events / (ended - began)
    outcome.catch_up_cpu_us = 1e6 * (session.cpu_s - spent) / chosen.events
    for rate in map(int, chosen.rates.split(",")):
        first, total = total, total + int(rate * chosen.seconds)
        outcome.rates[rate] = _at_rate(session, views, server, chosen, (rate, first, total))
        if outcome.rates[rate][1] > AGE_MAX_S:
            break
    return total


def _at_rate(
    session: Running, views: Sequence[str], server: KafkaServer, chosen: argparse.Namespace,
    part: tuple[int, int, int],
) -> tuple[float, float, float]:  # fmt: skip
    """The p50 and p99 of the ages of answers, and the cores that the engine used."""
    rate, first, total = part
    with tempfile.TemporaryDirectory() as folder:
        steps = Path(folder, "sent.npy")
        command = [sys.executable, "-m", "bench.nexmark.events", server.bootstrap, "bids"]
        command += [str(steps), "--seed", str(chosen.seed), "--first", str(first)]
        command += ["--rate", str(rate), "--seconds", str(chosen.seconds)]
        began, spent = now(), session.cpu_s
        subprocess.run(command, check=True, cwd=ROOT)
        session.wait_for(total, views, LATE_S)
        cores = (session.cpu_s - spent) / (now() - began)
        sent = np.load(steps)
    answers = session.answers
    ages = [
        latencies([each for each in answers if each.view == view], sent, SKIP_S) for view in views
    ]
    p50, p99 = (max(float(np.quantile(age, q)) for age in ages) for q in (0.5, 0.99))
    return p50, p99, cores


def _judge(session: Running, outcome: Outcome, judge: Judge) -> None:
    for view in outcome.views:
        # Before all auctions are read, an answer is of an input that the judge does not know.
        answers = [each for each in session.answers if each.view == view]
        counted = [each for each in answers if view == "top" or each.n >= WARM]
        outcome.answers[view] = len(counted)
        outcome.wrong[view] = sum(not judge.is_right(each) for each in counted)


def _figure(outcomes: Sequence[Outcome], chosen: argparse.Namespace) -> dict[str, Any]:
    ours = next((each for each in outcomes if each.engine == "noonmark"), outcomes[0])
    peers = [each for each in outcomes if each is not ours and not each.left_out]
    wrong = sum(ours.wrong.values())
    slow = next(iter(ours.rates.values()), (float("inf"), float("inf"), 0.0))
    measures = {f"{each.engine}, events/s caught up": each.catch_up for each in outcomes}
    ahead = all(ours.catch_up >= each.catch_up and ours.highest >= each.highest for each in peers)
    return {
        "title": "Nexmark-like events through Kafka, three views: events/s to catch up",
        "value": ours.catch_up,
        "unit": "events/s",
        "goal": ">= 300,000; p50 <= 25 ms at 2,000/s; >= 100,000/s with p99 <= 1 s; 0 wrong; "
        "ahead of each peer",
        "met": ours.catch_up >= 300_000 and slow[0] <= 0.025 and ours.highest >= 100_000
        and not wrong and ahead,
        "measures": measures,
        "note": f"{chosen.events:,} bids, {AUCTIONS:,} auctions; " + "; ".join(map(said, outcomes)),
    }  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])

"""Views whose maintainers are killed, one after the other: at every phase, at every point.

One location is maintained by processes (`support.view.process`) of which all but the last are
killed (-9). Afterwards every view is compared with its definition at every time, which is what an
undisturbed run gives.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from support.kill.kills import environment
from support.view.process import HYDRATED, PHASES, POINTS, TIMES
from support.view.views import seeded_history
from support.view.world import VIEWS, World


@dataclass
class ViewKills:
    """Runs on locations of their own; the kills that were hit, by phase and point."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    compared: int = 0

    def run(self, folder: Path, kills: int) -> None:
        """One location: so many kills, the first half of them before it is hydrated."""
        chance = Random(f"{self.seed}/{folder.name}")
        for number in range(kills):
            phase = PHASES[number >= kills // 2]
            point = chance.choice(POINTS[:2] if phase == "hydrate" else POINTS)
            said = maintain(folder, self.seed, phase, point)
            if said != f"killed {phase} {point}":
                self.violations.append(f"{folder.name}: {phase} {point}: {said!r}")
                return
            self.faults[f"{phase} {point}"] += 1
        said = maintain(folder, self.seed)
        if said != "done":
            self.violations.append(f"{folder.name}: the last process: {said!r}")
            return
        self._judge(folder)

    def _judge(self, folder: Path) -> None:
        world = World(folder, None, seeded_history(self.seed, TIMES))
        wrong = world.wrong(VIEWS, range(HYDRATED, TIMES))
        self.violations += [f"{folder.name}: {each!r:.500}" for each in wrong]
        self.compared += len(VIEWS) * (TIMES - HYDRATED)
        world.client.stop()


def maintain(folder: Path, seed: int, *moment: str) -> str:
    """One process, to its end: the last that it said."""
    command = [sys.executable, "-m", "support.view.process", str(folder), str(seed), *moment]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    return lines[-1] if lines else done.stderr[-1500:]

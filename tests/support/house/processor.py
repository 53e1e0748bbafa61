"""The processor time of tests: of this process and of all that it started, by file.

On a machine that others use too, seconds on the clock say little; seconds of the processor say what
a test takes from the two cores that the whole run has. ``pytest --processor 15`` says them for the
fifteen dearest files, ``--processor-file PATH`` adds one line for each file to PATH (also under
xdist, where every process adds its own).

A fixture that is made for many tests counts for the first that asks for it. A process that nobody
waits for (a worker of Spark's daemon) is no longer counted once it has ended.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

_TICKS = os.sysconf("SC_CLK_TCK")
_SPENT = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("processor")
    group.addoption("--processor", type=int, default=0, help="show the N dearest files")
    group.addoption("--processor-file", type=Path, help="add seconds of each file to this one")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SPENT] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if not _is_asked(item.config):
        return (yield)
    before = processor_seconds(os.getpid())
    try:
        return (yield)
    finally:
        file = item.nodeid.partition("::")[0]
        item.config.stash[_SPENT][file] += max(0.0, processor_seconds(os.getpid()) - before)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    dearest = config.stash[_SPENT].most_common(config.option.processor)
    if dearest:
        terminalreporter.section("processor seconds")
    for file, seconds in dearest:
        terminalreporter.write_line(f"{seconds:8.1f} {file}")


def pytest_unconfigure(config: pytest.Config) -> None:
    spent = config.stash.get(_SPENT, Counter())
    if config.option.processor_file is not None and spent:
        lines = "".join(f"{seconds:.1f} {file}\n" for file, seconds in spent.most_common())
        with config.option.processor_file.open("a") as file:
            file.write(lines)


def processor_seconds(process: int) -> float:
    """What a process, all that live below it, and all that ended there, have used."""
    children: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for each in Path("/proc").iterdir():
        if not each.name.isdigit():
            continue
        try:
            # The name, in parentheses, may contain anything.
            fields = (each / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(each.name))
        used[int(each.name)] = sum(map(int, fields[11:15]))
    total, below = 0, [process]
    while below:
        one = below.pop()
        total += used.get(one, 0)
        below += children.get(one, ())
    return total / _TICKS


def _is_asked(config: pytest.Config) -> bool:
    return bool(config.option.processor or config.option.processor_file)

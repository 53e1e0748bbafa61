"""What a server may use: the settings of `noonmark serve --config`, which `SHOW` lists.

One table says of each setting its name, the attribute of `Limits`, its unit and its least value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from noonmark.adapter.worker.errors import ProgramLimitExceeded
from noonmark.errors import ConfigError
from noonmark.persist.task import MEMORY_VARIABLE


@dataclass(frozen=True)
class Limits:
    """What a server may use.

    Attributes:
        workers: how many statements are evaluated at once.
        memory_mb: what one of them may use of memory.
        write_rows: the rows that one statement may write, or has of one time of a subscription.
        copy_memory_mb: what the rows of all COPYs that have not ended may use.
        subscribe_rows: the changes that are read at once for a subscription.
        subscribe_memory_mb: what the changes may use that were read, of all subscriptions.
        mirror_memory_mb: what the collections that are kept in memory may use.
        tick_timeout_s: how long a small change of one view may take.
        connections: how many clients may be connected over PostgreSQL's protocol.
        session_memory_mb: what one session may keep between its statements.
        sessions_memory_mb: what all sessions may keep, beside a little that each has for itself.
        session_objects: how many of each sort of named things one session may keep.
        receive_memory_mb: what may be received of messages that are not whole yet, of all clients.
        spark_memory_mb: the heap of Spark's driver on this machine; 0 for a quarter of its memory.
        spark_python_memory_mb: what one Python worker of Spark may use.
    """

    workers: int = 8
    memory_mb: int = 1_024
    write_rows: int = 2_000_000
    copy_memory_mb: int = 2_048
    subscribe_rows: int = 50_000
    subscribe_memory_mb: int = 64
    mirror_memory_mb: int = 512
    tick_timeout_s: int = 60
    connections: int = 2_500
    session_memory_mb: int = 1_024
    sessions_memory_mb: int = 2_048
    session_objects: int = 20_000
    receive_memory_mb: int = 1_024
    spark_memory_mb: int = 0
    spark_python_memory_mb: int = 4_096

    def check_rows(self, count: int) -> None:
        """Refuse a statement that would write more rows at once.

        Raises:
            ProgramLimitExceeded: it would.
        """
        if count > self.write_rows:
            raise ProgramLimitExceeded(
                f"a statement cannot write more than {self.write_rows} rows",
                detail="That is statement_write_rows_max.",
                hint="Write them in several statements, or with COPY.",
            )

    def shown(self) -> dict[str, str]:
        """The settings, as SHOW has them."""
        return {each.name: f"{getattr(self, each.attribute)}{each.unit}" for each in SETTINGS}

    def spark_options(self) -> dict[str, str]:
        """The settings of Spark that they are."""
        python = {f"spark.executorEnv.{MEMORY_VARIABLE}": str(self.spark_python_memory_mb)}
        driver = {"spark.driver.memory": f"{self.spark_memory_mb}m"} if self.spark_memory_mb else {}
        return python | driver


@dataclass(frozen=True)
class Setting:
    """One limit as it is written: a number of at least `least`, with a unit."""

    name: str
    attribute: str
    unit: str
    least: int
    summary: str


SETTINGS = (
    Setting("statement_workers", "workers", "", 1, "How many statements are evaluated at once."),
    Setting("statement_worker_memory", "memory_mb", "MB", 64, "What a statement may use."),
    Setting("statement_write_rows_max", "write_rows", "", 1, "The rows that it may write."),
    Setting("copy_memory", "copy_memory_mb", "MB", 16, "What COPYs may use, all together."),
    Setting("subscribe_rows_max", "subscribe_rows", "", 1, "Changes that are read at once."),
    Setting("subscribe_memory", "subscribe_memory_mb", "MB", 1, "Changes read for SUBSCRIBEs."),
    Setting("mirror_memory", "mirror_memory_mb", "MB", 4, "Collections that are kept in memory."),
    Setting(
        "tick_timeout", "tick_timeout_s", "s", 1, "How long a small change of a view may take."
    ),
    Setting("max_connections", "connections", "", 1, "How many clients may be connected."),
    Setting("session_memory", "session_memory_mb", "MB", 1, "What one session may keep."),
    Setting("sessions_memory", "sessions_memory_mb", "MB", 1, "What all sessions may keep."),
    Setting("session_objects_max", "session_objects", "", 100, "Named things, of each sort."),
    Setting("receive_memory", "receive_memory_mb", "MB", 1, "Messages that are not whole yet."),
    Setting("spark_driver_memory", "spark_memory_mb", "MB", 0, "The heap of Spark's driver."),
    Setting("spark_python_memory", "spark_python_memory_mb", "MB", 512, "Of a worker of Spark."),
)


def limits_of(options: Mapping[str, str | None]) -> Limits:
    """The limits that are written in options; those that are not there have their defaults.

    >>> limits_of({"statement_workers": "4", "statement_worker_memory": "512MB"}).memory_mb
    512

    Raises:
        ConfigError: one of them is not a number of its unit.
    """
    found: dict[str, Any] = {}
    for each in SETTINGS:
        text = options.get(each.name)
        if text is None:
            continue
        number = text.removesuffix(each.unit)
        if not number.isdigit() or int(number) < each.least:
            unit = f" of {each.unit}" if each.unit else ""
            raise ConfigError(f'{each.name} is a number{unit}, at least {each.least}, not "{text}"')
        found[each.attribute] = int(number)
    return replace(Limits(), **found)

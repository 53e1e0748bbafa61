"""Clients of Kafka, and what their errors mean for a source.

Law (errors): whatever brokers answer is `SourceStalled`: they may answer otherwise later. What is
definite about a topic (another topic under its name, records that are gone) is seen by comparing,
not from errors. No message has a secret in it.

Options are librdkafka's own, so TLS and SASL are set as its documentation says.

Where it connects: bootstrap servers are checked before a client is made, and what brokers say of
themselves whenever a topic is looked at (`source.outgoing`), by who described the connection: an
option of our own says so (`BY_ROLE`). The library resolves names and follows
brokers by itself: it may have opened a connection to a broker before that is refused.

Where it runs: driver and executors; a client is opened where it is used, and closed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka import admin as kafka_admin

from noonmark.errors import SourceStalled
from noonmark.source.outgoing import check_brokers

# The client has no types for it.
OffsetSpec: Any = vars(kafka_admin)["OffsetSpec"]

Options = tuple[tuple[str, str], ...]
#: The option of a connection that a role described.
BY_ROLE = ("noonmark.described.by.role", "true")

TIMEOUT_S = 15.0
_AT_ONCE, _POLL_S = 10_000, 0.1
_QUIET = {"log_level": 0, "log.connection.close": False}
#: A split ends somewhere, and what was fetched beyond it is fetched again: so not the 100,000 of
#: the client. It is still more than the records of one round trip. Where so many wait to be taken
#: it pauses, by itself for a second: a reader would see 20,000 records a second and no more.
_FETCHED = {"queued.min.messages": 20_000, "fetch.queue.backoff.ms": 5}
_FORCED = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
    "fetch.wait.max.ms": 20,
    "check.crcs": True,
}


@dataclass(frozen=True)
class Topic:
    """What a topic is now: its id, and its partitions."""

    id: str
    partitions: tuple[int, ...]


@contextmanager
def errors() -> Iterator[None]:
    """Whatever the client raises is a stall."""
    try:
        yield
    except KafkaException as error:
        raise SourceStalled(f"Kafka does not answer as it should: {_text(error)}") from None
    except TimeoutError:
        raise SourceStalled("Kafka does not answer as it should: it does not answer") from None


def _text(error: KafkaException) -> str:
    found = error.args[0] if error.args else error
    return str(found.str()) if hasattr(found, "str") else str(found)


def open_admin(options: Options, hear: Callable[[Any], None] | None = None) -> Admin:
    """A client for questions; `hear` is told of errors as they come."""
    told: dict[str, Any] = {} if hear is None else {"error_cb": hear}
    wanted = checked(options)
    with errors():
        return Admin({**_QUIET, **wanted, **told}, by_role=BY_ROLE in options)


class Admin(kafka_admin.AdminClient):
    """A client for questions that knows who described its connection."""

    def __init__(self, options: Mapping[str, Any], *, by_role: bool) -> None:
        super().__init__(dict(options))
        self._by_role = by_role

    def check(self, brokers: Iterable[Any]) -> None:
        """Refuse brokers that say that they are where nobody may connect to: they may say anything.

        Raises:
            RefusedHere: one of them does.
        """
        places = sorted({f"{each.host}:{each.port}" for each in brokers})
        check_brokers(places, by_role=self._by_role)


def checked(options: Options) -> dict[str, str]:
    """The options as librdkafka knows them, of servers that may be connected to.

    Raises:
        RefusedHere: one of them may not.
    """
    known = {name: value for name, value in options if name != BY_ROLE[0]}
    servers = known.get("bootstrap.servers", "").split(",")
    check_brokers(servers, by_role=BY_ROLE in options)
    return known


def open_consumer(options: Options, group: str, forced: Options = ()) -> Any:
    """A client for records and for the group's offsets; it never joins the group."""
    wanted = {
        **_QUIET,
        **_FETCHED,
        **checked(options),
        **_FORCED,
        **dict(forced),
        "group.id": group,
    }
    with errors():
        return Consumer(wanted)


def describe(admin: Admin, name: str) -> Topic:
    """The topic of that name.

    Raises:
        SourceStalled: it does not exist, or the brokers do not answer.
    """
    return described(admin, ask_topic(admin, name))


def ask_topic(admin: Admin, name: str) -> Any:
    """Ask for the topic of that name; `described` waits for the answer."""
    with errors():
        asked = admin.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_S)
    return asked[name]


def described(admin: Admin, asked: Any) -> Topic:
    """The answer to `ask_topic`. Raises as `describe` does."""
    with errors():
        found = asked.result(TIMEOUT_S)
    admin.check(node for each in found.partitions for node in each.replicas)
    return Topic(str(found.topic_id), tuple(sorted(each.id for each in found.partitions)))


def ends(admin: Any, topic: str, partitions: tuple[int, ...]) -> dict[int, int]:
    """Up to where each partition can be read by who reads only what is committed."""
    return _offsets(admin, topic, dict.fromkeys(partitions, OffsetSpec.latest()))


def ends_of_all(admin: Any, topic: str, partitions: tuple[int, ...]) -> dict[int, int]:
    """Up to where each partition has records, in transactions that are open or behind them too."""
    specs = dict.fromkeys(partitions, OffsetSpec.latest())
    return _offsets(admin, topic, specs, IsolationLevel.READ_UNCOMMITTED)


def beginnings(admin: Any, topic: str, partitions: tuple[int, ...]) -> dict[int, int]:
    """The first offset that each partition still has."""
    return _offsets(admin, topic, dict.fromkeys(partitions, OffsetSpec.earliest()))


def at_timestamp(
    admin: Any, topic: str, partitions: tuple[int, ...], timestamp_ms: int
) -> dict[int, int]:
    """The first offset of each partition whose record is not older; -1 where all are."""
    spec = OffsetSpec.for_timestamp(timestamp_ms)
    return _offsets(admin, topic, dict.fromkeys(partitions, spec))


def _offsets(
    admin: Any,
    topic: str,
    specs: Mapping[int, Any],
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
) -> dict[int, int]:
    wanted = {TopicPartition(topic, partition): spec for partition, spec in specs.items()}
    if not wanted:
        return {}
    with errors():
        asked = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=TIMEOUT_S)
        return {where.partition: got.result(TIMEOUT_S).offset for where, got in asked.items()}


def received(consumer: Any, seconds: float = _POLL_S) -> list[Any]:
    """What has come, or the first that comes soon: the client would wait for as many as asked."""
    with errors():
        got: list[Any] = consumer.consume(_AT_ONCE, 0) or consumer.consume(1, seconds)
    return got


def commit(consumer: Any, topic: str, offsets: Mapping[int, int]) -> None:
    """Write the group's offsets."""
    with errors():
        consumer.commit(
            offsets=[TopicPartition(topic, p, offset) for p, offset in offsets.items()],
            asynchronous=False,
        )

"""A real Apache Kafka for tests: one broker in KRaft mode, on loopback, for one test run.

Its jars come from Maven, once for each user, into a folder of their cache. Where they cannot be
had, tests that ask for `kafka_server` are skipped with one line; with NOONMARK_REQUIRE_KAFKA=1,
as in CI, they fail.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.neighbour.servers import free_ports, running, server_folder

VERSION = "4.1.0"
_POM = """<project>
<modelVersion>4.0.0</modelVersion>
<groupId>noonmark</groupId><artifactId>kafka-for-tests</artifactId><version>1</version>
<dependencies><dependency>
<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
</dependency></dependencies></project>
"""
_BROKER = ("org.apache.kafka", "kafka_2.13", VERSION)
#: Spark's connector: the newest that Maven has; it runs on the Sparks after it. And what Spark
#: itself does not have of what it needs.
_CONNECTOR = ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.0.0")
_CONNECTOR_NEEDS = "spark-token-provider-kafka-0-10_2.13,kafka-clients,commons-pool2"
#: Flink's, with all it needs in one jar: the newest, for the Flink before the newest.
_FLINK_CONNECTOR = ("org.apache.flink", "flink-sql-connector-kafka", "5.0.0-2.2")
_MAVEN_SECONDS_MAX = 600
#: A tenth of a second each, unless something comes.
_POLLS_MAX = 300
_CLUSTER = "bm9vbm1hcmstdGVzdC1jbA"
#: Who may come in with PLAIN.
USER, PASSWORD = "plain_user", "SENTINEL-of-plain"


@dataclass(frozen=True)
class KafkaServer:
    """A running broker; `sasl` and `ssl` are its listeners for who says who they are."""

    bootstrap: str
    sasl: str = ""
    ssl: str = ""
    process: int = 0

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """What a source takes."""
        return (("bootstrap.servers", self.bootstrap),)

    def admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({**dict(self.options), "log_level": 0})

    def _wait(self, ask: Callable[[Any], Any]) -> None:
        admin = self.admin()  # an answer comes only while the client lives
        ask(admin).result(30)

    def make_topic(self, name: str, partitions: int = 1, **config: str) -> None:
        """A new topic; names of options have _ for dots."""
        from confluent_kafka.admin import NewTopic

        options = {key.replace("_", "."): value for key, value in config.items()}
        topic = NewTopic(name, partitions, 1, config=options)
        self._wait(lambda admin: admin.create_topics([topic])[name])
        # Brokers answer a moment before all of them say that it is there.
        admin = self.admin()
        for _ in range(_POLLS_MAX):
            if name in admin.list_topics(timeout=30).topics:
                return
            threading.Event().wait(0.1)
        raise AssertionError(f"{name} does not come")

    def make_user(self, name: str, password: str) -> None:
        """Somebody who may come in with SCRAM-SHA-256."""
        from confluent_kafka import admin as kafka_admin

        made = vars(kafka_admin)
        kind = made["ScramCredentialInfo"](made["ScramMechanism"].SCRAM_SHA_256, 4096)
        wanted = made["UserScramCredentialUpsertion"](name, kind, password.encode())
        self._wait(lambda admin: admin.alter_user_scram_credentials([wanted])[name])

    def drop_topic(self, name: str) -> None:
        self._wait(lambda admin: admin.delete_topics([name])[name])

    def remake_topic(self, name: str, partitions: int = 1) -> None:
        """Delete a topic, and make another one of that name as soon as brokers let it go."""
        from confluent_kafka import KafkaError, KafkaException

        self.drop_topic(name)
        for _ in range(_POLLS_MAX):
            try:
                return self.make_topic(name, partitions)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
                threading.Event().wait(0.1)
        raise AssertionError(f"{name} does not go")

    def add_partitions(self, name: str, total: int) -> None:
        from confluent_kafka.admin import NewPartitions

        wanted = [NewPartitions(name, total)]
        self._wait(lambda admin: admin.create_partitions(wanted)[name])

    def delete_records(self, name: str, partition: int, before: int) -> None:
        """What retention does: the partition begins at `before` from now on."""
        from confluent_kafka import TopicPartition

        where = TopicPartition(name, partition, before)
        self._wait(lambda admin: admin.delete_records([where])[where])

    def producer(self, **options: Any) -> Any:
        from confluent_kafka import Producer

        given = {key.replace("_", "."): value for key, value in options.items()}
        return Producer({**dict(self.options), "log_level": 0, "linger.ms": 0, **given})

    def send(self, topic: str, records: Iterable[dict[str, Any]]) -> None:
        """Produce and wait: keyword arguments of `Producer.produce`, one dict each."""
        # Otherwise a batch that is sent again may come behind later ones, or twice.
        producer = self.producer(enable_idempotence=True)
        failed: list[str] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failed.append(str(error))

        for record in records:
            producer.produce(topic, **{"on_delivery": delivered, **record})
            producer.poll(0)
        assert producer.flush(30) == 0
        assert failed == []

    def committed_records(self, topic: str) -> list[Any]:
        """All records of partition 0 that a reader of committed ones sees."""
        from confluent_kafka import KafkaError, TopicPartition

        from noonmark.source.impl.kafka.client import open_consumer, received

        consumer = open_consumer(self.options, f"reader-of-{topic}")
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = []
        try:
            for _ in range(_POLLS_MAX):
                for each in received(consumer):
                    if each.error() is None:
                        found.append(each)
                    elif each.error().code() == KafkaError._PARTITION_EOF:
                        return found
        finally:
            consumer.close()
        raise AssertionError(f"the end of {topic} does not come")

    def committed(self, group: str, topic: str, partition: int = 0) -> int:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({**dict(self.options), "group.id": group, "log_level": 0})
        try:
            (found,) = consumer.committed([TopicPartition(topic, partition)], timeout=30)
            return int(found.offset)
        finally:
            consumer.close()


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """The broker's jars, for tests that start and stop one of their own."""
    return installed_jars()


@pytest.fixture(scope="session")
def kafka_server(kafka_jars: Path) -> Iterator[KafkaServer]:
    """An Apache Kafka broker."""
    with server_folder("kafka") as folder, start_kafka(folder, kafka_jars) as server:
        yield server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything that asks for the broker carries the marker `server`."""
    for item in items:
        if "kafka_jars" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.server)


def installed_jars() -> Path:
    """The folder with the broker's jars."""
    jars = _cache() / f"kafka-{VERSION}"
    problem = _fetch(jars, _BROKER)
    if problem is not None:
        message = f"no Apache Kafka: {problem}"
        if os.environ.get("NOONMARK_REQUIRE_KAFKA") == "1":
            pytest.fail(message, pytrace=False)
        pytest.skip(message)
    return jars


def connector_jars() -> list[Path]:
    """Spark's own connector to Kafka, for who wants to compare; none where Maven has none."""
    _, artifact, version = _CONNECTOR
    jars = _cache() / f"spark-kafka-{version}"
    problem = _fetch(jars, _CONNECTOR, f"-DincludeArtifactIds={artifact},{_CONNECTOR_NEEDS}")
    return [] if problem else sorted(jars.glob("*.jar"))


def flink_jars() -> list[Path]:
    """Flink's connector to Kafka; none where Maven has none."""
    _, artifact, version = _FLINK_CONNECTOR
    jars = _cache() / f"flink-kafka-{version}"
    problem = _fetch(jars, _FLINK_CONNECTOR, f"-DincludeArtifactIds={artifact}")
    return [] if problem else sorted(jars.glob("*.jar"))


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "noonmark-tests"


def _fetch(jars: Path, what: tuple[str, str, str], *options: str) -> str | None:
    """Why Maven could not bring the jars of an artifact; None when they are there."""
    if jars.exists():
        return None
    maven = shutil.which("mvn")
    if maven is None:
        return "Maven (mvn) is not installed"
    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.parent) as folder:
        group, artifact, version = what
        pom = _POM.format(group=group, artifact=artifact, version=version)
        (Path(folder) / "pom.xml").write_text(pom)
        command = [maven, "-q", "-B", "-f", f"{folder}/pom.xml", "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={folder}/jars", "-DincludeScope=runtime", *options]
        try:
            made = subprocess.run(
                command, capture_output=True, text=True, timeout=_MAVEN_SECONDS_MAX, check=False
            )
        except subprocess.TimeoutExpired:
            return "Maven did not finish"
        if made.returncode != 0:
            return f"Maven could not bring it ({(made.stdout or made.stderr).strip()[:200]})"
        if not jars.exists():
            os.replace(f"{folder}/jars", jars)
    return None


@contextmanager
def start_kafka(
    folder: Path, jars: Path, ports: tuple[int, int] | None = None
) -> Iterator[KafkaServer]:
    """Broker and controller in one JVM; with the ports of before, on the data of before."""
    from noonmark.java import find_runtime

    client, controller, *secure = ports or free_ports(4)
    server = KafkaServer(f"127.0.0.1:{client}", *(f"127.0.0.1:{port}" for port in secure))
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{client}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder / "data"),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.backoff.ms": "200",
        "log.retention.check.interval.ms": "500",
        "log.segment.delete.delay.ms": "0",
        "auto.create.topics.enable": "false",
    }
    if secure:
        settings |= _secured(settings["listeners"], server, folder)
    config = folder / "server.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    java = [
        str(find_runtime().home / "bin" / "java"),
        "-Xmx512m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
    ]
    java += ["-cp", f"{jars}/*"]
    storage = [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(config)]
    if ports is None:
        made = subprocess.run(storage, capture_output=True, text=True, check=False, cwd=folder)
        if made.returncode != 0:
            said = made.stdout + made.stderr
            pytest.fail(f"Kafka's storage could not be made: {said}", pytrace=False)
    command = [*java, "kafka.Kafka", str(config)]
    ready = partial(_answers, server)
    with running(command, folder, ready, stop=signal.SIGKILL) as process:
        yield replace(server, process=process)


def _secured(listeners: str, server: KafkaServer, folder: Path) -> dict[str, str]:
    """Two more listeners: one for users with passwords, one for those with our certificate."""
    pem = (Path(__file__).parents[1] / "serve" / "pgwire_certificate.pem").read_text()
    begin = "-----BEGIN CERTIFICATE-----"
    (folder / "ca.pem").write_text(begin + pem.partition(begin)[2])
    (folder / "server.pem").write_text(pem)
    more = f"SASL_PLAINTEXT://{server.sasl},SSL://{server.ssl}"
    login = "org.apache.kafka.common.security.{}LoginModule required{};"
    name = "listener.name.sasl_plaintext"
    return {
        "listeners": f"{listeners},{more}",
        "advertised.listeners": f"PLAINTEXT://{server.bootstrap},{more}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        f"{name}.plain.sasl.jaas.config": login.format("plain.Plain", f' user_{USER}="{PASSWORD}"'),
        f"{name}.scram-sha-256.sasl.jaas.config": login.format("scram.Scram", ""),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "ssl.client.auth": "required",
    }


def _answers(server: KafkaServer) -> bool:
    from confluent_kafka import KafkaException

    try:
        return bool(server.admin().list_topics(timeout=1).brokers)
    except KafkaException:
        return False

"""FROM KAFKA: the records of one topic, raw: a format decodes them, an envelope makes updates.

`client` talks to brokers, `source` is the source itself, `setup` makes one.
"""

from noonmark.source.impl.kafka.setup import StartFrom, create, validate
from noonmark.source.impl.kafka.source import Kafka

__all__ = ["Kafka", "StartFrom", "create", "validate"]

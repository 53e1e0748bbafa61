"""Fixtures come from the modules of tests/support, one per kind of neighbour."""

pytest_plugins = [
    "support.house.bytecode",
    "support.house.heap",
    "support.house.processor",
    "support.store.places",
    "support.kill.racers",
    "support.neighbour.servers",
    "support.neighbour.spark",
    "support.neighbour.logical",
    "support.neighbour.kafka",
    "support.neighbour.registry",
]

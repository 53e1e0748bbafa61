"""The timestamp oracle: strictly monotone times, across restarts and clocks that jump."""

from noonmark.oracle.contract import TimestampOracle
from noonmark.oracle.memory import MemoryOracle
from noonmark.oracle.reserved import AsyncReservedOracle, ReservedOracle

__all__ = ["AsyncReservedOracle", "MemoryOracle", "ReservedOracle", "TimestampOracle"]

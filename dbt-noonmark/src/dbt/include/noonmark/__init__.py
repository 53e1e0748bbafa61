"""The macros of the adapter, as files beside this one."""

from pathlib import Path

PACKAGE_PATH = str(Path(__file__).parent)

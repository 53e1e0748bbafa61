"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from support.house.repository import module_name, python_files

WITH_EXAMPLES = [path for path in python_files("src") if ">>> " in path.read_text()]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=module_name)
def test_examples(path: Path) -> None:
    done = doctest.testmod(importlib.import_module(module_name(path)))
    assert done.attempted > 0
    assert done.failed == 0

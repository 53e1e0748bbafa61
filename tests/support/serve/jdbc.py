"""pgjdbc for tests: its jar comes from Maven, once for each user, into a folder of their cache.

Where it cannot be had, tests that ask for it are skipped with one line; with
NOONMARK_REQUIRE_KAFKA=1, which says that Maven must be there (as in CI), they fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

VERSION = "42.7.4"
SCRIPT = Path(__file__).with_name("PgwireJdbc.java")
METADATA = Path(__file__).with_name("PgMetadata.java")
_ARTIFACT = f"org.postgresql:postgresql:{VERSION}"
_MAVEN_SECONDS_MAX = 600


def run_script(url: str, script: Path = SCRIPT) -> list[str]:
    """The lines that a Java program prints."""
    java, jar = shutil.which("java"), _jar()
    if java is None or shutil.which("javac") is None:
        _without("a JDK is not installed")
    command = [str(java), "-cp", str(jar), str(script), url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _without(problem: str) -> None:
    message = f"no pgjdbc: {problem}"
    if os.environ.get("NOONMARK_REQUIRE_KAFKA") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def _jar() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "noonmark-tests"
    jar = cache / f"postgresql-{VERSION}.jar"
    if not jar.exists():
        problem = _fetch(jar)
        if problem is not None:
            _without(problem)
    return jar


def _fetch(jar: Path) -> str | None:
    """Why Maven could not bring the jar; None when it is there."""
    maven = shutil.which("mvn")
    if maven is None:
        return "Maven (mvn) is not installed"
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jar.parent) as folder:
        command = [maven, "-q", "-B", "dependency:copy", f"-Dartifact={_ARTIFACT}"]
        command += [f"-DoutputDirectory={folder}"]
        try:
            made = subprocess.run(
                command,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=_MAVEN_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "Maven did not finish"
        if made.returncode != 0:
            return f"Maven could not bring it ({(made.stdout or made.stderr).strip()[:200]})"
        os.replace(Path(folder) / jar.name, jar)
    return None

"""Which Java is taken, and that Spark really runs on the one that the package brings."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from noonmark import java
from noonmark.errors import ConfigError


def fake_java(folder: Path, version: str, *, exit_status: int = 0) -> Path:
    """A home whose ``bin/java`` answers the probe as a runtime of `version` would."""
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    program = folder / "bin" / "java"
    program.write_text(
        textwrap.dedent(f"""\
        #!/bin/sh
        case "$1" in
            -XshowSettings:properties)
                echo "    java.home = {folder}" >&2
                echo "    java.specification.version = {version}" >&2
                exit {exit_status} ;;
            *) for each; do printf '[%s]' "$each"; done ;;
        esac
        """)
    )
    program.chmod(0o755)
    return folder


@pytest.fixture
def no_bundled_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "bundled_java", lambda: None)


def environ(tmp_path: Path, *, home: Path | None = None, path: Path | None = None):
    named = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    if home:
        named["JAVA_HOME"] = str(home)
    if path:
        named["PATH"] = str(path / "bin")
    return named


def test_java_home_is_taken_before_path(tmp_path: Path) -> None:
    home, path = fake_java(tmp_path / "home", "17"), fake_java(tmp_path / "path", "21")
    found = java.find_runtime(environ(tmp_path, home=home, path=path))
    assert found == java.Runtime(home=home, version=17)


@pytest.mark.parametrize("old", ["11", "1.8"])
def test_an_old_java_home_gives_way_to_path(tmp_path: Path, old: str) -> None:
    home, path = fake_java(tmp_path / "home", old), fake_java(tmp_path / "path", "21")
    found = java.find_runtime(environ(tmp_path, home=home, path=path))
    assert found == java.Runtime(home=path, version=21)


def test_without_a_fit_java_the_bundled_one_is_taken(tmp_path: Path) -> None:
    path = fake_java(tmp_path / "path", "11")
    found = java.find_runtime(environ(tmp_path, home=tmp_path / "nowhere", path=path))
    bundled = java.bundled_java()
    assert bundled is not None
    assert found.home / "bin" / "java" == bundled
    assert found.version >= java.VERSION_MIN


@pytest.mark.usefixtures("no_bundled_java")
def test_no_java_at_all_says_what_each_candidate_lacks(tmp_path: Path) -> None:
    broken = fake_java(tmp_path / "broken", "21", exit_status=1)
    old = fake_java(tmp_path / "old", "11")
    with pytest.raises(ConfigError) as caught:
        java.find_runtime(environ(tmp_path, home=broken, path=old))
    assert f"JAVA_HOME ({broken}/bin/java) does not start" in str(caught.value)
    assert f"java on PATH ({old}/bin/java) is version 11" in str(caught.value)
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    ("version", "kept"),
    [("17", ["--add-opens=java.base/sun.security.action=ALL-UNNAMED"]), ("25", [])],
)
def test_the_launcher_drops_only_what_the_runtime_does_not_know(
    tmp_path: Path, version: str, kept: list[str]
) -> None:
    home = fake_java(tmp_path / "a home's folder", version)
    made = Path(java.java_home(environ(tmp_path, home=home)))
    flags = [
        "-Xmx1g",
        "--add-modules=jdk.incubator.vector",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    ]
    rest = ["-cp", "a b*", "", "Main", "it's"]
    command = [made / "bin" / "java", *flags, *rest]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == "".join(f"[{each}]" for each in ["-Xmx1g", *kept, *rest])
    assert (made / "lib").resolve() == home / "lib"


def test_the_launcher_is_made_once(tmp_path: Path) -> None:
    named = environ(tmp_path, home=fake_java(tmp_path / "home", "17"))
    first = Path(java.java_home(named))
    made_ns = (first / "bin" / "java").stat().st_mtime_ns
    assert Path(java.java_home(named)) == first
    assert (first / "bin" / "java").stat().st_mtime_ns == made_ns
    assert [each.name for each in first.parent.iterdir()] == [first.name]


def test_a_cache_that_cannot_be_written_is_replaced_by_a_private_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    monkeypatch.setattr(java.tempfile, "gettempdir", lambda: str(tmp_path))
    named = environ(tmp_path, home=fake_java(tmp_path / "home", "17"))
    private = Path(java.java_home(named)).parent
    assert private.parent == tmp_path
    assert private.stat().st_mode & 0o777 == 0o700

    private.chmod(0o777)
    with pytest.raises(ConfigError, match="not a private folder"):
        java.java_home(named)


ON_THE_BUNDLED_RUNTIME = """\
import sys
import pyarrow as pa
from noonmark.compute.jvm.session import spark_session

def doubled(batches):
    for batch in batches:
        values = batch.column("v").to_pylist()
        yield pa.record_batch({"v": pa.array([2 * v for v in values], pa.int64())})

spark = spark_session(master="local[2]")
frame = spark.range(1000).selectExpr("id % 10 as k", "id as v")
total = frame.groupBy("k").sum("v").toArrow().column("sum(v)").to_pylist()
frame.write.parquet(sys.argv[1])
read = spark.read.parquet(sys.argv[1])
mapped = read.select("v").mapInArrow(doubled, "v long").toArrow().column("v").to_pylist()
print(spark.sparkContext._jvm.System.getProperty("java.home"))
print(sum(total), read.count(), sum(mapped))
"""


def path_without_java(folder: Path) -> Path:
    """A folder that has every program of the system's own folders, but no Java."""
    folder.mkdir()
    for program in [*Path("/usr/bin").iterdir(), *Path("/bin").iterdir()]:
        link = folder / program.name
        if not program.name.startswith("java") and not link.is_symlink():
            link.symlink_to(program)
    return folder


@pytest.mark.spark
def test_spark_runs_on_the_bundled_runtime_without_noise(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(ON_THE_BUNDLED_RUNTIME)
    done = subprocess.run(
        [sys.executable, script, tmp_path / "parquet"],
        env={
            "PATH": str(path_without_java(tmp_path / "bin")),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    bundled = java.bundled_java()
    assert bundled is not None
    assert done.stdout.splitlines() == [str(bundled.parent.parent), "499500 1000 999000"]
    assert done.stderr == ""
    assert not (tmp_path / "spark-warehouse").exists()

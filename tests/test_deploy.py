"""What is in deploy/: the options are options, the unit is one, the wheel has what it needs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from noonmark.serve.command import DEFAULTS, merged

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"


def test_the_options_file_has_options() -> None:
    options = merged({}, tomllib.loads((DEPLOY / "noonmark.toml").read_text()))
    assert set(options) == set(DEFAULTS)
    assert options["trust"] == "nobody"


def test_the_unit_is_one(tmp_path: Path) -> None:
    """`systemd-analyze` reads it; what it runs is a program that is there."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze here")
    text = (DEPLOY / "systemd" / "noonmark.service").read_text()
    unit = tmp_path / "noonmark.service"
    unit.write_text(text.replace("/opt/noonmark/bin/noonmark", sys.executable))
    found = subprocess.run(
        [analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    about = [line for line in found.stderr.splitlines() if "noonmark.service" in line]
    assert (found.returncode, about) == (0, [])


def test_the_image_runs_the_program_as_it_is() -> None:
    docker = (DEPLOY / "docker" / "Dockerfile").read_text()
    for path in re.findall(r"^COPY (?!--from)(.+) \S+$", docker, re.MULTILINE):
        assert all((ROOT / each).exists() for each in path.split())
    assert 'CMD ["serve", "--data",' in docker
    pinned = re.findall(r"hatchling==[\d.]+", docker)
    assert pinned
    assert pinned[0] in (ROOT / "requirements.lock").read_text()


def test_the_wheel_has_what_the_server_reads(tmp_path: Path) -> None:
    build = "from hatchling.build import build_wheel; print(build_wheel(__import__('sys').argv[1]))"
    made = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    names = set(zipfile.ZipFile(tmp_path / made.stdout.split()[-1]).namelist())
    wanted = [
        each.relative_to(ROOT / "src").as_posix()
        for each in (ROOT / "src").rglob("*")
        if each.is_file() and "__pycache__" not in each.parts
    ]
    assert set(wanted) <= names
    assert any(name.endswith("entry_points.txt") for name in names)

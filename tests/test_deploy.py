"""What is in deploy/: the options are options, the unit is one, the wheel has what it needs."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from noonmark import persist
from noonmark.rows.schema import Schema
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


CHART = DEPLOY / "helm" / "noonmark"
#: What people set, and what they must be told.
CHOICES = {
    "volume": ["insecureListen=true"],
    "store": ["data=s3://bucket/place", "standby=true", "readers=2", "tlsSecret=tls",
              "consensusSecret=log", "serviceMonitor=true", "config.statement_workers=2"],
}  # fmt: skip


def test_the_chart_asks_for_values_that_are_there() -> None:
    """What can be said without helm: every value has a default, every block an end."""
    values = set(re.findall(r"^(\w+):", (CHART / "values.yaml").read_text(), re.MULTILINE))
    for template in sorted((CHART / "templates").iterdir()):
        text = template.read_text()
        assert set(re.findall(r"\.Values\.(\w+)", text)) <= values, template.name
        opened = re.findall(r"\{\{-? (?:if|range|with|define) ", text)
        assert len(opened) == len(re.findall(r"\{\{-? end ", text)), template.name
        assert "\t" not in text
    flags = set(re.findall(r'"(--[\w-]+)"', (CHART / "templates" / "writer.yaml").read_text()))
    assert flags == {"--standby"}
    options = tomllib.loads(
        "\n".join(re.findall(r'^    (\w+ = "[^{]+")$', _template("configmap.yaml"), re.MULTILINE))
    )
    assert set(merged({}, options)) == set(DEFAULTS)


def _template(name: str) -> str:
    return (CHART / "templates" / name).read_text()


@pytest.mark.parametrize("choice", CHOICES)
def test_the_chart_renders(choice: str) -> None:
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("no helm here")
    chosen = [word for each in CHOICES[choice] for word in ("--set", each)]
    subprocess.run([helm, "lint", "--strict", str(CHART), *chosen], check=True, capture_output=True)
    made = subprocess.run(
        [helm, "template", "mine", str(CHART), *chosen], check=True, capture_output=True, text=True
    ).stdout
    documents = [each for each in made.split("\n---\n") if "kind:" in each]
    kinds = sorted(re.findall(r"^kind: (\w+)", made, re.MULTILINE))
    stored = choice == "store"
    assert kinds == sorted(
        ["ConfigMap", "Service", "StatefulSet"]
        + (["Deployment", "Service", "ServiceMonitor"] if stored else [])
    )
    (writer,) = [each for each in documents if "kind: StatefulSet" in each]
    assert ("--standby" in writer, "volumeClaimTemplates" in writer) == (stored, not stored)
    assert ("--insecure-listen" in writer) == (not stored)
    (config,) = [each for each in documents if "kind: ConfigMap" in each]
    text = config.split("noonmark.toml: |\n")[1]
    options = merged({}, tomllib.loads("\n".join(line.strip() for line in text.splitlines())))
    assert options["trust"] == "nobody"


def test_the_chart_refuses_what_cannot_work() -> None:
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("no helm here")
    for chosen in (["readers=1", "insecureListen=true"], ["data=s3://bucket/place"]):
        words = [word for each in chosen for word in ("--set", each)]
        done = subprocess.run(
            [helm, "template", "x", str(CHART), *words], check=False, capture_output=True
        )
        assert done.returncode != 0, chosen


def test_the_bill_of_materials_is_that_of_the_lock() -> None:
    """What `make sbom` would write now is what is there, and every package says its licence."""
    sbom = _module(DEPLOY / "sbom.py")
    made = sbom.bill()
    assert json.loads((DEPLOY / "sbom.json").read_text()) == made, "run: make sbom"
    assert (ROOT / "docs/reference/licences.md").read_text() == sbom.page(made), "run: make sbom"
    packages = [each for each in made["components"] if each["purl"].startswith("pkg:pypi/")]
    assert {"pyspark", "pyarrow", "sqlglot"} <= {each["name"] for each in packages}
    assert [each["name"] for each in packages if not each["licenses"][0]["expression"]] == []
    assert all(each["hashes"] for each in packages)


def test_a_reader_needs_neither_spark_nor_java(tmp_path: Path) -> None:
    """The modules that `noonmark-reader` names are enough to read, list, verify and export."""
    with persist.open(tmp_path / "data", options=persist.Options(notify_host=None)) as client:
        write, _ = client.create_or_load("t", Schema.of(a="bigint"), ("a",))
        write.write([persist.Update((7,), 1, 1)])
        write.seal(2).result(60)
    named = tomllib.loads((DEPLOY / "reader" / "pyproject.toml").read_text())["project"]
    allowed = {re.split(r"[\[><=]", each)[0].replace("-", "_") for each in named["dependencies"]}
    brought = {"psycopg_binary", "typing_extensions", "markdown_it", "mdurl", "pygments"}
    # pyarrow hands out pandas where it is there; nothing of ours asks for it.
    done = subprocess.run(
        [sys.executable, "-c", _READS, str(tmp_path), ",".join(sorted(allowed | brought))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["[7]"]), done.stderr


#: Reads where only some packages can be imported, as in an environment that has no others.
_READS = """
import importlib.util, sys
from pathlib import Path
folder, allowed = Path(sys.argv[1]), set(sys.argv[2].split(","))

class Only:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in allowed | {"noonmark"} | set(sys.stdlib_module_names) or top.startswith("_"):
            return None
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Only())
import noonmark
from noonmark.cli import app
data = str(folder / "data")
export = ["export", "t", "--to", str(folder / "t.parquet")]
for words in (["shard", "ls"], ["shard", "verify"], export):
    app([*words, "--data", data], standalone_mode=False)
print(noonmark.read(data, "t").to_arrow()["a"].to_pylist())
"""


def _module(path: Path) -> Any:
    found = importlib.util.spec_from_file_location(path.stem, path)
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made

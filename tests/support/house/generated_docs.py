"""Pages of the documents that are made from the code: errors, configuration, what is proven.

`python tests/support/house/generated_docs.py` writes them; `tests/test_docs_generated.py` fails
when they are out of date. The words about what to do are in `support.house.error_advice`.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from noonmark.adapter.worker.limits import SETTINGS, Limits
from noonmark.serve.command import DEFAULTS, serve
from support.house.error_advice import ADVICE, GROUPS

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
_NOTE = "<!-- Made by tests/support/house/generated_docs.py from the code: change it there. -->"
_ROOT_ERROR = "NoonmarkError"

_ERRORS = f"""# Errors

{_NOTE}

Every error has an id, which never changes its meaning, a SQLSTATE as PostgreSQL has them, a
message, and where they help a detail, a hint and a place in the text. Over PostgreSQL's protocol
and HTTP you see the SQLSTATE; in Python the exception is a class of `noonmark.errors` or below
one, with `.id`, `.sqlstate`, `.detail` and `.hint`. The groups say what to do; the last table
finds an id by its SQLSTATE."""

_CONFIGURATION = f"""# Configuration

{_NOTE}

`noonmark serve` takes options; `--config FILE` reads the same ones, and more, from TOML. What the
command line says wins. Every value in the file is a text, or for a list a list of texts. `SHOW ALL`
lists what holds in a session, and [SET](../sql/set.md) changes what is a session's own. A complete
file is [deploy/noonmark.toml](../../deploy/noonmark.toml).

## Options

| option | key in the file | default | what it is |
|---|---|---|---|"""

_FILE_ALONE = f"""
A server that listens beyond this machine also refuses connections to this machine (`loopback`),
unless `--connect-deny` or `--connect-allow` says otherwise.

## In the file alone

| key | default | what it is |
|---|---|---|
| `tls_certificate`, `tls_key` | none | PEM files ([security](../operate/security.md)) |
| `trust` | `"{DEFAULTS["trust"]}"` | who comes without a password: `"local"` users, or `"nobody"` |
"""

_LIMITS = """## Limits, in the file

What happens beyond each is on [the page about limits](../operate/limits.md); `SHOW name` says what
holds.

| key | default | least | what it is |
|---|---|---|---|"""

_ENVIRONMENT = """
`spark_driver_memory` of 0 is a quarter of the machine's memory, 1 to 8 GB.

## The environment

Secrets are never options. They are variables, or files that an option names:

| variable | what it is |
|---|---|
| `NOONMARK_PASSWORD` | the superuser's password, at the first start; or `--password-file` |
| `NOONMARK_METRICS_TOKEN` | what `/metrics` asks for; or `--metrics-token-file` |
| `NOONMARK_SECRET_KEY` | what [secrets](../sql/create-connection.md) are sealed with; or a file |
| `NOONMARK_CONNECT_ALLOW`, `NOONMARK_CONNECT_DENY` | as the options, for executors of your own |"""

_PROVEN = f"""# What is proven

{_NOTE}

A promise of Noonmark is a law, and a law has something that tries to break it. The tests (`make
test`) have the laws of every module as properties. The figures below are longer: each is a program
that attacks a promise many times and counts violations. The goal is none; one makes the run fail.
`make prove` runs them all, `make prove ONLY=C5,C7` some, `SEED=7` another run.

What a whole run showed is kept beside the figures, in `tests/prove/evidence.json`, with a digest of
the code that it judged: `make prove KEEP=1` keeps it, and `make prove KEEP=1 OLD=1` runs only what
has no run that met its goal on the code of now.

A certainty figure is evidence, and no proof in the sense of mathematics: a run shows what was
tried, how often, and whether it held. That the judges can see a fault is a figure of its own (C10).
What an answer promises, and how each level is tested, is on [the page about
consistency](consistency.md); what each test of the storage layer shows is on [the page about
persist](persist.md).

Not shown by any of them: months of operation, and clusters of several machines. Spark clusters
are tested on one machine, with executors and workers as processes of their own."""


@dataclass(frozen=True)
class Kind:
    """A class of errors as the source has it."""

    name: str
    parent: str
    id: str
    sqlstate: str
    summary: str


def kinds() -> dict[str, Kind]:
    """Every class of errors by its name, those of `errors.py` first, without importing any."""
    folder = ROOT / "src" / "noonmark"
    own = folder / "errors.py"
    files = [own, *(path for path in sorted(folder.rglob("*.py")) if path != own)]
    declared: dict[str, tuple[str, str, str | None, str]] = {}
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            words = {k.arg: k.value for k in getattr(node, "keywords", ())}
            if isinstance(node, ast.ClassDef) and "id" in words:
                parent = node.bases[0]
                state = words.get("sqlstate")
                declared[node.name] = (
                    parent.id if isinstance(parent, ast.Name) else "",
                    ast.literal_eval(words["id"]),
                    ast.literal_eval(state) if state else None,
                    (ast.get_docstring(node) or "").split("\n\n")[0].replace("``", "`"),
                )

    def state_of(name: str) -> str:
        parent, _, state, _ = declared[name]
        return state or state_of(parent)

    return {
        name: Kind(name, parent, id_, state_of(name), " ".join(summary.split()))
        for name, (parent, id_, _, summary) in declared.items()
    }


def errors_page() -> str:
    """`docs/reference/errors.md`: by what the caller must do, and by SQLSTATE."""
    found = kinds()
    lines = [_ERRORS]
    for group in (kind for kind in found.values() if kind.parent == _ROOT_ERROR):
        lines += ["", f"## {_title(group.name)}", "", GROUPS.get(group.id, group.summary), ""]
        lines += ["| id | SQLSTATE | what it is | what to do |", "|---|---|---|---|"]
        for kind in _below(found, group):
            advice = _cell(_advice(found, kind))
            lines.append(f"| `{kind.id}` | {kind.sqlstate} | {_cell(kind.summary)} | {advice} |")
    lines += ["", "## By SQLSTATE", "", "| SQLSTATE | ids |", "|---|---|"]
    by_state: dict[str, list[str]] = defaultdict(list)
    for kind in found.values():
        by_state[kind.sqlstate].append(f"`{kind.id}`")
    lines += [f"| {state} | {', '.join(sorted(ids))} |" for state, ids in sorted(by_state.items())]
    return "\n".join(lines) + "\n"


def _below(found: dict[str, Kind], kind: Kind) -> Iterator[Kind]:
    yield kind
    for each in found.values():
        if each.parent == kind.name:
            yield from _below(found, each)


def _advice(found: dict[str, Kind], kind: Kind) -> str:
    """That of the kind itself, or of the nearest above it; what a group says is not repeated."""
    while kind.id not in ADVICE and kind.parent in found:
        kind = found[kind.parent]
    return ADVICE.get(kind.id, "")


def _title(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).capitalize()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def configuration_page() -> str:
    """`docs/reference/configuration.md`: options, keys of the file, limits, variables."""
    lines = [_CONFIGURATION]
    for option in serve.params:
        assert isinstance(option, click.Option)
        name = option.name or ""
        values = [""] if option.is_flag else _values(option)
        flag = " or ".join(f"`{option.opts[0]} {value}".strip() + "`" for value in values)
        key = f"`{name}`" if name in DEFAULTS else "only an option"
        meaning, default = _help(option.help or "")
        lines.append(f"| {flag} | {key} | {default} | {meaning} |")
    return "\n".join([*lines, _FILE_ALONE, *_limits(), _ENVIRONMENT]) + "\n"


def _limits() -> list[str]:
    defaults = Limits().shown()
    lines = [_LIMITS]
    for each in SETTINGS:
        shown = f'`"{defaults[each.name]}"`'
        lines.append(f"| `{each.name}` | {shown} | {each.least}{each.unit} | {each.summary} |")
    return lines


def _values(option: click.Option) -> list[str]:
    if isinstance(option.type, click.Choice):
        return [str(choice) for choice in option.type.choices]
    return [option.metavar or "TEXT"]


def _help(text: str) -> tuple[str, str]:
    """What an option means, and its default, which stands in brackets at the end."""
    match = re.fullmatch(r"(.*?)\s*(?:\[(.*)\])?", text)
    assert match is not None
    return match[1], f"`{match[2]}`" if match[2] else ""


def proven_page() -> str:
    """`docs/proven.md`: every certainty figure, in the words of the file that runs it."""
    lines = [_PROVEN]
    runs = json.loads((ROOT / "tests" / "prove" / "evidence.json").read_text())
    titles: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for path in sorted((ROOT / "tests" / "prove").glob("c[0-9]*.py")):
        words = ast.get_docstring(ast.parse(path.read_text())) or ""
        number = re.match(r"c(\d+)", path.name)
        assert number is not None
        titles[int(number[1])].append((path.name, words))
    for number_, figures in sorted(titles.items()):
        lines += ["", f"## C{number_}: {_short(_headline(figures[0][1]))}"]
        for name, words in figures:
            rest = words.partition("\n\n")[2].replace("``", "`")
            headline = _headline(words)
            headline = headline[0].upper() + headline[1:]
            lines += ["", f"**{headline}** `tests/prove/{name}`", "", rest]
            if run := runs.get(name.removesuffix(".py")):
                lines += ["", _kept(run)]
    return "\n".join(lines).rstrip() + "\n"


def _kept(run: dict[str, Any]) -> str:
    """What the last whole run of a figure showed."""
    found = "met" if run["met"] else f"**{run['value']:,.4g} violations**"
    return f"Last whole run, {run['day']} with seed {run['seed']}, {run['goal']}: {found}."


def _headline(words: str) -> str:
    """The first sentence of a figure's file, without its number."""
    sentence = " ".join(words.partition("\n\n")[0].split())
    return re.sub(r"^C\d+(, \w+)?:?\s*", "", sentence)


def _short(headline: str) -> str:
    """Its beginning, up to where it makes a pause; a word or two are not enough."""
    pause = re.search(r"[:;.(]|, ", headline[15:])
    return headline[: 15 + pause.start()].strip() if pause else headline


PAGES = {
    DOCS / "reference" / "errors.md": errors_page,
    DOCS / "reference" / "configuration.md": configuration_page,
    DOCS / "proven.md": proven_page,
}

if __name__ == "__main__":
    for place, made in PAGES.items():
        place.write_text(made())

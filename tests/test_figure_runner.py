"""The runner of figures: what it finds, how it runs, what it writes and its exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.house.repository import ROOT

GOOD = """\
def main(argv):
    seed = int(argv[argv.index("--seed") + 1])
    return dict(title="a|b", value=seed, unit="x", goal=">= 2", met=seed >= 2,
                measures={"ours": seed, "theirs": 1.5}, note="3 rounds")
"""


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch):
    """The runner's package, which stands beside the tests, not in the product."""
    monkeypatch.syspath_prepend(str(ROOT))
    import bench.__main__
    import bench.figure

    return bench


def suites(bench, folder: Path, *, is_law: bool = False):
    return {"speed": bench.figure.Suite("speed", folder, "f", is_law=is_law)}


def run_all(bench, folder: Path, *argv: str, is_law: bool = False) -> int:
    arguments = ["speed", "--out", str(folder / "out"), *argv]
    return bench.__main__.main(arguments, suites(bench, folder, is_law=is_law))


def test_figures_are_found_by_number(bench, tmp_path: Path) -> None:
    for name in ("f10_late.py", "f2_early.py", "figure.py", "c1_other.py", "f3.txt", "fx.py"):
        (tmp_path / name).write_text("")
    suite = suites(bench, tmp_path)["speed"]
    assert [p.name for p in bench.figure.discover(suite)] == ["f2_early.py", "f10_late.py"]
    assert [p.name for p in bench.figure.discover(suite, ["f10"])] == ["f10_late.py"]
    with pytest.raises(ValueError, match="no figure F3"):
        bench.figure.discover(suite, ["F2", "F3"])


def test_no_figures_is_said_and_is_no_failure(bench, tmp_path: Path, capsys) -> None:
    assert run_all(bench, tmp_path) == 0
    assert "There are no speed figures to run." in capsys.readouterr().out


def test_a_run_writes_a_table_and_a_plot(bench, tmp_path: Path) -> None:
    (tmp_path / "f1_good.py").write_text(GOOD)
    assert run_all(bench, tmp_path, "--seed", "7") == 0
    table = (tmp_path / "out" / "speed" / "table.md").read_text()
    assert "| F1 | a\\|b | 7 x | >= 2 | met | 3 rounds |" in table
    assert (tmp_path / "out" / "speed" / "F1.svg").read_text().startswith("<?xml")


def test_a_figure_of_several_files_has_several_plots(bench, tmp_path: Path) -> None:
    from bench.report import write

    figure = bench.figure.Figure("F4", "t", 1.0, "x", ">= 1", met=True, measures={"ours": 1.0})
    written = write([figure, figure], tmp_path)
    assert [path.name for path in written] == ["table.md", "F4.svg", "F4-2.svg"]


@pytest.mark.parametrize(("is_law", "exit_status"), [(False, 0), (True, 1)])
def test_a_missed_goal_fails_only_a_law(
    bench, tmp_path: Path, is_law: bool, exit_status: int
) -> None:
    (tmp_path / "f1_good.py").write_text(GOOD)
    assert run_all(bench, tmp_path, "--seed", "1", is_law=is_law) == exit_status


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def main(argv): raise SystemExit(3)", "exit status 3"),
        ("def main(argv): return {'title': 'no number'}", "bad answer: KeyError('value')"),
    ],
)
def test_a_figure_without_a_number_fails_the_run_but_not_the_others(
    bench, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "f1_bad.py").write_text(text)
    (tmp_path / "f2_good.py").write_text(GOOD)
    assert run_all(bench, tmp_path, "--seed", "2") == 1
    table = (tmp_path / "out" / "speed" / "table.md").read_text()
    assert f"| {said} |" in table
    assert "| F2 | a\\|b | 2 x |" in table


def test_an_unknown_figure_is_a_usage_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "speed", "--only", "F999", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no figure F999" in done.stdout


def reached(stem: str) -> set[str]:
    from bench.evidence import reached

    found = reached(ROOT / "tests" / "prove" / f"{stem}.py")
    return {str(path.relative_to(ROOT)) for path in found}


@pytest.mark.usefixtures("bench")
def test_a_figure_judges_what_it_imports_and_what_it_starts() -> None:
    simulated, killed = reached("c1_simulation"), reached("c2_kill")
    for found in (simulated, killed):
        assert "src/noonmark/persist/log/journal.py" in found
        assert "src/noonmark/sql/parse.py" not in found
    assert "tests/simulation/model.py" in simulated  # imported from where it stands
    assert "src/noonmark/storage/core.py" in simulated
    assert "tests/support/kill/crash_reader.py" in killed  # a process, by its name
    served = reached("c15_hostile")
    assert "src/noonmark/serve/run.py" in served  # python -m noonmark
    tests = reached("c9_source_faults")
    assert "tests/integration/test_source_kafka.py" in tests  # whoever runs tests
    assert "src/noonmark/sql/parse.py" in tests


def test_evidence_stands_until_the_code_that_it_judged_changes(bench, tmp_path: Path) -> None:
    from bench import evidence

    figure = tmp_path / "f1_good.py"
    figure.write_text(GOOD)
    assert run_all(bench, tmp_path, "--seed", "7") == 0
    assert not evidence.stands(figure)  # nobody asked to keep it
    assert run_all(bench, tmp_path, "--seed", "1", "--keep") == 0
    assert not evidence.stands(figure)  # it missed its goal
    assert run_all(bench, tmp_path, "--seed", "7", "--keep", "--old") == 0
    assert evidence.stands(figure)
    assert evidence.read(tmp_path)["f1_good"].value == 7
    assert run_all(bench, tmp_path, "--seed", "1", "--keep", "--old") == 0
    assert evidence.stands(figure)  # it was not run again
    figure.write_text(GOOD + "# another judge")
    assert not evidence.stands(figure)

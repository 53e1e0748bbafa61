"""The table and the plots of F11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.f11_nexmark import Outcome

_BEGIN, _END = "<!-- measured -->", "<!-- end of measured -->"


def said(outcome: Outcome) -> str:
    """One engine in one line."""
    if outcome.left_out:
        return f"{outcome.engine}: left out, {outcome.left_out}"
    ages = ", ".join(
        f"{rate:,}/s {p50:.3f}/{p99:.3f} s ({cores:.1f} cores)"
        for rate, (p50, p99, cores) in outcome.rates.items()
    )
    wrong, answers = sum(outcome.wrong.values()), sum(outcome.answers.values())
    return (
        f"{outcome.engine}: catches up with {outcome.catch_up:,.0f} events/s "
        f"({outcome.catch_up_cpu_us:.1f} us of CPU each); ages p50/p99: {ages}; "
        f"highest rate with p99 <= 1 s: {outcome.highest:,}/s; {wrong} of {answers} answers are "
        f"of no input {dict(outcome.wrong)}; {outcome.memory_bytes / 1e9:.2f} GB at most"
    )


def table(outcomes: Sequence[Outcome], options: Mapping[str, Any]) -> str:
    """The engines side by side, as Markdown."""
    rates = sorted({rate for each in outcomes for rate in each.rates})
    rows: dict[str, list[str]] = {
        "views": [", ".join(each.views) for each in outcomes],
        "catch-up, events/s": [f"{each.catch_up:,.0f}" for each in outcomes],
        "CPU, us an event": [f"{each.catch_up_cpu_us:.1f}" for each in outcomes],
    }
    for rate in rates:
        rows[f"age p50 / p99 at {rate:,}/s, s"] = [_ages(each, rate) for each in outcomes]
    rows["highest rate with p99 <= 1 s"] = [f"{each.highest:,}/s" for each in outcomes]
    rows["answers that no input gives"] = [
        f"{sum(each.wrong.values())} of {sum(each.answers.values())}" for each in outcomes
    ]
    rows["memory, GB"] = [f"{each.memory_bytes / 1e9:.2f}" for each in outcomes]
    lines = ["| | " + " | ".join(each.engine for each in outcomes) + " |"]
    lines.append("|---" * (len(outcomes) + 1) + "|")
    for name, cells in rows.items():
        shown = [
            "left out" if each.left_out else cell
            for each, cell in zip(outcomes, cells, strict=True)
        ]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    reasons = [
        f"\n{each.engine} is left out: {each.left_out}" for each in outcomes if each.left_out
    ]
    made = f"\n{options['events']:,} bids to catch up with, {options['seconds']:g} s of each rate."
    return "\n".join([*lines, made, *reasons]) + "\n"


def _ages(outcome: Outcome, rate: int) -> str:
    if rate not in outcome.rates:
        return "-"
    p50, p99, _ = outcome.rates[rate]
    return " / ".join("never" if age == float("inf") else f"{age:.3f}" for age in (p50, p99))


def publish(outcomes: Sequence[Outcome], page: Path, options: Mapping[str, Any]) -> None:
    """Put the table into a page of the documents, between its marks, and the plot beside it."""
    before, begin, rest = page.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    assert end, f"{page} has no marks"
    plot = page.with_name(f"{page.stem}-ages.svg")
    _plot(outcomes, plot)
    shown = f"\n\n{table(outcomes, options)}\n![Age of answers by rate]({plot.name})\n\n"
    page.write_text(before + begin + shown + end + after)


def write(outcomes: Sequence[Outcome], folder: Path, options: Mapping[str, Any]) -> list[Path]:
    """The table, and a plot of ages by rate."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "table.md", folder / "ages.svg"]
    written[0].write_text(table(outcomes, options))
    _plot(outcomes, written[1])
    return written


def _plot(outcomes: Sequence[Outcome], path: Path) -> None:
    import matplotlib  # door: only a report draws

    matplotlib.use("svg")
    from matplotlib import pyplot  # door: only a report draws

    drawing, axes = pyplot.subplots(figsize=(7, 4))
    try:
        for each in outcomes:
            if each.rates:
                ages = [p99 for _, p99, _ in each.rates.values()]
                axes.plot(list(each.rates), ages, marker="o", label=each.engine)
        axes.axhline(1.0, color="grey", linestyle=":")
        axes.set(xscale="log", yscale="log", xlabel="bids a second", ylabel="age p99, s")
        if axes.lines[1:]:
            axes.legend()
        axes.set_title("F11: age of answers by rate", loc="left", fontsize=10)
        drawing.savefig(path, bbox_inches="tight")
    finally:
        pyplot.close(drawing)

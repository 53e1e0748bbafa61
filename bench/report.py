"""The report of a run: a Markdown table, and one plot per figure that has measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.figure import Figure


def status(figure: Figure) -> str:
    """One word for how it went."""
    if figure.error:
        return "failed"
    return "met" if figure.met else "missed"


def number(figure: Figure) -> str:
    """The value with its unit, or why there is none."""
    if figure.value is None:
        return figure.error
    return f"{figure.value:,.4g} {figure.unit}".strip()


def table(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table."""
    lines = ["| figure | what | value | goal | status | note |", "|---|---|---|---|---|---|"]
    for each in figures:
        cells = [each.id, each.title, number(each), each.goal, status(each), each.note]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def write(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Write ``table.md`` and the plots into `folder`; returns what was written.

    A figure of several files has several plots: ``F4.svg``, ``F4-2.svg``, in the table's order.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "table.md"]
    written[0].write_text(table(figures))
    drawn: Counter[str] = Counter()
    for each in figures:
        if each.measures:
            drawn[each.id] += 1
            number_of = f"-{drawn[each.id]}" if drawn[each.id] > 1 else ""
            written.append(folder / f"{each.id}{number_of}.svg")
            _plot(each, written[-1])
    return written


def _plot(figure: Figure, path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(7, 0.6 + 0.45 * len(figure.measures)))
    try:
        names = list(figure.measures)
        bars = axes.barh(names, [figure.measures[name] for name in names])
        axes.bar_label(bars, fmt="%.4g", padding=3)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.set_title(f"{figure.id}: {figure.title}", loc="left", fontsize=10)
        drawing.savefig(path, bbox_inches="tight")
    finally:
        pyplot.close(drawing)

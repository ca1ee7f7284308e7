"""Bar charts as SVG, without a library. A chart has panels; a panel has one bar per agent on a logarithmic or linear axis."""
from __future__ import annotations

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

COLOURS = {"pinion": "#c2571a", "floor": "#9a9a9a"}
OTHER = "#5b7c99"
PANEL_WIDTH, ROW, HEAD, LABEL, VALUE, GAP = 430, 20, 30, 84, 74, 22


@dataclass
class Panel:
    """One measurement: bars of (agent, value, shown text). Missing agents have a text and no value."""

    title: str
    bars: list[tuple[str, float | None, str]]
    logarithmic: bool = True


def chart(title: str, panels: list[Panel], columns: int = 2) -> str:
    """Returns an SVG document. Colours are readable on light and dark pages."""
    rows = [panels[i: i + columns] for i in range(0, len(panels), columns)]
    heights = [max(HEAD + ROW * len(p.bars) for p in row) + GAP for row in rows]
    width, height = PANEL_WIDTH * columns + GAP, sum(heights) + 34
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" role="img">',
           f"<title>{escape(title)}</title>", f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
           f'<text x="{GAP}" y="22" font-size="15" font-weight="bold" fill="#222">{escape(title)}</text>']
    top = 34
    for row, tall in zip(rows, heights):
        for column, panel in enumerate(row):
            out += draw(panel, GAP + column * PANEL_WIDTH, top)
        top += tall
    return "\n".join([*out, "</svg>", ""])


def draw(panel: Panel, left: int, top: int) -> list[str]:
    values = [value for _, value, _ in panel.bars if value]
    low = 10 ** math.floor(math.log10(min(values)) - 0.3) if values and panel.logarithmic else 0.0
    high = max(values, default=1.0)
    room = PANEL_WIDTH - GAP - LABEL - VALUE
    scale = "logarithmic axis" if panel.logarithmic else "linear axis"
    out = [f'<text x="{left}" y="{top + 18}" font-weight="bold" fill="#222">{escape(panel.title)}'
           f'<tspan font-weight="normal" font-size="10" fill="#777"> ({scale})</tspan></text>']
    for number, (name, value, shown) in enumerate(panel.bars):
        y = top + HEAD + number * ROW
        out.append(f'<text x="{left}" y="{y + 12}" fill="#222">{escape(name)}</text>')
        length = 0.0
        if value:
            part = math.log(value / low) / math.log(high / low) if panel.logarithmic and high > low else value / high
            length = max(1.0, part * room)
            out.append(f'<rect x="{left + LABEL}" y="{y + 2}" width="{length:.1f}" height="{ROW - 6}" fill="{COLOURS.get(name, OTHER)}"/>')
        out.append(f'<text x="{left + LABEL + length + 5:.1f}" y="{y + 12}" fill="#444">{escape(shown)}</text>')
    return out

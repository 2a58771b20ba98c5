"""plot.py ROWS FILE.svg draws the rows of curve.sh: a panel a capture, PSNR against seconds, a line a preset."""
import json
import sys

COLOURS = {"default": "#c2410c", "3dgs": "#1d4ed8", "mcmc": "#047857"}
WIDTH, HEIGHT, LEFT, TOP, GAP = 280, 220, 46, 30, 60  # of a panel, px
LONGEST = 60  # seconds that are shown


def panel(capture, rows, x0):
    """Returns the SVG of one capture, whose axes begin at x0."""
    ends = [row["points"][-1] for row in rows]
    longest = min(LONGEST, max(t for t, _ in ends))
    top = max(p for row in rows for _, p in row["points"]) + 0.3
    low = top - 8  # dB
    x = lambda t: x0 + WIDTH * t / longest
    y = lambda p: TOP + HEIGHT * (top - max(p, low)) / (top - low)
    out = [f'<text x="{x0}" y="{TOP - 10}" font-weight="bold">{capture}</text>']
    for p in range(int(low) + 1, int(top) + 1):
        out.append(f'<path d="M{x0} {y(p):.1f}h{WIDTH}" stroke="#ddd"/>'
                   f'<text x="{x0 - 6}" y="{y(p) + 4:.1f}" text-anchor="end">{p}</text>')
    for t in range(0, int(longest) + 1, 5 if longest < 40 else 10):
        out.append(f'<text x="{x(t):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{t}</text>')
    for i, row in enumerate(rows):
        colour = COLOURS.get(row["preset"], "#666")
        shown = [(t, p) for t, p in row["points"] if t <= longest and p >= low]
        line = " ".join(f"{x(t):.1f},{y(p):.1f}" for t, p in shown)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if row["ended"] and shown and shown[-1][0] == row["points"][-1][0]:
            out.append(f'<circle cx="{x(shown[-1][0]):.1f}" cy="{y(shown[-1][1]):.1f}" r="4" fill="{colour}"/>')
        below = TOP + HEIGHT - 12 - 15 * i
        out.append(f'<text x="{x0 + WIDTH - 60}" y="{below}" fill="{colour}">{row["preset"]}</text>')
    return "\n".join(out)


def main():
    rows = [json.loads(line) for line in open(sys.argv[1])]
    captures = list(dict.fromkeys(row["capture"] for row in rows))
    panels = []
    for i, c in enumerate(captures):
        panels.append(panel(c, [r for r in rows if r["capture"] == c], LEFT + i * (WIDTH + GAP)))
    width = LEFT + len(captures) * (WIDTH + GAP)
    with open(sys.argv[2], "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + 40}" '
                   f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>\n'
                   + "\n".join(panels)
                   + f'\n<text x="{LEFT}" y="{TOP + HEIGHT + 34}">PSNR of held-out photos in dB against seconds from '
                     "the start; a dot is the end of a run, the others were cut short</text></svg>\n")


main()

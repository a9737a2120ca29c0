"""A recorded terminal as an animated SVG. Viewers without animations show its end."""
from xml.sax.saxutils import escape

CELL, LINE, MARGIN, BAR = 8.4, 19, 16, 30
HOLD = 5.0  # seconds for which the end is shown before the animation repeats
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
COLORS = ["#8a93a3", "#ff6b6b", "#8fce74", "#e5c07b", "#6cb2ff", "#d291e4", "#5fc9d6", "#d8dee9"]


def runs(cells, column):
    """Cells as pieces of one style, without spaces at their ends: column, text, style."""
    found = []
    for letter, style in cells:
        if found and found[-1][2] == style:
            found[-1][1] += letter
        else:
            found.append([column, letter, style])
        column += 1
    for piece in found:
        stripped = piece[1].lstrip(" ")
        piece[0] += len(piece[1]) - len(stripped)
        piece[1] = stripped.rstrip(" ")
    return [piece for piece in found if piece[1]]


def segments(history):
    """What each line showed: row, column, cells, when it appeared and when it was replaced."""
    open_, closed, drawn = {}, [], {}
    for now, _, changed in history:
        for row, cells in changed:
            spins = bool(cells) and cells[0][0] in SPINNER and cells[-1][1]  # the end of a status line is dim
            if spins and now - drawn.get(row, -1) < 0.4:
                continue
            drawn.pop(row, None)
            if spins:
                drawn[row] = now
            kept, column = [], 0
            for segment in open_.get(row, []):
                if cells[column:column + len(segment[2])] != segment[2]:
                    break
                kept.append(segment)
                column += len(segment[2])
            closed += [(*segment, now) for segment in open_.get(row, [])[len(kept):]]
            if len(cells) > column:
                kept.append((row, column, cells[column:], now))
            open_[row] = kept
    return closed + [(*segment, None) for segments in open_.values() for segment in segments]


def svg(history, columns, rows, title):
    start = history[0][0]
    length = history[-1][0] - start + HOLD
    share = lambda at: f"{100 * (at - start) / length:.2f}%"
    rows = min(rows, 1 + max(row for _, _, changed in history for row, cells in changed if cells))
    width, height = columns * CELL + 2 * MARGIN, rows * LINE + BAR + 2 * MARGIN
    classes, texts, styles = {}, [], set()
    for row, column, cells, shown, hidden in sorted(segments(history), key=lambda one: (one[3], one[0], one[1])):
        if hidden is not None and hidden - shown < 0.03:
            continue
        pieces = runs(cells, column)
        if not pieces:
            continue
        times = (share(shown), share(hidden) if hidden is not None else None)
        kind = classes.setdefault(times, f"k{len(classes)}")
        for column, text, style in pieces:
            styles.update(style)
            words = " ".join([kind, *style]) if not text.startswith("Killed") else f"{kind} killed"
            texts.append(f'<text class="{words}" x="{column * CELL:.1f}" y="{(row + 0.75) * LINE:.1f}" '
                         f'textLength="{len(text) * CELL:.1f}">{escape(text)}</text>')
    frames = []
    for (shown, hidden), kind in classes.items():
        end = f"{hidden}{{opacity:0}}" if hidden else ""
        hide = "opacity:0;" if hidden else ""
        frames.append(f".{kind}{{{hide}animation-name:{kind}}}@keyframes {kind}{{0%{{opacity:0}}{shown}{{opacity:1}}{end}}}")
    tops = [(at, top) for (at, top, _), (_, before, _) in zip(history, [(0, 0, [])] + history) if top != before]
    scrolls = "".join(f"{share(at)}{{transform:translate(0,{-top * LINE}px)}}" for at, top in tops)
    last = history[-1][1] * LINE
    paints = {"b": "font-weight:bold", "d": "fill:#8a93a3", "i": "font-style:italic", "u": "text-decoration:underline"}
    paints |= {f"c{number}": f"fill:{color}" for number, color in enumerate(COLORS)}
    painted = "".join(f".{style}{{{paints[style]}}}" for style in sorted(styles, reverse=True))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img">
<title>{escape(title)}</title>
<style>
text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d8dee9;white-space:pre}}
text,#page{{animation-duration:{length:.2f}s;animation-iteration-count:infinite;animation-timing-function:step-end}}
#page{{transform:translate(0,{-last}px);animation-name:page}}
@keyframes page{{0%{{transform:none}}{scrolls}}}
{painted}.killed{{fill:#ff6b6b;font-weight:bold}}
@media (prefers-reduced-motion:reduce){{text,#page{{animation:none!important}}}}
{chr(10).join(frames)}
</style>
<rect width="100%" height="100%" rx="8" fill="#1d2128"/>
<circle cx="20" cy="18" r="6" fill="#4b5263"/><circle cx="40" cy="18" r="6" fill="#4b5263"/><circle cx="60" cy="18" r="6" fill="#4b5263"/>
<svg x="{MARGIN}" y="{BAR + MARGIN}" width="{columns * CELL:.0f}" height="{rows * LINE}"><g id="page">
{chr(10).join(texts)}
</g></svg>
</svg>
"""

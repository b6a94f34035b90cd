#!/usr/bin/env python3
"""Draws docs/tour.svg: a terminal that shows what a few real commands print.

    tools/make-tour.py BAWN >docs/tour.svg

The commands are run in a project that is made for it, with a home of its own. Ids of runs are replaced, so that the
picture changes only when the output does.
"""

import html
import os
import pathlib
import re
import subprocess
import sys
import tempfile

COMMANDS = (
    "bawn run -- sed -i 's/a + c/a + b/' src/sum.js",
    "bawn diff",
    "bawn apply",
    "bawn run -- node -e 'console.log(require(\"./src/sum.js\")(2, 3))'",
    "bawn run -- ls /root/.ssh",
    "bawn run --allow api.example.org:443 -- curl -s https://example.com",
    "bawn log --denials",
)
WIDTH, SIZE, STEP, LEFT, TOP = 100, 14, 19, 18, 52
COLUMN = SIZE * 0.602
COLOURS = (("$ ", "#f0f6fc"), ("+", "#7ee787"), ("-", "#ff9b94"), ("@@", "#79c0ff"), ("bawn: ", "#e3b341"))


def record(bawn):
    """Pairs of a line and its colour, as a terminal would show them."""
    with tempfile.TemporaryDirectory(prefix="bawn-tour-") as folder:
        home = pathlib.Path(folder)
        (home / "bin").mkdir()
        (home / "bin" / "bawn").symlink_to(pathlib.Path(bawn).resolve())
        (home / "project" / "src").mkdir(parents=True)
        (home / "project" / "src" / "sum.js").write_text("module.exports = (a, b) => a + c;\n", encoding="utf-8")
        env = {"HOME": folder, "PATH": f"{home}/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        for command in COMMANDS:
            yield "$ " + command
            # Standard output first: a terminal would show the two streams in the order of writing.
            done = subprocess.run(["bash", "-c", command + " 2>&1"], cwd=home / "project", env=env, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=60, check=False)
            yield from done.stdout.splitlines()
            yield ""


def stable(line):
    line = re.sub(r"\b\d{8}-\d{6}-[0-9a-f]{8}\b", "20261115-224501-1f2e3d4c", line)
    line = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "2026-11-15T22:45:01.000Z", line)
    return line if len(line) <= WIDTH else line[:WIDTH - 1] + "…"


def draw(lines):
    width, height = int(WIDTH * COLUMN + 2 * LEFT), TOP + STEP * len(lines)
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" role="img" aria-label="a terminal with bawn">')
    yield f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>'
    for index, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        yield f'<circle cx="{20 + 20 * index}" cy="18" r="6" fill="{colour}"/>'
    yield f'<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="{SIZE}" xml:space="preserve">'
    for index, line in enumerate(lines):
        colour = next((colour for start, colour in COLOURS if line.startswith(start)), "#b1bac4")
        yield f'<text x="{LEFT}" y="{TOP + STEP * index}" fill="{colour}">{html.escape(line, quote=False)}</text>'
    yield "</g>\n</svg>"


def main():
    if len(sys.argv) != 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit(__doc__)
    lines = [stable(line) for line in record(sys.argv[1])]
    print("\n".join(draw(lines[:-1])))


if __name__ == "__main__":
    main()

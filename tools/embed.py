"""Writes a text file as a C string: embed.py NAME INPUT OUTPUT."""

import sys

name, source, target = sys.argv[1:]
with open(source, encoding="utf-8") as f:
    lines = f.read().splitlines(keepends=True)


def quote(line):
    for char, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        line = line.replace(char, escape)
    return f'\t"{line}"'


with open(target, "w", encoding="utf-8") as f:
    f.write('#include "plan/plan.h"\n\n')
    f.write(f"const char {name}[] =\n" + "\n".join(map(quote, lines)) + ";\n")

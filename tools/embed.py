"""Writes a file as C: embed.py [--bytes] NAME INPUT OUTPUT.

A text becomes a string, line by line; with --bytes anything becomes an array NAME and its size
NAME_size.
"""

import sys


def quote(line):
    for char, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        line = line.replace(char, escape)
    return f'\t"{line}"'


def as_string(name, source):
    with open(source, encoding="utf-8") as f:
        lines = f.read().splitlines(keepends=True)
    return f"extern const char {name}[];\nconst char {name}[] =\n" + "\n".join(map(quote, lines)) + ";\n"


def as_bytes(name, source):
    with open(source, "rb") as f:
        content = f.read()
    rows = (content[at:at + 16] for at in range(0, len(content), 16))
    body = ",\n\t".join(", ".join(map(str, row)) for row in rows)
    return (f"extern const unsigned char {name}[];\nextern const unsigned {name}_size;\n"
            f"const unsigned char {name}[] = {{\n\t{body}\n}};\n"
            f"const unsigned {name}_size = {len(content)};\n")


make = as_string
if sys.argv[1] == "--bytes":
    make = as_bytes
    del sys.argv[1]
with open(sys.argv[3], "w", encoding="utf-8") as out:
    out.write(make(sys.argv[1], sys.argv[2]))

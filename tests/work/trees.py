"""Trees at random, and what somebody made of them."""

import os
import pathlib
import shutil

NAMES = ["a", "b.txt", "c d", "e'f", 'g"h', "i\\j", "k\tl", "m\nn", "-o", "\x1b]52;c;eA==\x07", "ü", "\udcff\udcfe", "p ",
         " q", "r#", "s;t", "$(u)", "~v", "w:x", "\u202etxt", "#y", "日本", "zz"]


def text(random):
    """Lines with little in them, so that diffs have something to find."""
    lines = [random.choice(["x", "y", "  z", "\tt", "", "diff --git a/x b/x", "--- a/x", "@@ -1 +1 @@", "\x1b[31mred", "é",
                            "-", "+", "# c", "\\ No newline at end of file"]) for _ in range(random.randrange(40))]
    whole = "\n".join(lines) + random.choice(["", "\n"])
    return whole.encode() + (b"\xff\n" if random.random() < 0.1 else b"")


def content(random, binaries):
    if binaries and random.random() < 0.15:
        return random.randbytes(50) + b"\0"
    return b"" if random.random() < 0.1 else text(random)


def put(random, path, binaries):
    if random.random() < 0.15:
        path.symlink_to(random.choice(["x", "../y", "no\nwhere", "z z", "/"]))
        return
    path.write_bytes(content(random, binaries))
    path.chmod(random.choice([0o644, 0o644, 0o755]))


def grow(random, top, depth=2, binaries=False):
    """Fills an empty folder."""
    for name in random.sample(NAMES, random.randrange(2, 7)):
        if depth and random.random() < 0.3:
            (top / name).mkdir()
            grow(random, top / name, depth - 1, binaries)
        else:
            put(random, top / name, binaries)


def edit(random, old):
    lines = old.split(b"\n")
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(lines) + 1)
        how = random.random()
        if how < 0.4:
            lines[at:at] = [b"new"]
        elif how < 0.7:
            del lines[at:at + 2]
        else:
            lines[at:at + 1] = [b"other", b"one"]
    return b"\n".join(lines)


def change(random, path, binaries):
    """One file, in one of the ways there are."""
    how = random.random()
    if how < 0.15:
        path.unlink()
    elif how < 0.3:
        other = path.with_name(random.choice(NAMES) + str(random.randrange(99)))
        if not os.path.lexists(other):
            path.rename(other)
    elif how < 0.45 and not path.is_symlink():
        path.chmod(path.stat().st_mode ^ 0o111)
    elif how < 0.55:
        path.unlink()
        put(random, path, binaries)
    elif how < 0.6:
        path.unlink()
        path.mkdir()
        put(random, path / "inside", binaries)
    elif path.is_symlink():
        path.unlink()
        path.symlink_to("elsewhere" + str(random.randrange(9)))
    else:
        path.write_bytes(edit(random, path.read_bytes()))


def alter(random, top, binaries=False):
    """Changes some of what is in a folder, and adds to it."""
    for path in sorted(pathlib.Path(top).rglob("*"), key=os.fsencode):
        if not path.is_symlink() and path.is_dir():
            if random.random() < 0.1:
                shutil.rmtree(path)
                if random.random() < 0.5:
                    put(random, path, binaries)
        elif os.path.lexists(path) and random.random() < 0.5:
            change(random, path, binaries)
    for name in random.sample(NAMES, 2):
        if not os.path.lexists(top / (name + "+")):
            put(random, top / (name + "+"), binaries)

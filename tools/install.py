#!/usr/bin/env python3
"""Installs what a build has made, or removes it again; builds nothing.

    tools/install.py BUILD install|uninstall PREFIX [DESTDIR]

Meson knows what is installed and where below its prefix. Nothing is compiled for a prefix, so one build can be
installed anywhere. Programs are stripped on the way.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys


def installed(build):
    """Pairs of a file in the build or the source, and its path below a prefix."""
    def ask(what):
        return json.loads(subprocess.run(["meson", "introspect", str(build), what], check=True, text=True,
                                         stdout=subprocess.PIPE).stdout)

    prefix = next(option["value"] for option in ask("--buildoptions") if option["name"] == "prefix")
    for source, target in sorted(ask("--installed").items(), key=lambda item: item[1]):
        yield pathlib.Path(source), pathlib.Path(target).relative_to(prefix)


def put(source, target):
    """As install(1) does: a program that runs keeps its old file, and a reader sees one or the other."""
    is_program = os.access(source, os.X_OK)
    words = ["install", "-D", "-m", "755" if is_program else "644"] + (["-s"] if is_program else [])
    subprocess.run([*words, str(source), str(target)], check=True)


def take(target, prefix):
    target.unlink(missing_ok=True)
    for folder in target.relative_to(prefix).parents:
        # Only folders that are bawn's by name: others may be expected to be there, empty or not.
        if "bawn" in folder.parts and (prefix / folder).is_dir() and not any((prefix / folder).iterdir()):
            (prefix / folder).rmdir()


def show(verb, pairs, prefix):
    """A line for each folder: what it holds is said by name where that is short."""
    folders = collections.defaultdict(list)
    for _, target in pairs:
        folders[prefix / target.parent].append(target.name)
    print(f"{verb}:")
    for folder, names in folders.items():
        print(f"  {folder}/{names[0]}" if len(names) == 1 else f"  {folder}/: {', '.join(names)}"
              if len(names) <= 3 else f"  {folder}/: {len(names)} files")


def main():
    if len(sys.argv) not in (4, 5) or sys.argv[2] not in ("install", "uninstall"):
        sys.exit(__doc__)
    build, verb, prefix = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]).expanduser()
    destdir = sys.argv[4] if len(sys.argv) == 5 else ""
    if not prefix.is_absolute():
        sys.exit(f"install: cannot use the prefix '{prefix}': it must begin with /\nhint: PREFIX=$PWD/{prefix}")
    below = pathlib.Path(os.path.abspath(destdir) + str(prefix)) if destdir else prefix
    try:
        pairs = list(installed(build))
        for source, target in pairs:
            if verb == "install":
                put(source, below / target)
            else:
                take(below / target, below)
    except (OSError, subprocess.CalledProcessError) as problem:
        sys.exit(f"install: cannot {verb}: {problem}" if isinstance(problem, OSError) else problem.returncode)
    show("installed" if verb == "install" else "removed", pairs, below)
    if verb == "install" and not destdir:
        on_path = str(prefix / "bin") in os.environ.get("PATH", "").split(":")
        print(f"{prefix}/bin is on your PATH: try bawn doctor" if on_path
              else f"{prefix}/bin is not on your PATH; add it: export PATH={prefix}/bin:$PATH")


if __name__ == "__main__":
    main()

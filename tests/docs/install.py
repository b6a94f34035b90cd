#!/usr/bin/env python3
"""make install and make uninstall, below a folder of the test's own.

    install.py BUILD        prints TAP
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
EXPECTED = ("bin/bawn", "libexec/bawn/bawn-vault", "share/man/man1/bawn.1", "share/man/man5/bawn.yaml.5",
            "share/doc/bawn/examples/full.yaml", "share/doc/bawn/sessions.md")


def run(*words, **more):
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **{"env": env, **more})


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


class Tests:
    def __init__(self, build, folder):
        self.build, self.folder, self.prefix = build, folder, folder / "usr"

    def install(self, verb):
        return run(TOP / "tools/install.py", self.build, verb, "/usr", self.folder)

    def test_everything_is_there_and_nothing_else(self):
        done = self.install("install")
        assert done.returncode == 0, done.stdout
        here = files(self.prefix)
        assert set(EXPECTED) <= here, (sorted(here), "misses", set(EXPECTED) - here)
        assert all(re.match(r"bin/bawn$|libexec/bawn/|share/man/man[15]/bawn|share/doc/bawn/", name) for name in here), here

    def test_every_document_and_example_is_installed(self):
        here = files(self.prefix / "share/doc/bawn")
        wanted = {str(path.relative_to(TOP / "docs")) for path in (TOP / "docs").rglob("*.md")}
        wanted |= {f"examples/{path.name}" for path in (TOP / "examples").iterdir()}
        assert here == wanted, here ^ wanted

    def test_programs_are_stripped_and_those_of_the_build_are_not(self):
        for program, where in (("bawn", "bin"), ("bawn-vault", "libexec/bawn")):
            assert ".symtab" in run("readelf", "-SW", self.build / "src/cli" / program).stdout
            assert ".symtab" not in run("readelf", "-SW", self.prefix / where / program).stdout, program

    def test_it_says_where_things_went(self):
        said = self.install("install").stdout
        assert f"  {self.prefix}/bin/bawn\n" in said and f"  {self.prefix}/libexec/bawn/" in said, said

    def test_it_says_whether_the_folder_is_on_the_path(self):
        prefix = self.folder / "own"
        said = run(TOP / "tools/install.py", self.build, "install", prefix).stdout
        assert f"{prefix}/bin is not on your PATH; add it: export PATH={prefix}/bin:$PATH" in said, said
        path = f"{prefix}/bin:{os.environ['PATH']}"
        said = run(TOP / "tools/install.py", self.build, "install", prefix, env={**os.environ, "PATH": path}).stdout
        assert f"{prefix}/bin is on your PATH" in said, said
        run(TOP / "tools/install.py", self.build, "uninstall", prefix)

    def test_an_installed_bawn_finds_its_helpers(self):
        """bawn-pg says that there is no such server, which bawn itself cannot know."""
        assert "0.1.0" in run(self.prefix / "bin/bawn", "version").stdout
        if (self.prefix / "libexec/bawn/bawn-pg").exists():
            env = {**os.environ, "BAWN_STORE": "postgresql:///x?host=/nonexistent"}
            said = run(self.prefix / "bin/bawn", "session", "list", env=env).stdout
            assert "/nonexistent" in said and "bawn-pg" not in said, said
            (self.prefix / "libexec/bawn/bawn-pg").unlink()
            said = run(self.prefix / "bin/bawn", "session", "list", env=env).stdout
            assert "bawn-pg" in said, said

    def test_make_does_nothing_but_build_once_and_this(self):
        said = run("make", "-C", TOP, "-n", "-o", "all", "install", "PREFIX=/elsewhere").stdout
        steps = [line for line in said.splitlines() if "directory" not in line]
        assert steps == ["tools/install.py build install '/elsewhere' ''"], said

    def test_a_relative_prefix_is_refused(self):
        done = run(TOP / "tools/install.py", self.build, "install", "here", self.folder)
        assert done.returncode == 1 and "it must begin with /" in done.stdout, done.stdout

    def test_uninstall_leaves_what_is_others(self):
        other = self.prefix / "bin/other"
        other.write_text("", encoding="utf-8")
        done = self.install("uninstall")
        assert done.returncode == 0, done.stdout
        assert files(self.prefix) == {"bin/other"}, files(self.prefix)
        assert not (self.prefix / "share/doc/bawn").exists() and not (self.prefix / "libexec/bawn").exists()
        assert (self.prefix / "share/man/man1").is_dir()


def main():
    count = failed = 0
    with tempfile.TemporaryDirectory(prefix="bawn-install-") as folder:
        tests = Tests(pathlib.Path(sys.argv[1]), pathlib.Path(folder))
        for name in [name for name in vars(Tests) if name.startswith("test_")]:
            count += 1
            try:
                getattr(tests, name)()
                print(f"ok {count} - {name[5:]}", flush=True)
            except AssertionError as problem:
                failed += 1
                print("".join(f"# {line}\n" for line in str(problem).splitlines()), end="")
                print(f"not ok {count} - {name[5:]}", flush=True)
    print(f"1..{count}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

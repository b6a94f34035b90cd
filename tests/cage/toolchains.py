#!/usr/bin/env python3
"""Tools of the operator's home, and a project at its own path.

    toolchains.py BAWN BREAKABLE [PART OF A NAME]        prints TAP

The managers are folders as their installers leave them, with small programs in them.
"""

import os
import sys

sys.dont_write_bytecode = True
from place import case, expect, main  # noqa: E402

SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Where each manager puts its program, and what the cage must have of it and must not.
MANAGERS = {
    "bun": (".bun/bin/bun", "/opt/toolchains/bun/bin/bun", ".bun/auth"),
    "cargo": (".cargo/bin/cargo", "/opt/toolchains/cargo/bin/cargo", ".cargo/credentials.toml"),
    "go": ("sdk/go1.22/bin/go", "/opt/toolchains/go/bin/go", "sdk/go1.22/netrc"),
    "nvm": (".nvm/versions/node/v20.1.0/bin/node", "/opt/toolchains/nvm/bin/node",
            ".nvm/versions/node/v20.1.0/etc/npmrc"),
    "pnpm": (".local/share/pnpm/pnpm", "/opt/toolchains/pnpm/pnpm", ".config/pnpm/rc"),
    "pyenv": (".pyenv/shims/python3", "~/.pyenv/shims/python3", ".pyenv/token"),
    "uv": (".local/bin/uv", "/opt/toolchains/uv/bin/uv", ".local/share/uv/credentials"),
}


def install(p, *names):
    """Returns variables with a PATH on which they are first."""
    folders = []
    for name in names or MANAGERS:
        program, _, secret = MANAGERS[name]
        p.write(program, "#!/bin/sh\necho \"$0 runs\"\n", 0o755)
        p.write(secret, "s3cret\n")
        folders.append(str(p.home / os.path.dirname(program)))
    return {"PATH": ":".join([*folders, os.environ["PATH"]])}


@case
def a_missing_command_of_the_home_is_named_with_its_option(p):
    env = install(p)
    for name, (program, _, _) in MANAGERS.items():
        word = os.path.basename(program)
        if os.path.exists(f"/usr/bin/{word}"):
            continue
        expect(p.run("run", "--", word, env=env), 127, f"cannot run '{word}': there is no such command",
               f"~/{program}; add --toolchain {name}")
    p.write("bin/mine", "#!/bin/sh\n", 0o755)
    env = {"PATH": f"{p.home}/bin:{os.environ['PATH']}"}
    expect(p.run("run", "--", "mine", env=env), 127, "show it with -v ~/bin/mine:/opt/bin/mine and run /opt/bin/mine")
    expect(p.run("run", "-v", "~/bin/mine:/opt/bin/mine", "--", "/opt/bin/mine", env=env), 0)
    done = p.run("run", "--", "nobody-has-this", env=env)
    assert done.returncode == 127 and "hint" not in done.stderr, done.stderr


@case
def each_is_shown_read_only_and_without_what_lies_beside_it(p):
    for name, (program, place, secret) in MANAGERS.items():
        env = install(p, name)
        place = place.replace("~", str(p.home))
        word = os.path.basename(program)
        script = f"{word}; (echo x >>{place}) 2>/dev/null && echo written; cat ~/{secret} {p.home}/{secret}; " \
            f"grep -rs s3cret /opt {p.home}; true"
        done = expect(p.run("run", "--toolchain", name, "--", "sh", "-c", script, env=env), 0)
        assert done.stdout == f"{place} runs\n", (name, done.stdout, done.stderr)
        (p.home / program).unlink()
    # The twin: the same search finds one that is shown.
    p.write("plain", "s3cret\n")
    assert expect(p.sh("grep -rs s3cret /opt", "-v", "~/plain:/opt/toolchains/plain"), 0).stdout


@case
def pnpm_is_found_in_the_folder_of_newer_versions(p):
    p.write(".local/share/pnpm/bin/pnpm", "#!/bin/sh\necho \"$0 runs\"\n", 0o755)
    env = {"PATH": f"{p.home}/.local/share/pnpm/bin:{os.environ['PATH']}"}
    done = expect(p.run("run", "--toolchain", "auto", "--", "pnpm", env=env), 0)
    assert done.stdout == "/opt/toolchains/pnpm/bin/pnpm runs\n", done.stdout


@case
def auto_shows_what_is_first_on_the_path(p):
    env = install(p, "cargo", "pyenv")
    install(p, "go", "uv", "bun")  # installed, and not on PATH
    done = expect(p.run("run", "--toolchain", "auto", "--", "sh", "-c", "cargo; python3; echo $PATH; ls /opt/toolchains",
                        env=env), 0)
    assert done.stdout == (f"/opt/toolchains/cargo/bin/cargo runs\n{p.home}/.pyenv/shims/python3 runs\n"
                           f"/opt/toolchains/cargo/bin:{p.home}/.pyenv/shims:{p.home}/.pyenv/bin:{SYSTEM}\n"
                           "cargo\n"), done.stdout
    # Behind the system's own it is not the operator's choice.
    env = {"PATH": f"/usr/bin:{env['PATH']}"}
    done = expect(p.run("run", "--toolchain", "auto", "--", "sh", "-c", "command -v python3", env=env), 0)
    assert done.stdout == "/usr/bin/python3\n", done.stdout


@case
def a_path_that_was_declared_stays(p):
    env = install(p, "cargo")
    done = expect(p.run("run", "--toolchain", "cargo", "-e", "PATH=/usr/bin:/bin", "--", "sh", "-c", "echo $PATH", env=env), 0)
    assert done.stdout == "/usr/bin:/bin\n", done.stdout


@case
def one_that_is_not_there_is_refused(p):
    expect(p.run("run", "--toolchain", "nvm", "--", "true"), 125, "cannot find nvm", "'node'")
    expect(p.run("run", "--toolchain", "carg", "--", "true"), 125, "'carg' is none of auto, bun, cargo")


@case
def a_project_neither_names_one_nor_is_one(p):
    env = install(p, "cargo")
    p.write("project/bawn.yaml", "version: 1\ntoolchains: [cargo]\n")
    expect(p.run("run", "--", "true", env=env), 125, "toolchains: 'cargo' is more than")
    expect(p.run("run", "--trust", "--", "cargo", env=env), 0)
    # CARGO_HOME of a project's .envrc, or the whole home, shows nothing new.
    for where in (str(p.home), "/etc", f"{p.home}/.cargo/../.ssh"):
        expect(p.run("run", "--trust", "--", "cargo", env={**env, "CARGO_HOME": where}), 0)


@case
def agents_get_them_by_their_profile(p):
    env = install(p, "cargo")
    p.write(".local/bin/claude", "#!/bin/sh\ncargo\n", 0o755)
    env["PATH"] = f"{p.home}/.local/bin:{env['PATH']}"
    done = expect(p.run("run", "--agent", "claude", "--", "x", env=env), 0)
    assert done.stdout == "/opt/toolchains/cargo/bin/cargo runs\n", done.stdout


@case
def a_session_keeps_them(p):
    env = install(p, "cargo")
    expect(p.run("session", "create", "--name", "t", "--toolchain", "cargo", env=env), 0)
    assert expect(p.run("session", "exec", "t", "--", "cargo"), 0).stdout == "/opt/toolchains/cargo/bin/cargo runs\n"
    # What a session shows is fixed: for what is missing the advice is another than that of a run.
    env = install(p, "bun")
    expect(p.run("session", "exec", "t", "--", "bun", env=env), 127, "create the session with --toolchain bun")
    p.write("bin/mine", "#!/bin/sh\n", 0o755)
    env = {"PATH": f"{p.home}/bin:{os.environ['PATH']}"}
    expect(p.run("session", "exec", "t", "--", "mine", env=env), 127, "create the session with -v ~/bin/mine:/opt/bin/mine")
    expect(p.run("session", "rm", "t"), 0)


# --- a project at its own path ---

@case
def a_project_is_at_its_own_path_and_the_rest_stays_hidden(p):
    p.write("other/secret", "s3cret\n")
    done = expect(p.sh(f"pwd; ls {p.home}; echo new >made; cat {p.home}/other/secret", "--own-path"), 1)
    assert done.stdout == f"{p.project}\nproject\n", done.stdout
    assert not (p.project / "made").exists()
    expect(p.run("apply"), 0, "1 applied")
    assert (p.project / "made").read_text() == "new\n"
    # The twin: without it the path is not there at all.
    assert expect(p.sh("pwd"), 0).stdout == "/work\n"
    expect(p.sh(f"cd {p.project}"), 2)


@case
def files_that_name_another_path_are_told(p):
    files = {".venv/bin/activate": "VIRTUAL_ENV='{}/.venv'\n", "build/CMakeCache.txt": "CMAKE_HOME_DIRECTORY:INTERNAL={}\n",
             "builddir/meson-info/meson-info.json": '{{"source": "{}"}}\n'}
    for file, text in files.items():
        path = p.write(f"project/{file}", text.format(p.project))
        expect(p.run("run", "--", "true"), 0, f"was made for {p.project}", "add --own-path")
        done = expect(p.run("run", "--own-path", "--", "true"), 0)
        assert "own-path" not in done.stderr, done.stderr
        # One that was made in the cage, or is of a neighbour with a longer name, is right as it is.
        for other in ("/work", f"{p.project}2"):
            path.write_text(text.format(other))
            assert "own-path" not in expect(p.run("run", "--", "true"), 0).stderr
        path.unlink()
    # An environment whose Python is of the home needs that too, or it would fall back to the system's in silence.
    p.write(".pyenv/versions/3.1/bin/python3", "#!/bin/sh\necho mine\n", 0o755)
    p.write(".pyenv/shims/python3", "#!/bin/sh\n", 0o755)
    p.write("project/.venv/bin/activate", f"VIRTUAL_ENV='{p.project}/.venv'\n")
    p.write("project/.venv/pyvenv.cfg", f"home = {p.home}/.pyenv/versions/3.1/bin\nversion = 3.1\n")
    os.symlink(p.home / ".pyenv/versions/3.1/bin/python3", p.project / ".venv/bin/python3")
    env = {"PATH": f"{p.home}/.pyenv/shims:{os.environ['PATH']}"}
    expect(p.run("run", "--", "true", env=env), 0, "add --own-path --toolchain pyenv")
    expect(p.run("run", "--own-path", "--", "true", env=env), 0, "has no Python of pyenv", "add --toolchain pyenv")
    done = expect(p.run("run", "--own-path", "--toolchain", "pyenv", "--", ".venv/bin/python3", env=env), 0)
    assert done.stdout == "mine\n" and "add" not in done.stderr, (done.stdout, done.stderr)
    (p.project / ".venv/bin/activate").unlink()
    os.symlink(p.write("outside", f"VIRTUAL_ENV='{p.project}/.venv'\n"), p.project / ".venv/bin/activate")
    assert "own-path" not in expect(p.run("run", "--", "true"), 0).stderr


if __name__ == "__main__":
    main()

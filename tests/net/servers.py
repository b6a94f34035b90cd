"""What the clients of clients.py look for in the internet: a repository, a package of npm's and one of pip's."""

import base64
import hashlib
import io
import json
import os
import pathlib
import subprocess
import tarfile
import zipfile

from world import WEB, WEB6

TEXT = "hello from afar"
BLOB = b"0123456789abcdef" * (1 << 19)  # 8 MB
HTTP2_PORT = 8444


def add_repository(folder):
    """Served as plain files, which git can read."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "HOME": "/nonexistent"}
    for kind in ("AUTHOR", "COMMITTER"):
        env.update({f"GIT_{kind}_NAME": "a", f"GIT_{kind}_EMAIL": "a@example.org"})

    def git(*words, text=""):
        return subprocess.run(["git", "-C", folder, *words], check=True, env=env, capture_output=True, input=text,
                              text=True).stdout.strip()
    git("init", "-q", "--bare", "-b", "main")
    blob = git("hash-object", "-w", "--stdin", text=TEXT + "\n")
    tree = git("mktree", text=f"100644 blob {blob}\thello\n")
    git("update-ref", "refs/heads/main", git("commit-tree", "-m", "first", tree))
    git("update-server-info")


def add_npm_package(folder, host):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in (("package.json", json.dumps({"name": "hello", "version": "1.0.0", "main": "index.js"})),
                           ("index.js", f"module.exports = '{TEXT}';\n")):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    (folder / "hello-1.0.0.tgz").write_bytes(packed.getvalue())
    digest = base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()
    version = {"name": "hello", "version": "1.0.0", "main": "index.js",
               "dist": {"tarball": f"https://{host}/hello-1.0.0.tgz", "integrity": f"sha512-{digest}"}}
    (folder / "hello").write_text(json.dumps(
        {"name": "hello", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}))


def add_wheel(folder):
    packed = io.BytesIO()
    about = "hello-1.0.dist-info"
    with zipfile.ZipFile(packed, "w") as wheel:
        wheel.writestr("hello.py", f"TEXT = '{TEXT}'\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", f"hello.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")
    name, digest = "hello-1.0-py3-none-any.whl", hashlib.sha256(packed.getvalue()).hexdigest()
    (folder / name).write_bytes(packed.getvalue())
    (folder / "simple/hello").mkdir(parents=True)
    (folder / "simple/hello/index.html").write_text(f'<a href="/{name}#sha256={digest}">{name}</a>\n')


def add_all(world):
    names = ("git", "registry", "pypi", "h2", "blob")
    world.zone({f"{name}.example.org": {"A": [WEB], "AAAA": [WEB6]} for name in names})
    add_repository(make(world.files("git.example.org") / "repo.git"))
    add_npm_package(world.files("registry.example.org"), "registry.example.org")
    add_wheel(world.files("pypi.example.org"))
    (world.files("blob.example.org") / "blob").write_bytes(BLOB)
    script = pathlib.Path(__file__).with_name("h2.js")
    said = world.spawn("node", script, *world.certificate("h2.example.org"), HTTP2_PORT)
    assert said == "ready\n", f"the HTTP/2 server said {said!r}"


def make(folder):
    folder.mkdir()
    return folder

"""Runs made by hand: the folder that a keeper leaves, with a layer as an overlay makes it."""

import os
import pathlib
import shutil
import stat

ID = "20260102-030405-{:08x}"
GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_CEILING_DIRECTORIES": "/",
       "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
       "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@example.org"}


class Run:
    """A run of the place's person in the place's project, with an empty layer."""

    def __init__(self, place, number=1, project=None):
        self.place, self.id = place, ID.format(number)
        self.project = pathlib.Path(project or place.project)
        for folder in (place.state / "bawn", place.state / "bawn/runs"):
            folder.mkdir(mode=0o700, exist_ok=True)
            os.chown(folder, place.uid, place.uid)
        self.folder = place.state / "bawn/runs" / self.id
        self.layer = self.folder / "layer/upper"
        for folder in (self.folder, self.layer.parent, self.layer, self.layer.parent / "work"):
            folder.mkdir(mode=0o700)
            os.chown(folder, place.uid, place.uid)
        # As in a state of before November 2026, where nobody has noted which runs have changes.
        shutil.rmtree(place.state / "bawn/pending", ignore_errors=True)
        link = self.folder / "project"
        link.symlink_to(self.project.resolve())
        os.chown(link, place.uid, place.uid, follow_symlinks=False)
        # After everything that was there before, and in the order of their numbers.
        os.utime(link, ns=(1 << 60, (1 << 62) + number), follow_symlinks=False)

    def own(self, path):
        os.chown(path, self.place.uid, self.place.uid, follow_symlinks=False)

    def parents(self, path):
        """The folders that lead to a path of the layer, as a copy of those below."""
        for part in reversed(list(pathlib.PurePath(os.fsdecode(path)).parents)[:-1]):
            if not (self.layer / part).is_dir():
                (self.layer / part).mkdir()
                if (self.project / part).is_dir():
                    shutil.copymode(self.project / part, self.layer / part)
                self.own(self.layer / part)
        return self.layer / os.fsdecode(path)

    def write(self, path, content, mode=0o644):
        at = self.parents(path)
        at.write_bytes(content if isinstance(content, bytes) else content.encode())
        at.chmod(mode)
        self.own(at)

    def link(self, path, target):
        at = self.parents(path)
        os.symlink(target, at)
        self.own(at)

    def folder_at(self, path, mode=0o755):
        at = self.parents(path)
        at.mkdir(exist_ok=True)
        at.chmod(mode)
        self.own(at)

    def delete(self, path):
        at = self.parents(path)
        os.mknod(at, stat.S_IFCHR | 0o000, os.makedev(0, 0))
        self.own(at)

    def become(self, wanted):
        """The layer that makes the folder `wanted` of the project."""
        have, want = entries(self.project), entries(wanted)
        for path in sorted(want):
            source = pathlib.Path(wanted) / path
            if have.get(path) == want[path]:
                continue
            if source.is_symlink():
                self.link(path, os.readlink(source))
            elif source.is_dir():
                self.folder_at(path, stat.S_IMODE(source.stat().st_mode))
            else:
                self.write(path, source.read_bytes(), stat.S_IMODE(source.stat().st_mode))
            # What a folder takes the place of does not show through.
            if source.is_dir() and not source.is_symlink() and path in have and have[path][0] != "d":
                os.setxattr(self.layer / path, "user.overlay.opaque", b"y")
        for path in sorted(have):
            parent = os.path.dirname(path)
            if path not in want and (not parent or want.get(parent, " ")[0] == "d"):
                self.delete(path)
        return self

    def is_kept(self):
        return self.layer.exists()


def entries(top):
    """{path: type, mode, content} of everything below a folder."""
    found = {}
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            if stat.S_ISLNK(st.st_mode):
                kind = ("l", 0, os.readlink(path))
            elif stat.S_ISDIR(st.st_mode):
                kind = ("d", stat.S_IMODE(st.st_mode), "")
            else:
                kind = ("f", stat.S_IMODE(st.st_mode), pathlib.Path(path).read_bytes())
            found[os.path.relpath(path, top)] = kind
    return found


def as_git_sees(top, without=(".git",)):
    """The same, as far as git and patch know of it: no empty folders, two modes."""
    return {path: (kind, mode & 0o100, content) for path, (kind, mode, content) in entries(top).items()
            if kind != "d" and path.split("/")[0] not in without}

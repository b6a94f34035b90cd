"""Users for all suites, with the groups that logins give: the own group is in the list, as with su, ssh and Slurm.

`login` enters any user id, known to /etc/passwd or not. An `Account` is a real one: useradd makes it, su enters it,
and it is gone afterwards.
"""

import os
import secrets
import subprocess
import time


def group_list(gid, groups=()):
    return [gid, *(group for group in groups if group != gid)]


def login(uid, *groups, gid=None):
    """The words before a command that run it as a user, if we are root and the user is another."""
    gid = uid if gid is None else gid
    if os.geteuid() != 0 or (uid == 0 and not groups):
        return []
    listed = ",".join(map(str, group_list(gid, groups)))
    return ["setpriv", "--reuid", str(uid), "--regid", str(gid), "--groups", listed]


def become(uid, *groups):
    """The same for this process, which is root's."""
    os.setgroups(group_list(uid, groups))
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def change(*words):
    """A change of the account files, which others may have locked for a moment."""
    for _ in range(20):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if "lock" not in done.stderr:
            break
        time.sleep(0.5)
    assert done.returncode == 0, (words, done.stderr)


def new_name():
    return "bawn-" + secrets.token_hex(6)


class Group:
    """A group of its own, for teams."""

    def __init__(self):
        self.name = new_name()
        change("groupadd", self.name)
        self.gid = int(read_entry("group", self.name)[2])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        change("groupdel", self.name)


class Account:
    """What useradd makes: a group of its own, those named, sub-ids unless there shall be none."""

    def __init__(self, home, *groups, has_subids=True):
        self.name, self.home = new_name(), home
        none = [] if has_subids else ["-K", "SUB_UID_COUNT=0", "-K", "SUB_GID_COUNT=0"]
        more = ["-G", ",".join(group.name for group in groups)] if groups else []
        change("useradd", "-M", "-d", str(home), "-s", "/bin/sh", *none, *more, self.name)
        entry = read_entry("passwd", self.name)
        self.uid, self.gid = int(entry[2]), int(entry[3])

    def words(self, *command):
        """A command as su starts it; the folder and most of the environment stay."""
        return ["su", "-s", "/bin/sh", "-c", 'exec "$@"', "--", self.name, "sh", *map(str, command)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        change("userdel", "--force", self.name)


def read_entry(database, name):
    return subprocess.run(["getent", database, name], capture_output=True, text=True,
                          check=True).stdout.strip().split(":")

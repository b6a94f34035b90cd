#!/usr/bin/env python3
"""Attacks on a cage, in pairs: each must fail in it, and work when what stops it is taken out.

    run.py BAWN BREAKABLE PROBE [WORD…]     prints TAP; with words, only rows that have one in id or name

BREAKABLE is bawn as a test build that leaves mechanisms out by name. The rows are in rows.py. Each runs in a
cage of root's and in one of an ordinary user's; whoever is not root tests only the second.

A case fails when its attack works in the cage, when it does not work with the protection taken out, and when
less would have been enough to make it work: so every name in a row is known to be a layer that holds alone.
The last cases ask that each mechanism was such a layer somewhere, and that nothing is left on the host.
"""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "limits"))
from groups import Group, NoGroups  # noqa: E402
from pair import (NO_CAGE, REFUSED, UNTRIED, WORKED, Broken, Each, Nowhere, Opened, Outside,  # noqa: E402
                  Result, Trap)
from place import BESIDE, Place, as_user  # noqa: E402
from rows import MECHANISMS, ROWS  # noqa: E402

USER = 12346  # an id that owns nothing here, and not that of other suites: some rows use up what a user has
TIMEOUT = 40
WORKERS = 4


class Suite:
    def __init__(self, bawn, breakable, probe):
        for path in (bawn, breakable, probe):
            os.stat(path)  # before anything is made
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="bawn-escape-"))
        self.files, self.programs = self.top / "files", self.top / "programs"
        for path, source in ((self.programs / "bawn", bawn), (self.programs / "breakable", breakable),
                             (self.files / "probe", probe)):
            path.parent.mkdir(exist_ok=True)
            shutil.copy(source, path)
            path.chmod(0o777)  # open to everybody, as the canaries are
        for path in (self.top, self.files, self.programs):
            path.chmod(0o755)
        self.lock = threading.Lock()
        self.groups = {}  # by user
        self.layers = set()  # mechanisms that alone stopped an attack
        self.count = {"tried": 0, "held": 0, "pairs": 0}
        self.not_shown = []

    def group_of(self, uid):
        """A place in the trees of cgroups that is this user's."""
        with self.lock:
            if uid not in self.groups:
                self.groups[uid] = Group(uid)
            return self.groups[uid]

    # --- one run ---

    def command(self, row, place, pair):
        """The words of a run, and the variables it needs besides."""
        inside = str(self.files / "probe") if isinstance(pair, Outside) else "/opt/escape/probe"
        values = {"probe": inside, "files": self.files, "programs": self.programs,
                  "host_probe": self.files / "probe"}
        attack = [inside, *place.fill(row.probe, **values)]
        before = place.fill(row.before, **values)
        if isinstance(pair, Outside):
            return [*before, *attack], {}
        options = row.options
        program, variables = "bawn", {}
        if isinstance(pair, Opened):
            options = pair.options
        elif isinstance(pair, Broken):
            options = row.options + pair.options
            program, variables = "breakable", {"BAWN_TEST_BREAK": ",".join((*pair.names, "look"))}
        options = place.fill((*BESIDE, *options), **values)
        return [*before, str(self.programs / program), "run", *options, "--", *attack], variables

    def attempt(self, row, uid, pair=None):
        """Runs the attack once, in a new place: what came of it, and a sentence."""
        place = Place(self.top, uid)
        try:
            if row.custom:
                return row.custom(self, place, pair)
            with row.prepare(place):
                if isinstance(pair, Trap):
                    pair.spring(place)
                    seen = row.check(place)
                    return Result(WORKED, seen) if seen else Result(REFUSED, "the trap does not spring")
                done = self.run(row, place, pair)
                if row.check and done.verdict != UNTRIED:
                    seen = row.check(place)
                    done = Result(WORKED, seen) if seen else done.but_not(WORKED)
                return done
        finally:
            place.remove()

    def run(self, row, place, pair):
        words, variables = self.command(row, place, pair)
        runs_as = pair.uid if isinstance(pair, Outside) and pair.uid is not None else place.uid
        groups = (row.group,) if row.group else ()
        place_in = self.group_of(runs_as).enter() if row.in_group else []
        variables = {**row.variables, **variables}
        environ = {"HOME": str(place.home), "PATH": os.environ["PATH"], "TOKEN": place.text,
                   "XDG_STATE_HOME": str(place.top / "state"),
                   **dict(zip(variables, place.fill(variables.values())))}
        try:
            with open(place.fill([row.stdin])[0], "rb") as stdin:
                done = subprocess.run([*place_in, *as_user(runs_as, *groups), *words], cwd=place.project, env=environ,
                                      stdin=stdin, capture_output=True, text=True, errors="replace",
                                      timeout=TIMEOUT, pass_fds=place.fds, check=False)
        except subprocess.TimeoutExpired:
            return Result(NO_CAGE, f"no end after {TIMEOUT} s")
        return self.read(done)

    @staticmethod
    def read(done):
        """What came of it is the probe's last sentence, and the status has to agree."""
        said = [line for line in done.stdout.splitlines() if line.startswith("probe: ")]
        if not said and done.returncode == 137 and "(limits.memory: " in done.stderr:
            return Result(REFUSED, "all of it was killed: " + done.stderr.strip())
        if not said:
            words = " ".join((done.stderr or done.stdout).split())[:400]
            return Result(NO_CAGE, f"status {done.returncode}: {words}")
        verdict, _, sentence = said[-1][len("probe: "):].partition(": ")
        if verdict != (WORKED, REFUSED, UNTRIED)[min(done.returncode, 2)]:
            return Result(NO_CAGE, f"status {done.returncode}, though the probe said '{said[-1]}'")
        return Result(verdict, sentence, done.stdout)

    # --- a pair ---

    def judge(self, row, uid):
        """The errors of a row, None if it cannot be tried here, and remarks."""
        errors, remarks = [], []
        done = self.attempt(row, uid)
        if done.verdict == UNTRIED:
            return None, [done.sentence]
        remarks.append(f"cage: {done}")
        if done.verdict == WORKED:
            errors.append(f"the attack got through: {done.sentence}")
        if done.verdict == NO_CAGE and not row.may_refuse:
            errors.append(f"there was no cage to attack: {done.sentence}")
        pair, weight = row.pair_of(uid), max(1, len(done.calls()))
        if isinstance(pair, Nowhere):
            remarks.append(f"pair: not shown: {pair.why}")
        elif isinstance(pair, Each):
            self.judge_each(row, uid, pair, done, (errors, remarks))
        else:
            self.judge_pair(row, uid, pair, (errors, remarks))
        with self.lock:
            self.count["tried"] += weight
            self.count["held"] += sum(not through for through in done.calls().values()) or \
                (done.verdict != WORKED)
            if isinstance(pair, Nowhere):
                self.not_shown.append((row, uid, pair.why))
        return errors, remarks

    def judge_pair(self, row, uid, pair, told):
        errors, remarks = told
        done = self.attempt(row, uid, pair)
        remarks.append(f"pair: {pair}: {done}")
        if done.verdict != WORKED:
            errors.append(f"the pair does not show it ({pair}): {done}")
            return
        with self.lock:
            self.count["pairs"] += 1
        for name in pair.names if isinstance(pair, Broken) else ():
            if len(pair.names) > 1:
                done = self.attempt(row, uid, pair.without(name))
                remarks.append(f"{name} alone: {done}")
                if done.verdict == WORKED:
                    errors.append(f"'{name}' alone does not stop it: {done.sentence}")
                if done.verdict != REFUSED:  # a cage that cannot be made holds, but is no proof
                    continue
            with self.lock:
                self.layers.add(name)

    def judge_each(self, row, uid, pair, caged, told):
        """A row of many attacks: each must get through in one of the pairs, or nowhere on this kernel."""
        errors, remarks = told
        through = set()
        for one in pair.pairs:
            done = self.attempt(row, uid, one)
            more = {name for name, is_through in done.calls().items() if is_through} - through
            through |= more
            remarks.append(f"pair: {one}: {done.verdict}: {len(more)} more: {' '.join(sorted(more))}")
            if more and isinstance(one, Broken) and len(one.names) == 1:
                with self.lock:
                    self.layers.add(one.names[0])
        missing = [name for name in caged.calls() if name not in through]
        if not through:
            errors.append(f"no pair shows any of it: {remarks[-1]}")
        with self.lock:
            self.count["pairs"] += len(through)
            if missing:
                self.not_shown.append((row, uid, f"{len(missing)} got through nowhere: {' '.join(missing)}"))

    # --- all of them ---

    def cases(self, words):
        uids = [0, USER] if os.geteuid() == 0 else [os.geteuid()]
        for row in ROWS:
            for uid in uids:
                if words and not any(word in f"{row.id} {row.name}" for word in words):
                    continue
                if row.who == "root" and uid or row.who == "user" and not uid:
                    continue
                yield row, uid

    def last_cases(self, left):
        """The (name, errors, remarks) of what is true of the suite as a whole."""
        for name in MECHANISMS:
            if os.geteuid() and name in ("ids", "drop:groups", "no-dev"):
                yield f"mechanism {name}", None, ["only root can take it out, or arm the trap"]
                continue
            errors = [] if name in self.layers else ["no row needed it to be taken out"]
            yield f"mechanism {name} is a layer that holds alone", errors, []
        yield "nothing is left on the host", leftovers(self.top) + [f"cgroup {path}" for path in left], []

    def main(self, words):
        cases = list(self.cases(words))
        print(f"1..{len(cases) + (0 if words else len(MECHANISMS) + 1)}")
        failed = number = 0
        try:
            with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
                results = pool.map(lambda case: self.try_case(*case), cases)
                for (row, uid), (errors, remarks) in zip(cases, results):
                    number += 1
                    name = f"{row.id} {row.name} as {'root' if uid == 0 else 'a user'}"
                    failed += report(number, name, errors, remarks)
        finally:
            shutil.rmtree(self.top, ignore_errors=True)
            left = [folder for group in self.groups.values() for folder in group.runs()]
            for group in self.groups.values():
                group.remove()
        if not words:
            for case in self.last_cases(left):
                number += 1
                failed += report(number, *case)
        print("# {tried} attacks tried, {held} held, {pairs} pairs shown".format(**self.count))
        print(f"# {len(self.not_shown)} pairs not shown here")
        for row, uid, why in self.not_shown:
            print(f"#   {row.id} {row.name} as {'root' if uid == 0 else 'a user'}: {why}")
        return 1 if failed else 0

    def try_case(self, row, uid):
        try:
            return self.judge(row, uid)
        except NoGroups as e:
            return None, [str(e)]
        except Exception as e:  # a failed case is told, and the rest still run
            return [f"{type(e).__name__}: {e}"], []


def report(number, name, errors, remarks):
    """Prints one case, and returns whether it failed; errors None means that it was skipped."""
    if errors is None:
        print(f"ok {number} - {name} # SKIP {remarks[0]}")
        return False
    print(f"{'not ' if errors else ''}ok {number} - {name}")
    for line in (*(f"ERROR {error}" for error in errors), *remarks):
        print("\n".join("# " + part for part in line.splitlines()))
    sys.stdout.flush()
    return bool(errors)


def leftovers(top):
    """What a run left behind that has our folder's name in it."""
    found = [f"file {top}"] if top.exists() else []
    name = os.fsencode(top.name)
    for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if name in process.read_bytes() and int(process.parent.name) != os.getpid():
                found.append(f"process {process.parent.name}")
        except OSError:
            continue
    if name in pathlib.Path("/proc/self/mountinfo").read_bytes():
        found.append("a mount")
    found += [f"file {path}" for path in pathlib.Path("/dev/shm").glob("bawn-escape-*")]
    return found


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    return Suite(*sys.argv[1:4]).main(sys.argv[4:])


if __name__ == "__main__":
    sys.exit(main())

"""asked.c, as an object: each method is a command, its result a number and, where it failed, a sentence."""

import subprocess


class Answer:
    def __init__(self, line):
        number, self.word, self.text = line.rstrip("\n").split(" ", 2)
        self.number = int(number)

    def failed(self, word, *parts):
        """With that error, and one sentence that has these parts."""
        assert self.number < 0 and self.word == word, f"{self.number} {self.word}, not {word}: {self.text}"
        for part in parts:
            assert part in self.text, f"{part!r} is not in {self.text!r}"
        assert self.text.startswith("cannot ") and not self.text.endswith((".", " ")), self.text
        return self

    def gave(self, number, word=None):
        assert self.number == number, f"{self.number} {self.word}, not {number}: {self.text}"
        assert word is None or self.word == word, f"{self.word}, not {word}"
        return self


class Tool:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __getattr__(self, name):
        return lambda *args: self.ask(name, *args)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"it ended with {self.process.wait()} at {words}"
        return Answer(line)

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

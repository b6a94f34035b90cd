"""What the suites of bawn mcp share: a server, and a client that is ours and knows no more than the protocol."""

import json
import pathlib
import select
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "session"))
import sessions  # noqa: E402

cage = sessions.cage
expect = cage.expect
KEY = "io.modelcontextprotocol/"
MODERN, LEGACY = "2026-07-28", ("2025-11-25", "2025-06-18")
META = {KEY + "protocolVersion": MODERN, KEY + "clientCapabilities": {}}
TOOLS = ["bash", "read", "write", "edit", "glob", "grep"]


class Server:
    """bawn mcp, as one person runs it. As a context it has ended well at its end."""

    def __init__(self, place, *options, era=MODERN, **more):
        self.place, self.era = place, era
        self.process = place.start("mcp", *options, **more)
        self.bytes, self.last, self.answers = bytearray(), 0, {}
        if era != MODERN:
            begun = self.ask("initialize", {"protocolVersion": era, "capabilities": {}, "clientInfo": {"name": "t"}})
            assert begun["protocolVersion"] == era, begun
            self.tell("notifications/initialized")

    # --- lines ---

    def write(self, text):
        self.process.stdin.write(text if isinstance(text, bytes) else text.encode())
        self.process.stdin.flush()

    def line(self, seconds=20):
        """The next line of the server's, whatever it is."""
        end = time.monotonic() + seconds * cage.SLOW
        while b"\n" not in self.bytes:
            ready = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]
            assert ready, f"nothing within {seconds} s"
            new = self.process.stdout.read1(1 << 20)
            assert new, f"the server ended: {self.process.wait()} {self.process.stderr.read().decode()}"
            self.bytes += new
        size = self.bytes.index(b"\n") + 1
        line = bytes(self.bytes[:size])
        del self.bytes[:size]
        return json.loads(line)

    def is_silent(self, seconds=0.1):
        return not self.bytes and not select.select([self.process.stdout], [], [], seconds)[0]

    # --- requests ---

    def send(self, method, params=None, number=None):
        """Asks without waiting: the id."""
        if number is None:
            self.last += 1
            number = self.last
        params = dict(params or {})
        if self.era == MODERN:
            params["_meta"] = {**META, **params.get("_meta", {})}
        self.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        return number

    def tell(self, method, **params):
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}) + "\n")

    def answer(self, number, seconds=20):
        """To a request; answers to others may come before it."""
        while number not in self.answers:
            said = self.line(seconds)
            assert said["jsonrpc"] == "2.0" and said["id"] not in self.answers, said
            self.answers[said["id"]] = said
        return self.answers.pop(number)

    def ask(self, method, params=None):
        said = self.answer(self.send(method, params))
        assert "error" not in said, said
        assert ("resultType" in said["result"]) == (self.era == MODERN), said
        return said["result"]

    def error(self, method, params=None):
        return self.answer(self.send(method, params))["error"]["code"]

    # --- tools ---

    def begin(self, tool, **arguments):
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool, **arguments):
        return Result(self.ask("tools/call", {"name": tool, "arguments": arguments}))

    def sh(self, command, **more):
        return self.call("bash", command=command, **more)

    # --- the end ---

    def end(self, status=0):
        """Input ends: what the server says on standard error."""
        self.process.stdin.close()
        try:
            got = self.process.wait(timeout=10 * cage.SLOW)
        except cage.subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the server did not end") from None
        said = self.process.stderr.read().decode()
        rest = bytes(self.bytes) + self.process.stdout.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert got == status, f"exit {got}: {said}"
        assert not rest, f"said at its end: {rest[:200]}"
        return said

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        elif self.process.poll() is None:
            self.end()


class Result:
    """Of a call."""

    def __init__(self, said):
        assert len(said["content"]) == 1 and said["content"][0]["type"] == "text", said
        self.text = said["content"][0]["text"]
        self.is_error = said["isError"]
        self.meta = said["_meta"]
        self.run, self.status = self.meta.get("bawn/run"), self.meta.get("bawn/status")

    def __repr__(self):
        return f"Result({self.text!r}, {self.meta})"

    def good(self):
        assert not self.is_error and self.status == 0, self
        return self.text

    def bad(self, *parts):
        assert self.is_error, self
        for part in parts:
            assert part in self.text, f"{part!r} is not in {self.text!r}"
        return self.text

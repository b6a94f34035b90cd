"""A way from HTTP to bawn mcp, for the protocol's own suite, which speaks nothing else. For tests only.

It passes bodies on and answers back, one after the other, and translates codes of errors into HTTP's, as the
protocol says. Calls of two tools that the suite wants of a server become calls of bash, so that it sees results of
ours. Who begins with `initialize` gets a server of its own; everybody else shares one.
"""

import http.server
import json
import threading
import uuid

STATUS = {-32601: 404, -32602: 400, -32020: 400, -32021: 400, -32022: 400, -32700: 400, -32600: 400}

# Tools of the suite's, as commands that do what it describes.
TOOLS = {
    "test_simple_text": "printf %s 'This is a simple text response for testing.'",
    "test_error_handling": "echo 'This tool intentionally returns an error for testing' >&2; exit 1",
}


def translate(asked):
    params = asked.get("params") if isinstance(asked, dict) else None
    if isinstance(params, dict) and asked.get("method") == "tools/call" and params.get("name") in TOOLS:
        params.update(name="bash", arguments={"command": TOOLS[params["name"]]})
    return asked


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=None, headers=()):
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in (("Content-Length", len(text)), ("Content-Type", "application/json"), *headers):
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.reply(405)

    def do_DELETE(self):
        self.reply(405)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        bridge = self.server.bridge
        try:
            asked = translate(json.loads(body))
        except ValueError:
            asked = None
        is_map = isinstance(asked, dict)
        is_modern = is_map and "io.modelcontextprotocol/protocolVersion" in str(asked.get("params"))
        name, headers = self.headers.get("Mcp-Session-Id"), ()
        if is_map and asked.get("method") == "initialize" and not is_modern:
            name = uuid.uuid4().hex
            headers = (("Mcp-Session-Id", name),)
        elif name is not None and name not in bridge.servers:
            return self.reply(404)
        said = bridge.pass_on(name, body, asked)
        if said is None:
            return self.reply(202)
        code = said.get("error", {}).get("code")
        # The era of sessions has no codes for errors of a method.
        return self.reply(STATUS.get(code, 200) if name is None else 200, said, headers)


class Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that hangs up is none."""


class Bridge:
    """As a context: a web server, at self.url, for servers that `start` makes."""

    def __init__(self, start):
        self.start, self.servers, self.lock = start, {}, threading.Lock()
        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.http.bridge = self
        self.url = f"http://localhost:{self.http.server_port}/mcp"

    def pass_on(self, name, body, asked):
        """The answer to a body; None: it is one that has none."""
        with self.lock:
            if name not in self.servers:
                self.servers[name] = self.start()
            server = self.servers[name]
            # A text of JSON may have newlines between its parts, a line has none.
            server.write(json.dumps(asked) if asked is not None else body.replace(b"\n", b" "))
            server.write(b"\n")
            is_heard_only = isinstance(asked, dict) and ("id" not in asked or "method" not in asked)
            return None if is_heard_only and "jsonrpc" in asked else server.line()

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()
        for server in self.servers.values():
            server.end()

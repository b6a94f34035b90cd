"""Chains of events made by hand, as docs/format-events.md has them."""

import hashlib
import json

ZERO = "0" * 64


def line(event, seq=0, prev=ZERO, ensure_ascii=True):
    """An event as a line of a chain, without its newline."""
    text = json.dumps({"seq": seq, **event, "prev": prev}, separators=(",", ":"), ensure_ascii=ensure_ascii)
    return text.encode("utf-8", "surrogateescape")


def event(type, second=0, run=None, session=None, /, **members):
    """An event, that many seconds into a day."""
    time = f"2026-01-02T{3 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000000Z"
    return {"time": time, "type": type, "run": run, "session": session, **members}


def chain(events, seq=0, prev=ZERO, ensure_ascii=True):
    """The bytes of a file; and what the next one begins with."""
    out = bytearray()
    for one in events:
        text = line(one, seq, prev, ensure_ascii)
        out += text + b"\n"
        prev = hashlib.sha256(text).hexdigest()
        seq += 1
    return bytes(out), seq, prev

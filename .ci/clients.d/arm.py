"""What arms in Python share: the order they get, events, and when to leave."""

import base64
import json
import os
import sys
import threading

SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_MS = 500
# Longest wait for anything that the broker is to answer.
PATIENCE_S = 30


def unpack(text):
    return None if text is None else base64.b64decode(text)


def pack(data):
    return None if data is None else base64.b64encode(bytes(data)).decode()


SAYING = threading.Lock()


def say(**what):
    # Threads that speak at once would get into each other's lines.
    with SAYING:
        print(json.dumps(what), flush=True)


def say_event(partition, offset, timestamp, key, value, headers):
    headers = [[name, pack(data)] for name, data in headers or ()]
    say(p=partition, o=offset, t=timestamp, k=pack(key), v=pack(value), h=headers)


def events(path):
    with open(path) as lines:
        for line in lines:
            one = json.loads(line)
            headers = [(name, unpack(data)) for name, data in one["h"]]
            yield one["p"], one["t"], unpack(one["k"]), unpack(one["v"]), headers


def order():
    return json.loads(sys.argv[1])


def end_of_input():
    """An event that is set when standard input has ended."""
    ended = threading.Event()

    def wait():
        # Not through sys.stdin, whose lock would be missed when the interpreter ends.
        while os.read(0, 4096):
            pass
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    return ended


def steps(asked, table):
    """Runs the steps of `admin`: `table` has a function of the step for each name, which returns what is printed."""
    for step in asked["steps"]:
        try:
            say(**table[step["do"]](step))
        except Exception as fault:  # whatever a client throws
            say(error=f"{type(fault).__name__}: {fault}")

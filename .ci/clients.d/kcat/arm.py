"""kcat, which is a command: each verb runs it, and its output is read by lengths."""

import itertools
import re
import signal
import subprocess
import sys
import threading

sys.path.insert(0, __file__.rsplit("/", 2)[0])
from arm import HEARTBEAT_MS, PATIENCE_S, SESSION_TIMEOUT_MS, end_of_input, events, order, say, say_event, steps

FORMAT = r"%p %o %T %K %S\n%k%s%h\x1e\n"
# No key and no value has these.
KEY_END, EVENT_END = b"\x1e<key>\x1e", b"\x1e<event>\x1e"

asked = order()
BASE = ["kcat", "-b", asked["bootstrap"], "-X", "socket.timeout.ms=10000"]


def run(*arguments, data=None):
    done = subprocess.run([*BASE, *arguments], input=data, capture_output=True, timeout=PATIENCE_S)
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace").strip())
    return done.stdout


def read(stream):
    """What kcat prints in FORMAT; headers are NAME=VALUE with commas between."""
    while head := stream.readline():
        partition, offset, timestamp, key, value = map(int, head.split())
        key = None if key < 0 else stream.read(key)
        value = None if value < 0 else stream.read(value)
        rest = stream.readline()
        while not rest.endswith(b"\x1e\n"):
            rest += stream.readline()
        pairs = [pair.split(b"=", 1) for pair in rest[:-2].split(b",") if pair]
        headers = [(name.decode(), None if data == b"NULL" else data) for name, data in pairs]
        yield partition, offset, timestamp, key, value, headers


def header(name, value):
    return name.encode() if value is None else name.encode() + b"=" + value


def produce_run(topic, partition, headers, rows, *more):
    """Events of one partition with the same headers. With -Z, what is empty has no value at all."""
    for nulls, some in itertools.groupby(rows, key=lambda row: None in row):
        data = b"".join((key or b"") + KEY_END + (value or b"") + EVENT_END for key, value in some)
        flags = ["-Z"] if nulls else []
        named = [part for name, value in headers for part in ("-H", header(name, value))]
        ends = ["-K", KEY_END.decode(), "-D", EVENT_END.decode()]
        run("-P", "-t", topic, "-p", str(partition), *flags, *named, *ends, *more, data=data)


def produce():
    more = ["-z", asked["codec"]]
    if asked["idempotent"]:
        more += ["-X", "enable.idempotence=true"]
    # One run for events of one partition; the order between partitions is nobody's.
    sent = sorted(events(asked["file"]), key=lambda one: one[0])
    for (partition, headers), rows in itertools.groupby(sent, key=lambda one: (one[0], one[4])):
        produce_run(asked["topic"], partition, headers, [(key, value) for _, _, key, value, _ in rows], *more)
    say(produced=len(sent))


def consume():
    flags = ["-C", "-q", "-t", asked["topic"], "-o", "beginning", "-c", str(asked["count"]), "-f", FORMAT]
    process = subprocess.Popen([*BASE, *flags], stdout=subprocess.PIPE)
    for one in read(process.stdout):
        say_event(*one)
    sys.exit(process.wait())


def offsets():
    def at(when):
        queries = [part for partition in range(asked["partitions"]) for part in ("-t", f"{asked['topic']}:{partition}:{when}")]
        found = re.findall(r"\[(\d+)\] offset (-?\d+)", run("-Q", *queries).decode())
        return {partition: int(offset) for partition, offset in found}

    say(earliest=at(-2), latest=at(-1), at=[at(when) for when in asked["timestamps"]])


def member_command(*more):
    group = asked["group"]
    settings = [
        f"session.timeout.ms={SESSION_TIMEOUT_MS}", f"heartbeat.interval.ms={HEARTBEAT_MS}",
        "auto.offset.reset=earliest", "auto.commit.interval.ms=200",
    ]
    flags = [part for setting in settings for part in ("-X", setting)]
    return [*BASE, *flags, *more, "-u", "-f", FORMAT, "-G", group, asked["topic"]]


def watch(process):
    """Says each change of the assignment, of which kcat complains as "% Group … rebalanced …: assigned: TOPIC [0]"."""
    for line in process.stderr:
        found = re.search(rb"rebalanced .*: (assigned|revoked)", line)
        if found:
            parts = [int(part) for part in re.findall(rb"\[(\d+)\]", line)]
            say(assigned=parts if found.group(1) == b"assigned" else [])
        else:
            sys.stderr.buffer.write(line)
            sys.stderr.flush()


def member():
    more = ["-c", str(asked["count"])] if "count" in asked else []
    process = subprocess.Popen(member_command(*more), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    watcher = threading.Thread(target=watch, args=[process], daemon=True)
    watcher.start()
    ended = end_of_input()
    threading.Thread(target=lambda: (ended.wait(), process.send_signal(signal.SIGTERM)), daemon=True).start()
    for one in read(process.stdout):
        say_event(*one)
    code = process.wait()
    watcher.join()
    if code:
        sys.exit(code)
    say(left=True)


def copy():
    process = subprocess.Popen(member_command("-q", "-c", str(asked["count"])), stdout=subprocess.PIPE)
    read_events = sorted(read(process.stdout), key=lambda one: one[:2])
    if process.wait():
        sys.exit(1)
    for partition, rows in itertools.groupby(read_events, key=lambda one: one[0]):
        produce_run(asked["to"], partition, [], [(key, value) for _, _, _, key, value, _ in rows])
    say(copied=len(read_events))


def cluster(_):
    text = run("-L", "-t", "no-such-topic", "-X", "allow.auto.create.topics=false").decode()
    brokers = re.findall(r"broker \d+ at ([^:]+):(\d+)", text)
    return {"brokers": [[host, int(port)] for host, port in brokers]}


def topics(_):
    return {"topics": re.findall(r'topic "([^"]+)" with', run("-L").decode())}


def describe(step):
    text = run("-L", "-t", step["topic"]).decode()
    return {"partitions": int(re.search(r"with (\d+) partitions", text).group(1))}


def version():
    text = subprocess.run(["kcat", "-V"], capture_output=True, timeout=PATIENCE_S).stdout.decode()
    kcat, library = re.search(r"Version ([\d.]+) .*librdkafka ([\d.]+)", text).groups()
    say(version=f"{kcat} (librdkafka {library})")


VERBS = {
    "version": version, "produce": produce, "consume": consume, "offsets": offsets, "member": member, "copy": copy,
    "admin": lambda: steps(asked, {"cluster": cluster, "topics": topics, "describe": describe}),
}
VERBS[asked["verb"]]()

"""What every client is put through, and what must hold. A scenario raises `Fault`, or returns."""

import gzip
import itertools
import json
import pathlib
import re
import struct
import threading

import events as ev
from processes import Fault, wait_until

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLIGHTS = ROOT / "perf" / "data" / "flights.ndjson.gz"
FLIGHTS_COUNT = 6_000
PARTITIONS = 4
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
EVENTS = 1_200


def must(condition, what):
    if not condition:
        raise Fault(what)


class Run:
    """One client against one broker."""

    def __init__(self, client, arm, kcat, broker, folder):
        self.client, self.arm, self.kcat, self.broker, self.folder = client, arm, kcat, broker, folder
        self.lacks = client.lacks
        self.files = itertools.count()
        # Who can't choose the partition of an event gets topics that have one.
        self.partitions = 1 if "partition" in self.lacks else PARTITIONS

    def create(self, topic, *configs, partitions=None):
        self.broker.create(topic, partitions or self.partitions, *configs)
        return topic

    def produce(self, topic, events, codec="none", idempotent=False):
        file = ev.write(self.folder / f"events-{next(self.files)}", events)
        said = self.arm.ask("produce", topic=topic, file=str(file), codec=codec, idempotent=idempotent)
        must(said == [{"produced": len(events)}], f"produce says {said}")

    def consume(self, topic, count, arm=None):
        return (arm or self.arm).ask("consume", topic=topic, partitions=self.partitions, count=count)

    def hard(self, name, count=EVENTS):
        return ev.hard_events(f"{self.client.name} {name}", count, self.partitions, self.lacks)

    def same(self, sent, read, what, **but):
        fields = {"timestamps": "timestamps" not in self.lacks, "headers": "headers" not in self.lacks, **but}
        differs = ev.difference(sent, read, **fields)
        must(differs is None, f"{what}: {differs}")

    def nothing_more(self, topic, sent):
        """Partitions end behind what was sent: what is appended twice stands behind everything that is read."""
        counts = {str(partition): len(rows) for partition, rows in ev.by_partition(sent).items()}
        (said,) = self.kcat.ask("offsets", topic=topic, partitions=self.partitions, timestamps=[])
        must(said["latest"] == counts, f"{topic}: {counts} were sent, the partitions end at {said['latest']}")

    def steps(self, *steps):
        return self.arm.ask("admin", steps=list(steps))


def attributes_of(folder):
    """The attributes of each batch in the segment files of a partition: Kafka's record batches, one after the other."""
    found = []
    for file in sorted(folder.glob("*.log")):
        data, at = file.read_bytes(), 0
        while at + 61 <= len(data):
            (length,) = struct.unpack_from(">i", data, at + 8)
            if length <= 0:
                break
            found.append((struct.unpack_from(">h", data, at + 21)[0], struct.unpack_from(">q", data, at + 43)[0]))
            at += 12 + length
    return found


def files_of(run, topic):
    """The folder of each partition of a topic."""
    topic_id = json.loads(run.broker.tackboard("topic", "describe", topic, "--json"))["topic_id"]
    folders = sorted(run.broker.data.glob(f"p/{topic_id}-*"))
    must(folders, f"there are no files of {topic}")
    return folders


def batches_of(run, topic):
    """(codec, whether idempotent) of each batch of a topic."""
    folders = files_of(run, topic)
    return [(CODECS[attributes & 7], producer >= 0) for folder in folders for attributes, producer in attributes_of(folder)]


def bytes_(run):
    sent = run.hard("bytes")
    topic = run.create("bytes")
    run.produce(topic, sent)
    run.same(sent, run.consume(topic, len(sent)), "read back")
    run.same(sent, run.consume(topic, len(sent), arm=run.kcat), "read by kcat")
    run.nothing_more(topic, sent)


def codecs(run):
    for codec in CODECS:
        if f"codec {codec}" in run.lacks:
            continue
        sent = run.hard(codec, 300)
        topic = run.create(f"codec-{codec}")
        run.produce(topic, sent, codec=codec)
        # A client may leave a batch as it is that compression would not make smaller.
        used = {codec for codec, _ in batches_of(run, topic)}
        must(codec in used and used <= {codec, "none"}, f"asked for {codec}, the log has {sorted(used)}")
        run.same(sent, run.consume(topic, len(sent)), f"{codec}, read back")
        run.same(sent, run.consume(topic, len(sent), arm=run.kcat), f"{codec}, read by kcat")
        run.nothing_more(topic, sent)


def idempotence(run):
    sent = run.hard("idempotence")
    topic = run.create("idempotence")
    run.produce(topic, sent, idempotent=True)
    batches = batches_of(run, topic)
    must(batches and all(sure for _, sure in batches), "there are batches without a producer id, or none at all")
    run.same(sent, run.consume(topic, len(sent)), "read back")
    run.nothing_more(topic, sent)


def offsets(run):
    each, partitions = 200, run.partitions
    topic = run.create("offsets")
    sent = ev.plain_events("offsets", 0, each * partitions, partitions)
    run.produce(topic, sent)
    # A client that cannot set timestamps is asked for those that its events got.
    log = ev.by_partition(run.consume(topic, len(sent), arm=run.kcat))
    middle = log[0][each // 2]["t"]
    asked = [0, middle, middle + 86_400_000]
    (said,) = run.arm.ask("offsets", topic=topic, partitions=partitions, timestamps=asked)
    all_at = lambda offset: {str(partition): offset for partition in range(partitions)}
    must(said["earliest"] == all_at(0), f"earliest: {said['earliest']}")
    must(said["latest"] == all_at(each), f"latest: {said['latest']}")
    for timestamp, found in zip(asked, said["at"], strict=True):
        for partition, rows in log.items():
            none = each if "no offset for a timestamp" in run.lacks else -1
            expected = next((one["o"] for one in rows if one["t"] >= timestamp), none)
            got = found.get(str(partition))
            must(got == expected, f"at {timestamp}: partition {partition} gives {got}, not {expected}")


def admin(run):
    lacks = lambda step: f"admin {step}" in run.lacks

    def do(step, **more):
        """What the client says of one step, or None where it has no such call."""
        if lacks(step):
            return None
        (said,) = run.steps({"do": step, **more})
        must("error" not in said, f"{step}: {said.get('error')}")
        return said

    topic, config = "admin", {"retention.ms": "3600000"}
    said = do("cluster")
    if said:
        host, port = run.broker.kafka.split(":")
        must(said["brokers"] == [[host, int(port)]], f"cluster: brokers are {said['brokers']}")
        must("cluster id" in run.lacks or said["cluster"], "cluster: it has no id")
    if do("create", topic=topic, partitions=2, configs=config) is None:
        run.create(topic, "retention.ms=1 h", partitions=2)
    said = do("topics")
    must(said is None or topic in said["topics"], f"topics: {said}")
    said = do("describe", topic=topic)
    must(said is None or said["partitions"] == 2, f"describe: {said}")
    said = do("configs", topic=topic)
    must(said is None or said["configs"].get("retention.ms") == "3600000", f"configs: {said}")
    must(said is None or said["configs"].get("cleanup.policy") == "delete", f"configs without defaults: {said}")
    if do("alter", topic=topic, configs={"retention.ms": "7200000"}) is not None:
        said = do("configs", topic=topic)
        must(said["configs"].get("retention.ms") == "7200000", f"configs, altered: {said}")
    if do("partitions", topic=topic, count=4) is not None:
        must(do("describe", topic=topic)["partitions"] == 4, "describe, after more partitions")
    short = run.create("short")
    run.produce(short, ev.plain_events("admin", 0, 40, run.partitions))
    if do("delete_records", topic=short, partition=0, before=5) is not None:
        (said,) = run.kcat.ask("offsets", topic=short, partitions=run.partitions, timestamps=[])
        must(said["earliest"]["0"] == 5, f"first offset after records were deleted: {said}")
    if do("delete", topic=topic) is not None:
        must(topic not in run.broker.tackboard("topic", "list"), "the deleted topic is still there")


class Ingest:
    """Produces events of its own numbers, round by round, until told to stop."""

    ROUND = 200

    def __init__(self, run, topic, partitions):
        self.run, self.topic, self.partitions = run, topic, partitions
        self.sent, self.fault, self.stopping = [], None, threading.Event()
        self.thread = threading.Thread(target=self._produce, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def _produce(self):
        try:
            while not self.stopping.is_set():
                events = ev.plain_events("load", len(self.sent), self.ROUND, self.partitions)
                self.run.produce(self.topic, events)
                self.sent += events
                self.stopping.wait(0.2)
        except Exception as fault:  # told below, in the scenario's thread
            self.fault = fault

    def stop(self):
        self.stopping.set()
        self.thread.join()
        if self.fault:
            raise self.fault

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()


def wait_for_shares(members, partitions):
    what = f"each with partitions of its own among {len(members)} members"
    try:
        wait_until(what, lambda: shared(members, partitions))
    except Fault as fault:
        raise Fault(f"{fault}; they have {[member.assigned for member in members]}") from None


def shared(members, partitions):
    """Whether the members have all partitions, each one's own, and nobody none."""
    parts = [member.assigned for member in members]
    return all(parts) and sorted(itertools.chain(*parts)) == list(range(partitions))


def group(run):
    members_come_and_go(run)
    resume_from_the_commit(run)


def members_come_and_go(run):
    name, partitions = "group-of-three", 6
    topic = run.create("group", partitions=partitions)
    with Ingest(run, topic, partitions) as ingest:
        first, second = (run.arm.member(topic, name) for _ in range(2))
        wait_for_shares([first, second], partitions)
        third = run.arm.member(topic, name)
        wait_for_shares([first, second, third], partitions)
        there = len(third.seen)
        wait_until("event for the third member", lambda: len(third.seen) > there)
        first.leave()
        wait_for_shares([second, third], partitions)
        ingest.stop()
    # Who can't choose the partition of an event doesn't know it.
    name_of = lambda one: one["v"] if "partition" in run.lacks else (one["p"], one["v"])
    sent = {name_of(one) for one in ingest.sent}
    members = [first, second, third]
    seen = lambda: {name_of(one) for member in members for one in member.seen}
    wait_until("reader of every event", lambda: len(seen()) >= len(sent))
    must(seen() == sent, "members saw events that were not sent")
    if "admin group" not in run.lacks:
        (said,) = run.steps({"do": "group", "group": name})
        must(said == {"state": "Stable", "members": 2}, f"the group is described as {said}")
    second.leave()
    third.leave()
    if "admin committed" not in run.lacks:
        (said,) = run.steps({"do": "committed", "group": name, "topic": topic})
        log = ev.by_partition(run.kcat.ask("consume", topic=topic, partitions=partitions, count=len(ingest.sent)))
        ends = {str(p): rows[-1]["o"] + 1 for p, rows in log.items()}
        told = {p: offset for p, offset in said.get("committed", {}).items() if offset >= 0}
        must(told == ends, f"committed is {said}, not {ends}")


def resume_from_the_commit(run):
    topic, name = run.create("resume"), "resume"
    sent = ev.plain_events("resume", 0, 800, run.partitions)
    run.produce(topic, sent)
    read = []
    for count in [300, 500]:
        said = run.arm.ask("member", topic=topic, group=name, count=count)
        must(said[-1] == {"left": True}, f"a member's last word is {said[-1:]}")
        got = [one for one in said if "v" in one]
        must(len(got) == count, f"a member read {len(got)} events, not {count}")
        read += got
        if "admin committed" not in run.lacks:
            (said,) = run.steps({"do": "committed", "group": name, "topic": topic})
            ends = {str(p): rows[-1]["o"] + 1 for p, rows in ev.by_partition(read).items()}
            told = {p: offset for p, offset in said.get("committed", {}).items() if offset >= 0}
            must(told == ends, f"committed is {said}, not {ends}")
    run.same(sent, read, "two members, one after the other")
    if "admin groups" not in run.lacks:
        (said,) = run.steps({"do": "groups"})
        must(name in said.get("groups", []), f"groups: {said}")
    if "admin delete_group" not in run.lacks:
        (said,) = run.steps({"do": "delete_group", "group": name})
        must("error" not in said, f"delete_group: {said}")
        (said,) = run.steps({"do": "groups"})
        must(name not in said.get("groups", [name]), f"groups, after one was deleted: {said}")


def flights():
    """The first flights of the known file, keyed by aeroplane, which decides the partition."""
    with gzip.open(FLIGHTS) as lines:
        for index, line in enumerate(itertools.islice(lines, FLIGHTS_COUNT)):
            line = line.rstrip(b"\n")
            key = (json.loads(line)["tailnum"] or "").encode() or None
            yield ev.event(sum(key or b"") % PARTITIONS, 1_700_000_000_000 + index, key, line)


def copy(run):
    """One group replays a topic into a second one while the first is still being written."""
    source, target = run.create("flights"), run.create("flights-copy")
    sent = list(flights())
    half = len(sent) // 2
    run.produce(source, sent[:half])
    fault = []

    def rest():
        try:
            for at in range(half, len(sent), 1000):
                run.produce(source, sent[at : at + 1000])
        except Exception as error:  # told below
            fault.append(error)

    ingest = threading.Thread(target=rest, daemon=True)
    ingest.start()
    try:
        said = run.arm.ask("copy", topic=source, to=target, group="replay", count=len(sent))
    finally:
        ingest.join()
    if fault:
        raise fault[0]
    must(said[-1] == {"copied": len(sent)}, f"copy says {said[-1:]}")
    one, other = (run.consume(topic, len(sent), arm=run.kcat) for topic in (source, target))
    run.same(sent, one, "what was produced")
    run.same(one, other, "what was copied")
    run.nothing_more(source, sent)
    run.nothing_more(target, sent)


def tools(run):
    """What Kafka's tools do that no other client does; kafka-dump-log reads our segment files by itself."""
    def tool(name, *arguments):
        (said,) = run.arm.ask("tool", tool=name, arguments=arguments)
        return said["output"]

    count = 30_000
    topic = run.create("perf", "segment.bytes=1 MiB", partitions=1)
    for codec in ["none", "lz4"]:
        out = tool(
            "kafka-producer-perf-test", "--topic", topic, "--num-records", count // 2, "--record-size", 150, "--throughput", -1,
            "--bootstrap-server", run.broker.kafka, "--command-property", f"compression.type={codec}",
        )
        must(f"{count // 2} records sent" in out, f"kafka-producer-perf-test says {out}")
    folder = files_of(run, topic)[0]
    *sealed, active = sorted(folder.glob("*.log"))
    must(len(sealed) > 1, "there are no two sealed segments")
    out = tool("kafka-dump-log", "--deep-iteration", "--files", ",".join(map(str, sealed)))
    batches = [line for line in out.splitlines() if line.startswith("baseOffset:")]
    records = len(re.findall(r"^\| offset:", out, re.M))
    must(batches and all("isvalid: true" in line for line in batches), "kafka-dump-log finds batches that are not valid")
    must(records == int(active.stem), f"kafka-dump-log finds {records} records below {int(active.stem)}")
    must("compresscodec: none" in out and "compresscodec: lz4" in out, "kafka-dump-log does not find both codecs")
    topic, acknowledged = run.create("verifiable"), 500
    out = tool("kafka-verifiable-producer", "--bootstrap-server", run.broker.kafka, "--topic", topic, "--max-messages", acknowledged)
    (last,) = [said for said in map(json.loads, out.splitlines()) if said["name"] == "tool_data"]
    must((last["sent"], last["acked"]) == (acknowledged, acknowledged), f"kafka-verifiable-producer says {last}")


SCENARIOS = {
    "bytes": bytes_,
    "codecs": codecs,
    "idempotence": idempotence,
    "offsets": offsets,
    "admin": admin,
    "group": group,
    "copy": copy,
    "tools": tools,
}
# Scenarios of one client.
OWN = {"tools": "kafka-tools"}

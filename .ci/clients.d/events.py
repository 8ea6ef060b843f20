"""Events that are hard to carry, and what makes two rows of events equal."""

import base64
import collections
import json
import random
import time

# Kafka's clients send batches of 16 KiB to 1 MB: one value is larger than a batch of most of them.
VALUE_BYTES_LARGEST = 200_000


def b64(data):
    return None if data is None else base64.b64encode(data).decode()


def event(partition, timestamp, key, value, headers=()):
    return {
        "p": partition, "t": timestamp, "k": b64(key), "v": b64(value),
        "h": [[name, b64(data)] for name, data in headers],
    }


# What an event's headers may be; the same name twice, no value, an empty one, bytes that are no text.
HEADERS = [
    [],
    [("trace", b"1")],
    [("a", b"first"), ("a", b"second"), ("b", b"x")],
    [("bytes", b"\xff\xfe\x01"), ("empty", b"")],
    [("none", None)],
]


def hard_events(seed, count, partitions, lacks):
    """`count` events over all partitions, the same for the same seed but for the hour; without what a client lacks.

    Runs of twenty have one partition and one set of headers, for clients that can change these only between calls.
    """
    dice = random.Random(seed)
    begin = int(time.time() * 1000) - 3_600_000
    found = []
    large_at = count // 2
    for index in range(count):
        # Now and then a clock goes back.
        timestamp = begin + index * 10 - (500 if dice.random() < 0.05 else 0)
        run = index // 20
        key = dice.choice([None, b"", b"k%d" % (index % 50), dice.randbytes(dice.randrange(1, 40))])
        text = b"value %d, and again: " % index * dice.randrange(1, 100)
        value = dice.choice([None, b"", text, text, dice.randbytes(dice.randrange(1, 500))])
        if index == large_at:
            value = dice.randbytes(VALUE_BYTES_LARGEST)
        headers = HEADERS[run % len(HEADERS)]
        if "duplicate headers" in lacks:
            headers = list(dict(headers).items())
        if "null headers" in lacks:
            headers = [(name, data) for name, data in headers if data is not None]
        if "null beside empty" in lacks:
            nothing = None if run % 2 else b""
            key, value = key or nothing, value or nothing
        if "neither key nor value" in lacks and key is None and value is None:
            value = b""
        if "binary" in lacks:
            key, value = [None if data is None else b"%s %d" % (name, index) for name, data in [(b"key", key), (b"value", value)]]
            headers = [(name, b"text") for name, _ in headers]
        found.append(event(run % partitions, timestamp, key, value, headers))
    return found


def plain_events(name, first, count, partitions):
    """Events that name themselves, so that each is found again."""
    now = int(time.time() * 1000)
    return [
        event(index % partitions, now + index, b"%s-%d" % (name.encode(), index % 17), b"%s %d" % (name.encode(), index))
        for index in range(first, first + count)
    ]


def write(path, events):
    path.write_text("".join(json.dumps(one) + "\n" for one in events))
    return path


def by_partition(events):
    found = collections.defaultdict(list)
    for one in events:
        found[one["p"]].append(one)
    return found


def difference(sent, read, timestamps=True, headers=True, offsets=True):
    """What differs, in words, or None: per partition the same events in the same order, at dense offsets."""
    if len(sent) != len(read):
        return f"{len(read)} events were read, not {len(sent)}"
    sent, read = by_partition(sent), by_partition(read)
    for partition, expected in sorted(sent.items()):
        got = read[partition]
        if len(got) != len(expected):
            return f"partition {partition} has {len(got)} events, not {len(expected)}"
        if offsets:
            places = [one["o"] for one in got]
            if places != list(range(places[0], places[0] + len(places))):
                return f"partition {partition}: offsets {places[:10]}… are not in a row"
        for index, (one, other) in enumerate(zip(expected, got)):
            fields = ["k", "v"] + ["t"] * timestamps + ["h"] * headers
            for field in fields:
                if one[field] != other[field]:
                    return f"partition {partition}, event {index}: {field} is {str(other[field])[:80]}, not {str(one[field])[:80]}"
    return None

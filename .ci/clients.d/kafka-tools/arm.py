"""Kafka's command-line tools, as their scripts start them: each verb runs one, and its output is read."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, __file__.rsplit("/", 2)[0])
from arm import HEARTBEAT_MS, PATIENCE_S, SESSION_TIMEOUT_MS, end_of_input, events, order, say, say_event, steps

JARS = os.environ["KAFKA_JARS"]
PACKAGE = "org.apache.kafka.tools."
TOOLS = {
    "kafka-topics": "TopicCommand",
    "kafka-configs": "ConfigCommand",
    "kafka-console-producer": "ConsoleProducer",
    "kafka-console-consumer": "consumer.ConsoleConsumer",
    "kafka-consumer-groups": "consumer.group.ConsumerGroupCommand",
    "kafka-get-offsets": "GetOffsetShell",
    "kafka-delete-records": "DeleteRecordsCommand",
    "kafka-cluster": "ClusterTool",
    "kafka-producer-perf-test": "ProducerPerformance",
    "kafka-verifiable-producer": "VerifiableProducer",
    "kafka-verifiable-consumer": "VerifiableConsumer",
    "kafka-dump-log": "DumpLogSegments",
}
# What stands for no value in lines of text, and between headers, key and value; no event has it.
NOTHING = "<nothing>"
FIELD_END = "\x1f"

asked = order()
SERVER = ["--bootstrap-server", asked["bootstrap"]]


def command(tool, *arguments):
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    return ["java", *quick, "-cp", f"{JARS}/*", PACKAGE + TOOLS[tool], *map(str, arguments)]


def run(tool, *arguments, text=None):
    done = subprocess.run(
        command(tool, *arguments), input=text, capture_output=True, timeout=PATIENCE_S * 3, encoding="utf-8", errors="replace"
    )
    if done.returncode:
        raise RuntimeError(f"{tool}: {done.stdout.strip()} {done.stderr.strip()}")
    return done.stdout


def text_of(data):
    return NOTHING if data is None else data.decode()


def produce():
    lines = []
    for _, _, key, value, headers in events(asked["file"]):
        named = ",".join(f"{name}:{text_of(data)}" for name, data in headers)
        lines.append(FIELD_END.join([named or NOTHING, text_of(key), text_of(value)]) + "\n")
    reader = {
        "parse.headers": "true", "headers.delimiter": FIELD_END, "parse.key": "true", "key.separator": FIELD_END,
        "null.marker": NOTHING,
    }
    more = [part for name, value in reader.items() for part in ("--reader-property", f"{name}={value}")]
    settings = [f"enable.idempotence={'true' if asked['idempotent'] else 'false'}", "acks=all"]
    more += [part for setting in settings for part in ("--command-property", setting)]
    run(
        "kafka-console-producer", *SERVER, "--topic", asked["topic"], "--compression-codec", asked["codec"], *more,
        text="".join(lines),
    )
    say(produced=len(lines))


def consume():
    shown = ["timestamp", "partition", "offset", "headers", "key", "value"]
    formatter = [f"print.{name}=true" for name in shown] + [f"key.separator={FIELD_END}", f"null.literal={NOTHING}"]
    more = [part for setting in formatter for part in ("--formatter-property", setting)]
    out = run(
        "kafka-console-consumer", *SERVER, "--topic", asked["topic"], "--partition", 0, "--offset", "earliest",
        "--max-messages", asked["count"], *more,
    )
    number = lambda text: int(text.rsplit(":", 1)[1])
    data = lambda text: None if text == NOTHING else text.encode()
    for line in out.split("\n")[:-1]:
        time, partition, offset, headers, key, value = line.split(FIELD_END)
        pairs = [pair.split(":", 1) for pair in headers.split(",")] if headers != "NO_HEADERS" else []
        named = [(name, data(text)) for name, text in pairs]
        say_event(number(partition), number(offset), number(time), data(key), data(value), named)


def offsets():
    def at(when):
        rows = [line.split(":") for line in run("kafka-get-offsets", *SERVER, "--topic", asked["topic"], "--time", when).split()]
        # It is silent about a partition that has none.
        return dict.fromkeys(map(str, range(asked["partitions"])), -1) | {row[1]: int(row[2]) for row in rows}

    say(earliest=at(-2), latest=at(-1), at=[at(when) for when in asked["timestamps"]])


def member():
    """kafka-verifiable-consumer, which says everything it does as JSON."""
    settings = tempfile.NamedTemporaryFile("w", suffix=".properties")
    settings.write(f"session.timeout.ms={SESSION_TIMEOUT_MS}\nheartbeat.interval.ms={HEARTBEAT_MS}\n")
    settings.flush()
    more = ["--max-messages", asked["count"]] if "count" in asked else []
    process = subprocess.Popen(
        command(
            "kafka-verifiable-consumer", *SERVER, "--topic", asked["topic"], "--group-id", asked["group"],
            "--reset-policy", "earliest", "--verbose", "--command-config", settings.name, *more,
        ),
        stdout=subprocess.PIPE,
    )
    ended = end_of_input()
    threading.Thread(target=lambda: (ended.wait(), process.send_signal(signal.SIGTERM)), daemon=True).start()
    data = lambda text: None if text is None else text.encode()
    in_order = False
    for line in process.stdout:
        said = json.loads(line)
        if said["name"] == "partitions_assigned":
            say(assigned=[one["partition"] for one in said["partitions"]])
        elif said["name"] == "partitions_revoked":
            say(assigned=[])
        elif said["name"] == "record_data":
            say_event(said["partition"], said["offset"], 0, data(said["key"]), data(said["value"]), [])
        elif said["name"] == "shutdown_complete":
            in_order = True
    process.wait()
    if not in_order:
        sys.exit(f"kafka-verifiable-consumer ends with {process.returncode}")
    say(left=True)


def cluster(_):
    rows = [row.split() for row in run("kafka-cluster", "list-endpoints", *SERVER).splitlines()[1:]]
    cluster_id = run("kafka-cluster", "cluster-id", *SERVER).split(":")[1].strip()
    return {"cluster": cluster_id, "brokers": [[row[1], int(row[2])] for row in rows if row]}


def topic_command(step, *arguments):
    return run("kafka-topics", *SERVER, "--topic", step["topic"], *arguments)


def create(step):
    configs = [part for name, value in step["configs"].items() for part in ("--config", f"{name}={value}")]
    topic_command(step, "--create", "--partitions", step["partitions"], "--replication-factor", 1, *configs)
    return {}


def topics(_):
    return {"topics": run("kafka-topics", *SERVER, "--list").split()}


def describe(step):
    return {"partitions": int(re.search(r"PartitionCount: (\d+)", topic_command(step, "--describe")).group(1))}


def config_command(step, *arguments):
    return run("kafka-configs", *SERVER, "--entity-type", "topics", "--entity-name", step["topic"], *arguments)


def configs(step):
    return {"configs": dict(re.findall(r"^  (\S+?)=(\S*) sensitive", config_command(step, "--describe", "--all"), re.M))}


def alter(step):
    config_command(step, "--alter", "--add-config", ",".join(f"{name}={value}" for name, value in step["configs"].items()))
    return {}


def partitions(step):
    topic_command(step, "--alter", "--partitions", step["count"])
    return {}


def delete_records(step):
    places = [{"topic": step["topic"], "partition": step["partition"], "offset": step["before"]}]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"version": 1, "partitions": places}, file)
        file.flush()
        run("kafka-delete-records", *SERVER, "--offset-json-file", file.name)
    return {}


def delete(step):
    topic_command(step, "--delete")
    return {}


def group_command(step, *arguments):
    return run("kafka-consumer-groups", *SERVER, "--group", step["group"], *arguments)


def groups(_):
    return {"groups": run("kafka-consumer-groups", *SERVER, "--list").split()}


def group(step):
    (row,) = [line for line in group_command(step, "--describe", "--state").splitlines() if line.startswith(step["group"])]
    return {"state": row.split()[-2], "members": int(row.split()[-1])}


def committed(step):
    rows = [line.split() for line in group_command(step, "--describe", "--offsets").splitlines()]
    return {"committed": {row[2]: int(row[3]) for row in rows if row[:2] == [step["group"], step["topic"]]}}


def delete_group(step):
    group_command(step, "--delete")
    return {}


def version():
    (jar,) = pathlib.Path(JARS).glob("kafka-tools-[0-9]*.jar")
    say(version=jar.stem.removeprefix("kafka-tools-"))


STEPS = {
    step.__name__: step
    for step in [
        cluster, create, topics, describe, configs, alter, partitions, delete_records, delete, groups, group, committed,
        delete_group,
    ]
}
VERBS = {
    "version": version, "produce": produce, "consume": consume, "offsets": offsets, "member": member,
    "tool": lambda: say(output=run(asked["tool"], *asked["arguments"])), "admin": lambda: steps(asked, STEPS),
}
VERBS[asked["verb"]]()

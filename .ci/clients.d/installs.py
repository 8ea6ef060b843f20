"""The clients: where each comes from, what it cannot do, and how its arm is started."""

import dataclasses
import os
import shutil
import subprocess
import sys
import threading

from processes import Fault

# A cold build of librdkafka takes two minutes on two cores.
INSTALL_S = 600
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


@dataclasses.dataclass
class Client:
    name: str
    package: str
    # What is left out of which scenario, or a whole one, and why.
    lacks: dict


def clients(*rows):
    return {row.name: row for row in rows}


CLIENTS = clients(
    Client("rdkafka", "crates.io: rdkafka", {}),
    Client("java", "Maven: org.apache.kafka:kafka-clients", {}),
    Client(
        "kafka-tools", "Maven: org.apache.kafka:kafka-tools",
        {
            "partition": "kafka-console-producer takes none",
            "timestamps": "kafka-console-producer sets none",
            "binary": "kafka-console-producer reads lines of text",
            "copy": "no tool copies a topic",
        },
    ),
    Client(
        "franz-go", "Go: github.com/twmb/franz-go",
        {"no offset for a timestamp": "its admin client gives the next offset instead"},
    ),
    Client("confluent", "PyPI: confluent-kafka", {}),
    Client(
        "kafka-python", "PyPI: kafka-python",
        {
            "neither key nor value": "it refuses an event that has neither",
            "null headers": "it refuses a header without a value",
        },
    ),
    Client(
        "aiokafka", "PyPI: aiokafka",
        {"neither key nor value": "it refuses an event that has neither", "admin delete_group": "it has no such call"},
    ),
    Client(
        "kafkajs", "npm: kafkajs",
        {
            "codec lz4": "it takes a native package",
            "codec zstd": "it takes a native package",
            "no offset for a timestamp": "it gives the next offset instead",
            "null headers": "it fails at a header without a value",
        },
    ),
    Client("platformatic", "npm: @platformatic/kafka", {"codec zstd": "Node.js 20 has none, which it asks for one"}),
    Client(
        "kcat", "Debian: kcat",
        {
            "timestamps": "kcat sets none",
            "null beside empty": "with -Z both are null, without it both are empty",
            **{f"admin {step}": "kcat only lists" for step in [
                "create", "configs", "alter", "partitions", "delete_records", "delete", "groups", "group", "committed",
                "delete_group",
            ]},
            "cluster id": "kcat prints none",
        },
    ),
)


class Installs:
    """What is installed, once for everybody who needs it."""

    def __init__(self, work, arms):
        self.work, self.arms = work, arms
        self.locks = {name: threading.Lock() for name in ["apt", "maven", *CLIENTS]}
        work.mkdir(parents=True, exist_ok=True)

    def of(self, client):
        """How its arm is started: command, folder, environment."""
        by_name = {
            "confluent": self._python, "kafka-python": self._python, "aiokafka": self._python, "kafkajs": self._node,
            "platformatic": self._node,
        }
        install = by_name.get(client.name) or getattr(self, "_" + client.name.replace("-", "_"))
        with self.locks[client.name]:
            return install(client.name)

    def _run(self, *command, **more):
        done = subprocess.run([str(part) for part in command], capture_output=True, timeout=INSTALL_S, **more)
        if done.returncode:
            said = (done.stdout + done.stderr).decode(errors="replace").strip()
            raise Fault(f"{command[0]} {command[1]} fails: {said[-1500:]}")

    def _need(self, program, package):
        with self.locks["apt"]:
            if not shutil.which(program):
                self._run("apt-get", "update", "-qq")
                self._run("apt-get", "install", "-y", "-qq", "--no-install-recommends", package)

    def _once(self, folder, make):
        """A folder that is whole if it is there."""
        place = self.work / folder
        if not place.exists():
            part = self.work / f"{folder}.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            make(part)
            part.rename(place)
        return place

    def _arm(self, name):
        return self.arms / name

    def _kcat(self, name):
        self._need("kcat", "kcat=1.7.1-2*")
        return [sys.executable, "-B", self._arm(name) / "arm.py"], self.work, {}

    def _python(self, name):
        def make(part):
            self._run(sys.executable, "-m", "venv", part)
            self._run(part / "bin" / "python", "-m", "pip", "install", "-q", "-r", self._arm(name) / "requirements.txt")

        place = self._once(name, make)
        return [place / "bin" / "python", "-B", self._arm(name) / "arm.py"], self.work, {}

    def _node(self, name):
        self._need("node", "nodejs")
        self._need("npm", "npm")

        def make(part):
            for file in [*self._arm(name).iterdir(), self.arms / "arm.mjs"]:
                shutil.copy(file, part)
            self._run("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error", cwd=part)

        place = self._once(name, make)
        for file in [*self._arm(name).iterdir(), self.arms / "arm.mjs"]:
            shutil.copy(file, place)
        return ["node", place / "main.mjs"], place, {}

    def _franz_go(self, name):
        self._need("go", "golang-go")
        place = self.work / name
        place.mkdir(exist_ok=True)
        self._run("go", "build", "-o", place / "arm", ".", cwd=self._arm(name), env={**os.environ, "GOFLAGS": "-buildvcs=false"})
        return [place / "arm"], place, {}

    def _rdkafka(self, name):
        target = self.work / name
        self._run(
            "cargo", "build", "-q", "--locked", "--manifest-path", self._arm(name) / "Cargo.toml", "--target-dir", target,
        )
        return [target / "debug" / "rdkafka-arm"], target, {}

    def _jars(self):
        with self.locks["maven"]:
            self._need("javac", "default-jdk-headless")
            self._need("mvn", "maven")
            pom = self._arm("java") / "pom.xml"
            return self._once("jars", lambda part: self._run("mvn", "-q", "-B", "-f", pom, COPY_DEPENDENCIES, f"-DoutputDirectory={part}"))

    def _java(self, name):
        jars = self._jars()
        classes = self.work / "classes"
        self._run("javac", "-cp", f"{jars}/*", "-d", classes, self._arm(name) / "Arm.java")
        # One process after the other: what counts is how fast it starts.
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx512m"]
        return ["java", *quick, "-cp", f"{classes}:{jars}/*", "Arm"], self.work, {}

    def _kafka_tools(self, name):
        return [sys.executable, "-B", self._arm(name) / "arm.py"], self.work, {"KAFKA_JARS": str(self._jars())}

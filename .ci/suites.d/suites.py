"""The suites: where each comes from, how it is built, and how one of its tests is run against a broker."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import xml.etree.ElementTree

from processes import Fault, ended, spawn, tail

HERE = pathlib.Path(__file__).resolve().parent
BUILD_S = 900
# Longer than any test takes that ends by itself.
TEST_S = 180
# The version of Apache Kafka that the suites are told they meet; what they find offered decides over it.
KAFKA_VERSION = "4.0.0"


def once(place, make):
    """A folder that is whole if it is there."""
    if not place.exists():
        part = place.with_name(place.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        make(part)
        part.rename(place)
    return place


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, timeout=BUILD_S, **more)
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace").strip()
        raise Fault(f"{command[0]} {command[1]} fails: {said[-1500:]}")
    return done.stdout


def bounded(command, log, limit_s, **more):
    """Runs a process group to its end, or ends it when the time is up; whether it ended by itself."""
    with open(log, "wb") as out:
        process = spawn(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, **more)
    try:
        process.wait(timeout=limit_s)
        return True
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
    finally:
        ended(process)


class Librdkafka:
    """One process for each number of a test; tests that make their own broker (local, mock) or cut connections with a
    library of their own (sockem) have nothing to do with ours."""

    # The crate holds librdkafka's whole tree; the client that is built on it pins its version and checksum.
    package = "crates.io: rdkafka-sys 4.10.0+2.12.1"
    manifest = HERE.parent / "clients.d" / "rdkafka" / "Cargo.toml"
    # Most of a test's time is spent waiting.
    lanes = 4

    def __init__(self, name, scenario, settings):
        self.name, self.scenario = name, scenario
        # Topics that come by themselves have four partitions, as on the suite's own brokers. A group waits for members
        # that are started together: tests count the rebalances.
        self.settings = ["group.initial.rebalance.delay.ms=1 s", "num.partitions=4", *settings]

    def install(self, work):
        self.tests = once(work / "librdkafka", self._build) / "librdkafka" / "tests"
        self.names = [name for name, scenario in self._table() if scenario == self.scenario]

    def _table(self):
        """The tests that take a broker, and the scenario in which each is run."""
        for row in (self.tests / "test.c").read_text().split("    _TEST(")[1:]:
            name = re.match(r"\d{4}\w+", row)
            if name and not re.search("LOCAL|MANUAL|SOCKEM", row) and not name[0].endswith("_mock"):
                scenario = re.search(r'scenario = "(\w+)"', row)
                yield name[0], scenario[1] if scenario else "default"

    def _build(self, part):
        told = run("cargo", "metadata", "--locked", "--format-version=1", "--manifest-path", self.manifest)
        found = {f"{one['name']} {one['version']}": one["manifest_path"] for one in json.loads(told)["packages"]}
        tree = part / "librdkafka"
        shutil.copytree(pathlib.Path(found[self.package.removeprefix("crates.io: ")]).parent / "librdkafka", tree)
        # A crate keeps no modes.
        for script in [tree / "configure", tree / "lds-gen.py", *tree.rglob("*.sh"), *(tree / "mklove").rglob("*")]:
            script.chmod(0o755)
        run("./configure", "--disable-sasl", "--disable-curl", "--disable-ssl", cwd=tree)
        jobs = f"-j{os.cpu_count()}"
        run("make", jobs, "libs", cwd=tree)
        run("make", jobs, "-C", "tests", "build", cwd=tree)

    def units(self, chosen):
        """What is run as one process each."""
        return sorted({name.partition("_")[0] for name in self.names if not chosen or name in chosen})

    def run(self, number, broker, folder):
        """The state of each of its tests, and where the log is."""
        folder.mkdir()
        log, report = folder / "log", folder / "report.json"
        (folder / "test.conf").write_text(f"bootstrap.servers={broker}\ntest.topic.prefix=t{number}\n")
        names = [name for name in self.names if name.startswith(number)]
        environment = {
            **os.environ, "TESTS": number, "TEST_REPORT": str(report), "TEST_KAFKA_VERSION": KAFKA_VERSION + ".0",
            "RDKAFKA_TEST_CONF": str(folder / "test.conf"), "LD_LIBRARY_PATH": f"{self.tests}/../src:{self.tests}/../src-cpp",
        }
        command = ["./test-runner", "-p1", "-E", "-L", "-s", self.scenario]
        bounded(command, log, TEST_S, cwd=self.tests, env=environment)
        try:
            found = json.loads(report.read_text())["tests"]
        except (OSError, ValueError):
            # It ended itself, or was ended.
            return {name: "failed" for name in names}, log
        states = {"PASSED": "passed", "SKIPPED": "skipped"}
        return {name: states.get(found[name]["state"], "failed") for name in names}, log


class KafkaPython:
    """One process for each file of tests, except those that start a Kafka of their own."""

    name = "kafka-python"
    package = "PyPI: kafka-python 3.0.12"
    # As the suite sets up its own brokers: their ids begin at 0, and members ask for sessions of three seconds.
    settings = ["group.initial.rebalance.delay.ms=0 ms", "group.min.session.timeout.ms=1 s", "broker.id=0"]
    lanes = 3

    def install(self, work):
        self.tree = once(work / "kafka-python", self._unpack)
        self.venv = once(work / "kafka-python-venv", self._venv)

    def _unpack(self, part):
        run(
            sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary=:all:", "--require-hashes",
            "-r", HERE / "kafka-python.txt", "-d", part,
        )
        (archive,) = part.glob("*.tar.gz")
        with tarfile.open(archive) as files:
            for file in files:
                _, _, file.name = file.name.partition("/")
                if file.name:
                    files.extract(file, part, filter="data")
        # Not in the package: what makes the tests importable, and what starts brokers, of which none is started.
        (part / "test" / "__init__.py").touch()
        (part / "test" / "service.py").write_text(
            "class ExternalService:\n"
            "    def __init__(self, host, port):\n"
            "        self.host, self.port = host, port\n\n"
            "    def open(self):\n        pass\n\n"
            "    def close(self):\n        pass\n\n\n"
            "class SpawnedService:\n    pass\n"
        )

    def _venv(self, part):
        run(sys.executable, "-m", "venv", part)
        run(part / "bin" / "python", "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt")

    def units(self, chosen):
        files = ["admin", "consumer", "producer"]
        return [file for file in files if not chosen or any(name.startswith(f"{file}: ") for name in chosen)]

    def run(self, file, broker, folder):
        folder.mkdir()
        log, report = folder / "log", folder / "report.xml"
        environment = {
            **os.environ, "KAFKA_ROOT": str(folder), "KAFKA_URI": f"kafka://{broker}", "KAFKA_VERSION": KAFKA_VERSION,
            "PYTHONPATH": str(self.tree),
        }
        command = [
            self.venv / "bin" / "python", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "log_level=INFO",
            "--timeout=60", f"--junitxml={report}", f"test/integration/test_{file}_integration.py",
        ]
        bounded(command, log, TEST_S, cwd=self.tree, env=environment)
        if not report.exists():
            raise Fault(f"{file} was not done after {TEST_S} s: {tail(log)}")
        found = {}
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            told = {child.tag for child in case}
            state = "failed" if told & {"failure", "error"} else "skipped" if "skipped" in told else "passed"
            found[f"{file}: {case.get('name')}"] = state
        return found, log


SUITES = {
    suite.name: suite
    for suite in [
        Librdkafka("librdkafka", "default", []),
        Librdkafka("librdkafka, no auto-creation", "noautocreate", ["auto.create.topics.enable=false"]),
        KafkaPython(),
    ]
}

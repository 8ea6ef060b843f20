"""The broker and the arms as processes: bounded in time, and ended by their own ids."""

import json
import os
import re
import subprocess
import threading
import time

PATIENCE_S = 60
# What of a process's complaints is shown.
SHOWN_BYTES = 1500
# What the broker may say above INFO while clients run, as regular expressions. Anything else fails the run.
EXPECTED_COMPLAINTS = []

_running = set()
_lock = threading.Lock()


class Fault(Exception):
    """What went wrong, for whoever reads the table."""


def spawn(command, **more):
    process = subprocess.Popen([str(part) for part in command], **more)
    with _lock:
        _running.add(process)
    return process


def ended(process):
    with _lock:
        _running.discard(process)


def end_all():
    """Ends what this run started and what is still there."""
    with _lock:
        left = list(_running)
    for process in left:
        if process.poll() is None:
            process.kill()
            process.wait()


def tail(path, begin=0):
    """The end of a file, of what came after `begin`."""
    return path.read_bytes()[begin:][-SHOWN_BYTES:].decode(errors="replace").strip()


class Broker:
    """`tackboard serve` with a data folder and ports of its own."""

    def __init__(self, program, folder, settings=()):
        self.program, self.data, self.log = program, folder / "data", folder / "broker.log"
        command = [program, "serve", "--data", self.data]
        for key in ["native.bind", "native.core_bind", "kafka.bind", "http.bind"]:
            command += ["--set", f"{key}=127.0.0.1:0"]
        for setting in settings:
            command += ["--set", setting]
        self.process = spawn(command, stdout=subprocess.PIPE, stderr=open(self.log, "wb"))
        said = ""
        for line in self.process.stdout:
            said += line.decode()
            if line.startswith(b"ready"):
                break
        addresses = dict(re.findall(r"^(native|kafka)\s+(127\.0\.0\.1:\d+)", said, re.M))
        if set(addresses) != {"native", "kafka"}:
            raise Fault(f"the broker does not get ready: {said[-SHOWN_BYTES:]} {tail(self.log)}")
        self.native, self.kafka = addresses["native"], addresses["kafka"]

    def tackboard(self, *arguments):
        done = subprocess.run(
            [str(self.program), *map(str, arguments), "--broker", self.native], capture_output=True, timeout=PATIENCE_S
        )
        if done.returncode:
            raise Fault(f"tackboard {arguments[0]} {arguments[1]}: {done.stderr.decode().strip()}")
        return done.stdout.decode()

    def create(self, topic, partitions, *configs):
        more = [part for config in configs for part in ("--config", config)]
        self.tackboard("topic", "create", topic, "--partitions", partitions, *more)

    def complaints(self):
        """The lines above INFO in its log that nobody expects; what a panic says has no level."""
        lines = self.log.read_text(errors="replace").splitlines()
        loud = [line for line in lines if re.search(r"\b(WARN|ERROR)\b|panicked at", line)]
        return [line for line in loud if not any(re.search(known, line) for known in EXPECTED_COMPLAINTS)]

    def stop(self):
        """Ends it as a user would. It must not have complained."""
        self.process.terminate()
        try:
            code = self.process.wait(timeout=PATIENCE_S)
        finally:
            ended(self.process)
        if code:
            raise Fault(f"the broker ends with {code}: {tail(self.log)}")
        complaints = self.complaints()
        if complaints:
            shown = "\n".join(complaints)[:SHOWN_BYTES]
            raise Fault(f"the broker complains ({len(complaints)} lines):\n{shown}")


class Arm:
    """One client, as its arm's folder and program."""

    def __init__(self, command, folder, environment, log):
        self.command, self.folder, self.environment, self.log = command, folder, environment, log
        self.bootstrap = None

    def start(self, verb, **more):
        order = json.dumps({"verb": verb, "bootstrap": self.bootstrap, **more})
        return spawn(
            [*self.command, order], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(self.log, "ab"),
            cwd=self.folder, env={**os.environ, **self.environment},
        )

    def ask(self, verb, **more):
        """What the arm prints until it ends."""
        logged = self.log.stat().st_size if self.log.exists() else 0
        process = self.start(verb, **more)
        try:
            # Its input stays open: an end of it tells a member to leave.
            timer = threading.Timer(PATIENCE_S, process.kill)
            timer.start()
            lines = process.stdout.read().splitlines()
            code = process.wait()
            timer.cancel()
        finally:
            ended(process)
            process.stdin.close()
        if code:
            raise Fault(f"{verb} ends with {code}: {tail(self.log, logged)}")
        return [json.loads(line) for line in lines]

    def member(self, topic, group):
        return Member(self, topic, group)


class Member:
    """A member of a group that runs beside others: what it was assigned and what it saw."""

    def __init__(self, arm, topic, group):
        self.arm, self.assigned, self.seen, self.left = arm, None, [], False
        self.process = arm.start("member", topic=topic, group=group)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            if "assigned" in said:
                self.assigned = said["assigned"]
            elif "left" in said:
                self.left = True
            else:
                self.seen.append(said)

    def leave(self):
        self.process.stdin.close()
        try:
            code = self.process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Fault(f"a member does not leave: {tail(self.arm.log)}") from None
        finally:
            ended(self.process)
        self.reader.join()
        if code or not self.left:
            raise Fault(f"a member ends with {code}: {tail(self.arm.log)}")


def wait_until(what, condition, patience_s=PATIENCE_S):
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise Fault(f"after {patience_s} s there is no: {what}")
        time.sleep(0.05)

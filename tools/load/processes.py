"""A cluster of processes that are killed and restarted: `leat task` for each task, a program for each worker."""
import json
import os
import random
import signal
import socket
import subprocess
import time

GRACE = 15  # seconds that a process gets to end after SIGTERM


def free_ports(number):
    """Ports below those that the kernel hands out: still free when a task that was killed comes again."""
    found = []
    candidates = random.SystemRandom().sample(range(15000, 32000), 500)
    for port in candidates:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == number:
            return found
    raise RuntimeError("no free ports between 15000 and 32000")


class Cluster:
    """Names: "ps 0", "worker 1" are tasks, "program 1" is the program of worker 1."""

    def __init__(self, build, directory, ps_tasks, workers, program, programs):
        self.leat = os.path.join(build, "bin", "leat")
        self.directory, self.program = directory, program
        ports = free_ports(ps_tasks + workers)
        self.addresses = {}
        for job, number in (("ps", ps_tasks), ("worker", workers)):
            for index in range(number):
                self.addresses[f"{job} {index}"] = f"127.0.0.1:{ports.pop()}"
        self.jobs = {job: [a for name, a in self.addresses.items() if name.startswith(job)] for job in ("ps", "worker")}
        self.spec = os.path.join(directory, "cluster.json")
        with open(self.spec, "w") as file:
            json.dump({"cluster": self.jobs}, file)
        self.tasks = list(self.addresses)
        self.programs = [f"program {w}" for w in range(programs)]
        self.running = {}  # name → Popen
        self.ended = {}  # name → exit status, of those that ended by themselves

    def log_path(self, name):
        return os.path.join(self.directory, name.replace(" ", "-") + ".log")

    def start(self, name):
        kind, index = name.split()
        environment = dict(os.environ)
        if kind == "program":
            command = [*self.program, "--log", self.journal(name)]
            task = {"cluster": self.jobs, "task": {"type": "worker", "index": int(index)}}
            environment["TF_CONFIG"] = json.dumps(task)
        else:
            command = [self.leat, "task", self.spec, "--job", kind, "--task", index]
        with open(self.log_path(name), "a") as log:
            # exec-child: the kernel kills it if this script is killed. A session of its own: Ctrl-C is ours to pass on.
            self.running[name] = subprocess.Popen(
                [self.leat, "exec-child", str(os.getpid()), *command], stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, env=environment, start_new_session=True)
        return self.running[name].pid

    def journal(self, program):
        return os.path.join(self.directory, program.replace(" ", "-") + ".json")

    def kill(self, name):
        process = self.running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait(GRACE)

    def reap(self):
        """Those that have ended since the last call: name → exit status."""
        ended = {name: p.returncode for name, p in self.running.items() if p.poll() is not None}
        for name in ended:
            del self.running[name]
        self.ended.update(ended)
        return ended

    def stop(self):
        """Ends what still runs; returns the names of those that had to be killed."""
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        deadline, killed = time.monotonic() + GRACE, []
        for name, process in self.running.items():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(GRACE)
                killed.append(name)
        self.running.clear()
        return killed

    def last_words(self, name, lines=12):
        with open(self.log_path(name)) as log:
            return "".join(f"    [{name}] {line}" for line in log.readlines()[-lines:])

    def top(self):
        """What `leat top` says of who waits for whom."""
        address = self.addresses["worker 0"]
        try:
            done = subprocess.run([self.leat, "top", f"grpc://{address}"], capture_output=True, text=True, timeout=10)
            return done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            return "(leat top has no answer)\n"

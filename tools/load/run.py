#!/usr/bin/env python3
"""The load test: trains for a long time on a cluster of real processes, kills some of them, and looks for losses.

Three phases, each on its own cluster (2 ps, 3 workers): undisturbed asynchronous training; the same while every so many
steps a random task or program is killed with SIGKILL and restarted; synchronous training, with the same kills.
Afterwards it reports whether every update is there, once (checks.py), and how much each process has grown (memory.py).
Ctrl-C ends everything.

  tools/load/run.py                                    # 20,000 steps in each phase
  tools/load/run.py --phases kills --steps 1000000     # all night
  tools/load/run.py --seed 7                           # the same tasks are killed at the same steps

Exit status: 0; 1 if an update is lost or was made twice, a process grew too much, a recovery took too long, or a
process ended that was not killed; 2 for a mistake in the command line; 130 after Ctrl-C.
"""
import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time

import checks
from memory import Memory
from processes import Cluster

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
POLL = 0.05  # seconds


class Failed(Exception):
    pass


class Phase:
    def __init__(self, flags, name, directory):
        self.flags, self.name = flags, name
        self.mode = "sync" if name == "sync" else "async"
        self.directory = os.path.join(directory, name)
        os.mkdir(self.directory)
        program = [os.path.join(flags.build, "bin", "load", "counted_training"), "--mode", self.mode,
                   "--directory", os.path.join(self.directory, "checkpoints"), "--steps", str(flags.steps),
                   "--checkpoint-steps", str(flags.checkpoint_every), "--batch", str(flags.batch),
                   "--pause", str(flags.pause)]
        self.cluster = Cluster(flags.build, self.directory, flags.ps, flags.workers, program,
                               flags.workers if self.mode == "async" else 1)
        self.memory = Memory(flags.warm_up)
        self.random = random.Random(f"{flags.seed} {name}")
        self.events = {int(p.split()[1]): [] for p in self.cluster.programs}
        self.journals = {}
        self.global_step = self.answered = 0
        self.moved_at = {}  # program → when it last had an answer
        self.sampled_at = 0.0
        self.kinds = []
        self.began = time.monotonic()

    def say(self, text):
        print(f"{self.name}: {time.monotonic() - self.began:6.1f} s, step {self.global_step}: {text}", flush=True)

    def start(self, name):
        self.memory.watch(name, self.cluster.start(name), self.answered)

    def look(self):
        """Reads what has come, and samples the memory. Failed if something ended that should not have."""
        now = time.monotonic()
        for program in self.cluster.programs:
            index = int(program.split()[1])
            if index not in self.journals:
                path = self.cluster.journal(program)
                if not os.path.exists(path):
                    continue
                self.journals[index] = open(path)
            for event in checks.read_new_lines(self.journals[index]):
                self.events[index].append(event)
                if event["event"] == "step":
                    self.answered += 1
                    self.global_step = event["step"]
                    self.moved_at[program] = now
        for name, status in self.cluster.reap().items():
            if status != 0 or name not in self.cluster.programs:
                raise Failed(f"{name} ended with {status}, and nobody had killed it:\n{self.cluster.last_words(name)}")
        if now - self.sampled_at >= self.flags.sample_every:
            self.memory.sample(self.answered)
            self.sampled_at = now

    def unfinished(self):
        return [p for p in self.cluster.programs if self.cluster.ended.get(p) != 0]

    def wait(self, what, is_done):
        """Polls until is_done(). Every program that is not at its end must have had an answer in time."""
        since = time.monotonic()
        while True:
            self.look()
            if is_done():
                return time.monotonic() - since
            for program in self.unfinished():
                silent = time.monotonic() - max(since, self.moved_at.get(program, 0))
                if silent > self.flags.patience:
                    raise Failed(f"{what}: {program} has had no answer for {silent:.0f} s; leat top says:\n{self.cluster.top()}"
                                 f"{self.cluster.last_words(program)}")
            time.sleep(POLL)

    def next_victim(self):
        """Each kind of process in turn, in random order; which one at random of those that run (a program may be at its end)."""
        while True:
            if not self.kinds:
                self.kinds = ["ps", "worker", "program"]
                self.random.shuffle(self.kinds)
            kind = self.kinds.pop()
            running = sorted(n for n in self.cluster.running if n.startswith(kind))
            if running:
                return self.random.choice(running)

    def kill_and_restart(self, victim, pause):
        answered = {p: self.moved_at.get(p, 0) for p in self.unfinished()}
        self.cluster.kill(victim)
        self.say(f"killed {victim}, to be started again after {pause:.1f} s")
        killed_at = time.monotonic()
        while time.monotonic() - killed_at < pause:
            self.look()
            time.sleep(POLL)
        self.start(victim)
        started_at = time.monotonic()
        took = self.wait(f"after {victim} was killed and started again",
                         lambda: all(self.moved_at.get(p, 0) > max(started_at, answered.get(p, 0)) for p in self.unfinished()))
        self.say(f"all programs go on, {took:.1f} s after that start")

    def run(self):
        flags = self.flags
        kills = []
        if self.name != "calm":
            first = flags.kill_every
            while first <= flags.steps - flags.kill_every / 2:
                kills.append(first + self.random.randrange(max(1, flags.kill_every // 2)))
                first += flags.kill_every
        for name in self.cluster.tasks + self.cluster.programs:
            self.start(name)
        self.wait("the start", lambda: all(p in self.moved_at for p in self.cluster.programs))
        self.say("all programs train")
        done = 0
        for at in kills:
            self.wait("training", lambda: self.global_step >= at or not self.unfinished())
            if not self.unfinished():  # the other programs' steps went on while one was away
                break
            self.kill_and_restart(self.next_victim(), self.random.choice([0, 0.5, 2]))
            done += 1
        if kills and done == 0:
            raise Failed(f"the training ended before the first kill, at step {kills[0]}")
        self.wait("training", lambda: not self.unfinished())
        self.look()
        self.say(f"the training has ended; {done} of {len(kills)} kills, {self.answered} answered steps")
        killed = self.cluster.stop()
        if killed:
            raise Failed(f"did not end after SIGTERM: {', '.join(killed)}")

    def judge(self):
        """Prints what was found; the list of what is wrong."""
        found = checks.Checks(self.events, self.flags.workers, self.flags.ps, self.mode)
        problems = found.all()
        self.memory.write(os.path.join(self.directory, "memory.csv"))
        print(f"\n{self.name}: updates")
        for name, value in sorted(found.figures.items()):
            print(f"  {name}: {value}")
        print(f"  {'every update is there, once' if not problems else f'{len(problems)} PROBLEMS'}")
        for problem in problems[:10]:
            print(f"  {problem}")
        lines, too_much = self.memory.table(self.flags.growth_limit)
        print(f"{self.name}: memory")
        print("\n".join("  " + line for line in lines) + "\n", flush=True)
        if self.flags.growth_limit > 0:
            problems = problems + too_much
        return problems


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(REPOSITORY, "build", "release"))
    parser.add_argument("--phases", nargs="+", default=["calm", "kills", "sync"], choices=["calm", "kills", "sync"])
    parser.add_argument("--steps", type=int, default=20_000, help="of each phase (default: %(default)s)")
    parser.add_argument("--kill-every", type=int, default=2_000, help="steps (default: %(default)s)")
    parser.add_argument("--checkpoint-every", type=int, default=500, help="steps (default: %(default)s)")
    parser.add_argument("--ps", type=int, default=2, help="ps tasks (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--batch", type=int, default=50, help="examples per worker and step (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=0, help="milliseconds that a program rests before a step, so that a short "
                        "training on a fast machine is not over before it is disturbed (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of the kills")
    parser.add_argument("--warm-up", type=int, default=2_000,
                        help="answered steps of the cluster that do not count in a process's growth, at least: half of its "
                        "life does not (default: %(default)s)")
    parser.add_argument("--growth-limit", type=float, default=1.0,
                        help="percent that a process may grow after its warm-up; 0: not judged (default: %(default)s)")
    parser.add_argument("--sample-every", type=float, default=0.25, help="seconds between looks at /proc (default: %(default)s)")
    parser.add_argument("--patience", type=float, default=90, help="seconds without an answer that are a failure (default: "
                        "%(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep logs and checkpoints (they are kept after a failure)")
    flags = parser.parse_args()
    for program in ("leat", "load/counted_training"):
        if not os.path.exists(os.path.join(flags.build, "bin", program)):
            parser.error(f"{flags.build}/bin/{program} is not there: build it first, or name the build folder with --build")
    if flags.kill_every < 2 or flags.steps < 1:
        parser.error("--steps must be at least 1, --kill-every at least 2")
    return flags


def run_phase(flags, name, directory):
    phase = Phase(flags, name, directory)
    try:
        phase.run()
    except Failed as failure:
        return [f"{failure}"]
    finally:
        phase.cluster.stop()
    return phase.judge()


def main():
    flags = parse_flags()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    directory = tempfile.mkdtemp(prefix="leat-load-")
    print(f"{flags.steps} steps in each phase, a kill every {flags.kill_every}, a checkpoint every {flags.checkpoint_every}; "
          f"--seed {flags.seed}; logs in {directory}", flush=True)
    began, problems = time.monotonic(), []
    try:
        for name in flags.phases:
            problems += [f"{name}: {p}" for p in run_phase(flags, name, directory)]
    except KeyboardInterrupt:
        print("stopped")
        shutil.rmtree(directory, ignore_errors=True)
        return 130
    print(f"{time.monotonic() - began:.0f} s in all: " + ("all is well" if not problems else f"FAILED, {len(problems)} problems"))
    for problem in problems:
        print(f"  {problem}")
    if flags.keep or problems:
        print(f"logs and checkpoints are in {directory}")
    else:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks that every update is there, once. Reads the log of counted_training.

Each worker's updates are counted on every ps task, in the step that makes them. `count` below is such a counter: one
worker's on one ps task. These rules must hold:

* An answered step has raised its counts by 1. It may be more only if earlier steps were not answered (their task or
  program was killed): such a step may have run once, or not at all.
* Counts go back only when the chief restores a checkpoint, and then to the counts in that checkpoint: the first step that
  began afterwards sees exactly these and itself.
* A checkpoint holds all updates that were answered before it began, and none that had not been requested by its end.
* global_step agrees with the counts: exactly if the training is synchronous; else except for steps that a kill, a
  recovery or a checkpoint beside running workers has cut in two, one for each worker each time.
* Synchronous: a step that is repeated after a recovery has the same loss.

`checks.py --self-test` breaks each of these rules in an invented log and must detect it.
"""
import collections
import json
import os
import sys


def read_new_lines(file):
    """The whole lines that have come since the last call; what is not ended yet stays for the next."""
    out = []
    while True:
        at = file.tell()
        line = file.readline()
        if not line.endswith("\n"):
            file.seek(at)
            return out
        out.append(json.loads(line))


class Checks:
    """events: those of each worker's program, in order. Call all(), then look at `problems` and `figures`."""

    def __init__(self, events, workers, ps_tasks, mode):
        self.events, self.workers, self.ps_tasks, self.mode = events, workers, ps_tasks, mode
        self.problems = []
        self.figures = collections.Counter()
        self.restored = [e for e in events[0] if e["event"] == "restored"]
        self.saved = [e for e in events[0] if e["event"] == "saved"]

    def all(self):
        for worker in range(self.workers):
            for ps in range(self.ps_tasks):
                self.check_sequence(worker, ps)
                for save in self.saved:
                    self.check_checkpoint(save, worker, ps)
        self.check_global_step()
        if self.mode == "sync":
            self.check_losses()
        self.figures["answered steps"] = sum(e["event"] == "step" for events in self.events.values() for e in events)
        self.figures["unanswered steps"] = sum(self.unanswered(w) for w in self.events)
        self.figures["checkpoints"] = len(self.saved)
        self.figures["recoveries of the chief"] = len(self.restored) - 1
        return self.problems

    def driven_by(self, worker):
        return self.events[0 if self.mode == "sync" else worker]

    def problem(self, text):
        self.problems.append(text)

    def unanswered(self, worker, until=float("inf")):
        """Steps that failed, or whose program was killed."""
        events = self.driven_by(worker)
        return sum(e["event"] in ("failed", "start") and e["end"] <= until for e in events) - 1

    def check_sequence(self, worker, ps):
        """The counts that one worker's answered steps have seen on one ps task."""
        name = f"worker {worker} on ps {ps}"
        last, pending = None, -1  # -1: nothing is unanswered before the first start
        waiting = list(self.restored)  # that have not been passed yet
        seen = False  # the first of them has been seen in a count
        for event in self.driven_by(worker):
            if event["event"] in ("failed", "start"):
                pending += 1
            if event["event"] != "step":
                continue
            count = event["counts"][ps][worker]
            while len(waiting) > 1 and waiting[1]["end"] <= event["begin"]:
                waiting.pop(0)
                seen = False
            begun = [r for r in waiting if r["begin"] < event["end"]]
            is_passed = bool(begun) and begun[0]["end"] <= event["begin"]
            goes_on = last is not None and 0 <= count - last - 1 <= pending
            resets = [r for r in begun if 0 <= count - r["counts"][ps][worker] - 1 <= pending]
            if resets and resets[0] is not waiting[0]:
                del waiting[:waiting.index(resets[0])]
                seen = False
            if goes_on and (resets or seen or not is_passed):
                pending -= count - last - 1
            elif resets:
                pending -= count - resets[0]["counts"][ps][worker] - 1
            else:
                expected = [] if last is None or (is_passed and not seen) else [f"{last + 1} after {last}"]
                expected += [f"{r['counts'][ps][worker] + 1} after {os.path.basename(r['checkpoint'])}" for r in begun]
                self.problem(f"{name}: an answered step made it {count}, not {' or '.join(expected)}"
                             + (f" (and at most {pending} unanswered)" if pending else "")
                             + f", at global step {event['step']}")
            seen = seen or bool(resets)
            if is_passed:
                waiting.pop(0)
                seen = False
            last = count

    def known_count(self, worker, ps, time):
        """What the count is at least at that time: of the last step that was answered by then, or that was restored."""
        restored = [r for r in self.restored if r["end"] <= time][-1]
        for event in reversed(self.driven_by(worker)):
            if event["event"] == "step" and event["end"] <= time and event["begin"] >= restored["end"]:
                return event["counts"][ps][worker]
        return restored["counts"][ps][worker]

    def check_checkpoint(self, save, worker, ps):
        held = save["counts"][ps][worker]
        # The chief, who saves, takes no step meanwhile; the step before the checkpoint began when the save's event did.
        is_still = self.mode == "sync" or worker == 0
        low = self.known_count(worker, ps, save["end"] if is_still else save["begin"])
        high = low if is_still else self.known_count(worker, ps, save["end"]) + 1 + self.unanswered(worker, save["end"])
        if not low <= held <= high:
            self.problem(f"{os.path.basename(save['checkpoint'])} holds {held} updates of worker {worker} on ps {ps}; "
                         f"between {low} and {high} were made")

    def check_global_step(self):
        if self.mode == "sync":
            for event in self.events[0]:
                if event["event"] in ("step", "saved", "restored"):
                    for ps, counts in enumerate(event["counts"]):
                        if any(count != event["step"] for count in counts):
                            self.problem(f"{event['event']}: global step {event['step']}, counts on ps {ps}: {counts}")
            return
        cuts = 1
        marks = sorted((e for events in self.events.values() for e in events if e["event"] != "step"), key=lambda e: e["end"])
        for event in marks:
            cuts += 1
            if event["event"] not in ("saved", "restored"):
                continue
            for ps, counts in enumerate(event["counts"]):
                apart = abs(event["step"] - sum(counts))
                self.figures["largest difference of global step and counts"] = max(
                    self.figures["largest difference of global step and counts"], apart)
                if apart > cuts * self.workers:
                    self.problem(f"{os.path.basename(event['checkpoint'])} has global step {event['step']}, but "
                                 f"{sum(counts)} updates on ps {ps}")

    def check_losses(self):
        losses = {}
        for event in self.events[0]:
            if event["event"] != "step":
                continue
            if event["step"] not in losses:
                losses[event["step"]] = event["loss"]
                continue
            self.figures["steps done again"] += 1
            before = losses[event["step"]]
            if before != event["loss"]:
                self.problem(f"step {event['step']} had the loss {before}, and {event['loss']} when it was done again")


# The self-test: a log of 2 workers on 2 ps tasks, sound, and then broken in one place after the other.
class Invented:
    def __init__(self, mode="async"):
        self.mode, self.time = mode, 0.0
        self.events = {0: [], 1: []}
        self.counts = [[0, 0], [0, 0]]
        self.step_number = 0

    def add(self, worker, event, **more):
        self.time += 1
        self.events[worker].append({"event": event, "worker": worker, "begin": self.time, "end": self.time + 0.5, **more})

    def mark(self, event):
        self.add(0, event, checkpoint=f"model.ckpt-{self.step_number}", step=self.step_number,
                 counts=[list(c) for c in self.counts])

    def step(self, worker, by=1):
        for counts in self.counts:
            for w in (0, 1) if self.mode == "sync" else (worker,):
                counts[w] += by
        self.step_number += by
        self.add(worker, "step", step=self.step_number, loss=1 / self.step_number, counts=[list(c) for c in self.counts])

    def restore(self, kept):
        self.step_number, self.counts = kept[0], [list(c) for c in kept[1]]
        self.mark("restored")

    def kept(self):
        return self.step_number, [list(c) for c in self.counts]


def training(mode, after_save=None, restores=True, lose=0, twice=0):
    """Steps, a checkpoint, steps, a lost ps task, steps from the checkpoint on."""
    log = Invented(mode)
    programs = (0,) if mode == "sync" else (0, 1)
    for worker in programs:
        log.add(worker, "start")
    log.mark("restored")

    def steps(number):
        for worker in programs * number:
            log.step(worker)
    steps(3)
    kept = log.kept()
    if after_save:
        after_save(log)
    log.mark("saved")
    log.step_number, log.counts = kept[0], [list(c) for c in kept[1]]
    steps(4)
    if lose:
        log.counts[1][0] -= 1
        log.step(0)
    if twice:
        log.step(0, by=2)
    for worker in programs:
        log.add(worker, "failed")
    if restores:
        log.restore(kept)
    else:
        log.counts[0][0] -= 2
        log.mark("restored")
        log.counts[0][0] += 2
    steps(3)
    return log


def self_test():
    def problems(log):
        return Checks(log.events, 2, 2, log.mode).all()

    def spoil(log):
        log.counts[1][1] -= 1

    def other_loss():
        log = training("sync")
        log.events[0][-1]["loss"] += 1
        return log

    def drifted():
        log = training("async")
        log.events[0][-4]["step"] += 100
        return log

    broken = {
        "an update lost": training("async", lose=1),
        "an update made twice": training("async", twice=1),
        "a recovery to something else": training("async", restores=False),
        "a checkpoint that lacks an update": training("async", after_save=spoil),
        "a synchronous checkpoint that lacks one": training("sync", after_save=spoil),
        "a global step apart": drifted(),
        "another loss": other_loss(),
    }
    failures = []
    for mode in ("async", "sync"):
        found = problems(training(mode))
        if found:
            failures.append(f"a sound {mode} log: {found}")
    failures += [f"not found: {name}" for name, log in broken.items() if not problems(log)]
    print("\n".join(failures) or f"checks.py: 2 sound logs, {len(broken)} broken ones told from them")
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[1:] != ["--self-test"]:
        sys.exit(__doc__)
    sys.exit(self_test())

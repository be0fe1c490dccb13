"""How the memory of long-lived processes grows, according to /proc.

An incarnation is one life of one process, watched from its start to its end. The first half of it, at least `warm_up`
steps of the cluster, is its warm-up: programs are compiled, tables fill, the heap settles. Growth is the change of the
median resident size from the first fifth of the remaining steps to their last fifth. So a leak of x bytes per step shows
as 0.4 x per step of its life, however long that is: run it longer to find a smaller one.

Resident size is VmRSS, but pages of files count even after the kernel has dropped them: it does that when memory is short
and reads them again, which says nothing about the process.
"""
import statistics
from dataclasses import dataclass, field


@dataclass
class Incarnation:
    name: str
    pid: int
    began_at: int  # steps that the cluster had done by then
    samples: list = field(default_factory=list)  # (steps of the cluster, resident size, its anonymous part), in kB
    most_of_files: int = 0

    def sample(self, steps):
        values = {}
        try:
            with open(f"/proc/{self.pid}/status") as status:
                for line in status:
                    key, _, rest = line.partition(":")
                    if key in ("VmRSS", "RssAnon"):
                        values[key] = int(rest.split()[0])
        except OSError:
            return
        if len(values) == 2 and values["VmRSS"] > 0:  # a process that has ended and waits to be reaped has none
            anonymous = values["RssAnon"]
            self.most_of_files = max(self.most_of_files, values["VmRSS"] - anonymous)
            self.samples.append((steps, anonymous + self.most_of_files, anonymous))


@dataclass
class Growth:
    incarnation: Incarnation
    steps: int  # since its warm-up
    first: float  # MB
    last: float
    anonymous: float  # MB by which what is no file grew

    @property
    def percent(self):
        return 100 * (self.last - self.first) / self.first

    @property
    def judged(self):
        """Percent. Of a program without its code, which comes into memory when it first runs: after a kill, to recover."""
        if self.incarnation.name.startswith("program"):
            return 100 * self.anonymous / self.first
        return self.percent


class Memory:
    def __init__(self, warm_up):
        self.warm_up = warm_up
        self.incarnations = []

    def watch(self, name, pid, steps):
        self.incarnations.append(Incarnation(name, pid, steps))

    def sample(self, steps):
        newest = {i.name: i for i in self.incarnations}
        for incarnation in newest.values():
            incarnation.sample(steps)

    def write(self, path):
        with open(path, "w") as file:
            file.write("name,pid,steps,rss_kb,anonymous_kb\n")
            for i in self.incarnations:
                file.writelines(f"{i.name},{i.pid},{steps},{rss},{anonymous}\n" for steps, rss, anonymous in i.samples)

    def growth(self, incarnation):
        """None if its life was too short to tell: less than twice the warm-up."""
        samples = incarnation.samples
        if not samples or samples[-1][0] - incarnation.began_at < 2 * self.warm_up:
            return None
        end = samples[-1][0]
        begin = (incarnation.began_at + end) / 2
        fifth = (end - begin) / 5
        first = [s for s in samples if begin <= s[0] <= begin + fifth]
        last = [s for s in samples if s[0] >= end - fifth]
        if not first:
            return None

        def median(samples, column):
            return statistics.median(s[column] for s in samples) / 1024
        return Growth(incarnation, round(end - begin), median(first, 1), median(last, 1), median(last, 2) - median(first, 2))

    def table(self, limit_percent):
        """Lines of text, and the names of those that grew by more than the limit."""
        lines = ["process      life  steps after warm-up  first MB   last MB  growth %  (of which anonymous MB)"]
        too_much, lives, short = [], {}, 0
        for incarnation in sorted(self.incarnations, key=lambda i: i.name):
            lives[incarnation.name] = life = lives.get(incarnation.name, 0) + 1
            growth = self.growth(incarnation)
            if growth is None:
                short += 1
                continue
            is_bad = growth.judged >= limit_percent
            lines.append(f"{incarnation.name:<12} {life:>4}  {growth.steps:>19}  {growth.first:>8.2f}  {growth.last:>8.2f}  "
                         f"{growth.percent:>8.2f}  {growth.anonymous:+.2f}{'  TOO MUCH' if is_bad else ''}")
            if is_bad:
                too_much.append(f"{incarnation.name} (life {life}) grew by {growth.percent:.2f} %, from {growth.first:.2f} "
                                f"to {growth.last:.2f} MB, in {growth.steps} steps")
        if short:
            lines.append(f"{short} lives were too short to tell")
        return lines, too_much

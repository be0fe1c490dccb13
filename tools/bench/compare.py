#!/usr/bin/env python3
"""Compares Leat with TensorFlow, ONNX Runtime and torch, taken in turn in one run.

  tools/bench/compare.py --build build/release --python PY [--rounds 3] null_ops run_one mlp_1 mlp_64 cluster_null …
  tools/bench/compare.py --python PY --rounds 1 --seconds 2 nulls seeds all_reduces      # the table of README.md
  tools/bench/compare.py --python PY --rounds 1 --seconds 2 models_1 models cluster_models  # seven usual networks

PY is a Python with the peers (pip install tensorflow-cpu onnxruntime onnx numpy; torch may be in another one:
--torch-python). Each comparison runs A B B A …, so that drift of the machine affects both. Prints medians and the
ratio peer / Leat (above 1: Leat is faster), and marks rows where the two halves of one side differ by more than 10 %.
"limit" is the time that the cores and the memory of this machine need at least, from their rates in this run (README.md);
"Leat / limit" is Leat's least time over it. A network's line is refused unless both sides have the same losses.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from model_limits import MODELS, model_limit

HERE = os.path.dirname(os.path.abspath(__file__))


def run(command, env=None):
    """Runs a command and returns the JSON objects it printed, one a line (task prefixes are ignored)."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **(env or {})})
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nexited with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    rows = []
    for line in done.stdout.splitlines():
        at = line.find('{"')
        if at >= 0:
            rows.append(json.loads(line[at:]))
    if not rows:
        sys.exit(f"{' '.join(command)} printed no result:\n{done.stdout[-2000:]}")
    return rows


def leat_bench(name, per=1):
    """Seconds per unit from a Google Benchmark of bench/steps: the minimum over its repetitions is reported too."""
    def measure(a):
        done = subprocess.run([f"{a.build}/bin/bench/steps", f"--benchmark_filter=^{name}$", "--benchmark_format=json",
                               "--benchmark_repetitions=3", "--benchmark_min_time=0.3"],
                              capture_output=True, text=True, timeout=600, check=True)
        times = [row["real_time"] * 1e-9 / per for row in json.loads(done.stdout)["benchmarks"] if row["run_type"] == "iteration"]
        return statistics.median(times)
    return measure


def peer(script, *args, python="python"):
    def measure(a):
        return run([getattr(a, python), f"{HERE}/peers/{script}", *args])[0]["median_s"]
    return measure


def cluster(work, mode, ps, workers, batch=100, dialled=False):
    def measure(a):
        embed = [] if dialled else ["--embed"]
        jobs = f"ps={ps},worker={workers}" if ps else f"worker={workers}"
        rows = run([f"{a.build}/bin/leat", "run", *embed, f"local:{jobs}", "--", f"{a.build}/bin/bench/cluster_step",
                    "--work", work, "--mode", mode, "--batch", str(batch), "--seconds", str(a.seconds)])
        # Seconds per step of the whole cluster, all workers counted; where the chief drives all, a step is one of each.
        return 1 / sum(row["steps_per_s"] * (1 if mode == "async" else workers) for row in rows)
    return measure


def tf_cluster(work, mode, ps, workers, batch=100, dialled=False):
    def measure(a):
        row = run([a.python, f"{HERE}/peers/tf_cluster.py", "--work", work, "--mode", mode, "--ps", str(ps), "--workers",
                   str(workers), "--batch", str(batch), "--seconds", str(a.seconds), *(["--dialled"] if dialled else [])])[0]
        return 1 / row["steps_per_s"]
    return measure


def torch_cluster(work, workers, batch=100):
    def measure(a):
        row = run([a.torch_python, f"{HERE}/peers/torch_ddp.py", "--work", work, "--workers", str(workers), "--batch", str(batch)])[0]
        return batch / row["samples_per_s"]
    return measure


def leat_all_reduce(mib, workers):
    def measure(a):
        row = run([f"{a.build}/bin/leat", "run", "--embed", f"local:worker={workers}", "--", f"{a.build}/bin/bench/all_reduce",
                   "--mib", str(mib), "--repeats", str(all_reduces(mib))])[0]
        return row["median_s"]
    return measure


def gloo_all_reduce(mib, workers):
    def measure(a):
        return run([a.torch_python, f"{HERE}/peers/torch_all_reduce.py", "--workers", str(workers), "--mib", str(mib),
                    "--repeats", str(all_reduces(mib))])[0]["median_s"]
    return measure


def mpi_all_reduce(mib, workers):
    def measure(a):
        if a.mpi_program is None:
            a.mpi_folder = tempfile.TemporaryDirectory()
            a.mpi_program = f"{a.mpi_folder.name}/all_reduce"
            subprocess.run(["mpicc", "-O2", f"{HERE}/peers/mpi_all_reduce.c", "-o", a.mpi_program], check=True)
        as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return run(["mpirun", "--oversubscribe", "-n", str(workers), a.mpi_program, str(mib), str(all_reduces(mib))],
                   as_root)[0]["median_s"]
    return measure


def all_reduces(mib):
    return max(30, 400 // mib)


def leat_model(model, batch, *args, on_cluster=False):
    def measure(a):
        launcher = [f"{a.build}/bin/leat", "run", "--embed", "local:ps=1,worker=1", "--"] if on_cluster else []
        return trained(a, "Leat", run([*launcher, f"{a.build}/bin/bench/models", "--model", model, "--batch", str(batch),
                                       "--seconds", str(a.seconds), *args])[0])
    return measure


def peer_model(name, script, python, model, batch, *args):
    def measure(a):
        return trained(a, name, run([getattr(a, python), f"{HERE}/peers/{script}", "--model", model, "--batch", str(batch),
                                     "--seconds", str(a.seconds), *args])[0])
    return measure


def trained(a, side, row):
    a.losses[side] = row["losses"]
    return row["median_s"]


TOLERANCE = 1e-4  # of losses, relative


def disagreement(losses):
    """What to say of two sides whose losses differ, else None."""
    if len(losses) < 2:
        return None
    (one, ours), (other, theirs) = losses.items()
    if len(ours) != len(theirs):
        return f"{one} printed {len(ours)} losses, {other} {len(theirs)}"
    for step, (x, y) in enumerate(zip(ours, theirs), 1):
        if not abs(x - y) <= TOLERANCE * max(abs(x), abs(y)) + 1e-6:  # not a number: neither
            return f"losses of step {step} differ by more than {TOLERANCE:g}: {one} {x:.7g}, {other} {y:.7g}"
    return None


LAYERS = {"lr": [10000, 1], "softmax": [784, 10], "snn": [784, 500, 10], "mlp": [784, 500, 500, 10]}


def step_needs(work, mode, workers, batch=100):
    """What one worker's step needs at least, whatever the program (README.md, "limit"): operations, bytes of examples and
    bytes of variables that are read or written."""
    sizes = LAYERS[work]
    products = [batch * a * b for a, b in zip(sizes, sizes[1:])]
    flops = 2 * (3 * sum(products) - products[0])  # forward, gradients of weights, those of inputs but the first
    variables = 4 * sum(a * b + b for a, b in zip(sizes, sizes[1:]))
    later = variables - 4 * sizes[0] * sizes[1]  # read again for the gradients of inputs
    worker = variables + later + variables  # weights read, gradients written
    update = 3 * variables  # gradients and weights read, weights written
    if mode == "sync":
        update = 2 * variables + update / workers  # each gradient is read and added to a sum; one update per step of all
    elif mode == "all-reduce" and workers > 1:
        update += 2 * (workers - 1) / workers * variables  # read from the others: parts of gradients, then of sums
    return flops, 4 * batch * sizes[0], worker + update


def limit(work, mode, workers):
    flops, examples, variables = step_needs(work, mode, workers)
    return lambda rates: (flops / rates["flops_per_s"] + examples / rates["memory_bytes_per_s"]
                          + variables / rates["cache_bytes_per_s"])


def all_reduce_limit(mib, workers):
    moved = 2 * workers * mib * (1 << 20)  # each worker's values read, its sums written
    return lambda rates: moved / rates["memory_bytes_per_s" if mib > 4 else "cache_bytes_per_s"]


def against(ours, peers, note="", least=None):
    """[(peer, its measure, Leat's measure, how Leat does it, the physical limit or None)]"""
    return [(name, theirs, ours, note, least) for name, theirs in peers.items()]


# name → (unit, [(peer, its measure, Leat's measure, how Leat does it, the physical limit or None)])
WORK = {
    "null_ops": ("node", against(leat_bench("chain_of_adds/10000", 10000), {
        "TensorFlow": peer("null_ops.py", "--peer", "tf", "--nodes", "10000"),
        "ONNX Runtime": peer("null_ops.py", "--peer", "ort", "--nodes", "10000"),
        "torch eager": peer("null_ops.py", "--peer", "torch", "--nodes", "10000", python="torch_python")})),
    "run_one": ("run", against(leat_bench("chain_of_adds/1"), {
        "TensorFlow": peer("null_ops.py", "--peer", "tf", "--nodes", "1"),
        "ONNX Runtime": peer("null_ops.py", "--peer", "ort", "--nodes", "1")})),
    "mlp_1": ("step", against(leat_bench("mlp_train_step/1"), {
        "torch eager": peer("torch_step.py", "--model", "mlp", "--batch", "1", python="torch_python")})),
    "mlp_64": ("step", against(leat_bench("mlp_train_step/64"), {
        "torch eager": peer("torch_step.py", "--model", "mlp", "--batch", "64", python="torch_python")})),
}
for _n in (1, 2, 4, 8):
    for _dialled in (False, True):  # whether a worker's program is its task, or dials it
        WORK["cluster_null" + (f"_{_n}" if _n > 1 else "") + ("_dialled" if _dialled else "")] = (
            "step", against(cluster("null", "async", 1, _n, dialled=_dialled),
                            {"TensorFlow": tf_cluster("null", "async", 1, _n, dialled=_dialled)}))
for _work in ("lr", "softmax", "snn", "mlp"):
    for _n in (1, 3, 5):
        for _mode in ("async", "sync"):
            _rows = against(cluster(_work, _mode, 1, _n), {"TensorFlow": tf_cluster(_work, _mode, 1, _n)}, "1 ps",
                            limit(_work, _mode, _n))
            if _mode == "sync":  # like against like: torch's is an all-reduce
                _rows += against(cluster(_work, "all-reduce", 0, _n), {"torch DDP": torch_cluster(_work, _n)}, "all-reduce",
                                 limit(_work, "all-reduce", _n))
            WORK[f"cluster_{_work}_{_n}_{_mode}"] = ("step", _rows)
for _mib in (1, 25):
    for _n in (2, 3, 4):
        WORK[f"all_reduce_{_mib}_{_n}"] = (f"{_mib} MiB", against(leat_all_reduce(_mib, _n), {
            "torch gloo": gloo_all_reduce(_mib, _n), "Open MPI": mpi_all_reduce(_mib, _n)},
            least=all_reduce_limit(_mib, _n)))
for _model in MODELS:
    for _batch in (1, 16, 64):
        WORK[f"model_{_model}_{_batch}"] = ("step", against(leat_model(_model, _batch), {
            "TensorFlow": peer_model("TensorFlow", "tf_models.py", "python", _model, _batch),
            "torch eager": peer_model("torch eager", "torch_models.py", "torch_python", _model, _batch)},
            least=lambda rates, limit=model_limit(_model, _batch): limit(rates["one_core"])))
    WORK[f"cluster_model_{_model}"] = ("step", against(leat_model(_model, 64, on_cluster=True), {
        "TensorFlow": peer_model("TensorFlow", "tf_models.py", "python", _model, 64, "--cluster", "--threads",
                                 str(os.cpu_count()))}, "1 ps", model_limit(_model, 64)))
    # On all cores in process: alone, and while another process computes on the last of them.
    for _name, _busy in (("threads", []), ("busy", ["--busy"])):
        _args = ["--threads", str(os.cpu_count()), *_busy]
        WORK[f"{_name}_model_{_model}"] = ("step", against(leat_model(_model, 64, *_args), {
            "TensorFlow": peer_model("TensorFlow", "tf_models.py", "python", _model, 64, *_args),
            "torch eager": peer_model("torch eager", "torch_models.py", "torch_python", _model, 64, *_args)}))
GROUPS = {"nulls": [name for name in WORK if name.startswith("cluster_null")],
          "seeds": [name for name in WORK if name.startswith(tuple(f"cluster_{work}_" for work in LAYERS))],
          "all_reduces": [name for name in WORK if name.startswith("all_reduce_")],
          "models": [f"model_{name}_64" for name in MODELS],
          **{f"models_{batch}": [f"model_{name}_{batch}" for name in MODELS] for batch in (1, 16)},
          **{f"{kind}_models": [f"{kind}_model_{name}" for name in MODELS] for kind in ("cluster", "threads", "busy")}}


def duration(seconds):
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("work", nargs="*", default=["null_ops", "run_one", "mlp_1", "mlp_64", "cluster_null"],
                    help="one or more of: " + " ".join(WORK) + "; groups of them: " + " ".join(GROUPS))
    ap.add_argument("--build", default="build/release")
    ap.add_argument("--python", default=sys.executable, help="a Python with tensorflow and onnxruntime")
    ap.add_argument("--torch-python", help="a Python with torch (default: the same)")
    ap.add_argument("--rounds", type=int, default=2, help="A B B A rounds")
    ap.add_argument("--seconds", type=float, default=5, help="of each measurement of networks and on a cluster (torch DDP takes 500 steps)")
    ap.add_argument("--only", help="only peers whose name contains this")
    a = ap.parse_args()
    a.torch_python = a.torch_python or a.python
    a.mpi_program = None  # compiled when it is needed
    a.work = [name for work in a.work for name in GROUPS.get(work, [work])]
    unknown = [name for name in a.work if name not in WORK]
    if unknown:
        ap.error(f"unknown work {', '.join(unknown)}; known: {' '.join(WORK)}")
    print(f"load average {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores, {a.rounds} rounds of A B B A\n")
    rates = None
    if any(row[4] for name in a.work for row in WORK[name][1]):
        rates = run([a.python, f"{HERE}/peers/machine_rates.py"])[0]
        rates["one_core"] = run([a.python, f"{HERE}/peers/machine_rates.py", "--cores", "1"])[0]
        for name, at in ((f"{rates['cores']} cores together", rates), ("one core alone", rates["one_core"])):
            print(f"{name}: {at['flops_per_s'] / 1e9:.0f} GFLOP/s, {at['memory_bytes_per_s'] / 1e9:.1f} GB/s of memory, "
                  f"{at['cache_bytes_per_s'] / 1e9:.0f} GB/s of caches")
        print()
    refused = []
    print("| work | Leat | peer | peer's time | ratio of medians | ratio of minima | limit | Leat / limit |\n|---|---|---|---|---|---|---|---|")
    for name in a.work:
        unit, rows = WORK[name]
        for other, theirs, ours, note, least in rows:
            if a.only and a.only.lower() not in other.lower():
                continue
            mine, others = [], []
            a.losses = {}  # of a network, by side
            for side, measure in ((mine, ours), (others, theirs), (others, theirs), (mine, ours)) * a.rounds:
                side.append(measure(a))
                if disagreement(a.losses):
                    break
            if disagreement(a.losses):
                refused.append(name)
                print(f"| {name} | refused: {disagreement(a.losses)} | {other} | | | | | |", flush=True)
                continue
            halves = [statistics.median(s[:len(s) // 2]) / statistics.median(s[len(s) // 2:]) for s in (mine, others)]
            drift = "" if all(0.9 < h < 1.1 for h in halves) else f" (halves differ: {halves[0]:.2f}, {halves[1]:.2f})"
            how = f" ({note})" if note else ""
            print(f"| {name}{how} | {duration(statistics.median(mine))} per {unit} | {other} | {duration(statistics.median(others))} "
                  f"| {statistics.median(others) / statistics.median(mine):.2f}{drift} | {min(others) / min(mine):.2f} "
                  + (f"| {duration(least(rates))} | {min(mine) / least(rates):.1f} |" if least else "| | |"), flush=True)
    if refused:
        sys.exit(f"refused, because the two sides do not compute the same: {' '.join(refused)}")


if __name__ == "__main__":
    main()

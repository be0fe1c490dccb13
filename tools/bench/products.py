#!/usr/bin/env python3
"""Compares Leat's products of f32 matrices with TensorFlow's, inside a graph, and with oneDNN's two ways, alone.

  tools/bench/products.py --build build/release --python PY [--rounds 2]

PY is a Python with tensorflow. In turn (A B B A), TensorFlow runs peers/tf_products.py in process, and a Leat task of one
thread runs the same graph; then bench/products runs once. Prints GFLOP/s, the most of all rounds, and the ratios Leat / other
(above 1: Leat is faster), the least first, and how many products are behind TensorFlow's by more than a tenth.
"""
import argparse
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

from compare import HERE, run


@contextlib.contextmanager
def leat_task(build):
    """A task of one thread; yields its target."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{s.getsockname()[1]}"
    with tempfile.NamedTemporaryFile("w", suffix=".json") as cluster:
        json.dump({"worker": [address]}, cluster)
        cluster.flush()
        task = subprocess.Popen([f"{build}/bin/leat", "task", cluster.name, "--job", "worker", "--task", "0", "--threads", "1"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 20
            while True:
                with contextlib.suppress(OSError), socket.create_connection(address.split(":"), timeout=1):
                    break
                if task.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"the task at {address} did not start within 20 s")
                time.sleep(0.05)
            yield f"grpc://{address}"
        finally:
            task.terminate()
            task.wait(timeout=20)


def tensorflow(a):
    return run([a.python, f"{HERE}/peers/tf_products.py"])


def leat(a):
    with leat_task(a.build) as target:
        return run([a.python, f"{HERE}/peers/tf_products.py", "--target", target])


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--build", default="build/release")
    ap.add_argument("--python", default=sys.executable, help="a Python with tensorflow")
    ap.add_argument("--rounds", type=int, default=1, help="A B B A rounds")
    a = ap.parse_args()
    print(f"load average {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores, {a.rounds} rounds of A B B A\n")
    ours, theirs = {}, {}
    for _ in range(a.rounds):
        for side, measure in ((ours, leat), (theirs, tensorflow), (theirs, tensorflow), (ours, leat)):
            for row in measure(a):
                side[row["product"]] = max(side.get(row["product"], 0), row["gflops"])
    done = subprocess.run([f"{a.build}/bin/bench/products"], capture_output=True, text=True, timeout=600, check=True)
    alone = {}
    for line in done.stdout.splitlines():
        m = re.match(r"\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d\d)\s+Leat\s+(\S+)\s+sgemm\s+(\S+)\s+primitive\s+(\S+)", line)
        if m:
            alone[" ".join(m.groups()[:4])] = [float(x) for x in m.groups()[4:]]
    print("In a graph: Leat, TensorFlow. Alone, operands out of the L2 cache: Leat, oneDNN's sgemm and matmul primitive.\n")
    print("| m n k, transposed a b | Leat | TensorFlow | ratio | alone | sgemm | primitive | alone / the better |\n|---|---|---|---|---|---|---|---|")
    rows = sorted((ours[p] / theirs[p], p) for p in theirs)
    for ratio, product in rows:
        kernel, sgemm, primitive = alone.get(product, (0, 0, 0))
        print(f"| {product} | {ours[product]:.0f} | {theirs[product]:.0f} | {ratio:.2f} | {kernel:.0f} | {sgemm:.0f} | {primitive:.0f} "
              f"| {kernel / max(sgemm, primitive, 1e-9):.2f} |")
    print(f"\n{sum(ratio < 0.9 for ratio, _ in rows)} of {len(rows)} behind TensorFlow by more than a tenth")


if __name__ == "__main__":
    main()

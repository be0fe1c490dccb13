"""What all cores of this machine do together at best: float32 products, and bytes read and written, in memory and in
caches.

  python3 machine_rates.py
  python3 machine_rates.py --cores 1    # one core, the others idle

One process per core, all at the same time, each with a product of two matrices of 1,000 x 1,000 (NumPy's BLAS, one thread)
then with copies of 64 MB and of 1 MB. Each process reports its least time; the rates are sums over the processes.
"""
import argparse
import json
import multiprocessing as mp
import os
import time

import common


def least(fn, seconds=1, times=40):
    best, end, done = float("inf"), time.perf_counter() + seconds, 0
    while done < times or time.perf_counter() < end:
        done += 1
        start = time.perf_counter()
        fn()
        best = min(best, time.perf_counter() - start)
    return best


def core_main(barrier, queue):
    common.limit_threads(1)
    import numpy as np
    a = np.ones((1000, 1000), np.float32)
    c = np.empty_like(a)
    source, target = np.ones(16 << 20, np.float32), np.zeros(16 << 20, np.float32)
    few, there = source[:1 << 18], target[:1 << 18]
    barrier.wait()
    flops = 2 * 1000 ** 3 / least(lambda: np.matmul(a, a, out=c))
    barrier.wait()
    memory = 2 * source.nbytes / least(lambda: np.copyto(target, source))  # read and written
    barrier.wait()
    cache = 2 * few.nbytes / least(lambda: np.copyto(there, few))
    queue.put((flops, memory, cache))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="how many (default: all)")
    cores = ap.parse_args().cores
    ctx = mp.get_context("spawn")
    barrier, queue = ctx.Barrier(cores), ctx.Queue()
    procs = [ctx.Process(target=core_main, args=(barrier, queue)) for _ in range(cores)]
    for p in procs:
        p.start()
    got = [queue.get(timeout=60) for _ in procs]
    for p in procs:
        p.join(20)
    print(json.dumps({"bench": "machine_rates", "cores": cores, "flops_per_s": sum(g[0] for g in got),
                      "memory_bytes_per_s": sum(g[1] for g in got), "cache_bytes_per_s": sum(g[2] for g in got)}), flush=True)


if __name__ == "__main__":
    main()

"""All-reduce of one tensor over gloo, between processes of one host.

  python3 torch_all_reduce.py --workers 3 --mib 25 --repeats 100

Every process has a tensor of so many MiB and sums it in place (torch.distributed.all_reduce); prints rank 0's times.
"""
import argparse
import os
import time

import common


def rank_main(rank, a, port, queue):
    common.limit_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=a.workers)
    values = torch.full((int(a.mib * (1 << 20)) // 4,), float(rank + 1))
    dist.all_reduce(values)
    expected = a.workers * (a.workers + 1) / 2
    assert values.min() == expected and values.max() == expected
    values.zero_()  # stays 0: what grew would become infinite
    times = []
    for i in range(-10, a.repeats):
        t = time.perf_counter()
        dist.all_reduce(values)
        if i >= 0:
            times.append(time.perf_counter() - t)
    if rank == 0:
        queue.put(sorted(times))
    dist.barrier()
    dist.destroy_process_group()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--mib", type=float, default=1)
    ap.add_argument("--repeats", type=int, default=200)
    a = ap.parse_args()
    times = common.run_ranks(rank_main, a.workers, 1, a)[0]
    import torch
    common.report("all_reduce", f"torch {torch.__version__} gloo", vars(a), times, "all-reduce")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Instructions per node of a chain of additions of 8 floats, counted by valgrind's callgrind: the difference between many
runs and few, divided by the difference in nodes, so that start and compilation cancel out. Exactly repeatable.

  tools/bench/instructions.py [--build build/release] [--nodes 1000]
"""
import argparse
import re
import subprocess
import sys
import tempfile


def count(program, nodes, runs):
    with tempfile.NamedTemporaryFile() as out:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", program, str(nodes), str(runs)],
                              capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr[-3000:])
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--build", default="build/release")
    ap.add_argument("--nodes", type=int, default=1000)
    a = ap.parse_args()
    program, few, many = f"{a.build}/bin/bench/null_chain", 100, 1100
    per_run = (count(program, a.nodes, many) - count(program, a.nodes, few)) / (many - few)
    per_call = (count(program, 1, many) - count(program, 1, few)) / (many - few)
    print(f"a run of 1 node: {per_call:.1f} instructions")
    print(f"each further node: {(per_run - per_call) / (a.nodes - 1):.1f} instructions ({a.nodes} nodes)")


if __name__ == "__main__":
    main()

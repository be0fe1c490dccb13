#!/usr/bin/env python3
"""Checks that the elementwise loops of floats became vector instructions.

  vector_instructions.py LIBRARY [OBJDUMP]

A loop that computes with scalar instructions alone is as right as one with vectors, and 3 to 6 times slower: nothing else
shows that a flag of the compiler, or a branch in a functor, has cost it its vectors. LIBRARY is libleat.so, as g++ makes it
for x86-64. Prints the loops that are scalar; the exit status is 1 if there is one that is not in SCALAR.
"""
import argparse
import re
import subprocess
import sys

# fmod() has no vector form, and halves are rounded one by one.
SCALAR = re.compile(r"\bFloorMod\b|\bRoundedQuotient<.*half>|\bNextAfter\b")
LOOP = re.compile(r"^[0-9a-f]+ <leat::cpu::Row<\d+u, (.*)>::(avx2|avx512)\(void const\*, long, void\*, void const\* const\*\)>:$")
ARITHMETIC = re.compile(r"\tv?(add|sub|mul|div|sqrt|min|max|rndscale|round|fn?m(add|sub)\d+|ucomi|comi)s[sd]\b")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("library")
    ap.add_argument("objdump", nargs="?", default="objdump")
    a = ap.parse_args()
    loops, scalar, name = 0, [], None
    is_vector = is_scalar = False

    def end():
        if name is not None and is_scalar and not is_vector:
            scalar.append(name)

    listing = subprocess.Popen([a.objdump, "--disassemble", "--demangle", "--no-show-raw-insn", a.library],
                               stdout=subprocess.PIPE, text=True)
    for line in listing.stdout:
        if line.endswith(">:\n"):
            end()
            found = LOOP.match(line.rstrip("\n"))
            name = None
            if found and re.search(r"\b(float|double|half|bfloat16)\b", found[1]) and "complex" not in found[1]:
                name = f"{found[1].replace('(anonymous namespace)::', '')} ({found[2]})"
                loops += 1
            is_vector = is_scalar = False
        elif name is not None:
            is_vector = is_vector or "%ymm" in line or "%zmm" in line
            is_scalar = is_scalar or ARITHMETIC.search(line) is not None
    end()
    if listing.wait() != 0 or loops < 500:
        sys.exit(f"{a.objdump} lists {loops} elementwise loops of floats in {a.library}, not some thousand: is it another library?")
    unknown = [loop for loop in scalar if not SCALAR.search(loop)]
    for loop in unknown:
        print("scalar:", loop)
    print(f"{loops} loops, {len(scalar)} scalar, {len(unknown)} of them unexpectedly")
    sys.exit(1 if unknown else 0)


if __name__ == "__main__":
    main()

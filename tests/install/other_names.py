#!/usr/bin/env python3
"""Compiles other_names.cc and compares the error of each line with what is written beside it.

  other_names.py INCLUDE COMPILER
"""

import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).parent / "other_names.cc"


def main():
    include, compiler = sys.argv[1:]
    # The errors come with code generation: -fsyntax-only does not have them.
    result = subprocess.run([compiler, "-std=c++20", "-c", "-o", "/dev/null", f"-I{include}", f"-I{SOURCE.parents[2]}",
                             str(SOURCE)], capture_output=True, text=True)
    errors = {}
    for line, text in re.findall(r"other_names\.cc:(\d+):\d+: error: (.*)", result.stderr):
        errors.setdefault(int(line), []).append(text)
    expected = {number: line.split("// ")[-1] for number, line in enumerate(SOURCE.read_text().split("\n"), 1)
                if "// write " in line}
    wrong = [f"{SOURCE.name}:{number}: expected '{text}', got {errors.get(number, 'no error')}"
             for number, text in expected.items()
             if not any(error.endswith(text) for error in errors.get(number, []))]
    wrong += [f"{SOURCE.name}:{number}: {texts}" for number, texts in errors.items() if number not in expected]
    for text in wrong:
        print(text, file=sys.stderr)
    print(f"{len(expected)} names, {len(wrong)} wrong")
    return 1 if wrong or len(expected) < 30 else 0


if __name__ == "__main__":
    sys.exit(main())

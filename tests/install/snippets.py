#!/usr/bin/env python3
"""Compiles what headers and READMEs show.

A snippet of a public header is a run of comment lines indented by two columns or more beyond their text, in which a
statement ends with ";". One of a README is a block ```cpp. Each becomes a function of one source file, whose context.h
declares what snippets speak of (x, loss, graph, ...); a block with #include lines is a source file of its own, and one
that begins with "// leat:" is a kernel, whose paragraphs must stand in one file of kernels/.

  snippets.py SOURCE INCLUDE COMPILER [FLAG ...]
"""

import pathlib
import re
import subprocess
import sys
import tempfile

INDENTED = re.compile(r"^\s*//( {3,})\S")
STATEMENT = re.compile(r";\s*(//.*)?$", re.MULTILINE)
FORMULA = re.compile(r"[·√]")


def header_snippets(text):
    """(line, code) of each snippet."""
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        first = number
        while number < len(lines) and INDENTED.match(lines[number]):
            number += 1
        if number > first:
            code = "\n".join(line.lstrip()[2:] for line in lines[first:number])
            if STATEMENT.search(code) and not FORMULA.search(code):
                yield first + 1, code
        else:
            number += 1


def readme_blocks(text):
    """(line, code) of each block of C++."""
    for match in re.finditer(r"^```cpp\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, match.start()) + 2, match.group(1)


def functions(snippets):
    parts = ['#include "context.h"\n']
    for number, (file, line, code) in enumerate(snippets):
        parts.append(f'void snippet_{number}() {{\n#line {line} "{file}"\n{code}\n}}\n')
    return "".join(parts)


def public_headers(include):
    """(file as in the source tree, its text)"""
    for path in sorted(include.glob("leat/**/*.h")):
        yield str(path.relative_to(include / "leat")), path.read_text()


def collect(source, include):
    inner, whole, wrong = [], [], []
    for name, text in public_headers(include):
        inner += [(name, line, code) for line, code in header_snippets(text)]
    kernels = [path.read_text() for kind in ("*.cc", "*.h") for path in (source / "kernels").rglob(kind)]
    readmes = subprocess.run(["git", "-C", source, "ls-files", "*.md"], capture_output=True, text=True)
    paths = readmes.stdout.split() or [str(p.relative_to(source)) for p in source.glob("*/**/README.md")]
    for name in paths:
        for line, code in readme_blocks((source / name).read_text()):
            if code.startswith("// leat:"):
                paragraphs = code.strip().split("\n\n")
                for each in paragraphs:
                    if not any(each in kernel for kernel in kernels):
                        wrong.append(f"{name}:{line}: no file of kernels/ has this paragraph:\n{each}")
            elif "#include" in code:
                whole.append((name, line, code))
            else:
                inner.append((name, line, code))
    return inner, whole, wrong


def main():
    source, include, compiler, *flags = sys.argv[1:]
    source, include = pathlib.Path(source), pathlib.Path(include)
    inner, whole, wrong = collect(source, include)
    if len(inner) < 20 or not whole:
        wrong.append(f"found only {len(inner)} snippets and {len(whole)} programs: are the paths right?")
    with tempfile.TemporaryDirectory() as scratch:
        files = [(pathlib.Path(scratch) / "snippets.cc", functions(inner))]
        files += [(pathlib.Path(scratch) / f"program_{i}.cc", f'#line {line} "{name}"\n{code}')
                  for i, (name, line, code) in enumerate(whole)]
        for path, text in files:
            path.write_text(text)
        here = pathlib.Path(__file__).parent
        command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wno-unused-variable",
                   "-Wno-unused-but-set-variable", f"-I{include}", f"-I{here}", *flags]
        for path, _ in files:
            result = subprocess.run([*command, str(path)], capture_output=True, text=True)
            if result.returncode != 0:
                wrong.append(result.stderr)
    for text in wrong:
        print(text, file=sys.stderr)
    print(f"{len(inner)} snippets and {len(whole)} programs, {len(wrong)} errors")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

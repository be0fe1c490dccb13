#!/usr/bin/env python3
"""Checks which folders may include which.

core <- graph <- kernels; core, graph <- runtime <- distributed <- frontends <- tools, tests. Kernels and runtime
never include each other: they meet in core/kernel.h. Rooms of a folder have an order, too (ROOMS). gRPC, protobuf, CUDA
and a few other libraries have owners.

Prints `file:line: rule` and what to do. Exit status 1 if a rule is broken. Files over 800 lines are reported only.
"""

import argparse
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

MAY_INCLUDE = {
    "core": {"core"},
    "graph": {"core", "graph"},
    "kernels": {"core", "graph", "kernels"},
    "runtime": {"core", "graph", "runtime"},
    "distributed": {"core", "graph", "runtime", "distributed"},
    "frontends": {"core", "graph", "runtime", "distributed", "frontends"},
    "tools": {"core", "graph", "kernels", "runtime", "distributed", "frontends", "tools"},
    "tests": {"core", "graph", "kernels", "runtime", "distributed", "frontends", "tools", "tests"},
}
ROOMS = [  # files, what they do not include, why
    (r"graph/(?!passes/)", r"graph/passes/", "passes know graphs, loops, functions and GraphDefs; none of these knows a pass"),
    (r"kernels/(moves/)?[^/]+$", r"kernels/(?!cuda/|moves/)[^/]+/", "what kernels share knows no op: move it up, or into the room of its one user"),
    (r"distributed/grpc/", r"distributed/(?!grpc/)", "the transport carries bytes and uses nothing of what lies above it"),
    (r"distributed/wire/", r"distributed/(cluster|worker|master)/", "the wire carries what it is given, whoever speaks"),
    (r"distributed/cluster/", r"distributed/(worker|master)/", "who is there is known without knowing what they do"),
    (r"distributed/worker/", r"distributed/master/", "a worker serves any master: put what both need into distributed/"),
]
LIBRARY = {"core", "graph", "kernels", "runtime", "distributed", "frontends"}  # what libleat.so is made of
SOURCES = {".h", ".cc", ".cu", ".cuh"}
MAX_LINES = 800

GRPC = re.compile(r"^(grpc|grpcpp|grpc\+\+)/|\.grpc\.pb\.h$")
PROTOBUF = re.compile(r"^google/protobuf/|\.pb\.h$")
GENERATED = re.compile(r"\.pb\.h$")
CUDA = re.compile(
    r"^(cuda|cublas|cudnn|cufft|curand|cusolver|cusparse|cupti|nvrtc|nvml|nvtx3?|nccl|device_launch_parameters"
    r"|device_functions|cooperative_groups|mma\.h|sm_\d|vector_types|nv/|cub/|thrust/|cutlass/|cute/)|\.cuh$")
DNNL = re.compile(r"^(oneapi/dnnl/|dnnl)")
EIGEN = re.compile(r"^(eigen3/)?(unsupported/)?Eigen/")
EIGEN_OWNER = "kernels/linear_algebra/dense_eigen.h"  # which renames its namespace for each set of instructions
FOREIGN = re.compile(r"^(absl|fmt|nlohmann|CLI|boost|re2|openssl)/|^(zlib|zconf)\.h$")
OWNED = {  # one .cc file each
    "httplib": re.compile(r"^httplib"),
    "LevelDB": re.compile(r"^leveldb/"),
    "Snappy": re.compile(r"^snappy\.h$"),
    "Graphviz": re.compile(r"^graphviz/|^(gvc|cgraph|gvplugin)\.h$"),
    "prometheus-cpp": re.compile(r"^prometheus/"),
    "spdlog": re.compile(r"^spdlog/"),
    "NCCL": re.compile(r"^nccl\.h$"),
}

# Files are opened in two places; what does it on their behalf says which files may be reached.
FILE_FOLDERS = {"core", "graph", "kernels", "runtime"}
FILE_OWNERS = {"core/file_roots.cc", "graph/formats/file.cc"}
FIXED_FILES = {f"core/memory/{name}.cc" for name in
               ("control_groups", "host_memory", "memory_limit", "shared_region")}  # of /proc and /sys
OPENS = re.compile(
    r"\b(f|fre|fd|p)open\s*\(|\b[io]?fstream\b|(?<![\w>])::(open|openat|openat2|creat|rename|renameat|link|linkat|symlink|unlink"
    r"|unlinkat|mkdir|mkdirat|rmdir|remove|truncate|access|stat|lstat|chmod)\s*\(|\bstd::filesystem\b|\bmk[ds]temp\s*\("
    r"|\b(opendir|glob|nftw)\s*\(|<(filesystem|fstream|glob\.h|ftw\.h)>|\bEnv::Default\b")
TAKES_ROOTS = re.compile(r"\b(\w+)\((?:[^();]|\([^()]*\))*?const FileRoots& roots(?: = any_file)?\)")
MEMBERS = {"read": "CheckpointIndex|CheckpointState", "write": "", "open": "V1Checkpoint"}  # static, of these classes
COMMENT = re.compile(r"//.*")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)")
DUAL = re.compile(r"^// leat:.*cpu\+cuda")


@dataclass
class Include:
    line: int
    quoted: bool
    path: str
    cuda_only: bool  # inside #ifdef __CUDACC__


def read_includes(lines):
    """The #include lines, each with whether only nvcc sees it."""
    stack = []  # per open #if: does this branch need __CUDACC__?
    for number, line in enumerate(lines, 1):
        if condition := CONDITION.match(line):
            word, rest = condition.groups()
            names_cuda = "__CUDACC__" in rest
            negated = word == "ifndef" or re.search(r"!\s*(defined\b\s*)?\(?\s*__CUDACC__", rest) is not None
            if word in ("if", "ifdef", "ifndef"):
                stack.append([names_cuda and not negated, names_cuda and negated])
            elif word == "elif" and stack:
                stack[-1] = [names_cuda and not negated, False]
            elif word == "else" and stack:
                stack[-1] = [stack[-1][1], False]  # the other branch of #ifndef __CUDACC__
            elif word == "endif" and stack:
                stack.pop()
        elif include := INCLUDE.match(line):
            yield Include(number, include[1] == '"', include[2], any(branch[0] for branch in stack))


class Checker:
    def __init__(self, root):
        self.root = root
        self.errors = []  # (file, line, text)
        self.notes = []
        self.owners = {name: {} for name in OWNED}  # library -> {file: first line}
        self.openers = set()  # functions and classes that take the roots of files that may be reached

    def error(self, file, line, rule, advice):
        self.errors.append((str(file), line, f"{rule}\n    {advice}"))

    def check_tree(self):
        for path in sorted((self.root / "graph/formats").glob("*.h")):
            self.openers |= set(TAKES_ROOTS.findall(path.read_text(encoding="utf-8"))) - set(MEMBERS)
        for folder in MAY_INCLUDE:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in SOURCES and path.is_file():
                    self.check_file(path)
        for name, files in self.owners.items():
            first, *others = sorted(files.items()) or [None]
            for file, line in others:
                self.error(file, line, f"{name} is included by two files: {first[0]} and this one",
                           f"call what {first[0]} offers, or move the use of {name} there")

    def check_file(self, path):
        file = path.relative_to(self.root)
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        if len(lines) > MAX_LINES:
            self.notes.append((str(file), len(lines), f"{len(lines)} lines; a file over {MAX_LINES} is two files"))
        dual = bool(lines) and DUAL.match(lines[0]) is not None
        for include in read_includes(lines):
            self.check_include(file, dual, include)
        if file.parts[0] in FILE_FOLDERS and str(file) not in FILE_OWNERS | FIXED_FILES:
            self.check_files(file, [COMMENT.sub("", line) for line in lines])

    def check_files(self, file, lines):
        for number, line in enumerate(lines, 1):
            if found := OPENS.search(line):
                self.error(file, number, f"a file is reached past graph/formats/file.h ({found[0]})",
                           "use what it offers, with files_of(device): a task may be limited to some directories")
        if not (file.suffix == ".cc" and (file.parts[0] == "kernels" or file.parts[:2] == ("graph", "formats"))):
            return
        text = "\n".join(lines)
        names = sorted(self.openers) + [f"(?:{owners})::{name}" for name, owners in MEMBERS.items() if owners]
        for call in re.finditer(r"(?<!~)\b(" + "|".join(names) + r")\b>?(?: \w+)?\(", text):
            depth, end = 1, call.end()
            while depth > 0 and end < len(text):
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            arguments = text[call.end():end]
            if not re.search(r"roots|files_of", arguments):
                self.error(file, text.count("\n", 0, call.start()) + 1, f"{call[1]} is not told which files may be reached",
                           "give it files_of(device), or the FileRoots that the caller was given")

    def check_include(self, file, dual, include):
        folder = file.parts[0]
        header = file.suffix in (".h", ".cuh")
        in_grpc = file.parts[:2] == ("distributed", "grpc")
        nvcc_reads = file.suffix in (".cu", ".cuh") or dual
        line, path = include.line, include.path

        target = path.split("/")[0]
        if include.quoted and target in MAY_INCLUDE and "/" in path:
            if target not in MAY_INCLUDE[folder]:
                allowed = ", ".join(name for name in MAY_INCLUDE if name in MAY_INCLUDE[folder])
                advice = f"{folder}/ may include only {allowed}: move the declaration down, or pass it in as an argument"
                if {folder, target} == {"kernels", "runtime"}:
                    advice = "kernels and runtime meet in core/kernel.h: put the contract there"
                self.error(file, line, f"{folder}/ includes {target}/ ({path})", advice)
        elif include.quoted and (self.root / file.parent / path).exists():
            self.error(file, line, f"include relative to the file: {path}",
                       f"write the path from the root of the repository: \"{(file.parent / path).as_posix()}\"")

        for files, others, why in ROOMS if include.quoted else []:
            if re.match(files, file.as_posix()) and re.match(others, path):
                self.error(file, line, f"{file.parent.as_posix()}/ includes {path.rsplit('/', 1)[0]}/ ({path})", why)

        if GRPC.search(path) and not in_grpc:
            self.error(file, line, f"gRPC outside distributed/grpc/ ({path})",
                       "use the transport's own interface; only libleat_transport.so links gRPC")
        elif PROTOBUF.search(path):
            if header and not in_grpc:
                self.error(file, line, f"protobuf in a header ({path})",
                           "declare plain structs, and include the generated header in the .cc that owns the format")
            elif GENERATED.search(path) and (folder not in LIBRARY or "examples" in file.parts):
                self.error(file, line, f"generated protobuf code outside libleat.so ({path})",
                           "its symbols are hidden in libleat.so and do not link: use the function that owns the format")
            elif nvcc_reads:
                self.error(file, line, f"protobuf in a file that nvcc compiles ({path})",
                           "move this part into a .cc file without the cpu+cuda marker")

        if CUDA.search(path) and not nvcc_reads and not include.cuda_only:
            self.error(file, line, f"CUDA header outside the plug-in ({path})",
                       "move the code into a .cu or .cuh file; in a header shared with g++, put the include under "
                       "#ifdef __CUDACC__")
        if DNNL.search(path):
            if folder != "kernels" and file.parts[:2] != ("tools", "bench"):  # benchmarks compare with it
                self.error(file, line, f"oneDNN outside kernels/ ({path})", "wrap what is needed in a kernel")
            elif nvcc_reads:
                self.error(file, line, f"oneDNN in a file that nvcc compiles ({path})",
                           "move the CPU kernel into a .cc file without the cpu+cuda marker")
        if EIGEN.search(path) and str(file) != EIGEN_OWNER:
            self.error(file, line, f"Eigen outside {EIGEN_OWNER} ({path})", "add what is needed to kernels/linear_algebra/dense.h")
        if FOREIGN.search(path):
            if header and folder in LIBRARY and not in_grpc and "examples" not in file.parts:
                self.error(file, line, f"third-party library in a public header ({path})",
                           "public headers show the standard library and our own types: move the include into the .cc")
            elif nvcc_reads and path.startswith("absl/"):
                self.error(file, line, f"Abseil in a file that nvcc compiles ({path})", "use the standard library here")
        for name, pattern in OWNED.items():
            if pattern.search(path):
                if header:
                    self.error(file, line, f"{name} in a header ({path})", "hide it behind an interface in one .cc file")
                else:
                    self.owners[name].setdefault(str(file), line)


def check(root):
    checker = Checker(root)
    checker.check_tree()
    return checker


# file, text, the rule it breaks ("" for none)
EXAMPLES = [
    ("core/tensor.h", '#include <vector>\n#include "core/shape.h"\n', ""),
    ("core/status.cc", '#include "graph/graph.h"\n', "core/ includes graph/"),
    ("graph/pass.cc", '#include "core/tensor.h"\n#include "graph/proto/graph.pb.h"\n', ""),
    ("graph/pass.h", '#include "graph/proto/graph.pb.h"\n', "protobuf in a header"),
    ("kernels/relu.cc", '#include "runtime/tape.h"\n', "kernels/ includes runtime/"),
    ("runtime/tape.cc", '#include "kernels/relu.h"\n', "runtime/ includes kernels/"),
    ("runtime/near.cc", '#include "tape.h"\n', "include relative to the file"),
    ("runtime/tape.h", "", ""),
    ("runtime/master.cc", '#include "distributed/master.h"\n', "runtime/ includes distributed/"),
    ("distributed/master.cc", "#include <grpcpp/grpcpp.h>\n", "gRPC outside distributed/grpc/"),
    ("distributed/worker.cc", '#include "distributed/proto/worker.grpc.pb.h"\n', "gRPC outside distributed/grpc/"),
    ("distributed/grpc/server.h", '#include <grpcpp/grpcpp.h>\n#include <google/protobuf/arena.h>\n', ""),
    ("frontends/cpp/nn.h", "#include <fmt/core.h>\n", "third-party library in a public header"),
    ("frontends/cpp/nn.cc", "#include <fmt/core.h>\n", ""),
    ("frontends/cpp/examples/common/flags.h", "#include <CLI/CLI.hpp>\n", ""),
    ("frontends/cpp/op.cc", '#include "kernels/relu.h"\n', "frontends/ includes kernels/"),
    ("tests/graph/text_test.cc", '#include "graph/proto/graph.pb.h"\n', "generated protobuf code outside libleat.so"),
    ("tests/graph/text2_test.cc", '#include "kernels/relu.h"\n#include "tests/support/cluster.h"\n', ""),
    ("tools/leat/main.cc", '#include "tests/support/cluster.h"\n', "tools/ includes tests/"),
    ("runtime/device.cc", "#include <cuda_runtime.h>\n", "CUDA header outside the plug-in"),
    ("runtime/cuda/device.cu", "#include <cuda_runtime.h>\n#include <cub/cub.cuh>\n", ""),
    ("kernels/exp.cc", "// leat: cpu+cuda\n#include <cuda_bf16.h>\n", ""),
    ("kernels/both.h", '#ifdef __CUDACC__\n#include "kernels/launch.cuh"\n#else\n#include <vector>\n#endif\n', ""),
    ("kernels/other.h", '#ifndef __CUDACC__\n#include <vector>\n#else\n#include <cuda_fp16.h>\n#endif\n', ""),
    ("kernels/wrong.h", '#ifdef __CUDACC__\n#else\n#include <cuda_fp16.h>\n#endif\n', "CUDA header outside the plug-in"),
    ("kernels/wrong2.h", '#if !defined(__CUDACC__)\n#include <cuda_fp16.h>\n#endif\n', "CUDA header outside the plug-in"),
    ("kernels/matmul.cc", "#include <oneapi/dnnl/dnnl.hpp>\n", ""),
    ("kernels/dual.cc", "// leat: cpu+cuda\n#include <oneapi/dnnl/dnnl.hpp>\n", "oneDNN in a file that nvcc compiles"),
    ("runtime/matmul.cc", "#include <dnnl.hpp>\n", "oneDNN outside kernels/"),
    ("kernels/linear_algebra/dense_eigen.h", "#include <Eigen/LU>\n", ""),
    ("kernels/linear_algebra/solve.cc", "#include <Eigen/LU>\n", "Eigen outside kernels/linear_algebra/dense_eigen.h"),
    ("tools/bench/matmul.cc", "#include <dnnl.hpp>\n", ""),
    ("graph/passes/simplify/fold.cc", '#include "graph/import/graph_def.h"\n', ""),
    ("graph/import/graph_def.cc", '#include "graph/passes/simplify/fold.h"\n', "graph/import/ includes graph/passes/"),
    ("kernels/math/exp.cc", '#include "kernels/elementwise.h"\n#include "kernels/random/philox.h"\n', ""),
    ("kernels/elementwise.h", '#include "kernels/random/philox.h"\n', "kernels/ includes kernels/random/"),
    ("kernels/launch.cuh", '#include "kernels/cuda/device.cuh"\n', ""),
    ("kernels/moves/moves.h", '#include "kernels/state/update_rule.h"\n', "kernels/moves/ includes kernels/state/"),
    ("distributed/master/step.cc", '#include "distributed/worker/worker.h"\n#include "distributed/timer.h"\n', ""),
    ("distributed/worker/step.cc", '#include "distributed/master/master.h"\n', "distributed/worker/ includes distributed/master/"),
    ("distributed/cluster/tls.cc", '#include "distributed/worker/worker.h"\n', "distributed/cluster/ includes distributed/worker/"),
    ("distributed/wire/frame.cc", '#include "distributed/cluster/tls.h"\n', "distributed/wire/ includes distributed/cluster/"),
    ("kernels/a.cu", "#include <nccl.h>\n", ""),
    ("kernels/b.cu", "#include <nccl.h>\n", "NCCL is included by two files"),
    ("graph/formats/lines.h", "std::string lines_of(const std::string& path, const FileRoots& roots = any_file);\n", ""),
    ("kernels/lines.cc", "auto lines = lines_of(path, files_of(c.device()));\n", ""),
    ("kernels/lines2.cc", "auto lines = lines_of(local(path));\n", "lines_of is not told which files"),
    ("kernels/lines3.cc", "std::ifstream file(path);  // fopen\n", "a file is reached past graph/formats/file.h"),
    ("graph/formats/file.cc", "int d = ::open(path, 0);\n", ""),
    ("runtime/file.cc", "int d = ::open(path, 0);\n", "a file is reached past graph/formats/file.h"),
    ("distributed/file.cc", "int d = ::open(path, 0);\n", ""),
    ("tools/viz/svg.cc", "#include <graphviz/gvc.h>\n", ""),
    ("tools/viz/svg.h", "#include <gvc.h>\n", "Graphviz in a header"),
]


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for file, text, _ in EXAMPLES:
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text(text)
        (root / "core/long.cc").write_text("\n" * (MAX_LINES + 1))
        checker = check(root)
        failures = 0
        for file, _, rule in EXAMPLES:
            found = [text for name, _, text in checker.errors if name == file]
            if (rule and not (len(found) == 1 and found[0].startswith(rule))) or (not rule and found):
                print(f"{file}: expected '{rule or 'no error'}', got {found}")
                failures += 1
        if [name for name, _, _ in checker.notes] != ["core/long.cc"]:
            print(f"core/long.cc: expected a note on its length, got {checker.notes}")
            failures += 1
    print(f"{len(EXAMPLES) + 1} examples, {failures} failures")
    return failures == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true", help="check the checker on examples of every rule")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    if arguments.self_test:
        return 0 if self_test() else 1
    checker = check(arguments.root)
    for file, line, text in checker.notes:
        print(f"{file}:{line}: note: {text}")
    for file, line, text in sorted(checker.errors):
        print(f"{file}:{line}: {text}")
    if checker.errors:
        print(f"{len(checker.errors)} broken rules")
    return 1 if checker.errors else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env bash
# Trains MNIST on a small cluster of local processes and draws the partitioned graph.
#   tools/demo.sh [--data DIR] [arguments of bin/examples/mnist]
# DIR holds the four MNIST files (train-images-idx3-ubyte.gz, …).
set -euo pipefail
data=
arguments=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --data) data=$(realpath -e -- "${2:?--data needs a folder}"); shift 2 ;;
    --data=*) data=$(realpath -e -- "${1#*=}"); shift ;;
    -h | --help) sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) arguments+=("$1"); shift ;;
  esac
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
build=build/release
output=$build/demo
[[ -n $data ]] && arguments=(--data "$data" "${arguments[@]}")

stage() { echo "== $1 (${SECONDS}s)"; }

stage "setup"
tools/setup.sh
stage "configure $build"
cmake --preset release
stage "build"
cmake --build --preset release --target leat_demo
mkdir -p "$output"

stage "train"
"$build/bin/leat" run tools/demo/cluster.json --log-dir "$output/logs" -- \
  "$build/bin/examples/mnist" --graph "$output/graph.pb" "${arguments[@]}"
stage "draw"
"$build/bin/leat" viz "$output/graph.pb" --title "MNIST, one training step" -o "$output/graph.svg"
"$build/bin/leat" viz "$output/graph.pb" --title "MNIST, one training step" -o "$output/graph.png"
stage "done: the graph as it ran is $output/graph.svg"

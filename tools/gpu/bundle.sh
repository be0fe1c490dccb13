#!/usr/bin/env bash
# Packs what a machine with a GPU needs to test and measure Leat into one folder, to be copied there.
#   tools/gpu/bundle.sh [--build build/release] [OUT]
# OUT (default: build/gpu_bundle) gets run.sh, peers/ and bundle.tar.xz. On the other machine: OUT/run.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=build/release out=build/gpu_bundle
while [[ $# -gt 0 ]]; do
  case $1 in
    --build) build=${2:?--build needs a folder}; shift 2 ;;
    -h | --help) sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) echo "bundle.sh: unknown option $1; see --help" >&2; exit 2 ;;
    *) out=$1; shift ;;
  esac
done
programs=(bin/leat bin/examples/mnist bin/examples/convolution bin/examples/char_lstm bin/bench/models
  bin/bench/all_reduce tests/leat_kernels_test)
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
cmake --build "$build" --target leat_demo example_convolution example_char_lstm bench_models bench_all_reduce \
  leat_kernels_test
[[ -e $build/lib/libleat_cuda.so ]] || {
  echo "bundle.sh: $build has no lib/libleat_cuda.so: configure where nvcc and the CUDA libraries are" >&2
  exit 1
}

staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
mkdir -p "$staged/lib"
for program in "${programs[@]}"; do
  install -D "$build/$program" "$staged/$program"
done
install "$build/lib/libleat_cuda.so" "$staged/lib/"
# What they link, but for the C and C++ runtime, which every Linux newer than this one has, and NVIDIA's.
runtime='^(ld-linux|lib(c|m|mvec|dl|rt|pthread|resolv|stdc\+\+|gcc_s)\.so)'
nvidia='^lib(cu|nv|nccl|cudnn)'
export LD_LIBRARY_PATH=$PWD/$build/lib
ldd "${programs[@]/#/$build/}" "$build/lib/libleat_cuda.so" | awk '$2 == "=>" {print $1, $3}' | sort -u |
  while read -r name path; do
    [[ $name =~ $runtime || $name =~ $nvidia ]] || install "$path" "$staged/lib/$name"
  done
find "$staged" -type f -exec strip --strip-unneeded {} + 2>/dev/null

mkdir -p "$out"
rm -rf "$out/peers"
cp -r tools/bench/peers "$out/peers"
cp tools/gpu/run.sh "$out/run.sh"
git describe --always --dirty >"$out/version"
tar -C "$staged" -cf - . | xz -T0 -6 >"$out/bundle.tar.xz"
size=$(du -sm "$out" | cut -f1)
echo "$out: $size MB; copy it to a machine with a GPU and CUDA 13's libraries, and run its run.sh"
[[ $size -le 60 ]] || { echo "bundle.sh: more than 60 MB" >&2; exit 1; }

#!/usr/bin/env bash
# Tests and measures Leat on this machine's GPU, in less than 9 minutes. Needs bash, tar, xz and CUDA 13's libraries
# (cuBLAS, cuDNN 9); uses compute-sanitizer, and torch and JAX of python3, where there are some.
#   run.sh [--out FOLDER] [--seconds N]     N: how long each measurement takes (default 3)
# Prints a table. FOLDER (default: results) gets it as results.json, and the output of each check as a file.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
results=results seconds=3
while [[ $# -gt 0 ]]; do
  case $1 in
    --out) results=${2:?--out needs a folder}; shift 2 ;;
    --seconds) seconds=${2:?--seconds needs a number}; shift 2 ;;
    -h | --help) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) echo "run.sh: unknown argument $1; see --help" >&2; exit 2 ;;
  esac
done
mkdir -p "$results" || exit 1
results=$(cd "$results" && pwd)
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
tar -C "$unpacked" -xJf "$here/bundle.tar.xz" || exit 1
cd "$unpacked" || exit 1

# NVIDIA's libraries: the toolkit's, or those of Python's packages.
export LD_LIBRARY_PATH=$unpacked/lib:${LD_LIBRARY_PATH:-}
for folder in /usr/local/cuda/lib64 /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu/libcudnn/13 \
  $(python3 -c 'import glob, site; print(*[f for s in site.getsitepackages() for f in glob.glob(s + "/nvidia/*/lib")])' 2>/dev/null); do
  [[ -d $folder ]] && LD_LIBRARY_PATH+=:$folder
done
missing=$(ldd lib/libleat_cuda.so | awk '/not found/ {print $1}' | xargs)

deadline=520  # of all checks
lines=()
failed=0
# check NAME LIMIT_S COMMAND…: its output goes to a file; what `summary` prints of that file is the result.
summary() { tail -n 1 "$1"; }
check() {
  local name=$1 limit=$2 begin=$SECONDS state=ok text
  shift 2
  local left=$((deadline - SECONDS))
  ((left < limit)) && limit=$left
  if ((limit < 5)); then
    state=skipped text="no time left"
  else
    timeout -k 5 "$limit" "$@" >"$results/$name.txt" 2>&1
    local rc=$?
    text=$(summary "$results/$name.txt" | tr -d '\r' | cut -c1-160)
    ((rc == 124 || rc == 137)) && state="over ${limit}s"
    ((rc == 0)) || { [[ $state == ok ]] && state="failed ($rc)"; failed=$((failed + 1)); }
  fi
  record "$name" "$state" $((SECONDS - begin)) "$text"
}
record() {
  printf '%-28s %-12s %4ss  %s\n' "$1" "$2" "$3" "$4"
  local escaped=${4//\\/\\\\}
  lines+=("{\"check\": \"$1\", \"state\": \"$2\", \"seconds\": $3, \"result\": \"${escaped//\"/\\\"}\"}")
}
finish() {
  {
    echo "{\"version\": \"$(cat "$here/version")\", \"failed\": $failed, \"checks\": ["
    local i
    for i in "${!lines[@]}"; do echo "  ${lines[i]}$([[ $i -lt $((${#lines[@]} - 1)) ]] && echo ,)"; done
    echo "]}"
  } >"$results/results.json"
  echo "results: $results/results.json"
  exit $((failed > 0))
}

gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -1)
record gpu "$([[ -n $gpu ]] && echo ok || echo none)" 0 "$gpu"
check doctor 20 bin/leat doctor
if [[ -n $missing ]]; then
  failed=1
  record libraries failed 0 "missing: $missing"
  finish
fi
if [[ -z $gpu ]]; then
  record training skipped 0 "no GPU: nvidia-smi lists none"
  finish
fi

if ! grep -q 'in use *yes' "$results/doctor.txt"; then
  failed=1
  record plug-in failed 0 "there is a GPU, but leat does not use it: see $results/doctor.txt"
fi

# ---- The kernels against the CPU's
summary() { grep -E '\[  (PASSED|FAILED)|\[  SKIPPED' "$1" | tail -n 1; }
check conformance 90 tests/leat_kernels_test --gtest_filter='EveryOp.*'
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if [[ -n $sanitizer ]]; then
  summary() { grep 'ERROR SUMMARY' "$1" | tail -n 1; }
  check memcheck 100 "$sanitizer" --error-exitcode 9 tests/leat_kernels_test \
    --gtest_filter=EveryOp.EveryDeviceAgreesWithTheCpu
else
  record memcheck skipped 0 "no compute-sanitizer"
fi

# ---- Programs
summary() { grep -E 'accuracy|loss' "$1" | tail -n 1; }
for model in mlp cnn; do
  check "mnist_$model" 40 bin/examples/mnist --strategy one_device --model $model --epochs 3
  check "mnist_${model}_bf16" 40 bin/examples/mnist --strategy one_device --model $model --epochs 3 --mixed-precision bf16
done
check cluster 40 bin/leat run --gpus local:ps=1,worker=1 -- bin/examples/mnist --epochs 2

# ---- Several GPUs
gpus=$(nvidia-smi --list-gpus 2>/dev/null | wc -l)
if ((gpus > 1)); then
  summary() { grep -o '"median_s.*' "$1" | tail -n 1; }
  for mib in 1 25 256; do
    check "nccl_${mib}_mib" 20 bin/bench/all_reduce --gpus "$gpus" --mib $mib
    check "peer_copies_${mib}_mib" 20 bin/bench/all_reduce --gpus "$gpus" --mib $mib --algorithm chunks
  done
  check mirrored 40 bin/examples/mnist --strategy "mirrored:gpus=$gpus" --epochs 3
else
  record nccl skipped 0 "one GPU"
fi

# ---- Steps of usual networks, beside the CPU's losses and torch's times
summary() { grep -o '"median_s.*' "$1" | tail -n 1; }
python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null && has_torch=yes || has_torch=no
python3 -c 'import jax; jax.devices("gpu")' 2>/dev/null && has_jax=yes || has_jax=no
for model in mlp cnn resnet transformer lstm word2vec wide; do
  CUDA_VISIBLE_DEVICES='' check "cpu_$model" 15 bin/bench/models --model $model --seconds 0 --threads 4
  check "leat_$model" 15 bin/bench/models --model $model --seconds "$seconds"
  check "leat_${model}_bf16" 15 bin/bench/models --model $model --seconds "$seconds" --mixed-precision bf16
  check "leat_${model}_tf32" 15 bin/bench/models --model $model --seconds "$seconds" --mixed-precision tf32
  case $model in mlp | transformer | lstm)  # kernels launched one by one
    LEAT_CUDA_GRAPHS=0 check "leat_${model}_no_graphs" 15 bin/bench/models --model $model --seconds "$seconds" ;;
  esac
  if [[ $has_torch == yes ]]; then
    CUDA_VISIBLE_DEVICES=0 check "torch_$model" 20 python3 "$here/peers/torch_models.py" --model $model --seconds "$seconds" --device cuda
    CUDA_VISIBLE_DEVICES=0 check "torch_${model}_bf16" 20 python3 "$here/peers/torch_models.py" --model $model --seconds "$seconds" --device cuda --bf16
  fi
done
# Last, because it compiles each step for some seconds.
if [[ $has_jax == yes ]]; then
  for model in transformer resnet lstm cnn mlp word2vec wide; do
    CUDA_VISIBLE_DEVICES=0 check "jax_$model" 30 python3 "$here/peers/jax_models.py" --model $model --seconds "$seconds"
    CUDA_VISIBLE_DEVICES=0 check "jax_${model}_bf16" 30 python3 "$here/peers/jax_models.py" --model $model --seconds "$seconds" --bf16
  done
fi
finish

#!/usr/bin/env bash
# Builds Leat and runs its tests.
#   tools/test.sh [--preset release|debug|asan|tsan] [--tensorflow] [ctest arguments]
#   tools/test.sh -L runtime             one folder's tests
#   tools/test.sh --preset tsan -R Rendezvous
#   tools/test.sh --tensorflow           also TensorFlow's client and ops against a Leat cluster (pip installs it);
#                 --try-tensorflow       the same, skipped where PyPI cannot be reached
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=release
tensorflow=no
tensorflow_version=2.21.0
arguments=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --preset) preset=${2:?--preset needs a name: release, debug, asan or tsan}; shift 2 ;;
    --preset=*) preset=${1#*=}; shift ;;
    --tensorflow) tensorflow=yes; shift ;;
    --try-tensorflow) tensorflow=try; shift ;;
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) arguments+=("$1"); shift ;;
  esac
done
case $preset in
  asan) extra=(clang libclang-rt-dev) ;;
  release | debug | tsan) extra=() ;;
  *) echo "test: no preset '$preset': release, debug, asan or tsan" >&2; exit 2 ;;
esac
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
build=build/$preset

stage() { echo "== $1 (${SECONDS}s)"; }

[[ $tensorflow == no ]] || extra+=(python3-venv)
stage "setup"
tools/setup.sh "${extra[@]}"
stage "configure $build"
cmake --preset "$preset"
stage "build"
cmake --build --preset "$preset"
built=$SECONDS
stage "test"
failed=()
ctest --preset "$preset" --output-on-failure -j2 "${arguments[@]}" || failed+=("ctest")

# A virtual environment of its own, made once.
install_tensorflow() {
  local folder=build/tensorflow
  "$folder/bin/python" -c 'import tensorflow' 2>/dev/null && return
  rm -rf "$folder"
  python3 -m venv "$folder" &&
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "tensorflow-cpu==$tensorflow_version"
}
skipped=
if [[ $tensorflow == no ]]; then
  skipped="tools/test.sh --tensorflow runs them"
else
  stage "tensorflow"
  if install_tensorflow; then
    for program in tests/tensorflow/*_test.py; do
      echo "-- $program"
      TF_CPP_MIN_LOG_LEVEL=2 build/tensorflow/bin/python "$program" --leat "$build/bin/leat" ||
        failed+=("$program")
    done
  elif [[ $tensorflow == try ]]; then
    skipped="pip could not install tensorflow-cpu"
  else
    echo "test: pip could not install tensorflow-cpu==$tensorflow_version; is PyPI reachable?" >&2
    failed+=("tests/tensorflow")
  fi
fi
[[ -z $skipped ]] || echo "SKIPPED: tests/tensorflow (TensorFlow's client and ops against Leat): $skipped"

stage "sizes"
for file in "$build"/lib/*.so "$build"/bin/leat*; do
  [[ -f $file ]] && printf '%10.1f MB  %s\n' "$(stat -Lc %s "$file" | awk '{print $1 / 1e6}')" "$file"
done
printf '%10.1f MB  %s\n' "$(du -sm "$build" | cut -f1)" "$build"
times="build ${built}s, tests $((SECONDS - built))s"
if [[ ${#failed[@]} -gt 0 ]]; then
  echo "== FAILED (${failed[*]}): $times"
  exit 1
fi
echo "== passed: $times"

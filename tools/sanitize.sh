#!/usr/bin/env bash
# Builds Leat with sanitizers and runs all of its tests, or those that ctest's arguments select.
#   tools/sanitize.sh                         both presets, one after the other
#   tools/sanitize.sh --preset asan           clang's AddressSanitizer and UndefinedBehaviorSanitizer
#   tools/sanitize.sh --preset tsan           g++'s ThreadSanitizer
#   tools/sanitize.sh --preset fuzz           libFuzzer's targets of tests/fuzz/, a minute each
#   tools/sanitize.sh --fuzz 600              all three, the targets for 600 seconds each
#   tools/sanitize.sh --preset asan -R Crc32c
# Ends with a line for each preset: what passed, and how long it took.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

presets=()
fuzz_seconds=
arguments=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --preset) presets+=("${2:?--preset needs a name: asan, tsan or fuzz}"); shift 2 ;;
    --preset=*) presets+=("${1#*=}"); shift ;;
    --fuzz) fuzz_seconds=${2:?--fuzz needs seconds}; shift 2 ;;
    --fuzz=*) fuzz_seconds=${1#*=}; shift ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) arguments+=("$1"); shift ;;
  esac
done
[[ ${#presets[@]} -gt 0 ]] || presets=(asan tsan ${fuzz_seconds:+fuzz})
for preset in "${presets[@]}"; do
  [[ $preset =~ ^(asan|tsan|fuzz)$ ]] || { echo "sanitize: no preset '$preset': asan, tsan or fuzz" >&2; exit 2; }
done
fuzz_seconds=${fuzz_seconds:-60}
[[ $fuzz_seconds =~ ^[1-9][0-9]*$ ]] || { echo "sanitize: --fuzz needs seconds, not '$fuzz_seconds'" >&2; exit 2; }

summary=()
result=0

run_tests() {
  local preset=$1 begin=$SECONDS log=build/$1/sanitize.log outcome=passed
  shift
  mkdir -p "$(dirname "$log")"
  tools/test.sh --preset "$preset" "$@" 2>&1 | tee "$log" || { outcome=FAILED; result=1; }
  local tests times
  tests=$(grep -E '^[0-9]+% tests passed' "$log" || echo "no test ran")
  times=$(sed -nE 's/^== (passed|FAILED.*): (build.*)/\2/p' "$log")
  summary+=("$preset: $outcome: $tests; $((SECONDS - begin))s${times:+ ($times)}; $log")
}

# What a target finds lies in build/fuzz/found/, what taught it something in build/fuzz/corpus/: the
# next run begins with it.
fuzz_one() {
  local name=$1 log=build/fuzz/$1.log corpus=build/fuzz/corpus/$1 kept=tests/fuzz/corpus/$1
  mkdir -p "$corpus" build/fuzz/found
  "build/fuzz/tests/replay_$name" --write "$corpus" || return
  local status=0
  "build/fuzz/tests/fuzz_$name" -max_total_time="$fuzz_seconds" -rss_limit_mb=3000 -timeout=20 \
    -malloc_limit_mb=100000 -print_final_stats=1 -artifact_prefix="build/fuzz/found/$name-" "$corpus" $([[ -d $kept ]] && echo "$kept") \
    >"$log" 2>&1 || status=$?
  local runs cov
  runs=$(sed -nE 's/^stat::number_of_executed_units: *//p' "$log")
  cov=$(grep -oE 'cov: [0-9]+' "$log" | tail -1)
  echo "$name: ${runs:-no} runs, ${cov:-cov: none}$([[ $status -eq 0 ]] || echo "; it FOUND something: $log")"
  return "$status"
}

run_fuzz() {
  local begin=$SECONDS outcome=passed source name said
  tools/setup.sh clang libclang-rt-dev
  cmake --preset fuzz
  cmake --build --preset fuzz
  for source in tests/fuzz/*_fuzz.cc; do
    name=$(basename "$source" _fuzz.cc)
    echo "== fuzz $name for ${fuzz_seconds}s"
    said=$(fuzz_one "$name") || { outcome=FAILED; result=1; }
    echo "$said"
    summary+=("fuzz $said")
  done
  summary+=("fuzz: $outcome; $((SECONDS - begin))s")
}

for preset in "${presets[@]}"; do
  if [[ $preset == fuzz ]]; then run_fuzz; else run_tests "$preset" "${arguments[@]}"; fi
done

echo
printf '%s\n' "${summary[@]}"
exit "$result"

#!/usr/bin/env bash
# Installs the missing Debian packages that Leat is built with.
#   tools/setup.sh [more packages]        Debian 12, Ubuntu 24.04
set -euo pipefail

packages=(
  build-essential g++ cmake ninja-build ccache mold pkg-config git python3
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev
  libdnnl-dev libeigen3-dev libleveldb-dev libsnappy-dev libre2-dev nlohmann-json3-dev libssl-dev openssl libcli11-dev libfmt-dev zlib1g-dev libpng-dev libjpeg-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  libgraphviz-dev graphviz fonts-dejavu-core
  "$@"
)

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: no apt on this system; needed are the counterparts of these Debian packages:" >&2
  echo "  ${packages[*]}" >&2
  echo "setup: continuing; cmake names what is missing" >&2
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: ${#missing[@]} packages are missing, and this is neither root nor is there sudo. As root, run:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -q || echo "setup: apt-get update failed; trying with the lists at hand" >&2
if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"; then
  echo "setup: apt-get could not install: ${missing[*]}" >&2
  exit 1
fi

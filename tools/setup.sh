#!/usr/bin/env bash
# Installs what fedsmooth needs from Debian's packages, and only what is missing. Without root or
# sudo it lists the packages instead.
set -eu

packages="g++ cmake ninja-build git libtorch-dev libopenblas0-pthread librandom123-dev
  libboost-dev libboost-math-dev libcli11-dev libtomlplusplus-dev libfmt-dev nlohmann-json3-dev
  libjpeg62-turbo-dev libpng-dev gnuplot-nox libgtest-dev libbenchmark-dev clang-format clang-tidy
  python3 libopenmpi-dev openmpi-bin"
# A LibTorch from elsewhere replaces Debian's.
if [ -n "${TORCH:-}" ]; then
  packages=$(printf '%s\n' $packages | grep -v -e '^libtorch-dev$' -e '^libopenblas0-pthread$')
fi

missing=""
for package in $packages; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
    missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
  as_root=""
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root="sudo"
else
  echo "missing packages; install them with: apt-get install --no-install-recommends$missing" >&2
  exit 2
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
$as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null

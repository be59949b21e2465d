#!/usr/bin/env bash
# Installs what fedsmooth needs from Debian's packages, and only what is missing; with the argument
# `program`, what the program alone needs, with `package`, what its Debian package needs too, with
# `python`, what the wheel needs too, with `docs`, what the site of the documents needs too. Where it cannot (no apt, or neither root nor sudo) it says what is
# missing. SETUP=no skips it.
set -eu
[ "${SETUP:-yes}" != no ] || exit 0

packages="g++ cmake ninja-build git librandom123-dev libboost-dev libcli11-dev libtomlplusplus-dev
  libfmt-dev nlohmann-json3-dev libjpeg-dev libpng-dev zlib1g-dev gnuplot-nox curl ca-certificates"
if [ "${1:-}" = package ]; then
  packages="$packages dpkg-dev file"
elif [ "${1:-}" = python ]; then
  packages="$packages python3-dev python3-venv"
elif [ "${1:-}" = docs ]; then
  packages="$packages python3-dev python3-venv doxygen"
elif [ "${1:-}" != program ]; then
  packages="$packages libopenmpi-dev openmpi-bin libgtest-dev libbenchmark-dev clang-format clang-tidy
    python3"
fi
# LibTorch from elsewhere brings its BLAS.
[ "${TORCH:-}" != debian ] || packages="$packages libtorch-dev libopenblas0-pthread"

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "this machine has no apt; install what these Debian packages hold, then: make SETUP=no" >&2
  echo "  "$packages >&2
  exit 2
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
  echo "packages are missing and neither root nor sudo is at hand; have them installed with" >&2
  echo "  apt-get install --no-install-recommends$missing" >&2
  echo "or, if you have them from elsewhere: make SETUP=no" >&2
  exit 2
fi
echo "installing:$missing"
# sudo drops variables of the environment, hence env.
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null

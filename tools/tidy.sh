#!/usr/bin/env bash
# clang-tidy on the sources that changed since the newest commit on origin (or the last commit), new
# ones included, so that a check costs seconds, not the minutes that the whole tree takes. TIDY=all
# checks everything.
set -eu
build=$1
command -v clang-tidy > /dev/null || { echo "tidy: clang-tidy is missing; make setup installs it" >&2; exit 1; }

ours=('fedsmooth/*.cpp' 'cli/*.cpp')
changed() {
  local base
  base=$(git merge-base HEAD '@{upstream}' 2> /dev/null || git rev-parse --verify -q HEAD~1 || git rev-parse HEAD)
  git diff --name-only --diff-filter=d "$base" -- "${ours[@]}"
  git ls-files --others --exclude-standard -- "${ours[@]}"
}
if [ "${TIDY:-}" = all ]; then
  files=$(git ls-files --cached --others --exclude-standard -- "${ours[@]}")
else
  files=$(changed)
fi
[ -n "$files" ] || { echo "tidy: nothing changed"; exit 0; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# How each file is compiled alone. Precompiled headers are g++'s own; clang reads the plain ones.
cmake -G Ninja -B "$work/alone" -DFEDSMOOTH_UNITY=OFF -DFEDSMOOTH_TESTS=OFF -DFEDSMOOTH_BENCHMARKS=OFF . > "$work/cmake.out"
sed -E -e 's/ -Winvalid-pch//g; s/ -include [^ ]*cmake_pch\.hxx//g; s/ -fno-math-errno//g' \
  -e "s#$work/alone/generated#$PWD/$build/generated#g" "$work/alone/compile_commands.json" > "$work/compile_commands.json"

# The build leaves out files whose library is missing, such as LibTorch.
left_out=$(for file in $files; do grep -qF "\"$PWD/$file\"" "$work/compile_commands.json" || echo "$file"; done)
[ -z "$left_out" ] || echo "tidy: not checked, as this build does not compile them:" $left_out
files=$(grep -vxF -e "${left_out:-none}" <<< "$files" || true)
[ -n "$files" ] || exit 0

# Status 1 is usual: clang cannot digest some headers of LibTorch 1.13 under C++20, and what it says
# about ours counts. But then it says so; without a word, or with another status, it did not check.
tidy() {
  local log status=0
  log=$work/$(echo "$1" | tr / _).log
  timeout 600 clang-tidy -p "$work" --quiet --extra-arg=-ferror-limit=0 "$1" > "$log" 2>&1 || status=$?
  if [ "$status" -gt 1 ] || { [ "$status" = 1 ] && ! grep -q 'error:' "$log"; } ||
    grep -q 'file not found \[clang-diagnostic-error\]' "$log"; then
    echo "tidy: clang-tidy failed on $1, status $status"
    tail -n 5 "$log"
  fi > "$log.failed"
}
export -f tidy
export work
echo "$files" | xargs -P 2 -I {} bash -c 'tidy "$1"' tidy {}

failed=$(cat "$work"/*.failed)
[ -z "$failed" ] || { echo "$failed" >&2; exit 1; }
found=$(cat "$work"/*.log | grep -E "^$PWD/(fedsmooth|cli)/.*(error|warning):" |
  grep -v clang-diagnostic-error | sort -u || true)
[ -z "$found" ] || { echo "$found"; exit 1; }
echo "tidy: ok, $(echo "$files" | wc -l) files"

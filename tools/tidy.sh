#!/usr/bin/env bash
# clang-tidy on the sources that changed since the newest commit on origin (or the last commit), so
# that a check costs seconds, not the minutes that the whole tree takes. TIDY=all checks everything.
set -eu
build=$1
base=$(git merge-base HEAD '@{upstream}' 2>/dev/null || git rev-parse HEAD~1 2>/dev/null || true)
if [ "${TIDY:-}" = all ]; then
  files=$(git ls-files 'fedsmooth/*.cpp' 'cli/*.cpp')
elif [ -n "$base" ]; then
  files=$(git diff --name-only --diff-filter=d "$base" -- 'fedsmooth/*.cpp' 'cli/*.cpp' | head -6)
else
  files=""
fi
[ -n "$files" ] || { echo "tidy: nothing changed"; exit 0; }
# Precompiled headers are g++'s own; clang reads the plain ones.
database=$(mktemp -d)
trap 'rm -rf "$database"' EXIT
sed -E -e 's/ -Winvalid-pch//g; s/ -include [^ ]*cmake_pch\.hxx//g; s/ -fno-math-errno//g' \
  "$build/compile_commands.json" > "$database/compile_commands.json"
# clang cannot digest some headers of LibTorch 1.13 under C++20; what it says about ours counts.
found=$(echo "$files" | xargs -P 2 -n 1 clang-tidy -p "$database" --quiet --extra-arg=-ferror-limit=0 \
  2>/dev/null | grep -E "^$PWD/(fedsmooth|cli)/.*(error|warning):" | grep -v clang-diagnostic-error |
  sort -u || true)
[ -z "$found" ] || { echo "$found"; exit 1; }
echo "tidy: ok"

#!/bin/sh
# keep_results.sh RUNS RESULTS: adds the texts of a sweep's finished runs, without models and checkpoints, to
# RESULTS/runs.tar.gz, in place of runs of the same names. Equal tables of clients are kept once. The archive's
# bytes depend on the texts alone.
set -eu

# keep_texts FROM TO: copies the texts of a run or of a group of one.
keep_texts() {
  mkdir "$2"
  for file in experiment.toml provenance.json rounds.tsv clients.tsv certificates.tsv certificates.json; do
    [ ! -f "$1/$file" ] || cp "$1/$file" "$2/"
  done
}

mkdir -p "$2"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ ! -f "$2/runs.tar.gz" ] || tar -xzf "$2/runs.tar.gz" -C "$work"
for run in "$1"/*/; do
  [ -f "$run/DONE" ] && [ -f "$run/certificates.tsv" ] || continue
  kept=$work/$(basename "$run")
  rm -rf "$kept"
  keep_texts "$run" "$kept"
  for group in "$run"/group-*/; do
    [ ! -d "$group" ] || keep_texts "$group" "$kept/$(basename "$group")"
  done
  # Where the model lay on the machine that certified it says nothing elsewhere. For several groups, "model" is the run's folder.
  sed -i -E -e 's#("model": ")/.*/([^/]+/model.safetensors")#\1\2#' -e 's#("model": ")/.*/([^/"]+")#\1\2#' \
    "$kept/certificates.json"
done
# Equal files become links to one of them, which tar stores once.
find "$work" -name clients.tsv | sort | while read -r table; do
  first=$work/.$(sha256sum < "$table" | cut -c 1-64)
  if [ -f "$first" ]; then ln -f "$first" "$table"; else ln "$table" "$first"; fi
done
rm -f "$work"/.[0-9a-f]*
(cd "$work" && tar --format=ustar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -cf - -- *) |
  gzip -9n > "$2/runs.tar.gz.new"
mv "$2/runs.tar.gz.new" "$2/runs.tar.gz"
if [ -f "$1/figures.toml" ]; then cp "$1/figures.toml" "$2/"; fi

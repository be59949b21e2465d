#!/bin/sh
# keep_results.sh RUNS RESULTS: the texts of a sweep's finished runs, without models and checkpoints.
# Runs of the same partition link to one table of its clients in RESULTS/clients.
set -eu
for run in "$1"/*/; do
  [ -f "$run/DONE" ] && [ -f "$run/certificates.tsv" ] || continue
  kept=$2/$(basename "$run")
  mkdir -p "$kept"
  for file in experiment.toml provenance.json rounds.tsv certificates.tsv certificates.json; do
    cp "$run/$file" "$kept/"
  done
  if [ -f "$run/clients.tsv" ]; then
    clients=clients/$(sha256sum < "$run/clients.tsv" | cut -c 1-12).tsv
    mkdir -p "$2/clients"
    cp "$run/clients.tsv" "$2/$clients"
    ln -sf "../$clients" "$kept/clients.tsv"
  fi
  # Where the model lay on the machine that certified it says nothing elsewhere.
  sed -i -E 's#("model": ")/.*/([^/]+/model.safetensors")#\1\2#' "$kept/certificates.json"
done
if [ -f "$1/figures.toml" ]; then cp "$1/figures.toml" "$2/"; fi

#!/bin/bash
# Builds into $1 (default /tmp/resnet); further arguments go to nvcc, such as -I with Random123.
cd "$(dirname "$0")"
out=${1:-/tmp/resnet}; shift || true
mkdir -p "$out"
exec nvcc -gencode=arch=compute_90a,code=sm_90a -std=c++17 -O3 -lineinfo -Xcompiler -O3,-pthread \
  -I../.. "$@" main.cu votes.cu reference.cpp -o "$out/votes"

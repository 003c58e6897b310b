#!/usr/bin/env bash
# Lay the mapped folders out as the package that they become (build/tree/phloem), for tools that
# follow the file system rather than the import system (mypy, import-linter).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
tree="$root/build/tree"
rm -rf "$tree" && mkdir -p "$tree/phloem"
for entry in "$root"/phloem/*; do ln -s "$entry" "$tree/phloem/$(basename "$entry")"; done
for folder in runtime radix_cache constrained frontend_lang kernels; do
  ln -s "$root/$folder" "$tree/phloem/$folder"
done

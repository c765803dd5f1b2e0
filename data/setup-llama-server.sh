#!/usr/bin/env bash
# Installs a real llama.cpp server for the tests: the Python package xllamacpp, into a folder of its
# own outside the checkout. Without it, the tests that need it say so and are skipped.
set -euo pipefail

readonly version=2026.10.11549
readonly folder=${FLORILEGIUM_LLAMA_SERVER:-${XDG_CACHE_HOME:-$HOME/.cache}/florilegium/llama-server}

[[ -e $folder/xllamacpp-$version.dist-info ]] && exit 0
echo "setup-llama-server: installing xllamacpp $version into $folder"
new=$folder.new.$$
trap 'rm -rf -- "$new"' EXIT
if python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --target "$new" "xllamacpp==$version"; then
    rm -rf -- "$folder"
    mkdir -p -- "$(dirname -- "$folder")"
    mv -- "$new" "$folder"
else
    echo "setup-llama-server: not installed; the tests with a real llama.cpp server will be skipped" >&2
fi

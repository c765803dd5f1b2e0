#!/usr/bin/env bash
# Installs the Debian packages that the build needs, if one is missing.
set -euo pipefail

packages=(cmake clang libclang-dev libopenblas-dev pkg-config make g++)
missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' \
        || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "setup: these packages are missing: ${missing[*]}" >&2
            echo "setup: install them as root: apt-get install ${missing[*]}" >&2
            exit 1
        fi
        as_root=(sudo)
    fi
    echo "setup: installing ${missing[*]}"
    "${as_root[@]}" apt-get update -q
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends "${missing[@]}"
fi
for tool in cargo python3; do
    command -v "$tool" >/dev/null || { echo "setup: $tool is missing; install it first" >&2; exit 1; }
done
python3 -m pip --version >/dev/null 2>&1 || {
    echo "setup: python3 has no pip; install python3-pip (it fetches the models)" >&2
    exit 1
}

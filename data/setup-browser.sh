#!/usr/bin/env bash
# Installs what the browser tests drive and check with (Node packages, pinned), into a folder of its own
# outside the checkout. Without it, or without chromium and node (Debian's packages chromium and
# nodejs), the tests that need it say so and are skipped.
set -euo pipefail

readonly packages=(playwright-core@1.65.1 axe-core@4.14.1 html-validate@10.17.0)
readonly folder=${FLORILEGIUM_BROWSER_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/florilegium/browser-tools}
readonly mark=$folder/$(printf '%s\n' "${packages[@]}" | sha256sum | cut -c1-12).installed

[[ -e $mark ]] && exit 0
for tool in node npm chromium; do
    command -v "$tool" >/dev/null || {
        echo "setup-browser: there is no $tool; the browser tests will be skipped" >&2
        exit 0
    }
done
echo "setup-browser: installing ${packages[*]} into $folder"
new=$folder.new.$$
trap 'rm -rf -- "$new"' EXIT
mkdir -p -- "$new"
if (cd -- "$new" && npm init -y >/dev/null && npm install --no-audit --no-fund --silent "${packages[@]}"); then
    rm -rf -- "$folder"
    mv -- "$new" "$folder"
    touch -- "$mark"
else
    echo "setup-browser: not installed; the browser tests will be skipped" >&2
fi

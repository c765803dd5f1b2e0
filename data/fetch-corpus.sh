#!/usr/bin/env bash
# Brings the two books of the example archive from their Debian packages, without root:
#
#   DEST/handbook/fr, DEST/handbook/en    The Debian Administrator's Handbook
#   DEST/guide/fr, DEST/guide/en, DEST/guide/el    The Debian Installation Guide
#
# Only the pages are kept, and each package's copyright file. The result appears whole or not at all;
# a second run finds it and does nothing.
set -euo pipefail

readonly handbook=debian-handbook guide=installation-guide-amd64

fail() {
    printf 'fetch-corpus: %s\n' "$*" >&2
    exit 1
}

if [[ $# -ne 1 || -z $1 || $1 == -* ]]; then
    fail "usage: fetch-corpus.sh DEST"
fi
dest=${1%/}
[[ -n $dest ]] || fail "DEST must not be the root folder"
stamp=$dest/packages.txt

complete() {
    [[ -s $stamp ]] || return 1
    local part pages
    while read -r part pages; do
        [[ -d $dest/$part ]] || return 1
        [[ $(find "$dest/$part" -name '*.html' -type f | wc -l) -eq $pages ]] || return 1
    done < <(sed -n 's/^pages //p' "$stamp")
}

if complete; then
    printf 'fetch-corpus: %s is complete (%s); nothing to do\n' "$dest" \
        "$(sed -n 's/^package //p' "$stamp" | paste -sd, | sed 's/,/, /g')"
    exit 0
fi
if [[ -e $dest && ! -e $stamp && -n $(ls -A "$dest" 2>/dev/null) ]]; then
    fail "$dest holds other files; name an empty or new folder"
fi

for tool in apt-get dpkg-deb gzip; do
    command -v "$tool" >/dev/null ||
        fail "$tool is not here: the books come from Debian packages. On another system, unpack $handbook and $guide from https://packages.debian.org/bookworm/ by hand"
done

parent=$(dirname -- "$dest")
mkdir -p -- "$parent" || fail "cannot create $parent; choose a folder that this user may write to"
work=$(mktemp -d -- "$parent/.fetch-corpus.XXXXXX") ||
    fail "cannot write to $parent; choose another folder or free some space"
work=$(cd -- "$work" && pwd -P)
trap 'rm -rf -- "$work"' EXIT
trap 'exit 130' INT TERM

mkdir -p -- "$work/packages" "$work/root" "$work/new"

download() {
    # The sandbox user of apt may not write here; this user may.
    (cd -- "$work/packages" && apt-get -q -o APT::Sandbox::User="$(id -un)" download "$handbook" "$guide") \
        >"$work/apt.log" 2>&1
}

printf 'fetch-corpus: downloading %s and %s (some 53 MB)\n' "$handbook" "$guide"
if ! download; then
    if [[ $(id -u) -eq 0 ]] && grep -qiE 'unable to locate|no candidate|can.t find|404' "$work/apt.log"; then
        printf 'fetch-corpus: apt knows no such package yet; running apt-get update\n'
        apt-get -q update >"$work/update.log" 2>&1 || {
            tail -n 5 -- "$work/update.log" >&2
            fail "apt-get update failed; check the network and /etc/apt/sources.list"
        }
        download || {
            tail -n 5 -- "$work/apt.log" >&2
            fail "apt-get download failed after an update; check the network, and that /etc/apt/sources.list names Debian's main archive"
        }
    else
        tail -n 5 -- "$work/apt.log" >&2
        fail "apt-get download failed. If it cannot locate a package, run \`sudo apt-get update\`; otherwise check the network; then run this again"
    fi
fi

versions=()
for package in "$handbook" "$guide"; do
    file=$(find "$work/packages" -name "${package}_*.deb" -print -quit)
    [[ -n $file ]] || fail "apt-get brought no $package; see what \`apt-get download $package\` says"
    dpkg-deb -x "$file" "$work/root" || fail "cannot unpack $package; free some space in $parent and run this again"
    versions+=("$package $(dpkg-deb -f "$file" Version)")
done

# Copies the pages of one folder, unpacked where the package compresses them.
take() {
    local from=$work/root/usr/share/doc/$1 to=$work/new/$2
    [[ -d $from ]] || fail "the package has no folder $1 any more; this script must follow it"
    mkdir -p -- "$to"
    (cd -- "$from" && find . -type f \( -name '*.html' -o -name '*.html.gz' \) -exec cp --parents -t "$to" -- {} +)
    find "$to" -name '*.html.gz' -exec gzip -d {} +
    local pages
    pages=$(find "$to" -name '*.html' -type f | wc -l)
    [[ $pages -gt 0 ]] || fail "the folder $1 of the package holds no pages; this script must follow it"
    printf 'pages %s %s\n' "$2" "$pages" >>"$work/new/packages.txt"
}

printf 'package %s\n' "${versions[@]}" >"$work/new/packages.txt"
take "$handbook/html/fr-FR" handbook/fr
take "$handbook/html/en-US" handbook/en
for language in fr en el; do
    take "$guide/$language" "guide/$language"
done
for pair in "handbook $handbook" "guide $guide"; do
    read -r book package <<<"$pair"
    cp -- "$work/root/usr/share/doc/$package/copyright" "$work/new/$book/copyright"
done

# The old folder, if any, is an incomplete one of this script's.
rm -rf -- "$dest"
mv -- "$work/new" "$dest"
printf 'fetch-corpus: %s is complete (%s)\n' "$dest" "$(printf '%s, ' "${versions[@]}" | sed 's/, $//')"

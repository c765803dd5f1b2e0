#!/usr/bin/env bash
# Measures, side by side in one run: what else runs on the machine then weighs on all of them.
#
#   benches/run.sh search [COUNT…]   the index, against FAISS's Python package on the same file
#   benches/run.sh publish [COUNT]   a site of COUNT questions in each of three languages (10000), and
#                                    its index of questions, against Pagefind on the same pages
#   benches/run.sh embed             the embedding engine, against the C engine of the packed model
#                                    and the same weights in ONNX Runtime
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:?where the program was built}
peers=data/cache/peers

publish() {
    local work=${FLORILEGIUM_BENCH_FOLDER:-} tools=data/cache/peers/site site
    [ -n "$work" ] || { work=$(mktemp -d); trap 'rm -rf "$work"' RETURN; }
    "$target/release/examples/site_speed" "$1" "$work" en=data/cache/corpus/handbook/en \
        fr=data/cache/corpus/handbook/fr el=data/cache/corpus/guide/el
    if ! command -v node chromium npm >/dev/null; then
        echo "node, npm or chromium is missing: no comparison with Pagefind" >&2
        return
    fi
    mkdir -p "$tools"
    [ -d "$tools/node_modules/pagefind" ] || (cd "$tools" && npm init -y >/dev/null &&
        npm install --no-audit --no-fund --silent playwright-core@1.65.1 pagefind@1.6.0)
    site=$(readlink -f "$work/gardens")
    # Only answers: what the index of questions holds as well.
    (time "$tools/node_modules/.bin/pagefind" --site "$site" --glob '*/q/**/index.html' --quiet) 2>&1 |
        sed -n 's/^real/Pagefind builds its index in/p'
    echo "Pagefind's index: $(du -sb "$site/pagefind" | cut -f1) bytes"
    node benches/site_peer.mjs "$site" "$tools" "$work/asked.json"
}

search() {
    local work count ours probes theirs
    for count in "$@"; do
        work=$(mktemp -d)
        ours=$("$target/release/examples/search_speed" "$count" "$work")
        probes=$(grep -oP ', \K[0-9]+(?= lists probed)' <<<"$ours" || echo 0)
        theirs=$("$peers/venv/bin/python" benches/faiss_peer.py "$work" "$probes")
        echo "$ours"
        python3 -c "
import json, sys
ours = json.loads(sys.argv[1])
print('  %d vectors, %s: %.3f ms, FAISS in Python %s ms: %.2f times its speed' % (
    ours['count'], ours['kind'], ours['dense_ms'], sys.argv[2], float(sys.argv[2]) / ours['dense_ms']))
" "$ours" "$theirs"
        rm -rf "$work"
    done
}

embed() {
    local models=data/cache/models work length
    work=$(mktemp -d)
    python3 data/fixtures/embed/lines.py > "$work/lines"
    # Texts of about 18, 128 and 288 tokens, put together from those lines.
    python3 - "$work" <<'P'
import sys
folder = sys.argv[1]
words = open(folder + "/lines", encoding="utf-8").read().split()
for tokens, texts in ((18, 400), (128, 60), (288, 28)):
    size = max(1, tokens * 10 // 19)
    with open(f"{folder}/{tokens}", "w", encoding="utf-8") as out:
        for number in range(texts):
            at = number * 37 % (len(words) - size)
            print(" ".join(words[at:at + size]), file=out)
P
    onnx() {
        "$peers/venv/bin/python" benches/onnx_peer.py $models/e5-small-q4.bin.gguf \
            $models/multilingual-e5-small-tokenizer.json "$@"
    }
    for length in 18 128 288; do
        for _ in 1 2; do
            echo "$length tokens, 2 threads, ONNX:     $(onnx "$work/$length" 2)"
            echo "$length tokens, 2 threads, C engine: $(OMP_NUM_THREADS=2 python3 data/fixtures/embed/compare.py \
                "$peers/libe5.so" $models/e5-small-q4.bin "$work/$length")"
            echo "$length tokens, 2 threads, ours:     $("$target/release/examples/embed_lines" \
                $models/e5-small-q4.bin $models/multilingual-e5-small-tokenizer.json --threads 2 \
                < "$work/$length" 2>&1 >/dev/null | tail -1)"
        done
    done
    head -60 "$work/18" > "$work/questions"
    for _ in 1 2; do
        echo "one question at a time, ONNX:     $(onnx "$work/questions" 2 --questions)"
        echo "one question at a time, C engine: $(OMP_NUM_THREADS=2 python3 data/fixtures/embed/compare.py \
            "$peers/libe5.so" $models/e5-small-q4.bin "$work/questions" --questions)"
        echo "one question at a time, ours:     $("$target/release/examples/embed_lines" \
            $models/e5-small-q4.bin $models/multilingual-e5-small-tokenizer.json --query --threads 2 \
            < "$work/questions" 2>&1 >/dev/null | tail -1)"
    done
    rm -rf "$work"
}

what=${1:?search, embed or publish}
shift
[ "$what" = publish ] || benches/setup.sh "$peers"
case $what in
    publish) publish "${1:-10000}" ;;
    search) [ $# -gt 0 ] || set -- 10000 100000 1000000; search "$@" ;;
    embed) embed ;;
    *) echo "benches/run.sh: $what is not search, embed or publish" >&2; exit 2 ;;
esac

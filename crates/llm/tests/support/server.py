"""A llama.cpp server on a free port: prints its address, serves until its input is closed."""
import os
import sys

import xllamacpp

model, port, slots, context = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
parameters = xllamacpp.CommonParams()
parameters.model.path = model
parameters.hostnames = ["127.0.0.1"]
parameters.port = port
parameters.n_parallel = slots
parameters.n_ctx = context
parameters.n_gpu_layers = 0
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1
parameters.warmup = False
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
# The tests hold the other end; when they die, so does the server.
sys.stdin.read()
os._exit(0)

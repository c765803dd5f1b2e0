#!/usr/bin/env python3
"""The same weights in ONNX Runtime: texts and tokens a second, as sentence-transformers would have it
(batches of 32, sorted by length, padded), or one question at a time.

    onnx_peer.py MODEL.gguf TOKENIZER LINES THREADS [--questions]

The graph is made from the GGUF file that the program converts the packed weights into; it is kept
beside that file's peers, in the folder of this script's virtual environment.
"""

import pathlib
import sys
import time

import numpy
import onnx
import onnxruntime
from gguf import GGUFReader, dequantize
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

SIZE, HEADS, LAYERS = 384, 12, 12


def graph(path):
    weights = {t.name: numpy.asarray(dequantize(t.data, t.tensor_type), dtype=numpy.float32)
               for t in GGUFReader(path).tensors}
    nodes, constants, count = [], {}, [0]

    def constant(name, value):
        constants.setdefault(name, numpy_helper.from_array(numpy.asarray(value), name))
        return name

    def op(kind, *inputs, **attributes):
        count[0] += 1
        out = "t%d" % count[0]
        nodes.append(helper.make_node(kind, list(inputs), [out], **attributes))
        return out

    def linear(x, name):
        product = op("MatMul", x, constant(name + ".weight.T", weights[name + ".weight"].T.copy()))
        return op("Add", product, constant(name + ".bias", weights[name + ".bias"]))

    def norm(x, name):
        return op("LayerNormalization", x, constant(name + ".weight", weights[name + ".weight"]),
                  constant(name + ".bias", weights[name + ".bias"]), epsilon=1e-12)

    x = op("Gather", constant("words", weights["embeddings.word_embeddings.weight"]), "ids")
    place = constant("places", weights["embeddings.position_embeddings.weight"]
                     + weights["embeddings.token_type_embeddings.weight"][0])
    length = op("Gather", op("Shape", "ids"), constant("one", numpy.int64(1)))
    length = op("Unsqueeze", length, constant("axis0", numpy.array([0], dtype=numpy.int64)))
    start = constant("start", numpy.array([0], dtype=numpy.int64))
    x = norm(op("Add", x, op("Slice", place, start, length)), "embeddings.LayerNorm")
    mask = op("Unsqueeze", "mask", constant("axes12", numpy.array([1, 2], dtype=numpy.int64)))
    hide = op("Mul", op("Sub", constant("1f", numpy.float32(1)), mask), constant("low", numpy.float32(-1e9)))
    split = constant("split", numpy.array([0, 0, HEADS, SIZE // HEADS], dtype=numpy.int64))
    whole = constant("whole", numpy.array([0, 0, SIZE], dtype=numpy.int64))
    root = constant("root", numpy.float32((SIZE // HEADS) ** -0.5))
    for number in range(LAYERS):
        layer = "encoder.layer.%d." % number
        heads = [op("Transpose", op("Reshape", linear(x, layer + "attention.self." + part), split), perm=perm)
                 for part, perm in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3]))]
        scores = op("Add", op("Mul", op("MatMul", heads[0], heads[1]), root), hide)
        seen = op("MatMul", op("Softmax", scores, axis=-1), heads[2])
        seen = op("Reshape", op("Transpose", seen, perm=[0, 2, 1, 3]), whole)
        x = norm(op("Add", x, linear(seen, layer + "attention.output.dense")), layer + "attention.output.LayerNorm")
        inner = op("Gelu", linear(x, layer + "intermediate.dense"))
        x = norm(op("Add", x, linear(inner, layer + "output.dense")), layer + "output.LayerNorm")
    shown = op("Unsqueeze", "mask", constant("axis2", numpy.array([2], dtype=numpy.int64)))
    axis1 = constant("axis1", numpy.array([1], dtype=numpy.int64))
    total = op("ReduceSum", op("Mul", x, shown), axis1, keepdims=0)
    nodes.append(helper.make_node("LpNormalization", [total], ["vectors"], axis=-1, p=2))
    return helper.make_model(helper.make_graph(
        nodes, "e5",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"]),
         helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["batch", "length"])],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", SIZE])],
        list(constants.values())), opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


weights, tokenizer_path, lines_path, threads = sys.argv[1:5]
questions = "--questions" in sys.argv
kept = pathlib.Path(sys.prefix).parent / "e5.onnx"
if not kept.exists():
    onnx.save(graph(weights), kept)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(threads)
session = onnxruntime.InferenceSession(str(kept), options, providers=["CPUExecutionProvider"])
tokenizer = Tokenizer.from_file(tokenizer_path)
tokenizer.no_padding()
prefix = "query: " if questions else "passage: "
texts = [prefix + line for line in open(lines_path, encoding="utf-8").read().splitlines()]


def embed(encodings):
    width = max(len(e.ids) for e in encodings)
    ids = numpy.ones((len(encodings), width), dtype=numpy.int64)
    mask = numpy.zeros((len(encodings), width), dtype=numpy.float32)
    for row, encoding in enumerate(encodings):
        ids[row, :len(encoding.ids)] = encoding.ids
        mask[row, :len(encoding.ids)] = 1
    return session.run(None, {"ids": ids, "mask": mask})[0]


embed(tokenizer.encode_batch(texts[:4]))
started = time.perf_counter()
if questions:
    for text in texts:
        embed([tokenizer.encode(text)])
    seconds = time.perf_counter() - started
    print("%d questions in %.2f s: %.1f ms a question" % (len(texts), seconds, seconds / len(texts) * 1e3))
else:
    encoded = sorted(tokenizer.encode_batch(texts), key=lambda e: -len(e.ids))
    for at in range(0, len(encoded), 32):
        embed(encoded[at:at + 32])
    seconds = time.perf_counter() - started
    tokens = sum(len(e.ids) for e in encoded)
    print("%d texts, %d tokens in %.2f s: %.1f texts/s, %.0f tokens/s" % (
        len(texts), tokens, seconds, len(texts) / seconds, tokens / seconds))

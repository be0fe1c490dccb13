"""Single products of f32 matrices inside a graph, in all four transpositions, as the trace of a step tells their times.

  python3 tf_products.py                                   # TensorFlow in this process, one thread
  python3 tf_products.py --target grpc://127.0.0.1:2222    # the same graph there

Each product has operands of its own, so they are as cold as in a training step. A large product runs first: after waiting
for a request, a core needs some milliseconds to be fast. Prints one JSON line per product.
"""
import argparse
import json
import re

import common

ap = argparse.ArgumentParser()
ap.add_argument("--target", default="")
ap.add_argument("--steps", type=int, default=17, help="the first half warms up")
a = ap.parse_args()
common.limit_threads(1)
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
random = np.random.RandomState(0)
# As in bench/products.
EXTENTS = [(1, 256, 784), (8, 768, 768), (64, 384, 1024), (64, 1024, 384), (64, 256, 784), (784, 256, 64), (100, 500, 784),
           (784, 500, 100), (500, 500, 100), (4096, 384, 128), (4096, 512, 128), (128, 512, 4096), (256, 256, 256),
           (512, 512, 512), (1024, 1024, 1024)]


def matrix(name, rows, columns):
    return tf1.get_variable(name, initializer=random.randn(rows, columns).astype(np.float32), use_resource=True)


def product(m, n, k, transpose_a, transpose_b):
    name = f"product_{m}_{n}_{k}_{transpose_a}{transpose_b}"
    left = matrix(name + "_a", *((k, m) if transpose_a else (m, k)))
    right = matrix(name + "_b", *((n, k) if transpose_b else (k, n)))
    return tf.matmul(left, right, transpose_a=bool(transpose_a), transpose_b=bool(transpose_b), name=name)


with tf.Graph().as_default():
    square = matrix("square", 1024, 1024)
    with tf.control_dependencies([tf.matmul(square, square)]):
        used = tf.add_n([tf.reduce_max(product(*extents, ta, tb)) for extents in EXTENTS for ta in (0, 1) for tb in (0, 1)])
    one_thread = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    traced = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
    times = {}
    with tf1.Session(a.target, config=one_thread) as session:
        session.run(tf1.global_variables_initializer())
        for step in range(a.steps):
            trace = tf1.RunMetadata()
            session.run(used, options=traced, run_metadata=trace)
            nodes = [node for device in trace.step_stats.dev_stats for node in device.node_stats]
            for node in nodes if step >= a.steps // 2 else []:
                name = node.node_name.split(":")[0]
                if re.fullmatch(r"product(_\d+){3}_\d\d", name):
                    ns = node.op_end_rel_nanos - node.op_start_rel_nanos or 1000 * (node.op_end_rel_micros - node.op_start_rel_micros)
                    times.setdefault(name, []).append(max(1, ns))

for name, ns in times.items():
    m, n, k = map(int, name.split("_")[1:4])
    print(json.dumps({"product": f"{m} {n} {k} {name[-2:]}", "gflops": 2 * m * n * k / sorted(ns)[len(ns) // 2]}), flush=True)

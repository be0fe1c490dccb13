"""Cost per node of a prepared graph of tiny adds: TensorFlow session, ONNX Runtime, torch eager.

  python3 null_ops.py --peer ort --nodes 5000 --shape chain
"""
import argparse

import common

ap = argparse.ArgumentParser()
ap.add_argument("--peer", choices=["tf", "ort", "torch"], required=True)
ap.add_argument("--nodes", type=int, default=5000)
ap.add_argument("--threads", type=int, default=1)
ap.add_argument("--reps", type=int, default=15)
a = ap.parse_args()
common.limit_threads(a.threads)
import numpy as np  # noqa: E402

if a.peer == "tf":
    import tensorflow as tf
    tf1 = tf.compat.v1
    tf1.disable_v2_behavior()
    x = tf1.placeholder(tf.float32, [8])
    h = x
    for _ in range(a.nodes):
        h = h + x
    cfg = tf1.ConfigProto(intra_op_parallelism_threads=a.threads, inter_op_parallelism_threads=a.threads)
    cfg.graph_options.rewrite_options.disable_meta_optimizer = True
    cfg.graph_options.optimizer_options.opt_level = -1
    sess = tf1.Session(config=cfg)
    fn = sess.make_callable(h.op, feed_list=[x])
    v = np.ones(8, np.float32)
    run, name = (lambda: fn(v)), f"tensorflow {tf.__version__}"
elif a.peer == "ort":
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper
    nodes = [helper.make_node("Add", ["x" if i == 0 else f"h{i-1}", "x"], [f"h{i}"]) for i in range(a.nodes)]
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8])],
                          [helper.make_tensor_value_info(f"h{a.nodes-1}", TensorProto.FLOAT, [8])])
    m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    so = ort.SessionOptions()
    so.intra_op_num_threads = a.threads
    so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    s = ort.InferenceSession(m.SerializeToString(), so, providers=["CPUExecutionProvider"])
    v = np.ones(8, np.float32)
    run, name = (lambda: s.run(None, {"x": v})), f"onnxruntime {ort.__version__}"
else:
    import torch
    torch.set_num_threads(a.threads)
    x = torch.ones(8)

    def run():
        with torch.inference_mode():
            h = x
            for _ in range(a.nodes):
                h = torch.add(h, x)
        return h
    name = f"torch {torch.__version__} (python loop)"
t = common.timed(run, a.reps, a.nodes)
common.report("null_ops", name, vars(a), t, "node")

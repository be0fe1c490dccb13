#!/usr/bin/env python3
"""What a Leat cluster does not run of a TensorFlow program, and how the program switches that off.

  python3 tests/tensorflow/rewrites_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import re
import unittest

from leat_cluster import cluster, main, np, tf, tf1
from tensorflow.core.protobuf import rewriter_config_pb2


def options(**rewrites):
    config = tf1.ConfigProto(operation_timeout_in_ms=30_000)
    for name, value in rewrites.items():
        setattr(config.graph_options.rewrite_options, name, value)
    return config


def ran(session, fetches, feeds=None):
    """The values, and the ops of the nodes that ran."""
    metadata = tf1.RunMetadata()
    values = session.run(fetches, feeds, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), run_metadata=metadata)
    labels = [n.timeline_label for d in metadata.step_stats.dev_stats for n in d.node_stats]
    return values, [m[1] for m in (re.search(r" = (\w+)\(", label) for label in labels) if m]


class Rewrites(unittest.TestCase):
    def test_gradients_that_only_the_gate_reads(self):
        """minimize() waits for all gradients of an op, and so for that of the first convolution to the images."""
        with tf.Graph().as_default():
            x = tf1.get_variable("x", initializer=np.random.default_rng(0).random((4, 8, 8, 3), dtype=np.float32), trainable=False)
            h = x
            for i, (channels, filters) in enumerate([(3, 4), (4, 5)]):
                w = np.random.default_rng(i).random((3, 3, channels, filters), dtype=np.float32)
                h = tf.nn.relu(tf1.nn.conv2d(h, tf1.get_variable(f"w{i}", initializer=w), strides=[1, 1, 1, 1], padding="SAME"))
            loss = tf.reduce_mean(h * h)
            train = tf1.train.GradientDescentOptimizer(0.01).minimize(loss)
            losses = {}
            for name, target, config in [("TensorFlow", "", options()), ("Leat", cluster().target, options()),
                                         ("as it is", cluster().target, options(disable_meta_optimizer=True))]:
                config.isolate_session_state = True
                with tf1.Session(target, config=config) as session:
                    session.run(tf1.global_variables_initializer())
                    (value, _), ops = ran(session, [loss, train])
                    losses[name] = [value, session.run(loss)]
                if target:
                    self.assertEqual(ops.count("Conv2DBackpropFilter"), 2)
                    self.assertEqual(ops.count("Conv2DBackpropInput"), 2 if name == "as it is" else 1)
        for name in ("Leat", "as it is"):
            np.testing.assert_allclose(losses[name], losses["TensorFlow"], rtol=1e-4)

    def test_mixed_precision(self):
        """TensorFlow's options for float16 (on GPUs, or on CPUs, too) and for bfloat16."""
        on = rewriter_config_pb2.RewriterConfig.ON
        with tf.Graph().as_default():
            random = np.random.default_rng(0)
            x = tf1.placeholder(tf.float32, [8, 64])
            h = tf.nn.relu(x @ tf.constant(random.random((64, 64), dtype=np.float32)))
            y = tf.nn.softmax(h @ tf.constant(random.random((64, 10), dtype=np.float32)) / 1000)
            feed = {x: random.random((8, 64), dtype=np.float32)}
            got = {}
            for option in ("", "auto_mixed_precision", "auto_mixed_precision_cpu", "auto_mixed_precision_onednn_bfloat16"):
                with tf1.Session(cluster().target, config=options(**({option: on} if option else {}))) as session:
                    got[option], ops = ran(session, y, feed)
                    self.assertEqual(any("Cast" in op for op in ops), option.endswith(("cpu", "bfloat16")), (option, ops))
        exact = got[""]
        np.testing.assert_array_equal(got["auto_mixed_precision"], exact)  # there is no GPU
        for option, error in (("auto_mixed_precision_cpu", 2e-3), ("auto_mixed_precision_onednn_bfloat16", 2e-2)):
            self.assertEqual(got[option].dtype, np.float32)
            self.assertFalse(np.array_equal(got[option], exact))
            np.testing.assert_allclose(got[option], exact, rtol=error)

    def test_options(self):
        with tf.Graph().as_default():
            x = tf1.placeholder(tf.float32, [4])
            y = tf.pow(x, 2.0) + tf.sin(x) * tf.sin(x)
            feed = {x: np.array([1, -2, 3, 0.5], np.float32)}
            got = {}
            OFF = rewriter_config_pb2.RewriterConfig.OFF
            level = options()
            level.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
            for name, config in [("all", options()), ("no arithmetic", options(arithmetic_optimization=OFF)),
                                 ("nothing", options(disable_meta_optimizer=True)), ("L0", level)]:
                with tf1.Session(cluster().target, config=config) as session:
                    got[name] = ran(session, y, feed)
        for name, (value, ops) in got.items():
            np.testing.assert_allclose(value, got["all"][0], rtol=1e-6, err_msg=name)
            self.assertEqual("Square" in ops, name == "all", name)
            self.assertEqual("Pow" in ops, name != "all", name)
            self.assertEqual(ops.count("Sin"), 2 if name in ("nothing", "L0") else 1, name)

    def test_recomputation(self):
        """memory_optimization asks for copies of forward nodes that run again, and nothing else changes."""
        types = rewriter_config_pb2.RewriterConfig
        with tf.Graph().as_default():
            h = tf1.get_variable("x", initializer=np.random.default_rng(0).random((64, 32), dtype=np.float32), trainable=False)
            for i in range(12):
                w = np.random.default_rng(i).standard_normal((32, 32)).astype(np.float32) / 6
                h = tf.tanh(tf.matmul(h, tf1.get_variable(f"w{i}", initializer=w)))
            loss = tf.reduce_mean(h * h)
            train = tf1.train.GradientDescentOptimizer(0.01).minimize(loss)
            got = {}
            for name in ("DEFAULT_MEM_OPT", "HEURISTICS", "RECOMPUTATION_HEURISTICS"):
                config = options(memory_optimization=types.MemOptType.Value(name))
                config.isolate_session_state = True
                with tf1.Session(cluster().target, config=config) as session:
                    session.run(tf1.global_variables_initializer())
                    (value, _), ops = ran(session, [loss, train])
                    got[name] = [value, session.run(loss)], len(ops)
        values, count = got["DEFAULT_MEM_OPT"]
        for name in ("HEURISTICS", "RECOMPUTATION_HEURISTICS"):
            self.assertEqual(got[name][0], values, name)
            self.assertGreater(got[name][1], count + 3, name)


if __name__ == "__main__":
    main(__doc__)

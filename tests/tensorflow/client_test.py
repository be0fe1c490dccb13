#!/usr/bin/env python3
"""TensorFlow's own client against a Leat cluster: every program runs on Session('') and on grpc://, and both must agree.

  python3 tests/tensorflow/client_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it. Starts and ends its own cluster of one
ps and two workers on loopback.
"""
import json
import os
import socket
import subprocess
import tempfile
import time
import unittest

from leat_cluster import CONFIG, cluster, main, np, tf, tf1


def on_both(build, steps=1, feeds=None):
    """Runs build() → (init, fetches) on both runtimes; yields the values of each step as pairs."""
    results = []
    for target in ("", cluster().target):
        with tf1.Graph().as_default():
            init, fetches, placeholders = build()
            if target:
                tf1.Session.reset(target)  # no variables of other tests
            with tf1.Session(target, config=CONFIG) as session:
                if init is not None:
                    session.run(init)
                values = []
                for step in range(steps):
                    feed = dict(zip(placeholders, feeds(step))) if feeds else None
                    values.append(session.run(fetches, feed))
        results.append(values)
    return zip(*results)


class Values(unittest.TestCase):
    def assert_same(self, pairs, tolerance=1e-5):
        for step, (expected, got) in enumerate(pairs):
            for e, g in zip(tf.nest.flatten(expected), tf.nest.flatten(got)):
                np.testing.assert_allclose(np.asarray(g, dtype=np.asarray(e).dtype), e, rtol=tolerance, atol=tolerance,
                                           err_msg=f"step {step}")

    def test_constant(self):
        self.assert_same(on_both(lambda: (None, tf.constant(1.0) + 2.0, [])))

    def test_variables(self):
        def build():
            v = tf1.get_variable("v", [3], initializer=tf1.ones_initializer(), use_resource=False)
            return v.initializer, [tf1.assign_add(v, [1.0, 2.0, 3.0])], []
        self.assert_same(on_both(build, steps=3))

    def test_timestamp(self):
        with tf1.Graph().as_default(), tf1.Session(cluster().target, config=CONFIG) as session:
            now = tf.timestamp()
            before = time.time()
            first, second = session.run(now), session.run(now)
            self.assertLess(before - 1, first)
            self.assertLess(first, second)
            self.assertLess(second, time.time() + 1)

    def test_cond(self):
        def build():
            p = tf1.placeholder(tf.bool, [])
            tf1.disable_control_flow_v2()
            return None, [tf1.cond(p, lambda: tf.constant(1.0) * 3.0, lambda: tf.constant(2.0) * 5.0)], [p]
        self.assert_same(on_both(build, steps=2, feeds=lambda step: [step == 0]))

    def test_broadcasting_and_shapes(self):
        def build():
            x = tf1.placeholder(tf.float32, [None, 3])
            y = tf1.placeholder(tf.float32, [3])
            z = tf.reduce_mean(x * y + 1.0, axis=1, keepdims=True)
            g = tf1.gradients(z, [x, y])
            return None, [z, tf.shape(x), tf.reshape(x, [-1]), tf.concat([x, x], 0), tf.stack([y, y]), x[1:, ::2]] + g, [x, y]
        self.assert_same(on_both(build, steps=3, feeds=lambda step: [
            np.random.default_rng(step).standard_normal((2 + step, 3), dtype=np.float32), np.ones(3, np.float32)]))

    def test_ragged_tensors(self):
        def build():
            values = tf1.placeholder(tf.float32, [None])
            rows = tf.RaggedTensor.from_row_splits(values, [0, 2, 2, 5])
            nested = tf.RaggedTensor.from_row_splits(rows, [0, 1, 3])
            ids = tf.RaggedTensor.from_value_rowids(values, [0, 0, 2, 2, 3], nrows=5)
            default = tf1.placeholder(tf.float32, [])
            sparse = rows.to_sparse()
            dense = [rows.to_tensor(default), nested.to_tensor(default, shape=[None, 3, 2]), ids.to_tensor(default)]
            taken = tf.gather(rows, [2, 0, 2])
            sums = tf.reduce_sum(taken * taken, axis=1)
            total = tf.reduce_sum(sums) + tf.reduce_sum(dense[1] ** 2) + tf.reduce_sum(sparse.values ** 3) + sum(map(tf.reduce_sum, dense))
            slices = tf1.gradients(total, [values, default])
            texts = tf.strings.unicode_decode(["h\u00e4", "", "\U0001F600!"], "UTF-8")
            return None, [dense, sparse.indices, sparse.values, sparse.dense_shape, taken.values, taken.row_splits, sums,
                          [tf.convert_to_tensor(g) for g in slices], tf.gather(nested, [[1], [0]]).flat_values,
                          tf.ragged.range([0, 3], [4, 1], [1, -1]).to_tensor(), texts.to_tensor()], [values, default]
        self.assert_same(on_both(build, steps=2, feeds=lambda step: [np.arange(5) + step, 7.0]))

    def train(self, hidden, optimizer, steps=30):
        def build():
            rng = np.random.default_rng(0)
            x = tf1.placeholder(tf.float32, [None, 784])
            y = tf1.placeholder(tf.int32, [None])
            h, width = x, 784
            weights = []
            for i, n in enumerate([*hidden, 10]):
                weights.append((
                    tf1.get_variable(f"w{i}", initializer=rng.standard_normal((width, n)).astype(np.float32) * 0.05,
                                     use_resource=False),
                    tf1.get_variable(f"b{i}", initializer=np.zeros(n, np.float32), use_resource=False)))
                width = n
            for i, (w, b) in enumerate(weights):
                h = tf.matmul(h, w) + b
                if i < len(hidden):
                    h = tf.nn.relu(h)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=h))
            train = optimizer().minimize(loss)
            return tf1.global_variables_initializer(), [loss, train], [x, y]

        def feeds(step):
            rng = np.random.default_rng(100 + step)
            return rng.random((32, 784), dtype=np.float32), rng.integers(0, 10, 32).astype(np.int32)
        pairs = [([e[0]], [g[0]]) for e, g in on_both(build, steps, feeds)]
        self.assert_same(pairs, tolerance=2e-4)
        return pairs

    def test_softmax_regression(self):
        self.train([], lambda: tf1.train.GradientDescentOptimizer(0.1))

    def test_mlp_with_momentum(self):
        self.train([64], lambda: tf1.train.MomentumOptimizer(0.05, 0.9))

    def test_mlp_with_adam(self):
        self.train([64, 32], lambda: tf1.train.AdamOptimizer(1e-3))

    def test_variables_on_the_parameter_server(self):
        with tf1.Graph().as_default():
            with tf1.device("/job:ps/task:0"):
                v = tf1.get_variable("shared", initializer=1.0, use_resource=False)
                add = v.assign_add(2.0)
            with tf1.device("/job:worker/task:1"):
                doubled = v * 2.0
            with tf1.Session(cluster().target, config=CONFIG) as session:
                session.run(v.initializer)
                self.assertEqual(session.run(add), 3.0)
            with tf1.Session(cluster().target, config=CONFIG) as session:  # state outlives sessions
                self.assertEqual(session.run(doubled), 6.0)

    def test_linear_model_of_crossed_columns(self):
        """The wide part of a wide and deep model: hashed crosses of sparse and dense features, trained."""
        def build():
            words, numbers = tf1.placeholder(tf.string, [None, 2]), tf1.placeholder(tf.int64, [None, 1])
            labels = tf1.placeholder(tf.float32, [None, 1])
            feature = tf.feature_column
            columns = [feature.categorical_column_with_hash_bucket("word", 50), feature.crossed_column(["word", "number"], 200)]
            loss = tf.reduce_mean((tf1.feature_column.linear_model({"word": words, "number": numbers}, columns) - labels) ** 2)
            with tf.control_dependencies([loss]):
                train = tf1.train.GradientDescentOptimizer(0.3).minimize(loss)
            with tf.control_dependencies([train]):
                after = [tf1.identity(v.read_value()) for v in tf1.trainable_variables()]
            return tf1.global_variables_initializer(), [loss, after], [words, numbers, labels]

        def feeds(step):
            rng = np.random.default_rng(step)
            words = np.array([b"", b"a", b"bc", b"def"], object)[rng.integers(0, 4, (16, 2))]
            return [words, rng.integers(-2, 3, (16, 1)), rng.standard_normal((16, 1))]
        self.assert_same(on_both(build, steps=4, feeds=feeds))


class Errors(unittest.TestCase):
    def run_failing(self, build, error):
        with tf1.Graph().as_default():
            fetch = build()
            with tf1.Session(cluster().target, config=CONFIG) as session:
                with self.assertRaises(error) as caught:
                    session.run(fetch)
        return str(caught.exception)

    def test_uninitialized_variable(self):
        text = self.run_failing(lambda: tf1.get_variable("nobody", [2], use_resource=False) + 1.0,
                                tf.errors.FailedPreconditionError)
        self.assertIn("Attempting to use uninitialized value nobody", text)
        self.assertIn("client_test.py", text)  # the client shows the user's own line

    def test_unplaceable(self):
        def build():
            with tf1.device("/job:nowhere/task:0"):
                return tf.constant(1.0) + 1.0
        self.assertIn("Cannot assign a device for operation", self.run_failing(build, tf.errors.InvalidArgumentError))

    def test_not_fed(self):
        text = self.run_failing(lambda: tf1.placeholder(tf.float32, [2]) * 2.0, tf.errors.InvalidArgumentError)
        self.assertIn("You must feed a value for placeholder tensor", text)

    def test_a_node_that_cannot_run_harms_only_the_steps_that_need_it(self):
        with tf1.Graph().as_default():
            x = tf1.placeholder(tf.float32, [None, 3])
            chosen = tf1.placeholder(tf.bool, [])
            beyond = tf1.cond(chosen, lambda: tf1.slice(x, [0, 1], [1, 5]), lambda: x)
            mirrored = tf.pad(x, [[0, 0], [5, 5]], "REFLECT")
            feeds = {x: np.ones([2, 3])}
            with tf1.Session(cluster().target, config=CONFIG) as session:
                self.assertEqual(session.run(x + 1.0, feeds).tolist(), [[2] * 3] * 2)
                self.assertEqual(session.run(beyond, {**feeds, chosen: False}).shape, (2, 3))
                for fetch, more in (beyond, {chosen: True}), (mirrored, {}):
                    with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
                        session.run(fetch, {**feeds, **more})
                    self.assertIn("client_test.py", str(caught.exception))

    def test_attributes_that_no_input_fits_harm_only_the_steps_that_need_them(self):
        with tf1.Graph().as_default():
            x = tf1.placeholder(tf.float32, [2, 7, 6, 1])
            pooled = tf.raw_ops.AvgPool(value=x, ksize=[1, 0, 2, 1], strides=[1, 1, 1, 1], padding="SAME")
            with tf1.Session(cluster().target, config=CONFIG) as session:
                self.assertEqual(session.run(tf.constant(3.0) + 1.0), 4.0)
                for fetch in (pooled, pooled * 2.0):
                    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "AvgPool"):
                        session.run(fetch, {x: np.ones([2, 7, 6, 1])})

    def test_ops_without_kernels_harm_only_the_steps_that_need_them(self):
        with tf1.Graph().as_default():
            v = tf1.get_variable("v", initializer=np.ones([64], np.float32), use_resource=False)
            script = tf.strings.unicode_script([65])
            root = tf.linalg.sqrtm(tf.eye(2))
            values = tf.linalg.eigvals(tf.eye(2))
            eights = tf.quantization.quantize([1.0], 0.0, 2.0, tf.quint8).output
            handle = tf1.get_session_handle(v * 2.0)
            with tf1.Session(cluster().target, config=CONFIG) as session:
                session.run(v.initializer)
                self.assertEqual(session.run(v + 1.0).tolist(), [2] * 64)
                for fetch, words in ((script, "there is no kernel for it"), (root, "there is no kernel for it"),
                                     (values, "there is no kernel for it"), (eights, "use the float graph"),
                                     (handle, "keep the value in a variable")):
                    with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
                        session.run(fetch)
                    self.assertIn(words, str(caught.exception))

    def test_list_devices(self):
        with tf1.Session(cluster().target, config=CONFIG) as session:
            names = {d.name for d in session.list_devices()}
        self.assertIn("/job:ps/replica:0/task:0/device:CPU:0", names)
        self.assertIn("/job:worker/replica:0/task:1/device:CPU:0", names)


class Start(unittest.TestCase):
    def run_while_tasks_start(self, folder, order, pause):
        sockets = [socket.socket() for _ in order]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
        for s in sockets:
            s.close()
        spec = os.path.join(folder, "cluster.json")
        with open(spec, "w") as file:
            json.dump({"cluster": {"ps": addresses[:2], "worker": addresses[2:]}}, file)
        tasks = []
        try:
            for job, index in order:
                tasks.append(subprocess.Popen([cluster().leat, "task", spec, "--job", job, "--task", str(index)],
                                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                time.sleep(pause)
            with tf1.Graph().as_default(), tf1.Session("grpc://" + addresses[2], config=CONFIG) as session:
                variables = []
                for index in range(2):
                    with tf1.device(f"/job:ps/task:{index}"):
                        variables.append(tf1.get_variable(f"v{index}", initializer=tf.ones([4])))
                with tf1.device("/job:worker/task:1"):
                    total = tf.reduce_sum(tf.add_n(variables))
                session.run(tf1.global_variables_initializer())
                self.assertEqual(session.run(total), 8)
        finally:
            for task in tasks:
                task.terminate()
            for task in tasks:
                task.wait()

    def test_a_client_that_comes_while_tasks_start(self):
        """Its first step waits until the tasks have met each other, in whatever order they come."""
        order = [("worker", 0), ("ps", 0), ("worker", 1), ("ps", 1)]
        with tempfile.TemporaryDirectory() as folder:
            for each in (order, order[::-1]):
                for pause in (0, 0.2, 0.4):
                    self.run_while_tasks_start(folder, each, pause)


if __name__ == "__main__":
    main(__doc__)

#!/usr/bin/env python3
"""Collectives of two tasks: values, dtypes and errors are those of two devices of TensorFlow's Session('').

  python3 tests/tensorflow/collectives_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import concurrent.futures
import unittest

from leat_cluster import cluster, main, np, tf, tf1
from tensorflow.python.ops import gen_collective_ops as collectives

HERE = tf1.ConfigProto(operation_timeout_in_ms=30_000, device_count={"CPU": 2})
THERE = tf1.ConfigProto(operation_timeout_in_ms=30_000)


def reduce(x, instance, merge_op="Add", final_op="Id", size=2):
    return collectives.collective_reduce_v2(x, group_size=size, group_key=7, instance_key=instance, ordering_token=[],
                                            merge_op=merge_op, final_op=final_op)


def gather(x, instance, size=2):
    return collectives.collective_gather_v2(x, group_size=size, group_key=7, instance_key=instance, ordering_token=[])


def send(x, instance):
    return collectives.collective_bcast_send_v2(x, group_size=2, group_key=7, instance_key=instance)


def receive(T, shape, instance):
    return collectives.collective_bcast_recv_v2(group_size=2, group_key=7, instance_key=instance, shape=shape, T=T)


class Collectives(unittest.TestCase):
    def outcome(self, target, build):
        """What `build(on)` fetches; on(i) places on member i."""
        with tf1.Graph().as_default():
            fetches = build(lambda i: tf1.device(f"/job:worker/task:{i}" if target else f"/cpu:{i}"))
            options = tf1.RunOptions(experimental=tf1.RunOptions.Experimental(collective_graph_key=1))
            with tf1.Session(target, config=THERE if target else HERE) as session:
                for _ in range(2):  # a group serves every step
                    values = session.run(fetches, options=options)
                return values

    def check(self, build):
        expected, got = self.outcome("", build), self.outcome(cluster().target, build)
        for e, g in zip(expected, got):
            self.assertEqual((g.dtype, g.shape), (e.dtype, e.shape))
            np.testing.assert_allclose(g, e, rtol=1e-3 if e.dtype == np.float16 else 1e-6)

    def members(self, collective, values):
        def build(on):
            outputs = []
            for i, value in enumerate(values):
                with on(i):
                    outputs.append(collective(tf.constant(value)))
            return outputs
        return build

    def test_reduce(self):
        for dtype in (np.float16, np.float32, np.float64, np.int32, np.int64):
            values = [np.array([[6, 2, -4], [0, 8, 10]], dtype), np.array([[2, 4, 6], [1, -8, 12]], dtype)]
            for merge in ("Add", "Mul", "Min", "Max"):
                for final in ("Id", "Div"):
                    with self.subTest(dtype=dtype, merge=merge, final=final):
                        self.check(self.members(lambda x: reduce(x, 1, merge, final), values))

    def test_reduce_of_scalars_and_nothing(self):
        self.check(self.members(lambda x: reduce(x, 2), [np.float32(1.5), np.float32(2)]))
        self.check(self.members(lambda x: reduce(x, 3), [np.zeros((0, 3), np.float32)] * 2))

    def test_gather(self):
        for dtype in (np.float16, np.float32, np.float64, np.int32, np.int64):
            values = [np.arange(6).reshape(2, 3).astype(dtype), np.arange(6, 12).reshape(2, 3).astype(dtype)]
            self.check(self.members(lambda x: gather(x, 4), values))

    def test_broadcast(self):
        def build(on):
            with on(0):
                sent = send(tf.constant([[1.0, 2.0]]), 5)
            with on(1):
                got = receive(tf.float32, [1, 2], 5)
            return sent, got
        self.check(build)

    def test_several_groups_in_a_step(self):
        def build(on):
            outputs = []
            for i in (0, 1):
                with on(i):
                    x = reduce(tf.constant([1.0 + i, 3.0]), 6)
                    outputs += [x, gather(x * (i + 2.0), 8)]
            return outputs
        self.check(build)

    def test_trains_two_replicas(self):
        """Two copies of a variable, each with the mean of both gradients, stay equal."""
        def build(on):
            assigned = []
            for i, (x, y) in enumerate([([1.0, 2.0], 3.0), ([-1.0, 1.0], 0.5)]):
                with on(i):
                    w = tf.constant([0.5, -0.5])
                    for step in range(3):
                        error = tf.reduce_sum(w * x) - y
                        w = w - 0.1 * reduce(2.0 * error * x, 10 + step, "Add", "Div")
                    assigned.append(w)
            return assigned
        self.check(build)
        got = self.outcome(cluster().target, build)
        np.testing.assert_array_equal(got[0], got[1])

    def test_different_members_are_errors(self):
        def sizes(on):
            with on(0):
                a = reduce(tf.constant([1.0, 2.0]), 20)
            with on(1):
                b = reduce(tf.constant([1.0, 2.0, 3.0]), 20)
            return a, b

        def missing(on):
            with on(0):
                return [reduce(tf.constant([1.0]), 21)]
        for build, text in ((sizes, "instance 20"), (missing, "instance 21")):
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, text):
                self.outcome(cluster().target, build)


class Programs(unittest.TestCase):
    """A program for each worker, which meet as ConfigProto.Experimental.collective_group_leader says."""

    def each(self, program):
        """What program(i) returns, both at the same time."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return [f.result() for f in [pool.submit(program, i) for i in (0, 1)]]

    def session(self, i):
        config = tf1.ConfigProto(operation_timeout_in_ms=30_000)
        config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
        return tf1.Session(cluster().targets[i], config=config)

    def test_exchange(self):
        def program(i):
            with tf1.Graph().as_default(), tf1.device(f"/job:worker/task:{i}"):
                x = tf.constant([[1.0 + i, 2.0]])
                outputs = [reduce(x, 30), reduce(x, 31, "Max", "Id"), gather(x, 32),
                           send(x, 33) if i == 0 else receive(tf.float32, [1, 2], 33)]
                with self.session(i) as session:
                    return session.run(outputs)
        for total, largest, both, sent in self.each(program):
            np.testing.assert_array_equal(total, [[3, 4]])
            np.testing.assert_array_equal(largest, [[2, 2]])
            np.testing.assert_array_equal(both, [[1, 2], [2, 2]])
            np.testing.assert_array_equal(sent, [[1, 2]])

    def test_train_together(self):
        data = [([[1.0, 2.0]], 3.0), ([[-1.0, 1.0]], 0.5)]

        def program(i):
            x, y = data[i]
            with tf1.Graph().as_default(), tf1.device(f"/job:worker/task:{i}"):
                w = tf1.get_variable(f"w{i}", initializer=[[0.5], [-0.5]])
                optimizer = tf1.train.GradientDescentOptimizer(0.1)
                (gradient, _), = optimizer.compute_gradients(tf.reduce_mean(tf.square(tf.matmul(x, w) - y)), [w])
                step = optimizer.apply_gradients([(reduce(gradient, 40, "Add", "Div"), w)])
                with self.session(i) as session:
                    session.run(w.initializer)
                    for _ in range(100):
                        session.run(step)
                    return session.run(w)
        first, second = self.each(program)
        np.testing.assert_array_equal(first, second)
        for x, y in data:
            np.testing.assert_allclose(np.matmul(x, first), [[y]], atol=1e-2)

    def test_multi_worker_mirrored_strategy(self):
        """TensorFlow's own: initial values from the first worker, the mean of the gradients, equal variables."""
        data = [([[1.0, 2.0]], 3.0), ([[-1.0, 1.0]], 0.5)]
        addresses = [target.removeprefix("grpc://") for target in cluster().targets]

        def program(i):
            resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
                tf1.train.ClusterSpec({"worker": addresses}), task_type="worker", task_id=i, rpc_layer="grpc")
            strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
            config = strategy.extended._update_config_proto(tf1.ConfigProto(operation_timeout_in_ms=30_000))
            x, y = data[i]
            with tf1.Graph().as_default(), strategy.scope():
                w = tf1.get_variable("w", initializer=[[0.5 + i], [-0.5]])  # that of the first is everyone's
                start = w.read_value()

                def step():
                    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
                    return tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
                train = strategy.group(strategy.extended.call_for_each_replica(step))
                init = tf1.global_variables_initializer()
                with tf1.Session(cluster().targets[i], config=config) as session:
                    session.run(init)
                    first = session.run(start)
                    for _ in range(100):
                        session.run(train)
                    return first, session.run(w)
        (start, w), (other_start, other_w) = self.each(program)
        np.testing.assert_array_equal(start, [[0.5], [-0.5]])
        np.testing.assert_array_equal(other_start, start)
        np.testing.assert_array_equal(other_w, w)
        for x, y in data:
            np.testing.assert_allclose(np.matmul(x, w), [[y]], atol=1e-2)


if __name__ == "__main__":
    main(__doc__)

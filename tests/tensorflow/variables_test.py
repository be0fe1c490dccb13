#!/usr/bin/env python3
"""Variables as TensorFlow's own client uses them: references, resources and partitioned ones on several parameter servers,
conditions on whether one is initialised, what a fetch beside an update sees. Every program agrees with Session('').

  python3 tests/tensorflow/variables_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import unittest

from leat_cluster import CONFIG, cluster, main, np, tf, tf1
from tensorflow.python.training import training_util

PS = ["/job:ps/task:0", "/job:ps/task:1"]


def on_both(build, steps=1, feeds=None):
    """Runs build() → (fetches, placeholders) on both runtimes; yields the values of each step as pairs."""
    results = []
    for target in ("", cluster().target):
        with tf1.Graph().as_default():
            device = tf1.train.replica_device_setter(ps_tasks=2) if target else None
            with tf1.device(device):
                fetches, placeholders = build()
            init = tf1.global_variables_initializer()
            if target:
                tf1.Session.reset(target)
            with tf1.Session(target, config=CONFIG) as session:
                session.run(init)
                results.append([session.run(fetches, dict(zip(placeholders, feeds(step))) if feeds else None)
                                for step in range(steps)])
    return list(zip(*results))


class Agreement(unittest.TestCase):
    def assert_same(self, pairs, tolerance=1e-5):
        for step, (expected, got) in enumerate(pairs):
            for e, g in zip(tf.nest.flatten(expected), tf.nest.flatten(got)):
                if np.asarray(e).dtype.kind in "SO":
                    np.testing.assert_array_equal(g, e, err_msg=f"step {step}")
                else:
                    np.testing.assert_allclose(np.asarray(g, dtype=np.asarray(e).dtype), e, rtol=tolerance,
                                               atol=tolerance, err_msg=f"step {step}")


def mlp(optimizer, use_resource, partitioner=None, hidden=(32,)):
    rng = np.random.default_rng(0)
    x = tf1.placeholder(tf.float32, [None, 64])
    y = tf1.placeholder(tf.int32, [None])
    h, width = x, 64
    with tf1.variable_scope("mlp", use_resource=use_resource, partitioner=partitioner):
        for i, n in enumerate([*hidden, 10]):
            value = rng.standard_normal((width, n)).astype(np.float32) * 0.1
            if partitioner:
                def part(shape, dtype, partition_info, value=value):
                    row, column = partition_info.var_offset
                    return tf.constant(value[row:row + shape[0], column:column + shape[1]], dtype)
                w = tf1.get_variable(f"w{i}", [width, n], initializer=part)
            else:
                w = tf1.get_variable(f"w{i}", initializer=value)
            b = tf1.get_variable(f"b{i}", [n], initializer=tf1.zeros_initializer())
            h = tf.matmul(h, w) + b
            if i < len(hidden):
                h = tf.nn.relu(h)
            width = n
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=h))
    train = optimizer().minimize(loss, global_step=tf1.train.get_or_create_global_step())
    with tf1.control_dependencies([train]):
        step = tf.identity(tf1.train.get_global_step().read_value())
    return [loss, step], [x, y]


def batch(step, n=16):
    rng = np.random.default_rng(100 + step)
    return rng.random((n, 64), dtype=np.float32), rng.integers(0, 10, n).astype(np.int32)


OPTIMIZERS = {
    "sgd": lambda: tf1.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf1.train.MomentumOptimizer(0.05, 0.9),
    "nesterov": lambda: tf1.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "adam": lambda: tf1.train.AdamOptimizer(1e-3),
    "adagrad": lambda: tf1.train.AdagradOptimizer(0.05),
    "rmsprop": lambda: tf1.train.RMSPropOptimizer(1e-3, momentum=0.5),
}


class Variables(Agreement):
    def test_every_optimizer_on_refs_and_resources(self):
        for name, optimizer in OPTIMIZERS.items():
            for use_resource in (False, True):
                with self.subTest(optimizer=name, use_resource=use_resource):
                    self.assert_same(on_both(lambda: mlp(optimizer, use_resource), 12, batch), 2e-4)

    def test_partitioned_variables(self):
        for use_resource in (False, True):
            with self.subTest(use_resource=use_resource):
                self.assert_same(on_both(lambda: mlp(OPTIMIZERS["momentum"], use_resource,
                                                     tf1.fixed_size_partitioner(2)), 12, batch), 2e-4)

    def test_embeddings(self):
        def build(optimizer, use_resource):
            table = tf1.get_variable("table", initializer=np.random.default_rng(0).random((20, 4), dtype=np.float32),
                                     use_resource=use_resource)
            ids = tf1.placeholder(tf.int32, [None])
            rows = tf1.nn.embedding_lookup(table, ids)
            loss = tf.reduce_sum(tf.square(rows - 0.5))
            with tf1.control_dependencies([optimizer().minimize(loss)]):
                return [loss, tf.identity(table.read_value())], [ids]

        for name in ("sgd", "momentum", "adagrad", "adam"):
            for use_resource in (False, True):
                with self.subTest(optimizer=name, use_resource=use_resource):
                    self.assert_same(on_both(lambda: build(OPTIMIZERS[name], use_resource), 5,
                                             lambda step: [np.int32([step, 3, 3, 7])]))

    def test_reads_and_writes_in_order(self):
        def build(use_resource):
            v = tf1.get_variable("v", initializer=np.float32([1, 2]), use_resource=use_resource)
            before = v.read_value() + 0.0  # an Identity of a reference would follow the variable in TensorFlow
            with tf1.control_dependencies([before]):
                added = v.assign_add([10.0, 20.0])
            with tf1.control_dependencies([added]):
                middle = v.read_value() + 0.0
            with tf1.control_dependencies([middle]):
                assigned = v.assign_sub([1.0, 1.0])
            with tf1.control_dependencies([assigned]):
                return [before, middle, tf.identity(v.read_value()), tf.shape(v), tf1.is_variable_initialized(v)], []

        for use_resource in (False, True):
            self.assert_same(on_both(lambda: build(use_resource), 3))

    def test_one_node_hands_on_several_resources(self):
        def build():
            v = tf1.get_variable("v", initializer=3.0, use_resource=True)
            with tf1.colocate_with(v.handle):
                w = tf1.get_variable("w", initializer=4.0, use_resource=True)
                both = tf.raw_ops.IdentityN(input=[v.handle, tf.constant(2.0), w.handle])
            read = [tf.raw_ops.ReadVariableOp(resource=both[i], dtype=tf.float32) for i in (0, 2)]
            with tf1.control_dependencies(read):
                add = tf.raw_ops.AssignAddVariableOp(resource=both[2], value=both[1])
            with tf1.control_dependencies([add]):
                return [*read, both[1], v.read_value(), w.read_value()], []
        self.assert_same(on_both(build, steps=2))

    def test_a_fetch_beside_an_update_sees_it(self):
        """A fetched reference is the variable's memory, whatever ran first; what was computed from it is not."""
        def updated(v):
            return v.assign_add([1.0, 2.0]).op

        def of(update, what=lambda v: v):
            def build():
                v = tf1.get_variable("v", initializer=np.float32([1, 2]), use_resource=False)
                return [update(v), what(v)], []
            return build

        def updated_twice(v):  # in order: in TensorFlow two updates at once may write over each other's elements
            with tf1.control_dependencies([updated(v)]):
                return updated(v)

        def doubled(v):
            return tf1.assign(v, 2.0 * v).op

        def in_branch(is_taken):
            return lambda v: tf1.cond(tf1.placeholder_with_default(is_taken, []), lambda: updated(v), tf.no_op)

        def in_loop(v):
            def body(i):
                with tf1.control_dependencies([updated(v)]):
                    return tf.identity(i + 1)
            return tf1.while_loop(lambda i: i < 3, body, [0])

        def step_of_training():
            loss = tf.square(tf1.get_variable("w", initializer=3.0, use_resource=False))
            step = tf1.train.get_or_create_global_step()
            return [OPTIMIZERS["adam"]().minimize(loss, global_step=step), step], []

        programs = {"reference": of(updated), "read": of(updated, lambda v: v.value()),
                    "twice": of(updated_twice),
                    "branch": of(in_branch(True)), "other branch": of(in_branch(False)), "loop": of(in_loop)}
        for name, build in programs.items():
            with self.subTest(name=name):
                pairs = on_both(build, 3)
                self.assert_same([(e[1:], g[1:]) for e, g in pairs])
        # As on TensorFlow's cluster, the reference has crossed before an update that waits for the worker.
        for build, before in ((of(doubled), [1, 2]), (of(doubled, lambda v: v.value()), [1, 2]), (step_of_training, 0)):
            for (_, after), (_, got) in on_both(build, 4):
                np.testing.assert_array_equal(got, before)
                before = after
        # In TensorFlow, which of the two comes first is a race; here a value is read before what nothing orders before it.
        for step, (_, (_, total)) in enumerate(on_both(of(updated, lambda v: v + 0.0), 3)):
            np.testing.assert_array_equal(total, [1.0 + step, 2.0 + 2 * step])

    def test_condition_on_initialisation(self):
        """What create_global_step does: the value if there is one, else the initial value."""
        for use_resource in (False, True):
            with self.subTest(use_resource=use_resource), tf1.Graph().as_default():
                with tf1.device(tf1.train.replica_device_setter(ps_tasks=2)):
                    v = tf1.get_variable("v", initializer=5.0, use_resource=use_resource)
                    value = tf1.cond(tf1.is_variable_initialized(v), lambda: v.read_value() * 2.0, lambda: v.initial_value)
                    step = tf1.train.get_or_create_global_step()
                    step_read = training_util._get_or_create_global_step_read()
                tf1.Session.reset(cluster().target)
                with tf1.Session(cluster().target, config=CONFIG) as session:
                    self.assertEqual(session.run(value), 5.0)
                    session.run([v.initializer, step.initializer])
                    self.assertEqual(session.run([value, step_read]), [10.0, 0])

    def test_uninitialised_names(self):
        with tf1.Graph().as_default():
            with tf1.device(tf1.train.replica_device_setter(ps_tasks=2)):
                a = tf1.get_variable("a", initializer=1.0, use_resource=True)
                tf1.get_variable("b", initializer=1.0, use_resource=False)
                tf1.get_variable("c", initializer=1.0, use_resource=True)
            report = tf1.report_uninitialized_variables()
            tf1.Session.reset(cluster().target)
            with tf1.Session(cluster().target, config=CONFIG) as session:
                self.assertEqual(sorted(session.run(report)), [b"a", b"b", b"c"])
                session.run(a.initializer)
                self.assertEqual(sorted(session.run(report)), [b"b", b"c"])
                with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "uninitialized"):
                    session.run(tf1.global_variables()[2].read_value())

    def test_a_variable_may_be_given_another_shape(self):
        outcomes = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default(), tf1.device(PS[0] if target else None):
                v = tf1.Variable([1.0, 2.0, 3.0], use_resource=False, name="v")
                shorter = tf1.assign(v, [5.0, 6.0], validate_shape=False)
                longer = tf1.assign(v, [7.0, 8.0, 9.0], validate_shape=False)
                if target:
                    tf1.Session.reset(target)
                with tf1.Session(target, config=CONFIG) as session:
                    session.run(v.initializer)
                    outcomes.append([str(session.run(f)) for f in (shorter, v + 0.0, longer, v * 2.0, shorter)])
                    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "Assign requires shapes of both tensors to match"):
                        session.run(v.initializer)
                    outcomes[-1].append(str(session.run(v)))
        self.assertEqual(outcomes[1], outcomes[0])

    def test_a_resource_may_be_given_another_shape(self):
        outcomes = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default(), tf1.device(PS[0] if target else None):
                v = tf1.Variable(1.0, use_resource=True, name="v")
                x = tf1.placeholder(tf.float32)
                assign = tf.raw_ops.AssignVariableOp(resource=v.handle, value=x)
                with tf1.control_dependencies([assign]):
                    read = tf.raw_ops.ReadVariableOp(resource=v.handle, dtype=tf.float32) * 2.0
                current = v.read_value()
                if target:
                    tf1.Session.reset(target)
                with tf1.Session(target, config=CONFIG) as session:
                    results = []
                    for value in ([1.0, 2.0], 3.0, [[4.0]]):
                        results += [session.run(read, {x: value}), session.run(current)]
                    session.run(v.initializer)
                    results.append(session.run(current))
                    outcomes.append([str(r) for r in results])
        self.assertEqual(outcomes[1], outcomes[0])

    def test_another_client_cannot_change_a_shape(self):
        target = cluster().target
        tf1.Session.reset(target)
        with tf1.Graph().as_default(), tf1.device(PS[0]):
            v = tf1.get_variable("v", [2, 3], use_resource=False)
            with tf1.Session(target, config=CONFIG) as session:
                session.run(v.initializer)
                with tf1.Graph().as_default(), tf1.device(PS[0]):
                    other = tf1.get_variable("v", [3, 2], use_resource=False)
                    with tf1.Session(target, config=CONFIG) as second:
                        with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                                    r"lhs shape= \[2,3\] rhs shape= \[3,2\]\s+\[\[{{node v/Assign}}"):
                            second.run(other.initializer)
                self.assertEqual(session.run(v).shape, (2, 3))

    def test_variables_are_spread(self):
        with tf1.Graph().as_default():
            with tf1.device(tf1.train.replica_device_setter(ps_tasks=2)):
                for i in range(4):
                    tf1.get_variable(f"v{i}", initializer=float(i), use_resource=i % 2 == 0)
                total = tf.add_n([v.read_value() for v in tf1.global_variables()])
            metadata = tf1.RunMetadata()
            with tf1.Session(cluster().target, config=CONFIG) as session:
                session.run(tf1.global_variables_initializer())
                self.assertEqual(session.run(total, options=tf1.RunOptions(output_partition_graphs=True),
                                             run_metadata=metadata), 6.0)
        tasks = {node.device.split("/device")[0] for graph in metadata.partition_graphs for node in graph.node
                 if node.op in ("VariableV2", "VarHandleOp")}
        self.assertEqual(len(tasks), 2, tasks)


if __name__ == "__main__":
    main(__doc__, parameter_servers=2)

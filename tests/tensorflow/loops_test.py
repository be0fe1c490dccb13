#!/usr/bin/env python3
"""While loops, TensorArrays and stacks as TensorFlow's own client writes them, with the gradients that it makes of them:
every program agrees with Session('').

  python3 tests/tensorflow/loops_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import unittest

from leat_cluster import CONFIG, cluster, main, np, tf, tf1
from tensorflow.python.ops import gen_data_flow_ops as data_flow
from tensorflow.python.ops import rnn


class Cell:
    """An RNN, GRU or LSTM cell, as rnn_cell_impl had them before Keras took them."""

    def __init__(self, kind, units):
        self.kind, self.units = kind, units

    @property
    def state_size(self):
        return (self.units, self.units) if self.kind == "lstm" else self.units

    @property
    def output_size(self):
        return self.units

    def zero_state(self, batch, dtype):
        zeros = tf.zeros([batch, self.units], dtype)
        return (zeros, zeros) if self.kind == "lstm" else zeros

    def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
        return self.zero_state(batch_size, dtype)

    def linear(self, name, x, units):
        w = tf1.get_variable(name + "/w", [x.shape[1], units], initializer=tf1.random_uniform_initializer(-0.5, 0.5, seed=len(name)))
        return tf.nn.bias_add(tf.matmul(x, w), tf1.get_variable(name + "/b", [units], initializer=tf1.constant_initializer(0.1)))

    def __call__(self, x, state, scope=None):
        with tf1.variable_scope(scope or self.kind, reuse=tf1.AUTO_REUSE):
            h = state[1] if self.kind == "lstm" else state
            both = tf.concat([x, h], 1)
            if self.kind == "rnn":
                h = tf.tanh(self.linear("a", both, self.units))
                return h, h
            if self.kind == "gru":
                reset, update = tf.split(tf.sigmoid(self.linear("gates", both, 2 * self.units)), 2, 1)
                candidate = tf.tanh(self.linear("c", tf.concat([x, reset * h], 1), self.units))
                h = update * h + (1 - update) * candidate
                return h, h
            i, j, f, o = tf.split(self.linear("gates", both, 4 * self.units), 4, 1)
            c = state[0] * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
            h = tf.tanh(c) * tf.sigmoid(o)
            return h, (c, h)


def sequence(batch=2, time=5, width=3):
    return tf.constant(np.sin(np.arange(batch * time * width)).astype(np.float32).reshape(batch, time, width))


class Programs(unittest.TestCase):
    parameter_servers = 2

    def outcome(self, target, build, steps, **scope):
        with tf1.Graph().as_default():
            tf1.set_random_seed(1)
            if target:
                tf1.Session.reset(target)
            with tf1.device(tf1.train.replica_device_setter(ps_tasks=self.parameter_servers) if target else None):
                fetches = build(**scope)
                init = tf1.global_variables_initializer()
            try:
                with tf1.Session(target, config=CONFIG) as session:
                    session.run(init)
                    return [session.run(fetches) for _ in range(steps)]
            except tf.errors.OpError as error:
                return error

    def check(self, build, steps=1, tolerance=1e-5, **scope):
        expected = self.outcome("", build, steps, **scope)
        got = self.outcome(cluster().target, build, steps, **scope)
        if isinstance(expected, Exception) or isinstance(got, Exception):
            self.assertEqual(type(got), type(expected), f"{got}\nTensorFlow: {expected}")
            return got
        for step, (e_step, g_step) in enumerate(zip(expected, got)):
            for i, (e, g) in enumerate(zip(tf.nest.flatten(e_step), tf.nest.flatten(g_step))):
                e, g = np.asarray(e), np.asarray(g)
                self.assertEqual((g.dtype, g.shape), (e.dtype, e.shape), f"fetch {i}")
                if e.dtype.kind in "SOUb":
                    np.testing.assert_array_equal(g, e, err_msg=f"step {step}, fetch {i}")
                else:
                    np.testing.assert_allclose(g, e, rtol=tolerance, atol=tolerance, err_msg=f"step {step}, fetch {i}")
        return got


class Loops(Programs):
    def test_variables_of_several_types(self):
        def build():
            return tf1.while_loop(lambda i, x, s, b: i < 7, lambda i, x, s, b: (i + 1, x * 1.5 + 1, s + "a", tf.logical_not(b)),
                                  [tf.constant(0), tf.constant([1.0, 2.0]), tf.constant(""), tf.constant(True)])
        self.check(build)

    def test_no_iteration(self):
        def build():
            x = tf.constant([1.0, 2.0])
            y = tf1.while_loop(lambda i, a: i < 0, lambda i, a: (i + 1, a * x), [tf.constant(0), x])[1]
            return [y] + tf1.gradients(y, [x])
        self.check(build)

    def test_shapes_that_grow(self):
        def build():
            return tf1.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.concat([y, [i]], 0)), [tf.constant(0), tf.constant([7])],
                                  shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])
        self.check(build)

    def test_gradients(self):
        def build(use_resource):
            w = tf1.get_variable("w", initializer=np.eye(3, dtype=np.float32) * 0.5, use_resource=use_resource)
            x = tf.constant(np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3))
            y = tf1.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w)) + x), [tf.constant(0), x])[1]
            return [y] + tf1.gradients(tf.reduce_sum(y * y), [w, x])
        for use_resource in (False, True):
            self.check(build, use_resource=use_resource)

    def test_loops_in_loops(self):
        def build():
            x = tf.constant(0.3)

            def body(i, a):
                return i + 1, tf1.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b + tf.cast(j, tf.float32) * a), [tf.constant(0), a])[1]
            y = tf1.while_loop(lambda i, a: i < 5, body, [tf.constant(0), x])[1]
            return [y] + tf1.gradients(y, [x])
        self.check(build)

    def test_conditions_in_loops_and_loops_in_conditions(self):
        def build():
            x = tf.constant(2.0)
            y = tf1.while_loop(lambda i, a: i < 6, lambda i, a: (i + 1, tf1.cond(tf.equal(i % 2, 0), lambda: a * x, lambda: a + x)),
                               [tf.constant(0), tf.constant(1.0)])[1]
            loop = lambda: tf1.while_loop(lambda a: a < 100.0, lambda a: a * x, [x])
            taken = tf1.cond(y > 0, loop, lambda: x - 1)
            left = tf1.cond(y < 0, loop, lambda: x - 1)
            return [y, taken, left] + [tf1.gradients(z, [x])[0] for z in (y, taken, left)]
        self.check(build)

    def test_updates_of_variables(self):
        self.parameter_servers = 1  # a loop is where the variables are that it changes
        def build(use_resource):
            v = tf1.get_variable("v", initializer=0.5, use_resource=use_resource)

            def body(i):
                with tf1.control_dependencies([tf1.assign_add(v, tf.cast(i, tf.float32))]):
                    return i + 1
            n = tf1.while_loop(lambda i: i < 5, body, [tf.constant(0)])
            with tf1.control_dependencies([n]):
                return [n, v.read_value()]
        for use_resource in (False, True):
            self.check(build, steps=3, use_resource=use_resource)

    def test_reads_of_variables_in_a_branch(self):
        def build(expression):
            v = tf1.get_variable("v", initializer=3.0, use_resource=True)
            never = tf1.get_variable("never", initializer=3.0, use_resource=True, collections=[])
            return tf1.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a + expression(i, v, never)), [tf.constant(0), tf.constant(0.0)])
        for expression in (lambda i, v, _: tf1.cond(tf.equal(i % 2, 0), v.read_value, lambda: 100.0),
                           lambda i, v, _: tf1.cond(i > 1, lambda: v * 2.0, lambda: v + tf.cast(i, tf.float32)),
                           lambda i, _, never: tf1.cond(i > 77, never.read_value, lambda: 1.0)):
            self.check(lambda: build(expression))

    def test_random_numbers(self):
        def build():
            return tf1.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a + tf1.random_uniform([3], seed=5)),
                                  [tf.constant(0), tf.zeros([3])], parallel_iterations=1)
        self.check(build, steps=3)

    def test_a_queue(self):
        def build():
            q = tf1.FIFOQueue(10, [tf.float32], [[]])
            with tf1.control_dependencies([q.enqueue_many([[1.0, 2.0, 3.0]])]):
                n = tf.identity(3)
            return tf1.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a + q.dequeue()), [tf.constant(0), tf.constant(0.0)])
        self.check(build)

    def test_an_error_in_an_iteration(self):
        def build():
            table = tf.constant([1.0, 2.0, 3.0])
            return tf1.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a + tf.gather(table, i, name="look_up")),
                                  [tf.constant(0), tf.constant(0.0)])
        error = self.check(build)
        self.assertIn("indices[0] = 3 is not in [0, 3)" if "indices[0]" in str(error) else "indices = 3 is not in [0, 3)", str(error))
        self.assertIn("look_up", str(error))

    def test_an_endless_loop_ends_with_the_step(self):
        with tf1.Graph().as_default():
            y = tf1.while_loop(lambda a: a < 1.0, lambda a: a * 0.5, [tf.constant(0.5)])
            with tf1.Session(cluster().target, config=CONFIG) as session:
                with self.assertRaises(tf.errors.DeadlineExceededError):
                    session.run(y, options=tf1.RunOptions(timeout_in_ms=300))
                self.assertEqual(session.run(tf.constant(1.0)), 1.0)

    # ---- TensorArrays, and what is made of them ----

    def test_map_scan_and_folds(self):
        def build():
            x = tf.constant(np.arange(12, dtype=np.float32).reshape(4, 3) / 5)
            mapped = tf1.map_fn(lambda row: tf.reduce_sum(row * row), x)
            scanned = tf1.scan(lambda a, b: a * b + 1, x)
            left, right = tf1.foldl(lambda a, b: a * 0.5 + b, x), tf1.foldr(lambda a, b: a * 0.5 + b, x)
            return [mapped, scanned, left, right] + [tf1.gradients(y, [x])[0] for y in (mapped, scanned, left, right)]
        self.check(build)

    def test_recurrent_networks(self):
        def build(kind, use_resource, lengths):
            with tf1.variable_scope("r", use_resource=use_resource):
                out, state = rnn.dynamic_rnn(Cell(kind, 4), sequence(), sequence_length=lengths, dtype=tf.float32)
            loss = tf.reduce_sum(out * out)
            train = tf1.train.AdamOptimizer(0.05).minimize(loss)
            with tf1.control_dependencies(tf.nest.flatten(state) + [out]):
                return [loss, out, state, train] + tf1.gradients(loss, tf1.trainable_variables())
        for kind in ("rnn", "gru", "lstm"):
            for use_resource, lengths in ((False, [3, 5]), (True, None)):
                with self.subTest(kind=kind, use_resource=use_resource):
                    self.check(lambda: build(kind, use_resource, lengths)[:3], tolerance=1e-4)
                    self.check(lambda: build(kind, use_resource, lengths)[4:], tolerance=1e-4)

    def test_training_a_recurrent_network(self):
        def build():
            (forth, back), _ = rnn.bidirectional_dynamic_rnn(Cell("gru", 4), Cell("lstm", 4), sequence(), dtype=tf.float32)
            loss = tf.reduce_mean(tf.square(forth[:, -1] + back[:, 0] - 0.3))
            with tf1.control_dependencies([tf1.train.AdamOptimizer(0.05).minimize(loss)]):
                return [tf.identity(loss)]
        losses = self.check(build, steps=8, tolerance=1e-4)
        self.assertLess(losses[-1][0], losses[0][0])

    def over_several_tasks(self, use_resource):
        """Variables, and the body of a loop that looks them up in each iteration, or reads them in a branch of it only."""
        rng = np.random.default_rng(5)
        with tf1.variable_scope("s", use_resource=use_resource):
            table, other, w, u = (tf1.get_variable(name, initializer=rng.standard_normal(shape).astype(np.float32))
                                  for name, shape in (("table", (6, 3)), ("other", (6, 3)), ("w", (3, 3)), ("u", (3, 3))))

        def body(i, h):
            looked_up = tf.nn.embedding_lookup(table, tf.stack([i, 5 - i])) + tf.nn.embedding_lookup(other, [1, 0])
            branch = tf1.cond(i > 1, lambda: tf1.cond(i > 2, lambda: tf.matmul(h, w), lambda: u[:2]), lambda: h)
            return i + 1, tf.tanh(branch + looked_up)
        return other, w, u, body

    def test_elements_of_another_task_than_the_loop(self):
        """The client asks for the arrays of a map, and what fills and reads them, to be where the elements are."""
        def build():
            e = tf1.get_variable("e", initializer=[1.0, 2.0, 3.0])
            with tf1.device("/job:worker/task:1"):
                m = tf1.map_fn(lambda x: x * 3.0, e)
            with tf1.device("/job:worker/task:0"):
                n = tf1.map_fn(lambda x: x * x, m)
            return [m, n, *tf1.gradients(tf.reduce_sum(n), [e])]
        got = self.outcome(cluster().target, build, 1)
        self.assertIsInstance(got, list, got)
        for value, expected in zip(got[0], ([3, 6, 9], [9, 36, 81], [18, 36, 54])):
            np.testing.assert_allclose(value, expected)

    def test_nested_loops_with_variables_of_several_tasks(self):
        def build(use_resource):
            other, w, u, inner = self.over_several_tasks(use_resource)

            def outer(i, h):
                h = tf1.while_loop(lambda j, h: j < 4, inner, [0, h * 0.5])[1]
                return i + 1, h + tf1.cond(i > 0, lambda: tf.nn.embedding_lookup(other, [i, i]), lambda: w[:2])
            h = tf1.while_loop(lambda i, h: i < 3, outer, [0, tf.zeros([2, 3])])[1]
            return [h] + [tf.convert_to_tensor(g) for g in tf1.gradients(tf.reduce_sum(h * h), [w, u])]
        for use_resource in (False, True):
            with self.subTest(use_resource=use_resource):
                self.check(lambda: build(use_resource))

    def test_shapes_of_variables_of_several_tasks_in_both_types(self):
        def build(use_resource):
            u = tf1.get_variable("u", initializer=tf.ones([4, 3]), use_resource=use_resource)
            table = tf1.get_variable("table", initializer=tf.zeros([7, 3]), use_resource=use_resource)
            u_handle, table_handle = u.handle, table.handle

            def shape(handle, dtype):
                return tf.cast(tf.raw_ops.VariableShape(input=handle, out_type=dtype), tf.int64)

            def body(i, n):
                branch = tf1.cond(i > 1, lambda: shape(table_handle, tf.int32) + shape(u_handle, tf.int32), lambda: shape(table_handle, tf.int64))
                looked_up = tf.raw_ops.ResourceGather(resource=u_handle, indices=[i], dtype=tf.float32)
                return i + 1, n * 2 + branch + tf.cast(tf.reduce_sum(looked_up), tf.int64)
            n = tf1.while_loop(lambda i, n: i < 4, body, [0, tf.zeros([2], tf.int64)])[1]
            return [n, u + 0, table + 0]
        self.check(build, use_resource=True)

    def test_variables_of_several_tasks(self):
        def build(use_resource):
            *_, body = self.over_several_tasks(use_resource)
            h = tf1.while_loop(lambda i, h: i < 4, body, [0, tf.zeros([2, 3])])[1]
            loss = tf.reduce_sum(h * h)
            with tf1.control_dependencies([h]):
                train = tf1.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
            with tf1.control_dependencies([train]):
                return [tf.identity(h)]
        for use_resource in (False, True):
            with self.subTest(use_resource=use_resource):
                self.check(lambda: build(use_resource), steps=4)

    def test_a_decoder_with_attention(self):
        def build():
            rng = np.random.default_rng(3)
            words, target = tf.constant(rng.integers(1, 12, (4, 7)).astype(np.int32)), tf.constant(rng.integers(1, 12, (4, 6)).astype(np.int32))
            embedding = tf1.get_variable("embedding", initializer=rng.standard_normal((12, 8)).astype(np.float32))
            memory, state = rnn.dynamic_rnn(Cell("gru", 8), tf.nn.embedding_lookup(embedding, words), sequence_length=[7, 5, 3, 6],
                                            dtype=tf.float32, scope="encoder")

            def context(h):
                mask = tf.sequence_mask([7, 5, 3, 6], 7, tf.float32)
                weights = tf.nn.softmax(tf.einsum("bth,bh->bt", memory, h) + (mask - 1) * 1e9)
                return tf.einsum("bt,bth->bh", weights, memory)
            out, _ = rnn.dynamic_rnn(Cell("gru", 8), tf.nn.embedding_lookup(embedding, target), initial_state=state, scope="decoder")
            seen = tf.transpose(tf1.map_fn(context, tf.transpose(out, [1, 0, 2])), [1, 0, 2])
            logits = tf.matmul(tf.reshape(tf.concat([out, seen], 2), [-1, 16]), tf1.get_variable("out", [16, 12], initializer=tf1.constant_initializer(0.1)))
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(target, [-1]), logits=logits))
            return [loss] + [tf.convert_to_tensor(g) for g in tf1.gradients(loss, tf1.trainable_variables())]
        self.check(build, tolerance=1e-4)

    def test_arrays(self):
        def build():
            a = tf1.TensorArray(tf.float32, size=0, dynamic_size=True, infer_shape=False)
            a = a.write(0, [1.0, 2.0]).write(2, [3.0]).write(1, [5.0])
            b = tf1.TensorArray(tf.string, size=3, clear_after_read=False).unstack(["a", "b", "c"])
            c = tf1.TensorArray(tf.int32, size=2, infer_shape=False).split([[1], [2], [3]], [1, 2])
            return [a.size(), a.concat(), b.read(1), b.read(1), b.gather([2, 0]), b.stack(), c.read(1), c.size()]
        self.check(build)

    def test_gradients_of_arrays(self):
        def build():
            x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
            a = tf1.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
            y = a.read(0) * a.read(2) + tf.reduce_sum(a.gather([1, 2]), 0) + tf.reduce_sum(a.stack() ** 2, 0)
            b = tf1.TensorArray(tf.float32, size=2, infer_shape=False).split(x, [1, 2])
            z = tf.reduce_sum(b.concat() ** 3)
            return tf1.gradients(y, [x]) + tf1.gradients(z, [x])
        self.check(build)

    def test_mistakes_with_arrays(self):
        def array(**options):
            return tf1.TensorArray(tf.float32, **{"size": 3, **options})

        def twice(a):
            with tf1.control_dependencies([a.read(0)]):
                return a.read(0)

        def raw(a, op, *rest, **attrs):
            return op(a.handle, *rest, flow_in=a.flow, **attrs)
        read, gather, scatter = data_flow.tensor_array_read_v3, data_flow.tensor_array_gather_v3, data_flow.tensor_array_scatter_v3
        split, concat, write = data_flow.tensor_array_split_v3, data_flow.tensor_array_concat_v3, data_flow.tensor_array_write_v3
        hidden = lambda value: tf1.placeholder_with_default(value, None)  # the client does not see the shape
        x = lambda *shape: hidden(np.ones(shape, np.float32))
        mistakes = {
            "write behind the end": lambda: array().write(3, 1.0).flow,
            "write before the start": lambda: array(dynamic_size=True).write(-1, 1.0).flow,
            "write twice": lambda: array().write(1, 1.0).write(1, 2.0).flow,
            "write what was read": lambda: (lambda a: tf1.TensorArray(
                tf.float32, handle=a.handle, flow=a.flow + a.read(0)).write(0, 2.0).flow)(array(clear_after_read=False).write(0, 1.0)),
            "another shape": lambda: raw(array(element_shape=[2]), write, 0, x(3)),
            "another type": lambda: raw(array(), write, 0, tf.constant(1)),
            "read behind the end": lambda: array().read(3),
            "read of nothing": lambda: array(infer_shape=False).read(0),
            "read of zeros": lambda: array(element_shape=[2]).read(0),
            "read twice": lambda: twice(array().write(0, 1.0)),
            "read as another type": lambda: raw(array(), read, 0, dtype=tf.int32),
            "negative size": lambda: array(size=-1).size(),
            "gather of nothing": lambda: raw(array(), gather, tf.constant([], tf.int32), dtype=tf.float32),
            "gather of nothing of a shape": lambda: raw(array(), gather, tf.constant([], tf.int32), dtype=tf.float32, element_shape=[2]),
            "gather of a matrix": lambda: raw(array(), gather, hidden([[0]]), dtype=tf.float32),
            "gather of other shapes": lambda: raw(array(infer_shape=False).write(0, x(2)).write(1, x(3)), gather, [0, 1], dtype=tf.float32),
            "scatter of too few": lambda: raw(array(), scatter, hidden([0, 1]), x(3)),
            "scatter behind the end": lambda: raw(array(), scatter, [0, 5], x(2)),
            "scatter of a scalar": lambda: raw(array(), scatter, [0], x()),
            "split into other sums": lambda: raw(array(), split, x(4), tf.constant([1, 1, 1], tf.int64)),
            "split into other numbers": lambda: raw(array(), split, x(4), tf.constant([2, 2], tf.int64)),
            "concat of scalars": lambda: raw(array().unstack([1.0, 2.0, 3.0]), concat, dtype=tf.float32),
            "concat of other shapes": lambda: raw(array(size=2, infer_shape=False).write(0, x(1, 2)).write(1, x(1, 3)), concat, dtype=tf.float32),
            "concat of nothing": lambda: raw(array(size=0), concat, dtype=tf.float32),
        }
        for name, build in mistakes.items():
            with self.subTest(name):
                self.check(build)

    def test_a_split_that_ends_tensorflows_own_process(self):
        def build():
            a = tf1.TensorArray(tf.float32, size=2)
            return data_flow.tensor_array_split_v3(a.handle, tf.ones([4]), tf.constant([5, -1], tf.int64), flow_in=a.flow)
        error = self.outcome(cluster().target, build, 1)
        self.assertIsInstance(error, tf.errors.InvalidArgumentError)
        self.assertIn("lengths between 0 and 4", str(error))

    def test_stacks(self):
        def build(values, pops, most=-1):
            stack = data_flow.stack_v2(most, tf.float32)
            done = []
            for value in values:
                with tf1.control_dependencies(done):
                    done = [data_flow.stack_push_v2(stack, value)]
            out = []
            for _ in range(pops):
                with tf1.control_dependencies(done):
                    out.append(data_flow.stack_pop_v2(stack, tf.float32))
                done = out[-1:]
            return out or done
        self.check(lambda: build([1.0, [2.0, 3.0]], 2), steps=2)
        self.check(lambda: build([1.0], 2))
        self.check(lambda: build([1.0, 2.0], 1, most=1))
        self.check(lambda: build([1.0, 2.0], 1, most=2))


class References(Programs):
    """What the memory of a variable of old is where branches and iterations write to it."""
    parameter_servers = 1

    def variables(self):
        return [tf1.get_variable(name, [], initializer=tf1.zeros_initializer(), use_resource=False) for name in "vu"]

    def check_branches(self, build):
        for is_true in (True, False):
            self.check(lambda: build(tf1.placeholder_with_default(is_true, []), *self.variables()), steps=3)

    def test_merges_of_variables(self):
        def with_value(p, v, u):
            result = tf1.cond(p, lambda: tf1.assign_add(v, 1.0), lambda: tf.constant(7.0))
            with tf1.control_dependencies([result]):
                step = tf1.assign_add(u, 1.0)
            return [result, result + 1, step]
        self.check_branches(with_value)
        self.check_branches(lambda p, v, u: tf1.cond(p, lambda: tf.identity(tf1.assign_add(v, 1.0)),
                                                     lambda: tf.identity(tf1.assign(v, -5.0))))
        self.check_branches(lambda p, v, u: tf1.cond(p, lambda: tf1.assign_add(v, 1.0), lambda: tf1.assign(v, -5.0)))
        self.check_branches(lambda p, v, u: tf1.cond(p, lambda: tf1.assign_add(v, 1.0), lambda: tf1.assign_sub(u, 5.0)))

    def test_merges_of_variables_in_a_loop(self):
        def build(one, other):
            v, u = self.variables()
            return tf1.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a + tf1.cond(
                tf.equal(i % 2, 0), lambda: one(v), lambda: other(v, u))), [0, 0.0], parallel_iterations=1)
        self.check(lambda: build(lambda v: tf1.assign_add(v, 1.0), lambda v, u: tf1.assign(v, 10.0)), steps=2)
        self.check(lambda: build(lambda v: tf1.assign_add(v, 1.0), lambda v, u: tf1.assign_sub(u, 10.0)), steps=2)
        self.check(lambda: build(lambda v: tf1.assign_add(v, 1.0), lambda v, u: tf.constant(3.0)), steps=2)

    def test_a_choice_of_variables_cannot_be_written_to(self):
        def build():
            v, u = self.variables()
            chosen = tf1.cond(tf1.placeholder_with_default(True, []), lambda: tf1.assign(v, 1.0), lambda: tf1.assign(u, 1.0))
            return tf1.assign(chosen, 3.0)
        error = self.outcome(cluster().target, build, 1)
        self.assertIsInstance(error, tf.errors.UnimplementedError)
        self.assertIn("which may be one variable or another", str(error))

    def test_reads_after_writes_in_branches_and_iterations(self):
        def bump(v, read):
            with tf1.control_dependencies([tf1.assign_add(v, 1.0)]):
                return read()

        def loop(body, condition=lambda i, v: i < 3):
            v = self.variables()[0]
            return tf1.while_loop(lambda i, a: condition(i, v), lambda i, a: (i + 1, a + body(i, v)), [0, 0.0],
                                  parallel_iterations=1)
        read = lambda v: tf.identity(v)
        self.check(lambda: loop(lambda i, v: bump(v, lambda: read(v))))
        self.check(lambda: loop(lambda i, v: bump(v, lambda: v * 2.0)))
        self.check(lambda: loop(lambda i, v: bump(v, lambda: 1.0), lambda i, v: tf.logical_and(v < 5.0, i < 50)))
        self.check(lambda: loop(lambda i, v: tf1.cond(tf.equal(i % 2, 0), lambda: bump(v, lambda: v + 0.0),
                                                      lambda: tf.constant(100.0))))
        self.check(lambda: loop(lambda i, v: tf1.while_loop(
            lambda j, b: j < 2, lambda j, b: (j + 1, b + bump(v, lambda: v * 1.0)), [0, 0.0], parallel_iterations=1)[1]))
        self.check(lambda: loop(lambda i, v: v + 1.0))
        self.check_branches(lambda p, v, u: tf1.cond(p, lambda: bump(v, lambda: v + 0.0), lambda: tf.constant(0.0)))
        self.check_branches(lambda p, v, u: tf1.cond(p, lambda: tf1.cond(p, lambda: bump(v, lambda: v * 2.0),
                                                                         lambda: tf.constant(1.0)), lambda: v + 5.0))
        self.check_branches(lambda p, v, u: bump(v, lambda: tf1.cond(p, lambda: v + 1.0, lambda: v)))


if __name__ == "__main__":
    main(__doc__, parameter_servers=2)

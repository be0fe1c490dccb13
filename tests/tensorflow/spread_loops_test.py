#!/usr/bin/env python3
"""While loops that change state of several tasks, written by TensorFlow's own client: every program agrees with Session('').

  python3 tests/tensorflow/spread_loops_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import unittest

from leat_cluster import CONFIG, cluster, main, np, tf, tf1


class SpreadLoops(unittest.TestCase):
    def outcome(self, target, build, steps, use_resource):
        with tf1.Graph().as_default():
            if target:
                tf1.Session.reset(target)
            on = tf1.device if target else (lambda _: tf1.device(None))
            variables = []
            for task in (0, 1):
                with on(f"/job:ps/task:{task}"):
                    for name, initial in (("n", 0), ("w", 0.5)):
                        variables.append(tf1.get_variable(f"{name}{task}", initializer=initial, use_resource=use_resource))
            with on("/job:worker/task:0"):
                fetches = build(on, *variables)
            init = tf1.global_variables_initializer()
            with tf1.Session(target, config=CONFIG) as session:
                session.run(init)
                return [(session.run(fetches), session.run(variables)) for _ in range(steps)]

    def check(self, build, steps=2, types=(False, True)):
        for use_resource in types:
            with self.subTest(use_resource=use_resource):
                expected = self.outcome("", build, steps, use_resource)
                got = self.outcome(cluster().target, build, steps, use_resource)
                for e, g in zip(tf.nest.flatten(expected), tf.nest.flatten(got)):
                    np.testing.assert_allclose(g, e, rtol=1e-5, err_msg=f"{got}\nTensorFlow: {expected}")

    def after(self, operations, *values):
        with tf1.control_dependencies(operations):
            return [tf.identity(v) for v in values]

    def test_counters(self):
        def build(on, n0, w0, n1, w1):
            def body(i):
                return self.after([n0.assign_add(1), n1.assign_add(i), w1.assign_add(0.5)], i + 1)
            return tf1.while_loop(lambda i: i < 5, body, [tf.constant(0)], parallel_iterations=1)
        self.check(build)

    def test_operations_that_ask_for_other_tasks(self):
        def build(on, n0, w0, n1, w1):
            def body(i, x):
                with on("/job:worker/task:1"):
                    y = x * 2.0 + tf.cast(i, tf.float32)
                with on("/job:ps/task:1"):
                    z = tf.sin(y)
                return self.after([w0.assign_add(z), w1.assign_add(y)], i + 1, z + 0.25)
            return tf1.while_loop(lambda i, x: i < 4, body, [0, 1.0], parallel_iterations=1)
        self.check(build)

    def test_loops_in_loops(self):
        def build(on, n0, w0, n1, w1):
            def inner(j, s):
                return self.after([n0.assign_add(j), n1.assign_add(2)], j + 1, s + j)

            def outer(i, s):
                s = tf1.while_loop(lambda j, s: j < i, inner, [0, s], parallel_iterations=1)[1]
                return self.after([w0.assign_add(tf.cast(s, tf.float32))], i + 1, s)
            return tf1.while_loop(lambda i, s: i < 4, outer, [0, 0], parallel_iterations=1)
        self.check(build)

    def test_branches(self):
        def build(on, n0, w0, n1, w1):
            def body(i):
                even = tf1.cond(tf.equal(i % 2, 0), lambda: n0.assign_add(1) + 0, lambda: n1.assign_add(10) + 0)
                return self.after([even], i + 1)
            taken, left = (tf1.cond(w0 > limit, lambda: tf1.while_loop(lambda i: i < 5, body, [0], parallel_iterations=1), lambda: tf.constant(-1))
                           for limit in (0.0, 100.0))
            return [taken, left]
        self.check(build)

    def test_a_condition_on_state(self):
        def build(on, n0, w0, n1, w1):
            def body(i):
                return self.after([n0.assign_add(3), n1.assign_add(1)], i + 1)
            with tf1.control_dependencies([n0.assign(0)]):
                start = tf.identity(0)
            return tf1.while_loop(lambda i: n0.read_value() < 10, body, [start], parallel_iterations=1)
        self.check(build, types=(True,))

    def test_queues(self):
        def build(on, n0, w0, n1, w1):
            with on("/job:ps/task:0"):
                q = tf1.FIFOQueue(10, [tf.int32], [[]])

            def body(i):
                with tf1.control_dependencies([q.enqueue(i * i)]):
                    taken = q.dequeue()
                return self.after([n1.assign_add(taken), w0.assign_add(1.0)], i + 1)
            return tf1.while_loop(lambda i: i < 5, body, [0], parallel_iterations=1)
        self.check(build)

    def test_arrays_and_gradients(self):
        def build(on, n0, w0, n1, w1):
            x = tf.constant([1.0, 2.0, 3.0])

            def body(i, y, a):
                y = tf.tanh(y * w0.value() + w1.value()) + x
                (y,) = self.after([n0.assign_add(1), n1.assign_add(2)], y)
                return i + 1, y, a.write(i, y)
            array = tf1.TensorArray(tf.float32, size=4, element_shape=[3])
            _, y, array = tf1.while_loop(lambda i, *_: i < 4, body, [0, x, array], parallel_iterations=1)
            loss = tf.reduce_sum(y * y) + tf.reduce_sum(array.stack())
            return [loss] + tf1.gradients(loss, [x, w0, w1])
        self.check(build)

    def test_an_update_with_what_the_gradient_of_a_loop_is(self):
        def build(on, n0, w0, n1, w1):
            def body(i, y):
                inner = tf1.while_loop(lambda j, z: j < 3, lambda j, z: (j + 1, z * w0.value() + w1.value()), [0, y])[1]
                g0, g1 = tf1.gradients(inner * inner, [w0, w1])
                return self.after([w0.assign_sub(0.01 * g0), w1.assign_sub(0.01 * g1)], i + 1, y)
            return tf1.while_loop(lambda i, y: i < 3, body, [0, 1.0], parallel_iterations=1)
        self.check(build, types=(True,))

    def test_an_error_ends_the_step(self):
        def build(on, n0, w0, n1, w1):
            def body(i):
                with on("/job:ps/task:1"):
                    checked = tf1.debugging.check_numerics(1.0 / tf.cast(2 - i, tf.float32), "too far")
                return self.after([n0.assign_add(1), w1.assign_add(checked)], i + 1)
            return tf1.while_loop(lambda i: i < 5, body, [0], parallel_iterations=1)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "too far"):
            self.outcome(cluster().target, build, 1, False)


if __name__ == "__main__":
    main(__doc__, parameter_servers=2)

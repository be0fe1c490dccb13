#!/usr/bin/env python3
"""Functions, and conditions and loops that are made of them ("control flow v2"): what a program has in its graph that only
disables eager execution. Every program agrees with Session('').

  python3 tests/tensorflow/functions_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import unittest

import loops_test
from leat_cluster import CONFIG, cluster, main, np, tf, tf1
from tensorflow.python.framework import function


class ControlFlowV2:
    @classmethod
    def setUpClass(cls):
        tf1.enable_control_flow_v2()
        tf1.enable_resource_variables()

    @classmethod
    def tearDownClass(cls):
        tf1.disable_control_flow_v2()
        tf1.disable_resource_variables()


class Loops(ControlFlowV2, loops_test.Loops):
    """All programs of loops_test, with While in place of Enter, Merge, Switch and Exit."""
    # They write to references, which a function cannot have, or ask for what only the older form has.
    test_updates_of_variables = None
    test_a_split_that_ends_tensorflows_own_process = None
    # TensorFlow's own process ends with a segmentation fault.
    test_mistakes_with_arrays = None


class Functions(ControlFlowV2, loops_test.Programs):
    def ops(self, build):
        with tf1.Graph().as_default() as graph:
            build()
            return {node.op for node in graph.as_graph_def().node}

    def test_calls(self):
        def build():
            v = tf1.get_variable("v", initializer=[1.0, 2.0])

            @tf.function
            def inner(x):
                v.assign_add(x)
                return v * 2.0

            @tf.function
            def outer(x, n):
                first = inner(x)
                tf.debugging.assert_less(n, 7)
                return first, inner(x + 1.0), {"shape": tf.shape(x)}

            first, second, shape = outer(tf.constant([0.5, 1.5]), 3)
            return [first, second, shape]
        self.assertIn("StatefulPartitionedCall", self.ops(build))
        self.check(build, steps=3)

    def test_gradients_through_calls(self):
        def build():
            w = tf1.get_variable("w", initializer=np.linspace(-1, 1, 12).astype(np.float32).reshape(3, 4))

            @tf.function
            def layer(x):
                return tf.tanh(tf.matmul(x, w))
            loss = tf.reduce_sum(layer(tf.ones([2, 3])) ** 2)
            (gradient,) = tf1.gradients(loss, w)
            return [loss, gradient] + tf1.gradients(tf.reduce_sum(gradient ** 2), w)
        self.check(build)

    def test_functions_of_old(self):
        def build():
            @function.Defun(tf.float32, tf.float32)
            def both(x, y):
                return x + y, x * y
            total, product = both(tf.constant([1.0, 2.0]), tf.constant(3.0))
            return [total, product, both(total, product)[1]]
        self.check(build)

    def test_gradients_of_functions_of_old(self):
        """The client leaves them to the runtime: SymbolicGradient."""
        def build():
            w = tf1.get_variable("w", initializer=np.linspace(-1, 1, 6).astype(np.float32).reshape(3, 2))

            @function.Defun(tf.float32)
            def inner(x):
                return tf.sin(x) * x

            @function.Defun(tf.float32, tf.float32, tf.int32)
            def layer(x, weights, unused):
                hidden = inner(tf.matmul(x, weights))
                return tf.nn.relu(hidden), tf.nn.softmax(hidden), unused + 1
            x = tf.constant([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]])
            a, b, n = layer(x, w, 3)
            loss = tf.reduce_sum(a) + tf.reduce_sum(b[:, 0] ** 2)
            (only_first,) = tf1.gradients(tf.reduce_sum(a * a), w)
            return [loss, n, only_first] + tf1.gradients(loss, [x, w])
        self.assertIn("SymbolicGradient", self.ops(build))
        self.check(build)

    def test_gradients_of_functions_of_old_on_devices_and_after_others(self):
        def build():
            @function.Defun(tf.float32, tf.bool)
            def choose(x, flag):
                return tf1.where(tf.fill([2], flag), x * x, tf.exp(x))

            @function.Defun(tf.float32)
            def affine(v):
                return v * 3.0 + tf.constant(2.0)
            x = tf.constant([1.0, 2.0])
            with tf1.device("/device:CPU:0"):
                y, z = choose(x, True), choose(x, False)
            with tf1.control_dependencies([y]):
                constant = affine(x)
            return [y, z] + tf1.gradients(y + 2.0 * z + constant, x)
        self.check(build)

    def test_gradients_that_a_function_of_old_brings_along(self):
        def build():
            @function.Defun(tf.float32, tf.float32)
            def clipped(x, dy):
                return tf.clip_by_value(dy * x, -1.0, 1.0)

            @function.Defun(tf.float32, grad_func=clipped)
            def f(x):
                return x * x * x
            x = tf.constant([0.5, 4.0])
            return tf1.gradients(f(x), x)
        self.check(build)

    def test_what_functions_of_old_do_beside_their_results(self):
        """A Defun does not say what it does; in TensorFlow every update of its body runs."""
        answers = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default(), tf1.Session(target, config=CONFIG) as session:
                v = tf1.get_variable("v", initializer=1.0, use_resource=True)
                w = tf1.get_variable("w", initializer=1, use_resource=True)

                @function.Defun(tf.float32)
                def count(x):
                    v.assign_add(x)
                    return x * 2.0

                doubled = count(tf.constant(3.0))
                dataset = tf1.data.Dataset.range(3).map_with_legacy_function(lambda x: (w.assign_add(10), x)[1])
                iterator = tf1.data.make_initializable_iterator(dataset)
                element = iterator.get_next()
                session.run([v.initializer, w.initializer])
                session.run(iterator.initializer)
                answers.append([session.run(doubled), session.run(doubled), session.run(v)] + [session.run(element) for _ in range(3)] + [session.run(w)])
        self.assertEqual(answers[1], answers[0])
        self.assertEqual(answers[1][2], 7.0)

    def test_conditions(self):
        def build(value):
            x = tf1.placeholder_with_default(np.float32(value), [])
            v = tf1.get_variable("v", initializer=1.0)

            def update():
                with tf.control_dependencies([v.assign_add(10.0)]):
                    return tf.constant(1.0), x
            chosen = tf.cond(x > 1.0, update, lambda: (v + 2.0, -x))
            deep = tf.cond(x > 0.0, lambda: tf.cond(x > 1.0, lambda: x * x, lambda: tf.sin(x)), lambda: tf.constant(0.0))
            with tf.control_dependencies(chosen):
                return [chosen, deep, tf1.gradients(deep, x), tf.cond(tf.constant(True), tf.no_op, tf.no_op), v + 0.0]
        for value in (2.0, 0.5, -1.0):
            self.check(lambda value=value: build(value), steps=2)

    def test_cases(self):
        def build(index):
            i = tf1.placeholder_with_default(np.int32(index), [])
            x = tf.constant([1.0, 2.0])
            out = tf.switch_case(i, [lambda: x, lambda: tf.exp(x), lambda: x * tf.cast(i, tf.float32)])
            return [out, tf1.gradients(out, x)[0], tf.switch_case(i, {0: lambda: 1})]
        for index in (-5, 0, 1, 2, 3):
            self.check(lambda index=index: build(index))

    def test_what_the_client_makes_functions_of(self):
        def ctc():
            logits = tf.constant(np.sin(np.arange(70.0)).astype(np.float32).reshape(7, 2, 5))
            loss = tf.nn.ctc_loss(tf.constant([[1, 2], [3, 0]]), logits, [2, 1], [7, 6], blank_index=0)
            return [loss] + tf1.gradients(loss, logits)

        def autograph():
            @tf.function
            def count(n, x):
                total = 0.0
                for i in tf.range(n):
                    if total > 3.0:
                        total += x
                    else:
                        total += tf.cast(i, tf.float32)
                    if total > 20.0:
                        break
                return total
            x = tf.constant(2.5)
            total = count(9, x)
            return [total] + tf1.gradients(total, x)

        def own_gradient():
            @tf.custom_gradient
            def f(x):
                return tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: x * 3), lambda dy: dy * 100.0
            x = tf.constant([1.0, -3.0])
            return [f(x)] + tf1.gradients(f(x), x)

        def recomputed():
            w = tf1.get_variable("w", initializer=np.linspace(-1, 1, 9).astype(np.float32).reshape(3, 3))
            layer = tf.recompute_grad(lambda x: tf.tanh(tf.matmul(x, w)))
            y = tf.reduce_sum(layer(layer(tf.ones([2, 3]))))
            return [y] + tf1.gradients(y, w)

        def vectorized():
            return [tf.vectorized_map(lambda a: tf.reduce_sum(a * a) * a, tf.reshape(tf.range(12.0), [4, 3]))]
        for build in (ctc, autograph, own_gradient, recomputed, vectorized):
            with self.subTest(build.__name__):
                self.check(build, tolerance=1e-4)

    def test_an_assertion(self):
        def build():
            x = tf1.placeholder_with_default(3.0, [])
            with tf.control_dependencies([tf1.Assert(x < 1.0, [x])]):
                return [x * 2.0]
        error = self.check(build)
        self.assertIsInstance(error, tf.errors.InvalidArgumentError)
        self.assertIn("assertion failed", str(error))

    def test_an_error_names_the_node(self):
        def build():
            return [tf.while_loop(lambda i: i < 3, lambda i: i + 6 // (2 - i), [tf1.placeholder_with_default(2, [])])]
        error = self.check(build)
        self.assertIn("body/floordiv}}", str(error))

    def test_variables_of_other_tasks(self):
        """Loops and conditions on a worker, with variables on a ps: read where they are, updated where they are."""
        def build():
            v, u = tf1.get_variable("v", initializer=[1.0, 2.0]), tf1.get_variable("u", initializer=0.0)
            with tf1.device("/job:worker/task:1" if tf.constant(0).device else None):
                total = tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s + tf.reduce_sum(v) * tf.cond(s > 5.0, lambda: u + 1.0, lambda: 2.0)),
                                      [0, 0.0])[1]
                loss = (total - 3.0) ** 2
            return [loss, tf1.train.MomentumOptimizer(0.001, 0.9).minimize(loss, var_list=[v, u])]
        losses = self.check(build, steps=8)
        self.assertLess(losses[-1][0], losses[0][0])

    def test_a_graph_that_grows(self):
        """A session sends its functions again whenever it sends nodes."""
        with tf1.Graph().as_default(), tf1.Session(cluster().target, config=CONFIG) as session:
            x = tf.constant(3.0)
            first = tf.cond(x > 1.0, lambda: x + 1.0, lambda: x)
            self.assertEqual(session.run(first), 4.0)
            second = tf.function(lambda y: y * first)(x)
            self.assertEqual(session.run([second, second.op, first]), [12.0, None, 4.0])

    def test_what_cannot_be_fetched(self):
        def build():
            return [tf.raw_ops.EmptyTensorList(element_shape=[2], max_num_elements=3, element_dtype=tf.float32)]
        error = self.outcome(cluster().target, build, 1)
        self.assertIsInstance(error, tf.errors.InvalidArgumentError)
        self.assertIn("'EmptyTensorList:0' is a variant, such as a TensorList, which stays on its task", str(error))


class Lists(loops_test.Programs):
    """The ops behind TensorArrays of control flow v2, one by one."""

    def check_ops(self, build):
        ops = tf.raw_ops
        f32 = {"element_dtype": tf.float32}
        return self.check(lambda: build(ops, f32))

    def test_what_is_in_a_list(self):
        def build(ops, f32):
            a = ops.TensorListFromTensor(tensor=[[1.0, 2.0], [3.0, 4.0]], element_shape=[-1])
            b = ops.TensorListPushBack(input_handle=a, tensor=[5.0, 6.0])
            c = ops.TensorListSetItem(input_handle=b, index=0, item=[9.0, 9.0])
            d, last = ops.TensorListPopBack(input_handle=c, element_shape=[2], **f32)
            e = ops.TensorListReserve(element_shape=[2], num_elements=3, **f32)
            stacks = [ops.TensorListStack(input_handle=x, element_shape=[2], **f32) for x in (a, b, c, d, e)]
            joined = ops.TensorListConcatLists(input_a=a, input_b=d, **f32)
            return stacks + [last, ops.TensorListLength(input_handle=joined), ops.TensorListGetItem(input_handle=e, index=1, element_shape=[2], **f32),
                             ops.TensorListGather(input_handle=joined, indices=[3, 0, 3], element_shape=[2], **f32),
                             ops.TensorListElementShape(input_handle=a, shape_type=tf.int64),
                             ops.TensorListElementShape(input_handle=ops.EmptyTensorList(element_shape=-1, max_num_elements=1, **f32), shape_type=tf.int32),
                             ops.TensorListLength(input_handle=ops.TensorListResize(input_handle=a, size=5)),
                             ops.TensorListStack(input_handle=tf.add_n([a, d]), element_shape=[2], **f32),
                             ops.TensorListStack(input_handle=tf.zeros_like(b), element_shape=[2], **f32)]
        self.check_ops(build)

    def test_pieces(self):
        def build(ops, f32):
            x = tf.reshape(tf.range(12.0), [6, 2])
            parts = ops.TensorListSplit(tensor=x, element_shape=[-1, 2], lengths=tf.constant([1, 3, 0, 2], tf.int64))
            scattered = ops.TensorListScatterV2(tensor=x, indices=[3, 0, 5, 1, 2, 7], element_shape=[2], num_elements=10)
            more = ops.TensorListScatterIntoExistingList(input_handle=scattered, tensor=x[:2], indices=[4, 0])
            return [ops.TensorListConcatV2(input_handle=parts, element_shape=[-1, 2], leading_dims=tf.zeros([0], tf.int64), **f32),
                    ops.TensorListStack(input_handle=scattered, element_shape=[2], **f32),
                    ops.TensorListStack(input_handle=more, element_shape=-1, **f32),
                    ops.TensorListConcat(input_handle=parts, **f32)]
        self.check_ops(build)

    def test_optionals(self):
        def build(ops, _):
            some, none = ops.OptionalFromValue(components=[tf.constant(1.0), tf.constant(["a", "b"])]), ops.OptionalNone()
            return [ops.OptionalHasValue(optional=some), ops.OptionalHasValue(optional=none)] + ops.OptionalGetValue(
                optional=some, output_types=[tf.float32, tf.string], output_shapes=[[], [2]])
        self.check_ops(build)
        error = self.check_ops(lambda ops, _: ops.OptionalGetValue(optional=ops.OptionalNone(), output_types=[tf.float32], output_shapes=[[]]))
        self.assertIsInstance(error, tf.errors.InvalidArgumentError)

    def test_mistakes(self):
        def empty(ops, f32, **options):
            return ops.EmptyTensorList(element_shape=[2], max_num_elements=1, **(f32 | options))
        for build in (
                lambda ops, f32: ops.TensorListPopBack(input_handle=empty(ops, f32), element_shape=[2], **f32),
                lambda ops, f32: ops.TensorListGetItem(input_handle=empty(ops, f32), index=0, element_shape=[2], **f32),
                lambda ops, f32: ops.TensorListGetItem(input_handle=ops.TensorListReserve(element_shape=-1, num_elements=1, **f32), index=0,
                                                       element_shape=-1, **f32),
                lambda ops, f32: ops.TensorListLength(input_handle=ops.TensorListSetItem(input_handle=empty(ops, f32), index=0, item=[1.0, 2.0])),
                lambda ops, f32: ops.TensorListLength(input_handle=ops.TensorListPushBack(input_handle=empty(ops, f32), tensor=[1.0])),
                lambda ops, f32: ops.TensorListLength(input_handle=ops.TensorListPushBack(
                    input_handle=ops.TensorListPushBack(input_handle=empty(ops, f32), tensor=[1.0, 2.0]), tensor=[1.0, 2.0])),
                lambda ops, f32: ops.TensorListStack(input_handle=empty(ops, f32), element_shape=tf1.placeholder_with_default([3], [1]), **f32),
                lambda ops, f32: ops.TensorListStack(input_handle=empty(ops, f32), element_shape=[2], num_elements=4, **f32),
                lambda ops, f32: ops.TensorListLength(input_handle=ops.TensorListReserve(element_shape=[2], num_elements=-1, **f32)),
                lambda ops, f32: ops.TensorListLength(input_handle=ops.TensorListResize(input_handle=empty(ops, f32), size=-1)),
                lambda ops, f32: ops.TensorListLength(input_handle=ops.TensorListFromTensor(
                    tensor=tf.ones([2, 2]), element_shape=tf1.placeholder_with_default([3], [1]))),
                lambda ops, f32: ops.TensorListLength(input_handle=ops.TensorListScatterV2(
                    tensor=tf.ones([1, 2]), indices=[5], element_shape=[2], num_elements=2)),
                lambda ops, f32: ops.TensorListLength(input_handle=ops.TensorListSplit(
                    tensor=tf.ones([3, 2]), element_shape=[-1, 2], lengths=tf.constant([1, 1], tf.int64))),
                lambda ops, f32: ops.OptionalHasValue(optional=empty(ops, f32))):
            self.assertIsInstance(self.check_ops(build), tf.errors.OpError)


if __name__ == "__main__":
    main(__doc__, parameter_servers=2)

#!/usr/bin/env python3
"""Graphs as TensorFlow wrote them until 2017, and loops that people wrote by hand: every program agrees with Session('').

  python3 tests/tensorflow/old_graphs_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import unittest

from leat_cluster import CONFIG, cluster, main, np, tf, tf1

raw = tf.raw_ops


def as_of_2016(graph):
    """The graph with stacks of version 1, whose handles are references, and of a producer of that time."""
    out = graph.as_graph_def()
    handles = {node.name for node in out.node if node.op == "StackV2"}
    assert handles
    for node in out.node:
        if node.op == "StackV2":
            del node.input[0]
        if node.op.startswith("Stack"):
            node.op = node.op.removesuffix("V2")
    passed = [node for node in out.node if node.attr["T"].type == tf.resource.as_datatype_enum]
    while passed:  # a node may come before what it needs
        node = next(node for node in passed if node.input[0].split(":")[0] in handles)
        passed.remove(node)
        handles.add(node.name)
        node.op = "Ref" + node.op
        node.attr["T"].type = tf.string.as_datatype_enum
    out.versions.producer = 21
    return out


class OldGraphs(unittest.TestCase):
    def outcomes(self, graph_def, fetches, feed=None):
        values = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                if target:
                    tf1.Session.reset(target)
                tf1.import_graph_def(graph_def, name="")
                with tf1.Session(target, config=CONFIG) as session:
                    if "init" in [node.name for node in graph_def.node]:
                        session.run("init")
                    values.append([session.run(fetches, feed) for _ in range(2)])
        return values

    def check(self, graph_def, fetches, feed=None):
        expected, got = self.outcomes(graph_def, fetches, feed)
        for e, g in zip(tf.nest.flatten(expected), tf.nest.flatten(got)):
            np.testing.assert_allclose(g, e, rtol=1e-5, atol=1e-6)
        return got[0]

    def check_gradients(self, build):
        with tf1.Graph().as_default() as graph:
            x = tf.constant(np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3), name="x")
            w = tf1.get_variable("w", initializer=np.eye(3, dtype=np.float32) * 0.5, use_resource=False)
            y = build(x, w)
            gradients = [tf.convert_to_tensor(g) for g in tf1.gradients(tf.reduce_sum(y * y), [w, x])]
            tf1.global_variables_initializer()
            fetches = [y.name] + [g.name for g in gradients]
        self.check(as_of_2016(graph), fetches)

    def test_gradients_of_a_loop(self):
        self.check_gradients(lambda x, w: tf1.while_loop(
            lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w)) + x), [tf.constant(0), x])[1])

    def test_gradients_of_a_branch_in_a_loop(self):
        self.check_gradients(lambda x, w: tf1.while_loop(
            lambda i, y: i < 5, lambda i, y: (i + 1, tf1.cond(tf.equal(i % 2, 0), lambda: tf.tanh(tf.matmul(y, w)), lambda: y * x)),
            [tf.constant(0), x])[1])

    def test_gradients_of_loops_in_loops(self):
        def inner(i, y):
            return i + 1, tf1.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, tf.tanh(tf.matmul(z, w_of(y))) + z), [tf.constant(0), y])[1]

        def build(x, w):
            global w_of
            w_of = lambda _: w
            return tf1.while_loop(lambda i, y: i < 4, inner, [tf.constant(0), x])[1]
        self.check_gradients(build)

    def test_a_placeholder_with_the_empty_shape(self):
        with tf1.Graph().as_default() as graph:
            x = tf1.placeholder(tf.float32, [], name="x")
            tf.add(x, 1.0, name="y")
        graph_def = graph.as_graph_def()
        graph_def.versions.producer = 21
        self.assertEqual(self.check(graph_def, "y:0", {"x:0": [1.0, 2.0]}).tolist(), [2, 3])
        self.assertEqual(self.check(graph_def, "y:0", {"x:0": 1.0}), 2)

    def test_axes_in_a_matrix(self):
        with tf1.Graph().as_default() as graph:
            axes = tf1.placeholder_with_default(tf.constant([[0], [1]]), None)
            raw.Sum(input=tf.ones([2, 3]), axis=axes, name="y")
        graph_def = graph.as_graph_def()
        for node in graph_def.node:
            if node.op == "PlaceholderWithDefault":
                node.op = "Identity"
                del node.attr["shape"], node.attr["dtype"]
                node.attr["T"].type = tf.int32.as_datatype_enum
        graph_def.versions.producer = 20
        self.assertEqual(self.check(graph_def, "y:0"), 6)


class LoopsByHand(unittest.TestCase):
    def check(self, build):
        values = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                if target:
                    tf1.Session.reset(target)
                self.device = "/job:ps/task:0" if target else None
                variable, start, run = build()
                with tf1.Session(target, config=CONFIG) as session:
                    session.run(start)
                    values.append([session.run(run), session.run(variable)])
        expected, got = values
        for e, g in zip(tf.nest.flatten(expected), tf.nest.flatten(got)):
            np.testing.assert_array_equal(g, e)
        return got[1].tolist()

    def variable(self, shape, dtype):
        with tf1.device(self.device):
            return raw.VariableV2(shape=shape, dtype=dtype)

    def counter(self, n, frame, before_next):
        """k = 0; while k < n: k += 1, which waits for what before_next(switch, its true output, predicate) returns."""
        top, k = raw.Enter(data=tf1.placeholder_with_default(n, []), is_constant=True, **frame), raw.Enter(data=tf.constant(0), **frame)
        merge = raw.Merge(inputs=[k, k])
        go = raw.LoopCond(input=raw.Less(x=merge.output, y=top))
        false, true = raw.Switch(data=merge.output, pred=go)
        with tf1.control_dependencies(before_next(true, merge.output, go)):
            merge.output.op._update_input(1, raw.NextIteration(data=raw.AddV2(x=true, y=raw.OnesLike(x=true))))
        return raw.Exit(data=false)

    def check_update(self, after, n=4):
        def build():
            frame = {"frame_name": "f"}
            v = self.variable([], tf.int64)
            start = raw.Assign(ref=v, value=tf.constant(5, tf.int64))
            one, ref = raw.Enter(data=tf.constant(1, tf.int64), is_constant=True, **frame), raw.RefEnter(data=v, is_constant=True, **frame)

            def update(true, merged, go):
                with tf1.control_dependencies([after(true, merged, go)]):
                    return [raw.AssignAdd(ref=ref, value=one)]
            return v, start, self.counter(n, frame, update)
        return self.check(build)

    def test_control_edges_from_a_switch(self):
        self.assertEqual(self.check_update(lambda true, merged, go: true.op), 10)
        self.assertEqual(self.check_update(lambda true, merged, go: true.op, n=0), 6)
        self.assertEqual(self.check_update(lambda true, merged, go: go.op), 10)
        self.assertEqual(self.check_update(lambda true, merged, go: merged.op), 10)
        self.assertEqual(self.check_update(lambda true, merged, go: raw.Identity(input=true)), 9)

    def test_references_that_go_round(self):
        def build():
            frame = {"frame_name": "f"}
            v = self.variable([2], tf.float32)
            start = raw.Assign(ref=v, value=tf.constant([1.0, 2.0]))
            more = raw.Enter(data=tf.constant([0.5, 0.5]), is_constant=True, **frame)
            m = raw.RefMerge(inputs=[raw.RefEnter(data=v, **frame)] * 2)
            ends = []

            def update(true, merged, go):
                f, t = raw.RefSwitch(data=m.output, pred=go)
                ends.append(f)
                up = raw.AssignAdd(ref=t, value=more)
                m.output.op._update_input(1, raw.RefNextIteration(data=up))
                return [up]
            k = self.counter(3, frame, update)
            return v, start, [raw.Identity(input=raw.RefExit(data=ends[0])), k]
        self.assertEqual(self.check(build), [2.5, 3.5])


if __name__ == "__main__":
    main(__doc__)

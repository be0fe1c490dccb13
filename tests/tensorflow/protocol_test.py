#!/usr/bin/env python3
"""The client protocol as TensorFlow's own client speaks it: callables, options, metadata, devices, containers, refusals.

  python3 tests/tensorflow/protocol_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import gc
import threading
import unittest

from leat_cluster import CONFIG, cluster, main, np, tf, tf1
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import timeline

PS = "/job:ps/replica:0/task:0/device:CPU:0"
WORKERS = [f"/job:worker/replica:0/task:{i}/device:CPU:0" for i in range(2)]


def session(**options):
    config = tf1.ConfigProto()
    config.CopyFrom(CONFIG)
    config.MergeFrom(tf1.ConfigProto(**options))
    return tf1.Session(cluster().target, config=config)


def callable_options(feeds=(), fetches=(), targets=(), **run_options):
    out = config_pb2.CallableOptions()
    out.feed.extend(feeds)
    out.fetch.extend(fetches)
    out.target.extend(targets)
    out.run_options.MergeFrom(tf1.RunOptions(**run_options))
    return out


def counter(name, device="/job:ps/task:0"):
    with tf1.device(device):
        v = tf1.get_variable(name, initializer=0.0, use_resource=False)
        return v, v.assign_add(1.0)


def model():
    """x on worker 0, w on the ps, y = 3 x w on worker 1."""
    with tf1.device("/job:worker/task:0"):
        x = tf1.placeholder(tf.float32, [None], name="x")
    with tf1.device("/job:ps/task:0"):
        w = tf1.get_variable("w", initializer=2.0, use_resource=False)
    with tf1.device("/job:worker/task:1"):
        y = tf.multiply(x * w, 3.0, name="y")
    return x, w, y


class Case(unittest.TestCase):
    def setUp(self):
        tf1.Session.reset(cluster().target)
        graph = tf1.Graph().as_default()
        graph.__enter__()
        self.addCleanup(graph.__exit__, None, None, None)


class Callables(Case):
    def test_feeds_and_fetches_are_in_the_order_of_the_options(self):
        a = tf1.placeholder(tf.float32, [], name="a")
        b = tf1.placeholder(tf.float32, [], name="b")
        tf.subtract(a, b, name="difference")
        tf.add(a, b, name="sum")
        with session() as s:
            run = s._make_callable_from_options(callable_options(["b:0", "a:0"], ["sum:0", "difference:0"]))
            for i in range(3):
                self.assertEqual(run(np.float32(1.0), np.float32(i)), [i + 1.0, i - 1.0])

    def test_targets_run_once_each_time(self):
        v, add = counter("called")
        with session() as s:
            s.run(v.initializer)
            run = s._make_callable_from_options(callable_options(fetches=[v.name], targets=[add.op.name]))
            for _ in range(5):
                run()
            self.assertEqual(s.run(v), 5.0)
            del run
            gc.collect()  # ReleaseCallable
            self.assertEqual(s.run(add), 6.0)

    def test_what_is_unknown_is_refused_when_it_is_made(self):
        x, w, y = model()
        with session() as s:
            for options, error in [(callable_options(["nope:0"], [y.name]), tf.errors.NotFoundError),
                                   (callable_options([], ["nope:0"]), tf.errors.NotFoundError),
                                   (callable_options([], [], ["nope"]), tf.errors.NotFoundError),
                                   (callable_options(), tf.errors.InvalidArgumentError)]:
                with self.assertRaises(error):
                    s._make_callable_from_options(options)

    def test_tensor_connections(self):
        """As on Session(''): values, and the errors of connections that cannot be. Sources come later in the graph than users."""
        x = tf1.placeholder(tf.float32, [2], name="x")
        y = tf.multiply(x, 2.0, name="y")
        tf.add(y, x, name="z")
        a = tf.constant([3.0, 5.0], name="a")
        tf.reverse(a, [0], name="b")
        tf.constant([1, 2], name="whole")
        cases = [([("a:0", "x:0")], [], ["z:0"]), ([("a:0", "x:0")], [], ["a:0", "z:0"]), ([("a:0", "y:0")], ["x:0"], ["z:0"]),
                 ([("a", "x"), ("b:0", "y:0")], [], ["z:0"]), ([("z:0", "b:0")], ["x:0"], ["z:0"]), ([("y:0", "x:0")], [], ["z:0"]),
                 ([("nope:0", "x:0")], [], ["z:0"]), ([("a:7", "x:0")], [], ["z:0"]), ([("a:0", "nope:0")], [], ["z:0"]),
                 ([("a:0", "x:0"), ("b:0", "x:0")], [], ["z:0"]), ([("a:0", "y:0")], ["y:0"], ["z:0"])]
        for connections, feeds, fetches in cases:
            answers = []
            for target in ("", cluster().target):
                options = callable_options(feeds, fetches)
                for source, destination in connections:
                    options.tensor_connection.add(from_tensor=source, to_tensor=destination)
                with tf1.Session(target, config=CONFIG) as s:
                    try:
                        run = s._make_callable_from_options(options)
                        answers.append([[value.tolist() for value in run(*[np.ones(2, np.float32)] * len(feeds))] for _ in range(2)])
                    except tf.errors.OpError as error:
                        answers.append(type(error).__name__)
            with self.subTest(connections=connections, feeds=feeds):
                self.assertEqual(answers[1], answers[0])

    def test_an_error_of_a_step_names_its_node(self):
        x, w, y = model()
        with session() as s:
            run = s._make_callable_from_options(callable_options(["x:0"], [y.name]))
            with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "uninitialized value w"):
                run(np.ones(2, np.float32))
            s.run(w.initializer)
            self.assertEqual(run(np.ones(2, np.float32))[0].tolist(), [6.0, 6.0])

    def test_its_run_options_hold_for_each_run(self):
        x, w, y = model()
        with session() as s:
            s.run(w.initializer)
            run = s._make_callable_from_options(callable_options(["x:0"], [y.name], timeout_in_ms=20_000,
                                                                 trace_level=tf1.RunOptions.FULL_TRACE))
            self.assertEqual(run(np.ones(2, np.float32), run_metadata=tf1.RunMetadata())[0].tolist(), [6.0, 6.0])


class Metadata(Case):
    def run_traced(self, **options):
        x, w, y = model()
        metadata = tf1.RunMetadata()
        with session() as s:
            s.run(w.initializer)
            s.run(y, {x: [1.0, 2.0]}, options=tf1.RunOptions(**options), run_metadata=metadata)
        return metadata

    def test_a_trace_has_the_nodes_of_all_tasks(self):
        stats = self.run_traced(trace_level=tf1.RunOptions.FULL_TRACE, report_tensor_allocations_upon_oom=True).step_stats
        nodes = {d.device: {n.node_name for n in d.node_stats} for d in stats.dev_stats}
        self.assertIn("y", nodes[WORKERS[1]])
        self.assertTrue(any(n.startswith("SendTensor") and "w" in n for n in nodes[PS]), nodes)
        self.assertTrue(any(n.startswith("RecvTensor") and "w" in n for n in nodes[WORKERS[1]]), nodes)
        for device in stats.dev_stats:
            for node in device.node_stats:
                self.assertGreater(node.all_start_micros, 1_600_000_000_000_000, node.node_name)
                self.assertGreaterEqual(node.all_end_rel_nanos, 0)
                self.assertEqual(node.all_start_micros, node.all_start_nanos // 1000)
        chrome = timeline.Timeline(stats).generate_chrome_trace_format()
        self.assertIn('"y"', chrome)
        self.assertIn("job:ps", chrome)

    def test_no_trace_without_asking(self):
        metadata = self.run_traced()
        self.assertEqual(len(metadata.step_stats.dev_stats), 0)
        self.assertEqual(len(metadata.partition_graphs), 0)

    def test_partition_graphs_show_where_nodes_ran_and_what_crossed(self):
        graphs = self.run_traced(output_partition_graphs=True).partition_graphs
        nodes = [n for g in graphs for n in g.node]
        self.assertEqual({n.device for n in nodes if n.device}, {PS, WORKERS[1]})  # x is fed where it is used
        by_name = {n.name: n for n in nodes}
        self.assertEqual(by_name["y"].device, WORKERS[1])
        self.assertEqual(by_name["w"].device, PS)
        sends = {n.attr["tensor_name"].s: n for n in nodes if n.op == "_Send"}
        recvs = {n.attr["tensor_name"].s: n for n in nodes if n.op == "_Recv"}
        self.assertTrue(set(sends) & set(recvs))
        for name in set(sends) & set(recvs):
            self.assertEqual(sends[name].attr["recv_device"].s, recvs[name].attr["recv_device"].s)


class Deadlines(Case):
    def slow(self):
        """Two seconds of work, or so."""
        with tf1.device("/job:ps/task:0"):
            x = tf1.placeholder(tf.float32, [None, None])
            y = x
            for _ in range(40):
                y = tf.matmul(y, x)
        return x, y

    def test_a_step_past_its_own_deadline_says_what_it_did(self):
        x, y = self.slow()
        with session() as s:
            with self.assertRaises(tf.errors.DeadlineExceededError) as caught:
                s.run(y, {x: np.ones([1500, 1500], np.float32)}, options=tf1.RunOptions(timeout_in_ms=800))
        self.assertIn("/job:ps/task:0", str(caught.exception))
        self.assertIn("MatMul", str(caught.exception))

    def test_operation_timeout_holds_for_every_call(self):
        x, y = self.slow()
        with tf1.Session(cluster().target, config=tf1.ConfigProto(operation_timeout_in_ms=800)) as s:
            with self.assertRaisesRegex(tf.errors.DeadlineExceededError, "/job:ps/task:0"):
                s.run(y, {x: np.ones([1500, 1500], np.float32)})


class Devices(Case):
    def names(self, s):
        return {d.name for d in s.list_devices()}

    def test_before_the_first_run_and_after(self):
        y = tf.constant(2.0) * 3.0
        with session() as s:
            self.assertEqual(self.names(s), {PS, *WORKERS})
            self.assertEqual(s.run(y), 6.0)  # the first extension brings everything
            self.assertEqual(self.names(s), {PS, *WORKERS})
            for device in s.list_devices():
                self.assertEqual(device.device_type, "CPU")
                self.assertNotEqual(device.incarnation, 0)

    def test_filters_hide_tasks(self):
        with session(device_filters=["/job:ps"]) as s:  # the dialled task always passes
            self.assertEqual(self.names(s), {PS, WORKERS[0]})
            with tf1.device("/job:worker/task:1"):
                y = tf.constant(2.0) * 3.0
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "Cannot assign a device for operation"):
                s.run(y)

    def test_a_malformed_filter_is_refused(self):
        with session(device_filters=["ps"]) as s:
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "ps"):
                s.run(tf.constant(1.0))


class State(Case):
    def test_reset_clears_the_named_containers_and_closes_sessions(self):
        with tf1.container("kept"):
            kept, add_kept = counter("kept")
        with tf1.container("cleared"):
            cleared, add_cleared = counter("cleared")
        old = session()
        old.run([kept.initializer, cleared.initializer])
        tf1.Session.reset(cluster().target, ["cleared"])
        with self.assertRaisesRegex(tf.errors.AbortedError, "is not found"):
            old.run(kept)
        with session() as s:
            self.assertEqual(s.run(add_kept), 1.0)
            with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "uninitialized value cleared"):
                s.run(add_cleared)

    def test_an_isolated_session_has_variables_of_its_own(self):
        v, add = counter("isolated")
        with session() as shared, session(isolate_session_state=True) as own:
            shared.run(v.initializer)
            with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "uninitialized"):
                own.run(v)
            own.run(v.initializer)
            own.run(add)
            self.assertEqual(shared.run(v), 0.0)
            self.assertEqual(own.run(v), 1.0)

    def test_float32_may_travel_as_bfloat16(self):
        with tf1.device("/job:ps/task:0"):
            x = tf1.placeholder(tf.float32, [])
            sent = tf.abs(x)
        with tf1.device("/job:worker/task:1"):
            y = sent + 0.0
        options = tf1.GraphOptions(enable_bfloat16_sendrecv=True)
        with session(graph_options=options) as narrow, session() as wide:
            self.assertEqual(wide.run(y, {x: 1.001}), np.float32(1.001))
            self.assertEqual(narrow.run(y, {x: 1.001}), 1.0)

    def test_steps_of_many_threads_are_all_counted(self):
        v, add = counter("threads")
        with session() as s:
            s.run(v.initializer)
            threads = [threading.Thread(target=lambda: [s.run(add.op) for _ in range(20)]) for _ in range(5)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual(s.run(v), 100.0)

    def test_the_graph_may_grow_between_runs(self):
        v, add = counter("grows")
        with session() as s:
            s.run(v.initializer)
            for i in range(4):
                self.assertEqual(s.run(add), i + 1.0)
                self.assertEqual(s.run(v * float(i)), (i + 1.0) * i)  # three new nodes


class Limits(Case):
    def test_a_step_that_wants_a_terabyte_harms_nobody(self):
        v, add = counter("bystander")
        with tf1.device("/job:ps/task:0"):
            dims = tf1.placeholder_with_default([1_000_000, 1_000_000], [2])
            huge = tf.fill(dims, 1.0, name="huge")
            total = tf.reduce_sum(huge * 2.0)
        with session() as s, session() as other:
            other.run(v.initializer)
            for fetch in (total, huge):
                with self.assertRaisesRegex(tf.errors.ResourceExhaustedError, "huge|mul"):
                    s.run(fetch)
                self.assertGreater(other.run(add), 0.0)
            self.assertEqual(s.run(total, {dims: [2, 3]}), 12.0)

    def test_a_reply_above_the_protocols_limit_is_refused(self):
        with tf1.device("/job:ps/task:0"):
            n = tf1.placeholder(tf.int32, [1])
            large = tf.fill(n, tf.constant(1.0))
        # 2.4 GB cross two borders: 15 s on an idle machine of two cores.
        with tf1.Session(cluster().target, config=tf1.ConfigProto(operation_timeout_in_ms=300_000)) as s:
            with self.assertRaisesRegex(tf.errors.ResourceExhaustedError, "at most 2147483647"):
                s.run(large, {n: [600_000_000]})
            self.assertEqual(s.run(large, {n: [3]}).sum(), 3.0)

    def test_large_feeds_and_fetches_cross(self):
        x = tf1.placeholder(tf.float32, [None])
        with tf1.device("/job:worker/task:1"):
            y = x + 1.0
        value = np.arange(20_000_000, dtype=np.float32)  # 80 MB
        with session() as s:
            got = s.run(y, {x: value})
        self.assertEqual(got.shape, value.shape)
        self.assertTrue((got[::1_000_003] == value[::1_000_003] + 1).all())


class Refusals(Case):
    def test_all_unknown_ops_are_named_with_their_nodes(self):
        tf.raw_ops.TPUReplicatedInput(inputs=[1.0], name="first")
        tf.raw_ops.TPUReplicatedInput(inputs=[2.0], name="another")
        tf.raw_ops.TPUOrdinalSelector(name="second")
        y = tf.constant(1.0)
        with session() as s:
            with self.assertRaises(tf.errors.NotFoundError) as caught:
                s.run(y)
        text = str(caught.exception)
        self.assertIn("Op type not registered ", text)
        self.assertIn("'TPUReplicatedInput'", text)
        self.assertIn("TPUOrdinalSelector", text)
        self.assertTrue("'first'" in text or "'another'" in text, text)
        self.assertIn("'second'", text)

    def test_what_runs_in_the_clients_process_is_refused_with_the_way_out(self):
        y = tf1.py_func(lambda: np.float32(1.0), [], tf.float32)
        with session() as s:
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "feed"):
                s.run(y)

    def test_options_that_a_cluster_cannot_have(self):
        for error, options in [(tf.errors.InvalidArgumentError, {"use_per_session_threads": True}),
                               (tf.errors.UnimplementedError, {"cluster_def": tf.train.ClusterDef(
                                   job=[tf.train.JobDef(name="ps", tasks={0: "127.0.0.1:1"})])})]:
            with session(**options) as s, self.assertRaises(error):
                s.run(tf.constant(1.0))

    def test_a_feed_of_another_type_or_shape_names_the_placeholder(self):
        x = tf1.placeholder(tf.float32, [2, 3], name="narrow")
        y = tf.identity(x * 2.0, name="y")
        with session() as s:
            run = s._make_callable_from_options(callable_options(["narrow:0"], ["y:0"]))  # no check by the client
            for bad in (np.ones([2, 4], np.float32), np.ones([2, 3], np.int32), np.float32(1.0)):
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "narrow"):
                    run(bad)
            self.assertEqual(run(np.ones([2, 3], np.float32))[0].sum(), 12.0)


if __name__ == "__main__":
    main(__doc__)

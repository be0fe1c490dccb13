#!/usr/bin/env python3
"""Checkpoints and event files, both ways: what a Leat cluster writes TensorFlow reads, what TensorFlow writes the cluster
restores; MonitoredTrainingSession with Saver and summaries gives the losses of Session('').

  python3 tests/tensorflow/checkpoint_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import glob
import os
import socket
import subprocess
import tempfile
import unittest

from leat_cluster import CONFIG, cluster, main, np, tf, tf1
from tensorflow.core.framework import summary_pb2


def variables(use_resource=True):
    """Of all kinds: partitioned, string, scalar, empty, several dtypes."""
    rng = np.random.default_rng(1)
    value = rng.random((7, 3), dtype=np.float32)

    def part(shape, dtype, partition_info):
        row, column = partition_info.var_offset
        return tf.constant(value[row:row + shape[0], column:column + shape[1]], dtype)
    with tf1.variable_scope("", use_resource=use_resource):
        return [
            tf1.get_variable("table", [7, 3], initializer=part, partitioner=tf1.fixed_size_partitioner(3)),
            tf1.get_variable("w", initializer=rng.random((4, 2))),
            tf1.get_variable("step", initializer=np.int64(42)),
            tf1.get_variable("names", initializer=tf.constant(["a", "", "b" * 300])),
            tf1.get_variable("flags", initializer=tf.constant([True, False])),
            tf1.get_variable("half", initializer=tf.constant([1.5, -2], tf.float16)),
            tf1.get_variable("empty", initializer=np.zeros((0, 5), np.float32)),
        ]


VALUES = ["table", "w", "step", "names", "flags", "half", "empty"]


def content(path):
    with open(path, "rb") as file:
        return file.read()


class Checkpoints(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.prefix = os.path.join(self.directory.name, "model.ckpt")

    def tearDown(self):
        self.directory.cleanup()

    def session(self, target):
        if target:
            tf1.Session.reset(target)
        return tf1.Session(target, config=CONFIG)

    def save(self, target, sharded, use_resource, version=tf1.train.SaverDef.V2):
        with tf1.Graph().as_default():
            with tf1.device(tf1.train.replica_device_setter(ps_tasks=2) if target else None):
                made = variables(use_resource)
            saver = tf1.train.Saver(sharded=sharded, write_version=version)
            with self.session(target) as session:
                session.run(tf1.global_variables_initializer())
                path = saver.save(session, self.prefix, global_step=3)
                return path, [session.run(tf1.convert_to_tensor(v)) for v in made]

    def restore(self, target, path, sharded, use_resource):
        with tf1.Graph().as_default():
            with tf1.device(tf1.train.replica_device_setter(ps_tasks=2) if target else None):
                made = variables(use_resource)
            saver = tf1.train.Saver(sharded=sharded)
            with self.session(target) as session:
                saver.restore(session, path)
                return [session.run(tf1.convert_to_tensor(v)) for v in made]

    def assert_same(self, expected, got):
        for name, e, g in zip(VALUES, expected, got):
            self.assertEqual(np.asarray(e).dtype, np.asarray(g).dtype, name)
            np.testing.assert_array_equal(g, e, name)

    def test_written_here_read_by_tensorflow(self):
        for sharded in (False, True):
            for use_resource in (False, True):
                with self.subTest(sharded=sharded, use_resource=use_resource):
                    path, values = self.save(cluster().target, sharded, use_resource)
                    reader = tf1.train.load_checkpoint(path)
                    self.assertEqual(sorted(reader.get_variable_to_shape_map()), sorted(VALUES))
                    self.assert_same(values, [reader.get_tensor(name) for name in VALUES])
                    self.assert_same(values, self.restore("", path, not sharded, not use_resource))
                    self.assertGreaterEqual(len(glob.glob(path + ".data-*")), 2 if sharded else 1)
                    self.assertEqual(glob.glob(self.prefix + "*temp*"), [])
                    self.assertEqual(tf1.train.latest_checkpoint(self.directory.name), path)

    def test_written_by_tensorflow_restored_here(self):
        for sharded in (False, True):
            with self.subTest(sharded=sharded):
                path, values = self.save("", sharded, use_resource=True)
                self.assert_same(values, self.restore(cluster().target, path, sharded, use_resource=False))
                self.assert_same(values, self.restore(cluster().target, path, not sharded, use_resource=True))

    def test_the_files_are_tensorflows_to_the_byte(self):
        path, _ = self.save("", False, True)
        theirs = {name: content(name) for name in glob.glob(path + ".*")}
        path, _ = self.save(cluster().target, False, True)
        self.assertEqual(len(theirs), 3)  # with the graph
        for name, expected in theirs.items():
            if not name.endswith(".meta"):
                self.assertEqual(content(name), expected, name)

    def test_the_old_format(self):
        v1 = tf1.train.SaverDef.V1
        for sharded in (False, True):
            for use_resource in (False, True):
                with self.subTest(sharded=sharded, use_resource=use_resource):
                    path, values = self.save("", sharded, use_resource, v1)
                    theirs = {name: content(name) for name in glob.glob(path.replace("?", "[0-9]"))}
                    self.assert_same(values, self.restore(cluster().target, path, sharded, not use_resource))
                    path, values = self.save(cluster().target, sharded, use_resource, v1)
                    if not sharded:  # else another task has others
                        self.assertEqual({name: content(name) for name in theirs}, theirs)
                    self.assert_same(values, self.restore("", path, not sharded, use_resource))
                    self.assertEqual(tf1.train.latest_checkpoint(self.directory.name), path)

    def test_ops_of_the_old_format(self):
        for target in "", cluster().target:
            with self.subTest(target=target), tf1.Graph().as_default(), self.session(target) as session:
                value = tf.constant([[1., 2], [3, 4]])
                session.run(tf.raw_ops.Save(filename=self.prefix, tensor_names=["x", "n"], data=[value, tf.constant(7)]))
                self.assertEqual(session.run(tf.raw_ops.Restore(file_pattern=self.prefix, tensor_name="n", dt=tf.int32)), 7)
                part = tf.raw_ops.RestoreSlice(file_pattern=self.prefix, tensor_name="x", shape_and_slice="2 2 -:1,1", dt=tf.float32)
                self.assertEqual(session.run(part).tolist(), [[2], [4]])
                for name, dtype, error in ("y", tf.float32, tf.errors.NotFoundError), ("n", tf.int64, tf.errors.InvalidArgumentError):
                    with self.assertRaisesRegex(error, f"{name}"):
                        session.run(tf.raw_ops.Restore(file_pattern=self.prefix, tensor_name=name, dt=dtype))
                with self.assertRaises(tf.errors.NotFoundError):
                    session.run(tf.raw_ops.Restore(file_pattern=self.prefix + "-absent", tensor_name="x", dt=tf.float32))
                with self.assertRaises(tf.errors.InvalidArgumentError):
                    names = tf1.placeholder(tf.string)
                    session.run(tf.raw_ops.Save(filename=self.prefix, tensor_names=names, data=[value, tf.constant(7)]), {names: ["x"]})

    def test_other_partitions(self):
        with tf1.Graph().as_default():
            with tf1.device(tf1.train.replica_device_setter(ps_tasks=2)):
                v = tf1.get_variable("v", [10, 2], partitioner=tf1.fixed_size_partitioner(4),
                                     initializer=tf1.random_uniform_initializer(seed=3))
            with self.session(cluster().target) as session:
                session.run(tf1.global_variables_initializer())
                path = tf1.train.Saver(sharded=True).save(session, self.prefix)
                value = session.run(tf1.convert_to_tensor(v))
        with tf1.Graph().as_default():
            with tf1.device(tf1.train.replica_device_setter(ps_tasks=2)):
                v = tf1.get_variable("v", [10, 2], partitioner=tf1.fixed_size_partitioner(3))
            with self.session(cluster().target) as session:
                tf1.train.Saver().restore(session, path)
                np.testing.assert_array_equal(session.run(tf1.convert_to_tensor(v)), value)

    def test_a_warm_start_with_another_vocabulary(self):
        old_words, new_words = ["red", "green", "blue", "grey"], ["blue", "pink", "red"]
        paths = []
        for words in old_words, new_words:
            paths.append(os.path.join(self.directory.name, words[0]))
            with open(paths[-1], "w") as file:
                file.write("\n".join(words) + "\n")
        with tf1.Graph().as_default():
            colours = tf1.get_variable("colours", initializer=np.arange(8, dtype=np.float32).reshape(4, 2))
            saver = tf1.train.Saver()
            with self.session("") as session:
                session.run(colours.initializer)
                saver.save(session, self.prefix)
        for target in "", cluster().target:
            with self.subTest(target=target), tf1.Graph().as_default():
                colours = tf1.get_variable("colours", [3, 2], initializer=tf1.zeros_initializer())
                words = tf1.train.VocabInfo(paths[1], 3, 0, paths[0], backup_initializer=tf1.ones_initializer())
                tf1.train.warm_start(self.prefix, vars_to_warm_start="colours", var_name_to_vocab_info={"colours": words})
                with self.session(target) as session:
                    session.run(colours.initializer)
                    self.assertEqual(session.run(colours).tolist(), [[4, 5], [1, 1], [0, 1]])

    def test_rows_that_are_all_new(self):
        """Of a partitioned variable, the part that has no row of the checkpoint: an empty remapping of rows."""
        with tf1.Graph().as_default():
            old = tf1.get_variable("old", initializer=np.arange(8, dtype=np.float32).reshape(4, 2))
            with self.session("") as session:
                session.run(old.initializer)
                tf1.train.Saver().save(session, self.prefix)

        def load(rows, columns, count):
            return tf.raw_ops.LoadAndRemapMatrix(
                ckpt_path=self.prefix, old_tensor_name="old", row_remapping=tf.constant(rows, tf.int64), num_rows=count, num_cols=2,
                col_remapping=tf.constant(columns, tf.int64), initializing_values=tf.constant([], tf.float32))

        for target in "", cluster().target:
            with self.subTest(target=target), tf1.Graph().as_default(), self.session(target) as session:
                self.assertEqual(session.run(load([], [], 0)).shape, (0, 2))
                self.assertEqual(session.run(load([2, 1], [], 2)).tolist(), [[4, 5], [2, 3]])
                for rows, columns, count in ([], [], 4), ([2, 1], [0], 2), (3, [], 1):
                    with self.assertRaises(tf.errors.InvalidArgumentError):
                        session.run(load(rows, columns, count))

    def test_what_does_not_fit(self):
        path, _ = self.save(cluster().target, False, True)
        with tf1.Graph().as_default():
            tf1.get_variable("w", [4, 3], tf.float64)
            tf1.get_variable("absent", [2])
            tf1.get_variable("gone", [2])
            saver = tf1.train.Saver([v for v in tf1.global_variables() if v.op.name == "w"])
            both = tf1.train.Saver()
            with self.session(cluster().target) as session:
                with self.assertRaisesRegex(tf.errors.NotFoundError, "absent"):
                    both.restore(session, path)
                with self.assertRaises(tf.errors.InvalidArgumentError):
                    saver.restore(session, path)
                with self.assertRaisesRegex((ValueError, tf.errors.NotFoundError), "valid checkpoint|matching files"):
                    saver.restore(session, path + "x")

    def test_a_merge_may_pass_over_what_is_missing(self):
        for target in "", cluster().target:
            with self.subTest(target=target), tf1.Graph().as_default(), self.session(target) as session:
                there, missing = self.prefix + "_temp/a", self.prefix + "_temp/b"
                session.run(tf.raw_ops.SaveV2(prefix=there, tensor_names=["x"], shape_and_slices=[""], tensors=[1.5]))

                def merge(*prefixes):
                    session.run(tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=self.prefix,
                                                              allow_missing_files=True))
                with self.assertRaises(tf.errors.InvalidArgumentError):
                    merge(missing)
                merge(missing, there)
                self.assertEqual(tf1.train.load_checkpoint(self.prefix).get_tensor("x"), 1.5)

    def test_a_torn_file_is_named_and_another_offered(self):
        path, _ = self.save(cluster().target, False, True)
        with tf1.Graph().as_default():
            with tf1.device(tf1.train.replica_device_setter(ps_tasks=2)):
                variables()
            saver = tf1.train.Saver()
            with self.session(cluster().target) as session:
                session.run(tf1.global_variables_initializer())
                second = saver.save(session, self.prefix, global_step=4)
                torn = second + ".data-00000-of-00001"
                os.truncate(torn, 20)
                with self.assertRaises(tf.errors.DataLossError) as caught:
                    saver.restore(session, second)
                self.assertIn(torn, str(caught.exception))
                self.assertIn(path, str(caught.exception))


class Partitions(unittest.TestCase):
    """Tables in parts of the C++ example ratings, trained on two ps, and the same of TensorFlow: one checkpoint for both."""
    SHAPES = {"users": (300, 4), "items": (200, 4)}

    @classmethod
    def setUpClass(cls):
        """TensorFlow's own cluster of two ps."""
        ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        addresses = [f"127.0.0.1:{port.getsockname()[1]}" for port in ports]
        for port in ports:
            port.close()
        cls.spec = tf1.train.ClusterSpec({"ps": addresses[:2], "worker": addresses[2:]})
        cls.servers = [tf1.train.Server(cls.spec, job_name=job, task_index=index)
                       for job, index in (("ps", 0), ("ps", 1), ("worker", 0))]

    def setUp(self):
        self.example = os.path.join(os.path.dirname(cluster().leat), "examples", "ratings")
        if not os.path.exists(self.example):
            self.skipTest("the example ratings is not built")
        self.directory = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.directory.cleanup()

    def train_in_leat(self, parts, steps, *flags):
        """Goes on from the directory's checkpoint, if it has one; all tensors of the last one."""
        subprocess.run([cluster().leat, "run", "local:ps=2,worker=1", "--", self.example, "--parts", str(parts), "--steps",
                        str(steps), "--directory", self.directory.name, *flags],
                       check=True, timeout=120, stdout=subprocess.DEVNULL)
        return self.tensors()

    def tensors(self):
        reader = tf1.train.load_checkpoint(tf1.train.latest_checkpoint(self.directory.name))
        return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}

    def in_tensorflow(self, parts, restore):
        """Restores or initialises, makes a step; the tensors that it saves before the step, and after it."""
        with tf1.Graph().as_default(), tf1.device(tf1.train.replica_device_setter(cluster=self.spec)):
            step, loss = tf1.train.get_or_create_global_step(), 0
            for name, shape in self.SHAPES.items():
                table = tf1.get_variable(name, shape, partitioner=tf1.fixed_size_partitioner(parts) if parts else None,
                                         initializer=tf1.random_uniform_initializer(seed=3))
                loss += tf.reduce_sum(tf1.nn.embedding_lookup(table, [0, 7, 7, shape[0] - 1], partition_strategy="div") ** 2)
            train = tf1.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
            saver = tf1.train.Saver(sharded=True)
            prefix = os.path.join(self.directory.name, "model.ckpt")
            tf1.Session.reset(self.servers[-1].target)
            with tf1.Session(self.servers[-1].target, config=CONFIG) as session:
                if restore:
                    saver.restore(session, tf1.train.latest_checkpoint(self.directory.name))
                else:
                    session.run(tf1.global_variables_initializer())
                saver.save(session, prefix, global_step=step)
                before = self.tensors()
                session.run(train)
                saver.save(session, prefix, global_step=step)
                return before, self.tensors()

    def assert_same(self, expected, got):
        self.assertEqual(sorted(got), sorted(expected))
        for name, value in expected.items():
            self.assertEqual((got[name].dtype, got[name].shape), (value.dtype, value.shape), name)
            np.testing.assert_array_equal(got[name], value, name)

    def test_tensorflow_restores_what_leat_has_written(self):
        for written, read in ((1, 3), (4, 0), (3, 3), (3, 2)):
            with self.subTest(written=written, read=read):
                self.directory.cleanup()
                self.directory = tempfile.TemporaryDirectory()
                expected = self.train_in_leat(written, steps=20)
                self.assertEqual(sorted(expected), sorted(["global_step", "beta1_power", "beta2_power"] + [
                    name + slot for name in self.SHAPES for slot in ("", "/Adam", "/Adam_1")]))
                for name, shape in self.SHAPES.items():
                    self.assertEqual(expected[name].shape, shape)
                    self.assertGreater(np.abs(expected[name + "/Adam"]).max(), 0)
                self.assertEqual(len(glob.glob(tf1.train.latest_checkpoint(self.directory.name) + ".data-*")), 2)
                self.assert_same(expected, self.in_tensorflow(read, restore=True)[0])

    def test_leat_restores_what_tensorflow_has_written(self):
        for written, read in ((0, 3), (3, 4), (5, 1)):
            with self.subTest(written=written, read=read):
                self.directory.cleanup()
                self.directory = tempfile.TemporaryDirectory()
                _, expected = self.in_tensorflow(written, restore=False)
                # A step of one rating that changes nothing but the slots of two rows, and lets the others fade.
                got = self.train_in_leat(read, 2, "--batch", "1", "--rate", "1e-30")
                self.assertEqual(sorted(got), sorted(expected))
                self.assertEqual(got["global_step"], 2)
                for name in self.SHAPES:
                    np.testing.assert_array_equal(got[name], expected[name], name)
                    for slot, fade in (("/Adam", 0.9), ("/Adam_1", 0.999)):
                        value, faded = got[name + slot], expected[name + slot] * np.float32(fade)
                        changed = np.flatnonzero(~np.isclose(value, faded, rtol=1e-5).all(axis=1))
                        self.assertLessEqual(len(changed), 1, name + slot)
                        self.assertGreater(np.abs(faded[7]).max(), 0)


class Summaries(unittest.TestCase):
    def test_values_are_tensorflows(self):
        rng = np.random.default_rng(0)
        values = np.concatenate([rng.standard_normal(500), [0, 0, 1e-13, -1e-13, 1e20, -5e21, 1]]).astype(np.float32)

        def run(target):
            with tf1.Graph().as_default():
                x = tf1.placeholder(tf.float32, [None])
                tf1.summary.scalar("mean", tf.reduce_mean(x))
                tf1.summary.scalar("count", tf.size(x))
                tf1.summary.histogram("x", x)
                tf1.summary.histogram("ints", tf.cast(tf.clip_by_value(x, -9, 9), tf.int64))
                merged = tf1.summary.merge_all()
                with tf1.Session(target, config=CONFIG) as session:
                    return summary_pb2.Summary.FromString(session.run(merged, {x: values}))
        expected, got = run(""), run(cluster().target)
        self.assertEqual([v.tag for v in got.value], [v.tag for v in expected.value])
        for e, g in zip(expected.value, got.value):
            self.assertAlmostEqual(g.simple_value, e.simple_value, delta=1e-5 * abs(e.simple_value))
            np.testing.assert_array_equal(g.histo.bucket, e.histo.bucket)
            np.testing.assert_array_equal(g.histo.bucket_limit, e.histo.bucket_limit)
            for field in ("min", "max", "num", "sum", "sum_squares"):
                np.testing.assert_allclose(getattr(g.histo, field), getattr(e.histo, field), rtol=1e-12)

    def test_what_has_no_histogram(self):
        with tf1.Graph().as_default():
            x = tf1.placeholder(tf.float32, [None])
            histogram = tf1.summary.histogram("x", x)
            with tf1.Session(cluster().target, config=CONFIG) as session:
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "Nan in summary histogram for: x"):
                    session.run(histogram, {x: [np.nan]})
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "Infinity in Histogram for: x"):
                    session.run(histogram, {x: [np.inf]})


class Training(unittest.TestCase):
    """MonitoredTrainingSession, as programs use it, twice: the second goes on from the checkpoint of the first."""

    def train(self, target, directory, learn, use_resource, until):
        losses = []
        with tf1.Graph().as_default():
            with tf1.device(tf1.train.replica_device_setter(ps_tasks=2) if target else None):
                rng = np.random.default_rng(0)
                step = tf1.train.get_or_create_global_step()
                x, y = tf1.placeholder(tf.float32, [None, 16]), tf1.placeholder(tf.int32, [None])
                with tf1.variable_scope("", use_resource=use_resource):
                    w0 = tf1.get_variable("w0", initializer=rng.standard_normal((16, 8)).astype(np.float32))
                    w1 = tf1.get_variable("w1", initializer=rng.standard_normal((8, 4)).astype(np.float32))
                    b = tf1.get_variable("b", [4], initializer=tf1.zeros_initializer())
                logits = tf.matmul(tf.nn.relu(tf.matmul(x, w0)), w1) + b
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
                train = learn().minimize(loss, global_step=step)
                tf1.summary.scalar("loss", loss)
                tf1.summary.histogram("w0", w0)
            if target:
                tf1.Session.reset(target)
            hooks = [tf1.train.StopAtStepHook(last_step=until), tf1.train.NanTensorHook(loss)]
            with tf1.train.MonitoredTrainingSession(target, checkpoint_dir=directory, save_checkpoint_steps=5,
                                                    save_summaries_steps=2, log_step_count_steps=5, hooks=hooks,
                                                    config=CONFIG) as session:
                while not session.should_stop():
                    done = session.run_step_fn(lambda step_context: step_context.session.run(step))
                    rng = np.random.default_rng(1000 + done)
                    feed = {x: rng.random((8, 16), dtype=np.float32), y: rng.integers(0, 4, 8)}
                    losses.append((done, session.run([loss, train], feed)[0]))
        return losses

    def test_losses_are_those_of_a_local_session(self):
        optimizers = {"momentum": lambda: tf1.train.MomentumOptimizer(0.05, 0.9),
                      "adam": lambda: tf1.train.AdamOptimizer(1e-2)}
        for name, learn in optimizers.items():
            for use_resource in (False, True):
                with self.subTest(optimizer=name, use_resource=use_resource), \
                        tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
                    expected, got = [], []
                    for until in (12, 20):
                        expected += self.train("", here, learn, use_resource, until)
                        got += self.train(cluster().target, there, learn, use_resource, until)
                    self.assertEqual([s for s, _ in expected], list(range(20)))
                    self.assertEqual([s for s, _ in got], list(range(20)))
                    np.testing.assert_allclose([v for _, v in got], [v for _, v in expected], rtol=2e-4)
                    self.assert_events(there, [v for _, v in got])

    def assert_events(self, directory, losses):
        logged, graphs = {}, 0
        for path in sorted(glob.glob(os.path.join(directory, "events.*"))):
            for event in tf1.train.summary_iterator(path):
                graphs += event.HasField("graph_def")
                for value in event.summary.value:
                    if value.tag == "loss":
                        logged[event.step] = value.simple_value
        self.assertGreater(len(logged), 5)
        self.assertGreater(graphs, 0)
        for step, value in logged.items():
            self.assertIn(np.float32(value), np.float32(losses), step)

    def test_event_files_of_leat_open_in_tensorflow(self):
        """Written by the C++ training session of the example."""
        example = os.path.join(os.path.dirname(cluster().leat), "examples", "mnist")
        if not os.path.exists(example):
            self.skipTest("the example mnist is not built")
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([example, "--epochs", "2", "--batch", "80", "--directory", directory], check=True, timeout=120,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            events = [e for path in glob.glob(os.path.join(directory, "events.*")) for e in tf1.train.summary_iterator(path)]
            self.assertEqual(events[0].file_version, "brain.Event:2")
            graph = [tf1.GraphDef.FromString(e.graph_def) for e in events if e.HasField("graph_def")]
            self.assertGreater(len(graph[0].node), 50)
            steps = [e.step for e in events for v in e.summary.value if v.tag == "loss"]
            self.assertEqual(steps, [100, 200])
            latest = tf1.train.latest_checkpoint(directory)
            self.assertTrue(latest.endswith("model.ckpt-200"), latest)
            self.assertEqual(tf1.train.load_checkpoint(latest).get_tensor("global_step"), 200)

    def test_the_graph_of_an_event_file_has_the_devices_on_which_it_ran(self):
        example = os.path.join(os.path.dirname(cluster().leat), "examples", "mnist")
        if not os.path.exists(example):
            self.skipTest("the example mnist is not built")
        with tempfile.TemporaryDirectory() as directory:
            ran = os.path.join(directory, "ran.pb")
            subprocess.run([cluster().leat, "run", "local:ps=2,worker=2", "--", example, "--strategy", "parameter_server:staleness=0", "--epochs", "1",
                            "--batch", "80", "--directory", directory, "--graph", ran], check=True, timeout=120,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            events = [e for path in glob.glob(os.path.join(directory, "events.*")) for e in tf1.train.summary_iterator(path)]
            graphs = [tf1.GraphDef.FromString(e.graph_def) for e in events if e.HasField("graph_def")]
            self.assertEqual(len(graphs), 1)
            devices = {node.name: node.device for node in graphs[0].node}
            for name, device in devices.items():
                self.assertRegex(device, r"^/job:(ps|worker)/replica:0/task:[01]/device:CPU:0$", name)
            self.assertEqual({d.split("/replica")[0] + d.split("replica:0")[1] for d in devices.values()},
                             {f"/job:{job}/task:{i}/device:CPU:0" for job in ("ps", "worker") for i in (0, 1)})
            with open(ran, "rb") as f:
                partitions = tf1.GraphDef.FromString(f.read())
            common = [node for node in partitions.node if node.name in devices]
            self.assertGreater(len(common), 50)
            for node in common:
                self.assertEqual(devices[node.name], node.device, node.name)


if __name__ == "__main__":
    main(__doc__, parameter_servers=2)

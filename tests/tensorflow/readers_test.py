#!/usr/bin/env python3
"""Readers and input pipelines of queue runners, as TensorFlow's own client uses them: every record, key and count is what
Session('') gives, or the same error.

  python3 tests/tensorflow/readers_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import gzip
import os
import tempfile
import unittest
import zlib

from leat_cluster import CONFIG, cluster, main, np, tf, tf1


class Files:
    def __init__(self, folder):
        self.folder = folder

    def bytes(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def records(self, name, records, compression=""):
        path = os.path.join(self.folder, name)
        with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression)) as writer:
            for record in records:
                writer.write(record)
        return path


class Readers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.files = Files(self.folder.name)

    def read(self, target, make, files, up_to):
        """What a reader gives until it gives errors only, and what it counts."""
        out, errors = [], 0
        with tf1.Graph().as_default():
            queue = tf1.FIFOQueue(20, tf.string, [])
            fill, close = queue.enqueue_many([files]), queue.close()
            reader = make()
            record = reader.read_up_to(queue, up_to) if up_to else reader.read(queue)
            counts = [reader.num_records_produced(), reader.num_work_units_completed()]
            reset = reader.reset()
            if target:
                tf1.Session.reset(target)
            with tf1.Session(target, config=CONFIG) as session:
                session.run(fill)
                session.run(close)
                while errors < 2 and len(out) < 100:
                    try:
                        out.append([np.asarray(x).tolist() for x in session.run(record)])
                        out.append(session.run(counts))
                    except tf.errors.OpError as error:
                        out.append(type(error).__name__)
                        errors += 1
                session.run(reset)
                out.append(session.run(counts))
        return out

    def assert_agrees(self, make, files, first_error_only=False):
        for up_to in (0, 1, 3, 100):
            expected, got = (self.read(target, make, files, up_to) for target in ("", cluster().target))
            if first_error_only:
                def until_error(out):
                    return out[:next(i for i, x in enumerate(out) if isinstance(x, str)) + 1]
                expected, got = until_error(expected), until_error(got)
            self.assertEqual(got, expected, f"up_to {up_to}")

    def test_text_lines(self):
        file = self.files.bytes
        files = [file("a", b"head\nx,1\r\ny,2\n\nmid\rdle\r\r\n\rlast\r"), file("b", b"head\n"), file("empty", b""),
                 file("c", b"h\nq\n"), file("long", b"z" * 600_000 + b"\n" + b"y" * 300_000)]
        for skipped in (None, 0, 1, 9):
            self.assert_agrees(lambda: tf1.TextLineReader(skip_header_lines=skipped), files)

    def test_whole_files_and_names(self):
        files = [self.files.bytes("a", b"\0\xff\n"), self.files.bytes("empty", b"")]
        self.assert_agrees(tf1.WholeFileReader, files)
        self.assert_agrees(tf1.IdentityReader, ["a", "", "b"])

    def test_records(self):
        records = [b"%d" % i * i * 1000 for i in range(5)]
        for compression in ("", "GZIP", "ZLIB"):
            path = self.files.records("r" + compression, records, compression)
            empty = self.files.records("e" + compression, [], compression)
            self.assert_agrees(lambda: tf1.TFRecordReader(options=tf.io.TFRecordOptions(compression)),
                               [path, empty, path])

    def test_pieces_of_fixed_length(self):
        files = [self.files.bytes("a", bytes(range(10)) * 3 + b"FOOT"), self.files.bytes("b", b"abc"),
                 self.files.bytes("empty", b"")]
        for options in ({}, {"header_bytes": 2}, {"footer_bytes": 4}, {"hop_bytes": 2}, {"hop_bytes": 11},
                        {"header_bytes": 2, "footer_bytes": 4, "hop_bytes": 3}, {"header_bytes": 40}):
            for record_bytes in (1, 4, 7, 34, 35):
                self.assert_agrees(lambda: tf1.FixedLengthRecordReader(record_bytes, **options), files)
        packed = {"ZLIB": zlib.compress(bytes(range(30))),
                  "GZIP": gzip.compress(b"0123456789") + gzip.compress(b"abcdefghij")}
        for encoding, content in packed.items():
            path = self.files.bytes(encoding, content)
            self.assert_agrees(lambda: tf1.FixedLengthRecordReader(6, footer_bytes=2, encoding=encoding), [path, path])

    def test_what_cannot_be_read(self):
        """After an error Leat goes on with the next file; TensorFlow reads a damaged one again and again, and takes a
        torn header for the end of its file."""
        good = self.files.records("good", [b"r1", b"r22"])
        with open(good, "rb") as file:
            content = file.read()
        self.assert_agrees(tf1.TextLineReader, ["/nonexistent", good])
        self.assert_agrees(tf1.TextLineReader, [self.folder.name], first_error_only=True)
        for bad in (content[:-3], content[:14], content[:25] + b"!" + content[26:]):
            self.assert_agrees(tf1.TFRecordReader, [self.files.bytes("bad", bad)], first_error_only=True)
        self.assert_agrees(lambda: tf1.TFRecordReader(options=tf.io.TFRecordOptions("ZLIB")), [good],
                           first_error_only=True)

    def test_one_reader_for_many_threads(self):
        """Each record once, whoever reads it."""
        paths = [self.files.records(f"r{i}", [b"%d" % (100 * i + k) for k in range(100)]) for i in range(5)]
        with tf1.Graph().as_default():
            names = tf1.train.string_input_producer(paths, num_epochs=1, seed=1)
            _, value = tf1.TFRecordReader().read(names)
            batch = tf1.train.shuffle_batch([tf1.string_to_number(value, tf.int32)], 20, 200, 50, num_threads=4, seed=2)
            tf1.Session.reset(cluster().target)
            with tf1.Session(cluster().target, config=CONFIG) as session:
                session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
                coordinator = tf1.train.Coordinator()
                threads = tf1.train.start_queue_runners(session, coordinator)
                seen = []
                with self.assertRaises(tf.errors.OutOfRangeError):
                    while True:
                        seen.extend(session.run(batch))
                coordinator.request_stop()
                coordinator.join(threads, ignore_live_threads=True)
        self.assertEqual(sorted(seen), list(range(500)))

    def test_a_read_that_waits_ends_with_its_step(self):
        with tf1.Graph().as_default():
            queue = tf1.FIFOQueue(20, tf.string, [])
            value = tf1.WholeFileReader().read(queue)[1]
            fill = queue.enqueue(self.files.bytes("a", b"there"))
            tf1.Session.reset(cluster().target)
            with tf1.Session(cluster().target, config=CONFIG) as session:
                for _ in range(3):
                    with self.assertRaises(tf.errors.DeadlineExceededError):
                        session.run(value, options=tf1.RunOptions(timeout_in_ms=200))
                session.run(fill)
                self.assertEqual(session.run(value), b"there")

    def test_training_from_records(self):
        """The pipeline of TensorFlow 1's tutorials, with the losses of Session('')."""
        rng = np.random.default_rng(0)
        examples = []
        for _ in range(64):
            x = rng.standard_normal(8).astype(np.float32)
            examples.append(tf.train.Example(features=tf.train.Features(feature={
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=x)),
                "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(x.sum() > 0)]))})).SerializeToString())
        path = self.files.records("examples", examples)
        losses = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                names = tf1.train.string_input_producer([path], shuffle=False)
                _, record = tf1.TFRecordReader().read(names)
                parsed = tf1.parse_single_example(record, {"x": tf1.FixedLenFeature([8], tf.float32),
                                                           "y": tf1.FixedLenFeature([], tf.int64)})
                x, y = tf1.train.batch([parsed["x"], parsed["y"]], 16)
                with tf1.variable_scope("m", use_resource=False):
                    w = tf1.get_variable("w", [8, 2], initializer=tf1.zeros_initializer())
                loss = tf1.losses.sparse_softmax_cross_entropy(y, tf.matmul(x, w))
                train = tf1.train.AdamOptimizer(0.1).minimize(loss, tf1.train.get_or_create_global_step())
                if target:
                    tf1.Session.reset(target)
                with tf1.train.MonitoredTrainingSession(target, config=CONFIG, hooks=[
                        tf1.train.StopAtStepHook(last_step=10)]) as session:
                    curve = []
                    while not session.should_stop():
                        curve.append(session.run([loss, train])[0])
                losses.append(curve)
        np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
        self.assertEqual(len(losses[0]), 10)


class SparseBatches(unittest.TestCase):
    """Sparse tensors of tf.train's batches: they wait in a map of the task while a queue has their numbers."""

    @staticmethod
    def records(count):
        rng = np.random.default_rng(1)
        def record(i):
            words = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"w%d" % n for n in rng.integers(0, 9, i % 4)]))
            numbers = tf.train.Feature(int64_list=tf.train.Int64List(value=rng.integers(0, 99, (3 * i) % 5)))
            one = tf.train.Feature(float_list=tf.train.FloatList(value=[i]))
            return tf.train.Example(features=tf.train.Features(feature={"words": words, "numbers": numbers, "one": one}))
        return [record(i).SerializeToString() for i in range(count)]

    def batches(self, target, records, batch):
        """What the batches of parsed records are, until the input ends."""
        out = []
        with tf1.Graph().as_default():
            record = tf1.train.input_producer(tf.constant(records), num_epochs=1, shuffle=False).dequeue()
            parsed = tf1.parse_single_example(record, {"words": tf1.VarLenFeature(tf.string), "numbers": tf1.VarLenFeature(tf.int64),
                                                       "one": tf1.FixedLenFeature([], tf.float32)})
            batched = batch(parsed)
            if target:
                tf1.Session.reset(target)
            with tf1.Session(target, config=CONFIG) as session:
                session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
                coordinator = tf1.train.Coordinator()
                threads = tf1.train.start_queue_runners(session, coordinator)
                with self.assertRaises(tf.errors.OutOfRangeError):
                    while True:
                        out.append(tf.nest.map_structure(lambda x: np.asarray(x).tolist(), session.run(batched), expand_composites=True))
                coordinator.request_stop()
                coordinator.join(threads, ignore_live_threads=True)
        return out

    def assert_same_batches(self, records, batch):
        expected, got = (self.batches(target, records, batch) for target in ("", cluster().target))
        self.assertEqual(got, expected)
        return got

    def test_batch(self):
        records = self.records(10)
        got = self.assert_same_batches(records, lambda parsed: tf1.train.batch(parsed, 4, allow_smaller_final_batch=True))
        self.assertEqual(len(got), 3)
        self.assert_same_batches(records, lambda parsed: tf1.train.batch([parsed["numbers"], parsed["one"]], 3))

    def test_batch_of_batches(self):
        """enqueue_many: each parsed sparse tensor becomes several elements, empty ones among them."""
        def batch(parsed):
            numbers = tf.sparse.expand_dims(parsed["numbers"], 0)
            return tf1.train.batch([tf.sparse.concat(0, [numbers, numbers], expand_nonconcat_dims=True)], 3, enqueue_many=True)
        self.assert_same_batches(self.records(9), batch)

    def test_shuffled_batches(self):
        records = self.records(12)
        def batch(parsed):
            with tf1.device("/job:worker/task:1"):
                return tf1.train.shuffle_batch(parsed, 3, 100, 4, seed=3)
        got = self.batches(cluster().target, records, batch)
        rows = {}
        for batch in got:
            indices, values, _ = batch["numbers"]
            for i, one in enumerate(batch["one"]):
                rows[one] = [value for index, value in zip(indices, values) if index[0] == i]
        expected = {float(i): list(tf.train.Example.FromString(r).features.feature["numbers"].int64_list.value)
                    for i, r in enumerate(records)}
        self.assertEqual(rows, expected)

    def test_batch_join_and_maybe_batch(self):
        records = self.records(8)
        self.assert_same_batches(records, lambda parsed: tf1.train.maybe_batch([parsed["words"], parsed["one"]], tf.less(parsed["one"], 5.0), 2))
        got = self.batches(cluster().target, records, lambda parsed: tf1.train.batch_join([[parsed["words"], parsed["one"]]], 4))
        self.assertEqual(sorted(one for _, ones in got for one in ones), list(range(8)))

    def test_a_taken_tensor_is_gone(self):
        from tensorflow.python.ops import sparse_ops
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                feed = tf1.sparse_placeholder(tf.float32, [None, 5])
                handle = sparse_ops._add_sparse_to_tensors_map(feed)
                handles = tf1.placeholder(tf.int64, [None])
                taken = sparse_ops._take_many_sparse_from_tensors_map(handle.op, handles, rank=2)
                wrong = sparse_ops.gen_sparse_ops.take_many_sparse_from_tensors_map(handles, dtype=tf.int32, shared_name=handle.op.name)
                if target:
                    tf1.Session.reset(target)
                with tf1.Session(target, config=CONFIG) as session:
                    value = tf1.SparseTensorValue([[0, 4], [1, 0]], [1.5, 2.5], [2, 5])
                    numbers = [session.run(handle, {feed: value}) for _ in range(3)]
                    self.assertEqual(numbers, [0, 1, 2])
                    got = session.run(taken, {handles: numbers[:2]})
                    np.testing.assert_array_equal(got.indices, [[0, 0, 4], [0, 1, 0], [1, 0, 4], [1, 1, 0]])
                    np.testing.assert_array_equal(got.values, [1.5, 2.5] * 2)
                    np.testing.assert_array_equal(got.dense_shape, [2, 2, 5])
                    for op, which in ((taken, [0]), (wrong, [2]), (taken, [2, 2])):
                        with self.assertRaises(tf.errors.InvalidArgumentError):
                            session.run(op, {handles: which})


class SequenceExamples(unittest.TestCase):
    """What TensorFlow's client makes of tf.train.SequenceExample records."""

    CONTEXT = {"id": tf1.FixedLenFeature([], tf.int64), "weight": tf1.FixedLenFeature([], tf.float32, 1.5), "tags": tf1.VarLenFeature(tf.string)}
    LISTS = {"frames": tf1.FixedLenSequenceFeature([2], tf.float32), "words": tf1.VarLenFeature(tf.string),
             "optional": tf1.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}

    @staticmethod
    def record(i):
        out = tf.train.SequenceExample()
        out.context.feature["id"].int64_list.value.append(i)
        out.context.feature["tags"].bytes_list.value.extend([b"t%d" % k for k in range(i)])
        for step in range(i + 1):
            out.feature_lists.feature_list["frames"].feature.add().float_list.value.extend([i, step])
            out.feature_lists.feature_list["words"].feature.add().bytes_list.value.extend([b"w"] * ((step * i) % 3))
        return out.SerializeToString()

    def assert_same(self, make):
        got = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                made = make()
                with tf1.Session(target, config=CONFIG) as session:
                    got.append(tf.nest.map_structure(lambda x: np.asarray(x).tolist(), session.run(made), expand_composites=True))
        self.assertEqual(repr(got[1]), repr(got[0]))

    def test_one_record(self):
        for i in range(3):
            self.assert_same(lambda: tf1.parse_single_sequence_example(self.record(i), self.CONTEXT, self.LISTS, "name"))
        with self.assertRaises(tf.errors.InvalidArgumentError):
            self.assert_same(lambda: tf1.parse_single_sequence_example(tf.train.SequenceExample().SerializeToString(), self.CONTEXT, self.LISTS))

    def test_batches(self):
        records = [self.record(i) for i in (2, 0, 3)]
        self.assert_same(lambda: tf.io.parse_sequence_example(records, self.CONTEXT, self.LISTS))
        self.assert_same(lambda: tf.io.parse_sequence_example(records, self.CONTEXT, self.LISTS, example_names=["a", "b", "c"]))
        self.assert_same(lambda: tf.io.parse_sequence_example(records, {"tags": tf.io.RaggedFeature(tf.string)},
                                                              {"words": tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64)}))

    def test_a_queue_of_sequences_of_different_lengths(self):
        def make():
            record = tf1.train.input_producer(tf.constant([self.record(i) for i in range(6)]), num_epochs=1, shuffle=False).dequeue()
            context, lists = tf1.parse_single_sequence_example(record, self.CONTEXT, self.LISTS)
            return tf1.train.batch([context["id"], lists["frames"], lists["words"]], 3, dynamic_pad=True)
        got = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                batch = make()
                if target:
                    tf1.Session.reset(target)
                with tf1.train.MonitoredTrainingSession(target, config=CONFIG, is_chief=True) as session:
                    got.append(repr([session.run(batch) for _ in range(2)]))
        self.assertEqual(got[1], got[0])


if __name__ == "__main__":
    main(__doc__)

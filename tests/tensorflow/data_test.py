#!/usr/bin/env python3
"""tf.data as TensorFlow 1's client uses it: every element, in its order, is what Session('') gives, or the same error.

  python3 tests/tensorflow/data_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import gzip
import os
import tempfile
import unittest

from leat_cluster import CONFIG, cluster, main, np, tf, tf1

Dataset = tf1.data.Dataset
data_ops = tf1.raw_ops if hasattr(tf1, "raw_ops") else tf.raw_ops


def hidden(value, dtype=np.int64):
    """A value that the client does not know when it makes the graph."""
    return tf1.placeholder_with_default(np.asarray(value, dtype), np.shape(value))


def plain(value):
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, tf1.ragged.RaggedTensorValue):
        return [plain(value.row_splits), plain(value.values)]
    return [plain(v) for v in value] if isinstance(value, (tuple, list)) else np.asarray(value).tolist()


def read(target, make, one_shot, count):
    """Up to `count` elements and errors; after an error, at most two more."""
    out, errors = [], 0
    with tf1.Graph().as_default():
        if one_shot:
            iterator, initializer = tf1.data.make_one_shot_iterator(make()), tf1.no_op()
        else:
            iterator = tf1.data.make_initializable_iterator(make())
            initializer = iterator.initializer
        following = iterator.get_next()
        if target:
            tf1.Session.reset(target)
        with tf1.Session(target, config=CONFIG) as session:
            try:
                session.run(initializer)
            except tf.errors.OpError as error:
                return [type(error).__name__]
            while errors < 3 and len(out) < count:
                try:
                    out.append(plain(session.run(following)))
                except tf.errors.OpError as error:
                    out.append(type(error).__name__)
                    errors += 1
    return out


class DataTest(unittest.TestCase):
    def assert_agrees(self, make, one_shot=None, count=60, **kinds):
        for kind in ((False, True) if one_shot is None else (one_shot,)):
            expected, got = (read(target, make, kind, count) for target in ("", cluster().target))
            self.assertEqual(got, expected, f"one shot: {kind}")
            self.assertTrue(expected)

    def assert_fails_alike(self, run, *parts):
        """`run(session)` fails with the same class, and a message that has these parts."""
        classes = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                step = run()
                if target:
                    tf1.Session.reset(target)
                with tf1.Session(target, config=CONFIG) as session:
                    with self.assertRaises(tf.errors.OpError) as raised:
                        session.run(step)
            classes.append(type(raised.exception))
            for part in parts:
                self.assertIn(part, raised.exception.message)
        self.assertEqual(classes[0], classes[1])


class ControlFlowV2(DataTest):
    def test_what_the_client_emits_in_functions(self):
        """ShuffleDatasetV3 and CacheDatasetV2, with handles on nothing, where TensorFlow 2's behaviour is on."""
        types = {"output_types": [tf.int64], "output_shapes": [[]]}

        def make():
            numbers = tf.data.Dataset.range(20)._variant_tensor
            cached = tf.raw_ops.CacheDatasetV2(input_dataset=numbers, filename="", cache=tf.raw_ops.DummyMemoryCache(), **types)
            shuffled = tf.raw_ops.ShuffleDatasetV3(input_dataset=cached, buffer_size=7, seed=3, seed2=5,
                                                   seed_generator=tf.raw_ops.DummySeedGenerator(), **types)
            return tf.raw_ops.RepeatDataset(input_dataset=shuffled, count=2, **types)
        answers = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default(), tf1.Session(target, config=CONFIG) as session:
                iterator = tf.raw_ops.IteratorV2(shared_name="", container="", **types)
                session.run(tf.raw_ops.MakeIterator(dataset=make(), iterator=iterator))
                following = tf.raw_ops.IteratorGetNext(iterator=iterator, **types)
                answers.append([session.run(following)[0] for _ in range(40)])
        self.assertEqual(answers[0], answers[1])
        self.assertNotEqual(answers[0][:20], answers[0][20:])


class Elements(DataTest):
    def test_sources(self):
        for dtype in (np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_):
            self.assert_agrees(lambda: Dataset.from_tensor_slices(np.arange(6).reshape(3, 2).astype(dtype)))
        self.assert_agrees(lambda: Dataset.from_tensors((np.float32(1), ["a", "bc"], np.zeros((2, 0)))))
        self.assert_agrees(lambda: Dataset.from_tensor_slices({"x": ["a", "b"], "y": ([1, 2], [[3.0], [4.0]])}))
        self.assert_agrees(lambda: Dataset.from_tensor_slices(np.zeros((0, 3))))
        for bounds in ((4,), (2, 5), (5, 2, -1), (5, 2), (0, 10, 4), (2**63 - 3, 2**63 - 1, 2), (-3, 3, 5)):
            self.assert_agrees(lambda: Dataset.range(*bounds))
        for dtype in (tf.int32, tf.float32, tf.float64):
            self.assert_agrees(lambda: Dataset.range(3, output_type=dtype))

    def test_batches(self):
        for size in (1, 3, 10, 11):
            for drop in (False, True):
                self.assert_agrees(lambda: Dataset.range(10).batch(size, drop_remainder=drop))
        self.assert_agrees(lambda: Dataset.from_tensor_slices((["a", "b", "c"], np.ones((3, 2, 2)))).batch(2).batch(2))
        self.assert_agrees(lambda: Dataset.from_tensor_slices([1, 2, 3, 3]).map(tf.range).batch(2))
        self.assert_agrees(lambda: Dataset.range(0).batch(2))

    def test_padded_batches(self):
        ragged = lambda: Dataset.from_tensor_slices([1, 3, 0, 2, 5]).map(lambda n: (tf.range(n), tf.fill([n, 2], "x")))
        self.assert_agrees(lambda: ragged().padded_batch(2, ([None], [None, None])))
        self.assert_agrees(lambda: ragged().padded_batch(2, ([6], [5, 3]), (-1, "p"), drop_remainder=True))
        self.assert_agrees(lambda: ragged().padded_batch(2, ([2], [None, 2])))  # too small for one
        self.assert_agrees(lambda: ragged().padded_batch(3, (hidden([-1]), hidden([-1, 4]))))

    def test_order(self):
        r = Dataset.range
        for make in (lambda: r(3).repeat(2), lambda: r(3).repeat(0), lambda: r(3).repeat(), lambda: r(0).repeat(),
                     lambda: r(5).take(3), lambda: r(5).take(-1), lambda: r(5).take(9), lambda: r(5).skip(2),
                     lambda: r(5).skip(-1), lambda: r(5).skip(9), lambda: r(3).concatenate(r(5, 7)).concatenate(r(0)),
                     lambda: Dataset.zip((r(3), (r(5, 9), r(7)))), lambda: r(10).shard(3, 1), lambda: r(4).cache(),
                     lambda: r(4).cache().repeat(2), lambda: r(4).cache().take(2).repeat(2), lambda: r(4).prefetch(2),
                     lambda: r(5).enumerate(3), lambda: r(4).with_options(tf.data.Options()),
                     lambda: r(4).prefetch(tf.data.experimental.AUTOTUNE).repeat(2).batch(3).take(2)):
            self.assert_agrees(make, count=20)

    def test_a_cache_is_read_once(self):
        def make():
            return Dataset.range(3).map(lambda i: tf1.random_uniform([], seed=7)).cache().repeat(3)
        self.assert_agrees(make)

    def test_a_cache_in_files(self):
        """Each side writes files of its own, and then reads the other's: they are the same format."""
        with tempfile.TemporaryDirectory() as folder:
            answers = []
            numbers = lambda count: Dataset.range(count).map(lambda x: (x, tf.as_string(x), tf.cast(tf.fill([x % 3], x), tf.float32)))
            for target, own, others in (("", "a", "b"), (cluster().target, "b", "a")):
                path = os.path.join(folder, own)
                answers.append([read(target, lambda: numbers(12).cache(path).take(5), False, 60)])
                self.assertEqual(os.listdir(folder), [] if own == "a" else ["a.data-00000-of-00001", "a.index"])
                answers[-1] += [read(target, lambda: numbers(12).cache(path), one_shot, 60) for one_shot in (False, True)]
                answers[-1].append(read(target, lambda: numbers(3).cache(path).repeat(2), False, 60))
            self.assertEqual(answers[1], answers[0])
            self.assertEqual(sorted(os.listdir(folder)), ["a.data-00000-of-00001", "a.index", "b.data-00000-of-00001", "b.index"])
            for target, others in (("", "b"), (cluster().target, "a")):
                self.assertEqual(read(target, lambda: numbers(1).cache(os.path.join(folder, others)), False, 60), answers[0][1])
            self.assert_agrees(lambda: Dataset.range(3).cache(os.path.join(folder, "none", "there")))
            for number, name in ((0, "empty"), (2, "zero components")):
                self.assertEqual(*[read(target, lambda: Dataset.range(number).cache(os.path.join(folder, target[:4] + name)).repeat(2), False, 60)
                                   for target in ("", cluster().target)])

    # TensorFlow's says it once more when the files are there, and now and then not at all.
    def test_a_cache_that_another_iterator_writes(self):
        answers = []
        with tempfile.TemporaryDirectory() as folder, tf1.Graph().as_default(), \
                tf1.Session(cluster().target, config=CONFIG) as session:
            cached = Dataset.range(3).cache(os.path.join(folder, "c"))
            iterators = [tf1.data.make_initializable_iterator(cached) for _ in range(2)]
            following = [iterator.get_next() for iterator in iterators]
            session.run([iterator.initializer for iterator in iterators])
            for turn in (0, 0, 1, 0, 0, 1, 1, 1, 1):
                try:
                    answers.append(int(session.run(following[turn])))
                except tf.errors.OpError as error:
                    answers.append(type(error).__name__)
        self.assertEqual(answers, [0, 1, "AlreadyExistsError", 2, "OutOfRangeError", 0, 1, 2, "OutOfRangeError"])

    def test_shuffles_have_tensorflows_order(self):
        for buffer in (1, 2, 4, 10, 100):
            for seed in (0, 3, 2**40 + 5):
                for repeats in (lambda d: d, lambda d: d.repeat(3)):
                    self.assert_agrees(lambda: repeats(Dataset.range(10).shuffle(buffer, seed=seed)))
                    self.assert_agrees(lambda: repeats(Dataset.range(10).shuffle(
                        buffer, seed=seed, reshuffle_each_iteration=False)), one_shot=False)
        def seeded():
            tf1.set_random_seed(11)
            return Dataset.range(20).shuffle(7).repeat(2).shuffle(3)
        self.assert_agrees(seeded)
        self.assert_agrees(lambda: Dataset.range(3).repeat(2).shuffle(4, seed=1).batch(2).repeat(2))
        self.assert_agrees(lambda: Dataset.range(0).shuffle(4, seed=1).repeat())
        for count in (1, 2, -1):
            self.assert_agrees(lambda: Dataset.range(7).apply(
                tf.data.experimental.shuffle_and_repeat(4, count, seed=5)))

    def test_a_shuffle_without_seeds_is_a_permutation(self):
        got = read(cluster().target, lambda: Dataset.range(50).shuffle(50), True, 50)
        self.assertEqual(sorted(got), list(range(50)))
        self.assertNotEqual(got, list(range(50)))


class Functions(DataTest):
    def test_map(self):
        r = Dataset.range
        for make in (lambda: r(4).map(lambda x: x * 2), lambda: r(4).map(lambda x: (x, {"a": tf.cast(x, tf.float32)})),
                     lambda: r(4).map(lambda x: x), lambda: r(4).map(lambda x: tf1.as_string(x)),
                     lambda: r(4).map(lambda x: tf1.constant(5)), lambda: r(3).map(lambda x: x, num_parallel_calls=2),
                     lambda: Dataset.from_tensor_slices((["a", "b"], [1, 2])).map(lambda s, n: (n, s + "!")),
                     lambda: r(5).map(lambda n: tf.range(n)).map(lambda v: tf.reduce_sum(v)),
                     lambda: r(6).map(lambda n: tf.ones([n, 2])),
                     lambda: r(6).map(lambda n: tf1.cond(n > 2, lambda: n * 10, lambda: -n)),
                     lambda: r(6).map(lambda n: tf1.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + i),
                                                              [tf.constant(0, tf.int64), tf.constant(0, tf.int64)])[1])):
            self.assert_agrees(make)

    def test_captured_values(self):
        def make():
            scale = hidden(3)
            return Dataset.range(4).map(lambda x: x * scale).filter(lambda x: x > scale - 1)
        self.assert_agrees(make, one_shot=False)

    def test_captured_tables(self):
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                table = tf1.lookup.StaticHashTable(
                    tf1.lookup.KeyValueTensorInitializer(["a", "b"], [5, 6]), -1)
                iterator = tf1.data.make_initializable_iterator(
                    Dataset.from_tensor_slices(["b", "x", "a"]).map(table.lookup).batch(3))
                following = iterator.get_next()
                if target:
                    tf1.Session.reset(target)
                with tf1.Session(target, config=CONFIG) as session:
                    session.run(tf1.tables_initializer())
                    session.run(iterator.initializer)
                    self.assertEqual(session.run(following).tolist(), [6, -1, 5])

    def test_variables_that_were_there_before_the_dataset(self):
        """The client sends what a step needs and is new: the dataset comes in a later message than the variable."""
        with tf1.Graph().as_default(), tf1.Session(cluster().target, config=CONFIG) as session:
            w = tf1.get_variable("before", initializer=np.int64(5), use_resource=True)
            session.run(w.initializer)
            iterator = tf1.data.make_initializable_iterator(Dataset.range(3).map(lambda x: x + w))
            following = iterator.get_next()
            session.run(iterator.initializer)
            self.assertEqual([session.run(following) for _ in range(3)], [5, 6, 7])

    def test_captured_variables(self):
        """Read when the function is called: TensorFlow reads ahead, and so may still see the old value."""
        with tf1.Graph().as_default():
            w = tf1.get_variable("w", [], tf.int64, initializer=tf1.constant_initializer(2), use_resource=True)
            iterator = tf1.data.make_initializable_iterator(
                Dataset.range(1, 9).map(lambda x: x * w).filter(lambda x: x > w).flat_map(
                    lambda x: Dataset.range(x).map(lambda i: i * w + x)))
            following, more = iterator.get_next(), tf1.assign_add(w, 1)
            tf1.Session.reset(cluster().target)
            with tf1.Session(cluster().target, config=CONFIG) as session:
                session.run(w.initializer)
                session.run(iterator.initializer)
                self.assertEqual([session.run(following) for _ in range(2)], [4, 6])
                session.run(more)
                self.assertEqual([session.run(following) for _ in range(3)], [10, 13, 9])

    def test_random_functions(self):
        self.assert_agrees(lambda: Dataset.range(4).map(lambda x: tf1.random_uniform([2], seed=4)).batch(2))
        self.assert_agrees(lambda: Dataset.range(4).map(lambda x: tf1.random_shuffle(tf.range(5), seed=4)))
        self.assert_agrees(lambda: Dataset.range(2).map(lambda x: tf1.random_uniform([], seed=4)).repeat(3))

    def test_random_functions_begin_again_with_their_dataset(self):
        def steps(target):
            with tf1.Graph().as_default():
                iterator = tf1.data.make_initializable_iterator(
                    Dataset.range(9).map(lambda x: tf1.random_uniform([], seed=4)).shuffle(3, seed=2))
                following = iterator.get_next()
                if target:
                    tf1.Session.reset(target)
                out = []
                with tf1.Session(target, config=CONFIG) as session:
                    for _ in range(2):
                        session.run(iterator.initializer)
                        out.extend(session.run(following) for _ in range(4))
            return out
        self.assertEqual(steps(cluster().target), steps(""))

    def test_filter(self):
        self.assert_agrees(lambda: Dataset.range(10).filter(lambda x: tf.equal(x % 3, 0)))
        self.assert_agrees(lambda: Dataset.range(10).filter(lambda x: x > 100))
        self.assert_agrees(lambda: Dataset.zip((Dataset.range(5), Dataset.range(5))).filter(lambda a, b: a + b > 3))

    def test_zip_goes_on_in_all(self):
        """After an error of one of them, and at the end of the first: only then are caches in files complete."""
        inverse = lambda x: tf1.check_numerics(1.0 / x, "error")
        numbers = lambda: Dataset.from_tensor_slices(np.array([1, 0, 4, 5], np.float32))
        for make in (lambda: Dataset.zip((numbers().map(inverse), numbers())), lambda: Dataset.zip((numbers(), numbers().map(inverse))),
                     lambda: Dataset.zip((numbers().map(inverse), numbers().take(2))), lambda: Dataset.zip((numbers().take(1), numbers().map(inverse))),
                     lambda: Dataset.zip((numbers().take(2), numbers().skip(1).map(inverse), numbers().map(inverse)))):
            self.assert_agrees(make, one_shot=False)
            self.assert_agrees(lambda: make().apply(tf.data.experimental.ignore_errors()), one_shot=False)
        with tempfile.TemporaryDirectory() as folder:
            cached = lambda i: Dataset.range(20).shuffle(20).cache(os.path.join(folder, str(i)))
            with tf1.Graph().as_default(), tf1.Session(cluster().target, config=CONFIG) as session:
                iterator = tf1.data.make_initializable_iterator(Dataset.zip((cached(0), cached(1))).batch(30))
                batch = iterator.get_next()
                orders = []
                for _ in range(2):
                    session.run(iterator.initializer)
                    orders.append(plain(session.run(batch)))
                    with self.assertRaises(tf.errors.OutOfRangeError):
                        session.run(batch)
            self.assertEqual(orders[0], orders[1])

    def test_flat_map(self):
        r = Dataset.range
        for make in (lambda: r(4).flat_map(lambda n: r(n)),
                     lambda: r(3).flat_map(lambda n: r(3).map(lambda i: i * 10 + n).batch(2)),
                     lambda: r(3).flat_map(lambda n: Dataset.from_tensors((n, "x")).repeat(n)),
                     lambda: r(3).flat_map(lambda a: r(2).flat_map(lambda b: r(2).map(lambda c: a * 100 + b * 10 + c))),
                     lambda: r(3).flat_map(lambda n: r(6).shuffle(3, seed=2)).repeat(2)):
            self.assert_agrees(make)

    def test_interleave_that_chooses_its_cycle(self):
        """By the cores of the machine, which the order depends on."""
        for calls in (None, 1, 2, 100, tf.data.AUTOTUNE):
            with self.subTest(calls=calls):
                self.assert_agrees(lambda: Dataset.range(2, 9).interleave(lambda x: Dataset.from_tensors(x).repeat(x), block_length=2,
                                                                          num_parallel_calls=calls))

    def test_interleave(self):
        for cycle in (1, 2, 3, 7):
            for block in (1, 2, 5):
                for parallel in (None, 1, 2):
                    self.assert_agrees(lambda: Dataset.range(5).interleave(
                        lambda n: Dataset.from_tensors(n).repeat((n * 7) % 5), cycle_length=cycle, block_length=block,
                        num_parallel_calls=parallel), one_shot=False)

    def test_map_and_batch(self):
        for drop in (False, True):
            self.assert_agrees(lambda: Dataset.range(7).apply(
                tf.data.experimental.map_and_batch(lambda x: (x, x * x), 3, drop_remainder=drop)))

    def test_an_error_in_a_function_costs_one_element(self):
        self.assert_agrees(lambda: Dataset.range(-2, 3).map(lambda x: 12 // x))
        self.assert_agrees(lambda: Dataset.range(-2, 3).map(lambda x: 12 // x).batch(2), count=3)
        self.assert_agrees(lambda: Dataset.range(-2, 3).filter(lambda x: 12 // x > 0))
        self.assert_fails_alike(lambda: tf1.data.make_one_shot_iterator(
            Dataset.from_tensors(0).map(lambda x: 1 // x)).get_next(), "Integer division by zero")
        self.assert_fails_alike(lambda: tf1.data.make_one_shot_iterator(Dataset.from_tensors(0).map(
            lambda x: tf1.check_numerics(tf.cast(x, tf.float32) / 0.0, "told so"))).get_next(), "told so")


class Files(DataTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, content):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def test_lines(self):
        paths = [self.path("a", b"one\ntwo\r\n\nthree"), self.path("b", b""), self.path("c", b"four\n")]
        self.assert_agrees(lambda: tf1.data.TextLineDataset(paths))
        self.assert_agrees(lambda: tf1.data.TextLineDataset(paths[0]).skip(1).map(lambda s: tf1.string_to_hash_bucket_fast(
            s, 1000)))
        self.assert_agrees(lambda: tf1.data.TextLineDataset([paths[0], "/nonexistent", paths[2]]))
        packed = self.path("z", gzip.compress(b"x\ny\n"))
        self.assert_agrees(lambda: tf1.data.TextLineDataset([packed], compression_type="GZIP"))
        self.assert_agrees(lambda: Dataset.from_tensor_slices(paths).interleave(
            tf1.data.TextLineDataset, cycle_length=2), one_shot=False)

    def test_records(self):
        path = os.path.join(self.folder.name, "r")
        with tf.io.TFRecordWriter(path) as writer:
            for i in range(5):
                writer.write(tf.train.Example(features=tf.train.Features(feature={
                    "x": tf.train.Feature(int64_list=tf.train.Int64List(value=[i, i * i]))})).SerializeToString())
        parse = lambda s: tf1.parse_single_example(s, {"x": tf1.FixedLenFeature([2], tf.int64)})["x"]
        self.assert_agrees(lambda: tf1.data.TFRecordDataset([path, path]).map(parse).batch(3))
        with open(path, "rb") as file:
            content = file.read()
        torn = self.path("torn", content[:-3])
        self.assert_agrees(lambda: tf1.data.TFRecordDataset([torn, path]), count=9)

    def test_pieces_of_fixed_length(self):
        path = self.path("f", bytes(range(65, 85)))
        self.assert_agrees(lambda: tf1.data.FixedLengthRecordDataset([path, path], 4, header_bytes=2, footer_bytes=2))
        packed = self.path("z", gzip.compress(bytes(range(65, 85))))
        for record, header, footer in ((5, 2, 2), (20, 0, 0), (21, 0, 0), (3, 10, 10), (3, 1, 0), (4, 0, 3), (1, 20, 0)):
            with self.subTest(record=record, header=header, footer=footer):
                for file, options in ((path, {}), (packed, {"compression_type": "GZIP"})):
                    self.assert_agrees(lambda: tf1.data.FixedLengthRecordDataset([file, file], record, header, footer, **options))
        self.assert_agrees(lambda: tf1.data.FixedLengthRecordDataset([path], 7, 12, 12))

    def test_functions_that_read_files(self):
        paths = [self.path(f"f{i}", b"%d" % i * i) for i in range(6)]
        self.assert_agrees(lambda: Dataset.from_tensor_slices(paths).map(tf1.read_file, num_parallel_calls=4).batch(4))


class Iterators(DataTest):
    def test_one_iterator_for_several_datasets(self):
        def steps(target):
            out = []
            with tf1.Graph().as_default():
                iterator = tf1.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))
                first = iterator.make_initializer(Dataset.range(3))
                second = iterator.make_initializer(Dataset.range(10, 12))
                following = iterator.get_next()
                if target:
                    tf1.Session.reset(target)
                with tf1.Session(target, config=CONFIG) as session:
                    for step in (following, first, following, following, second, following, first, following,
                                 following, following, following, second, following):
                        try:
                            value = session.run(step)
                            out.append(None if value is None else int(value))
                        except tf.errors.OpError as error:
                            out.append(type(error).__name__)
            return out
        self.assertEqual(steps(cluster().target), steps(""))

    def test_handles_that_are_fed(self):
        def steps(target):
            out = []
            with tf1.Graph().as_default():
                handle = tf1.placeholder(tf.string, [])
                training = tf1.data.make_one_shot_iterator(Dataset.range(4).map(lambda x: x * 10).repeat())
                validation = tf1.data.make_initializable_iterator(Dataset.range(100, 103))
                following = tf1.data.Iterator.from_string_handle(handle, tf.int64, tf.TensorShape([])).get_next() + 1
                if target:
                    tf1.Session.reset(target)
                with tf1.Session(target, config=CONFIG) as session:
                    train, validate = session.run([training.string_handle(), validation.string_handle()])
                    for _ in range(2):
                        session.run(validation.initializer)
                        for chosen in (train, validate, train, validate, validate, validate, train):
                            try:
                                out.append(int(session.run(following, {handle: chosen})))
                            except tf.errors.OpError as error:
                                out.append(type(error).__name__)
            return out
        self.assertEqual(steps(cluster().target), steps(""))

    def test_an_iterator_for_each_worker(self):
        """Each worker reads its part; the variable is on the parameter server."""
        with tf1.Graph().as_default():
            with tf1.device("/job:ps/task:0"):
                total = tf1.get_variable("total", [], tf.int64, initializer=tf1.zeros_initializer())
            adds, initializers = [], [total.initializer]
            for task in range(2):
                with tf1.device(f"/job:worker/task:{task}"):
                    dataset = Dataset.range(10).shard(2, task).map(lambda x: x * x).batch(2)
                    iterator = tf1.data.make_initializable_iterator(dataset)
                    initializers.append(iterator.initializer)
                    adds.append(tf1.assign_add(total, tf.reduce_sum(iterator.get_next())))
            tf1.Session.reset(cluster().target)
            with tf1.Session(cluster().target, config=CONFIG) as session:
                session.run(initializers)
                for add in adds:
                    with self.assertRaises(tf.errors.OutOfRangeError):
                        while True:
                            session.run(add)
                self.assertEqual(session.run(total), sum(x * x for x in range(10)))

    def test_training(self):
        """A model learns from tf.data what it learns from it in one process."""
        def losses(target):
            out = []
            rng = np.random.RandomState(0)
            images, labels = rng.rand(60, 8).astype(np.float32), rng.randint(0, 3, 60)
            with tf1.Graph().as_default():
                tf1.set_random_seed(1)
                dataset = Dataset.from_tensor_slices((images, labels)).shuffle(20, seed=5).repeat(3).batch(
                    16, drop_remainder=True).map(lambda x, y: (x * 2 - 1, tf.one_hot(y, 3))).prefetch(2)
                x, y = tf1.data.make_one_shot_iterator(dataset).get_next()
                w = tf1.get_variable("w", [8, 3], initializer=tf1.zeros_initializer())
                loss = tf.reduce_mean(tf1.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=tf.matmul(x, w)))
                train = tf1.train.GradientDescentOptimizer(0.5).minimize(loss)
                if target:
                    tf1.Session.reset(target)
                with tf1.Session(target, config=CONFIG) as session:
                    session.run(tf1.global_variables_initializer())
                    with self.assertRaises(tf.errors.OutOfRangeError):
                        while True:
                            out.append(session.run([loss, train])[0])
            return out
        expected = losses("")
        self.assertEqual(len(expected), 11)
        np.testing.assert_allclose(losses(cluster().target), expected, rtol=1e-5)

    def test_monitored_session(self):
        with tf1.Graph().as_default():
            iterator = tf1.data.make_initializable_iterator(Dataset.range(5).batch(2))
            tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
            step = tf1.train.get_or_create_global_step()
            count = tf1.assign_add(step, tf.size(iterator.get_next(), out_type=tf.int64))
            tf1.Session.reset(cluster().target)
            seen = []
            with tf1.train.MonitoredTrainingSession(cluster().target, config=CONFIG) as session:
                while not session.should_stop():
                    seen.append(session.run(count))
            self.assertEqual(seen, [2, 4, 5])


class Errors(DataTest):
    def test_another_session_begins_anew(self):
        """An iterator without a shared name is its session's: a program that runs again, or another one, has its own."""
        def first_of(dataset, one_shot):
            with tf1.Graph().as_default(), tf1.Session(cluster().target, config=CONFIG) as session:
                iterator = (tf1.data.make_one_shot_iterator if one_shot else tf1.data.make_initializable_iterator)(dataset())
                following = iterator.get_next()
                if not one_shot:
                    with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "has not been initialized"):
                        session.run(following)
                    session.run(iterator.initializer)
                return [plain(session.run(following)) for _ in range(2)]
        for one_shot in (True, False):
            for _ in range(2):
                self.assertEqual(first_of(lambda: Dataset.range(3), one_shot), [0, 1])
            self.assertEqual(first_of(lambda: Dataset.from_tensor_slices(["a", "b"]), one_shot), [b"a", b"b"])

    def test_without_initialisation(self):
        self.assert_fails_alike(lambda: tf1.data.make_initializable_iterator(Dataset.range(3)).get_next(),
                                "GetNext() failed because the iterator has not been initialized")

    def test_end(self):
        self.assert_fails_alike(lambda: tf1.data.make_one_shot_iterator(Dataset.range(0)).get_next(), "End of sequence")

    def test_other_types(self):
        def make(dtype, shape):
            iterator = tf1.data.Iterator.from_structure(dtype, tf.TensorShape(shape))
            return data_ops.MakeIterator(dataset=Dataset.range(3)._variant_tensor, iterator=iterator._iterator_resource)
        self.assert_fails_alike(lambda: make(tf.int32, []), "Data type mismatch at component 0: expected int32 but got int64")
        self.assert_fails_alike(lambda: make(tf.int64, [3]), "Incompatible shapes at component 0: expected [3] but got []")

    def test_numbers_that_make_no_sense(self):
        r = Dataset.range
        for make in (lambda: r(3).batch(hidden(0)), lambda: r(3).batch(hidden(-1)), lambda: r(0, 3, hidden(0)),
                     lambda: r(3).shuffle(hidden(0)), lambda: r(3).shuffle(hidden(-5)), lambda: r(3).shard(hidden(0), 0),
                     lambda: r(3).prefetch(hidden(-5)), lambda: r(3).interleave(r, hidden(0), hidden(1)),
                     lambda: r(3).interleave(r, hidden(1), hidden(0)),
                     lambda: Dataset.from_tensor_slices((tf1.placeholder_with_default(np.ones(2), [None]),
                                                          tf1.placeholder_with_default(np.ones(3), [None])))):
            self.assert_agrees(make, one_shot=False)

    def test_handles_of_nothing(self):
        self.assert_fails_alike(lambda: tf1.data.Iterator.from_string_handle(
            tf.constant("nothing"), tf.int64, tf.TensorShape([])).get_next(), "Could not parse string_handle")

    def test_a_dataset_stays_on_its_task(self):
        with tf1.Graph().as_default():
            dataset = Dataset.range(3)
            with tf1.Session(cluster().target, config=CONFIG) as session:
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "variant"):
                    session.run(dataset._variant_tensor)

    def test_a_client_generator_is_refused_with_the_reason(self):
        with tf1.Graph().as_default():
            following = tf1.data.make_one_shot_iterator(
                Dataset.from_generator(lambda: iter([1, 2]), tf.int32, [])).get_next()
            other = tf.constant(4)
            tf1.Session.reset(cluster().target)
            with tf1.Session(cluster().target, config=CONFIG) as session:
                self.assertEqual(session.run(other), 4)
                with self.assertRaisesRegex(tf.errors.OpError, "client's process"):
                    session.run(following)

    def test_a_deadline_ends_what_never_would(self):
        """A filter that nothing passes."""
        config = tf1.ConfigProto(operation_timeout_in_ms=1500)
        with tf1.Graph().as_default():
            following = tf1.data.make_one_shot_iterator(
                Dataset.range(3).repeat().filter(lambda x: x > 5)).get_next()
            other = tf1.data.make_one_shot_iterator(Dataset.range(3)).get_next()
            tf1.Session.reset(cluster().target)
            with tf1.Session(cluster().target, config=config) as session:
                with self.assertRaises(tf.errors.DeadlineExceededError):
                    session.run(following)
                self.assertEqual(session.run(other), 0)


if __name__ == "__main__":
    main(__doc__)

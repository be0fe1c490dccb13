#!/usr/bin/env python3
"""What tf.data does with several elements at once, as data_test.py tests the rest: states, windows, groups, choices.

  python3 tests/tensorflow/data_groups_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import unittest

from data_test import DataTest, Dataset, hidden, plain, read
from leat_cluster import CONFIG, cluster, main, np, tf, tf1

tf.get_logger().setLevel("ERROR")  # it warns of two lambdas in one line


class States(DataTest):
    """What goes from element to element, and what becomes of a whole dataset."""

    def assert_gives_alike(self, make):
        """`make()` is an op, or several: the same values, or the same error."""
        answers = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                step = make()
                if target:
                    tf1.Session.reset(target)
                with tf1.Session(target, config=CONFIG) as session:
                    try:
                        answers.append(plain(session.run(step)))
                    except tf.errors.OpError as error:
                        answers.append(type(error).__name__)
        self.assertEqual(answers[1], answers[0])
        return answers[0]

    def test_take_while(self):
        r = Dataset.range
        for make in (lambda: r(9).take_while(lambda x: x < 4), lambda: r(3).take_while(lambda x: x < 4),
                     lambda: r(9).take_while(lambda x: x < 0), lambda: r(0).take_while(lambda x: x < 4),
                     lambda: r(6).take_while(lambda x: tf.not_equal(x, 3)), lambda: r(6).take_while(lambda x: x < 3).repeat(2),
                     lambda: r(-2, 3).take_while(lambda x: 12 // x < 100)):
            self.assert_agrees(make)
        self.assert_agrees(lambda: r(9).take_while(lambda x: x < hidden(4)), one_shot=True)
        def captured():
            end = hidden(5)
            return Dataset.range(9).take_while(lambda x: x < end)
        self.assert_agrees(captured, one_shot=False)

    def test_scan(self):
        r = Dataset.range
        for make in (lambda: r(1, 6).scan(np.int64(10), lambda s, x: (s + x, s * x)),
                     lambda: r(5).scan((np.int64(0), "a"), lambda s, x: ((s[0] + 1, s[1] + "b"), {"n": s[0], "t": s[1], "x": x})),
                     lambda: r(0).scan(np.int64(0), lambda s, x: (s, x)),
                     lambda: r(4).scan(np.zeros([0], np.int64), lambda s, x: (tf.concat([s, [x]], 0),) * 2),
                     lambda: r(-2, 3).scan(np.int64(5), lambda s, x: (s + 12 // x, s)),
                     lambda: r(3).scan(np.int64(5), lambda s, x: (s + x, s)).repeat(2).batch(4),
                     lambda: tf.data.Dataset.counter(3, 2).take(4)):
            self.assert_agrees(make)
        def captured():
            scale, start = hidden(3), hidden(7)
            return Dataset.range(4).scan(start, lambda s, x: (s + x * scale, s))
        self.assert_agrees(captured, one_shot=False)

    def test_reduce(self):
        r = Dataset.range
        for make in (lambda: r(6).reduce(np.int64(4), lambda s, x: s + x), lambda: r(0).reduce(np.int64(4), lambda s, x: s + x),
                     lambda: r(5).reduce({"n": np.int64(0), "t": ""}, lambda s, x: {"n": s["n"] + x, "t": s["t"] + "x"}),
                     lambda: r(4).reduce(np.zeros([0], np.int64), lambda s, x: tf.concat([s, [x]], 0)),
                     lambda: r(-2, 3).reduce(np.int64(0), lambda s, x: s + 12 // x),
                     lambda: r(5).batch(2).reduce(np.int64(0), lambda s, x: s + tf.reduce_sum(x)) + hidden(2)):
            self.assert_gives_alike(make)
        def captured():
            scale, start = hidden(3), hidden(7)
            return Dataset.range(4).reduce(start, lambda s, x: s + x * scale)
        self.assertEqual(self.assert_gives_alike(captured), 7 + 18)

    def test_reductions_in_functions(self):
        self.assert_agrees(lambda: Dataset.range(5).map(
            lambda n: Dataset.range(n).reduce(np.int64(0), lambda s, x: s + x * n)))

    def test_the_only_element(self):
        for n in range(3):
            self.assert_gives_alike(lambda: Dataset.range(n).map(lambda x: (x, "a")).get_single_element())
        self.assert_fails_alike(lambda: Dataset.range(0).get_single_element(), "Dataset was empty.")
        self.assert_fails_alike(lambda: Dataset.range(2).get_single_element(), "Dataset had more than one element.")
        self.assert_gives_alike(lambda: Dataset.from_tensors(0).map(lambda x: 1 // x).get_single_element())

    def test_unbatch(self):
        r = Dataset.range
        for make in (lambda: r(7).batch(3).unbatch(), lambda: r(0).batch(3).unbatch(),
                     lambda: Dataset.from_tensor_slices([3, 0, 2]).map(lambda n: (tf.range(n), tf.fill([n, 2], "x"))).unbatch(),
                     lambda: Dataset.from_tensors((np.zeros((3, 1)), ["a", "b", "c"])).unbatch().batch(2),
                     lambda: Dataset.from_tensor_slices([2, 3, 2]).map(lambda n: (tf.range(n), tf.range(2))).unbatch(),
                     lambda: r(6).batch(3).repeat(2).unbatch().shuffle(3, seed=4)):
            self.assert_agrees(make)

    def test_rebatch(self):
        for sizes in (1, 2, 3, 5, 20, [2, 1], [4, 1], [3, 0, 2], [0]):
            for drop in (False, True):
                self.assert_agrees(lambda: Dataset.range(9).batch(4).rebatch(sizes, drop), count=20)
        self.assert_agrees(lambda: Dataset.range(0).batch(4).rebatch(2))
        self.assert_agrees(lambda: Dataset.from_tensor_slices((np.ones((7, 2, 3)), ["abc"] * 7)).batch(3).rebatch([2, 0]).repeat(2))

    def test_lists(self):
        for elements in ([1, 2, 3], [(1, "a"), (2, "b")], [[1, 2], [3, 4]]):
            self.assert_agrees(lambda: tf.data.experimental.from_list(elements).repeat(2), one_shot=False)

    def test_cardinality(self):
        r, one = Dataset.range, lambda x: x
        flat = lambda x: Dataset.from_tensors(x)
        for make in (lambda: r(7), lambda: r(7, 0, -3), lambda: r(3, 3), lambda: r(0, 7, 2),
                     lambda: Dataset.from_tensors([1, 2]), lambda: Dataset.from_tensor_slices([1, 2]), lambda: r(7).repeat(),
                     lambda: r(0).repeat(), lambda: r(7).repeat(3), lambda: r(7).repeat(0), lambda: r(7).repeat().repeat(2),
                     lambda: r(7).filter(lambda x: x > 3).repeat(2), lambda: r(7).filter(lambda x: x > 3).repeat(),
                     lambda: r(7).take(3), lambda: r(7).take(9), lambda: r(7).take(-1), lambda: r(7).take(-4),
                     lambda: r(7).repeat().take(4), lambda: r(7).repeat().take(-1), lambda: r(7).skip(3), lambda: r(7).skip(9),
                     lambda: r(7).skip(-1), lambda: r(7).repeat().skip(3), lambda: r(7).shard(3, 0), lambda: r(7).shard(3, 1),
                     lambda: Dataset.zip((r(7), r(3))), lambda: Dataset.zip((r(7).repeat(), r(3))),
                     lambda: Dataset.zip((r(7).repeat(), r(3).repeat())), lambda: Dataset.zip((r(7), r(7).filter(lambda x: x > 3))),
                     lambda: r(7).concatenate(r(2)), lambda: r(7).concatenate(r(2).repeat()),
                     lambda: r(7).concatenate(r(7).filter(lambda x: x > 3)), lambda: r(7).cache(), lambda: r(7).prefetch(2),
                     lambda: r(7).map(one), lambda: r(7).map(one, num_parallel_calls=2), lambda: r(7).filter(lambda x: x > 3),
                     lambda: r(7).flat_map(flat), lambda: r(0).flat_map(flat), lambda: r(7).interleave(flat, 2),
                     lambda: r(0).interleave(flat, 2), lambda: r(7).interleave(flat, 2, num_parallel_calls=2),
                     lambda: r(7).repeat().flat_map(flat), lambda: r(7).repeat().interleave(flat, 2),
                     lambda: r(7).repeat().filter(lambda x: x > 3), lambda: r(7).batch(3), lambda: r(7).batch(3, True),
                     lambda: r(6).batch(3), lambda: r(7).repeat().batch(3), lambda: r(7).batch(3).unbatch(),
                     lambda: r(6).batch(3, True).unbatch(), lambda: r(7).repeat().batch(3).unbatch(),
                     lambda: r(7).padded_batch(3, []), lambda: r(7).shuffle(3), lambda: r(7).repeat().shuffle(3),
                     lambda: r(7).apply(tf.data.experimental.shuffle_and_repeat(3, 2)),
                     lambda: r(7).apply(tf.data.experimental.shuffle_and_repeat(3)),
                     lambda: r(7).apply(tf.data.experimental.map_and_batch(one, 3)), lambda: r(7).with_options(tf.data.Options()),
                     lambda: tf1.data.TextLineDataset("x"), lambda: r(7).scan(np.int64(0), lambda s, x: (s, x)),
                     lambda: tf.data.experimental.from_list([1, 2]), lambda: r(7).batch(2).rebatch(3),
                     lambda: r(7).window(3), lambda: r(7).window(3, 2, 1, True), lambda: r(7).repeat().window(2), lambda: r(2).window(3, 1, 1, True),
                     lambda: Dataset.random(1), lambda: r(7).unique(), lambda: r(7).ignore_errors(), lambda: r(7).repeat().ignore_errors(),
                     lambda: tf.data.experimental.choose_from_datasets([r(7), r(3).repeat()], r(2), stop_on_empty_dataset=False),
                     lambda: tf.data.experimental.choose_from_datasets([r(7), r(3)], r(2), stop_on_empty_dataset=False),
                     lambda: r(7).group_by_window(one, lambda k, w: w, 2), lambda: r(7).repeat().group_by_window(one, lambda k, w: w, 2),
                     lambda: r(7).take_while(lambda x: x < 3), lambda: r(7).repeat().take_while(lambda x: x < 3),
                     lambda: r(7).filter(lambda x: x > 3).apply(tf.data.experimental.assert_cardinality(5))):
            with self.subTest(line=make.__code__.co_firstlineno):
                self.assert_gives_alike(lambda: tf.data.experimental.cardinality(make()))

    def test_asserted_cardinality(self):
        for n in (-2, -1, 0, 2, 3, 4):
            self.assert_agrees(lambda: Dataset.range(3).filter(lambda x: x < 5).apply(
                tf.data.experimental.assert_cardinality(n)))
        self.assert_fails_alike(lambda: tf1.data.make_one_shot_iterator(Dataset.range(0).apply(
            tf.data.experimental.assert_cardinality(1))).get_next(),
            "Input dataset was expected to contain 1 element but contained only 0 elements.")


class Windows(DataTest):
    def test_windows(self):
        r = Dataset.range
        for size, shift, stride, drop in ((3, None, 1, False), (3, 1, 1, False), (3, 1, 1, True), (2, 3, 1, False), (2, 5, 1, True),
                                          (3, 1, 2, True), (3, 2, 2, False), (9, 1, 1, False), (9, 1, 1, True), (1, 1, 7, False)):
            self.assert_agrees(lambda: r(7).window(size, shift, stride, drop).flat_map(lambda w: w.batch(4)))
        self.assert_agrees(lambda: r(0).window(2).flat_map(lambda w: w.batch(4)))
        self.assert_agrees(lambda: Dataset.zip((r(5), r(5, 10))).window(2).flat_map(
            lambda a, b: Dataset.zip((a.batch(2), b.skip(1)))))
        self.assert_agrees(lambda: r(6).window(3).map(lambda w: w.reduce(np.int64(0), lambda s, x: s + x)))
        self.assert_agrees(lambda: r(7).window(2).shuffle(3, seed=1).flat_map(lambda w: w.batch(2)).repeat(2))
        self.assert_agrees(lambda: r(-2, 4).map(lambda x: 12 // x).window(2, 1).flat_map(lambda w: w.batch(2)), count=3)

    def test_sizes_that_make_no_sense(self):
        for size, shift, stride in ((0, 1, 1), (1, 0, 1), (1, 1, 0), (-1, 1, 1)):
            self.assert_agrees(lambda: Dataset.range(3).window(hidden(size), hidden(shift), hidden(stride)).flat_map(
                lambda w: w), one_shot=False)

    def test_group_by_window(self):
        group = tf.data.experimental.group_by_window
        r = Dataset.range
        for make in (lambda: r(10).apply(group(lambda x: x % 3, lambda k, w: w.batch(4), 2)),
                     lambda: r(10).apply(group(lambda x: -x, lambda k, w: w.batch(4), 2)),
                     lambda: r(0).apply(group(lambda x: x % 3, lambda k, w: w.batch(4), 2)),
                     lambda: r(20).apply(group(lambda x: x % 3, lambda k, w: w.map(lambda x: (k, x)), window_size_func=lambda k: k + 1)),
                     lambda: r(9).apply(group(lambda x: x % 2, lambda k, w: w.filter(lambda x: x > 3), 2)).repeat(2),
                     lambda: r(9).apply(group(lambda x: x % 2, lambda k, w: w.batch(2), window_size_func=lambda k: k)),
                     lambda: r(-2, 3).apply(group(lambda x: 12 // x % 2, lambda k, w: w.batch(2), 2)),
                     lambda: r(8).map(lambda x: (x, tf1.as_string(x))).group_by_window(
                         lambda x, s: x % 2, lambda k, w: w.batch(3), 3)):
            self.assert_agrees(make)

    def test_functions_that_capture_values_of_their_own(self):
        def make():
            modulus, size, add, scale = hidden(3), hidden(2), hidden(100), hidden(10)
            return Dataset.range(11).apply(tf.data.experimental.group_by_window(
                lambda x: x % modulus, lambda k, w: w.map(lambda x: x * scale + add).batch(size + k),
                window_size_func=lambda k: size + k))
        self.assert_agrees(make, one_shot=False)

    def test_functions_that_capture_variables_of_their_own(self):
        """Group by one variable, reduce with another."""
        with tf1.Graph().as_default(), tf1.Session(cluster().target, config=CONFIG) as session:
            m, a = (tf1.get_variable(n, initializer=np.int64(v), use_resource=True) for n, v in (("m", 2), ("a", 100)))
            iterator = tf1.data.make_initializable_iterator(Dataset.range(4).apply(tf.data.experimental.group_by_window(
                lambda x: x % m, lambda k, w: w.map(lambda x: x + a).batch(2), 2)))
            following = iterator.get_next()
            session.run([m.initializer, a.initializer])
            session.run(iterator.initializer)
            self.assertEqual([plain(session.run(following)) for _ in range(2)], [[100, 102], [101, 103]])

    def test_buckets_by_length(self):
        for options in ({}, {"pad_to_bucket_boundary": True}, {"drop_remainder": True}):
            self.assert_agrees(lambda: Dataset.from_tensor_slices([1, 5, 2, 1, 4, 2, 2, 5, 1]).map(lambda n: tf.range(1, n + 1)).apply(
                tf.data.experimental.bucket_by_sequence_length(lambda x: tf.size(x), [3, 6], [2, 3, 2], **options)))

    def test_group_by_reducer(self):
        def make(n=10):
            base, factor = hidden(1000), hidden(2)
            reducer = tf.data.experimental.Reducer(lambda k: (k, base), lambda s, x: (s[0], s[1] + x * factor),
                                                   lambda k, total: (total - base, k))
            return Dataset.range(n).apply(tf.data.experimental.group_by_reducer(lambda x: -(x % 3), reducer))
        self.assert_agrees(make, one_shot=False)
        self.assert_agrees(lambda: make(0), one_shot=False)
        self.assert_agrees(lambda: make(10).repeat(2), one_shot=False)


class Interleaving(DataTest):
    def test_parallel_interleave(self):
        def make(cycle, block, function=lambda n: Dataset.from_tensors(n).repeat((n * 7) % 5), **options):
            return Dataset.range(7).apply(tf.data.experimental.parallel_interleave(function, cycle, block, **options))
        for cycle in (1, 2, 3, 9):
            for options in ({}, {"prefetch_input_elements": 0}, {"buffer_output_elements": 1}):
                self.assert_agrees(lambda: make(cycle, 1, **options), one_shot=False)
        self.assert_agrees(lambda: make(2, 3, lambda n: Dataset.from_tensors(n).repeat(3)))
        fails = lambda n: Dataset.from_tensors(12 // (n - 2)).repeat(2)
        self.assert_agrees(lambda: make(2, 1, fails))
        self.assert_agrees(lambda: make(1, 1, lambda n: Dataset.from_tensors(n).map(lambda x: 12 // (x - 2)).repeat(2)))
        for cycle, block in ((0, 1), (1, 0)):
            self.assert_agrees(lambda: make(cycle, block, prefetch_input_elements=0, buffer_output_elements=1))
        self.assert_agrees(lambda: make(2, 1, buffer_output_elements=0), one_shot=False)
        self.assert_agrees(lambda: make(2, 1, prefetch_input_elements=-1), one_shot=False)

    def test_slices_of_sparse_tensors(self):
        def make(indices, values, shape):
            return Dataset.from_sparse_tensor_slices(tf1.SparseTensor(np.array(indices, np.int64).reshape(len(values), -1), values, shape))
        self.assert_agrees(lambda: make([[0, 1], [2, 0], [2, 3]], [1, 2, 3], [4, 5]))
        self.assert_agrees(lambda: make([[1, 1, 0]], ["a"], [2, 2, 2]))
        self.assert_agrees(lambda: make([[2, 1], [0, 0]], [1.5, 2.5], [4, 5]), one_shot=False)


class Choices(DataTest):
    def test_chosen_datasets(self):
        r = Dataset.range
        choose = tf.data.experimental.choose_from_datasets
        for stop in (False, True):
            for numbers in ([0, 1, 2, 1, 0], [0, 0, 0, 1, 2, 2], [], [2] * 9, [0, 1, 7, 1], [0, -1, 1]):
                self.assert_agrees(lambda: choose([r(2), r(10, 13), r(20, 25)], Dataset.from_tensor_slices(
                    np.array(numbers, np.int64)), stop_on_empty_dataset=stop))
        self.assert_agrees(lambda: choose([r(2), r(3)], r(2).repeat()))
        self.assert_agrees(lambda: choose([r(-2, 3).map(lambda x: 12 // x), r(3)], r(2).repeat()))

    def test_sampled_datasets_have_tensorflows_order(self):
        r = Dataset.range
        sample = tf.data.experimental.sample_from_datasets
        for seed in (3, 2**33 + 1):
            for weights in (None, [0.2, 0.3, 0.5], [0.9, 0.1, 0.0]):
                self.assert_agrees(lambda: sample([r(5), r(10, 15), r(20, 25)], weights, seed=seed))
                self.assert_agrees(lambda: sample([r(5), r(10, 15), r(20, 25)], weights, seed=seed, stop_on_empty_dataset=True))

    def test_random_datasets_have_tensorflows_numbers(self):
        self.assert_agrees(lambda: Dataset.random(5).take(9))
        self.assert_agrees(lambda: Dataset.random(5).take(3).repeat(2))
        self.assert_agrees(lambda: Dataset.random(5, rerandomize_each_iteration=True).take(3).repeat(3), one_shot=False)
        self.assertEqual(len(set(read(cluster().target, lambda: Dataset.random(), True, 9))), 9)

    def test_shuffles_with_seed_generators(self):
        types = {"output_types": [tf.int64], "output_shapes": [[]]}
        answers = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default(), tf1.Session(target, config=CONFIG) as session:
                iterator = tf.raw_ops.IteratorV2(shared_name="", container="", **types)
                session.run(tf.raw_ops.MakeIterator(iterator=iterator, dataset=tf.raw_ops.ShuffleAndRepeatDatasetV2(
                    input_dataset=Dataset.range(9)._variant_tensor, buffer_size=5, seed=3, seed2=5, count=3,
                    seed_generator=tf.raw_ops.DummySeedGenerator(), **types)))
                following = tf.raw_ops.IteratorGetNext(iterator=iterator, **types)
                answers.append([session.run(following)[0] for _ in range(27)])
        self.assertEqual(answers[0], answers[1])

    def test_unique(self):
        for values in ([1, 2, 1, 3, 3, 1], ["a", "b", "a", ""], [[1, 2], [2, 1], [1, 2]], [["a", "bc"], ["ab", "c"], ["a", "bc"]]):
            self.assert_agrees(lambda: Dataset.from_tensor_slices(values).unique().repeat(2))
        self.assert_agrees(lambda: Dataset.from_tensor_slices([1, 3, 1]).map(tf.range).unique())
        self.assert_fails_alike(lambda: tf.raw_ops.UniqueDataset(
            input_dataset=Dataset.from_tensors(1.0)._variant_tensor, output_types=[tf.float32], output_shapes=[[]]).op,
            "UniqueDataset only supports inputs with a single `tf.int32`")

    def test_ignored_errors(self):
        ignore = tf.data.experimental.ignore_errors
        for make in (lambda: Dataset.range(-2, 3).map(lambda x: 12 // x).apply(ignore()), lambda: Dataset.range(0).apply(ignore()),
                     lambda: Dataset.range(-2, 4).map(lambda x: 12 // x).batch(2).apply(ignore(log_warning=True))):
            self.assert_agrees(make)

    def test_a_deadline_ends_what_never_would(self):
        config = tf1.ConfigProto(operation_timeout_in_ms=800)
        endless = lambda: Dataset.range(3).repeat()
        for make in (lambda: endless().unique().skip(3), lambda: endless().map(lambda x: 1 // (x - x)).apply(tf.data.experimental.ignore_errors()),
                     lambda: endless().window(2**40).flat_map(lambda w: w.take(0)),
                     lambda: endless().apply(tf.data.experimental.group_by_window(lambda x: x, lambda k, w: w.take(0), 2)),
                     lambda: Dataset.from_tensors(np.zeros([0])).repeat().unbatch(),
                     lambda: tf.data.experimental.choose_from_datasets([Dataset.range(2), Dataset.range(9)], Dataset.from_tensors(
                         np.int64(0)).repeat(), stop_on_empty_dataset=False).skip(2)):
            with self.subTest(line=make.__code__.co_firstlineno), tf1.Graph().as_default():
                following = tf1.data.make_one_shot_iterator(make()).get_next()
                total = endless().reduce(np.int64(0), lambda s, x: s + x)
                with tf1.Session(cluster().target, config=config) as session:
                    for step in (following, total):
                        with self.assertRaises(tf.errors.DeadlineExceededError):
                            session.run(step)


if __name__ == "__main__":
    main(__doc__)

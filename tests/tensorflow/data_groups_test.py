#!/usr/bin/env python3
"""What tf.data does with several elements at once, as data_test.py tests the rest: states, windows, groups, choices.

  python3 tests/tensorflow/data_groups_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import unittest

from data_test import DataTest, Dataset, hidden, plain
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


if __name__ == "__main__":
    main(__doc__)

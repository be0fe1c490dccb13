#!/usr/bin/env python3
"""Partial runs: a step whose feeds come, and whose fetches go, in several calls.

  python3 tests/tensorflow/partial_run_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it. TensorFlow's errors are those that its
own distributed master gives.
"""
import threading
import unittest

from leat_cluster import CONFIG, cluster, main, np, tf, tf1

NOT_THERE = "Must run PartialRunSetup before performing partial runs"


class PartialRuns(unittest.TestCase):
    def setUp(self):
        tf1.Session.reset(cluster().target)
        graph = tf1.Graph().as_default()
        graph.__enter__()
        self.addCleanup(graph.__exit__, None, None, None)
        with tf1.device("/job:worker/task:1"):
            self.a, self.b, self.c = (tf1.placeholder(tf.float32, [], name=name) for name in "abc")
            self.sum = tf.add(self.a, self.b, name="sum")
        with tf1.device("/job:ps/task:0"):
            self.product = tf.multiply(self.sum, self.c, name="product")
            self.count = tf1.get_variable("count", initializer=0.0, use_resource=False)
            with tf1.control_dependencies([self.sum]):
                self.counted = self.count.assign_add(1.0)
        self.session = tf1.Session(cluster().target, config=CONFIG)
        self.addCleanup(self.session.close)
        self.session.run(self.count.initializer)

    def setup(self, fetches, feeds):
        return self.session.partial_run_setup(fetches, feeds)

    def run_part(self, handle, fetches, feeds=None):
        return self.session.partial_run(handle, fetches, feeds)

    def refused(self, text, error=tf.errors.InvalidArgumentError):
        return self.assertRaisesRegex(error, text)

    def test_a_feed_may_depend_on_a_fetch(self):
        for factor in (17, 18):  # the second with the program that is there
            handle = self.setup([self.sum, self.product, self.counted], [self.a, self.b, self.c])
            first = self.run_part(handle, self.sum, {self.a: 1, self.b: 2})
            self.assertEqual(first, 3)
            self.assertEqual(self.run_part(handle, [self.product, self.counted], {self.c: first * factor})[0], 9 * factor)
            with self.refused(NOT_THERE):
                self.run_part(handle, self.sum)
        self.assertEqual(self.session.run(self.count), 2, "one step each")

    def test_feeds_of_another_task_come_one_by_one(self):
        with tf1.device("/job:worker/task:1"):
            first, second = self.a * 2, self.a * 2 + self.b
        for order in (((self.a, first), (self.b, second)), ((self.b, self.b + 0), (self.a, second))):
            handle = self.setup([fetch for _, fetch in order], [self.a, self.b])
            values = [self.run_part(handle, fetch, {feed: 3}) for feed, fetch in order]
            self.assertEqual(values, [6, 9] if order[0][0] is self.a else [3, 9])

    def test_two_at_once_are_two_steps(self):
        one, two = (self.setup([self.sum, self.product], [self.a, self.b, self.c]) for _ in range(2))
        self.assertEqual(self.run_part(one, self.sum, {self.a: 1, self.b: 2}), 3)
        self.assertEqual(self.run_part(two, self.sum, {self.a: 10, self.b: 20}), 30)
        self.assertEqual(self.run_part(one, self.product, {self.c: 2}), 6)
        self.assertEqual(self.run_part(two, self.product, {self.c: 2}), 60)

    def test_feeds_and_fetches_in_calls_of_their_own(self):
        handle = self.setup([self.product], [self.a, self.b, self.c])
        for placeholder, value in ((self.c, 2), (self.a, 3), (self.b, 4)):
            self.run_part(handle, [], {placeholder: value})
        self.assertEqual(self.run_part(handle, [self.product, self.product]), [14, 14])

    def test_without_feeds(self):
        constant = tf.constant(2.0) * 3.0
        self.assertEqual(self.run_part(self.setup([constant], []), constant), 6)

    def test_a_loop_that_is_fed(self):
        total = tf.while_loop(lambda i, _: i < 10, lambda i, x: (i + 1, x + self.a), [0, 0.0])[1]
        handle = self.setup([total, self.sum], [self.a, self.b])
        self.assertEqual(self.run_part(handle, total, {self.a: 2}), 20)
        self.assertEqual(self.run_part(handle, self.sum, {self.b: 5}), 7)

    def test_strings_of_any_shape(self):
        text = tf1.placeholder(tf.string)
        handle = self.setup([tf.strings.length(text, name="lengths")], [text])
        np.testing.assert_array_equal(self.run_part(handle, "lengths:0", {text: [["ab", ""], ["c", "def"]]}), [[2, 0], [1, 3]])

    def test_what_is_wrong_with_a_call_leaves_the_run_as_it_was(self):
        handle = self.setup([self.sum, self.product], [self.a, self.b, self.c])
        other = tf1.placeholder(tf.float32, [])
        with self.refused("Fetch product:0 can't be computed from the feeds that have been fed so far"):
            self.run_part(handle, self.product, {self.a: 1, self.b: 2})
        self.assertEqual(self.run_part(handle, self.sum, {self.a: 1, self.b: 2}), 3)
        with self.refused(r"The feed a:0 has already been fed\.$"):
            self.run_part(handle, self.product, {self.a: 1, self.c: 3})
        with self.refused(r"The fetch sum:0 has already been fetched\.$"):
            self.run_part(handle, self.sum, {self.c: 3})
        with self.refused(r"was not specified in partial_run_setup\.$"):
            self.run_part(handle, self.product, {self.c: 3, other: 1})
        with self.refused(r"The fetch .* was not specified in partial_run_setup\.$"):
            self.run_part(handle, self.count, {self.c: 3})
        self.assertEqual(self.run_part(handle, self.product, {self.c: 3}), 9)

    def test_what_is_wrong_with_a_setup(self):
        with self.refused("Must specify at least one target to fetch or execute"):
            self.setup([], [self.a])
        with self.refused('Endpoint "a:0" fed more than once'):
            self.setup([self.sum], [self.a, self.a, self.b])
        with self.refused(NOT_THERE):
            self.run_part(self.setup([self.sum], [self.a, self.b]) + "0", self.sum)

    def test_an_error_of_the_step_ends_the_run(self):
        with tf1.device("/job:ps/task:0"):
            checked = tf.debugging.check_numerics(tf.math.log(self.a), "no logarithm", name="checked")
        handle = self.setup([checked, self.sum], [self.a, self.b])
        with self.refused("no logarithm"):
            self.run_part(handle, checked, {self.a: -1})
        with self.refused(NOT_THERE):
            self.run_part(handle, self.sum, {self.b: 1})

    def test_a_placeholder_that_the_setup_does_not_name(self):
        handle = self.setup([self.sum], [self.a])
        with self.refused("You must feed a value for placeholder tensor 'b'"):
            self.run_part(handle, self.sum, {self.a: 1})

    def test_a_branch_that_is_not_taken(self):
        taken = tf1.placeholder(tf.bool, [])
        no, yes = tf.raw_ops.Switch(data=self.a, pred=taken)
        handle = self.setup([no, yes], [self.a, taken])
        self.assertEqual(self.run_part(handle, yes, {self.a: 3, taken: True}), 3)
        with self.refused("branch that was not taken"):
            self.run_part(handle, no)

    def test_close_ends_a_call_that_waits(self):
        queue = tf.queue.FIFOQueue(1, [tf.float32], shared_name="never filled")
        value = queue.dequeue() + self.a
        handle = self.setup([value], [self.a])
        seen = []

        def call():
            try:
                self.run_part(handle, value, {self.a: 1})
            except tf.errors.OpError as error:
                seen.append(error)

        waiting = threading.Thread(target=call)
        waiting.start()
        waiting.join(1.0)
        self.assertTrue(waiting.is_alive())
        self.session.close()
        waiting.join(10.0)
        self.assertFalse(waiting.is_alive())
        self.assertIsInstance(seen[0], tf.errors.CancelledError)

    def test_a_call_has_a_deadline(self):
        queue = tf.queue.FIFOQueue(1, [tf.float32], shared_name="never filled either")
        value = tf.add(queue.dequeue(), self.a, name="value")
        config = tf1.ConfigProto()
        config.CopyFrom(CONFIG)
        config.operation_timeout_in_ms = 500
        with tf1.Session(cluster().target, config=config) as session:
            handle = session.partial_run_setup([value], [self.a])
            with self.refused("partial run .* did not reach value:0 within the deadline of the call", tf.errors.DeadlineExceededError):
                session.partial_run(handle, value, {self.a: 1})
            with self.refused(NOT_THERE):
                session.partial_run(handle, value)


if __name__ == "__main__":
    main(__doc__)

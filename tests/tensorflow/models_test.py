#!/usr/bin/env python3
"""Models as TensorFlow 1 programs write them, trained on Session('') and on a Leat cluster: the same losses, step by step.

  python3 tests/tensorflow/models_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import unittest

from client_test import on_both
from leat_cluster import main, np, tf, tf1


def variable(name, shape, seed):
    """Started from a constant: on both runtimes the same."""
    scale = 1 / np.sqrt(np.prod(shape[:-1])) if len(shape) > 1 else 0.1
    value = (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)
    return tf1.get_variable(name, initializer=value, use_resource=False)


def images(step, n=16):
    rng = np.random.default_rng(100 + step)
    labels = rng.integers(0, 10, n).astype(np.int32)
    x = rng.random((n, 784), dtype=np.float32) * 0.3
    x[np.arange(n), labels * 70] += 3  # something to learn
    return x, labels


class Models(unittest.TestCase):
    def train(self, logits_of, optimizer, steps=12, tolerance=1e-3):
        def build():
            x = tf1.placeholder(tf.float32, [None, 784])
            y = tf1.placeholder(tf.int32, [None])
            logits = logits_of(x)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
            accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y), tf.float32))
            updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
            with tf1.control_dependencies(updates):
                train = optimizer().minimize(loss)
            return tf1.global_variables_initializer(), [loss, accuracy, train], [x, y]

        losses = [(e[0], g[0]) for e, g in on_both(build, steps, images)]
        for step, (e, g) in enumerate(losses):
            self.assertAlmostEqual(e, g, delta=tolerance * max(1, abs(e)), msg=f"step {step}")
        self.assertLess(losses[-1][1], losses[0][1])

    def test_cnn(self):
        def logits_of(x):
            h = tf.reshape(x, [-1, 28, 28, 1])
            for i, (channels, filters) in enumerate([(1, 8), (8, 16)]):
                h = tf1.nn.conv2d(h, variable(f"w{i}", [5, 5, channels, filters], i), strides=[1, 1, 1, 1], padding="SAME")
                h = tf.nn.relu(h + variable(f"b{i}", [filters], 10 + i))
                h = tf1.nn.max_pool(h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
            h = tf.reshape(h, [-1, 7 * 7 * 16])
            h = tf.nn.relu(tf.matmul(h, variable("w2", [7 * 7 * 16, 32], 2)) + variable("b2", [32], 12))
            return tf.matmul(h, variable("w3", [32, 10], 3)) + variable("b3", [10], 13)
        self.train(logits_of, lambda: tf1.train.AdamOptimizer(1e-3))

    def test_cnn_with_batch_norm(self):
        def logits_of(x):
            h = tf.reshape(x, [-1, 28, 28, 1])
            h = tf1.nn.conv2d(h, variable("w0", [3, 3, 1, 8], 0), strides=[1, 2, 2, 1], padding="VALID")
            h, mean, var = tf1.nn.fused_batch_norm(h, variable("scale", [8], 1) + 1.0, variable("offset", [8], 2), is_training=True)
            running = tf1.get_variable("running", [8], initializer=tf1.zeros_initializer(), trainable=False, use_resource=False)
            tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, tf1.assign(running, running * 0.9 + mean * 0.1))
            h = tf1.nn.avg_pool(tf.nn.leaky_relu(h), ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")
            h = tf.nn.lrn(h, depth_radius=2, alpha=0.1)
            return tf.matmul(tf.reshape(h, [-1, 7 * 7 * 8]), variable("w1", [7 * 7 * 8, 10], 3))
        self.train(logits_of, lambda: tf1.train.MomentumOptimizer(0.02, 0.9))

    def test_dropout_draws_the_same_numbers(self):
        def logits_of(x):
            tf1.set_random_seed(7)
            h = tf.nn.relu(tf.matmul(x, variable("w0", [784, 64], 0)))
            h = tf1.nn.dropout(h, rate=0.4, seed=3)
            return tf.matmul(h, variable("w1", [64, 10], 1))
        self.train(logits_of, lambda: tf1.train.GradientDescentOptimizer(0.05))

    def test_choices_draw_the_same_numbers(self):
        def build():
            x, y = tf1.placeholder(tf.float32, [None, 784]), tf1.placeholder(tf.int32, [None])
            return tf1.global_variables_initializer(), [tf1.multinomial(x[:, :10], 3, seed=3)], [x, y]
        for expected, got in on_both(build, 3, images):  # the second step goes on where the first one ended
            np.testing.assert_array_equal(expected[0], got[0])

    def test_embeddings(self):
        """Sparse gradients: gathers, segment sums, sparse updates."""
        def build():
            words = tf1.placeholder(tf.int32, [None, 5])
            y = tf1.placeholder(tf.float32, [None])
            table = variable("table", [50, 8], 0)
            h = tf.reduce_mean(tf1.nn.embedding_lookup(table, words), axis=1)
            loss = tf.reduce_mean(tf.square(tf.reduce_sum(h * variable("w", [8], 1), axis=1) - y))
            train = tf.group(tf1.train.AdagradOptimizer(0.1).minimize(loss))
            momentum = tf1.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
            with tf1.control_dependencies([train, momentum]):
                after = tf.identity(tf.reduce_sum(tf.square(table.read_value())))
            return tf1.global_variables_initializer(), [loss, after], [words, y]

        def feeds(step):
            rng = np.random.default_rng(step)
            return rng.integers(0, 50, (6, 5)).astype(np.int32), rng.random(6, dtype=np.float32)
        for step, (e, g) in enumerate(on_both(build, 10, feeds)):
            np.testing.assert_allclose(g[0], e[0], rtol=1e-3, atol=1e-3, err_msg=f"step {step}")

    def test_what_follows_the_update_sees_it(self):
        """Moving averages and a target network after the train op, of variables that the loss has read before it."""
        def build():
            x, y = tf1.placeholder(tf.float32, [None, 784]), tf1.placeholder(tf.int32, [None])
            w, b = variable("w", [784, 10], 0), variable("b", [10], 1)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(x, w) + b))
            train = tf1.train.AdamOptimizer(1e-2).minimize(loss)
            target = tf1.get_variable("target", [10], initializer=tf1.zeros_initializer(), trainable=False, use_resource=False)
            average = tf1.train.ExponentialMovingAverage(0.9)
            with tf1.control_dependencies([train]):
                followed = average.apply([w, b])
                copied = target.assign(b)
            with tf1.control_dependencies([followed, copied]):
                seen = [tf.reduce_sum(tf.square(v.read_value())) for v in (average.average(w), average.average(b), target)]
            return tf1.global_variables_initializer(), [loss, *seen], [x, y]

        for step, (e, g) in enumerate(on_both(build, 8, images)):
            np.testing.assert_allclose(g, e, rtol=1e-4, err_msg=f"step {step}")


if __name__ == "__main__":
    main(__doc__)

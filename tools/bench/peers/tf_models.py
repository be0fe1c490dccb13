"""Training steps of seven usual networks in TensorFlow: those of ../models/networks.h.

  python3 tf_models.py --model cnn --batch 64              # in process, on one thread
  python3 tf_models.py --model cnn --batch 64 --cluster    # variables on a ps, the batch on a worker; each is a process

A session of TensorFlow 1's: it runs a step faster than a tf.function does. Batches are variables that are not trained.
"""
import argparse
import multiprocessing as mp

import common

MODELS = ["mlp", "cnn", "resnet", "transformer", "lstm", "word2vec", "wide"]


class Networks:
    """Each method returns the logits, or the loss."""

    def __init__(self, tf, batch, worker):
        import model_numbers
        self.tf, self.tf1, self.b, self.worker = tf, tf.compat.v1, batch, worker
        self.numbers = model_numbers.Numbers()

    def variable(self, value, trainable=True):
        return self.tf1.get_variable(f"v{len(self.tf1.global_variables())}", initializer=value, trainable=trainable, use_resource=True)

    def full(self, *shape, value=0.0):
        import numpy as np
        return self.variable(np.full(shape, value, np.float32))

    def given(self, value):
        with self.tf1.device(self.worker):
            return self.variable(value, trainable=False)

    def images(self, *shape):
        return self.given(self.numbers.reals(self.b, *shape))

    def integers(self, *shape, limit):
        return self.given(self.numbers.integers(*shape, limit=limit))

    def dense(self, x, i, o):
        tf = self.tf
        return tf.nn.bias_add(tf.reshape(x, [-1, i]) @ self.variable(self.numbers.weights(i, o)), self.full(o))

    def convolution(self, x, i, o, size, strides=1):
        return self.tf.nn.conv2d(x, self.variable(self.numbers.weights(size, size, i, o)), strides, "SAME")

    def mlp(self):
        relu = self.tf.nn.relu
        h = relu(self.dense(self.images(784), 784, 256))
        return self.dense(relu(self.dense(h, 256, 128)), 128, 10)

    def cnn(self):
        tf = self.tf
        h = tf.nn.relu(tf.nn.bias_add(self.convolution(self.images(28, 28, 1), 1, 32, 5), self.full(32)))
        h = tf.nn.max_pool2d(h, 2, 2, "VALID")
        h = tf.nn.relu(tf.nn.bias_add(self.convolution(h, 32, 64, 5), self.full(64)))
        h = tf.nn.max_pool2d(h, 2, 2, "VALID")
        return self.dense(tf.nn.relu(self.dense(h, 3136, 512)), 512, 10)

    def resnet(self):
        tf = self.tf

        def norm(x, n):
            return self.tf1.nn.fused_batch_norm(x, self.full(n, value=1.0), self.full(n), epsilon=1e-3, is_training=True)[0]
        h, c = tf.nn.relu(norm(self.convolution(self.images(32, 32, 3), 3, 16, 3), 16)), 16
        for o in (16, 16, 16, 32, 32, 32, 64, 64, 64):
            strides = 1 if c == o else 2
            shortcut = h if c == o else self.convolution(h, c, o, 1, strides)
            r = tf.nn.relu(norm(self.convolution(h, c, o, 3, strides), o))
            h, c = tf.nn.relu(shortcut + norm(self.convolution(r, o, o, 3), o)), o
        return self.dense(tf.reduce_mean(h, [1, 2]), 64, 10)

    def transformer(self, t=64, d=128, heads=4, hidden=512):
        tf, b = self.tf, self.b

        def norm(x):
            centred = x - tf.reduce_mean(x, -1, keepdims=True)
            scale = tf.math.rsqrt(tf.reduce_mean(tf.square(centred), -1, keepdims=True) + 1e-5)
            return centred * scale * self.full(d, value=1.0) + self.full(d)
        h = self.images(t, d)
        for _ in range(2):
            qkv = tf.reshape(self.dense(norm(h), d, 3 * d), [b, t, 3, heads, d // heads])
            q, k, v = tf.unstack(tf.transpose(qkv, [2, 0, 3, 1, 4]))
            p = tf.nn.softmax(tf.matmul(q * (d // heads) ** -0.5, k, transpose_b=True))
            mixed = tf.reshape(tf.transpose(tf.matmul(p, v), [0, 2, 1, 3]), [b, t, d])
            h = h + tf.reshape(self.dense(mixed, d, d), [b, t, d])
            h = h + tf.reshape(self.dense(tf.nn.relu(self.dense(norm(h), d, hidden)), hidden, d), [b, t, d])
        return self.dense(tf.reduce_mean(h, 1), d, 10)

    def lstm(self, t=50, d=128, n=256):
        """A while loop over TensorArrays, as tf.nn.dynamic_rnn makes it; the products with x are one, before the loop."""
        import numpy as np
        tf, b = self.tf, self.b
        x = self.given(self.numbers.reals(b, t, d).transpose(1, 0, 2).copy())
        kernel = self.variable(self.numbers.weights(d, 4 * n))
        recurrent = tf.identity(self.variable(self.numbers.weights(n, 4 * n)))  # read on the worker, once
        bias = self.variable(np.repeat(np.array([0, 1, 0, 0], np.float32), n))
        projected = tf.nn.bias_add(tf.reshape(x, [t * b, d]) @ kernel, bias)
        inputs = tf.TensorArray(tf.float32, t).unstack(tf.reshape(projected, [t, b, 4 * n]))

        def body(step, c, h, out):
            i, f, g, o = tf.split(inputs.read(step) + h @ recurrent, 4, 1)
            c = c * tf.sigmoid(f) + tf.sigmoid(i) * tf.tanh(g)
            h = tf.tanh(c) * tf.sigmoid(o)
            return step + 1, c, h, out.write(step, h)
        zero = tf.zeros([b, n])
        _, _, h, out = tf.while_loop(lambda step, *_: step < t, body, (0, zero, zero, tf.TensorArray(tf.float32, t)))
        return self.dense(h + tf.reduce_mean(out.stack(), 0), n, 10)

    def word2vec(self, words=100000, d=128, negatives=64):
        tf = self.tf
        centres, contexts = self.variable(self.numbers.rows(words, d)), self.variable(self.numbers.rows(words, d))
        e = tf.nn.embedding_lookup(centres, self.integers(self.b, limit=words))
        y = tf.nn.embedding_lookup(contexts, self.integers(self.b, limit=words))
        no = tf.nn.embedding_lookup(contexts, self.integers(negatives, limit=words))
        wanted = tf.nn.softplus(-tf.reduce_sum(e * y, 1))
        return tf.reduce_mean(wanted + tf.reduce_sum(tf.nn.softplus(tf.matmul(e, no, transpose_b=True)), 1))

    def wide(self, columns=1000000):
        tf = self.tf
        ids = self.integers(self.b, 40, limit=columns)
        z = tf.reduce_sum(tf.squeeze(tf.nn.embedding_lookup(self.full(columns, 1), ids), -1), 1) + self.full(1)
        y = tf.cast(self.integers(self.b, limit=2), tf.float32)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=z))

    def loss(self, model):
        tf = self.tf
        out = getattr(self, model)()
        if model in ("word2vec", "wide"):
            return out
        labels = self.integers(self.b, limit=10)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=out))


def train(tf, a, worker=None, target="", config=None):
    """Prints the line of a training; the devices of variables and nodes are those of the scope."""
    tf1 = tf.compat.v1
    loss = Networks(tf, a.batch, worker).loss(a.model)
    update = tf1.train.GradientDescentOptimizer(0.01).minimize(loss)
    with tf1.Session(target, config=config) as session:
        session.run(tf1.global_variables_initializer())
        step = (lambda: session.run([loss, update])) if target else session.make_callable([loss, update])
        losses = [float(step()[0]) for _ in range(a.loss_steps)]
        if a.nodes:
            print_nodes(tf1, session, [loss, update])
            return
        t = common.timed_for(step, a.seconds)
    common.report("model_" + a.model, f"tensorflow {tf.__version__}" + (" grpc" if target else ""), vars(a), t, "step",
                  losses=losses, samples_per_s=a.batch / t[len(t) // 2])


def print_nodes(tf1, session, fetches):
    runs = []
    for _ in range(9):
        meta = tf1.RunMetadata()
        session.run(fetches, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), run_metadata=meta)
        sums = {}
        for device in meta.step_stats.dev_stats:
            for node in device.node_stats:
                name = node.node_name.split(":")[0]
                op = node.timeline_label.split(" = ")[-1].split("(")[0]
                sums[f"{op}  {name}"] = sums.get(f"{op}  {name}", 0) + node.op_end_rel_nanos - node.op_start_rel_nanos
        runs.append(sums)
    medians = {name: sorted(run.get(name, 0) for run in runs)[4] for name in runs[-1]}
    for name, ns in sorted(medians.items(), key=lambda each: -each[1])[:25]:
        print(f"{ns / 1e3:10.0f} µs  {name}")


def import_tensorflow(threads, **options):
    common.limit_threads(threads)
    import tensorflow as tf
    tf.compat.v1.disable_v2_behavior()
    return tf, tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads, **options)


def task(cluster, job, a, barrier):
    tf, config = import_tensorflow(a.threads, inter_op_parallelism_threads=max(2, a.threads))
    tf1 = tf.compat.v1
    server = tf1.train.Server(cluster, job_name=job, task_index=0, config=config)
    barrier.wait()
    if job == "worker":
        worker = "/job:worker/task:0"
        with tf1.device(tf1.train.replica_device_setter(cluster=cluster, worker_device=worker)):
            train(tf, a, worker, server.target, config)
    barrier.wait()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", choices=MODELS, default="mlp")
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--seconds", type=float, default=5)
    ap.add_argument("--loss-steps", type=int, default=10, help="first steps, whose losses are printed")
    ap.add_argument("--nodes", action="store_true", help="print the nodes on which a step spends most instead")
    ap.add_argument("--cluster", action="store_true", help="one ps and one worker")
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--busy", action="store_true", help="while another process computes on the last core")
    a = ap.parse_args()
    if a.busy:
        common.busy_core()
    if not a.cluster:
        tf, config = import_tensorflow(a.threads, inter_op_parallelism_threads=a.threads)
        train(tf, a, config=config)
        return
    ports = common.free_ports(2)
    cluster = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{ports[1]}"]}
    ctx = mp.get_context("spawn")
    barrier = ctx.Barrier(2)
    procs = [ctx.Process(target=task, args=(cluster, job, a, barrier), daemon=True) for job in cluster]
    for p in procs:
        p.start()
    procs[1].join(600)
    failed = procs[1].exitcode != 0
    for p in procs:
        p.join(1 if failed else 10)
        p.kill()
    if failed:
        raise SystemExit(f"the worker's task ended with {procs[1].exitcode}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Records what TensorFlow's client and TensorFlow's own server say to each other, for the tests that have no TensorFlow:
tests/distributed/recorded_clients_test.cc sends the same requests to a Leat cluster and expects the same answers.

  python3 tests/tensorflow/record.py [--out tests/data/recorded] [NAME…]

A recording is a protobuf message without a schema: field 1, repeated, is a call {1: method, 2: request, 3: reply, 4: status code}.
Needs TensorFlow (pip install tensorflow-cpu).
"""
import argparse
import os
import socket
import subprocess
import sys
import threading
from concurrent import futures

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import grpc  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


# ---- Programs: (session, run) → nothing ----

def values(*shape):
    return np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)


def training(optimizer, logits, width, classes, **variables):
    """A classifier whose variables are on a ps."""
    x = tf1.placeholder(tf.float32, [None, width], "x")
    y = tf1.placeholder(tf.int32, [None], "y")
    with tf1.device(tf1.train.replica_device_setter(ps_tasks=1)), tf1.variable_scope("model", **variables):
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits(x)))
        step = tf1.train.get_or_create_global_step()
        train = optimizer().minimize(loss, global_step=step)
    init = tf1.global_variables_initializer()

    def run(session):
        session.run(init)
        for i in range(4):
            feeds = {x: values(8, width) + 0.1 * i, y: np.arange(8) % classes}
            session.run([train, loss], feeds)
            session.run(step)  # beside the update, the answer would depend on timing
        session.run(tf1.trainable_variables())
    return run


def weights(name, *shape):
    return tf1.get_variable(name, initializer=0.2 * values(*shape))


def softmax():
    return training(lambda: tf1.train.GradientDescentOptimizer(0.5), lambda x: tf.matmul(x, weights("w", 16, 4)) + weights("b", 4),
                    16, 4, use_resource=False)


def mlp():
    def logits(x):
        h = tf.nn.relu(tf.matmul(x, weights("w1", 16, 12)) + weights("b1", 12))
        return tf.matmul(h, weights("w2", 12, 4)) + weights("b2", 4)
    return training(lambda: tf1.train.MomentumOptimizer(0.1, 0.9), logits, 16, 4, use_resource=True)


def cnn():
    def logits(x):
        image = tf.reshape(x, [-1, 8, 8, 1])
        h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(image, weights("k", 3, 3, 1, 4), 1, "SAME"), weights("kb", 4)))
        h = tf.nn.max_pool2d(h, 2, 2, "VALID")
        return tf.matmul(tf.reshape(h, [-1, 64]), weights("w", 64, 3)) + weights("b", 3)
    return training(lambda: tf1.train.AdamOptimizer(0.01), logits, 64, 3, use_resource=False)


def embedding():
    ids = tf1.placeholder(tf.int32, [None], "ids")
    with tf1.device(tf1.train.replica_device_setter(ps_tasks=1)):
        table = weights("table", 10, 3)
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids) ** 2)
        train = tf1.train.AdagradOptimizer(0.1).minimize(loss)
    init = tf1.global_variables_initializer()

    def run(session):
        session.run(init)
        for batch in ([1, 2, 2], [7], []):
            session.run([train, loss], {ids: batch})
        session.run(table)
    return run


def loop():
    n = tf1.placeholder(tf.int32, [], "n")
    x = tf1.placeholder(tf.float32, [3], "x")
    with tf1.device(WORKER):
        total = tf1.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, tf1.cond(s[0] > 2.0, lambda: s * 0.5, lambda: s + x)), [0, x])[1]
        gradient = tf1.gradients(total, x)

    def run(session):
        for count in (0, 1, 5):
            session.run([total, gradient], {n: count, x: [1.0, -2.0, 0.5]})
    return run


def functions():
    """What only disabling eager execution leaves: control flow of functions, tensor lists."""
    tf1.enable_control_flow_v2()
    try:
        sequence = tf1.placeholder(tf.float32, [5, 2, 3], "sequence")
        with tf1.device(tf1.train.replica_device_setter(ps_tasks=1)), tf1.variable_scope("rnn", use_resource=True):
            w = weights("w", 7, 4)
            steps = tf1.TensorArray(tf.float32, 5).unstack(sequence)

            @tf.function
            def cell(x, h):
                return tf.tanh(tf.matmul(tf.concat([x, h], 1), w))
            h = tf.while_loop(lambda t, h: t < 5, lambda t, h: (t + 1, cell(steps.read(t), h)), [0, tf.zeros([2, 4])])[1]
            loss = tf.reduce_mean(tf.cond(tf.reduce_sum(h) > 0.0, lambda: h, lambda: -h) ** 2)
            train = tf1.train.GradientDescentOptimizer(0.5).minimize(loss)
        init = tf1.global_variables_initializer()
    finally:
        tf1.disable_control_flow_v2()

    def run(session):
        session.run(init)
        for i in range(3):
            session.run([train, loss], {sequence: values(5, 2, 3) + i})
        session.run(w)
    return run


def mistakes():
    x = tf1.placeholder(tf.float32, None, "x")
    with tf1.device(PS):
        v = tf1.get_variable("v", initializer=[1.0, 2.0], use_resource=False)
    with tf1.device(WORKER):
        product = tf.matmul(x, x)
        checked = tf1.div(tf.cast(tf.reduce_sum(x), tf.int32), 0)

    def run(session):
        for fetch, feeds in ((v, {}), (product, {}), (product, {x: values(2, 3)}), (checked, {x: [1.0]}), (product, {x: values(2, 2)})):
            try:
                session.run(fetch, feeds)
            except tf.errors.OpError:
                pass
        tf.constant(1.0, name="later")  # the graph grows: ExtendSession
        session.run("later:0")
    return run


PROGRAMS = {f.__name__: f for f in (softmax, mlp, cnn, embedding, loop, functions, mistakes)}


# ---- The recorder ----

def varint(n):
    out = b""
    while n >= 128:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


class Recorder(grpc.GenericRpcHandler):
    """A MasterService that hands every call on and keeps it."""

    def __init__(self, target):
        self.channel = grpc.insecure_channel(target)
        self.lock = threading.Lock()
        self.calls = []

    def service(self, details):
        method = details.method

        def call(request, context):
            reply, code = b"", 0
            try:
                reply = self.channel.unary_unary(method)(request)
            except grpc.RpcError as error:
                code = error.code().value[0]
                context.set_trailing_metadata(error.trailing_metadata() or ())
            with self.lock:
                self.calls.append(field(1, method.encode()) + field(2, request) + field(3, reply) + field(4, code))
            if code != 0:
                context.abort(error.code(), error.details())
            return reply
        return grpc.unary_unary_rpc_method_handler(call)

    def take(self):
        with self.lock:
            calls, self.calls = self.calls, []
        return b"".join(field(1, call) for call in calls)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


SERVER = """
import sys, tensorflow as tf
tf.distribute.Server(eval(sys.argv[1]), job_name=sys.argv[2], task_index=0).join()
"""


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", default=os.path.join(os.path.dirname(__file__), "..", "data", "recorded"))
    ap.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    a = ap.parse_args()
    unknown = [name for name in a.names if name not in PROGRAMS]
    if unknown:
        ap.error(f"no program {unknown[0]}: {', '.join(PROGRAMS)}")
    os.makedirs(a.out, exist_ok=True)
    cluster = {job: [f"127.0.0.1:{free_port()}"] for job in ("ps", "worker")}
    servers = [subprocess.Popen([sys.executable, "-c", SERVER, repr(cluster), job], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for job in cluster]
    proxy = grpc.server(futures.ThreadPoolExecutor(8))
    recorder = Recorder(cluster["worker"][0])
    proxy.add_generic_rpc_handlers((recorder,))
    port = proxy.add_insecure_port("127.0.0.1:0")
    proxy.start()
    try:
        for server in cluster.values():
            grpc.channel_ready_future(grpc.insecure_channel(server[0])).result(timeout=120)
        for name in a.names or PROGRAMS:
            tf1.Session.reset("grpc://" + cluster["worker"][0])
            with tf1.Graph().as_default():
                run = PROGRAMS[name]()
                with tf1.Session(f"grpc://127.0.0.1:{port}") as session:
                    run(session)
            recording = recorder.take()
            with open(os.path.join(a.out, name + ".recording"), "wb") as f:
                f.write(recording)
            print(f"{name}: {len(recording)} bytes")
    finally:
        for server in servers:
            server.kill()


if __name__ == "__main__":
    main()

"""What the tests of TensorFlow's client share: the import of TensorFlow, or the skip; a running `leat up`; the main program."""
import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
try:
    import numpy as np
    import tensorflow as tf
except ImportError as missing:
    print(f"skipped: {missing} (pip install tensorflow-cpu)")
    sys.exit(77)
tf1 = tf.compat.v1
tf1.disable_v2_behavior()

CONFIG = tf1.ConfigProto(operation_timeout_in_ms=30_000)


class Cluster:
    """A running `leat up`."""

    def __init__(self, leat, workers=2, parameter_servers=1):
        self.leat = leat
        sockets = [socket.socket() for _ in range(parameter_servers + workers)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
        for s in sockets:
            s.close()
        self.directory = tempfile.TemporaryDirectory()
        spec = os.path.join(self.directory.name, "cluster.json")
        with open(spec, "w") as f:
            json.dump({"cluster": {"ps": addresses[:parameter_servers], "worker": addresses[parameter_servers:]}}, f)
        self.addresses = addresses  # of the ps, then of the workers
        self.targets = ["grpc://" + a for a in addresses[parameter_servers:]]  # of the workers
        self.target = self.targets[0]
        self.log = open(os.path.join(self.directory.name, "up.log"), "w+")
        self.process = subprocess.Popen([leat, "up", spec, "--log-dir", self.directory.name], stdout=self.log,
                                        stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 30
        for address in addresses:
            host, port = address.split(":")
            while True:
                try:
                    socket.create_connection((host, int(port)), timeout=1).close()
                    break
                except OSError:
                    if self.process.poll() is not None or time.monotonic() > deadline:
                        sys.exit(f"`leat up` did not start:\n{self.text()}")
                    time.sleep(0.05)
        self.wait_until_tasks_know_each_other(deadline)

    def wait_until_tasks_know_each_other(self, deadline):
        while True:
            try:
                tf1.Session.reset(self.target)
                return
            except (tf.errors.AbortedError, tf.errors.UnavailableError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def text(self):
        self.log.flush()
        with open(self.log.name) as f:
            return f.read()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(20)
        if code not in (0, 128 + signal.SIGTERM):
            sys.exit(f"`leat up` ended with {code}:\n{self.text()}")



CLUSTER = None


def cluster():
    """The cluster of one ps and two workers that all tests share."""
    return CLUSTER


def main(description, **shape):
    global CLUSTER
    ap = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--leat", required=True)
    a, rest = ap.parse_known_args()
    CLUSTER = Cluster(a.leat, **shape)
    try:
        program = unittest.main(module="__main__", argv=[sys.argv[0], *rest], exit=False)
    finally:
        CLUSTER.stop()
    sys.exit(not program.result.wasSuccessful())

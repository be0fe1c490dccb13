"""Calls of ops that read tf.train.Example records."""
import numpy as np
import tensorflow as tf

from .case import *


def example(**features):
    def feature(values):
        if isinstance(values[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Example(features=tf.train.Features(feature={k: feature(v) for k, v in features.items()})).SerializeToString()


RECORDS = [example(x=[1.5, 2.5], n=[7], s=[b"a", b"bc"], v=[1, 2, 3], u=[6, 8]), example(x=[-1.0, 0.25], n=[-(2**40)], s=[b""], v=[4], u=[3]), example(x=[0.0, 1.0])]
DEFAULTS = [np.zeros(0, np.float32), np.array(5), np.array([9])]
DENSE = dict(dense_shapes=[[2], [], [None]])
SPARSE_TYPES = [tf.string, tf.int64]


def texts(*values):
    return np.array(values, object)


NAMES = np.zeros(0, object)


@cases("ParseExampleV2")
def _(rng, op):
    def case(serialized, sparse=(b"s", b"u"), dense=(b"x", b"n", b"v"), defaults=DEFAULTS, types=SPARSE_TYPES, dense_shapes=DENSE["dense_shapes"], **more):
        return Case(serialized, NAMES, texts(*sparse), texts(*dense), NAMES, defaults, num_sparse=len(sparse), sparse_types=types, ragged_value_types=[],
                    ragged_split_types=[], dense_shapes=dense_shapes, gradient=False, **more)
    yield case(texts(*RECORDS))
    yield case(texts())
    yield case(np.array(RECORDS[0], object))
    yield case(np.array(RECORDS[2], object))
    yield case(texts(RECORDS[0]), sparse=(), types=[])
    yield case(texts(RECORDS[0]), dense=(), defaults=[], dense_shapes=[])
    yield case(texts(b""), dense=(b"x",), defaults=[np.array([1, 2], np.float32)], dense_shapes=[[2]])
    yield case(texts(b""), invalid=True)  # x is required
    yield case(texts(*RECORDS), defaults=[DEFAULTS[0], np.array([5]), DEFAULTS[2]], invalid=True)
    yield case(texts(*RECORDS), defaults=[DEFAULTS[0], DEFAULTS[1], np.array([1, 2])], invalid=True)
    yield case(texts(b"\x00"), invalid=True)
    yield case(texts(RECORDS[0][:-1]), invalid=True)
    yield case(texts(*RECORDS), dense=(b"u", b"n", b"v"), invalid=True)
    yield case(texts(*RECORDS), sparse=(b"u", b"s"), invalid=True)
    yield case(texts(*RECORDS), dense_shapes=[[3], [], [None]], invalid=True)


@cases("ParseExample")
def _(rng, op):
    def case(serialized, **more):
        return Case(serialized, NAMES, list(texts(b"s", b"u")), list(texts(b"x", b"n", b"v")), DEFAULTS, sparse_types=SPARSE_TYPES, **DENSE, gradient=False,
                    **more)
    yield case(texts(*RECORDS))
    yield case(texts())
    yield case(texts(b"\x00"), invalid=True)


@cases("ParseSingleExample")
def _(rng, op):
    def case(serialized, **more):
        return Case(np.array(serialized, object), DEFAULTS, num_sparse=2, sparse_keys=["s", "u"], dense_keys=["x", "n", "v"], sparse_types=SPARSE_TYPES, **DENSE,
                    gradient=False, **more)
    for record in RECORDS:
        yield case(record)
    yield case(b"\x00", invalid=True)

"""Calls of ops that queue sparse tensors: as strings, and as numbers of a map of their task (readers_test.py has the map)."""
import numpy as np
import tensorflow as tf

from .case import *

INDICES, SHAPE = np.array([[0, 3], [2, 0], [2, 1]]), np.array([4, 5])
NOTHING = np.zeros((0, 2), np.int64)
WRONG = [  # indices, number of values, shape
    (INDICES, 2, [4, 5]),
    (INDICES, 3, [4]),
    (INDICES, 3, [4, 5, 1]),
    (INDICES, 3, [4, -5]),
    (NOTHING, 0, [2, 2**40, 2**40]),
]
WRONG_IN_BATCH = [
    (INDICES[:, :1], 3, [4]),
    (np.zeros((1, 0), np.int64), 1, []),
    (INDICES, 3, [2, 5]),
    (INDICES, 3, [4, 3]),
    (INDICES[::-1], 3, [4, 5]),
    (INDICES[[0, 0]], 2, [4, 5]),
    (-INDICES, 3, [4, 5]),
]
WRONG_RANKS = [(INDICES[0], 2, [4]), (INDICES, (), [4, 5]), (INDICES, (3, 1), [4, 5]), (INDICES, 3, 4), (INDICES, 3, [[4, 5]])]


def invalid(rng, wrong):
    for indices, count, shape in wrong:
        yield Case(indices, random(rng, (count,) if isinstance(count, int) else count), np.array(shape, np.int64), invalid=True)


@cases("SerializeSparse")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(INDICES, random(rng, (3,), dtype), SHAPE)
    yield Case(INDICES, np.array([b"", b"x" * 300, b"\0\xff"], object), SHAPE)
    yield Case(NOTHING, np.zeros(0, object), SHAPE)
    yield Case(NOTHING, np.zeros(0, np.float32), np.array([0, 2**40]))
    yield Case(np.zeros((1, 0), np.int64), random(rng, (1,)), np.zeros(0, np.int64))
    for indices, count, shape in WRONG[:3] + [(-INDICES, 3, [4, 5])]:  # it looks at the ranks only
        yield Case(indices, random(rng, (count,)), np.array(shape))
    yield from invalid(rng, WRONG_RANKS)


@cases("SerializeManySparse")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(INDICES, random(rng, (3,), dtype), SHAPE)
    yield Case(np.array([[0, 1, 2], [0, 1, 3], [3, 0, 0]]), random(rng, (3,)), np.array([4, 2, 6]))
    yield Case(NOTHING, np.zeros(0, object), SHAPE)
    yield Case(NOTHING, np.zeros(0, np.float32), np.array([0, 5]))
    yield Case(NOTHING, np.zeros(0, np.float32), np.array([3, 0]))
    yield from invalid(rng, WRONG + WRONG_IN_BATCH + WRONG_RANKS)


def content(array):
    """A TensorProto that has its elements in tensor_content."""
    array = np.asarray(array)
    proto = tf.compat.v1.make_tensor_proto(array.reshape(-1)[:0], tf.as_dtype(array.dtype), (0,))
    proto.tensor_shape.CopyFrom(tf.TensorShape(array.shape).as_proto())
    proto.tensor_content = array.tobytes()
    return proto.SerializeToString()


def listed(array):
    return tf.compat.v1.make_tensor_proto(array, tf.string if np.asarray(array).dtype == object else None).SerializeToString()


def serialized(indices, values, shape, encode=content):
    return [encode(np.array(indices, np.int64)), encode(values), encode(np.array(shape, np.int64))]


def table(*rows):
    return np.array(rows, object)


A = serialized(INDICES, np.array([1, 2, 3], np.float32), SHAPE)
B = serialized([[3, 0]], np.array([4], np.float32), [9, 2], listed)
EMPTY = serialized(NOTHING, np.zeros(0, np.float32), [1, 1])
VECTOR = serialized([[1]], np.array([4], np.float32), [2])
SCALAR = serialized(np.zeros((1, 0)), np.array([4], np.float32), [])


@cases("DeserializeManySparse", "DeserializeSparse")
def _(rng, op):
    wanted = dict(dtype=tf.float32, gradient=False)
    for rows in [(A,), (A, B), (B, EMPTY, A, A), (EMPTY,), (VECTOR, VECTOR), (SCALAR, SCALAR)]:
        yield Case(table(*rows), **wanted)
    if op == "DeserializeSparse":
        for row in [A, B, EMPTY, SCALAR]:
            yield Case(table(*row), **wanted)
        yield Case(table(A, B, EMPTY, B).reshape(2, 2, 3), **wanted)
        yield Case(table(SCALAR, SCALAR).reshape(1, 2, 1, 3), **wanted)
        yield Case(table(A).reshape(3)[0], **wanted, invalid=True)
    for dtype in NUMBERS + [np.bool_]:
        yield Case(table(serialized(INDICES, random(rng, (3,), dtype), SHAPE)), dtype=tf.as_dtype(dtype), gradient=False)
    yield Case(table(serialized(INDICES, np.array([b"a", b"", b"bc"], object), SHAPE, listed)), dtype=tf.string, gradient=False)
    yield Case(table(A), dtype=tf.int32, invalid=True)
    yield Case(np.zeros((0, 3), object), dtype=tf.float32, invalid=True)
    for rows in [(A[:2],), (A + A,), (A, VECTOR), (A, SCALAR),
                 (["x", A[1], A[2]],), ([A[0], "\xff\xff", A[2]],), ([A[0], A[1], A[2][:-1]],),  # no tensors
                 ([A[0], A[1], VECTOR[2]],), ([A[0], A[0], A[2]],), ([A[2], A[1], A[2]],), ([A[0], VECTOR[1], A[2]],)]:
        yield Case(table(*rows), dtype=tf.float32, invalid=True)


@cases("AddSparseToTensorsMap")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(INDICES, random(rng, (3,), dtype), SHAPE)
    yield Case(NOTHING, np.zeros(0, np.float32), np.array([0, 5]))
    yield Case(np.zeros((1, 0), np.int64), random(rng, (1,)), np.zeros(0, np.int64))
    yield Case(-INDICES, random(rng, (3,)), SHAPE)  # it does not look at them
    yield from invalid(rng, WRONG + WRONG_RANKS)


@cases("AddManySparseToTensorsMap")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(INDICES, random(rng, (3,), dtype), SHAPE)
    yield Case(NOTHING, np.zeros(0, np.float32), np.array([3, 5]))
    yield Case(NOTHING, np.zeros(0, np.float32), np.array([0, 5]))
    yield from invalid(rng, WRONG + WRONG_IN_BATCH + WRONG_RANKS)


@cases("TakeManySparseFromTensorsMap")
def _(rng, op):
    for handles in [[], [0], [[0]], 0, [-1, 2**62]]:
        yield Case(np.array(handles, np.int64), dtype=tf.float32, invalid=True)

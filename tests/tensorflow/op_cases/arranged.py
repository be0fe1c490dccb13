"""Calls of ops on diagonals, on the order of elements, and of those that count elements."""
import itertools

import numpy as np
import tensorflow as tf

from .case import *


# ---- diagonals ----

MOVED = [np.float32, np.float64, np.int32, np.int64]


@cases("Diag")
def _(rng, op):
    for dtype in MOVED:
        yield Case(random(rng, (3,), dtype))
        yield Case(random(rng, (2, 3), dtype))
    yield Case(random(rng, (0,)))
    yield Case(random(rng, ()), invalid=True)


@cases("DiagPart")
def _(rng, op):
    for dtype in MOVED:
        yield Case(random(rng, (3, 3), dtype))
        yield Case(random(rng, (2, 3, 2, 3), dtype))
    yield Case(random(rng, (2, 3)), invalid=True)
    yield Case(random(rng, (2, 2, 2)), invalid=True)


@cases("MatrixDiag")
def _(rng, op):
    for dtype in MOVED + [np.bool_]:
        yield Case(random(rng, (2, 3), dtype))
    yield Case(random(rng, (4,)))
    yield Case(random(rng, ()), invalid=True)


@cases("MatrixDiagPart")
def _(rng, op):
    for dtype in MOVED + [np.bool_]:
        yield Case(random(rng, (2, 3, 4), dtype))
    yield Case(random(rng, (4, 2)))
    yield Case(random(rng, (4,)), invalid=True)


@cases("MatrixSetDiag")
def _(rng, op):
    for dtype in MOVED + [np.bool_]:
        yield Case(random(rng, (2, 3, 4), dtype), random(rng, (2, 3), dtype))
    yield Case(random(rng, (4, 2)), random(rng, (2,)))
    yield Case(random(rng, (4, 2)), random(rng, (3,)), invalid=True)
    yield Case(random(rng, (2, 4, 2)), random(rng, (2,)), invalid=True)


def aligns(op):
    return [{"align": a} for a in ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"]] if op.endswith("V3") else [{}]


@cases("MatrixDiagPartV2", "MatrixDiagPartV3")
def _(rng, op):
    for dtype in MOVED:
        yield Case(random(rng, (2, 3, 4), dtype), np.int32(1), np.asarray(7, dtype))
    for align in aligns(op):
        for shape, k in itertools.product([(3, 4), (2, 5, 3)], [[0, 0], [-1, 1], [-2, 1], [0, 2], [-2, -1], [-1]]):
            yield Case(random(rng, shape), np.array(k, np.int32), np.float32(-9), **align)
    for k in [[1, 0], [0, 4], [-3, 0], [0, 1, 2]]:
        yield Case(random(rng, (3, 4)), np.array(k, np.int32), np.float32(0), invalid=True)


@cases("MatrixDiagV2", "MatrixDiagV3")
def _(rng, op):
    for dtype in MOVED:
        yield Case(random(rng, (2, 3), dtype), np.int32(1), np.int32(-1), np.int32(-1), np.asarray(7, dtype))
    for align in aligns(op):
        for k, count, rows, cols in [([-1, 1], 3, -1, -1), ([-1, 1], 3, 4, 5), ([-2, 0], 3, 5, -1), ([1, 2], 2, -1, 6), ([0], 1, 4, 6), ([-1], 1, 5, 9)]:
            shape = (2, count, 4) if count > 1 else (2, 4)
            yield Case(random(rng, shape), np.array(k, np.int32), np.int32(rows), np.int32(cols), np.float32(-9), **align)
    for k, rows, cols in [([1, 0], -1, -1), ([0, 1], -1, -1), ([0], 2, -1), ([0], -1, 2), ([0], 5, 5)]:
        yield Case(random(rng, (3, 4)), np.array(k, np.int32), np.int32(rows), np.int32(cols), np.float32(0), invalid=True)


@cases("MatrixSetDiagV2", "MatrixSetDiagV3")
def _(rng, op):
    for dtype in MOVED:
        yield Case(random(rng, (2, 3, 4), dtype), random(rng, (2, 3), dtype), np.int32(1))
    for align in aligns(op):
        for k, shape in [([-1, 1], (3, 3)), ([-2, 1], (4, 3)), ([0, 2], (3, 3)), ([-2, -1], (2, 2)), ([-1], (2,))]:
            yield Case(random(rng, (3, 4)), random(rng, shape), np.array(k, np.int32), **align)
    for k, shape in [([1, 0], (2, 3)), ([0, 4], (5, 3)), ([0], (2,)), ([0, 1], (3,))]:
        yield Case(random(rng, (3, 4)), random(rng, shape), np.array(k, np.int32), invalid=True)


@cases("MatrixBandPart")
def _(rng, op):
    for dtype in MOVED + [np.bool_]:
        yield Case(random(rng, (2, 3, 4), dtype), np.int64(1), np.int64(0))
    for lower, upper in [(-1, 0), (0, -1), (-1, -1), (3, 4), (2, 1)]:
        yield Case(random(rng, (3, 4)), np.int32(lower), np.int32(upper))
    yield Case(random(rng, (0, 3)), np.int64(0), np.int64(0))
    yield Case(random(rng, (3, 4)), np.int64(4), np.int64(0), invalid=True)
    yield Case(random(rng, (3, 4)), np.int64(0), np.int64(5), invalid=True)
    yield Case(random(rng, (3,)), np.int64(0), np.int64(0), invalid=True)


# ---- the same and other orders of elements ----

@cases("EnsureShape")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(random(rng, (2, 3), dtype), shape=[None, 3])
    yield Case(random(rng, (2, 3)), shape=[2, 4], invalid=True)
    yield Case(random(rng, (2, 3)), shape=[None], invalid=True)


@cases("Print")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(random(rng, (2, 3), dtype), [random(rng, (2, 3), dtype), random(rng, (), np.int64)], message="shown: ", summarize=4)
    yield Case(random(rng, (2, 3)), [random(rng, (0,))], first_n=0)


@cases("ReverseSequence")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(random(rng, (3, 4), dtype), np.array([0, 4, 3]), seq_dim=1)
    yield Case(random(rng, (5, 3, 2)), np.array([2, 5, 1], np.int32), seq_dim=0, batch_dim=1)
    yield Case(random(rng, (2, 3, 4)), np.array([2, 1, 2]), seq_dim=0, batch_dim=1)
    yield Case(random(rng, (2, 3, 4, 2)), np.array([1, 3, 4, 2])[:2], seq_dim=2, batch_dim=0)
    yield Case(random(rng, (0, 3)), np.zeros(0, np.int64), seq_dim=1)
    for lengths, attrs in [([5, 1, 1], {}), ([-1, 1, 1], {}), ([1, 1], {}), ([1, 1, 1], {"seq_dim": 2}), ([1, 1, 1], {"seq_dim": 0}), ([1, 1, 1], {"batch_dim": 2})]:
        yield Case(random(rng, (3, 4)), np.array(lengths), **{"seq_dim": 1, **attrs}, invalid=True)


@cases("Roll")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(random(rng, (3, 4), dtype), np.int32(1), np.int32(1))
    for shift, axis in [([1], [0]), ([-1, 2], [0, 1]), ([5, 9], [1, 1]), ([-7], [-1]), ([], [])]:
        yield Case(random(rng, (3, 4)), np.array(shift, np.int64), np.array(axis, np.int32))
    yield Case(random(rng, (2, 3, 4)), np.array([1, 2], np.int32), np.array([2, 0]))
    yield Case(random(rng, (0, 3)), np.int32(1), np.int32(1))
    for shape, shift, axis in [((), 1, 0), ((3,), 1, 1), ((3,), 1, -2), ((3, 4), [1, 2], [0]), ((3,), [[1]], [[0]])]:
        yield Case(random(rng, shape), np.array(shift, np.int32), np.array(axis, np.int32), invalid=True)


@cases("LinSpace")
def _(rng, op):
    for dtype in [np.float32, np.float64]:
        for n in [1, 2, 5]:
            yield Case(np.asarray(1, dtype), np.asarray(-3.5, dtype), np.int32(n))
    yield Case(np.float32(0), np.float32(1), np.int64(7))
    yield Case(np.float32(0), np.float32(1), np.int32(0), invalid=True)
    yield Case(np.zeros(1, np.float32), np.float32(1), np.int32(3), invalid=True)


@cases("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMin", "TensorScatterMax")
def _(rng, op):
    for dtype in FLOATS + [np.int32, np.int64]:
        yield Case(random(rng, (4, 3), dtype), np.array([[2], [0]]), random(rng, (2, 3), dtype))
    yield Case(random(rng, (4, 3)), np.array([[2, 1], [0, 0]], np.int32), random(rng, (2,)))
    if op != "TensorScatterUpdate":
        yield Case(random(rng, (4, 3)), np.array([[2], [2]]), random(rng, (2, 3)))
    if op in ("TensorScatterMin", "TensorScatterMax"):
        yield Case(np.array([3, 5, 7], np.float32), np.array([[0], [0], [2], [2], [2]]), np.array([3, 3, 9, 9, 1], np.float32))
        yield Case(np.array([1, 2, np.nan], np.float32), np.array([[1], [2]]), np.array([np.nan, 1], np.float32), gradient=False)
    yield Case(random(rng, (4, 3)), np.zeros((0, 1), np.int32), random(rng, (0, 3)))
    for index in [4, -1]:
        yield Case(random(rng, (4, 3)), np.array([[index]]), random(rng, (1, 3)), invalid=True)
    yield Case(random(rng, (4, 3)), np.array([[0]]), random(rng, (2, 3)), invalid=True)
    yield Case(random(rng, (4, 3)), np.array([[0, 0, 0]]), random(rng, (1,)), invalid=True)


# ---- what occurs, and how often ----

@cases("UniqueWithCounts")
def _(rng, op):
    for dtype in NUMBERS + [object]:
        yield Case(random(rng, (12,), dtype))
    yield Case(random(rng, (5,), np.int32), out_idx=tf.int64)
    yield Case(np.zeros(0, np.float32))
    yield Case(random(rng, (2, 3)), invalid=True)


@cases("UniqueV2", "UniqueWithCountsV2")
def _(rng, op):
    for dtype in NUMBERS + [object]:
        yield Case(random(rng, (12,), dtype), np.array([0]))
        yield Case(random(rng, (9, 2), dtype, 0, 1), np.array([0]))
        yield Case(random(rng, (2, 9), dtype, 0, 1), np.array([-1], np.int32))
    yield Case(random(rng, (5,), np.int32), np.zeros(0, np.int64), out_idx=tf.int64)
    yield Case(random(rng, (2, 6, 2), np.int32, 0, 1), np.array([1]))
    yield Case(random(rng, (2, 3)), np.zeros(0, np.int64), invalid=True)
    yield Case(random(rng, (2, 3)), np.array([2]), invalid=True)
    yield Case(random(rng, (2, 3)), np.array([0, 1]), invalid=True)


@cases("Bincount")
def _(rng, op):
    for dtype in [np.int32, np.int64, np.float32, np.float64]:
        yield Case(random(rng, (20,), np.int32, 0, 6), np.int32(5), random(rng, (20,), dtype))
        yield Case(random(rng, (4, 5), np.int32, 0, 6), np.int32(9), np.zeros(0, dtype))
    yield Case(np.zeros(0, np.int32), np.int32(3), np.zeros(0, np.float32))
    yield Case(random(rng, (4,), np.int32, 0, 6), np.int32(0), np.zeros(0, np.float32))
    yield Case(np.array([1, -1], np.int32), np.int32(3), np.zeros(0, np.float32), invalid=True)
    yield Case(np.array([1, 1], np.int32), np.int32(-1), np.zeros(0, np.float32), invalid=True)
    yield Case(np.array([1, 1], np.int32), np.int32(3), np.zeros(3, np.float32), invalid=True)


@cases("DenseBincount")
def _(rng, op):
    for dtype, index, binary in itertools.product([np.int32, np.int64, np.float32, np.float64], [np.int32, np.int64], [False, True]):
        yield Case(random(rng, (20,), index, 0, 6), index(5), np.zeros(0, dtype), binary_output=binary)
        yield Case(random(rng, (3, 5), index, 0, 6), index(9), np.zeros(0, dtype), binary_output=binary)
    yield Case(random(rng, (20,), np.int32, 0, 6), np.int32(5), random(rng, (20,)))
    yield Case(random(rng, (3, 5), np.int32, 0, 6), np.int32(5), random(rng, (3, 5)))
    yield Case(np.zeros(0, np.int32), np.int32(3), np.zeros(0, np.float32))
    yield Case(np.array([1, -1], np.int32), np.int32(3), np.zeros(0, np.float32), invalid=True)
    yield Case(np.array([1, 1], np.int32), np.int32(-1), np.zeros(0, np.float32), invalid=True)
    yield Case(np.zeros((2, 2, 2), np.int32), np.int32(3), np.zeros(0, np.float32), invalid=True)


@cases("ControlTrigger")
def _(rng, op):
    yield Case()


@cases("BroadcastArgs")
def _(rng, op):
    for dtype in [np.int32, np.int64]:
        for a, b in [([2, 1], [3, 1, 5]), ([], [0, 1]), ([4], [4]), ([1, 0], [1])]:
            yield Case(np.array(a, dtype), np.array(b, dtype))
    for a, b in [([2, 2], [3, 1, 5]), ([-1], [3]), ([[1]], [3])]:
        yield Case(np.array(a), np.array(b), invalid=True)


@cases("Bitcast")
def _(rng, op):
    types = {np.int8: tf.int8, np.uint8: tf.uint8, np.int16: tf.int16, np.float16: tf.float16, np.int32: tf.int32, np.float32: tf.float32,
             np.int64: tf.int64, np.float64: tf.float64}
    for dtype, to in itertools.product(types, types.values()):
        widths = to.size // np.dtype(dtype).itemsize
        yield Case(random(rng, (2, 3, widths) if widths > 1 else (2, 3), dtype), type=to, gradient=False)
    yield Case(random(rng, ()), type=tf.int8)
    yield Case(random(rng, (3,), np.int8), type=tf.int32, invalid=True)
    yield Case(random(rng, (), np.int8), type=tf.int32, invalid=True)


@cases("SparseBincount")
def _(rng, op):
    indices, shape = np.array([[0, 0], [0, 2], [1, 1], [2, 0]]), np.array([4, 3])
    for dtype, index, binary in itertools.product([np.int32, np.int64, np.float32, np.float64], [np.int32, np.int64], [False, True]):
        values = np.array([1, 1, 4, 9], index)
        yield Case(indices, values, shape, index(5), np.zeros(0, dtype), binary_output=binary)
        yield Case(np.array([[0], [3], [4]]), values[:3], np.array([5]), index(5), np.zeros(0, dtype), binary_output=binary)
        if not binary:
            yield Case(indices, values, shape, index(5), random(rng, (4,), dtype))
    values = np.array([1, 1, 4, 9], np.int32)
    yield Case(np.array([[-1], [3], [4]]), values[:3], np.array([5]), np.int32(5), np.zeros(0, np.float32), invalid=True)
    yield Case(np.array([[0], [3], [5]]), values[:3], np.array([5]), np.int32(5), np.zeros(0, np.float32), invalid=True)
    yield Case(indices, values, shape, np.int32(-5), np.zeros(0, np.float32), invalid=True)


@cases("RaggedBincount")
def _(rng, op):
    for dtype, index, binary in itertools.product([np.int32, np.int64, np.float32, np.float64], [np.int32, np.int64], [False, True]):
        values = np.array([1, 1, 4, 9], index)
        yield Case(np.array([0, 2, 2, 4]), values, index(5), np.zeros(0, dtype), binary_output=binary)
        if not binary:
            yield Case(np.array([0, 2, 2, 4]), values, index(5), random(rng, (4,), dtype))
    values = np.array([1, 1, 4, 9], np.int32)
    yield Case(np.array([0, 2, 2, 4]), values, np.int32(5), random(rng, (2, 2)))
    yield Case(np.array([1, 4]), values, np.int32(5), np.zeros(0, np.float32), invalid=True)
    yield Case(np.array([0, 3]), values, np.int32(5), np.zeros(0, np.float32), invalid=True)
    yield Case(np.array([0, 2, 4]), -values, np.int32(5), np.zeros(0, np.float32), invalid=True)


@cases("InplaceUpdate", "InplaceAdd", "InplaceSub")
def _(rng, op):
    for dtype in [np.float32, np.float64, np.int32, np.int64]:
        yield Case(random(rng, (4, 3), dtype), np.array([2, 0], np.int32), random(rng, (2, 3), dtype))
        yield Case(random(rng, (4,), dtype), np.array([1, 1, 3], np.int32), random(rng, (3,), dtype))
    yield Case(random(rng, (4, 3)), np.zeros(0, np.int32), random(rng, (0, 3)))
    yield Case(random(rng, (4, 3)), np.array([2, 0], np.int32), random(rng, (2, 2)), invalid=True)


@cases("ScatterNdNonAliasingAdd")
def _(rng, op):
    for dtype in [np.float32, np.float64, np.int32, np.complex64]:
        real = random(rng, (4, 3), np.float32).astype(dtype)
        yield Case(real, np.array([[2], [0]]), real[:2])
        yield Case(real, np.array([[2, 1], [2, 1]], np.int32), real[:2, 0])
    yield Case(random(rng, (4, 3)), np.array([[7]]), random(rng, (1, 3)), invalid=True)

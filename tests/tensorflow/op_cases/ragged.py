"""Calls of ops on ragged tensors: values, and splits that say where the rows begin and end."""
import numpy as np

from .case import *


def longs(*values):
    return np.array(values, np.int64)


def ints(*values):
    return np.array(values, np.int32)


def floats(*values):
    return np.array(values, np.float32)


@cases("RaggedRange")
def _(rng, op):
    most = 2**31 - 1
    for Tsplits in [tf.int64, tf.int32]:
        for dtype in WIDE + [np.int32, np.int64]:
            yield Case(np.array([0, 5, 8], dtype), np.array([3, 5, 4], dtype), np.array([1, 1, -2], dtype), Tsplits=Tsplits)
            yield Case(dtype(0), np.array([3, 0, -2], dtype), dtype(2), Tsplits=Tsplits)
            yield Case(dtype(1), dtype(8), dtype(3), Tsplits=Tsplits)
            yield Case(np.zeros(0, dtype), dtype(8), dtype(3), Tsplits=Tsplits)
        yield Case(longs(0), longs(2**40), longs(1), Tsplits=tf.int32, invalid=True)
    yield Case(floats(0, 1, 5), floats(1, 1, 0), floats(0.1, 1, -2))
    yield Case(floats(0), floats(1), floats(np.inf))
    yield Case(ints(-most - 1), ints(most), ints(most))  # the distance is no int32
    yield Case(ints(most), ints(-most - 1), ints(-most - 1))
    yield Case(longs(-2**63), longs(2**63 - 1), longs(2**62))
    yield Case(longs(2**63 - 1), longs(-2**63), longs(-2**63))
    yield Case(np.int64(0), longs(2**62, 2**62, 2**62, 2**62), np.int64(1), invalid=True)
    yield Case(np.int64(0), longs(2**55), np.int64(1), invalid=True)  # more memory than there is
    yield Case(np.int64(0), longs(2**30, 2**30), np.int64(1), Tsplits=tf.int32, invalid=True)
    yield Case(ints(0, 0), ints(5, 5, 5), np.int32(1), invalid=True)
    yield Case(ints(0, 0), ints(5, 5), ints(1), invalid=True)
    yield Case(ints(0, 0), ints(5, 5), ints(1, 0), invalid=True)
    yield Case(np.zeros((1, 1), np.int32), np.int32(5), np.int32(1), invalid=True)
    for limit, delta in [(1, np.nan), (np.inf, 1), (np.nan, 1), (1e30, 1)]:
        yield Case(floats(0), floats(limit), floats(delta), invalid=True)


@cases("RaggedGather")
def _(rng, op):
    def case(splits, values, indices, **more):
        return Case(splits, values, indices, OUTPUT_RAGGED_RANK=len(splits) + np.ndim(indices) - 1, **more)
    values = random(rng, (4,))
    for splits_dtype in [np.int64, np.int32]:
        for indices in [longs(1, 0, 1), ints(0), np.int32(1), np.array([[1, 0], [0, 0]]), longs(), np.zeros((2, 0, 3), np.int64)]:
            yield case([np.array([0, 1, 4], splits_dtype)], values, indices)
            yield case([np.array([0, 1, 3], splits_dtype), np.array([0, 1, 1, 4], splits_dtype)], random(rng, (4, 2)), indices)
    for dtype in [np.int8, np.float16, bf16, np.bool_, np.int64, object]:
        yield case([longs(0, 3, 3, 4)], random(rng, (4, 2), dtype), longs(2, 0, 0))
    yield case([longs(0, 1, 1), longs(0, 2), longs(0, 1, 3)], random(rng, (3,)), longs(0, 1, 0))
    yield case([longs(1, 1, 4)], values, longs(0, 1))
    yield case([longs(0, 1, 2)], values, longs(1))
    yield case([longs(0)], values, longs())
    yield case([longs(0, 0, 0)], floats(), longs(1))
    yield case([longs(0, 1, 2)], random(rng, (2, 0)), longs(0, 1))
    for indices in [longs(2), longs(-1), longs(2**62), ints(0, 5)]:
        yield case([longs(0, 1, 4)], values, indices, invalid=True)
    for splits in [longs(0, 1, 5), longs(0, 1, 2**62), longs(-1, 1, 4), longs(0, 3, 2), longs()]:
        yield case([splits], values, longs(), invalid=True)
        yield case([splits, longs(0, 1, 1, 4)], values, longs(), invalid=True)
    yield case([longs(0, 1, 4)], np.float32(3), longs(0), invalid=True)


@cases("RaggedTensorToSparse")
def _(rng, op):
    for splits_dtype in [np.int64, np.int32]:
        yield Case([np.array([0, 1, 1, 4], splits_dtype)], random(rng, (4,)))
        yield Case([np.array([0, 1, 1, 4], splits_dtype)], random(rng, (4, 2, 3)))
        yield Case([np.array([0, 1, 3], splits_dtype), np.array([0, 1, 1, 4], splits_dtype)], random(rng, (4,)))
    for dtype in [np.int8, np.float16, bf16, np.bool_, np.int64, object]:
        yield Case([longs(0, 3, 3, 4)], random(rng, (4, 2), dtype))
    yield Case([longs(0, 0, 2, 2), longs(0, 0, 4)], random(rng, (4,)))
    yield Case([longs(0, 2, 2), longs(0, 3, 4), longs(0, 0, 2, 2, 5)], random(rng, (5, 1)))
    yield Case([longs(0, 0, 0)], floats())
    yield Case([longs(0)], floats())
    yield Case([longs(0), longs(0)], floats())
    yield Case([longs(0, 2)], random(rng, (2, 0, 3)))
    for splits in [longs(), longs(1, 4), longs(0, 3), longs(0, 5), longs(0, 3, 2, 4), longs(0, 2**62), longs(0, -1, 4), longs(-4, 4)]:
        yield Case([splits], random(rng, (4,)), invalid=True)
    yield Case([longs(0, 2), longs(0, 4)], random(rng, (4,)), invalid=True)
    yield Case([longs(0, 2), longs(0, 0, 2, 4)], random(rng, (4,)), invalid=True)


@cases("RaggedTensorToTensor")
def _(rng, op):
    def case(shape, values, default, parts, *kinds, **more):
        return Case(np.asarray(shape, more.pop("shape_dtype", np.int64)), values, default, parts,
                    row_partition_types=list(kinds) or ["ROW_SPLITS"] * len(parts), **more)
    by_ids = ("FIRST_DIM_SIZE", "VALUE_ROWIDS")
    zero = np.float32(0)
    values = random(rng, (4,))
    for index in [np.int64, np.int32]:
        for shape in [[-1, -1], [3, -1], [-1, 2], [2, 1], [5, 6], [0, 0], [2, 0], -1]:
            yield case(shape, values, np.float32(7), [np.array([0, 1, 1, 4], index)], shape_dtype=index)
            yield case(shape, values, np.float32(7), [index(3), np.array([0, 2, 2, 2], index)], *by_ids)
        yield case([-1, -1, -1], values, zero, [np.array([0, 1, 3], index), np.array([0, 1, 1, 4], index)])
        yield case([-1, 1, 2], values, zero, [np.array([0, 1, 3], index), np.array([0, 1, 1, 4], index)])
        yield case([-1, -1, 2], values, zero, [index(2), np.array([0, 1, 1], index), np.array([0, 0, 2, 2], index)], *by_ids, "VALUE_ROWIDS")
        yield case([-1, -1, 2], values, zero, [index(2), np.array([0, 1, 1], index), np.array([0, 1, 1, 4], index)], *by_ids, "ROW_SPLITS")
        yield case([-1, -1, -1], values, zero, [np.array([0, 1, 3], index), np.array([0, 0, 2, 2], index)], "ROW_SPLITS", "VALUE_ROWIDS")
    for dtype in [np.int8, np.float16, bf16, np.bool_, np.int64, object]:
        yield case([-1, -1], random(rng, (4,), dtype), random(rng, (), dtype), [longs(0, 3, 3, 4)])
        yield case([-1, -1, 2], random(rng, (4, 2), dtype), random(rng, (2,), dtype), [longs(0, 3, 3, 4)])
    for default in [(), (1,), (2,), (1, 3), (2, 1), (2, 3), (1, 1)]:
        yield case([-1, -1, -1, -1], random(rng, (4, 2, 3)), random(rng, default), [longs(0, 0, 3, 4)], invalid=default == (2,))
    yield case([-1, -1, 2], random(rng, (4, 2, 1)), zero, [longs(0, 0, 3, 4)], invalid=True)
    yield case([-1, -1, 2, 1], random(rng, (4, 2, 1)), floats(1, 2), [longs(0, 0, 3, 4)])  # as many elements, another rank
    yield case([-1, -1], floats(), zero, [longs(0, 0, 0)])
    yield case([4, 2], floats(), zero, [longs(0, 0, 0)])
    yield case([-1, -1], floats(), zero, [longs(0)])
    yield case([-1, -1], floats(), zero, [np.int64(3), longs()], *by_ids)
    yield case([3, 2], values, zero, [np.int64(3), longs()], *by_ids)
    yield case([-1, -1, -1], random(rng, (0, 2)), zero, [longs(0, 0)])
    yield case([-1, -1, -1], random(rng, (3, 0)), zero, [longs(0, 3)])
    yield case([-1, -1], values, zero, [longs(0, 1, 2)])  # values that no row has
    yield case([-1, -1], values, zero, [np.int64(3), longs(0, 0)], *by_ids)
    yield case([2, -1, -1, 2], random(rng, (2, 2)), floats(7, 8), [longs(0, 0, 3), longs(0, 1, 2)])
    for shape in [[-2, -1], [-1, -1, -1], [-1], [2**40, 2**40], [[-1, -1]], 3]:
        yield case(shape, values, zero, [longs(0, 1, 4)], invalid=True)
    yield case([-1, -1, 3], random(rng, (4, 2)), zero, [longs(0, 1, 4)], invalid=True)
    for parts in [longs(1, 2, 4), longs(0, 2, 1, 3), longs()]:
        yield case([-1, -1], values, zero, [parts], invalid=True)
    yield case([-1, -1, -1], values, zero, [longs(0, 1), longs(0, 1, 4)], invalid=True)
    yield case([-1, -1, 2], values, zero, [longs(0, 1), longs()], invalid=True)
    for size, ids in [(3, longs(0, 0, 3)), (3, longs(-1, 0)), (3, longs(2**62)), (0, longs(0))]:
        yield case([3, -1], values, zero, [np.int64(size), ids], *by_ids, invalid=True)
    yield case([-1, -1], values, zero, [np.int64(-3), longs(0)], *by_ids, invalid=True)
    yield case([-1, -1], values, floats(0), [longs(0, 1, 4)], invalid=True)
    yield case([-1, -1], zero, zero, [longs(0, 1, 4)], invalid=True)

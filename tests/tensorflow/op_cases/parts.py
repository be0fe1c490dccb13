"""Calls of ops on shapes and on parts of tensors."""
import itertools

import numpy as np
import tensorflow as tf

from .case import *


# ---- shapes, parts of tensors ----

@cases("Shape", "Size", "Rank")
def _(rng, op):
    for dtype in [np.float32, np.bool_, object]:
        for shape in SHAPES:
            yield Case(random(rng, shape, dtype))
    if op != "Rank":
        yield Case(random(rng, (2, 3)), out_type=tf.int64)


@cases("ShapeN")
def _(rng, op):
    yield Case([random(rng, (2, 3)), random(rng, ())])
    yield Case([random(rng, (2, 3)), random(rng, (0,))], out_type=tf.int64)


@cases("Reshape")
def _(rng, op):
    for dtype in [np.float32, np.bool_, object]:
        yield Case(random(rng, (3, 4), dtype), np.array([2, 6]))
    for shape in [[-1], [2, -1], [4, -1, 1], [12, 1, 1]]:
        yield Case(random(rng, (3, 4)), np.array(shape, np.int32))
    yield Case(random(rng, ()), np.array([], np.int32))
    yield Case(random(rng, (1,)), np.array([], np.int32))
    yield Case(random(rng, (0, 3)), np.array([3, 0], np.int32))
    yield Case(random(rng, (0, 3)), np.array([3, -1], np.int32))
    for shape in [[5], [-1, -1], [-2, -6], [5, -1], [[12]]]:
        yield Case(random(rng, (3, 4)), np.array(shape, np.int32), invalid=True)
    yield Case(random(rng, (0, 3)), np.array([0, -1], np.int32))


@cases("ExpandDims")
def _(rng, op):
    for axis in [0, 1, 2, -1, -3]:
        yield Case(random(rng, (3, 4)), np.int32(axis))
    yield Case(random(rng, (3, 4)), np.array([1], np.int64))
    yield Case(random(rng, (), object), np.int32(0))
    for axis in [3, -4]:
        yield Case(random(rng, (3, 4)), np.int32(axis), invalid=True)
    yield Case(random(rng, (3, 4)), np.array([0, 1], np.int32), invalid=True)


@cases("Squeeze")
def _(rng, op):
    for axes in [[], [1], [-1], [1, 3], [3, 1]]:
        yield Case(random(rng, (2, 1, 3, 1)), squeeze_dims=axes)
    yield Case(random(rng, (1, 1), object))
    yield Case(random(rng, ()))
    for axes in [[0], [4], [-5]]:
        yield Case(random(rng, (2, 1, 3, 1)), squeeze_dims=axes, invalid=True)


@cases("Fill")
def _(rng, op):
    for dtype in [np.float32, np.int64, np.bool_, object]:
        yield Case(np.array([2, 3]), random(rng, (), dtype))
    yield Case(np.array([], np.int32), random(rng, ()))
    yield Case(np.array([0, 2], np.int32), random(rng, ()))
    yield Case(np.array([2, -1], np.int32), random(rng, ()), invalid=True)
    yield Case(np.array([2], np.int32), random(rng, (2,)), invalid=True)
    yield Case(np.array([[2]], np.int32), random(rng, ()), invalid=True)


@cases("Range")
def _(rng, op):
    for dtype in [np.int32, np.int64, np.float32, np.float64]:
        for values in [(0, 5, 1), (3, 18, 3), (5, 0, -2), (0, 0, 1)]:
            yield Case(*(np.asarray(v, dtype) for v in values), gradient=False)
    yield Case(np.float32(0), np.float32(1), np.float32(0.1), gradient=False)
    for values in [(0, 5, 0), (5, 0, 1), (0, 5, -1)]:
        yield Case(*(np.int32(v) for v in values), invalid=True)


@cases("Transpose")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(random(rng, (2, 3, 4), dtype), np.array([2, 0, 1]))
    for perm in itertools.permutations(range(3)):
        yield Case(random(rng, (2, 3, 4)), np.array(perm, np.int32))
    yield Case(random(rng, (30, 50)), np.array([1, 0]))
    yield Case(random(rng, ()), np.array([], np.int32))
    yield Case(random(rng, (0, 3)), np.array([1, 0]))
    yield Case(random(rng, (2, 1, 3, 2, 1, 2, 1, 3, 2)), np.array([8, 0, 3, 1, 7, 2, 6, 4, 5]))
    yield Case(random(rng, (2, 3)), np.array([-1, 0], np.int32))
    for perm in [[0], [0, 0], [0, 2], [0, 1, 2]]:
        yield Case(random(rng, (2, 3)), np.array(perm, np.int32), invalid=True)


@cases("InvertPermutation")
def _(rng, op):
    for dtype in [np.int32, np.int64]:
        yield Case(np.array([2, 0, 3, 1], dtype))
    yield Case(np.array([], np.int32))
    for x in [[0, 0], [0, 2], [-1, 0], [[0]]]:
        yield Case(np.array(x, np.int32), invalid=True)


@cases("Pad", "PadV2")
def _(rng, op):
    def case(x, paddings, **kw):
        more = [random(rng, (), x.dtype.type)] if op == "PadV2" else []
        return Case(x, np.array(paddings), *more, **kw)
    for dtype in [np.float32, np.float16, np.int32, np.uint8, np.bool_]:
        yield case(random(rng, (2, 3), dtype), [[1, 0], [2, 3]])
    yield case(random(rng, (2, 3)), [[0, 0], [0, 0]])
    yield case(random(rng, (0, 3)), [[1, 0], [0, 0]])
    yield case(random(rng, (2, 3)), [[1, 0]], invalid=True)
    yield case(random(rng, (2, 3)), [[1, -1], [0, 0]], invalid=True)


@cases("Tile")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(random(rng, (2, 3), dtype), np.array([2, 3]), gradient=dtype in WIDE)
    for multiples in [[1, 1], [0, 2], [3, 1], [1, 4]]:
        yield Case(random(rng, (2, 3)), np.array(multiples, np.int32))
    yield Case(random(rng, ()), np.array([], np.int32))
    yield Case(random(rng, (1, 2, 1, 3, 2, 1, 2)), np.array([2, 1, 3, 1, 2, 2, 1]))  # the gradient's Reshape has rank 14
    for multiples in [[2], [-1, 2], [1, 2, 3]]:
        yield Case(random(rng, (2, 3)), np.array(multiples, np.int32), invalid=True)


@cases("Pack")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case([random(rng, (2, 3), dtype) for _ in range(3)], axis=1)
    for axis in [0, 2, -1, -3]:
        yield Case([random(rng, (2, 3))] * 2, axis=axis)
    yield Case([random(rng, ())] * 4)
    yield Case([random(rng, (0, 3))] * 2)
    yield Case([random(rng, (2,)), random(rng, (3,))], invalid=True)
    yield Case([random(rng, (2,))] * 2, axis=2, invalid=True)


@cases("ParallelConcat")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case([random(rng, (1, 3), dtype) for _ in range(3)], shape=[3, 3])
    yield Case([random(rng, (1, 2, 0))] * 2, shape=[2, 2, 0])
    yield Case([random(rng, (1,))], shape=[1])


@cases("Unpack")
def _(rng, op):
    for dtype in [np.float32, np.int64, object]:
        yield Case(random(rng, (3, 2), dtype), num=3)
    yield Case(random(rng, (2, 3, 2)), num=3, axis=1)
    yield Case(random(rng, (2, 3, 2)), num=2, axis=-1)
    yield Case(random(rng, (3, 0)), num=3)
    yield Case(random(rng, (3, 2)), num=2, invalid=True)
    yield Case(random(rng, (3, 2)), num=2, axis=2, invalid=True)


@cases("Concat")
def _(rng, op):
    for case in CASES["ConcatV2"](rng, op):
        axis = np.asarray(case.inputs[1])
        if axis.dtype == np.int32 and axis.ndim == 0:
            yield Case(axis, case.inputs[0], gradient=case.gradient, invalid=case.invalid, static=case.static)


@cases("ConcatV2")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case([random(rng, (2, 3), dtype), random(rng, (2, 1), dtype)], np.int32(1), gradient=dtype in WIDE)
    for axis in [0, 1, -1, -2]:
        yield Case([random(rng, (2, 2))] * 3, np.int64(axis))
    yield Case([random(rng, (0, 2)), random(rng, (3, 2))], np.int32(0))
    yield Case([random(rng, (2, 3)), random(rng, (3, 3))], np.int32(1), invalid=True)
    yield Case([random(rng, (2, 3)), random(rng, (2,))], np.int32(0), invalid=True)
    yield Case([random(rng, (2, 3))] * 2, np.int32(2), invalid=True)
    yield Case([random(rng, ())] * 2, np.int32(0), invalid=True)


@cases("ConcatOffset")
def _(rng, op):
    yield Case(np.int32(1), [np.array([2, 3], np.int32), np.array([2, 5], np.int32)])
    yield Case(np.int32(-2), [np.array([2, 3], np.int32), np.array([4, 3], np.int32)])
    yield Case(np.int32(0), [np.array([2, 3], np.int32), np.array([2, 5], np.int32)], invalid=True)
    yield Case(np.int32(1), [np.array([2, 3], np.int32), np.array([2], np.int32)], invalid=True)
    yield Case(np.int32(0), [np.array([2], np.int32), np.array([2, 3], np.int32)], invalid=True)


@cases("Split")
def _(rng, op):
    for dtype in [np.float32, np.int16, np.bool_, object]:
        yield Case(np.int32(1), random(rng, (3, 4), dtype), num_split=2)
    for axis, n in [(0, 3), (-1, 4), (1, 1)]:
        yield Case(np.int32(axis), random(rng, (3, 4)), num_split=n)
    yield Case(np.int32(0), random(rng, (0, 4)), num_split=3)
    yield Case(np.int32(0), random(rng, (3, 4)), num_split=2, invalid=True)
    yield Case(np.int32(2), random(rng, (3, 4)), num_split=2, invalid=True)


@cases("SplitV")
def _(rng, op):
    for dtype in [np.float32, np.int16, np.bool_, object]:
        yield Case(random(rng, (3, 6), dtype), np.array([1, 2, 3]), np.int32(1), num_split=3)
    yield Case(random(rng, (3, 6)), np.array([1, -1], np.int32), np.int32(-1), num_split=2)
    yield Case(random(rng, (3, 6)), np.array([3], np.int32), np.int32(0), num_split=1)
    yield Case(random(rng, (3, 6)), np.array([0, 3], np.int32), np.int32(0), num_split=2)
    for sizes in [[1, 1], [-1, -1], [7, -1], [2, -2], [1, 2, 3]]:
        yield Case(random(rng, (3, 6)), np.array(sizes), np.int32(1), num_split=2, invalid=True)
    yield Case(random(rng, (3, 6)), np.array([3, 3]), np.int32(2), num_split=2, invalid=True)


@cases("ReverseV2")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(random(rng, (3, 4), dtype), np.array([1]))
    for axes in [[], [0], [-1], [0, 1], [0, 2, 1]]:
        yield Case(random(rng, (2, 3, 4)), np.array(axes, np.int32))
    yield Case(random(rng, ()), np.array([], np.int32))
    yield Case(random(rng, (0, 3)), np.array([0]))
    for axes in [[2], [-3], [0, 0], [0, -2]]:
        yield Case(random(rng, (2, 3)), np.array(axes, np.int32), invalid=True)


@cases("Slice")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(random(rng, (3, 4), dtype), np.array([1, 0]), np.array([2, 3]), gradient=dtype in WIDE)
    for begin, size in [([0, 0], [3, 4]), ([1, 1], [-1, -1]), ([3, 0], [0, 4]), ([2, 3], [1, 1]), ([0, 1], [3, -1])]:
        yield Case(random(rng, (3, 4)), np.array(begin, np.int32), np.array(size, np.int32))
    for begin, size in [([0, 0], [4, 4]), ([-1, 0], [1, 1]), ([0], [1]), ([0, 0], [-2, 1]), ([4, 0], [0, 0])]:
        yield Case(random(rng, (3, 4)), np.array(begin, np.int32), np.array(size, np.int32), invalid=True)


@cases("StridedSlice")
def _(rng, op):
    masks = ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"]
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(random(rng, (3, 4), dtype), np.array([1, 3]), np.array([3, 0]), np.array([1, -2]), gradient=dtype in WIDE)
    for _ in range(40):
        n = rng.integers(1, 4)
        attrs = {m: int(rng.integers(0, 2**n)) for m in masks if rng.random() < 0.4}
        ellipsis = attrs.get("ellipsis_mask", 0)
        attrs["ellipsis_mask"] = ellipsis & -ellipsis  # one at most
        step = rng.choice([-3, -2, -1, 1, 2, 3], n)
        if attrs.get("shrink_axis_mask"):
            step = np.abs(step)
            step = np.where([(attrs["shrink_axis_mask"] >> i) & 1 for i in range(n)], 1, step)
            begin = rng.integers(-2, 2, n)
        else:
            begin = rng.integers(-5, 6, n)
        yield Case(random(rng, (3, 4, 2)), begin.astype(np.int32), rng.integers(-5, 6, n).astype(np.int32), step.astype(np.int32), **attrs)
    yield Case(random(rng, (3,)), np.array([0]), np.array([2]), np.array([0]), invalid=True)
    yield Case(random(rng, (3,)), np.array([0, 0]), np.array([2, 2]), np.array([1, 1]), invalid=True)
    yield Case(random(rng, (3,)), np.array([5]), np.array([6]), np.array([1]), shrink_axis_mask=1, invalid=True)
    yield Case(random(rng, (3,)), np.array([0]), np.array([2, 2]), np.array([1]), invalid=True)


@cases("StridedSliceGrad")
def _(rng, op):
    yield Case(np.array([3, 4], np.int32), np.array([1, 3], np.int32), np.array([3, 0], np.int32), np.array([1, -2], np.int32), random(rng, (2, 2)))
    yield Case(np.array([3, 4], np.int32), np.array([1, 3], np.int32), np.array([3, 0], np.int32), np.array([1, -2], np.int32), random(rng, (2, 1)), invalid=True)


@cases("Gather")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(random(rng, (5, 2), dtype), np.array([4, 0, 0, 2]), gradient=dtype in WIDE)
    yield Case(random(rng, (5,)), np.int32(3))
    yield Case(random(rng, (5, 2)), np.zeros((0, 3), np.int32))
    for index in [5, -1]:
        yield Case(random(rng, (5, 2)), np.array([0, index], np.int32), invalid=True)
    yield Case(random(rng, ()), np.array([0]), invalid=True)


@cases("GatherV2")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(random(rng, (3, 5), dtype), np.array([[4, 0], [0, 2]]), np.int32(1), gradient=dtype in WIDE)
    for axis in [0, 1, 2, -1]:
        yield Case(random(rng, (3, 4, 5)), np.array([2, 0, 1], np.int32), np.int64(axis))
    yield Case(random(rng, (3, 4)), np.array([[0, 1], [3, 3], [2, 0]], np.int32), np.int32(1), batch_dims=1)
    yield Case(random(rng, (2, 3, 4)), np.array([[0, 1], [2, 2]], np.int32), np.int32(1), batch_dims=1)
    yield Case(random(rng, (3, 4)), np.zeros((0,), np.int32), np.int32(0))
    yield Case(random(rng, (3, 4)), np.array([4], np.int32), np.int32(1), invalid=True)
    yield Case(random(rng, (3, 4)), np.array([-1], np.int32), np.int32(0), invalid=True)
    yield Case(random(rng, (3, 4)), np.array([0], np.int32), np.int32(2), invalid=True)
    yield Case(random(rng, (3, 4)), np.array([[0], [1]], np.int32), np.int32(1), batch_dims=1, invalid=True)


@cases("Where")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_]:
        yield Case(random(rng, (4, 5), dtype, -1, 1))
    for shape in [(0,), (3,), (2, 2, 2), (2, 0)]:
        yield Case(random(rng, shape, np.bool_))
    yield Case(np.array(True), invalid=True)
    yield Case(np.array([np.nan, 0.0, -0.0, np.inf], np.float32))


@cases("DynamicStitch", "ParallelDynamicStitch")
def _(rng, op):
    for dtype in [np.float32, np.int64, object]:
        yield Case([np.array([0, 3], np.int32), np.array([[1], [2]], np.int32)], [random(rng, (2, 2), dtype), random(rng, (2, 1, 2), dtype)])
    if op == "DynamicStitch":
        yield Case([np.array([0, 1], np.int32), np.array([1], np.int32)], [random(rng, (2,)), random(rng, (1,))], gradient=False)
    yield Case([np.int32(0), np.int32(1)], [random(rng, (3,)), random(rng, (3,))])
    yield Case([np.array([0, 1], np.int32)], [random(rng, (3,))], invalid=True)
    yield Case([np.array([0, -1], np.int32)], [random(rng, (2,))], invalid=True)


@cases("DynamicPartition")
def _(rng, op):
    for dtype in [np.float32, np.int16, np.bool_, object]:
        yield Case(random(rng, (5, 2), dtype), np.array([1, 0, 2, 1, 0], np.int32), num_partitions=4)
    yield Case(random(rng, (2, 2)), np.array([[1, 0], [1, 1]], np.int32), num_partitions=2)
    yield Case(random(rng, (3,)), np.int32(1), num_partitions=2)
    yield Case(random(rng, (0, 2)), np.zeros(0, np.int32), num_partitions=2)
    for partition in [[0, 2], [0, -1], [0]]:
        yield Case(random(rng, (2, 2)), np.array(partition, np.int32), num_partitions=2, invalid=True)


@cases("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMin", "SegmentMax")
def _(rng, op):
    for dtype in NUMBERS:
        yield Case(random(rng, (4, 3), dtype), np.array([0, 0, 1, 3]), gradient=dtype in WIDE)
    for dtype in INTS:  # sums and products of them wrap around
        yield Case(np.array([np.iinfo(dtype).max, 3, 5], dtype), np.array([0, 0, 0]))
    yield Case(random(rng, (0, 3)), np.zeros(0, np.int32), gradient=False)
    yield Case(random(rng, (2,)), np.array([2, 2], np.int32))
    yield Case(random(rng, (7, 2, 3)), np.array([0, 0, 0, 1, 1, 1, 1], np.int32))
    yield Case(np.array([0, 2, 3, 0, 0, 5, 4, 4, 1], np.float32), np.array([0, 0, 0, 1, 1, 1, 2, 2, 2]))
    for ids in [[1, 0], [-1, 0], [0], [[0], [1]]]:
        yield Case(random(rng, (2, 3)), np.array(ids, np.int32), invalid=True)


@cases("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMin", "UnsortedSegmentMax")
def _(rng, op):
    for dtype in NUMBERS:
        yield Case(random(rng, (4, 3), dtype), np.array([2, 0, 2, -1]), np.int32(4), gradient=dtype in WIDE)
    for dtype in INTS:
        yield Case(np.array([np.iinfo(dtype).max, 3, 5], dtype), np.array([0, 0, 0]), np.int32(1))
    yield Case(random(rng, (2, 2, 3)), np.array([[0, 1], [1, 1]], np.int32), np.int64(2))
    yield Case(random(rng, (0, 3)), np.zeros(0, np.int32), np.int32(2))
    yield Case(np.array([0, 2, 3, 0, 0, 5, 4, 4, 1], np.float32), np.array([0, 3, 0, 1, 1, -1, 2, 2, 2]), np.int32(4),
               gradient=op != "UnsortedSegmentProd")
    yield Case(random(rng, (2, 3)), np.array([0, 2], np.int32), np.int32(2), invalid=True)
    yield Case(random(rng, (2, 3)), np.array([0], np.int32), np.int32(2), invalid=True)
    yield Case(random(rng, (2, 3)), np.array([0, 1], np.int32), np.int32(-1), invalid=True)


@cases("Unique")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(random(rng, (9,), dtype))
    yield Case(np.array([3, 1, 3, 2], np.int64), out_idx=tf.int64)
    yield Case(np.array([np.nan, 0.0, -0.0, np.nan], np.float32))
    yield Case(np.zeros(0, np.float32))
    yield Case(random(rng, (2, 2)), invalid=True)


@cases("ListDiff")
def _(rng, op):
    for dtype in NUMBERS + [object]:
        yield Case(random(rng, (9,), dtype), random(rng, (3,), dtype))
    yield Case(random(rng, (9,), np.int32), random(rng, (0,), np.int32), out_idx=tf.int64)
    yield Case(random(rng, (2, 2)), random(rng, (3,)), invalid=True)


@cases("ScatterNd")
def _(rng, op):
    for dtype in [np.float32, np.float16, np.int32, object]:
        yield Case(np.array([[2], [0], [2]], np.int32), random(rng, (3, 2), dtype), np.array([3, 2], np.int32))
    yield Case(np.array([[[0, 1], [1, 1]]]), random(rng, (1, 2)), np.array([2, 2]))
    yield Case(np.zeros((0, 1), np.int32), random(rng, (0, 2)), np.array([3, 2], np.int32))
    for index in [3, -1]:
        yield Case(np.array([[index]], np.int32), random(rng, (1, 2)), np.array([3, 2], np.int32), invalid=True)
    yield Case(np.array([[0], [1]], np.int32), random(rng, (3, 2)), np.array([3, 2], np.int32), invalid=True)


@cases("GatherNd")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(random(rng, (3, 4, 2), dtype), np.array([[0, 1], [2, 3]]), gradient=dtype in WIDE)
    for shape in [(2, 1), (2, 3), (2, 2, 1), (2, 0), (0, 2)]:
        yield Case(random(rng, (3, 4, 2)), rng.integers(0, 2, shape).astype(np.int32))
    for index in [[[3]], [[-1]], [[0, 4]], [[0, 0, 0, 0]]]:
        yield Case(random(rng, (3, 4, 2)), np.array(index, np.int32), invalid=True)
    yield Case(random(rng, (3, 4, 2)), np.int32(0), invalid=True)
    yield Case(random(rng, (3, 0)), np.array([[0]], np.int32), invalid=True)
    yield Case(random(rng, (3, 0)), np.zeros((0, 1), np.int32))


@cases("OneHot")
def _(rng, op):
    for dtype in [np.float32, np.int64, np.bool_]:
        yield Case(np.array([0, 2, 5, -1]), np.int32(3), random(rng, (), dtype), random(rng, (), dtype))
    for axis in [-1, 0, 1, 2]:
        yield Case(np.array([[0, 1], [2, 0]], np.int32), np.int32(3), np.float32(1), np.float32(0), axis=axis)
    yield Case(np.uint8(1), np.int32(3), np.float32(1), np.float32(0))
    yield Case(np.zeros(0, np.int32), np.int32(3), np.float32(1), np.float32(0))
    yield Case(np.array([0]), np.int32(0), np.float32(1), np.float32(0))
    yield Case(np.array([0]), np.int32(-1), np.float32(1), np.float32(0), invalid=True)
    yield Case(np.array([0]), np.int32(2), np.float32([1]), np.float32(0), invalid=True)
    yield Case(np.array([0]), np.int32(2), np.float32(1), np.float32(0), axis=3, invalid=True)


@cases("BroadcastGradientArgs")
def _(rng, op):
    for s0, s1 in [([2, 3], [3]), ([1, 4], [2, 3, 1]), ([], [2]), ([2], [2]), ([1], []), ([0, 1], [3])]:
        yield Case(np.array(s0, np.int32), np.array(s1, np.int32))
    yield Case(np.array([2], np.int32), np.array([3], np.int32), invalid=True)


@cases("IdentityN")
def _(rng, op):
    yield Case([random(rng, (2, 3)), random(rng, (2,), object)])


@cases("PlaceholderWithDefault")
def _(rng, op):
    yield Case(random(rng, (2, 3)), shape=[None, 3])


@cases("Assert")
def _(rng, op):
    yield Case(np.array(True), [random(rng, (2,)), random(rng, (), object)])
    yield Case(np.array(False), [random(rng, (2,))], invalid=True)


# ---- ranges and places ----

@cases("Bucketize")
def _(rng, op):
    for dtype in [np.int32, np.int64, np.float32, np.float64]:
        yield Case(random(rng, (3, 7), dtype, -4, 9), boundaries=[-2.0, 0.5, 1.0, 1.0, 6.0])
    yield Case(special(np.float32), boundaries=[0.0, 1.0])
    yield Case(random(rng, (3,)), boundaries=[])
    yield Case(random(rng, (3,)), boundaries=[1.0, 0.0], invalid=True)


@cases("HistogramFixedWidth")
def _(rng, op):
    for dtype, out in itertools.product([np.int32, np.int64, np.float32, np.float64], [tf.int32, tf.int64]):
        yield Case(random(rng, (3, 27), dtype, -4, 12), np.array([-1, 9], dtype), np.int32(7), dtype=out)
    yield Case(np.array([np.inf, -np.inf, 0, 5, 4.999], np.float32), np.array([0, 5], np.float32), np.int32(5))
    yield Case(random(rng, (0,)), np.array([0, 5], np.float32), np.int32(3))
    yield Case(np.array([1, np.nan], np.float32), np.array([0, 5], np.float32), np.int32(5), invalid=True)
    for limits, bins in [([5, 5], 3), ([5, 0], 3), ([0, 5], 0), ([0, 5], -2), ([0, 1, 5], 3)]:
        yield Case(random(rng, (4,)), np.array(limits, np.float32), np.int32(bins), invalid=True)
    yield Case(random(rng, (4,)), np.array([0, 5], np.float32), np.array([3], np.int32), invalid=True)


@cases("LowerBound", "UpperBound")
def _(rng, op):
    for dtype, out in itertools.product([np.int32, np.int64, np.float32, np.float64, np.int8, np.int16, np.uint8], [tf.int32, tf.int64]):
        yield Case(np.sort(random(rng, (3, 9), dtype), axis=1), random(rng, (3, 5), dtype), out_type=out)
    yield Case(random(rng, (3, 0)), random(rng, (3, 2)))
    yield Case(random(rng, (3, 4)), random(rng, (2, 2)), invalid=True)
    yield Case(random(rng, (4,)), random(rng, (4,)), invalid=True)


@cases("NthElement")
def _(rng, op):
    for dtype, reverse in itertools.product([np.float32, np.float64, np.int32, np.int64, np.uint8, np.int8, np.int16, np.uint16, np.float16],
                                            [False, True]):
        yield Case(random(rng, (2, 3, 7), dtype, -20, 20), np.int32(2), reverse=reverse, gradient=dtype in WIDE)
    yield Case(np.array([2, 2, 1, 2], np.float32), np.int32(1))
    yield Case(random(rng, (0, 3)), np.int32(1))
    for n in [3, -1]:
        yield Case(random(rng, (2, 3)), np.int32(n), invalid=True)
    yield Case(random(rng, ()), np.int32(0), invalid=True)
    yield Case(random(rng, (2, 3)), np.array([1], np.int32), invalid=True)


@cases("UnravelIndex")
def _(rng, op):
    for dtype in [np.int32, np.int64]:
        yield Case(np.array([22, 41, 37, 0], dtype), np.array([7, 6], dtype))
        yield Case(np.array(22, dtype), np.array([2, 3, 7], dtype))
    yield Case(np.zeros(0, np.int32), np.array([7, 6], np.int32), invalid=True)
    for indices, dims in [([42], [7, 6]), ([0], [7, 0]), ([[0]], [7, 2]), ([0], 5)]:
        yield Case(np.array(indices, np.int32), np.array(dims, np.int32), invalid=True)

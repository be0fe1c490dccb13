"""Calls of ops on sparse tensors, of candidate samplers, of solvers, and of those that read strings."""
import itertools
import os
import tempfile

import numpy as np
import tensorflow as tf

from .case import *


# ---- sparse tensors ----

@cases("SparseToDense")
def _(rng, op):
    indices = np.array([[0, 1], [1, 0], [1, 2]])
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(indices, np.array([2, 3]), random(rng, (3,), dtype), random(rng, (), dtype), gradient=False)
    yield Case(np.array([1, 3], np.int32), np.array([5], np.int32), random(rng, (2,)), np.float32(0))
    yield Case(np.array([1, 3], np.int32), np.array([5], np.int32), random(rng, ()), np.float32(-1), gradient=False)
    yield Case(np.int32(2), np.array([5], np.int32), random(rng, ()), np.float32(0), gradient=False)
    yield Case(np.array([3, 1, 3], np.int32), np.array([5], np.int32), random(rng, (3,)), np.float32(0), validate_indices=False, gradient=False)
    yield Case(np.zeros((0, 2), np.int64), np.array([2, 3]), np.zeros(0, np.float32), np.float32(7))
    for wrong in [[3, 1], [1, 1], [5, 6], [-1, 2]]:
        yield Case(np.array(wrong), np.array([5]), random(rng, (2,)), np.float32(0), invalid=True)
    yield Case(indices, np.array([5]), random(rng, (3,)), np.float32(0), invalid=True)
    yield Case(indices, np.array([2, 3]), random(rng, (2,)), np.float32(0), invalid=True)


@cases("SparseTensorDenseMatMul")
def _(rng, op):
    indices, shape = np.array([[0, 1], [1, 0], [1, 3], [1, 3]]), np.array([2, 4])
    for dtype in [np.float32, np.float64, np.int32]:
        yield Case(indices, random(rng, (4,), dtype), shape, random(rng, (4, 3), dtype))
    for a, b in itertools.product([False, True], [False, True]):
        rows = 2 if a else 4
        yield Case(indices, random(rng, (4,)), shape, random(rng, (3, rows) if b else (rows, 3)), adjoint_a=a, adjoint_b=b)
    yield Case(indices.astype(np.int32), random(rng, (4,)), shape, random(rng, (4, 1)))
    yield Case(np.zeros((0, 2), np.int64), np.zeros(0, np.float32), shape, random(rng, (4, 3)))
    yield Case(indices, random(rng, (4,)), shape, random(rng, (3, 3)), invalid=True)
    yield Case(indices, random(rng, (3,)), shape, random(rng, (4, 3)), invalid=True)
    for wrong in [[2, 0], [0, 4], [-1, 0]]:
        yield Case(np.array([wrong]), random(rng, (1,)), shape, random(rng, (4, 3)), invalid=True)


INDICES, DENSE_SHAPE = np.array([[2, 1], [0, 3], [2, 0], [3, 2]]), np.array([5, 4])


@cases("SparseReorder")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(INDICES, random(rng, (4,), dtype), DENSE_SHAPE, gradient=dtype in WIDE)
    yield Case(np.zeros((0, 2), np.int64), np.zeros(0, np.float32), DENSE_SHAPE)
    yield Case(np.array([[3], [1], [2]]), random(rng, (3,)), np.array([4]))
    yield Case(INDICES, random(rng, (3,)), DENSE_SHAPE, invalid=True)
    yield Case(INDICES, random(rng, (4,)), np.array([5]), invalid=True)
    yield Case(INDICES[0], random(rng, (4,)), DENSE_SHAPE, invalid=True)


@cases("SparseReshape")
def _(rng, op):
    for shape in [[4, 5], [20], [2, 5, 2], [-1, 2], [5, -1], [5, 4]]:
        yield Case(INDICES, DENSE_SHAPE, np.array(shape))
    yield Case(np.zeros((0, 2), np.int64), np.array([0, 4]), np.array([2, 0]))
    for shape in [[3, 5], [-1, -1], [-2, 10], [-1, 3]]:
        yield Case(INDICES, DENSE_SHAPE, np.array(shape), invalid=True)


@cases("SparseFillEmptyRows")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(INDICES, random(rng, (4,), dtype), DENSE_SHAPE, random(rng, (), dtype), gradient=dtype in WIDE)
    yield Case(np.zeros((0, 2), np.int64), np.zeros(0, np.float32), np.array([3, 4]), np.float32(7))
    yield Case(np.array([[0, 0], [1, 1]]), random(rng, (2,)), np.array([2, 2]), np.float32(7))
    yield Case(np.array([[1, 0, 2]]), random(rng, (1,)), np.array([3, 2, 4]), np.float32(7))
    yield Case(np.array([[5, 0]]), random(rng, (1,)), DENSE_SHAPE, np.float32(7), invalid=True)
    yield Case(np.array([[-1, 0]]), random(rng, (1,)), DENSE_SHAPE, np.float32(7), invalid=True)
    yield Case(INDICES, random(rng, (3,)), DENSE_SHAPE, np.float32(7), invalid=True)


@cases("RaggedFillEmptyRows")
def _(rng, op):
    ids, rows = np.array([3, 0, 0, 3]), np.int64(5)
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(ids, random(rng, (4,), dtype), rows, random(rng, (), dtype))
    yield Case(np.zeros(0, np.int64), np.zeros(0, np.float32), np.int64(3), np.float32(7))
    yield Case(np.array([0, 1, 1]), random(rng, (3,)), np.int64(2), np.float32(7))
    yield Case(np.zeros(0, np.int64), np.zeros(0, np.float32), np.int64(0), np.float32(7))  # in DIFFERENT
    for wrong_ids, n, wrong_rows, default in [([5], 1, 5, 7), ([-1], 1, 5, 7), ([0], 1, 0, 7), ([0], 2, 5, 7), ([0], 1, -1, 7), ([[0]], 1, 5, 7), ([0], 1, [5], 7),
                                              ([0], 1, 5, [7]), ([], 0, -2**62, 7), ([], 0, 2**62, 7), ([], 0, 2**45, 7)]:
        yield Case(np.array(wrong_ids, np.int64), random(rng, (n,)), np.array(wrong_rows, np.int64), np.array(default, np.float32), invalid=True)
    yield Case(np.array([0]), random(rng, (1, 1)), np.int64(3), np.float32(7), invalid=True)


@cases("SparseFillEmptyRowsGrad", "RaggedFillEmptyRowsGrad")
def _(rng, op):
    for dtype in FLOATS + [np.int32, np.uint8]:
        yield Case(np.array([3, 0, 1]), random(rng, (5,), dtype), gradient=False)
    yield Case(np.zeros(0, np.int64), random(rng, (3,)), gradient=False)
    yield Case(np.array([3]), random(rng, (3,)), invalid=True)
    yield Case(np.array([-1]), random(rng, (3,)), invalid=True)


@cases("SparseTensorDenseAdd")
def _(rng, op):
    for dtype in NUMBERS:
        yield Case(INDICES, random(rng, (4,), dtype), DENSE_SHAPE, random(rng, (5, 4), dtype), gradient=dtype in WIDE)
    yield Case(np.array([[1], [1]], np.int32), random(rng, (2,)), np.array([3], np.int32), random(rng, (3,)))
    yield Case(np.zeros((0, 2), np.int64), np.zeros(0, np.float32), DENSE_SHAPE, random(rng, (5, 4)))
    yield Case(INDICES, random(rng, (4,)), DENSE_SHAPE, random(rng, (4, 4)), invalid=True)
    yield Case(INDICES, random(rng, (3,)), DENSE_SHAPE, random(rng, (5, 4)), invalid=True)
    yield Case(INDICES + 2, random(rng, (4,)), DENSE_SHAPE, random(rng, (5, 4)), invalid=True)


def sparse(rng, indices, shape, dtype=np.float32):
    """The three inputs that are a sparse tensor."""
    indices = np.array(indices, np.int64)
    return [indices, random(rng, (len(indices),), dtype), np.array(shape, np.int64)]


NO_ENTRIES = np.zeros((0, 2), np.int64)
SORTED, OTHERS = [[0, 3], [2, 0], [2, 1], [3, 2]], [[0, 1], [0, 3], [2, 1], [4, 0]]


def broken(inputs, first=0):
    """The inputs with the sparse tensor that begins at `first` spoilt in each of its parts."""
    indices, values, shape = inputs[first:first + 3]
    for wrong in [[indices[:, 0], values, shape], [indices[1:], values, shape], [indices, values[:, None], shape],
                  [indices, values, shape[1:]], [indices[:, 1:], values, shape], [indices, values, shape[:, None]]]:
        yield [*inputs[:first], *wrong, *inputs[first + 3:]]


@cases("SparseAdd", "SparseSparseMaximum", "SparseSparseMinimum")
def _(rng, op):
    thresh = lambda value, dtype=np.float32: [dtype(value)] if op == "SparseAdd" else []
    for dtype in WIDE + SIGNED if op == "SparseAdd" else NUMBERS:  # TensorFlow has kernels for these
        yield Case(*sparse(rng, SORTED, [5, 4], dtype), *sparse(rng, OTHERS, [5, 4], dtype), *thresh(0, dtype), gradient=dtype in WIDE)
        yield Case(*sparse(rng, SORTED, [5, 4], dtype), *sparse(rng, SORTED, [5, 4], dtype), *thresh(2, dtype), gradient=dtype in WIDE)
    for a, b in [([[1], [1]], [[1]]), ([[0]], [[2], [1]])]:  # neither is checked
        yield Case(*sparse(rng, a, [3]), *sparse(rng, b, [3]), *thresh(0))
    for a, b in [([[-1]], [[0]]), ([[1]], [[3]])]:
        yield Case(*sparse(rng, a, [3]), *sparse(rng, b, [3]), *thresh(0), invalid=op != "SparseAdd")
    nothing = [NO_ENTRIES, np.zeros(0, np.float32), np.array([5, 4])]
    yield Case(*nothing, *sparse(rng, OTHERS, [5, 4]), *thresh(0))
    yield Case(*sparse(rng, SORTED, [5, 4]), *nothing, *thresh(0))
    yield Case(*nothing, *nothing, *thresh(0))
    values = special(np.float32)
    line = np.arange(len(values))[:, None]
    yield Case(line, values, np.array([99]), line, np.float32(1) - values, np.array([99]), *thresh(0), gradient=False)
    if op == "SparseAdd":
        yield Case(np.array([[0], [1], [2]]), np.array([-100, 100, 1], np.int8), np.array([3]),
                   np.array([[0], [1], [2]]), np.array([-28, 27, -4], np.int8), np.array([3]), np.int8(127))
        yield Case(*sparse(rng, [[0]], [3]), *sparse(rng, [[0]], [3]), np.zeros(1, np.float32), invalid=True)
    for shape in [[5, 5], [5, 4, 1]]:
        yield Case(*sparse(rng, SORTED, [5, 4]), *sparse(rng, [[0] * len(shape)], shape), *thresh(0), invalid=True)
    for inputs in broken([*sparse(rng, SORTED, [5, 4]), *sparse(rng, OTHERS, [5, 4]), *thresh(0)]):
        yield Case(*inputs, invalid=True)


@cases("SparseAddGrad")
def _(rng, op):
    sums = np.array([[0, 1], [0, 3], [2, 0], [2, 1], [3, 2], [4, 0]])
    for dtype in WIDE + SIGNED:
        yield Case(random(rng, (6,), dtype), np.array(SORTED), np.array(OTHERS), sums, gradient=False)
    yield Case(random(rng, (4,)), np.array(SORTED), np.array(OTHERS), sums[1:5], gradient=False)
    yield Case(random(rng, (6,)), np.array(SORTED), NO_ENTRIES, sums, gradient=False)
    yield Case(random(rng, (0,)), np.array(SORTED), np.array(OTHERS), NO_ENTRIES, gradient=False)
    yield Case(random(rng, (5,)), np.array(SORTED), np.array(OTHERS), sums, invalid=True)
    yield Case(random(rng, (6, 1)), np.array(SORTED), np.array(OTHERS), sums, invalid=True)
    yield Case(random(rng, (6,)), np.array(SORTED), np.array(OTHERS), sums[:, 1:], invalid=True)
    yield Case(random(rng, (6,)), np.array(SORTED), np.array(OTHERS)[:, 0], sums, invalid=True)


@cases("SparseConcat")
def _(rng, op):
    def joined(*tensors, **more):
        return Case(*[list(part) for part in zip(*tensors)], **more)
    for dtype in NUMBERS + [np.bool_, object]:
        yield joined(sparse(rng, INDICES, [5, 4], dtype), sparse(rng, OTHERS, [5, 4], dtype), concat_dim=0)
    for axis in [1, -1, -2]:
        yield joined(sparse(rng, INDICES, [5, 4]), sparse(rng, OTHERS, [5, 4]), sparse(rng, SORTED, [5, 4]), concat_dim=axis)
    yield joined(sparse(rng, INDICES, [5, 4]), sparse(rng, [[0, 1], [3, 6]], [5, 7]), concat_dim=1)
    yield joined(sparse(rng, np.zeros((0, 2)), [5, 4]), sparse(rng, np.zeros((0, 2)), [0, 4]), concat_dim=0)
    yield joined(sparse(rng, [[1], [0]], [2]), sparse(rng, [[1]], [3]), concat_dim=0)
    for axis in [2, -3]:
        yield joined(sparse(rng, INDICES, [5, 4]), sparse(rng, OTHERS, [5, 4]), concat_dim=axis, invalid=True)
    yield joined(sparse(rng, INDICES, [5, 4]), sparse(rng, OTHERS, [6, 4]), concat_dim=1, invalid=True)
    yield joined(sparse(rng, INDICES, [5, 4]), sparse(rng, [[0, 0, 0]], [5, 4, 1]), concat_dim=1, invalid=True)
    for inputs in broken(sparse(rng, INDICES, [5, 4])):
        yield joined(inputs, sparse(rng, OTHERS, [5, 4]), concat_dim=0, invalid=True)


@cases("SparseSlice")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(*sparse(rng, INDICES, [5, 4], dtype), np.array([1, 0]), np.array([2, 2]), gradient=dtype in WIDE)
    for start, size in [([0, 0], [5, 4]), ([2, 1], [9, 9]), ([2, 1], [2**62, 2]), ([5, 0], [1, 4]), ([9, 1], [3, 2]),
                        ([1, 1], [0, 3]), ([-1, 0], [4, 4])]:
        yield Case(*sparse(rng, INDICES, [5, 4]), np.array(start), np.array(size))
    yield Case(*sparse(rng, np.zeros((0, 2)), [5, 4]), np.array([1, 0]), np.array([2, 2]))
    yield Case(*sparse(rng, [[0, 9], [-1, 3]], [5, 4]), np.array([0, 3]), np.array([2, 9]), gradient=False)
    yield Case(*sparse(rng, INDICES, [5, 4]), np.array([1]), np.array([2, 2]), invalid=True)
    yield Case(*sparse(rng, INDICES, [5, 4]), np.array([1, 0]), np.array([2]), invalid=True)
    yield Case(*sparse(rng, INDICES, [5, 4]), np.array([[1, 0]]), np.array([2, 2]), invalid=True)
    yield Case(*sparse(rng, INDICES, [5, 4]), np.array([1, 0]), np.array([-2, 2]), invalid=True)
    for inputs in broken([*sparse(rng, INDICES, [5, 4]), np.array([1, 0]), np.array([2, 2])]):
        yield Case(*inputs, invalid=True)


@cases("SparseSliceGrad")
def _(rng, op):
    for dtype in NUMBERS:
        yield Case(random(rng, (2,), dtype), np.array(SORTED), np.array([1, 0]), np.array([[1, 0], [1, 1]]), gradient=False)
    yield Case(random(rng, (0,)), np.array(SORTED), np.array([1, 0]), NO_ENTRIES, gradient=False)
    yield Case(random(rng, (2,)), np.array(SORTED), np.array([1, 0]), np.array([[1, 0]]), invalid=True)
    yield Case(random(rng, (1,)), np.array(SORTED), np.array([1, 0]), np.array([[1]]), invalid=True)
    yield Case(random(rng, (2,)), np.array(SORTED)[:1], np.array([1, 0]), np.array([[1, 0], [1, 1]]), invalid=True)
    yield Case(random(rng, (1, 1)), np.array(SORTED), np.array([1, 0]), np.array([[1, 0]]), invalid=True)
    yield Case(random(rng, (1,)), np.array(SORTED), np.array([[1, 0]]), np.array([[1, 0]]), invalid=True)


@cases("SparseSplit")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(np.int64(0), *sparse(rng, INDICES, [5, 4], dtype), num_split=2)
    for axis, parts in [(0, 1), (0, 3), (0, 5), (1, 2), (1, 4), (-1, 3), (-2, 2)]:
        yield Case(np.int64(axis), *sparse(rng, INDICES, [5, 4]), num_split=parts)
    yield Case(np.int64(0), *sparse(rng, np.zeros((0, 2)), [5, 4]), num_split=2)
    for axis, parts in [(0, 6), (2, 1), (-3, 1)]:
        yield Case(np.int64(axis), *sparse(rng, INDICES, [5, 4]), num_split=parts, invalid=True)
    for index in [[7, 0], [0, 5], [0, -1]]:
        yield Case(np.int64(0), *sparse(rng, [index], [5, 4]), num_split=2, invalid=True)
    for inputs in broken([np.int64(0), *sparse(rng, INDICES, [5, 4])], 1):
        yield Case(*inputs, num_split=2, invalid=True)


REPEATED = [[2, 1, 0], [0, 3, 1], [2, 1, 1], [2, 0, 0], [2, 1, 0], [0, 3, 0]]


@cases("SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse", "SparseReduceMaxSparse")
def _(rng, op):
    for dtype in NUMBERS:
        yield Case(*sparse(rng, INDICES, [5, 4], dtype), np.array([1], np.int32), gradient=dtype in WIDE)
    for axes, keeps in itertools.product([[], [0], [-1], [0, 2], [2, 0], [1, 1, -2], [0, 1, 2]], [False, True]):
        yield Case(*sparse(rng, REPEATED, [3, 4, 2]), np.array(axes, np.int32), keep_dims=keeps, gradient=len(set(axes)) == len(axes))
        yield Case(*sparse(rng, np.zeros((0, 3)), [3, 4, 2]), np.array(axes, np.int32), keep_dims=keeps, gradient=False)
    yield Case(*sparse(rng, REPEATED, [3, 4, 2]), np.int32(1))
    yield Case(*sparse(rng, np.zeros((0, 2)), [0, 4]), np.array([1], np.int32), gradient=False)
    yield Case(*sparse(rng, [[3], [1]], [5]), np.array([0], np.int32))
    for axes in [[2], [-3], [[0]]]:
        yield Case(*sparse(rng, INDICES, [5, 4]), np.array(axes, np.int32), invalid=True)
    yield Case(*sparse(rng, INDICES, [-5, 4]), np.array([1], np.int32), invalid=True)
    if not op.endswith("Sparse"):
        for wrong in [[[5, 0]], [[-1, 0]]]:
            yield Case(*sparse(rng, wrong, [5, 4]), np.array([1], np.int32), invalid=True)  # INTERNAL in TensorFlow
    for inputs in broken([*sparse(rng, INDICES, [5, 4]), np.array([1], np.int32)]):
        yield Case(*inputs, invalid=True)


@cases("SparseSoftmax")
def _(rng, op):
    for dtype in [np.float16, np.float32, np.float64]:
        yield Case(*sparse(rng, SORTED, [5, 4], dtype), gradient=dtype in WIDE)
        yield Case(*sparse(rng, INDICES, [5, 4], dtype), gradient=False)  # TensorFlow's supposes an order
    yield Case(*sparse(rng, [[0, 3, 0], [0, 3, 1], [2, 0, 0], [2, 1, 0], [2, 1, 1]], [3, 4, 2]))
    yield Case(*sparse(rng, np.zeros((0, 2)), [5, 4]), gradient=False)
    yield Case(np.array(SORTED), np.array([1, 200, 100, -300], np.float32), np.array([5, 4]))
    yield Case(*sparse(rng, [[3], [1]], [5]), invalid=True)
    for inputs in broken(sparse(rng, SORTED, [5, 4])):
        yield Case(*inputs, invalid=True)


@cases("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv")
def _(rng, op):
    def dense(shape, dtype=np.float32):
        return random(rng, shape, dtype, 1, 4)
    differentiable = op != "SparseDenseCwiseAdd"
    for dtype in NUMBERS:
        yield Case(*sparse(rng, INDICES, [5, 4], dtype), dense((5, 4), dtype), gradient=differentiable and dtype in WIDE)
    for shape in [(4,), (1,), (5, 1), (1, 4), (1, 1), ()]:
        yield Case(*sparse(rng, INDICES, [5, 4]), dense(shape), gradient=differentiable and shape != ())
    yield Case(*sparse(rng, REPEATED, [3, 4, 2]), dense((4, 1)), gradient=differentiable)
    yield Case(*sparse(rng, [[3], [1], [3]], [5]), dense((5,)), gradient=differentiable)
    yield Case(*sparse(rng, np.zeros((0, 2)), [5, 4]), dense((4,)), gradient=False)
    for shape in [(5, 4, 1), (1, 5, 4), (5,), (5, 5), (2, 4)]:
        yield Case(*sparse(rng, INDICES, [5, 4]), dense(shape), invalid=True)
    yield Case(*sparse(rng, [[0, 0]], [1, 4]), dense((5, 4)), invalid=True)
    for wrong in [[[5, 0]], [[0, -1]]]:
        yield Case(*sparse(rng, wrong, [5, 4]), dense((4,)), invalid=True)
    for inputs in broken([*sparse(rng, INDICES, [5, 4]), dense((5, 4))]):
        yield Case(*inputs, invalid=True)


SEGMENTS = ["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"]


@cases(*SEGMENTS, *[name + "WithNumSegments" for name in SEGMENTS])
def _(rng, op):
    counted = op.endswith("Segments")
    more = lambda n: [np.int32(n)] if counted else []
    for dtype in FLOATS + ([np.int32, np.int64] if "Sum" in op else []):
        yield Case(random(rng, (5, 3), dtype), np.array([4, 0, 4, 2], np.int32), np.array([0, 0, 2, 2], np.int32), *more(3))
    yield Case(random(rng, (5, 3)), np.array([1, 3]), np.array([0, 1]), *more(4))
    yield Case(random(rng, (5,)), np.array([1, 3, 3], np.int32), np.array([0, 0, 0], np.int32), *more(1))
    yield Case(random(rng, (5, 3)), np.zeros(0, np.int32), np.zeros(0, np.int32), *more(2), gradient=False)
    for indices, ids in [([5], [0]), ([-1], [0]), ([0, 1], [1, 0]), ([0], [-1]), ([0, 1], [0])] + ([([0], [3])] if counted else []):
        yield Case(random(rng, (5, 3)), np.array(indices, np.int32), np.array(ids, np.int32), *more(3), invalid=True)


@cases(*[name + "Grad" for name in SEGMENTS], *[name + "GradV2" for name in SEGMENTS])
def _(rng, op):
    for dtype in WIDE:
        yield Case(random(rng, (3, 2), dtype), np.array([4, 0, 4, 2], np.int32), np.array([0, 0, 2, 2], np.int32), np.int32(6))
    yield Case(random(rng, (2, 2)), np.array([1, 3]), np.array([0, 1]), np.int32(4))
    for indices, ids in [([6], [0]), ([-1], [0]), ([0], [3]), ([0, 1], [0])]:
        yield Case(random(rng, (3, 2)), np.array(indices, np.int32), np.array(ids, np.int32), np.int32(6), invalid=True)


# ---- candidate samplers: the same for the same seeds ----

@cases("LogUniformCandidateSampler", "UniformCandidateSampler")
def _(rng, op):
    for count, unique, n in [(5, True, 50), (8, False, 3), (16, True, 16), (7, True, 1000), (4, False, 1)]:
        yield Case(np.array([[0, min(1, n - 1)], [n - 1, n // 2]]), num_true=2, num_sampled=count, unique=unique, range_max=n, seed=87654321, seed2=42)
    yield Case(np.array([[1]]), num_true=2, num_sampled=2, unique=False, range_max=9, seed=3, seed2=4, invalid=True)
    yield Case(np.array([[1]]), num_true=1, num_sampled=10, unique=True, range_max=9, seed=3, seed2=4, invalid=True)
    for outside in [9, -1]:
        yield Case(np.array([[outside]]), num_true=1, num_sampled=2, unique=True, range_max=9, seed=3, seed2=4, invalid=True)


@cases("LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler")
def _(rng, op):
    for count, unique, n in [(5, True, 50), (8, False, 3), (16, True, 16), (7, True, 1000), (4, False, 1)]:
        yield Case(np.array([[0, min(1, n - 1)], [n - 1, n // 2]]), num_true=2, num_sampled=count, unique=unique, range_max=n, seed=87654321, seed2=42)
    for true_classes, columns, count in [([[1]], 2, 2), ([[1]], 1, 10), ([[9]], 1, 2), ([[-1]], 1, 2)]:
        yield Case(np.array(true_classes), num_true=columns, num_sampled=count, unique=True, range_max=9, seed=3, seed2=4, invalid=True)


def vocabulary(text):
    path = os.path.join(tempfile.mkdtemp(), "vocabulary")
    with open(path, "w") as file:
        file.write(text)
    return path


@cases("FixedUnigramCandidateSampler")
def _(rng, op):
    same = dict(num_true=2, unique=True, num_sampled=3, range_max=5, seed=87654321, seed2=42)
    trues = np.array([[0, 1], [4, 2]])
    five = [1.0, 2.0, 3.0, 4.0, 5.5]
    yield Case(trues, **same, unigrams=five)
    yield Case(trues, **same, unigrams=five, distortion=0.75)
    yield Case(trues, **{**same, "unique": False, "num_sampled": 50}, unigrams=[0.0, 7.0, 0.0, 1e-3, 4.0])
    yield Case(trues, **same, unigrams=five[:3], num_reserved_ids=2)
    yield Case(trues, **same, unigrams=five + five, num_shards=2, shard=0)
    yield Case(trues, **same, unigrams=five[:3] + five, num_shards=2, shard=1, num_reserved_ids=2)
    yield Case(np.array([[0, 99]]), **{**same, "range_max": 100, "num_sampled": 60}, unigrams=list(rng.uniform(0, 9, 100)))
    for text in ["a,1\nb,2\nc,3\nd,4\ne,5", "1\r\n2\n\n3\n4\ne,x, 5.5 \n"]:
        yield Case(trues, **same, vocab_file=vocabulary(text))
    for text in ["a,1\nb,2\nc,3\nd,4\n", "a,1\nb,2\nc,3\nd,4\ne", "a,1\nb,2\nc,3\nd,4\ne,5,", ""]:
        yield Case(trues, **same, vocab_file=vocabulary(text), invalid=True)
    yield Case(trues, **same, vocab_file="/nowhere/vocabulary", invalid=True)
    yield Case(trues, **same, invalid=True)
    yield Case(trues, **same, unigrams=five, vocab_file="/nowhere/vocabulary", invalid=True)
    yield Case(trues, **same, unigrams=five[:4], invalid=True)
    yield Case(trues, **same, unigrams=five, num_shards=2, shard=2, invalid=True)
    yield Case(trues + 1, **same, unigrams=five, invalid=True)
    yield Case(trues, **{**same, "num_sampled": 6}, unigrams=five, invalid=True)


@cases("AllCandidateSampler")
def _(rng, op):
    for unique in [True, False]:
        yield Case(np.array([[0, 1], [4, 2]]), num_true=2, num_sampled=5, unique=unique)
    yield Case(np.zeros((0, 2), np.int64), num_true=2, num_sampled=1, unique=True)
    for true_classes, columns in [([[5]], 1), ([[-1]], 1), ([[1]], 2), ([1], 1)]:
        yield Case(np.array(true_classes), num_true=columns, num_sampled=5, unique=True, invalid=True)


@cases("ComputeAccidentalHits")
def _(rng, op):
    yield Case(np.array([[7, 3], [5, 9], [3, 3]]), np.array([5, 3, 1]), num_true=2)
    yield Case(np.array([[7]]), np.array([5, 3, 1]), num_true=1)
    yield Case(np.array([[7]]), np.array([5]), num_true=2, invalid=True)
    yield Case(np.array([[7]]), np.array([[5]]), num_true=1, invalid=True)


# ---- solvers ----

def well_conditioned(rng, shape, dtype):
    return np.asarray(random(rng, shape, dtype, -1, 1) + 3 * np.eye(shape[-1]), dtype)


def symmetric(rng, shape, dtype):
    x = well_conditioned(rng, shape, dtype)
    return np.asarray(x @ np.swapaxes(x, -1, -2), dtype)


@cases("Cholesky")
def _(rng, op):
    for dtype in WIDE:
        yield Case(symmetric(rng, (3, 3), dtype))
        yield Case(symmetric(rng, (2, 2, 4, 4), dtype))
    yield Case(np.zeros((0, 0), np.float32), gradient=False)
    # Not of a matrix that is not positive definite: TensorFlow returns NaN and what lay in the memory.
    yield Case(random(rng, (2, 3)), invalid=True)
    yield Case(random(rng, (3,)), invalid=True)


@cases("MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant")
def _(rng, op):
    adjoints = [{"adjoint": False}, {"adjoint": True}] if op == "MatrixInverse" else [{}]
    for dtype, adjoint in itertools.product(WIDE, adjoints):
        yield Case(well_conditioned(rng, (3, 3), dtype), **adjoint)
        yield Case(np.asarray(-well_conditioned(rng, (2, 3, 3), dtype), dtype), **adjoint)
    yield Case(np.array([[0, 1], [1, 0]], np.float32))
    yield Case(random(rng, (2, 3)), invalid=True)
    if op == "MatrixInverse":
        yield Case(np.array([[1, 2], [2, 4]], np.float32), invalid=True)


@cases("MatrixSolve")
def _(rng, op):
    for dtype, adjoint in itertools.product(WIDE, [False, True]):
        yield Case(well_conditioned(rng, (3, 3), dtype), random(rng, (3, 2), dtype), adjoint=adjoint)
        yield Case(well_conditioned(rng, (2, 3, 3), dtype), random(rng, (2, 3, 1), dtype), adjoint=adjoint)
    yield Case(np.array([[1, 2], [2, 4]], np.float32), random(rng, (2, 1)), invalid=True)
    yield Case(random(rng, (3, 3)), random(rng, (2, 1)), invalid=True)


@cases("MatrixTriangularSolve")
def _(rng, op):
    for dtype, adjoint, lower in itertools.product(WIDE, [False, True], [False, True]):
        yield Case(well_conditioned(rng, (3, 3), dtype), random(rng, (3, 2), dtype), adjoint=adjoint, lower=lower)
        yield Case(well_conditioned(rng, (2, 3, 3), dtype), random(rng, (2, 3, 1), dtype), adjoint=adjoint, lower=lower)
    yield Case(well_conditioned(rng, (3, 3), np.float32), random(rng, (2, 3, 4)))
    yield Case(random(rng, (3, 3)), random(rng, (2, 1)), invalid=True)


@cases("BandedTriangularSolve")
def _(rng, op):
    def matrix(shape, dtype=np.float32):
        return random(rng, shape, dtype, 0.5, 2)
    for dtype, adjoint, lower in itertools.product(WIDE, [False, True], [False, True]):
        for bands in [1, 2, 3, 4]:
            yield Case(matrix((bands, 4), dtype), random(rng, (4, 2), dtype), adjoint=adjoint, lower=lower)
        yield Case(matrix((2, 2, 5), dtype), random(rng, (2, 5, 1), dtype), adjoint=adjoint, lower=lower)
    for dtype, adjoint, lower in itertools.product([np.complex64, np.complex128], [False, True], [False, True]):
        complex_matrix, rhs = matrix((2, 4)) + 1j * random(rng, (2, 4)), random(rng, (4, 2)) + 1j * random(rng, (4, 2))
        yield Case(complex_matrix.astype(dtype), rhs.astype(dtype), adjoint=adjoint, lower=lower)
    yield Case(matrix((2, 4)), random(rng, (3, 4, 2)))
    yield Case(matrix((3, 1, 2, 4)), random(rng, (2, 4, 2)))
    yield Case(matrix((3, 2)), random(rng, (2, 1)), static=False)  # more bands than rows
    yield Case(matrix((1, 1)), random(rng, (1, 1)))
    one, nan = np.ones((2, 1), np.float32), np.nan
    yield Case(np.array([[[1, 1], [0, 1]], [[1, 0], [0, 1]]], np.float32), one, gradient=False)  # the second has no solution
    yield Case(np.array([[1, nan], [0, 1]], np.float32), one, gradient=False)
    for wrong in [[[1, 0], [0, 1]], [[nan, 1], [0, 1]], [[[1, 0], [0, 1]], [[1, 1], [0, 1]]]]:
        yield Case(np.array(wrong, np.float32), one, invalid=True)
    for a, b in [((2, 4), (3, 1)), ((0, 4), (4, 1)), ((2, 0), (0, 1)), ((0, 2, 4), (4, 1)), ((2, 4), (4, 0)), ((4,), (4, 1)), ((2, 4), (4,)),
                 ((2, 2, 4), (3, 4, 1)), ((), ())]:
        yield Case(matrix(a), random(rng, b), invalid=True)


# ---- strings ----

@cases("StringToHashBucketStrong")
def _(rng, op):
    words = np.array([bytes(rng.integers(0, 256, n, np.uint8)) for n in list(range(34)) + [255, 256, 1000]], object)
    for count, key in itertools.product([1, 7, 2**62, 2**63 - 1], [[0, 0], [1, 2], [-1, -2**63]]):
        yield Case(words, num_buckets=count, key=key)
    yield Case(np.array(b"abc", object), num_buckets=10, key=[3, 4])
    for key in [[], [1], [1, 2, 3]]:
        yield Case(words, num_buckets=10, key=key, invalid=True)


@cases("StringToHashBucketFast", "StringToHashBucket")
def _(rng, op):
    text = bytes(rng.integers(0, 256, 400, np.uint8))
    strings = np.array([text[:n] for n in list(range(0, 70)) + [100, 127, 128, 129, 191, 192, 193, 256, 399]], object)
    for buckets in [2**62, 1000, 1]:
        yield Case(strings, num_buckets=buckets)
    yield Case(np.array([[b"a", b"b"]], object), num_buckets=7)


@cases("DecodeCSV")
def _(rng, op):
    def records(*lines):
        return np.array(lines, object)
    numbers = [np.zeros(1, np.float32), np.zeros(1, np.int32)]
    yield Case(records(b"1.5,2", b" 3 ,-4", b",", b"1e3,"), numbers)
    yield Case(np.array(b"1.5,2", object), numbers)
    yield Case(records(b"1,2,3,x", b'4,5,6,"a ""b"", c"', b'7,8,9,""'),
               [np.zeros(1), np.zeros(1, np.int64), np.zeros(1, np.float32), np.array([b"none"], object)])
    yield Case(records(b"1;'2'"), [np.zeros(1, np.int32), np.array([b""], object)], field_delim=";", use_quote_delim=False)
    yield Case(records(b"NA,1", b"2,NA"), [np.array([9], np.int32), np.array([8], np.int32)], na_value="NA")
    yield Case(records(b"1,2,3", b"4,5,6"), [np.zeros(1, np.int32), np.zeros(1, np.int32)], select_cols=[0, 2])
    required = [np.zeros(0, np.float32), np.zeros(0, np.int32)]
    yield Case(records(b"1,2"), required)
    for wrong in [b"1", b"1,2,3", b"x,1", b"1,1.5", b"1,99999999999", b'"1"x,2', b'1"1,2']:
        yield Case(records(wrong), numbers, invalid=True)
    yield Case(records(b",2"), required, invalid=True)
    yield Case(records(b"1,2"), numbers, field_delim=",,", invalid=True)
    yield Case(records(b"1,2"), numbers, select_cols=[1, 0], invalid=True)


# ---- decompositions ----

@cases("Qr")
def _(rng, op):
    for dtype, full, shape in itertools.product(WIDE, [False, True], [(4, 3), (3, 4), (2, 3, 3, 3), (5, 1), (1, 5), (20, 12)]):
        yield Case(random(rng, shape, dtype), full_matrices=full, gradient=False, tolerance=2e-4 if dtype == np.float32 else None)
    for full, shape in itertools.product([False, True], [(0, 3), (3, 0), (0, 3, 2)]):
        yield Case(random(rng, shape), full_matrices=full, gradient=False)
    for matrix in [np.eye(3), -np.eye(3), np.zeros((3, 2)), np.triu(np.ones((3, 3)))]:
        yield Case(matrix, gradient=False)
    yield Case(random(rng, (3,)), invalid=True)


@cases("Svd")
def _(rng, op):
    for dtype, full, uv, shape in itertools.product(WIDE, [False, True], [False, True], [(4, 3), (3, 4), (2, 3, 3, 3), (5, 1), (1, 5), (12, 20)]):
        yield Case(random(rng, shape, dtype), full_matrices=full, compute_uv=uv, gradient=False)
    for shape in [(0, 3), (3, 0), (0, 3, 2)]:
        yield Case(random(rng, shape), gradient=False)
    for matrix in [np.eye(3), np.zeros((3, 2)), np.ones((4, 4)), np.array([[np.nan, 1], [2, 3]])]:
        yield Case(matrix, gradient=False)
    yield Case(random(rng, (3,)), invalid=True)


@cases("SelfAdjointEigV2")
def _(rng, op):
    for dtype, v, shape in itertools.product(WIDE, [False, True], [(3, 3), (2, 4, 4), (1, 1), (12, 12)]):
        yield Case(random(rng, shape, dtype), compute_v=v, gradient=not v and dtype == np.float64, tolerance=1e-4 if dtype == np.float32 else 1e-8)
    for matrix in [np.eye(3), np.zeros((2, 2)), np.zeros((0, 0)), np.diag([3.0, -1, 2])]:
        yield Case(matrix, gradient=False)
    yield Case(np.array([[np.nan, 1], [2, 3]]), invalid=True)
    yield Case(random(rng, (3, 4)), invalid=True)
    yield Case(random(rng, (3,)), invalid=True)


@cases("Lu")
def _(rng, op):
    for dtype, index, shape in itertools.product(WIDE, [tf.int32, tf.int64], [(3, 3), (2, 4, 4), (1, 1), (12, 12)]):
        yield Case(random(rng, shape, dtype), output_idx_type=index, gradient=False, tolerance=2e-4 if dtype == np.float32 else None)
    yield Case(np.zeros((0, 0)), gradient=False)
    yield Case(np.ones((2, 2)), invalid=True)
    yield Case(random(rng, (3, 4)), invalid=True)


@cases("MatrixSolveLs")
def _(rng, op):
    for dtype, fast, shape, l2 in itertools.product(WIDE, [False, True], [(4, 3), (3, 4), (2, 5, 2), (3, 3)], [0.0, 0.5]):
        rhs = shape[:-1] + (2,)
        yield Case(random(rng, shape, dtype), random(rng, rhs, dtype), np.float64(l2), fast=fast, gradient=False,
                   tolerance=5e-3 if dtype == np.float32 else 1e-8)
    yield Case(random(rng, (4, 0)), random(rng, (4, 2)), np.float64(0), gradient=False)  # without rows TensorFlow leaves x unset
    a = random(rng, (4, 3), np.float64)
    yield Case(np.ones((3, 2)), random(rng, (3, 1), np.float64), np.float64(0), fast=False, gradient=False)
    yield Case(np.ones((3, 2)), random(rng, (3, 1), np.float64), np.float64(0), fast=True, invalid=True)
    yield Case(a, a[:3], np.float64(0), invalid=True)
    yield Case(a, a, np.float64(-1), invalid=True)
    yield Case(a, a, np.zeros(1), invalid=True)

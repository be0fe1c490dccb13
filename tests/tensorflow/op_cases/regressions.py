"""Calls that differed from TensorFlow once: ranks, options, NaN."""
import itertools

import numpy as np
import tensorflow as tf

from .case import Case, FLOATS, Ref, bf16, crossed, more_cases, random, special

X = np.arange(6, dtype=np.float32).reshape(2, 3)
VECTOR = np.array([1, 2, 3], np.float32)
NAN, INF = np.nan, np.inf


def ints(*values, dtype=np.int32):
    return np.array(values, dtype)


def longs(*values):
    return ints(*values, dtype=np.int64)


def floats(*values):
    return np.array(values, np.float32)


def text(*values):
    return np.array(values, object)


@more_cases("TensorSummaryV2")
def _(rng, op):
    for shape in [(0,), (1,)]:
        some = np.full(shape, b"x", object)
        yield Case(some, X, np.array(b"", object), invalid=True)
        yield Case(np.array(b"x", object), X, some, invalid=True)


@more_cases("ArgMax", "ArgMin", "Cumsum", "Cumprod", "CumulativeLogsumexp")
def _(rng, op):
    for axis in [ints(1), ints([1]), ints()]:
        yield Case(X, axis, invalid=True)


@more_cases("GatherV2")
def _(rng, op):
    for axis in [ints(1), ints([1]), ints()]:
        yield Case(X, ints(0, 1), axis, invalid=True)


@more_cases("ConcatV2")
def _(rng, op):
    yield Case([X, X], ints(1), gradient=False, static=False)
    yield Case([X, X], ints([1]), invalid=True)
    yield Case([X, X], ints(), invalid=True)


@more_cases("Split")
def _(rng, op):
    for axis in [ints(1), ints([1]), ints()]:
        yield Case(axis, X, num_split=3, invalid=True)


@more_cases("SparseSplit")
def _(rng, op):
    yield Case(longs(1), longs([0, 0]), floats(1), longs(2, 2), num_split=2, invalid=True)


@more_cases("SparseSegmentSumWithNumSegments", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNWithNumSegments")
def _(rng, op):
    for count in [ints(1), ints()]:
        yield Case(X, ints(0), ints(0), count, invalid=True)


@more_cases("SparseTensorDenseMatMul")
def _(rng, op):
    yield Case(longs([0, 0]), floats(1), longs([1, 2]), X, invalid=True)


@more_cases("StridedSlice")
def _(rng, op):
    for at in range(3):
        indices = [ints(0), ints(2), ints(1)]
        indices[at] = indices[at].reshape(1, 1)
        yield Case(X, *indices, invalid=True)


@more_cases("StridedSliceGrad")
def _(rng, op):
    yield Case(ints(4), ints(0), ints([2]), ints(1), floats(1, 2), invalid=True)


@more_cases("BlockLSTM", "BlockLSTMV2")
def _(rng, op):
    for at, n in itertools.product([5, 6, 7], [0, 4]):
        inputs = [np.int64(2), *(random(rng, s) for s in [(2, 3, 2), (3, 5), (3, 5), (7, 20), (5,), (5,), (5,), (20,)])]
        inputs[at] = random(rng, (n,))
        yield Case(*inputs, invalid=True)


@more_cases("ScatterNd")
def _(rng, op):
    for policy, index in itertools.product(["DEFAULT", "ERROR", "IGNORE", "BAD"], [0, 7]):
        yield Case(ints([index], [1]), floats(1, 2), ints(3), bad_indices_policy=policy, gradient=False,
                   invalid=policy == "BAD" or (policy != "IGNORE" and index == 7))


@more_cases("GatherNd")
def _(rng, op):
    for policy, index in itertools.product(["DEFAULT", "ERROR", "IGNORE"], [0, 7, -1]):
        yield Case(VECTOR, ints([index], [1]), bad_indices_policy=policy, gradient=False, invalid=policy != "IGNORE" and index != 0)


@more_cases("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub")
def _(rng, op):
    for policy, index in itertools.product(["DEFAULT", "ERROR", "IGNORE", "BAD"], [0, -1]):
        yield Case(VECTOR, ints([index], [1]), floats(1, 2), bad_indices_policy=policy, gradient=False,
                   invalid=policy == "BAD" or (policy != "IGNORE" and index < 0))


@more_cases("SparseSoftmax")
def _(rng, op):
    for shape in [longs(-1, 2), longs(2, -1), longs(2**40, 2**40)]:
        yield Case(longs([0, 0]), floats(1), shape, invalid=True)


@more_cases("EditDistance")
def _(rng, op):
    entry = longs([0, 0]), longs(1)
    yield Case(*entry, longs(1, -2), *entry, longs(1, 2), invalid=True)
    yield Case(*entry, longs([1, 2]), *entry, longs(1, 2), invalid=True)


@more_cases("SparseReshape")
def _(rng, op):
    for index, new in itertools.product([[5, 7], [-1, -7], [1, 7]], [[6], [3, -1], [2, 3], [2, 3, 1]]):
        yield Case(longs(index), longs(2, 3), longs(*new))
    none = np.zeros((0, 2), np.int64)
    yield Case(longs([1, 7]), longs(2, 0), longs(2, 0))
    yield Case(longs([0, 0]), longs(0, 3), longs(0, 5), invalid=True)
    yield Case(none, longs(0, 3), longs(0, -1), invalid=True)
    yield Case(none, longs(-2, -3), longs(2, 3), invalid=True)


# ---- Optimizers: rates and NaN

RATES = [(-1, 0, 0), (0, 0, 0), (0.1, -1, 0), (0.1, 0, -1)]


@more_cases("ApplyProximalAdagrad", "ResourceApplyProximalAdagrad", "SparseApplyProximalAdagrad", "ResourceSparseApplyProximalAdagrad")
def _(rng, op):
    one = (1, 2) if "Sparse" in op else (2,)
    indices = [ints(0)] if "Sparse" in op else []
    for rates in RATES + [(0.1, 0, 0), (0.1, 0.1, 0.1)]:
        yield Case(Ref(floats(1, 2).reshape(one)), Ref(floats(1, 1).reshape(one)), *np.float32(rates), floats(NAN, 1).reshape(one), *indices,
                   invalid=rates in RATES)


@more_cases("ApplyProximalGradientDescent", "ResourceApplyProximalGradientDescent", "SparseApplyProximalGradientDescent",
            "ResourceSparseApplyProximalGradientDescent")
def _(rng, op):
    one = (1, 2) if "Sparse" in op else (2,)
    indices = [ints(0)] if "Sparse" in op else []
    for rates in RATES + [(0.1, 0, 0), (0.1, 0.1, 0.1)]:
        yield Case(Ref(floats(1, 2).reshape(one)), *np.float32(rates), floats(NAN, 1).reshape(one), *indices)


@more_cases("SparseApplyFtrl", "ResourceSparseApplyFtrl")
def _(rng, op):
    for first, power in itertools.product([1, NAN], [-0.5, -1, -0.75]):
        yield Case(Ref(floats([1, 2])), Ref(floats([-1, 4])), Ref(floats([1, 1])), floats([first, 1]), ints(0),
                   *np.float32([0.1, 0.1, 0.1, power]))


# ---- What TensorFlow takes, if not its shape functions

@more_cases("Reshape")
def _(rng, op):
    for x, size in [(np.float32(2), 1), (np.float32(2), -1), (X, 6), (X, -1)]:
        yield Case(x, np.int32(size), gradient=False, static=False)
    yield Case(X, np.int32(5), invalid=True)
    yield Case(X, ints([6]), invalid=True)


@more_cases("Range")
def _(rng, op):
    for at in range(3):
        numbers = [np.int32(1), np.int32(7), np.int32(2)]
        numbers[at] = numbers[at].reshape(1)
        yield Case(*numbers, static=False)
    yield Case(ints([1]), np.int32(7), np.int32(2), invalid=True)
    yield Case(ints(), np.int32(7), np.int32(2), invalid=True)


@more_cases("SoftmaxCrossEntropyWithLogits")
def _(rng, op):
    for dtype, (x, y) in itertools.product(FLOATS, [((2, 3), ()), ((2, 3), (1,)), ((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), (1, 1)),
                                                    ((1, 3), (2, 1)), ((2, 1), (1, 3)), ((), (2, 3)), ((3,), (2, 3)), ((1, 1), (2, 3)),
                                                    ((5, 1), (5, 9)), ((0, 3), (1, 1)), ((2, 0), (2, 1))]):
        yield Case(random(rng, x, dtype), random(rng, y, dtype), gradient=False, static=False)
    for x, y in [((3,), (3,)), ((), ()), ((1, 2, 3), (2, 3)), ((2, 3), (2, 2))]:
        yield Case(random(rng, x), random(rng, y), invalid=True)


@more_cases("EuclideanNorm")
def _(rng, op):
    for dtype in [np.int32, np.int64]:
        yield Case(np.array([[3, 4], [-5, 7]], dtype), ints(1))


@more_cases("EncodePng")
def _(rng, op):
    for shape, dtype in [((2, 3, 4, 1), np.uint8), ((2, 1, 3, 4, 3), np.uint16), ((0, 3, 4, 3), np.uint8)]:
        yield Case(random(rng, shape, dtype, 0, 200))
    yield Case(random(rng, (3, 4), np.uint8), invalid=True)


@more_cases("MatrixInverse", "Lu")
def _(rng, op):
    for dtype in [np.float32, np.float64]:
        yield Case(np.array([[1, NAN], [1, 2]], dtype), gradient=False)
        yield Case(np.array([[1, 1], [NAN, 2]], dtype), gradient=False)
        yield Case(np.array([[NAN, 1], [1, 2]], dtype), invalid=True)


@more_cases("ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(np.array([NAN, INF, -INF, 1, NAN, NAN, NAN, INF], dtype), np.array([-1, -1, 0, 0, NAN, 7, 1, 7], dtype), gradient=False)


@more_cases("TopKV2")
def _(rng, op):
    yield Case(X, np.int16(2), gradient=False)


@more_cases("UnravelIndex")
def _(rng, op):
    yield Case(ints(5), ints(0x10000000, 0x10000000), invalid=True)


@more_cases("Conv2DBackpropFilter")
def _(rng, op):
    yield Case(random(rng, (1, 2, 3, 1)), ints(2, 2, 1, 0), random(rng, (1, 1, 2, 0)), strides=[1, 1, 1, 1], padding="VALID", gradient=False)


@more_cases("MaxPool")
def _(rng, op):
    yield Case(random(rng, (1, 3, 3, 1)), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="EXPLICIT",
               explicit_paddings=[0, 0, 0, 1, 0, 2, 0, 0], invalid=True)


@more_cases("UnsortedSegmentSum")
def _(rng, op):
    yield Case(X, ints(1, 0, dtype=np.int16), np.int32(2), gradient=False)


@more_cases("EuclideanNorm")
def _(rng, op):
    for dtype in [np.int8, np.uint8, np.int16, np.uint16]:
        yield Case(np.array([[3, 4], [0, 5]], dtype), ints(1))


@more_cases("SparseTensorDenseMatMul")
def _(rng, op):
    yield Case(longs([0, 1], [1, 0]), np.array([2, 3], np.float16), longs(2, 2), random(rng, (2, 3), np.float16), gradient=False)


@more_cases("LowerBound", "UpperBound")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(np.array([[1, 2, 2, 5]], dtype), np.array([[0, 2, 3, 9]], dtype))


@more_cases("Fill")
def _(rng, op):
    for value in [np.float32(7), floats(7)]:
        yield Case(np.int32(3), value, gradient=False, static=False)
        yield Case(ints(2, 1), value, gradient=False, static=False)
    yield Case(np.int32(-3), np.float32(7), invalid=True)
    yield Case(ints([2]), np.float32(7), invalid=True)
    yield Case(ints(2), floats(7, 8), invalid=True)


# ---- What only values show: NaN, infinity, large numbers


@more_cases("SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad", "SigmoidGrad", "TanhGrad")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(*crossed(special(dtype), special(dtype)), gradient=False)


@more_cases("ArgMax", "ArgMin")
def _(rng, op):
    for dtype, axis in itertools.product(FLOATS, [0, 1]):
        yield Case(np.array([[NAN, 1, 2], [1, NAN, 0], [2, 0, NAN], [NAN] * 3, [-INF, NAN, 1], [NAN, INF, 5]], dtype), np.int32(axis))


@more_cases("LogSoftmax")
def _(rng, op):
    for offset in [1e3, 1e5, 1e7]:
        yield Case(random(rng, (3, 5)) + np.float32(offset))


@more_cases("SoftmaxCrossEntropyWithLogits")
def _(rng, op):
    for offset in [1e3, 1e5, 1e7]:
        yield Case(random(rng, (5, 5)) + np.float32(offset), np.eye(5, dtype=np.float32))


@more_cases("SparseSoftmaxCrossEntropyWithLogits")
def _(rng, op):
    yield Case(np.zeros((0, 0), np.float32), ints(), invalid=True)


@more_cases("Zeta")
def _(rng, op):
    yield Case(floats(1e5, 1e5, 65504, 300), floats(1.2, 0.5, 2, 7), gradient=False)
    yield Case(floats(INF, INF, INF), floats(-3.7, 1.5, 0.5), gradient=False)


@more_cases("RandomUniformInt", "StatelessRandomUniformInt")
def _(rng, op):
    key = [ints(1, 2)] if op.startswith("Stateless") else []
    yield Case(ints(0), *key, np.int32(0), np.int32(0), **({} if key else {"seed": 3, "seed2": 5}))
    yield Case(ints(1), *key, np.int32(0), np.int32(0), invalid=True, **({} if key else {"seed": 3, "seed2": 5}))


@more_cases("AsString")
def _(rng, op):
    for fill in ["", "0", "-", " "]:
        yield Case(text(b"a\0b", b"", b"longer"), width=4, fill=fill)
        yield Case(np.array([True, False]), width=7, fill=fill)


@more_cases("ApplyAddSign", "ResourceApplyAddSign", "ApplyPowerSign", "ResourceApplyPowerSign")
def _(rng, op):
    for m, beta in [(-INF, 0), (INF, 0), (NAN, 0.9), (1, NAN)]:
        yield Case(Ref(floats(1, 2)), Ref(floats(m, 1)), *np.float32([0.1, 0.5, 0.9, beta]), floats(1, -1))


@more_cases("StringToNumber")
def _(rng, op):
    for dtype in [np.int32, np.int64, np.uint32, np.uint64, np.float32]:
        yield Case(text(b"+5", b" +6 "), out_type=tf.as_dtype(dtype))
        for wrong in [b"+", b"+-5", b"-+5", b"++5", b"+ 5"]:
            yield Case(text(wrong), out_type=tf.as_dtype(dtype), invalid=True)


@more_cases("DecodeCSV")
def _(rng, op):
    yield Case(text(b"+5,+6"), [ints(0), longs(0)], gradient=False)


# ---- What is rounded when


@more_cases("Cast")
def _(rng, op):
    numbers = np.concatenate([rng.standard_normal(200) * 10.0 ** rng.integers(-9, 5, 200), [3.4028235e38, 65519, -0.0, INF, -INF, NAN]])
    to = [tf.bfloat16, tf.half, tf.float32, tf.complex64, tf.int32]
    for dtype in [np.float32, np.float64, np.float16, np.complex64, np.complex128]:
        with np.errstate(over="ignore"):
            x = numbers.astype(dtype)
        for out in to:
            yield Case(x if out != tf.int32 else x[:200], DstT=out, Truncate=True, gradient=False, tolerance=1e-9)


@more_cases("FloorDiv", "TruncateDiv")
def _(rng, op):
    for dtype in [np.float16, bf16]:
        yield Case(np.array([2.04688, -1.194], dtype), np.array([0.683594, 0.05685], dtype), tolerance=1e-9)
        yield Case((random(rng, (500,)) * 3).astype(dtype), random(rng, (500,), dtype), tolerance=1e-9)


@more_cases("CropAndResize", "CropAndResizeGradImage", "CropAndResizeGradBoxes")
def _(rng, op):
    boxes = (rng.integers(0, 11, (100, 4)) / 10).astype(np.float32)
    image, grads, zeros = random(rng, (1, 7, 6, 1)), random(rng, (100, 5, 4, 1)), np.zeros(100, np.int32)
    if op == "CropAndResizeGradBoxes":
        yield Case(grads, image, boxes, zeros)
        return
    for method in ["nearest", "bilinear"]:
        if op == "CropAndResize":
            yield Case(image, boxes, zeros, ints(5, 4), method=method, extrapolation_value=-9.0, gradient=False)
        else:
            yield Case(grads, boxes, zeros, ints(1, 7, 6, 1), T=tf.float32, method=method, gradient=False)


@more_cases("UnsortedSegmentMin", "UnsortedSegmentMax")
def _(rng, op):
    for dtype, width in itertools.product(FLOATS, [1, 5, 64]):
        for rows in [[7, NAN], [NAN, 7], [NAN, NAN, 1], [1, NAN, 0], [0, NAN, 1]]:
            yield Case(np.repeat(np.array(rows, dtype)[:, None], width, 1), np.zeros(len(rows), np.int32), np.int32(1), gradient=False)


@more_cases("LinSpace")
def _(rng, op):
    for start, stop in [(1, INF), (INF, 1), (-INF, INF), (3e38, -3e38), (NAN, 1), (1, NAN)]:
        for n in [1, 2, 3, 5]:
            yield Case(np.float32(start), np.float32(stop), np.int32(n), gradient=False)


# ---- Types and texts that were refused


@more_cases("ScatterNdNonAliasingAdd", "ResourceScatterNdAdd", "ResourceScatterNdSub")
def _(rng, op):
    yes = np.array([True, True, False, False])
    state = yes if op == "ScatterNdNonAliasingAdd" else Ref(yes)
    for indices in [[0, 1, 2, 3], [1, 1, 2, 2]]:
        yield Case(state, ints(*([i] for i in indices)), np.array([True, False, True, False]), gradient=False)


@more_cases("AsString")
def _(rng, op):
    texts = text(b"abcd", b"a\0bc", b"", b"x")
    for options in [{"scientific": True}, {"shortest": True}, {"precision": 2}, {"shortest": True, "width": 5}]:
        yield Case(texts, **options)
    for width, precision, fill in itertools.product([-1, 0, 1, 5], [0, 1, 3], ["", "-", "0"]):
        yield Case(texts, width=width, precision=precision, fill=fill)
    yield Case(texts, scientific=True, shortest=True, invalid=True)


# ---- Checks that there is no need for: nothing to compute


@more_cases("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMin", "UnsortedSegmentMax")
def _(rng, op):
    for shape, n in [((2, 0), 1), ((2, 0), 0), ((2, 0, 3), 1)]:
        yield Case(np.zeros(shape, np.float32), ints(7, 8), np.int32(n), gradient=False)
    yield Case(np.zeros(2, np.float32), ints(7, 8), np.int32(0), invalid=True)
    yield Case(np.zeros((2, 1), np.float32), ints(7, 8), np.int32(1), invalid=True)


@more_cases("ReverseV2")
def _(rng, op):
    for shape, axes in itertools.product([(0, 1), ()], [ints(2), ints(0, 0), ints(-5), ints(0)]):
        yield Case(np.zeros(shape, np.float32), axes, gradient=False, static=False)
    yield Case(np.zeros((2, 1), np.float32), ints(2), invalid=True)


@more_cases("ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterMul", "ResourceScatterDiv", "ResourceScatterMin", "ResourceScatterMax",
            "ResourceScatterUpdate")
def _(rng, op):
    for shape in [(0, 5), (2, 7)]:
        yield Case(Ref(floats([1, 2], [3, 4])), ints(), np.ones(shape, np.float32), static=False)
    yield Case(Ref(floats([1, 2], [3, 4])), ints(), np.ones(3, np.float32), invalid=True)


@more_cases("BroadcastArgs")
def _(rng, op):
    for s0, s1 in [([3, -1], [1]), ([3, -1], []), ([3, -1], [3, 1]), ([-2, 3], [-2, 3]), ([-1], [-1])]:
        yield Case(longs(*s0), longs(*s1))
        yield Case(longs(*s1), longs(*s0))
    yield Case(longs(3, -1), longs(4), invalid=True)
    yield Case(longs(-1), longs(0), invalid=True)


def ones(*shape):
    return np.ones(shape, np.float32)


@more_cases("Conv2D", "DepthwiseConv2dNative")
def _(rng, op):
    for x, filters in [((1, 3, 3, 2), (1, 1, 2, 0)), ((0, 3, 3, 2), (0, 1, 2, 1)), ((0, 3, 3, 2), (1, 1, 2, 0)), ((1, 3, 3, 2), (0, 1, 2, 0)),
                       ((1, 0, 3, 2), (0, 1, 2, 1))]:
        for padding in ["SAME", "VALID"]:
            yield Case(ones(*x), ones(*filters), strides=[1, 1, 1, 1], padding=padding, gradient=False, static=False)
    for filters in [(0, 1, 2, 1), (1, 0, 2, 1)]:
        yield Case(ones(1, 3, 3, 2), ones(*filters), strides=[1, 1, 1, 1], padding="SAME", gradient=False, invalid=op == "Conv2D")


@more_cases("DepthwiseConv2dNative")
def _(rng, op):
    for x, filters in [((1, 3, 3, 0), (2, 2, 0, 1)), ((0, 3, 3, 0), (2, 2, 0, 1)), ((1, 3, 3, 0), (2, 2, 0, 0))]:
        yield Case(ones(*x), ones(*filters), strides=[1, 1, 1, 1], padding="VALID", gradient=False, static=False)


@more_cases("Conv3D")
def _(rng, op):
    yield Case(ones(1, 2, 3, 3, 2), ones(1, 1, 1, 2, 0), strides=[1] * 5, padding="SAME", invalid=True)


@more_cases("Conv2DBackpropInput")
def _(rng, op):
    for n, filters, out in [(1, (1, 1, 1, 0), 0), (0, (0, 1, 1, 1), 1), (0, (1, 1, 1, 0), 0)]:
        yield Case(ints(n, 2, 2, 1), ones(*filters), ones(n, 2, 2, out), strides=[1, 1, 1, 1], padding="SAME", gradient=False, static=False)


@more_cases("AssignVariableOp")
def _(rng, op):
    for shape in [(3, 2), (), (4,)]:
        yield Case(Ref(random(rng, (2, 3))), random(rng, shape), gradient=False, static=False)
        yield Case(Ref(random(rng, (2, 3))), random(rng, shape), validate_shape=True, invalid=True)

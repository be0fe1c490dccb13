"""Calls of ops that draw random numbers from a seed, or from key and counter, alone."""
import itertools

import numpy as np
import tensorflow as tf

from .case import *

SEEDS = [np.array([1, 2]), np.array([-1, 2**40]), np.array([0, -2**31], np.int32)]
SHAPES_DRAWN = [[5], [3, 7], [], [0], [1000]]
START = (np.array([10413732777507651514], np.uint64), np.array([3, 17830669156045600267], np.uint64), np.int32(1))
# The counter's lower half overflows; "automatic" is Philox too.
LAST = (np.array([2**64 - 1], np.uint64), np.array([2**64 - 2, 2**64 - 1], np.uint64), np.int32(3))


def wrong_starts():
    key, counter, alg = START
    yield key[:0], counter, alg
    yield key[0], counter, alg
    yield np.array([1, 2], np.uint64), counter, alg
    yield key, counter.reshape(1, 2), alg
    yield key, counter[:0], alg
    yield key, counter, alg.reshape(1)
    for unknown in [0, 2, 7]:
        yield key, counter, np.int32(unknown)


@cases("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg")
def _(rng, op):
    for seed in SEEDS:
        yield Case(seed)
    for wrong in [1, [1], [1, 2, 3], [[1, 2]]]:
        yield Case(np.array(wrong), invalid=True)


@cases("StatelessRandomGetAlg")
def _(rng, op):
    yield Case()


@cases("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal")
def _(rng, op):
    for dtype, shape in itertools.product(FLOATS, SHAPES_DRAWN):
        yield Case(np.array(shape, np.int32), SEEDS[0], dtype=tf.as_dtype(dtype), gradient=False)
    for seed in SEEDS:
        yield Case(np.array([2, 3]), seed, gradient=False)
    for shape, seed in [([-1], [1, 2]), ([[2]], [1, 2]), ([2], [1]), ([0], [1, 2, 3]), ([2], 1), ([2], [[1, 2]])]:
        yield Case(np.array(shape), np.array(seed), invalid=True)


@cases("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2")
def _(rng, op):
    for dtype, shape in itertools.product(FLOATS, SHAPES_DRAWN):
        yield Case(np.array(shape, np.int32), *START, dtype=tf.as_dtype(dtype), gradient=False)
    yield Case(np.array([50]), *LAST, gradient=False)
    yield Case(np.array([0]), *START[:2], np.int32(2), gradient=False)
    yield Case(np.array([50]), START[0], np.array([1, 2, 3], np.uint64), np.int32(1), gradient=False)
    for shape in [[-1], [[2]]]:
        yield Case(np.array(shape), *START, invalid=True)
    for wrong in wrong_starts():
        yield Case(np.array([3]), *wrong, invalid=True)


@cases("StatelessRandomUniformInt", "StatelessRandomUniformIntV2")
def _(rng, op):
    start = START if op.endswith("V2") else SEEDS[:1]
    for dtype, shape in itertools.product([np.int32, np.int64], SHAPES_DRAWN):
        yield Case(np.array(shape, np.int32), *start, dtype(-3), dtype(10))
    for dtype in [np.int32, np.int64]:
        info = np.iinfo(dtype)
        yield Case(np.array([50]), *start, dtype(info.min), dtype(info.max))
        yield Case(np.array([0]), *start, dtype(3), dtype(3))
        yield Case(np.array([2, 3]), *start, dtype(3), dtype(3), invalid=True)
        yield Case(np.array([2, 3]), *start, np.array([3], dtype), dtype(5), invalid=True)
        yield Case(np.array([2, 3]), *start, dtype(3), np.array([5], dtype), invalid=True)
    for more in SEEDS if start is not START else [LAST]:
        yield Case(np.array([50]), *(more if start is START else [more]), np.int32(-3), np.int32(10))
    for wrong in wrong_starts() if start is START else [[np.array(x)] for x in (1, [1], [[1, 2]])]:
        yield Case(np.array([3]), *wrong, np.int32(1), np.int32(9), invalid=True)


@cases("StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2")
def _(rng, op):
    is_v2 = op.endswith("V2")
    start = START if is_v2 else SEEDS[:1]
    dtypes = [np.int32, np.int64, np.uint32, np.uint64]
    for dtype, shape in itertools.product(dtypes, SHAPES_DRAWN):
        yield Case(np.array(shape, np.int32), *start, dtype=tf.as_dtype(dtype))
    for dtype, more in itertools.product(dtypes, [LAST] if is_v2 else [[seed] for seed in SEEDS]):
        yield Case(np.array([50]), *more, dtype=tf.as_dtype(dtype))
    for shape in [[-1], [[2]]]:
        yield Case(np.array(shape), *start, invalid=True)
    for wrong in wrong_starts() if is_v2 else [[np.array(x)] for x in (1, [1], [[1, 2]])]:
        yield Case(np.array([3]), *wrong, invalid=True)
    if not is_v2:
        for dtype in [np.uint32, np.uint64]:
            yield Case(np.array([3]), np.array([1, 2], dtype), invalid=True)


@cases("StatelessMultinomial")
def _(rng, op):
    for dtype, seed in itertools.product(FLOATS, SEEDS):
        yield Case(random(rng, (1, 5), dtype), np.int32(9), seed)
    yield Case(random(rng, (3, 4)), np.int32(8), SEEDS[0])
    yield Case(np.array([[0, -np.inf, 0.0], [np.nan, 1, 2]], np.float32), np.int32(4), SEEDS[0], output_dtype=tf.int32)
    yield Case(random(rng, (2, 3)), np.int32(0), SEEDS[0])
    yield Case(random(rng, (0, 3)), np.int32(4), SEEDS[0])
    for shape, count, seed in [((2, 3), -1, [1, 2]), ((3,), 2, [1, 2]), ((2, 0), 2, [1, 2]), ((2, 3), [2], [1, 2]), ((2, 3), 2, [1]),
                               ((2, 3), 2, [[1, 2]])]:
        yield Case(random(rng, shape), np.array(count, np.int32), np.array(seed), invalid=True)


PARAMETERS_DRAWN = [([4], 0.3), ([4], 1.0), ([50, 7], 1.7), ([4, 3], [0.5, 1, 4]), ([4, 2, 2], [[0.1, 2], [1, 1000]]), ([2, 2], [[0.1, 2], [1, 1000]]),
                    ([4, 1], [9.0]), ([0], 1.0), ([4, 0], [])]


def wrong_parameters(*start):
    yield Case(np.array([4]), *start, np.array([0.5, 1]), invalid=True)
    yield Case(np.array([2, 4]), *start, np.ones((2, 1)), invalid=True)
    yield Case(np.zeros(0, np.int32), *start, np.array([0.5]), invalid=True)
    yield Case(np.array([-1]), *start, 0.5, invalid=True)
    yield Case(np.array([[2]]), *start, 0.5, invalid=True)


@cases("StatelessRandomGammaV2", "StatelessRandomGammaV3")
def _(rng, op):
    start = START if op.endswith("V3") else SEEDS[:1]
    for dtype, (shape, alpha) in itertools.product([np.float32, np.float64, np.float16], PARAMETERS_DRAWN):
        yield Case(np.array(shape, np.int32), *start, np.array(alpha, dtype), tolerance={np.float64: 1e-12, np.float32: 1e-4}.get(dtype))
    yield Case(np.array([5, 4]), *start, np.array([-0.5, 0, np.inf, 1e30]), gradient=False)
    for more in [[seed] for seed in SEEDS] if start is not START else [LAST]:
        yield Case(np.array([3]), *more, np.float32(2))
    yield from wrong_parameters(*start)
    for wrong in wrong_starts() if start is START else [[np.array(x)] for x in (1, [1], [[1, 2]])]:
        yield Case(np.array([3]), *wrong, np.float32(2), invalid=True)


@cases("StatelessRandomPoisson")
def _(rng, op):
    types = [np.float32, np.float64, np.float16, np.int32, np.int64]
    for rate, out, (shape, lam) in itertools.product(types, types, PARAMETERS_DRAWN):
        yield Case(np.array(shape, np.int32), SEEDS[0], np.array(lam).astype(rate), dtype=tf.as_dtype(out))
    for out in types:
        yield Case(np.array([5, 3]), SEEDS[0], np.array([-1, -np.inf, np.inf]), dtype=tf.as_dtype(out))
    for seed in SEEDS:
        yield Case(np.array([30, 2]), seed, np.float32([9.9, 20]), dtype=tf.int64)
    for case in wrong_parameters(SEEDS[0]):
        case.attrs["dtype"] = tf.float32
        yield case
    for wrong in [1, [1], [[1, 2]]]:
        yield Case(np.array([3]), np.array(wrong), np.float32(2), dtype=tf.float32, invalid=True)


# Mean, standard deviation, bounds: for each of the ways to draw a number.
NORMALS = [(0, 1, -2, 2), (5, 2, 1, 100), (0, 1, -np.inf, 0.5), (0, 1, 0.2, np.inf), (0, 1, 0.1, 0.4), (0, 1, -0.5, 0.5), (0, 1, 2, np.inf), (0, 1, 3, 9),
           (0, 1, -np.inf, -3), (0, 1, -9, -3), (10, 3, 11, 11.5), (10, 3, 8, 9)]
NOT_NORMALS = [(0, 0, -1, 1), (0, -1, -1, 1), (0, 1, 1, 1), (0, 1, 2, 1), (0, 1, -np.inf, np.inf), (0, np.nan, -1, 1), (0, 1, np.nan, 1), (np.nan, 1, -1, 1)]


@cases("StatelessParameterizedTruncatedNormal")
def _(rng, op):
    def case(shape, parameters, dtype=np.float32, seed=SEEDS[0], **more):
        return Case(np.array(shape, np.int64), seed, *[np.array(p, dtype) for p in parameters], **more)
    for dtype, parameters in itertools.product([np.float32, np.float64, np.float16], NORMALS):
        yield case([37], parameters, dtype, gradient=False)
        yield case([3, 2], [np.array([p, p]) for p in parameters], dtype, gradient=False)
    columns = np.array(NORMALS).T
    for dtype in [np.float32, np.float64, np.float16]:
        yield case([5, 12], columns, dtype)
        yield case([5, 2, 3], (0.5, np.ones((2, 1)), [-1, 0, 1], 4), dtype)
        yield case([2, 3], (np.zeros((1, 3)), np.ones((2, 1)), [-1, 0, 1], 4), dtype)
    for seed in SEEDS:
        yield case([30], NORMALS[0], seed=seed)
    yield case([0, 3], (0, 0, 0, 0))
    yield case([3, 0], (np.zeros(0), 1, 0, 1))
    for parameters in NOT_NORMALS:
        yield case([3], parameters, invalid=True)
    yield case([4], NORMALS[0], seed=np.array([1]), invalid=True)
    yield case([[4]], NORMALS[0], invalid=True)
    yield case(4, NORMALS[0], invalid=True)
    yield case([-4], NORMALS[0], invalid=True)
    yield case([4], ([0, 0], [1, 1, 1], 0, 1), invalid=True)
    yield case([4], ([0, 0], 1, 0, 1), invalid=True)
    yield case([2, 4], (np.zeros((2, 1)), 1, 0, 1), invalid=True)
    yield case([], ([0], 1, 0, 1), invalid=True)


@cases("ParameterizedTruncatedNormal")
def _(rng, op):
    def case(shape, parameters, dtype=np.float32, **more):
        return Case(np.array(shape, np.int64), *[np.array(p, dtype) for p in parameters], seed=3, seed2=7, **more)
    for dtype, parameters in itertools.product([np.float32, np.float64, np.float16], NORMALS):
        yield case([37], parameters, dtype)
        yield case([5, 30], parameters, dtype)  # more than one batch of a hundred
        yield case([2, 3], [np.array([p, p]) for p in parameters], dtype)
    columns = np.array(NORMALS).T
    for dtype in [np.float32, np.float64, np.float16]:
        yield case([12, 2, 3], columns, dtype)
        yield case([3, 2], (0.5, [2], [-1, 0, 1], [4]), dtype)
    yield case([0, 3], (0, 0, 0, 0))
    yield case([0, 3], (np.zeros(0), 1, 0, 1))
    for parameters in NOT_NORMALS:
        yield case([3], parameters, invalid=True)
        yield case([3, 0], [[p] * 3 for p in parameters], invalid=not np.isnan(parameters[0]))
    yield case([[4]], NORMALS[0], invalid=True)
    yield case(4, NORMALS[0], invalid=True)
    yield case(np.zeros(0, np.int32), NORMALS[0], invalid=True)
    yield case([-4], NORMALS[0], invalid=True)
    yield case([4], ([0, 0], 1, 0, 1), invalid=True)
    yield case([4], ([[0]], 1, 0, 1), invalid=True)
    yield case([4], (0, 1, 0, [1, 2, 3]), invalid=True)
    yield case([4], (np.zeros(0), 1, 0, 1), invalid=True)


@cases("StatelessShuffle")
def _(rng, op):
    for dtype in [np.float32, bf16, np.int8, np.uint64, np.complex64, np.bool_, object]:
        yield Case(random(rng, (9,), np.float32 if dtype == np.complex64 else dtype).astype(dtype), *START, gradient=False)
    for shape in [(), (0,), (1,), (1, 5), (7, 2, 3), (100,), (5, 0), (0, 5)]:
        yield Case(random(rng, shape), *START, gradient=False)
    yield Case(random(rng, (50, 2)), *LAST, gradient=False)
    yield Case(random(rng, (5,)), START[0], np.array([1, 2, 3], np.uint64), np.int32(1), gradient=False)
    for shape, wrong in itertools.product([(), (0,), (1,), (4, 2)], wrong_starts()):
        yield Case(random(rng, shape), *wrong, invalid=True)


@cases("RandomIndexShuffle")
def _(rng, op):
    dtypes = [np.int32, np.uint32, np.int64, np.uint64]
    for dtype, seed in itertools.product(dtypes, dtypes):
        yield Case(np.arange(20, dtype=dtype), np.array([1, 2, 3], seed), dtype(19))
    for largest in [0, 1, 255, 65535, 65536, 65537, 10**6, 2**31 - 1, 2**40, 2**62, 2**63 - 1]:
        for rounds in [4, 6, 40]:
            yield Case(np.array([0, largest // 2, largest]), np.array([-1, 2**31, 2**40 + 5]), np.int64(largest), rounds=rounds)
    yield Case(np.uint64(5), np.array([1, 2, 3]), np.uint64(2**64 - 1))
    yield Case(np.int32(5), np.array([[1, 2, 3]]), np.int32(9))
    yield Case(np.int32(5), np.array([[1, 2, 3], [4, 5, 6]]), np.int32(9))
    yield Case(np.array([5, 6, 7]), np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), np.array([9, 10, 11]))
    yield Case(np.int64(5), np.array([1, 2, 3]), np.array([9, 10, 11]))
    yield Case(np.zeros(0, np.int64), np.zeros((0, 3), np.int64), np.zeros(0, np.int64))
    for index, seed, largest in [(5, [1, 2, 3], 4), (-1, [1, 2, 3], 4), (-2, [1, 2, 3], -1), (5, [1, 2], 9), (5, [[1, 2], [3, 4]], 9), (5, 1, 9),
                                 (5, [[[1, 2, 3]]], 9), ([[5]], [1, 2, 3], 9), (5, [1, 2, 3], [[9]]), ([1, 2], [1, 2, 3], [3, 3, 3]),
                                 ([1, 2], [[1, 2, 3]] * 3, 3), ([], [1, 2, 3], 3), ([], [1, 2, 3], []), (5, [], 9), (5, np.zeros((0, 3)), 9)]:
        yield Case(np.array(index, np.int64), np.array(seed, np.int64), np.array(largest, np.int64), invalid=True)

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

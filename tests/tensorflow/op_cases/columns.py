"""Calls of what feature columns and vocabularies are made of: crosses of columns, counts, n-grams."""
import itertools

import numpy as np
import tensorflow as tf

from .case import *


def strings(*values):
    return np.array([v.encode() for v in values], object)


TEXT = ([[0, 0], [0, 1], [2, 0], [3, 1]], strings("a", "bc", "", "a long one that is hashed in rounds " * 4), [5, 2])
NUMBERS_ = ([[0, 3], [1, 0], [2, 0], [2, 1], [3, 7]], np.array([5, -7, 2**40, 0, 1]), [5, 9])
DENSE = np.array([[1, 2], [3, -4], [5, 6], [7, 8], [2**50, 0]])
WORDS = np.array([[b"x"], [b"y"], [b""], [b"zz"], [b"w"]], object)


def columns(sparse, dense, *more, **rest):
    return Case([np.array(s[0], np.int64).reshape(-1, 2) for s in sparse], [np.asarray(s[1]) for s in sparse],
                [np.array(s[2], np.int64) for s in sparse], dense, *more, **rest)


COMBINATIONS = [([TEXT, NUMBERS_], []), ([TEXT], [DENSE]), ([NUMBERS_], [WORDS, DENSE]), ([], [DENSE, WORDS]), ([TEXT, TEXT, NUMBERS_], [WORDS]),
                ([], [np.zeros((3, 0), np.int64), np.ones((3, 2), np.int64)]), ([([], strings(), [0, 2])], []), ([([], strings(), [4, 2]), TEXT[:2] + ([4, 2],)], []),
                ([([[3, 0], [1, 0], [2, 0]], strings("p", "q", "r"), [5, 1]), TEXT], []), ([([[9, 0]], strings("p"), [5, 1]), TEXT], [])]


def wrong_columns():
    a = TEXT
    yield [(np.zeros((4, 3)), a[1], a[2])], []
    yield [(a[0], strings("x"), a[2])], []
    yield [(a[0], a[1], [5])], []
    yield [a, (NUMBERS_[0], NUMBERS_[1], [6, 9])], []
    yield [a], [DENSE[:4]]
    yield [a], [DENSE[0]]


def wrong(sparse, dense, *more, **rest):
    indices = [np.array(s[0], np.int64) for s in sparse]
    return Case(indices, [np.asarray(s[1]) for s in sparse], [np.array(s[2], np.int64) for s in sparse], dense, *more,
                invalid=True, **rest)


@cases("SparseCross")
def _(rng, op):
    for sparse, dense in COMBINATIONS:
        for buckets, key in [(0, 956888297470), (100, 1), (2**62, -5)]:
            yield columns(sparse, dense, hashed_output=True, num_buckets=buckets, hash_key=key, out_type=tf.int64, internal_type=tf.int64)
        yield columns(sparse, dense, hashed_output=False, num_buckets=0, hash_key=0, out_type=tf.string, internal_type=tf.int64)
    yield columns([TEXT], [WORDS], hashed_output=False, num_buckets=0, hash_key=0, out_type=tf.string, internal_type=tf.string)
    yield columns([TEXT], [WORDS], hashed_output=True, num_buckets=7, hash_key=0, out_type=tf.int64, internal_type=tf.string)
    yield wrong([TEXT], [DENSE], hashed_output=False, num_buckets=0, hash_key=0, out_type=tf.string, internal_type=tf.string)
    for sparse, dense in wrong_columns():
        yield wrong(sparse, dense, hashed_output=True, num_buckets=7, hash_key=0, out_type=tf.int64, internal_type=tf.int64)


def ragged_columns(order, ragged, sparse, dense, **rest):
    splits_dtype = rest["out_row_splits_type"].as_numpy_dtype  # TensorFlow's process ends if the inputs' differ from it
    return Case([np.asarray(values) for values, _ in ragged], [np.asarray(splits, splits_dtype) for _, splits in ragged],
                [np.array(s[0], np.int64) for s in sparse], [np.asarray(s[1]) for s in sparse], [np.array(s[2], np.int64) for s in sparse],
                [np.asarray(d) for d in dense], input_order=order, **rest)


RAGGED = (strings("a", "bc", "", "d", "e"), np.array([0, 2, 2, 3, 4, 5]))
RAGGED_NUMBERS = (np.array([5, -7, 2**40, 0, 1, 3]), np.array([0, 1, 3, 4, 4, 6], np.int32))
TEXT_, PLAIN = dict(hashed_output=False, num_buckets=0, hash_key=0, out_values_type=tf.string), dict(hashed_output=True, out_values_type=tf.int64)


@cases("RaggedCross")
def _(rng, op):
    combinations = [("R", [RAGGED], [], []), ("RR", [RAGGED, RAGGED_NUMBERS], [], []), ("RSD", [RAGGED_NUMBERS], [TEXT], [DENSE]),
                    ("DSSR", [RAGGED], [NUMBERS_, TEXT], [WORDS]), ("DD", [], [], [DENSE, WORDS]), ("S", [], [TEXT], []), ("", [], [], []),
                    ("RD", [(np.zeros(0, np.int64), np.array([0]))], [], [np.zeros((0, 3), np.int64)]),
                    ("SS", [], [([[3, 0], [1, 0], [2, 0]], strings("p", "q", "r"), [5, 1]), TEXT], []),
                    ("DR", [RAGGED], [], [np.zeros((5, 0), np.int64)])]
    for splits in (tf.int32, tf.int64):
        for combination in combinations:
            yield ragged_columns(*combination, out_row_splits_type=splits, **TEXT_)
            for buckets, key in [(0, 956888297470), (100, 1), (2**62, -5)]:
                yield ragged_columns(*combination, out_row_splits_type=splits, num_buckets=buckets, hash_key=key, **PLAIN)
    words = RAGGED[0]
    for bad in [("R", [(words, np.array(splits, np.int64))], [], []) for splits in ([], [1, 5], [0, 4], [0, 3, 2, 5], [0, -1, 5], [0, 9], [[0, 5]])] + [
            ("RD", [RAGGED], [], [DENSE[:4]]), ("RS", [RAGGED], [TEXT[:2] + ([4, 2],)], []), ("D", [], [], [DENSE[0]]), ("S", [], [TEXT[:2] + ([4],)], []),
            ("R", [], [], [DENSE]), ("DD", [], [], [DENSE]), ("X", [], [], [DENSE]), ("R", [(words.reshape(5, 1), RAGGED[1])], [], [])]:
        yield ragged_columns(*bad, out_row_splits_type=tf.int64, invalid=True, **TEXT_)


@cases("SparseCrossV2")
def _(rng, op):
    for sparse, dense in COMBINATIONS:
        yield columns(sparse, dense, np.array(b"_X_", object))
    yield columns([TEXT, TEXT], [], np.array(b"", object))
    for sparse, dense in wrong_columns():
        yield wrong(sparse, dense, np.array(b"-", object))
    yield wrong([TEXT], [], np.array([b"-"], object))


@cases("SparseCrossHashed")
def _(rng, op):
    for (sparse, dense), strong, buckets in itertools.product(COMBINATIONS, [False, True], [0, 1000, -3]):
        if strong and any(x.dtype == np.int64 for x in dense):
            continue  # TensorFlow reads an invalid address
        yield columns(sparse, dense, np.int64(buckets), np.bool_(strong), np.array([137, -24]))
    for sparse, dense in wrong_columns():
        yield wrong(sparse, dense, np.int64(9), np.bool_(False), np.array([1, 2]))
    yield wrong([TEXT], [], np.int64(9), np.bool_(False), np.array([1, 2, 3]))


@cases("StringNGrams")
def _(rng, op):
    words = strings("a", "b", "c", "d", "e")

    def case(splits, widths, pad_width=0, preserve=False, data=words, separator="|", dtype=np.int64, **rest):
        return Case(data, np.array(splits, dtype), separator=separator, ngram_widths=widths, left_pad="<", right_pad=">>", pad_width=pad_width,
                    preserve_short_sequences=preserve, **rest)

    for splits, widths, pad_width, preserve in itertools.product([[0, 3, 3, 5], [0, 5], [0, 0, 1, 5, 5]], [[2], [1, 2, 3], [7], []], [0, 1, -1, 9], [False, True]):
        yield case(splits, widths, pad_width, preserve, invalid=widths == [] and preserve and pad_width < 0)
    yield case([0, 2, 5], [2], dtype=np.int32)
    yield case([0, 2, 5], [2, 1], separator="")
    for data, splits in [(words, []), (words[:0], [0]), (words[:0], []), (words[:0], [0, 0, 0])]:
        yield case(splits, [2], 1, data=data)
    for splits in [[0, 4], [1, 5], [0, 3, 2, 5], [0, 6], [0, -1, 5]]:
        yield case(splits, [2], invalid=True)
    yield case([0, 5], [0], invalid=True)
    yield case([0, 5], [2, -1], invalid=True)


@cases("UnsortedSegmentJoin")
def _(rng, op):
    for ids, count in itertools.product([np.int32, np.int64], repeat=2):
        yield Case(random(rng, (7,), object), np.asarray(rng.integers(0, 4, 7), ids), count(5), separator=", ")
    yield Case(random(rng, (3, 2, 2), object), np.array([1, 0, 1]), np.int32(3), separator="-")
    yield Case(random(rng, (3, 2, 2), object), np.array([[1, 0], [1, 1], [0, 2]]), np.int32(3))
    yield Case(strings("", "a", "", "b"), np.array([0, 0, 0, 0]), np.int32(1), separator="-")
    yield Case(strings(), np.zeros(0, np.int64), np.int32(2))
    yield Case(np.zeros((0, 2), object), np.zeros(0, np.int64), np.int32(2))
    yield Case(strings(), np.zeros(0, np.int64), np.int32(0))
    for ids, n in [([3], 3), ([-1], 3), ([0], 0), (0, 1), ([0, 0], 1), ([[0]], 1)]:
        yield Case(strings("a"), np.array(ids), np.int32(n), invalid=True)
    yield Case(np.array([[b"a", b"b"], [b"c", b"d"]], object), np.array([[1], [1]]), np.int32(2), invalid=True)


def counted(rng, shape, *before):
    """Calls that count random numbers: of both types, with weights of all types and without; `before` are the inputs before them."""
    for values, weights in itertools.product([np.int32, np.int64], [np.int32, np.int64, np.float32, np.float64]):
        yield Case(*before[:1], random(rng, shape, values, 0, 9), *before[1:], random(rng, shape, weights), binary_output=False)
        yield Case(*before[:1], random(rng, shape, values, 0, 9), *before[1:], np.zeros(0, weights), binary_output=False)
    for least, most, binary in [(-1, 5, False), (20, -1, True), (3, 2, True), (-1, 0, False), (0, -1, False)]:
        yield Case(*before[:1], random(rng, shape, np.int64, 0, 9), *before[1:], random(rng, shape), minlength=least, maxlength=most, binary_output=binary)
    yield Case(*before[:1], random(rng, shape, np.int64, -3, -1), *before[1:], random(rng, shape), binary_output=False, invalid=True)
    yield Case(*before[:1], random(rng, shape, np.int64, 0, 9), *before[1:], random(rng, (2,)), binary_output=False, invalid=True)


@cases("DenseCountSparseOutput")
def _(rng, op):
    none = np.zeros(0, np.float32)
    for shape in [(17,), (4, 6)]:
        for case in counted(rng, shape):
            yield case
    for values in [np.zeros(0, np.int64), np.zeros((2, 0), np.int64), np.array([2**31 + 5])]:
        yield Case(values, none, binary_output=False, **({"maxlength": 4} if values.size else {}))
    for shape in [(), (1, 1, 1), (0, 2)]:
        yield Case(np.zeros(shape, np.int64), none, binary_output=False, invalid=True)


@cases("SparseCountSparseOutput")
def _(rng, op):
    none = np.zeros(0, np.float32)
    rows = np.stack([rng.integers(0, 4, 30), rng.integers(0, 9, 30)], 1)
    yield from counted(rng, (30,), rows, np.array([4, 9]))
    yield from counted(rng, (30,), rows[:, 1:], np.array([9]))
    yield from counted(rng, (30,), np.concatenate([rows, rows], 1), np.array([4, 9, 4, 9]))
    yield Case(np.zeros((0, 2), np.int64), np.zeros(0, np.int64), np.array([3, 2]), none, binary_output=False)
    yield Case(np.zeros((0, 1), np.int64), np.zeros(0, np.int64), np.array([0]), none, binary_output=False)
    for indices, values, shape in [([[0, 3]], [1], [4, 3]), ([[-1, 0]], [1], [4, 3]), ([[0, 1]], [1], [4]), ([[0]], [1, 2], [4]), ([0], [1], [3]),
                                   ([[]], [1], []), (np.zeros((0, 2)), [], [0, 3]), (np.zeros((0, 2)), [], [2**32, 3])]:
        yield Case(np.array(indices, np.int64), np.array(values, np.int64), np.array(shape, np.int64), none, binary_output=False, invalid=True)


@cases("RaggedCountSparseOutput")
def _(rng, op):
    none = np.zeros(0, np.float32)
    yield from counted(rng, (30,), np.array([0, 7, 7, 29, 30]))
    yield Case(np.array([0, 0, 0]), np.zeros(0, np.int64), none, binary_output=False)
    for splits in [[0], [], [1, 2], [0, 1], [0, 3]]:
        yield Case(np.array(splits, np.int64), np.array([1, 2]), none, binary_output=False, invalid=True)

"""Calls of operations on sets."""
import itertools

import numpy as np

from .case import *

SET_TYPES = SIGNED + [np.uint8, np.uint16, object]
OPERATIONS = ["a-b", "b-a", "intersection", "union", "A-B"]


def sparse(rng, shape, dtype=np.int64, density=0.5):
    """Indices, values, shape."""
    indices = np.argwhere(rng.random(shape) < density).astype(np.int64)
    return [indices, random(rng, (len(indices),), dtype, 0, 6), np.array(shape, np.int64)]


@cases("DenseToDenseSetOperation")
def _(rng, op):
    for dtype, operation in itertools.product(SET_TYPES, OPERATIONS):
        yield Case(random(rng, (3, 4), dtype, 0, 6), random(rng, (3, 5), dtype, 0, 6), set_operation=operation)
    for operation in OPERATIONS:
        yield Case(random(rng, (2, 3, 4), low=0, dtype=np.int32), random(rng, (2, 3, 1), low=0, dtype=np.int32), set_operation=operation)
        yield Case(np.zeros((2, 0), np.int32), random(rng, (2, 3), np.int32), set_operation=operation)
        yield Case(np.zeros((0, 2), np.int32), np.zeros((0, 3), np.int32), set_operation=operation)
    a = random(rng, (3, 4), np.int64)
    yield Case(a, a, set_operation="xor", invalid=True)
    yield Case(a, a[0], set_operation="union", invalid=True)
    yield Case(a[0], a[0], set_operation="union", invalid=True)
    yield Case(a, a[:2], set_operation="union", invalid=True)
    yield Case(a, a.reshape(3, 2, 2), set_operation="union", invalid=True)


def wrong_sparse(rng, shape):
    indices, values, extents = sparse(rng, shape, density=1.0)
    yield [indices[::-1], values, extents]
    yield [indices + 1, values, extents]
    yield [indices[:1].repeat(len(indices), 0), values, extents]
    yield [indices, values[1:], extents]
    yield [indices, values, extents[1:]]
    yield [indices[:, 1:], values, extents[1:]]
    yield [indices - 1, values, extents]


@cases("DenseToSparseSetOperation")
def _(rng, op):
    for dtype, operation in itertools.product(SET_TYPES, OPERATIONS):
        yield Case(random(rng, (3, 4), dtype, 0, 6), *sparse(rng, (3, 5), dtype), set_operation=operation)
    for operation in OPERATIONS:
        yield Case(random(rng, (2, 3, 4), np.int64, 0, 6), *sparse(rng, (2, 3, 7)), set_operation=operation)
        yield Case(random(rng, (3, 4), np.int64, 0, 6), *sparse(rng, (3, 5), density=0), set_operation=operation, validate_indices=False)
    for wrong in wrong_sparse(rng, (3, 2)):
        yield Case(random(rng, (3, 4), np.int64), *wrong, set_operation="union", invalid=True)
    yield Case(random(rng, (3, 4), np.int64), *sparse(rng, (2, 4)), set_operation="union", invalid=True)


@cases("SparseToSparseSetOperation")
def _(rng, op):
    for dtype, operation in itertools.product(SET_TYPES, OPERATIONS):
        yield Case(*sparse(rng, (3, 4), dtype), *sparse(rng, (3, 5), dtype), set_operation=operation)
    for operation, a, b in itertools.product(OPERATIONS, [0, 0.2], [0, 0.2]):
        yield Case(*sparse(rng, (4, 3, 4), density=a), *sparse(rng, (4, 3, 6), density=b), set_operation=operation)
    for wrong in wrong_sparse(rng, (3, 2)):
        yield Case(*wrong, *sparse(rng, (3, 4)), set_operation="union", invalid=True)
        yield Case(*sparse(rng, (3, 4)), *wrong, set_operation="union", invalid=True)
    yield Case(*sparse(rng, (3, 4)), *sparse(rng, (2, 4)), set_operation="union", invalid=True)


@cases("SetSize")
def _(rng, op):
    for dtype in SET_TYPES:
        yield Case(*sparse(rng, (3, 6), dtype))
    yield Case(*sparse(rng, (2, 3, 6)))
    yield Case(*sparse(rng, (2, 0, 6)))
    yield Case(*sparse(rng, (5, 3), density=0))
    for wrong in wrong_sparse(rng, (3, 2)):
        yield Case(*wrong, invalid=True)


@cases("EditDistance")
def _(rng, op):
    for dtype, normalize in itertools.product([np.int64, np.int32, np.uint8, np.float32, object], [False, True]):
        yield Case(*sparse(rng, (4, 6), dtype, 0.6), *sparse(rng, (4, 5), dtype, 0.6), normalize=normalize)
    for a, b in itertools.product([0, 0.3], [0, 0.3]):
        yield Case(*sparse(rng, (2, 3, 4), density=a), *sparse(rng, (2, 3, 6), density=b))
    yield Case(*sparse(rng, (2, 4)), *sparse(rng, (3, 5)))
    yield Case(*sparse(rng, (2, 4)), *sparse(rng, (2, 2, 5)), invalid=True)
    yield Case(*sparse(rng, (4,)), *sparse(rng, (4,)), invalid=True)
    indices, values, shape = sparse(rng, (2, 4), density=1)
    yield Case(indices[1:], values, shape, *sparse(rng, (2, 4)), invalid=True)

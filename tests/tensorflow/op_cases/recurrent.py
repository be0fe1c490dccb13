"""Calls of the cells of recurrent networks."""
import itertools

import numpy as np

from .case import *


def cell_weights(rng, op, batch, inputs, cells, dtype, time=None):
    """x, cs_prev, h_prev, w, wci, wcf, wco, b"""
    some = lambda *shape: random(rng, shape, dtype, -1, 1)
    x = some(batch, inputs) if time is None else some(time, batch, inputs)
    return [x, some(batch, cells), some(batch, cells), some(inputs + cells, 4 * cells), some(cells), some(cells), some(cells), some(4 * cells)]


@cases("LSTMBlockCell")
def _(rng, op):
    for dtype, peephole in itertools.product([np.float32, np.float16], [False, True]):
        yield Case(*cell_weights(rng, op, 3, 4, 5, dtype), use_peephole=peephole, tolerance=0.02 if dtype == np.float16 else None)
    yield Case(*cell_weights(rng, op, 2, 3, 1, np.float32), forget_bias=-0.5, cell_clip=0.2)
    yield Case(*cell_weights(rng, op, 2, 3, 17, np.float32), cell_clip=-1.0)
    yield Case(*cell_weights(rng, op, 33, 20, 40, np.float32), use_peephole=True)
    for at, wrong in [(0, (3, 6)), (0, (2, 4)), (1, (3, 4)), (2, (2, 5)), (3, (9, 19)), (3, (8, 20)), (7, (19,))]:  # TensorFlow dies of wrong ranks
        arguments = cell_weights(rng, op, 3, 4, 5, np.float32)
        arguments[at] = random(rng, wrong)
        yield Case(*arguments, invalid=True)


@cases("LSTMBlockCellGrad")
def _(rng, op):
    def case(batch, inputs, cells, dtype=np.float32, peephole=False, at=None, wrong=None, **more):
        arguments = cell_weights(rng, op, batch, inputs, cells, dtype) + [random(rng, (batch, cells), dtype, -1, 1) for _ in range(8)]
        if at is not None:
            arguments[at] = random(rng, wrong, dtype)
        return Case(*arguments, use_peephole=peephole, gradient=False, **more)
    for dtype, peephole in itertools.product([np.float32, np.float16], [False, True]):
        yield case(3, 4, 5, dtype, peephole, tolerance=0.03 if dtype == np.float16 else None)
    yield case(33, 20, 40, peephole=True)
    for at, wrong in [(1, (3, 4)), (3, (9, 19)), (8, (3, 4)), (13, (2, 5)), (14, (3, 4)), (15, (4, 5))]:
        yield case(3, 4, 5, at=at, wrong=wrong, invalid=True)


@cases("BlockLSTM", "BlockLSTMV2")
def _(rng, op):
    def case(steps, time, batch, inputs, cells, dtype=np.float32, **more):
        return Case(np.int64(steps), *cell_weights(rng, op, batch, inputs, cells, dtype, time), **more)
    for dtype, peephole in itertools.product([np.float32, np.float16], [False, True]):
        yield case(4, 4, 3, 2, 5, dtype, use_peephole=peephole, tolerance=0.05 if dtype == np.float16 else 1e-4)
    yield case(1, 1, 2, 3, 4)  # with fewer steps than time TensorFlow leaves the rest of i, f, o, ci and co unset
    yield case(6, 6, 9, 20, 24, cell_clip=0.5, tolerance=2e-4)
    for at, wrong in [(1, (3, 2)), (2, (3, 4)), (4, (7, 19)), (8, (19,))]:
        invalid = case(4, 4, 3, 2, 5, invalid=True)
        invalid.inputs = tuple(random(rng, wrong) if i == at else x for i, x in enumerate(invalid.inputs))
        yield invalid


@cases("BlockLSTMGrad", "BlockLSTMGradV2")
def _(rng, op):
    def case(steps, time, batch, inputs, cells, dtype=np.float32, **more):
        values = [random(rng, (time, batch, cells), dtype, -1, 1) for _ in range(9)]
        return Case(np.int64(steps), *cell_weights(rng, op, batch, inputs, cells, dtype, time), *values, gradient=False, **more)
    for dtype, peephole in itertools.product([np.float32, np.float16], [False, True]):
        yield case(4, 4, 3, 2, 5, dtype, use_peephole=peephole, tolerance=0.05 if dtype == np.float16 else 1e-4)
    for steps in [0, 1, 3]:
        yield case(steps, 3, 2, 3, 4, use_peephole=False, tolerance=1e-4)


def gru_weights(rng, batch, inputs, cells):
    """x, h_prev, w_ru, w_c, b_ru, b_c"""
    some = lambda *shape: random(rng, shape, np.float32, -1, 1)
    return [some(batch, inputs), some(batch, cells), some(inputs + cells, 2 * cells), some(inputs + cells, cells), some(2 * cells), some(cells)]


@cases("GRUBlockCell")
def _(rng, op):
    for extents in [(3, 4, 5), (1, 1, 1), (33, 20, 40)]:
        yield Case(*gru_weights(rng, *extents))
    for at, wrong in [(0, (3, 6)), (0, (2, 4)), (1, (3, 4)), (2, (9, 9)), (3, (8, 5)), (4, (9,)), (5, (1, 5)), (0, (4,))]:
        arguments = gru_weights(rng, 3, 4, 5)
        arguments[at] = random(rng, wrong)
        yield Case(*arguments, invalid=True)


@cases("GRUBlockCellGrad")
def _(rng, op):
    def case(batch, inputs, cells, at=None, wrong=None, **more):
        arguments = gru_weights(rng, batch, inputs, cells) + [random(rng, (batch, cells), np.float32, -1, 1) for _ in range(4)]
        if at is not None:
            arguments[at] = random(rng, wrong)
        return Case(*arguments, gradient=False, **more)
    for extents in [(3, 4, 5), (1, 1, 1), (33, 20, 40)]:
        yield case(*extents)
    for at, wrong in [(1, (3, 4)), (2, (9, 9)), (6, (3, 4)), (9, (2, 5))]:
        yield case(3, 4, 5, at=at, wrong=wrong, invalid=True)

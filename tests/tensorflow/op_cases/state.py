"""Calls of ops with state (random numbers, variables) and of strings."""
import itertools

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from .case import *


# ---- random numbers: the same for the same seeds ----

SEEDS = {"seed": 87654321, "seed2": 42}


@cases("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
def _(rng, op):
    for dtype in FLOATS:
        for shape in [[5], [3, 7], [], [0], [1000]]:
            yield Case(np.array(shape, np.int32), dtype=tf.as_dtype(dtype), **SEEDS)
    yield Case(np.array([2, -1], np.int32), dtype=tf.float32, invalid=True, **SEEDS)


@cases("RandomUniformInt")
def _(rng, op):
    for dtype in [np.int32, np.int64]:
        yield Case(np.array([50]), dtype(-3), dtype(10), **SEEDS)
        yield Case(np.array([2, 3]), dtype(3), dtype(3), invalid=True, **SEEDS)


@cases("RandomShuffle")
def _(rng, op):
    for shape in [(7,), (6, 2), (1,), (), (0, 3)]:
        yield Case(random(rng, shape, np.int32, 0, 99), **SEEDS)
    yield Case(random(rng, (5,), object), **SEEDS)


@cases("Multinomial")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(random(rng, (1, 5), dtype), np.int32(9), **SEEDS)
    yield Case(np.array([[0, -np.inf, 0.0], [np.nan, 1, 2]], np.float32), np.int32(4), output_dtype=tf.int32, **SEEDS)
    yield Case(random(rng, (2, 3)), np.int32(0), **SEEDS)
    yield Case(random(rng, (2, 3)), np.int32(-1), invalid=True, **SEEDS)
    yield Case(random(rng, (3,)), np.int32(2), invalid=True, **SEEDS)
    yield Case(random(rng, (2, 0)), np.int32(2), invalid=True, **SEEDS)


@cases("RandomGamma")
def _(rng, op):
    for dtype in [np.float32, np.float64, np.float16]:
        for alphas in [0.3, 1.0, 1.7, 30.0, [0.5, 1, 4], [[0.1, 2], [1, 1000]], []]:
            yield Case(np.array([4], np.int32), np.array(alphas, dtype), **SEEDS)
    yield Case(np.array([50, 7]), np.float32(0.9), **SEEDS)
    yield Case(np.array([0, 7]), np.float32(0.9), **SEEDS)
    yield Case(np.zeros(0, np.int32), np.array([0.9, 1, 2]), **SEEDS)
    yield Case(np.array([-1]), np.float32(0.9), invalid=True, **SEEDS)
    yield Case(np.array([[1]]), np.float32(0.9), invalid=True, **SEEDS)


@cases("RandomPoissonV2")
def _(rng, op):
    floats, types = [np.float32, np.float64, np.float16, np.int32, np.int64], [tf.float16, tf.float32, tf.float64, tf.int32, tf.int64]
    for dtype, out, rate in itertools.product(floats, types, [0.0, 0.3, 9.9, 10.0, 25.0, [0.5, 12, 4], [[0.1, 20], [1, 1000]], []]):
        yield Case(np.array([4], np.int32), np.array(rate).astype(dtype), dtype=out, **SEEDS)
    yield Case(np.array([50, 7]), np.float32(3), **SEEDS)
    yield Case(np.array([50, 7]), np.float32(30), **SEEDS)
    yield Case(np.array([-1]), np.float32(0.9), invalid=True, **SEEDS)


# ---- variables ----

@cases("Assign", "AssignAdd", "AssignSub")
def _(rng, op):
    for dtype in NUMBERS:
        yield Case(Ref(random(rng, (2, 3), dtype)), random(rng, (2, 3), dtype))
    yield Case(Ref(random(rng, (0, 3))), random(rng, (0, 3)))
    yield Case(Ref(random(rng, ())), random(rng, ()))
    yield Case(Ref(random(rng, (2, 3))), random(rng, (3, 2)), invalid=True)
    if op == "Assign":
        yield Case(Ref(random(rng, (2,), np.bool_)), random(rng, (2,), np.bool_))
        yield Case(Ref(random(rng, (2,), object)), random(rng, (2,), object))


@cases("CountUpTo", "ResourceCountUpTo")
def _(rng, op):
    for dtype in [np.int32, np.int64]:
        attrs = {"limit": 5, **({"T": tf.as_dtype(dtype)} if op.startswith("Resource") else {})}
        yield Case(Ref(dtype(3)), **attrs)
        yield Case(Ref(dtype(-7)), **attrs)
        yield Case(Ref(dtype(5)), invalid=True, **attrs)
        yield Case(Ref(dtype(9)), invalid=True, **attrs)


@cases("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
def _(rng, op):
    for dtype in NUMBERS:
        yield Case(Ref(random(rng, (2, 3), dtype)), random(rng, (2, 3), dtype))
    yield Case(Ref(random(rng, ())), random(rng, ()))
    if op != "AssignVariableOp":
        yield Case(Ref(random(rng, (2, 3))), random(rng, (3, 2)), invalid=True)


@cases("ReadVariableOp")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_]:
        yield Case(Ref(random(rng, (2, 3), dtype)), dtype=tf.as_dtype(dtype))


@cases("ResourceGather")
def _(rng, op):
    for dtype in NUMBERS:
        yield Case(Ref(random(rng, (5, 2), dtype)), np.array([[4, 0], [0, 2]]), dtype=tf.as_dtype(dtype))
    yield Case(Ref(random(rng, (5, 2))), np.zeros(0, np.int32), dtype=tf.float32)
    for index in [5, -1]:
        yield Case(Ref(random(rng, (5, 2))), np.array([index], np.int32), dtype=tf.float32, invalid=True)


@cases("ResourceGatherNd")
def _(rng, op):
    def case(shape, indices, dtype=np.float32, index=np.int32, **more):
        return Case(Ref(random(rng, shape, dtype)), np.array(indices, index), dtype=tf.as_dtype(dtype), **more)

    for dtype in NUMBERS + [np.bool_]:
        yield case((5, 2), [[4, 0], [0, 1]], dtype, np.int64)
    yield case((5, 2), [[4], [0]])
    yield case((5, 2), [3])
    yield case((3, 2, 2), [[[2, 1]], [[0, 0]]])
    yield case((3, 2), np.zeros((2, 0)))
    yield case((3, 2), np.zeros((0, 1)))
    yield case((0, 2), np.zeros((0, 1)))
    for indices in [[[5]], [[-1]], [[0, 2]], [[0, 0, 0]], 0]:
        yield case((5, 2), indices, invalid=True)
    yield case((0, 2), [[0]], invalid=True)
    yield case((3, 0), [[0]], invalid=True)


@cases("VarIsInitializedOp", "VariableShape")
def _(rng, op):
    yield Case(Ref(random(rng, (2, 3))))
    yield Case(Ref(random(rng, ())))


@cases("IsVariableInitialized")
def _(rng, op):
    yield Case(Ref(random(rng, (2, 3))))


SCATTER = ["ScatterUpdate", "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterMin", "ScatterMax"]


@cases(*SCATTER, *["Resource" + op for op in SCATTER])
def _(rng, op):
    dtypes = FLOATS + [np.int32, np.int64] if op in ("ScatterMin", "ScatterMax") else NUMBERS
    low = 1 if "Div" in op else -3
    for dtype in dtypes:
        yield Case(Ref(random(rng, (4, 2), dtype)), np.array([3, 0, 3]), random(rng, (3, 2), dtype, low))
    yield Case(Ref(random(rng, (4, 2))), np.array([[1, 0]], np.int32), random(rng, (1, 2, 2), low=low))
    yield Case(Ref(random(rng, (4, 2))), np.int32(1), random(rng, (2,), low=low))
    yield Case(Ref(random(rng, (4, 2))), np.array([1, 2], np.int32), random(rng, (), low=low))
    yield Case(Ref(random(rng, (4, 2))), np.zeros(0, np.int32), random(rng, (0, 2)))
    for index in [4, -1]:
        yield Case(Ref(random(rng, (4, 2))), np.array([index], np.int32), random(rng, (1, 2), low=low), invalid=True)
    if "Div" in op:
        yield Case(Ref(np.array([7, -7, 9], np.int32)), np.array([0, 1, 2]), np.array([2, 2, -1], np.int32))
        yield Case(Ref(np.array([1, -1, 0], np.float32)), np.array([0, 1]), np.zeros(2, np.float32), invalid=op.startswith("Resource"))
    elif "Min" in op or "Max" in op:
        yield Case(Ref(np.array([1, 2, np.nan], np.float32)), np.array([1, 2]), np.array([np.nan, 1], np.float32))
    yield Case(Ref(random(rng, (4, 2))), np.array([0], np.int32), random(rng, (2, 2), low=low), invalid=True)


@cases("StridedSliceAssign", "ResourceStridedSliceAssign")
def _(rng, op):
    def case(shape, begin, end, strides, value, dtype=np.float32, index=np.int32, **more):
        indices = [np.array(x, index) for x in (begin, end, strides)]
        return Case(Ref(random(rng, shape, dtype)), *indices, random(rng, value, dtype), **more)

    for dtype in NUMBERS + [np.bool_, object]:
        yield case((4, 3), [1, 0], [4, -1], [2, 1], (2, 2), dtype)
    yield case((4, 3), [-1, 0], [-4, 3], [-2, 1], (2, 3), index=np.int64)
    yield case((4, 3), [0, 1], [4, 2], [1, 1], (4,), shrink_axis_mask=2)
    yield case((4, 3), [2, 1], [3, 2], [1, 1], (), shrink_axis_mask=3)
    yield case((4, 3), [2, 1], [3, 2], [1, 1], (1,), shrink_axis_mask=3)
    yield case((4, 1, 3), [1, 0, 0], [2, 0, 2], [1, 1, 1], (1, 1, 3), shrink_axis_mask=1, new_axis_mask=2)
    yield case((2, 3, 4), [0, 1], [0, 3], [1, 1], (3, 2), ellipsis_mask=1)
    yield case((2, 3, 4), [9, -9], [-9, 9], [-1, 1], (2, 3, 4), begin_mask=1, end_mask=1)
    for value in [(), (1,), (3,), (1, 3), (2, 1), (1, 1, 2, 3)]:  # broadcast
        yield case((4, 3), [0], [2], [1], value)
    for value in [(0, 3), (), (5,)]:  # an empty slice takes anything
        yield case((4, 3), [2], [2], [1], value)
    yield case((), [], [], [], ())
    yield case((), [0], [0], [1], (1,), new_axis_mask=1)
    for value in [(2,), (3, 3), (0, 3), (2, 2, 3)]:
        yield case((4, 3), [0], [2], [1], value, invalid=True)
    yield case((4, 3), [4], [5], [1], (3,), shrink_axis_mask=1, invalid=True)
    yield case((4, 3), [0], [2], [0], (2, 3), invalid=True)
    yield case((4, 3), [0, 0, 0], [2, 2, 2], [1, 1, 1], (2, 3), invalid=True)
    yield case((4, 3), [0], [2, 3], [1], (2, 3), invalid=True)


SCATTER_ND = ["ScatterNdUpdate", "ScatterNdAdd", "ScatterNdSub", "ScatterNdMax", "ScatterNdMin"]


@cases(*SCATTER_ND, *["Resource" + op for op in SCATTER_ND])
def _(rng, op):
    def case(shape, indices, updates, dtype=np.float32, index=np.int32, **more):
        return Case(Ref(random(rng, shape, dtype)), np.array(indices, index), random(rng, updates, dtype), **more)

    for dtype in NUMBERS + ([np.bool_, object] if op.endswith("Update") else []):
        yield case((4, 2), [[3], [0], [3]], (3, 2), dtype)
    yield case((4, 2), [[3, 1], [0, 0], [3, 1]], (3,), index=np.int64)
    yield case((3, 2, 2), [[[2, 1], [0, 0]]], (1, 2, 2))
    yield case((4, 2), np.zeros((0, 1)), (0, 2))
    yield case((0, 2), np.zeros((0, 1)), (0, 2))
    yield case((3, 0), np.zeros((0, 1)), (0, 0))
    if not op.endswith("Update"):
        special_values = np.array([1, 2, np.nan, np.inf, -np.inf], np.float32)
        yield Case(Ref(special_values), np.array([[1], [2], [0]]), np.array([np.nan, 1, -np.inf], np.float32))
    for policy in ["IGNORE", "ERROR"]:
        yield case((4, 2), [[3], [4], [-1], [0]], (4, 2), bad_indices_policy=policy, invalid=policy == "ERROR")
    for indices in [[[4]], [[-1]], [[2**31 - 1]], [[-2**31]]]:
        yield case((4, 2), indices, (1, 2), invalid=True)
    yield case((4, 2), [[1, 2]], (1,), invalid=True)
    yield case((4, 2), [[0, 2**62]], (1,), index=np.int64, invalid=True)
    yield case((4, 2), [[0, 0, 0]], (1,), invalid=True)
    yield case((4, 2), [[0]], (1, 3), invalid=True)
    yield case((4, 2), [[0]], (2, 2), invalid=True)
    yield case((4, 2), [[0]], (), invalid=True)
    yield case((4, 2), 0, (2,), invalid=True)
    yield case((0, 2), [[0]], (1, 2), invalid=True)
    yield case((3, 0), [[0]], (1, 0), invalid=True)
    yield case((4, 2), np.zeros((1, 0)), (1, 4, 2), invalid=True)


def numbers(dtype, *values):
    return [np.asarray(v, dtype) for v in values]


@cases("ApplyGradientDescent", "ResourceApplyGradientDescent")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(Ref(random(rng, (3, 2), dtype)), *numbers(dtype, 0.1), random(rng, (3, 2), dtype))
    yield Case(Ref(random(rng, (3, 2))), *numbers(np.float32, 0.1), random(rng, (2, 3)), invalid=True)
    yield Case(Ref(random(rng, (3,))), np.ones(3, np.float32), random(rng, (3,)), invalid=True)


@cases("ApplyMomentum", "ResourceApplyMomentum")
def _(rng, op):
    for dtype, nesterov in itertools.product(FLOATS, [False, True]):
        yield Case(Ref(random(rng, (3, 2), dtype)), Ref(random(rng, (3, 2), dtype)), *numbers(dtype, 0.1), random(rng, (3, 2), dtype),
                   *numbers(dtype, 0.9), use_nesterov=nesterov)
    yield Case(Ref(random(rng, (3, 2))), Ref(random(rng, (3, 2))), *numbers(np.float32, 0.1), random(rng, (2,)),
               *numbers(np.float32, 0.9), invalid=True)


@cases("ApplyAdam", "ResourceApplyAdam")
def _(rng, op):
    for dtype, nesterov in itertools.product(FLOATS, [False, True]):
        refs = [Ref(random(rng, (3, 2), dtype, 0.1, 1)) for _ in range(3)]
        yield Case(*refs, *numbers(dtype, 0.9, 0.99, 0.01, 0.9, 0.99, 1e-3), random(rng, (3, 2), dtype), use_nesterov=nesterov)


@cases("ApplyAdagrad", "ResourceApplyAdagrad")
def _(rng, op):
    for dtype, slots in itertools.product(FLOATS, [False, True]):
        yield Case(Ref(random(rng, (3, 2), dtype)), Ref(random(rng, (3, 2), dtype, 0.1, 1)), *numbers(dtype, 0.1), random(rng, (3, 2), dtype),
                   update_slots=slots)


@cases("ApplyRMSProp", "ResourceApplyRMSProp")
def _(rng, op):
    for dtype in FLOATS:
        refs = [Ref(random(rng, (3, 2), dtype, 0.1, 1)) for _ in range(3)]
        yield Case(*refs, *numbers(dtype, 0.01, 0.9, 0.5, 1e-3), random(rng, (3, 2), dtype))


@cases("SparseApplyMomentum", "ResourceSparseApplyMomentum")
def _(rng, op):
    for dtype, nesterov in itertools.product(FLOATS, [False, True]):
        yield Case(Ref(random(rng, (4, 2), dtype)), Ref(random(rng, (4, 2), dtype)), *numbers(dtype, 0.1), random(rng, (3, 2), dtype),
                   np.array([2, 0, 2]), *numbers(dtype, 0.9), use_nesterov=nesterov)
    for indices in [[4], [-1], [0, 1]]:
        yield Case(Ref(random(rng, (4, 2))), Ref(random(rng, (4, 2))), *numbers(np.float32, 0.1), random(rng, (1, 2)),
                   np.array(indices, np.int32), *numbers(np.float32, 0.9), invalid=True)


@cases("SparseApplyAdagrad", "ResourceSparseApplyAdagrad")
def _(rng, op):
    for dtype, slots in itertools.product(FLOATS, [False, True]):
        yield Case(Ref(random(rng, (4, 2), dtype)), Ref(random(rng, (4, 2), dtype, 0.1, 1)), *numbers(dtype, 0.1), random(rng, (3, 2), dtype),
                   np.array([2, 0, 2]), update_slots=slots)
    for indices in [[4], [-1], [0, 1]]:
        yield Case(Ref(random(rng, (4, 2))), Ref(random(rng, (4, 2), low=0.1)), *numbers(np.float32, 0.1), random(rng, (1, 2)),
                   np.array(indices, np.int32), invalid=True)


RULES = ["CenteredRMSProp", "Adadelta", "Ftrl", "FtrlV2", "ProximalGradientDescent", "ProximalAdagrad", "AdagradDA", "AdagradV2"]
SPARSE_RULES = RULES + ["RMSProp"]
DENSE_RULES = RULES + ["AddSign", "PowerSign", "AdaMax"]
RATES = {"lr": 0.1, "alpha": 0.3, "rho": 0.9, "momentum": 0.5, "epsilon": 1e-2, "l1": 0.2, "l2": 0.1, "l2_shrinkage": 0.05, "lr_power": -0.5,
         "beta1_power": 0.9, "beta2_power": 0.99, "beta1": 0.9, "beta2": 0.99, "logbase": 1.5, "sign_decay": 0.4, "beta": 0.9}


@cases(*["Apply" + rule for rule in DENSE_RULES], *["ResourceApply" + rule for rule in DENSE_RULES],
       *["SparseApply" + rule for rule in SPARSE_RULES], *["ResourceSparseApply" + rule for rule in SPARSE_RULES],
       "ResourceApplyAdamWithAmsgrad", "ResourceApplyKerasMomentum", "ResourceSparseApplyKerasMomentum")
def _(rng, op):
    definition = op_def_registry.get(op)
    attrs = {attr.name for attr in definition.attr}
    indices = np.array([2, 0, 2])

    def case(dtype, change=(), indices=indices, shape=(4, 2), **more):
        """All variables are positive, slots that are sums of squares are large enough for what is subtracted from them."""
        inputs, sparse = [], "indices" in [arg.name for arg in definition.input_arg]
        for arg in definition.input_arg:
            if arg.is_ref or arg.type == tf.resource.as_datatype_enum:
                low = 1.5 if arg.name in ("ms", "gradient_squared_accumulator") else 0.1
                inputs.append(Ref(random(rng, shape, dtype, low, low + 0.9)))
            elif arg.name in ("grad", "delta"):
                inputs.append(random(rng, (len(indices),) + shape[1:] if sparse else shape, dtype, -1, 1))
            elif arg.name == "indices":
                inputs.append(indices)
            elif arg.name == "global_step":
                inputs.append(np.int64(3))
            else:
                inputs.append(np.asarray(dict(change).get(arg.name, RATES[arg.name]), dtype))
        return Case(*inputs, **more)

    narrow = [] if "Proximal" in op or "AdagradDA" in op else [np.float16] if "AdaMax" in op or "RMSProp" in op and "Sparse" in op else [np.float16, bf16]
    for dtype in WIDE + narrow:
        yield case(dtype)
        for flag in attrs & {"use_nesterov", "update_slots", "multiply_linear_by_lr"}:
            for value in [False, True]:
                yield case(dtype, **{flag: value})
    yield case(np.float32, {"l1": 0})
    yield case(np.float32, shape=(0, 3), indices=np.zeros(0, np.int64))
    if "Ftrl" in op:
        yield case(np.float32, {"lr_power": -0.7})
        yield case(np.float32, {"lr_power": 0})
        for wrong in [{"lr": 0}, {"l1": -1}, {"l2": -1}, {"lr_power": 0.5}] if "Sparse" in op else []:
            yield case(np.float32, wrong, invalid=True)
    if "Sparse" in op:
        yield case(np.float32, indices=np.array([1, 3], np.int32))
        for wrong in [[4], [-1]]:
            yield case(np.float32, indices=np.array(wrong), invalid=True)
    yield case(np.float32, {"lr": [0.1, 0.1], "alpha": [0.1, 0.1]}, invalid=True)


# ---- strings ----

@cases("StringJoin")
def _(rng, op):
    yield Case([random(rng, (3,), object), random(rng, (), object), random(rng, (3,), object)], separator="-")
    yield Case([random(rng, (2, 2), object)])
    yield Case([random(rng, (2,), object), random(rng, (3,), object)], invalid=True)


@cases("RegexFullMatch")
def _(rng, op):
    yield Case(np.array([b"abc", b"abd", b""], object), np.array(b"ab(c|x)", object))
    yield Case(np.array([b"abc"], object), np.array(b"(", object), invalid=True)


@cases("StaticRegexFullMatch")
def _(rng, op):
    yield Case(np.array([b"s1", b"t1"], object), pattern="s[0-9]+")


@cases("ShardedFilespec")
def _(rng, op):
    yield Case(np.array(b"model", object), np.int32(7))
    yield Case(np.array(b"", object), np.int32(123456))


@cases("RefIdentity")
def _(rng, op):
    for dtype in [np.float32, np.int64, np.bool_]:
        yield Case(Ref(random(rng, (3, 4), dtype)))


@cases("ShardedFilename")
def _(rng, op):
    yield Case(np.array(b"model", object), np.int32(2), np.int32(7))


@cases("ScalarSummary")
def _(rng, op):
    yield Case(np.array(b"loss", object), np.float32(1.5))
    yield Case(np.array([b"a", b"b"], object), np.array([1.0, 2.0]))
    yield Case(np.array([b"a", b"b"], object), np.array([1.0]), invalid=True)

"""Calls of elementwise ops and of reductions."""
import itertools

import numpy as np
import tensorflow as tf

from .case import *


# ---- elementwise ----

def unary(dtypes, low=-3.0, high=3.0, specials=True, **attrs):
    def generate(rng, op):
        for dtype in dtypes:
            for shape in SHAPES if dtype in (np.float32, np.bool_) or len(dtypes) == 1 else [(3, 4), ()]:
                yield Case(random(rng, shape, dtype, low, high), **attrs)
            if specials and dtype != np.bool_:
                yield Case(special(dtype), gradient=False, **attrs)
    return generate


cases("Abs", "Sign", "Neg")(unary(FLOATS + SIGNED))
cases("Square")(unary(FLOATS + [np.int32, np.int64]))
cases("Sqrt", "Rsqrt", "Log")(unary(FLOATS, 0.1, 9))
cases("Exp", "Sigmoid", "Tanh", "Softplus", "Elu", "Selu", "Floor")(unary(FLOATS))
cases("Expm1", "Sin", "Cos", "Atan", "Sinh", "Cosh", "Asinh", "Erf", "Erfc", "Softsign", "Ceil")(unary(FLOATS))
cases("Rint")(unary(WIDE))
cases("Tan")(unary(FLOATS, -1, 1))
cases("Asin", "Acos", "Atanh")(unary(FLOATS, -0.9, 0.9))
cases("Acosh")(unary(FLOATS, 1.2, 9))
cases("Log1p")(unary(FLOATS, -0.5, 9))
cases("Lgamma", "Digamma")(unary(WIDE + [np.float16], 0.3, 9))
cases("IsFinite", "IsInf", "IsNan")(unary(FLOATS))
cases("Round")(unary(FLOATS + [np.int32, np.int64]))
cases("Invert")(unary(INTS))
cases("Reciprocal", "Inv")(unary(FLOATS, 0.3, 4))
cases("Relu", "Relu6")(unary(NUMBERS))
cases("LeakyRelu")(unary(FLOATS, alpha=0.3))
cases("ZerosLike", "OnesLike", "Identity", "StopGradient", "GuaranteeConst", "Snapshot")(unary(NUMBERS + [np.bool_]))
cases("LogicalNot")(unary([np.bool_]))
cases("L2Loss")(unary(FLOATS))


def binary(dtypes, low=-3.0, high=3.0, broadcast=True, specials=True, int_low=None, int_high=None, **attrs):
    def generate(rng, op):
        for dtype in dtypes:
            lo, hi = (low, high) if is_float(dtype) or int_low is None else (int_low, int_high)
            pairs = PAIRS if dtype in (np.float32, np.bool_) else [((3, 4), (3, 4)), ((2, 1, 3), (4, 1)), ((), (5,))]
            for a, b in pairs:
                if broadcast or a == b:
                    yield Case(random(rng, a, dtype, lo, hi), random(rng, b, dtype, lo, hi), **attrs)
            if specials and dtype != np.bool_:
                yield Case(*crossed(special(dtype), special(dtype)), gradient=False, **attrs)
        yield Case(random(rng, (3,), dtypes[0]), random(rng, (4,), dtypes[0]), invalid=True, **attrs)
        yield Case(random(rng, (2, 3), dtypes[0]), random(rng, (3, 2), dtypes[0]), invalid=True, **attrs)
    return generate


def without_zero_divisors(generate, types=(np.int32, np.int64, np.int8, np.uint8)):
    """Integers divided by zero have cases of their own, and so has the one quotient that overflows (it traps)."""
    def generated(rng, op):
        for case in generate(rng, op):
            x, y = case.inputs
            if not is_float(x.dtype.type) and not case.invalid:
                y = np.where(y == 0, np.asarray(3, y.dtype), y)
                if np.issubdtype(y.dtype, np.signedinteger):
                    y = np.where(y == -1, np.asarray(2, y.dtype), y)
            yield Case(x, y, invalid=case.invalid, gradient=case.gradient, **case.attrs)
        for dtype in types:
            yield Case(np.array([1, 2], dtype), np.array([1, 0], dtype), invalid=True)
        yield Case(np.array([1.0, -1.0, 0.0], np.float32), np.zeros(3, np.float32), gradient=False)
    return generated


cases("Add")(binary(FLOATS + SIGNED + [np.uint8]))
cases("AddV2", "Sub", "Mul")(binary(NUMBERS))
cases("Maximum", "Minimum")(binary(NUMBERS))
cases("SquaredDifference")(binary(FLOATS + [np.int32, np.int64]))
cases("RealDiv")(binary(FLOATS, 0.3, 4))
cases("Atan2", "MulNoNan")(binary(FLOATS))
cases("Xdivy", "Xlogy", "Xlog1py")(binary(FLOATS, 0.3, 4))
cases("BitwiseAnd", "BitwiseOr", "BitwiseXor")(binary(INTS))
cases("LeftShift", "RightShift")(binary(INTS, 0, 7))
cases("TruncateDiv")(without_zero_divisors(binary(NUMBERS, 0.3, 4, int_low=1, int_high=5)))
cases("TruncateMod", "Mod")(without_zero_divisors(binary(WIDE + [np.int32, np.int64], 0.3, 4, int_low=-5, int_high=5), [np.int32, np.int64]))
cases("Div", "FloorDiv", "FloorMod")(without_zero_divisors(binary(NUMBERS, 0.3, 4, int_low=1, int_high=5)))
cases("DivNoNan")(binary(FLOATS, 0.3, 4))
cases("Less", "LessEqual", "Greater", "GreaterEqual")(binary(NUMBERS))
cases("LogicalAnd", "LogicalOr")(binary([np.bool_]))


@cases("Pow")
def _(rng, op):
    yield from binary(FLOATS, 0.2, 3)(rng, op)
    for dtype in [np.int32, np.int64]:
        yield Case(random(rng, (3, 4), dtype, -4, 4), random(rng, (4,), dtype, 0, 5), gradient=False)
        yield Case(np.array([2, 3], dtype), np.array([1, -1], dtype), invalid=True)


@cases("Zeta", "Polygamma")
def _(rng, op):
    for dtype in WIDE:
        first = random(rng, (4, 1), dtype, 1.5, 5) if op == "Zeta" else np.array([[1], [2], [3], [5]], dtype)
        yield Case(first, random(rng, (5,), dtype, 0.5, 12), tolerance=1e-4 if dtype == np.float32 else 1e-9)
        yield Case(first[0], random(rng, (), dtype, 0.5, 3))
        yield Case(*crossed(special(dtype)[3:10], np.array([0.5, -0.5, 0, -1, 7], dtype)), gradient=False)
    yield Case(random(rng, (3,)), random(rng, (4,)), invalid=True)


@cases("Equal", "NotEqual")
def _(rng, op):
    yield from binary(NUMBERS + [np.bool_])(rng, op)
    yield Case(random(rng, (5, 4), object), random(rng, (4,), object))
    yield Case(random(rng, (3,)), random(rng, (4,)), incompatible_shape_error=False)
    yield Case(random(rng, (4,)), random(rng, (4,)), incompatible_shape_error=False)


@cases("ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SoftplusGrad", "SigmoidGrad", "TanhGrad", "SqrtGrad",
       "RsqrtGrad", "ReciprocalGrad", "InvGrad", "SoftsignGrad")
def _(rng, op):
    for dtype in FLOATS:
        for shape in [(3, 4), (), (0,)]:
            yield Case(random(rng, shape, dtype, 0.2, 7), random(rng, shape, dtype, 0.2, 7))
            yield Case(random(rng, shape, dtype), random(rng, shape, dtype))
    if op.startswith("Relu"):
        yield Case(random(rng, (3,), np.int32), random(rng, (3,), np.int32))


@cases("AddN")
def _(rng, op):
    for dtype in NUMBERS:
        yield Case([random(rng, (3, 4), dtype) for _ in range(3)])
    for n in [1, 2, 9]:
        yield Case([random(rng, (5,)) for _ in range(n)])
    yield Case([random(rng, (0, 2))] * 2)
    yield Case([random(rng, (3,)), random(rng, (4,))], invalid=True)


@cases("Cast")
def _(rng, op):
    everything = NUMBERS + [np.bool_]
    for a, b in itertools.product(everything, everything):
        yield Case(random(rng, (3, 4), a, 0, 100), DstT=tf.as_dtype(b))
    for a, b in itertools.product(FLOATS, FLOATS + [np.bool_]):
        yield Case(special(a), DstT=tf.as_dtype(b), gradient=False)
    for a, b in itertools.product(INTS, everything):
        yield Case(special(a), DstT=tf.as_dtype(b), gradient=False)
    yield Case(random(rng, (0, 3)), DstT=tf.int32)
    yield Case(np.array([1.7, -1.7, 2.5, -0.5], np.float32), DstT=tf.int32)


@cases("Select")
def _(rng, op):
    for dtype in [np.float32, np.int64, np.bool_, object]:
        yield Case(random(rng, (3, 4), np.bool_), random(rng, (3, 4), dtype), random(rng, (3, 4), dtype))
        yield Case(random(rng, (3,), np.bool_), random(rng, (3, 4), dtype), random(rng, (3, 4), dtype))
        yield Case(np.array(True), random(rng, (3, 4), dtype), random(rng, (3, 4), dtype))
    yield Case(random(rng, (4,), np.bool_), random(rng, (3, 4)), random(rng, (3, 4)), invalid=True)
    yield Case(random(rng, (3,), np.bool_), random(rng, (3, 4)), random(rng, (3,)), invalid=True)


@cases("SelectV2")
def _(rng, op):
    for dtype in [np.float32, np.float16, np.int64, np.bool_, object]:
        yield Case(random(rng, (3, 4), np.bool_), random(rng, (3, 4), dtype), random(rng, (3, 4), dtype))
        yield Case(random(rng, (4,), np.bool_), random(rng, (3, 1), dtype), random(rng, (), dtype))
        yield Case(random(rng, (3, 1), np.bool_), random(rng, (4,), dtype), random(rng, (1, 4), dtype))
    yield Case(random(rng, (0,), np.bool_), random(rng, (1,)), random(rng, ()))
    yield Case(random(rng, (2,), np.bool_), random(rng, (3,)), random(rng, (3,)), invalid=True)


@cases("BroadcastTo")
def _(rng, op):
    for dtype in [np.float32, np.int32, np.bool_, object]:
        yield Case(random(rng, (3, 1), dtype), np.array([2, 3, 4]))
    yield Case(random(rng, ()), np.array([], np.int32))
    yield Case(random(rng, ()), np.array([0, 2]))
    yield Case(random(rng, (1,)), np.array([0], np.int32))
    yield Case(random(rng, (3,)), np.array([4]), invalid=True)
    yield Case(random(rng, (3, 1)), np.array([3]), invalid=True)
    yield Case(random(rng, (3,)), np.array([-1]), invalid=True)


@cases("Cumsum", "Cumprod")
def _(rng, op):
    for dtype in NUMBERS:
        yield Case(random(rng, (3, 4), dtype), np.int32(1))
    for exclusive, reverse in itertools.product([False, True], repeat=2):
        yield Case(random(rng, (2, 3, 4), low=0.5), np.int64(-2), exclusive=exclusive, reverse=reverse)
    yield Case(random(rng, (0, 3)), np.int32(0))
    yield Case(random(rng, (3,)), np.int32(1), invalid=True)
    yield Case(random(rng, (3,)), np.int32(-2), invalid=True)
    yield Case(random(rng, (3,)), np.array([0, 0]), invalid=True)


@cases("CheckNumerics")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(random(rng, (3, 4), dtype), message="m")
        yield Case(np.array([1, np.nan], dtype), message="m", invalid=True)
        yield Case(np.array([np.inf, 1], dtype), message="m", invalid=True)
    yield Case(random(rng, (0,)), message="m")


# ---- reductions ----

@cases("Sum", "Prod", "Mean", "Max", "Min")
def _(rng, op):
    for dtype in NUMBERS:
        yield Case(random(rng, (2, 3, 4), dtype), np.array([1]), gradient=dtype in WIDE)
        yield Case(random(rng, (3, 4), dtype), np.array([0, 1], np.int32), gradient=dtype in WIDE)
    for axes in [[], [0], [-1], [0, 2], [2, 0], [1, 2], [0, 1, 2], [-3, 1]]:
        for keep in [False, True]:
            yield Case(random(rng, (2, 3, 4)), np.array(axes, np.int32), keep_dims=keep)
    yield Case(random(rng, ()), np.array([], np.int32))
    yield Case(random(rng, (3,)), np.int32(0))
    yield Case(random(rng, (0, 3)), np.array([1], np.int32))
    yield Case(random(rng, (0, 3)), np.array([0], np.int32), gradient=False)
    yield Case(random(rng, (300, 70)), np.array([0], np.int32), gradient=False)
    yield Case(random(rng, (70, 300)), np.array([1], np.int32), gradient=False)
    yield Case(np.array([[1, np.nan], [np.inf, 2]], np.float32), np.array([1], np.int32), gradient=False)
    yield Case(np.array([[1, -np.inf], [np.inf, -np.inf]], np.float32), np.array([0], np.int32), gradient=False)
    yield Case(np.array([2**31 - 1, 5], np.int32), np.array([0], np.int32))
    yield Case(random(rng, (2, 3)), np.array([2]), invalid=True)
    yield Case(random(rng, (2, 3)), np.array([-3]), invalid=True)
    yield Case(random(rng, (2, 3)), np.array([0, 0]), invalid=True)


@cases("All", "Any")
def _(rng, op):
    for axes in [[], [0], [-1], [0, 1]]:
        for keep in [False, True]:
            yield Case(random(rng, (3, 4), np.bool_), np.array(axes, np.int32), keep_dims=keep)
    yield Case(np.zeros((0, 3), np.bool_), np.array([0]))
    yield Case(random(rng, (2,), np.bool_), np.array([1]), invalid=True)


@cases("ArgMax", "ArgMin")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_]:
        yield Case(random(rng, (5, 4), dtype), np.int32(1))
    yield Case(random(rng, (2, 3, 4)), np.int64(-2), output_type=tf.int32)
    yield Case(random(rng, (0, 3)), np.int32(1))
    yield Case(np.array([1.0, np.nan, 3.0], np.float32), np.int32(0))
    yield Case(random(rng, (0, 3)), np.int32(0), invalid=True)
    yield Case(random(rng, (3,)), np.int32(1), invalid=True)
    yield Case(random(rng, (3,)), np.int32(-2), invalid=True)
    yield Case(random(rng, ()), np.int32(0), invalid=True)


@cases("InTopK")
def _(rng, op):
    for case in CASES["InTopKV2"](rng, op):
        yield Case(*case.inputs[:-1], k=int(case.inputs[-1]), invalid=case.invalid)


@cases("InTopKV2")
def _(rng, op):
    for k in [0, 1, 3, 7]:
        yield Case(random(rng, (6, 5)), rng.integers(0, 5, 6).astype(np.int32), np.int32(k))
    yield Case(np.array([[1, 1, 1], [0, np.nan, 1], [np.inf, 1, 2]], np.float32), np.array([0, 2, 0], np.int64), np.int64(1))
    yield Case(random(rng, (2, 3)), np.array([5, -1], np.int32), np.int32(1))
    yield Case(random(rng, (2, 3)), np.array([1], np.int32), np.int32(1), invalid=True)
    yield Case(random(rng, (3,)), np.array([1], np.int32), np.int32(1), invalid=True)


@cases("ApproxTopK")
def _(rng, op):  # invalid ones are refused by the client: extreme_numbers_test.cc
    for dtype in [np.float32, np.float16, bf16]:
        yield Case(random(rng, (3, 6), dtype, -20, 20), k=3)
    for k, recall in itertools.product([0, 1, 6], [0.1, 1.0]):
        yield Case(random(rng, (2, 2, 6)), k=k, recall_target=recall, reduction_input_size_override=100)
    yield Case(random(rng, (300,)), k=4)
    yield Case(np.array([3, 1, 3, 3, 2], np.float32), k=3)
    yield Case(random(rng, (0, 4)), k=2)


@cases("TopKV2")
def _(rng, op):
    for dtype in NUMBERS:
        yield Case(random(rng, (3, 6), dtype, -20, 20), np.int32(3))
    for k in [0, 1, 6]:
        yield Case(random(rng, (2, 2, 6)), np.int32(k))
    yield Case(random(rng, (9,)), np.int32(4), sorted=True)
    yield Case(np.array([3, 1, 3, 3, 2], np.float32), np.int32(3))
    yield Case(random(rng, (0, 4)), np.int32(2))
    yield Case(random(rng, (4,)), np.int32(5), invalid=True)
    yield Case(random(rng, (4,)), np.int32(-1), invalid=True)
    yield Case(random(rng, ()), np.int32(0), invalid=True)
    yield Case(random(rng, (4,)), np.array([1], np.int32), invalid=True)


@cases("Igamma", "Igammac")
def _(rng, op):
    for dtype in WIDE:
        yield Case(random(rng, (40,), dtype, 0.1, 8), random(rng, (40,), dtype, 0.05, 12))
        yield Case(*crossed(special(dtype), special(dtype)), gradient=False)
    for a, x in [((3, 1), (4,)), ((), (5,)), ((0, 3), (3,))]:
        yield Case(random(rng, a, low=0.5, high=5), random(rng, x, low=0.1, high=9))
    yield Case(random(rng, (2,), low=1), random(rng, (3,), low=1), invalid=True)


@cases("IgammaGradA", "RandomGammaGrad")
def _(rng, op):
    for dtype in WIDE:
        yield Case(random(rng, (60,), dtype, 0.1, 8), random(rng, (60,), dtype, 0.05, 12), gradient=False, tolerance=1e-4 if dtype == np.float32 else 1e-8)
    yield Case(random(rng, (3, 1), low=0.5, high=5), random(rng, (4,), low=0.1, high=9), gradient=False, tolerance=1e-4)
    yield Case(random(rng, (2,), low=1), random(rng, (3,), low=1), invalid=True)


@cases("EuclideanNorm")
def _(rng, op):
    for dtype, axes, keep in itertools.product(FLOATS, [[0], [1, 2], [-1, 0], []], [False, True]):
        yield Case(random(rng, (3, 4, 5), dtype), np.array(axes, np.int32), keep_dims=keep, gradient=dtype in WIDE)
    yield Case(random(rng, (0, 4)), np.array([0]), gradient=False)
    yield Case(random(rng, (3, 4)), np.array([2], np.int32), invalid=True)

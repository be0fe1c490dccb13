"""Complex numbers: the cases of real ones with imaginary parts, and the ops that only complex numbers have."""
import itertools

import numpy as np
import tensorflow as tf

from .case import CASES, Case, Ref, cases, more_cases, random

COMPLEX = {np.dtype(np.float32): np.complex64, np.dtype(np.float64): np.complex128}

FUNCTIONS = """Acos Acosh Asin Asinh Atan Atanh Cos Cosh Exp Expm1 Inv Log Log1p Neg OnesLike Reciprocal Rsqrt Sigmoid Sign Sin Sinh
    Sqrt Square Tan Tanh ZerosLike Add AddV2 Div DivNoNan Equal Mul MulNoNan NotEqual Pow RealDiv SquaredDifference Sub Xdivy Xlog1py
    Xlogy InvGrad ReciprocalGrad RsqrtGrad SigmoidGrad SqrtGrad TanhGrad""".split()
SUMS = """AddN BatchMatMul BatchMatMulV2 BiasAdd BiasAddGrad Cumprod Cumsum EuclideanNorm MatMul Mean MirrorPadGrad Prod
    SegmentMean SegmentProd SegmentSum SparseReduceSum SparseTensorDenseAdd SparseTensorDenseMatMul Sum UnsortedSegmentProd
    UnsortedSegmentSum""".split()
MOVES = """BroadcastTo ConcatV2 ConjugateTranspose Diag DiagPart DynamicPartition DynamicStitch ExtractImagePatches Fill Gather GatherNd
    GatherV2 MatrixBandPart MatrixDiag MatrixDiagPart MatrixDiagPartV3 MatrixDiagV3 MatrixSetDiag MatrixSetDiagV3 MirrorPad OneHot Pack Pad
    PadV2 ReverseSequence ReverseV2 Roll ScatterNd Select SelectV2 Slice Split SplitV StridedSlice StridedSliceGrad TensorScatterAdd
    TensorScatterSub TensorScatterUpdate Tile Transpose Unpack Where""".split()
UPDATES = """Assign AssignAdd AssignSub ResourceScatterAdd ResourceScatterUpdate ScatterAdd ScatterDiv ScatterMul ScatterNdAdd ScatterNdUpdate
    ScatterSub ScatterUpdate""".split()
MATRICES = """LogMatrixDeterminant Lu MatrixDeterminant MatrixInverse MatrixSolve MatrixTriangularSolve Qr SelfAdjointEigV2
    Svd TridiagonalMatMul TridiagonalSolve""".split()


def with_imaginary_parts(rng, value):
    if isinstance(value, list):
        return [with_imaginary_parts(rng, v) for v in value]
    if isinstance(value, Ref):
        return Ref(with_imaginary_parts(rng, value.value))
    value = np.asarray(value)
    if value.dtype not in COMPLEX:
        return value
    return (value + 1j * random(rng, value.shape, value.dtype.type, -1.5, 1.5)).astype(COMPLEX[value.dtype])


def arrays(inputs):
    for value in inputs:
        if isinstance(value, list):
            yield from arrays(value)
        else:
            yield np.asarray(value.value if isinstance(value, Ref) else value)


def has_complex_form(op, case):
    if op == "Prod" and any(a.size > 1000 for a in arrays(case.inputs)):  # where it overflows depends on the order
        return False
    kinds = {a.dtype for a in arrays(case.inputs) if a.dtype in COMPLEX}
    return not case.invalid and len(kinds) == 1 and all(np.all(np.isfinite(a)) for a in arrays(case.inputs) if a.dtype in COMPLEX)


def complex_cases(first):
    def generate(rng, op):
        for case in first(rng, op):
            yield case
            if has_complex_form(op, case):
                yield Case(*[with_imaginary_parts(rng, x) for x in case.inputs], gradient=case.gradient, static=case.static,
                           tolerance=case.tolerance, **case.attrs)
    return generate


for name in FUNCTIONS + SUMS + MOVES + UPDATES + MATRICES:
    CASES[name] = complex_cases(CASES[name])


def complex_random(rng, shape, dtype):
    part = np.float32 if dtype == np.complex64 else np.float64
    return (random(rng, shape, part) + 1j * random(rng, shape, part)).astype(dtype)


@more_cases("Cholesky")
def _(rng, op):
    for dtype, shape in itertools.product([np.complex64, np.complex128], [(3, 3), (2, 2, 4, 4), (1, 1)]):
        x = complex_random(rng, shape, dtype) + 3 * np.eye(shape[-1], dtype=dtype)
        yield Case(x @ np.conj(np.swapaxes(x, -1, -2)))


@more_cases("MatrixSolveLs")
def _(rng, op):
    for dtype, fast, shape, l2 in itertools.product([np.complex64, np.complex128], [False, True], [(4, 3), (3, 4), (2, 5, 2), (3, 3)], [0.0, 0.5]):
        yield Case(complex_random(rng, shape, dtype), complex_random(rng, shape[:-1] + (2,), dtype), np.float64(l2), fast=fast,
                   gradient=False, tolerance=5e-3 if dtype == np.complex64 else 1e-8)


@cases("Real", "Imag", "ComplexAbs", "Angle")
def _(rng, op):
    for dtype, part in [(np.complex64, tf.float32), (np.complex128, tf.float64)]:
        for shape in [(), (0,), (3, 4)]:
            yield Case(complex_random(rng, shape, dtype), Tout=part)
        yield Case(np.array([0, 1, -1, 1j, -1j, np.inf, complex(0, np.nan)], dtype), Tout=part, gradient=False)


@cases("Conj")
def _(rng, op):
    for dtype in [np.complex64, np.complex128]:
        for shape in [(), (0,), (3, 4)]:
            yield Case(complex_random(rng, shape, dtype))


@cases("Complex")
def _(rng, op):
    for dtype, whole in [(np.float32, tf.complex64), (np.float64, tf.complex128)]:
        for a, b in [((), ()), ((3, 4), (3, 4)), ((2, 1, 3), (4, 1)), ((0, 3), (3,))]:
            yield Case(random(rng, a, dtype), random(rng, b, dtype), Tout=whole)
    yield Case(random(rng, (3,)), random(rng, (4,)), invalid=True)


NUMBERS = [np.float32, np.float64, np.int32, np.uint8, np.bool_]


@more_cases("Cast")
def _(rng, op):
    for dtype in [np.complex64, np.complex128]:
        for other in NUMBERS + [np.complex64, np.complex128]:
            yield Case(np.array([3 + 4j, 0, 1.5 - 2j, 200], dtype), DstT=tf.as_dtype(other))
            if other in NUMBERS:
                yield Case(random(rng, (3, 4), other, 0, 5), DstT=tf.as_dtype(dtype))


def shapes_of(axes):
    for shape in [(2, 3, 4, 8), (2, 3, 4, 5), (3, 1, 7), (1, 1, 1), (2, 0, 3)]:
        if len(shape) >= axes:
            yield shape
    if axes == 1:
        yield (6,)
        yield (0,)


@cases("FFT", "IFFT", "FFT2D", "IFFT2D", "FFT3D", "IFFT3D")
def _(rng, op):
    axes = {"2D": 2, "3D": 3}.get(op[-2:], 1)
    for dtype in [np.complex64, np.complex128]:
        for shape in shapes_of(axes):
            yield Case(complex_random(rng, shape, dtype), gradient=0 not in shape)
    yield Case(complex_random(rng, (2,) * (axes - 1), np.complex64), invalid=True)


@cases("RFFT", "RFFT2D", "RFFT3D")
def _(rng, op):
    axes = {"2D": 2, "3D": 3}.get(op[-2:], 1)
    for dtype, whole in [(np.float32, tf.complex64), (np.float64, tf.complex128)]:
        for shape in shapes_of(axes):
            lengths = np.array(shape[-axes:], np.int32)
            yield Case(random(rng, shape, dtype), lengths, Tcomplex=whole, gradient=False)
            if min(lengths) > 1:
                yield Case(random(rng, shape, dtype), lengths - 1, Tcomplex=whole, gradient=False)
    yield Case(random(rng, (5,) * axes), np.full(axes, 7, np.int32), invalid=True)
    yield Case(random(rng, (5,) * axes), np.full(axes + 1, 5, np.int32), invalid=True)
    yield Case(random(rng, (5,) * axes), np.full(axes, -1, np.int32), invalid=True)


@cases("IRFFT", "IRFFT2D", "IRFFT3D")
def _(rng, op):
    axes = {"2D": 2, "3D": 3}.get(op[-2:], 1)
    for dtype, part in [(np.complex64, tf.float32), (np.complex128, tf.float64)]:
        for shape in shapes_of(axes):
            lengths = np.array(shape[-axes:], np.int32)
            lengths[-1] = 2 * (lengths[-1] - 1)
            if min(lengths) > 0:
                yield Case(complex_random(rng, shape, dtype), lengths, Treal=part, gradient=False)
                lengths[-1] += 1
                yield Case(complex_random(rng, shape, dtype), lengths, Treal=part, gradient=False)
    yield Case(complex_random(rng, (5,) * axes, np.complex64), np.full(axes, 12, np.int32), invalid=True)


@more_cases("AsString")
def _(rng, op):
    for dtype in [np.complex64, np.complex128]:
        for attrs in [{}, {"precision": 2}, {"shortest": True}, {"scientific": True, "precision": 1}]:
            yield Case(complex_random(rng, (3,), dtype), **attrs)


@more_cases("DecodeRaw")
def _(rng, op):
    for little, dtype in itertools.product([True, False], [np.complex64, np.complex128]):
        raw = np.array([complex_random(rng, (2,), dtype).tobytes() for _ in range(3)], object)
        yield Case(raw, out_type=tf.as_dtype(dtype), little_endian=little)


@more_cases("SparseAdd")
def _(rng, op):
    for dtype, part in [(np.complex64, np.float32), (np.complex128, np.float64)]:
        indices, shape = np.array([[0, 1], [1, 0], [2, 2]], np.int64), np.array([3, 3], np.int64)
        for threshold in [0, 2]:
            yield Case(indices, complex_random(rng, (3,), dtype), shape, indices[1:], complex_random(rng, (2,), dtype), shape,
                       part(threshold), gradient=False)

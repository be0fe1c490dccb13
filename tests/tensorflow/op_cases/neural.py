"""Calls of products, convolutions, pooling, normalisations and losses."""
import itertools

import numpy as np

from .case import *


# ---- linear algebra, neural networks ----

@cases("MatMul")
def _(rng, op):
    for dtype in FLOATS + [np.int32, np.int64]:
        yield Case(random(rng, (3, 4), dtype), random(rng, (4, 2), dtype))
    for ta, tb in itertools.product([False, True], repeat=2):
        for m, k, n in [(3, 4, 5), (1, 7, 33), (33, 7, 1), (3, 1, 2), (40, 50, 60), (0, 3, 2), (2, 0, 3), (3, 2, 0)]:
            yield Case(random(rng, (k, m) if ta else (m, k)), random(rng, (n, k) if tb else (k, n)), transpose_a=ta,
                       transpose_b=tb)
    yield Case(np.array([[np.inf, 1], [np.nan, 0]], np.float32), np.array([[0, 1], [1, 1]], np.float32), gradient=False)
    yield Case(random(rng, (3, 4)), random(rng, (3, 4)), invalid=True)
    yield Case(random(rng, (3,)), random(rng, (3, 4)), invalid=True)
    yield Case(random(rng, (1, 3, 4)), random(rng, (4, 2)), invalid=True)


@cases("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _(rng, op):
    def case(x, y, dtype=np.float32, **more):
        return Case(random(rng, x, dtype), random(rng, y, dtype), **({"Tout": tf.as_dtype(dtype)} if op.endswith("V3") else {}), **more)

    for dtype in FLOATS + [np.int32, np.int64]:
        if op != "BatchMatMulV3" or dtype != np.float16:  # TensorFlow has no kernel
            yield case((2, 3, 4), (2, 4, 2), dtype)
    if op == "BatchMatMulV3":
        for a, b in itertools.product([np.int8, np.uint8], repeat=2):
            yield Case(random(rng, (2, 3, 4), a, -100, 100), random(rng, (4, 2), b, -100, 100), Tout=tf.int32, gradient=False)
    for x, y in itertools.product([False, True], repeat=2):
        yield case((2, 4, 3) if x else (2, 3, 4), (2, 5, 4) if y else (2, 4, 5), adj_x=x, adj_y=y)
    for a, b in [((3, 4), (4, 2)), ((0, 3, 4), (0, 4, 2)), ((2, 3, 0), (2, 0, 4))]:
        yield case(a, b)
    for a, b in [((5, 1, 3, 4), (2, 4, 2)), ((3, 4), (2, 4, 2)), ((2, 3, 4), (1, 4, 2))]:
        yield case(a, b, invalid=op == "BatchMatMul")
    yield case((2, 3, 4), (3, 4, 2), invalid=True)
    yield case((2, 3, 4), (2, 3, 4), invalid=True)
    yield case((4,), (4, 2), invalid=True)


@cases("BiasAdd")
def _(rng, op):
    for dtype in FLOATS + [np.int32, np.int64]:
        yield Case(random(rng, (3, 4), dtype), random(rng, (4,), dtype))
    yield Case(random(rng, (2, 3, 2, 4)), random(rng, (4,)))
    yield Case(random(rng, (2, 4, 3, 2)), random(rng, (4,)), data_format="NCHW")
    yield Case(random(rng, (0, 4)), random(rng, (4,)))
    yield Case(random(rng, (3, 4)), random(rng, (3,)), invalid=True)
    yield Case(random(rng, (3, 4)), random(rng, (4, 1)), invalid=True)
    yield Case(random(rng, (4,)), random(rng, (4,)), invalid=True)


@cases("BiasAddGrad")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(random(rng, (3, 4), dtype))
    yield Case(random(rng, (2, 3, 2, 4)))
    yield Case(random(rng, (2, 4, 3, 2)), data_format="NCHW")
    yield Case(random(rng, (0, 4)), gradient=False)


@cases("Softmax", "LogSoftmax")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(random(rng, (3, 5), dtype))
    for shape in [(4,), (2, 3, 5), (3, 1), (0, 4), (20, 100)]:
        yield Case(random(rng, shape))
    yield Case(np.array([[1000, 0, -1000], [np.nan, 1, 2], [-np.inf, 0, 1]], np.float32), gradient=False)
    yield Case(random(rng, ()), invalid=True)


@cases("SoftmaxCrossEntropyWithLogits")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(random(rng, (3, 5), dtype), random(rng, (3, 5), dtype, 0, 1), gradient=dtype in WIDE)
    yield Case(random(rng, (1, 5)), random(rng, (3, 5), low=0, high=1))
    yield Case(random(rng, (0, 5)), random(rng, (0, 5)))
    yield Case(random(rng, (3, 5)), random(rng, (3, 4)), invalid=True)
    yield Case(random(rng, (5,)), random(rng, (5,)), invalid=True)


@cases("BatchNormWithGlobalNormalization", "BatchNormWithGlobalNormalizationGrad")
def _(rng, op):
    def case(image, vectors, dtype=np.float32, scales=True, **more):
        vectors = [random(rng, shape, dtype, 0.5, 2) for shape in vectors]
        inputs = [random(rng, image, dtype), *vectors]
        if op.endswith("Grad"):
            inputs[4] = random(rng, image, dtype)
        return Case(*inputs, variance_epsilon=0.01, scale_after_normalization=scales, **more)
    for dtype, scales in itertools.product([np.float32, np.float64, np.float16], [True, False]):
        yield case((2, 3, 4, 5), [(5,)] * 4, dtype, scales, tolerance=3e-2 if dtype == np.float16 else None)
        yield case((1, 1, 1, 1), [(1,)] * 4, dtype, scales)
    yield case((0, 3, 4, 5), [(5,)] * 4)
    yield case((2, 3, 5), [(5,)] * 4, invalid=True)
    for i in range(3):
        yield case((2, 3, 4, 5), [(1, 5) if i == j else (5,) for j in range(4)], invalid=True)


@cases("SparseSoftmaxCrossEntropyWithLogits")
def _(rng, op):
    for dtype in FLOATS:
        for index in [np.int32, np.int64]:
            yield Case(random(rng, (4, 5), dtype), rng.integers(0, 5, 4).astype(index), gradient=dtype in WIDE)
    yield Case(random(rng, (0, 5)), np.zeros(0, np.int32))
    yield Case(random(rng, (2, 5)), np.array([1, 5], np.int32), invalid=True)
    yield Case(random(rng, (2, 5)), np.array([-1, 0], np.int32), invalid=True)
    yield Case(random(rng, (2, 5)), np.array([1], np.int32), invalid=True)
    yield Case(random(rng, (2, 5)), np.array([[1], [1]], np.int32), invalid=True)


def strides(y, x):
    return [1, y, x, 1]


def rough(dtype):
    """TensorFlow adds up products of bfloat16 in bfloat16."""
    return 0.3 if dtype == bf16 else None


@cases("Conv2D")
def _(rng, op):
    for dtype in FLOATS + [np.int32]:
        yield Case(random(rng, (2, 5, 6, 3), dtype), random(rng, (3, 2, 3, 4), dtype), strides=strides(1, 1), padding="SAME", tolerance=rough(dtype))
    for padding, (y, x), (kh, kw) in itertools.product(["SAME", "VALID"], [(1, 1), (2, 2), (3, 3)], [(1, 1), (2, 2), (3, 3), (5, 5)]):
        yield Case(random(rng, (2, 9, 7, 3)), random(rng, (kh, kw, 3, 4)), strides=strides(y, x), padding=padding)
    for channels, filters in [(1, 8), (16, 16), (3, 17), (32, 1)]:
        yield Case(random(rng, (3, 8, 8, channels)), random(rng, (3, 3, channels, filters)), strides=strides(1, 1), padding="SAME", tolerance=5e-5)
    for dilation in [(2, 2), (1, 3)]:
        yield Case(random(rng, (2, 9, 8, 3)), random(rng, (3, 3, 3, 4)), strides=strides(1, 1), padding="SAME",
                   dilations=strides(*dilation))
    yield Case(random(rng, (2, 6, 7, 3)), random(rng, (3, 3, 3, 4)), strides=strides(2, 1), padding="EXPLICIT",
               explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0])
    yield Case(random(rng, (2, 6, 7, 4)), random(rng, (3, 3, 2, 6)), strides=strides(1, 1), padding="SAME", gradient=False)
    yield Case(random(rng, (0, 6, 7, 4)), random(rng, (3, 3, 4, 6)), strides=strides(1, 1), padding="SAME")
    yield Case(random(rng, (40, 12, 12, 16)), random(rng, (3, 3, 16, 32)), strides=strides(1, 1), padding="SAME", tolerance=3e-4)
    yield Case(random(rng, (2, 5, 5, 3)), random(rng, (3, 3, 4, 4)), strides=strides(1, 1), padding="SAME", invalid=True)
    yield Case(random(rng, (2, 5, 5)), random(rng, (3, 3, 3, 4)), strides=strides(1, 1), padding="SAME", invalid=True)
    yield Case(random(rng, (1, 2, 2, 3)), random(rng, (4, 4, 3, 4)), strides=strides(1, 1), padding="VALID", invalid=True)


@cases("DepthwiseConv2dNative")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(random(rng, (2, 5, 6, 3), dtype), random(rng, (3, 2, 3, 2), dtype), strides=strides(1, 1), padding="SAME", tolerance=rough(dtype))
    for padding, y, k in itertools.product(["SAME", "VALID"], [1, 2], [1, 3]):
        yield Case(random(rng, (2, 7, 7, 4)), random(rng, (k, k, 4, 1)), strides=strides(y, y), padding=padding)
    yield Case(random(rng, (2, 5, 5, 3)), random(rng, (3, 3, 4, 4)), strides=strides(1, 1), padding="SAME", invalid=True)


@cases("Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput")
def _(rng, op):
    depthwise = op.startswith("Depthwise")
    out = 6 if depthwise else 2
    for dtype in FLOATS:
        yield Case(np.array([2, 5, 6, 3], np.int32), random(rng, (3, 2, 3, 2), dtype), random(rng, (2, 3, 3, out), dtype),
                   strides=strides(2, 2), padding="SAME", gradient=False, tolerance=rough(dtype))
    yield Case(np.array([2, 5, 6, 3], np.int32), random(rng, (3, 2, 3, 2)), random(rng, (2, 3, 5, out)), strides=strides(1, 1),
               padding="VALID")
    if not depthwise:  # a wrong shape aborts TensorFlow's depthwise op
        yield Case(np.array([2, 5], np.int32), random(rng, (3, 2, 3, 2)), random(rng, (2, 3, 3, out)), strides=strides(1, 1),
                   padding="SAME", invalid=True)


@cases("Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter")
def _(rng, op):
    out = 6 if op.startswith("Depthwise") else 2
    for dtype in FLOATS:
        yield Case(random(rng, (2, 5, 6, 3), dtype), np.array([3, 2, 3, 2], np.int32), random(rng, (2, 3, 3, out), dtype),
                   strides=strides(2, 2), padding="SAME", gradient=False, tolerance=rough(dtype))
    yield Case(random(rng, (2, 5, 6, 3)), np.array([3, 2, 3, 2], np.int32), random(rng, (2, 3, 5, out)), strides=strides(1, 1),
               padding="VALID")


POOLS = [(padding, size, step) for padding in ["SAME", "VALID"] for size in [(1, 1), (2, 2), (3, 2)] for step in [(1, 1), (2, 2), (3, 1)]]


@cases("MaxPool", "AvgPool")
def _(rng, op):
    for dtype in FLOATS + (SIGNED + [np.uint8, np.uint16] if op == "MaxPool" else []):
        yield Case(random(rng, (2, 5, 6, 3), dtype, -20, 20), ksize=strides(2, 2), strides=strides(2, 2), padding="SAME")
    for padding, size, step in POOLS:
        yield Case(random(rng, (2, 7, 6, 3)), ksize=strides(*size), strides=strides(*step), padding=padding)
    yield Case(random(rng, (0, 7, 6, 3)), ksize=strides(2, 2), strides=strides(2, 2), padding="SAME")
    yield Case(random(rng, (2, 4, 4, 70)), ksize=strides(3, 3), strides=strides(2, 2), padding="SAME")
    yield Case(np.zeros((1, 4, 4, 2), np.float32), ksize=strides(2, 2), strides=strides(2, 2), padding="SAME")  # all equal
    if op == "MaxPool":
        yield Case(random(rng, (1, 3, 3, 6)), ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2], padding="VALID", gradient=False)
        yield Case(random(rng, (1, 3, 3, 6)), ksize=[1, 1, 1, 2], strides=[1, 1, 1, 1], padding="VALID", invalid=True)
    yield Case(random(rng, (2, 5, 6)), ksize=strides(2, 2), strides=strides(2, 2), padding="SAME", invalid=True)


@cases("MaxPoolGrad")
def _(rng, op):
    for dtype in FLOATS + [np.int32]:
        x = np.array([[1, 5, 5, 2], [3, 3, 0, 9], [1, 2, 3, 4], [8, 7, 7, 8]], dtype).reshape(1, 4, 4, 1)
        y = np.array([[5, 9], [8, 8]], dtype).reshape(1, 2, 2, 1)
        yield Case(x, y, random(rng, (1, 2, 2, 1), dtype), ksize=strides(2, 2), strides=strides(2, 2), padding="VALID")
    yield Case(x, y[:, :1], y, ksize=strides(2, 2), strides=strides(2, 2), padding="VALID", invalid=True)


@cases("MaxPoolGradGrad")
def _(rng, op):
    x = random(rng, (2, 4, 4, 3))
    y = x.reshape(2, 2, 2, 2, 2, 3).max((2, 4))
    yield Case(x, y, random(rng, (2, 4, 4, 3)), ksize=strides(2, 2), strides=strides(2, 2), padding="VALID")


@cases("MaxPoolV2", "MaxPoolGradV2", "MaxPoolGradGradV2")
def _(rng, op):
    windows = ("ksize", "strides")
    for case in CASES[op.removesuffix("V2")](rng, op.removesuffix("V2")):
        attrs = {name: value for name, value in case.attrs.items() if name not in windows}
        if "explicit_paddings" not in attrs:
            yield Case(*case.inputs, *(np.array(case.attrs[name], np.int32) for name in windows), invalid=case.invalid,
                       gradient=case.gradient, **attrs)


@cases("MaxPoolWithArgmax")
def _(rng, op):
    for dtype in NUMBERS:
        yield Case(random(rng, (2, 5, 6, 3), dtype, -20, 20), ksize=strides(2, 2), strides=strides(2, 2), padding="SAME",
                   gradient=is_float(dtype))
    for (padding, size, step), batch in itertools.product(POOLS, [True, False]):
        yield Case(random(rng, (2, 7, 6, 3)), ksize=strides(*size), strides=strides(*step), padding=padding, include_batch_in_index=batch)
    yield Case(random(rng, (3, 4, 4, 70)), ksize=strides(3, 3), strides=strides(2, 2), padding="SAME")
    yield Case(np.zeros((2, 4, 4, 2), np.float32), ksize=strides(2, 2), strides=strides(2, 2), padding="SAME")  # all equal
    yield Case(np.array([np.nan, 1, 2, np.nan, -np.inf, -np.inf], np.float32).reshape(1, 1, 6, 1), ksize=strides(1, 2), strides=strides(1, 2),
               padding="VALID", gradient=False)
    yield Case(random(rng, (0, 7, 6, 3)), ksize=strides(2, 2), strides=strides(2, 2), padding="SAME", invalid=True)
    yield Case(random(rng, (2, 5, 6)), ksize=strides(2, 2), strides=strides(2, 2), padding="SAME", invalid=True)
    yield Case(random(rng, (2, 5, 6, 3)), ksize=[2, 1, 1, 1], strides=strides(2, 2), padding="SAME", invalid=True)


@cases("MaxPoolGradWithArgmax")
def _(rng, op):
    shape = dict(ksize=strides(2, 2), strides=strides(2, 2), padding="VALID")
    for dtype, batch in itertools.product(NUMBERS, [False, True]):
        places = rng.integers(0, 48, (3, 2, 2, 3)) + (48 * np.arange(3).reshape(3, 1, 1, 1) if batch else 0)
        yield Case(random(rng, (3, 4, 4, 3), dtype), random(rng, (3, 2, 2, 3), dtype), places, include_batch_in_index=batch, gradient=False, **shape)
    x, y, places = random(rng, (1, 4, 4, 3)), random(rng, (1, 2, 2, 3)), rng.integers(0, 48, (1, 2, 2, 3))
    yield Case(x[:0], y[:0], places[:0], gradient=False, **shape)
    # A place outside of the image ends TensorFlow's process: window_test.cc.
    yield Case(x, y[:, :1], places, invalid=True, **shape)
    yield Case(x, y, places[:, :1], invalid=True, **shape)
    yield Case(x[0], y, places, invalid=True, **shape)


@cases("AvgPoolGrad")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(np.array([2, 5, 6, 3], np.int32), random(rng, (2, 3, 3, 3), dtype), ksize=strides(3, 2), strides=strides(2, 2),
                   padding="SAME")


@cases("FusedBatchNormV3")
def _(rng, op):
    for dtype in [np.float32, np.float16, bf16]:
        yield Case(random(rng, (3, 4, 5, 2), dtype), random(rng, (2,)), random(rng, (2,)), np.zeros(0, np.float32), np.zeros(0, np.float32),
                   gradient=dtype == np.float32)
    for factor in [1.0, 0.25]:
        yield Case(random(rng, (3, 4, 5, 2)), random(rng, (2,)), random(rng, (2,)), random(rng, (2,)), random(rng, (2,), low=0.5),
                   exponential_avg_factor=factor, epsilon=0.01)
    yield Case(random(rng, (3, 4, 5, 2)), random(rng, (2,)), random(rng, (2,)), random(rng, (2,)), random(rng, (2,), low=0.5),
               is_training=False)
    yield Case(random(rng, (3, 2, 4, 5)), random(rng, (2,)), random(rng, (2,)), np.zeros(0, np.float32), np.zeros(0, np.float32),
               data_format="NCHW")
    yield Case(random(rng, (1, 1, 1, 2)), random(rng, (2,)), random(rng, (2,)), np.zeros(0, np.float32), np.zeros(0, np.float32))
    yield Case(random(rng, (0, 4, 5, 2)), random(rng, (2,)), random(rng, (2,)), np.zeros(0, np.float32), np.zeros(0, np.float32),
               gradient=False)
    yield Case(random(rng, (3, 4, 5, 2)), random(rng, (3,)), random(rng, (2,)), random(rng, (2,)), random(rng, (2,)), invalid=True)
    yield Case(random(rng, (3, 4, 5, 2)), random(rng, (2,)), random(rng, (2,)), random(rng, (1,)), random(rng, (2,)),
               is_training=False, invalid=True)
    yield Case(random(rng, (4, 5, 2)), random(rng, (2,)), random(rng, (2,)), random(rng, (2,)), random(rng, (2,)), invalid=True)


@cases("FusedBatchNormGradV3")
def _(rng, op):
    for dtype, training in itertools.product([np.float32, np.float16, bf16], [True, False]):
        yield Case(random(rng, (3, 4, 5, 2), dtype), random(rng, (3, 4, 5, 2), dtype), random(rng, (2,)), random(rng, (2,)),
                   random(rng, (2,), low=0.5), np.zeros(0, np.float32), is_training=training, gradient=False)


@cases("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormGrad", "FusedBatchNormGradV2")
def _(rng, op):
    is_gradient = "Grad" in op
    for case in CASES["FusedBatchNormGradV3" if is_gradient else "FusedBatchNormV3"](rng, op):
        if op.endswith("V2") or case.inputs[0].dtype == np.float32:
            yield Case(*case.inputs[:5], gradient=case.gradient, invalid=case.invalid, **case.attrs)


@cases("LRN")
def _(rng, op):
    for dtype in [np.float32]:
        for radius in [0, 1, 5]:
            yield Case(random(rng, (2, 3, 3, 7), dtype), depth_radius=radius, bias=1.5, alpha=0.3, beta=0.6)
    yield Case(random(rng, (2, 3, 3, 7)))
    yield Case(random(rng, (3, 3, 7)), invalid=True)


@cases("LRNGrad")
def _(rng, op):
    x = random(rng, (2, 3, 3, 7))
    yield Case(random(rng, x.shape), x, random(rng, x.shape), depth_radius=2, alpha=0.5)


@cases("Cross")
def _(rng, op):
    for dtype in FLOATS + [np.int32, np.int64]:
        yield Case(random(rng, (2, 3), dtype), random(rng, (2, 3), dtype))
    yield Case(random(rng, (3,)), random(rng, (3,)))
    yield Case(random(rng, (4,)), random(rng, (4,)), invalid=True)
    yield Case(random(rng, (2, 3)), random(rng, (3,)), invalid=True)


@cases("Einsum")
def _(rng, op):
    def case(equation, *shapes, dtype=np.float32, **more):
        return Case([random(rng, shape, dtype) for shape in shapes], equation=equation, **more)
    for dtype in [np.float32, np.float64, bf16, np.int32, np.int64]:
        yield case("bij,jk->bik", (2, 3, 4), (4, 5), dtype=dtype)
        yield case("ij->ji", (2, 3), dtype=dtype)
    for equation, shapes in [("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk->ki", [(2, 3), (3, 4)]), ("i,i->", [(5,), (5,)]), ("i,j->ij", [(2,), (3,)]),
                             ("ij->i", [(2, 3)]), ("ij->", [(2, 3)]), ("ii->i", [(3, 3)]), ("ii->", [(3, 3)]), ("i->ii", [(3,)]), ("aab->ba", [(2, 2, 3)]),
                             ("bqhd,bkhd->bhqk", [(2, 3, 2, 4), (2, 5, 2, 4)]), ("bhqk,bkhd->bqhd", [(2, 2, 3, 5), (2, 5, 2, 4)]),
                             ("abc,ba->ca", [(2, 3, 4), (3, 2)]), ("abc,be->ec", [(2, 3, 4), (3, 5)]), ("ij,ij->ij", [(2, 3), (2, 3)]),
                             ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]), ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]), ("...ij,jk->...ik", [(2, 3, 4), (4, 5)]),
                             ("i...->...i", [(2, 3, 4)]), ("...->...", [(2, 3)]), ("ij,jk->ik", [(0, 3), (3, 4)]), ("ij,jk->ik", [(2, 0), (0, 4)]), (",ab->ba", [(), (2, 3)])]:
        yield case(equation, *shapes)
    for equation, shapes in [("ij,jk->ik", [(2, 3), (4, 4)]), ("ij,jk->ik", [(2, 3), (3,)]), ("ii->i", [(2, 3)])]:
        yield case(equation, *shapes, invalid=True)


# ---- numbers as few bits hold them ----

RANGES = [(-6.0, 6.0), (-1.0, 2.0), (0.0, 5.0), (0.5, 3.0), (-3.0, -1.0)]


@cases("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient")
def _(rng, op):
    def case(low, high, bits, narrow, **more):
        inputs = [random(rng, (3, 9), low=-8, high=8) for _ in range(1 if op.endswith("Args") else 2)]
        return Case(*inputs, min=low, max=high, num_bits=bits, narrow_range=narrow, **more)
    for (low, high), bits, narrow in itertools.product(RANGES, [2, 8, 16], [False, True]):
        yield case(low, high, bits, narrow, tolerance=1e-4)
    for low, high, bits in [(1.0, 1.0, 8), (2.0, 1.0, 8), (-1.0, 1.0, 1), (-1.0, 1.0, 17)]:
        yield case(low, high, bits, False, invalid=True)
    if op.endswith("Gradient"):
        yield Case(random(rng, (3, 9)), random(rng, (3, 8)), invalid=True)


@cases("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4", "QuantizeAndDequantizeV4Grad")
def _(rng, op):
    is_gradient = op.endswith("Grad")

    def case(shape, low, high, dtype=np.float32, bits=8, axis=-1, **more):
        inputs = [random(rng, shape, low=-8, high=8).astype(dtype) for _ in range(2 if is_gradient else 1)]
        inputs += [np.array(low, dtype), np.array(high, dtype)]
        if op.endswith("V3"):
            inputs.append(np.array(bits, np.int32))
        elif not is_gradient:
            more["num_bits"] = bits
        if is_gradient:
            for name in ("range_given", "signed_input", "narrow_range", "round_mode"):
                more.pop(name, None)
        if op.endswith("V3"):
            more.pop("round_mode", None)
        return Case(*inputs, axis=axis, tolerance=1e-5 if dtype in WIDE else 5e-2, **more)
    for dtype, bits, signed, narrow in itertools.product(WIDE, [2, 8, 16], [False, True], [False, True]):
        yield case((3, 7), -3.0, 5.0, dtype, bits, range_given=True, signed_input=signed, narrow_range=narrow)
        yield case((3, 7), 0.0, 0.0, dtype, bits, range_given=False, signed_input=signed, narrow_range=narrow)
    for low, high in [(0.0, 0.0), (1.0, 4.0), (-4.0, -1.0), (-1e-3, 8.0)]:
        yield case((9,), low, high, range_given=True)
    yield case((11,), -4.0, 4.0, bits=3, range_given=True, round_mode="HALF_UP")
    for axis, depth in [(0, 3), (1, 2), (2, 5)]:
        if not op.endswith(("V2", "V4")):  # TensorFlow's have the attribute and refuse it
            yield case((3, 2, 5), -np.arange(1.0, depth + 1), np.arange(1.0, depth + 1), axis=axis, range_given=True)
    if not op.endswith("V3"):  # TensorFlow's wants an axis
        yield case((), -1.0, 1.0, range_given=True)
    yield case((4,), 1.0, -1.0, range_given=True, invalid=not is_gradient)
    if not is_gradient:
        yield case((4,), -1.0, 1.0, bits=0, range_given=True, invalid=True)
        yield case((4,), -1.0, 1.0, bits=64, range_given=True, invalid=True)


@cases("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannel", "FakeQuantWithMinMaxVarsPerChannelGradient")
def _(rng, op):
    per_channel, is_gradient = "PerChannel" in op, op.endswith("Gradient")
    def case(shape, low, high, bits=8, narrow=False, **more):
        inputs = [random(rng, shape, low=-8, high=8) for _ in range(2 if is_gradient else 1)]
        limits = [np.array(x if per_channel else x[0], np.float32) for x in (low, high)]
        return Case(*inputs, *limits, num_bits=bits, narrow_range=narrow, **more)
    lows, highs = [x for x, _ in RANGES], [x for _, x in RANGES]
    for shape, bits, narrow in itertools.product([(5,), (3, 5), (2, 1, 3, 5)], [2, 8, 16], [False, True]):
        yield case(shape, lows, highs, bits, narrow, tolerance=1e-4)
        yield case(shape, [0.0] * 5, [0.0] * 5, bits, narrow)
    for low, high in RANGES:
        yield case((4, 5), [low] * 5, [high] * 5, tolerance=1e-4)
    yield case((3, 5), lows, highs, bits=1, invalid=True)
    if per_channel:
        yield case((3, 5), lows[:4], highs[:4], invalid=True)
    else:
        yield Case(*case((3, 5), lows, highs).inputs[:-1], np.ones(1, np.float32), invalid=True)


# ---- sequences of labels without places in time; TensorFlow computes some logarithms of doubles in float ----

@cases("CTCLoss")
def _(rng, op):
    def case(logits, labels, lengths, **more):
        indices = [[b, i] for b, sequence in enumerate(labels) for i in range(len(sequence))]
        values = [label for sequence in labels for label in sequence]
        return Case(logits, np.array(indices, np.int64).reshape(-1, 2), np.array(values, np.int32), np.array(lengths, np.int32),
                    tolerance=2e-6 if logits.dtype == np.float64 else None, **more)
    labels = [[0, 1, 1], [3], [2, 2, 0, 3]]
    for dtype in WIDE:
        yield case(random(rng, (7, 3, 5), dtype), labels, [7, 4, 6])
        for collapses, merges in [(False, False), (True, True), (True, False)]:
            yield case(random(rng, (7, 3, 5), dtype), labels, [7, 4, 6], preprocess_collapse_repeated=collapses, ctc_merge_repeated=merges)
    yield case(random(rng, (3, 1, 4)), [[1, 2, 0]], [3])
    yield case(random(rng, (1, 1, 4)), [[2]], [1])
    yield case(random(rng, (4, 1, 2)), [[0, 0]], [4])
    yield case(random(rng, (3, 1, 4)), [[1, 1, 0]], [3], gradient=False)  # no path
    yield case(random(rng, (6, 2, 4)), [[1, 3], [2]], [6, 6])  # a blank that ends the labels
    yield case(random(rng, (6, 2, 4), low=-60, high=60), [[1, 0], [2]], [6, 5])
    yield case(random(rng, (4, 3, 4)), [[0, 1, 2, 1, 0], [1], [2]], [4, 4, 0], ignore_longer_outputs_than_inputs=True)
    for wrong, lengths in [([[1, 2, 0], [1]], [2, 3]), ([[1], [-1]], [3, 3]), ([[3, 1], [1]], [3, 3]), ([[1], [1]], [4, 3]),
                           ([[1], [1]], [3, -1]), ([[1], [1]], [3]), ([[1], [1], [1]], [3, 3]), ([[1], []], [3, 3])]:
        yield case(random(rng, (3, 2, 4)), wrong, lengths, invalid=True)
    logits, two, lengths = random(rng, (3, 2, 4)), np.array([1, 1], np.int32), np.array([3, 3], np.int32)
    for indices in [[[1, 0], [0, 0]], [[0, 0], [0, 0]], [[0, 0], [-1, 0]], [[0, -1], [1, 0]], [[0, 0]], [0, 0]]:
        yield Case(logits, np.array(indices), two, lengths, invalid=True)
    yield Case(logits[0], np.array([[0, 0], [1, 0]]), two, lengths, invalid=True)


@cases("CTCGreedyDecoder", "CTCBeamSearchDecoder")
def _(rng, op):
    def case(logits, lengths, more, **rest):
        return Case(logits, np.array(lengths, np.int32), tolerance=2e-6 if logits.dtype == np.float64 else None, **more, **rest)
    if op == "CTCGreedyDecoder":
        attributes = [{}, {"merge_repeated": True}, {"blank_index": 0}, {"blank_index": -2, "merge_repeated": True}]
    else:
        attributes = [{"beam_width": width, "top_paths": paths, "merge_repeated": merges}
                      for width, paths, merges in [(1, 1, True), (2, 2, False), (3, 1, False), (10, 4, True), (100, 7, False)]]
    for dtype, more in itertools.product(WIDE, attributes):
        yield case(random(rng, (6, 3, 4), dtype), [6, 4, 5], more)
        yield case(random(rng, (12, 2, 3), dtype, -1, 1), [12, 9], more)
    yield case(random(rng, (9, 1, 30)), [9], attributes[0])
    yield case(random(rng, (9, 1, 30), low=-100, high=100), [9], attributes[1])
    yield case(random(rng, (4, 2, 3)), [4, 0], attributes[0])
    yield case(random(rng, (4, 1, 1)), [4], attributes[0])
    for lengths in [[5, 4], [4], [[4, 4]]]:
        yield case(random(rng, (4, 2, 3)), lengths, attributes[0], invalid=True)
    yield case(random(rng, (4, 3)), [4, 4, 4], attributes[0], invalid=True)
    yield case(random(rng, (4, 0, 3)), [], attributes[0], invalid=True)
    for more in [{"blank_index": 3}, {"blank_index": -4}] if op == "CTCGreedyDecoder" else [
            {"beam_width": 2, "top_paths": 3}, {"beam_width": 99, "top_paths": 99}]:
        yield case(random(rng, (2, 2, 3)), [2, 2], more, invalid=True)

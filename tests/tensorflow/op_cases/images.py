"""Calls of ops on images and volumes: blocks of pixels, mirrored borders, volumes, morphology, sizes, colours."""
import itertools
import struct
import zlib

import numpy as np
import tensorflow as tf

from .case import *
from .neural import strides


# ---- blocks of pixels ----

@cases("SpaceToDepth", "DepthToSpace")
def _(rng, op):
    shape = (2, 4, 6, 3) if op == "SpaceToDepth" else (2, 2, 3, 12)
    for dtype in FLOATS + [np.int32, np.uint8, np.int64]:
        yield Case(random(rng, shape, dtype), block_size=2)
    yield Case(random(rng, (1, 6, 3, 1) if op == "SpaceToDepth" else (1, 2, 1, 18)), block_size=3)
    yield Case(random(rng, (0,) + shape[1:]), block_size=2)
    yield Case(random(rng, (2, 3, 5, 3)), block_size=2, invalid=True)
    yield Case(random(rng, (2, 4, 4)), block_size=2, invalid=True)


@cases("SpaceToBatchND", "BatchToSpaceND")
def _(rng, op):
    to_batch = op == "SpaceToBatchND"
    def case(shape, block, borders, dtype=np.float32, index=np.int32, **more):
        return Case(random(rng, shape, dtype), np.array(block, index), np.array(borders, index).reshape(len(block), 2), **more)
    for dtype in FLOATS + [np.int32, np.uint8]:
        yield case((1, 4, 6, 2) if to_batch else (4, 2, 3, 2), [2, 2], [[0, 0], [0, 0]], dtype)
    if to_batch:
        yield case((2, 5, 3), [3], [[1, 0]], index=np.int64)
        yield case((2, 3, 5, 2, 2), [2, 1, 2], [[1, 2], [0, 0], [1, 1]])
        yield case((2, 2, 2, 1), [2, 3], [[2, 2], [0, 1]])
    else:
        yield case((6, 2, 3), [3], [[1, 0]], index=np.int64)
        yield case((8, 3, 5, 2, 2), [2, 1, 2], [[1, 2], [0, 0], [1, 1]])
        yield case((6, 3, 2, 1), [2, 3], [[2, 2], [0, 5]])
    yield case((2, 3), [1], [[0, 0]])
    yield case((3, 5, 2), [2], [[0, 0]], invalid=True)
    yield case((4, 4, 2), [2], [[-1, 1]], invalid=True)
    yield case((4, 4, 2), [0], [[0, 0]], invalid=True)
    if not to_batch:
        yield case((4, 1, 2), [2], [[2, 1]], invalid=True)


@cases("SpaceToBatch", "BatchToSpace")
def _(rng, op):
    to_batch = op == "SpaceToBatch"
    for dtype in FLOATS + [np.int32]:
        yield Case(random(rng, (1, 4, 6, 2) if to_batch else (4, 2, 3, 2), dtype), np.zeros((2, 2), np.int32), block_size=2)
    yield Case(random(rng, (2, 3, 4, 2) if to_batch else (8, 2, 2, 2)), np.array([[1, 0], [1, 1]]), block_size=2)
    yield Case(random(rng, (3, 3, 3, 1)), np.zeros((2, 2), np.int32), block_size=2, invalid=True)
    yield Case(random(rng, (4, 4, 4)), np.zeros((2, 2), np.int32), block_size=2, invalid=True)


# ---- mirrored borders ----

@cases("MirrorPad", "MirrorPadGrad")
def _(rng, op):
    def case(shape, paddings, mode, dtype=np.float32, index=np.int32, **more):
        return Case(random(rng, shape, dtype), np.array(paddings, index), mode=mode, **more)
    inner = op == "MirrorPad"
    for dtype in FLOATS + [np.int32, np.int64, np.uint8]:
        yield case((2, 3) if inner else (4, 7), [[1, 1], [2, 2]], "REFLECT", dtype, gradient=dtype in WIDE)
    for mode in ["REFLECT", "SYMMETRIC"]:
        more = 1 if mode == "SYMMETRIC" else 0
        yield case((3, 2, 4) if inner else (5 + 2 * more, 3 + more, 8), [[1 + more, 1 + more], [0, 1 + more], [1, 3]], mode, index=np.int64)
        yield case((3,) if inner else (3,), [[0, 0]], mode)
        yield case((2, 3) if inner else (6, 3), [[3, 1], [0, 0]], mode, invalid=True)
    yield case((2, 3), [[1, 1]], "REFLECT", invalid=True)
    yield case((2, 3), [[-1, 1], [0, 0]], "REFLECT", invalid=True)


# ---- volumes ----

def steps(z, y, x):
    return [1, z, y, x, 1]


def coarse(dtype):
    """TensorFlow adds up products of 16-bit floats as such."""
    return {np.float16: 0.05, bf16: 0.3}.get(dtype)


@cases("Conv3D")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(random(rng, (2, 4, 5, 3, 2), dtype), random(rng, (2, 3, 2, 2, 4), dtype), strides=steps(1, 1, 1), padding="SAME",
                   tolerance=coarse(dtype))
    for padding, step, size in itertools.product(["SAME", "VALID"], [(1, 1, 1), (2, 1, 3), (2, 2, 2)], [(1, 1, 1), (3, 2, 3)]):
        yield Case(random(rng, (2, 6, 5, 4, 3)), random(rng, size + (3, 4)), strides=steps(*step), padding=padding)
    yield Case(random(rng, (1, 1, 5, 5, 2)), random(rng, (1, 3, 3, 2, 3)), strides=steps(1, 1, 1), padding="SAME")
    # Sums of 3,456 products: TensorFlow's own gradient is off by 3.2e-4 from the same in float64.
    yield Case(random(rng, (9, 6, 8, 8, 8)), random(rng, (3, 3, 3, 8, 16)), strides=steps(1, 1, 1), padding="SAME", tolerance=4e-4)
    yield Case(random(rng, (2, 4, 5, 3, 2)), random(rng, (2, 3, 2, 3, 4)), strides=steps(1, 1, 1), padding="SAME", invalid=True)
    yield Case(random(rng, (2, 4, 5, 3)), random(rng, (2, 3, 2, 3, 4)), strides=steps(1, 1, 1), padding="SAME", invalid=True)
    yield Case(random(rng, (2, 1, 5, 3, 2)), random(rng, (3, 3, 2, 2, 4)), strides=steps(1, 1, 1), padding="VALID", invalid=True)


@cases("Conv3DBackpropInputV2")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(np.array([2, 3, 4, 3, 2], np.int32), random(rng, (2, 3, 2, 2, 3), dtype), random(rng, (2, 2, 2, 3, 3), dtype),
                   strides=steps(2, 2, 1), padding="SAME", gradient=dtype == np.float32, tolerance=coarse(dtype))
    yield Case(np.array([2, 3, 4, 3, 2]), random(rng, (2, 3, 2, 2, 3)), random(rng, (2, 2, 2, 2, 3)), strides=steps(1, 1, 1),
               padding="VALID")
    yield Case(np.array([2, 3, 4, 3], np.int32), random(rng, (2, 3, 2, 2, 3)), random(rng, (2, 2, 2, 2, 3)), strides=steps(1, 1, 1),
               padding="VALID", invalid=True)


@cases("Conv3DBackpropFilterV2")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(random(rng, (2, 3, 4, 3, 2), dtype), np.array([2, 3, 2, 2, 3], np.int32), random(rng, (2, 2, 2, 3, 3), dtype),
                   strides=steps(2, 2, 1), padding="SAME", gradient=dtype == np.float32, tolerance=coarse(dtype))
    yield Case(random(rng, (2, 3, 4, 3, 2)), np.array([2, 3, 2, 2, 3], np.int32), random(rng, (2, 2, 2, 2, 3)), strides=steps(1, 1, 1),
               padding="VALID")


@cases("MaxPool3D", "AvgPool3D")
def _(rng, op):
    for dtype in [np.float32, bf16]:
        yield Case(random(rng, (2, 5, 6, 4, 3), dtype, -20, 20), ksize=steps(2, 2, 2), strides=steps(2, 2, 2), padding="SAME",
                   gradient=dtype == np.float32)
    for padding, size, step in itertools.product(["SAME", "VALID"], [(1, 2, 2), (3, 2, 3)], [(1, 1, 1), (2, 1, 2)]):
        yield Case(random(rng, (2, 5, 6, 4, 3)), ksize=steps(*size), strides=steps(*step), padding=padding)
    yield Case(random(rng, (2, 5, 6, 3)), ksize=steps(2, 2, 2), strides=steps(2, 2, 2), padding="SAME", invalid=True)


@cases("MaxPool3DGrad", "MaxPool3DGradGrad")
def _(rng, op):
    x = random(rng, (2, 4, 4, 2, 3))
    y = x.reshape(2, 2, 2, 2, 2, 1, 2, 3).max((2, 4, 6))
    grad = random(rng, y.shape if op == "MaxPool3DGrad" else x.shape)
    yield Case(x, y, grad, ksize=steps(2, 2, 2), strides=steps(2, 2, 2), padding="VALID")
    yield Case(x, y, grad[:, :1], ksize=steps(2, 2, 2), strides=steps(2, 2, 2), padding="VALID", invalid=True)


@cases("AvgPool3DGrad")
def _(rng, op):
    for dtype in [np.float32, bf16]:
        yield Case(np.array([2, 5, 6, 4, 3], np.int32), random(rng, (2, 3, 3, 4, 3), dtype), ksize=steps(3, 2, 2), strides=steps(2, 2, 1),
                   padding="SAME", gradient=dtype == np.float32)


# ---- morphology ----

@cases("Dilation2D")
def _(rng, op):
    for dtype in FLOATS + [np.int32, np.uint8]:
        yield Case(random(rng, (2, 5, 6, 3), dtype), random(rng, (3, 2, 3), dtype), strides=strides(1, 1), rates=strides(1, 1), padding="SAME",
                   gradient=dtype in WIDE)
    for padding, step, rate in itertools.product(["SAME", "VALID"], [(1, 1), (2, 3)], [(1, 1), (2, 1)]):
        yield Case(random(rng, (2, 7, 6, 3)), random(rng, (2, 3, 3)), strides=strides(*step), rates=strides(*rate), padding=padding)
    yield Case(random(rng, (2, 5, 6, 3)), random(rng, (2, 3, 2)), strides=strides(1, 1), rates=strides(1, 1), padding="SAME", invalid=True)
    yield Case(random(rng, (2, 5, 6)), random(rng, (2, 3, 2)), strides=strides(1, 1), rates=strides(1, 1), padding="SAME", invalid=True)


@cases("Dilation2DBackpropInput", "Dilation2DBackpropFilter")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(random(rng, (2, 5, 6, 3), dtype), random(rng, (3, 2, 3), dtype), random(rng, (2, 5, 3, 3), dtype), strides=strides(1, 2),
                   rates=strides(1, 2), padding="SAME", gradient=False)
    yield Case(random(rng, (2, 5, 6, 3)), random(rng, (3, 2, 3)), random(rng, (2, 5, 2, 3)), strides=strides(1, 2), rates=strides(1, 1),
               padding="SAME", invalid=True)


# ---- sizes ----

WAYS = [{}, {"align_corners": True}, {"half_pixel_centers": True}]


@cases("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor")
def _(rng, op):
    for dtype in FLOATS + [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64]:
        yield Case(random(rng, (2, 3, 4, 2), dtype), np.array([5, 7], np.int32), gradient=dtype == np.float32)
    for way, size in itertools.product(WAYS, [(5, 7), (2, 3), (1, 1), (8, 2), (3, 4), (4, 12)]):
        yield Case(random(rng, (2, 3, 4, 2)), np.array(size, np.int32), tolerance=2e-4 if op == "ResizeBicubic" else None, **way)
    yield Case(random(rng, (1, 1, 1, 3)), np.array([2, 3], np.int32))
    yield Case(random(rng, (2, 30, 40, 3)), np.array([17, 61], np.int32), half_pixel_centers=True, tolerance=2e-4)
    yield Case(random(rng, (2, 3, 4)), np.array([5, 7], np.int32), invalid=True)
    yield Case(random(rng, (2, 3, 4, 2)), np.array([5], np.int32), invalid=True)
    yield Case(random(rng, (2, 3, 4, 2)), np.array([0, 7], np.int32), invalid=True)
    yield Case(random(rng, (2, 0, 4, 2)), np.array([5, 7], np.int32), invalid=True)
    yield Case(random(rng, (2, 3, 4, 2)), np.array([5, 7], np.int32), align_corners=True, half_pixel_centers=True, invalid=True)


@cases("ResizeArea")
def _(rng, op):
    for dtype in FLOATS + [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64]:
        yield Case(random(rng, (2, 3, 4, 2), dtype), np.array([5, 7], np.int32), gradient=False)
    for way, size in itertools.product(WAYS[:2], [(5, 7), (2, 3), (1, 1), (8, 2), (3, 4), (4, 12), (1, 3)]):
        yield Case(random(rng, (2, 3, 4, 3)), np.array(size, np.int32), **way)
    yield Case(random(rng, (1, 30, 41, 3)), np.array([17, 11], np.int32), tolerance=1e-4)
    yield Case(random(rng, (0, 3, 4, 2)), np.array([5, 7], np.int32))
    yield Case(random(rng, (2, 3, 4)), np.array([5, 7], np.int32), invalid=True)
    yield Case(random(rng, (2, 3, 4, 2)), np.array([5], np.int32), invalid=True)
    yield Case(random(rng, (2, 3, 4, 2)), np.array([5, 0], np.int32), invalid=True)
    yield Case(random(rng, (2, 3, 0, 2)), np.array([5, 7], np.int32), invalid=True)


@cases("ResizeBilinearGrad", "ResizeBicubicGrad")
def _(rng, op):
    for dtype, way in itertools.product(FLOATS if op == "ResizeBilinearGrad" else WIDE, WAYS):
        yield Case(random(rng, (2, 5, 7, 2)), random(rng, (2, 3, 4, 2), dtype), gradient=False, tolerance=2e-2 if dtype != np.float32 else 2e-4,
                   **way)
    yield Case(random(rng, (2, 5, 7)), random(rng, (2, 3, 4, 2)), invalid=True)


@cases("ResizeNearestNeighborGrad")
def _(rng, op):
    for dtype in FLOATS + [np.int32, np.uint8]:
        yield Case(random(rng, (2, 5, 7, 2), dtype), np.array([3, 4], np.int32), gradient=False)
    for way in WAYS:
        yield Case(random(rng, (2, 2, 3, 2)), np.array([3, 4], np.int32), gradient=False, **way)


BOXES = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.6], [0.5, 0.5, 0.2, 0.1], [-0.3, 0, 1.4, 0.5], [0.5, 0.5, 0.5, 0.5]], np.float32)
BOX_IMAGES = np.array([0, 1, 1, 0, 1], np.int32)


@cases("CropAndResize")
def _(rng, op):
    for dtype in [np.float32, np.float64, np.float16, np.uint8, np.int8, np.int16, np.uint16, np.int32, np.int64]:
        yield Case(random(rng, (2, 5, 6, 3), dtype), BOXES, BOX_IMAGES, np.array([3, 4], np.int32), gradient=dtype == np.float32)
    for method, size in itertools.product(["bilinear", "nearest"], [(3, 4), (1, 1), (2, 1)]):
        yield Case(random(rng, (2, 5, 6, 3)), BOXES, BOX_IMAGES, np.array(size, np.int32), method=method, extrapolation_value=7.5)
    image = random(rng, (2, 5, 6, 3))
    yield Case(image, BOXES, BOX_IMAGES[:4], np.array([3, 4], np.int32), invalid=True)
    yield Case(image, BOXES, BOX_IMAGES + 1, np.array([3, 4], np.int32), invalid=True)
    yield Case(image, BOXES[:, :3], BOX_IMAGES, np.array([3, 4], np.int32), invalid=True)
    yield Case(image, BOXES, BOX_IMAGES, np.array([0, 4], np.int32), invalid=True)


@cases("CropAndResizeGradImage")
def _(rng, op):
    for dtype, method in itertools.product([tf.float32, tf.float64, tf.float16], ["bilinear", "nearest"]):
        yield Case(random(rng, (5, 3, 4, 2)), BOXES, BOX_IMAGES, np.array([2, 5, 6, 2], np.int32), T=dtype, method=method, gradient=False,
                   tolerance=1e-5 if dtype == tf.float64 else None)


@cases("CropAndResizeGradBoxes")
def _(rng, op):
    for dtype in [np.float32, np.float64, np.float16, np.uint8]:
        yield Case(random(rng, (5, 3, 4, 2)), random(rng, (2, 5, 6, 2), dtype), BOXES, BOX_IMAGES, gradient=False, tolerance=1e-4)


# ---- colours ----

@cases("RGBToHSV", "HSVToRGB")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(random(rng, (2, 4, 3), dtype, 0, 1), gradient=dtype in WIDE, tolerance=3e-2 if dtype == bf16 else None)
    corners = np.array(list(itertools.product([0.0, 0.5, 1.0], repeat=3)), np.float32)
    yield Case(corners, gradient=False)
    yield Case(random(rng, (3,), low=0, high=1))
    yield Case(random(rng, (2, 4), low=0, high=1), invalid=True)
    yield Case(random(rng, (), low=0, high=1), invalid=True)


@cases("AdjustContrastv2")
def _(rng, op):
    yield Case(random(rng, (2, 4, 5, 3)), np.float32(1.7), gradient=False)
    yield Case(random(rng, (4, 5, 3)), np.float32(0), gradient=False)
    yield Case(random(rng, (2, 2, 4, 5, 1)), np.float32(-2), gradient=False)
    yield Case(random(rng, (4, 5)), np.float32(1), invalid=True)
    yield Case(random(rng, (4, 5, 3)), np.ones(1, np.float32), invalid=True)


@cases("AdjustHue", "AdjustSaturation")
def _(rng, op):
    for by in [0.0, 0.3, -0.7, 1.5, 2.0]:  # of half TensorFlow has none on a CPU
        yield Case(random(rng, (2, 4, 5, 3), low=0, high=1), np.float32(by), gradient=False)
    corners = np.array(list(itertools.product([0.0, 0.5, 1.0], repeat=3)), np.float32).reshape(3, 9, 3)
    yield Case(corners, np.float32(0.25), gradient=False)
    yield Case(random(rng, (4, 5, 3), low=0, high=255), np.float32(0.6), gradient=False, tolerance=1e-4)
    yield Case(random(rng, (0, 5, 3)), np.float32(0.6), gradient=False)
    for shape in [(4, 5, 4), (5, 3)]:
        yield Case(random(rng, shape, low=0, high=1), np.float32(1), invalid=True)
    yield Case(random(rng, (4, 5, 3), low=0, high=1), np.ones(1, np.float32), invalid=True)


# ---- windows and boxes ----

@cases("ExtractImagePatches")
def _(rng, op):
    for dtype in [np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8, np.int8, np.int16, np.uint16]:
        yield Case(random(rng, (2, 5, 6, 3), dtype), ksizes=strides(3, 2), strides=strides(2, 1), rates=strides(1, 1), padding="SAME",
                   gradient=False)
    for padding, size, step, rate in itertools.product(["SAME", "VALID"], [(1, 1), (3, 2)], [(1, 1), (2, 3)], [(1, 1), (2, 1)]):
        yield Case(random(rng, (2, 7, 6, 2)), ksizes=strides(*size), strides=strides(*step), rates=strides(*rate), padding=padding)
    yield Case(random(rng, (7, 6, 2)), ksizes=strides(2, 2), strides=strides(1, 1), rates=strides(1, 1), padding="SAME", invalid=True)


def boxes(rng, n, dtype=np.float32):
    corners = rng.uniform(0, 1, (n, 4))
    corners[:, 2:] = corners[:, :2] + rng.uniform(-0.1, 0.5, (n, 2))
    return corners.astype(dtype)


def suppression(rng, op, n, at_most, threshold=0.5, score=0.2, sigma=0.0, **more):
    inputs = [boxes(rng, n), rng.permutation(n).astype(np.float32) / 16, np.int32(at_most)]
    if op == "NonMaxSuppression":
        return Case(*inputs, iou_threshold=threshold, **more)
    numbers = [threshold, score, sigma][:{"2": 1, "3": 2, "4": 2, "5": 3}[op[-1]]]
    return Case(*inputs, *[np.float32(x) for x in numbers], **more)


@cases("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5")
def _(rng, op):
    for n, at_most, threshold in itertools.product([1, 12, 30], [0, 3, 40], [0.0, 0.3, 0.5, 1.0]):
        yield suppression(rng, op, n, at_most, threshold)
    yield suppression(rng, op, 0, 3)
    ties = suppression(rng, op, 9, 9)
    ties.inputs = (ties.inputs[0], np.full(9, 0.5, np.float32), *ties.inputs[2:])
    yield ties
    if op[-1] in "45":
        for n in [0, 12]:
            yield suppression(rng, op, n, 20, pad_to_max_output_size=True)
    if op[-1] == "5":
        for sigma in [0.1, 0.5, 3.0]:
            yield suppression(rng, op, 25, 25, 0.5, 0.1, sigma)
        yield suppression(rng, op, 5, 3, sigma=-1.0, invalid=True)
    yield suppression(rng, op, 5, -1, invalid=True)
    for threshold in [-0.1, 1.1]:
        yield suppression(rng, op, 5, 3, threshold, invalid=True)
    for at, wrong in [(0, (5, 3)), (0, (20,)), (1, (4,)), (1, (5, 1))]:
        invalid = suppression(rng, op, 5, 3, invalid=True)
        invalid.inputs = tuple(random(rng, wrong) if i == at else x for i, x in enumerate(invalid.inputs))
        yield invalid


@cases("DrawBoundingBoxes", "DrawBoundingBoxesV2")
def _(rng, op):
    def case(shape, n, colours=None, **more):
        corners = np.stack([boxes(rng, n) for _ in range(shape[0])])
        corners += rng.uniform(-0.3, 0.3, corners.shape).astype(np.float32)
        colours = [] if op == "DrawBoundingBoxes" else [random(rng, colours or (3, 4), low=0, high=1)]
        return Case(random(rng, shape), corners, *colours, gradient=False, **more)
    for shape, n in itertools.product([(2, 9, 7, 3), (1, 12, 5, 4), (2, 8, 8, 1)], [0, 1, 13]):
        yield case(shape, n)
    if op.endswith("V2"):
        yield case((1, 9, 7, 3), 4, (2, 3))
        yield case((1, 9, 7, 3), 4, (0, 4))
    yield case((1, 9, 7, 2), 3, invalid=True)
    yield Case(*[x[:1] if i == 1 else x for i, x in enumerate(case((2, 9, 7, 3), 3).inputs)], invalid=True)
    yield Case(*[x[0] if i == 1 else x for i, x in enumerate(case((2, 9, 7, 3), 3).inputs)], invalid=True)


# ---- images as files ----

def wheel(build):
    """What TensorFlow computes."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(build())


def picture(rng, height, width, channels, dtype=np.uint8):
    """Smooth, with some noise."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing="ij")
    value = 0.5 + 0.4 * np.sin(x / 5 + c) * np.cos(y / 7 - c) + 0.05 * rng.standard_normal(x.shape)
    return (np.clip(value, 0, 1) * np.iinfo(dtype).max).astype(dtype)


def png(rng, channels, dtype=np.uint8, shape=(11, 14)):
    return np.array(wheel(lambda: tf.io.encode_png(picture(rng, *shape, channels, dtype))), object)


def jpeg(rng, channels, **options):
    return np.array(wheel(lambda: tf.io.encode_jpeg(picture(rng, 37, 50, channels), **options)), object)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def small_png(color, bits, rows, chunks=b""):
    """Of 4 x 3 pixels, in what the wheel's encoder does not write: palettes, fewer than 8 bits."""
    header = struct.pack(">IIBBBBB", 4, 3, bits, color, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return np.array(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunks + chunk(b"IDAT", data) + chunk(b"IEND", b""), object)


def palette(rng, with_alpha):
    chunks = chunk(b"PLTE", bytes(rng.integers(0, 256, 12, dtype=np.uint8)))
    return small_png(3, 2, [b"\x1b", b"\xe4", b"\x72"], chunks + (chunk(b"tRNS", b"\x00\x80\xff") if with_alpha else b""))


def bmp(rng, width, height, bits, header=54, more=b""):
    row = (width * (bits // 8) + 3) // 4 * 4
    pixels = rng.integers(0, 256, abs(height) * row, dtype=np.uint8).tobytes()
    head = b"BM" + struct.pack("<IHHIIiiHHIIiiII", header + len(pixels), 0, 0, header, 40, width, height, 1, bits, 0, 0, 0, 0, 0, 0)
    return np.array(head.ljust(header, b"\7")[:header] + pixels + more, object)


@cases("DecodePng", "DecodeImage")
def _(rng, op):
    types = [tf.uint8, tf.uint16] + ([tf.float32] if op == "DecodeImage" else [])
    more = {"expand_animations": False} if op == "DecodeImage" else {}
    files = [png(rng, channels, dtype) for channels in (1, 2, 3, 4) for dtype in (np.uint8, np.uint16)]
    files += [palette(rng, False), palette(rng, True), small_png(0, 2, [b"\x1b", b"\xe4", b"\x72"]),
              small_png(0, 1, [b"\x50", b"\xa0", b"\x90"])]
    for file in files:
        for channels in (0, 1, 3, 4):
            for dtype in types:
                yield Case(file, channels=channels, dtype=dtype, **more)
    for file in (jpeg(rng, 3), jpeg(rng, 1)):
        for channels in (0, 1, 3):
            yield Case(file, channels=channels, dtype=tf.uint8, **more)
        if op == "DecodeImage":
            yield Case(file, channels=3, dtype=tf.float32, **more)
            yield Case(file, channels=0, dtype=tf.uint16, **more)
    yield Case(jpeg(rng, 3), channels=4, dtype=tf.uint8, invalid=True, **more)
    whole = files[4].item()
    for bad in (b"", b"no image", whole[:20], whole[:-30], whole[:60] + b"?" + whole[61:], small_png(3, 2, [b"a"] * 3).item()):
        yield Case(np.array(bad, object), channels=0, dtype=tf.uint8, invalid=True, **more)
    for dtype in types:
        for channels in (0, 3, 4):
            yield Case(bmp(rng, 3, 2, 24), channels=channels, dtype=dtype, invalid=op == "DecodePng", **more)
    yield Case(bmp(rng, 3, 2, 24), channels=1, dtype=tf.uint8, invalid=True, **more)
    yield Case(files[0], channels=5, dtype=tf.uint8, invalid=True, **more)
    yield Case(np.array([whole], object), channels=0, dtype=tf.uint8, invalid=True, **more)


@cases("DecodeJpeg")
def _(rng, op):
    files = [jpeg(rng, 3), jpeg(rng, 1), jpeg(rng, 3, progressive=True, quality=60), jpeg(rng, 3, chroma_downsampling=False)]
    for file in files:
        for channels in (0, 1, 3):
            for more in ({}, {"ratio": 2}, {"ratio": 8}, {"fancy_upscaling": False}, {"dct_method": "INTEGER_ACCURATE"},
                         {"dct_method": "INTEGER_FAST"}):
                yield Case(file, channels=channels, **more)
    yield Case(png(rng, 3), channels=3)
    whole = files[0].item()
    for bad in (b"", whole[:40], whole[:len(whole) // 2]):
        yield Case(np.array(bad, object), channels=0, invalid=True)
    yield Case(files[0], channels=0, ratio=3, invalid=True)
    yield Case(files[0], channels=0, dct_method="SLOW", invalid=True)
    yield Case(np.array(whole[:len(whole) // 2], object), channels=0, try_recover_truncated=True, acceptable_fraction=0.5)


@cases("EncodePng")
def _(rng, op):
    for channels in (1, 2, 3, 4):
        for dtype in (np.uint8, np.uint16):
            yield Case(picture(rng, 9, 12, channels, dtype))
    for compression in (0, 1, 9):
        yield Case(picture(rng, 9, 12, 3), compression=compression)
    yield Case(picture(rng, 9, 12, 3), compression=10, invalid=True)
    yield Case(picture(rng, 9, 12, 5), invalid=True)
    yield Case(np.zeros((3, 4), np.uint8), invalid=True)


@cases("EncodeJpeg")
def _(rng, op):
    for channels in (1, 3):
        for more in ({}, {"quality": 30}, {"quality": 100}, {"progressive": True}, {"optimize_size": True},
                     {"chroma_downsampling": False}, {"density_unit": "cm", "x_density": 72, "y_density": 96}):
            yield Case(picture(rng, 21, 34, channels), **more)
    yield Case(picture(rng, 21, 34, 3), format="rgb")
    yield Case(picture(rng, 21, 34, 3), format="grayscale", invalid=True)
    yield Case(picture(rng, 21, 34, 4), invalid=True)
    yield Case(picture(rng, 21, 34, 3), quality=101, invalid=True)


@cases("ImageSummary")
def _(rng, op):
    tag = np.array(b"x", object)
    for dtype in (np.float32, np.float64, np.float16, np.uint8):
        for channels in (1, 3, 4):
            yield Case(tag, random(rng, (2, 5, 7, channels), dtype))
            yield Case(tag, np.abs(random(rng, (4, 3, 2, channels), dtype)), max_images=2)
    yield Case(tag, random(rng, (2, 3, 2, 1)), max_images=1)
    yield Case(tag, np.array([np.nan, 1, np.inf, -1, 2, 3, -np.inf, 0, 0, 1, 1, 1], np.float32).reshape(1, 2, 2, 3))
    yield Case(tag, np.full((1, 2, 2, 1), np.nan, np.float32))
    yield Case(tag, np.zeros((1, 2, 2, 1), np.float32))
    yield Case(tag, np.zeros((0, 2, 2, 1), np.float32))
    yield Case(tag, random(rng, (1, 2, 2, 1)), bad_color=tf.make_tensor_proto([7], tf.uint8))
    yield Case(tag, random(rng, (1, 2, 2, 3)), bad_color=tf.make_tensor_proto([7], tf.uint8), invalid=True)
    yield Case(tag, random(rng, (1, 2, 2, 2)), invalid=True)
    yield Case(tag, random(rng, (2, 2, 3)), invalid=True)


@cases("TensorSummaryV2")
def _(rng, op):
    tag, metadata = np.array(b"x", object), np.array(b"\x0a\x06\x0a\x04text", object)
    for dtype in (np.float32, np.int64, object):
        yield Case(tag, random(rng, (2, 3), dtype), metadata)
    yield Case(tag, random(rng, (2,)), np.array(b"", object))

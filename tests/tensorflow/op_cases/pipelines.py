"""Calls of ops that input pipelines are made of: random parts of images, detections, moved and transformed images, more files,
pooling and windows of other kinds."""
import itertools
import struct

import numpy as np
import tensorflow as tf

from .case import *
from .images import bmp, boxes, jpeg, picture, png

# ---- random parts of images: the draws are TensorFlow's for the same seeds ----


@cases("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "StatelessSampleDistortedBoundingBox")
def _(rng, op):
    def case(size=(60, 80, 3), boxes=None, covered=0.1, dtype=np.int32, seed=7, **more):
        given = np.array([[[0.1, 0.2, 0.7, 0.9], [0.5, 0.5, 0.6, 0.6]]], np.float32) if boxes is None else np.array(boxes, np.float32)
        inputs = [np.array(size, dtype), given]
        if op == "SampleDistortedBoundingBox":
            return Case(*inputs, min_object_covered=covered, seed=seed, seed2=3 * seed, **more)
        if op.endswith("V2"):
            return Case(*inputs, np.float32(covered), seed=seed, seed2=3 * seed, **more)
        return Case(*inputs, np.float32(covered), np.array([seed, 3 * seed], more.pop("Tseed", np.int64)), **more)
    for seed in range(1, 12):
        yield case(seed=seed)
        yield case(seed=seed, covered=0.9, area_range=[0.3, 0.8], aspect_ratio_range=[0.5, 2.0])
    for dtype in [np.int8, np.uint8, np.int16, np.int64]:
        yield case(dtype=dtype)
    for size in [(1, 1, 1), (1, 50, 3), (50, 1, 3), (0, 5, 3), (2000000000, 3, 3), (64, 64, 3), (46000, 46000, 3)]:
        yield case(size, [[[0, 0, 1, 1]]])
        yield case(size, [[[0, 0, 1, 1]]], area_range=[0.9, 1.0], max_attempts=3)
    for aspects, areas in [([1, 1], [1, 1]), ([3, 0.5], [0.05, 1]), ([0.75, 1.33], [1, 0.05]), ([1e-30, 1e-20], [0.05, 1]),
                           ([1e20, 1e30], [0.05, 1]), ([0.001, 1000], [1e-6, 1e-5]), ([np.inf, 1], [0.1, 1])]:
        yield case(aspect_ratio_range=aspects, area_range=areas)
    yield case(boxes=np.zeros((1, 0, 4)), use_image_if_no_bounding_boxes=True)
    yield case(boxes=np.zeros((0, 3, 4)), use_image_if_no_bounding_boxes=True)
    yield case(boxes=np.array([[[0.5, 0.5, 0.1, 0.1]], [[0, 0, 0, 0]]]), covered=0.5)
    yield case(covered=0, max_attempts=1)
    yield case(covered=2.0)
    if op.startswith("Stateless"):
        yield case(Tseed=np.int32)
        yield Case(*case().inputs[:3], np.array([1, 2, 3]), invalid=True)
    else:
        many = case(seed=4)
        many.attrs["max_attempts"] = 1000
        yield many
    yield case(boxes=np.zeros((1, 0, 4)), invalid=True)
    for wrong in [{"covered": -1.0}, {"aspect_ratio_range": [0, 1]}, {"aspect_ratio_range": [1]}, {"area_range": [0.1, 1.5]},
                  {"area_range": [-0.1, 0.5]}, {"area_range": []}, {"max_attempts": 0}, {"size": (5, 5)}, {"size": (-1, 5, 3)},
                  {"size": ((5, 5, 3),)}, {"size": (5, 2147483647, 3)}, {"boxes": [[0, 0, 1, 1]]}, {"boxes": [[[0, 0, 1]]]},
                  {"boxes": [[[0, 0, 1, 1.1]]]}, {"boxes": [[[np.nan, 0, 1, 1]]]}]:
        yield case(invalid=True, **wrong)


# ---- detections ----

@cases("NonMaxSuppressionWithOverlaps")
def _(rng, op):
    def case(n, at_most, threshold=0.5, score=0.2, **more):
        return Case(random(rng, (n, n), low=0, high=1), rng.permutation(n).astype(np.float32) / 16, np.int32(at_most),
                    np.float32(threshold), np.float32(score), **more)
    for n, at_most, threshold in itertools.product([0, 1, 12], [0, 3, 40], [-0.5, 0.0, 0.3, 0.9, 1.5]):
        yield case(n, at_most, threshold)
    odd = random(rng, (9, 9), low=0, high=1)
    odd[::2, ::3] = np.nan
    odd[1, :] = -np.inf
    odd[2, :] = np.inf
    for score in [-1.0, 0.1]:
        yield Case(odd, random(rng, (9,)), np.int32(9), np.float32(0.6), np.float32(score))
    yield Case(odd, np.full(9, 0.5, np.float32), np.int32(9), np.float32(0.6), np.float32(0))
    yield case(5, -1, invalid=True)
    valid = case(5, 3).inputs
    for at, wrong in [(0, (5, 4)), (0, (25,)), (1, (4,)), (1, (5, 1))]:
        yield Case(*[random(rng, wrong) if i == at else x for i, x in enumerate(valid)], invalid=True)
    yield Case(*valid[:2], np.array([3], np.int32), *valid[3:], invalid=True)


@cases("CombinedNonMaxSuppression")
def _(rng, op):
    def case(images=2, n=12, classes=3, shared=True, per_class=4, total=9, overlap=0.4, score=0.1, scores=None, **more):
        q = 1 if shared else classes
        corners = np.stack([boxes(rng, n * q).reshape(n, q, 4) for _ in range(images)]) if images else np.zeros((0, n, q, 4), np.float32)
        if scores is None:
            scores = rng.permutation(images * n * classes).reshape(images, n, classes).astype(np.float32) / (images * n * classes + 1)
        return Case(corners, scores, np.int32(per_class), np.int32(total), np.float32(overlap), np.float32(score), **more)
    for shared, padded, clipped in itertools.product([False, True], [False, True], [False, True]):
        yield case(shared=shared, pad_per_class=padded, clip_boxes=clipped)
        yield case(shared=shared, pad_per_class=padded, clip_boxes=clipped, total=40, per_class=3)
    yield case(per_class=100, total=100, overlap=1.0, score=-1.0)
    yield case(score=0.99)
    yield case(images=0)
    yield case(n=0)
    yield case(classes=1, shared=False)
    yield case(pad_per_class=True, per_class=2147483647, total=5)
    # Equal scores: TensorFlow takes them in the order of the standard library's heap and sort.
    yield case(n=40, scores=rng.integers(0, 3, (2, 40, 3)).astype(np.float32), per_class=10, total=30)
    odd = random(rng, (1, 12, 3))
    odd[0, 3:5] = np.nan
    odd[0, 5] = np.inf
    yield case(images=1, scores=odd, score=-np.inf)
    for wrong in [{"per_class": 0}, {"total": 0}, {"total": -3}, {"overlap": -0.1}, {"overlap": 1.1}, {"overlap": np.nan}]:
        yield case(invalid=True, **wrong)
    valid = case().inputs
    for at, wrong in [(0, (2, 12, 2, 4)), (0, (2, 12, 1, 3)), (0, (1, 12, 1, 4)), (1, (2, 11, 3))]:  # of other ranks, TensorFlow aborts
        yield Case(*[random(rng, wrong) if i == at else x for i, x in enumerate(valid)], invalid=True)
    yield Case(*valid[:3], np.array([9], np.int32), *valid[4:], invalid=True)


# ---- images that are moved ----

SAMPLINGS = ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"]


@cases("ScaleAndTranslate", "ScaleAndTranslateGrad")
def _(rng, op):
    is_gradient = op.endswith("Grad")

    def case(shape=(2, 7, 9, 3), size=(5, 12), scale=(0.7, 1.3), shift=(0.0, 0.0), dtype=np.float32, **more):
        placement = np.array(scale, np.float32), np.array(shift, np.float32)
        if is_gradient:
            return Case(random(rng, shape[:1] + tuple(size) + shape[3:]), random(rng, shape), *placement, gradient=False, **more)
        return Case(random(rng, shape, dtype), np.array(size, np.int32), *placement, gradient=dtype == np.float32, **more)
    for kernel, antialias in itertools.product(SAMPLINGS, [True, False]):
        for scale, shift in [((0.7, 1.3), (0, 0)), ((0.2, 0.3), (1.5, -0.3)), ((3, 4), (-2, -7.5)), ((1, 1), (0.5, 2))]:
            yield case(scale=scale, shift=shift, kernel_type=kernel, antialias=antialias)
    if not is_gradient:
        for dtype in FLOATS + [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64]:
            yield case(dtype=dtype)
    for scale, shift in [((1e-3, 1e-6), (0.5, 0.5)), ((1e3, 1e30), (0, 0)), ((1, 1), (100, -100)), ((np.inf, 1), (0, 0)),
                         ((1, 1), (np.nan, np.inf))]:
        yield case(scale=scale, shift=shift)
    yield case(shape=(0, 7, 9, 3))
    yield case(shape=(1, 1, 1, 1), size=(4, 4), scale=(4, 4))
    for wrong in [{"scale": (0, 1)}, {"scale": (1, -1)}, {"scale": (1, np.nan)}, {"kernel_type": "sinc"}, {"scale": (1, 1, 1)}, {"shift": (1,)}]:
        yield case(invalid=True, **wrong)
    if not is_gradient:
        for wrong in [{"size": (0, 5)}, {"size": (5,)}, {"size": (5, -1)}, {"shape": (1, 0, 3, 2)}, {"shape": (1, 3, 3, 0)}, {"shape": (3, 3, 1)}]:
            yield case(invalid=True, **wrong)


@cases("ExtractGlimpse", "ExtractGlimpseV2")
def _(rng, op):
    def case(offsets=((0.1, -0.2), (-0.7, 0.9)), size=(3, 4), shape=(2, 7, 9, 3), noise="zero", **more):
        return Case(random(rng, shape), np.array(size, np.int32), np.array(offsets, np.float32).reshape(-1, 2), noise=noise,
                    uniform_noise=noise == "uniform", **more)
    for centered, normalized in itertools.product([False, True], [False, True]):
        unit = 1 if normalized else 4
        for offsets in [((0, 0), (0.3, 0.2)), ((0.5, 0.4), (-0.9, 0.7)), ((3, -4), (1, 1)), ((-0.05, 0.05), (0.99, -1)), ((0, 5), (-7, 0))]:
            yield case(np.array(offsets) * unit, centered=centered, normalized=normalized)
        yield case(size=(12, 14), centered=centered, normalized=normalized)
    yield case(((1e30, 0), (-1e30, 0)))
    yield case(size=(0, 4))
    yield case((), shape=(0, 7, 9, 3))
    for noise in ["uniform", "gaussian", ""]:  # that has no seed: without any
        yield case(((0, 0), (0.1, 0.1)), noise=noise)
    for wrong in [{"size": (3,)}, {"size": (3, -4)}, {"shape": (7, 9, 3)}, {"shape": (3, 7, 9, 3)}]:
        yield case(invalid=True, **wrong)


@cases("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def _(rng, op):
    def case(transforms, dtype=np.float32, shape=(2, 5, 6, 3), size=(4, 7), fill_value=1.5, interpolation="BILINEAR", **more):
        last = [np.float32(fill_value)] if op.endswith("V3") else []
        return Case(random(rng, shape, dtype), np.array(transforms, np.float32), np.array(size, np.int32), *last,
                    interpolation=interpolation, **more)
    turned = [[0.8, -0.6, 1.2, 0.6, 0.8, -0.7, 0.01, -0.02]]
    two = turned + [[1.5, 0.1, -3, -0.2, 0.4, 6, 0, 0]]
    for how, fill in itertools.product(["BILINEAR", "NEAREST"], ["CONSTANT", "REFLECT", "WRAP", "NEAREST"]):
        for transforms in [turned, two, [[1, 0, 0, 0, 1, 0, 0, 0]], [[3, 0, -20, 0, 5, -11, 0, 0]], [[-1, 0, 3, 0, -1, 40, 0, 0]],
                           [[1, 0, 0.5, 0, 1, 0.5, 0, 0]]]:
            yield case(transforms, interpolation=how, fill_mode=fill)
        for shape in [(2, 1, 1, 2), (0, 4, 4, 1), (1, 4, 4, 0), (1, 0, 4, 2)]:
            yield case(turned, shape=shape, interpolation=how, fill_mode=fill, gradient=False)
        # Infinitely far away, not a number.
        yield case([[1, 0, 0, 0, 1, 0, -1, 0]], interpolation=how, fill_mode=fill, gradient=False)
        if fill == "CONSTANT":
            yield case([[np.nan, 0, 0, 0, np.inf, 0, 0, 0]], interpolation=how, fill_mode=fill, gradient=False)
    for dtype in [np.uint8, np.int32, np.int64, np.float16, bf16, np.float64]:
        for how in ["BILINEAR", "NEAREST"]:
            yield case(two, dtype, interpolation=how, gradient=dtype != bf16, tolerance=coarse(dtype))
    for wrong in [{"transforms": [[1, 0, 0, 0, 1, 0, 0]]}, {"transforms": two + turned}, {"transforms": turned[0]}, {"size": (4,)},
                  {"size": (0, 4)}, {"size": (4, -1)}, {"shape": (5, 6, 3)}]:
        yield case(**{"transforms": turned, "invalid": True, **wrong})


def coarse(dtype):
    """Of what is between pixels, one more or less in the last place; inverse transformations are of float32."""
    return {np.float16: 2e-2, bf16: 8e-2, np.float64: 1e-5}.get(dtype)


# ---- layouts ----

FORMATS = [("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NHWC", "HWNC"), ("NWHC", "NCHW"), ("NDHWC", "NCDHW"), ("ABCD", "DCBA")]


@cases("DataFormatDimMap")
def _(rng, op):
    for dtype in [np.int32, np.int64]:
        for src, dst in FORMATS:
            yield Case(np.arange(-12, 12, dtype=dtype), src_format=src, dst_format=dst)
        yield Case(np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype))
    for shape in [(), (0,), (2, 3)]:
        yield Case(random(rng, shape, np.int32, 0, 3))
    for src, dst in [("NHWC", "NHW"), ("NHWC", "NHWD"), ("NHHC", "NHHC"), ("", ""), ("NHWCDE", "NHWCDE"), ("NHWC", "NDHWC")]:
        yield Case(np.array([1], np.int32), src_format=src, dst_format=dst, invalid=True)


@cases("DataFormatVecPermute")
def _(rng, op):
    for dtype in [np.int32, np.int64]:
        for src, dst in FORMATS:
            n = len(src)
            yield Case(random(rng, (n,), dtype), src_format=src, dst_format=dst)
            yield Case(random(rng, (n, 2), dtype), src_format=src, dst_format=dst)
            yield Case(random(rng, (n - 2,), dtype), src_format=src, dst_format=dst, invalid=src == "ABCD")
            yield Case(random(rng, (n - 2, 2), dtype), src_format=src, dst_format=dst, invalid=src == "ABCD")
    for shape in [(), (0,), (3,), (5,), (4, 3), (4, 2, 2), (3, 2)]:
        yield Case(random(rng, shape, np.int32), invalid=True)
    yield Case(random(rng, (4,), np.int32), src_format="NHWC", dst_format="NHHC", invalid=True)


# ---- files ----

@cases("DecodeAndCropJpeg")
def _(rng, op):
    def window(*at):
        return np.array(at, np.int32)
    files = [jpeg(rng, 3), jpeg(rng, 1), jpeg(rng, 3, progressive=True, quality=60), jpeg(rng, 3, chroma_downsampling=False)]
    for file in files:  # 37 x 50
        for at in [(0, 0, 37, 50), (0, 0, 5, 7), (11, 13, 20, 19), (36, 49, 1, 1), (16, 16, 16, 16), (3, 17, 34, 33), (20, 0, 2, 50)]:
            yield Case(file, window(*at))
            yield Case(file, window(*at), fancy_upscaling=False)
        for channels in (1, 3):
            yield Case(file, window(5, 6, 7, 8), channels=channels)
        yield Case(file, window(5, 6, 7, 8), ratio=2)
        yield Case(file, window(5, 6, 7, 8), dct_method="INTEGER_ACCURATE")
    for at in [(0, 0, 38, 50), (0, 1, 37, 50), (-1, 0, 3, 3), (0, 0, 0, 3), (0, 0, 3, -1), (0, 0, 3), (0, 0, 3, 3, 3)]:
        yield Case(files[0], window(*at), invalid=True)
    yield Case(files[0], window(0, 0, 3, 3).reshape(2, 2), invalid=True)
    yield Case(files[0], window(0, 0, 3, 3), channels=4, invalid=True)
    yield Case(png(rng, 3), window(0, 0, 3, 3), invalid=True)
    whole = files[0].item()
    for bad in (b"", b"no image", whole[:40], whole[:len(whole) // 2]):
        yield Case(np.array(bad, object), window(0, 0, 37, 50), invalid=True)


@cases("ExtractJpegShape")
def _(rng, op):
    for file in (jpeg(rng, 3), jpeg(rng, 1), jpeg(rng, 3, progressive=True)):
        for dtype in (tf.int32, tf.int64):
            yield Case(file, output_type=dtype)
    whole = jpeg(rng, 3).item()
    yield Case(np.array(whole[:len(whole) // 2], object), output_type=tf.int32)
    for bad in (b"", b"no image", whole[:40], whole[:150], png(rng, 3).item()):
        yield Case(np.array(bad, object), output_type=tf.int32, invalid=True)
    yield Case(np.array([whole], object), output_type=tf.int32, invalid=True)


@cases("EncodeJpegVariableQuality")
def _(rng, op):
    for channels, quality in itertools.product((1, 3), (0, 1, 50, 95, 100)):
        yield Case(picture(rng, 21, 34, channels), np.int32(quality))
    for quality in (-1, 101, [50]):
        yield Case(picture(rng, 21, 34, 3), np.array(quality, np.int32), invalid=True)
    for shape in [(21, 34, 4), (21, 34), (1, 21, 34, 3)]:
        yield Case(np.zeros(shape, np.uint8), np.int32(50), invalid=True)


@cases("DecodeBmp")
def _(rng, op):
    for bits, height, width in itertools.product((8, 24, 32), (3, -4), (1, 2, 3, 4)):
        for channels in (0, 3, 4):
            yield Case(bmp(rng, width, height, bits), channels=channels)
    yield Case(bmp(rng, 3, 3, 8, header=1078), channels=0)
    yield Case(bmp(rng, 3, 3, 31), channels=0)
    yield Case(bmp(rng, 3, 3, 24), channels=1, invalid=True)
    for bad in (bmp(rng, 3, 3, 1), bmp(rng, 3, 3, 16), bmp(rng, 3, 0, 24), bmp(rng, 3, 3, 24, more=b"!"), bmp(rng, 0, 3, 24),
                b"", b"BM", b"BM" + b"\0" * 40, bmp(rng, 3, 3, 24).item()[:-1], png(rng, 3), jpeg(rng, 3)):
        yield Case(np.asarray(bad, object), channels=0, invalid=True)
    huge = bytearray(bmp(rng, 3, 3, 24).item())
    for width, height in [(2147483647, 2147483647), (2147483647, -2147483648), (65536, 16384), (1, 268435455), (-3, 3)]:
        huge[18:26] = struct.pack("<ii", width, height)
        yield Case(np.array(bytes(huge), object), channels=0, invalid=True)
    yield Case(np.array([bmp(rng, 3, 3, 24).item()], object), channels=0, invalid=True)


STILLS = {op: CASES[op] for op in ("DecodePng", "DecodeJpeg", "DecodeImage")}  # of images.py


def lzw(values, bits, clears=(), width=12):
    """Codes as a writer of GIF makes them; a code that clears the table before each value in `clears`."""
    clear, out = 1 << bits, []
    def start():
        return {(i,): i for i in range(clear)}, clear + 2
    table, following = start()
    size, word, held = bits + 1, 0, 0
    def put(code):
        nonlocal word, held
        word |= code << held
        held += size
        while held >= 8:
            out.append(word & 255)
            word >>= 8
            held -= 8
    put(clear)
    prefix = ()
    for i, value in enumerate(values):
        if i in clears and prefix:
            put(table[prefix])
            put(clear)
            table, following = start()
            size, prefix = bits + 1, ()
        if prefix + (value,) in table:
            prefix += (value,)
            continue
        put(table[prefix])
        if following < 1 << width:
            table[prefix + (value,)] = following
            following += 1
            if following > 1 << size and size < 12:
                size += 1
        prefix = (value,)
    put(table[prefix])
    if following == 1 << size and size < 12:
        size += 1
    put(clear + 1)
    out.append(word & 255)
    return bytes(out)


def blocks(data, length=255):
    return b"".join(bytes([len(data[i:i + length])]) + data[i:i + length] for i in range(0, len(data), length)) + b"\0"


def frame(rng, height, width, at=(0, 0), bits=3, colors=True, transparent=None, interlaced=False, before=b"", data=None, **more):
    control = b"" if transparent is None else b"!\xf9" + blocks(struct.pack("<BHB", 1, 0, transparent))
    table = rng.integers(0, 256, 3 << bits, dtype=np.uint8).tobytes() if colors else b""
    packed = (0x80 | (bits - 1) if colors else 0) | (0x40 if interlaced else 0)
    values = rng.integers(0, 1 << bits, height * width).tolist()
    data = lzw(values, max(bits, 2), **more) if data is None else data
    return before + control + b"," + struct.pack("<HHHHB", at[1], at[0], width, height, packed) + table + bytes([max(bits, 2)]) + blocks(data)


def gif(rng, *frames, bits=0, end=b";"):
    table = rng.integers(0, 256, 3 << bits, dtype=np.uint8).tobytes() if bits else b""
    return np.array(b"GIF89a" + struct.pack("<HHBBB", 5, 4, 0x80 | (bits - 1) if bits else 0, 0, 0) + table + b"".join(frames) + end, object)


def gifs(rng):
    for bits in range(1, 9):
        yield gif(rng, frame(rng, 7, 9, bits=bits))
    yield gif(rng, frame(rng, 90, 100, bits=8))  # more than 4096 codes
    yield gif(rng, frame(rng, 90, 100, bits=2, clears=(50, 2000, 2001)))
    yield gif(rng, frame(rng, 1, 1))
    yield gif(rng, *[frame(rng, height, 6, interlaced=True) for height in (1, 2, 3, 5, 8, 17)])
    yield gif(rng, frame(rng, 5, 6, colors=False), frame(rng, 5, 6), bits=4)
    yield gif(rng, frame(rng, 5, 6), frame(rng, 3, 2, (1, 2)), frame(rng, 4, 4, (3, 4)), frame(rng, 2, 2, (50, 60)), frame(rng, 9, 2))
    yield gif(rng, frame(rng, 5, 6, (1, 1), transparent=2), frame(rng, 5, 6, transparent=3), frame(rng, 3, 6, transparent=200))
    comment = b"!\xfe" + blocks(b"a comment" * 60)
    yield gif(rng, frame(rng, 5, 6, before=comment + b"!\xf9\3abc\0!\xf9\4\1\0\0\1\0"), frame(rng, 5, 6, transparent=1, before=b"!\xf9\4\0\0\0\0\0"))
    yield gif(rng, frame(rng, 5, 6), end=comment + b";and more")
    # What is damaged ends an animation.
    for end in (b"", b"?", b"!", b",", b",\0\0", frame(rng, 5, 6)[:-9], b"!\xfe\5ab"):
        yield gif(rng, frame(rng, 5, 6), end=end)


@cases("DecodePng", "DecodeJpeg", "DecodeImage")
def _(rng, op):
    yield from STILLS[op](rng, op)
    still, animation = gif(rng, frame(rng, 5, 6)), gif(rng, frame(rng, 5, 6), frame(rng, 3, 2, (1, 2)))
    for file in (still, animation):
        for channels in (0, 3):
            if op == "DecodeImage":
                for dtype, expand in itertools.product((tf.uint8, tf.uint16, tf.float32), (False, True)):
                    yield Case(file, channels=channels, dtype=dtype, expand_animations=expand)
            else:
                yield Case(file, channels=channels, invalid=file is animation)
        for channels in (1, 4):
            yield Case(file, channels=channels, invalid=True)
    if op == "DecodeImage":
        for file in (png(rng, 3), jpeg(rng, 1), bmp(rng, 3, 2, 24)):
            yield Case(file)


@cases("DecodeGif")
def _(rng, op):
    for file in gifs(rng):
        yield Case(file)
    for file in (png(rng, 1), png(rng, 3), jpeg(rng, 3), jpeg(rng, 1)):
        yield Case(file)
    whole = gif(rng, frame(rng, 5, 6)).item()
    for bad in [whole[:n] for n in (0, 4, 9, 12, 15, 30, 50, len(whole) - 3)] + [b"GIF89a", b"no image", bmp(rng, 3, 3, 24).item()]:
        yield Case(np.array(bad, object), invalid=True)
    good = frame(rng, 5, 6)
    for bad in (frame(rng, 0, 6, data=b"\0"), frame(rng, 5, 6, data=b"\x0b"), frame(rng, 5, 6, data=b""), frame(rng, 5, 6, colors=False)):
        yield Case(gif(rng, bad), invalid=True)
    for bad in (frame(rng, 5, 6, data=lzw([1, 2, 3], 3)), frame(rng, 0, 6, data=b"\0"), good[:34], good[:20], good[:34] + b"\x09" + good[35:]):
        yield Case(gif(rng, good, bad))
    yield Case(gif(rng, good, frame(rng, 5, 6, colors=False)), invalid=True)
    yield Case(gif(rng, frame(rng, 4, 4, bits=4, data=lzw([9] * 16, 4)), frame(rng, 4, 4, bits=1, data=lzw([3] * 16, 2))), invalid=True)
    yield Case(np.array([whole], object), invalid=True)


# ---- fractional pooling: the draws are TensorFlow's for the same seeds ----

@cases("FractionalMaxPool", "FractionalAvgPool")
def _(rng, op):
    def case(ratios, shape=(2, 13, 11, 3), dtype=np.float32, seeds=(5, 8), **more):
        return Case(random(rng, shape, dtype, -50, 50), pooling_ratio=[float(x) for x in ratios], deterministic=seeds != (0, 0), seed=seeds[0],
                    seed2=seeds[1], **more)
    for overlapping, pseudo in itertools.product([False, True], [False, True]):
        for ratios in [(1, 1.44, 1.73, 1), (1, 2.3, 1, 1), (1, 13, 11, 1), (1, 1, 1, 1), (1, 6.5, 3.3, 1), (1, 2, 5.5, 1)]:
            for seeds in [(5, 8), (0, 1)]:
                yield case(ratios, seeds=seeds, overlapping=overlapping, pseudo_random=pseudo)
        for dtype in [np.float64, np.int32, np.int64]:
            yield case((1, 1.5, 1.7, 1), dtype=dtype, overlapping=overlapping, pseudo_random=pseudo)
    yield case((1, 1, 1, 1), seeds=(0, 0))
    yield case((1, 13, 11, 1), seeds=(0, 0))
    yield case((1, 1.01, 1.5, 1), shape=(1, 1000, 3, 1))
    for wrong in [{"ratios": (2, 1.5, 1.4, 1)}, {"ratios": (1, 1.5, 1.4, 1.5)}, {"ratios": (1, 14, 1.4, 1)},
                  {"shape": (13, 11, 3)}, {"shape": (0, 13, 11, 3)}, {"shape": (2, 13, 11, 0)}]:
        yield case(**{"ratios": (1, 1.5, 1.4, 1), "invalid": True, **wrong})
    yield Case(random(rng, (1, 5, 5, 1)), pooling_ratio=[1.0, 1.5, 1.5, 1.0], seed=3, invalid=True)


@cases("FractionalMaxPoolGrad", "FractionalAvgPoolGrad")
def _(rng, op):
    def case(dtype=np.float32, rows=(0, 2, 3, 5), columns=(0, 1, 3, 4, 6), shape=(2, 5, 6, 3), pooled=(2, 3, 4, 3), **more):
        sequences = np.array(rows, np.int64), np.array(columns, np.int64)
        dy = random(rng, pooled, dtype)
        if op == "FractionalAvgPoolGrad":
            return Case(np.array(shape, np.int64), dy, *sequences, gradient=False, **more)
        x, y = random(rng, shape, dtype, -50, 50), random(rng, pooled, dtype)
        if not more.get("invalid"):
            last = 1 if more.get("overlapping") else 0
            for i, j in np.ndindex(pooled[1:3]):
                y[:, i, j] = x[:, rows[i]:rows[i + 1] + last, columns[j]:columns[j + 1] + last].max((1, 2))
        return Case(x, y, dy, *sequences, gradient=False, **more)
    for dtype, overlapping in itertools.product([np.float32, np.float64, np.int32, np.int64], [False, True]):
        yield case(dtype, overlapping=overlapping)
    yield case(rows=(0, 5), columns=(0, 6), pooled=(2, 1, 1, 3))
    for wrong in [{"rows": (0, 2, 3)}, {"rows": (-1, 2, 3, 5)}, {"shape": (2, 5, 6)}] + ([{}] if "Max" in op else []):
        yield case(invalid=True, **wrong)


@cases("ExtractVolumePatches")
def _(rng, op):
    def steps(*by_axis):
        return [1, *by_axis, 1]
    for dtype in FLOATS + INTS:
        yield Case(random(rng, (2, 3, 4, 5, 2), dtype), ksizes=steps(2, 3, 2), strides=steps(1, 2, 1), padding="SAME", gradient=False)
    for padding, size, step in itertools.product(["SAME", "VALID"], [(1, 1, 1), (2, 3, 2), (3, 1, 4)], [(1, 1, 1), (2, 1, 3)]):
        yield Case(random(rng, (2, 4, 5, 6, 2)), ksizes=steps(*size), strides=steps(*step), padding=padding)
    yield Case(random(rng, (0, 4, 5, 6, 2)), ksizes=steps(2, 2, 2), strides=steps(1, 1, 1), padding="SAME", gradient=False)
    yield Case(random(rng, (4, 5, 6, 2)), ksizes=steps(2, 2, 2), strides=steps(1, 1, 1), padding="SAME", invalid=True)

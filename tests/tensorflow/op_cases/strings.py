"""Calls of ops that take strings apart, change them, and turn them into numbers and back."""
import atexit
import itertools
import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf

from .case import *


def texts(*values):
    return np.array(values, object)


WORDS = texts(b"", b" a b ", b"\tHello, World\n", b"abc", "\u00e4\u00f6\u20ac x".encode(), b"a,,b,", b",", b"  ")


@cases("StringStrip", "StringLower", "StringUpper")
def _(rng, op):
    yield Case(WORDS)
    yield Case(np.array(b" X y ", object))
    yield Case(texts(b"ab", b"c D").reshape(1, 2))
    if op != "StringStrip":
        yield Case(texts(b"aB-c"), encoding="utf-8")
        yield Case(texts(*(t.encode() for t in ("ÄÖÜ äöü ß ẞ", "ΑΣ ΣΑΣ Σ ς", "ЖЁж", "éÉ ñ ÿ Ǆ ǅ", "日本 ① Ⓐ 𐐀𐐨"))), encoding="utf-8")
        yield Case(texts(b"\xe4B", b"a\xe2\x82", b"\xf0\x9f\x98b", b"\xed\xa0\x80", b"\xc0\x80"), encoding="utf-8")
        yield Case(texts(b"aB-c"), encoding="utf-16", invalid=True)


@cases("StringLength")
def _(rng, op):
    for unit in ["BYTE", "UTF8_CHAR"]:
        yield Case(WORDS, unit=unit)
        yield Case(np.array(b"abc", object), unit=unit)


@cases("Substr")
def _(rng, op):
    words = texts(b"Hello", "\u00e4\u00f6\u20acxyz".encode(), b"abc")
    for unit, index, (position, length) in itertools.product(["BYTE", "UTF8_CHAR"], [np.int32, np.int64], [(0, 2), (1, 9), (-2, 1), (3, 0), (-3, 3), (1, -1)]):
        yield Case(words, index(position), index(length), unit=unit)
        yield Case(words, np.full(3, position, index), np.full(3, length, index), unit=unit)
    yield Case(words.reshape(3, 1), np.array([0, 1], np.int32), np.array([1, 2], np.int32))
    yield Case(np.array(b"Hello", object), np.array([0, 1], np.int32), np.array([1, 2], np.int32))
    yield Case(words, np.int32(4), np.int32(1), invalid=True)
    yield Case(words, np.int32(-4), np.int32(1), invalid=True)
    yield Case(words, np.array([0, 1], np.int32), np.array([1, 1], np.int32), invalid=True)


@cases("RegexReplace")
def _(rng, op):
    for pattern, rewrite in [(b"[a-c]", b"_"), (b"(\\w)(\\w)", b"\\2\\1"), (b"$", b"!"), (b"x*", b"-")]:
        for every in [True, False]:
            yield Case(WORDS, np.array(pattern, object), np.array(rewrite, object), replace_global=every)
    yield Case(WORDS, np.array(b"(", object), np.array(b"", object), invalid=True)
    yield Case(WORDS, np.array(b"a", object), np.array(b"\\1", object))


@cases("StaticRegexReplace")
def _(rng, op):
    yield Case(WORDS, pattern="[a-c]+", rewrite="<\\0>")
    yield Case(WORDS, pattern="[a-c]", rewrite="", replace_global=False)


@cases("AsString")
def _(rng, op):
    for dtype in FLOATS:
        yield Case(np.array([0, -1.5, 3.25, 1e10 if dtype in WIDE else 100, np.inf, -np.inf], dtype))
        yield Case(random(rng, (2, 3), dtype), precision=3, width=9, fill="0")
    for dtype in INTS:
        yield Case(random(rng, (4,), dtype))
    yield Case(np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max]), width=5)
    yield Case(np.array([True, False]))
    for more in [{"scientific": True}, {"shortest": True}, {"precision": 2, "scientific": True}, {"width": 12, "fill": " "}, {"width": 8, "fill": "-"},
                 {"fill": "+"}, {"width": 6, "fill": ""}]:
        yield Case(np.array([1234.5678, -0.001], np.float32), **more)
    yield Case(np.int32(7))
    yield Case(np.array([1.5, 1e300]), width=3000, precision=2500)
    for more in [{"precision": 2}, {"scientific": True}, {"fill": "ab"}, {"fill": "x"}]:
        yield Case(np.array([1], np.int32), **more, invalid=True)
    yield Case(np.array([1.0], np.float32), scientific=True, shortest=True, invalid=True)


@cases("StringToNumber")
def _(rng, op):
    for kind in [tf.float32, tf.float64]:
        yield Case(texts(b"1.5", b" -2e3", b"7 ", b"inf", b"1e-40", b".5", b"-0"), out_type=kind)
    for kind in [tf.int32, tf.int64]:
        yield Case(texts(b"15", b" -2", b"7 ", b"-0", b"2147483647"), out_type=kind)
    yield Case(np.array(b"3", object))
    for kind, wrong in itertools.product([tf.float32, tf.int32, tf.int64], [b"", b"x", b"1x", b"1 2", b" "]):
        yield Case(texts(wrong), out_type=kind, invalid=True)
    yield Case(texts(b"2147483648"), out_type=tf.int32, invalid=True)
    yield Case(texts(b"1.5"), out_type=tf.int32, invalid=True)


@cases("StringSplit")
def _(rng, op):
    for delimiter, skip in itertools.product([b" ", b",", b", ", b""], [True, False]):
        yield Case(WORDS, np.array(delimiter, object), skip_empty=skip)
    yield Case(texts(), np.array(b" ", object))
    yield Case(WORDS.reshape(2, 4), np.array(b" ", object), invalid=True)


@cases("StringSplitV2")
def _(rng, op):
    for separator, most in itertools.product([b" ", b",", b",,", b""], [-1, 0, 1, 2]):
        yield Case(WORDS, np.array(separator, object), maxsplit=most)
    yield Case(texts(), np.array(b" ", object))
    yield Case(WORDS.reshape(2, 4), np.array(b" ", object), invalid=True)


@cases("EncodeBase64")
def _(rng, op):
    for pad in [True, False]:
        yield Case(texts(*[bytes(rng.integers(0, 256, n, np.uint8)) for n in range(9)]), pad=pad)
        yield Case(WORDS.reshape(2, 4), pad=pad)
    yield Case(np.array(b"ab", object))
    yield Case(texts())


@cases("DecodeBase64")
def _(rng, op):
    yield Case(texts(b"", b"YQ", b"YQ==", b"YWI", b"YWI=", b"YWJj", b"YWJjZA", b"-_-_AZaz09", b"YR", b"YR=="))
    yield Case(np.array(b"YQ", object))
    yield Case(texts())
    for wrong in [b"Y", b"YQ=", b"YWJjZ", b"Y===", b"Y=Q=", b"YQ==YQ==", b"+/+/", b"=", b"==", b"====", b"\xff\xff", b"YQ\n=", b"YWJjZA=",
                  b"YQ=a", b"Y Q=", b"YW\0="]:
        yield Case(texts(b"YQ", wrong), invalid=True)


@cases("ReduceJoin")
def _(rng, op):
    words = random(rng, (2, 3, 4), object)
    for axes, keep in itertools.product([0, 2, -1, [0, 1], [1, 0], [2, 0, 1], [-1, 0], []], [False, True]):
        yield Case(words, np.array(axes, np.int32), keep_dims=keep, separator=", ")
    for axis in [0, 1]:
        yield Case(words[:, :0, 0], np.int32(axis), separator="x")
    yield Case(np.array(b"a", object), np.zeros(0, np.int32))
    for axes in [3, -4, [0, 0], [1, -2]]:
        yield Case(words, np.array(axes, np.int32), invalid=True)
    yield Case(np.array(b"a", object), np.int32(0), invalid=True)


@cases("SerializeTensor")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case(random(rng, (2, 3), dtype), gradient=False)
    for shape, dtype in itertools.product([(), (0,), (2, 0, 3), (100,)], [np.float32, object]):
        yield Case(random(rng, shape, dtype), gradient=False)
    yield Case(np.zeros(100, np.float32), gradient=False)


@cases("ParseTensor")
def _(rng, op):
    for dtype, shape in itertools.product(NUMBERS + [np.bool_, object], [(2, 3), (), (0, 2)]):
        value = random(rng, shape, dtype)
        kind = tf.string if dtype == object else tf.as_dtype(dtype)
        proto = tf.make_tensor_proto(value, kind).SerializeToString()
        yield Case(np.array(proto, object), out_type=kind, gradient=False)
    yield Case(np.array(b"\x08\x03\x12\x04\x12\x02\x08\x02", object), out_type=tf.int32)  # no elements: zeros
    yield Case(np.array(b"\x08\x03\x12\x04\x12\x02\x08\x02\x3a\x01\x07", object), out_type=tf.int32)  # one for all
    yield Case(np.array(proto, object), out_type=tf.int32, invalid=True)
    yield Case(np.array([proto], object), out_type=tf.string, invalid=True)
    for wrong in [b"", b"zz", proto[:-1], b"\x08\x63\x12\x00", b"\x08\x03\x12\x04\x12\x02\x08\x02\x22\x01\x00"]:
        yield Case(np.array(wrong, object), out_type=tf.int32, invalid=True)


@cases("DecodeRaw")
def _(rng, op):
    data = bytes(range(1, 17))
    for kind in [tf.float32, tf.float64, tf.int32, tf.uint16, tf.uint8, tf.int16, tf.int8, tf.int64]:
        for little in [True, False]:
            yield Case(texts(data, data[::-1]), out_type=kind, little_endian=little, gradient=False)
    yield Case(texts(b"", b""), out_type=tf.int32)
    yield Case(np.array(b"ab", object), out_type=tf.uint8)
    yield Case(texts(b"abc"), out_type=tf.int16, invalid=True)
    yield Case(texts(b"abcd", b"ab"), out_type=tf.uint8, invalid=True)


@cases("DecodePaddedRaw")
def _(rng, op):
    data = bytes(range(1, 17))
    for kind in [tf.float32, tf.float64, tf.int32, tf.uint16, tf.uint8, tf.int16, tf.int8, tf.int64, tf.bfloat16]:
        for little, length in itertools.product([True, False], [8, 16, 24]):
            yield Case(texts(data, data[:11], data[:1], b""), np.int32(length), out_type=kind, little_endian=little, gradient=False)
    yield Case(np.array(b"ab", object), np.int32(3), out_type=tf.uint8)
    yield Case(np.zeros((0, 2), object), np.int32(4), out_type=tf.uint8)
    for length in [0, -1, -4, 3, -2**31, 2**31 - 1, [4]]:
        yield Case(texts(b"abcd"), np.array(length, np.int32), out_type=tf.int16, invalid=True)


@cases("Fingerprint")
def _(rng, op):
    method = np.array(b"farmhash64", object)
    for dtype in NUMBERS + [np.bool_]:
        yield Case(random(rng, (3, 5), dtype), method, gradient=False)
    yield Case(random(rng, (3, 5)).astype(np.complex64), method, gradient=False)
    for shape in [(4,), (2, 3, 70), (0,), (0, 3), (3, 0)]:
        yield Case(random(rng, shape, np.int32), method)
    words = np.array([bytes(rng.integers(0, 256, n, np.uint8)) for n in [0, 1, 7, 8, 17, 33, 65, 200]], object)
    for shape in [(8,), (8, 1), (4, 2), (2, 2, 2), (1, 8)]:
        yield Case(words.reshape(shape), method)
    yield Case(np.zeros((0, 3), object), method)
    yield Case(np.float32(3), method, invalid=True)
    for wrong in [b"md5", b"", [b"farmhash64"]]:
        yield Case(random(rng, (3, 5)), np.array(wrong, object), invalid=True)
        yield Case(random(rng, (0, 5)), np.array(wrong, object), invalid=True)


@cases("PrintV2")
def _(rng, op):
    yield Case(np.array(b"", object), end="")
    yield Case(np.array(b"", object), end="", output_stream="stdout")
    yield Case(texts(b""), end="", invalid=True)


@cases("StringFormat")
def _(rng, op):
    for dtype in NUMBERS + [np.bool_, object]:
        yield Case([random(rng, (2, 3), dtype)], gradient=False)
    for shape, count in [((), 3), ((0,), 3), ((9,), 2), ((9,), -1), ((7, 2), 3), ((2, 3, 2), 3), ((7, 1, 9), 1)]:
        yield Case([random(rng, shape)], summarize=count, gradient=False)
    yield Case([random(rng, (), np.int32), texts(b"a", b"b")], template="n = {}; names = {}", placeholder="{}")
    yield Case([np.array([0.1, 1e10, 1e-5, 123456789, np.inf, np.nan], np.float64)], gradient=False, summarize=-1)


# ---- files ----

def written_files():
    """A directory with some, which lives as long as the test."""
    directory = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, directory)
    for name in ["b1.txt", "b2.txt", ".h.txt", "c[1].txt", "x/y/a.txt", "x/z/a.txt"]:
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(b"\0" + name.encode())
    return directory


@cases("ReadFile")
def _(rng, op):
    directory = written_files()
    yield Case(np.array(directory + "/x/y/a.txt", object))
    for path in ["/x", "/missing"]:
        yield Case(np.array(directory + path, object), invalid=True)
    yield Case(np.array([directory + "/b1.txt"], object), invalid=True)


@cases("WriteFile")
def _(rng, op):
    directory = written_files()
    yield Case(np.array(directory + "/new/one.txt", object), np.array(b"a\0b", object))
    yield Case(np.array(directory + "/b1.txt", object), np.array(b"", object))
    yield Case(np.array(directory + "/b1.txt", object), np.array([b""], object), invalid=True)


@cases("MatchingFiles")
def _(rng, op):
    directory = written_files()
    for pattern in ["/*", "/b?.txt", "/b[12].txt", "/none*", "/x/*/a.txt", "/x/*", "/b{1,2}.txt", "/*/*", "/b[!1].txt", "/[.]h*",
                    "/x/y/../y/a.txt", "/x/y/a.txt", "/c[[]*", "/x/y/missing"]:
        yield Case(np.array(directory + pattern, object))
    yield Case(np.array([directory + p for p in ("/b2*", "/b1*", "/b*")], object))
    yield Case(np.array([], object))


# What UTF-8, UTF-16-BE and UTF-32-BE may hold, some of it not valid.
UTF = {
    "UTF-8": [b"", b"a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", b"a\xff\xc3", b"\xe2\x82", b"\xe2\x82a", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\x80",
              b"\xf4\x90\x80\x80", b"\x80\x80a", b"a\0\x1f\x7f\xc2\x80", b"\xe0\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xf0\x80\x80\x80", b"\xef\xbb\xbfa",
              b"\xef\xbf\xbd", b"\xe2\x28\xa1", b"\xf0\x9f\x28\x80", b"\xf0\x9f\xff", b"\xc3\xc3\xa4", b"\xf1\x80\x80\xc0", b"\xf4\x8f\xbf\xbf"],
    "UTF-16-BE": [b"", b"\0a\xd8\x3d\xde\0", b"\xd8\x3d", b"\xd8\x3d\0a", b"\xde\0\0a", b"\0", b"\0a\0", b"\xfe\xff\0a", b"\xff\xfea\0", b"\xd8\x3d\xd8\x3d\xde\0",
                  b"\xd8\x3d\xde", b"\xd8\x3d\0", b"\0\x1f\0\0", b"\xff\xff"],
    "UTF-32-BE": [b"", b"\0\0\0a\0\1\xf6\0", b"\0\0\xd8\0", b"\0\x11\0\0", b"\0\0\0", b"\0\0\0a\0\0", b"\xff\xff\xff\xff\0\0\0a", b"\0\0\xfe\xff\0\0\0a",
                  b"\0\x10\xff\xff", b"\0", b"\0\0\0\x1f"],
}
NAMES = ["utf8", "Utf_8", "utf-16be", "UTF_16_BE", "UTF 32 BE"]


def utf_cases(**attrs):
    for encoding, texts in UTF.items():
        # The number of the random bytes is that of no code unit.
        texts = np.array(texts + [np.random.default_rng(3).integers(0, 256, 1003, np.uint8).tobytes()], object)
        for errors, more in itertools.product(["replace", "ignore"], [{}, {"replacement_char": 0x3F, "replace_control_characters": True},
                                                                       {"replacement_char": 0x1F600}, {"replacement_char": 0xD83D}]):
            yield Case(texts, input_encoding=encoding, errors=errors, **more, **attrs)
        for text in texts[:4]:
            is_valid = text.decode(encoding.replace("-BE", "BE"), "ignore").encode(encoding.replace("-BE", "BE")) == text
            yield Case(np.array(text, object), input_encoding=encoding, errors="strict", invalid=not is_valid, **attrs)
        yield Case(np.array([], object), input_encoding=encoding, **attrs)
    for name in NAMES:
        yield Case(np.array([[b"\0\0\0a", b""], [b"", b"\0\0\0b"]], object), input_encoding=name, **attrs)
    for wrong in [{"input_encoding": "x"}, {"input_encoding": ""}, {"replacement_char": -1}, {"replacement_char": 0x110000}]:
        yield Case(WORDS, **{"input_encoding": "UTF-8", **wrong}, **attrs, invalid=True)


@cases("UnicodeDecode", "UnicodeDecodeWithOffsets")
def _(rng, op):
    yield from utf_cases()
    yield Case(np.array(b"a\x01", object), input_encoding="UTF-8", errors="strict", replace_control_characters=True)
    if op == "UnicodeDecode":  # the other aborts
        yield Case(np.array([b"ab", b"c"], object), input_encoding="UTF-8", Tsplits=tf.int32)


@cases("UnicodeTranscode")
def _(rng, op):
    for encoding in UTF:
        yield from utf_cases(output_encoding=encoding)
    yield Case(np.array(b"a\x01", object), input_encoding="UTF-8", output_encoding="UTF-8", errors="strict", replace_control_characters=True, invalid=True)


@cases("UnicodeEncode")
def _(rng, op):
    values = np.array([0x41, 0xE4, 0xD800, 0x1F600, 0xDC00, 0x110000, -1, 0, 0x10FFFF, 0xFFFE, 0xD83D, 0xDE00], np.int32)
    for encoding, dtype in itertools.product(UTF, [np.int64, np.int32]):
        splits = np.array([0, 3, 3, 12], dtype)
        for errors, replacement in itertools.product(["replace", "ignore"], [0xFFFD, 0x20, 0x1F600, 0xD83D]):
            yield Case(values, splits, output_encoding=encoding, errors=errors, replacement_char=replacement)
        yield Case(values[:2], np.array([0, 2], dtype), output_encoding=encoding, errors="strict")
        yield Case(values, splits, output_encoding=encoding, errors="strict", invalid=True)
    yield Case(values[:0], np.array([0]), output_encoding="UTF-8")
    yield Case(values[:0], np.array([0, 0]), output_encoding="UTF-8")
    for splits in [[0, 3], [0, 1], [1, 2], [-1, 2], [0, 2, 1, 2], [], [0], [2], [[0, 2]], [0, 2**62], [0, -2**63, 2]]:
        yield Case(values[:2], np.array(splits, np.int64), output_encoding="UTF-8", invalid=True)
    yield Case(values[None, :2], np.array([0, 2]), output_encoding="UTF-8", invalid=True)
    yield Case(values[:2], np.array([0, 2]), output_encoding="UTF-8", replacement_char=0x110000, invalid=True)

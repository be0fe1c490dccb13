"""Calls of ops on sound: WAV files, spectrograms, cepstral coefficients, summaries."""
import itertools
import struct

import numpy as np

from .case import *


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data


def wav(rng, frames=7, channels=2, rate=8000, format_code=1, bits=16, before=b"", after=b"", more_format=b"", **wrong):
    data = rng.integers(-32768, 32768, frames * channels).astype("<i2").tobytes()
    block = wrong.get("block", channels * bits // 8)
    form = struct.pack("<HHIIHH", format_code, channels, rate, wrong.get("speed", rate * block % 2**32), block, bits) + more_format
    body = b"WAVE" + before + chunk(b"fmt ", form) + wrong.get("between", b"") + chunk(b"data", data) + after
    return np.array(b"RIFF" + struct.pack("<I", len(body)) + body, object)


@cases("DecodeWav")
def _(rng, op):
    for channels, samples in itertools.product([-1, 0, 1, 2, 4], [-1, 0, 3, 7, 20]):
        yield Case(wav(rng), desired_channels=channels, desired_samples=samples)
    yield Case(wav(rng, frames=0))
    yield Case(wav(rng, channels=1, rate=2147483647))
    yield Case(wav(rng, more_format=b"\0\0"))
    yield Case(wav(rng, before=chunk(b"JUNK", b"abcd") + chunk(b"bext", b"")))
    yield Case(wav(rng, between=chunk(b"fact", b"abcd"), after=chunk(b"LIST", b"ab")))
    yield Case(wav(rng, after=b"LIST\x09\0\0\0ab"))
    whole = wav(rng).item()
    for bad in ([whole[:n] for n in (0, 3, 11, 20, 35, 43, len(whole) - 1)] + [b"no sound", whole + b"x", whole + b"LIST\0\0\0\x80",
                 whole.replace(b"RIFF", b"RIFX"), whole.replace(b"WAVE", b"WAVX")]):
        yield Case(np.array(bad, object), invalid=True)
    for wrong in [{"format_code": 3}, {"bits": 8}, {"channels": 0}, {"speed": 1}, {"rate": 4000000000}, {"block": 3}, {"before": chunk(b"LIST", b"")},
                  {"more_format": b"\0"}, {"after": chunk(b"data", b"")}, {"before": b"JUNK\xff\xff\xff\xff"}]:
        yield Case(wav(rng, **wrong), invalid=True)
    yield Case(np.array([whole], object), invalid=True)


@cases("EncodeWav")
def _(rng, op):
    for shape in [(7, 2), (1, 1), (0, 2), (5, 7)]:
        for rate in [1, 44100, 2147483647]:
            yield Case(random(rng, shape, low=-1.2, high=1.2), np.int32(rate))
    yield Case(np.array([[np.nan, np.inf, -np.inf, 1, -1, 2, 1.5e-5, 1.6e-5, -1.6e-5]], np.float32), np.int32(8000))
    for rate in [0, -1, [8000]]:
        yield Case(random(rng, (7, 2)), np.array(rate, np.int32), invalid=True)
    for shape in [(7,), (3, 0), (1, 65536), (1, 7, 2)]:
        yield Case(random(rng, shape), np.int32(8000), invalid=True)


@cases("AudioSpectrogram")
def _(rng, op):
    for window, stride, squared in itertools.product([2, 3, 16, 100, 128], [1, 7, 200], [False, True]):
        yield Case(random(rng, (301, 2), low=-1, high=1), window_size=window, stride=stride, magnitude_squared=squared)
    tone = np.sin(np.arange(4000, dtype=np.float64)[:, None] * [[0.1, 1.3]]).astype(np.float32)
    yield Case(tone, window_size=640, stride=320, magnitude_squared=True)  # as speech_commands
    yield Case(tone, window_size=480, stride=160)
    for shape in [(0, 2), (10, 0), (15, 1), (16, 1)]:
        yield Case(random(rng, shape), window_size=16, stride=4)
    yield Case(np.full((16, 1), np.nan, np.float32), window_size=16, stride=4)
    yield Case(random(rng, (20,)), window_size=16, stride=4, invalid=True)


@cases("Mfcc")
def _(rng, op):
    def spectrum(*shape):
        return random(rng, shape, low=0, high=5) ** 2
    for bins, rate in itertools.product([129, 257, 20, 2], [8000, 16000, 44100, 4000, 1, 2147483647]):
        yield Case(spectrum(2, 3, bins), np.int32(rate))
    for more in [{"dct_coefficient_count": 40}, {"dct_coefficient_count": 1}, {"filterbank_channel_count": 13}, {"filterbank_channel_count": 300},
                 {"lower_frequency_limit": 0.0}, {"lower_frequency_limit": 3999.0}, {"upper_frequency_limit": 8000.0},
                 {"upper_frequency_limit": 7999.0}, {"upper_frequency_limit": 1e30},
                 {"lower_frequency_limit": 1e9, "upper_frequency_limit": 2e9}]:
        yield Case(spectrum(1, 4, 257), np.int32(16000), **more)
    yield Case(np.zeros((1, 2, 129), np.float32), np.int32(16000))
    yield Case(random(rng, (1, 2, 129)), np.int32(16000))  # roots of negative numbers
    yield Case(spectrum(0, 3, 129), np.int32(16000))
    yield Case(spectrum(1, 0, 129), np.int32(16000))
    for more in [{"dct_coefficient_count": 41}, {"dct_coefficient_count": 0}, {"filterbank_channel_count": 0}, {"lower_frequency_limit": -1.0},
                 {"upper_frequency_limit": 20.0}]:
        yield Case(spectrum(1, 4, 129), np.int32(16000), invalid=True, **more)
    for rate in [0, -5, [16000]]:
        yield Case(spectrum(1, 4, 129), np.array(rate, np.int32), invalid=True)
    for shape in [(1, 4, 1), (1, 4, 0), (4, 129)]:
        yield Case(spectrum(*shape), np.int32(16000), invalid=True)


@cases("AudioSummaryV2")
def _(rng, op):
    def case(shape, rate=8000.0, tag=b"x", **more):
        return Case(np.array(tag, object), random(rng, shape, low=-1, high=1), np.float32(rate), **more)
    for shape in [(2, 5), (5, 4, 2), (1, 3, 1), (0, 3), (2, 0), (2, 0, 2)]:
        for more in [{}, {"max_outputs": 1}, {"max_outputs": 2}]:
            yield case(shape, **more)
    for rate in [0.1, 1.4, 2.5, 44100.5, 4e9]:
        yield case((1, 3), rate)
    yield case((0, 3), np.inf)
    for rate in [0.0, -1.0, np.nan, np.inf, 1e12]:
        yield case((1, 3), rate, invalid=True)
    for shape in [(3,), (1, 2, 3, 4), (2, 3, 0)]:
        yield case(shape, invalid=True)

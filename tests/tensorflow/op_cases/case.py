"""A call of an op, and what generators of calls share: types, shapes, random and special values."""
import itertools

import numpy as np
import tensorflow as tf

bf16 = tf.bfloat16.as_numpy_dtype
FLOATS = [np.float32, np.float64, np.float16, bf16]
WIDE = [np.float32, np.float64]
SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]
INTS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTS
SHAPES = [(), (0,), (7,), (3, 4), (2, 0, 3), (1, 2, 3, 2)]
PAIRS = [((), ()), ((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((0, 3), (3,)), ((2, 1, 3), (4, 1)), ((), (5,)),
         ((1,), (0,)), ((17,), (1,)), ((2, 3, 4), (2, 3, 4))]


def concisely(text):
    return text if len(text) <= 60 else text[:40] + b"... of %d bytes" % len(text)


class Ref:
    def __init__(self, value):
        self.value = value


class Case:
    def __init__(self, *inputs, invalid=False, gradient=True, tolerance=None, static=True, **attrs):
        self.inputs, self.attrs = inputs, attrs
        self.static = static and not invalid  # False: TensorFlow's client refuses these shapes when it knows them
        self.invalid, self.gradient, self.tolerance = invalid, gradient and not invalid, tolerance

    def __repr__(self):
        def show(x):
            if isinstance(x, Ref):
                return f"Ref({show(x.value)})"
            if isinstance(x, (list, tuple)):
                return "[" + ", ".join(map(show, x)) + "]"
            x = np.asarray(x)
            if x.dtype == object and any(isinstance(s, bytes) and len(s) > 60 for s in x.ravel()):
                x = np.array([concisely(s) for s in x.ravel()], object).reshape(x.shape)
            values = np.array2string(x.ravel()[:12], separator=",", threshold=12).replace("\n", "")
            return f"{x.dtype}{list(x.shape)}{values}"
        attrs = "".join(f", {k}={v}" for k, v in self.attrs.items())
        return f"({', '.join(map(show, self.inputs))}{attrs})"


CASES = {}


def cases(*ops):
    """The generator below it yields the cases of each of these ops; it gets a random generator and the op's name."""
    def register(generate):
        for op in ops:
            CASES[op] = generate
        return generate
    return register


def more_cases(*ops):
    """The same, of cases that come behind those that each of these ops has."""
    def register(generate):
        for op in ops:
            first = CASES[op]
            CASES[op] = lambda rng, op, first=first: itertools.chain(first(rng, op), generate(rng, op))
        return generate
    return register


def is_float(dtype):
    return dtype in FLOATS


def random(rng, shape, dtype=np.float32, low=-3.0, high=3.0):
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    if dtype == object:
        return np.array([b"s%d" % n for n in rng.integers(0, 5, int(np.prod(shape)))], object).reshape(shape)
    if is_float(dtype):
        return np.asarray(rng.uniform(low, high, shape), dtype=dtype)
    low = max(low, 0) if dtype in UNSIGNED else low
    return np.asarray(rng.integers(int(np.floor(low)), int(np.ceil(high)) + 1, shape), dtype=dtype)


def special(dtype):
    """Values that arithmetic goes wrong with."""
    if is_float(dtype):
        return np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 100.0, -100.0], dtype)
    info = np.iinfo(dtype)
    values = [info.min, info.max, info.max - 1, info.min + 1, 0, 1, 2, 3, 7]
    return np.array(values + ([-1, -2, -7] if dtype in SIGNED else []), dtype)


def crossed(a, b):
    pairs = list(itertools.product(a, b))
    return np.array([x for x, _ in pairs], a.dtype), np.array([y for _, y in pairs], b.dtype)

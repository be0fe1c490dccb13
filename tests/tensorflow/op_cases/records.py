"""Calls of ops that read tf.train.Example records."""
import numpy as np
import tensorflow as tf

from .case import *


def example(**features):
    def feature(values):
        if isinstance(values[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Example(features=tf.train.Features(feature={k: feature(v) for k, v in features.items()})).SerializeToString()


RECORDS = [example(x=[1.5, 2.5], n=[7], s=[b"a", b"bc"], v=[1, 2, 3], u=[6, 8]), example(x=[-1.0, 0.25], n=[-(2**40)], s=[b""], v=[4], u=[3]), example(x=[0.0, 1.0])]
DEFAULTS = [np.zeros(0, np.float32), np.array(5), np.array([9])]
DENSE = dict(dense_shapes=[[2], [], [None]])
SPARSE_TYPES = [tf.string, tf.int64]


def texts(*values):
    return np.array(values, object)


NAMES = np.zeros(0, object)


@cases("ParseExampleV2")
def _(rng, op):
    def case(serialized, sparse=(b"s", b"u"), dense=(b"x", b"n", b"v"), defaults=DEFAULTS, types=SPARSE_TYPES, dense_shapes=DENSE["dense_shapes"],
             ragged=(), ragged_types=(), **more):
        return Case(serialized, NAMES, texts(*sparse), texts(*dense), texts(*ragged), defaults, num_sparse=len(sparse), sparse_types=types,
                    ragged_value_types=list(ragged_types), ragged_split_types=[tf.int64, tf.int32][:len(ragged_types)], dense_shapes=dense_shapes,
                    gradient=False, **more)
    yield case(texts(*RECORDS))
    yield case(texts())
    yield case(np.array(RECORDS[0], object))
    yield case(np.array(RECORDS[2], object))
    yield case(texts(RECORDS[0]), sparse=(), types=[])
    yield case(texts(RECORDS[0]), dense=(), defaults=[], dense_shapes=[])
    yield case(texts(b""), dense=(b"x",), defaults=[np.array([1, 2], np.float32)], dense_shapes=[[2]])
    ragged = dict(ragged=(b"s", b"v"), ragged_types=(tf.string, tf.int64), dense=(b"x",), defaults=DEFAULTS[:1], dense_shapes=[[2]], sparse=(), types=[])
    for records in (RECORDS, RECORDS[::-1], RECORDS[:1], []):
        yield case(texts(*records), **ragged)
    yield case(np.array(RECORDS[0], object), **ragged)
    yield case(np.array(RECORDS[2], object), **ragged)
    yield case(texts(*RECORDS), ragged=(b"s",), ragged_types=(tf.float32,), invalid=True)
    yield case(texts(*RECORDS), ragged=(b"s", b"v"), ragged_types=(tf.string,), invalid=True)
    yield case(texts(b""), invalid=True)  # x is required
    yield case(texts(*RECORDS), defaults=[DEFAULTS[0], np.array([5]), DEFAULTS[2]], invalid=True)
    yield case(texts(*RECORDS), defaults=[DEFAULTS[0], DEFAULTS[1], np.array([1, 2])], invalid=True)
    yield case(texts(b"\x00"), invalid=True)
    yield case(texts(RECORDS[0][:-1]), invalid=True)
    yield case(texts(*RECORDS), dense=(b"u", b"n", b"v"), invalid=True)
    yield case(texts(*RECORDS), sparse=(b"u", b"s"), invalid=True)
    yield case(texts(*RECORDS), dense_shapes=[[3], [], [None]], invalid=True)


@cases("ParseExample")
def _(rng, op):
    def case(serialized, **more):
        return Case(serialized, NAMES, list(texts(b"s", b"u")), list(texts(b"x", b"n", b"v")), DEFAULTS, sparse_types=SPARSE_TYPES, **DENSE, gradient=False,
                    **more)
    yield case(texts(*RECORDS))
    yield case(texts())
    yield case(texts(b"\x00"), invalid=True)


@cases("ParseSingleExample")
def _(rng, op):
    def case(serialized, **more):
        return Case(np.array(serialized, object), DEFAULTS, num_sparse=2, sparse_keys=["s", "u"], dense_keys=["x", "n", "v"], sparse_types=SPARSE_TYPES, **DENSE,
                    gradient=False, **more)
    for record in RECORDS:
        yield case(record)
    yield case(b"\x00", invalid=True)


def feature(values):
    if values is None:
        return tf.train.Feature()
    if values == b"" or (values and isinstance(values[0], bytes)):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def sequence(context={}, **lists):
    return tf.train.SequenceExample(
        context=tf.train.Features(feature={key: feature(values) for key, values in context.items()}),
        feature_lists=tf.train.FeatureLists(feature_list={
            key: tf.train.FeatureList(feature=[feature(values) for values in rows]) for key, rows in lists.items()})).SerializeToString()


SEQUENCES = [sequence(dict(n=[1, 2], s=[b"x", b""], f=[0.5, 1.5], none=None), x=[[1.5, 2.0], [3.0, -4.0]], v=[[1], [2, 3], None, []], s=[[b"a"], [b""]]),
             sequence(dict(n=[3, 4], f=[2.5, 3.5]), x=[], v=[], s=[[b"bcd"]]),
             sequence(dict(n=[5, 6], s=b"", f=[4.5, -1.0]), x=[[5.0, 6.0], [7.0, 8.0], [9.0, 0.0]], v=[[2**62]]),
             sequence(dict(n=[7, 8]))]
NO_DEFAULT = np.zeros(0, np.int64)


class Sequences:
    """The cases of one of the three ops: what differs is how keys are given."""

    def __init__(self, op):
        self.op = op

    def case(self, serialized, sparse=(), dense=(), ragged=(), lists=(), dense_lists=(), ragged_lists=(), missing=(), names=(), **more):
        """Features are (key, type), dense ones (key, type, shape) and, of the context, (key, type, shape, default)."""
        keys = {name: [key.encode() for key, *_ in group] for name, group in dict(
            context_sparse_keys=sparse, context_dense_keys=dense, context_ragged_keys=ragged, feature_list_sparse_keys=lists,
            feature_list_dense_keys=dense_lists, feature_list_ragged_keys=ragged_lists).items()}
        types = dict(context_sparse_types=[f[1] for f in sparse], feature_list_sparse_types=[f[1] for f in lists],
                     context_dense_shapes=[f[2] for f in dense], feature_list_dense_shapes=[f[2] for f in dense_lists],
                     feature_list_dense_types=[f[1] for f in dense_lists])
        defaults = [f[3] for f in dense]
        serialized, names = np.array(serialized, object), np.array(names, object)
        missing = [key.encode() for key in missing]
        counts = dict(Ncontext_sparse=len(sparse), Nfeature_list_sparse=len(lists), Nfeature_list_dense=len(dense_lists))
        if self.op == "ParseSequenceExample":
            return Case(serialized, names, defaults, gradient=False, feature_list_dense_missing_assumed_empty=missing,
                        **{k: v for k, v in keys.items() if "ragged" not in k}, **types, **counts, Ncontext_dense=len(dense), **more)
        if self.op == "ParseSingleSequenceExample":
            names = np.array(names if names.size else b"name", object)
            return Case(serialized, np.array(missing, object), *[list(texts(*keys[k])) for k in (
                "context_sparse_keys", "context_dense_keys", "feature_list_sparse_keys", "feature_list_dense_keys")],
                defaults, names, gradient=False, **types, **more)
        splits = [tf.int64, tf.int32]
        return Case(serialized, names, *[texts(*v) for v in keys.values()], np.array([k in missing for k in keys["feature_list_dense_keys"]], np.bool_),
                    defaults, gradient=False, **types, **counts,
                    context_ragged_value_types=[f[1] for f in ragged], context_ragged_split_types=splits[:len(ragged)],
                    feature_list_ragged_value_types=[f[1] for f in ragged_lists], feature_list_ragged_split_types=splits[:len(ragged_lists)], **more)

    def of_any(self, one):
        """Cases of all three; `one` makes what is parsed of a record."""
        case, first = self.case, SEQUENCES[0]
        yield case(one(first), sparse=[("n", tf.int64), ("s", tf.string), ("f", tf.float32), ("absent", tf.float32), ("none", tf.int64)])
        yield case(one(first), lists=[("x", tf.float32), ("v", tf.int64), ("s", tf.string), ("absent", tf.string)])
        yield case(one(first), dense=[("n", tf.int64, [2], NO_DEFAULT), ("f", tf.float32, [1, 2], np.zeros((1, 2), np.float32)),
                                      ("absent", tf.string, [], np.array(b"d", object))])
        yield case(one(first), dense_lists=[("x", tf.float32, [2]), ("s", tf.string, [1, 1]), ("s", tf.string, []), ("absent", tf.int64, [3])], missing=["absent"])
        yield case(one(sequence(dict(z=[]))), dense=[("z", tf.int64, [0], NO_DEFAULT), ("z", tf.int64, [2, 0], NO_DEFAULT)])
        yield case(one(b""), sparse=[("n", tf.int64)], lists=[("v", tf.int64)], dense_lists=[("x", tf.float32, [2])], missing=["x"])
        yield case(one(b"\x1a\x01?" + first), sparse=[("n", tf.int64)])  # a field that nobody knows
        for wrong in [dict(sparse=[("n", tf.float32)]), dict(lists=[("v", tf.string)]), dict(lists=[("s", tf.int64)]),
                      dict(dense=[("n", tf.float32, [2], np.zeros(0, np.float32))]), dict(dense=[("n", tf.int64, [3], NO_DEFAULT)]),
                      dict(dense=[("n", tf.int64, [], NO_DEFAULT)]), dict(dense=[("absent", tf.int64, [2], NO_DEFAULT)]),
                      dict(dense=[("n", tf.int64, [2], np.array([[1, 2]]))]), dict(dense=[("n", tf.int64, [2], np.array(1))]),
                      dict(dense=[("none", tf.int64, [1], np.array([1]))]), dict(dense=[("none", tf.int64, [1], NO_DEFAULT)]),
                      dict(dense_lists=[("x", tf.float32, [3])]), dict(dense_lists=[("x", tf.float32, [1])]), dict(dense_lists=[("x", tf.int64, [2])]),
                      dict(dense_lists=[("v", tf.int64, [1])]), dict(dense_lists=[("absent", tf.int64, [1])]),
                      dict(dense_lists=[("absent", tf.int64, [1])], missing=["x"])]:
            yield case(one(first), **wrong, invalid=True)
        yield case([[first]], sparse=[("n", tf.int64)], invalid=True)
        for record in (b"\x00", first[:-1], b"\x0a\x02\x0a\x05"):
            yield case(one(record), sparse=[("n", tf.int64)], invalid=True)

    def of_batches(self):
        case = self.case
        yield from self.of_any(lambda record: [record])
        if self.op == "ParseSequenceExampleV2":
            yield from self.of_any(lambda record: record)
        everything = dict(sparse=[("s", tf.string), ("f", tf.float32)], dense=[("n", tf.int64, [2], NO_DEFAULT), ("absent", tf.int64, [2, 1], np.array([[1], [2]]))],
                          lists=[("v", tf.int64)], dense_lists=[("x", tf.float32, [2]), ("s", tf.string, [])], missing=["x", "s"])
        for records in (SEQUENCES, SEQUENCES[::-1], SEQUENCES[:1], SEQUENCES[3:]):
            yield case(records, **everything)
            yield case(records, **everything, names=[b"r%d" % i for i in range(len(records))])
        yield case([], sparse=[("s", tf.string)], lists=[("v", tf.int64)], dense=[("n", tf.int64, [2], np.array([1, 2]))], dense_lists=[("x", tf.float32, [2])])
        yield case([], dense=[("n", tf.int64, [2], NO_DEFAULT)], invalid=True)
        yield case(SEQUENCES, names=[b"a"], sparse=[("n", tf.int64)], invalid=True)
        yield case(SEQUENCES, dense=[("f", tf.float32, [2], np.zeros(0, np.float32))], invalid=True)
        yield case(SEQUENCES, dense_lists=[("x", tf.float32, [2])], invalid=True)
        yield case([SEQUENCES[0], sequence(dict(n=[1]))], dense=[("n", tf.int64, [2], NO_DEFAULT)], invalid=True)
        yield case([SEQUENCES[0], sequence(dict(n=[1.0, 2.0]))], sparse=[("n", tf.int64)], invalid=True)
        yield case(SEQUENCES, sparse=[("n", tf.int64)], dense=[("n", tf.int64, [2], NO_DEFAULT)], invalid=True)
        yield case(SEQUENCES, lists=[("x", tf.float32)], dense_lists=[("x", tf.float32, [2])], missing=["x"], invalid=True)


@cases("ParseSequenceExampleV2")
def _(rng, op):
    sequences = Sequences(op)
    yield from sequences.of_batches()
    ragged = dict(ragged=[("s", tf.string), ("none", tf.float32)], ragged_lists=[("v", tf.int64), ("s", tf.string)])
    for records in (SEQUENCES, SEQUENCES[::-1], [], [b""]):
        yield sequences.case(records, **ragged)
    yield sequences.case(SEQUENCES, ragged=[("s", tf.int64)], invalid=True)
    yield sequences.case(SEQUENCES, sparse=[("s", tf.string)], ragged=[("s", tf.string)], invalid=True)
    yield sequences.case(SEQUENCES, dense_lists=[("x", tf.float32, [2])], ragged_lists=[("x", tf.float32)], missing=["x"], invalid=True)


@cases("ParseSequenceExample")
def _(rng, op):
    yield from Sequences(op).of_batches()


@cases("ParseSingleSequenceExample")
def _(rng, op):
    sequences = Sequences(op)
    yield from sequences.of_any(lambda record: record)
    for record in SEQUENCES:
        yield sequences.case(record, sparse=[("s", tf.string)], dense=[("n", tf.int64, [2], NO_DEFAULT)], lists=[("v", tf.int64)],
                             dense_lists=[("x", tf.float32, [2])], missing=["x", "z"])
    yield sequences.case([SEQUENCES[0]], sparse=[("n", tf.int64)], invalid=True)
    yield sequences.case(SEQUENCES[0], names=[b"a", b"b"], sparse=[("n", tf.int64)], invalid=True)
    yield sequences.case(SEQUENCES[0], dense_lists=[("v", tf.int64, [0])], invalid=True)
    yield sequences.case(sequence(v=[[], []]), dense_lists=[("v", tf.int64, [0]), ("v", tf.int64, [3, 0])])


@cases("DecodeJSONExample")
def _(rng, op):
    def feature(value):
        return b'{"features":{"feature":{"b":%s}}}' % value
    valid = [b"{}", b" {} ", b'{"features":null}', b'{"features":{}, "features":{}}', b"{features:{feature:{'a':{bytesList:{value:['YQ']}}}}}",
             b'{"features":{"feature":{"b":{"int64List":{"value":[1,"2"]}},"a":{"bytesList":{"value":["aGk=", ""]}}}}}',
             *map(feature, [b'{"float_list":{"value":[1.5,"NaN","-Infinity",3]}}', b'{"int64List":{"value":[[1]]}}', b'{"int64List":{"value":1}}', b"null",
                            b'{"int64List":{"value":[1e3, 2.0, -9223372036854775808]}}', b'{"bytesList":{"value":["a-_b"]}}', b'{"floatList":{"value":["1.5"]}}'])]
    yield Case(np.array(valid, object))
    yield Case(np.array(valid[0], object))
    yield Case(np.array(valid[:4], object).reshape(2, 2))
    yield Case(np.zeros((0, 2), object))
    yield Case(np.array(b"{features:{feature:{b:{int64List:{value:[null]}}}}}", object))  # in DIFFERENT
    for wrong in [b"", b"null", b"[]", b"7", b'{"x":1}', b'{"a', b"{} {}", b"{,}", b'{"features":' * 200, b"[" * 100_000, b'{"features":{"feature":{"\xff":{}}}}',
                  b'{"features":{"feature":{"b":{},"b":{}}}}',
                  *map(feature, [b'{"float_list":{"value":[1e400]}}', b'{"int64List":{"value":[1.5]}}', b'{"int64List":{"value":[9223372036854775808]}}',
                                 b'{"int64List":{"value":[1]},"floatList":{"value":[2]}}', b'{"bytesList":{"value":["%%"]}}', b'{"int64List":{"value":[true]}}'])]:
        yield Case(np.array(wrong, object), invalid=True)
        yield Case(np.array([b"{}", wrong], object), invalid=True)

#!/usr/bin/env python3
"""Every op of Leat against TensorFlow's: the same calls, valid and invalid, on Session('') and on a Leat cluster.

  python3 tests/tensorflow/ops_test.py --leat build/release/bin/leat [-v] [-k Conv2D]

Compared are values, dtypes, shapes, symbolic gradients, and the class of every error. Each call runs twice: with nothing
known when the graph is built (all inputs fed, no shapes), and with all of it (constants, shapes). op_cases.py has the calls;
an op without any fails the test. Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import os
import pathlib
import re
import unittest

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # its versions of kernels abort on some of the invalid calls

from leat_cluster import cluster, main, np, tf, tf1
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.framework import op_def_library, op_def_registry
from op_cases import CASES, Ref, bf16

SOURCES = pathlib.Path(__file__).resolve().parents[2]

# Ops that cannot be called one by one: other tests of this folder run them.
NOT_HERE = {
    "Const", "Placeholder", "VariableV2", "Variable", "VarHandleOp", "NoOp",  # every graph below has them
    "Switch", "Merge", "RefSwitch", "RefMerge", "PreventGradient",  # loops_test.py
    "Save", "SaveSlices", "Restore", "RestoreSlice", "SaveV2", "RestoreV2", "MergeV2Checkpoints", "MergeSummary", "HistogramSummary", "DestroyResourceOp", "DisableCopyOnRead",
    "Timestamp",  # client_test.py
    "CollectiveReduceV2", "CollectiveGatherV2", "CollectiveBcastSendV2", "CollectiveBcastRecvV2",  # collectives_test.py
    "CollectiveReduce", "CollectiveGather", "CollectiveBcastSend", "CollectiveBcastRecv",
    "GenerateVocabRemapping", "LoadAndRemapMatrix",  # checkpoint_test.py
    "RaggedTensorToVariant", "RaggedTensorFromVariant", "RaggedTensorToVariantGradient",  # data_features_test.py
}
FAMILIES_NOT_HERE = ("Queue", "FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue", "Reader", "TextLineReader", "TFRecordReader",
                     "FixedLengthRecordReader", "WholeFileReader", "IdentityReader",  # readers_test.py
                     "SparseAccumulator", "SparseConditional", "Accumulator",
                     "Conditional", "ResourceAccumulator", "ResourceConditional", "HashTable", "MutableHashTable", "MutableDenseHashTable",
                     "Stage", "Unstage", "Map", "OrderedMap", "Barrier",  # state_test.py
                     "InitializeTable", "LookupTable", "TensorArray", "Stack",  # loops_test.py has the last two
                     "TensorList", "EmptyTensorList", "Optional")  # functions_test.py

# Where Leat means to differ, by op: a part of the description of the case, and why.
DIFFERENT = {
    **{op: [("float64[2][ inf,-inf]", "TensorFlow's is NaN at infinity")]
       for op in ["BesselI0", "BesselI1", "BesselJ0", "BesselJ1", "BesselY0", "BesselY1", "Expint", "Spence"]},
    "DecodeJSONExample": [("[null]", "a newer protobuf takes null for 0, this one for nothing")],
    "DecodeJpeg": [("try_recover_truncated", "what is missing is of another gray")],
    "Erf": [("float64[12]", "the same")],
    "RaggedFillEmptyRows": [("int64[][0]", "TensorFlow's has a vector of two dimensions if there are no rows")],
    "Round": [("int32", "TensorFlow's leaves integers unset"), ("int64", "the same")],
    "SparseReduceMax": [("int64[1, 2][5,0]", "TensorFlow calls an index out of bounds INTERNAL"), ("int64[1, 2][-1, 0]", "the same")],
    "SparseReduceSum": [("int64[1, 2][5,0]", "the same"), ("int64[1, 2][-1, 0]", "the same")],
    "TruncateDiv": [("[1,0]", "TensorFlow calls it INTERNAL, and says that only integer division should have errors")],
    "TruncateMod": [("[1,0]", "the same")],
}

# What TensorFlow says where it has no kernel of that type.
NO_KERNEL = ["No OpKernel was registered", "Could not find device for node", "no kernel registered"]

# Outputs that are not compared: those that only the op's own gradient reads, in which even two builds of TensorFlow differ.
OPAQUE = {"FusedBatchNormV3": [3, 4, 5], "FusedBatchNormGradV3": [3, 4], "FusedBatchNormV2": [3, 4], "FusedBatchNorm": [3, 4],
          "FusedBatchNormGradV2": [3, 4], "FusedBatchNormGrad": [3, 4],
          "Svd": [1, 2], "SelfAdjointEigV2": [1]}  # the signs of vectors are free: linear_algebra_test.cc

# The client refuses to build these without shapes.
NEEDS_SHAPES = {"SpaceToBatchND", "BatchToSpaceND", "ParallelConcat", "ApproxTopK"}

# TensorFlow has these for graphs of that version and older ones only.
LAST_VERSION = {"BatchNormWithGlobalNormalization": 8, "BatchNormWithGlobalNormalizationGrad": 8}

TOLERANCE = {np.float64: 1e-9, np.float32: 2e-5, np.float16: 1e-2, bf16: 5e-2, np.complex128: 1e-9, np.complex64: 5e-5}


def ops_of_leat():
    """Every name in the kernels' sources that is one of TensorFlow's ops: they define it, or their gradients call it."""
    words = set()
    for source in (SOURCES / "kernels").rglob("*.cc"):
        words |= set(re.findall(r'"([A-Z]\w+)"', source.read_text()))
    ops = {word for word in words if op_def_registry.get(word) is not None}
    return {op for op in ops if op not in NOT_HERE and not op.startswith(FAMILIES_NOT_HERE)
            and not any(part in op for part in ("Dataset", "Iterator", "Dummy"))}  # data_test.py


class Call:
    """One case in a graph: its nodes, and what to feed."""

    def __init__(self, op, case, name, static):
        self.name, self.case, self.static = op, case, static
        self.feeds, self.variables, self.differentiated = {}, [], []
        self.gradient_feeds, self.gradients = [], []
        with tf1.name_scope(name):
            arguments = [self.argument(x, f"{name}_{i}") for i, x in enumerate(case.inputs)]
            names = [arg.name for arg in op_def_registry.get(op).input_arg]
            result = op_def_library.apply_op(op, **dict(zip(names, arguments)), **with_defaults(op, case.attrs))
        self.operation = result if isinstance(result, tf.Operation) else tf.nest.flatten(result)[0].op
        self.outputs = [] if isinstance(result, tf.Operation) else [self.read(y) for y in tf.nest.flatten(result)]
        if case.gradient:
            self.add_gradients(name)

    @staticmethod
    def read(tensor):
        return tf.identity(tensor) if tensor.dtype._is_ref_dtype else tensor

    def argument(self, value, name):
        if isinstance(value, list):
            return [self.argument(v, f"{name}_{i}") for i, v in enumerate(value)]
        if isinstance(value, Ref):
            resource = op_def_registry.get(self.name).input_arg[0].type == tf.resource.as_datatype_enum
            variable = tf1.Variable(value.value, use_resource=resource, trainable=False, name=name, dtype=tf.as_dtype(value.value.dtype))
            self.variables.append(variable)
            return variable.handle if resource else variable._ref()
        value = np.asarray(value)
        dtype = tf.string if value.dtype == object else tf.as_dtype(value.dtype)
        if self.static and not dtype.is_floating:
            return tf.constant(value, dtype)
        placeholder = tf1.placeholder(dtype, value.shape if self.static or self.name in NEEDS_SHAPES else None)
        self.feeds[placeholder] = value
        if dtype.is_floating or dtype.is_complex:
            self.differentiated.append(placeholder)
        return placeholder

    def add_gradients(self, name):
        ys = [y for y in self.outputs if y.dtype.is_floating or y.dtype.is_complex]
        if not ys or not self.differentiated or self.variables:
            return
        weights = [tf1.placeholder(y.dtype, y.shape) for y in ys]
        try:
            with tf1.name_scope(name + "_gradients"):
                dxs = tf1.gradients(ys, self.differentiated, weights)
                self.gradients = [tf.convert_to_tensor(dx) for dx in dxs if dx is not None]
        except (LookupError, ValueError, TypeError, tf.errors.OpError):  # TensorFlow has none, or none without shapes
            return
        self.gradient_feeds = list(zip(weights, [self.outputs.index(y) for y in ys]))


def with_defaults(op, attrs):
    """All attributes that do not follow from the inputs."""
    definition = op_def_registry.get(op)
    from_inputs = {name for arg in definition.input_arg for name in (arg.type_attr, arg.type_list_attr, arg.number_attr)}
    out = dict(attrs)
    for attr in definition.attr:
        if attr.name not in out and attr.name not in from_inputs and attr.HasField("default_value"):
            value = attr.default_value
            kind = value.WhichOneof("value")
            out[attr.name] = list(getattr(value.list, attr.type[5])) if kind == "list" else getattr(value, kind)
    return out


class Failure:
    def __init__(self, error):
        self.kind, self.text = type(error).__name__, error.message

    def __repr__(self):
        lines = [line for line in self.text.split("\n\t [[")[0].splitlines() if line.strip()]
        return f"{self.kind}: {lines[-1][:250] if lines else ''}"


def told(result):
    return repr(result) if isinstance(result, Failure) else "no error"


def run(session, call, feeds):
    """[outputs, variables afterwards], or the failure."""
    try:
        if call.variables:
            session.run([v.initializer for v in call.variables])
        # Copies: some ops of TensorFlow write into what is fed.
        values = session.run(call.outputs or call.operation, {tensor: np.copy(value) for tensor, value in feeds.items()})
        return (values or []) if call.outputs else [], session.run([v.value() for v in call.variables])
    except tf.errors.OpError as error:
        return Failure(error)


def difference(expected, got, tolerance=None):
    """None, or what is different about two lists of arrays."""
    for i, (e, g) in enumerate(zip(expected, got)):
        e, g = np.asarray(e), np.asarray(g)
        if e.dtype != g.dtype or e.shape != g.shape:
            return f"output {i} is {g.dtype}{list(g.shape)}, not {e.dtype}{list(e.shape)}"
        limit = tolerance or TOLERANCE.get(e.dtype.type)
        if limit is None:
            same = e == g
        else:
            with np.errstate(all="ignore"):
                wide = np.complex128 if np.iscomplexobj(e) else np.float64
                wide_e, wide_g = e.astype(wide), g.astype(wide)
                near = np.abs(wide_e - wide_g) <= limit * np.maximum(1, np.maximum(np.abs(wide_e), np.abs(wide_g)))
                same = (near & np.isfinite(wide_e) & np.isfinite(wide_g)) | (wide_e == wide_g) | (np.isnan(wide_e) & np.isnan(wide_g))
        if not np.all(same):
            at = tuple(np.argwhere(~np.asarray(same))[0])
            return f"output {i}{list(map(int, at))} is {g[at]!r}, not {e[at]!r} ({int(np.sum(~np.asarray(same)))} of {e.size} differ)"
    return None


class Ops(unittest.TestCase):
    maxDiff = None

    def compare(self, op):
        with tf1.Graph().as_default() as graph:
            if op in LAST_VERSION:
                tf.import_graph_def(tf1.GraphDef(versions={"producer": LAST_VERSION[op]}))
            generated = list(CASES[op](np.random.default_rng(abs(hash_of(op))), op))
            calls = []
            for i, case in enumerate(generated):
                for static in [False, True] if case.static else [False]:
                    calls.append(Call(op, case, f"{op}_{i}{'s' if static else ''}", static))
        config = tf1.ConfigProto(operation_timeout_in_ms=30_000)
        config.graph_options.rewrite_options.arithmetic_optimization = rewriter_config_pb2.RewriterConfig.OFF
        plain = tf1.ConfigProto(operation_timeout_in_ms=30_000)  # kernels themselves, not what the optimizer makes of constants
        plain.graph_options.rewrite_options.disable_meta_optimizer = True
        plain.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
        problems, compared = [], 0
        with tf1.Session("", graph=graph, config=plain) as reference, tf1.Session(cluster().target, graph=graph, config=config) as leat:
            for call in calls:
                problem, known = self.compare_call(reference, leat, call)
                compared += known
                if problem and not any(part in repr(call.case) for part, _ in DIFFERENT.get(op, [])):
                    problems.append(f"{op}{call.case!r}{' static' if call.static else ''}: {problem}")
        self.assertGreater(compared, 0, "TensorFlow ran none of the cases")
        if problems:
            self.fail(f"{len(problems)} of {len(calls)} calls differ:\n  " + "\n  ".join(problems[:40]))

    def compare_call(self, reference, leat, call):
        """(what is wrong or None, whether TensorFlow has such a kernel)"""
        expected = run(reference, call, call.feeds)
        if isinstance(expected, Failure) and (any(text in expected.text for text in NO_KERNEL) or
                                              (expected.kind == "UnimplementedError" and not call.case.invalid)):
            return None, 0
        if isinstance(expected, Failure) != call.case.invalid:
            return f"the case is marked {'in' if call.case.invalid else ''}valid, but TensorFlow says {told(expected)}", 1
        got = run(leat, call, call.feeds)
        if isinstance(expected, Failure) or isinstance(got, Failure):
            if isinstance(expected, Failure) and isinstance(got, Failure) and expected.kind == got.kind:
                return None, 1
            return f"Leat: {told(got)}; TensorFlow: {told(expected)}", 1
        for i in OPAQUE.get(call.name, []):
            expected[0][i] = got[0][i]
        for e, g, what in zip(expected, got, ["", "variable "]):
            problem = difference(e, g, call.case.tolerance)
            if problem:
                return what + problem, 1
        if call.gradients:
            feeds = dict(call.feeds)
            rng = np.random.default_rng(5)
            for weight, output in call.gradient_feeds:
                value = np.asarray(expected[0][output])
                feeds[weight] = rng.uniform(-1, 1, value.shape).astype(value.dtype)
            try:
                e = reference.run(call.gradients, feeds)
            except tf.errors.OpError:
                return None, 1
            try:
                problem = difference(e, leat.run(call.gradients, feeds), call.case.tolerance)
            except tf.errors.OpError as error:
                problem = Failure(error)
            if problem:
                return f"gradient: {problem}", 1
        return None, 1

    def test_every_op_has_cases(self):
        missing = ops_of_leat() - set(CASES)
        self.assertFalse(missing, "ops without cases in op_cases.py")


def hash_of(text):
    return sum(ord(c) * 31**i for i, c in enumerate(text)) % 2**32


def add_tests():
    for op in sorted(CASES):
        setattr(Ops, f"test_{op}", lambda self, op=op: self.compare(op))


if __name__ == "__main__":
    add_tests()
    main(__doc__)

#!/usr/bin/env python3
"""Lookup tables as TensorFlow's own client uses them: every step gives what it gives in Session(''), or the same error.

  python3 tests/tensorflow/tables_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import os
import tempfile
import unittest

from leat_cluster import CONFIG, cluster, main, np, tf, tf1

R = tf.raw_ops
KEYS = {tf.string: [b"a", b"bb", b"", b"ccc"], tf.int64: [5, -7, 0, 2**40], tf.int32: [5, -7, 0, 9]}
VALUES = {tf.int64: [1, 2, 3, -4], tf.int32: [1, 2, 3, -4], tf.float32: [0.5, 1, 2, 3], tf.float64: [0.5, 1, 2, 3],
          tf.string: [b"x", b"y", b"", b"zz"], tf.bool: [True, False, True, True]}


def array(values, dtype):
    return np.array(values, object if dtype == tf.string else dtype.as_numpy_dtype)


class Steps:
    """A program of single steps: each is built and run, on both runtimes."""

    def __init__(self, test):
        self.test = test
        self.graph = tf1.Graph()
        tf1.Session.reset(cluster().target)
        self.sessions = [tf1.Session(target, graph=self.graph, config=CONFIG) for target in ("", cluster().target)]

    def __enter__(self):
        self.scope = self.graph.as_default()
        self.scope.__enter__()
        return self

    def __exit__(self, *error):
        self.scope.__exit__(*error)
        for session in self.sessions:
            session.close()

    def run(self, fetches, what="", in_any_order=False):
        results = []
        for session in self.sessions:
            try:
                results.append(session.run(fetches))
            except tf.errors.OpError as error:
                results.append(error)
        expected, got = results
        if isinstance(expected, tf.errors.OpError):
            self.test.assertEqual(type(got).__name__, type(expected).__name__, f"{what}: {got}; TensorFlow: {expected.message[-300:]}")
            return None
        if isinstance(got, tf.errors.OpError):
            self.test.fail(f"{what}: Leat: {got.message[-500:]}; TensorFlow: {expected}")
        if expected is None:
            return None
        expected, got = tf.nest.flatten(expected), tf.nest.flatten(got)
        if in_any_order:
            expected, got = [sorted(zip(*(np.asarray(x).tolist() for x in result))) for result in (expected, got)]
            self.test.assertEqual(got, expected, what)
            return got
        for e, g in zip(expected, got):
            e, g = np.asarray(e), np.asarray(g)
            self.test.assertEqual((g.dtype, g.shape), (e.dtype, e.shape), what)
            np.testing.assert_array_equal(g, e, what)
        return got


class Tables(unittest.TestCase):
    def contents(self, steps, table, keys, values, what):
        steps.run(R.LookupTableExportV2(table_handle=table, Tkeys=keys, Tvalues=values), what + " export", in_any_order=True)
        steps.run(R.LookupTableSizeV2(table_handle=table), what + " size")

    def test_every_type_in_a_static_table(self):
        pairs = [(k, v) for k in KEYS for v in VALUES if not (k == tf.int32 and v in (tf.int64, tf.bool)) and not (k == tf.int64 and v == tf.bool)]
        for keys, values in pairs:
            with self.subTest(keys=keys.name, values=values.name), Steps(self) as steps:
                table = R.HashTableV2(key_dtype=keys, value_dtype=values, shared_name="t")
                k, v = array(KEYS[keys], keys), array(VALUES[values], values)
                find = R.LookupTableFindV2(table_handle=table, keys=k[[1, 3, 0, 2]].reshape(2, 2), default_value=v[0])
                steps.run(find, "before")
                steps.run(R.InitializeTableV2(table_handle=table, keys=k[:3], values=v[:3]), "initialize")
                steps.run(find, "after")
                self.contents(steps, table, keys, values, "after")

    def test_what_a_static_table_refuses(self):
        with Steps(self) as steps:
            def table(name):
                return R.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name=name)
            def longs(*values):
                return np.array(values, np.int64)
            a = table("a")
            fill = lambda keys, values: R.InitializeTableV2(table_handle=a, keys=np.array(keys, object), values=values)
            find = lambda keys, default: R.LookupTableFindV2(table_handle=a, keys=keys, default_value=default)
            steps.run(R.LookupTableSizeV2(table_handle=a), "size")
            steps.run(R.LookupTableExportV2(table_handle=a, Tkeys=tf.string, Tvalues=tf.int64), "export")
            steps.run(find(["x"], np.int64(-1)), "find before")
            steps.run(fill([], longs()), "fill with nothing")
            steps.run(fill(["a", "a"], longs(1, 2)), "two values")
            steps.run(fill(["a"], np.int32([1])), "wrong type")
            steps.run(fill(["a", "a", "b"], longs(1, 1, 2)), "fill")
            steps.run(find("b", np.int64(-1)), "a scalar")
            for keys, default in [(longs(1), np.int64(0)), (["a"], np.int32(0)), (["a", "z"], longs(5, 6)), (["a", "z"], longs(5)),
                                  (["a"], np.array([[1]])), ([["z"], ["a"]], np.array([[8], [9]]))]:
                steps.run(find(keys, default), f"find {keys} {default}")
            steps.run(fill(["a", "c"], longs(1, 3)), "as many again")
            steps.run(fill(["a", "b", "c"], longs(1, 2, 3)), "more")
            steps.run(find(["b", "c"], np.int64(-1)), "unchanged")
            steps.run(R.LookupTableInsertV2(table_handle=a, keys=["q"], values=longs(1)), "insert")
            steps.run(R.LookupTableRemoveV2(table_handle=a, keys=["a"]), "remove")
            steps.run(R.LookupTableImportV2(table_handle=a, keys=["a"], values=longs(1)), "import")
            b = table("b")
            steps.run(R.LookupTableImportV2(table_handle=b, keys=["a"], values=longs(4)), "import into a new one")
            steps.run(R.LookupTableFindV2(table_handle=b, keys=["a"], default_value=longs(0)[0]), "imported")
            steps.run(R.LookupTableSizeV2(table_handle=R.HashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, shared_name="b")), "other type")

    def test_a_static_table_whose_filling_failed(self):
        longs = lambda *values: np.array(values, np.int64)
        for n, fills in enumerate([[((1, 1), (2, 3)), ((1, 2), (5, 6)), ((1,), (2,)), ((4, 4), (1, 1))],
                                   [((1, 2, 1, 3), (2, 3, 4, 5)), ((9,), (9,)), ((1, 2), (2, 3))]]):
            with Steps(self) as steps:
                table = R.HashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, shared_name=f"failed{n}")
                find = lambda *keys: R.LookupTableFindV2(table_handle=table, keys=longs(*keys), default_value=np.int64(-1))
                steps.run(find(), "nothing before")
                for keys, values in fills:
                    steps.run(R.InitializeTableV2(table_handle=table, keys=longs(*keys), values=longs(*values)), f"fill {keys} {values}")
                    steps.run(R.LookupTableSizeV2(table_handle=table), "size")
                    steps.run(find(1, 2, 3, 4, 9), "find")
                    steps.run(find(), "nothing")

    def random_changes(self, steps, table, keys, values, shape, count=25):
        rng = np.random.default_rng(3)
        def some(dtype, n, of):
            if dtype == tf.string:
                return np.array([b"k%d" % i for i in rng.integers(0, 12, n)], object).reshape(of)
            if dtype == tf.bool:
                return (rng.random(n) < 0.5).reshape(of)
            return rng.integers(-6, 6, n).astype(dtype.as_numpy_dtype).reshape(of)
        size = int(np.prod(shape))
        for step in range(count):
            n = int(rng.integers(0, 7))
            k = some(keys, n, (n,))
            what = f"step {step}"
            operation = rng.choice(["insert", "insert", "remove", "import"], p=[0.4, 0.3, 0.2, 0.1])
            if operation == "remove":
                steps.run(R.LookupTableRemoveV2(table_handle=table, keys=k), what)
            else:
                op = R.LookupTableInsertV2 if operation == "insert" else R.LookupTableImportV2
                steps.run(op(table_handle=table, keys=k, values=some(values, n * size, (n,) + shape)), what)
            k = some(keys, 6, (2, 3))
            steps.run(R.LookupTableFindV2(table_handle=table, keys=k, default_value=some(values, size, shape)), what)
            steps.run(R.LookupTableFindV2(table_handle=table, keys=k, default_value=some(values, 6 * size, (2, 3) + shape)), what)
            if not shape:
                self.contents(steps, table, keys, values, what)

    def test_mutable_tables(self):
        for keys, values in [(tf.string, tf.int64), (tf.int64, tf.float32), (tf.int64, tf.string), (tf.string, tf.bool), (tf.int32, tf.int32)]:
            with self.subTest(keys=keys.name, values=values.name), Steps(self) as steps:
                self.random_changes(steps, R.MutableHashTableV2(key_dtype=keys, value_dtype=values, shared_name="t"), keys, values, ())

    def test_tables_of_vectors(self):
        for keys, values in [(tf.string, tf.int64), (tf.int64, tf.float32), (tf.int64, tf.string)]:
            with self.subTest(keys=keys.name, values=values.name), Steps(self) as steps:
                table = R.MutableHashTableOfTensorsV2(key_dtype=keys, value_dtype=values, value_shape=[3], shared_name="t")
                self.random_changes(steps, table, keys, values, (3,))

    def test_dense_tables(self):
        """Exports list every bucket, with what removals left behind: compared as they are."""
        for keys, key_shape in [(tf.int64, []), (tf.int32, []), (tf.string, []), (tf.int64, [2]), (tf.string, [3]), (tf.int64, [1])]:
            for values, shape in [(tf.int64, []), (tf.float32, [2])]:
                if (keys, values) == (tf.int32, tf.int64):
                    continue  # TensorFlow has none
                with self.subTest(keys=keys.name, key_shape=key_shape, values=values.name), Steps(self) as steps:
                    def some_keys(rng, n):
                        numbers = rng.integers(-4, 9, [n] + key_shape)
                        return np.vectorize(lambda i: b"key %d" % i, otypes=[object])(numbers) if keys == tf.string else numbers.astype(keys.as_numpy_dtype)
                    empty, deleted = [array(np.full(key_shape, b"e%d" % i if keys == tf.string else -100 - i), keys) for i in range(2)]
                    table = R.MutableDenseHashTableV2(empty_key=tf.constant(empty, keys), deleted_key=tf.constant(deleted, keys), value_dtype=values,
                                                      value_shape=shape, initial_num_buckets=8, shared_name="t")
                    contents = R.LookupTableExportV2(table_handle=table, Tkeys=keys, Tvalues=values)
                    rng = np.random.default_rng(1)
                    for _ in range(4):
                        v = rng.integers(0, 9, [5] + shape)
                        steps.run(R.LookupTableInsertV2(table_handle=table, keys=tf.constant(some_keys(rng, 5), keys), values=tf.constant(v, values)), "insert")
                        steps.run(contents, "inserted")
                        steps.run(R.LookupTableRemoveV2(table_handle=table, keys=tf.constant(some_keys(rng, 2), keys)), "remove")
                        steps.run(contents, "removed")
                        default = tf.constant(np.full(shape, 7), values)
                        steps.run(R.LookupTableFindV2(table_handle=table, keys=tf.constant(some_keys(rng, 9), keys), default_value=default), "find")
                        steps.run(R.LookupTableSizeV2(table_handle=table), "size")
                    for reserved in (empty, deleted):
                        k = tf.constant(np.stack([some_keys(rng, 1)[0], reserved, some_keys(rng, 1)[0]]), keys)
                        v = tf.zeros([3] + shape, values)
                        steps.run(R.LookupTableInsertV2(table_handle=table, keys=k, values=v), "insert a reserved key")
                        steps.run(contents, "the keys before it are there")
                        steps.run(R.LookupTableRemoveV2(table_handle=table, keys=k), "remove a reserved key")
                        steps.run(contents, "removed before it")
                        steps.run(R.LookupTableFindV2(table_handle=table, keys=k, default_value=v[0]), "find a reserved key")

    def test_imports_of_dense_tables(self):
        longs = lambda *values: np.array(values, np.int64)
        with Steps(self) as steps:
            table = R.MutableDenseHashTableV2(empty_key=np.int64(-1), deleted_key=np.int64(-2), value_dtype=tf.int64, initial_num_buckets=4, shared_name="t")
            keys, values = [tf1.placeholder_with_default(longs(*x), None) for x in [([8], [-1], [6], [-2]), ([80], [1], [60], [2])]]
            steps.run(R.LookupTableImportV2(table_handle=table, keys=keys, values=values), "import")
            steps.run(R.LookupTableFindV2(table_handle=table, keys=longs(8, 6, 4), default_value=np.int64(0)), "find")
            steps.run(R.LookupTableSizeV2(table_handle=table), "size")
            steps.run(R.LookupTableInsertV2(table_handle=table, keys=longs(4, 12, 16), values=longs(40, 120, 160)), "grows")
            steps.run(R.LookupTableExportV2(table_handle=table, Tkeys=tf.int64, Tvalues=tf.int64), "grown")
            for k, v in [(longs([1], [2]), longs([1])), (longs([1], [2]), longs(1, 2)), (longs([1], [2]), np.float32([[1], [2]]))]:
                steps.run(R.LookupTableImportV2(table_handle=table, keys=tf1.placeholder_with_default(k, None), values=tf1.placeholder_with_default(v, None)), f"{k} {v}")
            full = tf1.placeholder_with_default(longs([4], [8], [12], [16]), None)
            steps.run(R.LookupTableImportV2(table_handle=table, keys=full, values=full), "full")
            steps.run(R.LookupTableFindV2(table_handle=table, keys=longs(12, 4), default_value=np.int64(0)), "find in a full one")
            steps.run(R.LookupTableFindV2(table_handle=table, keys=longs(3), default_value=np.int64(0)), "what a full one lacks")
            steps.run(R.LookupTableRemoveV2(table_handle=table, keys=longs(3)), "remove what a full one lacks")

    def test_what_a_dense_table_refuses(self):
        longs = lambda *values: np.array(values, np.int64)
        with Steps(self) as steps:
            for n, (empty, deleted) in enumerate([(np.int64(1), np.int64(1)), (longs(1, 2), longs(1, 2)), (np.int64(1), longs(2))]):
                table = R.MutableDenseHashTableV2(empty_key=empty, deleted_key=deleted, value_dtype=tf.int64, shared_name=f"wrong{n}")
                steps.run(R.LookupTableSizeV2(table_handle=table), f"{empty} {deleted}")
            scalars = R.MutableDenseHashTableV2(empty_key=np.int64(-1), deleted_key=np.int64(-2), value_dtype=tf.int64, shared_name="s")
            vectors = R.MutableDenseHashTableV2(empty_key=longs(-1, 0), deleted_key=longs(-2, 0), value_dtype=tf.int64, value_shape=[2], shared_name="v")
            for table, keys, values in [(scalars, longs([1, 2]), longs([1, 2])), (scalars, longs(1), longs(1, 2)), (scalars, longs(1), np.float32([1])),
                                        (scalars, np.array(["a"]), longs(1)), (vectors, longs(1, 2), longs(1, 2)), (vectors, longs([1, 2, 3]), longs([1, 2])),
                                        (vectors, longs([1, 2]), longs(1)), (vectors, longs([[1, 2]]), longs([[1, 2]])), (vectors, longs([1, 0]), longs([1, 2])),
                                        (vectors, longs([-1, 0]), longs([1, 2])), (vectors, longs([0, -1]), longs([1, 2])), (scalars, np.int64(5), np.int64(6)),
                                        (scalars, longs(), longs()), (vectors, np.zeros((0, 2), np.int64), np.zeros((0, 2), np.int64))]:
                steps.run(R.LookupTableInsertV2(table_handle=table, keys=keys, values=values), f"insert {keys} {values}")
                steps.run(R.LookupTableSizeV2(table_handle=table), "size")
                try:
                    find = R.LookupTableFindV2(table_handle=table, keys=keys, default_value=values)
                except ValueError:  # the client's own refusal
                    continue
                steps.run(find, f"find {keys} {values}")

    def test_options_of_dense_tables(self):
        for n, options in enumerate([*({"initial_num_buckets": b} for b in (-4, 0, 1, 3, 4)),
                                     *({"max_load_factor": f} for f in (-1.0, 0.0, 1.0, 1.5, float("nan"), 0.5))]):
            with self.subTest(**options), Steps(self) as steps:
                table = R.MutableDenseHashTableV2(empty_key=np.int64(-1), deleted_key=np.int64(-2), value_dtype=tf.int64, shared_name=f"options{n}", **options)
                steps.run(R.LookupTableSizeV2(table_handle=table), f"{options}")

    def test_what_a_mutable_table_refuses(self):
        with Steps(self) as steps:
            table = R.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name="m")
            vectors = R.MutableHashTableOfTensorsV2(key_dtype=tf.string, value_dtype=tf.int64, value_shape=[2], shared_name="v")
            longs = lambda *values: np.array(values, np.int64)
            steps.run(R.InitializeTableV2(table_handle=table, keys=["a"], values=longs(1)), "initialize")
            for t, keys, values in [(table, ["a", "b"], longs(1)), (table, ["a"], np.float32([1])), (table, longs(1), longs(1)),
                                    (vectors, ["a"], longs(1)), (vectors, ["a"], np.array([[1, 2, 3]])), (table, "c", np.int64(3))]:
                steps.run(R.LookupTableInsertV2(table_handle=t, keys=keys, values=values), f"insert {keys} {values}")
            steps.run(R.LookupTableRemoveV2(table_handle=table, keys=longs(1)), "remove")
            for t, keys, default in [(table, ["a", "c"], longs(1)), (table, ["a", "b", "c"], longs(1, 2)), (table, [["a", "b"]], longs(1, 2)),
                                     (vectors, ["a"], np.int64(1)), (vectors, ["a"], longs(1, 2, 3))]:
                steps.run(R.LookupTableFindV2(table_handle=t, keys=keys, default_value=default), f"find {keys} {default}")

    def test_text_files(self):
        cases = [
            (b"a\nb\nc\n", tf.string, tf.int64, -2, -1, {}), (b"a\r\nb\r\nc", tf.string, tf.int64, -2, -1, {}),
            (b"a\nb\n\nc", tf.string, tf.int64, -2, -1, {}), (b"a\nb\nc", tf.int64, tf.string, -1, -2, {}),
            (b"a\t1\nb\t2\nc\t3", tf.string, tf.int64, 0, 1, {}), (b"a 1.5\nb 2\n", tf.string, tf.float32, 0, 1, {"delimiter": " "}),
            (b"a  1.5\nb 2\n", tf.string, tf.float32, 0, 1, {"delimiter": " "}), (b"a\t1\nb\tx\n", tf.string, tf.int64, 0, 1, {}),
            (b"a\t1\nb\nc\t3", tf.string, tf.int64, 0, 1, {}), (b"a\nb\nc", tf.string, tf.int64, -2, -1, {"vocab_size": 2}),
            (b"a\nb\nc", tf.string, tf.int64, -2, -1, {"vocab_size": 5}), (b"a\nb\nc", tf.string, tf.int64, -2, -1, {"offset": 10}),
            (b"a\nb\na", tf.string, tf.int64, -2, -1, {}), (b"", tf.string, tf.int64, -2, -1, {}), (b"a\nb", tf.int64, tf.int64, -2, -1, {}),
            (b"a\nb", tf.string, tf.float32, -2, -1, {}), (b"a\nb", tf.string, tf.int32, -2, -1, {}),
            (b"1\t5\n2\t6", tf.int64, tf.int64, 0, 1, {}), (b"1\t5\n2\t6", tf.int32, tf.int32, 0, 1, {}),
            (b"1\t5.5\n2\t-6e3", tf.int32, tf.float64, 0, 1, {}), (b"1\ttrue", tf.string, tf.bool, 0, 1, {}),
            (b"1\t5\n2\t6", tf.string, tf.string, 1, 0, {}), (b"1\t5", tf.string, tf.string, 1, 0, {"delimiter": "ab"}),
            (b"1\t99999999999", tf.string, tf.int32, 0, 1, {}), (b"1\t 7 ", tf.string, tf.int64, 0, 1, {}), (b"1\t+7", tf.string, tf.int64, 0, 1, {}),
        ]
        with tempfile.TemporaryDirectory() as directory:
            for i, (text, keys, values, key_index, value_index, attrs) in enumerate(cases):
                with self.subTest(text=text, keys=keys.name, values=values.name), Steps(self) as steps:
                    path = os.path.join(directory, f"{i}.txt")
                    with open(path, "wb") as f:
                        f.write(text)
                    table = R.HashTableV2(key_dtype=keys, value_dtype=values, shared_name="t")
                    steps.run(R.InitializeTableFromTextFileV2(table_handle=table, filename=path, key_index=key_index, value_index=value_index,
                                                              **attrs), "fill")
                    self.contents(steps, table, keys, values, "file")
            with Steps(self) as steps:
                table = R.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name="t")
                for path in ["", os.path.join(directory, "missing")]:
                    steps.run(R.InitializeTableFromTextFileV2(table_handle=table, filename=path, key_index=-2, value_index=-1), path)

    def test_the_client_s_classes(self):
        with tempfile.TemporaryDirectory() as directory, Steps(self) as steps:
            path = os.path.join(directory, "words.txt")
            with open(path, "w") as f:
                f.write("emerson\nlake\npalmer\n")
            ids = tf1.lookup.StaticHashTable(tf1.lookup.KeyValueTensorInitializer(["lake", "palmer"], tf.constant([7, 8], tf.int64)), -1)
            words = tf1.lookup.StaticVocabularyTable(tf1.lookup.TextFileInitializer(path, tf.string, -2, tf.int64, -1), 2)
            names = tf1.lookup.StaticHashTable(tf1.lookup.TextFileInitializer(path, tf.int64, -1, tf.string, -2), "UNK")
            changing = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.0)
            dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, -1, -2)
            sentence = tf.constant(["lake", "and", "palmer", "emerson"])
            steps.run(ids.lookup(sentence), "before")
            steps.run(tf1.tables_initializer(), "initializer")
            steps.run(tf1.tables_initializer(), "initializer again")
            steps.run([ids.lookup(sentence), words.lookup(sentence), words.size(), names.lookup(tf.constant([2, 0, 5], tf.int64))], "lookup")
            steps.run(ids.lookup(tf.SparseTensor([[0, 0], [1, 2]], ["palmer", "x"], [2, 3])).values, "sparse")
            steps.run(changing.insert(["a", "b"], [1.5, 2.5]), "insert")
            steps.run(changing.lookup(["b", "c"]), "changed")
            steps.run(dense.insert(tf.constant([4, 5], tf.int64), tf.constant([40, 50], tf.int64)), "dense insert")
            steps.run(dense.lookup(tf.constant([5, 6], tf.int64)), "dense")

    def test_references(self):
        """The ops of TensorFlow 1.0, whose handles are references."""
        for kind in ("HashTable", "MutableHashTable"):
            results = []
            for target in ("", cluster().target):
                with tf1.Graph().as_default() as graph:
                    def op(name, inputs, types, attrs):
                        return graph.create_op(name, inputs, types, attrs={k: tf1.AttrValue(type=v.as_datatype_enum) for k, v in attrs.items()})
                    table = op(kind, [], [tf.string._as_ref], {"key_dtype": tf.string, "value_dtype": tf.int64}).outputs[0]
                    keys, values = tf.constant(["a", "b"]), tf.constant([3, 4], tf.int64)
                    types = {"Tkey": tf.string, "Tval": tf.int64} if kind == "HashTable" else {"Tin": tf.string, "Tout": tf.int64}
                    fill = op("InitializeTable" if kind == "HashTable" else "LookupTableInsert", [table, keys, values], [], types)
                    found = op("LookupTableFind", [table, tf.constant(["b", "?"]), tf.constant(-1, tf.int64)], [tf.int64],
                               {"Tin": tf.string, "Tout": tf.int64}).outputs[0]
                    size = op("LookupTableSize", [table], [tf.int64], {}).outputs[0]
                    if target:
                        tf1.Session.reset(target)
                    with tf1.Session(target, config=CONFIG) as session:
                        session.run(fill)
                        results.append([x.tolist() for x in session.run([found, size])])
            self.assertEqual(results[1], results[0])


if __name__ == "__main__":
    main(__doc__)

#!/usr/bin/env python3
"""tf.data of sparse and ragged elements, of tf.train.Examples and of comma separated values, as data_test.py tests the rest.

  python3 tests/tensorflow/data_features_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import gzip
import os
import tempfile

from data_test import DataTest, Dataset, data_ops, plain
from leat_cluster import CONFIG, cluster, main, np, tf, tf1
from tensorflow.python.data.ops.dataset_ops import _VariantDataset

tf.get_logger().setLevel("ERROR")  # it warns of two lambdas in one line
experimental = tf.data.experimental


class AsAGraph(DataTest):
    def test_what_a_dataset_is_made_of(self):
        """TensorFlow makes the same dataset of the GraphDef that the cluster gives, in later parts of the graph as well."""
        for op in (lambda x: data_ops.DatasetToGraphV2(input_dataset=x, strip_device_assignment=True),
                   lambda x: data_ops.DatasetToGraph(input_dataset=x)):
            with tf1.Graph().as_default(), tf1.Session(cluster().target, config=CONFIG) as session:
                dataset = Dataset.range(10).shuffle(4, seed=3).batch(3)
                session.run(tf1.data.make_initializable_iterator(dataset).initializer)
                written = session.run(op(dataset._variant_tensor))
                rows = session.run(tf1.data.make_one_shot_iterator(dataset).get_next())
            graph = tf1.GraphDef.FromString(written)
            self.assertTrue(any(node.op.startswith("ShuffleDataset") for node in graph.node))
            with tf1.Graph().as_default(), tf1.Session("") as session:
                [variant] = tf.graph_util.import_graph_def(graph, return_elements=[graph.node[-1].name + ":0"])
                again = tf1.data.make_initializable_iterator(_VariantDataset(variant, dataset.element_spec))
                session.run(again.initializer)
                self.assertEqual(plain(session.run(again.get_next())), plain(rows))


class Variants(DataTest):
    def assert_gives_alike(self, make):
        """`make()` is a list of ops: the same values, or the same error."""
        answers = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default(), tf1.Session(target, config=CONFIG) as session:
                try:
                    answers.append(plain(session.run(make())))
                except (tf.errors.OpError, ValueError) as error:
                    answers.append(type(error).__name__)
        self.assertEqual(answers[1], answers[0])
        return answers[0]

    # Row splits, innermost last, and values.
    RAGGED = {
        "one level": ([[0, 2, 3]], [1, 2, 3]),
        "two levels": ([[0, 2, 3], [0, 1, 3, 4]], [1, 2, 3, 4]),
        "rows of pairs": ([[0, 2, 2, 3]], [[1, 2], [3, 4], [5, 6]]),
        "no rows": ([[0]], []),
        "dense": ([], [[1, 2], [3, 4]]),
    }
    BAD_RAGGED = {
        "first split": ([[1, 2, 3]], [1, 2, 3]),
        "too many values": ([[0, 2, 2]], [1, 2, 3]),
        "too few values": ([[0, 2, 5]], [1, 2, 3]),
        "order": ([[0, 2, 1, 3]], [1, 2, 3]),
        "negative": ([[0, -1, 3]], [1, 2, 3]),
        "outer": ([[0, 2, 9], [0, 1, 3, 4]], [1, 2, 3, 4]),
        "inner": ([[0, 2, 3], [0, 1, 9, 4]], [1, 2, 3, 4]),
        "no splits": ([[]], [1, 2, 3]),
    }

    @staticmethod
    def encoded(splits, values, batched, dtype=np.int64):
        hide = lambda value, kind: tf1.placeholder_with_default(np.array(value, kind), None)
        return data_ops.RaggedTensorToVariant(rt_nested_splits=[hide(s, dtype) for s in splits], rt_dense_values=hide(values, np.float32),
                                              batched_input=batched)

    @staticmethod
    def decoded(encoded, input_rank, output_rank, values=tf.float32, splits=tf.int64):
        out = data_ops.RaggedTensorFromVariant(encoded_ragged=encoded, input_ragged_rank=input_rank, output_ragged_rank=output_rank,
                                               Tvalues=values, Tsplits=splits)
        return [*out.output_nested_splits, out.output_dense_values]

    def test_ragged_tensors_there_and_back(self):
        for name, (splits, values) in self.RAGGED.items():
            rank = len(splits)
            for dtype, kind in ((np.int64, tf.int64), (np.int32, tf.int32)):
                with self.subTest(name, dtype=dtype):
                    self.assert_gives_alike(lambda: self.decoded(self.encoded(splits, values, False, dtype), rank, rank, splits=kind))
                    if rank:
                        self.assert_gives_alike(lambda: self.decoded(self.encoded(splits, values, True, dtype), rank - 1, rank, splits=kind))
                        self.assert_gives_alike(lambda: self.decoded(self.encoded(splits, values, True, dtype), -1, rank, splits=kind))
            self.assert_gives_alike(lambda: [tf.shape(self.encoded(splits, values, True)), tf.size(self.encoded(splits, values, True)),
                                             tf.rank(self.encoded(splits, values, True))])
        self.assert_gives_alike(lambda: self.decoded(self.encoded(*self.RAGGED["dense"], True), 0, 1))

    def test_ragged_tensors_that_are_none(self):
        for name, (splits, values) in self.BAD_RAGGED.items():
            for batched in (False, True):
                with self.subTest(name, batched=batched):
                    answer = self.assert_gives_alike(lambda: self.decoded(self.encoded(splits, values, batched), len(splits) - batched, len(splits)))
                    self.assertEqual(answer, "InvalidArgumentError")

    def test_ragged_tensors_of_another_kind(self):
        splits, values = self.RAGGED["one level"]
        for input_rank, output_rank, types in ((0, 0, {}), (1, 1, {"values": tf.int32}), (1, 1, {"splits": tf.int32}), (-1, 0, {})):
            answer = self.assert_gives_alike(lambda: self.decoded(self.encoded(splits, values, False), input_rank, output_rank, **types))
            if input_rank >= 0:
                self.assertEqual(answer, "InvalidArgumentError")

    def test_gradients_of_ragged_tensors(self):
        def gradient(name, batched):
            splits, values = self.RAGGED[name]
            first = np.array(splits[0] if splits else 0, np.int64)
            return [data_ops.RaggedTensorToVariantGradient(encoded_ragged_grad=self.encoded(splits, values, batched), row_splits=first,
                                                           dense_values_shape=np.array(np.shape(values), np.int32), Tvalues=tf.float32)]
        for name in ("one level", "two levels", "rows of pairs", "dense"):
            for batched in (False, True):
                with self.subTest(name, batched=batched):
                    self.assert_gives_alike(lambda: gradient(name, batched))

    def test_sums_and_zeros_of_ragged_tensors(self):
        one, other = self.RAGGED["one level"], ([[0, 1, 3]], [1, 2, 3])
        self.assert_gives_alike(lambda: self.decoded(tf.add_n([self.encoded(*one, False), self.encoded(*one, False)]), 1, 1))
        self.assert_gives_alike(lambda: self.decoded(data_ops.ZerosLike(x=self.encoded(*one, False)), 1, 1))
        answer = self.assert_gives_alike(lambda: self.decoded(tf.add_n([self.encoded(*one, False), self.encoded(*other, False)]), 1, 1))
        self.assertEqual(answer, "InvalidArgumentError")

    def test_maps_over_rows(self):
        rows = lambda: tf.RaggedTensor.from_row_splits(tf1.placeholder_with_default(np.arange(6.0, dtype=np.float32), [None]), [0, 2, 2, 5, 6])
        ragged = tf.RaggedTensorSpec([None], tf.int32)
        self.assert_gives_alike(lambda: [tf.map_fn(tf.reduce_sum, rows(), fn_output_signature=tf.float32)])
        self.assert_gives_alike(lambda: [tf.map_fn(tf.range, tf.constant([2, 0, 3]), fn_output_signature=ragged).to_tensor()])
        self.assert_gives_alike(lambda: [tf.map_fn(lambda row: row * 2, rows()).flat_values])

    def test_serialised_sparse_tensors(self):
        def there_and_back(indices, values, shape, many):
            sparse = tf1.SparseTensor(np.array(indices, np.int64).reshape(-1, len(shape)), np.array(values, np.float32), np.array(shape, np.int64))
            write = tf1.serialize_many_sparse if many else tf1.serialize_sparse
            written = write(sparse, out_type=tf.variant)
            return list(data_ops.DeserializeSparse(serialized_sparse=written, dtype=tf.float32))
        for many in (False, True):
            self.assert_gives_alike(lambda: there_and_back([[0, 1], [2, 0]], [1, 2], [3, 4], many))
            self.assert_gives_alike(lambda: there_and_back([], [], [3, 4], many))
            self.assert_gives_alike(lambda: there_and_back([[0, 1], [2, 0]], [1, 2], [2, 4], many))
        self.assert_gives_alike(lambda: there_and_back([], [], [0, 4], True))


class Elements(DataTest):
    def test_sparse_elements(self):
        def sparse():
            return tf1.SparseTensor([[0, 1], [2, 0], [2, 3]], [1.0, 2.0, 3.0], [4, 5])

        def element(x):
            return tf.sparse.SparseTensor([[0], [x + 1]], [x, x * 2], [x + 3])
        self.assert_agrees(lambda: Dataset.from_tensors(sparse()))
        self.assert_agrees(lambda: Dataset.from_tensor_slices(sparse()))
        self.assert_agrees(lambda: Dataset.from_tensor_slices((sparse(), [1, 2, 3, 4])))
        self.assert_agrees(lambda: Dataset.range(3).map(element))
        self.assert_agrees(lambda: Dataset.range(5).map(element).batch(2))
        self.assert_agrees(lambda: Dataset.range(8).map(element).batch(2).batch(2))
        self.assert_agrees(lambda: Dataset.range(3).map(lambda x: (x, {"s": element(x)})).repeat(2))
        self.assert_agrees(lambda: Dataset.range(5).map(element).map(lambda s: tf.sparse.to_dense(s)))
        self.assert_agrees(lambda: Dataset.range(5).map(element).filter(lambda s: tf.reduce_all(s.values > 1)))
        self.assert_agrees(lambda: Dataset.range(6).map(element).batch(3).unbatch())
        self.assert_agrees(lambda: Dataset.from_tensor_slices(sparse()).shuffle(4, seed=3).cache().take(3))
        self.assert_agrees(lambda: Dataset.range(4).map(element).window(2).flat_map(lambda w: w.batch(2)))

    def test_dense_to_sparse_batches(self):
        lengths = [1, 3, 0, 2, 2]
        for shape in ([5], [None], [3]):
            self.assert_agrees(lambda: Dataset.from_tensor_slices(lengths).map(tf.range).apply(experimental.dense_to_sparse_batch(2, shape)))
        self.assert_agrees(lambda: Dataset.from_tensor_slices(lengths).map(tf.range).apply(experimental.dense_to_sparse_batch(2, [2])))
        self.assert_agrees(lambda: Dataset.from_tensor_slices(lengths).map(lambda n: tf.fill([n, n], "x")).apply(
            experimental.dense_to_sparse_batch(3, [None, 4])))
        self.assert_agrees(lambda: Dataset.range(3).apply(experimental.dense_to_sparse_batch(2, [])))
        self.assert_agrees(lambda: Dataset.from_tensors([1, 2]).apply(experimental.dense_to_sparse_batch(2, [3])))

    def test_ragged_elements(self):
        rows = lambda: tf.RaggedTensor.from_row_splits(np.arange(6), [0, 2, 2, 5, 6])
        self.assert_agrees(lambda: Dataset.from_tensors(rows()))
        self.assert_agrees(lambda: Dataset.from_tensor_slices(rows()))
        self.assert_agrees(lambda: Dataset.range(1, 5).map(tf.range).apply(experimental.dense_to_ragged_batch(3)))
        self.assert_agrees(lambda: Dataset.range(1, 5).map(tf.range).apply(experimental.dense_to_ragged_batch(2)).map(
            lambda r: tf.reduce_sum(r, axis=1)))
        self.assert_agrees(lambda: Dataset.from_tensor_slices(rows()).batch(2))
        self.assert_agrees(lambda: Dataset.from_tensor_slices(rows()).batch(3).unbatch())
        self.assert_agrees(lambda: Dataset.from_tensors(rows()).map(lambda r: r * 2))

    def test_optionals(self):
        """The elements one by one, each asked first whether it is there."""
        def answers(target):
            with tf1.Graph().as_default(), tf1.Session(target, config=CONFIG) as session:
                iterator = tf1.data.make_initializable_iterator(Dataset.range(3).map(lambda x: (x, tf.cast(x, tf.float32) / 2)))
                following = experimental.get_next_as_optional(iterator)
                is_there = following.has_value()
                value = tf1.cond(is_there, following.get_value, lambda: (tf.constant(-1, tf.int64), tf.constant(-1.0)))
                session.run(iterator.initializer)
                return [plain(session.run([is_there, value])) for _ in range(5)]
        self.assertEqual(answers(cluster().target), answers(""))


def example(**features):
    kinds = {bytes: ("bytes_list", tf1.train.BytesList), int: ("int64_list", tf1.train.Int64List), float: ("float_list", tf1.train.FloatList)}
    made = {}
    for name, values in features.items():
        field, kind = kinds[type(values[0])]
        made[name] = tf1.train.Feature(**{field: kind(value=values)})
    return tf1.train.Example(features=tf1.train.Features(feature=made)).SerializeToString()


class Examples(DataTest):
    RECORDS = [example(label=[1], words=[b"a", b"b"], weights=[0.5, 0.25]), example(label=[0], weights=[1.0]),
               example(label=[3], words=[b"c"], weights=[2.0, 3.0, 4.0]), example(label=[2], words=[b"d", b"e", b"f"])]
    FEATURES = {"label": tf1.FixedLenFeature([], tf.int64), "words": tf1.VarLenFeature(tf.string),
                "weights": tf.io.RaggedFeature(tf.float32), "bias": tf1.FixedLenFeature([2], tf.float32, [1.0, 2.0])}

    def test_parsed_records(self):
        for size in (1, 3):
            self.assert_agrees(lambda: Dataset.from_tensor_slices(self.RECORDS).batch(size).apply(experimental.parse_example_dataset(self.FEATURES)))
        self.assert_agrees(lambda: Dataset.from_tensor_slices(self.RECORDS).batch(2).apply(
            experimental.parse_example_dataset(self.FEATURES, num_parallel_calls=2)).map(lambda f: (f["label"], tf.sparse.to_dense(f["words"]))))

    def test_records_that_do_not_fit(self):
        for features in ({"label": tf1.FixedLenFeature([2], tf.int64)}, {"none": tf1.FixedLenFeature([], tf.int64)},
                         {"label": tf1.FixedLenFeature([], tf.float32)}, {"words": tf1.VarLenFeature(tf.int64)},
                         {"words": tf1.FixedLenSequenceFeature([2], tf.string, allow_missing=True)}):
            self.assert_agrees(lambda: Dataset.from_tensor_slices(self.RECORDS).batch(2).apply(experimental.parse_example_dataset(features)))
            self.assert_agrees(lambda: Dataset.from_tensor_slices(self.RECORDS).map(lambda r: tf1.parse_single_example(r, features)))
        self.assert_agrees(lambda: Dataset.from_tensor_slices([b"no record", self.RECORDS[0]]).batch(1).apply(
            experimental.parse_example_dataset({"label": tf1.FixedLenFeature([], tf.int64)})))

    def test_functions_that_parse(self):
        """As most programs do: record by record, with sparse features."""
        features = {"label": tf1.FixedLenFeature([], tf.int64), "words": tf1.VarLenFeature(tf.string)}
        self.assert_agrees(lambda: Dataset.from_tensor_slices(self.RECORDS).map(lambda r: tf1.parse_single_example(r, features)))
        self.assert_agrees(lambda: Dataset.from_tensor_slices(self.RECORDS).map(lambda r: tf1.parse_single_example(r, features)).batch(3))
        self.assert_agrees(lambda: Dataset.from_tensor_slices(self.RECORDS).batch(3).map(lambda r: tf1.parse_example(r, features)))

    def test_files_of_features(self):
        with tempfile.TemporaryDirectory() as folder:
            for number, part in enumerate((self.RECORDS[:2], self.RECORDS[2:])):
                with tf1.python_io.TFRecordWriter(f"{folder}/{number}.tfrecord") as writer:
                    for record in part:
                        writer.write(record)
            self.assert_agrees(lambda: experimental.make_batched_features_dataset(
                f"{folder}/*.tfrecord", 3, self.FEATURES, num_epochs=2, shuffle=False, label_key="label"))

    def test_training_on_sparse_features(self):
        def losses(target):
            with tf1.Graph().as_default():
                features = {"label": tf1.FixedLenFeature([], tf.int64), "words": tf1.VarLenFeature(tf.string)}
                batches = Dataset.from_tensor_slices(self.RECORDS).repeat().batch(3).map(lambda r: tf1.parse_example(r, features))
                batch = tf1.data.make_one_shot_iterator(batches).get_next()
                with tf1.device(tf1.train.replica_device_setter(ps_tasks=1) if target else None):
                    table = tf1.get_variable("table", initializer=np.arange(14, dtype=np.float32).reshape(7, 2) / 10)
                words = tf1.SparseTensor(batch["words"].indices, tf.strings.to_hash_bucket_fast(batch["words"].values, 7), batch["words"].dense_shape)
                logits = tf1.nn.embedding_lookup_sparse(table, words, None, combiner="sum")
                loss = tf.reduce_sum(tf.square(logits)) + tf.reduce_sum(tf.cast(batch["label"], tf.float32)) * tf.reduce_sum(table)
                train = tf1.train.AdagradOptimizer(0.1).minimize(loss)
                if target:
                    tf1.Session.reset(target)
                with tf1.Session(target, config=CONFIG) as session:
                    session.run(tf1.global_variables_initializer())
                    return [float(session.run([loss, train])[0]) for _ in range(6)]
        np.testing.assert_allclose(losses(cluster().target), losses(""), rtol=1e-5)


class CommaSeparatedValues(DataTest):
    I, F, S = tf.int32, tf.float32, tf.string

    def check(self, text, defaults, **options):
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
            file.flush()
            with self.subTest(text=text, **options):
                self.assert_agrees(lambda: experimental.CsvDataset(file.name, defaults, **options), one_shot=False)

    def test_records(self):
        for end in ("\n", "\r\n", "\r"):
            self.check(end.join(["1,2.5,x", "3,4.5,y", ""]), [self.I, self.F, self.S])
            self.check(end.join(["1", "", "3", ""]), [[0]])
            self.check(end.join(['"a"', '"b"', "c"]), [self.S])
        self.check("1,2.5,x\n3,4.5,y", [self.I, self.F, self.S])
        self.check("1\r\r\n2\n", [[0]])
        for text in ("", "\n", "\n\n", ",", "1,", ",1\n"):
            self.check(text, [[0]])
            self.check(text, [[0], [7]])
        self.check('"a,b","c""d"\n"e\nf",g\n"a\r\nb",c\r\n', [self.S, self.S])
        self.check(b"a\0b,c\n", [self.S, self.S])
        self.check(' 1 , 2\n"3","4"\n', [self.I, self.I])
        self.check("1,2.5\n", [tf.int64, tf.float64])

    def test_defaults(self):
        self.check("1,\n,5\n", [[0], [7]])
        self.check('"",2\n"NA",3\nNA,4\n', [[9], self.I], na_value="NA")
        self.check("1,\n2,3\n", [self.I, self.I])

    def test_damaged_records(self):
        for text in ('a"b,c\nd,e\n', '"a"b,c\nd,e\n', '"ab,c\nd,e\n', '"ab', "a,b,c\nd,e\n", "a\nd,e\n", '"a"b"\nc,"d"\ne,f\n', '"', '""', '"""'):
            self.check(text, [self.S, self.S])
        for text in ("1,x\n2,3\n", "1,99999999999\n2,3\n", "1,2.5\n2,3\n"):
            self.check(text, [self.I, self.I])

    def test_options(self):
        self.check("a,b\n1,2\n", [self.I, self.I], header=True)
        self.check('"a\nb",b\n1,2\n', [self.I, self.I], header=True)
        self.check('a"b,b\n1,2\n', [self.I, self.I], header=True)
        self.check("a,b", [self.I, self.I], header=True)
        self.check("1;2\n", [self.I, self.I], field_delim=";")
        self.check('"1",a"b\n', [self.S, self.S], use_quote_delim=False)
        self.check('1"2\n', [self.I, self.I], field_delim='"')
        for columns in ([0, 2], [1, 2], [0, 3], [2, 0], [-1, 0], [1]):
            self.check('1,2,3\n4,5,6\n7,"8"8,9\n1,2,3\n', [self.I, self.I], select_cols=columns)
        for columns in ([1], [0], [5], [1, 0]):
            self.check("1,2,3\n4,5,6\n", [self.I, self.I], exclude_cols=columns)
        self.check(gzip.compress(b"1,2\n3,4\n"), [self.I, self.I], compression_type="GZIP")
        self.check("1,2\n3,4\n", [self.I, self.I], buffer_size=1)
        self.check("1,2\n", [self.I, self.I], field_delim=";;")
        self.check("1,2\n", [self.I, self.I], compression_type="ZIP")

    def test_several_files(self):
        with tempfile.TemporaryDirectory() as folder:
            names = [os.path.join(folder, name) for name in ("a.csv", "none.csv", "b.csv")]
            for name in (names[0], names[2]):
                with open(name, "w") as file:
                    file.write("x,y\n1,2\n3,4\n")
            self.assert_agrees(lambda: experimental.CsvDataset([names[0], names[2]], [self.I, self.I], header=True))
            self.assert_agrees(lambda: experimental.CsvDataset(names, [self.I, self.I], header=True))
            self.assert_agrees(lambda: experimental.make_csv_dataset([names[0], names[2]], 2, num_epochs=1, shuffle=False, label_name="y"))


if __name__ == "__main__":
    main(__doc__)

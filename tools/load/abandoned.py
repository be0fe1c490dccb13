#!/usr/bin/env python3
"""Finds kernels that continue after their step has ended. Runs each of many kernels from TensorFlow's client, on inputs that
keep it busy for long, with a deadline (a second; more on a machine that needs longer to make the inputs); half a second
after the deadline the task should be idle again.

  tools/load/abandoned.py --leat build/release/bin/leat [--only REGEX] [--deadline S]

Prints a line per kernel: the client's answer and its time, how long the task continued computing after the deadline, and the
memory it still held. Exits 1 if one continued for more than 0.5 s. Needs 8 GB of memory and some minutes. The probe is the task's CPU
time, so nothing else may use the cluster; a kernel that is done before its deadline is marked "finished" and proves nothing.
"""
import argparse
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/tensorflow"))
import leat_cluster  # noqa: E402
from leat_cluster import np, tf, tf1  # noqa: E402

LIMIT, PROBE = 0.5, 0.05


def uniform(*shape, dtype=tf.float32):
    x = tf.random.uniform(shape, dtype=tf.float64 if dtype == tf.float64 else tf.float32)
    return x if x.dtype == dtype else tf.cast(x, dtype)


def ints(n, below, dtype=tf.int32):
    return tf.random.uniform([n], maxval=below, dtype=dtype)


def symmetric(n, dtype=tf.float64):
    x = uniform(n, n, dtype=dtype)
    return x + tf.transpose(x)


def sparse(n, rows=1 << 20):
    index = tf.stack([tf.cast(tf.range(n) // 4, tf.int64), tf.cast(tf.range(n) % 4, tf.int64)], 1)
    return tf.SparseTensor(index, uniform(n), [max(rows, n // 4 + 1), 4])


def words(n):
    return tf.as_string(ints(n, 1 << 30))


def mapped(f, n=1 << 40):
    data = tf1.data.Dataset.range(n).map(f)
    return tf1.data.make_one_shot_iterator(data).get_next()


def repeated(body, x):
    return tf.while_loop(lambda i, x: i < 1 << 40, lambda i, x: (i + 1, body(x)), [tf.constant(0, tf.int64), x])[1]


M = 1_000_000
CASES = {
    # ---- products
    "MatMul": lambda: tf.matmul(uniform(9000, 9000), uniform(9000, 9000)),
    "MatMul wide": lambda: tf.matmul(uniform(300, 400_000), uniform(400_000, 300)) * tf.matmul(uniform(300, 400_000), uniform(400_000, 300)),
    "MatMul half": lambda: tf.matmul(uniform(7000, 7000, dtype=tf.float16), uniform(7000, 7000, dtype=tf.float16)),
    "MatMul bfloat16": lambda: tf.matmul(uniform(12000, 12000, dtype=tf.bfloat16), uniform(12000, 12000, dtype=tf.bfloat16)),
    "MatMul double": lambda: tf.matmul(uniform(5000, 5000, dtype=tf.float64), uniform(5000, 5000, dtype=tf.float64), transpose_b=True),
    "MatMul complex": lambda: tf.matmul(tf.cast(uniform(3000, 3000), tf.complex64), tf.cast(uniform(3000, 3000), tf.complex64)),
    "MatMul int32": lambda: tf.matmul(tf.cast(uniform(5000, 5000), tf.int32), tf.cast(uniform(5000, 5000), tf.int32)),
    "MatMul vector": lambda: repeated(lambda x: tf.matmul(x, tf.ones([8000, 8000])) * 1e-4, uniform(1, 8000)),
    "SparseMatMul": lambda: tf1.sparse_matmul(uniform(5000, 5000), uniform(5000, 5000)),
    "BatchMatMul": lambda: tf.matmul(uniform(50_000, 64, 64), uniform(50_000, 64, 64)) @ uniform(50_000, 64, 64) @ uniform(50_000, 64, 64),
    "Einsum": lambda: tf.einsum("abc,cde->abde", uniform(64, 64, 3000), uniform(3000, 64, 64)) * tf.einsum("abc,cde->abde", uniform(64, 64, 9000), uniform(9000, 64, 64)),
    "Conv2D": lambda: tf.nn.conv2d(uniform(64, 256, 256, 32), uniform(9, 9, 32, 128), 1, "SAME"),
    "Conv2D one image": lambda: tf.nn.conv2d(uniform(1, 3000, 3000, 16), uniform(9, 9, 16, 64), 1, "SAME"),
    "Conv2D double": lambda: tf.nn.conv2d(uniform(8, 128, 128, 32, dtype=tf.float64), uniform(5, 5, 32, 64, dtype=tf.float64), 1, "SAME"),
    "Conv2D filter gradient": lambda: tf1.nn.conv2d_backprop_filter(uniform(32, 256, 256, 32), [9, 9, 32, 64], uniform(32, 256, 256, 64), [1, 1, 1, 1], "SAME"),
    "Conv2D input gradient": lambda: tf1.nn.conv2d_backprop_input([8, 512, 512, 32], uniform(9, 9, 32, 64), uniform(8, 512, 512, 64), [1, 1, 1, 1], "SAME"),
    "Conv2D input gradient, one image": lambda: tf1.nn.conv2d_backprop_input([1, 2000, 2000, 32], uniform(9, 9, 32, 64), uniform(1, 2000, 2000, 64), [1, 1, 1, 1], "SAME"),
    "Conv2D filter gradient, one image": lambda: tf1.nn.conv2d_backprop_filter(uniform(1, 2000, 2000, 32), [9, 9, 32, 64], uniform(1, 2000, 2000, 64), [1, 1, 1, 1], "SAME"),
    "Conv3D": lambda: tf.nn.conv3d(uniform(4, 32, 128, 128, 16), uniform(5, 5, 5, 16, 64), [1, 1, 1, 1, 1], "SAME"),
    "DepthwiseConv2D": lambda: repeated(lambda x: tf.nn.depthwise_conv2d(x, tf.ones([15, 15, 32, 1]) / 225, [1, 1, 1, 1], "SAME"), uniform(8, 256, 256, 32)),
    "Dilation2D": lambda: tf1.nn.dilation2d(uniform(8, 512, 512, 16), uniform(9, 9, 16), strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME"),
    # ---- matrices
    "MatrixInverse": lambda: tf.linalg.inv(uniform(6000, 6000, dtype=tf.float64)),
    "MatrixInverse float": lambda: tf.linalg.inv(uniform(6000, 6000)),
    "MatrixInverse many": lambda: tf.linalg.inv(uniform(300_000, 32, 32)),
    "MatrixSolve": lambda: tf.linalg.solve(uniform(6000, 6000), uniform(6000, 6000)),
    "MatrixTriangularSolve": lambda: tf.linalg.triangular_solve(uniform(7000, 7000) + 1, uniform(7000, 7000)),
    "Cholesky": lambda: tf.linalg.cholesky(symmetric(9000) + 20000 * tf.eye(9000, dtype=tf.float64)),
    "MatrixDeterminant": lambda: tf.linalg.det(uniform(8000, 8000)),
    "LogMatrixDeterminant": lambda: tf.linalg.slogdet(uniform(8000, 8000))[1],
    "Qr": lambda: tf.linalg.qr(uniform(5000, 5000))[0],
    "Svd": lambda: tf.linalg.svd(uniform(2500, 2500))[0],
    "SelfAdjointEig": lambda: tf.linalg.eigh(symmetric(2500))[0],
    "Lu": lambda: tf.linalg.lu(uniform(8000, 8000))[0],
    "MatrixSolveLs": lambda: tf.linalg.lstsq(uniform(3000, 2000), uniform(3000, 100), fast=False),
    "BandedTriangularSolve": lambda: tf.linalg.banded_triangular_solve(uniform(400, 20_000) + 1, uniform(20_000, 1000)),
    "TridiagonalSolve": lambda: repeated(lambda x: tf.linalg.tridiagonal_solve(tf.ones([3, M]) + [[0], [3], [0]], x), uniform(M, 4)),
    "MatrixDiag": lambda: tf.reduce_sum(tf.linalg.diag(uniform(25_000))),
    "FFT": lambda: tf.signal.fft(tf.cast(uniform(1 << 25), tf.complex64)),
    "FFT of an odd length": lambda: tf.signal.fft(tf.cast(uniform(20_000_003), tf.complex64)),
    "FFT2D": lambda: tf.signal.fft2d(tf.cast(uniform(7000, 7000), tf.complex64)),
    "RFFT": lambda: tf.signal.rfft(uniform(4000, 20_000)),
    # ---- element by element
    "Igamma": lambda: tf.math.igamma(uniform(50 * M), uniform(50 * M)),
    "Betainc": lambda: tf.math.betainc(uniform(30 * M), uniform(30 * M), uniform(30 * M)),
    "Zeta": lambda: tf.math.zeta(uniform(30 * M) + 1.1, uniform(30 * M)),
    "Polygamma": lambda: tf.math.polygamma(tf.ones([30 * M]), uniform(30 * M)),
    "Pow double": lambda: repeated(lambda x: tf.pow(x, tf.constant(1.0000001, tf.float64)), uniform(100 * M, dtype=tf.float64)),
    "Chain": lambda: repeated(lambda x: tf.tanh(x) + x * 0.5, uniform(100 * M)),
    "Broadcast": lambda: tf.reduce_sum(tf.sin(uniform(30_000, 1) * uniform(1, 30_000))),
    "Select": lambda: repeated(lambda x: tf.where(x > 0.5, x * 0.9, x * 1.1), uniform(200 * M)),
    "Cast": lambda: repeated(lambda x: tf.cast(tf.cast(x, tf.float16), tf.float32), uniform(100 * M)),
    "AddN": lambda: repeated(lambda x: tf.add_n([x] * 20) / 20, uniform(60 * M)),
    "Quantize": lambda: repeated(lambda x: tf.quantization.quantize_and_dequantize_v2(x, 0., 1., range_given=True), uniform(60 * M)),
    "FakeQuant": lambda: repeated(lambda x: tf.quantization.fake_quant_with_min_max_args(x), uniform(60 * M)),
    "ClipByValue": lambda: repeated(lambda x: tf.clip_by_value(x * 1.1, 0., 1.), uniform(200 * M)),
    # ---- reductions
    "Sum": lambda: repeated(lambda x: x + tf.reduce_sum(x) * 1e-12, uniform(100 * M)),
    "Sum of columns": lambda: repeated(lambda x: x + tf.reduce_sum(x, 0) * 1e-12, uniform(100_000, 1000)),
    "Cumsum": lambda: repeated(lambda x: tf.cumsum(x) * 1e-6, uniform(100 * M)),
    "ArgMax": lambda: repeated(lambda x: x + tf.cast(tf.argmax(x, 0), tf.float32) * 1e-12, uniform(100 * M)),
    "LogSoftmax": lambda: repeated(tf.nn.log_softmax, uniform(1, 50 * M)),
    "CrossEntropy": lambda: tf.nn.softmax_cross_entropy_with_logits(labels=uniform(20_000, 10_000), logits=uniform(20_000, 10_000)),
    "L2Loss": lambda: repeated(lambda x: x + tf.nn.l2_loss(x) * 1e-12, uniform(100 * M)),
    "BatchNorm": lambda: repeated(lambda x: tf1.nn.fused_batch_norm(x, tf.ones([64]), tf.zeros([64]))[0], uniform(64, 128, 128, 64)),
    "LRN": lambda: tf.nn.lrn(uniform(64, 128, 128, 64), depth_radius=30),
    "MaxPool": lambda: repeated(lambda x: tf.nn.max_pool2d(x, 15, 1, "SAME"), uniform(16, 256, 256, 32)),
    "AvgPool": lambda: repeated(lambda x: tf.nn.avg_pool2d(x, 15, 1, "SAME"), uniform(16, 256, 256, 32)),
    "MaxPool one image": lambda: tf.nn.max_pool2d(uniform(1, 8000, 8000, 3), 31, 1, "SAME"),
    "FractionalMaxPool": lambda: repeated(lambda x: x + tf.reduce_mean(tf1.nn.fractional_max_pool(x, [1., 1.5, 1.5, 1.])[0]), uniform(16, 512, 512, 16)),
    # ---- sorting and searching
    "TopK": lambda: tf.nn.top_k(uniform(50 * M), 50 * M)[0],
    "Sort rows": lambda: tf.sort(uniform(5000, 10_000)),
    "ArgSort": lambda: tf.argsort(uniform(50 * M)),
    "NthElement": lambda: repeated(lambda x: x + tf.raw_ops.NthElement(input=x, n=25 * M) * 1e-9, uniform(50 * M)),
    "Unique": lambda: tf.unique(ints(80 * M, 1 << 30))[0],
    "Unique strings": lambda: tf.unique(words(20 * M))[0],
    "Where": lambda: repeated(lambda x: x + tf.cast(tf.reduce_sum(tf.where(x > 0.5)), tf.float32) * 0, uniform(50 * M)),
    "InTopK": lambda: tf.math.in_top_k(ints(20_000, 10_000), uniform(20_000, 10_000), 5),
    "SearchSorted": lambda: tf.searchsorted(tf.sort(uniform(M)), uniform(60 * M)),
    "Bucketize": lambda: tf.raw_ops.Bucketize(input=uniform(100 * M), boundaries=[i / 64 for i in range(64)]),
    "Histogram": lambda: repeated(lambda x: x + tf.cast(tf.reduce_sum(tf.histogram_fixed_width(x, [0., 1.])), tf.float32) * 0, uniform(60 * M)),
    "Bincount": lambda: repeated(lambda x: x + tf.reduce_sum(tf1.bincount(x)) * 0, ints(60 * M, 1000)),
    "NonMaxSuppression": lambda: tf.image.non_max_suppression(uniform(60_000, 4), uniform(60_000), 60_000, 0.99),
    "CombinedNonMaxSuppression": lambda: tf.image.combined_non_max_suppression(uniform(1, 20_000, 1, 4), uniform(1, 20_000, 8), 20_000, 20_000, 0.99)[0],
    "SetIntersection": lambda: tf.sets.intersection(tf.cast(uniform(30_000, 200) * 1000, tf.int32), tf.cast(uniform(30_000, 200) * 1000, tf.int32)).values,
    "EditDistance": lambda: tf.edit_distance(tf.sparse.from_dense(tf.cast(uniform(1, 40_000) * 9 + 1, tf.int32)), tf.sparse.from_dense(tf.cast(uniform(1, 40_000) * 9 + 1, tf.int32))),
    # ---- moving
    "Transpose": lambda: repeated(tf.transpose, uniform(10_000, 10_000)),
    "Gather": lambda: repeated(lambda x: tf.gather(x, ints(50 * M, 50 * M)), uniform(50 * M)),
    "GatherNd": lambda: repeated(lambda x: tf.gather_nd(x, tf.expand_dims(ints(30 * M, 30 * M), 1)), uniform(30 * M)),
    "ScatterNd": lambda: repeated(lambda x: tf.scatter_nd(tf.expand_dims(ints(30 * M, 30 * M), 1), x, [30 * M]), uniform(30 * M)),
    "TensorScatter": lambda: repeated(lambda x: tf.tensor_scatter_nd_add(x, tf.expand_dims(ints(30 * M, 30 * M), 1), x), uniform(30 * M)),
    "UnsortedSegmentSum": lambda: repeated(lambda x: tf.math.unsorted_segment_sum(x, ints(50 * M, 50 * M), 50 * M), uniform(50 * M)),
    "SegmentSum": lambda: repeated(lambda x: x + tf.reduce_sum(tf.math.segment_sum(x, tf.range(50 * M) // 3)) * 0, uniform(50 * M)),
    "SparseSegmentSum": lambda: repeated(lambda x: x + tf.reduce_sum(tf.sparse.segment_sum(x, ints(20 * M, 10 * M), tf.range(20 * M) // 3)) * 0, uniform(10 * M, 1)),
    "DynamicPartition": lambda: repeated(lambda x: tf.reshape(tf.concat(tf.dynamic_partition(x, ints(30 * M, 4), 4), 0), [30 * M]), uniform(30 * M)),
    "DynamicStitch": lambda: repeated(lambda x: tf.dynamic_stitch([tf.range(50 * M)], [x]), uniform(50 * M)),
    "Reverse": lambda: repeated(lambda x: tf.reverse(x, [0]), uniform(200 * M)),
    "ReverseSequence": lambda: repeated(lambda x: tf.reverse_sequence(x, ints(1000, 50_000), 1, 0), uniform(1000, 50_000)),
    "Roll": lambda: repeated(lambda x: tf.roll(x, 3, 0), uniform(100 * M)),
    "Pad": lambda: repeated(lambda x: tf.pad(x, [[1, 1], [1, 1]])[1:-1, 1:-1], uniform(10_000, 10_000)),
    "MirrorPad": lambda: repeated(lambda x: tf.pad(x, [[1, 1], [1, 1]], "REFLECT")[1:-1, 1:-1], uniform(10_000, 10_000)),
    "Tile": lambda: tf.reduce_sum(tf.tile(uniform(1000, 1000), [30, 30])),
    "Concat": lambda: repeated(lambda x: tf.concat([x[M:], x[:M]], 0), uniform(200 * M)),
    "Fill": lambda: tf.fill([1_500_000_000], 1.0)[0] + tf.fill([1_400_000_000], 2.0)[1],
    "Range": lambda: repeated(lambda x: x + tf.cast(tf.range(300 * M)[7], tf.float32), tf.constant(0.)),
    "OneHot": lambda: tf.one_hot(ints(200_000, 5000), 5000),
    "SpaceToBatch": lambda: repeated(lambda x: tf.batch_to_space(tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]), [2, 2], [[0, 0], [0, 0]]), uniform(8, 1000, 1000, 8)),
    "ExtractPatches": lambda: tf.image.extract_patches(uniform(1, 2000, 2000, 3), [1, 11, 11, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
    "MatrixBandPart": lambda: repeated(lambda x: tf.linalg.band_part(x, -1, 5), uniform(12_000, 12_000)),
    # ---- random numbers
    "RandomNormal": lambda: tf.random.normal([700 * M]),
    "RandomUniform": lambda: repeated(lambda x: x + tf.random.uniform([100 * M])[0], tf.constant(0.)),
    "TruncatedNormal": lambda: tf.random.truncated_normal([500 * M]),
    "RandomGamma": lambda: tf.random.gamma([100 * M], 0.5),
    "RandomPoisson": lambda: tf.random.poisson([60 * M], 20.0),
    "RandomShuffle": lambda: tf.random.shuffle(uniform(100 * M)),
    "Multinomial": lambda: tf.random.categorical(uniform(10, 1000), 10 * M),
    "ParameterizedTruncatedNormal": lambda: tf.raw_ops.ParameterizedTruncatedNormal(shape=[100 * M], means=0., stdevs=1., minvals=-1., maxvals=2.),
    "StatelessNormal": lambda: tf.random.stateless_normal([700 * M], [1, 2]),
    "RandomIndexShuffle": lambda: tf.raw_ops.RandomIndexShuffle(index=tf.range(60 * M), seed=[1, 2, 3], max_index=60 * M - 1),
    # ---- images
    "ResizeBilinear": lambda: tf.image.resize(uniform(1, 1000, 1000, 3), [20_000, 10_000]),
    "ResizeBicubic": lambda: tf1.image.resize_bicubic(uniform(1, 1000, 1000, 3), [20_000, 10_000]),
    "ResizeArea": lambda: tf1.image.resize_area(uniform(1, 10_000, 10_000, 3), [777, 777]) * tf1.image.resize_area(uniform(1, 10_000, 10_000, 3), [777, 777]),
    "ScaleAndTranslate": lambda: tf.image.resize(uniform(1, 3000, 3000, 3), [9000, 9000], "lanczos5", antialias=True),
    "CropAndResize": lambda: tf.image.crop_and_resize(uniform(1, 1000, 1000, 3), uniform(300, 4), tf.zeros([300], tf.int32), [600, 600]),
    "AdjustHue": lambda: repeated(lambda x: tf.image.adjust_hue(x, 0.1), uniform(10 * M, 1, 3)),
    "AdjustContrast": lambda: repeated(lambda x: tf.image.adjust_contrast(x, 1.001), uniform(1, 8000, 8000, 3)),
    "ProjectiveTransform": lambda: tf.raw_ops.ImageProjectiveTransformV2(images=uniform(1, 8000, 8000, 3), transforms=[[1., .1, 0., .1, 1., 0., 0., 0.]], output_shape=[8000, 8000], interpolation="BILINEAR"),
    "EncodePng": lambda: tf.image.encode_png(tf.cast(uniform(8000, 8000, 3) * 255, tf.uint8)),
    "EncodeJpeg": lambda: tf.image.encode_jpeg(tf.cast(uniform(12_000, 12_000, 3) * 255, tf.uint8)),
    "DecodeJpeg": lambda: tf.image.decode_jpeg(tf.image.encode_jpeg(tf.zeros([12_000, 12_000, 3], tf.uint8))),
    # ---- recurrent, CTC
    "LSTM": lambda: tf.raw_ops.BlockLSTM(seq_len_max=tf.constant(2000, tf.int64), x=uniform(2000, 64, 256), cs_prev=uniform(64, 512), h_prev=uniform(64, 512), w=uniform(768, 2048), wci=uniform(512), wcf=uniform(512), wco=uniform(512), b=uniform(2048)).h,
    "CTCLoss": lambda: tf1.nn.ctc_loss(tf.sparse.from_dense(tf.cast(uniform(64, 400) * 20 + 1, tf.int32)), uniform(2000, 64, 30), tf.fill([64], 2000), ignore_longer_outputs_than_inputs=True, preprocess_collapse_repeated=True),
    "CTCBeamSearch": lambda: tf1.nn.ctc_beam_search_decoder(uniform(2000, 64, 30), tf.fill([64], 2000))[1],
    "CTCGreedy": lambda: tf1.nn.ctc_greedy_decoder(uniform(20_000, 64, 300), tf.fill([64], 20_000))[1],
    # ---- sparse and ragged
    "SparseReorder": lambda: tf.sparse.reorder(tf.SparseTensor(tf.stack([ints(20 * M, M, tf.int64), ints(20 * M, M, tf.int64)], 1), uniform(20 * M), [M, M])).values,
    "SparseReduceSum": lambda: tf.sparse.reduce_sum(sparse(20 * M), 0),
    "SparseAdd": lambda: tf.sparse.add(sparse(20 * M), sparse(20 * M)).values,
    "SparseSoftmax": lambda: tf.sparse.softmax(sparse(20 * M)).values,
    "SparseDenseMatMul": lambda: tf.sparse.sparse_dense_matmul(tf.SparseTensor(tf.stack([ints(20 * M, 1000, tf.int64), ints(20 * M, 1000, tf.int64)], 1), uniform(20 * M), [1000, 1000]), uniform(1000, 256)),
    "SparseToDense": lambda: tf.sparse.to_dense(sparse(50 * M)),
    "SparseConcat": lambda: tf.sparse.concat(0, [sparse(10 * M), sparse(10 * M)]).values,
    "SparseCross": lambda: tf.sparse.cross_hashed([sparse(16 * M), sparse(16 * M)]).values,
    "RaggedRange": lambda: tf.ragged.range(tf.zeros([M], tf.int64), tf.fill([M], tf.constant(300, tf.int64))).flat_values,
    "RaggedToTensor": lambda: tf.ragged.range(tf.zeros([M], tf.int64), tf.fill([M], tf.constant(100, tf.int64))).to_tensor(),
    # ---- strings
    "AsString": lambda: words(100 * M),
    "StringToNumber": lambda: tf.strings.to_number(words(30 * M)),
    "RegexReplace": lambda: tf.strings.regex_replace(words(20 * M), "1(.*)2", r"\1"),
    "StringSplit": lambda: tf1.string_split(words(20 * M), "1").values,
    "StringHash": lambda: tf.strings.to_hash_bucket_strong(words(20 * M), 1000, [1, 2]),
    "StringJoin": lambda: tf.strings.join([words(15 * M), words(15 * M)]),
    "StringReduceJoin": lambda: tf.strings.reduce_join(words(30 * M)),
    "Base64": lambda: tf.io.encode_base64(words(30 * M)),
    "UnicodeDecode": lambda: tf.strings.unicode_decode(words(10 * M), "UTF-8").flat_values,
    "StringNGrams": lambda: tf.strings.ngrams(tf.RaggedTensor.from_uniform_row_length(words(5 * M), M), 3).flat_values,
    # ---- loops and data
    "While": lambda: repeated(lambda x: x * 1.0000001, tf.constant(1.)),
    "Map": lambda: mapped(lambda i: tf.reduce_sum(tf.linalg.inv(tf.random.uniform([3000, 3000])))),
    "Map of small functions": lambda: tf1.data.make_one_shot_iterator(tf1.data.Dataset.range(1 << 40).filter(lambda i: i < 0)).get_next(),
    "Map of a loop": lambda: mapped(lambda i: tf.while_loop(lambda j, x: j < 1 << 40, lambda j, x: (j + 1, x * 1.00001), [tf.constant(0, tf.int64), tf.constant(1.)])[1]),
    "MapFn": lambda: tf.map_fn(lambda x: tf.reduce_sum(tf.linalg.inv(x)), uniform(2000, 300, 300)),
    "Parallel map": lambda: tf1.data.make_one_shot_iterator(tf1.data.Dataset.range(100).map(lambda i: tf.reduce_sum(tf.linalg.inv(tf.random.uniform([3000, 3000]))), num_parallel_calls=4)).get_next(),
}


def process_of(port):
    """The process that listens on this port of 127.0.0.1."""
    wanted = f"0100007F:{port:04X}"
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as f:
            for line in f.readlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[1].endswith(f":{port:04X}"):
                    inodes.add(f"socket:[{fields[9]}]")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                if os.readlink(f"/proc/{pid}/fd/{fd}") in inodes:
                    return int(pid)
        except OSError:
            pass
    sys.exit(f"nobody listens at {wanted}")


def cpu(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def went_on(pid, since):
    """How long after `since` the process went on computing, in seconds."""
    while True:
        before, begin = cpu(pid), time.monotonic()
        time.sleep(PROBE)
        # A tick of the clock that the system counts CPU time by is 10 ms; heartbeats take some.
        if cpu(pid) - before <= 0.021 or begin - since > 30:
            return max(0.0, begin - since)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--leat", required=True)
    ap.add_argument("--only", default="", help="a regular expression of kernels")
    ap.add_argument("--deadline", type=float, default=1.0, metavar="S")
    a = ap.parse_args()
    failures = []
    cluster = leat_cluster.Cluster(a.leat, workers=1)
    try:
        address = cluster.addresses[0]
        pid = process_of(int(address.split(":")[1]))
        for name, make in CASES.items():
            if not re.search(a.only, name):
                continue
            try:
                with tf.Graph().as_default() as graph:
                    with tf1.device("/job:ps/task:0"):
                        tensors = tf.nest.flatten(make())
                        end = tf.group(*[tf.identity(t) for t in tensors])
                    config = tf1.ConfigProto(operation_timeout_in_ms=int(a.deadline * 1000))
                    with tf1.Session("grpc://" + address, graph=graph, config=config) as session:
                        begin = time.monotonic()
                        try:
                            session.run(end)
                            what = "finished"
                        except tf.errors.OpError as error:
                            what = type(error).__name__
                            if not isinstance(error, tf.errors.DeadlineExceededError):
                                what += " " + error.message.splitlines()[0][:100]
                        answered = time.monotonic() - begin
                        after = went_on(pid, begin + min(a.deadline, answered)) if what != "finished" else 0
                    time.sleep(0.1)
            except Exception as error:  # the graph cannot be made, with this version of TensorFlow
                print(f"{name:34} cannot be tried: {error!r:.120}", flush=True)
                continue
            failed = after > LIMIT
            if failed:
                failures.append(name)
            print(f"{name:34} {what} after {answered:5.2f} s, went on for {after:5.2f} s, holds {resident(pid):6.0f} MB"
                  f"{'   <-- too long' if failed else ''}", flush=True)
    finally:
        cluster.stop()
    print(f"{len(failures)} went on for more than {LIMIT} s: {', '.join(failures)}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

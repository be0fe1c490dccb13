"""Training steps of seven usual networks in JAX, each step one jit-compiled function: those of ../models/networks.h.

  python3 jax_models.py --model cnn --batch 64 [--bf16]

Runs on the GPU that CUDA_VISIBLE_DEVICES names, if JAX has one; each step ends with its loss on the host, as Leat's does.
--bf16: the operands of products and convolutions are rounded to bfloat16, which add up in float32.
"""
import argparse
import os

import common

MODELS = ["mlp", "cnn", "resnet", "transformer", "lstm", "word2vec", "wide"]
ap = argparse.ArgumentParser()
ap.add_argument("--model", choices=MODELS, default="mlp")
ap.add_argument("--batch", type=int, default=64)
ap.add_argument("--seconds", type=float, default=5)
ap.add_argument("--loss-steps", type=int, default=10, help="first steps, whose losses are printed")
ap.add_argument("--threads", type=int, default=1)
ap.add_argument("--bf16", action="store_true", help="products and convolutions in bfloat16")
ap.add_argument("--busy", action="store_true", help="while another process computes on the last core")
a = ap.parse_args()
if a.busy:
    common.busy_core()
common.limit_threads(a.threads)
if a.threads == 1:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false " + os.environ.get("XLA_FLAGS", "")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

from model_numbers import Numbers  # noqa: E402

numbers = Numbers()
b = a.batch
rate = 0.01
parameters = {}  # by number: a network's layers refer to them


def variable(value):
    parameters[len(parameters)] = np.ascontiguousarray(value)
    return len(parameters) - 1


def full(n, value=0.0):
    return variable(np.full(n, value, np.float32))


def images(*shape):
    return jnp.asarray(numbers.reals(b, *shape))


def integers(*shape, limit):
    return jnp.asarray(numbers.integers(*shape, limit=limit))


def rounded(*operands):
    return [x.astype(jnp.bfloat16) for x in operands] if a.bf16 else operands


def product(x, y):
    return jnp.matmul(*rounded(x, y), preferred_element_type=jnp.float32)


def dense(i, o):
    w, bias = variable(numbers.weights(i, o)), full(o)
    return lambda p, x: product(x, p[w]) + p[bias]


def convolution(i, o, size, strides=1, bias=True):
    w = variable(numbers.weights(size, size, i, o))
    offset = full(o) if bias else None

    def run(p, x):
        y = lax.conv_general_dilated(*rounded(x, p[w]), (strides, strides), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        y = y.astype(jnp.float32)
        return y if offset is None else y + p[offset]
    return run


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def classified(logits, *inputs):
    """The loss of parameters and data: the inputs of `logits`, then the labels."""
    return (lambda p, data: cross_entropy(logits(p, *data[:-1]), data[-1])), (*inputs, integers(b, limit=10))


def mlp():
    x = images(784)
    first, second, last = dense(784, 256), dense(256, 128), dense(128, 10)
    return classified(lambda p, x: last(p, jax.nn.relu(second(p, jax.nn.relu(first(p, x))))), x)


def cnn():
    x = images(28, 28, 1)
    first, second, third, last = convolution(1, 32, 5), convolution(32, 64, 5), dense(3136, 512), dense(512, 10)

    def logits(p, x):
        h = pool(jax.nn.relu(second(p, pool(jax.nn.relu(first(p, x))))))
        return last(p, jax.nn.relu(third(p, h.reshape(b, 3136))))
    return classified(logits, x)


def resnet():
    def norm(n):
        scale, offset = full(n, 1.0), full(n)

        def run(p, x):
            mean = x.mean((0, 1, 2))
            variance = jnp.square(x - mean).mean((0, 1, 2))
            return (x - mean) * lax.rsqrt(variance + 1e-3) * p[scale] + p[offset]
        return run
    x = images(32, 32, 3)
    first, first_norm, blocks, c = convolution(3, 16, 3, bias=False), norm(16), [], 16
    for o in (16, 16, 16, 32, 32, 32, 64, 64, 64):
        strides = 1 if c == o else 2
        shortcut = None if c == o else convolution(c, o, 1, strides, bias=False)
        blocks.append((shortcut, convolution(c, o, 3, strides, bias=False), norm(o), convolution(o, o, 3, bias=False), norm(o)))
        c = o
    last = dense(64, 10)

    def logits(p, x):
        h = jax.nn.relu(first_norm(p, first(p, x)))
        for shortcut, c1, n1, c2, n2 in blocks:
            inner = n2(p, c2(p, jax.nn.relu(n1(p, c1(p, h)))))
            h = jax.nn.relu((shortcut(p, h) if shortcut else h) + inner)
        return last(p, h.mean((1, 2)))
    return classified(logits, x)


def transformer(t=64, d=128, heads=4, hidden=512):
    def norm():
        scale, offset = full(d, 1.0), full(d)

        def run(p, x):
            mean = x.mean(-1, keepdims=True)
            variance = jnp.square(x - mean).mean(-1, keepdims=True)
            return (x - mean) * lax.rsqrt(variance + 1e-5) * p[scale] + p[offset]
        return run
    x = images(t, d)
    layers = [(norm(), dense(d, 3 * d), dense(d, d), norm(), dense(d, hidden), dense(hidden, d)) for _ in range(2)]
    last = dense(d, 10)

    def logits(p, x):
        h = x
        for n1, qkv, mix, n2, up, down in layers:
            q, k, v = (part.reshape(b, t, heads, d // heads) for part in jnp.split(qkv(p, n1(p, h)), 3, -1))
            attended = jax.nn.dot_product_attention(*rounded(q, k, v)).astype(jnp.float32)
            h = h + mix(p, attended.reshape(b, t, d))
            h = h + down(p, jax.nn.relu(up(p, n2(p, h))))
        return last(p, h.mean(1))
    return classified(logits, x)


def lstm(t=50, d=128, n=256):
    x = images(t, d).transpose(1, 0, 2)
    kernel, recurrent = variable(numbers.weights(d, 4 * n)), variable(numbers.weights(n, 4 * n))
    bias = variable(np.where((np.arange(4 * n) // n) == 1, 1, 0).astype(np.float32))  # 1 for the forget gate
    last = dense(n, 10)

    def logits(p, x):
        def step(state, projected):
            h, c = state
            i, f, g, o = jnp.split(projected + product(h, p[recurrent]), 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        zero = jnp.zeros((b, n))
        (h, _), out = lax.scan(step, (zero, zero), product(x, p[kernel]) + p[bias])
        return last(p, h + out.mean(0))
    return classified(logits, x)


def dense_step(loss):
    def step(p, data):
        value, slopes = jax.value_and_grad(loss)(p, data)
        return {k: p[k] - rate * slopes[k] for k in p}, value
    return step


# Of tables, only the rows that a step has read are updated: the gradients are those of the rows.

def word2vec(words=100000, d=128, negatives=64):
    centres, contexts = variable(numbers.rows(words, d)), variable(numbers.rows(words, d))
    ids = [integers(n, limit=words) for n in (b, b, negatives)]

    def loss(rows):
        e, y, no = rows
        return (jax.nn.softplus(-(e * y).sum(1)) + jax.nn.softplus(product(e, no.T)).sum(1)).mean()

    def step(p, ids):
        tables = (centres, contexts, contexts)
        value, slopes = jax.value_and_grad(loss)([p[table][i] for table, i in zip(tables, ids)])
        p = dict(p)
        for table, i, slope in zip(tables, ids, slopes):
            p[table] = p[table].at[i].add(-rate * slope)
        return p, value
    return step, ids


def wide(columns=1000000):
    ids = integers(b, 40, limit=columns)
    table, bias = full((columns, 1)), full(1)
    y = integers(b, limit=2).astype(jnp.float32)

    def loss(rows, offset, y):
        x = rows.sum(1)[:, 0] + offset
        return (jax.nn.softplus(x) - x * y).mean()

    def step(p, data):
        ids, y = data
        value, (of_rows, of_bias) = jax.value_and_grad(loss, (0, 1))(p[table][ids], p[bias], y)
        return {table: p[table].at[ids].add(-rate * of_rows), bias: p[bias] - rate * of_bias}, value
    return step, (ids, y)


made, data = globals()[a.model]()
compiled = jax.jit(made if a.model in ("word2vec", "wide") else dense_step(made), donate_argnums=0)
parameters = {k: jnp.asarray(v) for k, v in parameters.items()}


def step():
    global parameters
    parameters, loss = compiled(parameters, data)
    return float(loss)


losses = [step() for _ in range(a.loss_steps)]
t = common.timed_for(step, a.seconds)
common.report("model_" + a.model, f"jax {jax.__version__}", {**vars(a), "device": jax.devices()[0].platform}, t, "step",
              losses=losses, samples_per_s=b / t[len(t) // 2])

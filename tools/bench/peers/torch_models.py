"""Training steps of seven usual networks in torch, eager, in process: those of ../models/networks.h.

  python3 torch_models.py --model cnn --batch 64 [--device cuda [--bf16]]

On a GPU set CUDA_VISIBLE_DEVICES; each step ends with its loss on the host, as Leat's does. --bf16: under autocast.
"""
import argparse

import common

MODELS = ["mlp", "cnn", "resnet", "transformer", "lstm", "word2vec", "wide"]
ap = argparse.ArgumentParser()
ap.add_argument("--model", choices=MODELS, default="mlp")
ap.add_argument("--batch", type=int, default=64)
ap.add_argument("--seconds", type=float, default=5)
ap.add_argument("--loss-steps", type=int, default=10, help="first steps, whose losses are printed")
ap.add_argument("--threads", type=int, default=1)
ap.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
ap.add_argument("--bf16", action="store_true", help="products and convolutions in bfloat16")
ap.add_argument("--busy", action="store_true", help="while another process computes on the last core")
a = ap.parse_args()
if a.busy:
    common.busy_core()
common.limit_threads(a.threads)
import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from model_numbers import Numbers  # noqa: E402

torch.set_num_threads(a.threads)
numbers = Numbers()
variables = []
b = a.batch


def tensor(array):
    return torch.from_numpy(array).to(a.device)


def variable(value):
    variables.append(tensor(np.ascontiguousarray(value)).requires_grad_())
    return variables[-1]


def full(n, value=0.0):
    return variable(np.full(n, value, np.float32))


def images(*shape):
    """[batch, height, width, channels] as torch has it: the channels are the second axis, but lie together in memory."""
    x = tensor(numbers.reals(b, *shape))
    return x.permute(0, 3, 1, 2) if len(shape) == 3 else x


def integers(*shape, limit):
    return tensor(numbers.integers(*shape, limit=limit)).long()


def dense(i, o):
    w, bias = variable(numbers.weights(i, o).T), full(o)
    return lambda x: F.linear(x, w, bias)


def convolution(i, o, size, strides=1, bias=True):
    w = variable(numbers.weights(size, size, i, o).transpose(3, 2, 0, 1))
    w.data = w.data.to(memory_format=torch.channels_last)
    offset = full(o) if bias else None
    if strides == 2 and size == 3:  # the others pad even sizes at the end only
        return lambda x: F.conv2d(F.pad(x, (0, 1, 0, 1)), w, offset, strides)
    return lambda x: F.conv2d(x, w, offset, strides, padding=size // 2)


def mlp():
    x = images(784)
    first, second, last = dense(784, 256), dense(256, 128), dense(128, 10)
    return lambda: last(F.relu(second(F.relu(first(x)))))


def cnn():
    x = images(28, 28, 1)
    first, second, third, last = convolution(1, 32, 5), convolution(32, 64, 5), dense(3136, 512), dense(512, 10)

    def logits():
        h = F.max_pool2d(F.relu(second(F.max_pool2d(F.relu(first(x)), 2))), 2)
        return last(F.relu(third(h.permute(0, 2, 3, 1).reshape(b, 3136))))
    return logits


def resnet():
    def norm(n):
        scale, offset = full(n, 1.0), full(n)
        return lambda x: F.batch_norm(x, None, None, scale, offset, training=True, eps=1e-3)
    x = images(32, 32, 3)
    first, first_norm, blocks, c = convolution(3, 16, 3, bias=False), norm(16), [], 16
    for o in (16, 16, 16, 32, 32, 32, 64, 64, 64):
        strides = 1 if c == o else 2
        shortcut = None if c == o else convolution(c, o, 1, strides, bias=False)
        blocks.append((shortcut, convolution(c, o, 3, strides, bias=False), norm(o), convolution(o, o, 3, bias=False), norm(o)))
        c = o
    last = dense(64, 10)

    def logits():
        h = F.relu(first_norm(first(x)))
        for shortcut, c1, n1, c2, n2 in blocks:
            h = F.relu((shortcut(h) if shortcut else h) + n2(c2(F.relu(n1(c1(h))))))
        return last(h.mean((2, 3)))
    return logits


def transformer(t=64, d=128, heads=4, hidden=512):
    def norm():
        scale, offset = full(d, 1.0), full(d)
        return lambda x: F.layer_norm(x, [d], scale, offset, 1e-5)
    x = images(t, d)
    layers = [(norm(), dense(d, 3 * d), dense(d, d), norm(), dense(d, hidden), dense(hidden, d)) for _ in range(2)]
    last = dense(d, 10)

    def logits():
        h = x
        for n1, qkv, mix, n2, up, down in layers:
            q, k, v = (part.reshape(b, t, heads, d // heads).transpose(1, 2) for part in qkv(n1(h)).split(d, -1))
            h = h + mix(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
            h = h + down(F.relu(up(n2(h))))
        return last(h.mean(1))
    return logits


def lstm(t=50, d=128, n=256):
    x = images(t, d).transpose(0, 1).contiguous()
    layer = torch.nn.LSTM(d, n).to(a.device)
    layer.bias_hh_l0.requires_grad_(False)  # a second bias of the same gates
    with torch.no_grad():
        layer.weight_ih_l0.copy_(tensor(numbers.weights(d, 4 * n).T))
        layer.weight_hh_l0.copy_(tensor(numbers.weights(n, 4 * n).T))
        layer.bias_ih_l0.zero_()[n:2 * n] = 1.0  # of the forget gate
        layer.bias_hh_l0.zero_()
    variables.extend(p for p in layer.parameters() if p.requires_grad)
    last = dense(n, 10)

    def logits():
        out, (h, _) = layer(x)
        return last(h[0] + out.mean(0))
    return logits


def word2vec(words=100000, d=128, negatives=64):
    centres, contexts = variable(numbers.rows(words, d)), variable(numbers.rows(words, d))
    ids = [integers(n, limit=words) for n in (b, b, negatives)]

    def loss():
        e, y, no = (F.embedding(i, table, sparse=True) for i, table in zip(ids, (centres, contexts, contexts)))
        return (F.softplus(-(e * y).sum(1)) + F.softplus(e @ no.T).sum(1)).mean()
    return loss


def wide(columns=1000000):
    ids = integers(b, 40, limit=columns)
    table, bias = full((columns, 1)), full(1)
    y = integers(b, limit=2).float()
    return lambda: F.binary_cross_entropy_with_logits(F.embedding(ids, table, sparse=True).sum(1)[:, 0] + bias, y)


forward = globals()[a.model]()
if a.model in ("word2vec", "wide"):
    loss_of = forward
else:
    labels = integers(b, limit=10)
    loss_of = lambda: F.cross_entropy(forward(), labels)  # noqa: E731
optimizer = torch.optim.SGD(variables, lr=0.01)


def step():
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(a.device, torch.bfloat16, enabled=a.bf16):
        loss = loss_of()
    loss.backward()
    optimizer.step()
    return loss.detach() if a.device == "cpu" else loss.item()


losses = [float(step()) for _ in range(a.loss_steps)]
t = common.timed_for(step, a.seconds)
common.report("model_" + a.model, f"torch {torch.__version__}", vars(a), t, "step", losses=losses, samples_per_s=b / t[len(t) // 2])

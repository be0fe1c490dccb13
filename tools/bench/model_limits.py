"""What a training step of the networks of models/networks.h needs at least, whatever the program (README.md, "limit")."""

CACHE = 4 << 20  # what is larger is read from memory and written there


class Needs:
    """Operations of products, and floats: of the batch, of what forward keeps for backward, of variables, and of those that
    backward reads again."""

    def __init__(self):
        self.operations = self.batch = self.kept = self.variables = self.later = 0

    def product(self, rows, inputs, units, reads=None, biases=None, is_first=False):
        """A layer [rows, inputs] x [inputs, units], which reads so many floats (a convolution: its image)."""
        reads = rows * inputs if reads is None else reads
        self.operations += 2 * rows * inputs * units * (2 if is_first else 3)  # forward, slope of weights, slope of inputs
        self.variables += inputs * units + (units if biases is None else biases)
        if is_first:
            self.batch += reads
        else:
            self.later += inputs * units
            self.kept += reads

    def convolution(self, batch, side, channels, filters, size, strides=1, biases=0, is_first=False):
        """Of square images; returns the side of the result."""
        out = side // strides
        self.product(batch * out * out, size * size * channels, filters, batch * side * side * channels, biases, is_first)
        return out

    def inner(self, count, rows, inputs, columns):
        """`count` products of two matrices of which neither is a variable."""
        self.operations += 3 * 2 * count * rows * inputs * columns
        self.kept += count * inputs * (rows + columns)

    def seconds(self, rates):
        def moved(floats):
            return 4 * floats / rates["cache_bytes_per_s" if 4 * floats <= CACHE else "memory_bytes_per_s"]
        # Variables are read, their gradients written; the update reads both and writes the variables. What is kept is
        # written, and read.
        return (self.operations / rates["flops_per_s"] + 4 * self.batch / rates["memory_bytes_per_s"]
                + 2 * moved(self.kept) + 5 * moved(self.variables) + moved(self.later))


def mlp(n, b):
    n.product(b, 784, 256, is_first=True)
    n.product(b, 256, 128)
    n.product(b, 128, 10)


def cnn(n, b):
    n.convolution(b, 28, 1, 32, 5, biases=32, is_first=True)
    n.convolution(b, 14, 32, 64, 5, biases=64)
    n.product(b, 3136, 512)
    n.product(b, 512, 10)


def resnet(n, b):
    side, channels = n.convolution(b, 32, 3, 16, 3, biases=2 * 16, is_first=True), 16  # scales and offsets of the norms
    for filters in (16, 16, 16, 32, 32, 32, 64, 64, 64):
        strides = 1 if channels == filters else 2
        if strides == 2:
            n.convolution(b, side, channels, filters, 1, strides)
        side = n.convolution(b, side, channels, filters, 3, strides, biases=2 * filters)
        n.convolution(b, side, filters, filters, 3, biases=2 * filters)
        channels = filters
    n.product(b, 64, 10)


def transformer(n, b, t=64, d=128, heads=4, hidden=512):
    n.batch += b * t * d
    for _ in range(2):
        n.variables += 4 * d  # of the norms
        n.product(b * t, d, 3 * d)
        n.inner(b * heads, t, d // heads, t)
        n.inner(b * heads, t, t, d // heads)
        n.product(b * t, d, d)
        n.product(b * t, d, hidden)
        n.product(b * t, hidden, d)
    n.product(b, d, 10)


def lstm(n, b, t=50, d=128, units=256):
    n.product(t * b, d, 4 * units, is_first=True)
    n.product(t * b, units, 4 * units, biases=0)
    n.product(b, units, 10)


def word2vec(n, b, d=128, negatives=64):
    n.variables += (2 * b + negatives) * d  # the rows that are read
    n.inner(1, b, d, negatives)


def wide(n, b):
    n.batch += 40 * b
    n.variables += 40 * b + 1


MODELS = {"mlp": mlp, "cnn": cnn, "resnet": resnet, "transformer": transformer, "lstm": lstm, "word2vec": word2vec, "wide": wide}


def model_limit(model, batch):
    """A function of the rates that peers/machine_rates.py prints: seconds of a step."""
    needs = Needs()
    MODELS[model](needs, batch)
    return needs.seconds

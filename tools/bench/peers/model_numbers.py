"""The first values of the networks in tf_models.py, torch_models.py and jax_models.py: the same as those of ../models/networks.cc, so
that losses can be compared. They depend on how many tensors were drawn before, and on the place of the element."""
import numpy as np


class Numbers:
    def __init__(self):
        self.drawn = 0

    def bits(self, shape):
        """24 bits for each element: a hash of Wellons' ("lowbias32", 2018)."""
        x = np.arange(int(np.prod(shape)), dtype=np.uint32)
        x += np.uint32(self.drawn * 0x9E3779B9 % 2 ** 32)
        self.drawn += 1
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            x ^= x >> np.uint32(shift)
            x *= np.uint32(factor)
        x ^= x >> np.uint32(16)
        return (x >> np.uint32(8)).reshape(shape)

    def reals(self, *shape, deviation=1):
        """Evenly distributed around 0, with that standard deviation."""
        width = np.float32(np.sqrt(12.0) * deviation)
        return (self.bits(shape).astype(np.float32) * np.float32(2 ** -24) - np.float32(0.5)) * width

    def weights(self, *shape):
        """Variance 1 / inputs of a unit."""
        return self.reals(*shape, deviation=1 / np.sqrt(float(np.prod(shape[:-1]))))

    def rows(self, count, features):
        """Rows of length about 1."""
        return self.reals(count, features, deviation=1 / np.sqrt(float(features)))

    def integers(self, *shape, limit):
        """From 0 to limit - 1."""
        return (self.bits(shape) % np.uint32(limit)).astype(np.int32)

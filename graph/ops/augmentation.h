// Images changed at random to train with more of them, and the parts and colours beside images.h.
// Images are [height, width, channels] or [batch, height, width, channels].
#pragma once

#include "graph/ops/images.h"
#include "graph/ops/random.h"

namespace leat {

// The middle of each image, `fraction` of its height and width, in (0, 1]: with h = height,
// ⌊(h - h · fraction) / 2⌋ rows are cut off at either end. tf.image.central_crop.
Output central_crop(Output images, double fraction, Location at = here());
// 0.2989 red + 0.587 green + 0.114 blue: [..., 3] becomes [..., 1]. Floating-point numbers.
// tf.image.rgb_to_grayscale.
Output rgb_to_grayscale(Output images, Location at = here());

namespace random {

// Each image mirrored with probability 1/2. tf.image.random_flip_left_right.
Output flip_left_right(Output images, SeedOptions options = {}, Location at = here());
Output flip_up_down(Output images, SeedOptions options = {}, Location at = here());
// All images plus one number in [-maximum, maximum), maximum not negative. Floating-point numbers.
// tf.image.random_brightness.
Output brightness(Output images, double maximum, SeedOptions options = {}, Location at = here());
// adjust_contrast() with one factor in [low, high), low not negative. Floating-point numbers.
// tf.image.random_contrast.
Output contrast(Output images, double low, double high, SeedOptions options = {},
                Location at = here());

}  // namespace random
}  // namespace leat

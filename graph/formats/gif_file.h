// GIF files: CompuServe, "Graphics Interchange Format, version 89a", 1990.
#pragma once

#include <string_view>

#include "graph/formats/image_file.h"

namespace leat {

// RGB frames of one size, one below the other in one image of frames * height rows.
struct Animation {
  int64_t frames = 0;
  Image image;
};

// As TensorFlow shows them: a canvas as large as the largest frame, black at first, on which every
// frame is drawn over the one before. A damaged frame ends the animation; INVALID_ARGUMENT if it is
// the first. RESOURCE_EXHAUSTED for more than 2^31 values.
Animation decode_gif(std::string_view file, bool only_first = false);

}  // namespace leat

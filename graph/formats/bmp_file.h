// BMP files, uncompressed: 8 bits of gray, 24 of colour, or 32 of colour and opacity per pixel.
#pragma once

#include <string_view>

#include "graph/formats/image_file.h"

namespace leat {

// `channels`: 3, 4, or 0 for those of the file. INVALID_ARGUMENT says what is wrong with the file.
Image decode_bmp(std::string_view file, int channels);

}  // namespace leat

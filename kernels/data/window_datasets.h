// Windows: elements that have been read, as a dataset that functions take.
#pragma once

#include <vector>

#include "kernels/data/dataset.h"

namespace leat {

ElementSource::Pointer window_of(std::vector<Element> elements, ElementTypes types);
Tensor window_tensor(std::vector<Element> elements, ElementTypes types);

}  // namespace leat

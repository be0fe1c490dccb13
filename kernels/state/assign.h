// Kernels of plain assignments, the same for references and resources; `type_attr` holds the
// element type: "T", "dtype". Input 0 is the variable, input 1 the value.
#pragma once

#include <string>
#include <vector>

#include "core/kernel.h"

namespace leat {

// variable = value
std::vector<Kernel> assign_kernels(const std::string& type_attr);
// variable = variable + value
std::vector<Kernel> assign_add_kernels(const std::string& type_attr);
// variable = variable - value
std::vector<Kernel> assign_sub_kernels(const std::string& type_attr);

}  // namespace leat

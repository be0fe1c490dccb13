// Defines an op that Leat has, in another way: what op_library_test.cc loads.
#include "graph/op_def.h"

namespace leat {
namespace {

const Op relu{{.name = "Relu", .doc = "y = x", .inputs = {"x: float"}, .outputs = {"y: float"}}};

}  // namespace
}  // namespace leat

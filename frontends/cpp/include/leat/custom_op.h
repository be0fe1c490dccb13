// Custom ops and kernels.
#pragma once

#include "core/kernel.h"
#include "core/visit_dtype.h"
#include "graph/gradient.h"
#include "graph/op_def.h"
#include "graph/op_library.h"
#include "graph/shape_inference.h"

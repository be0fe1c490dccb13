// All builder functions of C++ programs, by topic. What gradients and passes build besides is in
// graph/ops/raw.h.
//   Output h = relu(matmul(x, w) + b);
#pragma once

#include "graph/ops/arrays.h"
#include "graph/ops/control.h"
#include "graph/ops/images.h"
#include "graph/ops/linear_algebra.h"
#include "graph/ops/math.h"
#include "graph/ops/neural.h"
#include "graph/ops/random.h"
#include "graph/ops/sparse.h"
#include "graph/ops/strings.h"
#include "graph/ops/summaries.h"
#include "graph/ops/variables.h"

// All that a program needs. Its parts may be included alone, which compiles faster; custom ops need
// <leat/custom_op.h>.
#pragma once

#include <cmath>

#include "frontends/cpp/include/leat/checkpoints.h"
#include "frontends/cpp/include/leat/cluster.h"
#include "frontends/cpp/include/leat/control_flow.h"
#include "frontends/cpp/include/leat/data.h"
#include "frontends/cpp/include/leat/datasets.h"
#include "frontends/cpp/include/leat/error.h"
#include "frontends/cpp/include/leat/gradient.h"
#include "frontends/cpp/include/leat/graph.h"
#include "frontends/cpp/include/leat/nn.h"
#include "frontends/cpp/include/leat/ops.h"
#include "frontends/cpp/include/leat/optimizers.h"
#include "frontends/cpp/include/leat/partitioned_variables.h"
#include "frontends/cpp/include/leat/session.h"
#include "frontends/cpp/include/leat/state.h"
#include "frontends/cpp/include/leat/strategies.h"
#include "frontends/cpp/include/leat/tensor.h"
#include "frontends/cpp/include/leat/training.h"
#include "frontends/cpp/include/leat/variables.h"

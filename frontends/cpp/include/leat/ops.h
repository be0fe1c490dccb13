// Builder functions: mathematics, arrays, activations, strings, …
#pragma once

#include "frontends/cpp/other_names.h"
#include "graph/ops.h"
#include "graph/ops/augmentation.h"
#include "graph/ops/seed.h"
#include "graph/ops/sequences.h"
#include "graph/ops/statistics.h"
#include "graph/ops/volumes.h"

// Builder functions: mathematics, arrays, activations, strings, …
#pragma once

#include "graph/ops.h"

// A custom op.
#pragma once

#include <leat/ops.h>

// y = x / (1 + exp(-beta · x)), elementwise. Ramachandran, Zoph and Le, arXiv:1710.05941.
leat::Output swish(leat::Output x, float beta = 1, leat::Location at = leat::here());

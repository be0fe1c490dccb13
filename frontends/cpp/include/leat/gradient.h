// gradients(ys, xs), jacobian(y, x), hessians(y, xs), custom_gradient(f, backward, x).
#pragma once

#include "frontends/cpp/control_flow/custom_gradient.h"
#include "frontends/cpp/control_flow/jacobian.h"
#include "graph/gradient.h"

// gradients(ys, xs).
#pragma once

#include "graph/gradient.h"

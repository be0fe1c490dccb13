// Layers, losses and metrics.
#pragma once

#include "frontends/cpp/nn/nn.h"

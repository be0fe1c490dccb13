// All optimizers.
#pragma once

#include "frontends/cpp/optimizers/adam.h"
#include "frontends/cpp/optimizers/adaptive.h"
#include "frontends/cpp/optimizers/gradient_descent.h"
#include "frontends/cpp/optimizers/layerwise.h"
#include "frontends/cpp/optimizers/proximal.h"
#include "frontends/cpp/optimizers/sign.h"

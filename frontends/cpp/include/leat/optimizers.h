// Optimizers, learning-rate schedules, clipping, moving averages.
#pragma once

#include "frontends/cpp/optimizers/gradient_clipping.h"
#include "frontends/cpp/optimizers/moving_average.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/optimizers/schedules.h"

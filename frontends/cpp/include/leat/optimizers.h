// Optimizers, learning-rate schedules, clipping, moving averages.
#pragma once

#include "frontends/cpp/gradient_clipping.h"
#include "frontends/cpp/moving_average.h"
#include "frontends/cpp/optimizers.h"
#include "frontends/cpp/schedules.h"

// The loop around a step: checkpoints, hooks, a line of progress.
#pragma once

#include "frontends/cpp/progress.h"
#include "frontends/cpp/training_hooks.h"
#include "frontends/cpp/training_session.h"

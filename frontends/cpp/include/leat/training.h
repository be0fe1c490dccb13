// The loop around a step: checkpoints, hooks, a line of progress.
#pragma once

#include "frontends/cpp/training/progress.h"
#include "frontends/cpp/training/training_hooks.h"
#include "frontends/cpp/training/training_session.h"
#include "graph/formats/event_file.h"

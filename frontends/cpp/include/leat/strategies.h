// Ways to train on many tasks.
#pragma once

#include "frontends/cpp/strategies/all_reduce.h"
#include "frontends/cpp/strategies/parameter_server.h"

// Ways to train on many tasks.
#pragma once

#include "frontends/cpp/all_reduce.h"
#include "frontends/cpp/parameter_server.h"

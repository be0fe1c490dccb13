// Variables and how they begin.
#pragma once

#include "frontends/cpp/initializers.h"
#include "frontends/cpp/variables.h"

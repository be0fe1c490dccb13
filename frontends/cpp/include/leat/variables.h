// Variables and their initialisers.
#pragma once

#include "frontends/cpp/initializers.h"
#include "frontends/cpp/variables.h"

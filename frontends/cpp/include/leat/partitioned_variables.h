// Tables in parts, and lookups of their rows.
#pragma once

#include "frontends/cpp/strategies/embedding_lookup.h"
#include "frontends/cpp/strategies/partitioned_variables.h"
#include "frontends/cpp/strategies/partitioners.h"

// Tables in parts, and lookups of their rows.
#pragma once

#include "frontends/cpp/strategies/parts/embedding_lookup.h"
#include "frontends/cpp/strategies/parts/partitioned_variables.h"
#include "frontends/cpp/strategies/parts/partitioners.h"

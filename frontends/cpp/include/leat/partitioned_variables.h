// Tables in parts, and lookups of their rows.
#pragma once

#include "frontends/cpp/embedding_lookup.h"
#include "frontends/cpp/partitioned_variables.h"
#include "frontends/cpp/partitioners.h"

// State beside variables: queues, accumulators, clocks, tables, counters, staging areas.
#pragma once

#include "frontends/cpp/state/accumulator.h"
#include "frontends/cpp/state/clock.h"
#include "frontends/cpp/state/counter.h"
#include "frontends/cpp/state/queue.h"
#include "frontends/cpp/state/staging_area.h"
#include "frontends/cpp/state/table.h"

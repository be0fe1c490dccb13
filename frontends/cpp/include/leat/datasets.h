// Input pipelines: sources, transformations, batches.
#pragma once

#include "frontends/cpp/data/csv.h"
#include "frontends/cpp/data/dataset.h"
#include "frontends/cpp/data/record_writer.h"

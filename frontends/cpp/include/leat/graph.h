// The graph, its nodes and scopes; graphs as files.
#pragma once

#include "frontends/cpp/graph_files.h"
#include "graph/graph.h"
#include "graph/import/graph_def.h"

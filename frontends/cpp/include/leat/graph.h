// The graph, its nodes and scopes.
#pragma once

#include "graph/graph.h"
#include "graph/import/graph_def.h"

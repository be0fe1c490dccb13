// The graph, its nodes and scopes.
#pragma once

#include "graph/graph.h"

// Session: runs a graph, in this process or on a cluster.
#pragma once

#include "frontends/cpp/session.h"

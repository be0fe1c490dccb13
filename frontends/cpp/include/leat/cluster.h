// This program's place in a cluster.
#pragma once

#include "frontends/cpp/cluster.h"

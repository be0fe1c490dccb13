// MNIST's files, drawn digits, batches.
#pragma once

#include "frontends/cpp/data/data.h"

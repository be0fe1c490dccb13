// TensorFlow's checkpoints: saved and restored with a graph, or read and written without one.
#pragma once

#include "frontends/cpp/training/saver.h"
#include "graph/formats/checkpoint.h"

// TensorFlow's checkpoints.
#pragma once

#include "frontends/cpp/training/saver.h"

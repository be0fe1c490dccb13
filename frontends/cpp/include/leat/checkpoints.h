// TensorFlow's checkpoints.
#pragma once

#include "frontends/cpp/saver.h"

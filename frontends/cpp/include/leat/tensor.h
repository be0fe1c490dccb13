// Tensors, their dtypes and shapes.
#pragma once

#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"

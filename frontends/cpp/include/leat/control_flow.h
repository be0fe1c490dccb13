// cond, switch_case, while_loop, map_fn, scan, function; lists that loops fill.
#pragma once

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/control_flow/function.h"
#include "frontends/cpp/control_flow/map_fn.h"
#include "frontends/cpp/control_flow/tensor_list.h"
#include "frontends/cpp/control_flow/while_loop.h"

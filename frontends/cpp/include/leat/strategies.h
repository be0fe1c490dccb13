// Ways to train on many tasks.
#pragma once

#include "frontends/cpp/strategies/admm.h"
#include "frontends/cpp/strategies/all_reduce.h"
#include "frontends/cpp/strategies/backup_workers.h"
#include "frontends/cpp/strategies/downpour.h"
#include "frontends/cpp/strategies/easgd.h"
#include "frontends/cpp/strategies/hogwild.h"
#include "frontends/cpp/strategies/local_sgd.h"
#include "frontends/cpp/strategies/multiverso.h"
#include "frontends/cpp/strategies/one_device.h"
#include "frontends/cpp/strategies/parameter_server.h"
#include "frontends/cpp/strategies/parts/collectives.h"
#include "frontends/cpp/strategies/parts/compress.h"
#include "frontends/cpp/strategies/pipeline_parallel.h"
#include "frontends/cpp/strategies/strategy.h"
#include "frontends/cpp/strategies/tensor_parallel.h"

// leat::Error, the exception that Leat throws: a code and a message.
#pragma once

#include "core/error.h"

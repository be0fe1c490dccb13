// What is thrown: leat::Error, with a code and a message.
#pragma once

#include "core/error.h"

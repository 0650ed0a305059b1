// All optimizers, and helpers for training steps.
#pragma once
#include "meshard/optim/fsdp.h"
#include "meshard/optim/gradients.h"
#include "meshard/optim/optimizers.h"
#include "meshard/optim/schedule.h"

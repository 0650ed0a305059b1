// All optimizers, and helpers for training steps.
#pragma once
#include "meshard/optim/accumulate.h"
#include "meshard/optim/adam.h"
#include "meshard/optim/clip.h"
#include "meshard/optim/fsdp.h"
#include "meshard/optim/loss_scale.h"
#include "meshard/optim/schedule.h"
#include "meshard/optim/sgd.h"

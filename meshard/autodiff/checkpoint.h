// checkpoint: memory for time. What a function computes on the way forward is not kept for the way
// back but computed again.
#pragma once
#include "meshard/ops/checkpoint.h"
#include "meshard/ops/checkpoint_name.h"

// All layers, initializers and losses. <meshard/meshard.h> has those of nn.h only, because fewer
// programs use the others.
#pragma once
#include "meshard/nn/batch_norm.h"
#include "meshard/nn/conv.h"
#include "meshard/nn/lora.h"
#include "meshard/nn/losses.h"
#include "meshard/nn/nn.h"
#include "meshard/nn/recurrent.h"
#include "meshard/nn/variance_scaling.h"

// All layers. A layer consists of a struct of its parameters, a `make_` function that creates them,
// and a function of the parameters and the input.
#pragma once
#include "meshard/nn/attention.h"
#include "meshard/nn/axis_rules.h"
#include "meshard/nn/initializer.h"
#include "meshard/nn/layers.h"
#include "meshard/nn/linear.h"
#include "meshard/nn/maker.h"
#include "meshard/nn/mlp.h"
#include "meshard/nn/norm.h"

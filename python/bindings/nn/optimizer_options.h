// Options of optimizers, as Python's classes have them.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>

#include "meshard/optim/optim.h"

namespace meshard::python {

/// A number, a Schedule, or a function of the step.
/// @pre the lock is held @error type error for anything else
optim::Schedule schedule_of(nanobind::object object);

optim::AdamW adam_of(nanobind::object rate, double beta1, double beta2, double epsilon,
                     double weight_decay, std::int64_t decay_rank, bool efficient);

optim::Sgd sgd_of(nanobind::object rate, double momentum, bool nesterov, double weight_decay,
                  std::int64_t decay_rank);

/// Transforms, averages and schedules, into the module `optim`.
void bind_optim_transforms(nanobind::module_& optimizers);

}  // namespace meshard::python

// The parts of the bindings of pipelines.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "meshard/pipeline/pipeline.h"
#include "meshard/pipeline/schedule/timeline.h"
#include "python/bindings/transforms/pytree.h"

namespace meshard::python {

/// Of rows of six times: forward, input gradient, weight gradient, update, send forward and
/// backward.
std::vector<StageTimes> times_of(const std::vector<std::vector<double>>& rows);

/// A batch, as C++ passes it on. Strings and other values that are not tensors are part of the
/// programs. @pre the lock is held
PyTree batch_tree(const nanobind::object& batch);

/// A value: how pipelines are explained, from Python's keyword arguments.
struct Judging {
  PipelineOptimizer optimizer;
  double clip_norm = 0;
  std::vector<std::vector<double>> times;
  std::optional<std::int64_t> memory;
};

/// Adds explain() and plan() of pipelines.
void bind_pipeline_reports(nanobind::module_& pipelines);

}  // namespace meshard::python

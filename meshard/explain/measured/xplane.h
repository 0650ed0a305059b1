// Device operations in the files that XLA's profilers write.
#pragma once
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/explain/measured/trace_ops.h"

namespace meshard {

/// True if the bytes may be a serialized XSpace: protobuf fields of that message and no others.
bool may_be_xspace(std::string_view bytes);

/// Reads the device operations of an XSpace, the `*.xplane.pb` of jax.profiler, PyTorch/XLA,
/// TensorBoard and XProf: events with a statistic `hlo_op`, and those of lines named `XLA Ops`.
/// Source of the fields: tsl/profiler/protobuf/xplane.proto.
/// @error data loss: damaged bytes
Result<std::vector<TraceOp>> read_xspace_ops(std::string_view bytes);

}  // namespace meshard

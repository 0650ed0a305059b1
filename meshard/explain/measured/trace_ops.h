// Device operations in a trace of a profiler.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

/// Value type: one execution of an instruction on a device, as a profiler recorded it.
struct TraceOp {
  /// The instruction's name in the compiled module.
  std::string op;
  /// The module's name; empty if the trace does not say.
  std::string module;
  std::string device;
  /// Which run of the program; empty if the trace does not say.
  std::string run;
  /// Seconds since some time that all events share.
  double start = 0, seconds = 0;
  friend bool operator==(const TraceOp&, const TraceOp&) = default;
};

/// Reads the device operations of a trace that jax.profiler, TensorBoard and XProf write, or gzip
/// of it: an XSpace (`*.xplane.pb`, read_xspace_ops), or JSON in the Trace Event Format of Chrome
/// and Perfetto (`*.trace.json.gz`). In the latter, operations are complete events (`"ph": "X"`)
/// with an argument `hlo_op`, and those of threads named `XLA Ops`; the array of events may be cut
/// off, as the format allows.
/// @error data loss: not such a file
Result<std::vector<TraceOp>> read_trace_ops(std::string_view bytes);

/// True if the bytes may be a serialized XSpace: protobuf fields of that message and no others.
bool may_be_xspace(std::string_view bytes);

/// Reads the device operations of an XSpace, the `*.xplane.pb` of jax.profiler, PyTorch/XLA,
/// TensorBoard and XProf: events with a statistic `hlo_op`, and those of lines named `XLA Ops`.
/// Source of the fields: tsl/profiler/protobuf/xplane.proto.
/// @error data loss: damaged bytes
Result<std::vector<TraceOp>> read_xspace_ops(std::string_view bytes);

}  // namespace meshard

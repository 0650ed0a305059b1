// Predictions of communication, and comparisons of sharded with unsharded runs.
#include "meshard/explain/check_program.h"
#include "meshard/explain/check_sharded.h"
#include "meshard/explain/predict/predict.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/reports/report_fields.h"
#include "python/bindings/reports/reports.h"
#include "python/bindings/transforms/jit.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

Prediction predict_traced(const TracedProgram& traced) {
  Unlocked unlocked;
  return predict(traced.program.graph);
}

ShardedCheck check_call(const PythonJit& jit, nb::tuple args, nb::dict kwargs,
                        std::optional<double> max_ulps) {
  CallerLine line;
  CallLeaves leaves;
  std::vector<std::uint64_t> form;
  flatten_call(args.ptr(), kwargs.size() ? kwargs.ptr() : nullptr, jit.statics(), jit.names(), form,
               leaves);
  internal::TensorFunction traced = [&](std::span<const Tensor> parameters) {
    return jit.recorded(form, parameters, leaves);
  };
  const std::vector<Tensor> tensors(leaves.tensors.begin(), leaves.tensors.end());
  Unlocked unlocked;
  return internal::check_sharded(tensors, traced, {.max_ulps = max_ulps}, line.where());
}

nb::object file_or_none(const SourceLocation& where) {
  return where.known() ? nb::object(nb::str(where.file)) : nb::none();
}
nb::object line_or_none(const SourceLocation& where) {
  return where.known() ? nb::object(nb::int_(where.line)) : nb::none();
}

void bind_moves(nb::module_& module) {
  nb::class_<PredictedMove> move_type(module, "PredictedMove", comment_of("PredictedMove"));
  add_fields<PredictedMove>(move_type, "PredictedMove", "origin");
  move_type
      .def_prop_ro(
          "place", [](const PredictedMove& m) { return m.origin.to_string(); },
          "The source line of the op that needs the move.")
      .def_prop_ro("op", [](const PredictedMove& m) { return m.origin.op; })
      .def("__str__", &PredictedMove::to_string)
      .def("__repr__", [](const PredictedMove& m) { return cat("<", m.to_string(), ">"); });
  nb::class_<Prediction> type(module, "Prediction", comment_of("Prediction"));
  add_fields<Prediction>(type, "Prediction");
  type.def(
          "moves_of",
          [](const Prediction& p, const std::string& kind) {
            std::vector<PredictedMove> found;
            for (const PredictedMove& move : p.moves)
              if (to_string(move.kind) == kind) found.push_back(move);
            return found;
          },
          nb::arg("kind"), "The moves of one kind.")
      .def("__str__", &Prediction::to_string)
      .def("__repr__", [](const Prediction& p) {
        return cat("<Prediction: ", p.moves.size(), " moves, ", p.bytes(), " bytes>");
      });
}

}  // namespace

void bind_predictions(nb::module_& module) {
  bind_moves(module);
  bind_value<ShardedDifference>(module, "ShardedDifference", "where index")
      .def_prop_ro("file", [](const ShardedDifference& d) { return file_or_none(d.where); })
      .def_prop_ro("line", [](const ShardedDifference& d) { return line_or_none(d.where); })
      .def_ro("index", &ShardedDifference::index, comment_of("ShardedDifference.index"));
  bind_value<ShardedCheck>(module, "ShardedCheck")
      .def_prop_ro("ok", &ShardedCheck::ok)
      .def("__bool__", &ShardedCheck::ok);
  bind_value<ProgramDifference>(module, "ProgramDifference", "index")
      .def_ro("index", &ProgramDifference::index, comment_of("ProgramDifference.index"));
  bind_value<ProgramCheck>(module, "ProgramCheck")
      .def_prop_ro("ok", &ProgramCheck::ok)
      .def("__bool__", &ProgramCheck::ok);
  module.def("predict_traced", predict_traced, nb::arg("traced"));
  module.def("check_sharded", check_call, nb::arg("function"), nb::arg("args"), nb::arg("kwargs"),
             nb::arg("max_ulps").none());
}

}  // namespace meshard::python

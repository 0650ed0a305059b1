// Predictions of communication, and comparisons of sharded with unsharded runs.
#include "meshard/explain/check_sharded.h"
#include "meshard/explain/predict/predict.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
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
  nb::class_<PredictedMove>(module, "PredictedMove",
                            "One predicted collective, or full rematerialization of a value.")
      .def_prop_ro("kind", [](const PredictedMove& m) { return std::string(to_string(m.kind)); })
      .def_prop_ro("axes", [](const PredictedMove& m) { return axes_tuple(m.axes); })
      .def_ro("bytes", &PredictedMove::bytes, "Of one device in one execution.")
      .def_ro("executions", &PredictedMove::executions, "In one run of the program.")
      .def_ro("executions_known", &PredictedMove::executions_known)
      .def_ro("conditional", &PredictedMove::conditional)
      .def_prop_ro("total_bytes", &PredictedMove::total_bytes)
      .def_ro("full_rematerialization", &PredictedMove::full_rematerialization)
      .def_prop_ro(
          "type", [](const PredictedMove& m) { return m.type.to_string(); },
          "The type of the moved value.")
      .def_ro("before", &PredictedMove::from, "The sharding before; None if unknown.")
      .def_ro("after", &PredictedMove::to, "The sharding after; None if unknown.")
      .def_prop_ro(
          "place", [](const PredictedMove& m) { return m.origin.to_string(); },
          "The source line of the op that needs the move.")
      .def_prop_ro("op", [](const PredictedMove& m) { return m.origin.op; })
      .def_prop_ro(
          "who", [](const PredictedMove& m) { return std::string(to_string(m.who)); },
          "`asked for` by a mark, `inserted` by the partitioner.")
      .def_ro("cause", &PredictedMove::cause, "The reason, in a sentence.")
      .def_ro("suggestion", &PredictedMove::suggestion, "How to avoid the move; empty: none.")
      .def("__str__", &PredictedMove::to_string)
      .def("__repr__", [](const PredictedMove& m) { return cat("<", m.to_string(), ">"); });
  nb::class_<Prediction>(module, "Prediction", "The result of predict(), in program order.")
      .def_ro("moves", &Prediction::moves)
      .def_ro("results", &Prediction::results, "The predicted shardings of the results.")
      .def_ro("notes", &Prediction::notes, "What the prediction does not cover.")
      .def_prop_ro("bytes", &Prediction::bytes, "The sum of total_bytes.")
      .def(
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
  nb::class_<ShardedDifference>(module, "ShardedDifference",
                                "The first tensor that differs between two runs.")
      .def_ro("tensor", &ShardedDifference::tensor, "The op that produced it, or the argument.")
      .def_prop_ro("file", [](const ShardedDifference& d) { return file_or_none(d.where); })
      .def_prop_ro("line", [](const ShardedDifference& d) { return line_or_none(d.where); })
      .def_prop_ro("type", [](const ShardedDifference& d) { return d.type.to_string(); })
      .def_ro("sharding", &ShardedDifference::sharding, "In the sharded run.")
      .def_ro("index", &ShardedDifference::index, "The element with the largest distance.")
      .def_ro("sharded", &ShardedDifference::sharded, "Its value in the sharded run.")
      .def_ro("unsharded", &ShardedDifference::unsharded, "Its value on one device.")
      .def_ro("ulps", &ShardedDifference::ulps, "Their distance in ULPs of the largest value.");
  nb::class_<ShardedCheck>(module, "ShardedCheck", "The result of check_sharded().")
      .def_ro("compared", &ShardedCheck::compared, "Number of compared tensors.")
      .def_ro("ulps", &ShardedCheck::ulps, "The largest distance among the results.")
      .def_ro("difference", &ShardedCheck::difference, "None if the runs agree.")
      .def_prop_ro("ok", &ShardedCheck::ok)
      .def("__bool__", &ShardedCheck::ok)
      .def("__str__", &ShardedCheck::to_string)
      .def("__repr__",
           [](const ShardedCheck& c) { return cat("<ShardedCheck: ", c.to_string(), ">"); });
  module.def("predict_traced", predict_traced, nb::arg("traced"));
  module.def("check_sharded", check_call, nb::arg("function"), nb::arg("args"), nb::arg("kwargs"),
             nb::arg("max_ulps").none());
}

}  // namespace meshard::python

// Programs that were exported by JAX or others.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "meshard/explain/check_program.h"
#include "meshard/runtime/imported_program.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/dtypes.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/transforms/jit.h"
#include "python/bindings/transforms/pytree.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

using stablehlo::ExportTree;
const char kImportedCall = 0;

// The structure with these tensors as its leaves. A class that the exporter registered is a tuple
// of its children.
nb::object exported_object(const ExportTree& tree, std::span<Tensor> tensors, std::size_t& next) {
  switch (tree.kind) {
    case ExportTree::Kind::kLeaf: return tensor_object(std::move(tensors[next++]));
    case ExportTree::Kind::kNone: return nb::none();
    case ExportTree::Kind::kDict: {
      nb::dict dict;
      for (std::size_t i = 0; i < tree.children.size(); ++i)
        dict[tree.keys[i].c_str()] = exported_object(tree.children[i], tensors, next);
      return dict;
    }
    default: {
      nb::list list;
      for (const ExportTree& child : tree.children)
        list.append(exported_object(child, tensors, next));
      if (tree.kind == ExportTree::Kind::kList) return list;
      return nb::tuple(list);
    }
  }
}

nb::object call_imported(const ImportedProgram& program, nb::tuple args, nb::dict kwargs) {
  CallerLine line;
  CallLeaves leaves;
  internal::JitCall call;
  call.types = &kImportedCall;
  flatten_call(args.ptr(), kwargs.ptr(), {}, {}, call.form, leaves);
  for (const Tensor& tensor : leaves.tensors) call.tensors.push_back(&tensor);
  auto describe = [&](std::vector<std::string>& paths) {
    for (std::string& path : leaf_paths(call.form).tensors) paths.push_back(std::move(path));
  };
  std::vector<Tensor> results;
  {
    Unlocked unlocked;
    results = program.run(call, {leaves.numbers.data(), leaves.numbers.size()}, describe);
  }
  std::size_t next = 0;
  return exported_object(program.result_tree(), results, next);
}

// The arguments of a flat call.
std::vector<Tensor> flat_tensors(const ImportedProgram& program, nb::sequence values,
                                 SourceLocation where) {
  std::vector<Tensor> tensors;
  std::size_t i = 0;
  for (nb::handle value : values) {
    std::optional<Tensor> tensor;
    if (Tensor* given = tensor_in(value.ptr()))
      tensor = *given;
    else
      tensor = tensor_of_value(value.ptr(), where);
    if (!tensor)
      throw nb::type_error(cat("argument ", i, " of \"", program.name(),
                               "\" is neither a tensor nor an array nor a number")
                               .c_str());
    tensors.push_back(*std::move(tensor));
    ++i;
  }
  return tensors;
}

std::vector<Tensor> call_flat(const ImportedProgram& program, nb::sequence values) {
  CallerLine line;
  std::vector<Tensor> tensors = flat_tensors(program, values, line.where());
  Unlocked unlocked;
  return program.flat(tensors, line.where());
}

ProgramCheck check_flat(const ImportedProgram& program, nb::sequence values) {
  CallerLine line;
  std::vector<Tensor> tensors = flat_tensors(program, values, line.where());
  Unlocked unlocked;
  return check_program(program, tensors, {}, line.where());
}

void bind_imported_value(nb::module_& module) {
  nb::class_<ImportedValue>(module, "ImportedValue", "An argument or a result of a loaded program.")
      .def_ro("path", &ImportedValue::path,
              "Where it is among the arguments or results: `[0]['w']`; `['scale']` of an argument "
              "by name; empty for a single result.")
      .def_ro("name", &ImportedValue::name,
              "The name that the module gives it: `params['w']`; empty if it gives none.")
      .def_prop_ro(
          "shape",
          [](const ImportedValue& value) -> std::optional<Shape> {
            return value.type ? std::optional(value.type->shape) : std::nullopt;
          },
          "None for keys of random numbers that the program does not use.")
      .def_prop_ro(
          "dtype",
          [](const ImportedValue& value) -> std::optional<DType> {
            return value.type ? std::optional(value.type->dtype) : std::nullopt;
          },
          "As for shape.")
      .def_ro("sharding", &ImportedValue::sharding,
              "Over the module's mesh with devices 0..n-1. None if the program is for one device, "
              "or leaves the choice to the compiler.")
      .def_ro("used", &ImportedValue::used,
              "Whether the program needs it. Arguments that it does not need are not sent.")
      .def_ro("donated", &ImportedValue::donated,
              "Whether its memory is taken for the results: the tensor is gone after the call.")
      .def_ro("memory_kind", &ImportedValue::memory_kind,
              "`pinned_host`; empty: the device's memory.")
      .def("__repr__", &ImportedValue::to_string);
}

}  // namespace

void bind_imported_programs(nb::module_& module) {
  bind_imported_value(module);
  nb::class_<ImportedProgram>(module, "ImportedProgram")
      .def_prop_ro("name", &ImportedProgram::name, "The name of the function, or of the module.")
      .def_prop_ro("num_devices", &ImportedProgram::num_devices)
      .def_prop_ro("platforms", &ImportedProgram::platforms,
                   "The platforms that it was exported for; empty: any.")
      .def_prop_ro("arguments", &ImportedProgram::arguments, "In the order of flat().")
      .def_prop_ro("results", &ImportedProgram::results, "In the order of flat().")
      .def(
          "on",
          [](const ImportedProgram& program, const Mesh& mesh) {
            return program.on(mesh, caller_line());
          },
          nb::arg("mesh"))
      .def(
          "with_shardings",
          [](const ImportedProgram& program, std::vector<std::optional<Sharding>> shardings,
             bool insist) {
            return program.with_shardings(std::move(shardings), insist, caller_line());
          },
          nb::arg("shardings"), nb::arg("insist"))
      .def("vjp", [](const ImportedProgram& program) { return program.vjp(caller_line()); })
      .def("call", call_imported, nb::arg("args"), nb::arg("kwargs"))
      .def("flat", call_flat, nb::arg("values"))
      .def("check", check_flat, nb::arg("values"))
      .def("__repr__", &ImportedProgram::to_string);
  module.def(
      "load_program",
      [](const std::string& path) { return load_program(path, caller_line()).value(); },
      nb::arg("path"));
  module.def(
      "load_program_from_bytes",
      [](nb::bytes bytes) {
        return load_program_from_bytes(std::string(bytes.c_str(), bytes.size()), caller_line())
            .value();
      },
      nb::arg("data"));
}

}  // namespace meshard::python

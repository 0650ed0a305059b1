// Python functions that compiled programs call.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meshard/base/advice.h"
#include "meshard/base/stall_report.h"
#include "meshard/ops/debug_print.h"
#include "meshard/ops/pure_callback.h"
#include "python/bindings/arrays/host_arrays.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/release_later.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/ops/op_arguments.h"
#include "python/bindings/transforms/pytree.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// True while this thread is in the call that Python made, so that Python's exceptions reach it.
thread_local bool called_by_python = false;

struct CalledByPython {
  CalledByPython() : before(called_by_python) { called_by_python = true; }
  ~CalledByPython() { called_by_python = before; }
  CalledByPython(const CalledByPython&) = delete;
  CalledByPython& operator=(const CalledByPython&) = delete;
  bool before;
};

// `ValueError: text (in file.py:12)`. @pre the lock is held
std::string text_of(const nb::python_error& error) {
  std::string text = nb::cast<std::string>(nb::object(error.type().attr("__name__")));
  nb::handle value = error.value();
  const std::string message = value.is_valid() ? nb::cast<std::string>(nb::str(value)) : "";
  if (!message.empty()) text += cat(": ", message);
  nb::object place = error.traceback();
  while (place.is_valid() && !place.is_none()) {
    nb::object next = place.attr("tb_next");
    if (next.is_none()) {
      nb::object code = place.attr("tb_frame").attr("f_code");
      text += cat(" (in ", nb::cast<std::string>(nb::object(code.attr("co_filename"))), ":",
                  nb::cast<int>(nb::object(place.attr("tb_lineno"))), ")");
    }
    place = next;
  }
  return text;
}

// Calls `f` with the lock; an exception of Python becomes an error with its text, unless Python is
// the caller.
template <class F>
auto with_lock(const char* what, const F& f) {
  Locked locked;
  try {
    return f();
  } catch (const nb::python_error& error) {
    if (called_by_python) throw;
    Error failed(ErrorCode::kUnknown, cat("[", what, "] ", text_of(error)));
    // Ctrl-C in a function that the main thread runs: raised again when the launch has ended.
    if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    throw failed;
  }
}

// `function(arrays)` returns arrays, as lists.
std::vector<Tensor> call_back(nb::object function, const Operands& arguments,
                              const std::vector<std::pair<Shape, DType>>& results) {
  CallerLine line;
  std::vector<TensorType> types;
  for (const auto& [shape, dtype] : results) types.push_back({dtype, shape});
  ObjectRef shared = share(std::move(function));
  HostFunction called = [shared](std::span<const HostArray> given) {
    return with_lock("pure_callback", [&] {
      nb::list arrays;
      for (const HostArray& array : given) arrays.append(numpy_array(array));
      nb::object returned = nb::handle(shared.get())(arrays);
      std::vector<HostArray> made;
      for (nb::handle array : returned) made.push_back(host_array_of(array, Memory::kCopy));
      return made;
    });
  };
  CalledByPython python;
  Unlocked unlocked;
  return pure_callback(std::move(called), arguments.tensors(), types, line.where());
}

void print_values(const std::string& format, const Operands& values) {
  CallerLine line;
  std::vector<In> all = values.ins();
  for (In& each : all) each.where = line.where();
  CalledByPython python;
  Unlocked unlocked;
  internal::debug_print(DebugFormat(format, line.where()), all);
}

template <class Value, class Argument>
std::function<void(const Value&)> handler_of(nb::object function, const char* what,
                                             Argument argument) {
  if (function.is_none()) return {};
  ObjectRef shared = share(std::move(function));
  return [shared, what, argument](const Value& value) {
    with_lock(what, [&] { nb::handle(shared.get())(argument(value)); });
  };
}

nb::object place_of(const SourceLocation& where) {
  if (!where.known()) return nb::none();
  return nb::make_tuple(where.file, where.line);
}

}  // namespace

void bind_callbacks(nb::module_& module) {
  module.def("pure_callback", call_back, nb::arg("function"), nb::arg("arguments"),
             nb::arg("results"));
  module.def("debug_print", print_values, nb::arg("format"), nb::arg("values"));
  module.def(
      "set_debug_print_handler",
      [](nb::object function) {
        set_debug_print_handler(
            handler_of<std::string>(std::move(function), "debug_print",
                                    [](const std::string& line) { return nb::cast(line); }));
      },
      nb::arg("handler").none());

  nb::class_<Advice>(module, "Advice", "One piece of advice: `topic`, `text`, and `where`.")
      .def_ro("topic", &Advice::topic, "The subject: `jit.traces`, `lazy.pending`.")
      .def_ro("text", &Advice::text, "What was noticed, and how to fix it.")
      .def_prop_ro(
          "where", [](const Advice& advice) { return place_of(advice.where); },
          "The user's file and line, or None.")
      .def("__repr__", [](const Advice& advice) { return advice.to_string(); });
  module.def(
      "set_advice_handler",
      [](nb::object function) {
        set_advice_handler(handler_of<Advice>(
            std::move(function), "advice", [](const Advice& advice) { return nb::cast(advice); }));
      },
      nb::arg("handler").none());
  module.def("all_advice", [] {
    nb::list all;
    for (const Advice& advice : all_advice()) all.append(nb::cast(advice));
    return all;
  });
  module.def(
      "set_stall_handler",
      [](nb::object function) {
        set_stall_handler(handler_of<Stall>(std::move(function), "stall", [](const Stall& stall) {
          return nb::cast(stall.to_string());
        }));
      },
      nb::arg("handler").none());
  module.def("stall_seconds", [] { return static_cast<double>(stall_time().count()) / 1000; });
  module.def(
      "set_stall_seconds",
      [](double seconds) {
        set_stall_time(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
      },
      nb::arg("seconds"));
}

}  // namespace meshard::python

// A jitted Python function.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "meshard/trace/jit_call.h"
#include "python/bindings/transforms/pytree.h"

namespace meshard::python {

/// A Python function whose programs are compiled once for each signature. May be called from
/// several threads; the interpreter's lock is released while a program is compiled and launched.
class PythonJit {
 public:
  /// @param names of the function's positional parameters, for messages and reports
  PythonJit(nanobind::object function, JitOptions options, StaticArguments statics,
            std::vector<std::string> names, SourceLocation where);
  /// @param kwargs may be null
  nanobind::object operator()(PyObject* args, PyObject* kwargs) const;
  /// Calls the function itself, with `parameters` in place of the tensors of a call. May be called
  /// without the lock.
  /// @param form of the call; see flatten_call() @param others its other leaves
  /// @error what the function raises
  PyTree recorded(std::span<const std::uint64_t> form, std::span<const Tensor> parameters,
                  std::span<PyObject* const> others) const;
  const internal::JitPrograms& programs() const { return programs_; }
  const StaticArguments& statics() const { return statics_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  nanobind::object call_in_place(PyObject* args, PyObject* kwargs) const;
  nanobind::object call_with_tensors(PyObject* args, PyObject* kwargs) const;

  ObjectRef function_;
  StaticArguments statics_;
  std::vector<std::string> names_;
  internal::JitPrograms programs_;
};

}  // namespace meshard::python

// A jitted Python function.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "meshard/base/inline_vector.h"
#include "meshard/trace/jit_call.h"
#include "python/bindings/transforms/pytree.h"

namespace meshard::python {

/// Collects the leaves of a call. The tensors are copies: another thread may change a structure
/// while the program runs. Numbers of Python and scalars of NumPy are passed in the widest dtype of
/// their kind, and are weakly typed inside.
class CallLeaves : public LeafSink {
 public:
  void tensor(PyObject* object, const Tensor& tensor) override;
  /// @error type error: the object is not hashable, or an array
  void other(PyObject* object) override;
  InlineVector<Tensor, 64> tensors;
  InlineVector<std::size_t, 4> numbers;  ///< which of the tensors are weakly typed numbers
  InlineVector<PyObject*, 4> others;     ///< borrowed
};

/// A Python function whose programs are compiled once for each signature. May be called from
/// several threads; the interpreter's lock is released while a program is compiled and launched.
class PythonJit {
 public:
  /// @param names of the function's positional parameters, for messages and reports
  PythonJit(nanobind::object function, JitOptions options, StaticArguments statics,
            std::vector<std::string> names, SourceLocation where);
  /// @param kwargs may be null
  nanobind::object operator()(PyObject* args, PyObject* kwargs) const;
  /// Calls the function itself, with `parameters` in place of the tensors of a call. Returns the
  /// tensors of the result, followed by the new values of arguments that the function assigned to.
  /// May be called without the lock.
  /// @param form of the call; see flatten_call() @param leaves of the call @param prototype of the
  /// results, if it is wanted
  /// @error what the function raises
  std::vector<Tensor> recorded(std::span<const std::uint64_t> form,
                               std::span<const Tensor> parameters, const CallLeaves& leaves,
                               std::shared_ptr<const void>* prototype = nullptr) const;
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

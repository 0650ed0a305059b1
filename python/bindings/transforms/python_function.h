// Python functions as the functions of transformations.
#pragma once
#include <nanobind/nanobind.h>

#include <utility>

#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/transforms/pytree.h"

namespace meshard::python {

/// A value: a Python function of structures. Copies share it; they may be dropped, and it may be
/// called, without the interpreter's lock.
class PythonFunction {
 public:
  explicit PythonFunction(nanobind::object function) : function_(share(std::move(function))) {}

  /// The result of a call with these structures, flattened. @error what the function raises
  template <class... Trees>
  PyTree operator()(const Trees&... trees) const {
    Locked locked;
    return PyTree::of(call(trees...), "result");
  }
  /// The same for a function that returns a pair. @error type error: it returned something else
  template <class... Trees>
  std::pair<PyTree, PyTree> pair(const char* what, const Trees&... trees) const {
    Locked locked;
    nanobind::object result = call(trees...);
    if (!PyTuple_Check(result.ptr()) || PyTuple_Size(result.ptr()) != 2)
      throw nanobind::type_error(what);
    return {PyTree::of(nanobind::object(result[0]), "result[0]"),
            PyTree::of(nanobind::object(result[1]), "result[1]")};
  }
  const ObjectRef& object() const { return function_; }

 private:
  template <class... Trees>
  nanobind::object call(const Trees&... trees) const {
    UserCode own_lines;
    return nanobind::handle(function_.get())(trees.object()...);
  }
  ObjectRef function_;
};

}  // namespace meshard::python

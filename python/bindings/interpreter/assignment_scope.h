// Which tensors a Python function that a transformation calls may assign to.
#pragma once
#include <cstdint>
#include <unordered_set>

#include "meshard/graph/tensor.h"

namespace meshard::python {

/// While alive, this thread runs a function for a transformation (jit, grad, vmap, manual, loops).
/// The function may bind handles anew that it got or made; an assignment to another one, which it
/// captures, would leave a value of the transformation in it.
class AssignmentScope {
 public:
  AssignmentScope();
  ~AssignmentScope();
  AssignmentScope(const AssignmentScope&) = delete;
  AssignmentScope& operator=(const AssignmentScope&) = delete;

  /// The innermost scope of this thread; nullptr outside of all.
  static AssignmentScope* current();
  /// The handle was made in this scope, or given to the function.
  void add(const Tensor& handle) { own_.insert(&handle); }
  /// The same if the enclosing scope allows assignments to it.
  void add_if_allowed_around(const Tensor& handle) {
    if (!around_ || around_->allows(handle)) add(handle);
  }
  bool allows(const Tensor& handle) const;

 private:
  AssignmentScope* around_;
  std::uint64_t first_node_;  // nodes from here on are recorded in this scope
  std::unordered_set<const Tensor*> own_;
};

/// Binds a handle to another value. @error failed precondition if the current scope does not allow
/// it
void rebind(Tensor& handle, Tensor value);

}  // namespace meshard::python

#include "python/bindings/interpreter/assignment_scope.h"

#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "python/bindings/interpreter/source_line.h"

namespace meshard::python {
namespace {

thread_local AssignmentScope* innermost = nullptr;

}  // namespace

AssignmentScope::AssignmentScope() : around_(innermost), first_node_(Node::next_id()) {
  innermost = this;
}
AssignmentScope::~AssignmentScope() { innermost = around_; }

AssignmentScope* AssignmentScope::current() { return innermost; }

bool AssignmentScope::allows(const Tensor& handle) const {
  return own_.contains(&handle) || (handle.defined() && handle.value()->id() >= first_node_);
}

void rebind(Tensor& handle, Tensor value) {
  if (innermost && !innermost->allows(handle)) {
    Error error(
        ErrorCode::kFailedPrecondition,
        cat("[assignment] the function of a transformation (jit, grad, vmap, manual, a loop "
            "or branch) assigns to a tensor that it captures, ",
            handle.type(),
            ": the new value would exist only inside. Return it as a result, or assign to "
            "a copy: y = x.copy()"),
        caller_line());
    throw handle.where().known() ? error.with_note(cat("the tensor was made at ", handle.where()))
                                 : error;
  }
  handle = std::move(value);
}

}  // namespace meshard::python

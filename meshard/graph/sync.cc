#include "meshard/graph/sync.h"

#include "meshard/graph/evaluator.h"
#include "meshard/graph/storage.h"

namespace meshard {

void internal::sync_tensors(std::vector<Tensor> tensors, SourceLocation where) {
  compute(tensors, where);
  for (const Tensor& tensor : tensors) computed_storage(tensor.value(), where).wait(where);
}

void block_until_ready(std::initializer_list<Tensor> tensors, SourceLocation where) {
  internal::sync_tensors(tensors, where);
}

void block_until_ready() {
  if (Evaluator* running = installed_evaluator()) running->wait();
}

}  // namespace meshard

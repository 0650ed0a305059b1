// A value that is computed and ignored does nothing, and the compiler says so: marking a tensor, or
// the tensors of a structure, in place is what other libraries do.
#include <map>
#include <string>

#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/mark_structure.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/ops/identity.h"

using namespace meshard;

#pragma GCC diagnostic error "-Wunused-result"
#pragma GCC diagnostic error "-Wunused-value"

void mark(Tensor x, std::map<std::string, Tensor> batch, const Mesh& mesh) {
#ifdef MESHARD_REFUSED
  // refused: ignored_result.cc:19
  mark_sharding(x, mesh, P("data"));
  // refused: ignored_result.cc:21
  mark_sharding(batch, mesh, P("data"));
  // refused: ignored_result.cc:23
  sharding_constraint(x, Sharding(mesh, P("data")));
  // refused: ignored_result.cc:25
  x + 1;
#else
  x = mark_sharding(x, mesh, P("data"));
  batch = mark_sharding(batch, mesh, P("data"));
#endif
}

#include "meshard/ops/composite/mark_structure.h"

#include <algorithm>

#include "meshard/mesh/global_mesh.h"

namespace meshard::internal {
namespace {

template <class F>
Tensor with_path(const std::string& path, const F& mark) {
  try {
    return mark();
  } catch (const Error& error) {
    if (path.empty()) throw;
    throw Error(error).with_note(cat("while marking ", path));
  }
}

}  // namespace

Tensor marked(const Marking& marking, const Tensor& x, const PartitionSpec& spec,
              const std::string& path) {
  return with_path(path, [&] {
    return mark_sharding(In(x, marking.where),
                         marking.mesh ? *marking.mesh : require_global_mesh(marking.where), spec);
  });
}

Tensor marked(const Marking& marking, const Tensor& x, const ShardingSpec& spec,
              const std::string& path) {
  return with_path(path, [&] { return mark_sharding(In(x, marking.where), spec); });
}

void no_spec_for(const Marking& marking, const std::string& path) {
  throw_invalid(marking.where, "[mark_sharding] no spec for ", path,
                ": add one, such as P() for a tensor that is not split");
}

bool is_one_of(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void no_tensor_for(const Marking& marking, const std::string& path) {
  throw_invalid(marking.where, "[mark_sharding] there is a spec for ", path,
                ", but the structure has no such member");
}

void other_count(const Marking& marking, const std::string& path, std::size_t tensors,
                 std::size_t specs) {
  throw_invalid(marking.where, "[mark_sharding] ", path.empty() ? "the sequence" : path, " has ",
                tensors, " elements, but the number of specs is ", specs);
}

}  // namespace meshard::internal

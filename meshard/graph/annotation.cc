#include "meshard/graph/annotation.h"

#include <algorithm>

#include "meshard/base/cat.h"

namespace meshard {

std::string ManualAxes::to_string() const {
  return cat("manual over ", axes.to_string(mesh), " of ", mesh);
}

bool operator==(const Annotations& a, const Annotations& b) {
  return a.manual == b.manual &&
         std::equal(a.shardings.begin(), a.shardings.end(), b.shardings.begin(), b.shardings.end());
}

const ManualAxes* manual_axes(const Value& value) {
  const Annotations* annotations = value->annotations().get();
  return annotations && annotations->manual ? &*annotations->manual : nullptr;
}

const Sharding* explicit_sharding(const Node& node, std::uint32_t result) {
  const Annotations* annotations = node.annotations().get();
  if (!annotations || annotations->shardings.empty()) return nullptr;
  const std::optional<Sharding>& sharding = annotations->shardings[result];
  return sharding ? &*sharding : nullptr;
}

Sharding carried_sharding(const ManualAxes& place, const TensorType& local) {
  auto rank = static_cast<std::size_t>(local.rank());
  if (place.varying.empty()) return Sharding::replicated(place.mesh, rank);
  return Sharding(place.mesh, P(DimensionSpec(place.varying.of(place.mesh))),
                  std::max<std::size_t>(rank, 1), SourceLocation{});
}

const Sharding* explicit_sharding(const Value& value) {
  return explicit_sharding(*value.node(), value.index());
}

void append_annotation(std::string& out, const Node& node, std::uint32_t result) {
  const Annotations* annotations = node.annotations().get();
  if (!annotations) return;
  if (const auto& manual = annotations->manual)
    append(out, cat(" manual", manual->axes.to_string(manual->mesh), " varying",
                    manual->varying.to_string(manual->mesh)));
  if (!annotations->shardings.empty() && annotations->shardings[result])
    append(out, cat(" @ ", *annotations->shardings[result]));
}

}  // namespace meshard

#include "meshard/graph/annotation.h"

#include <algorithm>

#include "meshard/base/cat.h"

namespace meshard {

ManualAxes ManualAxes::at_depth(std::size_t depth) const {
  if (depth == this->depth()) return *this;
  ManualAxes outer{mesh, around[depth - 1], varying & around[depth - 1], around};
  outer.around.resize(depth - 1);
  return outer;
}

std::string ManualAxes::to_string() const {
  std::string out = cat("manual over ", own().to_string(mesh));
  for (std::size_t d = around.size(); d > 0; --d)
    append(out, cat(" inside ", at_depth(d).own().to_string(mesh)));
  return cat(out, " of ", mesh);
}

std::string ManualAxes::printed() const {
  std::string out = "manual";
  for (std::size_t d = 1; d <= depth(); ++d) append(out, at_depth(d).own().to_string(mesh));
  return cat(out, " varying", varying.to_string(mesh));
}

bool operator==(const Annotations& a, const Annotations& b) {
  return a.manual == b.manual &&
         std::equal(a.shardings.begin(), a.shardings.end(), b.shardings.begin(), b.shardings.end());
}

const ManualAxes* manual_axes(const Value& value) {
  const Annotations* annotations = value->annotations().get();
  return annotations && annotations->manual ? &*annotations->manual : nullptr;
}

std::size_t manual_depth(const Node& node) {
  const Annotations* annotations = node.annotations().get();
  return annotations && annotations->manual ? annotations->manual->depth() : 0;
}

std::size_t manual_depth(const Value& value) { return manual_depth(*value.node()); }

const Sharding* explicit_sharding(const Node& node, std::uint32_t result) {
  const Annotations* annotations = node.annotations().get();
  if (!annotations || annotations->shardings.empty()) return nullptr;
  const std::optional<Sharding>& sharding = annotations->shardings[result];
  return sharding ? &*sharding : nullptr;
}

Sharding carried_sharding(const ManualAxes& place, const TensorType& local) {
  auto rank = static_cast<std::size_t>(local.rank());
  AxisSet varying = place.varying & place.own();
  if (varying.empty()) return Sharding::replicated(place.mesh, rank);
  return Sharding(place.mesh, P(DimensionSpec(varying.of(place.mesh))),
                  std::max<std::size_t>(rank, 1), SourceLocation{});
}

const Sharding* explicit_sharding(const Value& value) {
  return explicit_sharding(*value.node(), value.index());
}

void append_annotation(std::string& out, const Node& node, std::uint32_t result) {
  const Annotations* annotations = node.annotations().get();
  if (!annotations) return;
  if (const auto& manual = annotations->manual) append(out, cat(" ", manual->printed()));
  if (!annotations->shardings.empty() && annotations->shardings[result])
    append(out, cat(" @ ", *annotations->shardings[result]));
}

}  // namespace meshard

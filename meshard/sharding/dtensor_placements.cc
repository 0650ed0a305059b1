#include "meshard/sharding/dtensor_placements.h"

#include <optional>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/layout/text_scanner.h"

namespace meshard {
namespace {

// The dimension of a Shard as an index from 0. Throws if it is out of range.
std::size_t checked_dim(const Shard& shard, std::size_t rank, std::string_view axis,
                        SourceLocation where) {
  auto signed_rank = static_cast<std::int64_t>(rank);
  std::int64_t dim = shard.dim < 0 ? shard.dim + signed_rank : shard.dim;
  if (dim < 0 || dim >= signed_rank)
    throw_invalid(where, "[dtensor] axis \"", axis, "\" splits dimension ", shard.dim,
                  " of a tensor of rank ", rank);
  return static_cast<std::size_t>(dim);
}

std::optional<UnreducedKind> kind_of(const Partial& partial) {
  for (const auto& [kind, name] : EnumNames<UnreducedKind>::kNames)
    if (partial.reduce_op == name) return kind;
  return std::nullopt;
}

Placement read_placement(TextScanner& scanner) {
  std::string kind = scanner.identifier();
  scanner.expect("(");
  Placement placement;
  if (kind == "Shard") {
    if (scanner.accept("dim")) scanner.expect("=");
    placement = Shard(scanner.integer());
  } else if (kind == "Replicate") {
    placement = Replicate{};
  } else if (kind == "Partial") {
    Partial partial;
    if (scanner.peek("\""))
      partial.reduce_op = scanner.quoted();
    else if (!scanner.peek(")"))
      partial.reduce_op = scanner.identifier();
    placement = std::move(partial);
  } else {
    scanner.fail("expected `Shard`, `Replicate` or `Partial`");
  }
  scanner.expect(")");
  return placement;
}

}  // namespace

std::string Shard::to_string() const { return cat("Shard(dim=", dim, ")"); }
std::string Replicate::to_string() const { return "Replicate()"; }
std::string Partial::to_string() const { return cat("Partial(", reduce_op, ")"); }

std::string to_string(const Placement& placement) {
  return std::visit([](const auto& each) { return each.to_string(); }, placement);
}

Result<Placements> Placements::of(const Sharding& sharding) {
  const Mesh& mesh = sharding.mesh();
  std::vector<Placement> all(mesh.rank(), Replicate{});
  auto fail = [&](const auto&... what) {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[dtensor] ", sharding, " cannot be expressed as placements: ", what...));
  };
  for (std::size_t d = 0; d < sharding.rank(); ++d) {
    std::size_t last = 0;
    bool first = true;
    for (const AxisRef& axis : sharding.axes(d)) {
      if (!axis.is_whole())
        return fail("dimension ", d, " is split by the sub-axis ", axis,
                    "; unflatten the mesh so that the sub-axis becomes an axis");
      std::size_t index = mesh.axis_index(axis.name);
      if (!first && index < last)
        return fail("axis ", axis, " splits dimension ", d,
                    " after an axis that follows it in the mesh; permute the mesh");
      all[index] = Shard(static_cast<std::int64_t>(d));
      last = index;
      first = false;
    }
  }
  for (const AxisRef& axis : sharding.unreduced_axes()) {
    if (!axis.is_whole())
      return fail("the value is unreduced over the sub-axis ", axis,
                  "; unflatten the mesh so that the sub-axis becomes an axis");
    all[mesh.axis_index(axis.name)] = Partial(std::string(enum_name(sharding.unreduced_kind())));
  }
  return Placements(std::move(all));
}

Sharding Placements::sharding(const Mesh& mesh, std::size_t rank, SourceLocation where) const {
  if (size() != mesh.rank())
    throw_invalid(where, "[dtensor] ", size(), " placements, ", to_string(), ", for the ",
                  mesh.rank(), " axes of ", mesh, ": give one for each");
  std::vector<AxisList> split(rank);
  AxisList unreduced;
  std::optional<UnreducedKind> kind;
  for (std::size_t i = 0; i < size(); ++i) {
    const std::string& name = mesh.axes()[i].name;
    if (auto* shard = std::get_if<Shard>(&all_[i]))
      split[checked_dim(*shard, rank, name, where)].push_back(AxisRef(name));
    auto* partial = std::get_if<Partial>(&all_[i]);
    if (!partial) continue;
    const std::optional<UnreducedKind> pending = kind_of(*partial);
    if (!pending || (kind && kind != pending))
      throw_invalid(where, "[dtensor] axis \"", name, "\" is ", meshard::to_string(all_[i]), ": ",
                    pending ? "a sharding has one pending reduction"
                            : "a sharding supports only pending sums, maxima and minima",
                    "; reduce the value before you place it");
    kind = pending;
    unreduced.push_back(AxisRef(name));
  }
  std::vector<DimensionSpec> dimensions;
  for (AxisList& axes : split) dimensions.push_back(DimensionSpec(std::move(axes)));
  Sharding result(mesh, PartitionSpec(std::move(dimensions)), rank, where);
  return unreduced.empty() ? result : result.with_unreduced(unreduced, *kind, where);
}

std::string Placements::to_string() const {
  std::string out = "(";
  for (std::size_t i = 0; i < size(); ++i)
    append(out, cat(i == 0 ? "" : ", ", meshard::to_string(all_[i])));
  return out + (size() == 1 ? ",)" : ")");
}

Result<Placements> Placements::parse(std::string_view text) {
  return parse_whole("placements", text, [](TextScanner& scanner) {
    bool list = scanner.accept("[");
    if (!list) scanner.expect("(");
    std::string_view end = list ? "]" : ")";
    std::vector<Placement> all;
    while (!scanner.accept(end)) {
      all.push_back(read_placement(scanner));
      if (!scanner.peek(end)) scanner.expect(",");
    }
    return Placements(std::move(all));
  });
}

}  // namespace meshard

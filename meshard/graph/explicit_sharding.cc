#include "meshard/graph/explicit_sharding.h"

#include <vector>

#include "meshard/sharding/propagate.h"

namespace meshard {
namespace {

bool is_explicit(const Mesh& mesh, const AxisRef& axis) {
  return mesh.axes()[mesh.axis_index(axis.name)].kind == AxisKind::kExplicit;
}

// Explicit axes that split no dimension. Open dimensions must not be split by them.
AxisList unused_explicit_axes(const Sharding& sharding) {
  AxisList unused;
  for (const AxisRef& axis : sharding.unused_axes())
    if (is_explicit(sharding.mesh(), axis)) unused.push_back(axis);
  return unused;
}

using OperandShardings = std::span<const Sharding* const>;

Error describe_operands(Error error, const Node& node, OperandShardings shardings) {
  for (std::size_t i = 0; i < shardings.size(); ++i)
    if (shardings[i])
      error = std::move(error).with_note(cat("operand ", i, ", ", node.operands()[i].type(),
                                             " made at ", node.operands()[i]->where(), ", is ",
                                             shardings[i]->spec(), " over ", shardings[i]->mesh()));
  return error;
}

[[noreturn]] void fail_ambiguous(const Node& node, OperandShardings shardings,
                                 std::string_view why) {
  Error error(ErrorCode::kInvalidArgument,
              cat("[", node.op().name, "] the sharding of the result is ambiguous: ", why),
              node.where());
  throw AmbiguousSharding(describe_operands(std::move(error), node, shardings)
                              .with_note("reshard an operand first, with mark_sharding"));
}

const Mesh& common_mesh(const Node& node, OperandShardings shardings) {
  const Sharding* first = nullptr;
  for (const Sharding* sharding : shardings) {
    if (!sharding) continue;
    if (!first) first = sharding;
    if (sharding->mesh() != first->mesh())
      throw describe_operands(
          Error(ErrorCode::kInvalidArgument,
                cat("[", node.op().name,
                    "] operands with explicit shardings are on different meshes"),
                node.where()),
          node, shardings);
  }
  return first->mesh();
}

// Reuses an operand's annotations if they are equal: nodes with one sharding share one object.
AnnotationsPtr shared_annotations(const Node& node, const Annotations& wanted) {
  for (const Value& operand : node.operands())
    if (operand->annotations() && *operand->annotations() == wanted) return operand->annotations();
  return std::make_shared<const Annotations>(wanted);
}

}  // namespace

std::optional<Sharding> explicit_part(const Sharding& sharding) {
  const Mesh& mesh = sharding.mesh();
  if (!mesh.has_explicit_axes()) return std::nullopt;
  bool all = true;
  for (const MeshAxis& axis : mesh.axes()) all = all && axis.kind == AxisKind::kExplicit;
  if (all && sharding.replicated_axes().empty()) return sharding;
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 0; d < sharding.rank(); ++d) {
    AxisList axes;
    for (const AxisRef& axis : sharding.axes(d))
      if (is_explicit(mesh, axis)) axes.push_back(axis);
    dimensions.emplace_back(std::move(axes), /*open=*/!all);
  }
  Sharding part = Sharding(mesh, PartitionSpec(std::move(dimensions)))
                      .with_unreduced(sharding.unreduced_axes());
  return all ? part : part.with_replicated(unused_explicit_axes(part));
}

Sharding whole_over_explicit_axes(const Mesh& mesh, std::size_t rank) {
  return *explicit_part(Sharding::replicated(mesh, rank));
}

AnnotationsPtr annotations_of(const Sharding& sharding, std::size_t rank) {
  std::optional<Sharding> part = explicit_part(sharding);
  if (!part) return nullptr;
  Annotations annotations;
  annotations.shardings.push_back(part->rank() < rank ? part->with_rank(rank) : *part);
  return std::make_shared<const Annotations>(std::move(annotations));
}

AnnotationsPtr infer_shardings(const Node& node) {
  InlineVector<const Sharding*, 4> known;
  bool any = false;
  for (const Value& operand : node.operands()) {
    known.push_back(explicit_sharding(operand));
    any = any || known.back() != nullptr;
  }
  return any ? infer_shardings(node, {known.data(), known.size()}) : nullptr;
}

AnnotationsPtr infer_shardings(const Node& node, OperandShardings known) {
  const Mesh& mesh = common_mesh(node, known);
  OpCall call = call_of(node);
  if (node.op().sharding_conflict) {
    std::string why = node.op().sharding_conflict(call, known);
    if (!why.empty()) fail_ambiguous(node, known, why);
  }
  if (!node.op().sharding_rule) fail_ambiguous(node, known, "the op has no sharding rule");
  std::vector<Sharding> operands;
  for (std::size_t i = 0; i < known.size(); ++i)
    operands.push_back(known[i]
                           ? *known[i]
                           : Sharding::replicated(
                                 mesh, static_cast<std::size_t>(node.operands()[i].type().rank())));
  Propagation inferred = propagate(node.op().sharding_rule(call), operands, Propagating::kInfer);
  if (!inferred.ok()) fail_ambiguous(node, known, inferred.conflict->message);
  Annotations annotations;
  for (const Sharding& result : inferred.results)
    annotations.shardings.push_back(explicit_part(result));
  return shared_annotations(node, annotations);
}

std::string unlike_operands(std::span<const Sharding* const> operands, std::size_t first) {
  std::size_t known = first;
  while (known < operands.size() && !operands[known]) ++known;
  for (std::size_t i = known + 1; i < operands.size(); ++i)
    if (operands[i] && operands[i]->spec() != operands[known]->spec())
      return cat("operands ", known, " and ", i, " must have the same sharding for this op");
  return {};
}

}  // namespace meshard

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

void check_one_mesh(const Node& node, OperandShardings shardings) {
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
}

// Reuses an operand's annotations if they are equal: nodes with one sharding share one object.
AnnotationsPtr shared_annotations(const Node& node, const Annotations& wanted) {
  for (const Value& operand : node.operands())
    if (operand->annotations() && *operand->annotations() == wanted) return operand->annotations();
  return std::make_shared<const Annotations>(wanted);
}

// The same placement, said without axes of size 1.
Sharding without_axes_of_size_1(const Sharding& sharding) {
  const Mesh& mesh = sharding.mesh();
  auto splitting = [&](const AxisList& axes) {
    AxisList kept;
    for (const AxisRef& axis : axes)
      if (mesh.axis_size(axis) > 1) kept.push_back(axis);
    return kept;
  };
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    dimensions.emplace_back(splitting(sharding.axes(d)), sharding.is_open(d));
  return Sharding(mesh, PartitionSpec(std::move(dimensions)))
      .with_replicated(splitting(sharding.replicated_axes()))
      .with_unreduced(splitting(sharding.unreduced_axes()));
}

// The annotations that these operand shardings determine; if there are none, `why` says why.
std::optional<Annotations> inferred_from(const OpCall& call, OperandShardings known,
                                         std::string& why) {
  if (call.op.sharding_conflict) why = call.op.sharding_conflict(call, known);
  if (why.empty() && !call.op.sharding_rule) why = "the op has no sharding rule";
  if (!why.empty()) return std::nullopt;
  const Sharding* any = nullptr;
  for (const Sharding* each : known)
    if (each) any = each;
  std::vector<Sharding> operands;
  for (std::size_t i = 0; i < known.size(); ++i)
    operands.push_back(known[i] ? *known[i]
                                : Sharding::replicated(any->mesh(), static_cast<std::size_t>(
                                                                        call.operand(i).rank())));
  Propagation inferred = propagate(call.op.sharding_rule(call), operands, Propagating::kInfer);
  if (!inferred.ok()) {
    why = inferred.conflict->message;
    return std::nullopt;
  }
  Annotations annotations;
  for (const Sharding& result : inferred.results)
    annotations.shardings.push_back(explicit_part(result));
  return annotations;
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
  Sharding part = Sharding(mesh, PartitionSpec(std::move(dimensions))).with_unreduced_of(sharding);
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
  check_one_mesh(node, known);
  OpCall call = call_of(node);
  std::string why;
  if (std::optional<Annotations> inferred = inferred_from(call, known, why))
    return shared_annotations(node, *inferred);
  // Axes of size 1 place nothing, so they must not be what the operands differ in.
  std::vector<std::optional<Sharding>> splitting;
  std::vector<const Sharding*> again;
  bool differs = false;
  for (const Sharding* each : known) {
    splitting.push_back(each ? std::optional(without_axes_of_size_1(*each)) : std::nullopt);
    differs = differs || (each && *splitting.back() != *each);
  }
  for (const auto& each : splitting) again.push_back(each ? &*each : nullptr);
  std::string still;
  if (differs)
    if (std::optional<Annotations> inferred = inferred_from(call, again, still))
      return shared_annotations(node, *inferred);
  fail_ambiguous(node, known, why);
}

bool same_explicit_sharding(const Sharding* a, const Sharding* b) {
  if (!a && !b) return true;
  const Sharding& known = a ? *a : *b;
  const Sharding whole = whole_over_explicit_axes(known.mesh(), known.rank());
  const Sharding &left = a ? *a : whole, &right = b ? *b : whole;
  return left == right || (left.mesh() == right.mesh() && left.rank() == right.rank() &&
                           left.is_equivalent_to(right, left.rank()));
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

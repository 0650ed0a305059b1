#include "meshard/graph/forbid_collectives.h"

#include <algorithm>
#include <utility>

#include "meshard/graph/annotation.h"
#include "meshard/graph/explicit_sharding.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/sharding/axis_moves.h"

namespace meshard {
namespace {

// The size of an axis; 1 if the mesh lacks it.
std::int64_t size_in(const Mesh& mesh, const std::string& axis) {
  std::optional<std::size_t> found = mesh.find_axis(axis);
  return found ? mesh.axes()[*found].size : 1;
}

// True for the result of a manual function, which has the sharding that it is marked with next.
bool leaves_manual(const Value& value) {
  return !manual_axes(value) && !value->operands().empty() && manual_axes(value->operands()[0]);
}

class ForbidCheck {
 public:
  ForbidCheck(const ForbidCollectives& scope, const std::string& axis, std::string_view op,
              const SourceLocation& where)
      : scope_(scope), axis_(axis), op_(op), where_(where) {}

  void node(const Node& node, const Annotations* results) const {
    const OpDef& op = node.op();
    if (op.communicates) moves(op.communicates(node), node.operands());
    const ManualAxes* place = results && results->manual ? &*results->manual : nullptr;
    for (const Value& operand : node.operands())
      if (const ManualAxes* own = manual_axes(operand)) place = own;
    if (place) return local(*place);
    if (op.communicates) return;
    if (op.traits.marks_sharding)
      return mark(node.operands(), *node.attributes_as<ShardingMark>().sharding);
    bool any = false;
    for (const Value& operand : node.operands())
      if (std::optional<Sharding> known = specified_sharding(Tensor(operand))) {
        mesh(known->mesh(), &operand);
        any = any || explicit_sharding(operand);
      }
    if (any && op.sharding_rule) moves(moves_of(node, results), node.operands());
  }

  // What moves is known if both shardings are, also along automatic axes.
  void mark(std::span<const Value> operands, const Sharding& to) const {
    std::optional<Sharding> from = specified_sharding(Tensor(operands[0]));
    auto is_closed = [](const Sharding& sharding) {
      for (std::size_t d = 0; d < sharding.rank(); ++d)
        if (sharding.is_open(d)) return false;
      return true;
    };
    bool is_known = from && from->mesh() == to.mesh() && from->mesh().find_axis(axis_) &&
                    is_closed(*from) && is_closed(to);
    if (!is_known && !leaves_manual(operands[0])) mesh(to.mesh(), nullptr);
    if (from && from->mesh() == to.mesh()) moves(axis_moves(*from, to), operands);
  }

  // Each device computes on what it has, but along axes that are not manual.
  void local(const ManualAxes& place) const {
    if (size_in(place.mesh, axis_) == 1) return;
    if (place.axes.contains(place.mesh.axis_index(axis_))) return;
    fail(cat("is recorded inside ", place.to_string(), ", where axis \"", axis_,
             "\" is not manual: what moves over it is not known before the program is compiled"));
  }

  void mesh(const Mesh& mesh, const Value* operand) const {
    std::optional<std::size_t> found = mesh.find_axis(axis_);
    if (!found) fail(cat("is on ", mesh, ", which has no axis \"", axis_, "\""));
    const MeshAxis& axis = mesh.axes()[*found];
    if (axis.size == 1 || axis.kind == AxisKind::kExplicit) return;
    fail(cat("has ",
             operand ? cat("an operand, ", operand->type(), " made at ", (*operand)->where(), ",")
                     : std::string("a sharding"),
             " over the automatic axis \"", axis_, "\" of ", mesh,
             ": what moves over it is the compiler's choice, which is not known before the program "
             "is compiled. Make the axis explicit: mesh.with_axis_kind({\"",
             axis_, "\"}, AxisKind::kExplicit)"));
  }

  void moves(const std::vector<AxisMove>& found, std::span<const Value> operands) const {
    for (const AxisMove& move : found)
      for (const AxisRef& each : move.axes)
        if (each.name == axis_) moved(move, operands[move.operand]);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& note = {}) const {
    Error error(ErrorCode::kInvalidArgument, cat("[", op_, "] ", what), where_);
    if (!note.empty()) error = std::move(error).with_note(note);
    throw std::move(error).with_note(
        cat("forbid_collectives at ", scope_.where(), " excludes this axis"));
  }

  void moved(const AxisMove& move, const Value& operand) const {
    const ManualAxes* place = manual_axes(operand);
    std::optional<Sharding> known = specified_sharding(Tensor(operand));
    if ((place && size_in(place->mesh, axis_) == 1) ||
        (known && size_in(known->mesh(), axis_) == 1))
      return;
    fail(cat("communicates over axis \"", axis_, "\": ", move.why),
         cat("operand ", move.operand, ", ", operand.type(), " made at ", operand->where(),
             known ? cat(", is ", known->spec(), " over ", known->mesh()) : std::string()));
  }

  static std::vector<AxisMove> moves_of(const Node& node, const Annotations* results) {
    const Mesh* mesh = nullptr;
    for (const Value& operand : node.operands())
      if (const Sharding* own = explicit_sharding(operand)) mesh = &own->mesh();
    std::vector<Sharding> from, to;
    for (const Value& operand : node.operands()) {
      const Sharding* own = explicit_sharding(operand);
      auto rank = static_cast<std::size_t>(operand.type().rank());
      from.push_back(own ? own->with_rank(rank) : Sharding::replicated(*mesh, rank));
    }
    for (std::uint32_t r = 0; r < node.num_outputs(); ++r) {
      auto rank = static_cast<std::size_t>(node.type(r).rank());
      bool known = results && r < results->shardings.size() && results->shardings[r];
      to.push_back(known ? results->shardings[r]->with_rank(rank)
                         : Sharding::replicated(*mesh, rank));
      if (to.back().mesh() != *mesh) return {};  // an error elsewhere
    }
    return axis_moves(node.op().sharding_rule(call_of(node)), from, to);
  }

  const ForbidCollectives& scope_;
  const std::string& axis_;
  std::string_view op_;
  const SourceLocation& where_;
};

template <class Check>
void for_each_forbidden(std::string_view op, const SourceLocation& where, const Check& check) {
  for (const ForbidCollectives* scope = internal::recorder().forbidden; scope;
       scope = scope->around())
    for (const std::string& axis : scope->axes()) check(ForbidCheck(*scope, axis, op, where));
}

}  // namespace

ForbidCollectives::ForbidCollectives(std::vector<std::string> axes, SourceLocation where)
    : axes_(std::move(axes)),
      where_(effective_source(where)),
      around_(internal::recorder().forbidden) {
  if (axes_.empty()) throw_invalid(where_, "[forbid_collectives] no axis is named");
  internal::recorder().forbidden = this;
}

ForbidCollectives::~ForbidCollectives() { internal::recorder().forbidden = around_; }

void internal::check_no_collectives(const Node& node, const Annotations* results) {
  for_each_forbidden(node.op().name, node.where(),
                     [&](const ForbidCheck& check) { check.node(node, results); });
}

void internal::check_no_move(const Value& value, const Sharding& to, const SourceLocation& where) {
  const Sharding* from = leaf_sharding(value);
  for_each_forbidden("mark_sharding", where, [&](const ForbidCheck& check) {
    if (from && from->mesh() == to.mesh()) check.moves(axis_moves(*from, to), {&value, 1});
  });
}

}  // namespace meshard

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"
#include "meshard/explain/collectives/collectives.h"
#include "meshard/explain/collectives/origin.h"
#include "meshard/graph/op_def.h"
#include "meshard/hlo/shape.h"
#include "meshard/runtime/chosen_shardings.h"

namespace meshard {
namespace {

bool is_reshard(const Collective& one) {
  if (one.form == CollectiveForm::kWindowedEinsum || one.form == CollectiveForm::kAcrossSlices)
    return false;
  for (const OriginPlace& place : one.origin.places)  // a collective of the program itself
    if (one.cause == CollectiveCause::kAsked &&
        (place.node ? !names_op_with(&OpTraits::marks_sharding, place.op)
                    : names_called_collective(place.op)))
      return false;
  switch (one.kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kRaggedAllToAll:
    case CollectiveKind::kCollectivePermute: return true;
    default: return false;
  }
}

// Sizes without ones, sorted: invariant if the compiler reshapes or transposes.
std::vector<std::int64_t> essence(std::vector<std::int64_t> sizes) {
  std::erase(sizes, 1);
  std::ranges::sort(sizes);
  return sizes;
}

template <class Range>
std::vector<std::int64_t> listed(const Range& range) {
  return std::vector<std::int64_t>(range.begin(), range.end());
}

std::string axes_in_words(const AxisList& axes) {
  std::string text;
  for (const AxisRef& axis : axes) append(text, text.empty() ? "" : ", ", axis);
  return text;
}

struct KnownValue {
  TensorType type;
  Sharding sharding;
};

// The shardings on both sides of a reshard, as far as known.
struct Sides {
  std::optional<KnownValue> from;
  std::optional<Sharding> to;
  std::optional<std::size_t> dimension;  // the dimension that becomes whole
};

class ReshardFinder {
 public:
  ReshardFinder(const HloModule& compiled, const HloModule* propagated, const ProgramFacts& facts)
      : facts_(facts) {
    for (const HloComputation& computation : compiled.computations)
      for (const HloInstruction& instruction : computation.instructions)
        compiled_.emplace(instruction.name, Place{&computation, &instruction});
    if (!propagated || !facts.program.mesh) return;
    for (const HloComputation& computation : propagated->computations) {
      indices_.emplace_back(computation);
      for (const HloInstruction& instruction : computation.instructions)
        if (!instruction.metadata.op_name.empty())
          by_op_name_[instruction.metadata.op_name].push_back(
              {&computation, &instruction, indices_.size() - 1});
    }
  }

  Reshard describe(const Collective& one) const {
    Reshard reshard;
    reshard.kind =
        one.kind == CollectiveKind::kAllGather ? ReshardKind::kGather : ReshardKind::kExchange;
    reshard.instruction = one.instruction;
    reshard.bytes = one.bytes();
    reshard.executions = one.executions;
    reshard.origin = one.origin;
    reshard.who = one.cause;
    auto found = compiled_.find(one.instruction);
    Sides sides;
    if (found != compiled_.end()) sides = sides_of(one, found->second);
    if (sides.from) {
      reshard.type = sides.from->type.to_string();
      reshard.from = sides.from->sharding.spec().to_string();
    }
    if (sides.to) reshard.to = sides.to->spec().to_string();
    if (sides.to && found != compiled_.end() && is_whole(*sides.to) && is_cut(found->second))
      reshard.kind = ReshardKind::kFullRematerialize;
    reshard.cause = cause(one, reshard, sides);
    return reshard;
  }

 private:
  struct Place {
    const HloComputation* computation = nullptr;
    const HloInstruction* instruction = nullptr;
    std::size_t index = 0;
  };

  static bool is_whole(const Sharding& sharding) {
    for (std::size_t i = 0; i < sharding.rank(); ++i)
      if (sharding.num_tiles(static_cast<std::int64_t>(i)) > 1) return false;
    return true;
  }

  // True if the instruction is followed by a dynamic-slice at the device's own offset.
  static bool is_cut(const Place& place) {
    for (const HloInstruction& user : place.computation->instructions) {
      if (std::ranges::find(user.operands, place.instruction->id) == user.operands.end()) continue;
      if (user.opcode == "dynamic-slice" || user.name.starts_with("dynamic-slice")) return true;
    }
    return false;
  }

  static std::vector<const HloShape*> operand_shapes(const Place& place) {
    std::vector<const HloShape*> shapes;
    for (std::int64_t id : place.instruction->operands)
      if (const HloInstruction* operand = place.computation->find(id))
        if (!operand->shape.is_tuple) shapes.push_back(&operand->shape);
    return shapes;
  }

  std::optional<KnownValue> known(const HloInstruction& instruction) const {
    if (!instruction.sharding) return std::nullopt;
    std::optional<TensorType> type = tensor_type_of(instruction.shape);
    if (!type) return std::nullopt;
    Result<Sharding> sharding =
        sharding_of(*instruction.sharding, facts_.program, static_cast<std::size_t>(type->rank()));
    if (!sharding.ok()) return std::nullopt;
    return KnownValue{*type, *std::move(sharding)};
  }

  // Whether the value's shards have the shape of an operand, exactly or up to ones and order.
  static bool has_shards(const KnownValue& value, const std::vector<const HloShape*>& shapes,
                         bool exactly) {
    std::vector<std::int64_t> shard = listed(value.sharding.shard_shape(value.type.shape));
    for (const HloShape* shape : shapes) {
      if (shard == shape->dimensions) return true;
      if (!exactly && essence(shard) == essence(shape->dimensions)) return true;
    }
    return false;
  }

  Sides sides_of(const Collective& one, const Place& place) const {
    auto consumers = by_op_name_.find(place.instruction->metadata.op_name);
    if (consumers == by_op_name_.end()) return {};
    std::vector<const HloShape*> shapes = operand_shapes(place);
    for (bool exactly : {true, false})
      for (const Place& consumer : consumers->second)
        if (std::optional<Sides> sides = sides_at(one, consumer, shapes, exactly)) return *sides;
    return {};
  }

  std::optional<Sides> sides_at(const Collective& one, const Place& consumer,
                                const std::vector<const HloShape*>& shapes, bool exactly) const {
    const InstructionIndex& index = indices_[consumer.index];
    std::optional<KnownValue> result = known(*consumer.instruction);
    std::vector<const HloInstruction*> candidates = index.operands(*consumer.instruction);
    candidates.push_back(consumer.instruction);
    for (const HloInstruction* candidate : candidates) {
      std::optional<KnownValue> value = known(*candidate);
      if (!value || !has_shards(*value, shapes, exactly)) continue;
      if (std::optional<Sides> sides = gathered(one, *value)) return sides;
      if (one.kind == CollectiveKind::kAllGather || candidate == consumer.instruction) continue;
      if (result && result->type.shape == value->type.shape && result->sharding != value->sharding)
        return Sides{value, result->sharding, std::nullopt};
    }
    return std::nullopt;
  }

  // The value without the gathered axes, if these shard one of its dimensions.
  static std::optional<Sides> gathered(const Collective& one, const KnownValue& value) {
    if (one.kind != CollectiveKind::kAllGather || !one.axes || one.axes->empty())
      return std::nullopt;
    std::vector<DimensionSpec> dimensions;
    std::optional<std::size_t> whole;
    for (std::size_t i = 0; i < value.sharding.rank(); ++i) {
      AxisList left;
      for (const AxisRef& axis : value.sharding.spec()[i].axes()) {
        if (std::ranges::find(*one.axes, axis) == one.axes->end())
          left.push_back(axis);
        else
          whole = i;
      }
      dimensions.emplace_back(std::move(left));
    }
    if (!whole) return std::nullopt;
    Sharding to(value.sharding.mesh(), PartitionSpec(std::move(dimensions)), value.sharding.rank());
    return Sides{value, std::move(to), whole};
  }

  static std::string cause(const Collective& one, const Reshard& reshard, const Sides& sides) {
    if (one.origin.places.empty()) return {};
    const OriginPlace& place = one.origin.places.front();
    std::string op =
        cat("`", last_part(place.op), "`", place.place.empty() ? "" : cat(" at ", place.place));
    std::string axes = one.axes ? axes_in_words(*one.axes) : std::string("its axes");
    if (reshard.kind == ReshardKind::kFullRematerialize)
      return cat(op,
                 " needs a sharding that no exchange produces: the whole value is gathered on "
                 "every device and sliced again");
    if (names_op_with(&OpTraits::marks_sharding, place.op))
      return cat("the mark", place.place.empty() ? "" : cat(" at ", place.place),
                 " requests another sharding than the value has");
    if (one.kind == CollectiveKind::kAllGather) {
      if (sides.dimension)
        return cat(op, " needs all of dimension ", *sides.dimension, ", which is split by ", axes);
      return cat(op, " needs all of a dimension that is split by ", axes);
    }
    if (sides.to)
      return cat(op, " uses ", reshard.to, ", but the value is sharded as ", reshard.from);
    return cat(op, " needs its operands split differently over ", axes);
  }

  const ProgramFacts& facts_;
  std::unordered_map<std::string, Place> compiled_;
  std::vector<InstructionIndex> indices_;
  std::unordered_map<std::string, std::vector<Place>> by_op_name_;
};

// The text between two markers; advances `text` past the second. Empty: not found.
std::string_view between(std::string_view& text, std::string_view begin, std::string_view end) {
  std::size_t first = text.find(begin);
  if (first == std::string_view::npos) return {};
  first += begin.size();
  std::size_t last = text.find(end, first);
  if (last == std::string_view::npos) return {};
  std::string_view found = text.substr(first, last - first);
  text.remove_prefix(last);
  return found;
}

// The op, with its result's type, or the argument that a place names.
std::string value_in_graph(const OriginPlace& place, const Graph& graph) {
  if (!place.node) return "";
  std::uint32_t number = *place.node, leaves = graph.num_leaves();
  if (number >= leaves) {
    const Node* node = graph.find(place.path.empty() ? std::to_string(number) : place.path);
    return node ? cat(node->op().name, " ", node->type()) : std::string();
  }
  std::size_t parameters = graph.parameters().size();
  const Value& leaf =
      number < parameters ? graph.parameters()[number] : graph.captured()[number - parameters];
  return cat(place.op, " ", leaf.type());
}

// The value that a collective of no reshard moves: what its first place names.
std::string moved_value(const Collective& one, const Graph* graph,
                        const std::unordered_map<std::string_view, const ValuePlacement*>& values) {
  if (one.origin.places.empty()) return "";
  const OriginPlace& place = one.origin.places[0];
  if (graph) return value_in_graph(place, *graph);
  auto value = values.find(place.op);
  return value == values.end() ? "" : cat(place.op, " ", value->second->type);
}

// False for ops that only move values or create constants: their users determine their sharding.
bool is_telling(const HloInstruction& instruction) {
  for (std::string_view opcode : {"parameter", "constant", "tuple", "get-tuple-element",
                                  "broadcast", "iota", "bitcast", "call", "while", "conditional"})
    if (instruction.opcode == opcode) return false;
  return !instruction.metadata.op_name.empty() && instruction.sharding.has_value();
}

std::string line_of(const HloMetadata& metadata) {
  if (metadata.source_file.empty()) return {};
  std::size_t slash = metadata.source_file.rfind('/');
  std::string file = metadata.source_file.substr(slash == std::string::npos ? 0 : slash + 1);
  return metadata.source_line > 0 ? cat(file, ":", metadata.source_line) : file;
}

struct Intermediate {
  ValuePlacement placement;
  bool marked = false;
};

class IntermediateFinder {
 public:
  // Argument names count as seen, because copies of an argument carry its name.
  explicit IntermediateFinder(const ProgramFacts& facts)
      : facts_(facts), seen_(facts.argument_names.begin(), facts.argument_names.end()) {}

  void visit(const HloInstruction& instruction) {
    if (!is_telling(instruction)) return;
    std::optional<TensorType> type = tensor_type_of(instruction.shape);
    if (!type || type->rank() == 0) return;
    const std::string& name = instruction.metadata.op_name;
    if (!seen_.insert(name).second) return;
    Result<Sharding> sharding =
        sharding_of(*instruction.sharding, facts_.program, static_cast<std::size_t>(type->rank()));
    if (!sharding.ok()) return;
    Intermediate found;
    ValuePlacement& placed = found.placement;
    placed.name = without_phase(name);
    placed.place = line_of(instruction.metadata);
    placed.type = placed.padded = *type;
    Dimensions padded;
    for (std::int64_t size : sharding->padded_shape(type->shape)) padded.push_back(size);
    placed.padded.shape = Shape(std::move(padded));
    placed.sharding = *std::move(sharding);
    found.marked = names_op_with(&OpTraits::marks_sharding, name);
    if (std::string_view path = node_path_in_op_name(name); !path.empty() && facts_.graph) {
      if (!describe_node(path, placed, found.marked)) return;
    }
    placed.chosen_by_compiler = !found.marked;
    found_.push_back(std::move(found));
  }

  std::vector<ValuePlacement> take() {
    std::ranges::stable_sort(found_, [](const auto& a, const auto& b) {
      if (a.marked != b.marked) return a.marked;
      return a.placement.type.bytes() > b.placement.type.bytes();
    });
    std::vector<ValuePlacement> placements;
    for (Intermediate& one : found_) placements.push_back(std::move(one.placement));
    return placements;
  }

 private:
  bool describe_node(std::string_view path, ValuePlacement& placed, bool& marked) const {
    const Node* node = facts_.graph->find(path);
    if (!node) return false;
    placed.name = node->op().name;
    placed.place = node->where().to_string();
    marked = node->op().traits.marks_sharding;
    return true;
  }

  const ProgramFacts& facts_;
  std::vector<Intermediate> found_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

std::string Reshard::to_string() const {
  std::string text = cat(meshard::to_string(kind), type.empty() ? "" : " of ", type);
  if (!from.empty() || !to.empty()) append(text, " from ", from, " to ", to);
  append(text, ", ", byte_text(bytes));
  if (executions != 1) append(text, " x ", executions);
  append(text, ", from ", origin.to_string());
  if (who != CollectiveCause::kUnknown) append(text, ", ", meshard::to_string(who));
  if (!cause.empty()) append(text, ": ", cause);
  return text;
}

std::vector<Reshard> find_reshards(const HloModule& compiled,
                                   const std::vector<Collective>& collectives,
                                   const HloModule* propagated, const ProgramFacts& facts) {
  std::vector<Reshard> reshards;
  if (std::ranges::none_of(collectives, is_reshard)) return reshards;
  ReshardFinder finder(compiled, propagated, facts);
  for (const Collective& one : collectives)
    if (is_reshard(one)) reshards.push_back(finder.describe(one));
  return reshards;
}

std::vector<Reshard> rematerializations_in_log(std::string_view log) {
  constexpr std::string_view kWarning = "Involuntary full rematerialization";
  std::vector<Reshard> found;
  for (std::size_t at = log.find(kWarning); at != std::string_view::npos;
       at = log.find(kWarning, at + 1)) {
    std::size_t end = log.find(kWarning, at + kWarning.size());
    std::string_view text =
        log.substr(at, end == std::string_view::npos ? std::string_view::npos : end - at);
    Reshard reshard;
    reshard.kind = ReshardKind::kFullRematerialize;
    reshard.who = CollectiveCause::kInserted;
    reshard.from = between(text, "from sharding ", " to ");
    reshard.to = between(text, " to ", " without doing");
    std::string_view operation = between(text, "HLO operation: ", "You probably");
    std::string_view rest = operation;
    std::string_view name = rest.substr(0, rest.find(" = "));
    while (!name.empty() && name.front() == '%') name.remove_prefix(1);
    reshard.instruction = name;
    reshard.type = between(rest, " = ", "{");
    rest = operation;
    std::string_view op = between(rest, "op_name=\"", "\"");
    if (!op.empty()) {
      reshard.origin.certainty = OriginCertainty::kExact;
      OriginPlace place = foreign_place(op, {});
      place.node = node_in_op_name(op);
      reshard.origin.places.push_back(std::move(place));
    }
    reshard.cause =
        "no exchange converts one sharding into the other: the compiler gathers the whole value on "
        "every device and slices it again";
    found.push_back(std::move(reshard));
  }
  return found;
}

std::vector<Collective> with_moves(std::vector<Collective> collectives,
                                   const std::vector<Reshard>& reshards,
                                   const std::vector<ValuePlacement>& intermediates,
                                   const Graph* graph) {
  std::unordered_map<std::string_view, const Reshard*> reshard_of, typed;
  for (const Reshard& each : reshards) {
    reshard_of.emplace(each.instruction, &each);
    if (!each.type.empty()) typed.emplace(each.instruction, &each);
  }
  std::unordered_map<std::string_view, const ValuePlacement*> values;
  for (const ValuePlacement& each : intermediates) values.emplace(each.name, &each);
  for (Collective& one : collectives) {
    auto type = typed.find(one.instruction);
    one.tensor = type == typed.end() ? moved_value(one, graph, values) : type->second->type;
    auto found = reshard_of.find(one.instruction);
    if (found == reshard_of.end()) continue;
    CollectivePurpose& purpose = one.purpose;
    purpose.from = found->second->from;
    purpose.to = found->second->to;
    if (purpose.from.empty() || purpose.to.empty()) purpose.from = purpose.to = "";
    if (purpose.kind == PurposeKind::kActivations && !purpose.from.empty())
      purpose.kind = PurposeKind::kReshard;
  }
  return collectives;
}

std::optional<TensorType> tensor_type_of(const HloShape& shape) {
  if (shape.is_tuple) return std::nullopt;
  Result<DType> dtype = dtype_of_element(shape.element);
  if (!dtype.ok()) return std::nullopt;
  Dimensions sizes;
  for (std::int64_t size : shape.dimensions) {
    if (size < 0) return std::nullopt;
    sizes.push_back(size);
  }
  return TensorType{*dtype, Shape(std::move(sizes))};
}

std::vector<ValuePlacement> find_intermediates(const HloModule& propagated,
                                               const ProgramFacts& facts) {
  if (!facts.program.mesh) return {};
  IntermediateFinder finder(facts);
  for (const HloComputation& computation : propagated.computations)
    for (const HloInstruction& instruction : computation.instructions) finder.visit(instruction);
  return finder.take();
}

}  // namespace meshard

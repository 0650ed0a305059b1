// Tested in meshard/explain/explain_for_test.cc.
#include "meshard/explain/intermediates.h"

#include <algorithm>
#include <unordered_set>

#include "meshard/base/cat.h"
#include "meshard/explain/collectives/op_scope.h"
#include "meshard/explain/collectives/origin.h"
#include "meshard/graph/op_def.h"
#include "meshard/hlo/element_dtype.h"
#include "meshard/runtime/chosen_shardings.h"

namespace meshard {
namespace {

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
    std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
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

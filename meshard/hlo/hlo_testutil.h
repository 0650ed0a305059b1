// Handwritten compiled modules, for tests.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "meshard/hlo/module.h"

namespace meshard {

inline ReplicaGroups listed_groups(std::vector<std::vector<std::int64_t>> groups) {
  return {.listed = std::move(groups)};
}

inline HloShape array_shape(pjrt::ElementType element, std::vector<std::int64_t> dimensions) {
  HloShape shape;
  shape.element = element;
  shape.dimensions = std::move(dimensions);
  return shape;
}

inline HloShape f32_shape(std::vector<std::int64_t> dimensions) {
  return array_shape(pjrt::ElementType::kF32, std::move(dimensions));
}

inline HloShape s32_scalar() { return array_shape(pjrt::ElementType::kS32, {}); }

inline HloShape tuple_shape(std::vector<HloShape> parts) {
  HloShape shape;
  shape.is_tuple = true;
  shape.tuple = std::move(parts);
  return shape;
}

inline HloInstruction make_instruction(std::int64_t id, std::string opcode, HloShape shape,
                                       std::vector<std::int64_t> operands = {},
                                       std::string op_name = "") {
  HloInstruction one;
  one.id = id;
  one.name = opcode + "." + std::to_string(id);
  one.opcode = std::move(opcode);
  one.shape = std::move(shape);
  one.operands = std::move(operands);
  one.metadata.op_name = std::move(op_name);
  return one;
}

/// A collective over `groups` of devices.
inline HloInstruction make_collective(std::int64_t id, std::string opcode, HloShape shape,
                                      std::vector<std::int64_t> operands, std::string op_name,
                                      std::vector<std::vector<std::int64_t>> groups) {
  HloInstruction one = make_instruction(id, std::move(opcode), std::move(shape),
                                        std::move(operands), std::move(op_name));
  one.channel_id = id;
  one.use_global_device_ids = true;
  one.groups = listed_groups(std::move(groups));
  return one;
}

inline HloInstruction calling(HloInstruction one, std::vector<std::int64_t> computations) {
  one.called_computations = std::move(computations);
  return one;
}

inline HloInstruction make_constant(std::int64_t id, std::int64_t value) {
  HloInstruction one = make_instruction(id, "constant", s32_scalar());
  one.literal = value;
  return one;
}

inline HloInstruction make_parameter(std::int64_t id, std::int64_t number, HloShape shape) {
  HloInstruction one = make_instruction(id, "parameter", std::move(shape));
  one.parameter_number = number;
  return one;
}

inline HloInstruction make_element(std::int64_t id, std::int64_t of, std::int64_t index,
                                   HloShape shape = s32_scalar()) {
  HloInstruction one = make_instruction(id, "get-tuple-element", std::move(shape), {of});
  one.tuple_index = index;
  return one;
}

inline HloInstruction make_compare(std::int64_t id, std::string direction, std::int64_t left,
                                   std::int64_t right) {
  HloInstruction one =
      make_instruction(id, "compare", array_shape(pjrt::ElementType::kPred, {}), {left, right});
  one.comparison_direction = std::move(direction);
  return one;
}

/// Computation number i has id i and its last instruction as root; the first is the entry.
inline HloModule make_module(std::vector<std::vector<HloInstruction>> computations) {
  HloModule module;
  module.name = "made";
  for (auto& instructions : computations) {
    HloComputation computation;
    computation.id = static_cast<std::int64_t>(module.computations.size());
    computation.name = "c" + std::to_string(computation.id);
    computation.root = instructions.empty() ? 0 : instructions.back().id;
    computation.instructions = std::move(instructions);
    module.computations.push_back(std::move(computation));
  }
  return module;
}

}  // namespace meshard

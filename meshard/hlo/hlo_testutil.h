// Handwritten compiled modules, for tests.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "meshard/pjrt/hlo_module.h"

namespace meshard {

inline pjrt::ReplicaGroups listed_groups(std::vector<std::vector<std::int64_t>> groups) {
  pjrt::ReplicaGroups made;
  made.form = pjrt::ReplicaGroups::Form::kListed;
  made.listed = std::move(groups);
  return made;
}

inline pjrt::HloShape array_shape(pjrt::ElementType element, std::vector<std::int64_t> dimensions) {
  pjrt::HloShape shape;
  shape.element = element;
  shape.dimensions = std::move(dimensions);
  return shape;
}

inline pjrt::HloShape f32_shape(std::vector<std::int64_t> dimensions) {
  return array_shape(pjrt::ElementType::kF32, std::move(dimensions));
}

inline pjrt::HloShape s32_scalar() { return array_shape(pjrt::ElementType::kS32, {}); }

inline pjrt::HloShape tuple_shape(std::vector<pjrt::HloShape> parts) {
  pjrt::HloShape shape;
  shape.is_tuple = true;
  shape.tuple = std::move(parts);
  return shape;
}

inline pjrt::HloInstruction make_instruction(std::int64_t id, std::string opcode,
                                             pjrt::HloShape shape,
                                             std::vector<std::int64_t> operands = {},
                                             std::string op_name = "") {
  pjrt::HloInstruction one;
  one.id = id;
  one.name = opcode + "." + std::to_string(id);
  one.opcode = std::move(opcode);
  one.shape = std::move(shape);
  one.operands = std::move(operands);
  one.metadata.op_name = std::move(op_name);
  return one;
}

/// A collective over `groups` of devices.
inline pjrt::HloInstruction make_collective(std::int64_t id, std::string opcode,
                                            pjrt::HloShape shape,
                                            std::vector<std::int64_t> operands, std::string op_name,
                                            std::vector<std::vector<std::int64_t>> groups) {
  pjrt::HloInstruction one = make_instruction(id, std::move(opcode), std::move(shape),
                                              std::move(operands), std::move(op_name));
  one.channel_id = id;
  one.use_global_device_ids = true;
  one.groups = listed_groups(std::move(groups));
  return one;
}

inline pjrt::HloInstruction calling(pjrt::HloInstruction one,
                                    std::vector<std::int64_t> computations) {
  one.called_computations = std::move(computations);
  return one;
}

inline pjrt::HloInstruction make_constant(std::int64_t id, std::int64_t value) {
  pjrt::HloInstruction one = make_instruction(id, "constant", s32_scalar());
  one.literal = value;
  return one;
}

inline pjrt::HloInstruction make_parameter(std::int64_t id, std::int64_t number,
                                           pjrt::HloShape shape) {
  pjrt::HloInstruction one = make_instruction(id, "parameter", std::move(shape));
  one.parameter_number = number;
  return one;
}

inline pjrt::HloInstruction make_element(std::int64_t id, std::int64_t of, std::int64_t index,
                                         pjrt::HloShape shape = s32_scalar()) {
  pjrt::HloInstruction one = make_instruction(id, "get-tuple-element", std::move(shape), {of});
  one.tuple_index = index;
  return one;
}

inline pjrt::HloInstruction make_compare(std::int64_t id, std::string direction, std::int64_t left,
                                         std::int64_t right) {
  pjrt::HloInstruction one =
      make_instruction(id, "compare", array_shape(pjrt::ElementType::kPred, {}), {left, right});
  one.comparison_direction = std::move(direction);
  return one;
}

/// Computation number i has id i and its last instruction as root; the first is the entry.
inline pjrt::HloModule make_module(std::vector<std::vector<pjrt::HloInstruction>> computations) {
  pjrt::HloModule module;
  module.name = "made";
  for (auto& instructions : computations) {
    pjrt::HloComputation computation;
    computation.id = static_cast<std::int64_t>(module.computations.size());
    computation.name = "c" + std::to_string(computation.id);
    computation.root = instructions.empty() ? 0 : instructions.back().id;
    computation.instructions = std::move(instructions);
    module.computations.push_back(std::move(computation));
  }
  return module;
}

}  // namespace meshard

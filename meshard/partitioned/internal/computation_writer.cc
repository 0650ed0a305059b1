// Tested in meshard/partitioned/rewrite_test.cc.
#include "meshard/partitioned/internal/computation_writer.h"

#include <algorithm>

#include "meshard/pjrt/wire.h"

namespace meshard::internal {
namespace {

using pjrt::WireWriter;

EditedInstruction new_instruction(std::string opcode, std::int64_t id, std::string shape) {
  EditedInstruction instruction;
  instruction.id = id;
  instruction.name = cat(opcode, ".chain.", id);
  instruction.opcode = std::move(opcode);
  instruction.shape = std::move(shape);
  return instruction;
}

}  // namespace

IdSource::IdSource(const EditedModule& module) {
  for (const EditedComputation& computation : module.computations) {
    next_computation = std::max(next_computation, computation.id + 1);
    for (const EditedInstruction& each : computation.instructions)
      next = std::max(next, each.id + 1);
  }
}

bool is_numbered_by_computation(const EditedComputation& computation) {
  return std::all_of(computation.instructions.begin(), computation.instructions.end(),
                     [&](const EditedInstruction& each) {
                       return each.id >> 32 == computation.id && computation.id > 0;
                     });
}

ComputationWriter::ComputationWriter(EditedComputation& computation, IdSource& ids)
    : computation_(computation),
      ids_(ids),
      numbered_by_computation_(is_numbered_by_computation(computation)) {
  for (const EditedInstruction& each : computation.instructions) {
    next_id_ = std::max(next_id_, each.id + 1);
    if (each.opcode != "get-tuple-element")
      whole_.insert(each.operands.begin(), each.operands.end());
  }
  whole_.insert(computation.root);
}

std::int64_t ComputationWriter::add(EditedInstruction instruction) {
  std::int64_t id = instruction.id;
  shapes_[id] = instruction.shape;
  if (instruction.opcode == "tuple") tuples_[id] = instruction.operands;
  instructions_.push_back(std::move(instruction));
  return id;
}

std::int64_t ComputationWriter::add_element(std::int64_t tuple, std::size_t index,
                                            const std::string& shape,
                                            std::optional<std::int64_t> id) {
  EditedInstruction element = new_instruction("get-tuple-element", id ? *id : fresh(), shape);
  element.operands = {tuple};
  WireWriter rest;
  rest.add_varint(13, index);
  element.rest = rest.take();
  return add(std::move(element));
}

std::int64_t ComputationWriter::add_tuple(const std::vector<std::int64_t>& parts,
                                          std::optional<std::int64_t> id) {
  std::vector<std::string> shapes;
  for (std::int64_t part : parts) shapes.push_back(shape_of(part));
  EditedInstruction tuple = new_instruction("tuple", id ? *id : fresh(), tuple_shape(shapes));
  tuple.operands = parts;
  return add(std::move(tuple));
}

std::int64_t ComputationWriter::add_zero() {
  EditedInstruction constant = new_instruction("constant", fresh(), chain_shape());
  WireWriter literal, rest;
  literal.add_bytes(1, chain_shape());
  literal.add_packed(4, std::vector<int>{0});
  rest.add_message(8, literal);
  constant.rest = rest.take();
  return add(std::move(constant));
}

std::int64_t ComputationWriter::add_chain_parameter(std::size_t number) {
  EditedInstruction parameter = new_instruction("parameter", fresh(), chain_shape());
  WireWriter rest;
  rest.add_varint(9, number);
  parameter.rest = rest.take();
  return add(std::move(parameter));
}

std::vector<std::int64_t> ComputationWriter::parts_of(std::int64_t value) {
  if (!is_tuple_shape(shape_of(value))) return {value};
  if (auto found = tuples_.find(value); found != tuples_.end()) return found->second;
  std::vector<std::int64_t> parts;
  for (const std::string& shape : tuple_parts(shape_of(value)))
    parts.push_back(add_element(value, parts.size(), shape));
  return parts;
}

void ComputationWriter::deliver(std::int64_t value, const std::string& shape, std::int64_t tuple,
                                std::size_t first) {
  if (!is_tuple_shape(shape)) {
    add_element(tuple, first, shape, value);
    return;
  }
  std::vector<std::int64_t> parts;
  for (const std::string& part : tuple_parts(shape))
    parts.push_back(add_element(tuple, first++, part));
  add_tuple(parts, value);
}

void ComputationWriter::finish() { computation_.instructions = std::move(instructions_); }

}  // namespace meshard::internal

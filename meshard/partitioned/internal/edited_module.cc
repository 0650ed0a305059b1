// Tested in meshard/partitioned/rewrite_test.cc.
#include "meshard/partitioned/internal/edited_module.h"

#include <algorithm>

#include "meshard/pjrt/wire.h"

// Field numbers are those of xla/service/hlo.proto and xla/xla_data.proto.

namespace meshard::internal {
namespace {

EditedInstruction new_instruction(std::string opcode, std::int64_t id, std::string shape) {
  EditedInstruction instruction;
  instruction.id = id;
  instruction.name = cat(opcode, ".chain.", id);
  instruction.opcode = std::move(opcode);
  instruction.shape = std::move(shape);
  return instruction;
}

using pjrt::append_numbers;
using pjrt::field;
using pjrt::read_message;
using pjrt::WireField;
using pjrt::WireReader;
using pjrt::WireWriter;

constexpr int kTuple = 13, kS32 = 4;  // of PrimitiveType

Error damaged_module(std::string_view what) {
  return Error(ErrorCode::kDataLoss, cat("[partition] the partitioned module is damaged: ", what));
}

// Fields that are not edited.
auto kept_in(WireWriter& rest) {
  return pjrt::other_fields([&](const WireField& from) { rest.add_field(from); });
}
auto skipped_field(int number) {
  return pjrt::on_field(number, [](const WireField&) {});
}

Result<EditedInstruction> read_edited_instruction(std::string_view bytes,
                                                  const HloInstruction& original) {
  EditedInstruction to;
  to.original = &original;
  WireWriter rest;
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "an instruction", field(1, to.name),
                                       field(2, to.opcode), field(3, to.shape), field(35, to.id),
                                       field(36, to.operands), field(37, to.control_predecessors),
                                       field(38, to.called), skipped_field(40), kept_in(rest)));
  to.rest = rest.take();
  return to;
}

Result<EditedComputation> read_edited_computation(std::string_view bytes,
                                                  const HloComputation& original) {
  EditedComputation to;
  WireWriter rest;
  auto instruction = [&](std::string_view part) -> Result<EditedInstruction> {
    std::size_t index = to.instructions.size();
    if (index >= original.instructions.size()) return damaged_module("a computation");
    return read_edited_instruction(part, original.instructions[index]);
  };
  MESHARD_RETURN_IF_ERROR(read_message(
      bytes, "a computation", field(1, to.name), field(2, to.instructions, instruction),
      field(4, to.program_shape), field(5, to.id), field(6, to.root), kept_in(rest)));
  to.rest = rest.take();
  return to;
}

// Operands precede their users, callees their callers, and ids are unique.
Result<void> check_references(const EditedModule& module) {
  std::unordered_set<std::int64_t> computations;
  for (const EditedComputation& computation : module.computations) {
    std::unordered_set<std::int64_t> ids;
    for (const EditedInstruction& each : computation.instructions) {
      for (std::int64_t operand : each.operands)
        if (!ids.count(operand)) return damaged_module(cat(each.name, " has no operand ", operand));
      for (std::int64_t before : each.control_predecessors)
        if (!ids.count(before))
          return damaged_module(cat(each.name, " has no control predecessor ", before));
      for (std::int64_t called : each.called)
        if (!computations.count(called))
          return damaged_module(cat(each.name, " calls no computation ", called));
      if (each.id < 0 || each.id >> 62 != 0) return damaged_module(cat("the id ", each.id));
      if (!ids.insert(each.id).second) return damaged_module(cat("id ", each.id, " occurs twice"));
    }
    if (!ids.count(computation.root))
      return damaged_module(cat("computation ", computation.name, " has no root"));
    if (computation.id < 0 || computation.id >> 62 != 0)
      return damaged_module(cat("the computation id ", computation.id));
    if (!computations.insert(computation.id).second)
      return damaged_module(cat("computation id ", computation.id, " occurs twice"));
  }
  return {};
}

// The computations that the entry computation needs.
std::unordered_set<std::int64_t> reachable(const EditedModule& module) {
  std::unordered_map<std::int64_t, const EditedComputation*> by_id;
  for (const EditedComputation& each : module.computations) by_id[each.id] = &each;
  std::unordered_set<std::int64_t> seen = {module.entry};
  std::vector<std::int64_t> open = {module.entry};
  while (!open.empty()) {
    const EditedComputation& computation = *by_id.at(open.back());
    open.pop_back();
    for (const EditedInstruction& each : computation.instructions)
      for (std::int64_t called : each.called)
        if (seen.insert(called).second) open.push_back(called);
  }
  return seen;
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
  return std::ranges::all_of(computation.instructions, [&](const EditedInstruction& each) {
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

std::string EditedInstruction::bytes() const {
  WireWriter writer;
  writer.add_bytes(1, name);
  writer.add_bytes(2, opcode);
  writer.add_bytes(3, shape);
  writer.add_varint(35, static_cast<std::uint64_t>(id));
  writer.add_packed(36, operands);
  writer.add_packed(37, control_predecessors);
  writer.add_packed(38, called);
  return writer.take() + rest;
}

void EditedInstruction::clear(int field) { rest = without_field(rest, field); }

std::string EditedComputation::bytes() const {
  WireWriter writer;
  writer.add_bytes(1, name);
  for (const EditedInstruction& each : instructions) writer.add_bytes(2, each.bytes());
  writer.add_bytes(4, program_shape);
  writer.add_varint(5, static_cast<std::uint64_t>(id));
  writer.add_varint(6, static_cast<std::uint64_t>(root));
  return writer.take() + rest;
}

const EditedInstruction* EditedComputation::find(std::int64_t instruction) const {
  auto found = std::ranges::find(instructions, instruction, &EditedInstruction::id);
  return found == instructions.end() ? nullptr : &*found;
}

Result<EditedModule> EditedModule::from_bytes(std::string_view bytes) {
  EditedModule to;
  WireWriter with_config;
  with_config.add_bytes(1, bytes);
  MESHARD_ASSIGN_OR_RETURN(to.original, HloModule::from_bytes(with_config.bytes()));
  to.entry = to.original.entry_id;
  WireWriter rest;
  auto computation = [&](std::string_view part) -> Result<EditedComputation> {
    std::size_t index = to.computations.size();
    if (index >= to.original.computations.size()) return damaged_module("the computations");
    return read_edited_computation(part, to.original.computations[index]);
  };
  MESHARD_RETURN_IF_ERROR(
      read_message(bytes, "the partitioned module", field(3, to.computations, computation),
                   field(4, to.host_program_shape), skipped_field(6),  // written from `entry`
                   field(8, to.input_output_alias),
                   // The module's number in the process that compiled it; the schedule, the
                   // shardings and the device assignment of the whole mesh.
                   skipped_field(5), skipped_field(7), skipped_field(12), skipped_field(14),
                   skipped_field(15), kept_in(rest)));
  if (to.find(to.entry) == nullptr) return damaged_module("the entry computation");
  to.rest = rest.take();
  MESHARD_RETURN_IF_ERROR(check_references(to));
  return to;
}

std::string EditedModule::bytes() const {
  std::unordered_set<std::int64_t> needed = reachable(*this);
  WireWriter writer;
  for (const EditedComputation& each : computations)
    if (needed.count(each.id)) writer.add_bytes(3, each.bytes());
  writer.add_bytes(4, host_program_shape);
  writer.add_varint(6, static_cast<std::uint64_t>(entry));
  writer.add_bytes(8, input_output_alias);
  return rest + writer.take();
}

EditedComputation* EditedModule::find(std::int64_t computation) {
  auto found = std::ranges::find(computations, computation, &EditedComputation::id);
  return found == computations.end() ? nullptr : &*found;
}

const EditedComputation* EditedModule::find(std::int64_t computation) const {
  return const_cast<EditedModule*>(this)->find(computation);
}

std::string chain_shape() {
  WireWriter writer;
  writer.add_varint(2, kS32);
  writer.add_bytes(5, "");  // its layout
  return writer.take();
}

bool is_tuple_shape(std::string_view shape) {
  std::uint64_t element = 0;
  WireReader reader(shape);
  while (auto field = reader.next())
    if (field->number == 2) element = field->value;
  return element == kTuple;
}

std::vector<std::string> tuple_parts(std::string_view shape) {
  std::vector<std::string> parts;
  WireReader reader(shape);
  while (auto field = reader.next())
    if (field->number == 4) parts.emplace_back(field->bytes);
  return parts;
}

std::string tuple_shape(const std::vector<std::string>& parts) {
  WireWriter writer;
  writer.add_varint(2, kTuple);
  for (const std::string& part : parts) writer.add_bytes(4, part);
  return writer.take();
}

std::string with_chain(std::string_view shape) {
  std::vector<std::string> parts = {std::string(shape)};
  if (is_tuple_shape(shape)) parts = tuple_parts(shape);
  parts.push_back(chain_shape());
  return tuple_shape(parts);
}

std::string row_major(std::string_view shape) {
  if (is_tuple_shape(shape)) {
    std::vector<std::string> parts;
    for (const std::string& part : tuple_parts(shape)) parts.push_back(row_major(part));
    return tuple_shape(parts);
  }
  std::vector<std::int64_t> dimensions, minor_to_major;
  WireReader reader(shape);
  while (auto field = reader.next())
    if (field->number == 3) (void)append_numbers(*field, dimensions);
  for (std::size_t d = dimensions.size(); d-- > 0;)
    minor_to_major.push_back(static_cast<std::int64_t>(d));
  WireWriter layout, result;
  layout.add_packed(1, minor_to_major);
  result.add_message(5, layout);
  return without_field(shape, 5) + result.take();
}

std::string without_field(std::string_view message, int field) {
  WireWriter writer;
  WireReader reader(message);
  while (auto each = reader.next())
    if (each->number != field) writer.add_field(*each);
  return writer.take();
}

}  // namespace meshard::internal

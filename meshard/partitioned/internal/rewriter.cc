// Tested in meshard/partitioned/rewrite_test.cc.
#include "meshard/partitioned/internal/rewriter.h"

#include <algorithm>

#include "meshard/pjrt/executable.h"
#include "meshard/pjrt/wire.h"

namespace meshard::internal {
namespace {

using pjrt::WireReader;
using pjrt::WireWriter;

constexpr int kMostDepth =
    200;  // of nested loops and calls; damaged modules could overflow the stack

// Fields of HloInstructionProto.
enum InstructionField {
  kMetadata = 7,
  kTarget = 28,
  kBackendConfig = 43,
  kConstrainLayout = 56,
  kOperandShapes = 57,
  kSideEffect = 65,
  kFrontendAttributes = 68,
  kApiVersion = 77,
  kOriginalValue = 88,
};

// The fields of an instruction that its replacement keeps.
std::string kept_fields(const EditedInstruction& instruction) {
  WireWriter writer;
  WireReader reader(instruction.rest);
  while (auto field = reader.next())
    if (field->number == kMetadata || field->number == kFrontendAttributes)
      writer.add_field(*field);
  return writer.take();
}

// Turns an instruction into a custom call of a collective. `operand_shapes`: row-major.
void become_call(EditedInstruction& instruction, const CollectiveCall& call,
                 const std::vector<std::string>& operand_shapes) {
  WireWriter rest;
  rest.add_bytes(kTarget, kCollectiveTarget);
  rest.add_bytes(kBackendConfig, call.to_string());
  rest.add_varint(kConstrainLayout, 1);
  for (const std::string& shape : operand_shapes) rest.add_bytes(kOperandShapes, shape);
  // Unlike other effects, this one keeps a call from being moved out of a branch. It orders
  // nothing.
  if (call.chained) rest.add_varint(kSideEffect, 1);
  constexpr std::uint64_t kTypedFfi = 4;
  rest.add_varint(kApiVersion, kTypedFfi);
  instruction.rest = kept_fields(instruction) + rest.take();
  instruction.opcode = "custom-call";
  instruction.called.clear();
}

CollectiveCall call_of(const FoundCollective& found, bool chained) {
  return {.kind = found.kind,
          .reduction = found.reduction,
          .dimension = found.dimension,
          .ranks = found.ranks,
          .sizes = found.sizes,
          .chained = chained,
          .where = found.where};
}

// Whether the parts of a shape are dense arrays whose elements take whole bytes.
bool is_plain(std::string_view shape) {
  if (is_tuple_shape(shape)) return false;
  bool plain = true;
  WireReader reader(shape);
  while (auto field = reader.next()) {
    constexpr int kElementType = 2, kDynamic = 6;
    if (field->number == kElementType) {
      pjrt::ElementType element =
          pjrt::element_type_of_primitive(static_cast<int>(field->value & 0xFFFF));
      plain &= pjrt::is_array_type(element) && pjrt::bit_width(element) >= 8;
    }
    if (field->number != kDynamic) continue;
    std::vector<std::int64_t> dynamic;
    (void)pjrt::append_numbers(*field, dynamic);
    plain &= std::ranges::all_of(dynamic, [](std::int64_t d) { return d == 0; });
  }
  return plain;
}

}  // namespace

struct Rewriter::Scope {
  EditedComputation& computation;
  Entry entry;
  ComputationWriter writer;
  std::vector<EditedInstruction> old;
  std::int64_t chain = 0;
  std::unordered_map<std::int64_t, Started> started = {};  // by id of the start half
};

const FoundCollective* Rewriter::found(const EditedInstruction& instruction) const {
  auto at = found_.find(instruction.original);
  return at == found_.end() ? nullptr : &at->second;
}

bool Rewriter::calls_communicating(const EditedInstruction& instruction) const {
  return std::ranges::any_of(instruction.called,
                             [&](std::int64_t each) { return communicates_.at(each); });
}

Error Rewriter::error(const EditedInstruction& instruction, ErrorCode code,
                      std::string_view what) const {
  return Error(code, cat("[partition] ", describe(*instruction.original, placement_), ": ", what));
}

Result<void> Rewriter::run() {
  MESHARD_RETURN_IF_ERROR(find_collectives());
  for (EditedComputation& computation : module_.computations) replace_positions(computation);
  if (communicates()) {
    EditedComputation& entry = module_.computations[index_.at(module_.entry)];
    if (callers_[entry.id] > 0)
      return Error(ErrorCode::kDataLoss, "[partition] the entry computation is called");
    edit_program_shape();
    MESHARD_RETURN_IF_ERROR(thread(entry, Entry::kParameter));
  }
  std::ranges::stable_sort(copies_, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<EditedComputation> all;
  std::size_t next = 0;
  for (std::size_t i = 0; i < module_.computations.size(); ++i) {
    all.push_back(std::move(module_.computations[i]));
    for (; next < copies_.size() && copies_[next].first == i; ++next)
      all.push_back(std::move(copies_[next].second));
  }
  module_.computations = std::move(all);
  return {};
}

Result<void> Rewriter::find_collectives() {
  for (std::size_t i = 0; i < module_.computations.size(); ++i) {
    const EditedComputation& computation = module_.computations[i];
    index_[computation.id] = i;
    bool communicates = false;
    for (const EditedInstruction& each : computation.instructions) {
      MESHARD_ASSIGN_OR_RETURN(auto one,
                               find_collective(*each.original, module_.original, placement_));
      uses_replicas_ |=
          each.opcode == "replica-id" || (!one && pjrt::is_collective_opcode(each.opcode));
      if (one) {
        communicates |=
            one->kind != CollectiveCallKind::kPosition && one->part != CollectivePart::kDone;
        found_.emplace(each.original, *std::move(one));
      }
      for (std::int64_t called : each.called) {
        ++callers_[called];
        communicates |= communicates_.at(called);
      }
    }
    communicates_[computation.id] = communicates;
  }
  return {};
}

void Rewriter::replace_positions(EditedComputation& computation) {
  for (EditedInstruction& each : computation.instructions) {
    const FoundCollective* one = found(each);
    if (one == nullptr || one->kind != CollectiveCallKind::kPosition) continue;
    become_call(each, call_of(*one, false), {});
    each.shape = row_major(each.shape);
  }
}

// A ProgramShapeProto with the chain: as one more parameter, or as a part of the only one, and as a
// part of the result.
std::string Rewriter::extended(std::string_view program_shape, Entry entry) {
  enum { kParameters = 1, kResult = 2, kNames = 3 };
  WireWriter writer;
  WireReader reader(program_shape);
  while (auto field = reader.next()) {
    bool extends = (field->number == kResult && entry != Entry::kCondition) ||
                   (field->number == kParameters && entry != Entry::kParameter);
    if (extends)
      writer.add_bytes(field->number, with_chain(field->bytes));
    else
      writer.add_field(*field);
  }
  if (entry == Entry::kParameter) {
    writer.add_bytes(kParameters, chain_shape());
    writer.add_bytes(kNames, "chain");
  }
  return writer.take();
}

void Rewriter::edit_program_shape() {
  // An output that was the whole result is the first part of it now.
  if (!module_.original.result.is_tuple) {
    enum { kEntry = 1, kOutputIndex = 1 };
    WireWriter aliases;
    WireReader reader(module_.input_output_alias);
    while (auto field = reader.next()) {
      if (field->number != kEntry) continue;
      WireWriter entry;
      entry.add_packed(kOutputIndex, std::vector<int>{0});
      aliases.add_bytes(kEntry, entry.take() + without_field(field->bytes, kOutputIndex));
    }
    module_.input_output_alias = aliases.take();
  }
  module_.host_program_shape = extended(module_.host_program_shape, Entry::kParameter);
}

// The computation that a threaded caller calls instead of `id`.
Result<std::int64_t> Rewriter::threaded(std::int64_t id, Entry entry) {
  if (auto at = done_.find({id, entry}); at != done_.end()) return at->second;
  if (depth_ >= kMostDepth)
    return Error(ErrorCode::kUnimplemented,
                 cat("[partition] computations are nested more than ", kMostDepth, " deep"));
  ++depth_;
  std::size_t index = index_.at(id);
  Result<void> result;
  std::int64_t target = id;
  if (callers_.at(id) == 1) {
    result = thread(module_.computations[index], entry);
  } else {
    EditedComputation copy = clone(module_.computations[index]);
    target = copy.id;
    result = thread(copy, entry);
    copies_.emplace_back(index, std::move(copy));
  }
  --depth_;
  if (!result.ok()) return result.error();
  done_[{id, entry}] = target;
  return target;
}

EditedComputation Rewriter::clone(const EditedComputation& computation) {
  EditedComputation copy = computation;
  bool by_computation = is_numbered_by_computation(computation);
  copy.id = ids_.next_computation++;
  append(copy.name, ".chain.", copy.id);
  std::unordered_map<std::int64_t, std::int64_t> ids;
  for (EditedInstruction& each : copy.instructions) {
    std::int64_t id = by_computation ? copy.id << 32 | (each.id & 0xFFFFFFFF) : ids_.next++;
    ids[each.id] = id;
    each.id = id;
    append(each.name, ".chain.", id);
    for (std::int64_t& operand : each.operands) operand = ids.at(operand);
    for (std::int64_t& before : each.control_predecessors) before = ids.at(before);
  }
  copy.root = ids.at(copy.root);
  return copy;
}

Result<void> Rewriter::thread(EditedComputation& computation, Entry entry) {
  Scope scope{.computation = computation,
              .entry = entry,
              .writer = ComputationWriter(computation, ids_),
              .old = {}};
  auto order =
      combined_order(computation, [&](const EditedInstruction& each) { return found(each); });
  scope.old = computation.instructions;
  MESHARD_RETURN_IF_ERROR(check_parameters(scope));
  enter(scope);
  for (const std::vector<std::size_t>& indices : order)
    MESHARD_RETURN_IF_ERROR(write(scope, indices));
  leave(scope);
  return {};
}

// The chain becomes the next parameter, or a part of the only one.
Result<void> Rewriter::check_parameters(const Scope& scope) const {
  std::vector<std::int64_t> numbers;
  for (const EditedInstruction& each : scope.old)
    if (each.opcode == "parameter") numbers.push_back(each.original->parameter_number);
  std::ranges::sort(numbers);
  bool good = scope.entry == Entry::kParameter || numbers.size() == 1;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    good &= numbers[i] == static_cast<std::int64_t>(i);
  if (good) return {};
  return Error(
      ErrorCode::kDataLoss,
      cat("[partition] ", scope.computation.name, " has the parameters ", join(numbers, ", "),
          scope.entry == Entry::kParameter ? "" : " instead of one state"));
}

void Rewriter::enter(Scope& scope) {
  std::size_t parameters = 0;
  for (EditedInstruction& each : scope.old) {
    if (each.opcode != "parameter") continue;
    ++parameters;
    // The state of a loop, or the operand of a branch, has the chain as its last part.
    if (scope.entry != Entry::kParameter) write_chained(scope, each);
  }
  if (scope.entry == Entry::kParameter) scope.chain = scope.writer.add_chain_parameter(parameters);
  scope.computation.program_shape = extended(scope.computation.program_shape, scope.entry);
}

void Rewriter::leave(Scope& scope) {
  if (scope.entry != Entry::kCondition) {
    std::vector<std::int64_t> parts = scope.writer.parts_of(scope.computation.root);
    parts.push_back(scope.chain);
    scope.computation.root = scope.writer.add_tuple(parts);
  }
  scope.writer.finish();
}

Result<void> Rewriter::write(Scope& scope, const std::vector<std::size_t>& indices) {
  const EditedInstruction& first = scope.old[indices.front()];
  const FoundCollective* one = found(first);
  bool is_whole = one != nullptr && one->kind != CollectiveCallKind::kPosition &&
                  one->part == CollectivePart::kWhole;
  if (!is_whole) return write_one(scope, first);
  std::vector<Member> members;
  for (std::size_t index : indices) {
    const EditedInstruction& each = scope.old[index];
    members.push_back({&each, found(each), each.shape});
  }
  MESHARD_ASSIGN_OR_RETURN(Started call, write_collective(scope, members));
  for (const Member& member : members) {
    scope.writer.deliver(member.instruction->id, row_major(member.result_shape), call.call,
                         call.first);
    call.first += is_tuple_shape(member.result_shape) ? tuple_parts(member.result_shape).size() : 1;
  }
  return {};
}

Result<void> Rewriter::write_one(Scope& scope, EditedInstruction instruction) {
  if (instruction.opcode == "parameter" && scope.entry != Entry::kParameter) return {};  // written
  if (const FoundCollective* one = found(instruction);
      one != nullptr && one->part == CollectivePart::kStart)
    return write_start(scope, instruction, *one);
  if (!instruction.operands.empty()) {
    auto start = scope.started.find(instruction.operands[0]);
    if (start != scope.started.end()) {
      scope.writer.deliver(instruction.id, row_major(instruction.shape), start->second.call,
                           start->second.first);
      return {};
    }
  }
  if (!calls_communicating(instruction)) {
    scope.writer.add(std::move(instruction));
    return {};
  }
  if (instruction.opcode == "while") return write_while(scope, std::move(instruction));
  if (instruction.opcode == "conditional") return write_conditional(scope, std::move(instruction));
  if (instruction.opcode == "call") return write_call(scope, std::move(instruction));
  if (instruction.opcode == "async-start") {
    MESHARD_ASSIGN_OR_RETURN(const FoundCollective* wrapped, wrapped_collective(instruction));
    return write_start(scope, instruction, *wrapped);
  }
  return error(instruction, ErrorCode::kUnimplemented,
               "it calls a computation with collectives, which only loops, conditionals and calls "
               "may do between processes");
}

// Adds an instruction, or the parameter of a loop or branch, with the chain as its last part.
void Rewriter::write_chained(Scope& scope, EditedInstruction instruction) {
  ComputationWriter& writer = scope.writer;
  std::int64_t id = instruction.id;
  std::string shape = instruction.shape;
  bool is_tuple = is_tuple_shape(shape), rebuilt = !is_tuple || writer.is_used_whole(id);
  if (rebuilt) {
    instruction.id = writer.fresh();
    append(instruction.name, ".chain.", instruction.id);
  }
  instruction.shape = with_chain(shape);
  instruction.clear(kOriginalValue);
  std::int64_t result = writer.add(std::move(instruction));
  if (rebuilt) writer.deliver(id, shape, result, 0);
  scope.chain = writer.add_element(result, is_tuple ? tuple_parts(shape).size() : 1, chain_shape());
}

Result<void> Rewriter::write_while(Scope& scope, EditedInstruction instruction) {
  if (instruction.called.size() != 2 || instruction.operands.size() != 1)
    return error(instruction, ErrorCode::kDataLoss, "a loop of an unknown form");
  std::vector<std::int64_t> parts = scope.writer.parts_of(instruction.operands[0]);
  parts.push_back(scope.chain);
  instruction.operands = {scope.writer.add_tuple(parts)};
  MESHARD_ASSIGN_OR_RETURN(instruction.called[0], threaded(instruction.called[0], Entry::kState));
  MESHARD_ASSIGN_OR_RETURN(instruction.called[1],
                           threaded(instruction.called[1], Entry::kCondition));
  // Facts about the loop name parts of its state.
  if (!is_tuple_shape(instruction.shape)) instruction.clear(kBackendConfig);
  write_chained(scope, std::move(instruction));
  return {};
}

Result<void> Rewriter::write_conditional(Scope& scope, EditedInstruction instruction) {
  if (instruction.operands.size() != instruction.called.size() + 1)
    return error(instruction, ErrorCode::kDataLoss, "a conditional of an unknown form");
  for (std::size_t i = 0; i < instruction.called.size(); ++i) {
    std::vector<std::int64_t> parts = scope.writer.parts_of(instruction.operands[i + 1]);
    parts.push_back(scope.chain);
    instruction.operands[i + 1] = scope.writer.add_tuple(parts);
    MESHARD_ASSIGN_OR_RETURN(instruction.called[i], threaded(instruction.called[i], Entry::kState));
  }
  write_chained(scope, std::move(instruction));
  return {};
}

Result<void> Rewriter::write_call(Scope& scope, EditedInstruction instruction) {
  if (instruction.called.size() != 1)
    return error(instruction, ErrorCode::kDataLoss, "a call of an unknown form");
  instruction.operands.push_back(scope.chain);
  MESHARD_ASSIGN_OR_RETURN(instruction.called[0],
                           threaded(instruction.called[0], Entry::kParameter));
  write_chained(scope, std::move(instruction));
  return {};
}

// The collective that is all that an asynchronous computation does.
Result<const FoundCollective*> Rewriter::wrapped_collective(const EditedInstruction& start) const {
  Error unknown =
      error(start, ErrorCode::kUnimplemented,
            "an asynchronous computation that is more than one collective cannot be replaced");
  if (start.called.size() != 1) return unknown;
  const EditedComputation& body = module_.computations[index_.at(start.called[0])];
  const EditedInstruction* root = body.find(body.root);
  const FoundCollective* one = found(*root);
  if (one == nullptr || one->part != CollectivePart::kWhole ||
      root->operands.size() != start.operands.size() ||
      body.instructions.size() != root->operands.size() + 1)
    return unknown;
  for (std::size_t i = 0; i < root->operands.size(); ++i) {
    const EditedInstruction* operand = body.find(root->operands[i]);
    if (operand->opcode != "parameter" ||
        operand->original->parameter_number != static_cast<std::int64_t>(i))
      return unknown;
  }
  return one;
}

// The result of a start half is what its only user, the done half, returns.
Result<void> Rewriter::write_start(Scope& scope, const EditedInstruction& instruction,
                                   const FoundCollective& one) {
  const EditedInstruction* done = nullptr;
  for (const EditedInstruction& each : scope.old)
    for (std::int64_t operand : each.operands)
      if (operand == instruction.id) {
        if (done != nullptr || !each.opcode.ends_with("-done"))
          return error(instruction, ErrorCode::kUnimplemented,
                       "an asynchronous collective with other users than its end");
        done = &each;
      }
  if (done == nullptr || scope.computation.root == instruction.id)
    return error(instruction, ErrorCode::kUnimplemented, "an asynchronous collective without end");
  MESHARD_ASSIGN_OR_RETURN(Started call,
                           write_collective(scope, {{&instruction, &one, done->shape}}));
  scope.started[instruction.id] = call;
  return {};
}

// One call for all members, which differ in their operands only.
Result<Rewriter::Started> Rewriter::write_collective(Scope& scope,
                                                     const std::vector<Member>& members) {
  ComputationWriter& writer = scope.writer;
  EditedInstruction call = *members.front().instruction;
  call.operands.clear();
  call.control_predecessors.clear();
  std::vector<std::string> operands, results;
  for (const Member& member : members) {
    std::size_t before = results.size();
    for (std::int64_t id : member.instruction->operands) {
      call.operands.push_back(id);
      operands.push_back(row_major(writer.shape_of(id)));
      if (!is_plain(operands.back()))
        return error(*member.instruction, ErrorCode::kUnimplemented,
                     "its operands must be arrays of fixed size whose elements take whole bytes");
    }
    std::string shape = row_major(member.result_shape);
    std::vector<std::string> parts =
        is_tuple_shape(shape) ? tuple_parts(shape) : std::vector{shape};
    results.insert(results.end(), parts.begin(), parts.end());
    if (results.size() - before != member.instruction->operands.size())
      return error(*member.instruction, ErrorCode::kUnimplemented,
                   "it has another number of results than of operands");
    for (std::int64_t id : member.instruction->control_predecessors)
      call.control_predecessors.push_back(id);
  }
  call.operands.push_back(scope.chain);
  operands.push_back(chain_shape());
  results.push_back(chain_shape());
  CollectiveCall attributes = call_of(*members.front().found, true);
  std::string where = std::string(attributes.where);
  for (std::size_t i = 1; i < members.size() && i < 4; ++i)
    append(where, i == 3 && members.size() > 4 ? cat(" and ", members.size() - 3, " more")
                                               : cat(", ", members[i].found->where));
  attributes.where = where;
  become_call(call, attributes, operands);
  call.id = writer.fresh();
  call.name = cat("collective.", call.id);
  call.shape = tuple_shape(results);
  std::int64_t id = writer.add(std::move(call));
  scope.chain = writer.add_element(id, results.size() - 1, chain_shape());
  ++calls_;
  return Started{id, 0};
}

}  // namespace meshard::internal

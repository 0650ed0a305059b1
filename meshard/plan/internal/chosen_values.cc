// Tested in meshard/plan/explicit_shardings_test.cc.
#include "meshard/plan/internal/chosen_values.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "meshard/base/cat.h"
#include "meshard/explain/predict/module_program.h"
#include "meshard/runtime/chosen_shardings.h"
#include "meshard/stablehlo/types.h"
#include "meshard/stablehlo/value_shardings.h"

namespace meshard::internal {
namespace {

using stablehlo::ModuleOp;

// An op that makes values, and what the compiler's module says about them.
struct MadeBy {
  const ModuleOp* op = nullptr;
  // False inside of manual computations, whose values are local, and for ops that only pass on what
  // others make or what the program constrains.
  bool may_be_constrained = false;
  // By result; none if not known.
  std::vector<std::optional<Sharding>> shardings = {};
  // Whether instructions of the op disagree: a function that is called twice.
  bool differs = false;
  std::string file = {}, name = {};
  std::int64_t line = 0;
};

bool passes_on(const ModuleOp& op) {
  for (std::string_view mnemonic : {"func.call", "stablehlo.while", "stablehlo.constant",
                                    "sdy.manual_computation", "sdy.sharding_constraint"})
    if (op.mnemonic == mnemonic) return true;
  return op.results.empty();
}

// The ops of a module by their numbers.
class OpTable {
 public:
  explicit OpTable(const stablehlo::Module& module) : module_(module) { add(module.ops(), true); }

  MadeBy* find(std::string_view instruction_name) {
    std::optional<std::size_t> number = stablehlo::op_number(instruction_name);
    return number && *number < ops_.size() ? &ops_[*number] : nullptr;
  }
  std::vector<MadeBy>& ops() { return ops_; }

  // Reads what the instructions say. `original` and `numbered` differ in their metadata.
  Result<void> read(const CompiledModule& original, const CompiledModule& numbered) {
    if (numbered.compiled->propagated_program.empty())
      return Error(ErrorCode::kUnimplemented,
                   "[explicit] the compiler does not write the module after sharding propagation, "
                   "so its choices are not known");
    MESHARD_ASSIGN_OR_RETURN(HloModule with_numbers,
                             HloModule::from_bytes(numbered.compiled->propagated_program));
    MESHARD_ASSIGN_OR_RETURN(HloModule with_lines,
                             HloModule::from_bytes(original.compiled->propagated_program));
    bool alike = with_numbers.computations.size() == with_lines.computations.size();
    for (std::size_t c = 0; c < with_numbers.computations.size(); ++c) {
      const std::vector<HloInstruction>& mine = with_numbers.computations[c].instructions;
      bool matches = alike && with_lines.computations[c].instructions.size() == mine.size();
      for (std::size_t i = 0; i < mine.size(); ++i) {
        const HloInstruction* line =
            matches ? &with_lines.computations[c].instructions[i] : nullptr;
        if (line && line->opcode != mine[i].opcode) line = nullptr;
        read(mine[i], line, numbered.facts.program);
      }
    }
    return {};
  }

 private:
  void add(const std::vector<ModuleOp>& ops, bool may_be_constrained) {
    for (const ModuleOp& op : ops) {
      ops_.push_back({&op, may_be_constrained && !passes_on(op)});
      ops_.back().shardings.resize(op.results.size());
      bool inside = may_be_constrained && op.mnemonic != "sdy.manual_computation";
      for (const stablehlo::ModuleRegion& region : op.regions) add(region.ops, inside);
    }
  }

  void read(const HloInstruction& instruction, const HloInstruction* line,
            const LoweredModule& program) {
    MadeBy* made = find(instruction.metadata.op_name);
    if (!made || made->shardings.empty()) return;
    if (line && made->file.empty()) {
      made->file = line->metadata.source_file;
      made->line = line->metadata.source_line;
      made->name = line->metadata.op_name;
    }
    if (!instruction.sharding) return;
    if (!instruction.shape.is_tuple) {
      bool is_element = instruction.opcode == "get-tuple-element" && made->shardings.size() > 1;
      set(*made, is_element ? static_cast<std::size_t>(instruction.tuple_index) : 0,
          instruction.shape, *instruction.sharding, program);
      return;
    }
    if (instruction.shape.tuple.size() != made->shardings.size()) return;
    std::vector<HloSharding> each = instruction.sharding->of_values(made->shardings.size());
    for (std::size_t r = 0; r < each.size(); ++r)
      set(*made, r, instruction.shape.tuple[r], each[r], program);
  }

  void set(MadeBy& made, std::size_t result, const HloShape& shape, const HloSharding& sharding,
           const LoweredModule& program) const {
    if (result >= made.shardings.size()) return;
    std::optional<TensorType> type =
        stablehlo::parse_type(module_.variable(made.op->results[result]).type);
    // Other instructions of the op are steps on the way to its result.
    if (!type || !std::ranges::equal(type->shape.sizes(), shape.dimensions)) return;
    auto rank = static_cast<std::size_t>(type->rank());
    Result<Sharding> read = sharding_of(sharding, program, rank);
    if (!read.ok()) return;
    std::optional<Sharding>& known = made.shardings[result];
    if (!known)
      known = *std::move(read);
    else if (!known->is_equivalent_to(*read, rank))
      made.differs = true;
  }

  const stablehlo::Module& module_;
  std::vector<MadeBy> ops_;
};

// Follows the rules of the ops: which values the program determines.
class Determined {
 public:
  Determined(const ModuleProgram& program, OpTable& table, const ProgramReport& report)
      : program_(program), rules_(program.rules()), table_(table), report_(report) {}

  void run() {
    number_results();
    find_free();
    given_ = program_.given_shardings(*report_.mesh());
    for (std::size_t i = 0; i < report_.results().size() && i < program_.results().size(); ++i) {
      const ValuePlacement& placed = report_.results()[i];
      if (program_.results()[i] && !placed.chosen_by_compiler && placed.sharding)
        given_[*program_.results()[i]] =
            PartialSharding::of(*placed.sharding, static_cast<std::size_t>(placed.type.rank()));
    }
    for (const RuledOp& op : rules_.ops) visit(op);
  }

  // True if the compiler had a choice for a result of the op.
  bool is_chosen(const MadeBy& made) const { return chosen_.contains(&made) && !asked(made); }

 private:
  bool asked(const MadeBy& made) const { return asked_.contains(&made); }

  bool is_pass(const RuledOp& op) const {
    return op.operands.size() == 1 && op.results.size() == 1 &&
           rules_.made_at[op.operands[0]] == rules_.made_at[op.results[0]];
  }

  // Which result of its op each value is.
  void number_results() {
    result_of_.resize(rules_.types.size());
    for (const RuledOp& op : rules_.ops)
      for (std::size_t r = 0; r < op.results.size(); ++r)
        result_of_[op.results[r]] = is_pass(op) ? result_of_[op.operands[0]] : r;
  }

  // A value is free if no argument influences its sharding: a constant, a scalar, and what is made
  // of these.
  void find_free() {
    argument_of_.resize(rules_.types.size());
    std::vector<bool> made(rules_.types.size());
    for (std::size_t i = 0; i < program_.arguments().size(); ++i)
      if (program_.arguments()[i]) argument_of_[*program_.arguments()[i]] = i;
    for (const RuledOp& op : rules_.ops)
      for (std::size_t result : op.results) made[result] = !op.operands.empty();
    free_.assign(rules_.types.size(), true);
    for (std::size_t v = 0; v < free_.size(); ++v) {
      const MadeBy* by = table_.find(rules_.made_at[v]);
      bool is_unruled = !made[v] && by && !by->op->operands.empty();
      free_[v] = rules_.types[v].rank() == 0 || (!argument_of_[v] && !is_unruled);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (const RuledOp& op : rules_.ops) {
        auto is_free = [&](std::size_t value) { return free_[value]; };
        if (std::ranges::all_of(op.operands, is_free)) continue;
        for (std::size_t result : op.results)
          if (free_[result] && rules_.types[result].rank() > 0) {
            free_[result] = false;
            changed = true;
          }
      }
    }
  }

  const Sharding* sharding_of_value(std::size_t value) const {
    if (std::optional<std::size_t> argument = argument_of_[value]) {
      const std::optional<Sharding>& placed = report_.arguments()[*argument].sharding;
      return placed ? &*placed : nullptr;
    }
    const MadeBy* by = table_.find(rules_.made_at[value]);
    if (!by || result_of_[value] >= by->shardings.size()) return nullptr;
    const std::optional<Sharding>& found = by->shardings[result_of_[value]];
    return found ? &*found : nullptr;
  }

  void visit(const RuledOp& op) {
    if (op.operands.size() == 1 && op.results.size() == 1) note_asked(op);
    if (is_pass(op)) return;
    std::optional<Propagation> inferred;
    for (std::size_t r = 0; r < op.results.size(); ++r) {
      std::size_t value = op.results[r];
      MadeBy* made = table_.find(rules_.made_at[value]);
      const Sharding* own = sharding_of_value(value);
      if (!made || !own || free_[value]) continue;
      if (!inferred) inferred = infer(op, own->mesh());
      auto rank = static_cast<std::size_t>(rules_.types[value].rank());
      bool follows = inferred->ok() && r < inferred->results.size() &&
                     inferred->results[r].rank() <= rank && own->rank() <= rank &&
                     inferred->results[r].is_equivalent_to(*own, rank);
      if (!follows) chosen_.insert({made, true});
    }
  }

  // A constraint, or a result of the program, asks for what the value has.
  void note_asked(const RuledOp& op) {
    std::size_t from = op.operands[0], to = op.results[0];
    const Sharding* own = sharding_of_value(from);
    MadeBy* made = table_.find(rules_.made_at[from]);
    const PartialSharding& wanted = given_[to];
    if (!own || !made || rules_.types[from].shape != rules_.types[to].shape || !wanted.known ||
        std::ranges::any_of(wanted.open, [](bool open) { return open; }))
      return;
    auto rank = static_cast<std::size_t>(rules_.types[to].rank());
    std::optional<Sharding> asked = wanted.sharding(own->mesh());
    if (asked && own->rank() <= rank && asked->is_equivalent_to(*own, rank))
      asked_.insert({made, true});
  }

  Propagation infer(const RuledOp& op, const Mesh& mesh) const {
    std::vector<Sharding> operands;
    for (std::size_t value : op.operands) {
      auto rank = static_cast<std::size_t>(rules_.types[value].rank());
      const Sharding* own = free_[value] ? nullptr : sharding_of_value(value);
      operands.push_back(own && own->mesh() == mesh && own->rank() <= rank
                             ? own->with_rank(rank)
                             : Sharding::replicated(mesh, rank));
    }
    try {
      return propagate(op.rule, operands, Propagating::kInfer);
    } catch (const Error& error) {
      Propagation none;
      none.conflict = ShardingConflict{std::nullopt, error.message()};
      return none;
    }
  }

  const ModuleProgram& program_;
  const RuledProgram& rules_;
  OpTable& table_;
  const ProgramReport& report_;
  std::vector<std::size_t> result_of_;                   // by value
  std::vector<std::optional<std::size_t>> argument_of_;  // by value
  std::vector<bool> free_;                               // by value
  std::vector<PartialSharding> given_;                   // by value
  std::unordered_map<const MadeBy*, bool> chosen_, asked_;
};

// `dot_general` of `jit(f)/attn/dot_general`; without a name, that of the text's op.
std::string shown_op(const MadeBy& made) {
  std::string_view name = made.name, mnemonic = made.op->mnemonic;
  if (std::size_t slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  if (std::size_t dot = mnemonic.rfind('.'); dot != std::string_view::npos)
    mnemonic.remove_prefix(dot + 1);
  return std::string(name.empty() ? mnemonic : name);
}

class ChoiceCollector {
 public:
  ChoiceCollector(const ModuleTemplate& module, const ProgramReport& report)
      : module_(module), report_(report) {}

  ChosenValues run(OpTable& table, const Determined& determined) {
    add_boundary(ShardedPart::kArgument, report_.arguments());
    for (MadeBy& made : table.ops()) add_values(made, determined);
    add_boundary(ShardedPart::kResult, report_.results());
    if (differing_ > 0)
      out_.notes.push_back(cat(differing_,
                               " ops have several shardings, because their function is "
                               "called more than once: they are not offered"));
    if (unnamed_ > 0)
      out_.notes.push_back(cat(unnamed_, " choices cannot be named by the axes of the mesh"));
    return std::move(out_);
  }

 private:
  void add(ShardedPart part, const Sharding& sharding, ChosenSharding shown, std::size_t number) {
    if (sharding.mesh() != *report_.mesh() || !sharding.unreduced_axes().empty()) {
      ++unnamed_;
      return;
    }
    shown.part = part;
    auto rank = static_cast<std::size_t>(shown.type.rank());
    Sharding whole = sharding.rank() < rank ? sharding.with_rank(rank) : sharding;
    shown.spec = whole.spec();
    out_.all.push_back({std::move(whole), std::move(shown), number});
  }

  void add_boundary(ShardedPart part, const std::vector<ValuePlacement>& placed) {
    const bool arguments = part == ShardedPart::kArgument;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      const ValuePlacement& each = placed[i];
      if (!each.chosen_by_compiler || !each.sharding || each.type.rank() == 0) continue;
      if (!arguments && (i >= module_.results().size() || !module_.takes_sharding(i))) continue;
      if (each.padded != each.type) continue;
      std::string name = each.name.empty() ? cat(enum_name(part), " ", i) : each.name;
      add(part, *each.sharding, {.op = std::move(name), .type = each.type}, i);
    }
  }

  void add_values(const MadeBy& made, const Determined& determined) {
    if (!made.may_be_constrained) return;
    if (made.differs) {
      differing_ += determined.is_chosen(made);
      return;
    }
    for (std::size_t r = 0; r < made.shardings.size(); ++r) {
      std::optional<TensorType> type =
          stablehlo::parse_type(module_.module().variable(made.op->results[r]).type);
      if (!type || type->rank() == 0 || !made.shardings[r]) continue;
      if (!determined.is_chosen(made)) {
        ++out_.determined;
        continue;
      }
      add(ShardedPart::kValue, *made.shardings[r],
          {.file = made.file == "-" ? std::string() : made.file,
           .line = made.file == "-" ? 0 : made.line,
           .op = shown_op(made),
           .phase = phase_of_op(made.name),
           .type = *type},
          static_cast<std::size_t>(made.op->results[r]));
    }
  }

  const ModuleTemplate& module_;
  const ProgramReport& report_;
  ChosenValues out_;
  std::int64_t differing_ = 0, unnamed_ = 0;
};

}  // namespace

Result<ChosenValues> find_chosen_values(const ModuleTemplate& module,
                                        const CompiledModule& compiled,
                                        const CompiledModule& numbered,
                                        const ProgramReport& report) {
  OpTable table(module.module());
  MESHARD_RETURN_IF_ERROR(table.read(compiled, numbered));
  MESHARD_ASSIGN_OR_RETURN(stablehlo::Module text,
                           stablehlo::Module::parse(stablehlo::with_numbered_ops(module.module())));
  MESHARD_ASSIGN_OR_RETURN(ModuleProgram program, ModuleProgram::of(text));
  Determined determined(program, table, report);
  determined.run();
  return ChoiceCollector(module, report).run(table, determined);
}

}  // namespace meshard::internal

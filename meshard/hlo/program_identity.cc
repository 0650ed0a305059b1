#include "meshard/hlo/program_identity.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/hlo/module.h"
#include "meshard/pjrt/wire.h"

namespace meshard {
namespace {

// By devices. What the compiler may still split is not among the tiles.
std::string sharding_text(const HloSharding& sharding) {
  std::string text = sharding.to_string();
  for (const Sharding& each : sharding.named) {
    text += '|';
    for (std::size_t d = 0; d < each.rank(); ++d) text += each.is_open(d) ? '?' : '.';
  }
  return text;
}

std::string groups_text(const ReplicaGroups& groups) {
  auto listed = groups.expand();
  if (!listed.ok()) return groups.iota ? groups.iota->to_string() : "";
  std::string text;
  for (const auto& group : *listed) append(text, cat("{", join(group, ","), "}"));
  return text;
}

// Shardings that are attributes name a mesh, which the module's attributes define.
using MeshTexts = std::map<std::string, std::string, std::less<>>;

// `{mesh = #sdy.mesh<["x"=2]>, ...}`: axes are numbered, so that their names do not matter.
MeshTexts meshes_in(std::string_view text) {
  MeshTexts meshes;
  constexpr std::string_view kMesh = " = #sdy.mesh<";
  for (std::size_t at = text.find(kMesh); at != text.npos; at = text.find(kMesh, at + 1)) {
    std::size_t begin = text.find_last_of("{, ", at - 1), end = text.find('>', at);
    if (end == text.npos) break;
    begin = begin == text.npos ? 0 : begin + 1;
    meshes[std::string(text.substr(begin, at - begin))] =
        text.substr(at + kMesh.size(), end - at - kMesh.size());
  }
  return meshes;
}

// The number of each quoted axis of the mesh in place of its name.
std::string with_numbers(std::string_view text, const std::string& mesh) {
  std::string to;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text[at] == '"' ? text.find('"', at + 1) : text.npos;
    std::size_t axis = end == text.npos ? mesh.npos : mesh.find(text.substr(at, end + 1 - at));
    if (axis == mesh.npos) {
      to += text[at++];
      continue;
    }
    append(to, cat("axis", std::ranges::count(mesh.substr(0, axis), '=')));
    at = end + 1;
  }
  return to;
}

// The text with each mesh in place of its name, and the axes' numbers in place of their names. Axes
// of a text that names no mesh are those of the module's only one.
std::string without_names(std::string_view text, const MeshTexts& meshes) {
  std::string to, mesh = meshes.size() == 1 ? meshes.begin()->second : std::string();
  for (std::size_t at = 0; at < text.size();) {
    std::size_t next = std::min(text.find('@', at), text.size());
    to += with_numbers(text.substr(at, next - at), mesh);
    if (next == text.size()) break;
    at = std::min(text.find_first_of(", >)", next), text.size());
    auto found = meshes.find(text.substr(next + 1, at - next - 1));
    mesh = found != meshes.end() ? found->second : std::string();
    to += found != meshes.end() ? with_numbers(mesh, mesh)
                                : std::string(text.substr(next, at - next));
  }
  return to;
}

bool matters(int field) {
  enum { kName = 1, kMetadata = 7, kChannel = 26, kId = 35, kOperands = 36, kOrder = 37 };
  enum { kCalled = 38, kSharding = 40, kGroups = 49, kFrontend = 68, kStatistics = 82 };
  enum { kDeviceList = 87, kOriginalValue = 88, kIotaGroups = 92, kAxesGroups = 93 };
  switch (field) {
    case kName:
    case kMetadata:
    case kChannel:
    case kId:
    case kOperands:
    case kOrder:
    case kCalled:
    case kSharding:
    case kGroups:
    case kFrontend:
    case kStatistics:
    case kDeviceList:
    case kOriginalValue:
    case kIotaGroups:
    case kAxesGroups: return false;
    default: return true;
  }
}

// Ops that give the same bits for operands in another order.
bool is_commutative(const HloInstruction& one) {
  constexpr std::string_view kOps[] = {"add", "multiply", "maximum", "minimum", "and", "or", "xor"};
  return std::ranges::find(kOps, one.opcode) != std::end(kOps);
}

bool has_effect(const HloInstruction& one) {
  constexpr std::string_view kEffects[] = {"infeed", "outfeed",   "send",
                                           "recv",   "send-done", "recv-done"};
  return std::ranges::find(kEffects, one.opcode) != std::end(kEffects);
}

}  // namespace

struct ProgramIdentity::State {
  // Operands and called computations are numbers of ops.
  struct Op {
    std::string own;  // everything but operands and called computations
    std::vector<int> operands, called;
    Fingerprint fingerprint;
    const HloInstruction* written = nullptr;  // null: a called computation
  };
  // An argument, a result, or an alias.
  struct Boundary {
    std::string what, own;
  };

  HloModule module;
  std::vector<Op> ops;
  std::vector<Boundary> boundary;
  int root = 0;  // a called computation: its result, then its effects
  Fingerprint whole;
};

class ProgramIdentityBuilder {
  using Op = ProgramIdentity::State::Op;

  // The state of a loop, which the form of the program's text decides in part: what the body uses
  // from outside is an element that no iteration changes, in the order of its uses.
  struct LoopState {
    // By element: the op of a value that stays, otherwise -1; the number of another one among
    // those.
    std::vector<int> stays, number;

    int changing() const { return static_cast<int>(std::ranges::count(stays, -1)); }
  };

 public:
  Result<ProgramIdentity> build(std::string_view bytes) {
    MESHARD_ASSIGN_OR_RETURN(to_->module, HloModule::from_bytes(bytes));
    MESHARD_RETURN_IF_ERROR(read_fields(bytes));
    for (const HloComputation& each : to_->module.computations) computations_[each.id] = &each;
    const HloComputation& entry = to_->module.entry();
    MESHARD_ASSIGN_OR_RETURN(to_->root, computation(entry));
    MESHARD_RETURN_IF_ERROR(describe_boundary(entry));
    std::string all = to_->ops[static_cast<std::size_t>(to_->root)].fingerprint.to_string();
    for (const auto& each : to_->boundary) append(all, cat("\n", each.what, each.own));
    to_->whole = meshard::fingerprint(all);
    return ProgramIdentity(std::move(to_));
  }

 private:
  static Error damaged(const std::string& why) {
    return Error(ErrorCode::kDataLoss, cat("[hlo] ", why));
  }

  // The fields of each instruction that matter and have no canonical form of their own.
  Result<void> read_fields(std::string_view bytes) {
    auto instruction = [&](const pjrt::WireField& from) {
      pjrt::WireWriter kept;
      pjrt::WireReader reader(from.bytes);
      std::int64_t id = 0;
      while (auto field = reader.next()) {
        if (field->number == 35) id = field->as_int();
        if (matters(field->number)) kept.add_field(*field);
      }
      fields_.back().emplace(id, kept.take());
      return reader.ok();
    };
    auto computation = [&](const pjrt::WireField& from) {
      fields_.emplace_back();
      return pjrt::read_message(from.bytes, "a computation", pjrt::on_field(2, instruction));
    };
    auto attribute = [&](const pjrt::WireField& from) {
      std::string key, value;
      Result<void> read = pjrt::read_message(from.bytes, "frontend attributes", pjrt::field(1, key),
                                             pjrt::field(2, value));
      if (read.ok() && key == "xla.sdy.meshes") meshes_ = meshes_in(value);
      return read;
    };
    auto attributes = [&](const pjrt::WireField& from) {
      return pjrt::read_message(from.bytes, "frontend attributes", pjrt::on_field(1, attribute));
    };
    auto donors = [&](const pjrt::WireField& from) {
      return pjrt::read_message(from.bytes, "the donors", pjrt::on_field(1, [&](const auto& entry) {
                                  std::int64_t argument = 0;
                                  Result<void> read = pjrt::read_message(entry.bytes, "a donor",
                                                                         pjrt::field(1, argument));
                                  donors_.push_back(cat("argument ", argument));
                                  return read;
                                }));
    };
    auto module = [&](const pjrt::WireField& from) {
      return pjrt::read_message(from.bytes, "the module", pjrt::on_field(3, computation),
                                pjrt::on_field(18, donors), pjrt::on_field(19, attributes));
    };
    return pjrt::read_message(bytes, "the compiled module", pjrt::on_field(1, module));
  }

  const Op& op_at(int number) const { return to_->ops[static_cast<std::size_t>(number)]; }

  int add(Op op) {
    pjrt::WireWriter all;
    all.add_bytes(1, op.own);
    auto fingerprint_of = [&](int number) { return op_at(number).fingerprint.to_string(); };
    for (int operand : op.operands) all.add_bytes(2, fingerprint_of(operand));
    for (int called : op.called) all.add_bytes(3, fingerprint_of(called));
    op.fingerprint = meshard::fingerprint(all.bytes());
    auto [known, is_new] = known_.emplace(op.fingerprint, static_cast<int>(to_->ops.size()));
    if (is_new) to_->ops.push_back(std::move(op));
    return known->second;
  }

  std::string own_of(const HloComputation& in, const HloInstruction& one) {
    std::string own =
        fields_[static_cast<std::size_t>(&in - to_->module.computations.data())].at(one.id);
    if (one.sharding) append(own, cat("|sharding ", sharding_text(*one.sharding)));
    if (one.groups.given()) append(own, cat("|groups ", groups_text(one.groups)));
    if (one.channel_id > 0) own += "|channel";
    auto attributes = one.frontend_attributes;
    std::ranges::sort(attributes);
    for (const auto& [key, value] : attributes)
      append(own, cat("|", key, "=",
                      key.starts_with("xla.sdy.") ? without_names(value, meshes_) : value));
    return own;
  }

  // A computation that an op calls, or the entry, once: its parameters are ops of their own.
  Result<int> computation(const HloComputation& one) {
    if (auto found = called_.find(one.id); found != called_.end()) return found->second;
    Op op{"computation", {}, {}, {}, nullptr};
    MESHARD_ASSIGN_OR_RETURN(int root, evaluate(one, nullptr, nullptr, op.operands));
    op.operands.insert(op.operands.begin(), root);
    return called_[one.id] = add(std::move(op));
  }

  Result<const HloComputation*> find(std::int64_t id) const {
    auto found = computations_.find(id);
    if (found == computations_.end()) return damaged(cat("there is no computation ", id));
    return found->second;
  }

  static bool is_plain(const HloInstruction& one) {
    return !one.sharding && one.frontend_attributes.empty();
  }

  // Whether a tuple is used only by its elements.
  static bool is_taken_apart(const HloComputation& in, std::int64_t tuple) {
    return in.root != tuple && std::ranges::all_of(in.instructions, [&](const auto& one) {
             const bool uses = std::ranges::find(one.operands, tuple) != one.operands.end();
             return !uses || (one.opcode == "get-tuple-element" && is_plain(one));
           });
  }

  // The state of a loop, if elements of it stay the same and nothing needs the tuple itself.
  Result<std::optional<LoopState>> state_of(const HloComputation& in, const HloInstruction& one,
                                            const std::vector<int>& operands) const {
    std::optional<LoopState> whole;
    if (one.opcode != "while" || !is_plain(one) || operands.size() != 1) return whole;
    const Op& initial = op_at(operands[0]);
    if (!initial.written || initial.written->opcode != "tuple" || !is_taken_apart(in, one.id))
      return whole;
    LoopState state{std::vector<int>(initial.operands.size(), -1), {}};
    for (std::int64_t id : one.called_computations) {
      MESHARD_ASSIGN_OR_RETURN(const HloComputation* called, find(id));
      const HloInstruction *root = called->find(called->root), *parameter = nullptr;
      for (const HloInstruction& each : called->instructions)
        if (each.opcode == "parameter") parameter = &each;
      if (!root || !parameter || !is_taken_apart(*called, parameter->id)) return whole;
      if (root->opcode != "tuple") continue;  // the condition
      if (!is_plain(*root) || root->operands.size() != initial.operands.size()) return whole;
      for (std::size_t i = 0; i < initial.operands.size(); ++i) {
        const HloInstruction* from = called->find(root->operands[i]);
        if (from && from->opcode == "get-tuple-element" && from->operands.size() == 1 &&
            from->operands[0] == parameter->id && from->tuple_index == static_cast<std::int64_t>(i))
          state.stays[i] = initial.operands[i];
      }
    }
    int next = 0;
    for (int stays : state.stays) state.number.push_back(stays < 0 ? next++ : -1);
    return std::optional(std::move(state));
  }

  // An element of a loop's state, in the loop or of its result.
  Result<int> element(const HloInstruction& one, const LoopState& state, std::optional<int> loop) {
    if (one.tuple_index < 0 || one.tuple_index >= std::ssize(state.stays))
      return damaged(cat(one.name, " is not an element of its loop"));
    const auto index = static_cast<std::size_t>(one.tuple_index);
    if (state.stays[index] >= 0) {
      if (loop) return state.stays[index];
      return add({"from outside", {state.stays[index]}, {}, {}, &one});
    }
    Op op{cat("element ", state.number[index], " ", one.shape), {}, {}, {}, &one};
    if (loop) op.operands.push_back(*loop);
    return add(std::move(op));
  }

  // A loop without the elements of its state that stay.
  Result<int> loop(const HloInstruction& one, LoopState state, const std::vector<int>& initial) {
    Op op{cat("while with ", state.changing()), {}, {}, {}, &one};
    for (std::size_t i = 0; i < initial.size(); ++i)
      if (state.stays[i] < 0) op.operands.push_back(initial[i]);
    for (std::int64_t id : one.called_computations) {
      MESHARD_ASSIGN_OR_RETURN(const HloComputation* callee, find(id));
      Op called{"computation", {}, {}, {}, nullptr};
      MESHARD_ASSIGN_OR_RETURN(int root, evaluate(*callee, nullptr, &state, called.operands));
      called.operands.insert(called.operands.begin(), root);
      op.called.push_back(add(std::move(called)));
    }
    const int made = add(std::move(op));
    loops_.insert_or_assign(made, std::move(state));
    return made;
  }

  // The root.
  // @param arguments null: parameters stay
  // @param state of the loop whose body or condition this is; null: of none
  Result<int> evaluate(const HloComputation& in, const std::vector<int>* arguments,
                       const LoopState* state, std::vector<int>& effects) {
    constexpr int kDeepest = 1000;
    if (depth_ == kDeepest) return damaged("computations call each other");
    // Functions that call others twice each are exponentially many ops.
    constexpr std::size_t kMostOps = std::size_t{1} << 26;
    evaluated_ += in.instructions.size();
    if (evaluated_ > kMostOps)
      return Error(
          ErrorCode::kResourceExhausted,
          cat("[hlo] with the ops of functions where they are called, the program has more "
              "than ",
              kMostOps, " ops"));
    ++depth_;
    std::unordered_map<std::int64_t, int> values;
    for (const HloInstruction& one : in.instructions) {
      MESHARD_ASSIGN_OR_RETURN(values[one.id], value(in, one, values, arguments, state, effects));
      if (has_effect(one)) effects.push_back(values[one.id]);
    }
    --depth_;
    if (!values.contains(in.root)) return damaged(cat(in.name, " has no root"));
    return values.at(in.root);
  }

  Result<int> value(const HloComputation& in, const HloInstruction& one,
                    const std::unordered_map<std::int64_t, int>& values,
                    const std::vector<int>* arguments, const LoopState* state,
                    std::vector<int>& effects) {
    if (one.opcode == "parameter" && state != nullptr)
      return add({"the state of a loop", {}, {}, {}, &one});
    if (one.opcode == "parameter" && arguments != nullptr) {
      if (one.parameter_number < 0 || one.parameter_number >= std::ssize(*arguments))
        return damaged(cat("a call of ", in.name, " lacks arguments"));
      return (*arguments)[static_cast<std::size_t>(one.parameter_number)];
    }
    Op op{{}, {}, {}, {}, &one};
    for (std::int64_t id : one.operands) {
      auto found = values.find(id);
      if (found == values.end()) return damaged(cat(one.name, " precedes its operand"));
      op.operands.push_back(found->second);
    }
    // Functions return tuples.
    if (one.opcode == "get-tuple-element" && is_plain(one) && op.operands.size() == 1) {
      const Op& from = op_at(op.operands[0]);
      if (state != nullptr && from.own == "the state of a loop")
        return element(one, *state, std::nullopt);
      if (auto found = loops_.find(op.operands[0]); found != loops_.end())
        return element(one, found->second, op.operands[0]);
      if (from.written && from.written->opcode == "tuple" && one.tuple_index >= 0 &&
          one.tuple_index < std::ssize(from.operands))
        return from.operands[static_cast<std::size_t>(one.tuple_index)];
    }
    if (is_commutative(one))
      std::ranges::sort(op.operands, {}, [&](int number) { return op_at(number).fingerprint; });
    // Where the compiler keeps a function, it says so.
    if (one.opcode == "call" && one.called_computations.size() == 1 && is_plain(one)) {
      MESHARD_ASSIGN_OR_RETURN(const HloComputation* callee, find(one.called_computations[0]));
      return evaluate(*callee, &op.operands, nullptr, effects);
    }
    MESHARD_ASSIGN_OR_RETURN(std::optional<LoopState> own_state, state_of(in, one, op.operands));
    if (own_state)
      return loop(one, *std::move(own_state), std::vector<int>(op_at(op.operands[0]).operands));
    if (state != nullptr && one.id == in.root && one.opcode == "tuple" &&
        op.operands.size() == state->stays.size()) {
      Op next{"the next state", {}, {}, {}, &one};
      for (std::size_t i = 0; i < op.operands.size(); ++i)
        if (state->stays[i] < 0) next.operands.push_back(op.operands[i]);
      return add(std::move(next));
    }
    op.own = own_of(in, one);
    for (std::int64_t id : one.called_computations) {
      MESHARD_ASSIGN_OR_RETURN(const HloComputation* callee, find(id));
      MESHARD_ASSIGN_OR_RETURN(int called, computation(*callee));
      op.called.push_back(called);
    }
    return add(std::move(op));
  }

  Result<void> describe_boundary(const HloComputation& entry) {
    std::map<std::int64_t, const HloInstruction*> parameters;
    for (const HloInstruction& one : entry.instructions)
      if (one.opcode == "parameter") parameters[one.parameter_number] = &one;
    for (const auto& [number, one] : parameters)
      to_->boundary.push_back(
          {cat("argument ", number, " "),
           cat(one->shape, one->sharding ? cat(" ", sharding_text(*one->sharding)) : "")});
    to_->boundary.push_back({"the results are ", cat(to_->module.result)});
    for (const HloAlias& each : to_->module.aliases)
      to_->boundary.push_back({cat("argument ", each.parameter, join(each.parameter_index, ","),
                                   each.must_alias ? " is donated to " : " may be donated to "),
                               cat("result ", join(each.output_index, ","))});
    for (const std::string& each : donors_) to_->boundary.push_back({each, " is donated"});
    return {};
  }

  std::shared_ptr<ProgramIdentity::State> to_ = std::make_shared<ProgramIdentity::State>();
  std::vector<std::unordered_map<std::int64_t, std::string>> fields_;  // by computation
  std::unordered_map<std::int64_t, const HloComputation*> computations_;
  std::unordered_map<std::int64_t, int> called_;
  std::unordered_map<Fingerprint, int> known_;
  std::unordered_map<int, LoopState> loops_;  // by op
  MeshTexts meshes_;
  std::vector<std::string> donors_;
  int depth_ = 0;
  std::size_t evaluated_ = 0;
};

std::string ModuleDifference::to_string() const {
  return cat(first, " in the first, ", second, " in the second",
             detail.empty() ? "" : cat(": ", detail));
}

Result<ProgramIdentity> ProgramIdentity::from_bytes(std::string_view module) {
  return ProgramIdentityBuilder().build(module);
}

const Fingerprint& ProgramIdentity::fingerprint() const { return state_->whole; }

std::size_t ProgramIdentity::ops() const { return state_->ops.size(); }

namespace {

// Follows two programs from their results to the first op that differs.
template <class State>
class DifferenceSearch {
 public:
  DifferenceSearch(const State& a, const State& b) : a_(a), b_(b) {}

  ModuleDifference run() {
    for (std::size_t i = 0; i < std::max(a_.boundary.size(), b_.boundary.size()); ++i)
      if (boundary_text(a_, i) != boundary_text(b_, i))
        return ModuleDifference{boundary_text(a_, i), boundary_text(b_, i), {}};
    // Both begin with a computation. Operands that differ are followed to the first op that does.
    at_a_ = a_.root, at_b_ = b_.root;
    while (true) {
      const Op &in_a = op(a_, at_a_), &in_b = op(b_, at_b_);
      ModuleDifference here{op_text(in_a), op_text(in_b), {}};
      if (in_a.own != in_b.own || in_a.operands.size() != in_b.operands.size() ||
          in_a.called.size() != in_b.called.size()) {
        here.detail = detail(in_a, in_b);
        return here;
      }
      if (!descend(in_a, in_b)) return here;
    }
  }

 private:
  using Op = typename State::Op;

  static const Op& op(const State& of, int number) {
    return of.ops[static_cast<std::size_t>(number)];
  }
  static std::string op_text(const Op& op) {
    return op.written ? op.written->to_string() : std::string("a computation");
  }
  static std::string boundary_text(const State& of, std::size_t i) {
    return i < of.boundary.size() ? cat(of.boundary[i].what, of.boundary[i].own)
                                  : std::string("nothing more");
  }

  // What an op and another one differ in, beyond their texts.
  static std::string detail(const Op& in_a, const Op& in_b) {
    const auto operands_a = in_a.operands.size(), operands_b = in_b.operands.size();
    if (!in_a.written || !in_b.written)
      return cat(operands_a, " and ", operands_b, " results and effects");
    if (in_a.written->opcode != in_b.written->opcode || in_a.written->shape != in_b.written->shape)
      return {};
    if (operands_a != operands_b) return cat(operands_a, " and ", operands_b, " operands");
    return "their attributes differ";
  }

  // Goes to the first operands or called computations that differ.
  bool descend(const Op& in_a, const Op& in_b) {
    // Operands that may change places are in the order of their fingerprints, so that one that
    // differs may be at another place: the ones that both have are left out.
    if (in_a.written && is_commutative(*in_a.written) &&
        go_to_differing(without(a_, in_a.operands, b_, in_b.operands),
                        without(b_, in_b.operands, a_, in_a.operands)))
      return true;
    return go_to_differing(in_a.operands, in_b.operands) ||
           go_to_differing(in_a.called, in_b.called);
  }

  static std::vector<int> without(const State& own, const std::vector<int>& from,
                                  const State& other, const std::vector<int>& others) {
    std::vector<int> left;
    for (int number : from)
      if (std::ranges::none_of(others, [&](int each) {
            return op(own, number).fingerprint == op(other, each).fingerprint;
          }))
        left.push_back(number);
    return left;
  }

  bool go_to_differing(const std::vector<int>& from_a, const std::vector<int>& from_b) {
    for (std::size_t i = 0; i < std::min(from_a.size(), from_b.size()); ++i) {
      if (op(a_, from_a[i]).fingerprint == op(b_, from_b[i]).fingerprint) continue;
      at_a_ = from_a[i], at_b_ = from_b[i];
      return true;
    }
    return false;
  }

  const State &a_, &b_;
  int at_a_ = 0, at_b_ = 0;
};

}  // namespace

std::optional<ModuleDifference> first_difference(const ProgramIdentity& first,
                                                 const ProgramIdentity& second) {
  if (first.fingerprint() == second.fingerprint()) return {};
  return DifferenceSearch(*first.state_, *second.state_).run();
}

}  // namespace meshard

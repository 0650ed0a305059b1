#include "meshard/explain/collectives/logical.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"
#include "meshard/explain/collectives/value_flow.h"
#include "meshard/hlo/executions.h"

namespace meshard {
namespace {

// What a transfer between slices performs, from the name that TPU compilers give it.
std::optional<CollectiveKind> transfer_kind(const HloInstruction& send) {
  std::string_view type = send.frontend_attribute("_xla_megascale_transfer_type");
  if (type == "ALL_REDUCE") return CollectiveKind::kAllReduce;
  if (type == "ALL_GATHER") return CollectiveKind::kAllGather;
  if (type == "REDUCE_SCATTER") return CollectiveKind::kReduceScatter;
  if (type == "ALL_TO_ALL") return CollectiveKind::kAllToAll;
  if (type == "ONE_TO_ONE") return CollectiveKind::kCollectivePermute;
  return std::nullopt;
}

// The axes of both lists; mesh order is that of the outer list first.
std::optional<AxisList> union_of(const std::optional<AxisList>& outer,
                                 const std::optional<AxisList>& inner) {
  if (!outer || !inner) return std::nullopt;
  AxisList all = *outer;
  for (const AxisRef& axis : *inner)
    if (std::ranges::find(all, axis) == all.end()) all.push_back(axis);
  return all;
}

class Merge {
 public:
  Merge(const Executions& executions, const std::vector<Collective>& collectives)
      : executions_(executions), flow_(executions), all_(collectives) {
    for (const ReachedComputation& reached : executions.calls().callers_first())
      for (const HloInstruction& each : reached.index->computation().instructions)
        located_[each.name] = {reached.index, &each};
    for (std::size_t i = 0; i < all_.size(); ++i) position_.emplace(all_[i].instruction, i);
    group_.resize(all_.size());
    std::iota(group_.begin(), group_.end(), std::size_t{0});
    wholes_ = all_;
  }

  std::vector<LogicalCollective> run() {
    merge_fragments_of_module();
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (all_[i].kind == CollectiveKind::kSend) merge_transfer(i);
    std::vector<LogicalCollective> made;
    std::unordered_map<std::size_t, std::size_t> made_of;  // by group
    for (std::size_t i = 0; i < all_.size(); ++i) {
      auto [found, is_new] = made_of.emplace(group_[i], made.size());
      if (is_new) {
        made.push_back({.whole = wholes_[group_[i]], .instructions = {}});
        made.back().whole.instruction = all_[i].instruction;
      }
      LogicalCollective& one = made[found->second];
      one.instructions.push_back(all_[i].instruction);
      one.whole.across_processes = one.whole.across_processes || all_[i].across_processes;
    }
    return made;
  }

 private:
  void join(std::size_t part, std::size_t whole) {
    std::size_t from = group_[part], to = group_[whole];
    for (std::size_t& group : group_)
      if (group == from) group = to;
  }

  const LocatedInstruction* find(std::size_t i) const {
    auto found = located_.find(all_[i].instruction);
    return found == located_.end() ? nullptr : &found->second;
  }

  // The computation that contains the fusions of a chain, and the channel.
  std::pair<std::int64_t, std::int64_t> chain_of(std::size_t i) const {
    const LocatedInstruction* at = find(i);
    if (!at) return {-1, all_[i].channel};
    const ReachedComputation* reached = executions_.calls().find(at->index->computation().id);
    const InstructionIndex* outer = reached && reached->caller ? reached->caller : at->index;
    return {outer->computation().id, all_[i].channel};
  }

  void merge_fragments_of_module() {
    std::map<std::tuple<std::int64_t, std::int64_t, CollectiveKind>, std::size_t> first;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      auto [computation, channel] = chain_of(i);
      auto key = std::tuple(computation, channel, all_[i].kind);
      if (!all_[i].continues) {
        if (all_[i].form == CollectiveForm::kFused) first[key] = i;
        continue;
      }
      if (auto found = first.find(key); found != first.end()) join(i, found->second);
    }
  }

  // The collective that a search reached, if it is the only one and nothing else was.
  std::optional<std::size_t> only_one(const std::vector<LocatedInstruction>& reached) const {
    if (reached.size() != 1) return std::nullopt;
    auto found = position_.find(reached[0].instruction->name);
    if (found == position_.end()) return std::nullopt;
    return found->second;
  }

  std::optional<std::size_t> receive_of(const LocatedInstruction& send) const {
    const HloInstruction* received = transfer_partner(*send.index, *send.instruction);
    auto found = received ? position_.find(received->name) : position_.end();
    return found == position_.end() ? std::nullopt : std::optional(found->second);
  }

  void merge_transfer(std::size_t sent) {
    const LocatedInstruction* at = find(sent);
    if (!at) return;
    std::optional<CollectiveKind> kind = transfer_kind(*at->instruction);
    std::optional<std::size_t> received = receive_of(*at);
    if (!kind || !received) return;
    join(*received, sent);
    Collective& whole = wholes_[group_[sent]];
    whole.kind = *kind;
    whole.form = CollectiveForm::kAcrossSlices;
    whole.bytes_out = all_[*received].bytes_out;
    if (*kind == CollectiveKind::kCollectivePermute) return merge_branches(*at, sent, whole);
    std::optional<std::size_t> before, after = collective_after(*received);
    std::vector<std::size_t> permutations;
    if (*kind == CollectiveKind::kAllReduce) {
      before = reduction_before(*at, permutations);
      if (!before) return;
      bool scattered = splits(*before);
      if (scattered && !(after && is_gather_of(*after, *before))) return;
      if (!scattered) after.reset();
      for (std::size_t permutation : permutations) join(permutation, sent);
      take_in(*before, sent, whole, all_[*before].bytes_in, whole.bytes_out);
    }
    if (after && all_[*after].kind == CollectiveKind::kAllGather)
      take_in(*after, sent, whole, whole.bytes_in, all_[*after].bytes_out);
  }

  // The reduction inside the slice whose result is sent; permutations in between bring each part to
  // the device that sends it.
  std::optional<std::size_t> reduction_before(LocatedInstruction at,
                                              std::vector<std::size_t>& permutations) const {
    for (;;) {
      ValueSources sources = flow_.sources(at, 0, false);
      if (sources.computed || !sources.parameters.empty()) return std::nullopt;
      std::optional<std::size_t> found = only_one(sources.collectives);
      if (!found || !is_alone(*found)) return std::nullopt;
      CollectiveKind kind = all_[*found].kind;
      if (kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter)
        return found;
      if (kind != CollectiveKind::kCollectivePermute || permutations.size() > 1)
        return std::nullopt;
      permutations.push_back(*found);
      at = *find(*found);
    }
  }

  bool is_gather_of(std::size_t gather, std::size_t reduction) const {
    return all_[gather].kind == CollectiveKind::kAllGather &&
           all_[gather].axes == all_[reduction].axes;
  }

  // Makes a step inside the slice a part of the collective.
  void take_in(std::size_t step, std::size_t sent, Collective& whole, std::int64_t bytes_in,
               std::int64_t bytes_out) {
    const Collective& one = all_[step];
    whole.axes = union_of(whole.axes, one.axes);
    whole.group_size =
        std::max<std::int64_t>(whole.group_size, 1) * std::max<std::int64_t>(one.group_size, 1);
    whole.bytes_in = bytes_in;
    whole.bytes_out = bytes_out;
    // The steps inside the slice name the op; a reduction is named where it begins.
    bool first = one.kind != CollectiveKind::kAllGather;
    if (first || whole.origin.certainty == OriginCertainty::kUnknown) {
      whole.origin = one.origin;
      whole.cause = one.cause;
    }
    if (whole.purpose.kind == PurposeKind::kUnknown ||
        (first && one.purpose.kind != PurposeKind::kUnknown))
      whole.purpose = one.purpose;
    join(step, sent);
  }

  // True for a reduction whose result is split over the slice's devices.
  bool splits(std::size_t i) const {
    if (all_[i].kind == CollectiveKind::kReduceScatter) return true;
    const LocatedInstruction* at = find(i);
    if (!at || all_[i].form != CollectiveForm::kFused) return false;
    std::vector<const HloInstruction*> users = at->index->users(*at->instruction);
    return !users.empty() && std::ranges::all_of(users, [](const HloInstruction* user) {
      return user->opcode == "dynamic-slice";
    });
  }

  // One operand, and not part of another collective.
  bool is_alone(std::size_t i) const {
    const LocatedInstruction* at = find(i);
    return at && at->instruction->operands.size() == 1 && group_[i] == i;
  }

  std::optional<std::size_t> collective_after(std::size_t received) const {
    const LocatedInstruction* at = find(received);
    if (!at) return std::nullopt;
    ValueUses uses = flow_.uses(*at, -1, false, false);
    if (!uses.consumers.empty() || !uses.results.empty()) return std::nullopt;
    return only_one(uses.collectives);
  }

  // A permutation between slices: the devices whose partner is in the same slice permute in the
  // branches of a conditional, one for each slice.
  void merge_branches(const LocatedInstruction& send, std::size_t sent, Collective& whole) {
    std::int64_t value = send.instruction->operands.empty() ? -1 : send.instruction->operands[0];
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].kind != CollectiveKind::kCollectivePermute) continue;
      const LocatedInstruction* at = find(i);
      if (!at) continue;
      const ReachedComputation* reached = executions_.calls().find(at->index->computation().id);
      if (!reached || reached->kind != CallKind::kBranch || reached->caller != send.index) continue;
      const std::vector<std::int64_t>& operands = reached->call->operands;
      if (operands.size() < 2 || operands[1] != value) continue;
      whole.axes = union_of(whole.axes, all_[i].axes);
      join(i, sent);
    }
  }

  const Executions& executions_;
  ValueFlow flow_;
  const std::vector<Collective>& all_;
  std::unordered_map<std::string_view, LocatedInstruction> located_;
  std::unordered_map<std::string_view, std::size_t> position_;
  std::vector<std::size_t> group_;  // by collective: the index of its group's whole
  std::vector<Collective> wholes_;  // by group
};

}  // namespace

std::vector<LogicalCollective> find_logical_collectives(
    const Executions& executions, const std::vector<Collective>& collectives) {
  if (collectives.empty()) return {};
  return Merge(executions, collectives).run();
}

std::vector<LogicalCollective> merge_fragments(const std::vector<Collective>& collectives) {
  std::vector<LogicalCollective> made;
  std::map<std::pair<CollectiveKind, std::int64_t>, std::size_t> first;
  for (const Collective& one : collectives) {
    std::pair key(one.kind, one.channel);
    auto found = first.find(key);
    if (one.continues && found != first.end()) {
      made[found->second].instructions.push_back(one.instruction);
      continue;
    }
    first[key] = made.size();
    made.push_back({.whole = one, .instructions = {one.instruction}});
  }
  return made;
}

std::vector<Collective> whole_collectives(const std::vector<LogicalCollective>& logical) {
  std::vector<Collective> wholes;
  for (const LogicalCollective& one : logical) wholes.push_back(one.whole);
  return wholes;
}

std::string LayerTraffic::to_string() const {
  std::string text = layer.empty() ? std::string("outside the layers") : layer;
  if (phase != ProgramPhase::kUnknown) append(text, ", ", meshard::to_string(phase));
  append(text, ": ", count, count == 1 ? " collective" : " collectives");
  if (executions != count) append(text, " run ", executions, " times");
  append(text, ", ", meshard::to_string(purpose), ", ", byte_text(total_bytes));
  return text;
}

std::vector<LayerTraffic> layer_traffic(const std::vector<LogicalCollective>& collectives) {
  std::vector<LayerTraffic> rows;
  std::map<std::tuple<std::string_view, ProgramPhase, PurposeKind>, std::size_t> known;
  for (const LogicalCollective& each : collectives) {
    const CollectivePurpose& purpose = each.whole.purpose;
    auto [position, is_new] =
        known.try_emplace({purpose.layer, purpose.phase, purpose.kind}, rows.size());
    if (is_new)
      rows.push_back({.layer = purpose.layer, .phase = purpose.phase, .purpose = purpose.kind});
    LayerTraffic& row = rows[position->second];
    ++row.count;
    row.executions = saturating_add(row.executions, each.whole.executions);
    row.total_bytes = saturating_add(row.total_bytes, each.whole.total_bytes());
  }
  // One loop says nothing about layers, unless the phases are known.
  if (std::ranges::all_of(rows, [](const LayerTraffic& row) {
        return row.layer.empty() || (row.layer == "loop" && row.phase == ProgramPhase::kUnknown);
      }))
    return {};
  std::stable_partition(rows.begin(), rows.end(),
                        [](const LayerTraffic& row) { return !row.layer.empty(); });
  return rows;
}

}  // namespace meshard

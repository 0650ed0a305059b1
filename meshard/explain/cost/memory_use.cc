#include "meshard/explain/cost/memory_use.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "meshard/base/cat.h"
#include "meshard/base/saturating.h"
#include "meshard/explain/byte_text.h"
#include "meshard/explain/collectives/origin.h"
#include "meshard/hlo/buffers.h"
#include "meshard/hlo/executions.h"

namespace meshard {
namespace {

const HloShape& part_of(const HloShape& shape, const std::vector<std::int64_t>& index) {
  const HloShape* at = &shape;
  for (std::int64_t i : index) {
    if (i < 0 || i >= std::ssize(at->tuple)) return *at;
    at = &at->tuple[static_cast<std::size_t>(i)];
  }
  return *at;
}

// Finds the names and source places of instructions.
class Namer {
 public:
  Namer(const ModuleIndex& module, const Graph* graph, const std::vector<std::string>& arguments)
      : module_(module), places_(graph, &module.module()), arguments_(arguments) {
    for (const auto& computation : module.module().computations)
      for (const HloInstruction& each : computation.instructions) by_id_.emplace(each.id, &each);
  }

  const HloInstruction* find(std::int64_t id) const {
    auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
  }

  BufferUse use(BufferRole role, const HloInstruction* one, const std::vector<std::int64_t>& index,
                std::int64_t bytes) const {
    BufferUse use;
    use.role = role;
    use.bytes = bytes;
    if (one == nullptr) return use;
    use.name = role == BufferRole::kArgument ? argument_name(*one) : one->name;
    use.type = part_of(one->shape, index).to_string();
    if (auto place = place_of(*one)) use.place = place->to_string();
    return use;
  }

 private:
  std::string argument_name(const HloInstruction& parameter) const {
    std::int64_t number = parameter.parameter_number;
    if (number >= 0 && number < std::ssize(arguments_))
      if (const std::string& name = arguments_[static_cast<std::size_t>(number)]; !name.empty())
        return name;
    // With a graph, the module's names are op numbers.
    std::optional<OriginPlace> own = places_.named(parameter);
    if (own && own->node) return cat("argument ", number);
    return parameter.metadata.op_name.empty() ? parameter.name : parameter.metadata.op_name;
  }

  std::optional<OriginPlace> place_of(const HloInstruction& one) const {
    if (auto own = places_.named(one)) return own;
    const InstructionIndex* inside = one.opcode == "fusion" ? module_.called(one) : nullptr;
    if (inside == nullptr || inside->root() == nullptr) return std::nullopt;
    return places_.named(*inside->root());
  }
  const ModuleIndex& module_;
  OriginFinder places_;
  const std::vector<std::string>& arguments_;
  std::unordered_map<std::int64_t, const HloInstruction*> by_id_;
};

std::vector<BufferUse> largest_of(std::vector<BufferUse> buffers, std::size_t most) {
  std::ranges::stable_sort(buffers, std::ranges::greater{}, &BufferUse::bytes);
  if (buffers.size() > most) buffers.resize(most);
  return buffers;
}

// Finds the buffers that are live when the sum of their sizes peaks. Buffers that share memory
// count as one, named after the first.
class PeakOfTrace {
 public:
  explicit PeakOfTrace(const std::unordered_map<std::int64_t, std::int64_t>& sizes)
      : sizes_(sizes) {}

  std::vector<std::int64_t> run(const HloHeapTrace& trace) {
    std::size_t peak_at = follow(trace, trace.events.size());
    reset();
    follow(trace, peak_at);
    std::vector<std::int64_t> alive;
    for (const auto& each : users_)
      if (each.second > 0) alive.push_back(each.first);
    std::ranges::sort(alive);
    return alive;
  }

 private:
  void reset() {
    users_.clear();
    owner_.clear();
    sum_ = 0;
  }

  std::int64_t size_of(std::int64_t buffer) const {
    auto found = sizes_.find(buffer);
    return found == sizes_.end() ? 0 : std::clamp<std::int64_t>(found->second, 0, kMostCounted);
  }

  // The number of events up to the first peak among the first `count` events.
  std::size_t follow(const HloHeapTrace& trace, std::size_t count) {
    std::int64_t most = -1;
    std::size_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const HloHeapTrace::Event& event = trace.events[i];
      bool shares = event.kind == HloHeapTrace::Kind::kShare;
      if (event.kind == HloHeapTrace::Kind::kFree) {
        auto owner = owner_.find(event.buffer);
        if (owner != owner_.end() && --users_[owner->second] == 0) sum_ -= size_of(owner->second);
        continue;
      }
      std::int64_t owner = event.buffer;
      if (shares) {
        auto of = owner_.find(event.shared_with);
        owner = of == owner_.end() ? event.shared_with : of->second;
      }
      owner_[event.buffer] = owner;
      if (users_[owner]++ == 0) sum_ = saturating_add(sum_, size_of(owner));
      if (sum_ > most) {
        most = sum_;
        at = i + 1;
      }
    }
    return at;
  }

  const std::unordered_map<std::int64_t, std::int64_t>& sizes_;
  std::unordered_map<std::int64_t, std::int64_t> users_;  // live users of a buffer's memory
  std::unordered_map<std::int64_t, std::int64_t> owner_;
  std::int64_t sum_ = 0;
};

class AssignedBuffers {
 public:
  AssignedBuffers(const HloBufferAssignment& assignment, const Namer& namer)
      : assignment_(assignment), namer_(namer) {
    for (const HloLogicalBuffer& each : assignment.buffers) buffers_.emplace(each.id, &each);
    for (const HloHeapTrace& each : assignment.traces) traces_.emplace(each.allocation, &each);
  }

  std::vector<BufferUse> run() {
    for (const HloBufferAllocation& each : assignment_.allocations) {
      if (each.color != 0 || each.thread_local_memory) continue;
      bool whole = each.parameter || each.live_out || each.constant;
      if (!whole) add_temporaries(each);
      if (whole && !each.tuple) add_whole(each);  // skips the address tables of tuples
    }
    return std::move(uses_);
  }

 private:
  void add_whole(const HloBufferAllocation& allocation) {
    BufferRole role = allocation.parameter  ? BufferRole::kArgument
                      : allocation.constant ? BufferRole::kConstant
                                            : BufferRole::kOutput;
    const HloLogicalBuffer* named = nullptr;
    for (const HloBufferAllocation::Assigned& each : allocation.assigned) {
      auto found = buffers_.find(each.buffer);
      if (found == buffers_.end()) continue;
      const HloInstruction* maker = namer_.find(found->second->instruction);
      bool fits =
          role != BufferRole::kArgument || (maker && maker->opcode == "parameter" &&
                                            maker->parameter_number == *allocation.parameter);
      if (fits && (named == nullptr || each.size > named->size)) named = found->second;
      if (fits && role == BufferRole::kArgument) break;
    }
    add(role, named, allocation.size);
  }

  void add(BufferRole role, const HloLogicalBuffer* named, std::int64_t bytes) {
    static const std::vector<std::int64_t> kWhole;
    uses_.push_back(namer_.use(role, named ? namer_.find(named->instruction) : nullptr,
                               named ? named->shape_index : kWhole, bytes));
  }

  void add_temporaries(const HloBufferAllocation& allocation) {
    std::unordered_map<std::int64_t, std::int64_t> sizes;
    for (const HloBufferAllocation::Assigned& each : allocation.assigned)
      sizes.emplace(each.buffer, each.size);
    if (auto trace = traces_.find(allocation.index); trace != traces_.end()) {
      for (std::int64_t id : PeakOfTrace(sizes).run(*trace->second))
        if (auto found = buffers_.find(id); found != buffers_.end())
          add(BufferRole::kTemporary, found->second, sizes[id]);
      return;
    }
    std::map<std::int64_t, HloBufferAllocation::Assigned> by_offset;
    for (const HloBufferAllocation::Assigned& each : allocation.assigned) {
      auto [found, is_new] = by_offset.emplace(each.offset, each);
      if (!is_new && each.size > found->second.size) found->second = each;
    }
    for (const auto& each : by_offset)
      if (auto found = buffers_.find(each.second.buffer); found != buffers_.end())
        add(BufferRole::kTemporary, found->second, each.second.size);
  }

  const HloBufferAssignment& assignment_;
  const Namer& namer_;
  std::unordered_map<std::int64_t, const HloLogicalBuffer*> buffers_;
  std::unordered_map<std::int64_t, const HloHeapTrace*> traces_;
  std::vector<BufferUse> uses_;
};

// The main-memory arrays that an instruction produces, as index paths into its result. The result
// of a start instruction also contains its operands: it produces the second element, or the first
// for a copy.
std::vector<std::vector<std::int64_t>> arrays_made(const HloInstruction& one) {
  const HloShape& shape = one.shape;
  if (!shape.is_tuple) return {{}};
  std::vector<std::vector<std::int64_t>> parts;
  bool start = one.opcode.ends_with("-start") && shape.tuple.size() > 1;
  std::int64_t only = !start ? -1 : one.opcode == "copy-start" ? 0 : 1;
  for (std::int64_t i = 0; i < std::ssize(shape.tuple); ++i)
    if ((only < 0 || i == only) && shape.tuple[static_cast<std::size_t>(i)].in_main_memory())
      parts.push_back({i});
  return parts;
}

std::int64_t made_bytes(const HloInstruction& one) {
  std::int64_t sum = 0;
  for (const std::vector<std::int64_t>& part : arrays_made(one))
    sum = saturating_add(sum, part_of(one.shape, part).padded_byte_size());
  return sum;
}

// Liveness of the values of one computation: from their definition to their last use.
class AliveTogether {
 public:
  explicit AliveTogether(const InstructionIndex& in) : order_(in.in_run_order()) {
    for (std::size_t i = 0; i < order_.size(); ++i) position_.emplace(order_[i], i);
    last_use_.resize(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) last_use_[i] = i;
    for (std::size_t i = order_.size(); i-- > 0;)
      for (const HloInstruction* operand : in.operands(*order_[i]))
        if (auto found = position_.find(operand); found != position_.end()) {
          // An instruction that only aliases a value keeps it live as long as the alias is.
          std::size_t until = makes_memory(*order_[i]) ? i : last_use_[i];
          last_use_[found->second] = std::max(last_use_[found->second], until);
        }
  }

  static bool makes_memory(const HloInstruction& one) {
    for (std::string_view opcode : {"tuple", "get-tuple-element", "bitcast", "while", "constant",
                                    "opt-barrier", "copy-done", "async-done", "parameter"})
      if (one.opcode == opcode) return false;
    return one.shape.is_tuple || one.shape.in_main_memory();
  }

  // The values that are live at the peak.
  std::vector<const HloInstruction*> at_peak() const {
    std::vector<std::int64_t> change(order_.size() + 1, 0);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (!makes_memory(*order_[i])) continue;
      std::int64_t bytes = made_bytes(*order_[i]) / 64;  // so that sums do not overflow
      change[i] += bytes;
      change[last_use_[i] + 1] -= bytes;
    }
    std::size_t peak = 0;
    std::int64_t sum = 0, most = -1;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      sum += change[i];
      if (sum > most) {
        most = sum;
        peak = i;
      }
    }
    std::vector<const HloInstruction*> alive;
    for (std::size_t i = 0; i <= peak && i < order_.size(); ++i)
      if (makes_memory(*order_[i]) && last_use_[i] >= peak) alive.push_back(order_[i]);
    return alive;
  }

 private:
  std::vector<const HloInstruction*> order_;
  std::unordered_map<const HloInstruction*, std::size_t> position_;
  std::vector<std::size_t> last_use_;
};

}  // namespace

Result<std::vector<BufferUse>> largest_buffers(std::string_view hlo_proto, const Graph* graph,
                                               const std::vector<std::string>& argument_names,
                                               std::size_t most) {
  MESHARD_ASSIGN_OR_RETURN(auto assignment, HloBufferAssignment::from_bytes(hlo_proto));
  if (!assignment)
    return Error(ErrorCode::kNotFound, "[explain] the compiler did not report a buffer assignment");
  MESHARD_ASSIGN_OR_RETURN(HloModule module, HloModule::from_bytes(hlo_proto));
  ModuleIndex index(module);
  Namer namer(index, graph, argument_names);
  return largest_of(AssignedBuffers(*assignment, namer).run(), most);
}

std::vector<BufferUse> estimated_buffers(const Executions& executions, const Graph* graph,
                                         const std::vector<std::string>& argument_names,
                                         std::size_t most) {
  const InstructionIndex& entry = executions.module().entry();
  Namer namer(executions.module(), graph, argument_names);
  std::vector<BufferUse> buffers;
  auto add = [&](BufferRole role, const HloInstruction& one) {
    for (const std::vector<std::int64_t>& part : arrays_made(one))
      buffers.push_back(namer.use(role, &one, part, part_of(one.shape, part).padded_byte_size()));
  };
  for (const HloInstruction& each : entry.computation().instructions)
    if (each.opcode == "parameter") add(BufferRole::kArgument, each);
  std::unordered_set<const HloInstruction*> outputs;
  if (const HloInstruction* root = entry.root()) {
    outputs.insert(root);
    for (const HloInstruction* operand : entry.operands(*root)) outputs.insert(operand);
  }
  for (const ReachedComputation& each : executions.calls().callers_first()) {
    bool runs_steps = each.kind == CallKind::kEntry || each.kind == CallKind::kLoopBody ||
                      each.kind == CallKind::kBranch;
    if (!runs_steps || executions.find(each.index->computation().id)->fused) continue;
    for (const HloInstruction* one : AliveTogether(*each.index).at_peak())
      add(outputs.contains(one) ? BufferRole::kOutput : BufferRole::kTemporary, *one);
  }
  return largest_of(std::move(buffers), most);
}

std::string MemoryUse::to_string() const {
  std::string text = "memory per device: ";
  if (peak > 0 && peak < temporaries)
    append(text, "allocated ", byte_text(total()), ", of which at most ", byte_text(peak),
           " are in use at one time; ");
  else if (peak > 0)
    append(text, "peak ", byte_text(peak), "; ");
  append(text, "arguments ", byte_text(arguments), ", outputs ", byte_text(outputs),
         ", temporaries ", byte_text(temporaries), ", aliased ", byte_text(aliased), ", code ",
         byte_text(code));
  if (host_arguments > 0 || host_outputs > 0 || host_temporaries > 0)
    append(text, "; on the host: arguments ", byte_text(host_arguments), ", outputs ",
           byte_text(host_outputs), ", temporaries ", byte_text(host_temporaries));
  return text;
}

std::string BufferUse::to_string() const {
  return cat(byte_text(bytes), " ", meshard::to_string(role), " ", name, " ", type,
             place.empty() ? "" : ", ", place);
}

}  // namespace meshard

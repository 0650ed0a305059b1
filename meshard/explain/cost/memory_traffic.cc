#include "meshard/explain/cost/memory_traffic.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

namespace meshard {
namespace {

constexpr std::string_view kMovesNothing[] = {"add-dependency",
                                              "after-all",
                                              "all-gather-done",
                                              "all-reduce-done",
                                              "async-done",
                                              "async-start",
                                              "async-update",
                                              "bitcast",
                                              "call",
                                              "collective-permute-done",
                                              "conditional",
                                              "constant",
                                              "copy-done",
                                              "domain",
                                              "get-tuple-element",
                                              "opt-barrier",
                                              "optimization-barrier",
                                              "parameter",
                                              "partition-id",
                                              "recv",
                                              "recv-done",
                                              "replica-id",
                                              "send-done",
                                              "tuple",
                                              "while"};

static_assert(std::is_sorted(std::begin(kMovesNothing), std::end(kMovesNothing)));

bool is_slice(std::string_view opcode) {
  return opcode == "dynamic-slice" || opcode == "slice" || opcode == "gather";
}

// TPU and GPU compilers use space 5 for host memory (xla/layout.h, kHostMemorySpace).
constexpr std::int64_t kMainMemory = 0, kHostMemory = 5;

bool is_in(const HloShape& shape, std::int64_t space) {
  const HloShape* first = &shape;
  while (first->is_tuple && !first->tuple.empty()) first = &first->tuple.front();
  return (first->layout ? first->layout->memory_space : kMainMemory) == space;
}

// The traffic of one memory space.
class Traffic {
 public:
  Traffic(const ModuleIndex& module, const InstructionIndex& in, std::int64_t space)
      : module_(module), in_(in), space_(space) {}

  double of(const HloInstruction& one) const;

 private:
  double bytes_in(const HloShape& shape) const {
    if (!shape.is_tuple)
      return is_in(shape, space_) ? static_cast<double>(shape.padded_byte_size()) : 0;
    double sum = 0;
    for (const HloShape& part : shape.tuple) sum += bytes_in(part);
    return sum;
  }

  double operand_bytes(const HloInstruction& one, std::size_t number) const {
    const HloInstruction* operand = in_.operand(one, number);
    return operand ? bytes_in(operand->shape) : 0;
  }

  // The bytes of `part`; 0 if `whole` is in another memory.
  double part_bytes(const HloShape& part, const HloShape& whole) const {
    return is_in(whole, space_) ? static_cast<double>(part.padded_byte_size()) : 0;
  }

  double of_slice(const HloInstruction& one) const;
  double of_fusion(const HloInstruction& fusion, const InstructionIndex& inside) const;

  const ModuleIndex& module_;
  const InstructionIndex& in_;
  std::int64_t space_;
};

// Traffic of an op that reads a part of its first operand, or writes a part of it in place.
double Traffic::of_slice(const HloInstruction& one) const {
  const HloInstruction* whole = in_.operand(one, 0);
  if (whole == nullptr) return 0;
  if (is_slice(one.opcode)) {
    double index = one.opcode == "gather" ? operand_bytes(one, 1) : 0;
    return part_bytes(one.shape, whole->shape) + index + bytes_in(one.shape);
  }
  const HloInstruction* update =
      in_.operand(one, one.opcode == "scatter" ? one.operands.size() - 1 : 1);
  if (update == nullptr) return 0;
  double part = part_bytes(update->shape, one.shape);
  double index = one.opcode == "scatter" ? operand_bytes(one, 1) + part : 0;
  return bytes_in(update->shape) + part + index;
}

bool passes_on(const HloInstruction& one) {
  return one.opcode == "bitcast" || one.opcode == "reshape" || one.opcode == "copy" ||
         one.opcode == "convert";
}

// The parts of its operands and results that a fusion reads and writes.
class FusionTraffic {
 public:
  explicit FusionTraffic(const InstructionIndex& inside) : in_(inside) {}

  // Bytes read from the operand that `parameter` refers to.
  double read(const HloInstruction& parameter, double whole, int depth = 0) const {
    std::vector<const HloInstruction*> users = in_.users(parameter);
    if (users.empty() || depth > 8) return users.empty() ? 0 : whole;
    double sum = 0;
    for (const HloInstruction* user : users) {
      bool first = in_.operand(*user, 0) == &parameter;
      if (first && is_slice(user->opcode))
        sum += static_cast<double>(user->shape.padded_byte_size());
      else if (first && user->opcode == "dynamic-update-slice" &&
               !is_other_operand(*user, parameter))
        continue;  // updated in place: the overwritten elements are not read
      else if (user->opcode == "bitcast" || user->opcode == "reshape")
        sum += read(*user, whole, depth + 1);
      else
        return whole;
    }
    return std::min(sum, whole);
  }

  // Bytes written to the part of the result that `made` produces; the part has `whole` bytes.
  double written(const HloInstruction* made, double whole) const {
    for (int step = 0; made != nullptr && passes_on(*made) && step < 8; ++step)
      made = in_.operand(*made, 0);
    if (made == nullptr || made->opcode != "dynamic-update-slice") return whole;
    const HloInstruction* update = in_.operand(*made, 1);
    return update ? std::min(whole, static_cast<double>(update->shape.padded_byte_size())) : whole;
  }

 private:
  bool is_other_operand(const HloInstruction& user, const HloInstruction& parameter) const {
    return in_.operand(user, 1) == &parameter;
  }
  const InstructionIndex& in_;
};

double Traffic::of_fusion(const HloInstruction& fusion, const InstructionIndex& inside) const {
  FusionTraffic traffic(inside);
  double sum = 0;
  for (const HloInstruction& each : inside.computation().instructions) {
    if (each.opcode != "parameter") continue;
    double whole = operand_bytes(fusion, static_cast<std::size_t>(each.parameter_number));
    if (whole > 0) sum += traffic.read(each, whole);
  }
  const HloInstruction* root = inside.root();
  if (!fusion.shape.is_tuple) return sum + traffic.written(root, bytes_in(fusion.shape));
  for (std::size_t i = 0; i < fusion.shape.tuple.size(); ++i) {
    double whole = bytes_in(fusion.shape.tuple[i]);
    const HloInstruction* made =
        root && root->opcode == "tuple" ? inside.operand(*root, i) : nullptr;
    if (whole > 0) sum += traffic.written(made, whole);
  }
  return sum;
}

double Traffic::of(const HloInstruction& one) const {
  std::string_view opcode = one.opcode;
  if (std::binary_search(std::begin(kMovesNothing), std::end(kMovesNothing), opcode)) return 0;
  if (is_slice(opcode) || opcode == "dynamic-update-slice" || opcode == "scatter")
    return of_slice(one);
  if (opcode == "fusion")
    if (const InstructionIndex* inside = module_.called(one)) return of_fusion(one, *inside);
  double operands = 0;
  for (std::size_t i = 0; i < one.operands.size(); ++i) operands += operand_bytes(one, i);
  // The result tuple of a start instruction also contains its operands: (operand, result, ...). For
  // a copy-start it is (result, operand, context).
  if (opcode == "send") return operand_bytes(one, 0);
  if (opcode == "copy-start")
    return operands + (one.shape.tuple.empty() ? 0 : bytes_in(one.shape.tuple[0]));
  if (opcode == "all-gather-start" || opcode == "collective-permute-start")
    return operands + (one.shape.tuple.size() < 2 ? 0 : bytes_in(one.shape.tuple[1]));
  return operands + bytes_in(one.shape);
}

// True if an instruction writes to host memory.
bool writes_host(const HloInstruction& one) {
  if (one.opcode == "copy-start")
    return !one.shape.tuple.empty() && is_in(one.shape.tuple[0], kHostMemory);
  return is_in(one.shape, kHostMemory);
}

}  // namespace

double memory_traffic(const ModuleIndex& module, const InstructionIndex& in,
                      const HloInstruction& one) {
  return Traffic(module, in, kMainMemory).of(one);
}

HostTraffic host_traffic(const ModuleIndex& module, const InstructionIndex& in,
                         const HloInstruction& one) {
  double bytes = Traffic(module, in, kHostMemory).of(one);
  if (one.opcode == "async-start")
    if (const InstructionIndex* inside = module.called(one)) {
      HostTraffic sum;
      for (const HloInstruction& each : inside->computation().instructions) {
        HostTraffic part = host_traffic(module, *inside, each);
        sum.from_host += part.from_host;
        sum.to_host += part.to_host;
      }
      return sum;
    }
  return writes_host(one) ? HostTraffic{.to_host = bytes} : HostTraffic{.from_host = bytes};
}

}  // namespace meshard

#include "meshard/partitioned/collective_call.h"

#include <algorithm>

#include "meshard/processes/reduction.h"

namespace meshard {
namespace {

constexpr std::string_view kKinds[] = {"all-reduce",           "all-gather",  "reduce-scatter",
                                       "all-to-all",           "all-to-all",  "collective-permute",
                                       "collective-broadcast", "partition-id"};
constexpr std::int32_t kKindCount = 8;

// A string of MLIR.
std::string quoted(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7E || c == '"' || c == '\\') {
      out += '\\';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string array_text(std::span<const std::int32_t> numbers) {
  return numbers.empty() ? "array<i32>" : cat("array<i32: ", join(numbers, ", "), ">");
}

}  // namespace

std::string_view to_string(CollectiveCallKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::string CollectiveCall::to_string() const {
  return cat("{chained = ", chained ? 1 : 0, " : i32, dimension = ", dimension,
             " : i32, kind = ", static_cast<int>(kind), " : i32, ranks = ", array_text(ranks),
             ", reduction = ", static_cast<int>(reduction), " : i32, sizes = ", array_text(sizes),
             ", where = ", quoted(where), "}");
}

Result<CollectiveCall> CollectiveCall::from_attributes(const pjrt::HostCall& call) {
  CollectiveCall to;
  bool good = true;
  auto number = [&](std::string_view name, std::int32_t end) {
    std::span<const std::int32_t> list = call.number_list(name);
    good &= list.size() == 1 && list[0] >= 0 && list[0] < end;
    return list.empty() ? 0 : list[0];
  };
  to.kind = static_cast<CollectiveCallKind>(number("kind", kKindCount));
  to.reduction = static_cast<Reduction>(number("reduction", kReductionCount));
  to.dimension = number("dimension", INT32_MAX);
  to.chained = number("chained", 2) != 0;
  to.ranks = call.number_list("ranks");
  to.sizes = call.number_list("sizes");
  to.where = call.attribute("where");
  std::int64_t total = 0;
  for (std::int32_t size : to.sizes) {
    good &= size > 0;
    total += size;
  }
  bool in_groups =
      to.kind != CollectiveCallKind::kPermute && to.kind != CollectiveCallKind::kPosition;
  if (good && in_groups)
    good = to.sizes.size() == 1 ? std::ssize(to.ranks) % total == 0 : std::ssize(to.ranks) == total;
  if (to.kind == CollectiveCallKind::kPermute) good &= std::ssize(to.ranks) == 2 * total;
  if (good) return to;
  return Error(ErrorCode::kInvalidArgument, cat("[collective] a custom call of ", kCollectiveTarget,
                                                " without the attributes of a collective"));
}

std::span<const std::int32_t> CollectiveCall::group_of(int rank) const {
  std::size_t at = 0;
  for (std::size_t group = 0; at < ranks.size(); ++group) {
    std::int32_t size = sizes[sizes.size() == 1 ? 0 : group];
    std::span<const std::int32_t> members = ranks.subspan(at, static_cast<std::size_t>(size));
    if (std::find(members.begin(), members.end(), rank) != members.end()) return members;
    at += members.size();
  }
  return {};
}

}  // namespace meshard

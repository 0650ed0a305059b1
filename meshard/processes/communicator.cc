#include "meshard/processes/communicator.h"

#include <vector>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

std::string group_text(std::span<const int> group) {
  std::string text = "[";
  for (std::size_t i = 0; i < group.size() && i < 32; ++i) text += cat(i == 0 ? "" : ",", group[i]);
  return text + (group.size() > 32 ? ",...]" : "]");
}

}  // namespace

std::string GroupCall::to_string() const {
  switch (kind) {
    case Kind::kAllReduce:
      return cat("all-reduce ", meshard::to_string(op), " of ", count, ' ', type);
    case Kind::kReduceScatter:
      return cat("reduce-scatter ", meshard::to_string(op), " of ", count, ' ', type);
    case Kind::kAllGather: return cat("all-gather of ", count, " bytes");
    case Kind::kAllToAll: return cat("all-to-all of ", count, " bytes");
    case Kind::kBroadcast: break;
  }
  return cat("broadcast of ", count, " bytes from ", root);
}

Result<std::size_t> check_group(std::span<const int> group, int rank, int size) {
  std::vector<bool> seen(static_cast<std::size_t>(size));
  std::size_t position = group.size();
  for (std::size_t i = 0; i < group.size(); ++i) {
    int member = group[i];
    if (member < 0 || member >= size || seen[static_cast<std::size_t>(member)])
      return Error(ErrorCode::kInvalidArgument,
                   cat("[processes] the group ", group_text(group),
                       " must list distinct ranks from 0 to ", size - 1, "; it has ", member));
    seen[static_cast<std::size_t>(member)] = true;
    if (member == rank) position = i;
  }
  if (position == group.size())
    return Error(
        ErrorCode::kInvalidArgument,
        cat("[processes] process ", rank, " is not a member of the group ", group_text(group)));
  return position;
}

Result<std::size_t> check_call(std::span<const int> group, const GroupCall& call, int rank,
                               int size) {
  MESHARD_RETURN_IF_ERROR(check_reduction(call.op, call.type));
  std::size_t elements = 0, bytes = 0, width = size_in_bytes(call.type);
  if (__builtin_mul_overflow(group.size(), call.count, &elements) ||
      __builtin_mul_overflow(elements, width, &bytes) || bytes > PTRDIFF_MAX)
    return Error(ErrorCode::kInvalidArgument,
                 cat("[processes] ", group.size(), " times ", call.count, " elements of ", width,
                     " bytes are too many"));
  if (call.kind == GroupCall::Kind::kBroadcast)
    MESHARD_RETURN_IF_ERROR(check_group(group, call.root, size));
  return check_group(group, rank, size);
}

Result<void> check_permute(int to, int from, int rank, int size) {
  for (int other : {to, from})
    if (other < -1 || other >= size)
      return Error(ErrorCode::kInvalidArgument,
                   cat("[processes] a permute names process ", other, " of ", size));
  if ((to == rank) != (from == rank))
    return Error(ErrorCode::kInvalidArgument,
                 cat("[processes] a permute on process ", rank, " sends to ", to,
                     " and receives from ", from, ": a process sends to itself or not at all"));
  return {};
}

Result<void> check_message(int process, int tag, int rank, int size) {
  if (process < 0 || process >= size || process == rank)
    return Error(ErrorCode::kInvalidArgument, cat("[processes] process ", rank, " of ", size,
                                                  " exchanges a message with process ", process));
  if (tag < 0)
    return Error(ErrorCode::kInvalidArgument, cat("[processes] a message has the tag ", tag));
  return {};
}

}  // namespace meshard

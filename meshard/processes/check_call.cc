#include "meshard/processes/check_call.h"

#include <cstdint>
#include <string>
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

Result<int> check_group(std::span<const int> group, int rank, int size) {
  std::vector<bool> seen(static_cast<std::size_t>(size));
  int position = -1;
  for (std::size_t i = 0; i < group.size(); ++i) {
    int member = group[i];
    if (member < 0 || member >= size || seen[static_cast<std::size_t>(member)])
      return Error(ErrorCode::kInvalidArgument,
                   cat("[processes] the group ", group_text(group),
                       " must list distinct ranks from 0 to ", size - 1, "; it has ", member));
    seen[static_cast<std::size_t>(member)] = true;
    if (member == rank) position = static_cast<int>(i);
  }
  if (position < 0)
    return Error(
        ErrorCode::kInvalidArgument,
        cat("[processes] process ", rank, " is not a member of the group ", group_text(group)));
  return position;
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

Result<std::size_t> check_size(std::size_t parts, std::size_t count, std::size_t bytes) {
  std::size_t elements = 0, result = 0;
  if (__builtin_mul_overflow(parts, count, &elements) ||
      __builtin_mul_overflow(elements, bytes, &result) || result > PTRDIFF_MAX)
    return Error(ErrorCode::kInvalidArgument, cat("[processes] ", parts, " times ", count,
                                                  " elements of ", bytes, " bytes are too many"));
  return result;
}

}  // namespace meshard

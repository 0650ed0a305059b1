// Checks of a communicator's arguments that need no communication.
#pragma once
#include <cstddef>
#include <span>

#include "meshard/array/dtype.h"
#include "meshard/base/result.h"
#include "meshard/processes/reduction.h"

namespace meshard {

/// Checks that `group` lists distinct ranks from 0 to size - 1, `rank` among them.
/// @return the position of `rank` in the group
/// @error invalid argument, naming the group
Result<int> check_group(std::span<const int> group, int rank, int size);

/// Checks the ranks of a permute; -1 is none.
/// @error invalid argument if a rank does not exist, or only one of `to` and `from` is `rank`
Result<void> check_permute(int to, int from, int rank, int size);

/// Checks a message to or from another process.
/// @error invalid argument unless `process` is another process of the run, or if the tag is
/// negative
Result<void> check_message(int process, int tag, int rank, int size);

/// The size of `parts` times `count` elements of `bytes` bytes.
/// @error invalid argument if it does not fit
Result<std::size_t> check_size(std::size_t parts, std::size_t count, std::size_t bytes);

}  // namespace meshard

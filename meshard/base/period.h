// The period of a sequence that repeats.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace meshard {

/// The smallest period with which at least the last half of `sequence` repeats, twice or more;
/// empty if there is none. A short repetition at the end, such as an inner loop, does not count.
/// Takes linear time.
std::optional<std::size_t> find_period(std::span<const std::uint64_t> sequence);

}  // namespace meshard

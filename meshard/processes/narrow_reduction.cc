#include "meshard/processes/narrow_reduction.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace meshard {
namespace {

// Below this size, one message to each member is faster than two smaller ones.
constexpr std::size_t kGatheredBytes = 4096;
// Larger arrays are reduced piece by piece, so that the temporary memory is small.
constexpr std::size_t kPieceElements = std::size_t{1} << 22;

/// Combines `parts` consecutive blocks.
void combine_parts(Reduction op, DType type, const std::byte* parts, std::size_t part_count,
                   void* out, std::size_t count) {
  std::vector<const void*> blocks(part_count);
  for (std::size_t i = 0; i < part_count; ++i) blocks[i] = parts + i * count * size_in_bytes(type);
  combine_blocks(op, type, blocks, out, count);
}

/// One piece: every member combines its block of it.
Result<void> reduce_piece(Communicator& communicator, std::span<const int> group, Reduction op,
                          DType type, const std::byte* in, std::byte* out, std::size_t count) {
  std::size_t members = group.size(), block = (count + members - 1) / members;
  std::size_t bytes = count * size_in_bytes(type), block_bytes = block * size_in_bytes(type);
  MessageMemory received(members * block_bytes);
  MessageMemory padded;
  if (members * block_bytes != bytes) {  // the last blocks are filled up
    padded = MessageMemory(members * block_bytes);
    std::memcpy(padded.data(), in, bytes);
    std::memset(padded.data() + bytes, 0, members * block_bytes - bytes);
    in = padded.data();
  }
  MESHARD_RETURN_IF_ERROR(communicator.all_to_all(group, in, received.data(), block_bytes));
  MessageMemory own(block_bytes);
  combine_parts(op, type, received.data(), members, own.data(), block);
  if (padded.data() == nullptr) return communicator.all_gather(group, own.data(), out, block_bytes);
  MESHARD_RETURN_IF_ERROR(communicator.all_gather(group, own.data(), padded.data(), block_bytes));
  std::memcpy(out, padded.data(), bytes);
  return {};
}

}  // namespace

Result<void> all_reduce_by_exchange(Communicator& communicator, std::span<const int> group,
                                    Reduction op, DType type, const void* in, void* out,
                                    std::size_t count) {
  const std::size_t bytes = count * size_in_bytes(type);
  if (bytes <= kGatheredBytes) {
    MessageMemory all(group.size() * bytes);
    MESHARD_RETURN_IF_ERROR(communicator.all_gather(group, in, all.data(), bytes));
    combine_parts(op, type, all.data(), group.size(), out, count);
    return {};
  }
  std::size_t piece = std::max(kPieceElements / group.size(), std::size_t{1}) * group.size();
  for (std::size_t begin = 0; begin < count; begin += piece) {
    std::size_t offset = begin * size_in_bytes(type);
    MESHARD_RETURN_IF_ERROR(
        reduce_piece(communicator, group, op, type, static_cast<const std::byte*>(in) + offset,
                     static_cast<std::byte*>(out) + offset, std::min(piece, count - begin)));
  }
  return {};
}

Result<void> reduce_scatter_by_exchange(Communicator& communicator, std::span<const int> group,
                                        Reduction op, DType type, const void* in, void* out,
                                        std::size_t count) {
  const std::size_t bytes = group.size() * count * size_in_bytes(type);
  MessageMemory received(bytes);
  MESHARD_RETURN_IF_ERROR(
      communicator.all_to_all(group, in, received.data(), count * size_in_bytes(type)));
  combine_parts(op, type, received.data(), group.size(), out, count);
  return {};
}

}  // namespace meshard

#include "meshard/processes/narrow_reduction.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "meshard/processes/check_call.h"

namespace meshard {
namespace {

// Below this size, one message to each member is faster than two smaller ones.
constexpr std::size_t kGatheredBytes = 4096;
// Larger arrays are reduced piece by piece, so that the temporary memory is small.
constexpr std::size_t kPieceElements = std::size_t{1} << 22;

using Buffer = std::unique_ptr<unsigned char[]>;

Buffer make_buffer(std::size_t bytes) { return Buffer(new unsigned char[bytes]); }

/// Combines `parts` consecutive blocks.
void combine_parts(Reduction op, DType type, const unsigned char* parts, std::size_t part_count,
                   void* out, std::size_t count) {
  std::vector<const void*> blocks(part_count);
  for (std::size_t i = 0; i < part_count; ++i) blocks[i] = parts + i * count * size_in_bytes(type);
  combine_blocks(op, type, blocks, out, count);
}

/// One piece: every member combines its block of it.
Result<void> reduce_piece(Communicator& communicator, std::span<const int> group, Reduction op,
                          DType type, const unsigned char* in, unsigned char* out,
                          std::size_t count) {
  std::size_t members = group.size(), block = (count + members - 1) / members;
  std::size_t bytes = count * size_in_bytes(type), block_bytes = block * size_in_bytes(type);
  Buffer received = make_buffer(members * block_bytes);
  Buffer padded;
  if (members * block_bytes != bytes) {  // the last blocks are filled up
    padded = make_buffer(members * block_bytes);
    std::memcpy(padded.get(), in, bytes);
    std::memset(padded.get() + bytes, 0, members * block_bytes - bytes);
    in = padded.get();
  }
  MESHARD_RETURN_IF_ERROR(communicator.all_to_all(group, in, received.get(), block_bytes));
  Buffer own = make_buffer(block_bytes);
  combine_parts(op, type, received.get(), members, own.get(), block);
  if (!padded) return communicator.all_gather(group, own.get(), out, block_bytes);
  MESHARD_RETURN_IF_ERROR(communicator.all_gather(group, own.get(), padded.get(), block_bytes));
  std::memcpy(out, padded.get(), bytes);
  return {};
}

}  // namespace

Result<void> all_reduce_by_exchange(Communicator& communicator, std::span<const int> group,
                                    Reduction op, DType type, const void* in, void* out,
                                    std::size_t count) {
  MESHARD_ASSIGN_OR_RETURN(std::size_t bytes, check_size(1, count, size_in_bytes(type)));
  if (bytes <= kGatheredBytes) {
    Buffer all = make_buffer(group.size() * bytes);
    MESHARD_RETURN_IF_ERROR(communicator.all_gather(group, in, all.get(), bytes));
    combine_parts(op, type, all.get(), group.size(), out, count);
    return {};
  }
  std::size_t piece = std::max(kPieceElements / group.size(), std::size_t{1}) * group.size();
  for (std::size_t begin = 0; begin < count; begin += piece) {
    std::size_t offset = begin * size_in_bytes(type);
    MESHARD_RETURN_IF_ERROR(
        reduce_piece(communicator, group, op, type, static_cast<const unsigned char*>(in) + offset,
                     static_cast<unsigned char*>(out) + offset, std::min(piece, count - begin)));
  }
  return {};
}

Result<void> reduce_scatter_by_exchange(Communicator& communicator, std::span<const int> group,
                                        Reduction op, DType type, const void* in, void* out,
                                        std::size_t count) {
  MESHARD_ASSIGN_OR_RETURN(std::size_t bytes, check_size(group.size(), count, size_in_bytes(type)));
  Buffer received = make_buffer(bytes);
  MESHARD_RETURN_IF_ERROR(
      communicator.all_to_all(group, in, received.get(), count * size_in_bytes(type)));
  combine_parts(op, type, received.get(), group.size(), out, count);
  return {};
}

}  // namespace meshard

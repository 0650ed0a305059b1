// What publishers and receivers send each other.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/array/slice.h"
#include "meshard/base/fields.h"
#include "meshard/base/result.h"

namespace meshard::io::internal {

// Requests (processes/requests.h):
//
//   "newest"  number = the version that it must be greater than. Process 0 answers, when there is
//             one, with a packed Catalog, and keeps the version until the connection ends.
//   "part"    value = a packed PartRequest. The process that has the part answers with the elements
//             in the box: one message for each box of message_boxes().
inline constexpr std::string_view kNewest = "newest", kPart = "part";

/// The secret of a publisher or receiver: `given`, or MESHARD_PUBLISH_SECRET.
std::string secret_of(const std::string& given);

/// A Box in messages.
using PackedBox = std::vector<std::pair<std::int64_t, std::int64_t>>;
PackedBox packed_box(const Box& box);
Box unpacked_box(const PackedBox& box);

/// A value: a part of a tensor, and the process that sends it.
struct PublishedPart {
  PackedBox box = {};
  int process = 0;
  MESHARD_FIELDS(box, process)
};

/// A value: the type of a tensor, and its parts, which cover it exactly once.
struct PublishedTensor {
  std::string name = {}, dtype = {};
  std::vector<std::int64_t> shape = {};
  std::vector<PublishedPart> parts = {};
  MESHARD_FIELDS(name, dtype, shape, parts)

  /// @error invalid argument: not a type
  Result<TensorType> type() const;
  /// Checks that the parts are inside, and have as many elements as the tensor.
  /// @error invalid argument, naming the tensor and the numbers
  Result<void> check() const;
};

/// A value: a version, and where its processes listen.
struct Catalog {
  std::int64_t version = 0;
  std::vector<PublishedTensor> tensors = {};
  std::vector<std::vector<std::string>> addresses = {};  // by process
  MESHARD_FIELDS(version, tensors, addresses)
};

/// A value: the elements that a process needs of a part.
struct PartRequest {
  std::int64_t version = 0;
  std::string name = {};          ///< the tensor
  PackedBox part = {}, box = {};  ///< both in the tensor
  MESHARD_FIELDS(version, name, part, box)
};

/// The boxes, in row-major order, into which the elements of a box are divided for messages: of at
/// most 256 KiB, so that they stay in the caches.
std::vector<Box> message_boxes(const Box& box, std::size_t element_bytes);

}  // namespace meshard::io::internal

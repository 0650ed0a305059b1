// Tested in meshard/io/publish_test.cc.
#include "meshard/io/internal/published.h"

#include <algorithm>
#include <cstdlib>

#include "meshard/base/cat.h"

namespace meshard::io::internal {
namespace {

constexpr std::int64_t kMessageBytes = std::int64_t{1} << 18;

// Divides along dimension d, and those after it if one row of d is too large.
void divide(const Box& box, std::size_t d, std::int64_t element_bytes, std::vector<Box>& out) {
  std::int64_t row = element_bytes;
  for (std::size_t i = d + 1; i < box.size(); ++i) row *= box[i].size();
  if (d == box.size() || row * box[d].size() <= kMessageBytes) return out.push_back(box);
  const std::int64_t rows = std::max<std::int64_t>(1, kMessageBytes / row);
  for (std::int64_t start = box[d].start; start < box[d].stop; start += rows) {
    Box part = box;
    part[d] = {start, std::min(start + rows, box[d].stop)};
    divide(part, d + 1, element_bytes, out);
  }
}

}  // namespace

std::string secret_of(const std::string& given) {
  const char* variable = std::getenv("MESHARD_PUBLISH_SECRET");
  return !given.empty() || variable == nullptr ? given : variable;
}

PackedBox packed_box(const Box& box) {
  PackedBox out;
  for (const DimensionSlice& slice : box) out.emplace_back(slice.start, slice.stop);
  return out;
}

Box unpacked_box(const PackedBox& box) {
  Box out;
  for (const auto& [start, stop] : box) out.push_back({start, stop});
  return out;
}

Result<TensorType> PublishedTensor::type() const {
  MESHARD_ASSIGN_OR_RETURN(DType parsed, parse_dtype(dtype));
  for (std::int64_t size : shape)
    if (size < 0)
      return Error(ErrorCode::kInvalidArgument,
                   cat("[io] the published tensor \"", name, "\" has the size ", size));
  return TensorType{parsed, Shape(Dimensions(shape.begin(), shape.end()))};
}

Result<void> PublishedTensor::check() const {
  MESHARD_ASSIGN_OR_RETURN(TensorType whole, type());
  std::int64_t elements = 0;
  for (const PublishedPart& part : parts) {
    const Box box = unpacked_box(part.box);
    Result<void> inside = caught([&] { check_box(box, whole.shape, "io"); });
    if (!inside.ok())
      return inside.error().with_note(cat("in a part of the published tensor \"", name, "\""));
    elements += box_shape(box).size();
  }
  if (elements == whole.shape.size()) return {};
  return Error(ErrorCode::kInvalidArgument,
               cat("[io] the parts of the published tensor \"", name, "\", ", whole, ", have ",
                   elements, " elements, not ", whole.shape.size()));
}

std::vector<Box> message_boxes(const Box& box, std::size_t element_bytes) {
  std::vector<Box> out;
  divide(box, 0, static_cast<std::int64_t>(element_bytes), out);
  return out;
}

}  // namespace meshard::io::internal

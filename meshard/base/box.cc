#include "meshard/base/box.h"

#include <charconv>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"

namespace meshard {

std::string DimensionSlice::to_string() const { return cat(start, ":", stop); }

Result<DimensionSlice> DimensionSlice::parse(std::string_view text) {
  DimensionSlice slice;
  const char* end = text.data() + text.size();
  auto [colon, error] = std::from_chars(text.data(), end, slice.start);
  if (error == std::errc{} && colon != end && *colon == ':') {
    auto [last, stop_error] = std::from_chars(colon + 1, end, slice.stop);
    if (stop_error == std::errc{} && last == end && slice.start <= slice.stop) return slice;
  }
  return Error(ErrorCode::kInvalidArgument,
               cat("[slice] cannot read \"", text, "\": expected a form like 2:4"));
}

std::string to_string(const Box& box) { return cat('[', join(box, ", "), ']'); }

}  // namespace meshard

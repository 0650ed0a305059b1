// Tested in meshard/explain/report_test.cc.
#include "meshard/explain/value_placement.h"

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"

namespace meshard {

TensorType ValuePlacement::shard() const {
  if (!sharding) return type;
  Dimensions sizes;
  for (std::int64_t size : sharding->shard_shape(padded.shape)) sizes.push_back(size);
  return {type.dtype, Shape(std::move(sizes))};
}

std::int64_t ValuePlacement::padding_bytes() const {
  std::int64_t copies = sharding ? sharding->num_replicas() : 1;
  return (padded.bytes() - type.bytes()) * copies;
}

std::string ValuePlacement::to_string() const {
  std::string where = memory_kind.empty() ? "" : cat(", in ", memory_kind, " memory");
  if (!sharding) return cat(type, ", ", byte_text(type.bytes()), where);
  TensorType part = shard();
  std::string text = cat(type, " ", sharding->spec());
  if (!sharding->unreduced_axes().empty())
    append(text, cat(" unreduced ", meshard::to_string(sharding->unreduced_axes())));
  append(text, cat(", shard ", part, ", ", byte_text(part.bytes()), where));
  if (padded != type)
    append(text, cat(", padded to ", padded, " (", byte_text(padding_bytes()), " wasted)"));
  if (chosen_by_compiler) append(text, ", the compiler's choice");
  return text;
}

}  // namespace meshard

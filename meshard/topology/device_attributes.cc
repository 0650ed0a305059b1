#include "meshard/topology/device_attributes.h"

#include "meshard/base/cat.h"

namespace meshard {

std::string DeviceAttributes::to_string() const {
  std::string out = cat(id);
  if (!coords.empty()) append(out, cat(" at ", IntTuple::flat(coords)));
  if (core_on_chip != 0) append(out, cat(" core ", core_on_chip));
  if (slice_index) append(out, cat(" of slice ", *slice_index));
  return cat(out, ", process ", process_index);
}

}  // namespace meshard

// Scalars in a file that TensorBoard reads.
#pragma once
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "meshard/meshard.h"

namespace llm {

/// Owner of an event file: records of TFRecord (length, data, checksums), each an Event message of
/// protocol buffers. Sources: tensorflow/core/lib/io/record_writer.h and
/// tensorflow/core/util/event.proto.
class EventFile {
 public:
  /// Creates FOLDER/events.out.tfevents.TIME.meshard. @error unavailable
  static meshard::Result<EventFile> create(const std::string& folder);

  /// Adds a point to each of some curves.
  /// @error unavailable: the disk is full
  meshard::Result<void> add(std::int64_t step,
                            std::span<const std::pair<std::string, float>> values);

 private:
  explicit EventFile(std::ofstream file) : file_(std::move(file)) {}
  meshard::Result<void> write(std::string_view event);
  std::ofstream file_;
};

/// CRC-32C (Castagnoli), RFC 3720, appendix B.4.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace llm

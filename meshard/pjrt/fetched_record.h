// The record that fetching a plugin leaves beside it: what the file was, and its hash.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard::pjrt {

/// A value: the text of `PLUGIN.fetched`, lines `sha256 HEX`, `size N`, `time NANOSECONDS`, `owner
/// UID`.
struct FetchedRecord {
  std::string sha256;
  std::int64_t size = 0;
  /// Of the last modification.
  std::int64_t time = 0;
  std::int64_t owner = 0;

  /// @error data loss if it is not a record
  static Result<FetchedRecord> parse(std::string_view text);
  std::string to_string() const;
  friend bool operator==(const FetchedRecord&, const FetchedRecord&) = default;
};

/// How a plugin file compares with its record.
enum class FetchedState {
  /// There is no record: nobody fetched it, or an older version did.
  kNoRecord,
  /// Size, time and owner are those of the record.
  kUnchanged,
  /// One of them differs, and the hash was calculated and is the recorded one.
  kHashChecked,
};

/// Compares a plugin file with its record. Reads the whole file only if its size, time or owner
/// changed; then the record is brought up to date where it can be written.
/// @error data loss if the hash differs or the record is damaged, saying how to get the file again
Result<FetchedState> check_fetched_file(const std::string& path);

}  // namespace meshard::pjrt

// A key-value store that all processes of a run share.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard {

/// A time limit that never passes.
inline constexpr std::chrono::milliseconds kNoTimeLimit{-1};

/// Small values by name, kept by process 0. Keys (at most 4096 bytes) and values (at most 256 MiB)
/// may hold any bytes. All functions may be called from several threads.
class Store {
 public:
  virtual ~Store() = default;

  /// Stores a value, instead of the one that the key may have.
  /// @error unavailable if process 0 is lost; invalid argument for a key or value that is too large
  virtual Result<void> put(std::string_view key, std::string_view value) = 0;

  /// The value of a key; waits until a process puts it.
  /// @error deadline exceeded if that does not happen within `limit`; unavailable if a process of
  /// the run is lost and there is no value
  virtual Result<std::string> get(std::string_view key,
                                  std::chrono::milliseconds limit = kNoTimeLimit) = 0;

  /// The value of a key, without waiting; empty if it has none.
  /// @error unavailable if process 0 is lost
  virtual Result<std::optional<std::string>> try_get(std::string_view key) = 0;

  /// Stores a value that is the same in all processes which publish it: the first one counts.
  /// `first`, unless null, receives the value that the key has afterward, also if that is an error.
  /// @error already exists if the key has another value; the message names the process that has
  /// stored it
  virtual Result<void> publish(std::string_view key, std::string_view value,
                               std::string* first = nullptr) = 0;
};

}  // namespace meshard

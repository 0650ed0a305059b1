// A folder of files that are kept for later, of bounded size.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

/// Handle on a cache folder; cheap to copy. Thread-safe. Several processes may use it at once. An
/// entry is found whole or not at all: it is written under another name, and its bytes carry a
/// fingerprint.
class FileCache {
 public:
  /// The folder is created on the first write. With an empty name nothing is cached.
  /// @param extension of the entries' files: `.compiled`. Other files are left alone
  /// @param format the first line of each file; another line means another meaning of the bytes
  /// @param most_bytes size limit of all files; least recently used files are removed beyond it
  FileCache(std::string folder, std::string extension, std::string format,
            std::uint64_t most_bytes);

  /// @error permission denied if another user could have written the folder (check_file_trust)
  Result<void> check_trust() const;
  /// The bytes of an entry, which then counts as just used. None if it is missing or damaged.
  /// @pre the key can be a file name
  std::optional<std::string> find(const std::string& key) const;
  /// The same, but the entry does not count as used.
  std::optional<std::string> peek(const std::string& key) const;
  /// Writes an entry, then removes least recently used ones until the rest fits. As long as it
  /// knows that everything fits, it lists the folder only at every 64th write, because other
  /// processes write there, too.
  /// @error the system's error
  Result<void> keep(const std::string& key, std::string_view bytes) const;
  /// The keys that begin with `prefix`, in no particular order.
  std::vector<std::string> keys(std::string_view prefix = {}) const;
  /// The size of all entries.
  std::uint64_t bytes() const;
  /// The file for a key.
  std::string path_of(const std::string& key) const;
  const std::string& folder() const { return folder_; }
  std::uint64_t most_bytes() const { return most_bytes_; }

 private:
  // What this handle and its copies know about the folder.
  struct Known {
    std::mutex mutex;
    std::uint64_t bytes = 0;  // of all entries at the last listing, and those written since
    int writes = 0;           // until the next listing
  };
  // Removes what does not fit. Returns the size of the rest.
  std::uint64_t shrink() const;

  std::string folder_, extension_, format_;
  std::uint64_t most_bytes_;
  std::shared_ptr<Known> known_ = std::make_shared<Known>();
};

}  // namespace meshard

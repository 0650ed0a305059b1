// A folder of files that are kept for later, of bounded size.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

// The folder in which meshard keeps fetched plugins and compiled programs.

/// Reads an environment variable; tests supply their own function.
using ReadEnvironment = std::function<std::optional<std::string>(const char* name)>;

/// The variable in the environment of the process; none if it is not set or empty, or if the
/// program runs with the rights of another user.
std::optional<std::string> process_variable(const char* name);

/// The cache directory, whether or not it exists: MESHARD_CACHE, otherwise XDG_CACHE_HOME/meshard,
/// otherwise ~/.cache/meshard. The home directory is HOME or, if it is not set, that of the
/// password database. Empty if none of these is set: then nothing is cached.
std::string cache_folder(const ReadEnvironment& environment = {});

// Checks whether a file or folder can only have been written by users that this process trusts.

/// A value: the path, ownership and permissions of a file or folder.
struct FileFacts {
  std::string path;
  uid_t owner = 0;
  gid_t group = 0;
  /// Permissions and file type, as in `stat`.
  mode_t mode = 0;
  /// True if `group` has members other than the owner, this process's user and root.
  bool group_has_strangers = true;
};

/// A value: the user that this process runs as.
struct FileReader {
  uid_t user = 0;
  /// True if the process is in a user namespace that does not map all users; files of unmapped
  /// users then appear to belong to `unmapped_user`.
  bool has_unmapped_users = false;
  uid_t unmapped_user = 65534;
};

/// Checks ownership and permissions of a path without accessing the file system. `chain` is a file
/// or folder, followed by each folder above it. Trusted owners are this user and root; if this user
/// is root, also one other user (who installed the files). In a user namespace, folders above the
/// path may also belong to `unmapped_user`. No other user may have write permission, except in a
/// parent folder with the sticky bit, where users cannot replace each other's files. Group write
/// permission is accepted if the group has no other members, as for Debian's /usr/local.
/// @error permission denied, naming the path, its owner and mode
Result<void> judge_trust(const std::vector<FileFacts>& chain, const FileReader& reader);

/// Applies judge_trust to a path and all folders above it, after resolving symbolic links. If the
/// path does not exist, the check starts at its lowest existing parent folder.
/// MESHARD_TRUST_FILES=1 accepts everything, for file systems without owners.
/// @error as judge_trust; not found if no part of the path exists
Result<void> check_file_trust(const std::string& path);

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
  /// finds that everything fits, it lists the folder only at every 64th write, because other
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
  // The state of the folder as this handle and its copies last saw it.
  struct Known {
    std::mutex mutex;
    std::uint64_t bytes = 0;  // of all entries at the last listing, and those written since
    int writes = 0;           // until the next listing
  };
  // Removes entries that do not fit. Returns the size of the rest.
  std::uint64_t shrink() const;

  std::string folder_, extension_, format_;
  std::uint64_t most_bytes_;
  std::shared_ptr<Known> known_ = std::make_shared<Known>();
};

}  // namespace meshard

// Checks whether a file or folder can only have been written by users that this process trusts.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

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
/// path may also belong to `unmapped_user`. Nobody else may have write permission, except in a
/// parent folder with the sticky bit, where users cannot replace each other's files. Group write
/// permission is accepted if the group has no other members, as for Debian's /usr/local.
/// @error permission denied, naming the path, its owner and mode
Result<void> judge_trust(const std::vector<FileFacts>& chain, const FileReader& reader);

/// Applies judge_trust to a path and all folders above it, after resolving symbolic links. If the
/// path does not exist, the check starts at its lowest existing parent folder.
/// MESHARD_TRUST_FILES=1 accepts everything, for file systems without owners.
/// @error as judge_trust; not found if no part of the path exists
Result<void> check_file_trust(const std::string& path);

}  // namespace meshard

// Whether a file or folder can only have been written by somebody that this process trusts.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

/// A value: a file or folder, as the system describes it.
struct FileFacts {
  std::string path;
  uid_t owner = 0;
  gid_t group = 0;
  /// Permissions and type, as in `stat`.
  mode_t mode = 0;
  /// Somebody other than the owner, this process's user and root belongs to `group`.
  bool group_has_strangers = true;
};

/// A value: whose rights this process has.
struct FileReader {
  uid_t user = 0;
  /// The owner that stands for users outside this user namespace, if the process is in one.
  bool has_unmapped_users = false;
  uid_t unmapped_user = 65534;
};

/// The rule alone: `chain` is a file or folder, then each folder above it. Trusted are files of
/// this user and of root; where this user is root, also the files of one other user, who installed
/// them. Nobody else may be able to write, except in a folder with the sticky bit, where nobody can
/// replace the files of others. A folder of root that its group may write is accepted if nobody is
/// in that group: Debian's /usr/local is one.
/// @error permission denied, naming the path, its owner and mode
Result<void> judge_trust(const std::vector<FileFacts>& chain, const FileReader& reader);

/// Applies judge_trust to a file or folder and to all folders above it, after following links. A
/// path that does not exist stands for the lowest folder that does. MESHARD_TRUST_FILES=1 accepts
/// everything, for file systems without owners.
/// @error as judge_trust; not found if no part of the path exists
Result<void> check_file_trust(const std::string& path);

}  // namespace meshard

#include "meshard/base/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartSuffix = ".part-";

// Returns false if another process's cleanup locked or removed the file after it was created. Where
// files cannot be locked, as on some network file systems, no part is ever considered stale.
bool lock_new_part(int file) {
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat about {};
  return ::fstat(file, &about) == 0 && about.st_nlink > 0;
}

void remove_if_stale(const std::string& part) {
  int file = ::open(part.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  struct stat about {};
  // Removed while holding the lock: a writer that was about to lock the file notices that it is
  // gone and creates another.
  if (::fstat(file, &about) == 0 && S_ISREG(about.st_mode) && ::flock(file, LOCK_EX | LOCK_NB) == 0)
    ::unlink(part.c_str());
  ::close(file);
}

}  // namespace

void remove_stale_parts(const std::string& path) {
  fs::path whole(path);
  std::string prefix = cat(whole.filename().string(), kPartSuffix);
  fs::path folder = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().starts_with(prefix)) remove_if_stale(at->path().string());
}

PartFile PartFile::create(const std::string& path, mode_t mode) {
  static std::atomic<unsigned> next{0};
  remove_stale_parts(path);
  PartFile out(path);
  while (true) {
    std::string part = cat(path, kPartSuffix, static_cast<std::int64_t>(::getpid()), "-", next++);
    int file = ::open(part.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file < 0 && errno == EEXIST) continue;
    if (file < 0) return out;
    if (lock_new_part(file)) {
      out.file_ = file;
      out.part_ = std::move(part);
      return out;
    }
    ::close(file);
    ::unlink(part.c_str());
  }
}

PartFile::~PartFile() {
  int code = errno;
  if (!part_.empty()) ::unlink(part_.c_str());
  if (file_ >= 0) ::close(file_);
  errno = code;
}

bool PartFile::commit() {
  if (std::rename(part_.c_str(), path_.c_str()) != 0) return false;
  part_.clear();
  return true;
}

}  // namespace meshard

#include "meshard/base/whole_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

Error file_error(std::string_view what, const std::string& path) {
  int number = errno;
  ErrorCode code = number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUnavailable;
  return Error(code, cat("[file] cannot ", what, " ", path, ": ", std::strerror(number)));
}

class OpenFile {
 public:
  explicit OpenFile(int file) : file_(file) {}
  OpenFile(const OpenFile&) = delete;
  ~OpenFile() {
    if (file_ >= 0) ::close(file_);
  }
  int get() const { return file_; }

 private:
  int file_;
};

bool write_all_bytes(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Result<std::string> read_whole_file(const std::string& path) {
  // O_NONBLOCK: opening a FIFO without a writer would block.
  OpenFile file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return file_error("open", path);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return file_error("read", path);
  if (!S_ISREG(about.st_mode))
    return Error(ErrorCode::kInvalidArgument, cat("[file] ", path, " is not a regular file"));
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t at = 0;
  while (at < bytes.size()) {
    ssize_t count = ::read(file.get(), bytes.data() + at, bytes.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("read", path);
    if (count == 0) break;
    at += static_cast<std::size_t>(count);
  }
  bytes.resize(at);
  return bytes;
}

Result<void> write_whole_file(const std::string& path, std::string_view bytes) {
  PartFile part = PartFile::create(path, 0600);
  if (part.file() < 0 || !write_all_bytes(part.file(), bytes) || !part.commit())
    return file_error("write", path);
  return {};
}

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

Result<TemporaryFolder> TemporaryFolder::create() {
  const char* root = std::getenv("TMPDIR");
  std::string name = cat(root != nullptr && *root != '\0' ? root : "/tmp", "/meshard-XXXXXX");
  if (::mkdtemp(name.data()) == nullptr)
    return Error(ErrorCode::kUnavailable,
                 cat("[file] cannot make the folder ", name, ": ", std::strerror(errno)));
  return TemporaryFolder(std::filesystem::absolute(name).string());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace meshard

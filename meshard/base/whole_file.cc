#include "meshard/base/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "meshard/base/cat.h"
#include "meshard/base/part_file.h"

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

}  // namespace meshard

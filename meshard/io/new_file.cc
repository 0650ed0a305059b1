#include "meshard/io/new_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "meshard/base/cat.h"
#include "meshard/io/system_error.h"

namespace meshard::io {
namespace {

// The rename is on the disk when the folder is.
Result<void> flush_folder_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return system_error("open", folder);
  // Some file systems do not flush folders, and say so.
  bool flushed = ::fsync(file) == 0 || errno == EINVAL;
  int code = errno;
  ::close(file);
  errno = code;
  if (!flushed) return system_error("write", folder);
  return {};
}

// A file of a name that nobody has, beside `path`; -1 with errno if it cannot be made.
int make_part(const std::string& path, std::string& part) {
  static std::atomic<unsigned> next{0};
  while (true) {
    part = cat(path, ".part-", static_cast<std::int64_t>(::getpid()), "-", next++);
    int file = ::open(part.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
  }
}

}  // namespace

Result<NewFile> NewFile::create(const std::string& path, std::size_t bytes) {
  NewFile out(path, bytes);
  std::string part;
  out.file_ = make_part(path, part);
  if (out.file_ < 0) return system_error("write", path);
  out.part_ = std::move(part);
  // Reserved now: a full disk is an error here, and not a signal at the write that touches it.
  if (int code = ::posix_fallocate(out.file_, 0, static_cast<off_t>(bytes)); code != 0) {
    errno = code;
    return system_error("write", path);
  }
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, out.file_, 0);
  if (data == MAP_FAILED) return system_error("map", path);
  out.data_ = static_cast<std::byte*>(data);
  return out;
}

NewFile::~NewFile() {
  if (data_) ::munmap(data_, bytes_);
  if (file_ >= 0) ::close(file_);
  if (!part_.empty()) ::unlink(part_.c_str());
}

Result<void> NewFile::commit() {
  if (::msync(data_, bytes_, MS_SYNC) != 0 || ::fsync(file_) != 0)
    return system_error("write", path_);
  if (::rename(part_.c_str(), path_.c_str()) != 0) return system_error("write", path_);
  part_.clear();
  return flush_folder_of(path_);
}

}  // namespace meshard::io

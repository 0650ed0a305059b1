#include "meshard/io/new_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "meshard/base/cat.h"
#include "meshard/io/system_error.h"

namespace meshard::io {
namespace {

// Frequent signals could interrupt a large reservation forever, so after the first interruption it
// continues in small pieces.
int reserve(int file, std::size_t bytes) {
  constexpr std::size_t kPiece = 1 << 20;
  int code = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  if (code != EINTR) return code;
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    auto size = static_cast<off_t>(std::min(kPiece, bytes - at));
    do code = ::posix_fallocate(file, static_cast<off_t>(at), size);
    while (code == EINTR);
    if (code != 0) return code;
  }
  return 0;
}

}  // namespace

Result<void> flush_folder_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return system_error("open", folder);
  // Some file systems cannot flush folders and return EINVAL.
  bool flushed = ::fsync(file) == 0 || errno == EINVAL;
  int code = errno;
  ::close(file);
  errno = code;
  if (!flushed) return system_error("write", folder);
  return {};
}

Result<NewFile> NewFile::create(const std::string& path, std::size_t bytes) {
  NewFile out(path, bytes);
  int file = out.part_.file();
  if (file < 0) return system_error("write", path);
  // Reserve the space now, so that a full disk is an error here, not a signal on a later write.
  if (int code = reserve(file, bytes); code != 0) {
    errno = code;
    return system_error("write", path);
  }
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return system_error("map", path);
  out.data_ = static_cast<std::byte*>(data);
  return out;
}

NewFile::~NewFile() {
  if (data_) ::munmap(data_, bytes_);
}

Result<void> NewFile::commit() {
  if (::msync(data_, bytes_, MS_SYNC) != 0 || ::fsync(part_.file()) != 0)
    return system_error("write", path_);
  if (!part_.commit()) return system_error("write", path_);
  // The rename is durable only after the folder has been flushed.
  return flush_folder_of(path_);
}

}  // namespace meshard::io

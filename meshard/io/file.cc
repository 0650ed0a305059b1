#include "meshard/io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "meshard/base/cat.h"

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

Error system_error(std::string_view doing, const std::string& path) {
  int number = errno;
  ErrorCode code = number == ENOENT || number == ENOTDIR  ? ErrorCode::kNotFound
                   : number == EACCES || number == EPERM  ? ErrorCode::kPermissionDenied
                   : number == ENOSPC || number == EDQUOT ? ErrorCode::kResourceExhausted
                                                          : ErrorCode::kUnknown;
  return Error(code,
               cat("[io] cannot ", doing, " ", path, ": ", std::system_category().message(number)));
}

struct MappedFile::Mapping {
  std::string path;
  const std::byte* data = nullptr;
  std::size_t size = 0;

  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (data) ::munmap(const_cast<std::byte*>(data), size);
  }
};

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO without a writer would block.
  int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return system_error("open", path);
  struct stat about {};
  if (::fstat(file, &about) != 0) {
    Error error = system_error("read", path);
    ::close(file);
    return error;
  }
  if (!S_ISREG(about.st_mode)) {
    ::close(file);
    return Error(ErrorCode::kInvalidArgument, cat("[io] ", path, " is not a regular file"));
  }
  auto mapping = std::make_shared<Mapping>();
  mapping->path = path;
  mapping->size = static_cast<std::size_t>(about.st_size);
  void* data = mapping->size == 0 ? nullptr
                                  : ::mmap(nullptr, mapping->size, PROT_READ, MAP_PRIVATE, file, 0);
  int code = errno;
  ::close(file);  // the mapping keeps the file open
  errno = code;
  if (data == MAP_FAILED) return system_error("map", path);
  mapping->data = static_cast<const std::byte*>(data);
  return MappedFile(std::move(mapping));
}

const std::string& MappedFile::path() const { return mapping_->path; }
std::span<const std::byte> MappedFile::bytes() const { return {mapping_->data, mapping_->size}; }

Result<HostArray> MappedFile::array(const TensorType& type, std::size_t offset) const {
  std::size_t needed = static_cast<std::size_t>(type.bytes());
  if (offset > mapping_->size || needed > mapping_->size - offset)
    return Error(ErrorCode::kOutOfRange, cat("[io] ", type, " at byte ", offset, " is beyond the ",
                                             mapping_->size, " bytes of ", mapping_->path));
  if (needed == 0) return HostArray::zeros(type);
  const std::byte* data = mapping_->data + offset;
  if (type.dtype == DType::bool_) {
    HostArray copy = HostArray::uninitialized(type);
    std::byte* out = copy.mutable_bytes();
    for (std::size_t i = 0; i < needed; ++i) out[i] = std::byte{data[i] != std::byte{0}};
    return copy;
  }
  if (reinterpret_cast<std::uintptr_t>(data) % size_in_bytes(type.dtype) != 0)
    return HostArray::copy_of(type, data);
  return HostArray::borrow(type, data, [keep = mapping_]() mutable { keep.reset(); });
}

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

#include "meshard/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "meshard/base/cat.h"
#include "meshard/io/system_error.h"

namespace meshard::io {

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

}  // namespace meshard::io

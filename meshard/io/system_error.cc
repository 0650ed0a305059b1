// Tested in meshard/io/mapped_file_test.cc.
#include "meshard/io/system_error.h"

#include <cerrno>
#include <system_error>

#include "meshard/base/cat.h"

namespace meshard::io {

Error system_error(std::string_view doing, const std::string& path) {
  int number = errno;
  ErrorCode code = number == ENOENT || number == ENOTDIR  ? ErrorCode::kNotFound
                   : number == EACCES || number == EPERM  ? ErrorCode::kPermissionDenied
                   : number == ENOSPC || number == EDQUOT ? ErrorCode::kResourceExhausted
                                                          : ErrorCode::kUnknown;
  return Error(code,
               cat("[io] cannot ", doing, " ", path, ": ", std::system_category().message(number)));
}

}  // namespace meshard::io

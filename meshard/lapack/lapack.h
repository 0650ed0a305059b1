// The LAPACK of this machine, opened at run time.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard {

/// A shared library with LAPACK's and BLAS's routines under their Fortran names and with integers
/// of 32 bits: OpenBLAS, the reference implementation, or another one with the same interface.
class Lapack {
 public:
  /// Opens MESHARD_LAPACK_LIBRARY, otherwise the first of libopenblas.so.0, libflexiblas.so.3 and
  /// liblapack.so.3 that the dynamic linker finds. Later calls give the same result.
  /// @error not found, with the names that were tried, the message of the dynamic linker, and the
  /// package to install;
  /// permission denied if others can write the file of MESHARD_LAPACK_LIBRARY (check_file_trust())
  static Result<const Lapack*> open();

  /// The file.
  const std::string& path() const { return path_; }

  /// The address of a routine such as `dgetrf`. @error not found, with the library's path
  Result<void*> routine(std::string_view name) const;

 private:
  Lapack(void* library, std::string path) : library_(library), path_(std::move(path)) {}
  static Result<Lapack> open_first();
  static Result<Lapack> open_file(const std::string& name);

  void* library_;
  std::string path_;
};

}  // namespace meshard

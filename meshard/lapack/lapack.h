// The LAPACK of this machine, opened at run time.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard {

/// A shared library with LAPACK's and BLAS's routines under their Fortran names and with integers
/// of 32 bits: OpenBLAS, the reference implementation, or another one with the same interface. The
/// names may begin with `scipy_`, as in the OpenBLAS that packages of SciPy contain.
class Lapack {
 public:
  /// Opens MESHARD_LAPACK_LIBRARY, otherwise SciPy's OpenBLAS in a folder of search_in(), otherwise
  /// the first of libopenblas.so.0, libflexiblas.so.3 and liblapack.so.3 that the dynamic linker
  /// finds. Later calls give the same result.
  /// @error not found, with the names that were tried, the message of the dynamic linker, and the
  /// package to install;
  /// permission denied if others can write the file of MESHARD_LAPACK_LIBRARY (check_file_trust())
  static Result<const Lapack*> open();
  /// Adds a folder in which open() looks for `libscipy_openblas-*`, the library of a package of
  /// SciPy. The folder may be missing. Files that others can write are left out
  /// (check_file_trust()). No effect after the first open().
  static void search_in(std::string folder);

  /// The file.
  const std::string& path() const { return path_; }

  /// The address of a routine, by its name without prefix, such as `dgetrf`. @error not found, with
  /// the path of the library
  Result<void*> routine(std::string_view name) const;

 private:
  Lapack(void* library, std::string path) : library_(library), path_(std::move(path)) {}
  static Result<Lapack> open_first();
  static Result<Lapack> open_file(const std::string& name);

  void* library_;
  std::string path_;
  std::string_view prefix_ = "";  // of the names of all routines
};

}  // namespace meshard

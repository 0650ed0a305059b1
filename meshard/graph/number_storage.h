// The stored values of C++ numbers in lazily recorded programs.
#pragma once
#include "meshard/array/dtype.h"
#include "meshard/base/source_location.h"
#include "meshard/graph/storage.h"

namespace meshard {

/// The stored value, of rank 0, of a number in `dtype`. Equal numbers share one storage and its
/// copies on devices, so a number is copied to a device only once. May be called from several
/// threads.
/// @error as scalar_array()
StoragePtr number_storage(DType dtype, double number,
                          SourceLocation where = SourceLocation::current());

}  // namespace meshard

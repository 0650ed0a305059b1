// The stored values of C++ numbers that take part in lazily recorded programs.
#pragma once
#include "meshard/array/dtype.h"
#include "meshard/base/source_location.h"
#include "meshard/graph/storage.h"

namespace meshard {

/// The stored value, of rank 0, of a number in `dtype`. Equal numbers share one, and with it the
/// copies that programs made of it on devices: a number goes to a device once. May be called from
/// several threads.
/// @error as scalar_array()
StoragePtr number_storage(DType dtype, double number,
                          SourceLocation where = SourceLocation::current());

}  // namespace meshard

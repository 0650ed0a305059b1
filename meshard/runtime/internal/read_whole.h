// Reads values whole, wherever their parts are.
#pragma once
#include "meshard/array/host_array.h"
#include "meshard/graph/storage.h"
#include "meshard/runtime/internal/process_runtime.h"

namespace meshard {

/// The whole value in host memory. Parts of it that this process lacks come from others: by
/// messages, or by a program that replicates the value on its devices, as its fabric does it. Then
/// all processes of the value's mesh must call this function. Such a program also sums a value with
/// unreduced axes.
/// @error failed precondition if the value is gone, or if this process has no part of it; what
/// failed while it was computed or moved; the errors of Fabric::gather()
HostArray read_whole(Runtime& runtime, const Storage& storage, SourceLocation where);

}  // namespace meshard

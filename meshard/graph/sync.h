// sync: waits until values are computed and on their devices.
#pragma once
#include <concepts>
#include <initializer_list>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/graph/structure.h"
#include "meshard/graph/tensor.h"

namespace meshard {

namespace internal {
/// What sync() does with the tensors of its arguments.
void sync_tensors(std::vector<Tensor> tensors, SourceLocation where);

/// A structure of tensors; not the place of a call.
template <class T>
concept Synced = !std::convertible_to<T, SourceLocation>;
}  // namespace internal

/// Computes the tensors of `value` and waits until they are there: when it returns, every shard is
/// on its device, as after JAX's block_until_ready. `value` is a tensor or a structure of them,
/// such as what a jitted function gives. What is only recorded is computed in one program.
/// @error invalid argument for a tensor without a value; failed precondition for one that is
/// traced, or was donated or deleted; what the compiler or the plugin answers, and what went wrong
/// while the programs ran.
template <internal::Synced T>
void sync(const T& value, SourceLocation where = SourceLocation::current()) {
  internal::sync_tensors(structure::tensors(value), where);
}

/// The same for several values, together.
template <internal::Synced A, internal::Synced B>
void sync(const A& a, const B& b, SourceLocation where = SourceLocation::current()) {
  sync(std::tuple<const A&, const B&>(a, b), where);
}
template <internal::Synced A, internal::Synced B, internal::Synced C>
void sync(const A& a, const B& b, const C& c, SourceLocation where = SourceLocation::current()) {
  sync(std::tuple<const A&, const B&, const C&>(a, b, c), where);
}
template <internal::Synced A, internal::Synced B, internal::Synced C, internal::Synced D>
void sync(const A& a, const B& b, const C& c, const D& d,
          SourceLocation where = SourceLocation::current()) {
  sync(std::tuple<const A&, const B&, const C&, const D&>(a, b, c, d), where);
}
void sync(std::initializer_list<Tensor> tensors, SourceLocation where = SourceLocation::current());

/// Waits until every program that was launched so far is through, whoever launched it. Computes
/// nothing: recorded values that nobody has asked for stay recorded. Errors of the programs are for
/// those who use their results.
///
/// In a file that includes <unistd.h> write `meshard::sync()`: that header has a function of the
/// same name, and after `using namespace meshard` the compiler calls the plain `sync()` ambiguous.
void sync();

}  // namespace meshard

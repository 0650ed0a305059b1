// block_until_ready: waits until values are computed and on their devices.
#pragma once
#include <concepts>
#include <initializer_list>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/graph/structure.h"
#include "meshard/graph/tensor.h"

namespace meshard {

namespace internal {
/// Implements block_until_ready() for the tensors of its arguments.
void sync_tensors(std::vector<Tensor> tensors, SourceLocation where);

/// A structure of tensors, as opposed to a source location.
template <class T>
concept Synced = !std::convertible_to<T, SourceLocation>;
}  // namespace internal

/// Computes the tensors of `value` and waits for them. When it returns, every shard is on its
/// device, as after JAX's function of this name. `value` is a tensor or a structure of tensors,
/// such as the result of a jitted function. Recorded values are computed in one program.
/// @error invalid argument for a tensor without a value; failed precondition for one that is
/// traced, or was donated or deleted; errors of the compiler or the plugin, and of programs that
/// failed while they ran.
template <internal::Synced T>
void block_until_ready(const T& value, SourceLocation where = SourceLocation::current()) {
  internal::sync_tensors(structure::tensors(value), where);
}

/// The same for several values together.
template <internal::Synced A, internal::Synced B>
void block_until_ready(const A& a, const B& b, SourceLocation where = SourceLocation::current()) {
  block_until_ready(std::tuple<const A&, const B&>(a, b), where);
}
template <internal::Synced A, internal::Synced B, internal::Synced C>
void block_until_ready(const A& a, const B& b, const C& c,
                       SourceLocation where = SourceLocation::current()) {
  block_until_ready(std::tuple<const A&, const B&, const C&>(a, b, c), where);
}
template <internal::Synced A, internal::Synced B, internal::Synced C, internal::Synced D>
void block_until_ready(const A& a, const B& b, const C& c, const D& d,
                       SourceLocation where = SourceLocation::current()) {
  block_until_ready(std::tuple<const A&, const B&, const C&, const D&>(a, b, c, d), where);
}
void block_until_ready(std::initializer_list<Tensor> tensors,
                       SourceLocation where = SourceLocation::current());

/// Waits until every program launched so far has finished, in any thread. It computes nothing:
/// recorded values that were not requested stay recorded. Errors of the programs are reported where
/// their results are used.
void block_until_ready();

/// The former name of block_until_ready(), for one more release. In a file that includes
/// <unistd.h>, which <thread> and <future> do, a plain `sync()` is ambiguous: the system has a
/// function of this name.
template <internal::Synced T>
void sync(const T& value, SourceLocation where = SourceLocation::current()) {
  block_until_ready(value, where);
}
template <internal::Synced A, internal::Synced B>
void sync(const A& a, const B& b, SourceLocation where = SourceLocation::current()) {
  block_until_ready(a, b, where);
}
template <internal::Synced A, internal::Synced B, internal::Synced C>
void sync(const A& a, const B& b, const C& c, SourceLocation where = SourceLocation::current()) {
  block_until_ready(a, b, c, where);
}
template <internal::Synced A, internal::Synced B, internal::Synced C, internal::Synced D>
void sync(const A& a, const B& b, const C& c, const D& d,
          SourceLocation where = SourceLocation::current()) {
  block_until_ready(a, b, c, d, where);
}
inline void sync(std::initializer_list<Tensor> tensors,
                 SourceLocation where = SourceLocation::current()) {
  block_until_ready(tensors, where);
}
inline void sync() { block_until_ready(); }

}  // namespace meshard

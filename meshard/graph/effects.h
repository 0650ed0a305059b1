// Side effects of recorded functions, such as debug_print().
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard::internal {

/// While alive, collects the side effects of a function that this thread records. A program
/// consists of the nodes that its results need; attach() makes a result need the effects, so that
/// every transform of the function (batches, derivatives, bodies) keeps them.
///
/// jit, vmap, manual functions and bodies of control flow have a scope each.
class EffectScope {
 public:
  /// Records an op that returns its argument and has the effect.
  using Attach = std::function<Tensor(const Tensor& result)>;

  EffectScope();
  ~EffectScope();
  EffectScope(const EffectScope&) = delete;
  EffectScope& operator=(const EffectScope&) = delete;

  /// The innermost scope of the trace that this thread records; nullptr if it has none.
  static EffectScope* current();

  void add(Attach effect, SourceLocation where);
  /// The number of effects added so far.
  std::size_t size() const { return effects_.size(); }
  /// Replaces one of the function's results by one that needs the effects. Does nothing if there
  /// are none.
  /// @error invalid argument at the line of an effect if the function has no results
  void attach(std::vector<Tensor>& results);

 private:
  struct Effect {
    Attach attach;
    SourceLocation where;
  };
  Tensor attached(Tensor result) const;

  std::uint64_t trace_;
  EffectScope* outer_;
  std::vector<Effect> effects_;
};

}  // namespace meshard::internal

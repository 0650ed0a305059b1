// Advice: what the library noticed in a program that works, but surely not as its author meant.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "meshard/base/source_location.h"

namespace meshard {

/// A value: one piece of advice.
struct Advice {
  /// What it is about: `jit.traces`, `lazy.pending`.
  std::string topic;
  /// What was noticed, and what to do.
  std::string text;
  /// The user's line.
  SourceLocation where;

  /// `train.cc:42: [jit] ...`
  std::string to_string() const;
};

using AdviceHandler = std::function<void(const Advice&)>;

/// Calls `handler` with each new piece of advice, in place of the handler before; an empty one is
/// called by nobody. The default handler does nothing, or, with MESHARD_ADVICE=1 in the
/// environment, writes one line to the standard error stream. May be called from several threads,
/// and so may the handler be.
void set_advice_handler(AdviceHandler handler);

/// The advice that was given so far, oldest first; at most the first 1,000.
std::vector<Advice> all_advice();

namespace internal {
/// Gives advice, once for each topic and line.
void advise(Advice advice);
}  // namespace internal

}  // namespace meshard

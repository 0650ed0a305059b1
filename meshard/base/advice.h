// Advice: reports about programs that work but probably not as the author intended.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "meshard/base/source_location.h"

namespace meshard {

/// A value: one piece of advice.
struct Advice {
  /// The subject: `jit.traces`, `lazy.pending`.
  std::string topic;
  /// What was noticed, and how to fix it.
  std::string text;
  /// The line of user code that caused it.
  SourceLocation where;

  /// `train.cc:42: [jit] ...`
  std::string to_string() const;
};

using AdviceHandler = std::function<void(const Advice&)>;  ///< Receives advice.

/// Sets the function that is called with each new piece of advice. Replaces the previous handler;
/// an empty `handler` disables the calls. The default handler writes one line to stderr if
/// log_level() is at least kWarning or MESHARD_ADVICE=1 is set in the environment, and otherwise
/// does nothing. This function and the handler may be called from several threads.
void set_advice_handler(AdviceHandler handler);

/// All advice given so far, oldest first; at most the first 1,000 pieces.
std::vector<Advice> all_advice();

namespace internal {
/// Records a piece of advice and calls the handler, once per topic and source line.
void advise(Advice advice);
}  // namespace internal

}  // namespace meshard

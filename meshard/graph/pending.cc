#include "meshard/graph/pending.h"

#include "meshard/base/advice.h"
#include "meshard/base/cat.h"
#include "meshard/graph/evaluator.h"

namespace meshard {

void internal::advise_on_chain(const Value& value) {
  Evaluator* counting = installed_evaluator();
  if (!counting) return;
  std::size_t pending = counting->count_pending(value);
  value->set_pending_depth(static_cast<std::uint32_t>(pending));
  if (pending < kLongChain) return;
  advise({"lazy.pending",
          cat("[lazy] the value recorded here depends on ", pending,
              " recorded operations that have not run: they are kept, and become one large program "
              "when the value is read. Call sync() once per iteration on the values that a loop "
              "carries, or jit the body of the loop"),
          value->where()});
}

}  // namespace meshard

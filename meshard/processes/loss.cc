#include "meshard/processes/loss.h"

#include "meshard/base/cat.h"
#include "meshard/processes/internal/member_text.h"

namespace meshard {

std::string_view to_string(LossKind kind) { return enum_name(kind); }

std::string ProcessLoss::to_string() const {
  std::string text = internal::member_text(rank, host, pid);
  switch (kind) {
    case LossKind::kDied: text += " died"; break;
    case LossKind::kStopped: text += " does not run any more: it gives no sign of life"; break;
    case LossKind::kFailed: text += cat(" ended with status ", status); break;
    case LossKind::kOutOfStep: return text + cat(" launches other programs: ", difference);
    case LossKind::kGaveUp: return text + cat(" has given up: ", difference);
    case LossKind::kEnded:
      return text + cat(" has ended its main program normally, and others wait for it",
                        internal::activity_text(activity, in_activity), difference);
    case LossKind::kElsewhere: return text + cat(" does not come: it waits elsewhere", difference);
  }
  return text + internal::activity_text(activity, in_activity);
}

}  // namespace meshard

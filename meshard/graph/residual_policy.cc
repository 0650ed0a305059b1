#include "meshard/graph/residual_policy.h"

#include "meshard/graph/attribute_text.h"

namespace meshard {

std::string ResidualPolicy::to_string() const {
  switch (keep) {
    case Keep::kNeeded: return "needed";
    case Keep::kEverything: return "everything";
    case Keep::kNothing: return "nothing";
    case Keep::kDots: return "dots";
    case Keep::kNamed: break;
  }
  std::string out = "names:";
  for (std::size_t i = 0; i < names.size(); ++i) out += (i ? "," : "") + names[i];
  return out;
}

Result<ResidualPolicy> ResidualPolicy::parse(std::string_view text) {
  for (Keep keep : {Keep::kNeeded, Keep::kEverything, Keep::kNothing, Keep::kDots})
    if (ResidualPolicy policy{keep}; policy.to_string() == text) return policy;
  if (!text.starts_with("names:"))
    return Error(ErrorCode::kInvalidArgument, cat("[graph] unknown residual policy '", text, "'"));
  ResidualPolicy policy{Keep::kNamed};
  for (std::string_view name : attribute_text::split_outside_brackets(text.substr(6), ','))
    policy.names.emplace_back(name);
  return policy;
}

}  // namespace meshard

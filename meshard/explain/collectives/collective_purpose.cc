// Tested in meshard/explain/collectives/purposes_test.cc.
#include "meshard/explain/collectives/collective_purpose.h"

#include <algorithm>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

// Names in one line; a line is read, not searched.
constexpr std::size_t kMostNames = 3;

std::string listed_names(const std::vector<std::string>& names) {
  std::size_t shown = std::min(names.size(), kMostNames);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) append(text, cat(i > 0 ? ", " : "", names[i]));
  if (shown < names.size()) text += ", ...";
  return text;
}

std::string_view noun(PurposeKind kind, bool many) {
  switch (kind) {
    case PurposeKind::kWeight: return many ? "weights" : "weight";
    case PurposeKind::kArgument: return many ? "arguments" : "argument";
    case PurposeKind::kGradient: return many ? "the gradients of" : "the gradient of";
    case PurposeKind::kUpdate: return many ? "the updates of" : "the update of";
    case PurposeKind::kResult: return many ? "results" : "result";
    default: return "";
  }
}

}  // namespace

std::string_view to_string(PurposeKind kind) { return enum_name(kind); }

std::string_view to_string(PurposeCertainty certainty) { return enum_name(certainty); }

std::string purpose_text(PurposeKind kind, const std::vector<std::string>& names) {
  std::string_view what = noun(kind, names.size() > 1);
  if (names.empty() || what.empty()) return "";
  if (names.size() == 1)  // an argument without a name is called `argument 3`
    return names[0].starts_with(cat(what, " ")) ? cat(" of ", names[0])
                                                : cat(" of ", what, " ", names[0]);
  return cat(" of ", what, " (", listed_names(names), ")");
}

std::string layers_text(const std::vector<std::string>& layers) {
  if (layers.empty() || layers == std::vector<std::string>{"loop"}) return "";  // `x 12` says so
  if (layers.size() == 1) return cat(" in ", layers[0]);
  return cat(" in ", layers.size(), " layers (", listed_names(layers), ")");
}

}  // namespace meshard

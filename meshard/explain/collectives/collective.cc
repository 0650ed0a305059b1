#include "meshard/explain/collectives/collective.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"

namespace meshard {
namespace {

// Names in one line; a line is read, not searched.
constexpr std::size_t kMostNamesInLine = 3;

std::string listed_names(const std::vector<std::string>& names) {
  std::size_t shown = std::min(names.size(), kMostNamesInLine);
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

std::string axes_text(const Collective& one) {
  if (!one.axes) {
    if (one.group_size > 0)
      return cat(" in groups of ", one.group_size, " that do not match mesh axes");
    return "";
  }
  const AxisList& axes = *one.axes;
  if (axes.empty()) return " within each device";
  return cat(axes.size() == 1 ? " on axis " : " on axes ", join(axes, ", "));
}

std::string form_text(const Collective& one) {
  std::string text;
  if (one.form != CollectiveForm::kPlain) text = cat(", ", meshard::to_string(one.form));
  if (one.continues) text += ", continued from an earlier one";
  if (one.across_processes) text += ", across processes";
  return text;
}

// What it moves, or else the layers.
std::string subject(const Collective& one, const std::vector<std::string>& names,
                    const std::vector<std::string>& layers) {
  std::string text = purpose_text(one.purpose.kind, names);
  // The names of weights tell the layer.
  if (text.empty()) text = layers_text(layers);
  return text;
}

// The text after the name.
std::string details(const Collective& one, std::int64_t bytes,
                    const std::vector<std::string>& names, const std::vector<std::string>& layers) {
  std::string text = cat(subject(one, names, layers), axes_text(one));
  if (!one.shifts.empty()) append(text, cat(", moving ", join(one.shifts, " and ")));
  append(text, cat(", ", byte_text(bytes),
                   repetition_text(one.executions, one.executions_known, one.conditional),
                   form_text(one)));
  if (one.purpose.phase != ProgramPhase::kUnknown)
    append(text, cat(", ", to_string(one.purpose.phase)));
  append(text, cat(", from ", one.origin));
  if (std::string_view cause = to_string(one.cause); !cause.empty()) append(text, cat(", ", cause));
  return text;
}

std::string_view plural_ending(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive ? "" : "s";
}

bool alike(const Collective& a, const Collective& b) {
  return a.kind == b.kind && a.axes == b.axes && a.group_size == b.group_size &&
         a.shifts == b.shifts && a.executions == b.executions &&
         a.executions_known == b.executions_known && a.loop_depth == b.loop_depth &&
         a.conditional == b.conditional && a.form == b.form && a.continues == b.continues &&
         a.across_processes == b.across_processes && a.cause == b.cause &&
         a.purpose.kind == b.purpose.kind && a.purpose.phase == b.purpose.phase &&
         a.origin.certainty == b.origin.certainty &&
         std::equal(a.origin.places.begin(), a.origin.places.end(), b.origin.places.begin(),
                    b.origin.places.end(), [](const OriginPlace& x, const OriginPlace& y) {
                      return x.to_string() == y.to_string();  // same line, any op
                    });
}

}  // namespace

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

std::string_view to_string(CollectiveCause cause) {
  return cause == CollectiveCause::kUnknown ? "" : enum_name(cause);
}

std::string AxisShift::to_string() const {
  std::string names = axes.size() == 1 ? axes[0].to_string() : meshard::to_string(axes);
  return cat(names, " by ", by > 0 ? "+" : "", by, wraps ? "" : " without wrapping");
}

std::string CollectiveOrigin::to_string() const {
  if (certainty == OriginCertainty::kUnknown || places.empty()) return "an unknown place";
  std::vector<std::string> texts;
  for (const OriginPlace& place : places)
    add_once(texts, cat(place, place.via.empty() ? "" : ", via ", place.via));
  return cat(join(texts, ", "), " (", meshard::to_string(certainty), ")");
}

std::string repetition_text(std::int64_t executions, bool executions_known, bool conditional) {
  std::string text;
  if (executions != 1) append(text, cat(" x ", executions));
  if (!executions_known) text += " per iteration of a loop of unknown length";
  if (conditional) text += " if its branch is taken";
  return text;
}

std::string Collective::to_string() const {
  std::vector<std::string> layers;
  if (!purpose.layer.empty()) layers.push_back(purpose.layer);
  return cat(meshard::to_string(kind), details(*this, bytes(), purpose.names, layers));
}

std::string CollectiveGroup::to_string() const {
  return cat(count, " ", meshard::to_string(example.kind),
             count == 1 ? "" : plural_ending(example.kind), details(example, bytes, names, layers));
}

std::vector<CollectiveGroup> group_collectives(const std::vector<Collective>& collectives) {
  std::vector<CollectiveGroup> groups;
  for (const Collective& one : collectives) {
    auto found = std::find_if(groups.begin(), groups.end(), [&](const CollectiveGroup& group) {
      return alike(group.example, one);
    });
    if (found == groups.end()) {
      groups.push_back({.example = one});
      found = groups.end() - 1;
    }
    ++found->count;
    for (const std::string& name : one.purpose.names) add_once(found->names, name);
    if (!one.purpose.layer.empty()) add_once(found->layers, one.purpose.layer);
    found->bytes_in = saturating_add(found->bytes_in, one.bytes_in);
    found->bytes_out = saturating_add(found->bytes_out, one.bytes_out);
    found->bytes = saturating_add(found->bytes, one.bytes());
    found->total_bytes = saturating_add(found->total_bytes, one.total_bytes());
  }
  return groups;
}

}  // namespace meshard

#include "meshard/graph/structure_match.h"

#include <algorithm>
#include <map>

#include "meshard/base/error.h"

namespace meshard::structure {
namespace {

constexpr std::size_t kMostListed = 8;

std::string named(const std::string& path, const Tensor& tensor) {
  const std::string place = path.empty() ? "the value itself" : path;
  return tensor.defined() ? cat(place, " ", tensor.type()) : place;
}

std::string plural(std::string_view noun) {
  return noun.ends_with('y') ? cat(noun.substr(0, noun.size() - 1), "ies") : cat(noun, "s");
}

// `["b"] f32[2], ["c"] f32[] and 3 more`.
std::string listed(const std::vector<std::string>& all) {
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), kMostListed); ++i)
    text += cat(i ? ", " : "", all[i]);
  if (all.size() > kMostListed) text += cat(" and ", all.size() - kMostListed, " more");
  return text;
}

}  // namespace

std::vector<std::size_t> internal::matching_order(const std::vector<std::string>& reference,
                                                  std::span<const Tensor> reference_tensors,
                                                  const std::vector<std::string>& given,
                                                  std::span<const Tensor> given_tensors,
                                                  const MatchNames& names, SourceLocation where) {
  std::multimap<std::string_view, std::size_t> places;  // equal keys in the order of insertion
  for (std::size_t i = 0; i < given.size(); ++i) places.emplace(given[i], i);
  std::vector<std::size_t> order;
  std::vector<std::string> missing, unexpected;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const auto found = places.lower_bound(reference[i]);
    if (found == places.end() || found->first != reference[i]) {
      missing.push_back(named(reference[i], reference_tensors[i]));
      continue;
    }
    order.push_back(found->second);
    places.erase(found);
  }
  auto all_of = [&](std::string_view name) {
    return names.as_wholes ? std::string(name) : plural(name);
  };
  std::vector<std::size_t> left;
  for (const auto& [path, i] : places) left.push_back(i);
  std::ranges::sort(left);
  for (std::size_t i : left) unexpected.push_back(named(given[i], given_tensors[i]));
  if (missing.empty() && unexpected.empty()) return order;
  std::string text = names.as_wholes
                         ? cat("the ", names.reference, " has ", reference.size(),
                               " tensors, but the ", names.given, " has ", given.size())
                         : cat("there are ", reference.size(), " ", plural(names.reference),
                               " and ", given.size(), " ", plural(names.given));
  text += ", with different lengths or keys (they must have the same structure)";
  if (!missing.empty())
    text += cat("; missing from the ", all_of(names.given), ": ", listed(missing));
  if (!unexpected.empty())
    text += cat("; unexpected in the ", all_of(names.given), ": ", listed(unexpected));
  throw_invalid(where, "[", names.op, "] ", text);
}

bool internal::same_shapes(std::span<const Tensor> reference, std::span<const Tensor> given) {
  for (std::size_t i = 0; i < reference.size(); ++i)
    if (reference[i].defined() && given[i].defined() && reference[i].shape() != given[i].shape())
      return false;
  return true;
}

void internal::check_shapes(const std::vector<std::string>& paths,
                            std::span<const Tensor> reference, std::span<const Tensor> given,
                            const MatchNames& names, SourceLocation where) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < reference.size(); ++i)
    if (!same_shapes(reference.subspan(i, 1), given.subspan(i, 1)))
      all.push_back(cat(names.reference, " ", paths[i], paths[i].empty() ? "is " : " is ",
                        reference[i].type(), ", but its ", names.given, " is ", given[i].type()));
  if (!all.empty()) throw_invalid(where, "[", names.op, "] ", listed(all));
}

void internal::throw_constant_differs(const std::string& difference, const MatchNames& names,
                                      SourceLocation where) {
  throw_invalid(where, "[", names.op, "] ", difference, " in the ", names.reference, " and in the ",
                names.given,
                ": what is not a tensor must be the same in both, because it is not computed");
}

}  // namespace meshard::structure

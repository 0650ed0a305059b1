#include "tools/conformance/devicemesh/golden_error.h"

#include <string_view>

namespace meshard::conformance {
namespace {

/// Maps our messages to the golden files' error codes. The first match is used.
struct Wording {
  std::string_view operation;  // of mesh_ops.json; empty: any operation
  std::string_view begins;     // the message begins with this
  std::string_view contains;   // and then contains this
  const char* type;
  const char* code;
};

constexpr Wording kWordings[] = {
    {"slice", "[mesh] no axis", "", "KeyError", "slice_unknown_name"},
    {"slice", "[mesh]", "overlap", "RuntimeError", "slice_overlap"},
    {"flatten", "[mesh]", "is an axis of the root", "ValueError", "flatten_name_is_root_dim"},
    {"flatten", "[mesh]", "already names", "ValueError", "flatten_name_taken"},
    {"unflatten", "[mesh] no axis", "", "ValueError", "unflatten_dim_unknown_name"},
    {"unflatten", "[mesh] no parts", "", "IndexError", "index_out_of_range"},
    {"unflatten", "[mesh] parts of", "", "ValueError", "unflatten_size_mismatch"},
    {"unflatten", "[mesh]", "has size", "ValueError", "unflatten_size_mismatch"},
    {"unflatten", "[mesh]", "overlap", "AssertionError", "layout_overlap"},
    {"unflatten", "[mesh] axis", "", "AssertionError", "composition_not_divisible"},
    {"concat", "[mesh]", "different devices", "RuntimeError", "concat_different_rank_map"},
    {"concat", "[mesh]", "overlap", "RuntimeError", "concat_overlap"},
    {"init", "[mesh]", "used twice", "RuntimeError", "init_duplicate_names"},
    {"init", "[mesh]", "size -", "RuntimeError", "init_negative_size"},
    {"", "[mesh]", "size 0", "AssertionError", "complement_not_injective"},
    {"", "[mesh]", "listed twice", "ValueError", "duplicate_ranks_in_group"},
    {"", "[mesh]", "device id", "ValueError", "rank_out_of_world"},
    {"", "[layout] shape", "differ in nesting", "ValueError", "shape_stride_structure_mismatch"},
    {"", "[layout] coordinate", "", "AssertionError", "structure_mismatch"},
    {"", "[coordinate]", "of stride 0", "ZeroDivisionError", "division_by_zero"},
    {"", "[coordinate]", "without the shape", "AssertionError", "source_shape_needed"},
    {"", "[coordinate]", "not an index of", "AssertionError", "coordinate_out_of_range"},
    {"", "[coordinate]", "", "AssertionError", "structure_mismatch"},
    {"", "[slice]", "", "AssertionError", "structure_mismatch"},
    {"", "[", "the profile", "AssertionError", "profile_longer_than_layout"},
    {"", "[", "the tiler", "AssertionError", "tiler_longer_than_layout"},
    {"", "[composition]", "", "AssertionError", "stride_not_divisible"},
    {"", "[complement]", "", "AssertionError", "not_injective"},
    {"", "[shape_divide]", "neither divides", "AssertionError", "not_divisible"},
    {"", "[", "differ in nesting", "AssertionError", "structure_mismatch"},
};

}  // namespace

Json golden_error(const Error& error, std::string_view operation) {
  std::string_view message = error.message();
  for (const Wording& wording : kWordings)
    if ((wording.operation.empty() || wording.operation == operation) &&
        message.starts_with(wording.begins) &&
        message.find(wording.contains) != std::string_view::npos)
      return {{"type", wording.type}, {"code", wording.code}};
  return {{"type", "Error"}, {"code", "unclassified"}};
}

Json answer_or_error(const std::function<Json()>& work) {
  try {
    return {{"expect", work()}};
  } catch (const GoldenError& error) {
    return {{"expect_error", error.json()}};
  } catch (const Error& error) {
    return {{"expect_error", golden_error(error)}};
  }
}

Json answer_by_name(const Functions& functions, const Json& input) {
  auto found = functions.find(input.at("fn").get<std::string>());
  if (found == functions.end()) return {};
  return answer_or_error([&] { return found->second(input); });
}

}  // namespace meshard::conformance

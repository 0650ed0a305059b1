#include "meshard/stablehlo/attributes.h"

#include <initializer_list>
#include <string_view>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/types.h"

namespace meshard::stablehlo {
namespace {

/// Appends the lists that are not empty as `name = [0, 1]`; returns whether there were any.
bool append_lists(std::string& out,
                  std::initializer_list<std::pair<std::string_view, const Dimensions*>> lists) {
  bool any = false;
  for (const auto& [name, list] : lists) {
    if (list->empty()) continue;
    if (any) out.append(", ");
    any = true;
    out.append(name).append(" = [");
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i != 0) out.append(", ");
      append_number(out, (*list)[i]);
    }
    out.push_back(']');
  }
  return any;
}

void append_last(std::string& out, bool any, std::string_view name, std::int64_t number) {
  if (any) out.append(", ");
  append_number(out.append(name).append(" = "), number);
  out.push_back('>');
}

/// Appends `[b, f, 0, 1]`: for each dimension its letter, or its number among the spatial
/// dimensions.
void append_layout(std::string& out, char first_letter, std::int64_t first, char second_letter,
                   std::int64_t second, const Dimensions& spatial) {
  auto rank = static_cast<std::int64_t>(spatial.size()) + 2;
  out.push_back('[');
  for (std::int64_t d = 0; d < rank; ++d) {
    if (d != 0) out.append(", ");
    if (d == first) out.push_back(first_letter);
    if (d == second) out.push_back(second_letter);
    for (std::size_t i = 0; i < spatial.size(); ++i)
      if (spatial[i] == d) append_number(out, static_cast<std::int64_t>(i));
  }
  out.push_back(']');
}

}  // namespace

void append_attribute(std::string& out, const DotDimensions& numbers) {
  out.append("#stablehlo.dot<");
  append_lists(out, {{"lhs_batching_dimensions", &numbers.lhs_batch},
                     {"rhs_batching_dimensions", &numbers.rhs_batch},
                     {"lhs_contracting_dimensions", &numbers.lhs_contracting},
                     {"rhs_contracting_dimensions", &numbers.rhs_contracting}});
  out.push_back('>');
}

void append_attribute(std::string& out, const GatherDimensions& numbers) {
  out.append("#stablehlo.gather<");
  bool any =
      append_lists(out, {{"offset_dims", &numbers.offset_dims},
                         {"collapsed_slice_dims", &numbers.collapsed_slice_dims},
                         {"operand_batching_dims", &numbers.operand_batching_dims},
                         {"start_indices_batching_dims", &numbers.start_indices_batching_dims},
                         {"start_index_map", &numbers.start_index_map}});
  append_last(out, any, "index_vector_dim", numbers.index_vector_dim);
}

void append_attribute(std::string& out, const ScatterDimensions& numbers) {
  out.append("#stablehlo.scatter<");
  bool any =
      append_lists(out, {{"update_window_dims", &numbers.update_window_dims},
                         {"inserted_window_dims", &numbers.inserted_window_dims},
                         {"input_batching_dims", &numbers.input_batching_dims},
                         {"scatter_indices_batching_dims", &numbers.scatter_indices_batching_dims},
                         {"scatter_dims_to_operand_dims", &numbers.scatter_dims_to_operand_dims}});
  append_last(out, any, "index_vector_dim", numbers.index_vector_dim);
}

void append_attribute(std::string& out, const ConvolutionDimensionNumbers& numbers) {
  out.append("#stablehlo.conv<");
  append_layout(out, 'b', numbers.input_batch, 'f', numbers.input_feature, numbers.input_spatial);
  out.push_back('x');
  append_layout(out, 'o', numbers.kernel_output_feature, 'i', numbers.kernel_input_feature,
                numbers.kernel_spatial);
  out.append("->");
  append_layout(out, 'b', numbers.output_batch, 'f', numbers.output_feature,
                numbers.output_spatial);
  out.push_back('>');
}

}  // namespace meshard::stablehlo

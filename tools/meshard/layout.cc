// meshard layout: evaluates a layout expression.
#include "meshard/layout/layout.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "meshard/layout/picture.h"
#include "meshard/layout/values.h"
#include "tools/meshard/layout_expression.h"
#include "tools/meshard/subcommands.h"
#include "tools/meshard/terminal.h"
#include "tools/meshard/write_file.h"

namespace meshard::tool {
namespace {

constexpr std::int64_t kMostValues = 1 << 20;

struct LayoutOptions {
  std::string expression, svg;
  bool no_picture = false, values = false;
};

std::string all_values(const OffsetLayout& result) {
  if (result.layout.size() > kMostValues)
    throw_invalid({}, "[layout] ", result.layout.size(),
                  " values are too many to list; the limit is ", kMostValues);
  std::string out = "values     ";
  for (std::int64_t i = 0; i < result.layout.size(); ++i)
    append(out, cat(' ', result.offset + result.layout(i)));
  return out + '\n';
}

int run(const LayoutOptions& options) {
  ExpressionResult result = evaluate(options.expression);
  if (const std::int64_t* value = std::get_if<std::int64_t>(&result)) {
    print_text(cat(*value, '\n'));
    return 0;
  }
  const OffsetLayout& offset_layout = std::get<OffsetLayout>(result);
  const Layout& layout = offset_layout.layout;
  if (options.svg == "-") {  // instead of the text
    write_file(options.svg, picture_svg(layout));
    return 0;
  }
  print_text(cat("layout      ", layout, '\n'));
  if (offset_layout.offset != 0) print_text(cat("offset      ", offset_layout.offset, '\n'));
  print_text(cat("size        ", layout.size(), "\ncosize      ", layout.cosize(), "\ninjective   ",
                 is_injective(layout) ? "yes" : "no", "\northogonal  ",
                 is_orthogonal(layout) ? "yes" : "no", '\n'));
  if (options.values) print_text(all_values(offset_layout));
  if (!options.no_picture && layout.size() <= kMostCells) print_text(picture(layout));
  if (!options.svg.empty()) write_file(options.svg, picture_svg(layout));
  return 0;
}

}  // namespace

void add_layout(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<LayoutOptions>();
  CLI::App* command = app.add_subcommand("layout", "Evaluates an expression of layouts");
  command->footer(std::string(kLayoutExpressions));
  command->add_option("expression", options->expression, "such as \"(2,4):(4,1) o (2,2)\"")
      ->required();
  command->add_flag("--values", options->values, "list the values");
  command->add_flag("--no-picture", options->no_picture, "omit the picture");
  command->add_option("--svg", options->svg,
                      "write the picture to this file; - is standard output");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace meshard::tool

// Tested in meshard/stablehlo/flat_module_test.cc.
#include "meshard/stablehlo/internal/unsharded_text.h"

#include <algorithm>
#include <span>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/text_cursor.h"
#include "meshard/stablehlo/internal/text_edits.h"

namespace meshard::stablehlo {
namespace {

// Ops of Shardy whose result is their operand, as a value over all devices. all_reduce is one, too:
// its operand stands for the sum already.
constexpr std::string_view kPlacingOps[] = {"sdy.sharding_constraint",
                                            "sdy.reshard",
                                            "sdy.propagation_barrier",
                                            "sdy.all_gather",
                                            "sdy.all_slice",
                                            "sdy.all_to_all",
                                            "sdy.collective_permute",
                                            "sdy.all_reduce",
                                            "sdy.reduce_scatter",
                                            "sdy.sharded_to_unreduced",
                                            "sdy.replicated_to_unreduced"};
constexpr std::string_view kPlacingTargets[] = {"Sharding", "annotate_device_placement",
                                                "xla.sdy.FuncResultSharding"};

constexpr std::string_view kShardingItems[] = {"sdy.sharding", "mhlo.sharding",
                                               "mhlo.frontend_attributes"};
constexpr std::string_view kDonationItems[] = {"tf.aliasing_output", "jax.buffer_donor"};

bool contains(std::span<const std::string_view> list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

// Copies text without some of its parts.
class PlacementFilter {
 public:
  PlacementFilter(std::string_view text, bool keep_shardings)
      : text_(text), keep_shardings_(keep_shardings) {}

  std::string run() {
    while (at_ < text_.size()) {
      // Nothing between these marks is looked at.
      std::size_t next = std::min(text_.find_first_of("\"lsmtj", at_), text_.size());
      out_.append(text_.substr(at_, next - at_));
      at_ = next;
      if (at_ < text_.size()) step();
    }
    return std::move(out_);
  }

 private:
  void step() {
    if (text_[at_] == '"') {
      TextCursor cursor(text_);
      cursor.jump(at_);
      cursor.token();
      copy_to(cursor.raw_position());
    } else if (!keep_shardings_ && text_.substr(at_).starts_with("loc(") && is_after_blank()) {
      TextCursor cursor(text_);
      cursor.jump(at_ + 3);
      cursor.balanced();
      at_ = cursor.raw_position();
      trim();
    } else if (std::size_t end = end_of_item(); end != 0) {
      skip_item(end);
    } else {
      copy_to(at_ + 1);
      while (at_ < text_.size() && is_word(text_[at_])) copy_to(at_ + 1);
    }
  }

  static bool is_word(char c) { return c == '.' || (c != '-' && is_name_char(c)); }
  void copy_to(std::size_t end) {
    out_.append(text_.substr(at_, end - at_));
    at_ = end;
  }
  bool is_after_blank() const { return out_.empty() || out_.back() == ' ' || out_.back() == '\n'; }
  void trim() {
    while (!out_.empty() && (out_.back() == ' ' || out_.back() == '\n')) out_.pop_back();
  }

  // The end of the item of a dictionary that begins here and is to be removed; 0 if none does.
  std::size_t end_of_item() const {
    std::size_t last = out_.find_last_not_of(" \n");
    if (last == std::string::npos || (out_[last] != '{' && out_[last] != ',')) return 0;
    TextCursor cursor(text_);
    cursor.jump(at_);
    std::string_view name = cursor.word();
    if (!contains(kDonationItems, name) && (keep_shardings_ || !contains(kShardingItems, name)))
      return 0;
    if (cursor.accept("=")) cursor.value();
    return cursor.raw_position();
  }

  // Skips an item with one comma; a dictionary that has no other item is removed.
  void skip_item(std::size_t end) {
    TextCursor cursor(text_);
    cursor.jump(end);
    at_ = end;
    if (cursor.accept(",")) {
      at_ = cursor.position();
      return;
    }
    trim();
    if (out_.ends_with(',')) {
      out_.pop_back();
      return;
    }
    if (!out_.ends_with('{') || !can_leave_out() || !cursor.accept("}")) return;
    out_.pop_back();
    at_ = cursor.raw_position();
    trim();
  }

  // Whether the dictionary that begins last is not one of a list, or properties.
  bool can_leave_out() const {
    std::size_t before = out_.find_last_not_of(" \n", out_.size() - 2);
    return before != std::string::npos && out_[before] != '[' && out_[before] != ',' &&
           out_[before] != '<';
  }

  std::string_view text_;
  bool keep_shardings_;
  std::size_t at_ = 0;
  std::string out_;
};

// `%1 = stablehlo.reshape %0 : (T) -> T` for an op that only_places().
std::string as_reshape(const Module& module, const ModuleOp& op) {
  std::vector<std::string_view> names;
  for_each_reference(op.text, [&](std::size_t begin, std::size_t end) {
    names.push_back(op.text.substr(begin, end - begin));
  });
  if (names.size() < 2)
    throw Error(ErrorCode::kDataLoss, cat("[flat_module] ", op.mnemonic, " has no operand"));
  std::string_view type = module.variable(op.results[0]).type;
  return cat(names[0], " = stablehlo.reshape ", names[1], " : (", type, ") -> ", type);
}

void add_reshapes(const Module& module, const ModuleOp& op, std::size_t offset, TextEdits& edits) {
  if (only_places(op)) {
    TextRange range = module.range(op.text_before_location());
    edits.replace({range.begin - offset, range.end - offset}, as_reshape(module, op));
    return;
  }
  if (op.mnemonic == "sdy.sharding_group") {
    TextRange range = module.range(op.text);
    edits.replace({range.begin - offset, range.end - offset}, "");
    return;
  }
  for (const ModuleRegion& region : op.regions)
    for (const ModuleOp& inner : region.ops) add_reshapes(module, inner, offset, edits);
}

}  // namespace

bool only_places(const ModuleOp& op) {
  if (op.results.size() != 1 || op.operands.empty()) return false;
  if (op.mnemonic != "stablehlo.custom_call") return contains(kPlacingOps, op.mnemonic);
  return contains(kPlacingTargets,
                  op.symbol.empty() ? plain_text(find_attribute(op.attributes, "call_target_name"))
                                    : op.symbol);
}

std::string without_placement(std::string_view text, bool keep_shardings) {
  return PlacementFilter(text, keep_shardings).run();
}

std::string unsharded_text(const Module& module, const ModuleOp& op) {
  TextEdits edits(op.text);
  add_reshapes(module, op, module.range(op.text).begin, edits);
  return without_placement(edits.empty() ? std::string(op.text) : edits.apply());
}

}  // namespace meshard::stablehlo

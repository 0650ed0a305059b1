// Finds the results of a step that are its arguments in the next run.
#pragma once
#include <string_view>
#include <vector>

#include "meshard/plan/module_template.h"

namespace meshard {

/// The name without its first part: `['w'][0]` of `params['w'][0]`; empty if it has one part.
std::string_view name_tail(std::string_view name);

/// Sets `next_result` of the arguments. A result is the next value of an argument of its type
///
/// 1. if it reuses the argument's memory;
/// 2. if it has the argument's name after the first part: `[0]['w']` or `result[0]['w']` for
///    `params['w']`. Where several do (`params['w']`, `mean['w']`), the first result is that of the
///    first argument, and so on, if there are as many results as arguments;
/// 3. if the argument is donated to any result: the first one left of its type;
/// 4. if it is at the same position, and the text gives it no sharding.
///
/// Each result is the next value of one argument at most.
/// @param donors by argument: whether its memory may be reused for any result
void find_next_results(std::vector<TemplateValue>& arguments, const std::vector<bool>& donors,
                       const std::vector<TemplateValue>& results);

}  // namespace meshard

#include "meshard/partitioned/rewrite.h"

#include <unordered_set>

#include "meshard/partitioned/internal/rewriter.h"
#include "meshard/partitioned/module_identity.h"

namespace meshard {
namespace {

// Rewriting reserves memory for each partition.
constexpr int kMostPartitions = 1 << 20;

Result<void> check_options(const RewriteOptions& options) {
  auto invalid = [](const std::string& what) {
    return Error(ErrorCode::kInvalidArgument, "[partition] " + what);
  };
  if (options.partitions < 1 || options.partitions > kMostPartitions)
    return invalid(cat("the number of partitions must be 1 to ", kMostPartitions, ", got ",
                       options.partitions));
  if (options.ranks.empty()) return {};
  if (options.ranks.size() != static_cast<std::size_t>(options.partitions))
    return invalid(
        cat(options.partitions, " partitions need as many ranks, got ", options.ranks.size()));
  std::unordered_set<int> seen;
  for (int rank : options.ranks)
    if (rank < 0 || !seen.insert(rank).second)
      return invalid(cat("rank ", rank, " is ", rank < 0 ? "negative" : "given twice"));
  return {};
}

}  // namespace

Result<RewrittenModule> rewrite_collectives(std::string_view module,
                                            const RewriteOptions& options) {
  MESHARD_RETURN_IF_ERROR(check_options(options));
  MESHARD_ASSIGN_OR_RETURN(internal::EditedModule edited,
                           internal::EditedModule::from_bytes(module));
  internal::Placement placement{options.partitions, options.ranks, options.source_of};
  internal::Rewriter rewriter(edited, placement);
  MESHARD_RETURN_IF_ERROR(rewriter.run());
  RewrittenModule to{.hlo = edited.bytes(),
                     .communicates = rewriter.communicates(),
                     .calls = rewriter.calls(),
                     .uses_replicas = rewriter.uses_replicas(),
                     .fingerprint = {}};
  MESHARD_ASSIGN_OR_RETURN(to.fingerprint, module_fingerprint(to.hlo));
  return to;
}

}  // namespace meshard

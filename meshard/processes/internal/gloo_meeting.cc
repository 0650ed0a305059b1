#include "meshard/processes/internal/gloo_meeting.h"

#include "meshard/base/cat.h"
#include "meshard/base/packed_fields.h"
#include "meshard/processes/internal/handshake.h"

namespace meshard::internal {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr const char* kPlan = "gloo plan";

std::string offer_key(std::size_t rank) { return cat("gloo offer ", rank); }

/// An empty host is that of a Unix socket.
bool is_here(const std::string& host) { return host.empty() || is_loopback(host); }

}  // namespace

GlooPlan plan_of(const std::vector<GlooOffer>& offers, const std::vector<std::string>& members) {
  GlooPlan plan{.first_host = kLoopback};
  for (std::size_t rank = 0; rank < offers.size(); ++rank)
    if (!offers[rank].problem.empty()) {
      plan.problem = cat(members[rank], ": ", offers[rank].problem);
      return plan;
    }
  for (std::size_t rank = 1; rank < offers.size() && is_here(plan.first_host); ++rank)
    if (!is_here(offers[rank].other_host)) plan.first_host = offers[rank].other_host;
  return plan;
}

std::string listening_host(const GlooPlan& plan, const GlooOffer& own) {
  return is_here(own.own_host) ? plan.first_host : own.own_host;
}

Result<GlooMeeting> meet_by_gloo(GlooOptions options, const ConnectionEnds& ends, Store& store,
                                 const std::vector<std::string>& members) {
  GlooOffer own{.own_host = ends.own, .other_host = ends.other};
  if (Result<GlooLibrary> library = installed_gloo_library(); !library.ok())
    own.problem = library.error().message();
  if (options.rank == 0) own.own_host.clear();  // its connection to itself
  MESHARD_RETURN_IF_ERROR(
      store.put(offer_key(static_cast<std::size_t>(options.rank)), to_packed(own)));
  if (options.rank == 0) {
    std::vector<GlooOffer> offers;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      MESHARD_ASSIGN_OR_RETURN(std::string bytes, store.get(offer_key(rank), options.limit));
      MESHARD_ASSIGN_OR_RETURN(GlooOffer offer, from_packed<GlooOffer>(bytes, "processes"));
      offers.push_back(std::move(offer));
    }
    GlooPlan made = plan_of(offers, members);
    MESHARD_ASSIGN_OR_RETURN(made.secret, random_bytes(32));
    MESHARD_RETURN_IF_ERROR(store.put(kPlan, to_packed(made)));
  }
  MESHARD_ASSIGN_OR_RETURN(std::string bytes, store.get(kPlan, options.limit));
  MESHARD_ASSIGN_OR_RETURN(GlooPlan plan, from_packed<GlooPlan>(bytes, "processes"));
  GlooMeeting meeting{.communicator = nullptr, .why_not = plan.problem};
  if (!plan.problem.empty()) return meeting;
  options.host = listening_host(plan, own);
  options.secret = plan.secret;
  MESHARD_ASSIGN_OR_RETURN(meeting.communicator, GlooCommunicator::open(std::move(options), store));
  return meeting;
}

}  // namespace meshard::internal

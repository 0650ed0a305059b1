#include "meshard/partitioned/launch_history.h"

#include <algorithm>
#include <array>
#include <map>

#include "meshard/base/cat.h"
#include "meshard/base/packed_fields.h"

namespace meshard {
namespace {

// Of each set of processes, the newest launches are known one by one, and of all launches a hash
// whenever their number is a multiple of kHashed.
constexpr std::uint64_t kKnown = 64, kHashed = 1024;

// The launches of one set of processes, as other processes get them.
struct SentTrack {
  struct Launch {
    std::uint64_t id = 0;
    std::string text;
    MESHARD_FIELDS(id, text)
  };
  std::uint64_t count = 0, hashed = 0, hash_then = 0;
  std::vector<Launch> newest;
  MESHARD_FIELDS(count, hashed, hash_then, newest)

  std::uint64_t first() const { return count - newest.size(); }
};
using SentTracks = std::map<std::vector<int>, SentTrack>;  // by the ranks

}  // namespace

class LaunchHistory::Track {
 public:
  explicit Track(std::vector<int> of) : ranks(std::move(of)) {}

  struct Launch {
    std::shared_ptr<const Step> step;
    SourceLocation where;
  };

  std::string text_of(std::uint64_t number) const {
    const Launch& launch = newest[number % kKnown];
    return cat(launch.step->name, launch.where.known() ? cat(" at ", launch.where) : "");
  }

  std::vector<int> ranks;
  std::uint64_t count = 0;
  std::uint64_t hash = 0;
  std::uint64_t hashed = 0, hash_then = 0;  // the newest multiple of kHashed, and the hash then
  std::array<Launch, kKnown> newest;        // launch n at n % kKnown
};

LaunchHistory::Track* LaunchHistory::track(const std::vector<int>& ranks) {
  std::lock_guard lock(mutex_);
  for (const auto& track : tracks_)
    if (track->ranks == ranks) return track.get();
  return tracks_.emplace_back(std::make_shared<Track>(ranks)).get();
}

void LaunchHistory::add(Track& track, std::shared_ptr<const Step> step, SourceLocation where) {
  auto now = std::chrono::steady_clock::now();
  internal::note_program_thread();
  std::lock_guard lock(mutex_);
  track.hash = hash_combine(track.hash, static_cast<std::size_t>(step->id.low));
  track.newest[track.count % kKnown] = {std::move(step), where};
  if (++track.count % kHashed == 0) {
    track.hashed = track.count;
    track.hash_then = track.hash;
  }
  ++count_;
  newest_ = &track;
  newest_at_ = now;
}

void LaunchHistory::begin_collective(std::string_view kind, std::string_view where) {
  auto now = std::chrono::steady_clock::now();
  std::lock_guard lock(mutex_);
  ++collectives_;
  collective_at_ = now;
  collective_.assign(where.empty() ? kind : where);
}

void LaunchHistory::end_collective() {
  std::lock_guard lock(mutex_);
  --collectives_;
}

std::string LaunchHistory::activity(std::chrono::steady_clock::time_point& since) const {
  std::lock_guard lock(mutex_);
  if (!newest_) return {};
  since = collectives_ > 0 ? collective_at_ : newest_at_;
  return cat(collectives_ > 0 ? cat(collective_, "; ") : std::string(), "launch ", newest_->count,
             " is ", newest_->text_of(newest_->count - 1));
}

std::optional<std::chrono::steady_clock::time_point> LaunchHistory::in_collective_since() const {
  std::lock_guard lock(mutex_);
  return collectives_ > 0 ? std::optional(collective_at_) : std::nullopt;
}

std::vector<internal::SharedStep> LaunchHistory::steps(std::string_view prefix) const {
  std::lock_guard lock(mutex_);
  std::vector<internal::SharedStep> steps;
  for (const auto& track : tracks_)
    steps.push_back({cat(prefix, join(track->ranks, ",")), track->count, track->ranks});
  return steps;
}

std::uint64_t LaunchHistory::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

std::vector<std::vector<int>> LaunchHistory::sets() const {
  std::lock_guard lock(mutex_);
  std::vector<std::vector<int>> sets;
  for (const auto& track : tracks_) sets.push_back(track->ranks);
  return sets;
}

std::string LaunchHistory::to_bytes() const {
  std::lock_guard lock(mutex_);
  SentTracks all;
  for (const auto& each : tracks_) {
    const Track& track = *each;
    SentTrack& sent = all[track.ranks];
    sent.count = track.count;
    sent.hashed = track.hashed;
    sent.hash_then = track.hash_then;
    for (std::uint64_t n = track.count - std::min(track.count, kKnown); n < track.count; ++n)
      sent.newest.push_back({track.newest[n % kKnown].step->id.low, track.text_of(n)});
  }
  return to_packed(all);
}

namespace {

// Empty if the bytes are damaged.
SentTracks read_tracks(std::string_view bytes) {
  Result<SentTracks> tracks = from_packed<SentTracks>(bytes, "processes");
  if (!tracks.ok()) return {};
  std::erase_if(*tracks,
                [](const auto& each) { return each.second.newest.size() > each.second.count; });
  return *std::move(tracks);
}

std::optional<std::string> difference_of_tracks(const SentTrack& a, int rank_a, const SentTrack& b,
                                                int rank_b) {
  std::uint64_t end = std::min(a.count, b.count);
  for (std::uint64_t n = std::max(a.first(), b.first()); n < end; ++n) {
    const SentTrack::Launch &in_a = a.newest[n - a.first()], &in_b = b.newest[n - b.first()];
    if (in_a.id == in_b.id) continue;
    return cat("launch ", n + 1, " that both take part in is ", in_a.text, " in process ", rank_a,
               ", and ", in_b.text, " in process ", rank_b);
  }
  if (a.hashed != 0 && a.hashed == b.hashed && a.hash_then != b.hash_then)
    return cat("the first ", a.hashed, " launches that both take part in differ between processes ",
               rank_a, " and ", rank_b);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> difference_of_histories(std::string_view a, int rank_a,
                                                   std::string_view b, int rank_b) {
  SentTracks in_a = read_tracks(a), in_b = read_tracks(b);
  for (const auto& [ranks, track] : in_a)
    if (auto same = in_b.find(ranks); same != in_b.end())
      if (auto difference = difference_of_tracks(track, rank_a, same->second, rank_b))
        return difference;
  return std::nullopt;
}

Result<pjrt::Buffer> CollectiveOrder::make_link(const pjrt::Device& device) const {
  const std::int32_t zero = 0;
  pjrt::HostArrayView view{&zero, pjrt::ElementType::kS32, {}};
  MESHARD_ASSIGN_OR_RETURN(
      pjrt::SentBuffer sent,
      client_.buffer_from_host(view, pjrt::HostSemantics::kImmutableOnlyDuringCall, device));
  return std::move(sent.buffer);
}

// The chain of these devices. Usually the launch before was on the same ones.
Result<pjrt::BufferList> CollectiveOrder::take_chain(const pjrt::DeviceList& devices) {
  auto same =
      std::ranges::find_if(chains_, [&](const auto& c) { return &c.devices() == &devices; });
  if (same != chains_.end()) {
    pjrt::BufferList chain = std::move(*same);
    chains_.erase(same);
    return chain;
  }
  std::vector<pjrt::Buffer> links(devices.size());
  auto place_of = [&](const pjrt::Device& device) {
    return std::ranges::find(devices.devices(), &device) - devices.devices().begin();
  };
  std::vector<pjrt::BufferList> others;
  for (pjrt::BufferList& chain : chains_) {
    bool meets = std::ranges::any_of(chain.devices().devices(), [&](const pjrt::Device* each) {
      return place_of(*each) < std::ssize(links);
    });
    if (!meets) {
      others.push_back(std::move(chain));
      continue;
    }
    for (pjrt::Buffer& link : std::move(chain).split())
      if (auto place = place_of(link.device()); place < std::ssize(links))
        links[static_cast<std::size_t>(place)] = std::move(link);
      else
        others.push_back(pjrt::BufferList::of({&link, 1}));
  }
  chains_ = std::move(others);
  for (std::size_t i = 0; i < links.size(); ++i)
    if (!links[i]) {
      MESHARD_ASSIGN_OR_RETURN(links[i], make_link(devices[i]));
    }
  return pjrt::BufferList::of(links);
}

Result<pjrt::Launch> CollectiveOrder::execute(const pjrt::LoadedExecutable& program,
                                              std::span<const pjrt::BufferList* const> arguments,
                                              std::span<pjrt::BufferList> outputs,
                                              const pjrt::LaunchOptions& options,
                                              const OrderedStep& step) {
  std::lock_guard lock(mutex_);
  if (failure_) return failure_->with_note("in an earlier launch");
  Result<pjrt::BufferList> chain = take_chain(program.device_list());
  if (!chain.ok()) {
    failure_ = chain.error();
    return *failure_;
  }
  arguments_.assign(arguments.begin(), arguments.end());
  arguments_.push_back(&*chain);
  outputs_.resize(outputs.size() + 1);
  std::move(outputs.begin(), outputs.end(), outputs_.begin());
  record(step, options.where);
  Result<pjrt::Launch> launch = program.execute(arguments_, outputs_, options);
  if (launch.ok())
    chains_.push_back(std::move(outputs_.back()));
  else
    failure_ = launch.error();
  std::move(outputs_.begin(), outputs_.end() - 1, outputs.begin());
  outputs_.clear();
  arguments_.clear();
  return launch;
}

// Before the launch, which may wait for others.
void CollectiveOrder::record(const OrderedStep& step, SourceLocation where) {
  if (step.step) history_->add(*step.track, step.step, where);
}

Result<void> CollectiveOrder::communicate(const std::function<Result<void>()>& function,
                                          const OrderedStep& step, SourceLocation where) {
  std::lock_guard lock(mutex_);
  if (failure_) return failure_->with_note("in an earlier launch");
  record(step, where);
  Result<void> done;
  for (const pjrt::BufferList& chain : chains_)
    for (std::size_t i = 0; i < chain.size(); ++i)
      if (Result<void> ended = chain[i].await_ready(); !ended.ok()) done = std::move(ended);
  if (done.ok()) done = function();
  if (!done.ok()) failure_ = done.error();
  return done;
}

void CollectiveOrder::fail(const Error& error) {
  std::lock_guard lock(mutex_);
  if (!failure_) failure_ = error;
}

void CollectiveOrder::restart() {
  std::lock_guard lock(mutex_);
  chains_.clear();
  failure_.reset();
}

}  // namespace meshard

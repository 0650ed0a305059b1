// Tested in meshard/io/publish_test.cc.
#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/packed_fields.h"
#include "meshard/io/internal/joint_step.h"
#include "meshard/io/internal/published.h"
#include "meshard/io/internal/save_items.h"
#include "meshard/io/publish.h"
#include "meshard/processes/processes.h"
#include "meshard/processes/requests.h"

namespace meshard::io {
namespace internal {

// The elements of a part, in host memory; those of several layers follow each other.
struct HeldElements {
  HostArray array;
  std::int64_t layer = 0;
  Box box;
};

// What this process sends of a version.
struct HeldVersion {
  std::int64_t number = 0;
  std::map<std::pair<std::string, std::string>, HeldElements> parts;  // by tensor and box
  std::string catalog;                                                // in process 0
};

}  // namespace internal

namespace {

using internal::Catalog;
using internal::HeldElements;
using internal::HeldVersion;
using internal::PartRequest;
using internal::PublishedTensor;
using meshard::internal::RequestServer;
using meshard::internal::ServedMessage;

// What a process says about its part in publish().
struct Report {
  std::int64_t version = 0;
  std::vector<std::string> tensors = {};  // all of them, described
  std::vector<PublishedTensor> parts = {};
  MESHARD_FIELDS(version, tensors, parts)
};

// The tensors of a process's file, as parts that it has in memory instead.
Report take_parts(std::span<const internal::NamedTensors> tensors, int rank, HeldVersion& held,
                  SourceLocation where) {
  internal::SaveItems items = internal::items_of_process(tensors, rank, {}, where);
  items.take(where);
  Report report{held.number, std::move(items.tensors), {}};
  std::map<std::string, std::pair<std::string, Box>> by_piece;  // tensor and box
  std::map<std::string, PublishedTensor> all;
  auto add = [&](const std::string& piece, const std::string& name, const TensorType& type,
                 const Box& box) {
    PublishedTensor& tensor = all[name];
    tensor.name = name;
    tensor.dtype = meshard::to_string(type.dtype);
    tensor.shape.assign(type.shape.begin(), type.shape.end());
    tensor.parts.push_back({internal::packed_box(box), rank});
    by_piece[piece] = {name, box};
  };
  for (const auto& [name, split] : items.index.split)
    for (const auto& [text, part] : split.parts)
      add(internal::piece_name(name, text), name, split.type, part.box);
  for (internal::SaveItem& item : items.items) {
    const HostArray array = item.sources[0].part.read(where);
    for (std::size_t i = 0; i < item.names.size(); ++i) {
      if (items.index.whole.contains(item.names[i]))
        add(item.names[i], item.names[i], item.each, whole_box(item.each.shape));
      const auto& [name, box] = by_piece.at(item.names[i]);
      held.parts[{name, meshard::to_string(box)}] = {array, static_cast<std::int64_t>(i), box};
    }
  }
  for (auto& [name, tensor] : all) report.parts.push_back(std::move(tensor));
  return report;
}

// Why two processes do not publish the same; empty if they do.
std::string difference(const Report& first, const Report& other) {
  if (first.version != other.version)
    return cat("version ", other.version, ", and process 0 version ", first.version);
  for (std::size_t i = 0; i < std::max(first.tensors.size(), other.tensors.size()); ++i) {
    auto text = [&](const Report& report) {
      return i < report.tensors.size() ? report.tensors[i] : "nothing more";
    };
    if (text(first) != text(other))
      return cat(text(other), ", where process 0 publishes ", text(first));
  }
  return {};
}

// What all processes have, together.
Result<Catalog> catalog_of(const std::vector<std::string>& said,
                           std::vector<std::vector<std::string>> addresses) {
  Catalog catalog{.addresses = std::move(addresses)};
  std::optional<Report> first;
  std::map<std::string, PublishedTensor> all;
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    MESHARD_ASSIGN_OR_RETURN(Report report, from_packed<Report>(said[rank], "report of publish()"));
    if (!first) first = report;
    if (std::string other = difference(*first, report); !other.empty())
      return Error(ErrorCode::kFailedPrecondition,
                   cat("[io] ", processes().members()[rank].to_string(), " publishes ", other));
    for (PublishedTensor& tensor : report.parts) {
      auto [at, is_new] = all.try_emplace(tensor.name, tensor);
      if (!is_new)
        at->second.parts.insert(at->second.parts.end(), tensor.parts.begin(), tensor.parts.end());
    }
  }
  catalog.version = first->version;
  for (auto& [name, tensor] : all) {
    MESHARD_RETURN_IF_ERROR(tensor.check());
    catalog.tensors.push_back(std::move(tensor));
  }
  return catalog;
}

}  // namespace

class Publisher::State {
 public:
  static Result<std::shared_ptr<State>> open(const std::string& address,
                                             const PublishOptions& options, SourceLocation where) {
    const Processes run = processes();
    auto state = std::make_shared<State>();
    static int count = 0;  // all processes make the same publishers
    state->number_ = count++;
    Result<void> listens = state->listen(address, internal::secret_of(options.secret), run.rank());
    using Addresses = std::vector<std::string>;
    Result<std::string> own = listens.ok()
                                  ? Result<std::string>(to_packed(state->server_->addresses()))
                                  : Result<std::string>(listens.error());
    MESHARD_ASSIGN_OR_RETURN(
        std::string all,
        internal::decide_jointly(
            state->step("opened"), cat("start of a publisher at ", address), state->keys(), own,
            [](const Addresses& said) { return Result<std::string>(to_packed(said)); }, where));
    MESHARD_ASSIGN_OR_RETURN(Addresses packed, from_packed<Addresses>(all, "publishers"));
    for (const std::string& each : packed) {
      MESHARD_ASSIGN_OR_RETURN(Addresses of_process, from_packed<Addresses>(each, "publishers"));
      state->addresses_.push_back(std::move(of_process));
    }
    state->address_ = state->addresses_[0][0];
    return state;
  }

  const std::string& address() const { return address_; }

  int num_receivers() const {
    std::lock_guard lock(mutex_);
    return static_cast<int>(received_.size());
  }

  Result<std::int64_t> publish(const Result<std::vector<internal::NamedTensors>>& tensors,
                               std::optional<std::int64_t> wanted, SourceLocation where) {
    std::lock_guard one_at_a_time(publishing_);
    auto held = std::make_shared<HeldVersion>();
    held->number = wanted.value_or(last_ + 1);
    Result<std::string> own = tensors.ok() ? caught([&] {
      return to_packed(take_parts(*tensors, processes().rank(), *held, where));
    })
                                           : Result<std::string>(tensors.error());
    add(held);  // receivers learn of it when all processes have it
    Result<std::string> decided = internal::decide_jointly(
        step(cat("version ", held->number, ", publish() number ", ++publishes_)),
        cat("publish() at ", address_), keys(), own,
        [&](const std::vector<std::string>& said) { return show(*held, said); }, where);
    Result<std::vector<std::int64_t>> kept =
        decided.ok() ? from_packed<std::vector<std::int64_t>>(*decided, "versions")
                     : Result<std::vector<std::int64_t>>(decided.error());
    if (!kept.ok()) {
      forget(held);
      return kept.error().at(where);
    }
    last_ = held->number;
    forget_others(*kept);
    server_->wake();
    return held->number;
  }

 private:
  friend class Publisher;

  std::string step(std::string_view what) const { return cat("publisher ", number_, ": ", what); }
  std::string keys() const { return cat("meshard/publish/", number_, "/"); }

  Result<void> listen(const std::string& address, const std::string& secret, int rank) {
    std::string own = address;
    if (rank > 0) {
      MESHARD_RETURN_IF_ERROR(meshard::internal::check_request_address(address, secret));
      own = meshard::internal::address_beside(address, rank);
    }
    MESHARD_ASSIGN_OR_RETURN(
        server_, RequestServer::start(
                     own, secret,
                     {.answer = [this](auto connection,
                                       const auto& request) { return answer(connection, request); },
                      .closed =
                          [this](RequestServer::Connection connection) {
                            std::lock_guard lock(mutex_);
                            received_.erase(connection);
                          }}));
    return {};
  }

  void add(const std::shared_ptr<HeldVersion>& held) {
    std::lock_guard lock(mutex_);
    // A version that exists already stays until process 0 has refused the new one.
    versions_.try_emplace(held->number, held);
  }

  void forget(const std::shared_ptr<HeldVersion>& held) {
    std::lock_guard lock(mutex_);
    auto found = versions_.find(held->number);
    if (found != versions_.end() && found->second == held) versions_.erase(found);
  }

  void forget_others(const std::vector<std::int64_t>& kept) {
    std::lock_guard lock(mutex_);
    std::erase_if(versions_, [&](const auto& each) {
      return std::ranges::find(kept, each.first) == kept.end();
    });
  }

  // Process 0: makes the version the newest. @return the versions that are kept, packed
  Result<std::string> show(HeldVersion& held, const std::vector<std::string>& said) {
    MESHARD_ASSIGN_OR_RETURN(Catalog catalog, catalog_of(said, addresses_));
    if (held.number <= last_)
      return Error(ErrorCode::kInvalidArgument,
                   last_ < 0
                       ? cat("[io] version ", held.number, " must be at least 0")
                       : cat("[io] version ", held.number,
                             " must be greater than the last published version, which is ", last_));
    held.catalog = to_packed(catalog);
    std::lock_guard lock(mutex_);
    newest_ = versions_.at(held.number);
    std::vector<std::int64_t> kept{held.number};
    for (const auto& [connection, version] : received_) kept.push_back(version);
    return to_packed(kept);
  }

  // On the server's thread.
  RequestServer::Answer answer(RequestServer::Connection connection, const ServedMessage& request) {
    Result<RequestServer::Answer> found =
        request.name == internal::kNewest ? newest(connection, request.number)
        : request.name == internal::kPart
            ? part(request.value)
            : Error(ErrorCode::kInvalidArgument, cat("[io] unknown request ", request.name));
    if (found.ok()) return *std::move(found);
    return [error = found.error()](ServedMessage&) { return Result<bool>(error); };
  }

  Result<RequestServer::Answer> newest(RequestServer::Connection connection, std::int64_t than) {
    std::lock_guard lock(mutex_);
    if (!newest_ || newest_->number <= than) return RequestServer::Answer();
    received_[connection] = newest_->number;
    return RequestServer::Answer(
        [version = newest_, sent = false](ServedMessage& message) mutable -> Result<bool> {
          message.value = version->catalog;
          return !std::exchange(sent, true);
        });
  }

  Result<RequestServer::Answer> part(const std::string& bytes) {
    MESHARD_ASSIGN_OR_RETURN(PartRequest request, from_packed<PartRequest>(bytes, "request"));
    const Box part = internal::unpacked_box(request.part),
              box = internal::unpacked_box(request.box);
    std::shared_ptr<const HeldVersion> version;
    {
      std::lock_guard lock(mutex_);
      if (auto found = versions_.find(request.version); found != versions_.end())
        version = found->second;
    }
    if (!version)
      return Error(ErrorCode::kFailedPrecondition,
                   cat("[io] version ", request.version, " is not published any more"));
    auto found = version->parts.find({request.name, meshard::to_string(part)});
    if (found == version->parts.end())
      return Error(ErrorCode::kNotFound, cat("[io] no part ", meshard::to_string(part), " of \"",
                                             request.name, "\" in version ", request.version));
    const HeldElements& held = found->second;
    const Shape shape = box_shape(held.box);
    MESHARD_RETURN_IF_ERROR(caught([&] { check_box(relative_to(held.box, box), shape, "io"); }));
    const std::size_t element = size_in_bytes(held.array.dtype());
    return RequestServer::Answer(
        [version, &held, shape, element,
         boxes = internal::message_boxes(relative_to(held.box, box), element),
         next = std::size_t{0}](ServedMessage& message) mutable -> Result<bool> {
          if (next == boxes.size()) return false;
          const Box& piece = boxes[next++];
          message.value.resize(static_cast<std::size_t>(box_shape(piece).size()) * element);
          const std::byte* elements =
              held.array.bytes() + static_cast<std::size_t>(held.layer * shape.size()) * element;
          plan_gather(elements, shape, piece, element, message.value.data()).run();
          return true;
        });
  }

  int number_ = 0;
  std::string address_;
  std::vector<std::vector<std::string>> addresses_;  // by process
  std::mutex publishing_;                            // of the next two
  std::int64_t last_ = -1;
  int publishes_ = 0;

  mutable std::mutex mutex_;  // of the members below
  std::map<std::int64_t, std::shared_ptr<HeldVersion>> versions_;
  std::shared_ptr<const HeldVersion> newest_;                   // in process 0
  std::map<RequestServer::Connection, std::int64_t> received_;  // versions, in process 0
  std::unique_ptr<RequestServer> server_;  // its thread uses all of this: the first to go
};

Result<Publisher> Publisher::open(const std::string& address, const PublishOptions& options,
                                  SourceLocation where) {
  Result<std::shared_ptr<State>> state = State::open(address, options, where);
  if (!state.ok()) return state.error().at(where);
  return Publisher(*std::move(state));
}

const std::string& Publisher::address() const { return state_->address(); }
int Publisher::num_receivers() const { return state_->num_receivers(); }

Result<std::int64_t> Publisher::publish_tensors(Result<std::vector<internal::NamedTensors>> tensors,
                                                std::optional<std::int64_t> version,
                                                SourceLocation where) {
  return state_->publish(tensors, version, where);
}

}  // namespace meshard::io

// Tested in meshard/io/publish_test.cc.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "meshard/array/slice.h"
#include "meshard/base/cat.h"
#include "meshard/base/packed_fields.h"
#include "meshard/io/internal/joint_step.h"
#include "meshard/io/internal/published.h"
#include "meshard/io/publish.h"
#include "meshard/processes/processes.h"
#include "meshard/processes/requests.h"

namespace meshard::io::internal {
namespace {

using meshard::internal::RequestClient;
using meshard::internal::ServedMessage;

// How long a process of a publisher may take to accept a connection, once process 0 has answered.
constexpr std::chrono::seconds kConnectLimit{1};

// The processes that send a version. Shared by its tensors.
class Senders {
 public:
  Senders(std::int64_t version, std::vector<std::vector<std::string>> addresses, std::string secret)
      : version_(version), addresses_(std::move(addresses)), secret_(std::move(secret)) {}

  /// Copies the elements in a box of a tensor to a dense block: asks all processes that have parts
  /// of it, then takes what they send.
  Result<void> read(const PublishedTensor& tensor, DType dtype, const Box& box,
                    std::byte* destination) {
    Result<void> done = read_parts(tensor, size_in_bytes(dtype), box, destination);
    if (done.ok()) return done;
    clients_.clear();  // more may be on its way
    return done.error().with_note(
        cat("while receiving \"", tensor.name, "\" of version ", version_));
  }

 private:
  struct Asked {
    RequestClient* client;
    Box held, box;  // of the tensor
  };

  Result<void> read_parts(const PublishedTensor& tensor, std::size_t element, const Box& box,
                          std::byte* destination) {
    std::vector<Asked> all;
    for (const PublishedPart& part : tensor.parts) {
      const Box held = unpacked_box(part.box);
      const std::optional<Box> both = overlap(held, box);
      if (!both || box_shape(*both).size() == 0) continue;
      MESHARD_ASSIGN_OR_RETURN(RequestClient * client, client_of(part.process));
      client->ask(
          {.name = std::string(kPart),
           .value = to_packed(PartRequest{version_, tensor.name, part.box, packed_box(*both)})});
      all.push_back({client, held, *both});
    }
    const Shape shape = box_shape(box);
    for (const Asked& asked : all)
      for (const Box& piece : message_boxes(relative_to(asked.held, asked.box), element)) {
        MESHARD_ASSIGN_OR_RETURN(ServedMessage message, asked.client->next());
        const Shape piece_shape = box_shape(piece);
        const auto bytes = static_cast<std::size_t>(piece_shape.size()) * element;
        if (message.value.size() != bytes)
          return Error(ErrorCode::kDataLoss, cat("[io] a message of the publisher has ",
                                                 message.value.size(), " bytes, not ", bytes));
        Box place = piece;  // in the box
        for (std::size_t d = 0; d < place.size(); ++d) {
          const std::int64_t shift = asked.held[d].start - box[d].start;
          place[d] = {piece[d].start + shift, piece[d].stop + shift};
        }
        plan_scatter(message.value.data(), destination, shape, place, element).run();
      }
    return {};
  }

  Result<RequestClient*> client_of(int process) {
    if (auto found = clients_.find(process); found != clients_.end()) return &found->second;
    if (process < 0 || process >= std::ssize(addresses_))
      return Error(ErrorCode::kInvalidArgument, cat("[io] the publisher has no process ", process));
    Result<RequestClient> client =
        RequestClient::open(addresses_[static_cast<std::size_t>(process)], secret_, kConnectLimit);
    if (!client.ok())
      return client.error().with_note(
          cat("while connecting to process ", process, " of the publisher"));
    return &clients_.emplace(process, *std::move(client)).first->second;
  }

  const std::int64_t version_;
  const std::vector<std::vector<std::string>> addresses_;
  const std::string secret_;
  std::map<int, RequestClient> clients_;  // by process
};

std::string version_text(const std::optional<std::int64_t>& newer_than) {
  return newer_than ? cat("no version newer than ", *newer_than) : std::string("no version");
}

// Asks process 0 of the publisher for a version, which it keeps while the connection is there.
Result<std::pair<RequestClient, std::string>> newest_at(const std::string& address,
                                                        const ReceiveOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Result<RequestClient> client =
      RequestClient::open({address}, secret_of(options.secret), options.limit);
  if (!client.ok())
    return client.error().with_note(cat("while connecting to the publisher at ", address));
  const auto left = options.limit - std::chrono::duration_cast<std::chrono::milliseconds>(
                                        std::chrono::steady_clock::now() - begin);
  client->ask({.number = options.newer_than.value_or(-1), .name = std::string(kNewest)});
  Result<ServedMessage> answer = client->next(std::max(left, std::chrono::milliseconds(1)));
  if (answer.ok()) return std::pair(*std::move(client), std::move(answer->value));
  if (answer.error().code() == ErrorCode::kDeadlineExceeded)
    return Error(ErrorCode::kDeadlineExceeded,
                 cat("[io] ", version_text(options.newer_than), " was published at ", address,
                     " within ", options.limit.count(), " ms"));
  return answer.error().with_note(cat("while waiting for a version of the publisher at ", address));
}

}  // namespace

class Receiving::State {
 public:
  std::string step(std::string_view what) const { return cat("receive() ", number, ": ", what); }

  int number = 0;
  std::string address;
  SourceLocation where;
  std::optional<RequestClient> lease;  // in process 0
  std::int64_t version = 0;
  Weights weights;
};

constexpr const char* kReceiveKeys = "meshard/receive/";

Result<Receiving> Receiving::open(const std::string& address, const ReceiveOptions& options,
                                  SourceLocation where) {
  static int count = 0;  // all processes do the same
  auto state = std::make_unique<State>();
  state->number = count++;
  state->address = address;
  state->where = where;
  Result<void> valid =
      options.limit < std::chrono::milliseconds(0)
          ? Result<void>(Error(ErrorCode::kInvalidArgument,
                               cat("[io] the limit ", options.limit.count(), " ms is negative")))
          : meshard::internal::check_request_address(address, secret_of(options.secret));
  Result<std::string> own =
      valid.ok() ? Result<std::string>(std::string()) : Result<std::string>(valid.error());
  Result<std::string> decided = decide_jointly(
      state->step("version"), cat("receive() from ", address), kReceiveKeys, own,
      [&](const std::vector<std::string>&) -> Result<std::string> {
        auto found = newest_at(address, options);
        if (!found.ok()) return found.error();
        state->lease.emplace(std::move(found->first));
        return std::move(found->second);
      },
      where);
  if (!decided.ok()) return decided.error().at(where);
  MESHARD_ASSIGN_OR_RETURN(Catalog catalog, from_packed<Catalog>(*decided, "published version"));
  state->version = catalog.version;
  state->weights.path_ = cat("version ", catalog.version, " at ", address);
  state->weights.what_ = "the publisher";
  auto senders = std::make_shared<Senders>(catalog.version, std::move(catalog.addresses),
                                           secret_of(options.secret));
  for (PublishedTensor& tensor : catalog.tensors) {
    MESHARD_RETURN_IF_ERROR(tensor.check());
    MESHARD_ASSIGN_OR_RETURN(TensorType type, tensor.type());
    std::string name = tensor.name;
    auto read = [senders, tensor = std::make_shared<const PublishedTensor>(std::move(tensor)),
                 dtype = type.dtype](const Box& box, std::byte* destination) {
      return senders->read(*tensor, dtype, box, destination);
    };
    state->weights.tensors_.emplace(std::move(name), StoredTensor(type, std::move(read)));
  }
  return Receiving(std::move(state));
}

Receiving::Receiving(std::unique_ptr<State> state) : state_(std::move(state)) {}
Receiving::Receiving(Receiving&&) noexcept = default;
Receiving& Receiving::operator=(Receiving&&) noexcept = default;
Receiving::~Receiving() = default;
std::int64_t Receiving::version() const { return state_->version; }
const Weights& Receiving::weights() const { return state_->weights; }

Result<void> Receiving::finish(const Result<void>& own) {
  const Result<std::string> said =
      own.ok() ? Result<std::string>(std::string()) : Result<std::string>(own.error());
  Result<std::string> all = decide_jointly(
      state_->step("received"), cat("receive() from ", state_->address), kReceiveKeys, said,
      [](const std::vector<std::string>&) { return Result<std::string>(std::string()); },
      state_->where);
  state_->weights = {};
  state_->lease.reset();
  if (!own.ok()) return own;  // with its notes
  if (!all.ok()) return all.error().at(state_->where);
  return {};
}

}  // namespace meshard::io::internal

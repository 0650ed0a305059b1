// Places batches on their devices before the step that uses them.
#pragma once
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "meshard/mesh/global_mesh.h"
#include "meshard/ops/composite/mark_structure.h"

namespace meshard {

// A queue that another thread fills in advance.

/// Immovable owner of a thread that makes up to `depth` items before they are used. Only one thread
/// at a time may call take().
class BackgroundQueue {
 public:
  using Item = std::shared_ptr<void>;
  /// Calls `make` on its own thread until it returns null or throws, or the queue is destroyed.
  /// @pre depth >= 1
  BackgroundQueue(std::function<Item()> make, std::size_t depth);
  /// Waits for the current call of `make`, and drops items that were not taken.
  ~BackgroundQueue();
  BackgroundQueue(const BackgroundQueue&) = delete;
  BackgroundQueue& operator=(const BackgroundQueue&) = delete;

  /// Returns the next item, waiting if necessary. Null after the last item.
  /// @error the error of `make`: rethrown once, after the items that were made earlier.
  Item take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Options of DeviceLoader.
struct LoaderOptions {
  /// Maximum number of batches that are placed in advance (default 2). Each takes device memory.
  std::size_t prefetch = 2;
};

/// Owner of a thread that gets batches from `source` and places them in advance. It shards each
/// batch as the specs say, while the previous step runs. torch_xla's MpDeviceLoader (and
/// ParallelLoader).
///
/// A batch is a tensor or a structure of tensors. `source` is a function that returns the next
/// batch, or none after the last. The loader's thread calls it, one call at a time, with the global
/// mesh of the thread that created the loader. The specs have the form that mark_sharding takes for
/// structures: one for all tensors, or by name.
///
/// If `source` or the placement throws, next() rethrows after the batches before it, and the loader
/// ends. The destructor stops early: it waits for the current call of `source`.
///
/// @code
/// using Batch = std::map<std::string, Tensor>;
/// Mesh mesh({{"data", 4}});
/// int step = 0;
/// DeviceLoader<Batch> batches(
///     [&]() -> std::optional<Batch> {
///       if (++step > 3) return std::nullopt;
///       return Batch{{"x", full({8, 2}, step)}, {"y", full({8}, 10 * step)}};
///     },
///     mesh, {{"x", P("data", none)}, {"y", P("data")}});
/// for (Batch& batch : batches) std::cout << sum(batch["x"]).item<float>() << "\n";
/// @endcode
/// prints `16`, `32` and `48`.
template <class Batch>
class DeviceLoader {
 public:
  /// @error invalid argument for a prefetch of 0.
  template <class Source, class Specs = NamedSpecs>
  requires std::convertible_to<std::invoke_result_t<Source&>, std::optional<Batch>> DeviceLoader(
      Source source, Mesh mesh, Specs specs, const LoaderOptions& options = {},
      SourceLocation where = SourceLocation::current())
      : queue_(
            [source = std::move(source), mesh = std::move(mesh), specs = std::move(specs),
             global = global_mesh(), where]() mutable {
              std::optional<MeshScope> scope;
              if (global) scope.emplace(*global);
              return placed(source(), [&](Batch batch) {
                return mark(std::move(batch), mesh, specs, where);
              });
            },
            checked_depth(options, where)) {}
  /// Constructor for specs that include their mesh: ShardingSpec, or a structure of these. A
  /// PartitionSpec uses the global mesh.
  template <class Source, class Specs = std::map<std::string, ShardingSpec>>
  requires std::convertible_to<std::invoke_result_t<Source&>, std::optional<Batch>> &&
      (!std::same_as<Specs, Mesh>)DeviceLoader(Source source, Specs specs,
                                               const LoaderOptions& options = {},
                                               SourceLocation where = SourceLocation::current())
      : queue_(
            [source = std::move(source), specs = std::move(specs), global = global_mesh(),
             where]() mutable {
              std::optional<MeshScope> scope;
              if (global) scope.emplace(*global);
              return placed(source(), [&](Batch batch) { return mark(batch, specs, where); });
            },
            checked_depth(options, where)) {}

  /// The next batch, placed on its devices; none after the last.
  /// @error what the source or mark_sharding threw.
  std::optional<Batch> next() {
    BackgroundQueue::Item item = queue_.take();
    if (!item) return std::nullopt;
    return std::move(*static_cast<Batch*>(item.get()));
  }

  /// Single-pass input iterator over the results of next().
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    Iterator() = default;
    explicit Iterator(DeviceLoader* loader) : loader_(loader), batch_(loader->next()) {}
    Batch& operator*() const { return *batch_; }
    Iterator& operator++() { return batch_ = loader_->next(), *this; }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& a, std::default_sentinel_t) { return !a.batch_; }

   private:
    DeviceLoader* loader_ = nullptr;
    mutable std::optional<Batch> batch_;
  };
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  static std::size_t checked_depth(const LoaderOptions& options, SourceLocation where) {
    if (options.prefetch == 0)
      throw_invalid(where, "[device_loader] prefetch must be at least 1, got 0");
    return options.prefetch;
  }
  template <class Place>
  static BackgroundQueue::Item placed(std::optional<Batch> batch, const Place& place) {
    if (!batch) return nullptr;
    return std::make_shared<Batch>(place(*std::move(batch)));
  }
  template <class Specs>
  static Batch mark(Batch batch, const Mesh& mesh, const Specs& specs, SourceLocation where) {
    if constexpr (std::same_as<Batch, Tensor>)
      return mark_sharding(In(batch, where), mesh, specs);
    else
      return mark_sharding(std::move(batch), mesh, specs, where);
  }
  template <class Specs>
  static Batch mark(Batch batch, const Specs& specs, SourceLocation where) {
    if constexpr (std::same_as<Batch, Tensor>)
      return mark_sharding(In(batch, where), specs);
    else
      return mark_sharding(std::move(batch), specs, where);
  }

  BackgroundQueue queue_;
};

}  // namespace meshard

#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace llm {

/// Which pages of a Runner's cache are in use. A full page can be kept under its tokens and those
/// before it, and several sequences that begin with these tokens share it. Pages that nobody uses
/// stay until others need the space; those that were used last stay longest.
class PageCache {
 public:
  PageCache(std::int64_t pages, std::int64_t page_tokens);

  /// The root of the tree of kept pages.
  static constexpr std::int64_t kRoot = 0;

  struct Prefix {
    std::vector<std::int32_t> pages;
    std::int64_t node = kRoot;  ///< of the last page
  };
  /// The kept pages that hold the first tokens of a sequence, at most its first `limit` tokens. The
  /// caller uses them until it releases each.
  [[nodiscard]] Prefix use_prefix(std::span<const std::int32_t> tokens, std::int64_t limit);

  /// A page that the caller alone uses; nothing if all are in use.
  [[nodiscard]] std::optional<std::int32_t> allocate();
  void release(std::int32_t page);

  /// Keeps a full page under its tokens, which follow those of `parent`. If another page has them
  /// already, that one stays kept.
  /// @pre the caller uses the page, and it will not be written again
  /// @return the node of these tokens
  std::int64_t keep(std::int32_t page, std::int64_t parent, std::span<const std::int32_t> tokens);

  [[nodiscard]] std::int64_t available() const;  ///< pages that allocate() can return
  [[nodiscard]] std::int64_t used() const { return used_; }
  [[nodiscard]] std::int64_t kept() const { return static_cast<std::int64_t>(nodes_.size()); }

 private:
  struct Page {
    std::int64_t users = 0;
    std::string key;                          ///< empty if it is not kept
    std::list<std::int32_t>::iterator place;  ///< in idle_, if it is kept and has no user
  };
  struct Node {
    std::int64_t id = 0;
    std::int32_t page = 0;
  };
  [[nodiscard]] static std::string key(std::int64_t parent, std::span<const std::int32_t> tokens);
  [[nodiscard]] Page& at(std::int32_t page) { return pages_[static_cast<std::size_t>(page)]; }

  std::int64_t page_tokens_;
  std::vector<Page> pages_;
  std::vector<std::int32_t> free_;
  std::list<std::int32_t>
      idle_;  ///< kept pages without a user; the one to go first is at the front
  std::unordered_map<std::string, Node> nodes_;
  std::int64_t next_node_ =
      kRoot + 1;  ///< ids are never used again, so no key refers to a page that is gone
  std::int64_t used_ = 0;
};

}  // namespace llm

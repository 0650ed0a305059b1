"""Tests what field_comments.py reads from headers, which are written here."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import field_comments  # noqa: E402

HEADER = """// Boxes.
#pragma once

namespace meshard {

/// Value type: a box, as
/// `BoxKind::kRed` has it.
struct Box {
  /// What a corner is.
  struct Corner {
    std::int64_t x = 0;
    /// Up.
    double y = 0;
    MESHARD_FIELDS(x, y)
  };
  /// The name. @error none
  std::string name;
  std::vector<Corner> corners;
  /// From where, and to where.
  std::string from = {}, to = {};
  /// By key.
  std::map<std::string, std::pair<int, int>> sizes = {};
  /// Not a member's.

  int other = 0;
  int area = 0;  ///< width times height

  MESHARD_FIELDS(name, corners, from, to,
                 sizes, other, total())
  /// name + other
  std::int64_t total() const { return other; }
  /// The rest,
  /// in words.
  std::optional<std::int64_t> rest() const {
    return other;
  }
};

}  // namespace meshard
"""


class FieldComments(unittest.TestCase):
    def test_members_have_the_comment_before_them(self):
        self.assertEqual(field_comments.read(HEADER), {
            "Box": "A box, as `BoxKind.kRed` has it.",
            "Corner": "What a corner is.",
            "Corner.y": "Up.",
            "Box.name": "The name.",
            "Box.from": "From where, and to where.",
            "Box.to": "From where, and to where.",
            "Box.sizes": "By key.",
            "Box.area": "Width times height.",
            "Box.total": "Name + other.",
            "Box.rest": "The rest, in words.",
        })


if __name__ == "__main__":
    unittest.main()

// A table of rows that are chosen by name: the rows of the library, and those that a program adds.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"

namespace fedsmooth {

/// `Row` has a member `name`. Rows live as long as the table and are never moved, so references to
/// them stay valid. Threads may read the table at the same time, but not during add().
template <typename Row>
class Registry {
 public:
  /// `key` is the experiment's key that names a row; messages show it.
  Registry(std::string key, std::vector<Row> rows) : key_(std::move(key)) {
    for (Row& row : rows) add(std::move(row));
  }

  /// Adds a row. Must be called before other threads read the table. A name that is taken is a Bug.
  void add(Row row) {
    for (const Row& one : rows_) check(one.name != row.name, "{}: {} is taken", key_, row.name);
    rows_.push_back(std::move(row));
  }

  /// Returns the row of this name. Throws an Error that lists the names if there is none.
  const Row& find(const std::string& name) const {
    for (const Row& row : rows_) {
      if (row.name == name) return row;
    }
    throw Error("{}={:?}: must be {}", key_, name, fmt::join(names(), ", "));
  }

  /// Returns the names in the order in which the rows were added.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Row& row : rows_) all.push_back(row.name);
    return all;
  }

 private:
  std::string key_;
  std::deque<Row> rows_;
};

}  // namespace fedsmooth

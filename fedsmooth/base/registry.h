// A table of rows that are chosen by name: the library's own, and those that a program adds to it.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"

namespace fedsmooth {

/// `Row` has a member `name`. Rows live as long as the table and are never moved.
template <typename Row>
class Registry {
 public:
  /// `key` is what users choose a row by; messages name it.
  Registry(std::string key, std::vector<Row> rows) : key_(std::move(key)) {
    for (Row& row : rows) add(std::move(row));
  }

  /// Before any thread reads the table. A name that is taken is a Bug.
  void add(Row row) {
    for (const Row& one : rows_) check(one.name != row.name, "{}: {} is taken", key_, row.name);
    rows_.push_back(std::move(row));
  }

  /// An Error if there is none of this name.
  const Row& find(const std::string& name) const {
    for (const Row& row : rows_) {
      if (row.name == name) return row;
    }
    throw Error("{}={:?}: must be {}", key_, name, fmt::join(names(), ", "));
  }

  /// In the order in which they were added.
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

#include "fedsmooth/config/sweep.h"

#include <algorithm>
#include <cctype>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/config/experiment_toml.h"

namespace fedsmooth {
namespace {

constexpr size_t kMaxExperiments = 10'000;

SweepAxis read_axis(const std::string& key, const toml::node& node, const Experiment& base) {
  SweepAxis axis{key};
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty()) throw Error("{}: must be a list of values", key);
  for (const toml::node& value : *list) {
    Experiment experiment = base;
    set_from_toml(experiment, key, value);
    const std::string shown = show_key(experiment, key);
    if (std::find(axis.values.begin(), axis.values.end(), shown) != axis.values.end()) {
      throw Error("{}: {} is there twice", key, shown);
    }
    axis.values.push_back(shown);
  }
  return axis;
}

struct PlacedAxis {
  toml::source_position position;
  SweepAxis axis;
};

// "a.b" = [...] and a.b = [...] mean the same.
void read_axes(const toml::table& table, const std::string& prefix, const std::string& file,
               const Experiment& base, std::vector<PlacedAxis>& axes) {
  for (const auto& [key, node] : table) {
    const std::string path = prefix + std::string(key.str());
    if (node.is_table()) {
      read_axes(*node.as_table(), path + ".", file, base, axes);
      continue;
    }
    const toml::source_position position = key.source().begin;
    try {
      axes.push_back({position, read_axis(path, node, base)});
    } catch (const Error& error) {
      throw Error("{}:{}: sweep: {}", file, position.line, error.what());
    }
  }
}

// Restores the order of the file: toml++ sorts keys by name.
SweepGrid in_order(std::vector<PlacedAxis> axes) {
  std::sort(axes.begin(), axes.end(), [](const PlacedAxis& a, const PlacedAxis& b) {
    return std::pair(a.position.line, a.position.column) <
           std::pair(b.position.line, b.position.column);
  });
  SweepGrid ordered;
  for (PlacedAxis& axis : axes) ordered.push_back(std::move(axis.axis));
  return ordered;
}

SweepGrid read_grid(const toml::node& node, const std::string& file, const Experiment& base) {
  const toml::table* lists = node.as_table();
  if (lists == nullptr || lists->empty()) {
    throw Error("{}:{}: sweep: must be a table of lists", file, node.source().begin.line);
  }
  std::vector<PlacedAxis> axes;
  read_axes(*lists, "", file, base, axes);
  return in_order(std::move(axes));
}

std::vector<SweepGrid> read_grids(const toml::node& node, const std::string& file,
                                  const Experiment& base) {
  if (!node.is_array() || node.as_array()->empty()) return {read_grid(node, file, base)};
  std::vector<SweepGrid> grids;
  for (const toml::node& one : *node.as_array()) grids.push_back(read_grid(one, file, base));
  return grids;
}

void check_size(const std::vector<SweepGrid>& grids, const std::string& file) {
  size_t total = 0;
  for (const SweepGrid& grid : grids) {
    size_t count = 1;
    for (const SweepAxis& axis : grid)
      count = std::min(count * axis.values.size(), kMaxExperiments + 1);
    total += count;
  }
  if (total > kMaxExperiments) {
    throw Error("{}: sweep: more than {} experiments", file, kMaxExperiments);
  }
}

// Names a value in the names of experiments, hence of folders: a string stands for itself, a number
// follows its key, and a flag is its key, after "no-" if it is false.
std::string name_part(const std::string& key, const std::string& value) {
  const std::string last = key.substr(key.rfind('.') + 1);
  std::string part = last + value;
  if (value.front() == '"') part = value.substr(1, value.size() - 2);
  if (value == "true") part = last;
  if (value == "false") part = "no-" + last;
  for (char& c : part) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!plain && std::string_view(".+-").find(c) == std::string_view::npos) c = '_';
  }
  return part;
}

std::vector<NamedExperiment> expand(const Sweep& sweep, const SweepGrid& grid) {
  std::vector<NamedExperiment> all = {{sweep.name, sweep.base}};
  for (const SweepAxis& axis : grid) {
    std::vector<NamedExperiment> longer;
    for (const NamedExperiment& one : all) {
      for (const std::string& value : axis.values) {
        NamedExperiment next{one.name + "-" + name_part(axis.key, value), one.experiment};
        set_key(next.experiment, axis.key, value);
        longer.push_back(std::move(next));
      }
    }
    all = std::move(longer);
  }
  return all;
}

}  // namespace

Sweep parse_sweep(std::string_view text, const std::string& file, const std::string& name) {
  const toml::table all = parse_toml(text, file);
  toml::table table = all;
  table.erase("sweep");
  Sweep sweep{name, experiment_from_toml(table, file)};
  if (const toml::node* node = all.get("sweep")) {
    sweep.grids = read_grids(*node, file, sweep.base);
    check_size(sweep.grids, file);
  }
  return sweep;
}

Sweep read_sweep(const std::filesystem::path& path) {
  return parse_sweep(read_file(path), path.string(), path.stem().string());
}

void set_key(Sweep& sweep, const std::string& key, const std::string& value) {
  set_key(sweep.base, key, value);
  for (SweepGrid& grid : sweep.grids) {
    for (SweepAxis& axis : grid) {
      if (axis.key == key) axis.values = {show_key(sweep.base, key)};
    }
  }
}

std::vector<NamedExperiment> expand(const Sweep& sweep) {
  if (sweep.grids.empty()) return {{sweep.name, sweep.base}};
  std::vector<NamedExperiment> all;
  for (const SweepGrid& grid : sweep.grids) {
    for (NamedExperiment& one : expand(sweep, grid)) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace fedsmooth

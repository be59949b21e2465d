#include "fedsmooth/jobs/against.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/config/superclasses.h"
#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/records/field_reader.h"
#include "fedsmooth/records/table_file.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

// Finds classes by name or number.
struct Names {
  const std::vector<std::string>& classes;
  int64_t count;
  std::vector<Superclass> superclasses;

  std::optional<int64_t> find_class(const std::string& name) const {
    const auto found = std::find(classes.begin(), classes.end(), name);
    if (found != classes.end()) {
      if (std::find(found + 1, classes.end(), name) == classes.end())
        return found - classes.begin();
      throw Error("{:?} is the name of two classes; give their numbers", name.substr(0, 40));
    }
    const auto number = parse_number<int64_t>(name);
    return number && *number >= 0 && *number < count ? number : std::nullopt;
  }

  int64_t class_of(const std::string& name, const std::string& where) const {
    const auto found = find_class(name);
    if (found) return *found;
    throw Error("{}: {:?} is no class of the table; classes are {}{}", where, name.substr(0, 40),
                count == 0 ? "unknown" : fmt::format("0 to {}", count - 1),
                classes.empty() ? "" : " or their names");
  }

  // Returns the classes that an item of --against names, as a class or a superclass; none if it is
  // no name.
  std::vector<int64_t> find(const std::string& item) const {
    if (const auto found = find_class(item)) return {*found};
    std::vector<int64_t> members;
    for (const Superclass& super : superclasses) {
      if (super.name != item) continue;
      for (const std::string& name : super.classes) members.push_back(class_of(name, item));
    }
    return members;
  }
};

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> items;
  while (true) {
    const size_t comma = text.find(',');
    items.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

std::vector<int64_t> find_classes(const AgainstOptions& o, const Names& names) {
  std::vector<int64_t> classes = o.numbers;
  for (const int64_t c : classes) {
    if (c < 0 || c >= names.count) throw Error("--against: class {} of {}", c, names.count);
  }
  const auto add = [&](const std::string& item) {
    const std::vector<int64_t> found = names.find(item);
    classes.insert(classes.end(), found.begin(), found.end());
    return !found.empty();
  };
  for (const std::string& item : o.against) {
    if (add(item)) continue;  // tried as a whole first: a class's name may have commas
    for (const std::string& part : split_commas(item)) {
      if (!add(part)) names.class_of(part, "--against");
    }
  }
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  if (std::ssize(classes) == names.count) {
    throw Error("--against: lists every class; the answer must be one of them");
  }
  return classes;
}

std::vector<int64_t> number_superclasses(const Names& names, const std::string& file) {
  std::vector<int64_t> superclass_of(names.count, -1);
  for (size_t i = 0; i < names.superclasses.size(); ++i) {
    for (const std::string& name : names.superclasses[i].classes) {
      int64_t& number = superclass_of[names.class_of(name, file)];
      if (number >= 0) throw Error("{}: {:?} is in two superclasses", file, name.substr(0, 40));
      number = static_cast<int64_t>(i);
    }
  }
  const auto left = std::find(superclass_of.begin(), superclass_of.end(), -1);
  if (left != superclass_of.end()) {
    const int64_t c = left - superclass_of.begin();
    throw Error("{}: class {} is in no superclass; give --against to use some of them", file,
                names.classes.empty() ? std::to_string(c) : names.classes[c]);
  }
  return superclass_of;
}

// The JSON beside the rows: what they are about.
nlohmann::json describe_table(const AgainstArguments& a, const AgainstResult& result,
                              const RunRecord& run) {
  return {{"certificates", find_table(a.table).string()},
          {"claim", result.claim},
          {"alpha", result.alpha},
          {"images", result.found.images},
          {"identity", run.identity.to_json()},
          {"provenance", build_provenance()}};
}

void write_rows(const fs::path& out, const AvoidingRows& found, const nlohmann::json& sidecar) {
  for (const fs::path& path : {out, sidecar_path(out)}) {
    if (fs::exists(path)) throw Error("{}: exists; choose another --out", path.string());
  }
  std::string text = "idx\tlabel\tselected\tradius_against\n";
  for (const AvoidingRow& row : found.rows) {
    text += fmt::format("{}\t{}\t{}\t{}\n", row.index, row.label, row.selected, row.radius);
  }
  write_file(sidecar_path(out), dump_json_lines(sidecar));
  write_file(out, text);
}

}  // namespace

Avoidance find_avoidance(const AgainstOptions& o, const std::vector<std::string>& class_names,
                         int64_t classes) {
  Names names{class_names, class_names.empty() ? classes : std::ssize(class_names), {}};
  if (o.top != 0 && (o.names_classes() || !o.superclasses.empty())) {
    throw Error("--top={}: not together with --against or --superclasses", o.top);
  }
  if (o.top != 0) {
    if (o.top < 1 || o.top >= names.count) {
      throw Error("--top={}: must be from 1 to {}, as there are {} classes", o.top, names.count - 1,
                  names.count);
    }
    return {.kind = Avoidance::Kind::kBeyondTop, .top = o.top};
  }
  if (!o.superclasses.empty()) {
    names.superclasses = parse_superclasses(read_file(o.superclasses), o.superclasses);
    for (const Superclass& super : names.superclasses) {
      if (!names.find_class(super.name)) continue;
      throw Error("{}: superclass {:?} has the name of a class", o.superclasses, super.name);
    }
  }
  if (!o.names_classes()) {
    return {.kind = Avoidance::Kind::kSuperclasses,
            .superclass_of = number_superclasses(names, o.superclasses)};
  }
  return {.classes = find_classes(o, names)};
}

std::string describe(const Avoidance& a, const std::vector<std::string>& class_names) {
  if (a.kind == Avoidance::Kind::kSuperclasses) return "g stays in the label's superclass";
  if (a.kind == Avoidance::Kind::kBeyondTop) {
    return fmt::format("the label is among g's {} likeliest classes", a.top);
  }
  std::vector<std::string> names;
  for (const int64_t c : a.classes) {
    names.push_back(c < std::ssize(class_names) ? class_names[c] : fmt::format("class {}", c));
  }
  return fmt::format("g is never {}", fmt::join(names, ", "));
}

AgainstResult certify_against(const RunRecord& run, const AgainstOptions& options, double alpha) {
  if (alpha != 0 && !is_level(alpha)) throw Error("--alpha={}: {}", alpha, kLevels);
  if (run.certified() && run.rows.front().malicious) {
    throw Error("{}: is of several groups, which are not certified against given classes",
                run.name);
  }
  const Avoidance avoidance =
      find_avoidance(options, run.class_names, run.identity.classes.value_or(0));
  AvoidingRows found = radii_against(run, avoidance, alpha);
  return {run.name, describe(avoidance, run.class_names),
          alpha > 0 ? alpha : run.rows.front().alpha, std::move(found)};
}

AgainstResult certify_against(const AgainstArguments& a) {
  const RunRecord run = load_run(a.table);
  AgainstResult result = certify_against(run, a.options, a.alpha);
  if (!a.out.empty()) write_rows(a.out, result.found, describe_table(a, result, run));
  return result;
}

}  // namespace fedsmooth::jobs

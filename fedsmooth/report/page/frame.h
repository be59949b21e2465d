// What pages are built of: the page itself with its style and script, its contents, sections, and
// parts that are folded.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace fedsmooth {

/// The list of a page's sections. Each has an id, so that a link can lead to it.
class Contents {
 public:
  /// Adds a section, or with `level` 2 a part of the last one, and returns its id.
  std::string add(std::string_view title, int level = 1);
  /// An id for a part that is not listed, or that link() lists later.
  std::string reserve(std::string_view title);
  /// Lists a part of the last section whose id was reserved.
  void link(std::string_view title, std::string_view id, int level = 2);
  /// <nav> with a link to each section.
  std::string render() const;

 private:
  std::set<std::string> ids_;
  std::string items_;
};

struct PageParts {
  std::string title;  // text; the others are HTML
  std::string lead;   // below the title
  std::string contents, body;
};

/// A whole page. It loads nothing from elsewhere, and its policy keeps browsers from it.
std::string page(const PageParts& parts);

/// A section with its heading; `title` is escaped, `body` is HTML.
std::string section(std::string_view id, std::string_view title, std::string_view body);

/// A heading inside a section; likewise.
std::string heading(std::string_view id, std::string_view title);

/// HTML that is shown when the reader asks for it.
std::string folded(std::string_view summary, std::string_view body);

/// A table that scrolls sideways where it is too wide.
std::string scrolling(std::string_view table);

}  // namespace fedsmooth

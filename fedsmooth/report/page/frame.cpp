#include "fedsmooth/report/page/frame.h"

#include <fmt/format.h>

#include <cctype>

#include "fedsmooth/base/sha256.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/report/page/picture.h"
#include "fedsmooth/report/page/script.h"
#include "fedsmooth/report/page/style.h"

namespace fedsmooth {

namespace {

/// Lets a browser load nothing, and run this very script alone.
std::string policy(std::string_view script) {
  const std::string digits = sha256(script);
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return fmt::format(
      "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{}'",
      base64(bytes));
}

/// Small letters and digits with dashes between them.
std::string slug(std::string_view title) {
  std::string id;
  for (const char c : title) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalnum(byte)) {
      id += static_cast<char>(std::tolower(byte));
    } else if (!id.empty() && id.back() != '-') {
      id += '-';
    }
  }
  while (id.ends_with('-')) id.pop_back();
  return id.empty() ? "part" : id;
}

}  // namespace

std::string Contents::reserve(std::string_view title) {
  const std::string wanted = slug(title);
  std::string id = wanted;
  for (int i = 2; !ids_.insert(id).second; ++i) id = fmt::format("{}-{}", wanted, i);
  return id;
}

std::string Contents::add(std::string_view title, int level) {
  const std::string id = reserve(title);
  link(title, id, level);
  return id;
}

void Contents::link(std::string_view title, std::string_view id, int level) {
  items_ += fmt::format("<li class=\"level-{}\"><a href=\"#{}\">{}</a></li>\n", level, id,
                        escape_html(title));
}

std::string Contents::render() const {
  return fmt::format("<nav aria-label=\"Contents\">\n<ul>\n{}</ul>\n</nav>\n", items_);
}

std::string page(const PageParts& parts) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{0}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{1}</title>\n<style>{2}</style>\n</head>\n<body>\n"
      "<header>\n<h1>{1}</h1>\n{3}</header>\n{4}<main>\n{5}</main>\n"
      "<footer>Made by fedsmooth {6}.</footer>\n<script>{7}</script>\n</body>\n</html>\n",
      policy(kReportScript), escape_html(parts.title), kReportStyle, parts.lead, parts.contents,
      parts.body, version(), kReportScript);
}

std::string section(std::string_view id, std::string_view title, std::string_view body) {
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, escape_html(title),
                     body);
}

std::string heading(std::string_view id, std::string_view title) {
  return fmt::format("<h3 id=\"{}\">{}</h3>\n", id, escape_html(title));
}

std::string folded(std::string_view summary, std::string_view body) {
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", escape_html(summary),
                     body);
}

std::string scrolling(std::string_view table) {
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table\">{}</div>\n",
      table);
}

}  // namespace fedsmooth

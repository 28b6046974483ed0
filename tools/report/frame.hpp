// An HTML file out of its frame and its parts, so that no text in them can end an element. Used by page.cpp
// and compare_page.cpp; the frames are page/report.html and page/compare.html.
#pragma once

#include <nlohmann/json.hpp>

#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit::report {

/// Writes @p frame with each {{name}} replaced by its part. Names come in the order of the frame.
void write_frame(std::ostream& out, std::string_view frame,
                 const std::vector<std::pair<std::string_view, std::string_view>>& parts);

std::string script_safe(const nlohmann::json& value);  ///< for an element of type application/json
std::string html_safe(const std::string& text);        ///< for an element's text

}  // namespace godwit::report

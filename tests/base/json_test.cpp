// Tests of the JSON writer: structure, escapes, bytes that are no UTF-8, numbers.
// test: timeout=30 tsan
#include "base/json.hpp"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>

namespace {

using godwit::base::json_writer;
using std::string_literals::operator""s;

std::string text(std::string_view v) { return json_writer().value(v).text(); }

TEST(json, structure) {
  json_writer j;
  j.begin_object()
      .field("a", 1)
      .key("b")
      .begin_array()
      .value(true)
      .value("x")
      .begin_object()
      .end_object()
      .end_array();
  j.key("c").raw("{\"d\":null}").field("e", std::uint64_t{18446744073709551615u}).end_object();
  EXPECT_EQ(j.text(), R"({"a":1,"b":[true,"x",{}],"c":{"d":null},"e":18446744073709551615})");
}

TEST(json, strings_are_escaped) {
  EXPECT_EQ(text("plain"), "\"plain\"");
  EXPECT_EQ(text("a\"b\\c/"), R"("a\"b\\c/")");
  EXPECT_EQ(text("\n\t\x01\x1f"), R"("\u000a\u0009\u0001\u001f")");
  EXPECT_EQ(text("a\0b"s), "\"a\\u0000b\"");
  EXPECT_EQ(text("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\xa6"),
            "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\xa6\"");
}

TEST(json, what_is_no_utf8_becomes_a_replacement_character) {
  EXPECT_EQ(text("\xff"), R"("\ufffd")");
  EXPECT_EQ(text("a\x80z"), R"("a\ufffdz")");                  // a continuation without a beginning
  EXPECT_EQ(text("\xc3"), R"("\ufffd")");                      // cut short
  EXPECT_EQ(text("\xc0\xaf"), R"("\ufffd\ufffd")");            // overlong
  EXPECT_EQ(text("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");  // a surrogate
  EXPECT_EQ(text("\xf5\x80\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")");
}

TEST(json, numbers) {
  EXPECT_EQ(json_writer().value(-3).text(), "-3");
  EXPECT_EQ(json_writer().value(0.25).text(), "0.25");
  EXPECT_EQ(json_writer().value(std::nan("")).text(), "null");
  EXPECT_EQ(json_writer().value(std::numeric_limits<double>::infinity()).text(), "null");
}

TEST(json, numbers_do_not_follow_the_locale) {
  const char* with_comma = nullptr;
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"})
    if (with_comma == nullptr) with_comma = std::setlocale(LC_NUMERIC, name);
  const std::string text =
      json_writer().begin_array().value(1.5).value(1e300).value(123456.7891).end_array().text();
  std::setlocale(LC_NUMERIC, "C");
  EXPECT_EQ(text, "[1.5,1e+300,123456.789]");
  if (with_comma == nullptr) GTEST_SKIP() << "no locale with a decimal comma here: with the C locale only";
}

}  // namespace

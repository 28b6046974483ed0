// What open_output takes and what it leaves alone.
// test: once
#include "base/output_file.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using godwit::base::open_output;

struct folder {
  std::string path = testing::TempDir() + "godwit_output." + std::to_string(getpid()) + "/";
  folder() { mkdir(path.c_str(), 0777); }
  ~folder() { static_cast<void>(!std::system(("rm -rf " + path).c_str())); }
  std::string file(const char* name, const std::string& text) const {
    std::ofstream(path + name, std::ios::binary) << text;
    return path + name;
  }
};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Write "new" to it; gives back the problem.
std::string try_to_write(const std::string& path) {
  std::string problem;
  const int fd = open_output(path, {"mark one", "mark two"}, problem);
  EXPECT_EQ(fd < 0, !problem.empty()) << problem;
  if (fd < 0) return problem;
  EXPECT_EQ(write(fd, "new", 3), 3);
  close(fd);
  return "";
}

TEST(output_file, new_empty_and_own_files_are_written) {
  const folder f;
  const std::string cases[] = {f.path + "new", f.file("empty", ""),
                               f.file("one", "mark one, and more than that"),
                               f.file("two", "\n\n  mark two")};
  for (const std::string& path : cases) {
    EXPECT_EQ(try_to_write(path), "") << path;
    EXPECT_EQ(text_of(path), "new") << path;
  }
}

TEST(output_file, files_of_others_stay_as_they_are) {
  const folder f;
  const std::string late = std::string(godwit::base::output_head_bytes, 'x') + "mark one";
  for (const std::string& text :
       {std::string("x"), std::string("root:x:0:0:root"), late, std::string("mark o")}) {
    const std::string path = f.file("theirs", text);
    EXPECT_NE(try_to_write(path).find("no earlier output"), std::string::npos);
    EXPECT_EQ(text_of(path), text);
    const std::string link = f.path + "link";
    ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
    EXPECT_NE(try_to_write(link), "");
    EXPECT_EQ(text_of(path), text);
    unlink(link.c_str());
  }
}

TEST(output_file, what_is_no_file_is_taken_as_it_is) {
  EXPECT_EQ(try_to_write("/dev/null"), "");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(try_to_write("/dev/fd/" + std::to_string(ends[1])), "");
  char got[3] = {};
  EXPECT_EQ(read(ends[0], got, 3), 3);
  close(ends[0]);
  close(ends[1]);
}

TEST(output_file, what_cannot_be_opened_is_told) {
  EXPECT_EQ(try_to_write("/no/such/folder/x"), "No such file or directory");
  EXPECT_EQ(try_to_write("/"), "Is a directory");
}

}  // namespace

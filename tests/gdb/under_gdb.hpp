// gdb in batch mode on a program that stands still, for the tests of this folder: how it is started, and what
// all views of situation.cpp have in common.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace under_gdb {

inline const std::string script_ = GODWIT_TEST_SOURCE_DIR "/tools/gdb/godwit.py";

inline std::string read_all(std::FILE* f) {
  std::string text;
  char line[4096];
  while (std::fgets(line, sizeof line, f) != nullptr) text += line;
  return text;
}

inline std::string new_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "godwit-gdb-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) std::abort();
  return name;
}

inline std::string shell(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text = read_all(pipe);
  pclose(pipe);
  return text;
}

/// gdb @p arguments, with the script and then @p commands.
inline std::string gdb(const std::string& arguments, const std::vector<std::string>& commands,
                       const char* before = "") {
  std::string line = std::string(before) +
                     " timeout 120 gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'source " + script_ +
                     "'";
  for (const std::string& c : commands) line += " -ex '" + c + "'";
  return shell(line + " " + arguments + " 2>&1 </dev/null");
}

/// "SOURCE:LINE" of the line marked so.
inline std::string at(const std::string& mark, const std::string& source = "situation.cpp") {
  std::ifstream in(GODWIT_TEST_SOURCE_DIR "/tests/gdb/" + source);
  std::string text;
  for (int number = 1; std::getline(in, text); ++number)
    if (const auto found = text.find("// line: " + mark);
        found != std::string::npos && text.substr(found) == "// line: " + mark)
      return source + ":" + std::to_string(number);
  return "no line is marked " + mark;
}

/// The program, from "everybody in place" until finish().
class situation {
 public:
  explicit situation(std::vector<std::string> flags = {}, const char* program = SITUATION) {
    folder_ = new_folder();
    int out[2];
    if (pipe(out) != 0) std::abort();
    supervisor_ = fork();
    if (supervisor_ == 0) {
      dup2(out[1], 1);
      dup2(out[1], 2);
      close(out[0]);
      close(out[1]);
      std::vector<std::string> words{program, file()};
      words.insert(words.end(), flags.begin(), flags.end());
      std::vector<char*> argv;
      for (std::string& w : words) argv.push_back(w.data());
      argv.push_back(nullptr);
      execv(program, argv.data());
      _exit(127);
    }
    close(out[1]);
    out_ = fdopen(out[0], "r");
    std::string text;
    while (text != "ready" && waitpid(supervisor_, &status_, WNOHANG) == 0) {
      usleep(10'000);
      std::ifstream(file()) >> text;
    }
    const std::string pid = std::to_string(supervisor_);
    std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
    for (std::string child; children >> child;) workers_.push_back(child);
  }
  ~situation() {
    if (out_ != nullptr) finish();
    static_cast<void>(std::system(("rm -rf " + folder_).c_str()));
  }
  situation(const situation&) = delete;
  situation& operator=(const situation&) = delete;

  std::string file() const { return folder_ + "/held"; }
  std::string folder() const { return folder_; }
  std::string supervisor() const { return std::to_string(supervisor_); }
  /// Process of a worker. The supervisor forks worker 0 last.
  std::string worker(unsigned number) const { return workers_.size() == 2 ? workers_[1 - number] : "0"; }

  /// Let it go; its output and exit status in one.
  std::string finish() {
    unlink(file().c_str());
    std::string text = read_all(out_);
    std::fclose(out_);
    out_ = nullptr;
    waitpid(supervisor_, &status_, 0);
    return text + "status " + std::to_string(status_);
  }

 private:
  std::string folder_;
  pid_t supervisor_ = 0;
  std::vector<std::string> workers_;
  std::FILE* out_ = nullptr;
  int status_ = 0;
};

/// One line of `godwit threads`.
struct row {
  std::string id, state, size, where;
  int worker;
};

inline std::vector<row> rows_of(const std::string& text) {
  static const std::regex line(
      R"(^[* ] +(\d+[.:][0-9a-f]+) +(running|queued|suspended|ready|new) +(\d+) +(\?|\d+ B) +(.*)$)");
  std::vector<row> rows;
  std::istringstream in(text);
  for (std::string l; std::getline(in, l);)
    if (std::smatch m; std::regex_match(l, m, line))
      rows.push_back({m[1], m[2], m[4], m[5], std::stoi(m[3])});
  return rows;
}

/// The only row whose place begins with @p where.
inline row find(const std::vector<row>& rows, const std::string& where) {
  row found;
  int n = 0;
  for (const row& r : rows)
    if (r.where.rfind(where, 0) == 0) {
      found = r;
      ++n;
    }
  EXPECT_EQ(n, 1) << "rows at " << where;
  return found;
}

inline long bytes(const row& r) { return r.size == "?" ? -1 : std::atol(r.size.c_str()); }

/// The words occur in this order.
inline void expect_in_order(const std::string& text, const std::vector<std::string>& words) {
  std::size_t from = 0;
  for (const std::string& w : words) {
    const auto found = text.find(w, from);
    ASSERT_NE(found, std::string::npos) << "no " << w << " (after the words before it) in\n" << text;
    from = found + w.size();
  }
}

inline const char* why_not() {
  if (std::system("gdb --version >/dev/null 2>&1") != 0) return "gdb is missing";
  if (shell("gdb -nx -batch -ex 'python print(6 * 7)' 2>&1").find("42") == std::string::npos)
    return "this gdb has no Python";
  if (shell("sleep 20 & gdb -nx -batch -p $! 2>&1; kill $!").find("not permitted") != std::string::npos)
    return "gdb may not attach to processes here (ptrace)";
  return nullptr;
}
#define NEED_GDB()                                       \
  if (const char* reason = why_not(); reason != nullptr) \
  GTEST_SKIP() << reason << ": the gdb commands were NOT tested"

/// What all views of the situation have in common. @p running: the registers of running threads are there.
inline std::vector<row> check_rows(const std::string& text, bool running_0, bool running_1) {
  const std::vector<row> rows = rows_of(text);
  EXPECT_EQ(rows.size(), 9u) << text;
  std::map<std::string, int> count;
  for (const row& r : rows) ++count[r.state];
  EXPECT_EQ(count["running"], 2) << text;
  EXPECT_EQ(count["queued"], 3) << text;
  EXPECT_EQ(count["suspended"], 3) << text;
  EXPECT_EQ(count["ready"], 1) << text;
  EXPECT_NE(text.find("9 threads: 2 running, 3 queued, 3 suspended, 1 ready; 1 stolen"), std::string::npos)
      << text;

  const row root = find(rows, "root at " + at("root"));
  EXPECT_EQ(root.state, "queued");
  EXPECT_EQ(root.worker, 1) << "stolen by it";
  EXPECT_NE(root.where.find("stolen from worker 0"), std::string::npos) << text;
  const row one = find(rows, "level_one at " + at("level_one"));
  EXPECT_EQ(one.state, "queued");
  EXPECT_EQ(one.worker, 0);
  EXPECT_NE(one.where.find("its parent was stolen: thread " + root.id), std::string::npos) << text;
  const row two = find(rows, "level_two at " + at("level_two"));
  EXPECT_EQ(two.state, "queued");
  EXPECT_EQ(two.worker, 0);
  const row ready = find(rows, "yielder at " + at("yielder"));
  EXPECT_EQ(ready.state, "ready");
  for (const row& r : rows) {
    if (r.state != "running") {
      EXPECT_GT(bytes(r), 0) << r.id;
    }
    if (r.state != "suspended") continue;
    EXPECT_EQ(r.where, "wait_inner at " + at("wait_inner") + "; waits for thread " + one.id);
    EXPECT_GT(bytes(r), 3000) << "it has an array of that size";
    EXPECT_LT(bytes(r), 9000);  // where it has a stack of its own, with what lies at its end
  }
  if (running_0) {
    EXPECT_EQ(find(rows, "leaf at " + at("leaf")).worker, 0);
  }
  if (running_1) {
    EXPECT_EQ(find(rows, "spinner at " + at("spinner")).worker, 1);
  }
  for (const row& r : rows)
    if (r.state == "running") {
      EXPECT_EQ(bytes(r) > 0, r.worker == 0 ? running_0 : running_1) << text;
    }
  return rows;
}

/// Backtraces of all that does not run, from `godwit backtrace all`.
inline void check_backtraces(const std::string& text, const std::vector<row>& rows) {
  EXPECT_EQ(text.find("corrupt stack"), std::string::npos) << text;
  EXPECT_EQ(text.find(" in ?? ()"), std::string::npos) << text;
  int waiters = 0;
  for (const row& r : rows) {
    const auto from = text.find("Thread " + r.id + ": " + r.state + " on worker " + std::to_string(r.worker));
    ASSERT_NE(from, std::string::npos) << r.id << " in\n" << text;
    const std::string own = text.substr(from, text.find("\nThread ", from) - from);
    if (r.state == "suspended") {
      ++waiters;  // the newest comes last; n shows that registers and stack are its own
      const std::string n = "n=" + std::to_string(10 * waiters);
      const std::string entry = "n@entry=" + std::to_string(10 * waiters);
      EXPECT_TRUE(own.find(n) != std::string::npos || own.find(entry) != std::string::npos) << own;
      expect_in_order(own, {"wait_inner", at("wait_inner"), "wait_middle", at("wait_middle"), "wait_outer",
                            at("wait_outer")});
    } else if (r.state == "ready") {
      expect_in_order(own, {"yielder", at("yielder")});
    } else if (r.where.rfind("root", 0) == 0) {
      expect_in_order(own, {"root", at("root")});
    } else if (r.where.rfind("level_two", 0) == 0) {
      const row one = find(rows, "level_one");
      expect_in_order(own, {"level_two", at("level_two"), "was spawned by thread " + one.id, "level_one",
                            at("level_one"), "holder", "its parent was stolen"});
    } else if (r.where.rfind("leaf", 0) == 0) {
      expect_in_order(own, {"leaf", at("leaf"), "-- thread", "level_two", at("level_two"), "-- thread",
                            "level_one", at("level_one"), "holder"});
    } else if (r.where.rfind("spinner", 0) == 0) {
      expect_in_order(own, {"spinner", at("spinner"), "-- thread", "root", at("root")});
    }
  }
  EXPECT_EQ(waiters, 3);
}

}  // namespace under_gdb

// Locals that own memory live across spawns, in two runs with the options of the command line and the
// environment: prints for each where workers lived and how many values were wrong. "global" as the first
// argument: main has made an object that all workers share.
#include <godwit/godwit.hpp>

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

namespace gw = godwit;

static int many(int n) {
  if (n == 0) return 0;
  const std::string text = "a text that is too long to lie in the string itself " + std::to_string(n);
  std::vector<int> numbers(100, n);
  const auto shared = std::make_shared<std::string>(text);
  auto child = gw::spawn([n, shared, text] { return many(n - 1) + (*shared != text); });
  numbers.push_back(n + 1);
  int wrong = many(n - 1);
  for (int i = 0; i < 100; ++i) wrong += numbers[static_cast<std::size_t>(i)] != n;
  wrong += *shared != text || !text.ends_with(" " + std::to_string(n));
  return wrong + child.join() + (numbers.back() != n + 1) + (shared.use_count() != 1);
}

struct table {
  std::mutex lock;
  std::map<int, std::string> texts;
};

/// What main does, for those that load this as a library.
extern "C" [[gnu::visibility("default")]] int switches(int argc, char** argv) {
  std::optional<gw::shared_global<table>> common;
  if (argc > 1 && std::strcmp(argv[1], "global") == 0) common.emplace();
  const pid_t main_process = getpid();
  for (int i = 0; i < 2; ++i) {
    const int status = gw::run(argc, argv, [&] {
      gw::on_each_worker([] {});  // all workers are up
      const int wrong = many(8);
      if (common) {
        const std::lock_guard guard((*common)->lock);
        (*common)->texts[i] = "a text that is too long to lie in the string itself";
      }
      std::printf("%s: %d wrong\n", getpid() == main_process ? "threads" : "processes", wrong);
    });
    if (status != 0) return status;
  }
  if (common) std::printf("%zu texts\n", (*common)->texts.size());
  return 0;
}

int main(int argc, char** argv) { return switches(argc, argv); }

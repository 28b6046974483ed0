// Serial code as many times at once as there are workers: what the machine has for them just now.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

#include "harness.hpp"
#include "shared_page.hpp"

namespace bench {

/// f(), which measures itself, in each of so many processes at once: the mean of their times, and whether all
/// are correct. Throws if one of them cannot be started or does not end by itself.
template <class F>
sample copies_at_once(unsigned copies, const F& f) {
  struct measured {
    double seconds, cpu_seconds;
    bool correct;
  };
  constexpr unsigned most = 64;
  struct all_measured {
    measured of[most];
  };
  if (copies > most) throw std::invalid_argument("too many copies at once");
  const shared_page<all_measured> page;
  std::vector<pid_t> children;
  bool all = true;
  for (unsigned i = 0; i < copies; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const sample s = f();
      page->of[i] = {s.seconds, s.cpu_seconds, s.correct};
      _exit(0);
    }
    if (child > 0) children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    all = waitpid(child, &status, 0) == child && status == 0 && all;
  }
  if (!all || children.size() < copies) throw std::runtime_error("a copy of the serial code failed");
  sample mean;
  for (unsigned i = 0; i < copies; ++i) {
    mean.seconds += page->of[i].seconds / copies;
    mean.cpu_seconds += page->of[i].cpu_seconds / copies;
    mean.correct = mean.correct && page->of[i].correct;
  }
  mean.total_seconds = mean.seconds;
  return mean;
}

}  // namespace bench

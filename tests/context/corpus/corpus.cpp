// What compilers do with frames, for tests/context/single_step_test.cpp, which compiles this file in several
// ways (extras.cmake) and calls CORPUS().
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define APART [[gnu::noinline]]

namespace {

using word = unsigned long;
word mix(word x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdUL;
  return x ^ x >> 29;
}

APART word leaf(word a) { return a * 3 + 1; }
/// All registers that calls keep, and more values than those.
APART word many_values(word n) {
  word a = leaf(n), b = leaf(a), c = leaf(b), d = leaf(c), e = leaf(d), f = leaf(e), g = leaf(f);
  const double x = std::sqrt(static_cast<double>(a % 1000));
  word sum = 0;
  for (word i = 0; i < 2; ++i) sum += leaf(a ^ b) + leaf(c ^ d) + leaf(e ^ f ^ g) + static_cast<word>(x);
  return sum + a + b + c + d + e + f + g;
}
APART word recursion(word n) { return n < 2 ? n : recursion(n - 1) + recursion(n - 2); }
APART word tail_called(word n) { return mix(n); }
APART word tail_caller(word n) {
  if (n % 2 == 0) return leaf(n);
  return tail_called(n + leaf(n));
}
/// The frame is made in one branch only.
APART word shrink_wrapped(word n) {
  if (n < 100) return n + 1;
  word a = leaf(n), b = leaf(a);
  return leaf(b) + a;
}
APART word variable_room(word n) {
  auto* a = static_cast<word*>(__builtin_alloca((n % 20 + 1) * sizeof(word)));
  for (word i = 0; i <= n % 20; ++i) a[i] = leaf(i);
  return a[n % 20] + leaf(a[0]);
}
/// Realigns its stack.
APART word aligned_room(word n) {
  alignas(64) volatile char room[128];
  room[n % 128] = static_cast<char>(n);
  return leaf(static_cast<word>(room[n % 128])) + (reinterpret_cast<word>(room) % 64);
}
APART word large_room(word n) {
  volatile char room[20000];
  room[n % sizeof room] = 1;
  return leaf(n) + static_cast<word>(room[n % sizeof room]);
}
struct large {
  word v[9];
};
APART large large_result(word n) {
  large l;
  for (word& v : l.v) v = leaf(n++);
  return l;
}
APART word arguments_on_the_stack(word a, word b, word c, word d, word e, word f, word g, word h, large i) {
  return leaf(a + b + c + d) + e + f + g + h + i.v[3];
}
APART word any_number(int n, ...) {
  va_list list;
  va_start(list, n);
  word sum = 0;
  for (int i = 0; i < n; ++i) sum += leaf(va_arg(list, word));
  va_end(list);
  return sum;
}
struct shape {
  virtual ~shape() = default;
  virtual word area(word n) { return leaf(n); }
};
struct square : shape {
  word area(word n) override { return shape::area(n) + leaf(n); }
};

struct guard {
  word& count;
  explicit guard(word& c) : count(c) {}
  ~guard() { count += leaf(count); }
};
APART word may_throw(word n, word& count) {
  guard g(count);
  if (n == 0) throw std::runtime_error("here");
  guard h(count);
  return may_throw(n - 1, count) + 1;
}
APART word exceptions(word n) {
  word count = n;
  try {
    return may_throw(1, count);
  } catch (const std::exception& e) {
    count += std::strlen(e.what());
    try {
      throw;
    } catch (const std::runtime_error&) {
      count += leaf(count);
    }
  }
  return count;
}

APART word libraries(word n) {
  std::vector<word> v;
  for (word i = 0; i < 30; ++i) v.push_back(mix(i + n));
  std::sort(v.begin(), v.end());
  std::qsort(v.data(), v.size(), sizeof(word), [](const void* a, const void* b) {
    return *static_cast<const word*>(a) > *static_cast<const word*>(b) ? -1 : 1;
  });
  std::map<std::string, word> m;
  for (word i = 0; i < 5; ++i) m[std::to_string(v[i])] = i;
  char text[200];
  std::snprintf(text, sizeof text, "%s %d %.3f", m.begin()->first.c_str(), 17,
                std::sin(1.0 + static_cast<double>(n)));
  const std::function<word(word)> f = [&](word x) { return x + m.size() + std::strlen(text); };
  auto p = std::make_unique<large>();
  std::memset(p.get(), 1, sizeof(large));
  return f(v[0]) + p->v[0];
}

}  // namespace

extern "C" word CORPUS(word n);
extern "C" word CORPUS(word n) {
  square s;
  shape* volatile which = &s;
  word sum = many_values(n) + recursion(7) + tail_caller(n) + tail_caller(n + 1) + shrink_wrapped(n) +
             shrink_wrapped(n + 1000) + variable_room(n) + aligned_room(n) + large_room(n);
  sum += large_result(n).v[8] + arguments_on_the_stack(1, 2, 3, 4, 5, 6, 7, n, large_result(n));
  sum += any_number(3, n, n + 1, n + 2) + which->area(n) + exceptions(n) + libraries(n);
  return sum;
}

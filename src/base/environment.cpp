// See environment.hpp. The strings stay where they are: they are only ever read.
#include "base/environment.hpp"

#include "base/options.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <unistd.h>

namespace godwit::base {

void move_environment() {
  std::size_t n = 0;
  while (environ != nullptr && environ[n] != nullptr) ++n;
  static char** moved;  // never freed; named here so that no leak checker takes it for lost after a setenv
  moved = new char*[n + 1];
  std::copy_n(environ, n, moved);
  moved[n] = nullptr;
  environ = moved;
}

bool environment_asks(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && read_switch(value).value_or(false);
}

}  // namespace godwit::base

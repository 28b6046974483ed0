// See environment.hpp. The strings stay where they are: they are only ever read.
#include "base/environment.hpp"

#include <algorithm>
#include <cstddef>
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

}  // namespace godwit::base

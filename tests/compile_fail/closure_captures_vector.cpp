// expect: this callable cannot migrate: it captures something by value that is not plain bytes
// A vector by value in a closure would be destroyed at two workers.
#include <godwit/godwit.hpp>

int use() {
  std::vector<int> v{1, 2, 3};
  auto f = godwit::spawn([v] { return v[0]; });
  return f.join();
}

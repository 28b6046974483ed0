// expect: the result type of this thread cannot migrate.*include godwit/codec.hpp
// A map as a result, with the small header only.
#include <godwit/task.hpp>

#include <map>

void use() {
  auto f = godwit::spawn([] { return std::map<int, int>{}; });
}

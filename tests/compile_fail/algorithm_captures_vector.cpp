// expect: a function given to a parallel algorithm is copied to the workers that call it
// lines: 60
// A vector by value in an algorithm's function would be destroyed at two workers.
#include <godwit/godwit.hpp>

void use(godwit::global_span<int> s) {
  std::vector<int> v{1, 2, 3};
  godwit::for_each(s, [v](int& x) { x = v[0]; });
}

// expect: needs random access to its elements
#include <godwit/godwit.hpp>

#include <list>

void use(std::list<int>& l) {
  godwit::for_each(l, [](int& x) { ++x; });
}

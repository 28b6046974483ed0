// expect: the result type of this thread cannot migrate
// A vector is as migratable as its elements.
#include <godwit/godwit.hpp>

struct person {
  std::string name;
  int age;
};

void use() {
  godwit::spawn([] { return std::vector<person>(3); }).join();
}

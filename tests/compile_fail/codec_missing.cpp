// expect: cannot migrate: make it trivially copyable or specialise .*godwit::codec
// A user class with a string in it needs a codec.
#include <godwit/godwit.hpp>

struct person {
  std::string name;
  int age;
};

int use() {
  return godwit::spawn([](person p) { return p.age; }, person{"Ada", 36}).join();
}
